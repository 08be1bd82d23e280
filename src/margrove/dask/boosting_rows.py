"""Rows that stay on the workers, as gradient boosting knows them on the client: by number.

What decides about rows (weights, draws, who is held out) is a function of targets, weights and a
hash of each row's content: 8 bytes a row each, which come to the client. There the functions of
`margrove.ensemble.gradient.training_data` decide, as they do where all rows are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import scan_rows
from margrove._data.canonical import _grouped, _sorted_by_hash, _with_targets
from margrove.ensemble.gradient.training_data import GradientData, RowDraws, _with_values

__all__ = [
    "DrawsByHash",
    "PartRows",
    "RowsElsewhere",
    "distinct_rows",
    "hash_rows",
    "new_numbers",
    "part_rows",
    "renumber",
    "stand_in_for_nan",
    "survey_part",
    "used_categories",
]

_FAR_OUT = 1e300  # where infinity is moved to, see `gradient_data`


@dataclass(frozen=True)
class RowsElsewhere:
    """Stands for a table of which only the numbers of its rows are here.

    rows       int64 (n,)  numbers of rows of the table that was given, in its order
    """

    rows: np.ndarray
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.n_columns

    def __getitem__(self, rows: Any) -> RowsElsewhere:
        return RowsElsewhere(self.rows[rows], self.n_columns)


@dataclass(frozen=True)
class PartRows:
    """Rows of a part that count: int64 numbers within the part; None for all."""

    rows: np.ndarray | None

    def of(self, part: Any) -> Any:
        return part if self.rows is None else part[self.rows]


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers that ascend, each once, and where in these the given ones are: `np.unique` sorts."""
    is_new = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_new[1:])
    return rows[is_new], np.cumsum(is_new) - 1


def part_rows(rows: np.ndarray, offsets: np.ndarray) -> list[PartRows]:
    """Rows of a table, ascending, as rows of its parts; offsets int64 (n_parts + 1,)."""
    cuts = np.searchsorted(rows, offsets)
    found = []
    for k in range(len(offsets) - 1):
        own = rows[cuts[k] : cuts[k + 1]] - offsets[k]
        length = int(offsets[k + 1] - offsets[k])
        is_whole = len(own) == length and np.array_equal(own, np.arange(length))
        found.append(PartRows(None if is_whole else own))
    return found


# -- on the workers --


@dataclass(frozen=True)
class _Facts:
    """What is to be known of all rows before they are hashed."""

    has_infinity: bool
    has_nan: bool
    lowest: tuple[float, ...]  # values next to the least that the type has
    dtype: str


def renumber(X: Any, renumbered: dict[int, np.ndarray]) -> Any:
    """Categories by new numbers: {column: float64 (categories + 1,), the last one NaN}."""
    if not renumbered:
        return X
    X = X.copy()
    for column, numbers in renumbered.items():
        X[:, column] = new_numbers(X[:, column], numbers)
    return X


def new_numbers(values: np.ndarray, numbers: np.ndarray | None) -> np.ndarray:
    """Of the categories of one column; None: they stay as they are."""
    if numbers is None:
        return values
    found: np.ndarray = numbers[np.where(np.isnan(values), -1, values).astype(np.int64)]
    return found


def survey_part(part: Any, rows: PartRows) -> _Facts:
    values = _values(rows.of(part))
    with np.errstate(over="ignore"):
        edge = 0.999 * np.finfo(values.dtype).min
    low = np.unique(values[(values <= edge) & np.isfinite(values)])
    return _Facts(
        bool(np.isinf(values).any()),
        bool(np.isnan(values).any()),
        tuple(float(own) for own in low),
        str(values.dtype),
    )


def hash_rows(
    part: Any,
    rows: PartRows,
    renumbered: dict[int, np.ndarray],
    has_infinity: bool,
    stand_in: float | None,
) -> np.ndarray:
    """uint64 (n,): what `canonical_form` sorts rows by; NaN is hashed as the number `stand_in`."""
    own = renumber(rows.of(part), renumbered)
    if own.shape[0] == 0:
        return np.empty(0, np.uint64)
    values = _values(own)
    if has_infinity:
        values = np.clip(values, -_FAR_OUT, _FAR_OUT)
    if stand_in is not None:
        values = np.where(np.isnan(values), values.dtype.type(stand_in), values)
    return scan_rows(_with_values(own, values)).hashes


def used_categories(part: Any, rows: PartRows, columns: Sequence[int]) -> list[np.ndarray]:
    """Numbers of the categories that some rows have, of each of these columns."""
    own = rows.of(part)
    found = []
    for column in columns:
        numbers = own[:, column]
        found.append(np.unique(numbers[~np.isnan(numbers)].astype(np.int64)))
    return found


def _values(X: Any) -> np.ndarray:
    found: np.ndarray = X.data if sp.issparse(X) else X
    return found


def stand_in_for_nan(facts: Sequence[_Facts]) -> float | None:
    """A number that does not occur, see `samples.with_nan_as_number`; None without NaN."""
    if not any(own.has_nan for own in facts):
        return None
    kind = np.dtype(next(own.dtype for own in facts)).type
    taken = {value for own in facts for value in own.lowest}
    if any(own.has_infinity for own in facts):
        taken = {value for value in taken if value >= -_FAR_OUT} | {-_FAR_OUT}
    stand_in = np.finfo(kind).min
    while float(stand_in) in taken:
        stand_in = np.nextafter(stand_in, kind(0))
    return float(stand_in)


# -- on the client --


class DrawsByHash(RowDraws):
    """`RowDraws` of rows of which the hashes are known; equal hashes are taken for equal rows."""

    def __init__(self, data: GradientData, hashes: np.ndarray, seed: int) -> None:
        n = data.n_rows
        target_bits = (data.y + 0).view(np.uint64)
        rows, sorted_hashes = _sorted_by_hash(np.arange(n), _with_targets(hashes, target_bits))
        new_group = np.append(True, sorted_hashes[1:] != sorted_hashes[:-1])
        self._number(data, _grouped(rows, new_group, np.ones(n)).group_of, seed)
