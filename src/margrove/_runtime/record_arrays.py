"""Structured arrays: `nodes.gain[i]` in Python and in kernels.

To Numba a structured array is one array, however many fields it has; a tuple of an array for each
field takes about twice as long to compile. `nodes[i]` is a record that a kernel can pass on, and
write to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

__all__ = ["first_records", "record_type", "records"]


def record_type(fields: Sequence[tuple[Any, ...]]) -> np.dtype:
    """(name, type) or (name, type, shape) of each field; none may be called like an attribute of an
    array, as `sum` is."""
    return np.dtype((np.record, np.dtype(list(fields), align=True)))


def records(shape: int | tuple[int, ...], kind: np.dtype) -> np.recarray:
    """Zeros of such a type."""
    return np.zeros(shape, kind).view(np.recarray)


def first_records(given: np.recarray, n: int) -> np.recarray:
    """given[:n], which type checkers do not take for one of records."""
    return cast(np.recarray, given[:n])
