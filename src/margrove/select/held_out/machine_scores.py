"""Scores of kernel machines on the held-out rows of a fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring, r2_score

from margrove.margin.svm import TargetScale, pairs_of, per_class_decisions
from margrove.select.held_out.answers import known_answers
from margrove.select.held_out.folds import Fold
from margrove.select.machines import FoldPaths

__all__ = ["ClassifierFoldScorer", "FoldScorer", "RegressorFoldScorer", "ScoredRows"]


@dataclass(frozen=True)
class ScoredRows:
    """The rows that machines are scored on.

    X, y and weight are as given to `fit`; `position` (n,) is the point of each row in the Gram
    matrix.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    position: np.ndarray
    folds: Sequence[Fold]

    def points(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        """The distinct points of the test rows of a fold, and the index of each row among them."""
        return np.unique(self.position[self.folds[fold].test], return_inverse=True)


# Scores of scikit-learn that are at most 1, besides the fast ones.
_AT_MOST_ONE = {
    "accuracy", "balanced_accuracy", "average_precision", "explained_variance", "f1", "f1_macro",
    "f1_micro", "f1_weighted", "jaccard", "matthews_corrcoef", "precision", "r2", "recall",
    "roc_auc", "roc_auc_ovo", "roc_auc_ovr",
}  # fmt: skip


class FoldScorer:
    """Called with the paths of a fold; fills `scores` (n_C, n_kernels, n_folds) and `seconds`.

    If `hits` is a dictionary, it gets, for each kernel and fold, which test rows are predicted
    right: bool (n_C, n_rows).
    """

    _fast_scores: ClassVar[tuple[str, ...]] = ()  # names of scores that need no scorer

    def __init__(self, rows: ScoredRows, shape: tuple[int, int], scoring: Any) -> None:
        self.rows = rows
        self._scoring = scoring
        self.scores = np.full((*shape, len(rows.folds)), np.nan)
        self.seconds = np.zeros((shape[1], len(rows.folds)))
        self.hits: dict[tuple[int, int], np.ndarray] | None = None

    def __call__(
        self, kernel: int, fold: int, K: np.ndarray, paths: FoldPaths, part: slice
    ) -> None:
        start = time.perf_counter()
        points, of_row = self.rows.points(fold)
        # Of all C, because the last digits of a matrix product depend on its shape.
        values = _values(K[points], paths, len(self.scores))[:, part]
        self.scores[part, kernel, fold] = self._score((kernel, fold), part, values, of_row)
        self.seconds[kernel, fold] += time.perf_counter() - start

    @property
    def greatest(self) -> float:
        """No score is above this."""
        if self._is_fast() or (isinstance(self._scoring, str) and self._scoring in _AT_MOST_ONE):
            return 1.0
        is_negative = isinstance(self._scoring, str) and self._scoring.startswith("neg_")
        return 0.0 if is_negative else np.inf

    def row_weights(self, fold: int) -> np.ndarray | None:
        """The weights of the test rows if the score is the weighted share of hits, else None."""
        return None

    def without_scores(self) -> Self:
        """A copy without scores, for another process; X is left out if no scorer needs it."""
        other = copy(self)
        other.scores = np.full(self.scores.shape, np.nan)
        other.seconds = np.zeros(self.seconds.shape)
        if self._is_fast():
            other.rows = replace(self.rows, X=None)
        return other

    def _is_fast(self) -> bool:
        return self._scoring is None or (
            isinstance(self._scoring, str) and self._scoring in self._fast_scores
        )

    def _score(
        self, place: tuple[int, int], part: slice, values: np.ndarray, of_row: np.ndarray
    ) -> np.ndarray:
        """A score for each C of a part, from the values of points (n_machines, n_C, n_points).

        place is the kernel and the fold; `of_row` is the point of each test row.
        """
        raise NotImplementedError

    def _score_by_scorer(
        self, fold: int, n_Cs: int, machine: Callable[[int], BaseEstimator]
    ) -> np.ndarray:
        """The scores of any scorer, which gets stand-ins for the machine of each C."""
        rows = self.rows
        test = rows.folds[fold].test
        weight = rows.weight[test]
        given = {} if np.all(weight == weight[0]) else {"sample_weight": weight}
        scorer = check_scoring(machine(0), scoring=self._scoring)
        X, y = rows.X[test], rows.y[test]
        return np.array([scorer(machine(c), X, y, **given) for c in range(n_Cs)])


class ClassifierFoldScorer(FoldScorer):
    """Accuracy with the weights of the fits, or the value of a scorer.

    factors (n_folds, n_classes): the factor of class_weight for each class in each fold.
    """

    _fast_scores = ("accuracy",)

    def __init__(
        self,
        rows: ScoredRows,
        shape: tuple[int, int],
        scoring: Any,
        classes: np.ndarray,
        factors: np.ndarray,
        one_vs_one: bool,
    ) -> None:
        super().__init__(rows, shape, scoring)
        self._classes = classes
        self._factors = factors
        self._one_vs_one = one_vs_one

    def row_weights(self, fold: int) -> np.ndarray | None:
        if not self._is_fast():
            return None
        weight = self.rows.weight[self.rows.folds[fold].test]
        if self._scoring is None:
            weight = weight * self._factors[fold][self._truth(fold)]
        return np.asarray(weight)

    def _truth(self, fold: int) -> np.ndarray:
        return np.searchsorted(self._classes, self.rows.y[self.rows.folds[fold].test])

    def _score(
        self, place: tuple[int, int], part: slice, values: np.ndarray, of_row: np.ndarray
    ) -> np.ndarray:
        fold = place[1]
        codes = self._codes(values)[:, of_row]
        weight = self.row_weights(fold)
        if weight is not None:
            hits = codes == self._truth(fold)
            if self.hits is not None:
                of_place = self.hits.setdefault(
                    place, np.zeros((len(self.scores), hits.shape[1]), dtype=bool)
                )
                of_place[part] = hits
            return np.asarray(hits @ weight / weight.sum())
        return self._score_by_scorer(
            fold,
            len(codes),
            lambda c: known_answers(
                partial(_answer, self._classes[codes[c]], self._decisions(values[:, c].T)[of_row]),
                self._classes,
            ),
        )

    def _codes(self, values: np.ndarray) -> np.ndarray:
        """The predicted class of each point for each C, (n_C, n_points)."""
        n_classes = len(self._classes)
        if n_classes == 2:
            return np.asarray(values[0] >= 0).astype(np.int64)
        if not self._one_vs_one:
            return np.asarray(np.where(np.isnan(values), -np.inf, values).argmax(axis=0))
        votes = np.zeros((n_classes, *values.shape[1:]), dtype=np.int16)
        for of_pair, (i, j) in zip(values, pairs_of(n_classes), strict=True):
            votes[i] += of_pair > 0  # NaN is a pair that does not vote
            votes[j] += of_pair <= 0
        return np.asarray(votes.argmax(axis=0))

    def _decisions(self, values: np.ndarray) -> np.ndarray:
        """The values of `decision_function`, with a column for each class if there are over two."""
        if len(self._classes) == 2:
            return values[:, 0]
        if not self._one_vs_one:
            return np.where(np.isnan(values), -np.inf, values)
        return per_class_decisions(np.nan_to_num(values), len(self._classes))


class RegressorFoldScorer(FoldScorer):
    """The coefficient of determination, or the value of a scorer."""

    _fast_scores = ("r2",)

    def __init__(
        self, rows: ScoredRows, shape: tuple[int, int], scoring: Any, scale: TargetScale
    ) -> None:
        super().__init__(rows, shape, scoring)
        self._scale = scale

    def _score(
        self, place: tuple[int, int], part: slice, values: np.ndarray, of_row: np.ndarray
    ) -> np.ndarray:
        fold = place[1]
        predicted = self._scale.centre + values[0][:, of_row] / self._scale.factor
        if self._is_fast():
            test = self.rows.folds[fold].test
            y, weight = self.rows.y[test], self.rows.weight[test]
            return np.array([r2_score(y, of_C, sample_weight=weight) for of_C in predicted])
        return self._score_by_scorer(
            fold, len(predicted), lambda c: known_answers(lambda _: predicted[c], None)
        )


def _values(K: np.ndarray, paths: FoldPaths, n_Cs: int) -> np.ndarray:
    """f of each held-out point, (n_machines, n_C, n_points); NaN for machines that are missing.

    The machines that share a run of points are computed together, by one matrix product.
    """
    values = np.full((len(paths), n_Cs, len(K)), np.nan)
    of_run: dict[tuple[int, int], list[tuple[int, np.ndarray]]] = {}
    for number, path in enumerate(paths):
        if path is None:
            continue
        values[number] = -path.rhos[:, None]
        coef = path.machine.coefficients(path.alphas)
        start = 0
        for run in path.machine.runs:
            stop = start + run.stop - run.start
            of_run.setdefault((run.start, run.stop), []).append((number, coef[:, start:stop]))
            start = stop
    for (start, stop), machines in of_run.items():
        products = np.vstack([coef for _, coef in machines]) @ K[:, start:stop].T
        for place, (number, _) in enumerate(machines):
            values[number] += products[place * n_Cs : (place + 1) * n_Cs]
    return values


def _answer(predicted: np.ndarray, decisions: np.ndarray, method: str) -> np.ndarray:
    if method == "predict_proba":
        raise ValueError(
            "scoring needs probabilities, which a search over C and gamma does not compute. Use a "
            "scoring that needs predict or decision_function: 'accuracy', 'f1' or 'roc_auc'."
        )
    return predicted if method == "predict" else decisions
