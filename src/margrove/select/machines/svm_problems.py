"""A training set and its folds as dual problems of kernel machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import (
    check_targets,
    check_training_labels,
    check_weights,
    moderate,
)
from margrove.exceptions import InvalidDataError
from margrove.margin.kernels import Linear
from margrove.margin.svm import (
    SVC,
    SVR,
    DualProblem,
    TargetScale,
    TrainingSet,
    c_svc,
    epsilon_svr,
    pairs_of,
)
from margrove.select.held_out import Fold
from margrove.select.machines.machine_paths import FoldMachine

__all__ = ["ClassifierTask", "RegressorTask", "SvmTask"]


@dataclass(frozen=True)
class SvmTask:
    """The rows of a search as distinct points of a kernel.

    training    the training set of all rows; its kernel has the gamma of `gamma="scale"`
    target      (n,) the class code or the value of each row
    weight      float64 (n,) as given
    position    int64 (n,) the point of each row; -1 for rows of weight zero
    attributes  fitted attributes that come from X, such as `n_features_in_`
    """

    training: TrainingSet
    target: np.ndarray
    weight: np.ndarray
    position: np.ndarray
    attributes: dict[str, Any]

    def machines(self, fold: Fold) -> list[FoldMachine | None]:
        """The dual problems of one fold; None where the fold has rows of one side only."""
        raise NotImplementedError

    def _weights(self, rows: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """The weight of each point among the training rows of a fold, float64 (n_points,)."""
        n_points = len(self.training.points)
        sums: np.ndarray = np.bincount(self.position[rows], counted, n_points)
        if isinstance(self.training.kernel, Linear):  # see SupportVectorMachine._bounds
            sums = sums / self.training.scale / self.training.scale
        return sums


@dataclass(frozen=True)
class ClassifierTask(SvmTask):
    """Points are sorted by class; class k has the points from `edges[k]` to `edges[k + 1]`."""

    classes: np.ndarray
    edges: np.ndarray
    class_weight: Any
    one_vs_one: bool

    @classmethod
    def of(cls, model: SVC, X: Any, y: Any, sample_weight: Any) -> ClassifierTask:
        table = model._check_training_table(X)
        n_rows = table.X.shape[0]
        labels = check_training_labels(
            y, sample_weight, model.class_weight, n_rows, leave_out_negative=True
        )
        form, order, codes = model._rows_by_class(table.X, labels)
        training = model._training_set(table.X, form, order)
        return cls(
            training,
            labels.codes,
            labels.weight,
            _positions(training),
            table.attributes,
            labels.classes,
            np.searchsorted(codes, np.arange(len(labels.classes) + 1)),
            model.class_weight,
            len(labels.classes) > 2 and model.multi_class == "ovo",
        )

    def machines(self, fold: Fold) -> list[FoldMachine | None]:
        codes = self.target[fold.train]
        counted = moderate(self.weight[fold.train] * self.factors(fold)[codes])
        weight = self._weights(fold.train, counted)
        return [self._machine(weight, *sides) for sides in self._sides()]

    def factors(self, fold: Fold) -> np.ndarray:
        """The factor of class_weight for each class, from the training rows of a fold."""
        codes, weight = self.target[fold.train], self.weight[fold.train]
        present, names = np.unique(codes), self.classes[codes]
        if len(present) < 2:
            raise InvalidDataError(
                f"A fold of cv has only rows of class {self.classes[present].tolist()} to train "
                "on, and at least 2 classes are needed. Use fewer folds, or StratifiedKFold."
            )
        factors = np.ones(len(self.classes))  # also of classes that only the held-out rows have
        labels = check_training_labels(names, weight, self.class_weight, len(names))
        factors[present] = labels.factors
        return factors

    def _sides(self) -> list[tuple[tuple[slice, ...], slice]]:
        """For each machine, its points as slices, and the slice of its positive class."""
        runs = [slice(a, b) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]
        all_points = (slice(0, int(self.edges[-1])),)
        if len(runs) == 2:
            return [(all_points, runs[1])]
        if self.one_vs_one:
            return [((runs[i], runs[j]), runs[i]) for i, j in pairs_of(len(runs))]
        return [(all_points, run) for run in runs]

    def _machine(
        self, weight: np.ndarray, runs: tuple[slice, ...], positive: slice
    ) -> FoldMachine | None:
        points = np.concatenate([np.arange(run.start, run.stop) for run in runs])
        signs = np.where((points >= positive.start) & (points < positive.stop), 1.0, -1.0)
        rows = np.flatnonzero(weight[points] > 0)
        if np.unique(signs[rows]).size < 2:
            return None
        return _in_units_of_c(c_svc(signs[rows], weight[points[rows]]), runs, rows)


@dataclass(frozen=True)
class RegressorTask(SvmTask):
    """Machines are fitted to targets that `scale` has centred and scaled."""

    scale: TargetScale
    epsilon: float

    @classmethod
    def of(cls, model: SVR, X: Any, y: Any, sample_weight: Any) -> RegressorTask:
        table = model._check_training_table(X)
        targets = check_targets(y, table.X.shape[0])
        n_rows = table.X.shape[0]
        weight = moderate(check_weights(sample_weight, n_rows, leave_out_negative=True))
        form = model._canonical_rows(table.X, targets, weight)
        training = model._training_set(table.X, form, np.arange(len(form.rows)))
        return cls(
            training,
            targets,
            weight,
            _positions(training),
            table.attributes,
            TargetScale.of(targets[training.rows]),
            float(model.epsilon),
        )

    def machines(self, fold: Fold) -> list[FoldMachine | None]:
        weight = self._weights(fold.train, self.weight[fold.train]) * self.scale.factor
        rows = np.flatnonzero(weight > 0)
        targets = self.scale.apply(self.target[self.training.rows[rows]])
        problem = epsilon_svr(targets, weight[rows], self.epsilon * self.scale.factor)
        all_points = (slice(0, len(self.training.points)),)
        return [_in_units_of_c(problem, all_points, np.concatenate([rows, rows]))]


def _in_units_of_c(problem: DualProblem, runs: Sequence[slice], rows: np.ndarray) -> FoldMachine:
    """A problem with C = 1, whose upper bounds are in units of C."""
    return FoldMachine(tuple(runs), rows, problem.y, problem.p, problem.u)


def _positions(training: TrainingSet) -> np.ndarray:
    """The point of each row, int64 (n,); -1 for rows of weight zero."""
    place = np.empty(len(training.order), dtype=np.int64)
    place[training.order] = np.arange(len(training.order))
    group = training.form.group_of
    return np.where(group >= 0, place[group], -1)
