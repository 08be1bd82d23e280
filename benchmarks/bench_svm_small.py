"""SVC on tables of a few hundred rows, where every microsecond of overhead shows."""

from __future__ import annotations

import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

import margrove
from compare import Case

ROUNDS = 50


def load(loader):
    X, y = loader(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def fits(cls):
    def run(data):
        for _ in range(ROUNDS):
            model = cls().fit(*data)
        return model

    return run


def quality(model, data):
    proof = margrove.certificate(model, *data)
    return {"KKT violation": proof.violation, "train accuracy": model.score(*data)}


CASES = [
    Case(
        name=name,
        data=lambda loader=loader: load(loader),
        ours={"margrove": fits(margrove.SVC)},
        peers={"LIBSVM": fits(sklearn.svm.SVC)},
        quality=quality,
        decisive="train accuracy",
        note=f"Seconds for {ROUNDS} fits with default parameters, standardised features.",
        repeats=9,
    )
    for name, loader in (
        ("iris 150 x 4", load_iris),
        ("breast cancer 569 x 30", load_breast_cancer),
    )
]
