"""Models of scikit-learn's: every kind that can be converted, and what makes kinds differ."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

__all__ = ["MODELS", "Specimen", "linear_kernel"]

IRIS, SPECIES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
TWO = np.where(SPECIES == 1, "yes", "no")
DIGITS, DIGIT = (part[:300] for part in load_digits(return_X_y=True))
DIABETES, PROGRESSION = load_diabetes(return_X_y=True)
SPARSE = sp.csr_matrix(DIGITS)
WITH_GAPS = np.where(np.random.default_rng(0).random(IRIS.shape) < 0.1, np.nan, IRIS)
SEVERAL = np.column_stack([SPECIES, TWO == "yes", DIGIT[:150]])
SEVERAL_NUMBERS = np.column_stack([PROGRESSION, DIABETES[:, 2], -PROGRESSION])
WEIGHTS = np.random.default_rng(1).integers(1, 4, 150) / 3.0
FRAME = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"])


def _with_labels(n: int = 200) -> pd.DataFrame:
    random = np.random.default_rng(2)
    colours = np.array([None, "red", "green", "blue", "grey"], dtype=object)
    many = random.integers(0, 60, n).astype(float)
    many[::17] = np.nan
    return pd.DataFrame(
        {
            "size": random.normal(size=n),
            "colour": pd.Categorical(colours[random.integers(0, 5, n)]),
            "place": pd.Categorical(many),
            "weight": np.where(random.random(n) < 0.1, np.nan, random.normal(size=n)),
        }
    )


LABELS = _with_labels()
COLOURED = np.where(
    (LABELS["colour"].isin(["red", "blue"]).to_numpy()) ^ (LABELS["size"] > 0.3), "warm", "cold"
)
PLACED = LABELS["place"].astype(float).fillna(7.0).to_numpy() % 5 + LABELS["size"].to_numpy()
CODED = np.column_stack([LABELS["place"].astype(float), LABELS["size"], LABELS["weight"]])


def linear_kernel(A: Any, B: Any) -> Any:
    return np.asarray(A @ B.T)


@dataclass(frozen=True)
class Specimen:
    """An unfitted model of scikit-learn's, and what it is fitted to."""

    name: str
    model: Any
    X: Any
    y: Any
    weight: Any = None

    @functools.cached_property
    def fitted(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.weight is None:
                return self.model.fit(self.X, self.y)
            return self.model.fit(self.X, self.y, sample_weight=self.weight)

    @property
    def rows(self) -> Any:
        """Rows to ask about: those of the training, and some beside them."""
        if sp.issparse(self.X):
            return sp.vstack([self.X, self.X[:50] * 1.1]).tocsr()
        if isinstance(self.X, pd.DataFrame):
            return self.X
        if getattr(self.model, "kernel", None) == "precomputed":
            return self.X
        random = np.random.default_rng(3)
        spread = np.nanstd(self.X, axis=0) + 1e-3
        beside = self.X[random.integers(0, len(self.X), 200)]
        return np.vstack([self.X, beside + random.normal(size=beside.shape) * spread])


def _kernel_machines() -> list[Specimen]:
    gram = IRIS @ IRIS.T
    found = [
        Specimen(
            f"{kind.__name__} {getattr(kernel, '__name__', kernel)}",
            kind(kernel=kernel, **own),
            IRIS,
            y,
        )
        for kind, y, own in (
            (SVC, NAMES, {"C": 2.0}),
            (NuSVC, NAMES, {"nu": 0.3}),
            (SVR, IRIS[:, 0] * 3, {"epsilon": 0.05}),
            (NuSVR, IRIS[:, 0] * 3, {}),
            (OneClassSVM, None, {"nu": 0.2}),
        )
        for kernel in ("linear", "poly", "rbf", "sigmoid", linear_kernel)
    ]
    return [
        *found,
        Specimen("SVC two classes", SVC(gamma=0.3), IRIS, TWO),
        Specimen("SVC pairs", SVC(decision_function_shape="ovo"), DIGITS, DIGIT),
        Specimen("SVC ties", SVC(break_ties=True), DIGITS, DIGIT),
        Specimen("SVC balanced", SVC(class_weight="balanced"), IRIS, TWO),
        Specimen("SVC weights", SVC(), IRIS, NAMES, WEIGHTS),
        Specimen("SVC frame", SVC(), FRAME, NAMES),
        Specimen("SVC precomputed", SVC(kernel="precomputed"), gram, NAMES),
        Specimen("SVR precomputed", SVR(kernel="precomputed"), gram, IRIS[:, 0]),
        Specimen("SVC sparse", SVC(), SPARSE, DIGIT),
        Specimen("SVC sparse two", SVC(kernel="linear"), SPARSE, DIGIT > 4),
        Specimen("SVR sparse", SVR(), SPARSE, DIGIT),
        Specimen("OneClassSVM sparse", OneClassSVM(nu=0.3), SPARSE, None),
        Specimen("SVR no support", SVR(epsilon=1e3), IRIS, IRIS[:, 0]),
        Specimen("NuSVC two", NuSVC(nu=0.3, class_weight="balanced"), IRIS, TWO),
        Specimen("NuSVC many", NuSVC(nu=0.2), DIGITS, DIGIT),
    ]


def _linear_machines() -> list[Specimen]:
    return [
        Specimen("LinearSVC", LinearSVC(), IRIS, NAMES),
        Specimen("LinearSVC two", LinearSVC(C=3.0, penalty="l1"), IRIS, TWO),
        Specimen("LinearSVC joint", LinearSVC(multi_class="crammer_singer"), IRIS, NAMES),
        Specimen("LinearSVC without", LinearSVC(fit_intercept=False), IRIS, NAMES),
        Specimen("LinearSVC sparse", LinearSVC(), SPARSE, DIGIT),
        Specimen("LinearSVC frame", LinearSVC(), FRAME, TWO),
        Specimen("LinearSVR", LinearSVR(C=10.0), DIABETES, PROGRESSION),
        Specimen("LinearSVR without", LinearSVR(fit_intercept=False), IRIS, IRIS[:, 0]),
        Specimen("Perceptron", Perceptron(random_state=0), IRIS, NAMES),
        Specimen("Perceptron two", Perceptron(penalty="l2", random_state=0), IRIS, TWO),
        Specimen("Perceptron sparse", Perceptron(random_state=0), SPARSE, DIGIT),
    ]


def _trees() -> list[Specimen]:
    best_first = {"max_leaf_nodes": 12, "random_state": 0}
    return [
        Specimen("tree", DecisionTreeClassifier(random_state=0), IRIS, NAMES),
        Specimen("tree entropy", DecisionTreeClassifier(criterion="entropy", max_depth=4), DIGITS,
                 DIGIT),
        Specimen("tree best first", DecisionTreeClassifier(**best_first), DIGITS, DIGIT),
        Specimen("tree gaps", DecisionTreeClassifier(random_state=0), WITH_GAPS, NAMES),
        Specimen("tree pruned", DecisionTreeClassifier(ccp_alpha=0.01), IRIS, NAMES),
        Specimen("tree outputs", DecisionTreeClassifier(max_depth=4), IRIS, SEVERAL),
        Specimen("tree weights", DecisionTreeClassifier(max_depth=3), IRIS, NAMES, WEIGHTS),
        Specimen("tree balanced", DecisionTreeClassifier(class_weight="balanced", max_depth=2),
                 IRIS, TWO),
        Specimen("tree sparse", DecisionTreeClassifier(max_depth=6), SPARSE, DIGIT),
        Specimen("tree frame", DecisionTreeClassifier(max_depth=3), FRAME, NAMES),
        Specimen("tree stump", DecisionTreeClassifier(max_depth=1), IRIS, TWO),
        Specimen("tree leaf", DecisionTreeClassifier(), IRIS, np.full(150, "only")),
        Specimen("regression tree", DecisionTreeRegressor(random_state=0), DIABETES, PROGRESSION),
        Specimen("regression tree absolute", DecisionTreeRegressor(
            criterion="absolute_error", max_depth=4), DIABETES, PROGRESSION),
        Specimen("regression tree best first", DecisionTreeRegressor(**best_first), DIABETES,
                 PROGRESSION),
        Specimen("regression tree outputs", DecisionTreeRegressor(max_depth=5), DIABETES,
                 SEVERAL_NUMBERS),
        Specimen("regression tree gaps", DecisionTreeRegressor(max_depth=5), WITH_GAPS, IRIS[:, 0]),
        Specimen("extra tree", ExtraTreeClassifier(random_state=0), IRIS, NAMES),
        Specimen("extra regression tree", ExtraTreeRegressor(random_state=0), DIABETES,
                 PROGRESSION),
    ]  # fmt: skip


def _forests() -> list[Specimen]:
    own = {"n_estimators": 12, "random_state": 0}
    return [
        Specimen("forest", RandomForestClassifier(**own), IRIS, NAMES),
        Specimen("forest shallow", RandomForestClassifier(max_depth=3, **own), DIGITS, DIGIT),
        Specimen("forest balanced", RandomForestClassifier(
            class_weight="balanced", max_depth=2, **own), IRIS, TWO),
        Specimen("forest gaps", RandomForestClassifier(**own), WITH_GAPS, NAMES),
        Specimen("forest outputs", RandomForestClassifier(max_depth=4, **own), IRIS, SEVERAL),
        Specimen("forest out of bag", RandomForestClassifier(
            n_estimators=40, oob_score=True, random_state=0), FRAME, NAMES),
        Specimen("forest sparse", RandomForestClassifier(max_depth=5, **own), SPARSE, DIGIT),
        Specimen("forest regression", RandomForestRegressor(**own), DIABETES, PROGRESSION),
        Specimen("forest regression outputs", RandomForestRegressor(max_depth=6, **own), DIABETES,
                 SEVERAL_NUMBERS),
        Specimen("forest poisson", RandomForestRegressor(
            criterion="poisson", max_depth=4, **own), DIABETES, PROGRESSION),
        Specimen("extra trees", ExtraTreesClassifier(max_depth=5, **own), IRIS, NAMES),
        Specimen("extra trees regression", ExtraTreesRegressor(**own), DIABETES, PROGRESSION),
    ]  # fmt: skip


def _boosting() -> list[Specimen]:
    own = {"n_estimators": 15, "random_state": 0}
    return [
        Specimen("adaboost", AdaBoostClassifier(**own), IRIS, NAMES),
        Specimen("adaboost two", AdaBoostClassifier(learning_rate=0.5, **own), FRAME, TWO),
        Specimen("adaboost trees", AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=3), **own), DIGITS, DIGIT),
        Specimen("adaboost perfect", AdaBoostClassifier(DecisionTreeClassifier(), **own), IRIS,
                 NAMES),
        Specimen("adaboost machines", AdaBoostClassifier(SVC(), n_estimators=4), IRIS, NAMES),
        Specimen("adaboost foreign", AdaBoostClassifier(LogisticRegression(), n_estimators=4),
                 IRIS, NAMES),
        Specimen("adaboost sparse", AdaBoostClassifier(**own), SPARSE, DIGIT > 4),
        Specimen("adaboost regression", AdaBoostRegressor(**own), DIABETES, PROGRESSION),
        Specimen("adaboost regression machines", AdaBoostRegressor(LinearSVR(), n_estimators=4),
                 DIABETES, PROGRESSION),
        Specimen("adaboost regression foreign", AdaBoostRegressor(Ridge(), n_estimators=4),
                 DIABETES, PROGRESSION),
        Specimen("boosting", GradientBoostingClassifier(**own), IRIS, NAMES),
        Specimen("boosting two", GradientBoostingClassifier(subsample=0.7, **own), FRAME, TWO),
        Specimen("boosting exponential", GradientBoostingClassifier(loss="exponential", **own),
                 IRIS, TWO),
        Specimen("boosting zero", GradientBoostingClassifier(init="zero", **own), IRIS, NAMES),
        Specimen("boosting dummy", GradientBoostingClassifier(
            init=DummyClassifier(strategy="uniform"), **own), IRIS, NAMES),
        Specimen("boosting sparse", GradientBoostingClassifier(n_estimators=4), SPARSE, DIGIT),
        *(
            Specimen(f"boosting {loss}", GradientBoostingRegressor(loss=loss, alpha=0.8, **own),
                     DIABETES, PROGRESSION)
            for loss in ("squared_error", "absolute_error", "huber", "quantile")
        ),
        Specimen("boosting stopped", GradientBoostingRegressor(
            n_iter_no_change=2, n_estimators=200), DIABETES, PROGRESSION),
        Specimen("boosting constant", GradientBoostingRegressor(
            init=DummyRegressor(strategy="constant", constant=100.0), **own), DIABETES,
            PROGRESSION),
    ]  # fmt: skip


def _hist_boosting() -> list[Specimen]:
    own = {"max_iter": 12, "random_state": 0, "min_samples_leaf": 5}
    return [
        Specimen("hist", HistGradientBoostingClassifier(**own), IRIS, NAMES),
        Specimen("hist two", HistGradientBoostingClassifier(**own), FRAME, TWO),
        Specimen("hist gaps", HistGradientBoostingClassifier(**own), WITH_GAPS, NAMES),
        Specimen("hist weights", HistGradientBoostingClassifier(class_weight="balanced", **own),
                 IRIS, NAMES, WEIGHTS),
        Specimen("hist labels", HistGradientBoostingClassifier(
            categorical_features="from_dtype", **own), LABELS, COLOURED),
        Specimen("hist labels regression", HistGradientBoostingRegressor(**own), LABELS, PLACED),
        Specimen("hist codes", HistGradientBoostingRegressor(categorical_features=[0], **own),
                 CODED, PLACED),
        Specimen("hist stopped", HistGradientBoostingRegressor(
            early_stopping=True, random_state=0), DIABETES, PROGRESSION),
        *(
            Specimen(f"hist {loss}", HistGradientBoostingRegressor(loss=loss, quantile=0.7, **own),
                     DIABETES, PROGRESSION)
            for loss in ("squared_error", "absolute_error", "poisson", "gamma", "quantile")
        ),
    ]  # fmt: skip


_FAMILIES: tuple[Callable[[], list[Specimen]], ...] = (
    _kernel_machines, _linear_machines, _trees, _forests, _boosting, _hist_boosting,
)  # fmt: skip
MODELS = [specimen for family in _FAMILIES for specimen in family()]
