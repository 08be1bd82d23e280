"""Structured arrays: `nodes.gain[i]` in Python and in kernels.

For Numba a structured array is one array, however many fields it has; a tuple with an array for
each field takes about twice as long to compile. `nodes[i]` is a record that kernels can pass to
functions and write to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

__all__ = ["fields_of", "first_records", "record_type", "records", "words_of"]


def record_type(fields: Sequence[tuple[Any, ...]]) -> np.dtype:
    """The dtype of records with the fields (name, type) or (name, type, shape).

    A field must not have the name of an array attribute, such as `sum`.
    """
    return np.dtype((np.record, np.dtype(list(fields), align=True)))


def records(shape: int | tuple[int, ...], kind: np.dtype) -> np.recarray:
    """An array of zeros of a record type."""
    return np.zeros(shape, kind).view(np.recarray)


def first_records(array: np.recarray, n: int) -> np.recarray:
    """array[:n], with the type that type checkers miss."""
    return cast(np.recarray, array[:n])


def fields_of(array: np.recarray) -> np.ndarray:
    """The same records for Python code: `fields["gain"]` is ten times faster than `array.gain`."""
    return array.view(np.ndarray)


def words_of(array: np.ndarray) -> np.ndarray:
    """The records as rows of int64, for copies: NumPy copies records field by field, which is slow.

    For records whose fields have 8 bytes each.
    """
    return array.view(np.ndarray).view(np.int64).reshape(len(array), -1)
