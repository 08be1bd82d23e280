"""Sigmoid and isotonic maps from scores of held-out rows to probabilities, and their losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from margrove._runtime import resolve_n_jobs, run_calls
from margrove.margin.svm import fit_platt
from margrove.select.held_out import (
    Folds,
    LearningRows,
)

__all__ = [
    "HeldOutScores",
    "best_method",
    "calibrated_fold",
    "cross_fitted",
    "fold_scores",
    "join_scores",
    "losses_of_methods",
    "pair_scores",
]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of m rows by estimators that have not seen them.

    values          float64 (m, 1) for two classes, else (m, n_classes)
    probabilities   float64 (m, n_classes), or None where the estimator has none
    codes           int64 (m,), the true classes
    weight          float64 (m,)
    fold            int64 (m,), the fold that each row is in
    """

    values: np.ndarray
    probabilities: np.ndarray | None
    codes: np.ndarray
    weight: np.ndarray
    fold: np.ndarray
    n_classes: int

    def some(self, which: np.ndarray) -> HeldOutScores:
        """The scores of the rows that `which`, bool (m,), selects."""
        probabilities = None if self.probabilities is None else self.probabilities[which]
        return HeldOutScores(
            self.values[which], probabilities, self.codes[which], self.weight[which],
            self.fold[which], self.n_classes,
        )  # fmt: skip


def join_scores(by_fold: Sequence[HeldOutScores]) -> HeldOutScores:
    """The scores of several folds as one."""
    given = [part.probabilities for part in by_fold if part.probabilities is not None]
    return HeldOutScores(
        np.concatenate([part.values for part in by_fold]),
        np.concatenate(given) if given else None,
        np.concatenate([part.codes for part in by_fold]),
        np.concatenate([part.weight for part in by_fold]),
        np.concatenate([part.fold for part in by_fold]),
        by_fold[0].n_classes,
    )


def fold_scores(
    estimator: Any, rows: LearningRows, folds: Folds, n_jobs: int | None
) -> list[HeldOutScores]:
    """Scores of each fold, by the estimator fitted without it."""

    def score(k: int) -> HeldOutScores:
        train, test = folds[k]
        return _scores(rows.fitted(estimator, train), rows, estimator, train, test, k)

    return run_calls(score, [(k,) for k in range(len(folds))], resolve_n_jobs(n_jobs))


def pair_scores(
    estimator: Any, rows: LearningRows, folds: Folds, n_jobs: int | None
) -> list[HeldOutScores]:
    """For each fold k, scores of all other folds j, by estimators fitted without j and k."""

    def score(j: int, k: int) -> tuple[HeldOutScores, HeldOutScores]:
        train = np.intersect1d(folds[j][0], folds[k][0])
        rows.require_classes(train, f"Without folds {j} and {k}, cv")
        model = rows.fitted(estimator, train)
        of_j, of_k = (_scores(model, rows, estimator, train, folds[i][1], i) for i in (j, k))
        return of_j, of_k

    pairs = list(combinations(range(len(folds)), 2))
    others: list[list[HeldOutScores]] = [[] for _ in folds]
    found = run_calls(score, pairs, resolve_n_jobs(n_jobs))
    for (j, k), (of_j, of_k) in zip(pairs, found, strict=True):
        others[k].append(of_j)
        others[j].append(of_k)
    return [join_scores(scores) for scores in others]


def _scores(
    model: Any, rows: LearningRows, estimator: Any, train: np.ndarray, test: np.ndarray, fold: int
) -> HeldOutScores:
    assert rows.codes is not None
    assert rows.classes is not None
    n_classes = len(rows.classes)
    X = rows.held_out(estimator, train, test)
    probabilities = None
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(X), np.float64)
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), np.float64).reshape(len(test), -1)
    else:
        assert probabilities is not None
        values = probabilities[:, 1:] if n_classes == 2 else probabilities
    if len(model.classes_) != n_classes or values.shape[1] != (1 if n_classes == 2 else n_classes):
        raise ValueError(
            f"{type(model).__name__} gives {values.shape[1]} scores for {n_classes} classes. One "
            "for each class is needed, as decision_function_shape='ovr' gives."
        )
    return HeldOutScores(
        values,
        probabilities,
        rows.codes[test],
        rows.weights_of(test),
        np.full(len(test), fold),
        n_classes,
    )


def _mapped(known: HeldOutScores, asked: HeldOutScores, method: str) -> np.ndarray:
    """Probabilities (m, n_classes) of the rows `asked`, by a map fitted to the rows `known`."""
    if method == "none":
        assert asked.probabilities is not None
        return asked.probabilities
    fit_map = _sigmoid if method == "sigmoid" else _isotonic
    if known.n_classes == 2:
        second = fit_map(known.values[:, 0], known.codes == 1, known.weight)(asked.values[:, 0])
        return np.column_stack([1.0 - second, second])
    found = np.empty(asked.values.shape)
    for k in range(known.n_classes):
        class_map = fit_map(known.values[:, k], known.codes == k, known.weight)
        found[:, k] = class_map(asked.values[:, k])
    total = found.sum(axis=1, keepdims=True)
    uniform = np.full_like(found, 1.0 / known.n_classes)  # where all classes have probability 0
    return np.divide(found, total, out=uniform, where=total > 0)


Map = Callable[[np.ndarray], np.ndarray]


def _sigmoid(values: np.ndarray, came_true: np.ndarray, weight: np.ndarray) -> Map:
    slope, offset = fit_platt(values, came_true, weight)
    return lambda asked: expit(slope * asked + offset)


def _isotonic(values: np.ndarray, came_true: np.ndarray, weight: np.ndarray) -> Map:
    steps = IsotonicRegression(out_of_bounds="clip")
    steps.fit(values, came_true.astype(np.float64), sample_weight=weight)
    return lambda asked: np.asarray(steps.predict(asked))


def cross_fitted(scores: HeldOutScores, method: str) -> np.ndarray:
    """Probabilities of each fold by a map fitted to the scores of the others."""
    found = np.empty((len(scores.codes), scores.n_classes))
    for fold in np.unique(scores.fold):
        in_fold = scores.fold == fold
        found[in_fold] = _mapped(scores.some(~in_fold), scores.some(in_fold), method)
    return found


def losses_of_methods(
    scores: HeldOutScores, methods: Sequence[str], scoring: str
) -> dict[str, float]:
    """The loss of each method on rows that neither estimator nor map has seen."""
    return {
        method: _loss(cross_fitted(scores, method), scores.codes, scores.weight, scoring)
        for method in methods
    }


def _loss(probabilities: np.ndarray, codes: np.ndarray, weight: np.ndarray, scoring: str) -> float:
    truth = probabilities[np.arange(len(codes)), codes]
    if scoring == "log_loss":
        return float(np.average(-np.log(np.maximum(truth, _EPS)), weights=weight))
    squares = (probabilities**2).sum(axis=1) - truth**2 + (1.0 - truth) ** 2
    factor = 0.5 if probabilities.shape[1] == 2 else 1.0  # two classes have the same square twice
    return factor * float(np.average(squares, weights=weight))


def best_method(losses: dict[str, float]) -> str:
    """The method of the smallest loss; among equals, the first."""
    return min(losses, key=lambda method: losses[method])


def calibrated_fold(
    scores: HeldOutScores, others: HeldOutScores, methods: Sequence[str], scoring: str
) -> np.ndarray:
    """Probabilities (m, n_classes) of one fold, by a map fitted to the others.

    The choice of the method is part of the model, so it is made again without the fold.
    """
    method = (
        methods[0]
        if len(methods) == 1
        else best_method(losses_of_methods(others, methods, scoring))
    )
    return _mapped(others, scores, method)
