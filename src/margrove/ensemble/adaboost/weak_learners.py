"""Learners that are asked again and again, with other weights, and the members that come of it.

A learner is begun with weights, advanced until it is finished, and then gives a member and what
that says of the training rows. Members know what they say of any rows; they are kept in one of

    EstimatorMembers   any scikit-learn estimators, as they are
    TreeMembers        trees of this library, packed, grown on one table of codes
    StumpMembers       stumps, four numbers each
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from margrove._runtime import kernel, unwatched
from margrove.ensemble.adaboost.stump_tables import StumpTable
from margrove.ensemble.adaboost.stumps import Stumps
from margrove.ensemble.bagging import onto_all_classes, seed_of_member
from margrove.ensemble.bootstrap import Line, multiplicities
from margrove.grove import CRITERIA, DecisionTree, TreeTraining, powers_of_scale
from margrove.grove.grow import assemble, impurity_of_shares
from margrove.grove.serve import (
    LEAF,
    THRESHOLD,
    Kind,
    PackedTree,
    TreeArrays,
    add_values,
    leaves_of_rows,
    packed_of,
    rescaled,
    unfolded,
)
from margrove.grove.table import (
    MEDIAN_WEIGHT_BITS,
    TreeTable,
    bin_columns,
    class_targets,
    number_targets,
)

__all__ = ["AnyLearner", "EstimatorMembers", "Learner", "Members", "StumpMembers", "TreeLearner",
           "TreeMembers", "answers_of_trees", "rows_at_once"]  # fmt: skip

_CELLS_AT_ONCE = 1 << 18
_MOST_DRAWS = 50
_UNITS = 2.0**50  # of all weights together
_BETWEEN_DRAWS = 1 << 40  # more than there are rounds


class Members(Protocol):
    """What has been learnt, round after round; a round has one member or one for each class.

    `answers(rows, t)` are those of round t: class codes (n,), shares (n, K) or numbers (n, M).
    """

    def __len__(self) -> int: ...
    def answers(self, rows: Any, t: int) -> np.ndarray: ...
    def estimators(self, t: int) -> list[Any]: ...
    def part(self, count: int) -> Members: ...


class Learner(Protocol):
    """See the module. `begin(number, weights, targets)` gets (machines, n) each."""

    @property
    def finished(self) -> bool: ...
    def begin(self, number: int, weights: np.ndarray, targets: np.ndarray | None) -> None: ...
    def advance(self, work: float) -> float: ...
    def answers(self) -> np.ndarray: ...
    def add_to(self, members: Any) -> Any: ...


def rows_at_once(n_columns: int) -> int:
    """How many rows of a table stay in cache."""
    return max(256, _CELLS_AT_ONCE // max(n_columns, 1))


# -- any estimator --


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

    def part(self, count: int) -> EstimatorMembers:
        return replace(self, fitted=self.fitted[:count])

    def answers(self, rows: Any, t: int) -> np.ndarray:
        return _answers_of(self.fitted[t], rows, self.answer, self.classes)


def _answers_of(
    fitted: list[Any], rows: Any, answer: str, classes: np.ndarray | None
) -> np.ndarray:
    if answer == "numbers" or classes is None:
        return np.stack([np.asarray(own.predict(rows), np.float64) for own in fitted], axis=1)
    model = fitted[0]
    if answer == "labels":
        found: np.ndarray = np.searchsorted(classes, np.asarray(model.predict(rows)))
        return found
    known = np.searchsorted(classes, model.classes_)
    return onto_all_classes(np.asarray(model.predict_proba(rows)), known, len(classes))


class AnyLearner:
    """Copies of an estimator, given weights, or else a sample drawn by them.

    order: the rows in an order that does not depend on how they were given; n_draws: the size of
    the samples that are drawn; samples: how many each row stands for. What is fitted in one go
    cannot be interrupted in between.
    """

    def __init__(
        self,
        prototype: Any,
        X: Any,
        y: np.ndarray,
        answer: str,
        classes: np.ndarray | None,
        *,
        resample: bool,
        order: np.ndarray,
        n_draws: int,
        samples: np.ndarray,
        seed: int,
    ) -> None:
        self._prototype, self._X, self._y = prototype, X, y
        self._answer, self._classes = answer, classes
        self._resample, self._order, self._n_draws = resample, order, n_draws
        self._samples = samples
        self._seed = seed
        self._task: tuple[int, np.ndarray, np.ndarray | None] | None = None
        self._fitted: list[Any] = []
        self._answers = np.empty(0)

    @property
    def finished(self) -> bool:
        return self._task is None

    def begin(self, number: int, weights: np.ndarray, targets: np.ndarray | None) -> None:
        self._task, self._fitted = (number, weights, targets), []

    def advance(self, work: float) -> float:
        if self._task is None:
            return 1.0
        number, weights, targets = self._task
        machine = len(self._fitted)
        if machine < len(weights):  # else an interrupt came before it was asked
            y = self._y if targets is None else targets[machine]
            with unwatched():
                fitted = self._fit(number * len(weights) + machine, y, weights[machine])
            self._fitted.append(fitted)
        if len(self._fitted) == len(weights):
            with unwatched():
                self._answers = _answers_of(self._fitted, self._X, self._answer, self._classes)
            self._task = None
        return work

    def _fit(self, number: int, y: np.ndarray, weights: np.ndarray) -> Any:
        model = _with_seeds(clone(self._prototype), seed_of_member(self._seed, number))
        if not self._resample:
            model.fit(self._X, y, sample_weight=weights)  # which need not return the model
            return model
        line = _line(weights[self._order], self._samples[self._order])
        drawn = _drawn(line, self._seed, number, self._n_draws, y[self._order])
        rows = np.repeat(self._order, drawn)
        model.fit(self._X[rows], y[rows])
        return model

    def answers(self) -> np.ndarray:
        return self._answers

    def add_to(self, members: EstimatorMembers) -> EstimatorMembers:
        return replace(members, fitted=(*members.fitted, self._fitted))


def _line(weights: np.ndarray, samples: np.ndarray) -> Line:
    """Whole numbers for each sample, so that k rows lie on the line as one row of weight k does."""
    return Line(samples * np.maximum(np.rint(weights / samples * _UNITS), 1.0))


def _drawn(line: Line, seed: int, number: int, n_draws: int, y: np.ndarray) -> np.ndarray:
    """How often each row is in a sample; one that has two different targets, if there is one.

    Of a sample whose targets are all the same there is nothing to learn.
    """
    drawn = multiplicities(line, seed, number, n_draws)
    for attempt in range(1, _MOST_DRAWS if np.any(y != y[0]) else 1):
        own = y[drawn > 0]
        if np.any(own != own[0]):
            break
        drawn = multiplicities(line, seed, number + attempt * _BETWEEN_DRAWS, n_draws)
    return drawn


def _with_seeds(model: Any, seed: int) -> Any:
    """Random states of its own, wherever it has any."""
    random = np.random.RandomState(seed)
    settings = {
        name: int(random.randint(np.iinfo(np.int32).max))
        for name in sorted(model.get_params(deep=True))
        if name == "random_state" or name.endswith("__random_state")
    }
    return model.set_params(**settings) if settings else model


# -- trees of this library --


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

    def part(self, count: int) -> TreeMembers:
        return replace(self, trees=self.trees[:count])

    def answers(self, rows: Any, t: int) -> np.ndarray:
        return answers_of_trees(self.trees[t], rows, self.kind, self.answer)

    def estimators(self, t: int) -> list[Any]:
        return [self._estimator(tree) for tree in self.trees[t]]

    def _estimator(self, tree: PackedTree) -> DecisionTree:
        tree.require_sound(self.kind, self.attributes["n_features_in_"])
        own: DecisionTree = clone(self.template)
        own._commit(self.attributes | {"arrays_": unfolded(tree, self.kind)})
        return own

    @property
    def n_nodes(self) -> int:
        return sum(len(tree) for trees in self.trees for tree in trees)


def answers_of_trees(trees: list[PackedTree], rows: Any, kind: Kind, answer: str) -> np.ndarray:
    """What the trees of a round say of rows."""
    n, size = rows.shape[0], rows_at_once(rows.shape[1])
    found = np.zeros((n, kind.n_values if kind.n_classes else len(trees)))
    labels = np.empty(n, np.int64)
    winners = _winners(trees[0], kind) if answer == "labels" else np.empty(0, np.int64)
    for begin in range(0, n, size):
        part = slice(begin, begin + size)
        own = rows[part].toarray() if sp.issparse(rows) else rows[part]
        leaves = np.empty(len(own), np.int32)
        has_nan = bool(np.isnan(own).any())
        for k, tree in enumerate(trees):
            leaves_of_rows(tree, own, kind, leaves, has_nan=has_nan)
            if answer == "labels":
                labels[part] = winners[leaves]
            elif answer == "shares":
                add_values(tree, leaves, kind, None, found[part])
            else:
                add_values(tree, leaves, kind, None, found[part, k : k + 1])
    return labels if answer == "labels" else found


def _winners(tree: PackedTree, kind: Kind) -> np.ndarray:
    """The largest class of each leaf; of equals the first."""
    winners = np.zeros(len(tree), np.int64)
    leaf = np.flatnonzero(tree.is_leaf)
    row = tree.nodes.view(np.float64)[0::2][leaf].astype(np.int64)
    largest = np.argmax(tree.values, axis=1) if len(tree.values) else np.zeros(1, np.int64)
    mixed = np.maximum(row - kind.n_pure, 0)
    winners[leaf] = np.where(row < kind.n_pure, row, largest[mixed])
    return winners


class TreeLearner:
    """Trees on codes that are made once.

    labels are those of the classes, None for numbers; samples, how many each row stands for.
    `template` is the tree that is asked for. With n_draws, trees are grown on samples of that size,
    drawn by the weights; rows then lie in an order that does not depend on how they were given.
    Numbers are divided by `scale`, a power of two, and means multiplied again.
    """

    def __init__(
        self,
        template: DecisionTree,
        table: TreeTable,
        labels: np.ndarray | None,
        n_classes: int,
        samples: np.ndarray,
        answer: str,
        *,
        seed: int,
        n_threads: int,
        n_draws: int | None = None,
        scale: float = 1.0,
    ) -> None:
        self._template, self._table, self._seed = template, table, seed
        self._labels, self._n_classes, self._samples = labels, n_classes, samples
        self._answer, self._n_threads = answer, n_threads
        self._n_draws, self._scale = n_draws, scale
        self._data = bin_columns(
            table.X,
            categorical=table.is_categorical,
            max_bins=template.max_bins,
            n_threads=n_threads,
        )
        self.kind = Kind(
            CRITERIA[template.criterion].code,
            () if labels is None else (n_classes,),
            1,
            table.n_categories,
        )
        self._task: tuple[int, np.ndarray, np.ndarray | None] | None = None
        self._growing: tuple[Any, Callable[[], TreeArrays]] | None = None
        self._trees: list[PackedTree] = []

    @property
    def extremes(self) -> Any:
        return self._data.extremes

    @property
    def finished(self) -> bool:
        return self._task is None or len(self._trees) == len(self._task[1])

    def begin(self, number: int, weights: np.ndarray, targets: np.ndarray | None) -> None:
        self._task, self._trees, self._growing = (number, weights, targets), [], None

    def advance(self, work: float) -> float:
        if self._task is None or self.finished:
            return 1.0
        if self._growing is None:
            self._growing = self._plant(len(self._trees), *self._task)
        grower, result = self._growing
        if not grower.finished:
            done: float = grower.advance(work)
            return done
        tree = packed_of(result(), self.kind)
        if self._scale != 1.0:
            tree = rescaled(tree, self._scale, powers_of_scale(self.kind.criterion))
        self._trees, self._growing = [*self._trees, tree], None
        return 1.0

    def _plant(
        self, machine: int, number: int, weights: np.ndarray, targets: np.ndarray | None
    ) -> tuple[Any, Callable[[], TreeArrays]]:
        own, samples, number = weights[machine], self._samples, number * len(weights) + machine
        y = np.asarray(self._labels if targets is None else targets[machine])
        if self._n_draws is not None:
            samples = _drawn(_line(own, samples), self._seed, number, self._n_draws, y)
            own = samples.astype(np.float64)
        if targets is None and self._labels is not None:
            given = class_targets(y[:, None], [self._n_classes], own, samples)
        else:
            is_median = CRITERIA[self._template.criterion].has_medians
            given = number_targets(
                y[:, None] / self._scale,
                own,
                samples,
                **({"bits": MEDIAN_WEIGHT_BITS} if is_median else {}),
            )
        template = copy.copy(self._template)
        template.random_state = seed_of_member(self._seed, number)
        rows = np.flatnonzero(samples)
        training = TreeTraining(self._table, given, rows, float(own.sum()), rows[:0])
        rules = template._rules(training, self._data, self._scale)
        grower = template._grower(training, self._data, rules, self._n_threads)

        def result() -> TreeArrays:
            growth = grower.result()
            if not isinstance(growth, TreeArrays):
                growth = assemble(growth, self._data, given, rules, self.kind.n_categories)
            return template._cut_back(growth, training, self._scale, rules.criterion)

        return grower, result

    def answers(self) -> np.ndarray:
        return answers_of_trees(self._trees, self._table.X, self.kind, self._answer)

    def add_to(self, members: TreeMembers) -> TreeMembers:
        return replace(members, trees=(*members.trees, self._trees))


# -- stumps --


@dataclass(frozen=True)
class StumpMembers:
    """Stumps, and the thresholds that their codes stand for."""

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

    def part(self, count: int) -> StumpMembers:
        return replace(self, found=self.found.part(count), thresholds=self.thresholds[:count])

    def answers(self, rows: Any, t: int) -> np.ndarray:
        feature = max(int(self.found.feature[t]), 0)
        column = rows[:, [feature]].toarray()[:, 0] if sp.issparse(rows) else rows[:, feature]
        on_left = np.where(np.isnan(column), self._nan_left[t], column <= self.thresholds[t])
        left, right = self.found.classes[t]
        return np.where(on_left, left, right).astype(np.int64)

    @property
    def _nan_left(self) -> np.ndarray:
        """Values that no stump has seen go with the larger part."""
        return (2 * self.found.n_left > self.n_samples) | (self.found.feature < 0)

    def votes(self, rows: Any, weights: np.ndarray, n_classes: int) -> np.ndarray:
        """The weights of the stumps that are for each class, (n, K)."""
        n = rows.shape[0]
        votes = np.zeros((n, n_classes))
        place = np.zeros(rows.shape[1], np.int64)
        place[self._used] = np.arange(len(self._used))
        features = place[np.maximum(self.found.feature, 0)]
        size = rows_at_once(len(self._used))
        for begin in range(0, n, size):
            part = slice(begin, begin + size)
            own = rows[part][:, self._used]
            own = own.toarray() if sp.issparse(own) else own
            _vote(np.ascontiguousarray(own, np.float64), features, self.thresholds,
                  self.found.classes, self._nan_left, weights, votes[part])  # fmt: skip
        return votes

    def estimators(self, t: int) -> list[Any]:
        own: DecisionTree = clone(self.template)
        own._commit(self.attributes | {"arrays_": self._arrays(t)})
        return [own]

    def _arrays(self, t: int) -> TreeArrays:
        """A tree of three nodes, or of one."""
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


@kernel
def _vote(X, features, thresholds, classes, nan_left, weights, votes):
    for i in range(X.shape[0]):
        for t in range(len(features)):
            value = X[i, features[t]]
            on_left = value <= thresholds[t]
            if value != value:  # noqa: PLR0124
                on_left = nan_left[t]
            votes[i, classes[t, 0 if on_left else 1]] += weights[t]
