"""Bagging against scikit-learn's, around our estimators and around its own.

The first peer is the same work: scikit-learn's bagging of our estimator. The second is what people
run today. Accuracy is that of rows held out.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial

import numpy as np
import sklearn.ensemble
import sklearn.svm
import sklearn.tree
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import margrove
from compare import Case
from data import FOLDER, HAS_REAL, ORIGIN
from margrove.ensemble.bagging.estimators import BaggingClassifier


@lru_cache(maxsize=2)
def letter(n_rows=None):
    """Letters, 20000 x 16, 26 classes: n_rows of them to learn from, a fifth held out."""
    if HAS_REAL:
        sys.path.insert(0, FOLDER)
        import load

        X, y = load.load("letter")
        X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(y)
    else:
        X, y = make_classification(
            20_000, 16, n_informative=12, n_classes=26, n_clusters_per_class=1, random_state=0
        )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    return X[:n_rows], y[:n_rows], X_test, y_test


def ours(estimator, settings, data):
    return BaggingClassifier(estimator(), random_state=0, **settings).fit(*data[:2])


def peer(estimator, settings, data):
    settings = {"random_state": 0} | settings
    return sklearn.ensemble.BaggingClassifier(estimator(), **settings).fit(*data[:2])


def quality(model, data):
    return {"test accuracy": model.score(*data[2:])}


KINDS = {
    "SVC": (margrove.SVC, sklearn.svm.SVC, 2000, 5),
    "decision trees": (
        margrove.DecisionTreeClassifier,
        sklearn.tree.DecisionTreeClassifier,
        None,
        3,
    ),
}


def cases():
    for title, (own, theirs, n_rows, repeats) in KINDS.items():
        for settings in ({"n_estimators": 20}, {"n_estimators": 20, "n_jobs": -1}):
            workers = ", all cores" if "n_jobs" in settings else ""
            yield Case(
                name=f"letter {n_rows or 16_000} x 16, bagging of 20 {title}{workers}",
                data=partial(letter, n_rows),
                ours={"margrove": partial(ours, own, settings)},
                peers={
                    "scikit-learn's bagging of ours": partial(peer, own, settings),
                    "scikit-learn": partial(peer, theirs, settings),
                },
                quality=quality,
                decisive="test accuracy",
                allowance=0.01,
                note=ORIGIN,
                repeats=repeats,
            )


CASES = list(cases())
