"""Newton steps on a face: all free variables of a small problem move at once.

Pair steps quickly find the variables at their bounds, but are slow if the free variables are nearly
dependent, as with large C or few features. With s = y a, gradient f and free variables F, the
minimum of the face solves

    | K_FF  1 | | d  |   | -f_F |
    | 1'    0 | | mu | = |   0  |          (one row of ones for each group with a fixed sum)

The step towards it ends at the first bound, where one more variable then stays. So there are at
most as many steps as variables before a full step. The objective falls with each step.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import single_threaded_blas

__all__ = ["descend_on_faces"]

_RIDGE = 1e-14
_MOST_STEPS = 50


def descend_on_faces(
    K: np.ndarray,
    y: np.ndarray,
    u: np.ndarray,
    alpha: np.ndarray,
    f: np.ndarray,
    groups: list[np.ndarray],
) -> np.ndarray:
    """alpha (m,) after some Newton steps; K float64 (m, m) is the Gram matrix of the variables."""
    s, f = y * alpha, f.copy()
    lowest, highest = np.where(y > 0, 0.0, -u), np.where(y > 0, u, 0.0)
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_MOST_STEPS):
            free = np.flatnonzero((s > lowest) & (s < highest))
            if not len(free):
                break
            direction = _newton_direction(K, f, free, groups)
            length, hits = _longest_step(K, f, s, direction, free, lowest, highest)
            if not 0.0 < length < np.inf:
                break
            bounds = np.where(direction > 0, highest[free], lowest[free])
            moved = np.where(hits, bounds, s[free] + length * direction)  # exactly on the bound
            f += K[:, free] @ (moved - s[free])
            s[free] = moved
            if not hits.any():
                break
    return np.clip(y * s, 0.0, u)


def _newton_direction(
    K: np.ndarray, f: np.ndarray, free: np.ndarray, groups: list[np.ndarray]
) -> np.ndarray:
    K_free = K[np.ix_(free, free)]
    K_free[np.diag_indices_from(K_free)] += _RIDGE * max(
        1e-300, float(np.trace(K_free)) / len(free)
    )
    ones = np.array([group[free] for group in groups], dtype=np.float64).reshape(-1, len(free))
    ones = ones[ones.any(axis=1)]
    k = len(ones)
    system = np.block([[K_free, ones.T], [ones, np.zeros((k, k))]])
    right = np.concatenate([-f[free], np.zeros(k)])
    try:
        direction = np.linalg.solve(system, right)[: len(free)]
    except np.linalg.LinAlgError:
        direction = np.linalg.lstsq(system, right, rcond=None)[0][: len(free)]
    for row in ones:  # rounding must not change the sums
        direction -= row * (row @ direction) / row.sum()
    return direction


def _longest_step(
    K: np.ndarray,
    f: np.ndarray,
    s: np.ndarray,
    direction: np.ndarray,
    free: np.ndarray,
    lowest: np.ndarray,
    highest: np.ndarray,
) -> tuple[float, np.ndarray]:
    """The best step length along the direction, and which variables reach a bound by it."""
    slope = float(f[free] @ direction)
    curvature = float(direction @ K[np.ix_(free, free)] @ direction)
    none = np.zeros(len(free), dtype=bool)
    if not slope < 0.0:
        return 0.0, none
    best = -slope / curvature if curvature > 0.0 else np.inf
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        to_bound = np.where(direction > 0, highest[free] - s[free], lowest[free] - s[free])
        to_bound = to_bound / direction
    to_bound = np.where(direction != 0.0, to_bound, np.inf)
    limit = float(to_bound.min())
    return (best, none) if best < limit else (limit, to_bound <= limit * (1.0 + 1e-12))
