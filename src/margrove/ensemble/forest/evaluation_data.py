"""The rows that a fitted forest is measured on: new rows, or the out-of-bag rows of its trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_labels, check_targets, check_weights, moderate, read_only
from margrove._runtime import require_memory
from margrove.ensemble.bootstrap import resampling, units_left_out
from margrove.ensemble.forest.forest import Forest
from margrove.ensemble.forest.importance_kernels import TableRows, votes_of_leaves
from margrove.ensemble.forest.training_data import SampledRows
from margrove.exceptions import InvalidDataError
from margrove.grove.serve import Kind, PackedTree, add_values, leaves_of_some
from margrove.grove.table import columns_of_labels, power_of_two_near, refuse_infinity

__all__ = [
    "EvaluationTargets",
    "TrainingRows",
    "predictions_of_leaves",
    "read_rows",
    "read_targets",
    "require_forest",
    "require_training_table",
    "sampled_rows",
    "squares_of_targets",
]

_ROUNDING = 1e-6  # rounding error of a leaf's value, relative to the largest target


def require_forest(forest: Any, function: str) -> None:
    """Raise if `forest` is not a fitted forest; `function` is for the message."""
    if not isinstance(forest, Forest):
        raise TypeError(
            f"{function} needs a random forest or extremely randomised trees of margrove. Got "
            f"{type(forest).__name__} instead. For a pipeline, pass the last step, and X as "
            "transformed by the steps before it."
        )
    check_is_fitted(forest, "trees_")


def read_rows(forest: Forest, X: Any) -> Any:
    """X in the form that trees use, dense or CSR; NaN is missing, infinity raises an error."""
    rows = forest._rows(X)
    if np.isinf(rows.data if sp.issparse(rows) else rows).any():
        refuse_infinity(rows, forest)
    return rows


class EvaluationTargets(NamedTuple):
    """The targets of the rows; O is the number of outputs.

    labels    int64 (n, O)  columns of the classes among the values of the trees, -1 for classes
              that are not in the training data; (0, 0) for regression
    numbers   float64 (n, O)  divided by `scale`, a power of two; (0, 0) for classification
    """

    labels: np.ndarray
    numbers: np.ndarray
    scale: float

    @property
    def is_class(self) -> bool:
        return len(self.labels) > 0

    @property
    def values(self) -> np.ndarray:
        """The labels or the numbers as float64 (n, O)."""
        return self.labels.astype(np.float64) if self.is_class else self.numbers

    def of(self, rows: np.ndarray) -> EvaluationTargets:
        """The targets of some rows."""
        if self.is_class:
            return self._replace(labels=self.labels[rows])
        return self._replace(numbers=self.numbers[rows])


def read_targets(forest: Forest, y: Any, n_rows: int) -> EvaluationTargets:
    """Check y: it must have the outputs of the forest."""
    if forest._is_for_classes():
        columns = columns_of_labels(y)
        _require_outputs(forest, len(columns))
        codes = [
            check_labels(column, n_rows).codes_among(classes)
            for column, classes in zip(columns, _classes(forest), strict=True)
        ]
        starts = np.cumsum([0, *forest.kind_.n_classes[:-1]])
        labels = np.stack([np.where(c < 0, -1, c + a) for c, a in zip(codes, starts, strict=True)])
        return EvaluationTargets(np.ascontiguousarray(labels.T), np.empty((0, 0)), 1.0)
    given = check_targets(y, n_rows, multi_output=True).reshape(n_rows, -1)
    _require_outputs(forest, given.shape[1])
    scale = power_of_two_near(given)
    return EvaluationTargets(np.empty((0, 0), np.int64), given / scale, scale)


def _classes(forest: Forest) -> list[np.ndarray]:
    return [forest.classes_] if forest.n_outputs_ == 1 else list(forest.classes_)


def _require_outputs(forest: Forest, n_outputs: int) -> None:
    if n_outputs != forest.n_outputs_:
        raise InvalidDataError(
            f"y has {n_outputs} column(s), but this {type(forest).__name__} was trained on "
            f"{forest.n_outputs_}."
        )


def squares_of_targets(figures: np.ndarray, scale: float) -> np.ndarray:
    """Undo the division of targets by `scale` in squared quantities; overflow is clipped."""
    if scale == 1.0:
        return figures
    limit = np.finfo(float).max
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(figures * scale * scale, -limit, limit)


# -- leaves --


def predictions_of_leaves(tree: PackedTree, kind: Kind, leaves: np.ndarray) -> np.ndarray:
    """The predictions of these leaves: columns of classes, or numbers, float64 (n, O)."""
    if not kind.n_classes:
        values = np.zeros((len(leaves), kind.n_outputs))
        add_values(tree, leaves.astype(np.int32, copy=False), kind, None, values)
        return values
    votes = np.empty((len(leaves), len(kind.n_classes)))
    starts = np.concatenate([[0], np.cumsum(kind.n_classes)]).astype(np.int64)
    thresholds = tree.nodes.view(np.float64)
    leaves = leaves.astype(np.int32, copy=False)
    votes_of_leaves(thresholds, leaves, tree.values, kind.n_pure, starts, votes)
    return votes


# -- the training table --


def sampled_rows(forest: Forest, function: str) -> SampledRows:
    """The samples of the trees; raises if they are not known, or if there was no bootstrap."""
    sampled: SampledRows | None = getattr(forest, "sampled_", None)
    name = type(forest).__name__
    if sampled is None:
        raise ValueError(
            f"The samples of the trees of this {name} are not known, because it was made by "
            f"slicing or adding forests. Call {function} on the original fitted forests."
        )
    if sampled.n_draws is None:
        raise ValueError(
            f"{function} needs out-of-bag rows, but this {name} has none: with bootstrap=False "
            "every tree has seen all rows. Fit it with bootstrap=True, or use other rows and "
            "permutation_importances."
        )
    return sampled


class TrainingRows:
    """The table that a forest was trained on, indexed by the places of `SampledRows`.

    targets       the target of each place
    unit_weight   float64 (m,)  weight of one unit of each place; a row of weight 3 has 3 units
    """

    def __init__(self, forest: Forest, X: Any, y: Any, sample_weight: Any, function: str) -> None:
        self.sampled = sampled = sampled_rows(forest, function)
        self.X = read_rows(forest, X)
        n = self.X.shape[0]
        if n != sampled.n_rows:
            raise InvalidDataError(
                f"{function} needs the table that the forest was trained on, which has "
                f"{sampled.n_rows} rows. X has {n}."
            )
        self.cumulative = sampled.cumulative
        self.targets = read_targets(forest, y, n).of(sampled.rows)
        _require_known_classes(self.targets, sampled)
        require_training_table(forest, sampled, self.X, self.targets)
        self.unit_weight = self._unit_weight(sample_weight)

    def _unit_weight(self, sample_weight: Any) -> np.ndarray:
        """The weight of a unit, up to a power of two that cancels in all results."""
        places = self.sampled.places
        m = len(self.sampled.rows)
        if sample_weight is None:
            given = self.sampled.weight
            unit_weight = np.ones(m) if given is None or self._has_units else given
        else:
            weight = moderate(check_weights(sample_weight, self.sampled.n_rows))
            known = places >= 0
            sums = np.bincount(places[known], weights=weight[known], minlength=m)
            unit_weight = sums / self.n_units
        largest = unit_weight.max()
        if not largest > 0.0:
            raise InvalidDataError(
                "sample_weight is zero for all training rows. Give at least one of them a "
                "positive weight."
            )
        return np.ldexp(unit_weight, -int(np.frexp(largest)[1]))

    @property
    def _has_units(self) -> bool:
        """Whether a row of weight 3 has three units; see `units_left_out`."""
        n_draws = self.sampled.n_draws or self.cumulative.n_draws
        return self.cumulative.is_whole and n_draws <= resampling._MOST_UNITS

    @property
    def n_units(self) -> np.ndarray:
        """The number of units of each place, int64 (m,)."""
        if not self._has_units:
            return np.ones(len(self.cumulative.ends), np.int64)
        return np.diff(self.cumulative.ends, prepend=0)

    def left_out(self, tree: int) -> np.ndarray:
        """How many units of each place the tree has not seen, int32 (m,)."""
        return units_left_out(self.cumulative, self.sampled.seed, tree, self.sampled.n_draws)

    def table_rows(self, tree: PackedTree, places: np.ndarray) -> TableRows:
        """The rows of these places; of a sparse table only the columns that the tree tests."""
        rows = self.sampled.rows[places].astype(np.int64)
        d = self.X.shape[1]
        if not sp.issparse(self.X):
            return TableRows(read_only(self.X), rows, np.arange(d))
        inner = ~tree.is_leaf
        asked = np.unique((tree.nodes[1::2][inner] >> 32) & np.int64(0xFFFFFFF))
        require_memory(
            8.0 * len(rows) * len(asked),
            "Walking the out-of-bag rows of a sparse table",
            "Use fewer rows.",
        )
        column_of = np.zeros(d, np.int64)
        column_of[asked] = np.arange(len(asked))
        dense = np.ascontiguousarray(self.X[rows][:, asked].toarray())
        return TableRows(read_only(dense), np.arange(len(rows)), column_of)


def _require_known_classes(targets: EvaluationTargets, sampled: SampledRows) -> None:
    unknown = (targets.labels < 0).any(axis=1) if targets.is_class else np.zeros(0, bool)
    if unknown.any():
        row = int(sampled.rows[int(np.argmax(unknown))])
        raise InvalidDataError(
            f"y has a class at row {row} that the forest was not trained on. Pass the X and y of "
            "the training."
        )


def require_training_table(
    forest: Forest, sampled: SampledRows, X: Any, targets: EvaluationTargets | None = None
) -> None:
    """Raise if X (and y) are not the training data.

    The leaves of the first tree must have the same counts, and targets that fit their values.
    """
    tree, kind = forest.trees_[0], forest.kind_
    drawn = sampled.multiplicities(0)
    places = np.flatnonzero(drawn)
    rows = sampled.rows[places]
    leaf_of_row = np.empty(sampled.n_rows, np.int32)
    leaves_of_some(tree, X, rows, kind, leaf_of_row)
    leaves = leaf_of_row[rows]
    counts = np.bincount(leaves, weights=drawn[places], minlength=len(tree))
    samples = tree.weight if tree.samples is None else tree.samples
    fits = np.array_equal(counts[tree.is_leaf], samples[tree.is_leaf])
    if fits and targets is not None and forest.monotonic_cst is None:
        fits = _fits_targets(tree, kind, leaves, targets.of(places))
    if not fits:
        given = "X is" if targets is None else "X and y are"
        raise InvalidDataError(
            f"{given} not the training data of this {type(forest).__name__}, or the rows are in "
            "another order: the leaves of its first tree do not fit. Pass the training data. (A "
            "forest that was continued on other data with warm_start has no single training table.)"
        )


def _fits_targets(
    tree: PackedTree, kind: Kind, leaves: np.ndarray, targets: EvaluationTargets
) -> bool:
    """Whether pure leaves have only rows of their class, or values are in the target range."""
    if targets.is_class:
        pure = tree.nodes.view(np.float64)[0::2][leaves] < kind.n_pure
        predicted = predictions_of_leaves(tree, kind, leaves)
        return bool(np.array_equal(predicted[pure], targets.values[pure]))
    predicted = predictions_of_leaves(tree, kind, leaves)[:, 0] / targets.scale
    numbers = targets.numbers[:, 0]
    low, high = np.full(len(tree), np.inf), np.full(len(tree), -np.inf)
    np.minimum.at(low, leaves, numbers)
    np.maximum.at(high, leaves, numbers)
    slack = _ROUNDING * float(np.abs(numbers).max())
    return bool(np.all((low[leaves] - slack <= predicted) & (predicted <= high[leaves] + slack)))
