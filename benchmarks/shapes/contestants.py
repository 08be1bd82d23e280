"""Who takes part in `bench_shapes`: estimators, their peers, settings, figures of quality."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from shapes.tables import Table

__all__ = ["ESTIMATORS", "OURS", "PLAIN", "Estimator", "entries", "losses", "made"]

OURS, PLAIN = "margrove", "scikit-learn"
INTEL, LIGHT, EXTREME = "oneDAL", "LightGBM", "XGBoost"
_TAKE_SPARSE = {"SVC", "linear", "perceptron", "tree", "forest", "extra trees", "bagging"}
_FEW_ROWS = 2000  # below, threads of scikit-learn cost more than they give


@dataclass(frozen=True)
class Estimator:
    """An estimator that is compared.

    module     where scikit-learn has it
    family     whose geometric mean it belongs to
    task       "classes", "numbers" or "one class"
    peers      other libraries than scikit-learn
    settings   parameters besides the defaults, which are tried as well
    most_rows  larger tables are left out, since a peer takes minutes there
    quality    "objective", "error" or "loss"
    takes_wide whether it is tried on wide sparse tables
    """

    name: str
    module: str
    family: str
    task: str
    peers: tuple[str, ...] = ()
    settings: tuple[dict[str, Any], ...] = ()
    most_rows: int = 10**9
    quality: str = "error"
    takes_wide: bool = False

    def fits(self, table: Table) -> bool:
        task = "classes" if self.task == "one class" else self.task
        return (
            table.task == task
            and table.n <= self.most_rows
            and (self.takes_wide or not table.is_wide)
        )


_SVM = {"module": "svm", "family": "SVC", "quality": "objective", "takes_wide": True}
_LINEAR = {"module": "svm", "family": "linear", "quality": "objective", "takes_wide": True}
_ENSEMBLE = {"module": "ensemble"}
_OF_TREE = ({"max_depth": 6}, {"min_samples_leaf": 5})
_OF_BOOSTING = ({"max_depth": 4}, {"learning_rate": 0.05, "max_iter": 200})

ESTIMATORS = [
    Estimator("SVC", task="classes", peers=(INTEL,), most_rows=20_000,
              settings=({"C": 10.0, "gamma": "auto"}, {"kernel": "linear"}), **_SVM),
    Estimator("NuSVC", task="classes", peers=(INTEL,), most_rows=5_000,
              settings=({"nu": 0.2},), **_SVM),
    Estimator("SVR", task="numbers", peers=(INTEL,), most_rows=20_000,
              settings=({"C": 10.0}, {"kernel": "linear"}), **_SVM),
    Estimator("NuSVR", task="numbers", peers=(INTEL,), most_rows=5_000, **_SVM),
    Estimator("OneClassSVM", task="one class", most_rows=10_000, settings=({"nu": 0.1},), **_SVM),
    Estimator("LinearSVC", task="classes", settings=({"loss": "hinge"}, {"C": 0.01}), **_LINEAR),
    Estimator("LinearSVR", task="numbers", settings=({"epsilon": 0.1}, {"C": 0.01}), **_LINEAR),
    Estimator("Perceptron", "linear_model", "perceptron", "classes", takes_wide=True),
    Estimator("DecisionTreeClassifier", "tree", "tree", "classes", settings=_OF_TREE),
    Estimator("DecisionTreeRegressor", "tree", "tree", "numbers", settings=_OF_TREE),
    Estimator("RandomForestClassifier", family="forest", task="classes", peers=(INTEL,),
              settings=_OF_TREE, **_ENSEMBLE),
    Estimator("RandomForestRegressor", family="forest", task="numbers", peers=(INTEL,),
              settings=_OF_TREE, most_rows=50_000, **_ENSEMBLE),
    Estimator("ExtraTreesClassifier", family="extra trees", task="classes", peers=(INTEL,),
              settings=_OF_TREE, **_ENSEMBLE),
    Estimator("ExtraTreesRegressor", family="extra trees", task="numbers", peers=(INTEL,),
              settings=_OF_TREE, most_rows=50_000, **_ENSEMBLE),
    Estimator("AdaBoostClassifier", family="AdaBoost", task="classes", most_rows=50_000,
              settings=({"depth": 3}, {"depth": 6}), **_ENSEMBLE),
    Estimator("AdaBoostRegressor",
              family="AdaBoost", task="numbers", most_rows=20_000, **_ENSEMBLE),
    Estimator("BaggingClassifier",
              family="bagging", task="classes", most_rows=20_000, **_ENSEMBLE),
    Estimator("BaggingRegressor",
              family="bagging", task="numbers", most_rows=20_000, **_ENSEMBLE),
    Estimator("GradientBoostingClassifier", family="classic boosting", task="classes",
              most_rows=5_000, quality="loss", **_ENSEMBLE),
    Estimator("GradientBoostingRegressor", family="classic boosting", task="numbers",
              most_rows=20_000, **_ENSEMBLE),
    Estimator("HistGradientBoostingClassifier", family="boosting", task="classes",
              peers=(LIGHT, EXTREME), settings=_OF_BOOSTING, quality="loss", **_ENSEMBLE),
    Estimator("HistGradientBoostingRegressor", family="boosting", task="numbers",
              peers=(LIGHT, EXTREME), settings=_OF_BOOSTING, **_ENSEMBLE),
]  # fmt: skip


def entries(table: Table) -> list[tuple[Estimator, dict[str, Any]]]:
    """The estimators and settings that are compared on a table."""
    return [
        (estimator, settings)
        for estimator in ESTIMATORS
        if estimator.fits(table)
        for settings in ({}, *(estimator.settings if table.has_more else ()))
    ]


# -- in the process of a library --


def made(library: str, estimator: Estimator, settings: dict[str, Any], n_rows: int) -> Any:
    """An estimator with these settings, in the words of its library."""
    settings = dict(settings)
    if library in (LIGHT, EXTREME):
        return _boosting_of_peer(library, estimator, settings)
    packages = {OURS: "margrove", PLAIN: "sklearn.", INTEL: "sklearnex."}
    module = packages[library] + ("" if library == OURS else estimator.module)
    if "depth" in settings:
        trees = importlib.import_module("margrove" if library == OURS else "sklearn.tree")
        settings["estimator"] = trees.DecisionTreeClassifier(max_depth=settings.pop("depth"))
    model = getattr(importlib.import_module(module), estimator.name)(**settings)
    known = model.get_params()
    if "random_state" in known and estimator.family != "linear":
        model.set_params(random_state=0)
    if library != OURS and "n_jobs" in known and n_rows >= _FEW_ROWS:
        model.set_params(n_jobs=-1)
    return model


def _boosting_of_peer(library: str, estimator: Estimator, settings: dict[str, Any]) -> Any:
    """With the settings that are the defaults of scikit-learn and ours."""
    kind = "Classifier" if estimator.task == "classes" else "Regressor"
    shared = {
        "n_estimators": settings.pop("max_iter", 100),
        "learning_rate": settings.pop("learning_rate", 0.1),
    }
    depth = settings.pop("max_depth", None)
    if library == LIGHT:
        import lightgbm

        of_depth = {} if depth is None else {"max_depth": depth}
        return getattr(lightgbm, f"LGBM{kind}")(verbose=-1, **shared, **of_depth)
    import xgboost

    return getattr(xgboost, f"XGB{kind}")(
        max_leaves=31, max_depth=depth or 0, grow_policy="lossguide", tree_method="hist",
        max_bin=255, reg_lambda=0.0, **shared,
    )  # fmt: skip


def fit(model: Any, estimator: Estimator, X: Any, y: np.ndarray) -> Any:
    return model.fit(X) if estimator.task == "one class" else model.fit(X, y)


def losses(model: Any, estimator: Estimator, X: Any, y: np.ndarray) -> np.ndarray:
    """The loss of each row."""
    if estimator.quality == "loss":
        found = model.predict_proba(X)
        return -np.log(np.clip(found[np.arange(len(y)), y], 1e-15, 1.0))
    predicted = np.asarray(model.predict(X)).ravel()
    return (predicted - y) ** 2 if estimator.task == "numbers" else (predicted != y) + 0.0


def objective(model: Any, estimator: Estimator, X: Any, y: np.ndarray) -> float:
    """What is minimised; of kernel machines the dual, of linear ones the primal objective."""
    if estimator.family != "linear":
        import margrove

        given = (X,) if estimator.task == "one class" else (X, y)
        proof = margrove.certificate(model, *given)
        return -float(sum(machine.dual for machine in proof.machines))
    return _linear_objective(model, X, y)


def _linear_objective(model: Any, X: Any, y: np.ndarray) -> float:
    """Without the intercept, which ours does not penalise by default and LIBLINEAR does."""
    coef, intercept = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    values = np.asarray(X @ coef.T) + intercept
    total = 0.5 * float((coef**2).sum())
    if hasattr(model, "epsilon"):
        slack = np.maximum(0.0, np.abs(values[:, 0] - y) - model.epsilon)
        return total + model.C * float(slack @ slack if "squared" in model.loss else slack.sum())
    for k in range(len(coef)):
        signs = np.where(y == (1 if len(coef) == 1 else k), 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - signs * values[:, k])
        total += model.C * float(slack.sum() if model.loss == "hinge" else slack @ slack)
    return total


def dense_if_needed(library: str, estimator: Estimator, X: Any) -> Any:
    """Sparse tables as arrays for those that do not take them."""
    takes = estimator.family in _TAKE_SPARSE or library in (OURS, LIGHT, EXTREME)
    return X if takes or not sp.issparse(X) else X.toarray()
