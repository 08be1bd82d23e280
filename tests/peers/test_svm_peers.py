"""On real data the support vector classifier is scikit-learn's, to within both tolerances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.preprocessing import MinMaxScaler

import margrove
from margrove import SVC
from margrove.margin.kernels.expansions import dual_coefficients

pytestmark = pytest.mark.real_data


def scaled_split(real_data, name, n=None):
    """Features between -1 and 1 on the training rows, of which the first n are kept."""
    X, y, X_test, y_test = real_data.load_split(name, dtype="float64")
    if not sp.issparse(X):
        scaler = MinMaxScaler((-1, 1)).fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X[:n], y[:n], X_test, y_test


def assert_same(X, y, X_test, **settings) -> None:
    ours, theirs = SVC(**settings).fit(X, y), svm.SVC(**settings).fit(X, y)
    assert np.mean(ours.predict(X_test) == theirs.predict(X_test)) >= 0.999
    own, other = margrove.certificate(ours, X, y), margrove.certificate(theirs, X, y)
    assert abs(own.dual - other.dual) <= 1e-4 * other.dual
    for mine, part in zip(own.machines, other.machines, strict=True):
        assert abs(mine.dual - part.dual) <= 1e-4 * part.dual
        assert mine.violation <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "n", "settings"),
    [
        ("letter", 5000, {"C": 16.0, "gamma": 4.0}),
        ("usps", None, {"C": 10.0}),
        ("satimage", None, {"C": 16.0, "gamma": 1.0}),
        ("satimage", 2000, {"C": 1.0, "kernel": "linear"}),
        ("a9a", 5000, {"C": 1.0}),
        ("a9a", 3000, {"C": 10.0, "gamma": 0.05, "class_weight": "balanced"}),
    ],
    ids=str,
)
def test_labels_and_objective(real_data, name, n, settings) -> None:
    X, y, X_test, _ = scaled_split(real_data, name, n)
    assert_same(X, y, X_test, **settings)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_heart(real_data, kernel, C) -> None:
    X, y = real_data.load("heart_scale", dtype="float64")
    assert_same(X, y, X, kernel=kernel, C=C)


def test_accuracy_on_letter(real_data) -> None:
    X, y, X_test, y_test = scaled_split(real_data, "letter")
    assert len(y) == 16000
    assert SVC(C=16.0, gamma=4.0).fit(X, y).score(X_test, y_test) == pytest.approx(0.9798, abs=3e-3)


def place_matters(d: int) -> bool:
    """Whether BLAS rounds a float32 inner product by where in a tile it stands: AVX2's does."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, d)).astype(np.float32)
    return len(np.unique(np.repeat(x[None], 240, 0) @ np.repeat(z[:, None], 480, 1))) > 1


@pytest.mark.parametrize("name", ["letter", "a9a"])
def test_neither_cache_nor_threads_matter(real_data, name) -> None:
    X, y, X_test, _ = scaled_split(real_data, name, 6000)
    plain = SVC().fit(X, y)
    for change in ({"cache_size": 1.0}, {"n_jobs": 1}):
        other = SVC(**change).fit(X, y)
        if "cache_size" in change and any(place_matters(d) for d in range(1, X.shape[1] + 1)):
            assert other.certificate_.dual == pytest.approx(plain.certificate_.dual, rel=1e-6)
            continue
        assert np.array_equal(dual_coefficients(other), dual_coefficients(plain))
        assert np.array_equal(other.decision_function(X_test), plain.decision_function(X_test))
