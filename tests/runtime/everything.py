"""Fits of every estimator to every kind of input, and a count of what they compile.

All kernels should have been compiled before, by `margrove warmup` or in the wheel. What a user
writes (kernels, criteria, losses) is not in the list. `scripts/count_compilations.py` prints what
is compiled all the same.
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

FEW, MORE = 200, 5_000


def _read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def _with_wide_indices(X: Any) -> Any:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "float64": np.ascontiguousarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran": np.asfortranarray,
    "read-only": _read_only,
    "CSR": lambda X: sp.csr_matrix(X * (X > 0.5)),
    "CSR int64": lambda X: _with_wide_indices(sp.csr_matrix(X * (X > 0.5))),
    "CSR float32": lambda X: sp.csr_matrix((X * (X > 0.5)).astype(np.float32)),
}


def numbers(n: int, d: int = 5) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, d))


def classes(X: np.ndarray, k: int) -> np.ndarray:
    edges = np.quantile(X[:, 0] + X[:, 1], np.linspace(0, 1, k + 1)[1:-1])
    return np.searchsorted(edges, X[:, 0] + X[:, 1])


def frame(n: int) -> Any:
    """Strings, numbers, gaps."""
    import polars as pl

    X = numbers(n)
    return pl.DataFrame(
        {
            "colour": [None if v > 1.5 else ("red", "green", "blue")[int(v > 0) + (v > 1)]
                       for v in X[:, 2]],
            "length": [None if v > 1.5 else float(v) for v in X[:, 0]],
            "width": X[:, 1].tolist(),
        }
    )  # fmt: skip


# -- what is tried --

MACHINES: list[tuple[str, dict[str, Any], str]] = [
    ("SVC", {}, "2"), ("SVC", {}, "3"), ("SVC", {"probability": True}, "2"),
    ("SVC", {"multi_class": "ovr"}, "3"), ("SVC", {"kernel": "linear"}, "2"),
    ("SVC", {"kernel": "poly"}, "2"), ("SVC", {"kernel": "sigmoid"}, "2"),
    ("SVC", {"kernel": "laplacian"}, "2"), ("SVC", {"class_weight": "balanced"}, "2"),
    ("SVC", {"solver": "hull"}, "2"), ("SVC", {"solver": "smo"}, "2"), ("NuSVC", {}, "2"),
    ("NuSVC", {}, "3"), ("SVR", {}, "y"), ("SVR", {"kernel": "linear"}, "y"), ("NuSVR", {}, "y"),
    ("OneClassSVM", {}, "y"), ("KernelPerceptron", {"max_iter": 5}, "2"),
    ("KernelPerceptron", {"max_iter": 5}, "3"), ("Perceptron", {"max_iter": 20}, "2"),
    ("Perceptron", {"max_iter": 20, "average": True}, "3"),
    ("Perceptron", {"penalty": "elasticnet"}, "2"), ("Perceptron", {"early_stopping": True}, "2"),
    ("LinearSVC", {}, "2"), ("LinearSVC", {}, "3"), ("LinearSVC", {"loss": "hinge"}, "2"),
    ("LinearSVC", {"loss": "hinge"}, "3"), ("LinearSVC", {"penalty": "l1"}, "2"),
    ("LinearSVC", {"penalty": "l1"}, "3"), ("LinearSVC", {"solver": "sgd"}, "2"),
    ("LinearSVC", {"multi_class": "crammer_singer"}, "3"), ("LinearSVR", {}, "y"),
    ("LinearSVR", {"loss": "squared_epsilon_insensitive", "epsilon": 0.1}, "y"),
]  # fmt: skip
CRITERIA = ("gini", "entropy", "log_loss", "gain_ratio", "error")
OF_NUMBERS = ("squared_error", "friedman_mse", "absolute_error", "poisson")
TREES: list[tuple[str, dict[str, Any], str]] = [
    *(("DecisionTreeClassifier", {"criterion": name}, "3") for name in CRITERIA),
    *(("DecisionTreeRegressor", {"criterion": name}, "y+") for name in OF_NUMBERS),
    ("DecisionTreeClassifier", {"max_depth": 3}, "2"),
    ("DecisionTreeClassifier", {"max_features": 2}, "2"),
    ("DecisionTreeClassifier", {"max_leaf_nodes": 9}, "2"),
    ("DecisionTreeClassifier", {"splitter": "random"}, "2"),
    ("DecisionTreeClassifier", {"splitter": "oblique"}, "2"),
    ("DecisionTreeClassifier", {"ccp_alpha": 0.01}, "2"),
    ("DecisionTreeClassifier", {"max_bins": 32}, "2"),
    ("DecisionTreeRegressor", {}, "y2"), ("DecisionTreeClassifier", {}, "22"),
    ("RandomForestClassifier", {"n_estimators": 5}, "3"),
    ("RandomForestClassifier", {"n_estimators": 5, "oob_score": True}, "2"),
    ("RandomForestClassifier", {"n_estimators": 5, "criterion": "entropy"}, "2"),
    ("RandomForestClassifier", {"n_estimators": 5, "max_bins": 32}, "2"),
    ("RandomForestClassifier", {"n_estimators": 5}, "22"),
    ("RandomForestRegressor", {"n_estimators": 5}, "y"),
    ("RandomForestRegressor", {"n_estimators": 5, "criterion": "absolute_error"}, "y"),
    ("ExtraTreesClassifier", {"n_estimators": 5}, "3"),
    ("ExtraTreesRegressor", {"n_estimators": 5}, "y"),
    ("BaggingClassifier", {"n_estimators": 3}, "3"), ("BaggingRegressor", {"n_estimators": 3}, "y"),
    ("AdaBoostClassifier", {"n_estimators": 5}, "2"),
    ("AdaBoostClassifier", {"n_estimators": 5}, "3"),
    ("AdaBoostRegressor", {"n_estimators": 5}, "y"),
    ("GradientBoostingClassifier", {"n_estimators": 3}, "2"),
    ("GradientBoostingClassifier", {"n_estimators": 3}, "3"),
    ("GradientBoostingClassifier", {"n_estimators": 3, "loss": "exponential"}, "2"),
    *(("GradientBoostingRegressor", {"n_estimators": 3, "loss": loss}, "y")
      for loss in ("squared_error", "absolute_error", "huber", "quantile")),
    ("HistGradientBoostingClassifier", {"max_iter": 5}, "2"),
    ("HistGradientBoostingClassifier", {"max_iter": 5}, "3"),
    ("HistGradientBoostingClassifier", {"max_iter": 5, "growth": "level"}, "2"),
    ("HistGradientBoostingClassifier", {"max_iter": 5, "early_stopping": True}, "2"),
    ("HistGradientBoostingRegressor", {"max_iter": 5, "monotonic_cst": [1, 0, 0, 0, 0]}, "y"),
    ("HistGradientBoostingRegressor", {"max_iter": 5, "subsample": 0.5}, "y"),
    *(("HistGradientBoostingRegressor", {"max_iter": 5, "loss": loss}, "y+")
      for loss in ("squared_error", "absolute_error", "huber", "poisson", "gamma", "tweedie")),
    ("HistGradientBoostingRegressor", {"max_iter": 5, "loss": "quantile", "quantile": 0.8}, "y"),
]  # fmt: skip
TAKE_LABELS = ("DecisionTree", "RandomForest", "ExtraTrees", "Bagging", "AdaBoost", "HistGradient")


def targets(X: np.ndarray, kind: str) -> np.ndarray:
    if kind in ("2", "3"):
        return classes(X, int(kind))
    if kind == "22":
        return np.column_stack([classes(X, 2), classes(X[:, ::-1], 3)])
    y = X[:, 0] + X[:, 1] ** 2
    return {"y": y, "y+": np.abs(y) + 0.1, "y2": np.column_stack([y, -y])}[kind]


def cases() -> Iterator[tuple[str, Callable[[], None]]]:
    """The names of all cases, and functions that run them."""
    for (name, settings, kind), n in itertools.product(MACHINES + TREES, (FEW, MORE)):
        yield _named(name, settings, kind, n, "float64", weighted=False)
        yield _named(name, settings, kind, n, "float64", weighted=True)
    forms = list(FORMS)[1:]
    for (name, settings, kind), form in itertools.product(MACHINES + TREES, forms):
        if not settings or set(settings) <= {"n_estimators", "max_iter"}:
            yield _named(name, settings, kind, FEW, form, weighted=False)
    for name, settings, kind in TREES:
        if (
            name.startswith(TAKE_LABELS)
            and kind in ("2", "3", "y")
            and "monotonic_cst" not in settings
        ):
            yield f"{name} {settings} {kind}, frame", partial(_run_frame, name, settings, kind)
    for name, settings, kind in TREES:
        if kind in ("2", "3", "y") and set(settings) <= {"n_estimators", "max_iter", "max_depth"}:
            yield f"shap of {name} {settings}", partial(_explain, name, settings, kind)


def _named(
    name: str, settings: dict[str, Any], kind: str, n: int, form: str, *, weighted: bool
) -> tuple[str, Callable[[], None]]:
    title = f"{name} {settings} {kind}, {n} rows, {form}{', weights' if weighted else ''}"
    return title, partial(_run, name, settings, kind, n, form, weighted)


def _run(name: str, settings: dict[str, Any], kind: str, n: int, form: str, weighted: bool) -> None:
    import margrove

    X = numbers(n)
    y = targets(X, kind)
    table = FORMS[form](X)
    weights = (np.random.default_rng(1).integers(0, 3, n) + 0.5,) if weighted else ()
    model = _made(margrove, name, settings)
    try:
        model.fit(table, y, *weights) if name != "OneClassSVM" else model.fit(table)
    except (TypeError, ValueError) as error:
        if "sparse" in str(error) or "weight" in str(error) or "zero" in str(error):
            return  # a combination that is refused
        raise
    for rows in (table[:1], table[:100], table):
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(model, method):
                getattr(model, method)(rows)
    if n == FEW and form == "float64":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.margrove")
            margrove.save(model, path)
            margrove.load(path).predict(table)


def _run_frame(name: str, settings: dict[str, Any], kind: str) -> None:
    import margrove

    table, y = frame(FEW), targets(numbers(FEW), kind)
    model = _made(margrove, name, settings)
    model.fit(table, y)
    model.predict(table[:1])
    model.predict(table)


def _explain(name: str, settings: dict[str, Any], kind: str) -> None:
    import margrove

    X = numbers(FEW)
    model = _made(margrove, name, settings).fit(X, targets(X, kind))
    try:
        margrove.shap_values(model, X[:3])
    except (TypeError, ValueError):  # some ensembles have none
        return
    margrove.partial_dependence(model, X, [0])


def _made(margrove: Any, name: str, settings: dict[str, Any]) -> Any:
    model = getattr(margrove, name)(**settings)
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


# -- counting --


def compiled_by(run: Callable[[], None]) -> list[str]:
    """The kernels of the library that a call compiles."""
    from numba.core import event

    found: list[str] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__.startswith("margrove."):
                found.append(f"{function.__module__}.{function.__name__}{event.data['args']}")

        def on_end(self, event: Any) -> None:
            pass

    listener = Listener()
    event.register("numba:compile", listener)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
    finally:
        event.unregister("numba:compile", listener)
    return found
