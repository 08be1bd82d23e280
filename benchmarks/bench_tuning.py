"""A 10 x 10 grid of C and gamma over 5 folds: SVCCV against GridSearchCV around the peers.

SVCCV also runs with `drop=True`, which leaves out cells that cannot win: the fastest of three. The
peers take minutes, so each runs once, after a small search that starts its workers; ours runs three
times, before, between and after them, and its median counts. The same folds for all.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings

import numpy as np
import sklearn.svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import margrove
from data import FOLDER, HAS_REAL, ORIGIN, covtype

try:
    import sklearnex.svm as one_dal_svm
except ImportError:
    one_dal_svm = None

N_FOLDS = 5
PEERS = {"scikit-learn": sklearn.svm.SVC}
if one_dal_svm is not None:
    PEERS["sklearnex"] = one_dal_svm.SVC


def covtype_sample(n_rows):
    X, y = covtype(n_rows, scaled=True)
    return X, (y == 1).astype(int)


def usps(n_rows):
    if not HAS_REAL:
        rng = np.random.default_rng(0)
        return rng.standard_normal((n_rows, 256)), rng.integers(0, 10, n_rows)
    sys.path.insert(0, FOLDER)
    import load

    X, y = load.load("usps", dtype="float64", encode=True)
    rows = np.random.default_rng(0).choice(len(X), n_rows, replace=False)
    return np.ascontiguousarray(X[rows]), y[rows]


TABLES = {
    "covtype 1000 x 54, class 2 against the rest": lambda: covtype_sample(1000),
    "usps 2000 x 256, 10 classes": lambda: usps(2000),
    "covtype 5000 x 54, class 2 against the rest": lambda: covtype_sample(5000),
}


def grid_for(X):
    usual = 1.0 / (X.shape[1] * X.var())
    return {"C": np.logspace(-2, 4, 10), "gamma": usual * np.logspace(-3, 2, 10)}


def ours(X, y, grid, drop=False):
    folds = StratifiedKFold(N_FOLDS)
    search = margrove.SVCCV(grid["C"], grid["gamma"], cv=folds, refit=False, drop=drop, n_jobs=2)
    return search.fit(X, y)


def peer(machine, X, y, grid):
    folds = StratifiedKFold(N_FOLDS)
    return GridSearchCV(machine(), grid, cv=folds, refit=False, n_jobs=2).fit(X, y)


def timed(search, *given):
    start = time.perf_counter()
    found = search(*given)
    return time.perf_counter() - start, found


def compared(title, X, y):
    grid = grid_for(X)
    few = np.random.default_rng(0).choice(len(X), 300, replace=False)
    small = {name: values[4:6] for name, values in grid.items()}
    ours(X[few], y[few], small)
    runs = [timed(ours, X, y, grid)]
    dropping, short = min((timed(ours, X, y, grid, True) for _ in range(3)), key=lambda run: run[0])
    assert short.best_params_ == runs[0][1].best_params_
    found = {}
    for name, machine in PEERS.items():
        peer(machine, X[few], y[few], small)
        found[name] = timed(peer, machine, X, y, grid)
        runs.append(timed(ours, X, y, grid))
    seconds = statistics.median(run[0] for run in runs)
    mine = runs[0][1]
    scores = mine.cv_results_["mean_test_score"]
    error = mine.cells_.standard_errors.ravel()[mine.best_index_]
    lines = [
        f"### {title}",
        "",
        f"{ORIGIN} Largest KKT violation of any of our machines: "
        f"{mine.cv_results_['kkt_violation'].max():.2g} (tol 1e-3).".strip(),
        "",
        (
            "| | s | best C | best gamma | its score | our score of that cell | largest difference "
            "of a cell | margrove is faster by |"
        ),
        "|---|---|---|---|---|---|---|---|",
        (
            f"| **margrove** | {seconds:.3g} ({', '.join(f'{run[0]:.3g}' for run in runs)}) | "
            f"{mine.C_:.4g} | {mine.gamma_:.4g} | {mine.best_score_:.4f} (+- {error:.4f}) | | | |"
        ),
        (
            f"| **margrove, drop=True** | {dropping:.3g} | {short.C_:.4g} | {short.gamma_:.4g} | "
            f"{short.best_score_:.4f} | | | {seconds / dropping:.1f}x the complete grid |"
        ),
    ]
    for name, (peer_seconds, search) in found.items():
        theirs = search.cv_results_["mean_test_score"]
        best = search.best_params_
        lines.append(
            f"| {name} | {peer_seconds:.4g} | {best['C']:.4g} | {best['gamma']:.4g} | "
            f"{search.best_score_:.4f} | {scores[search.best_index_]:.4f} | "
            f"{np.abs(theirs - scores).max():.4f} | {peer_seconds / seconds:.1f}x |"
        )
    return "\n".join(lines) + "\n"


def report(only=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [compared(title, *load()) for title, load in TABLES.items()]
    return "\n".join(parts)
