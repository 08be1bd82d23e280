"""Tables of many shapes, generated and real, for `bench_shapes`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from data import HAS_REAL, _real

__all__ = ["TABLES", "Table"]

TEST_ROWS = 20_000  # at most


@dataclass(frozen=True)
class Table:
    """A table by its name, with a function that makes X, y, X_test and y_test.

    task       "classes" or "numbers"
    is_wide    whether learners of trees are left out, because a peer takes minutes
    has_more   whether other settings than the defaults are tried, too
    """

    name: str
    n: int
    task: str
    make: Callable[[], tuple[Any, np.ndarray, Any, np.ndarray]]
    is_wide: bool = False
    has_more: bool = False


def classes(
    n: int, d: int, k: int, *, style: str = "noisy", form: str = "dense", shares: Any = None
) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Rows of k classes: each is a few clouds, far from each other (easy) or not (noisy)."""
    rng = np.random.default_rng(n + 31 * d + 101 * k)
    n_test = min(TEST_ROWS, max(n // 4, 200))
    m = n + n_test
    p = None if shares is None else np.asarray(shares) / np.sum(shares)
    y = rng.choice(k, m, p=p)
    y[:k] = y[n : n + k] = np.arange(k)
    spread = {"easy": 4.0, "noisy": 1.2}[style] * (2.0 / min(d, 30)) ** 0.5
    if form == "dense":
        centres = spread * rng.standard_normal((k, 2, d))
        X = centres[y, rng.integers(0, 2, m)] + rng.standard_normal((m, d))
    elif form == "0/1":
        chances = np.clip(0.15 + 0.1 * spread * rng.standard_normal((k, d)), 0.01, 0.99)
        X = (rng.random((m, d)) < chances[y]).astype(np.float64)
    else:
        X = _words(rng, y, d, k)
    noise = rng.random(m) < (0.0 if style == "easy" else 0.05)
    noise[:k] = noise[n : n + k] = False
    y[noise] = rng.choice(k, int(noise.sum()), p=p)
    return X[:n], y[:n], X[n:], y[n:]


def _words(rng: np.random.Generator, y: np.ndarray, d: int, k: int) -> Any:
    """Counts of 40 words a row, a third of which are typical of its class."""
    m = len(y)
    common = np.minimum((d * rng.random((m, 27)) ** 3).astype(np.int64), d - 1)
    typical = rng.integers(0, d, (k, 60))
    own = typical[y[:, None], rng.integers(0, 60, (m, 13))]
    columns = np.concatenate([common, own], axis=1)
    rows = np.repeat(np.arange(m), 40)
    X = sp.csr_matrix((np.ones(columns.size), (rows, columns.ravel())), shape=(m, d))
    X.sum_duplicates()
    return X


def numbers(n: int, d: int, *, form: str = "dense") -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """A curve of a few columns, with noise."""
    rng = np.random.default_rng(n + 31 * d)
    n_test = min(TEST_ROWS, max(n // 4, 200))
    X = rng.standard_normal((n + n_test, d))
    if form == "0/1":
        X = (X > 0.8).astype(np.float64)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, min(2, d - 1)] + 0.5 * X[:, -1]
    y += 0.3 * rng.standard_normal(n + n_test)
    return X[:n], y[:n], X[n:], y[n:]


def real(name: str, n: int | None = None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """A table of scikit-learn or of MARGROVE_DATA; a fifth of it, at the most, is held back."""
    import sklearn.datasets

    loader = getattr(sklearn.datasets, f"load_{name}", None)
    if loader is not None:
        X, y = loader(return_X_y=True)
    else:
        X, y = _real(name)
    y = y if y.dtype.kind == "f" else np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(X.shape[0])
    n_test = min(TEST_ROWS, X.shape[0] // 5)
    test, rows = order[:n_test], order[n_test:][:n]
    if not sp.issparse(X):
        X = np.ascontiguousarray(X, dtype=np.float64)
        scale = X[rows].std(axis=0)
        X = (X - X[rows].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    else:
        X = sp.csr_matrix(X)
    return X[rows], y[rows], X[test], y[test]


RARE = (1000, 300, 30, 5, 3, 2, 1)  # classes of very different sizes

_CLASSES: list[tuple[int, int, int, dict[str, Any]]] = [
    (50, 2, 2, {}),
    (50, 10, 3, {"style": "easy"}),
    (150, 4, 3, {"style": "easy"}),
    (150, 30, 2, {}),
    (150, 200, 2, {}),
    (500, 10, 2, {}),
    (500, 2, 2, {"style": "easy"}),
    (500, 50, 10, {}),
    (500, 180, 2, {"form": "0/1"}),
    (500, 2000, 2, {"form": "sparse"}),
    (1000, 20, 2, {}),
    (1600, 8, 2, {}),
    (2500, 2, 2, {}),
    (2500, 20, 7, {"style": "easy"}),
    (2500, 180, 2, {"form": "0/1"}),
    (2500, 180, 3, {}),
    (2500, 784, 10, {}),
    (2500, 5000, 20, {"form": "sparse"}),
    (4400, 40, 11, {}),
    (4240, 2, 2, {"style": "easy"}),
    (5000, 10, 100, {}),
    (5000, 10, 2, {"style": "easy"}),
    (10_000, 100, 2, {"form": "0/1"}),
    (10_000, 1000, 2, {}),
    (15_000, 10, 2, {}),
    (20_000, 9, 7, {"style": "easy", "shares": RARE}),
    (20_000, 50, 26, {}),
    (20_000, 5000, 2, {"form": "sparse"}),
    (20_000, 2, 2, {}),
    (46_000, 9, 7, {"style": "easy", "shares": RARE}),
    (50_000, 20, 2, {"shares": (1000, 1)}),
    (50_000, 200, 2, {}),
    (50_000, 5000, 20, {"form": "sparse"}),
    (200_000, 10, 2, {}),
    (200_000, 50, 7, {}),
    (200_000, 100, 2, {"form": "0/1"}),
    (500_000, 10, 2, {}),
    (500_000, 40, 2, {"style": "easy"}),
]
_NUMBERS: list[tuple[int, int, dict[str, Any]]] = [
    (50, 2, {}),
    (150, 5, {}),
    (150, 100, {}),
    (500, 10, {}),
    (1600, 8, {}),
    (2500, 180, {"form": "0/1"}),
    (2500, 50, {}),
    (5000, 3, {}),
    (15_000, 10, {}),
    (20_000, 100, {}),
    (50_000, 20, {}),
    (200_000, 10, {}),
    (500_000, 20, {}),
]
_REAL: list[tuple[str, int | None, str]] = [
    ("iris", None, "classes"),
    ("wine", None, "classes"),
    ("breast_cancer", None, "classes"),
    ("digits", None, "classes"),
    ("diabetes", None, "numbers"),
]
_REAL_OF_FOLDER: list[tuple[str, int | None, str]] = [
    ("heart_scale", None, "classes"),
    ("spambase", None, "classes"),
    ("satimage", None, "classes"),
    ("pendigits", None, "classes"),
    ("usps", None, "classes"),
    ("letter", None, "classes"),
    ("higgs_11k", None, "classes"),
    ("mnist", 4_800, "classes"),
    ("mnist", 16_000, "classes"),
    ("a9a", None, "classes"),
    ("w8a", None, "classes"),
    ("ijcnn1", 50_000, "classes"),
    ("covtype", 20_000, "classes"),
    ("covtype", 200_000, "classes"),
    ("news20", None, "classes"),
    ("sector", None, "classes"),
    ("california", None, "numbers"),
]
_WITH_MORE_SETTINGS = {150, 500, 1000, 1600, 2500, 4400, 15_000, 50_000}
_SPARSE = {"a9a", "w8a", "news20", "sector"}


def _tables() -> list[Table]:
    found = []
    for n, d, k, others in _CLASSES:
        form = others.get("form", "dense")
        words = [f"{n} x {d}", f"{k} classes", *map(str, _described(others))]
        wide = form == "sparse" and n > 2500
        more = n in _WITH_MORE_SETTINGS
        made = partial(classes, n, d, k, **others)
        found.append(Table(", ".join(words), n, "classes", made, wide, more))
    for n, d, others in _NUMBERS:
        words = [f"{n} x {d}", "numbers", *map(str, _described(others))]
        more = n in _WITH_MORE_SETTINGS
        made = partial(numbers, n, d, **others)
        found.append(Table(", ".join(words), n, "numbers", made, has_more=more))
    for name, n, task in _REAL + (_REAL_OF_FOLDER if HAS_REAL else []):
        size = n or _SIZES[name]
        title = name if n is None else f"{name}, {n} rows"
        found.append(Table(title, size, task, partial(real, name, n), name in _SPARSE))
    return found


def _described(others: dict[str, Any]) -> list[str]:
    words = [others[name] for name in ("style", "form") if name in others]
    return words + (["unequal"] if "shares" in others else [])


_SIZES = {
    "iris": 120, "wine": 142, "breast_cancer": 455, "digits": 1438, "diabetes": 354,
    "heart_scale": 216, "spambase": 3681, "satimage": 5148, "pendigits": 8794, "usps": 7438,
    "letter": 16_000, "higgs_11k": 8788, "a9a": 39_074, "w8a": 39_799, "news20": 12_748,
    "sector": 7695, "california": 16_512,
}  # fmt: skip


TABLES = _tables()
