"""phi(x).phi(z) = K(x, z), to machine precision or within the stated bound."""

from __future__ import annotations

import pickle
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures

from margrove import PolynomialMap, RBFTaylorMap
from margrove.exceptions import InvalidDataError, NumericalOverflowError
from margrove.margin.kernels.functions import RBF, Polynomial

pytestmark = pytest.mark.nojit


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 4),
    degree=st.integers(1, 5),
    gamma=st.floats(0.1, 3),
    coef0=st.floats(0, 3),
)
def test_the_polynomial_map_is_exact(seed, d, degree, gamma, coef0) -> None:
    X = np.random.default_rng(seed).uniform(-2, 2, (6, d))
    phi = PolynomialMap(degree=degree, gamma=gamma, coef0=coef0).fit_transform(X)
    K = Polynomial(gamma=gamma, degree=degree, coef0=coef0)(X)
    size = Polynomial(gamma=gamma, degree=degree, coef0=coef0)(np.abs(X))
    assert (np.abs(phi @ phi.T - K) <= 1e-13 * size).all()
    assert phi.shape[1] == comb(d + degree, degree)


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 3),
    degree=st.integers(0, 8),
    gamma=st.floats(0.05, 2),
)
def test_the_taylor_map_keeps_its_bound(seed, d, degree, gamma) -> None:
    X = np.random.default_rng(seed).uniform(-1.5, 1.5, (7, d))
    phi = RBFTaylorMap(gamma=gamma, degree=degree).fit(X)
    features = phi.transform(X)
    error = np.abs(features @ features.T - RBF(gamma=gamma)(X)).max()
    assert error <= phi.error_bound_ + 1e-14
    assert phi.error_bound(X) == phi.error_bound_
    assert phi.error_bound(X / 2, X) <= phi.error_bound_


def test_the_bound_is_not_idle() -> None:
    """On the farthest point itself the bound is attained."""
    X = np.array([[1.3]])
    phi = RBFTaylorMap(gamma=0.8, degree=4).fit(X)
    feature = phi.transform(X)[0]
    assert abs(feature @ feature - 1.0) == pytest.approx(phi.error_bound_, rel=1e-9)


def test_high_degrees_and_far_points() -> None:
    high = RBFTaylorMap(gamma=0.5, degree=200).fit([[1.0], [2.0]])
    phi = high.transform([[1.0], [2.0]])
    assert phi[0] @ phi[1] == pytest.approx(np.exp(-0.5), rel=1e-12)
    assert np.array_equal(
        RBFTaylorMap().fit([[1.0, 1.0]]).transform([[1e200, 1.0]]), np.zeros((1, 21))
    )
    assert np.isfinite(PolynomialMap(degree=1100).fit([[0.5]]).transform([[0.5]])).all()
    with pytest.raises(NumericalOverflowError, match="degree 2"):
        PolynomialMap(degree=2).fit([[1.0]]).transform([[1e200]])


def test_names_and_order_are_scikit_learns() -> None:
    X = np.random.default_rng(0).random((4, 3))
    ours = PolynomialMap(degree=3).fit(X)
    theirs = PolynomialFeatures(degree=3).fit(X)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    names = ["a", "b", "c"]
    assert ours.get_feature_names_out(names)[4] == "a^2"
    assert np.allclose(ours.transform(X), theirs.transform(X) * ours.scale_)
    with pytest.raises(ValueError, match="length equal"):
        ours.get_feature_names_out(["a"])


def test_many_features_are_no_burden() -> None:
    """Monomials are kept as (parent, variable), not as rows of exponents."""
    X = np.random.default_rng(0).random((3, 400))
    phi = PolynomialMap(degree=2).fit(X)
    features = phi.transform(X)
    assert features.shape == (3, 80_601)
    assert np.allclose(features @ features.T, Polynomial(gamma=1.0, degree=2, coef0=1.0)(X))
    assert len(pickle.dumps(phi)) < 3_000_000
    small = PolynomialMap(degree=4).fit(X[:, :3])
    assert np.array_equal(small.powers_, PolynomialFeatures(4).fit(X[:, :3]).powers_)


def test_too_many_monomials_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="monomials"):
        PolynomialMap(degree=8).fit(np.ones((1, 200)))


def test_dataframes_in_and_out() -> None:
    import pandas as pd

    frame = pd.DataFrame({"u": [1.0, 2.0], "v": [3.0, 4.0]})
    out = PolynomialMap(degree=2).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["1", "u", "v", "u^2", "u v", "v^2"]
    with pytest.raises(ValueError, match="feature_names_in_"):
        PolynomialMap().fit(frame).get_feature_names_out(["x", "y"])


def test_the_fitted_state_counts_not_later_parameters() -> None:
    X = np.random.default_rng(0).random((4, 2))
    phi = RBFTaylorMap(gamma=0.5, degree=3).fit(X)
    before = phi.transform(X)
    phi.set_params(gamma=9.0, degree=1)
    assert np.array_equal(phi.transform(X), before)
