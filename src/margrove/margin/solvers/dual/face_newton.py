"""A Newton step on the face of the free variables, compiled, for paths over C (see `c_path`)."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel

__all__ = ["FEW", "add_row", "newton_step"]

FEW = 200  # free variables up to which a Newton step costs less than the pair steps it saves
_RIDGE, _LARGEST_RIDGE = 1e-13, 1e-6  # relative to the mean of the diagonal


@kernel(fast_sums=True)
def add_row(row, factor, total):
    """total += factor * row"""
    for i in range(len(total)):
        total[i] += factor * row[i]


@kernel
def newton_step(K, rows, y, u, alpha, values, f):
    """Move all free variables towards the minimum of their face, up to the first bound.

    Returns whether another step is useful: not after a full step, nor if there is no descent.
    """
    free, n = np.empty(2 * FEW, np.int64), 0
    for v in range(len(alpha)):
        if alpha[v] > 0.0 and alpha[v] < u[v]:
            if n == len(free):
                return False
            free[n] = v
            n += 1
    if n < 2:
        return False
    L = np.empty((n, n))
    ridge = _RIDGE
    while not _factorised(K, rows, free[:n], ridge, L):
        ridge *= 100.0  # free variables are linearly dependent
        if ridge > _LARGEST_RIDGE:
            return False
    towards, ones = np.empty(n), np.empty(n)
    for a in range(n):
        towards[a], ones[a] = -f[free[a]], 1.0
    _solve_factorised(L, towards)
    _solve_factorised(L, ones)
    shift = _sum(towards) / _sum(ones)
    for a in range(n):
        towards[a] -= shift * ones[a]
    mean = _sum(towards) / n  # rounding must not change the sum
    slope, length, hit = 0.0, 1.0, -1
    for a in range(n):
        towards[a] -= mean
        v = free[a]
        slope += f[v] * towards[a]
        change = y[v] * towards[a]
        to_bound = np.inf
        if change > 0.0:
            to_bound = (u[v] - alpha[v]) / change
        elif change < 0.0:
            to_bound = -alpha[v] / change
        if to_bound < length:
            length, hit = to_bound, a
    if not slope < 0.0:
        return False
    for a in range(n):
        v = free[a]
        before = alpha[v]
        after = min(u[v], max(0.0, before + length * y[v] * towards[a]))
        if a == hit:  # exactly on the bound
            after = u[v] if y[v] * towards[a] > 0.0 else 0.0
        alpha[v] = after
        add_row(K[rows[v]], y[v] * (after - before), values)
    return hit >= 0


@kernel
def _factorised(K, rows, free, ridge, L):
    """L <- Cholesky factor of the tile of the free variables; False if there is none."""
    trace = 0.0
    for a in range(len(free)):
        row = K[rows[free[a]]]
        for b in range(a + 1):
            L[a, b] = row[rows[free[b]]]
        trace += L[a, a]
    for a in range(len(free)):
        L[a, a] += ridge * trace / len(free)
    return _factorise(L)


@kernel
def _sum(values):
    total = 0.0
    for a in range(len(values)):
        total += values[a]
    return total


@kernel(fast_sums=True)
def _factorise(L):
    """Replace the lower triangle by its Cholesky factor; False if there is none."""
    for i in range(len(L)):
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


@kernel(fast_sums=True)
def _solve_factorised(L, x):
    """x <- the solution of L L' z = x."""
    n = len(L)
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]
