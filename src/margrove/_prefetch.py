"""Asking for memory before it is needed.

The rows of a node that has few of them lie far apart: each is on a cache line of its own, which no
processor guesses. A loop that asks for the line of a row some rows ahead does not wait for it.
That pays where a row is read in several places; writes do not wait anyway.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from margrove._jit import kernel

__all__ = ["are_scattered", "fetch", "row_ahead", "row_behind"]

_AHEAD = 12  # rows: about what is counted while memory answers
_FAR_APART = 4  # times as many rows in between as in the node


def _fetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for array[index], which is to be read soon; the index may not be negative."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = signature.args[0]
        own = context.make_array(kind)(context, builder, given[0])
        place = cgutils.get_item_pointer(context, builder, kind, own, [given[1]])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        to_read, keep_it, is_data = number(0), number(3), number(1)
        builder.call(ask, [builder.bitcast(place, byte), to_read, keep_it, is_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _nothing(array: Any, index: Any) -> None:
    """Without the compiler."""


fetch: Any = _nothing if vars(config)["DISABLE_JIT"] else intrinsic(_fetch)


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
