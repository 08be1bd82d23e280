"""Signs of expansions from float32: equal to those of float64, with bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.margin.test_kernels import rows

from margrove import SVC
from margrove.margin.kernels import RBF, Linear, kernel_sums, signed_sums
from margrove.margin.kernels.signs import _Float32Sums
from margrove.margin.kernels.tiles import tile_points


def machine(n=700, d=6, gamma=0.5, size=1.0, seed=0):
    """Support vectors, coefficients and points of prediction."""
    generator = np.random.default_rng(seed)
    support, X = generator.normal(size=(n, d)) * size, generator.normal(size=(900, d)) * size
    kernel = RBF(gamma=gamma)
    return kernel, kernel.points(support), generator.normal(size=(n, 1)) * 10, X


@pytest.mark.parametrize("gamma", [1e-6, 0.01, 0.5, 50.0])
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("d", [1, 6, 200])
def test_bounds_hold(gamma, size, d) -> None:
    kernel, support, coef, X = machine(gamma=gamma, size=size, d=d)
    exact = kernel_sums(kernel, kernel.points(X), support, coef)[:, 0]
    values, bounds = _Float32Sums(tile_points(kernel, support), coef[:, 0], 1.0, None, 1).of(X)
    assert not (np.abs(values - exact) > bounds).any()
    if gamma * size**2 < 1:
        assert np.median(bounds) < 1e-2 * np.abs(coef).sum()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_signs_next_to_the_boundary_are_those_of_float64(n_threads) -> None:
    kernel, support, coef, X = machine()
    exact = kernel_sums(kernel, kernel.points(X), support, coef)[:, 0]
    for offset in (0.0, -exact[3], np.nextafter(-exact[3], 1), -exact[3] - 1e-9, -exact[3] + 1e-9):
        found = signed_sums(kernel, X, 1.0, None, support, coef, offset, n_threads=n_threads)[:, 0]
        assert np.array_equal(found >= 0, exact + offset >= 0)
        assert np.array_equal(found == 0, exact + offset == 0)


def test_scale_and_origin_are_those_of_the_machine() -> None:
    _, _, coef, X = machine()
    generator = np.random.default_rng(1)
    kernel, shift = RBF(gamma=0.5), generator.normal(size=6) * 100
    support = kernel.points(generator.normal(size=(700, 6)))
    exact = kernel_sums(kernel, kernel.points(X * 2.0), support, coef)
    found = signed_sums(kernel, (X * 2.0 + shift) / 4.0, 4.0, shift, support, coef, 0.0)
    is_clear = np.abs(exact) > 1e-6
    assert np.array_equal((found >= 0)[is_clear], (exact >= 0)[is_clear])


def test_points_far_away_and_infinite_distances_get_exact_values() -> None:
    kernel, support, coef, X = machine()
    X[5], X[6] = 1e30, 1e200
    exact = kernel_sums(kernel, kernel.points(X), support, coef)
    with np.errstate(over="ignore", invalid="ignore"):
        found = signed_sums(kernel, X, 1.0, None, support, coef, 0.0)
    assert np.array_equal(found[5:7], exact[5:7], equal_nan=True)


def test_where_most_signs_are_uncertain_all_values_are_exact() -> None:
    kernel, support, coef, X = machine()
    support = kernel.points(np.r_[[np.full(6, 1e5)], support.X])
    coef = np.r_[[[1.0]], coef]
    exact = kernel_sums(kernel, kernel.points(X), support, coef)
    assert np.array_equal(signed_sums(kernel, X, 1.0, None, support, coef, 0.0), exact)


@pytest.mark.parametrize("unit", [1e-300, 1e-40, 1e60])
def test_coefficients_of_any_size(unit) -> None:
    kernel, support, coef, X = machine()
    exact = kernel_sums(kernel, kernel.points(X), support, coef * unit)
    found = signed_sums(kernel, X, 1.0, None, support, coef * unit, 0.0)
    assert np.array_equal(found >= 0, exact >= 0)
    assert not np.array_equal(found, exact)  # most are from float32


def test_other_kernels_and_rows_get_exact_values() -> None:
    _, support, coef, X = machine()
    exact = kernel_sums(Linear(), Linear().points(X), support, coef)
    assert np.array_equal(signed_sums(Linear(), X, 1.0, None, support, coef, 0.0), exact)
    narrow = X.astype(np.float32)
    exact = kernel_sums(RBF(0.5), RBF(0.5).points(narrow), support, coef)
    assert np.array_equal(signed_sums(RBF(0.5), narrow, 1.0, None, support, coef, 0.0), exact)


def test_predict_is_the_sign_of_the_decision_values() -> None:
    X = rows(3000, 5)
    y = (X[:, 0] * X[:, 1] > 1.0) ^ (np.random.default_rng(1).random(3000) < 0.1)
    model = SVC(C=10.0, n_jobs=2).fit(X, y)
    decisions = model.decision_function(X)
    assert len(X) * len(model.support_) > 500_000
    assert np.array_equal(model.predict(X), decisions >= 0)
    model.intercept_ = model.intercept_ - decisions[17]  # a point on the boundary
    assert np.array_equal(model.predict(X), model.decision_function(X) >= 0)
