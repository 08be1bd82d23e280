"""Sums of kernel values for few rows, with a bound of how far the sums of tiles may be.

A tile has 64 rows, and most of the time of one row goes into the others, which are zero. Here
kernel values are computed pair by pair from the support vectors where they lie. The sums differ
from those of tiles by rounding, so they serve for labels only, where the bound proves them.

The bound is for both ways together. u is the unit roundoff, V the largest v'v of n support vectors,
and a sum of d products, in any order, has an error of at most 1.01 d u times the sum of their
sizes.

RBF. A tile moves the origin to c, with |c|^2 <= 1.03 V, or leaves it. So for a = x - c, b = v - c,
    S = a'a + b'b <= 2 x'x + 6.2 V and |x - v|^2 <= 2 S. Of a distance in a tile, norms and product
    have errors of 2.02 d u S together, rounded coordinates 4.1 u S, additions 3.1 u S, distances
    that count as zero 18.2 u S, and the product with gamma 2.1 u S. All of it is 2.02 (d + 4) u S
    for a sum of squared differences. Together gamma times this is below
    e = gamma u (5 d + 40) (2 x'x + 6.5 V). If e <= 1, the values differ by at most
    (1.75 e + 1e-14) k: an exponential has a relative error below 1e-15, and exp(e) - 1 <= 1.72 e.
Inner products have an error of 1.01 d u |x||v| in each way. So z = gamma x.v + coef0 differs by at
    most t Z, where Z = gamma |x| sqrt(V) + |coef0| and t = 2.1 (d + 4) u. tanh has a slope of at
    most 1. For q = degree (t + 4 u) <= 0.01, powers differ by at most (exp(q) - 1) Z^degree.
Sums of c K differ by 2.02 (n + 3) u times the sum of |c K|, and the sum of two groups adds 6 u
    times that. An intercept adds 2.1 u times the size of the result. So it does not change a sign
    that is proved, because a hundredth of the bound is left for it.

Underflow adds less than the last term of the bound: gamma is at most 1e290, and squared norms of
inner products lie between 1e-290 and 1e290. Beyond this the bound is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import kernel as compiled
from margrove.margin.kernels.blocks import exponential_block, power_block, tanh_block
from margrove.margin.kernels.kernel import LINEAR, POLYNOMIAL, RBF, SIGMOID, Kernel

__all__ = ["bounded_sums"]

_MOST_ROWS, _MOST_SUMS = 32, 800  # from about here on tiles are faster
_KNOWN = (LINEAR, POLYNOMIAL, RBF, SIGMOID)
_AT_ONCE = 512  # support vectors
_ROUNDOFF = 2.0**-53
_LARGEST = 1e290
_SMALLEST = 1e-300
_LARGEST_BOUND = 1e270  # sums below 1e290, so that tiles do not overflow either


def bounded_sums(
    kernel: Kernel, X: Any, vectors: Any, coef: Any, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Sums for few rows, and bounds of the difference from those of tiles; None for other cases.

    X (n, d) and vectors (m, d) are dense float64 rows, coef (k, m), edges (g + 1,) the groups of
    vectors. Both results have shape (g, n, k), as `kernel_sums` for coef.T and these edges.
    """
    formula = kernel.formula()
    if formula is None or formula.code not in _KNOWN:
        return None
    if not (_is_plain(X) and _is_plain(vectors) and _is_plain(coef)):
        return None
    if len(X) > _MOST_ROWS or len(X) * len(coef) > _MOST_SUMS:
        return None
    shape = (len(edges) - 1, len(X), len(coef))
    sums, bounds = np.zeros(shape), np.zeros(shape)
    arrays = map(read_only, (X, vectors, coef, edges))
    _add_few(formula, *arrays, sums, bounds)
    return sums, bounds


def _is_plain(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype == np.float64 and array.flags.c_contiguous


@compiled
def _add_few(formula, X, vectors, coef, edges, sums, bounds):
    """sums and bounds of all groups, some vectors at a time."""
    relative, absolute = np.empty(len(X)), np.empty(len(X))
    _find_errors(formula, X, vectors, relative, absolute)
    memory = np.empty(len(X) * min(_AT_ONCE, len(vectors)))
    for group in range(len(sums)):
        low, high = edges[group], edges[group + 1]
        rounding = _ROUNDOFF * (2.02 * (high - low) + 20.0)
        for start in range(low, high, _AT_ONCE):
            end = min(start + _AT_ONCE, high)
            values = memory[: len(X) * (end - start)].reshape(len(X), end - start)
            _fill_values(formula, X, vectors[start:end], values)
            for i in range(len(X)):
                for c in range(len(coef)):
                    total, size, weight = _sums_of(coef[c, start:end], values[i])
                    sums[group, i, c] += total
                    error = (relative[i] + rounding) * size + absolute[i] * weight
                    bounds[group, i, c] += 1.01 * error + _SMALLEST * (end - start)
        for i in range(len(X)):
            for c in range(len(coef)):
                if not bounds[group, i, c] <= _LARGEST_BOUND:  # or NaN
                    bounds[group, i, c] = np.inf


@compiled(inner=True)
def _find_errors(formula, X, vectors, relative, absolute):
    """Errors of kernel values of each row: relative to the value, and absolute ones."""
    largest, d = 0.0, X.shape[1]
    for j in range(len(vectors)):
        norm = _product(vectors[j], vectors[j])
        largest = norm if norm > largest or norm != norm else largest  # noqa: PLR0124
    for i in range(len(X)):
        norm = _product(X[i], X[i])
        relative[i] = absolute[i] = np.inf
        if not formula.gamma <= _LARGEST:
            continue
        if formula.code == RBF:
            e = formula.gamma * _ROUNDOFF * (5 * d + 40) * (2.0 * norm + 6.5 * largest)
            if e <= 1.0:
                relative[i], absolute[i] = 1.75 * e + 1e-14, 0.0
        elif 1.0 / _LARGEST < norm < _LARGEST and 1.0 / _LARGEST < largest < _LARGEST:
            t, product = 2.1 * (d + 4) * _ROUNDOFF, np.sqrt(norm) * np.sqrt(largest)
            z = formula.gamma * product + abs(formula.coef0)
            relative[i] = 0.0
            if formula.code == LINEAR:
                absolute[i] = t * product
            elif formula.code == SIGMOID:
                absolute[i] = t * z + 2e-14
            else:
                q = formula.degree * (t + 4.0 * _ROUNDOFF)
                absolute[i] = 1.75 * q * z ** np.float64(formula.degree) if q <= 0.01 else np.inf


@compiled(hidden=True)
def _fill_values(formula, X, vectors, values):
    """values[i, j] <- K(x_i, v_j)"""
    n_rows, n_columns = values.shape
    if formula.code == RBF:
        for j in range(n_columns):
            for i in range(n_rows):
                values[i, j] = _squared_distance(X[i], vectors[j])
        exponential_block(values, n_rows, n_columns, formula.gamma)
        return
    for j in range(n_columns):
        for i in range(n_rows):
            values[i, j] = _product(X[i], vectors[j])
    if formula.code == POLYNOMIAL:
        power_block(values, n_rows, n_columns, formula.gamma, formula.coef0, formula.degree)
    elif formula.code == SIGMOID:
        tanh_block(values, n_rows, n_columns, formula.gamma, formula.coef0)


@compiled(inner=True, fast_sums=True)
def _product(a, b):
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled(inner=True, fast_sums=True)
def _squared_distance(a, b):
    total = 0.0
    for k in range(len(a)):
        difference = a[k] - b[k]
        total += difference * difference
    return total


@compiled(inner=True, fast_sums=True)
def _sums_of(coef, values):
    """The sums of c K, |c K| and |c|."""
    total, size, weight = 0.0, 0.0, 0.0
    for j in range(len(coef)):
        product = coef[j] * values[j]
        total += product
        size += abs(product)
        weight += abs(coef[j])
    return total, size, weight
