"""Checks of what users pass to the bootstrap: arguments, and data of any kind that has rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

from margrove._data import collected

__all__ = ["Sample", "check_arguments", "check_sample"]


def check_arguments(
    constraints: Mapping[str, list[Any]], given: Mapping[str, Any], function: str
) -> None:
    """scikit-learn's parameter validation, which in addition does not accept True as a number."""
    checked = {name: given[name] for name in constraints}
    validate_parameter_constraints(dict(constraints), checked, function)
    for name, allowed in constraints.items():
        is_switch = any(option in ("boolean", "verbose") for option in allowed)
        if isinstance(checked[name], (bool, np.bool_)) and not is_switch:
            raise InvalidParameterError(
                f"The {name!r} parameter of {function} must not be {checked[name]!r}: it is not "
                "a boolean parameter."
            )


@dataclass(frozen=True)
class Sample:
    """Arrays, dataframes or sparse matrices of the same length that are resampled together."""

    parts: tuple[Any, ...]
    n_rows: int

    def take(self, rows: np.ndarray) -> tuple[Any, ...]:
        """Copies of some rows of each part; the type of each part stays the same."""
        return tuple(
            part[rows] if isinstance(part, np.ndarray) else _safe_indexing(part, rows)
            for part in self.parts
        )

    def take_batch(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Rows of k resamples, int64 (k, m), taken from arrays: (k, ..., m), rows last."""
        rows_last = (np.moveaxis(part, 0, -1) for part in self.parts)
        return tuple(np.moveaxis(np.take(part, rows, axis=-1), -2, 0) for part in rows_last)

    @property
    def n_cells(self) -> int:
        """The number of values in all arrays together."""
        return sum(int(part.size) for part in self.parts)


def check_sample(data: Any, *, as_arrays: bool, name: str = "data") -> Sample:
    """Check one array-like, or a tuple of several, whose rows are resampled together."""
    if isinstance(data, tuple):
        if not data:
            raise ValueError(f"{name} is an empty tuple. Pass an array, or a tuple of arrays.")
        parts = tuple(_checked_part(part, f"{name}[{k}]", as_arrays) for k, part in enumerate(data))
    else:
        parts = (_checked_part(data, name, as_arrays),)
    sizes = [_length(part) for part in parts]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"The arrays of {name} are resampled together and need the same number of rows. Got "
            f"{sizes} instead."
        )
    if sizes[0] < 2:
        raise ValueError(
            f"{name} has {_counted(sizes[0])}. At least two rows are needed: resamples of fewer "
            "cannot differ."
        )
    return Sample(parts, sizes[0])


def _checked_part(part: Any, name: str, as_array: bool) -> Any:
    part = collected(part)
    library = type(part).__module__.partition(".")[0]
    if sp.issparse(part):
        if as_array:
            raise TypeError(
                f"{name} is sparse, which vectorized=True does not support. Use vectorized=False, "
                f"or pass {name}.toarray()."
            )
        return part.tocsr()
    if library in ("pandas", "polars", "pyarrow") and not as_array:
        return part
    if isinstance(part, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be ignored. Drop those rows.")
    if isinstance(part, (str, bytes, set, frozenset, Mapping, Iterator)):
        raise TypeError(
            f"{name} must be an array, a list, a frame or a tuple of these. Got "
            f"{type(part).__name__} instead. Convert it to a list."
        )
    try:
        array = np.asarray(part)
    except ValueError as error:
        raise ValueError(f"{name} cannot be converted to an array: {error}.") from error
    if array.ndim == 0:
        raise ValueError(
            f"{name} has no rows: {part!r}. Pass an array or a list of rows; a tuple means several "
            "arrays that are resampled together."
        )
    if isinstance(part, list) and array.ndim == 2 and array.dtype.kind == "U":
        return np.asarray(part, dtype=object)  # numbers beside strings stay numbers
    return array


def _length(part: Any) -> int:
    return int(part.shape[0] if hasattr(part, "shape") else len(part))


def _counted(n_rows: int) -> str:
    return "no rows" if n_rows == 0 else "one row"
