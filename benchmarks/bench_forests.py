"""Forests of 100 trees on all cores, against scikit-learn's and Intel's for scikit-learn.

Compared at equal test error: a fifth of the rows is held out. Intel's bins numbers (256 bins by
default) where ours and scikit-learn's are exact; a row of ours that bins as well is there where
columns have more values than that. Labels of adult are taken as they are by ours and coded as
numbers for the others.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial

import numpy as np
import sklearn.ensemble
from sklearn.model_selection import train_test_split

import margrove
from compare import Case
from data import FOLDER, HAS_REAL, ORIGIN, covtype

N_TREES = 100


@lru_cache(maxsize=1)
def parted(name, n_rows=None):
    """(X, y, X of the test, y of the test), with adult's strings twice: as they are, and coded."""
    if name == "covtype":
        X, y = covtype(n_rows)
    else:
        sys.path.insert(0, FOLDER)
        import load

        X, y = load.load(name, codes=True) if name == "diamonds" else load.load(name)
    y = np.asarray(y)
    if name == "adult":
        coded = np.ascontiguousarray(load.load(name, codes=True)[0], dtype=np.float64)
        rows = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0)
        frames = [X.iloc[own] for own in rows]
        return frames, [coded[own] for own in rows], [y[own] for own in rows]
    X = np.ascontiguousarray(X, dtype=np.float64)
    if name == "mnist":
        X, y = X[:n_rows], y[:n_rows]
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    both = [np.ascontiguousarray(train), np.ascontiguousarray(test)]
    return both, both, [y_train, y_test]


def kind(library, y, extra=False):
    family = "ExtraTrees" if extra else "RandomForest"
    return getattr(library, family + ("Regressor" if y.dtype.kind == "f" else "Classifier"))


def ours(max_bins, extra, data):
    frames, _, (y, _) = data
    return kind(margrove, y, extra)(N_TREES, random_state=0, max_bins=max_bins).fit(frames[0], y)


def scikit_learn(extra, data):
    _, coded, (y, _) = data
    model = kind(sklearn.ensemble, y, extra)(N_TREES, random_state=0, n_jobs=-1)
    return model.fit(coded[0], y)


def intel(extra, data):
    import sklearnex.ensemble

    _, coded, (y, _) = data
    model = kind(sklearnex.ensemble, y, extra)(N_TREES, random_state=0, n_jobs=-1)
    return model.fit(coded[0], y)


def quality(model, data):
    frames, coded, (_, y) = data
    X = frames[1] if isinstance(model, margrove.ensemble.forest.forest.Forest) else coded[1]
    return {"test score": model.score(X, y), "model MB": megabytes(model)}


def megabytes(model):
    """The arrays of the trees."""
    if isinstance(model, margrove.ensemble.forest.forest.Forest):
        return sum(tree.nbytes for tree in model.trees_) / 1e6
    if type(model).__module__.startswith("sklearn."):
        states = [tree.tree_.__getstate__() for tree in model.estimators_]
        return sum(own["nodes"].nbytes + own["values"].nbytes for own in states) / 1e6
    return float("nan")  # not to be seen


@lru_cache(maxsize=1)
def grown(name, n_rows, n_wanted):
    data = parted(name, n_rows)
    both = ours(None, False, data), scikit_learn(False, data)
    rng = np.random.default_rng(0)
    X, y = np.asarray(data[0][1]), data[2][1]
    rows = rng.integers(0, len(y), n_wanted)
    new = np.ascontiguousarray(X[rows])
    for _ in range(2):  # two values of another row each: no row is there twice
        column = rng.integers(0, X.shape[1], n_wanted)
        new[np.arange(n_wanted), column] = X[rng.integers(0, len(y), n_wanted), column]
    return new, y[rows], *both


def predict(which, data):
    return data[2 + which].predict(data[0])


def quality_of_predictions(found, data):
    y = data[1]
    if y.dtype.kind == "f":
        return {"score": 1.0 - float(np.mean((found - y) ** 2) / y.var())}
    return {"score": float(np.mean(found == y))}


SIZES = {
    "letter 20000 x 16": ("letter", None, 5),
    "covtype 200000 x 54": ("covtype", 200_000, 1),
    "adult 48842 x 14": ("adult", None, 3),
    "california 20640 x 8, regression": ("california", None, 3),
    "mnist 20000 x 784": ("mnist", 20_000, 3),
    "covtype 581012 x 54": ("covtype", None, 1),
}
EXTRA = ("letter 20000 x 16", "california 20640 x 8, regression", "covtype 200000 x 54")


def cases():
    for title, (name, n_rows, repeats) in SIZES.items():
        if name != "covtype" and not HAS_REAL:
            continue
        mine = {"margrove": partial(ours, None, False)}
        if name == "california":
            mine["margrove, 256 bins"] = partial(ours, 256, False)
        yield Case(
            name=f"random forest, {title}",
            data=partial(parted, name, n_rows),
            ours=mine,
            peers={
                "scikit-learn": partial(scikit_learn, False),
                "scikit-learn-intelex": partial(intel, False),
            },
            quality=quality,
            decisive="test score",
            allowance=0.005,
            note=ORIGIN,
            repeats=repeats,
        )
    for title in EXTRA:
        name, n_rows, repeats = SIZES[title]
        if name != "covtype" and not HAS_REAL:
            continue
        yield Case(
            name=f"extra trees, {title}",
            data=partial(parted, name, n_rows),
            ours={"margrove": partial(ours, None, True)},
            peers={"scikit-learn": partial(scikit_learn, True)},
            quality=quality,
            decisive="test score",
            allowance=0.005,
            note=ORIGIN,
            repeats=repeats,
        )
    for name, n_rows in {"letter": None, "california": None, "covtype": 100_000}.items():
        if name != "covtype" and not HAS_REAL:
            continue
        yield Case(
            name=f"predicting 100000 rows of {name} by 100 trees",
            data=partial(grown, name, n_rows, 100_000),
            ours={"margrove": partial(predict, 0)},
            peers={"scikit-learn": partial(predict, 1)},
            quality=quality_of_predictions,
            decisive="score",
            allowance=0.005,
            note=ORIGIN,
            repeats=3,
        )


CASES = list(cases())
