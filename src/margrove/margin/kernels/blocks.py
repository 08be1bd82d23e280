"""The arithmetic of kernel blocks: inner products by BLAS; compiled distances, exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import kernel_rows
from margrove._runtime import TILE_ROWS, kernel, padded_tile

__all__ = [
    "TILE_COLUMNS",
    "add_products",
    "chi_square",
    "city_block",
    "densified",
    "exponential_block",
    "inner_products",
    "largest_value",
    "power_block",
    "rbf_block_32",
    "rbf_block_64",
    "row_norms",
    "tanh_block",
]

TILE_COLUMNS = 512
_ADDED_FIRST = 32
_LANES = 8  # float64 in a line of the cache
_ROW_STEP = 64  # a multiple of what any BLAS holds in registers


def row_norms(X: Any) -> np.ndarray:
    """The squared norms of the rows of a dense or CSR X, float64 (n,)."""
    with np.errstate(over="ignore"):
        if sp.issparse(X):
            norms = np.empty(X.shape[0])
            _add_squares(kernel_rows(X), norms)
            return norms
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def largest_value(X: Any) -> float:
    """The largest absolute value in a dense or CSR X."""
    values = X.data if sp.issparse(X) else X
    return float(np.abs(values).max()) if values.size else 0.0


def densified(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def inner_products(X: Any, Z: Any, out: np.ndarray) -> None:
    """Inner products of a tile; the arithmetic of a row does not depend on the other rows."""
    if sp.issparse(X) and sp.issparse(Z):
        _csr_dots(kernel_rows(X), kernel_rows(Z), np.zeros((Z.shape[1], _LANES)), out)
        return
    X, Z = densified(X), densified(Z)
    if out.shape == (TILE_ROWS, TILE_COLUMNS) and X.dtype == Z.dtype == out.dtype:
        np.matmul(X, Z.T, out=out)
        return
    n_rows = -(-X.shape[0] // _ROW_STEP) * _ROW_STEP
    left = padded_tile(X, 0, n_rows).astype(out.dtype, copy=False)
    right = padded_tile(Z, 0, TILE_COLUMNS).astype(out.dtype, copy=False)
    out[:] = (left @ right.T)[: out.shape[0], : out.shape[1]]


@kernel(bare=True)
def _add_squares(X, norms):
    """norms <- squared lengths of the rows of a CSR X."""
    for i in range(len(norms)):
        norm = 0.0
        for p in range(X.indptr[i], X.indptr[i + 1]):
            norm += np.float64(X.data[p]) * np.float64(X.data[p])
        norms[i] = norm


@kernel
def _csr_dots(A, B, work, out):
    """out[i, j] = a_i . b_j, for _LANES rows a_i at a time.

    These are written side by side to a dense array, so that a nonzero of b is multiplied by all of
    them at once, in a vector register. work: zeros (d, _LANES).
    """
    sums = np.empty(_LANES)
    for first in range(0, out.shape[0], _LANES):
        width = min(_LANES, out.shape[0] - first)
        for lane in range(width):
            for p in range(A.indptr[first + lane], A.indptr[first + lane + 1]):
                work[A.indices[p], lane] = A.data[p]
        for j in range(out.shape[1]):
            a = b = c = d = e = f = g = h = 0.0  # in registers; an array would be in memory
            for p in range(B.indptr[j], B.indptr[j + 1]):
                value, row = np.float64(B.data[p]), work[np.uint32(B.indices[p])]
                a += value * row[0]
                b += value * row[1]
                c += value * row[2]
                d += value * row[3]
                e += value * row[4]
                f += value * row[5]
                g += value * row[6]
                h += value * row[7]
            sums[0], sums[1], sums[2], sums[3] = a, b, c, d
            sums[4], sums[5], sums[6], sums[7] = e, f, g, h
            for lane in range(width):
                out[first + lane, j] = sums[lane]
        for lane in range(width):
            for p in range(A.indptr[first + lane], A.indptr[first + lane + 1]):
                work[A.indices[p], lane] = 0.0


@kernel(fast_sums=True)
def city_block(A, B, out, n_rows, n_columns):
    """out[i, j] = ||a_i - b_j||_1"""
    for i in range(n_rows):
        for j in range(n_columns):
            total = 0.0
            for k in range(A.shape[1]):
                total += abs(np.float64(A[i, k]) - np.float64(B[j, k]))
            out[i, j] = total


@kernel(fast_sums=True)
def chi_square(A, B, out, n_rows, n_columns):
    """out[i, j] = sum (a_i - b_j)^2 / (a_i + b_j)"""
    for i in range(n_rows):
        for j in range(n_columns):
            total = 0.0
            for k in range(A.shape[1]):
                both = np.float64(A[i, k]) + np.float64(B[j, k])
                difference = np.float64(A[i, k]) - np.float64(B[j, k])
                if both > 0.0:
                    total += difference * (difference / both)
            out[i, j] = total


# exp(x) = 2^n * e^r with n = round(x / ln 2): Cody and Waite's two-part ln 2 keeps r exact, a
# polynomial gives e^r, and 2^n is written into the exponent bits. Unlike a call of libm, this
# vectorises. Results below the smallest exponent are 2^-126 or 2^-1022, not 0, because RBF values
# are strictly positive.


@kernel(fast_sums=True)
def rbf_block_32(dots, a2, b2, gamma):
    """dots <- exp(-gamma max(0, a2 + b2 - 2 dots)) in float32, relative error below 2e-6.

    Rows and columns of `dots` beyond a2 and b2 stay as they are.
    """
    minus_gamma = np.float32(-gamma)
    powers = np.empty(len(b2), np.int32)
    scales = powers.view(np.float32)
    for i in range(len(a2)):
        for j in range(len(b2)):
            distance = max(a2[i] + b2[j] - np.float32(2.0) * dots[i, j], np.float32(0.0))
            x = max(minus_gamma * distance, np.float32(-87.0))
            n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
            r = x - n * np.float32(0.693359375)
            r = r - n * np.float32(-2.12194440e-4)
            p = np.float32(1.9875691500e-4)
            p = p * r + np.float32(1.3981999507e-3)
            p = p * r + np.float32(8.3334519073e-3)
            p = p * r + np.float32(4.1665795894e-2)
            p = p * r + np.float32(1.6666665459e-1)
            p = p * r + np.float32(5.0000001201e-1)
            dots[i, j] = p * r * r + r + np.float32(1.0)
            powers[j] = (np.int32(n) + np.int32(127)) << np.int32(23)
        for j in range(len(b2)):
            dots[i, j] *= scales[j]


@kernel(fast_sums=True)
def rbf_block_64(dots, a2, b2, gamma):
    """The same in float64, relative error below 1e-15; a Taylor polynomial of degree 12."""
    powers = np.empty(len(b2), np.int64)
    scales = powers.view(np.float64)
    for i in range(len(a2)):
        for j in range(len(b2)):
            both = a2[i] + b2[j]
            squared = both - 2.0 * dots[i, j]
            # The distance of equal points is rounding, which a huge gamma must not amplify.
            squared = squared if squared > 2e-15 * both else 0.0
            x = max(-gamma * squared, -708.0)
            n = np.floor(x * 1.4426950408889634 + 0.5)
            r = x - n * 6.93145751953125e-1
            r = r - n * 1.42860682030941723212e-6
            p = 1.0 / 479001600.0
            p = p * r + 1.0 / 39916800.0
            p = p * r + 1.0 / 3628800.0
            p = p * r + 1.0 / 362880.0
            p = p * r + 1.0 / 40320.0
            p = p * r + 1.0 / 5040.0
            p = p * r + 1.0 / 720.0
            p = p * r + 1.0 / 120.0
            p = p * r + 1.0 / 24.0
            p = p * r + 1.0 / 6.0
            p = p * r + 0.5
            dots[i, j] = p * r * r + r + 1.0
            powers[j] = (np.int64(n) + np.int64(1023)) << np.int64(52)
        for j in range(len(b2)):
            dots[i, j] *= scales[j]


@kernel(fast_sums=True)
def exponential_block(values, n_rows, n_columns, gamma):
    """values <- exp(-gamma values) of the first rows and columns, for values >= 0."""
    x, powers = np.empty(n_columns), np.empty(n_columns, np.int64)
    for i in range(n_rows):
        for j in range(n_columns):
            x[j] = max(-gamma * np.float64(values[i, j]), -708.0)
        _split_exponential(x, powers)
        scales = powers.view(np.float64)
        for j in range(n_columns):
            values[i, j] = x[j] * scales[j] + scales[j]


@kernel(fast_sums=True)
def tanh_block(values, n_rows, n_columns, gamma, coef0):
    """values <- tanh(gamma values + coef0) of the first rows and columns.

    With e = exp(2 |z|) - 1, tanh |z| is e / (e + 2), without cancellation.
    """
    x, powers = np.empty(n_columns), np.empty(n_columns, np.int64)
    for i in range(n_rows):
        for j in range(n_columns):
            twice = 2.0 * abs(gamma * np.float64(values[i, j]) + coef0)
            x[j] = 40.0 if twice > 40.0 else twice  # NaN stays NaN
        _split_exponential(x, powers)
        scales = powers.view(np.float64)
        for j in range(n_columns):
            e = x[j] * scales[j] + (scales[j] - 1.0)
            size = e / (e + 2.0)
            values[i, j] = size if gamma * np.float64(values[i, j]) + coef0 >= 0.0 else -size


@kernel(fast_sums=True)
def _split_exponential(x, powers):
    """exp(x) = (x' + 1) 2^n: x <- x', powers <- the bits of 2^n."""
    for j in range(len(x)):
        n = np.floor(x[j] * 1.4426950408889634 + 0.5)
        r = x[j] - n * 6.93145751953125e-1
        r = r - n * 1.42860682030941723212e-6
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        x[j] = p * r * r + r
        powers[j] = (np.int64(n) + np.int64(1023)) << np.int64(52)


@kernel(fast_sums=True)
def power_block(values, n_rows, n_columns, gamma, coef0, degree):
    """values <- (gamma values + coef0)^degree of the first rows and columns, degree >= 0."""
    real = values.dtype.type
    factor, constant = real(gamma), real(coef0)
    base = np.empty(n_columns, values.dtype)
    for i in range(n_rows):
        for j in range(n_columns):
            base[j] = factor * values[i, j] + constant
            values[i, j] = real(1.0)
        left = degree
        while left > 0:
            if left & 1:
                for j in range(n_columns):
                    values[i, j] *= base[j]
            left >>= 1
            if left > 0:
                for j in range(n_columns):
                    base[j] *= base[j]


@kernel
def add_products(weights, block, out):
    """out += (weights @ block).T, in float64, for the first columns of the block.

    A few rows of the block are added up first, because sums of coefficients of one class are large
    compared with the result.
    """
    sums, total = np.empty(len(out)), np.empty(len(out))
    for c in range(len(weights)):
        total[:] = 0.0
        for start in range(0, len(block), _ADDED_FIRST):
            sums[:] = 0.0
            for j in range(start, min(start + _ADDED_FIRST, len(block))):
                weight, row = np.float64(weights[c, j]), block[j]
                for i in range(len(sums)):
                    sums[i] += weight * np.float64(row[i])
            for i in range(len(sums)):
                total[i] += sums[i]
        for i in range(len(total)):
            out[i, c] += total[i]
