"""Asking for memory before it is needed.

The rows of a node that has few of them lie far apart: each is on a cache line of its own, which no
processor guesses. A loop that asks for the line of a row some rows ahead does not wait for it.
That pays where a row is read in several places; writes do not wait anyway.
"""

from __future__ import annotations

from margrove._runtime.instructions import fetch
from margrove._runtime.jit import kernel

__all__ = ["are_scattered", "fetch", "row_ahead", "row_behind"]

_AHEAD = 12  # rows: about what is counted while memory answers
_FAR_APART = 4  # times as many rows in between as in the node


@kernel(inlined=True)
def are_scattered(rows, start, end):
    """Whether rows[start:end], which ascend, lie far apart."""
    return end > start and rows[end - 1] - rows[start] > _FAR_APART * (end - start)


@kernel(inlined=True)
def row_ahead(rows, p, end):
    """The row that comes some places after rows[p]."""
    return rows[min(p + _AHEAD, end - 1)]


@kernel(inlined=True)
def row_behind(rows, p, start):
    """The row that comes some places before rows[p], for loops that go backwards."""
    return rows[max(p - _AHEAD, start)]
