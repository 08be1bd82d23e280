"""Numbers of rows that stay on the workers, for the client.

Decisions about rows (weights, random draws, held-out rows) depend only on targets, weights and a
hash of each row's content, 8 bytes a row each, which are sent to the client. There the functions of
`margrove.ensemble.gradient.training_data` decide, as in a local fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import canonical_form_by_hash, scan_rows
from margrove.ensemble.gradient import GradientData, RowDraws, with_values

__all__ = [
    "DrawsByHash",
    "PartitionRows",
    "RemoteRows",
    "distinct_rows",
    "facts_of_partition",
    "hash_rows",
    "new_numbers",
    "renumber",
    "rows_by_partition",
    "stand_in_for_nan",
    "used_categories",
]

_FAR_OUT = 1e300  # replaces infinity, see `gradient.training_data`


@dataclass(frozen=True)
class RemoteRows:
    """The numbers of rows on the workers, in place of a table.

    rows       int64 (n,)  numbers of rows of the original table, in its order
    """

    rows: np.ndarray
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.n_columns

    def __getitem__(self, rows: Any) -> RemoteRows:
        return RemoteRows(self.rows[rows], self.n_columns)


@dataclass(frozen=True)
class PartitionRows:
    """Some rows of a partition: int64 numbers within the partition; None for all."""

    rows: np.ndarray | None

    def of(self, partition: Any) -> Any:
        return partition if self.rows is None else partition[self.rows]


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of ascending numbers, and the position of each number in them."""
    is_new = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_new[1:])
    return rows[is_new], np.cumsum(is_new) - 1


def rows_by_partition(rows: np.ndarray, offsets: np.ndarray) -> list[PartitionRows]:
    """Rows of a table, ascending, as rows of its partitions; offsets int64 (n_partitions + 1,)."""
    cuts = np.searchsorted(rows, offsets)
    found = []
    for k in range(len(offsets) - 1):
        numbers = rows[cuts[k] : cuts[k + 1]] - offsets[k]
        length = int(offsets[k + 1] - offsets[k])
        is_whole = len(numbers) == length and np.array_equal(numbers, np.arange(length))
        found.append(PartitionRows(None if is_whole else numbers))
    return found


# -- on the workers --


@dataclass(frozen=True)
class _Facts:
    """Facts about a partition that are needed before rows are hashed."""

    has_infinity: bool
    has_nan: bool
    lowest: tuple[float, ...]  # values near the least number of the dtype
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
    """The new numbers of the categories of one column; None leaves them unchanged."""
    if numbers is None:
        return values
    found: np.ndarray = numbers[np.where(np.isnan(values), -1, values).astype(np.int64)]
    return found


def facts_of_partition(partition: Any, rows: PartitionRows) -> _Facts:
    values = _values(rows.of(partition))
    with np.errstate(over="ignore"):
        edge = 0.999 * np.finfo(values.dtype).min
    low = np.unique(values[(values <= edge) & np.isfinite(values)])
    return _Facts(
        bool(np.isinf(values).any()),
        bool(np.isnan(values).any()),
        tuple(float(value) for value in low),
        str(values.dtype),
    )


def hash_rows(
    partition: Any,
    rows: PartitionRows,
    renumbered: dict[int, np.ndarray],
    has_infinity: bool,
    stand_in: float | None,
) -> np.ndarray:
    """uint64 (n,): what `canonical_form` sorts rows by; NaN is hashed as the number `stand_in`."""
    X = renumber(rows.of(partition), renumbered)
    if X.shape[0] == 0:
        return np.empty(0, np.uint64)
    values = _values(X)
    if has_infinity:
        values = np.clip(values, -_FAR_OUT, _FAR_OUT)
    if stand_in is not None:
        values = np.where(np.isnan(values), values.dtype.type(stand_in), values)
    return scan_rows(with_values(X, values)).hashes


def used_categories(
    partition: Any, rows: PartitionRows, columns: Sequence[int]
) -> list[np.ndarray]:
    """The numbers of the categories that occur in some rows, for each of these columns."""
    X = rows.of(partition)
    found = []
    for column in columns:
        numbers = X[:, column]
        found.append(np.unique(numbers[~np.isnan(numbers)].astype(np.int64)))
    return found


def _values(X: Any) -> np.ndarray:
    found: np.ndarray = X.data if sp.issparse(X) else X
    return found


def stand_in_for_nan(facts: Sequence[_Facts]) -> float | None:
    """A number that does not occur in X, see `gradient.training_data`; None if there is no NaN."""
    if not any(fact.has_nan for fact in facts):
        return None
    kind = np.dtype(next(fact.dtype for fact in facts)).type
    taken = {value for fact in facts for value in fact.lowest}
    if any(fact.has_infinity for fact in facts):
        taken = {value for value in taken if value >= -_FAR_OUT} | {-_FAR_OUT}
    stand_in = np.finfo(kind).min
    while float(stand_in) in taken:
        stand_in = np.nextafter(stand_in, kind(0))
    return float(stand_in)


# -- on the client --


class DrawsByHash(RowDraws):
    """`RowDraws` from hashes of rows; rows of equal hashes are treated as equal."""

    def __init__(self, data: GradientData, hashes: np.ndarray, seed: int) -> None:
        form = canonical_form_by_hash(hashes, data.y, np.ones(data.n_rows))
        self._number(data, form.group_of, seed)
