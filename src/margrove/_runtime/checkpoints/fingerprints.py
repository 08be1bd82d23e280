"""Hashes of data by their contents: the same rows in another container have the same hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["as_text", "fingerprint"]

_BYTES_AT_ONCE = 1 << 24


def fingerprint(value: Any) -> str:
    """SHA-256 of data, the same for equal contents in another container of the same kind."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        _add_array(digest, value)
    elif sp.issparse(value):
        _add_sparse(digest, value)
    elif isinstance(value, Mapping):
        digest.update(f"mapping {len(value)}\n".encode())
        for key in sorted(value, key=str):
            digest.update(f"{key!r}\n".encode())
            _add(digest, value[key])
    elif hasattr(value, "columns") and hasattr(value, "shape"):  # a frame
        digest.update(f"frame {tuple(value.shape)} {list(map(str, value.columns))}\n".encode())
        for name in value.columns:
            _add(digest, value[name])
    elif isinstance(value, list | tuple):
        _add_sequence(digest, value)
    elif hasattr(value, "__array__") and not np.isscalar(value):
        categories = getattr(getattr(value, "dtype", None), "categories", None)
        if categories is not None:
            digest.update(f"categories {list(categories)}\n".encode())
        _add_array(digest, np.asarray(value))
    else:
        digest.update(f"{as_text(value)}\n".encode())


def _add_sequence(digest: Any, values: list[Any] | tuple[Any, ...]) -> None:
    """Hash nested numbers as one array, and other items one by one."""
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        array = np.empty(0, object)
    if array.dtype.kind in "biufU" and array.size:
        _add_array(digest, array)
        return
    digest.update(f"sequence {len(values)}\n".encode())
    for value in values:
        _add(digest, value)


def _add_array(digest: Any, array: np.ndarray) -> None:
    if array.dtype.hasobject:
        digest.update(f"objects {array.shape}\n".encode())
        for item in array.ravel().tolist():
            digest.update(f"{type(item).__name__} {item!r}\n".encode())
        return
    kind = array.dtype
    if kind.kind in "biu" and (kind.itemsize < 8 or kind.kind == "i") and _are_exact_floats(array):
        kind = np.dtype(np.float64)
    digest.update(f"array {kind.newbyteorder('<').str} {array.shape}\n".encode())
    rows = np.atleast_1d(array)
    step = max(1, _BYTES_AT_ONCE // max(1, rows[:1].nbytes))
    for begin in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[begin : begin + step], kind.newbyteorder("<"))
        digest.update(block.reshape(-1).view(np.uint8).data if block.size else b"")


def _are_exact_floats(array: np.ndarray) -> bool:
    """Whether float64 represents all these integers exactly."""
    return array.dtype.itemsize < 8 or not np.any(np.abs(array) > 2**53)


def _add_sparse(digest: Any, value: Any) -> None:
    rows = value.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    digest.update(f"sparse {rows.shape}\n".encode())
    for array in (rows.data, rows.indices, rows.indptr):
        _add_array(digest, array)


def as_text(value: Any) -> str:
    """A parameter as text that is the same in another session."""
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"{type(value).__name__} of shape {value.shape}, {fingerprint(value)[:16]}"
    if isinstance(value, np.random.RandomState):
        return f"RandomState {fingerprint(value.get_state(legacy=True))[:16]}"
    if isinstance(value, np.random.Generator):
        return f"Generator {fingerprint(repr(value.bit_generator.state))[:16]}"
    if hasattr(value, "get_params"):
        return type(value).__name__  # its parameters are listed separately
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, np.generic):
        return repr(value.item())
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
