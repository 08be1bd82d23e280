"""One tree at full depth against scikit-learn's: fitting, predicting, and categories.

Numbers are compared at training accuracy (R^2 for regression), categories against one-hot columns
at five-fold accuracy. The classes of scikit-learn's tree have no threads; ours use all cores, so a
second row of ours uses one.
"""

from __future__ import annotations

import sys
import warnings
from functools import lru_cache, partial

import numpy as np
import sklearn.tree
from sklearn.base import is_classifier
from sklearn.compose import make_column_transformer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import margrove
from compare import Case
from data import FOLDER, HAS_REAL, ORIGIN, covtype

REGRESSIONS = ("california", "diamonds")


@lru_cache(maxsize=2)
def numbers(name, n_rows=None):
    if name == "iris":
        return margrove.datasets.load_iris(return_X_y=True)
    if name == "covtype":
        return covtype(n_rows)
    sys.path.insert(0, FOLDER)
    import load

    X, y = load.load(name, codes=True) if name == "diamonds" else load.load(name)
    return np.ascontiguousarray(X, dtype=np.float64), np.asarray(y)


@lru_cache(maxsize=1)
def labels(name):
    sys.path.insert(0, FOLDER)
    import load

    X, y = load.load(name)
    return X, np.asarray(y)


def ours(n_jobs, data):
    X, y = data
    kind = (
        margrove.DecisionTreeRegressor if y.dtype.kind == "f" else margrove.DecisionTreeClassifier
    )
    return kind(n_jobs=n_jobs).fit(X, y)


def peer(data):
    X, y = data
    tree = sklearn.tree
    kind = tree.DecisionTreeRegressor if y.dtype.kind == "f" else tree.DecisionTreeClassifier
    return kind(random_state=0).fit(X, y)


def one_hot():
    import pandas as pd

    def text(X):
        return [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer((encoder, text), remainder="passthrough"),
        sklearn.tree.DecisionTreeClassifier(random_state=0),
    )


def fit_one_hot(data):
    return one_hot().fit(*data)


def quality(model, data):
    return {"training score": model.score(*data), "leaves": float(model.get_n_leaves())}


def quality_of_labels(model, data):
    X, y = data
    fresh = one_hot() if hasattr(model, "steps") else margrove.DecisionTreeClassifier()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        score = float(cross_val_score(fresh, X, y, cv=folds).mean())
    tree = model[-1] if hasattr(model, "steps") else model
    return {"five-fold accuracy": score, "leaves": float(tree.get_n_leaves())}


@lru_cache(maxsize=1)
def grown(name, n_rows):
    X, y = numbers(name)
    both = ours(None, (X, y)), peer((X, y))
    rows = np.random.default_rng(0).integers(0, len(X), n_rows)
    return np.ascontiguousarray(X[rows]), y[rows], *both


def predict_ours(data):
    return data[2].predict(data[0])


def predict_peer(data):
    return data[3].predict(data[0])


def quality_of_predictions(found, data):
    if is_classifier(data[2]):
        return {"accuracy": float(np.mean(found == data[1]))}
    return {"accuracy": 1.0 - float(np.mean((found - data[1]) ** 2) / data[1].var())}


SIZES = {
    "iris 150 x 4": ("iris", None, 51),
    "letter 20000 x 16, 26 classes": ("letter", None, 9),
    "spambase 4601 x 57": ("spambase", None, 9),
    "covtype 200000 x 54": ("covtype", 200_000, 3),
    "covtype 581012 x 54": ("covtype", None, 3),
    "california 20640 x 8, regression": ("california", None, 9),
    "diamonds 53940 x 9, regression": ("diamonds", None, 5),
}


def cases():
    for title, (name, n_rows, repeats) in SIZES.items():
        if name not in ("iris", "covtype") and not HAS_REAL:
            continue
        yield Case(
            name=f"{title}, full depth",
            data=partial(numbers, name, n_rows),
            ours={"margrove": partial(ours, None), "margrove, one thread": partial(ours, 1)},
            peers={"scikit-learn": peer},
            quality=quality,
            decisive="training score",
            allowance=1e-9,
            note=ORIGIN,
            repeats=repeats,
        )
    for name in ("adult", "nursery") if HAS_REAL else ():
        yield Case(
            name=f"{name}, strings as they are against one-hot",
            data=partial(labels, name),
            ours={"margrove": partial(ours, None)},
            peers={"one-hot + scikit-learn": fit_one_hot},
            quality=quality_of_labels,
            decisive="five-fold accuracy",
            allowance=0.005,
            note=ORIGIN,
            repeats=3,
        )
    for name in ("letter", "california") if HAS_REAL else ():
        yield Case(
            name=f"predicting a million rows of {name}",
            data=partial(grown, name, 1_000_000),
            ours={"margrove": predict_ours},
            peers={"scikit-learn": predict_peer},
            quality=quality_of_predictions,
            decisive="accuracy",
            allowance=1e-6,
            note=ORIGIN,
            repeats=5,
        )


CASES = list(cases())
