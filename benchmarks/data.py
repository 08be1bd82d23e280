"""Data for benchmarks: the real sets where MARGROVE_DATA points to them, else generated ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

FOLDER = os.environ.get("MARGROVE_DATA", "")
HAS_REAL = bool(FOLDER) and Path(FOLDER, "load.py").exists()
ORIGIN = "" if HAS_REAL else "Generated data of the same shape: MARGROVE_DATA is not set."


def covtype(n_rows: int | None = None, *, scaled: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Forest cover types, 581012 x 54, 7 classes; or a random sample of n_rows."""
    if HAS_REAL:
        X, y = _real("covtype")
    else:
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((581_012, 54)), rng.integers(0, 7, 581_012)
    if n_rows is not None:
        rows = np.random.default_rng(0).choice(len(X), n_rows, replace=False)
        X, y = X[rows], y[rows]
    if scaled:
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    return np.ascontiguousarray(X), y


def news20() -> tuple[Any, np.ndarray]:
    """Newsgroup texts, 15935 x 62061 sparse, 20 classes."""
    if HAS_REAL:
        return _real("news20")
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 62_061, (15_935, 80))
    rows = np.repeat(np.arange(15_935), 80)
    values = rng.random(columns.size)
    X = sp.csr_matrix((values, (rows, columns.ravel())), shape=(15_935, 62_061))
    return X, rng.integers(0, 20, 15_935)


def _real(name: str) -> tuple[Any, np.ndarray]:
    sys.path.insert(0, FOLDER)
    import load

    return load.load(name, dtype="float64", encode=True)


def split(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """The official split of a real set, scaled to unit variance on the training part."""
    from sklearn.preprocessing import StandardScaler

    sys.path.insert(0, FOLDER)
    import load

    X, y, X_test, y_test = load.load_split(name, dtype="float64")
    scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


# The seven problems on which kernel machines are compared: table, C and gamma.
KERNEL_PROBLEMS = {
    "a9a 32561 x 123": ("a9a", 1.0, 0.05),
    "ijcnn1 49990 x 22": ("ijcnn1", 32.0, 2.0),
    "letter 16000 x 16, 26 classes": ("letter", 16.0, 0.5),
    "usps 7291 x 256, 10 classes": ("usps", 10.0, 1 / 128),
    "mnist sample 10000 x 784, 10 classes": ("mnist", 5.0, 0.02),
    "covtype sample 20000 x 54, C 10": ("covtype", 10.0, 0.1),
    "covtype sample 20000 x 54, C 1000": ("covtype", 1000.0, 0.02),
}


def kernel_problem(name: str) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """X, y and the parameters of one of the KERNEL_PROBLEMS."""
    table, C, gamma = KERNEL_PROBLEMS[name]
    if table == "covtype":
        X, y = covtype(20_000, scaled=True)
        y = np.where(y == 1, 1, -1)
    elif table == "mnist":
        X, y = _real("mnist")
        rows = np.random.default_rng(0).choice(len(y), 10_000, replace=False)
        X, y = X[rows] / 255.0, y[rows]
    else:
        sys.path.insert(0, FOLDER)
        import load

        X, y, _, _ = load.load_split(table)
        X = X.toarray() if sp.issparse(X) else X
    X = np.asarray(X, dtype=np.float64)
    if table == "letter":  # to [-1, 1]
        X = 2.0 * (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)) - 1.0
    return np.ascontiguousarray(X), np.asarray(y), {"C": C, "gamma": gamma}
