"""Convex quadratic problems with box and equality constraints, by a dense interior-point method.

    minimise 1/2 a'Qa + p'a   subject to  A a = b,  0 <= a <= u

Primal-dual, following Nocedal and Wright, chapter 16: slow, plain, and unlike anything that works
pair by pair.
"""

from __future__ import annotations

import numpy as np


def solve_qp(Q, p, A, b, u, *, iterations=300, tol=1e-13):
    """The minimiser; A (k, n) has full row rank, u is finite, and some a is strictly inside."""
    n, k = len(p), len(b)
    a, room = u / 2, u / 2  # room = u - a, kept apart so that neither ever rounds to zero
    lam = np.zeros(k)
    low, high = np.ones(n), np.ones(n)  # multipliers of 0 <= a and a <= u
    for _ in range(iterations):
        mu = (low @ a + high @ room) / (2 * n)
        dual = Q @ a + p - A.T @ lam - low + high
        primal = A @ a - b
        scale = 1 + np.abs(Q @ a).max() + np.abs(p).max()
        if mu < tol * scale * min(1.0, u.max()):
            break
        target = 0.1 * mu
        H = Q + np.diag(low / a + high / room)
        right = -dual + (target / a - low) - (target / room - high)
        KKT = np.block([[H, -A.T], [A, np.zeros((k, k))]])
        try:
            step = np.linalg.solve(KKT, np.r_[right, -primal])
        except np.linalg.LinAlgError:  # as far as it goes
            break
        da, dlam = step[:n], step[n:]
        dlow = (target - low * da) / a - low
        dhigh = (target + high * da) / room - high
        length = 1.0
        for value, change in ((a, da), (room, -da), (low, dlow), (high, dhigh)):
            falling = change < 0
            if falling.any():
                length = min(length, 0.995 * (-value[falling] / change[falling]).min())
        a, room, lam = a + length * da, room - length * da, lam + length * dlam
        low, high = low + length * dlow, high + length * dhigh
    return _polished(Q, p, A, b, u, np.clip(a, 0.0, u))


def _polished(Q, p, A, b, u, a):
    """Variables near a bound put on it, the others solved for: constraints then hold exactly.

    What counts as near is tried out; the lowest objective of a feasible point wins.
    """
    candidates = []
    for near in 10.0 ** -np.arange(3.0, 11.0):
        low, high = a <= near * u, a >= (1 - near) * u
        free = ~(low | high)
        exact = np.where(high, u, 0.0)
        k = len(b)
        KKT = np.block([[Q[np.ix_(free, free)], -A[:, free].T], [A[:, free], np.zeros((k, k))]])
        right = np.r_[-(p + Q @ exact)[free], b - A @ exact]
        exact[free] = np.linalg.lstsq(KKT, right, rcond=None)[0][: free.sum()]
        is_feasible = (exact >= 0).all() and (exact <= u).all()
        if is_feasible and np.abs(A @ exact - b).max(initial=0.0) <= 1e-12 * u.max() * len(u):
            candidates.append(exact)
    return min(candidates, key=lambda exact: objective(Q, p, exact), default=a)


def objective(Q, p, a):
    return 0.5 * a @ Q @ a + p @ a
