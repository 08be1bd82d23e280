"""Values of facts: read-only arrays, texts, what JSON can contain, and checked whole numbers."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import read_only

__all__ = ["Plain", "frozen", "in_words", "require_whole"]


class Plain:
    """Base class of facts: frozen values that can be written as JSON."""

    def as_dict(self) -> dict[str, Any]:
        """All fields as types that JSON has.

        Arrays become lists, numbers of NumPy those of Python, NaN and infinity None, and a sparse
        matrix its shape and its (row, column, value) triples.
        """
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: _as_json(getattr(self, field.name)) for field in fields}


def frozen(values: Any) -> Any:
    """A read-only array, which may share memory with the estimator; None stays None."""
    return None if values is None else read_only(np.asarray(values))


def require_whole(name: str, value: Any, least: int, of: str = "") -> int:
    """The value as an int; a ValueError that names the argument if it is not a whole number.

    `of` says what is counted, such as " of rows".
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number{of}, at least {least}. Got {value!r}.")
    return int(value)


def in_words(value: Any) -> Any:
    """Numbers, strings and collections of them unchanged; everything else as its repr."""
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): in_words(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_words(item) for item in value]
    if inspect.isroutine(value):
        return str(getattr(value, "__qualname__", value.__name__))
    try:
        text = repr(value)
    except Exception:  # a repr of another library may fail
        text = type(value).__name__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biu" or (value.dtype == np.float64 and np.isfinite(value).all()):
            return value.tolist()
        return _as_json(list(value)) if value.ndim else _as_json(value[()])
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if value is None:
        return None
    if sp.issparse(value):
        return _sparse_as_json(value)
    if isinstance(value, Plain):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return str(value)


def _sparse_as_json(matrix: Any) -> dict[str, Any]:
    triples = matrix.tocoo()
    return {
        "shape": list(matrix.shape),
        "rows": triples.row.tolist(),
        "columns": triples.col.tolist(),
        "values": _as_json(triples.data),
    }
