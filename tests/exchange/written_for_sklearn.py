"""A program that knows scikit-learn only: `python written_for_sklearn.py SEED`, or run by margrove.

Every family goes through the tools that scikit-learn's users put around estimators. It prints one
JSON object of scores.
"""

import json
import sys
import warnings

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    permutation_importance,
)
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text, plot_tree

warnings.simplefilter("ignore")  # deprecations of either library
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 0

CLASSIFIERS = {
    "SVC": (SVC(), {"C": [0.1, 1.0]}),
    "NuSVC": (NuSVC(nu=0.2), {"nu": [0.1, 0.2]}),
    "LinearSVC": (LinearSVC(random_state=SEED), {"C": [0.01, 1.0]}),
    "Perceptron": (Perceptron(random_state=SEED), {"penalty": [None, "l2"]}),
    "DecisionTree": (DecisionTreeClassifier(max_depth=4, random_state=SEED), {"max_depth": [2, 4]}),
    "RandomForest": (RandomForestClassifier(30, random_state=SEED), {"max_depth": [3, None]}),
    "ExtraTrees": (ExtraTreesClassifier(30, random_state=SEED), {"max_depth": [3, None]}),
    "Bagging": (BaggingClassifier(n_estimators=20, random_state=SEED), {"max_samples": [0.5, 1.0]}),
    "AdaBoost": (
        AdaBoostClassifier(n_estimators=30, random_state=SEED),
        {"n_estimators": [10, 30]},
    ),
    "GradientBoosting": (
        GradientBoostingClassifier(n_estimators=30, random_state=SEED),
        {"learning_rate": [0.05, 0.1]},
    ),
    "HistGradientBoosting": (
        HistGradientBoostingClassifier(max_iter=30, random_state=SEED),
        {"max_leaf_nodes": [8, 31]},
    ),
}
REGRESSORS = {
    "SVR": SVR(C=100.0),
    "NuSVR": NuSVR(C=100.0),
    "LinearSVR": LinearSVR(C=10.0, random_state=SEED, max_iter=10_000),
    "DecisionTree": DecisionTreeRegressor(max_depth=3, random_state=SEED),
    "RandomForest": RandomForestRegressor(30, random_state=SEED),
    "ExtraTrees": ExtraTreesRegressor(30, random_state=SEED),
    "Bagging": BaggingRegressor(n_estimators=20, random_state=SEED),
    "AdaBoost": AdaBoostRegressor(n_estimators=30, random_state=SEED),
    "GradientBoosting": GradientBoostingRegressor(n_estimators=50, random_state=SEED),
    "HistGradientBoosting": HistGradientBoostingRegressor(max_iter=50, random_state=SEED),
}
scores: dict[str, float] = {}


def customers(rng):
    """A table with numbers and labels, and who buys."""
    n = 400
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(10, 0.5, n),
            "city": rng.choice(["Aachen", "Bonn", "Cologne"], n),
        }
    )
    taste = 0.05 * (table["age"] - 45) + (table["city"] == "Bonn") * 2.0 + rng.normal(0, 0.7, n)
    return table, np.where(taste > 0.5, "buys", "leaves")


def prepared(model):
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["age", "income"]), ("labels", OneHotEncoder(), ["city"])]
    )
    return Pipeline([("columns", columns), ("model", model)])


def classify(name, model, grid):
    table, labels = customers(np.random.default_rng(0))
    found = cross_val_score(prepared(model), table, labels, cv=4)
    scores[f"{name} cross_val_score"] = found.mean()
    named = {f"model__{key}": values for key, values in grid.items()}
    search = GridSearchCV(prepared(model), named, cv=3).fit(table, labels)
    scores[f"{name} GridSearchCV"] = search.best_score_

    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, np.random.default_rng(SEED).permutation(X.shape[1])]  # ties go by the order of columns
    X, kept = StandardScaler().fit_transform(X), slice(0, 400)
    fitted = model.fit(X[kept], y[kept])
    scores[f"{name} score"] = fitted.score(X[400:], y[400:])
    importance = permutation_importance(fitted, X[400:], y[400:], n_repeats=3, random_state=0)
    scores[f"{name} permutation_importance"] = importance.importances_mean.sum()
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X[kept], y[kept])
    scores[f"{name} CalibratedClassifierCV"] = calibrated.score(X[400:], y[400:])
    others = [("model", model), ("logistic", LogisticRegression())]
    stacked = StackingClassifier(others, cv=3).fit(X[kept], y[kept])
    scores[f"{name} StackingClassifier"] = stacked.score(X[400:], y[400:])
    voting = VotingClassifier(others).fit(X[kept], y[kept])
    scores[f"{name} VotingClassifier"] = voting.score(X[400:], y[400:])
    unknown = np.where(np.arange(400) % 3 == 0, y[kept], -1)
    if hasattr(model, "predict_proba"):
        taught = SelfTrainingClassifier(model, max_iter=2).fit(X[kept], unknown)
        scores[f"{name} SelfTrainingClassifier"] = taught.score(X[400:], y[400:])
        PartialDependenceDisplay.from_estimator(fitted, X[:50], [0], grid_resolution=5)
    if hasattr(fitted, "coef_") or hasattr(fitted, "feature_importances_"):
        chosen = RFE(model, n_features_to_select=5, step=5).fit(X[kept], y[kept])
        scores[f"{name} RFE"] = chosen.score(X[400:], y[400:])
    DecisionBoundaryDisplay.from_estimator(model.fit(X[kept, :2], y[kept]), X[:, :2])


def draw(model, X, y):
    """What scikit-learn shows of trees."""
    tree = model.fit(X, y)
    tree = tree.estimators_[0] if hasattr(tree, "estimators_") else tree
    plot_tree(tree, max_depth=1)
    assert "feature_" in export_text(tree)


for name, (model, grid) in CLASSIFIERS.items():
    classify(name, model, grid)
X, y = load_diabetes(return_X_y=True)
for name, model in REGRESSORS.items():
    found = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=4)
    scores[f"{name} regressor cross_val_score"] = found.mean()
    PartialDependenceDisplay.from_estimator(model.fit(X, y), X[:50], [2], grid_resolution=5)
for name in ("DecisionTree", "RandomForest", "ExtraTrees"):
    draw(CLASSIFIERS[name][0], *load_breast_cancer(return_X_y=True))
    draw(REGRESSORS[name], X, y)
inside = OneClassSVM(nu=0.2).fit(X[:300]).predict(X[300:])
scores["OneClassSVM predict"] = float((inside == 1).mean())
json.dump({key: float(value) for key, value in scores.items()}, sys.stdout, indent=1)
