"""Rows that stay on the workers, for the client: their numbers, and hashes of their content.

Decisions about rows (weights, random draws, held-out rows) depend only on targets, weights and a
hash of each row's content, 8 bytes a row each, which are sent to the client. There the functions of
`margrove.ensemble.gradient` decide, as in a local fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dask
import numpy as np

from margrove._data import canonical_form_by_hash, scan_rows
from margrove.dask.cluster import gathered
from margrove.dask.partitions import Partitions
from margrove.ensemble.gradient import GradientData, places_of_rows, renumbered, with_values

__all__ = ["RemoteRows", "with_places"]

_FAR_OUT = 1e300  # replaces infinity, see `gradient.training_data`
# Tasks get the numbers of their rows, 8 bytes a row, on purpose.
_SENDS_ROWS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}


@dataclass(frozen=True)
class RemoteRows:
    """Rows of partitions on the workers, in place of a table.

    rows          int64 (n,)  numbers of rows of the whole table, ascending
    new_numbers   see `PiecedRows`
    """

    partitions: Partitions
    rows: np.ndarray
    new_numbers: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.partitions.n_features

    def __getitem__(self, rows: Any) -> RemoteRows:
        return replace(self, rows=self.rows[rows])

    def chosen(self, start: int, stop: int) -> tuple[slice, np.ndarray | None]:
        """Which of these rows are among rows start .. stop - 1 of the whole table: their places
        here, and their numbers from `start` on; None if they are all."""
        first, last = np.searchsorted(self.rows, [start, stop]).tolist()
        numbers = self.rows[first:last] - start
        is_all = last - first == stop - start and np.array_equal(numbers, np.arange(stop - start))
        return slice(first, last), None if is_all else numbers

    def hashes(self) -> np.ndarray:
        """uint64 (n,): hashes of the content of the rows; copies of a row are hashed once."""
        distinct, places = _distinct(self.rows)
        rows = replace(self, rows=distinct)
        facts = rows._of_partitions(_facts_of_rows)
        has_infinity = any(fact.has_infinity for fact in facts)
        found = rows._of_partitions(
            _hash_rows, self.new_numbers, has_infinity, _stand_in_for_nan(facts)
        )
        hashes: np.ndarray = np.concatenate(found)[places]
        return hashes

    def used_categories(self, columns: Sequence[int]) -> dict[int, np.ndarray]:
        """The numbers of the categories that occur in the rows, by column."""
        found = self._of_partitions(_used_categories, list(columns))
        return {
            column: np.unique(np.concatenate([used[k] for used in found]))
            for k, column in enumerate(columns)
        }

    def _of_partitions(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of function(partition, rows, *arguments) for each partition."""
        offsets = self.partitions.offsets
        rows = [
            self.chosen(int(start), int(stop))[1] for start, stop in itertools.pairwise(offsets)
        ]
        with dask.config.set(_SENDS_ROWS):
            futures = self.partitions.map_each(function, [(own, *arguments) for own in rows])
        return gathered(self.partitions.client, futures)


def with_places(data: GradientData) -> GradientData:
    """The data with the places of the rows, for draws; rows of equal hashes count as equal."""
    form = canonical_form_by_hash(data.X.hashes(), data.y, np.ones(data.n_rows))
    return replace(data, places=places_of_rows(data, form.group_of))


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of ascending numbers, and the place of each number among them."""
    is_new = np.ones(len(rows), np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=is_new[1:])
    return rows[is_new], np.cumsum(is_new) - 1


# -- on the workers --


@dataclass(frozen=True)
class _Facts:
    """Facts about a partition that are needed before rows are hashed."""

    has_infinity: bool
    has_nan: bool
    lowest: tuple[float, ...]  # values near the least number of the dtype
    dtype: str


def _rows_of(partition: Any, rows: np.ndarray | None) -> Any:
    return partition if rows is None else partition[rows]


def _values_of(X: Any) -> np.ndarray:
    found: np.ndarray = X.data if hasattr(X, "indptr") else X
    return found


def _facts_of_rows(partition: Any, rows: np.ndarray | None) -> _Facts:
    values = _values_of(_rows_of(partition, rows))
    with np.errstate(over="ignore"):
        edge = 0.999 * np.finfo(values.dtype).min
    low = np.unique(values[(values <= edge) & np.isfinite(values)])
    return _Facts(
        bool(np.isinf(values).any()),
        bool(np.isnan(values).any()),
        tuple(float(value) for value in low),
        str(values.dtype),
    )


def _hash_rows(
    partition: Any,
    rows: np.ndarray | None,
    new_numbers: dict[int, np.ndarray],
    has_infinity: bool,
    stand_in: float | None,
) -> np.ndarray:
    """uint64 (n,): what `canonical_form` sorts rows by; NaN is hashed as the number `stand_in`."""
    X = renumbered(_rows_of(partition, rows), new_numbers)
    if X.shape[0] == 0:
        return np.empty(0, np.uint64)
    values = _values_of(X)
    if has_infinity:
        values = np.clip(values, -_FAR_OUT, _FAR_OUT)
    if stand_in is not None:
        values = np.where(np.isnan(values), values.dtype.type(stand_in), values)
    return scan_rows(with_values(X, values)).hashes


def _used_categories(
    partition: Any, rows: np.ndarray | None, columns: Sequence[int]
) -> list[np.ndarray]:
    """The numbers of the categories that occur in some rows, for each of these columns."""
    X = _rows_of(partition, rows)
    found = []
    for column in columns:
        numbers = X[:, column]
        found.append(np.unique(numbers[~np.isnan(numbers)].astype(np.int64)))
    return found


def _stand_in_for_nan(facts: Sequence[_Facts]) -> float | None:
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
