"""Prediction of 5,000 rows by SVC, scikit-learn and oneDAL, in float64 and in float32."""

from __future__ import annotations

import numpy as np
import sklearn.svm

import margrove
from compare import Case
from data import KERNEL_PROBLEMS, ORIGIN, kernel_problem

try:
    import sklearnex.svm as one_dal_svm
except ImportError:
    one_dal_svm = None

ROWS = 5000


def load(name, kind):
    X, y, parameters = kernel_problem(name)
    X = X.astype(kind)
    parameters = parameters | {"C": min(parameters["C"], 32.0)}  # support vectors, not patience
    contestants = {"margrove": margrove.SVC, "LIBSVM": sklearn.svm.SVC}
    if one_dal_svm is not None:
        contestants["oneDAL"] = one_dal_svm.SVC
    if kind == np.float32:  # scikit-learn converts and would only measure that
        del contestants["LIBSVM"]
    models = {n: cls(**parameters).fit(X, y) for n, cls in contestants.items() if n != "LIBSVM"}
    if "LIBSVM" in contestants:
        models["LIBSVM"] = sklearn.svm.SVC(cache_size=4000, **parameters).fit(X, y)
    return np.ascontiguousarray(X[:ROWS]), y[:ROWS], models


def predict(name):
    return lambda data: data[2][name].predict(data[0])


def quality(labels, data):
    return {"train accuracy": float(np.mean(labels == data[1]))}


def cases():
    for name in KERNEL_PROBLEMS:
        if "C 1000" in name or "a9a" in name:  # the same support vectors; LIBSVM takes minutes
            continue
        for kind in (np.float64, np.float32):
            peers = {"oneDAL": predict("oneDAL")} if one_dal_svm is not None else {}
            if kind == np.float64:
                peers |= {"LIBSVM": predict("LIBSVM")}
            yield Case(
                name=f"{name}, {kind.__name__}",
                data=lambda name=name, kind=kind: load(name, kind),
                ours={"margrove": predict("margrove")},
                peers=peers,
                quality=quality,
                decisive="train accuracy",
                allowance=2e-3,
                note=f"{ROWS} rows. {ORIGIN}",
                repeats=7,
            )


CASES = list(cases())
