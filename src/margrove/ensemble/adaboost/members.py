"""The fitted members of a boosted model, and their answers: predictions for any rows.

EstimatorMembers   any scikit-learn estimators
TreeMembers        packed trees of this library
StumpMembers       stumps of four numbers each
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from margrove._runtime import MisfitError, array_of, region
from margrove.ensemble.adaboost.stump_kernels import Stumps
from margrove.ensemble.adaboost.stump_tables import StumpTable
from margrove.ensemble.bagging import (
    fitted_values,
    onto_all_classes,
    refitted,
    require_keepable,
)
from margrove.grove import CRITERIA, DecisionTree
from margrove.grove.grow import impurity_of_shares
from margrove.grove.serve import (
    LEAF,
    THRESHOLD,
    Kind,
    PackedTree,
    TreeArrays,
    TreeForm,
    add_values,
    leaves_of_rows,
    unfolded,
)

__all__ = ["EstimatorMembers", "Members", "StumpMembers", "TreeMembers", "answers_of_estimators",
           "answers_of_trees", "members_like", "rows_at_once", "stumps_like",
           "values_of_members"]  # fmt: skip

_CELLS_AT_ONCE = 1 << 18
_ROWS_OF_A_TILE = 1024


class Members(Protocol):
    """The members of all rounds; a round has one member or one for each class.

    `answers(rows, t)` are the predictions of round t: class codes (n,), probabilities (n, K) or
    numbers (n, M). `first(count)` keeps the first rounds.
    """

    def __len__(self) -> int: ...
    def answers(self, rows: Any, t: int) -> np.ndarray: ...
    def estimators(self, t: int) -> list[Any]: ...
    def first(self, count: int) -> Members: ...


def rows_at_once(n_columns: int) -> int:
    """The number of rows of a table that fit into the cache."""
    return max(256, _CELLS_AT_ONCE // max(n_columns, 1))


@dataclass(frozen=True)
class EstimatorMembers:
    """Fitted estimators: a list for each round.

    answer is "labels", "shares" or "numbers".
    """

    answer: str
    classes: np.ndarray | None
    fitted: tuple[list[Any], ...] = ()

    def __len__(self) -> int:
        return len(self.fitted)

    def estimators(self, t: int) -> list[Any]:
        return self.fitted[t]

    def first(self, count: int) -> EstimatorMembers:
        return replace(self, fitted=self.fitted[:count])

    def answers(self, rows: Any, t: int) -> np.ndarray:
        return answers_of_estimators(self.fitted[t], rows, self.answer, self.classes)


def answers_of_estimators(
    fitted: list[Any], rows: Any, answer: str, classes: np.ndarray | None
) -> np.ndarray:
    """The predictions of the estimators of a round, see `Members`."""
    if answer == "numbers" or classes is None:
        return np.stack([np.asarray(model.predict(rows), np.float64) for model in fitted], axis=1)
    model = fitted[0]
    if answer == "labels":
        codes: np.ndarray = np.searchsorted(classes, np.asarray(model.predict(rows)))
        return codes
    known = np.searchsorted(classes, model.classes_)
    return onto_all_classes(np.asarray(model.predict_proba(rows)), known, len(classes))


@dataclass(frozen=True)
class TreeMembers:
    """Packed trees: a list for each round."""

    answer: str
    kind: Kind
    template: DecisionTree
    attributes: dict[str, Any]
    trees: tuple[list[PackedTree], ...] = ()

    def __len__(self) -> int:
        return len(self.trees)

    def first(self, count: int) -> TreeMembers:
        return replace(self, trees=self.trees[:count])

    def answers(self, rows: Any, t: int) -> np.ndarray:
        return answers_of_trees(self.trees[t], rows, self.kind, self.answer)

    def estimators(self, t: int) -> list[Any]:
        return [self._estimator(tree) for tree in self.trees[t]]

    def _estimator(self, tree: PackedTree) -> DecisionTree:
        tree.require_sound(self.kind, self.attributes["n_features_in_"])
        estimator: DecisionTree = clone(self.template)
        estimator._commit(self.attributes | {"arrays_": unfolded(tree, self.kind)})
        return estimator

    @property
    def n_nodes(self) -> int:
        return sum(len(tree) for trees in self.trees for tree in trees)


def answers_of_trees(trees: list[PackedTree], rows: Any, kind: Kind, answer: str) -> np.ndarray:
    """The predictions of the trees of a round, see `Members`."""
    n, size = rows.shape[0], rows_at_once(rows.shape[1])
    values = np.zeros((n, kind.n_values if kind.n_classes else len(trees)))
    labels = np.empty(n, np.int64)
    winners = _winners(trees[0], kind) if answer == "labels" else np.empty(0, np.int64)
    for begin in range(0, n, size):
        chosen = slice(begin, begin + size)
        dense = rows[chosen].toarray() if sp.issparse(rows) else rows[chosen]
        leaves = np.empty(len(dense), np.int32)
        has_nan = bool(np.isnan(dense).any())
        for k, tree in enumerate(trees):
            leaves_of_rows(tree, dense, kind, leaves, has_nan=has_nan)
            if answer == "labels":
                labels[chosen] = winners[leaves]
            elif answer == "shares":
                add_values(tree, leaves, kind, None, values[chosen])
            else:
                add_values(tree, leaves, kind, None, values[chosen, k : k + 1])
    return labels if answer == "labels" else values


def _winners(tree: PackedTree, kind: Kind) -> np.ndarray:
    """The largest class of each leaf, int64 (n_nodes,); the first of equal ones."""
    winners = np.zeros(len(tree), np.int64)
    leaf = np.flatnonzero(tree.is_leaf)
    row = tree.nodes.view(np.float64)[0::2][leaf].astype(np.int64)
    largest = np.argmax(tree.values, axis=1) if len(tree.values) else np.zeros(1, np.int64)
    mixed = np.maximum(row - kind.n_pure, 0)
    winners[leaf] = np.where(row < kind.n_pure, row, largest[mixed])
    return winners


@dataclass(frozen=True)
class StumpMembers:
    """Stumps, and the thresholds of their codes."""

    found: Stumps
    thresholds: np.ndarray
    n_samples: int
    template: DecisionTree
    attributes: dict[str, Any]
    _used: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_used", np.unique(np.maximum(self.found.feature, 0)))

    @classmethod
    def of(
        cls,
        found: Stumps,
        table: StumpTable,
        n_samples: int,
        template: DecisionTree,
        attributes: dict[str, Any],
    ) -> StumpMembers:
        thresholds = np.array([
            table.threshold(int(feature), int(code)) if feature >= 0 else np.inf
            for feature, code in zip(found.feature, found.code, strict=True)
        ])  # fmt: skip
        return cls(found, thresholds, n_samples, template, attributes)

    def __len__(self) -> int:
        return len(self.thresholds)

    def first(self, count: int) -> StumpMembers:
        return replace(self, found=self.found.first(count), thresholds=self.thresholds[:count])

    def answers(self, rows: Any, t: int) -> np.ndarray:
        feature = max(int(self.found.feature[t]), 0)
        column = rows[:, [feature]].toarray()[:, 0] if sp.issparse(rows) else rows[:, feature]
        on_left = np.where(np.isnan(column), self._nan_left[t], column <= self.thresholds[t])
        left, right = self.found.classes[t]
        return np.where(on_left, left, right).astype(np.int64)

    @property
    def _nan_left(self) -> np.ndarray:
        """Whether missing values go to the left: to the larger side, bool (T,)."""
        return (2 * self.found.n_left > self.n_samples) | (self.found.feature < 0)

    def votes(
        self, rows: Any, weights: np.ndarray, n_classes: int, n_threads: int = 1
    ) -> np.ndarray:
        """The total weight of the stumps that vote for each class, (n, K)."""
        n = rows.shape[0]
        votes = np.empty((n, n_classes))
        place = np.zeros(rows.shape[1], np.int64)
        place[self._used] = np.arange(len(self._used))
        features = place[np.maximum(self.found.feature, 0)]
        stumps = features, self.thresholds, self.found.classes, self._nan_left, weights
        is_sparse = sp.issparse(rows)
        columns = np.arange(len(self._used)) if is_sparse else self._used
        size = rows_at_once(len(self._used)) if is_sparse else max(n, 1)
        for begin in range(0, n, size):
            X = rows[begin : begin + size]
            X = X[:, self._used].toarray() if is_sparse else np.ascontiguousarray(X, np.float64)
            n_tiles = -(-X.shape[0] // _ROWS_OF_A_TILE)
            _vote(n_tiles, n_threads, X, columns, stumps, votes[begin : begin + size])
        return votes

    def estimators(self, t: int) -> list[Any]:
        estimator: DecisionTree = clone(self.template)
        estimator._commit(self.attributes | {"arrays_": self._arrays(t)})
        return [estimator]

    def _arrays(self, t: int) -> TreeArrays:
        """The stump as a tree of three nodes, or of one node."""
        is_leaf = self.found.feature[t] < 0
        sides = self.found.shares[t]
        sums = np.stack([sides.sum(axis=0), *sides])[: 1 if is_leaf else 3]
        weight = sums.sum(axis=1)
        n, n_left = self.n_samples, int(self.found.n_left[t])
        shares = sums / weight[:, None]
        impurity = impurity_of_shares(CRITERIA[self.template.criterion].code, shares)
        size = len(sums)
        inner = np.array([not is_leaf, False, False])[:size]
        lost = weight * impurity
        return TreeArrays(
            kind=np.where(inner, THRESHOLD, LEAF).astype(np.int8),
            feature=np.where(inner, self.found.feature[t], -1).astype(np.int32),
            threshold=np.where(inner, self.thresholds[t], np.nan),
            first_child=np.array([0, size - 1, size - 1], np.int64)[:size],
            n_children=np.where(inner, 2, 0).astype(np.int32),
            children=np.arange(1, size, dtype=np.int64),
            parent=np.array([-1, 0, 0], np.int64)[:size],
            missing_child=np.array([int(not self._nan_left[t]), 0, 0], np.int32)[:size],
            set_start=np.zeros(size, np.int64),
            set_size=np.zeros(size, np.int64),
            words=np.empty(0, np.uint32),
            branches=np.empty(0, np.int32),
            coef=np.empty((0, 0)),
            weight=weight,
            n_samples=np.array([n, n_left, n - n_left], np.int64)[:size],
            value=shares,
            impurity=impurity,
            decrease=np.where(inner, max(lost[0] - lost[1:].sum(), 0.0), 0.0),
        )


# -- members as plain values for checkpoints, and back --


def values_of_members(members: Any, learner: Any) -> list[Any]:
    """The members as plain values: a list for each round."""
    if isinstance(members, TreeMembers):
        return [[TreeForm.values(tree) for tree in trees] for trees in members.trees]
    require_keepable(learner._prototype)
    return [[fitted_values(model) for model in models] for models in members.fitted]


def members_like(members: Any, values: Any, learner: Any, n_features: int) -> Any:
    """Members of the same kind as `members` from their values; raises `MisfitError`."""
    if not isinstance(values, list):
        raise MisfitError("the members are not a list")
    if isinstance(members, TreeMembers):
        form = TreeForm(members.kind, n_features)
        trees = tuple(form.trees(trees_of_round) for trees_of_round in values)
        sizes = {len(trees_of_round) for trees_of_round in trees}
        if len(sizes) > 1 or 0 in sizes:
            raise MisfitError("rounds have different numbers of members, or none")
        return replace(members, trees=trees)
    prototype = learner._prototype
    fitted = tuple(
        [refitted(prototype, model, n_features) for model in models] for models in values
    )
    return replace(members, fitted=fitted)


def stumps_like(values: Any, n_values: list[int], n_classes: int) -> Stumps:
    """Stumps from their arrays; raises `MisfitError` if they are not valid.

    n_values is the number of different values of each feature.
    """
    if not isinstance(values, dict) or set(values) != set(Stumps._fields):
        raise MisfitError("an array of the stumps is missing")
    n = len(values["feature"])
    stumps = Stumps(
        array_of(values["feature"], np.int32, (n,), "feature"),
        array_of(values["code"], np.int64, (n,), "code"),
        array_of(values["classes"], np.int32, (n, 2), "classes"),
        array_of(values["shares"], np.float64, (n, 2, n_classes), "shares"),
        array_of(values["n_left"], np.int64, (n,), "n_left"),
        array_of(values["error"], np.float64, (n,), "error"),
        array_of(values["weight"], np.float64, (n,), "weight"),
        array_of(values["training_error"], np.float64, (n,), "training_error"),
    )
    is_split = stumps.feature >= 0
    last_code = np.array(n_values, np.int64)[np.clip(stumps.feature, 0, len(n_values) - 1)] - 1
    is_valid = (
        np.all((stumps.feature >= -1) & (stumps.feature < len(n_values)))
        and np.all(~is_split | ((stumps.code >= 0) & (stumps.code < last_code)))
        and np.all((stumps.classes >= 0) & (stumps.classes < n_classes))
        and np.all((stumps.error >= 0.0) & (stumps.error <= 1.0))
        and np.isfinite(stumps.weight).all()
    )
    if not is_valid:
        raise MisfitError("a stump has a feature, value or class that does not exist")
    return stumps


@region
def _vote(tile, X, columns, stumps, votes):
    """The votes of a tile of rows; the features of stumps are places in `columns`."""
    features, thresholds, classes, nan_left, weights = stumps
    rows = X[tile * _ROWS_OF_A_TILE : (tile + 1) * _ROWS_OF_A_TILE]
    values = np.empty((len(columns), len(rows)))
    for i in range(len(rows)):
        for k in range(len(columns)):
            values[k, i] = rows[i, np.uint64(columns[k])]
    sums = np.zeros((votes.shape[1], len(rows)))
    for t in range(len(features)):
        column, threshold, weight = values[features[t]], thresholds[t], weights[t]
        left, right = sums[classes[t, 0]], sums[classes[t, 1]]
        if nan_left[t]:
            for i in range(len(column)):
                left[i] += 0.0 if column[i] > threshold else weight
                right[i] += weight if column[i] > threshold else 0.0
        else:
            for i in range(len(column)):
                left[i] += weight if column[i] <= threshold else 0.0
                right[i] += 0.0 if column[i] <= threshold else weight
    first = tile * _ROWS_OF_A_TILE
    for i in range(len(rows)):
        for c in range(votes.shape[1]):
            votes[first + i, c] = sums[c, i]
