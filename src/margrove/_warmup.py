"""Runs every kernel of the library once, for each type of array it can be given."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["run_everything_once"]

_MANY_ROWS = 2100  # more than 2048: from there on Gram matrices are float32


def run_everything_once() -> None:
    """Fit and use each learner on toy data, dense and sparse, float64 and float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X, y in _toy_data():
            _run_perceptrons(X, y)
            _run_support_vector_machines(X, y)
            _run_linear_machines(X, y)
        _run_on_many_rows()
        _run_trees()
        _run_ensembles()
        _run_gradient_boosting()


def _run_perceptrons(X: Any, y: np.ndarray) -> None:
    from margrove.margin.kernel_perceptron import KernelPerceptron
    from margrove.margin.kernels import KERNELS
    from margrove.margin.perceptron import Perceptron

    Perceptron(max_iter=2).fit(X, y).predict(X)
    for kernel in sorted(KERNELS):
        KernelPerceptron(kernel=kernel, max_iter=1).fit(X, y).predict(X)


def _run_support_vector_machines(X: Any, y: np.ndarray) -> None:
    """Two classes and three, regression, a region, and each solver."""
    from margrove.margin.one_class_svm import OneClassSVM
    from margrove.margin.svc import SVC, NuSVC
    from margrove.margin.svr import SVR, NuSVR

    for machine in (SVC(), NuSVC(nu=0.2), SVC(solver="hull"), SVC(C=np.inf, kernel="linear")):
        for labels in (y, y == 0):
            machine.fit(X, labels).predict(X)
    for machine in (
        SVC(solver="sgd"),
        SVC(fit_intercept=False),
        SVR(),
        SVR(fit_intercept=False),
        NuSVR(),
        OneClassSVM(),
    ):
        machine.fit(X, y).predict(X)


def _run_linear_machines(X: Any, y: np.ndarray) -> None:
    """Each solver, loss and way of telling classes apart."""
    from margrove.margin.linear_svc import LinearSVC
    from margrove.margin.linear_svr import LinearSVR

    for solver in ("cd", "newton", "sgd"):
        for tol in (1e-4, 1e-7):  # float32 and float64
            LinearSVC(solver=solver, tol=tol, max_iter=20).fit(X, y).predict(X)
        LinearSVC(solver=solver, max_iter=20).fit(X, y == 0).predict(X)
        LinearSVR(solver=solver, max_iter=20).fit(X, y).predict(X)
        if solver != "sgd":
            LinearSVC("l1", solver=solver, max_iter=20).fit(X, y == 0)
    LinearSVC(loss="hinge", multi_class="crammer_singer", max_iter=20).fit(X, y)


def _run_trees() -> None:
    """Numbers, missing values and categories; classes and numbers to be predicted."""
    from margrove.grove.tree import DecisionTreeClassifier, DecisionTreeRegressor

    X = np.random.default_rng(0).random((40, 3))
    y = np.arange(40) % 3
    with_gaps = np.where(X < 0.1, np.nan, np.round(X, 1))
    for model in (DecisionTreeClassifier(), DecisionTreeRegressor()):
        model.fit(X, y).predict(X)
        model.set_params(categorical_features=[0]).fit(with_gaps, y).predict(with_gaps)
    DecisionTreeClassifier(split="multiway").fit(with_gaps, y).predict(with_gaps)


def _run_ensembles() -> None:
    """Forests of numbers, missing values and categories; a bootstrap."""
    from margrove.ensemble.bootstrap import bootstrap
    from margrove.ensemble.forests import (
        ExtraTreesClassifier,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    X = np.random.default_rng(0).random((40, 3))
    y = np.arange(40) % 3
    with_gaps = np.where(X < 0.1, np.nan, np.round(X, 1))
    for model in (RandomForestClassifier(2, oob_score=True), ExtraTreesClassifier(2)):
        model.fit(X, y).predict(X)
    RandomForestRegressor(2, keep_samples=True).fit(X, y).predict_quantiles(X)
    for kind in (RandomForestClassifier, RandomForestRegressor):
        kind(2, categorical_features=[0]).fit(with_gaps, y).predict(with_gaps)
    bootstrap(X[:, 0], np.mean, n_resamples=10)


def _run_on_many_rows() -> None:
    """Classes far apart, so that a handful of steps will do."""
    from margrove.margin.svc import SVC

    y = np.arange(_MANY_ROWS) % 3
    X = np.random.default_rng(0).random((_MANY_ROWS, 2)) + 2.0 * y[:, None]
    for kernel in ("linear", "rbf"):
        for labels in (y, y == 0):  # the Gram matrix shared by three pairs, and rows on demand
            SVC(kernel=kernel).fit(X, labels).predict(X[:1])


def _toy_data() -> Iterator[tuple[Any, np.ndarray]]:
    y = np.arange(12) % 3
    X = np.random.default_rng(0).random((12, 4)) + y[:, None]
    X[-1] = X[-4]  # a row that is there twice
    for dtype in (np.float64, np.float32):
        yield X.astype(dtype), y
        yield sp.csr_array(X.astype(dtype)), y


def _run_gradient_boosting() -> None:
    """Both pairs, with weights and lists of entries; enough rows to be packed, and for tables."""
    from margrove.ensemble.gradient_boosting import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )
    from margrove.ensemble.hist_gradient_boosting import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )

    rng = np.random.default_rng(0)
    X = rng.standard_normal((_MANY_ROWS, 20)).round(1)
    y = X[:, 0] + X[:, 1] > 0
    three = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    brief: dict[str, Any] = {"max_iter": 2, "early_stopping": False}
    for table in (X, sp.csr_matrix(np.where(X > 1.0, X, 0.0))):
        for labels in (y, three):
            model = HistGradientBoostingClassifier(**brief).fit(table, labels)
            model.predict(table)
            model.predict(table[:1])
    for loss in ("squared_error", "absolute_error", "poisson"):
        weight = rng.random(len(X))
        HistGradientBoostingRegressor(loss, **brief).fit(X, np.abs(X[:, 0]), weight).predict(X)
    HistGradientBoostingRegressor(subsample=0.5, **brief).fit(X, X[:, 0])
    for labels in (y, three):
        GradientBoostingClassifier(n_estimators=2).fit(X, labels).predict(X)
    GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0], rng.random(len(X)))
