"""Gradient boosting against LightGBM, XGBoost and scikit-learn: 100 rounds of 31 leaves, 255 bins.

Settings are LightGBM's defaults, for all. Quality is the loss on a fifth of the rows that is held
back, for tables of less than 50,000 rows the mean over five such splits (one alone tells equal
models apart by 1 %); it may be 1 % worse than a peer's. Frames with categories go to all as they
are, but for columns of more than 255 categories, which scikit-learn takes as numbers.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial

import lightgbm
import numpy as np
import sklearn.ensemble
import xgboost
from sklearn.base import clone
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split

import margrove
from compare import Case
from data import FOLDER, HAS_REAL, covtype

ROUNDS = 100
CORES = 2


@lru_cache(maxsize=1)
def parted(name):
    """(X, X of the test, y, y of the test); classes are numbers."""
    if name.startswith("covtype"):
        X, y = covtype(None if name == "covtype" else int(name.removeprefix("covtype ")))
        y = np.unique(y, return_inverse=True)[1]
    else:
        sys.path.insert(0, FOLDER)
        import load

        X, y = load.load(name)
        y = np.asarray(y)
        if name not in NUMBERS:
            y = np.unique(y, return_inverse=True)[1]
    if not hasattr(X, "columns"):
        X = np.ascontiguousarray(X, dtype=np.float64)
    return train_test_split(X, y, test_size=0.2, random_state=0)


def other_splits(data):
    X, X_test, y, y_test = data
    if hasattr(X, "columns"):
        import pandas as pd

        whole = pd.concat([X, X_test])
    else:
        whole = np.concatenate([X, X_test])
    targets = np.concatenate([y, y_test])
    for seed in range(1, 5):
        yield train_test_split(whole, targets, test_size=0.2, random_state=seed)


NUMBERS = ("california", "flights")
MANY_ROWS = 50_000


def is_regression(data):
    return data[2].dtype.kind == "f"


def ours(data):
    kind = "Regressor" if is_regression(data) else "Classifier"
    model = getattr(margrove, f"HistGradientBoosting{kind}")
    return model(max_iter=ROUNDS, early_stopping=False, n_jobs=CORES).fit(data[0], data[2])


def light(data):
    kind = "Regressor" if is_regression(data) else "Classifier"
    model = getattr(lightgbm, f"LGBM{kind}")
    return model(n_estimators=ROUNDS, n_jobs=CORES, verbose=-1).fit(data[0], data[2])


def extreme(data):
    kind = "Regressor" if is_regression(data) else "Classifier"
    model = getattr(xgboost, f"XGB{kind}")(
        n_estimators=ROUNDS,
        learning_rate=0.1,
        max_leaves=31,
        max_depth=0,
        grow_policy="lossguide",
        tree_method="hist",
        max_bin=255,
        reg_lambda=0.0,
        enable_categorical=True,
        n_jobs=CORES,
    )
    return model.fit(data[0], data[2])


class Numbered:
    """scikit-learn's, with columns of too many categories as numbers."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model.fit(few_categories(X), y)
        return self

    def copy(self):
        return Numbered(clone(self.model))

    def __getattr__(self, name):
        return lambda X: getattr(self.model, name)(few_categories(X))


def few_categories(X):
    if not hasattr(X, "columns"):
        return X
    many = {
        name: X[name].cat.codes
        for name in X.columns
        if hasattr(X[name], "cat") and X[name].nunique() > 255
    }
    return X.assign(**many)


def scikit(data):
    kind = "Regressor" if is_regression(data) else "Classifier"
    model = getattr(sklearn.ensemble, f"HistGradientBoosting{kind}")
    return Numbered(model(max_iter=ROUNDS, early_stopping=False)).fit(data[0], data[2])


def loss_on_test(model, data):
    _, X, _, y = data
    if is_regression(data):
        return mean_squared_error(y, model.predict(X))
    return log_loss(y, model.predict_proba(X), labels=np.unique(y))


def quality(model, data):
    losses = [loss_on_test(model, data)]
    if len(data[2]) < MANY_ROWS:
        for other in other_splits(data):
            again = model.copy() if isinstance(model, Numbered) else clone(model)
            losses.append(loss_on_test(again.fit(other[0], other[2]), other))
    loss = np.mean(losses)
    return {"test loss": loss, "log test loss": float(np.log(loss))}


PLAN = {
    "california 16512 x 8": ("california", 7),
    "higgs_11k 8787 x 28": ("higgs_11k", 7),
    "adult 39073 x 14, 8 of them categories": ("adult", 7),
    "bank_marketing 36168 x 16, 9 of them categories": ("bank_marketing", 7),
    "letter 16000 x 16, 26 classes": ("letter", 3),
    "flights 261876 x 10, 4 of them categories": ("flights", 3),
    "covtype 160000 x 54, 7 classes": ("covtype 200000", 3),
    "covtype 464809 x 54, 7 classes": ("covtype", 1),
}

CASES = [
    Case(
        name=f"100 rounds, {title}",
        data=partial(parted, name),
        ours={"margrove": ours},
        peers={"LightGBM": light, "XGBoost": extreme, "scikit-learn": scikit},
        quality=quality,
        decisive="-log test loss",
        allowance=0.01,
        repeats=repeats,
    )
    for title, (name, repeats) in PLAN.items()
    if HAS_REAL
]


def classic(library, data):
    kind = "Regressor" if is_regression(data) else "Classifier"
    model = getattr(library, f"GradientBoosting{kind}")
    return model(random_state=0).fit(data[0], data[2])


CASES += [
    Case(
        name=f"Classic gradient boosting, 100 rounds of depth 3, {title}",
        data=partial(parted, name),
        ours={"margrove": partial(classic, margrove)},
        peers={"scikit-learn": partial(classic, sklearn.ensemble)},
        quality=quality,
        decisive="-log test loss",
        allowance=0.01,
        repeats=3,
    )
    for title, name in {
        "california 16512 x 8": "california",
        "spambase 3680 x 57": "spambase",
        "satimage 5148 x 36, 6 classes": "satimage",
    }.items()
    if HAS_REAL
]
