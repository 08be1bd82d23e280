"""Explicit feature maps: transformers whose inner products are the values of a kernel.

    PolynomialMap   phi(x).phi(z) = (gamma x.z + coef0)^degree, exactly
    RBFTaylorMap    phi(x).phi(z) = exp(-gamma ||x - z||^2) up to a stated error

Both expand (x.z)^k = sum over monomials m of degree k of (k! / m!) x^m z^m, so a feature is a
monomial times the square root of its coefficient.
"""

from __future__ import annotations

from itertools import pairwise
from math import comb
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammainc, gammaln, xlogy
from sklearn.base import TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_table, like_fitted
from margrove._runtime import Estimator
from margrove.exceptions import InvalidDataError, NumericalOverflowError

__all__ = ["PolynomialMap", "RBFTaylorMap"]

_MOST_FEATURES = 10_000_000


class _MonomialMap(TransformerMixin, Estimator):
    """Monomials up to a degree, each with the square root of its coefficient in the kernel."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the monomials for this number of features.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        table = check_table(X, self, accept_sparse=False)
        self._commit(table.attributes | self._learnt(table.X))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features phi(x) of each row."""
        check_is_fitted(self)
        X = like_fitted(X, self, accept_sparse=False)
        with np.errstate(over="ignore", invalid="ignore"):
            features = self._features(X)
        if not np.isfinite(features).all():
            raise NumericalOverflowError(
                f"Monomials of degree {self._highest_degree} of this X are too large for floating "
                "point. Scale the features or use a smaller degree."
            )
        return features

    @property
    def powers_(self) -> np.ndarray:
        """Exponents (n_monomials, n_features) of the features."""
        check_is_fitted(self)
        powers = np.zeros((len(self.scale_), self.n_features_in_), dtype=np.int64)
        for k in range(1, len(powers)):
            powers[k] = powers[self._parent[k]]
            powers[k, self._variable[k]] += 1
        return powers

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the features: monomials such as "x0^2 x1", and "1" for the constant."""
        check_is_fitted(self)
        names = self._input_names(input_features)
        return np.array([_monomial_name(names, powers) for powers in self.powers_], dtype=object)

    def _input_names(self, input_features: Any) -> np.ndarray:
        fitted = getattr(self, "feature_names_in_", None)
        if input_features is None:
            if fitted is not None:
                return fitted
            return np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
        given = np.asarray(input_features, dtype=object)
        if fitted is not None and not np.array_equal(fitted, given):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(given) != self.n_features_in_:
            raise ValueError("input_features should have length equal to number of features")
        return given

    def _learnt(self, X: np.ndarray) -> dict[str, Any]:
        raise NotImplementedError

    def _features(self, X: np.ndarray) -> np.ndarray:
        """Compute monomials degree by degree, each from its parent by one product."""
        out = np.empty((X.shape[0], len(self.scale_)), dtype=X.dtype)
        out[:, 0] = 1.0
        for start, end in pairwise(self._degree_starts[1:]):
            parents, variables = self._parent[start:end], self._variable[start:end]
            np.multiply(out[:, parents], X[:, variables], out=out[:, start:end])
        out *= self.scale_.astype(X.dtype)
        return out


class PolynomialMap(_MonomialMap):
    """The features of the polynomial kernel (gamma x.z + coef0)^degree.

    For gamma = coef0 = 1, degree = 2 and three features these are the ten features
    (1, sqrt(2) x1, ..., x1^2, ..., sqrt(2) x2 x3) of the lectures, in scikit-learn's order.

    Parameters
    ----------
    degree : int, default=2
    gamma : float, default=1
    coef0 : float, default=1
        With 0, the features of monomials below `degree` are zero.

    Attributes
    ----------
    powers_ : ndarray of shape (n_monomials, n_features)
        Exponents, all monomials up to `degree`.
    scale_ : ndarray of shape (n_monomials,)
        Square roots of the coefficients.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import PolynomialMap
    >>> phi = PolynomialMap(degree=2).fit([[1.0, 2.0]])
    >>> x, z = phi.transform([[1.0, 2.0], [3.0, 1.0]])
    >>> round(float(x @ z), 9) == (1.0 * 3.0 + 2.0 * 1.0 + 1) ** 2
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, degree: int = 2, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _learnt(self, X: np.ndarray) -> dict[str, Any]:
        degrees = np.arange(self.degree + 1)
        log_coef = (
            gammaln(self.degree + 1) - gammaln(degrees + 1) - gammaln(self.degree - degrees + 1)
            + xlogy(self.degree - degrees, self.coef0) + degrees * np.log(self.gamma)
        )  # fmt: skip
        return _monomials(X.shape[1], self.degree, log_coef)


class RBFTaylorMap(_MonomialMap):
    """The features of the RBF kernel exp(-gamma ||x - z||^2), by a truncated Taylor series.

    phi(x) = exp(-gamma ||x||^2) (1, sqrt(2 gamma / 1!) x, sqrt((2 gamma)^2 / 2!) x^2, ...).

    The error is at most P(degree + 1, 2 gamma r^2) for points within r of the origin, P the
    regularised incomplete gamma function: the tail of the exponential series. Centre the data.

    Parameters
    ----------
    gamma : float, default=1
    degree : int, default=5
        Highest total degree kept.

    Attributes
    ----------
    powers_ : ndarray of shape (n_monomials, n_features)
    scale_ : ndarray of shape (n_monomials,)
    gamma_ : float
    error_bound_ : float
        Bound on abs(phi(x).phi(z) - K(x, z)) over the rows seen in fit.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Examples
    --------
    >>> from margrove import RBFTaylorMap
    >>> phi = RBFTaylorMap(gamma=0.5, degree=12).fit([[0.3, 0.1], [0.9, -0.2]])
    >>> x, z = phi.transform([[0.3, 0.1], [0.9, -0.2]])
    >>> import math
    >>> bool(abs(x @ z - math.exp(-0.5 * (0.6**2 + 0.3**2))) <= phi.error_bound_ + 1e-15)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, *, gamma: float = 1.0, degree: int = 5) -> None:
        self.gamma = gamma
        self.degree = degree

    def error_bound(self, X: Any, Z: Any = None) -> float:
        """Bound on abs(phi(x).phi(z) - K(x, z)) over the rows x of X and z of Z (default: X)."""
        check_is_fitted(self)
        X = like_fitted(X, self, accept_sparse=False)
        Z = X if Z is None else like_fitted(Z, self, accept_sparse=False)
        return _tail(X, Z, self.gamma_, self._highest_degree)

    def _learnt(self, X: np.ndarray) -> dict[str, Any]:
        degrees = np.arange(self.degree + 1)
        log_coef = degrees * np.log(2.0 * self.gamma) - gammaln(degrees + 1)
        return {
            **_monomials(X.shape[1], self.degree, log_coef),
            "gamma_": float(self.gamma),
            "error_bound_": _tail(X, X, self.gamma, self.degree),
        }

    def _features(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            damping = np.exp(-self.gamma_ * np.einsum("ij,ij->i", X, X)).astype(X.dtype)
        near = damping > 0  # if e^(-gamma ||x||^2) underflows to 0, all features are 0
        features = np.zeros((X.shape[0], len(self.powers_)), dtype=X.dtype)
        features[near] = super()._features(X[near]) * damping[near, None]
        return features


def _tail(X: np.ndarray, Z: np.ndarray, gamma: float, degree: int) -> float:
    """Bound on what the terms beyond `degree` add to the kernel of any x in X and z in Z.

    sum_{k > D} t^k / k! e^-t = P(D + 1, t), which grows with t = 2 gamma ||x|| ||z||, and
    e^(t - gamma ||x||^2 - gamma ||z||^2) <= 1.
    """
    longest = np.linalg.norm(X, axis=1).max() * np.linalg.norm(Z, axis=1).max()
    return float(gammainc(degree + 1, 2.0 * gamma * longest))


def _monomials(n_features: int, degree: int, log_coef: np.ndarray) -> dict[str, Any]:
    """All monomials up to a degree, in scikit-learn's order, and sqrt(c_k k! / (m_1! ... m_d!)).

    A monomial of degree k is its parent, of degree k - 1, times a variable that is not before the
    last variable of the parent. So two numbers describe it, instead of a row of exponents.
    """
    count = comb(n_features + degree, degree)
    if count > _MOST_FEATURES:
        raise InvalidDataError(
            f"{n_features} features to degree {degree} make {count} monomials, more than "
            f"{_MOST_FEATURES}. Use the kernel itself, which does not compute features."
        )
    parent, variable = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    log_scale = np.zeros(count)  # log of k! / (m_1! ... m_d!), then with the kernel's factor
    repeats = np.zeros(count)  # the exponent of the last variable
    starts = [0, 1]
    log_scale[0] = log_coef[0]
    ways = np.zeros(count)
    for k in range(1, degree + 1):
        old = np.arange(starts[-2], starts[-1])
        last = variable[old]
        n_children = n_features - last
        new = slice(starts[-1], starts[-1] + int(n_children.sum()))
        parent[new] = np.repeat(old, n_children)
        offset = np.arange(new.stop - new.start) - np.repeat(
            np.cumsum(n_children) - n_children, n_children
        )
        variable[new] = np.repeat(last, n_children) + offset
        again = (variable[new] == variable[parent[new]]) & (k > 1)
        repeats[new] = np.where(again, repeats[parent[new]] + 1, 1)
        ways[new] = ways[parent[new]] + np.log(k) - np.log(repeats[new])
        log_scale[new] = ways[new] + log_coef[k]
        starts.append(new.stop)
    return {
        "scale_": _rounded_roots(np.exp(0.5 * log_scale)),
        "_parent": parent,
        "_variable": variable,
        "_degree_starts": starts,
        "_highest_degree": degree,
    }


def _rounded_roots(scale: np.ndarray) -> np.ndarray:
    """Round scales whose squares are nearly integers, as in textbooks, to exact square roots."""
    squared = np.minimum(scale, 2.0**20) ** 2
    nearest = np.rint(squared)
    near = (np.abs(squared - nearest) < 1e-9 * nearest) & (scale < 2.0**20)
    return np.where(near, np.sqrt(nearest), scale)


def _monomial_name(names: np.ndarray, powers: np.ndarray) -> str:
    factors = [
        str(name) if power == 1 else f"{name}^{power}"
        for name, power in zip(names, powers, strict=True)
        if power
    ]
    return " ".join(factors) or "1"
