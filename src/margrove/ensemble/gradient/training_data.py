"""The training data of gradient boosting: table, targets and weights; and random draws of rows.

Draws are functions of the seed and the content of the rows, so the order of the rows does not
matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import (
    canonical_form,
    check_targets,
    check_training_labels,
    check_weights,
    moderate,
    read_only,
    scramble,
)
from margrove._runtime import ALONE, Collective, kernel, region
from margrove.ensemble.bagging import with_nan_as_number
from margrove.ensemble.bootstrap import stream
from margrove.ensemble.gradient.joint_selection import select
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.grove.serve import is_flat
from margrove.grove.table import TreeTable, power_of_two_near, samples_of, which_count

__all__ = [
    "GradientData",
    "RowDraws",
    "TrainingRows",
    "class_data",
    "number_data",
    "places_of_rows",
    "with_values",
]

_ROWS_OF_A_TILE, _CELLS_OF_A_TILE = 1024, 1 << 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HELD_OUT, _SUBSAMPLE = 7, 8  # purposes of draws
_MOST_SAMPLES = 2**31 - 1
_TINY = 1e-30  # smaller weights are scaled up to 1, because hessians of leaves have a minimum
_MOST_REPEATED = 10_000_000
_MOST_CELLS = 2e7  # of a table with one row for each sample


@dataclass(frozen=True)
class TrainingRows:
    """Targets and weights of the rows.

    y        float64 (n,)
    weight   float64 (n,) or None: the weight of one sample
    copies   int64 (n,) or None: the number of samples that each row represents
    """

    y: np.ndarray
    weight: np.ndarray | None = None
    copies: np.ndarray | None = None

    @property
    def total_weight(self) -> np.ndarray | None:
        if self.weight is None or self.copies is None:
            return self.copies.astype(np.float64) if self.copies is not None else self.weight
        total: np.ndarray = self.weight * self.copies
        return total

    def start(self, loss: GradientLoss) -> np.ndarray:
        """The raw scores before the first round.

        Rows are repeated rather than weighted by their copies, because products would be rounded.
        """
        if self.weight is None or self.copies is None or self.copies.sum() > _MOST_REPEATED:
            return loss.start(self.y, self.total_weight)
        return loss.start(np.repeat(self.y, self.copies), np.repeat(self.weight, self.copies))


@dataclass(frozen=True)
class GradientData:
    """A checked training set, without rows of weight 0.

    y         float64 (n,)  targets, or codes of classes
    weight    float64 (n,) or None: the weight of one sample
    copies    int64 (n,) or None: the number of samples of each row, if all weights are whole
    classes   the labels, or None for regression
    scale     a power of two by which very large or small targets were divided
    origin    int64 (n,)  the original row of each row; None if they are the same
    places    uint64 (n,)  places in the canonical order of all rows, if other machines have some
    """

    table: TreeTable
    y: np.ndarray
    weight: np.ndarray | None
    copies: np.ndarray | None
    classes: np.ndarray | None
    scale: float = 1.0
    origin: np.ndarray | None = None
    places: np.ndarray | None = None

    @property
    def X(self) -> Any:  # noqa: N802
        return self.table.X

    @property
    def labels(self) -> np.ndarray:
        """The classes; raises for regression."""
        if self.classes is None:
            raise ValueError("y contains numbers, not classes.")
        return self.classes

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def training_rows(self) -> TrainingRows:
        return TrainingRows(self.y, self.weight, self.copies)

    def of_rows(self, rows: np.ndarray, *, n_threads: int = 1) -> GradientData:
        return replace(
            self,
            table=_gathered(self.table, rows, n_threads),
            y=self.y[rows],
            weight=None if self.weight is None else self.weight[rows],
            copies=None if self.copies is None else self.copies[rows],
            origin=rows if self.origin is None else self.origin[rows],
            places=None if self.places is None else self.places[rows],
        )

    def with_origin(self, kept: np.ndarray | slice) -> GradientData:
        """The data with the numbers of the original rows that were kept."""
        return self if isinstance(kept, slice) else replace(self, origin=kept)

    def with_row_per_sample(self) -> GradientData:
        """The data with one row for each sample, so that samples can be drawn.

        If that is too large, rows get the weight of their samples, which are then drawn together.
        """
        if self.copies is None:
            return self
        if float(self.copies.sum()) * self.X.shape[1] > _MOST_CELLS:
            weight = self.training_rows.total_weight
            return replace(self, weight=weight, copies=None)
        rows = np.repeat(np.arange(self.n_rows), self.copies)
        return replace(self.of_rows(rows), copies=None)


def number_data(table: TreeTable, y: Any, sample_weight: Any, loss: GradientLoss) -> GradientData:
    """Checked training data for regression."""
    n = table.X.shape[0]
    targets = check_targets(y, n)
    weight = check_weights(sample_weight, n)
    kept = which_count(weight)
    targets = loss.check_targets(targets[kept]) + 0.0
    scale = power_of_two_near(targets) if loss.degree else 1.0
    rows = _of_rows(table, kept)
    data = _data(rows, targets / scale, moderate(weight)[kept], sample_weight, None)
    return replace(data.with_origin(kept), scale=scale)


def class_data(
    table: TreeTable, y: Any, sample_weight: Any, class_weight: Any, *, min_classes: int = 2
) -> GradientData:
    """Checked training data for classification.

    The weight of a class is a factor on the weights of its rows, not a number of samples.
    """
    n = table.X.shape[0]
    found = check_training_labels(y, sample_weight, class_weight, n, min_classes=min_classes)
    kept = which_count(found.weight)
    codes = found.codes[kept]
    data = _data(
        _of_rows(table, kept), codes.astype(np.float64), found.weight[kept], sample_weight,
        found.classes,
    ).with_origin(kept)  # fmt: skip
    if np.all(found.factors == 1.0):
        return data
    factor = found.factors[codes]
    return replace(data, weight=factor if data.weight is None else data.weight * factor)


def _of_rows(table: TreeTable, kept: np.ndarray | slice) -> TreeTable:
    """The table without rows of weight 0, and without categories that only these rows have."""
    if isinstance(kept, slice) or not table.categories:
        return table.of_rows(kept)
    rows, categories = table.X[kept], {}
    for column, labels in table.categories.items():
        numbers = rows[:, column]
        present = ~np.isnan(numbers)
        used, codes = np.unique(numbers[present].astype(np.int64), return_inverse=True)
        rows[present, column] = codes
        categories[column] = labels[used]
    return TreeTable(rows, table.feature_names, categories)


def _data(
    table: TreeTable,
    y: np.ndarray,
    weight: np.ndarray,
    sample_weight: Any,
    classes: np.ndarray | None,
) -> GradientData:
    if sample_weight is None or np.all(weight == 1.0):
        return GradientData(table, y, None, None, classes)
    if weight.max() < _TINY:
        weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    is_whole = np.all(weight == np.floor(weight)) and weight.sum() <= _MOST_SAMPLES
    if is_whole:
        return GradientData(table, y, None, samples_of(weight, sample_weight), classes)
    return GradientData(table, y, weight, None, classes)


def places_of_rows(data: GradientData, group_of: np.ndarray) -> np.ndarray:
    """uint64 (n,): the numbers of the rows in canonical order, from 1 on.

    group_of   int64 (n,), equal for equal rows
    """
    places = np.empty(data.n_rows, np.uint64)
    if data.weight is None:
        _number_by_group(read_only(group_of), places)
    else:
        order = np.lexsort((data.weight, group_of))
        places[order] = np.arange(1, data.n_rows + 1)
    return places


class RowDraws:
    """Random draws of the rows of a training set, which members of a collective may have.

    places   uint64 (n,), see `GradientData`
    """

    def __init__(
        self,
        data: GradientData,
        seed: int,
        *,
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> None:
        places = data.places
        if places is None:
            content = data.X
            if not is_flat(content) or _has_odd_cells(content, n_threads):
                content = with_nan_as_number(_finite(content))
            form = canonical_form(content, data.y, np.ones(data.n_rows))
            places = places_of_rows(data, form.group_of)
        self.places, self._seed = places, seed
        self._y, self._classes, self._collective = data.y, data.classes, collective

    def _keys(self, number: int, purpose: int) -> np.ndarray:
        key = stream(int(stream(self._seed, number)), purpose)
        return scramble(self.places * _GOLDEN + key)

    def subsample(self, number: int, size: int) -> np.ndarray:
        """`size` rows for round `number`, int32, ascending."""
        keys = self._keys(number, _SUBSAMPLE)  # all different
        limit = _smallest(keys, size, self._collective)
        return np.flatnonzero(keys <= limit).astype(np.int32)

    def held_out(self, size: int) -> np.ndarray:
        """At most `size` validation rows, ascending.

        They are stratified by class, and at least one row of each class remains for training, if
        there are more rows than classes.
        """
        keys = self._keys(0, _HELD_OUT)  # all different
        if self._classes is None or len(self._y) <= len(self._classes):
            return np.flatnonzero(keys <= _smallest(keys, size))
        codes = self._y.astype(np.int64)
        counts = np.bincount(codes, minlength=len(self._classes))
        shares = counts * size / len(self._y)
        wanted = np.floor(shares).astype(np.int64)
        more = np.argsort(wanted - shares, kind="stable")[: size - wanted.sum()]
        wanted[more] += 1
        wanted = np.minimum(wanted, np.maximum(counts - 1, 0))  # one row remains for training
        is_held_out = np.zeros(len(keys), np.bool_)
        for code in np.flatnonzero(wanted):
            of_class = np.flatnonzero(codes == code)
            own = keys[of_class]
            is_held_out[of_class] = own <= _smallest(own, int(wanted[code]))
        return np.flatnonzero(is_held_out)


def _smallest(keys: np.ndarray, number: int, collective: Collective = ALONE) -> Any:
    """The largest of the `number` smallest keys."""
    if collective.size > 1:
        ones, starts = np.ones(len(keys), np.int64), np.array([0, len(keys)])
        return select(keys, ones, starts, lambda total: np.array([number]), collective).keys[0]
    return np.partition(keys, number - 1)[number - 1]


@kernel
def _number_by_group(group_of, places):
    """Number the rows from 1 on in the order of their groups, and within a group in their own."""
    n = len(group_of)
    next_of = np.zeros(n + 1, np.int64)
    for i in range(n):
        next_of[group_of[i] + 1] += 1
    for group in range(n):
        next_of[group + 1] += next_of[group]
    for i in range(n):
        next_of[group_of[i]] += 1
        places[i] = next_of[group_of[i]]


@region(bare=True)
def _look_for_odd(tile, cells, is_odd):
    """Write whether a tile of cells has NaN or infinity."""
    own = cells[tile * _CELLS_OF_A_TILE : (tile + 1) * _CELLS_OF_A_TILE]
    odd = np.int64(0)
    for i in range(len(own)):
        odd |= np.int64(own[i] - own[i] != 0.0)
    is_odd[tile] = odd


def _has_odd_cells(X: np.ndarray, n_threads: int) -> bool:
    """Whether a dense table has NaN or infinity."""
    n_tiles = -(-X.size // _CELLS_OF_A_TILE)
    is_odd = np.zeros(n_tiles, np.int64)
    _look_for_odd(n_tiles, n_threads, read_only(X.reshape(-1)), is_odd)
    return bool(is_odd.any())


def _gathered(table: TreeTable, rows: np.ndarray, n_threads: int) -> TreeTable:
    """The table of some rows; those of a dense table are copied by several threads."""
    if not is_flat(table.X):
        return table.of_rows(rows)
    chosen = np.empty((len(rows), table.X.shape[1]))
    n_tiles = -(-len(rows) // _ROWS_OF_A_TILE)
    _copy_rows(n_tiles, n_threads, read_only(table.X), np.asarray(rows, np.int64), chosen)
    return TreeTable(chosen, table.feature_names, table.categories)


@region(bare=True)
def _copy_rows(tile, X, rows, chosen):
    for p in range(tile * _ROWS_OF_A_TILE, min((tile + 1) * _ROWS_OF_A_TILE, len(rows))):
        row = np.uint64(rows[p])
        for j in range(X.shape[1]):
            chosen[p, j] = X[row, np.uint64(j)]


def _finite(X: Any) -> Any:
    """X with infinity replaced by a large number; it is only used to compare rows."""
    values = X.data if sp.issparse(X) else X
    if not np.isinf(values).any():
        return X
    return with_values(X, np.clip(values, -1e300, 1e300))


def with_values(X: Any, values: np.ndarray) -> Any:
    """A table like X, dense or CSR, with other values."""
    return sp.csr_matrix((values, X.indices, X.indptr), X.shape) if sp.issparse(X) else values
