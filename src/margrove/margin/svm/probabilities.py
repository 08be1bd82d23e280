"""Probabilities of a support vector classifier, calibrated by cross-validation.

A sigmoid turns each machine's decision value into a probability (`calibration.fit_slope`), pairs
are coupled (`calibration.couple_pairs`), and the result is projected so that the predicted class
is the most probable (`calibration.agree_with`). The cost in log-loss is measured.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from margrove.exceptions import DataWarning, InfeasibleNuError
from margrove.margin.svm.calibration import (
    PriceOfAgreement,
    agree_with,
    couple_pairs,
    fit_platt,
    fit_slope,
    log_loss,
)
from margrove.margin.svm.multiclass import pairs_of

__all__ = ["Calibration", "calibrate", "probabilities_of"]

_FOLDS = 5


@dataclass(frozen=True)
class Calibration:
    """The slope of each machine's sigmoid, and the cost of the agreement with `predict`."""

    slopes: np.ndarray
    price: PriceOfAgreement


def calibrate(
    model: Any, X: Any, codes: np.ndarray, weight: np.ndarray, n_classes: int, seed: int
) -> Calibration:
    """Calibrate `model` (not fitted; its class labels are the codes) by cross-validation.

    X, codes and weight are distinct rows in an order that depends on their content only, so the
    folds depend on the content only as well.
    """
    folds = _stratified_folds(codes, n_classes, seed)
    decisions, predicted = _held_out_decisions(model, X, codes, weight, folds)
    by_pairs = n_classes > 2 and model.multi_class == "ovo"
    problems = _machine_targets(codes, n_classes, by_pairs)
    columns = decisions.reshape(len(codes), -1).T
    slopes = np.empty(len(problems))
    free = np.empty_like(columns)
    for k, (members, positive) in enumerate(problems):
        values = columns[k, members]
        slopes[k] = fit_slope(values, positive, weight[members])
        slope, offset = fit_platt(values, positive, weight[members])
        free[k] = expit(slope * columns[k] + offset)
    ours = probabilities_of(decisions, slopes, predicted, n_classes, by_pairs)
    unconstrained = _class_probabilities(free.T, n_classes, by_pairs)
    changed = (
        _class_probabilities(expit(slopes * columns.T), n_classes, by_pairs).argmax(axis=1)
        != predicted
    )
    price = PriceOfAgreement(
        log_loss(ours, codes, weight),
        log_loss(unconstrained, codes, weight),
        int(np.count_nonzero(changed)),
    )
    return Calibration(slopes, price)


def probabilities_of(
    decisions: np.ndarray,
    slopes: np.ndarray,
    predicted: np.ndarray,
    n_classes: int,
    by_pairs: bool,
) -> np.ndarray:
    """Class probabilities (n, n_classes); the largest is that of the predicted class."""
    sigmoids = expit(decisions.reshape(len(decisions), -1) * slopes)
    return agree_with(_class_probabilities(sigmoids, n_classes, by_pairs), predicted)


def _class_probabilities(sigmoids: np.ndarray, n_classes: int, by_pairs: bool) -> np.ndarray:
    """Probabilities of the machines' positive sides as probabilities of the classes."""
    if n_classes == 2:
        return np.column_stack([1.0 - sigmoids[:, 0], sigmoids[:, 0]])
    if by_pairs:
        return couple_pairs(sigmoids)
    sigmoids = np.maximum(sigmoids, np.finfo(np.float64).tiny)
    return sigmoids / sigmoids.sum(axis=1, keepdims=True)


def _machine_targets(
    codes: np.ndarray, n_classes: int, by_pairs: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each machine: its rows, and which of them are on its positive side."""
    all_rows = np.arange(len(codes))
    if n_classes == 2:
        return [(all_rows, codes == 1)]
    if not by_pairs:
        return [(all_rows, codes == k) for k in range(n_classes)]
    found = []
    for i, j in pairs_of(n_classes):
        members = np.flatnonzero((codes == i) | (codes == j))
        found.append((members, codes[members] == i))
    return found


def _stratified_folds(codes: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    """The fold of each row; -1 for all rows if a class has only one distinct row."""
    smallest = int(np.bincount(codes, minlength=n_classes).min())
    n_folds = min(_FOLDS, smallest)
    if n_folds < 2:
        warnings.warn(
            "A class has a single distinct row, so probabilities are calibrated on the training "
            "rows and will be overconfident. Use more rows.",
            DataWarning,
            stacklevel=4,
        )
        return np.full(len(codes), -1)
    fold = np.empty(len(codes), dtype=np.int64)
    generator = np.random.default_rng(seed)
    for k in range(n_classes):
        members = np.flatnonzero(codes == k)
        fold[members] = generator.permutation(len(members)) % n_folds
    return fold


def _held_out_decisions(
    model: Any, X: Any, codes: np.ndarray, weight: np.ndarray, folds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Decision values and predictions of each row, by a model that was fitted without it."""
    decisions: np.ndarray | None = None
    predicted = np.empty(len(codes), dtype=np.int64)
    for fold in np.unique(folds):
        out = np.flatnonzero(folds == fold)
        kept = np.flatnonzero(folds != fold) if fold >= 0 else out
        fitted = _fitted(model, X, kept, codes, weight)
        values = fitted._machine_decisions(_columns(model, X[out], kept))
        if decisions is None:
            decisions = np.empty((len(codes), *values.shape[1:]))
        decisions[out] = values
        predicted[out] = fitted._predicted_codes(values)
    assert decisions is not None
    return decisions, predicted


def _fitted(model: Any, X: Any, kept: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> Any:
    """The model fitted to some rows; a nu that is infeasible for them is reduced."""
    fold_model = clone(model)
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return fold_model.fit(
                    _columns(model, X[kept], kept), codes[kept], sample_weight=weight[kept]
                )
        except InfeasibleNuError as error:
            fold_model.set_params(nu=error.feasible)


def _columns(model: Any, X: Any, kept: np.ndarray) -> Any:
    """X; of a Gram matrix, the columns of the training rows."""
    return X[:, kept] if model._is_precomputed() else X
