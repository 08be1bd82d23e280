"""Training sets of kernel machines as points, folds of weights, and machines over them."""

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
    """What is searched on: distinct rows as points of a kernel, and the way to them.

    training  of all rows, with the kernel as `gamma="scale"` means it
    target    (n,) of each row: its code, or its value
    weight    float64 (n,) as given
    position  int64 (n,) the point of each row; -1 for rows of weight zero
    """

    training: TrainingSet
    target: np.ndarray
    weight: np.ndarray
    position: np.ndarray
    attributes: dict[str, Any]

    def machines(self, fold: Fold) -> list[FoldMachine | None]:
        """The dual problems of one fold; None for what it has no rows for."""
        raise NotImplementedError

    def _weights(self, rows: np.ndarray, counted: np.ndarray) -> np.ndarray:
        """What each point counts in the training part of a fold."""
        n_points = len(self.training.points)
        sums: np.ndarray = np.bincount(self.position[rows], counted, n_points)
        if isinstance(self.training.kernel, Linear):  # see SupportVectorMachine._bounds
            sums = sums / self.training.scale / self.training.scale
        return sums


@dataclass(frozen=True)
class ClassifierTask(SvmTask):
    """Points stand class after class; `edges` are where each begins."""

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
        training, codes = model._training_by_class(table.X, labels)
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
        """What class_weight puts on each class, by the rows that a fold learns from."""
        codes, weight = self.target[fold.train], self.weight[fold.train]
        present, names = np.unique(codes), self.classes[codes]
        if len(present) < 2:
            raise InvalidDataError(
                f"A fold of cv has only rows of class {self.classes[present].tolist()} to learn "
                "from, and at least 2 classes are needed. Use fewer folds, or StratifiedKFold."
            )
        factors = np.ones(len(self.classes))  # also of classes that only the held-out rows have
        labels = check_training_labels(names, weight, self.class_weight, len(names))
        factors[present] = labels.factors
        return factors

    def _sides(self) -> list[tuple[tuple[slice, ...], slice]]:
        """The runs of points of each machine, and its positive side."""
        runs = [slice(a, b) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]
        everyone = (slice(0, int(self.edges[-1])),)
        if len(runs) == 2:
            return [(everyone, runs[1])]
        if self.one_vs_one:
            return [((runs[i], runs[j]), runs[i]) for i, j in pairs_of(len(runs))]
        return [(everyone, own) for own in runs]

    def _machine(
        self, weight: np.ndarray, runs: tuple[slice, ...], positive: slice
    ) -> FoldMachine | None:
        points = np.concatenate([np.arange(run.start, run.stop) for run in runs])
        signs = np.where((points >= positive.start) & (points < positive.stop), 1.0, -1.0)
        rows = np.flatnonzero(weight[points] > 0)
        if np.unique(signs[rows]).size < 2:
            return None
        return _without_price(c_svc(signs[rows], weight[points[rows]]), runs, rows)


@dataclass(frozen=True)
class RegressorTask(SvmTask):
    """Targets are learnt as `scale` puts them."""

    scale: TargetScale
    epsilon: float

    @classmethod
    def of(cls, model: SVR, X: Any, y: Any, sample_weight: Any) -> RegressorTask:
        table = model._check_training_table(X)
        targets = check_targets(y, table.X.shape[0])
        n_rows = table.X.shape[0]
        weight = moderate(check_weights(sample_weight, n_rows, leave_out_negative=True))
        form = model._presented(table.X, targets, weight)
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
        everyone = (slice(0, len(self.training.points)),)
        return [_without_price(problem, everyone, np.concatenate([rows, rows]))]


def _without_price(problem: DualProblem, runs: Sequence[slice], rows: np.ndarray) -> FoldMachine:
    return FoldMachine(tuple(runs), rows, problem.y, problem.p, problem.u)


def _positions(training: TrainingSet) -> np.ndarray:
    place = np.empty(len(training.order), dtype=np.int64)
    place[training.order] = np.arange(len(training.order))
    group = training.form.group_of
    return np.where(group >= 0, place[group], -1)
