"""AdaBoost with stumps, with trees of four levels and with large trees, against scikit-learn's.

Adult is given to both as numbers and one-hot columns.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial

import numpy as np
import sklearn.ensemble
import sklearn.tree
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import margrove
from compare import Case
from data import FOLDER, HAS_REAL, ORIGIN, covtype


@lru_cache(maxsize=1)
def parted(name):
    """(X, X of the test, y, y of the test)"""
    if name == "covtype":
        X, y = covtype(200_000)
    elif name == "synthetic":
        X, y = make_classification(100_000, 30, n_informative=15, random_state=0)
    elif name == "small":
        X, y = make_classification(625, 10, random_state=0)
    else:
        sys.path.insert(0, FOLDER)
        import load

        X, y = load.load(name)
    if name == "adult":
        import pandas as pd

        X = pd.get_dummies(X)
    X = np.ascontiguousarray(X, dtype=np.float64)
    parts = train_test_split(X, np.asarray(y), test_size=0.2, random_state=0)
    return [np.ascontiguousarray(own) for own in parts]


def boosted(library, rounds, settings, data):
    trees = margrove if library is margrove else sklearn.tree
    ensembles = margrove if library is margrove else sklearn.ensemble
    base = trees.DecisionTreeClassifier(random_state=0, **settings)
    return ensembles.AdaBoostClassifier(base, n_estimators=rounds).fit(data[0], data[2])


def quality(model, data):
    return {"test score": model.score(data[1], data[3])}


STUMPS, SMALL, LARGE = {"max_depth": 1}, {"max_depth": 4}, {"min_samples_leaf": 2}
PLAN = {
    "200 stumps, covtype 160000 x 54": ("covtype", 200, STUMPS, 1),
    "200 stumps, synthetic 80000 x 30": ("synthetic", 200, STUMPS, 1),
    "200 stumps, adult 39073 x 108": ("adult", 200, STUMPS, 1),
    "50 trees of depth 4, covtype 160000 x 54": ("covtype", 50, SMALL, 1),
    "50 trees of depth 4, synthetic 80000 x 30": ("synthetic", 50, SMALL, 1),
    "50 trees of depth 4, adult 39073 x 108": ("adult", 50, SMALL, 1),
    "100 large trees, letter 16000 x 16": ("letter", 100, LARGE, 3),
    "50 stumps, 500 x 10": ("small", 50, STUMPS, 15),
}

CASES = [
    Case(
        name=f"AdaBoost, {title}",
        data=partial(parted, name),
        ours={"margrove": partial(boosted, margrove, rounds, settings)},
        peers={"scikit-learn": partial(boosted, sklearn, rounds, settings)},
        quality=quality,
        decisive="test score",
        allowance=0.005,
        note=ORIGIN,
        repeats=repeats,
    )
    for title, (name, rounds, settings, repeats) in PLAN.items()
    if HAS_REAL or name not in ("adult", "letter")
]
