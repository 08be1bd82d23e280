"""Linear machines against LIBLINEAR through scikit-learn, at a relative suboptimality of 1e-3.

Each contestant gets the loosest tolerance of its ladder that brings the sum of the objectives of
its machines to within 1e-3 of the best known: the dual bound of a tight fit of ours. Where none
does within its time, the tightest is measured and its suboptimality shown. The intercept is
penalised as LIBLINEAR does (`intercept_scaling=1`), so that all solve the same problem.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import lru_cache, partial

import numpy as np
import scipy.sparse as sp
import sklearn.svm

import margrove
from compare import Case
from data import FOLDER, HAS_REAL, ORIGIN, covtype

GOAL = 1e-3
PATIENCE = 12.0  # seconds that a contestant may take for a rung of its ladder
OUR_LADDER = [3e-2, 1e-2, 3e-3, 1e-3, 3e-4]
LIBLINEAR_DUAL = [(0.1, 1000), (0.01, 1000), (1e-3, 1000)]
LIBLINEAR_PRIMAL = [(0.1, 1000), (0.01, 1000)]
FIFTY_EPOCHS = [(0.1, 50)]  # half a minute on covtype


def texts(name):
    from sklearn.feature_extraction.text import TfidfVectorizer

    sys.path.insert(0, FOLDER)
    import load

    found = load.load(name)
    X, y = found[0], found[1]
    return sp.csr_matrix(TfidfVectorizer().fit_transform(X)), np.asarray(y)


def table(name):
    sys.path.insert(0, FOLDER)
    import load

    if name == "covtype":
        X, y = covtype(scaled=True)
        return X, (y == 1).astype(int)
    if name in ("sms_spam", "clinc150"):
        return texts(name)
    X, y = load.load(name, dtype="float64", encode=True)
    return (sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)), np.asarray(y)


def objective(model, X, y, squared):
    """The sum over machines, intercept included."""
    coef, intercept = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    values = np.asarray(X @ coef.T) + intercept
    classes = np.unique(y)
    total = 0.5 * float((coef**2).sum()) + 0.5 * float(intercept @ intercept)
    for k in range(len(coef)):
        signs = np.where(y == (classes[1] if len(classes) == 2 else classes[k]), 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - signs * values[:, k])
        total += float((slack**2).sum() if squared else slack.sum())
    return total


def ours(data, tol):
    X, y, loss, _ = data[:4]
    return margrove.LinearSVC(loss=loss, tol=tol, intercept_scaling=1.0).fit(X, y)


def liblinear(data, dual, tol, max_iter):
    X, y, loss, _ = data[:4]
    model = sklearn.svm.LinearSVC(loss=loss, tol=tol, dual=dual, max_iter=max_iter, random_state=0)
    return model.fit(X, y)


def rung(fit, ladder, data):
    """The loosest setting that is good enough, else the tightest that is not too slow."""
    X, y, loss, best = data
    chosen = ladder[0]
    for setting in ladder:
        start = time.perf_counter()
        model = fit(data, *np.atleast_1d(setting).tolist())
        seconds = time.perf_counter() - start
        chosen = setting
        if objective(model, X, y, loss == "squared_hinge") <= best * (1 + GOAL):
            break
        if seconds > PATIENCE:
            break
    return chosen


@lru_cache(maxsize=1)
def load_case(name, loss):
    X, y = table(name)
    warnings.simplefilter("ignore")
    tight = margrove.LinearSVC(loss=loss, tol=2e-5, intercept_scaling=1.0).fit(X, y)
    data = (X, y, loss, float(tight._record.result.dual.sum()))
    settings = {"margrove": rung(ours, OUR_LADDER, data)}
    for dual in (True, False) if loss == "squared_hinge" else (True,):
        way = "dual" if dual else "primal"
        # LIBLINEAR takes its tolerance and its iterations as they come.
        fit = partial(_liblinear_at, dual)
        ladder = LIBLINEAR_DUAL if dual else LIBLINEAR_PRIMAL
        ladder = FIFTY_EPOCHS if dual and name == "covtype" else ladder
        settings[f"LIBLINEAR {way}"] = rung(fit, ladder, data)
    return (*data, settings)


def _liblinear_at(dual, data, tol, max_iter):
    return liblinear(data, dual, tol, int(max_iter))


def fit_ours(data):
    return ours(data, float(data[4]["margrove"]))


def fit_liblinear(dual, data):
    tol, max_iter = data[4]["LIBLINEAR dual" if dual else "LIBLINEAR primal"]
    return liblinear(data, dual, tol, max_iter)


def quality(model, data):
    X, y, loss, best = data[:4]
    reached = objective(model, X, y, loss == "squared_hinge")
    return {"suboptimality at most": reached / best - 1.0, "train accuracy": model.score(X, y)}


TABLES = {
    "news20 15935 x 62061, 20 classes": "news20",
    "sector 9619 x 55197, 105 classes": "sector",
    "covtype 581012 x 54, 2 classes": "covtype",
    "a9a 32561 x 123": "a9a",
    "w8a 49749 x 300": "w8a",
    "sms_spam, tf-idf": "sms_spam",
    "clinc150, tf-idf, 150 classes": "clinc150",
}


def cases():
    if not HAS_REAL:
        return
    for title, name in TABLES.items():
        for loss in ("hinge", "squared_hinge"):
            peers = {"LIBLINEAR dual": partial(fit_liblinear, True)}
            if loss == "squared_hinge":
                peers["LIBLINEAR primal"] = partial(fit_liblinear, False)
            yield Case(
                name=f"{title}, {loss}",
                data=partial(load_case, name, loss),
                ours={"margrove": fit_ours},
                peers=peers,
                quality=quality,
                decisive="-suboptimality at most",
                allowance=2 * GOAL,
                note=f"C=1, intercept_scaling=1. {ORIGIN}",
                repeats=2,
            )


CASES = list(cases())
