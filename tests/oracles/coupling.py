"""Likelihood of a sigmoid, pairwise coupling and projection, from their definitions."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from tests.oracles.quadratic import solve_qp


def negative_log_likelihood(decision, is_positive, weight, slope, offset=0.0) -> float:
    """Of Platt's smoothed targets under p(+|f) = 1 / (1 + exp(-(slope f + offset)))."""
    n_positive = sum(w for w, positive in zip(weight, is_positive, strict=True) if positive)
    n_negative = sum(w for w, positive in zip(weight, is_positive, strict=True) if not positive)
    total = 0.0
    for f, positive, w in zip(decision, is_positive, weight, strict=True):
        target = (n_positive + 1) / (n_positive + 2) if positive else 1 / (n_negative + 2)
        z = slope * f + offset
        total += w * (target * np.logaddexp(0, -z) + (1 - target) * np.logaddexp(0, z))
    return float(total)


def coupling_terms(r, n_classes):
    """The vectors v of sum (v'p)^2 = sum (r_ji p_i - r_ij p_j)^2, one a pair."""
    for r_ij, (i, j) in zip(r, combinations(range(n_classes), 2), strict=True):
        v = np.zeros(n_classes)
        v[i], v[j] = 1 - r_ij, -r_ij
        yield v


def couple(r, n_classes):
    """p of the simplex with the least sum of squares, by an interior-point method."""
    Q = 2 * sum(np.outer(v, v) for v in coupling_terms(r, n_classes))
    ones = np.ones((1, n_classes))
    return solve_qp(Q, np.zeros(n_classes), ones, np.ones(1), np.full(n_classes, 2.0))


def nearest_agreeing(p, winner):
    """The nearest q of the simplex with q[winner] >= q[j], by trying every face of that set.

    On a face some classes are 0, some equal the winner, and the rest are free: least squares
    there adds one number to all that are not 0, and gives those that are equal their mean.
    """
    others = [j for j in range(len(p)) if j != winner]
    best, distance = None, np.inf
    for roles in product(("zero", "equal", "free"), repeat=len(others)):
        zero = [j for j, role in zip(others, roles, strict=True) if role == "zero"]
        equal = [winner] + [j for j, role in zip(others, roles, strict=True) if role == "equal"]
        q = p.copy()
        q[equal] = p[equal].mean()
        q[zero] = 0
        kept = np.setdiff1d(np.arange(len(p)), zero)
        q[kept] += (1 - q.sum()) / len(kept)
        feasible = q.min() >= -1e-12 and q.max() <= q[winner] + 1e-12
        if feasible and ((q - p) ** 2).sum() < distance:
            best, distance = q, ((q - p) ** 2).sum()
    return best
