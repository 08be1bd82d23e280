"""Perceptron against scikit-learn's: ten epochs, each visiting every row once for every class."""

from __future__ import annotations

from functools import partial

from sklearn.linear_model import Perceptron as SklearnPerceptron

from compare import Case
from data import ORIGIN, covtype, news20
from margrove import Perceptron

EPOCHS = {"max_iter": 10, "tol": None}


def quality(model, data):
    X, y = data
    return {"train accuracy": model.score(X, y), "epochs": model.n_iter_}


def fit(cls, n_jobs, data):
    return cls(n_jobs=n_jobs, **EPOCHS).fit(*data)


def case(name, data, n_jobs, allowance):
    return Case(
        name=f"{name}, n_jobs={n_jobs}",
        data=data,
        ours={"margrove": partial(fit, Perceptron, n_jobs)},
        peers={"scikit-learn": partial(fit, SklearnPerceptron, n_jobs)},
        quality=quality,
        decisive="train accuracy",
        allowance=allowance,
        note="Ten epochs of both; the last iterate of a perceptron is noisy, hence the allowance "
        f"of {allowance:g}. {ORIGIN}",
        repeats=3,
    )


CASES = [
    case("covtype 581012 x 54, 7 classes", covtype, 1, 0.15),
    case("covtype 581012 x 54, 7 classes", covtype, 2, 0.15),
    case("news20 15935 x 62061, 20 classes", news20, 1, 0.01),
    case("news20 15935 x 62061, 20 classes", news20, 2, 0.01),
]
