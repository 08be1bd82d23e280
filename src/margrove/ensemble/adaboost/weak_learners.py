"""Learners of the members: they are fitted again in each round, with other weights.

A learner is begun with weights and advanced until it is finished. Then it gives the member of the
round and its answers, the predictions for the training rows; see `members`.

    AnyLearner    any scikit-learn estimator
    TreeLearner   trees of this library, grown on one binned table
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from margrove._runtime import unwatched
from margrove.ensemble.adaboost.members import (
    EstimatorMembers,
    TreeMembers,
    answers_of_estimators,
    answers_of_trees,
)
from margrove.ensemble.bagging import seed_of_member
from margrove.ensemble.bootstrap import CumulativeWeights, multiplicities
from margrove.grove import CRITERIA, DecisionTree, TreeTraining, powers_of_scale
from margrove.grove.grow import assemble
from margrove.grove.serve import Kind, PackedTree, TreeArrays, packed_of, rescaled
from margrove.grove.table import (
    MEDIAN_WEIGHT_BITS,
    TreeTable,
    bin_columns,
    class_targets,
    number_targets,
)

__all__ = ["AnyLearner", "Learner", "TreeLearner"]

_MOST_DRAWS = 50
_UNITS = 2.0**50  # the sum of all weights
_BETWEEN_DRAWS = 1 << 40  # distance of the numbers of repeated draws, more than rounds


class Learner(Protocol):
    """See the module. `begin(number, weights, targets)` gets arrays (n_machines, n)."""

    @property
    def finished(self) -> bool: ...
    def begin(self, number: int, weights: np.ndarray, targets: np.ndarray | None) -> None: ...
    def advance(self, work: float) -> float: ...
    def answers(self) -> np.ndarray: ...
    def add_to(self, members: Any) -> Any: ...


class AnyLearner:
    """A learner that fits copies of an estimator with weights, or on samples drawn with them.

    order     int64 (n,)  the rows in an order that does not depend on the given order
    n_draws   the size of the samples that are drawn
    samples   int64 (n,)  the number of samples that each row represents

    The fit of one estimator cannot be interrupted.
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
        if machine < len(weights):  # otherwise an interrupt came before the prediction
            y = self._y if targets is None else targets[machine]
            with unwatched():
                fitted = self._fit(number * len(weights) + machine, y, weights[machine])
            self._fitted.append(fitted)
        if len(self._fitted) == len(weights):
            with unwatched():
                self._answers = answers_of_estimators(
                    self._fitted, self._X, self._answer, self._classes
                )
            self._task = None
        return work

    def _fit(self, number: int, y: np.ndarray, weights: np.ndarray) -> Any:
        model = _with_seeds(clone(self._prototype), seed_of_member(self._seed, number))
        if not self._resample:
            model.fit(self._X, y, sample_weight=weights)  # it may not return the model
            return model
        cumulative = _unit_weights(weights[self._order], self._samples[self._order])
        drawn = _drawn(cumulative, self._seed, number, self._n_draws, y[self._order])
        rows = np.repeat(self._order, drawn)
        model.fit(self._X[rows], y[rows])
        return model

    def answers(self) -> np.ndarray:
        return self._answers

    def add_to(self, members: EstimatorMembers) -> EstimatorMembers:
        return replace(members, fitted=(*members.fitted, self._fitted))


def _unit_weights(weights: np.ndarray, samples: np.ndarray) -> CumulativeWeights:
    """Whole weights for each sample, so that k equal rows are drawn like one row of weight k."""
    return CumulativeWeights(samples * np.maximum(np.rint(weights / samples * _UNITS), 1.0))


def _drawn(
    weights: CumulativeWeights, seed: int, number: int, n_draws: int, y: np.ndarray
) -> np.ndarray:
    """How often each row is in a sample; draws again if all targets of the sample are equal.

    A learner cannot learn anything from such a sample.
    """
    drawn = multiplicities(weights, seed, number, n_draws)
    for attempt in range(1, _MOST_DRAWS if np.any(y != y[0]) else 1):
        targets = y[drawn > 0]
        if np.any(targets != targets[0]):
            break
        drawn = multiplicities(weights, seed, number + attempt * _BETWEEN_DRAWS, n_draws)
    return drawn


def _with_seeds(model: Any, seed: int) -> Any:
    """Set all random states of an estimator from one seed."""
    random = np.random.RandomState(seed)
    settings = {
        name: int(random.randint(np.iinfo(np.int32).max))
        for name in sorted(model.get_params(deep=True))
        if name == "random_state" or name.endswith("__random_state")
    }
    return model.set_params(**settings) if settings else model


class TreeLearner:
    """A learner for trees of this library, on a table that is binned once.

    template   the tree with its parameters
    labels     int64 (n,)  codes of the classes; None for regression
    samples    int64 (n,)  the number of samples that each row represents
    n_draws    trees are grown on samples of this size, drawn with the weights; the order of the
               rows must then not depend on the given order. None: trees use the weights.
    scale      a power of two; targets are divided by it, and leaf values multiplied
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
            self._growing = self._start_tree(len(self._trees), *self._task)
        grower, result = self._growing
        if not grower.finished:
            done: float = grower.advance(work)
            return done
        tree = packed_of(result(), self.kind)
        if self._scale != 1.0:
            tree = rescaled(tree, self._scale, powers_of_scale(self.kind.criterion))
        self._trees, self._growing = [*self._trees, tree], None
        return 1.0

    def _start_tree(
        self, machine: int, number: int, weights: np.ndarray, targets: np.ndarray | None
    ) -> tuple[Any, Callable[[], TreeArrays]]:
        weight, samples, number = weights[machine], self._samples, number * len(weights) + machine
        y = np.asarray(self._labels if targets is None else targets[machine])
        if self._n_draws is not None:
            samples = _drawn(_unit_weights(weight, samples), self._seed, number, self._n_draws, y)
            weight = samples.astype(np.float64)
        if targets is None and self._labels is not None:
            tree_targets = class_targets(y[:, None], [self._n_classes], weight, samples)
        else:
            is_median = CRITERIA[self._template.criterion].has_medians
            tree_targets = number_targets(
                y[:, None] / self._scale,
                weight,
                samples,
                **({"bits": MEDIAN_WEIGHT_BITS} if is_median else {}),
            )
        template = copy.copy(self._template)
        template.random_state = seed_of_member(self._seed, number)
        rows = np.flatnonzero(samples)
        training = TreeTraining(self._table, tree_targets, rows, float(weight.sum()), rows[:0])
        rules = template._rules(training, self._data, self._scale)
        grower = template._grower(training, self._data, rules, self._n_threads)

        def result() -> TreeArrays:
            growth = grower.result()
            if not isinstance(growth, TreeArrays):
                growth = assemble(growth, self._data, tree_targets, rules, self.kind.n_categories)
            return template._cut_back(growth, training, self._scale, rules.criterion)

        return grower, result

    def answers(self) -> np.ndarray:
        return answers_of_trees(self._trees, self._table.X, self.kind, self._answer)

    def add_to(self, members: TreeMembers) -> TreeMembers:
        return replace(members, trees=(*members.trees, self._trees))
