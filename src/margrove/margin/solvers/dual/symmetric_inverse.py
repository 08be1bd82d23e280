"""Inverses of small symmetric matrices, compiled, for `face_newton`; only lower triangles are used.

Loops go along rows, so that they use vector registers. Four rows at a time are added to another,
which then is read and written a quarter as often.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import dot, kernel

__all__ = ["add_four_rows", "add_row", "factorise", "invert", "multiply"]


@kernel(fast_sums=True, bare=True)
def add_row(row, factor, total):
    """total += factor * row"""
    for i in range(len(total)):
        total[i] += factor * row[i]


@kernel(fast_sums=True, bare=True)
def add_four_rows(a, b, c, d, factors, total):
    """total += factors[0] * a + factors[1] * b + factors[2] * c + factors[3] * d"""
    of_a, of_b, of_c, of_d = factors[0], factors[1], factors[2], factors[3]
    for i in range(len(total)):
        total[i] += (of_a * a[i] + of_b * b[i]) + (of_c * c[i] + of_d * d[i])


@kernel(bare=True)
def multiply(M, n, x, out):
    """out[:n] = M x"""
    for a in range(n):
        out[a] = dot(M[a, : a + 1], x)
        add_row(M[a], x[a], out[:a])


@kernel(fast_sums=True, bare=True)
def factorise(L, n):
    """Replace the lower triangle by its Cholesky factor; False if there is none."""
    for i in range(n):
        for j in range(i + 1):
            total = L[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = total / L[j, j]
            elif total > 0.0:
                L[i, i] = np.sqrt(total)
            else:
                return False
    return True


@kernel
def invert(L, n):
    """Replace a Cholesky factor L by the inverse of L L'."""
    four, factors = np.zeros((4, n)), np.empty(4)
    _invert_factor(L, n, factors)
    _multiply_factors(L, n, four, factors)


@kernel(bare=True)
def _invert_factor(L, n, factors):
    """L <- its inverse X, with zeros right of the diagonal where four rows are read together.

    Row i of X is -X_ii times the sum of L_ik times row k of X over k < i.
    """
    for i in range(n):
        inverse = 1.0 / L[i, i]
        n_in_fours = i - i % 4
        for k in range(0, n_in_fours, 4):
            for a in range(4):
                factors[a] = -inverse * L[i, k + a]
                L[i, k + a] = 0.0
            add_four_rows(L[k], L[k + 1], L[k + 2], L[k + 3], factors, L[i, : k + 4])
        for k in range(n_in_fours, i):
            factor = -inverse * L[i, k]
            L[i, k] = 0.0
            add_row(L[k], factor, L[i, : k + 1])
        L[i, i] = inverse
        for b in range(i + 1, min(i + 4, n)):
            L[i, b] = 0.0


@kernel(bare=True)
def _multiply_factors(X, n, four, factors):
    """The lower triangle of X'X in place of X: the sum of the products of each row with itself."""
    for k in range(0, n, 4):
        for a in range(4):
            for b in range(min(k + 4, n)):
                four[a, b] = X[k + a, b] if k + a < n and b <= k + a else 0.0
        for i in range(min(k + 4, n)):
            for a in range(4):
                factors[a] = four[a, i]
            if i >= k:
                for b in range(i + 1):
                    X[i, b] = 0.0
            add_four_rows(four[0], four[1], four[2], four[3], factors, X[i, : i + 1])
