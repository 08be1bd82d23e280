"""Runs every kernel of the library once, for each type of array that it supports.

Compiling takes minutes, and a process compiles on one core only. So there are parts, which several
processes compile into the cache at the same time; later processes load them from the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime.jit import mark_in_cache
from margrove._runtime.threads import resolve_n_jobs

__all__ = ["EVERYTHING", "PARTS", "fill_cache", "run_parts", "run_side_by_side", "warmup"]

EVERYTHING = "everything"  # name of the cache mark that means: all kernels are compiled
_MANY_ROWS = 2100  # more than 2048: from there on Gram matrices are float32


def warmup(n_jobs: int | None = None) -> float:
    """Compile every kernel (or load it from the cache) and return the seconds it took.

    Parameters
    ----------
    n_jobs : int, optional
        Number of processes that compile at the same time, by default the number of cores. Without
        a cache, through which they share the machine code, it is one.

    Returns
    -------
    float
    """
    start = time.perf_counter()
    fill_cache(n_jobs)
    run_parts(list(PARTS))
    return time.perf_counter() - start


def fill_cache(n_jobs: int | None = None) -> bool:
    """Compile every kernel into the cache, without loading any; False if there is no cache."""
    mark = mark_in_cache(EVERYTHING)
    if mark is None or not sys.executable:
        return False
    if not mark.exists():
        program = (
            "import sys; from margrove._runtime.warmup import run_parts; run_parts(sys.argv[1:])"
        )
        run_side_by_side([(program, name) for name in PARTS], resolve_n_jobs(n_jobs, unset="all"))
        mark.touch()
    return True


def run_parts(names: Sequence[str]) -> None:
    """Fit learners on toy data and predict, in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            PARTS[name]()


def run_side_by_side(programs: Sequence[tuple[str, ...]], n_processes: int) -> None:
    """Run Python programs with their arguments in processes, `n_processes` at a time.

    Exit codes are ignored: the programs only fill the cache.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    waiting, running = list(programs), list[subprocess.Popen[bytes]]()
    try:
        while waiting or running:
            while waiting and len(running) < n_processes:
                command = [sys.executable, "-W", "ignore", "-c", *waiting.pop(0)]
                running.append(
                    subprocess.Popen(
                        command, env=environment, stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    )
                )  # fmt: skip
            running = [process for process in running if process.poll() is None]
            time.sleep(0.05)
    finally:  # after an interrupt
        for process in running:
            process.kill()
            process.wait()


def _run_machines(dtype: Any, form: Callable[[Any], Any]) -> None:
    y = np.arange(12) % 3
    X = np.random.default_rng(0).random((12, 4)) + y[:, None]
    X[-1] = X[-4]  # a row that occurs twice
    table = form(X.astype(dtype))
    _run_perceptrons(table, y)
    _run_support_vector_machines(table, y)
    _run_linear_machines(table, y)


def _run_perceptrons(X: Any, y: np.ndarray) -> None:
    from margrove.margin.kernels import KERNELS
    from margrove.margin.perceptron import KernelPerceptron, Perceptron

    Perceptron(max_iter=2).fit(X, y).predict(X)
    for kernel in sorted(KERNELS):
        KernelPerceptron(kernel=kernel, max_iter=1).fit(X, y).predict(X)


def _run_support_vector_machines(X: Any, y: np.ndarray) -> None:
    """Two and three classes, regression, one-class machines, each solver, signs of many rows."""
    from margrove.margin.kernels import signed_sums
    from margrove.margin.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

    for machine in (SVC(), NuSVC(nu=0.2), SVC(solver="hull"), SVC(C=np.inf, kernel="linear")):
        for labels in (y, y == 0):
            machine.fit(X, labels).predict(X)
    for machine in (
        SVC(max_time=1e6),  # in slices
        SVC(solver="sgd"),
        SVC(fit_intercept=False),
        SVR(),
        SVR(fit_intercept=False),
        NuSVR(),
        OneClassSVM(),
    ):
        machine.fit(X, y).predict(X)
    kernel, coef = machine.kernel_, np.ones((len(machine.support_), 1))
    signed_sums(kernel, X, 1.0, None, kernel.points(machine.support_vectors_), coef, 0.0)


def _run_linear_machines(X: Any, y: np.ndarray) -> None:
    """Each solver, loss and multiclass method."""
    from margrove.margin.linear import LinearSVC, LinearSVR

    for solver in ("cd", "newton", "sgd"):
        for tol in (1e-4, 1e-7):  # float32 and float64
            LinearSVC(solver=solver, tol=tol, max_iter=20).fit(X, y).predict(X)
        LinearSVC(solver=solver, max_iter=20).fit(X, y == 0).predict(X)
        LinearSVR(solver=solver, max_iter=20).fit(X, y).predict(X)
        if solver != "sgd":
            LinearSVC("l1", solver=solver, max_iter=20).fit(X, y == 0)
    LinearSVC(loss="hinge", multi_class="crammer_singer", max_iter=20).fit(X, y)
    if not sp.issparse(X):  # 68 features: Newton steps that are not those of small problems
        LinearSVC(solver="newton", max_iter=5).fit(np.tile(X, 17), y)
        LinearSVR(solver="newton", max_iter=5).fit(np.tile(X, 17), y)
    _run_joint_linear_machines(X, y)


def _run_joint_linear_machines(X: Any, y: np.ndarray) -> None:
    """Newton steps whose rows are on several machines, as one of them that has all rows."""
    from margrove._runtime.collective import Alone
    from margrove.margin.linear import LinearFacts, LinearSVC, RowFacts, solve_rows

    block = SimpleNamespace(
        start=0, n_rows=len(y), y=y, weight=None, is_on_disk=False, X=partial(_rows_of, X)
    )
    facts_of_rows = RowFacts.of(X, y, None, 0, 1, of_classes=True)
    fits: tuple[tuple[Any, Any, bool], ...] = (
        (LinearSVC(), "l2", False),
        (LinearSVC(loss="hinge"), "l2", True),
        (LinearSVC("l1"), "l1", False),
    )
    for model, kind, by_gradients in fits:
        facts = LinearFacts.of([facts_of_rows], model, None)
        solve_rows(Alone(), model, kind, facts, [block], by_gradients=by_gradients)


def _run_trees() -> None:
    """Numbers, missing values, categories and sparse tables; classification and regression."""
    from margrove.grove import DecisionTreeClassifier, DecisionTreeRegressor

    X = np.random.default_rng(0).random((40, 3))
    y = np.arange(40) % 3
    X_missing = np.where(X < 0.1, np.nan, np.round(X, 1))
    for model in (DecisionTreeClassifier(), DecisionTreeRegressor()):
        model.fit(X, y).predict(X)
        model.set_params(categorical_features=[0]).fit(X_missing, y).predict(X_missing)
    DecisionTreeClassifier(split="multiway").fit(X_missing, y).predict(X_missing)
    for table in (sp.csr_matrix(np.where(X > 0.9, X, 0.0)), np.where(X > 0.9, 1.0, 0.0)):
        for weight in (None, 1.0 + y):
            DecisionTreeClassifier().fit(table, y, weight).predict(table)


def _run_ensembles() -> None:
    """Forests of numbers, missing values and categories; a bootstrap."""
    from margrove.ensemble.bootstrap import bootstrap
    from margrove.ensemble.forest import (
        ExtraTreesClassifier,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    X = np.random.default_rng(0).random((40, 3))
    y = np.arange(40) % 3
    X_missing = np.where(X < 0.1, np.nan, np.round(X, 1))
    for model in (RandomForestClassifier(2, oob_score=True), ExtraTreesClassifier(2)):
        model.fit(X, y).predict(X)
    RandomForestRegressor(2, keep_samples=True).fit(X, y).predict_quantiles(X)
    for kind in (RandomForestClassifier, RandomForestRegressor):
        kind(2, categorical_features=[0]).fit(X_missing, y).predict(X_missing)
    bootstrap(X[:, 0], np.mean, n_resamples=10)


def _run_bags() -> None:
    from margrove.ensemble.bagging import BaggingClassifier, BaggingRegressor
    from margrove.margin.svm import SVC

    X = np.random.default_rng(0).random((40, 3))
    BaggingClassifier(n_estimators=2).fit(X, np.arange(40) % 3).predict(X)
    BaggingRegressor(n_estimators=2).fit(X, X[:, 0]).predict(np.tile(X, (3, 1)))
    BaggingClassifier(SVC(), 2, n_jobs=2, random_state=0).fit(X, np.arange(40) % 3)


def _run_adaboost() -> None:
    from margrove.ensemble.adaboost import AdaBoostClassifier, AdaBoostRegressor

    X = np.random.default_rng(0).random((40, 3))
    for y in (np.arange(40) % 3, np.arange(40) % 2):
        AdaBoostClassifier(n_estimators=2).fit(X, y).predict(X)
    AdaBoostRegressor(n_estimators=2).fit(X, X[:, 0]).predict(X)


def _run_searches() -> None:
    from margrove.select.machines import SVCCV, SVRCV

    y = np.arange(60) % 2
    X = np.random.default_rng(0).random((60, 2)) + 0.5 * y[:, None]
    brief: dict[str, Any] = {"Cs": 3, "gammas": 2, "cv": 2}
    SVCCV(**brief).fit(X, y)
    SVRCV(**brief).fit(X, X[:, 0])


def _run_explanations() -> None:
    from margrove.ensemble.forest import RandomForestClassifier, proximities
    from margrove.grove.explain import partial_dependence, shap_values

    X = np.random.default_rng(0).random((40, 3))
    forest = RandomForestClassifier(2).fit(X, np.arange(40) % 3)
    shap_values(forest, X[:2])
    shap_values(forest, X[:2], background=X[:4])
    partial_dependence(forest, X, [0], kind="both")
    proximities(forest, X)


def _run_on_many_rows() -> None:
    """Well separated classes, so that a few steps are enough."""
    from margrove.margin.svm import SVC

    y = np.arange(_MANY_ROWS) % 3
    X = np.random.default_rng(0).random((_MANY_ROWS, 2)) + 2.0 * y[:, None]
    for kernel in ("linear", "rbf"):
        for labels in (y, y == 0):  # the Gram matrix shared by three pairs, and rows on demand
            SVC(kernel=kernel).fit(X, labels).predict(X[:1])


def _run_gradient_boosting() -> None:
    """Both pairs of estimators, with weights and sparse tables, and enough rows for packed tables.

    Larger tables are binned without sorting, by `refined_cells` and `code_values`.
    """
    from margrove.ensemble.gradient import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from margrove.ensemble.gradient.hist.binning import code_values, refined_cells

    rng = np.random.default_rng(0)
    X = rng.standard_normal((_MANY_ROWS, 20)).round(1)
    code_values(X[:, 0].copy(), refined_cells(X[:, 0].copy(), 10).lows)
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
    few = X[:300, :5] + rng.random((300, 5))  # whose rounds run together
    HistGradientBoostingRegressor(**brief).fit(few, few[:, 0])
    HistGradientBoostingClassifier(**brief).fit(few, y[:300])
    HistGradientBoostingClassifier(**brief).fit(few, three[:300])
    for labels in (y, three):
        GradientBoostingClassifier(n_estimators=2).fit(X, labels).predict(X)
    GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0], rng.random(len(X)))


def _run_joint_gradient_boosting() -> None:
    """Boosting whose rows are on several machines, as one of them that happens to have all rows."""
    from margrove._runtime.collective import ALONE, Alone
    from margrove.ensemble.gradient import (
        GradientData,
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        PiecedRows,
        PieceOfRows,
        SoFar,
    )
    from margrove.ensemble.gradient.losses import quantile_of
    from margrove.grove.table import TreeTable

    class FirstOfTwo(Alone):
        size = 2

    n = _MANY_ROWS
    dense = np.random.default_rng(0).standard_normal((n, 20)).round(1)
    dense[:, 1] *= dense[:, 1] > 1.0  # a sparse column
    classifier = partial(HistGradientBoostingClassifier, max_iter=2)
    regressor = partial(HistGradientBoostingRegressor, max_iter=2)
    halves, thirds = dense[:, 0] > 0.0, (dense[:, 0] > 0.0) + (dense[:, 2] > 0.0)
    fits = (
        (dense, classifier(), halves, np.arange(2)),
        (dense, classifier(max_leaf_nodes=None), 1.0 * thirds, np.arange(3)),
        (sp.csr_matrix(dense), regressor(subsample=0.5), dense[:, 0], None),
        (dense, regressor("absolute_error"), dense[:, 0], None),
    )
    for X, model, y, classes in fits:
        rows = PiecedRows([PieceOfRows(partial(_rows_of, X), n)], X.shape[1])
        given = GradientData(
            TreeTable(rows, None, {}), y.astype(np.float64), None, None, classes,
            places=np.arange(1, n + 1, dtype=np.uint64),
        )  # fmt: skip
        start = given.training_rows.start(model._loss_for(given))
        so_far = SoFar([], start, (), (), 1.0)
        process = model._process(given, None, so_far, 0, False, ALONE)
        while not process.finished:
            process.advance(np.inf)
    quantile_of(dense[:, 0].copy(), np.ones(n), 0.5, FirstOfTwo())


def _rows_of(X: Any, first: int, last: int) -> Any:
    return X[first:last]


# The parts that take longest to compile come first.
PARTS: dict[str, Callable[[], None]] = {
    "forests": _run_ensembles,
    "trees": _run_trees,
    "gradient boosting": _run_gradient_boosting,
    "gradient boosting on several machines": _run_joint_gradient_boosting,
    "machines": partial(_run_machines, np.float64, np.asarray),
    "sparse machines": partial(_run_machines, np.float64, sp.csr_array),
    "machines of float32": partial(_run_machines, np.float32, np.asarray),
    "sparse machines of float32": partial(_run_machines, np.float32, sp.csr_array),
    "bags": _run_bags,
    "AdaBoost": _run_adaboost,
    "searches": _run_searches,
    "explanations": _run_explanations,
    "machines of many rows": _run_on_many_rows,
}
