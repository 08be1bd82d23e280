"""Probabilities of support vector classifiers that always agree with `predict`.

Platt's sigmoid has an offset, so a row with a negative decision value may get a probability above
one half, and pairwise coupling may favour another class than the votes do. Here the sigmoid of two
classes has a slope only (it is exactly one half at decision value 0), and coupled probabilities are
projected onto those whose largest is the predicted class. The cost in log-loss is measured: see
PriceOfAgreement.

Both sigmoids are fitted to margins m = y f with y = +1 or -1. Platt's smoothed targets are 1 - q
and q with q = 1 / (N + 2), where N is the weight of the row's class. The loss of a row is
(1 - q) log(1 + e^-m) + q log(1 + e^m) = log(1 + e^-m) + q m, with derivative q - 1 / (1 + e^m).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, log1p, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

__all__ = [
    "PriceOfAgreement",
    "agree_with",
    "couple_pairs",
    "fit_platt",
    "fit_slope",
    "log_loss",
]

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
LARGEST = float(np.finfo(np.float64).max)
LEAST_STEEP = 1e-6  # slope times the largest |f|, if the best slope is not positive
PAIR_CLIP = 1e-7  # LIBSVM's
LEAD = 1e-10  # relative lead of the predicted class after projection; a logarithm keeps it
CHUNK = 2**20  # entries of coupling matrices in memory at once


@dataclass(frozen=True)
class PriceOfAgreement:
    """The cost of probabilities that always agree with `predict`.

    log_loss                the log-loss of the returned probabilities
    log_loss_unconstrained  the log-loss with Platt's offset and without the projection
    n_rows_changed          number of rows whose most probable class the projection changed
    """

    log_loss: float
    log_loss_unconstrained: float
    n_rows_changed: int

    @property
    def difference(self) -> float:
        return self.log_loss - self.log_loss_unconstrained


@dataclass(frozen=True)
class _Margins:
    """Rows of positive weight, with f divided by the largest |f| and weights by the largest.

    `design` has y f and y as its rows: a margin is A y f + B y. `smoothing` is q.
    """

    design: Array
    smoothing: Array
    weight: Array
    scale: float
    n_positive: float
    n_negative: float

    def loss(self, at: Array) -> float:
        m = (at[:, None] * self.design[: len(at)]).sum(axis=0)
        return float((self.weight * (np.logaddexp(0.0, -m) + self.smoothing * m)).sum())

    def derivatives(self, at: Array) -> tuple[Array, Array, Array]:
        """Gradient and Hessian in A, or A and B, and a bound on the rounding of the gradient."""
        design = self.design[: len(at)]
        m = (at[:, None] * design).sum(axis=0)
        wrong = expit(-m)
        lever = self.weight * design
        gradient = (lever * (self.smoothing - wrong)).sum(axis=1)
        hessian = (lever[:, None] * design * (wrong * expit(m))).sum(axis=2)
        return gradient, hessian, 2 * EPS * (np.abs(lever) * (self.smoothing + wrong)).sum(axis=1)


def _margins(decision: ArrayLike, is_positive: ArrayLike, weight: ArrayLike) -> _Margins:
    w = np.asarray(weight, dtype=np.float64)
    used = w > 0
    w, f = w[used], np.asarray(decision, dtype=np.float64)[used]
    positive = np.asarray(is_positive, dtype=bool)[used]
    heaviest, scale = float(w.max(initial=0.0)) or 1.0, float(np.abs(f).max(initial=0.0)) or 1.0
    w, f = w / heaviest, f / scale
    n_positive, n_negative = (_finite(heaviest * float(w[c].sum())) for c in (positive, ~positive))
    sign = np.where(positive, 1.0, -1.0)
    smoothing = np.where(positive, 1.0 / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    return _Margins(np.array([sign * f, sign]), smoothing, w, scale, n_positive, n_negative)


def _finite(x: float) -> float:
    return min(max(x, -LARGEST), LARGEST)


def fit_slope(decision: ArrayLike, is_positive: ArrayLike, weight: ArrayLike) -> float:
    """The most likely A > 0 of p(+|f) = 1 / (1 + exp(-A f)); 1 if every f is 0.

    If the most likely slope is not positive, as when f falls with the labels, it is a tiny positive
    slope, which still orders rows as f does.
    """
    rows = _margins(decision, is_positive, weight)
    sizes = np.abs(rows.design[0])
    if not sizes.any():
        return 1.0
    # Beyond this slope the probability of every row is more extreme than its target.
    steepest = log1p(max(rows.n_positive, rows.n_negative)) / float(sizes[sizes > 0].min())
    return _finite(_stationary_slope(rows, LEAST_STEEP, _finite(steepest)) / rows.scale)


def _stationary_slope(rows: _Margins, low: float, high: float) -> float:
    """The slope between low and high with the smallest loss.

    Newton's method; if it leaves the bracket or does not halve the gradient, the bracket is halved
    on a logarithmic scale, because it may span hundreds of powers of ten.
    """
    if high <= low or rows.derivatives(np.array([low]))[0] >= 0:
        return low
    slope, before = min(max(1.0, low), high), LARGEST
    for _ in range(200):
        gradient, curvature, rounding = (d.item() for d in rows.derivatives(np.array([slope])))
        if abs(gradient) <= rounding:
            break
        low, high = (slope, high) if gradient < 0 else (low, slope)
        newton = slope - gradient / curvature if curvature > 0 else high
        halved = abs(gradient) <= 0.5 * before
        last, before = slope, abs(gradient)
        slope = newton if halved and low < newton < high else sqrt(low) * sqrt(high)
        if abs(slope - last) <= 4 * EPS * slope:
            break
    return slope


def fit_platt(
    decision: ArrayLike, is_positive: ArrayLike, weight: ArrayLike
) -> tuple[float, float]:
    """The most likely (A, B) of p(+|f) = 1 / (1 + exp(-(A f + B))); Platt writes both negated.

    Newton's method with backtracking, after Lin, Lin and Weng, "A note on Platt's probabilistic
    outputs for support vector machines" (2007).
    """
    rows = _margins(decision, is_positive, weight)
    at = np.array([0.0, log1p(rows.n_positive) - log1p(rows.n_negative)])
    for _ in range(100):
        gradient, hessian, rounding = rows.derivatives(at)
        if (np.abs(gradient) <= rounding).all():
            break
        # A ridge relative to the diagonal: with constant f the Hessian is singular at any scale.
        ridge = 1e-10 * np.diag(np.diag(hessian)) + 1e-200 * np.eye(2)
        direction = np.asarray(np.linalg.solve(hessian + ridge, -gradient), dtype=np.float64)
        step = _backtrack(rows, at, direction, float((gradient * direction).sum()))
        if step == 0:
            break
        at = at + step * direction
    return _finite(float(at[0]) / rows.scale), float(at[1])


def _backtrack(rows: _Margins, at: Array, direction: Array, descent: float) -> float:
    """The first of 1, 1/2, 1/4, ... that lowers the loss enough, 0 if none does."""
    now = rows.loss(at)
    slack = 4 * EPS * now  # the last steps gain less than the rounding error
    for step in 0.5 ** np.arange(34.0):
        if rows.loss(at + step * direction) <= now + 1e-4 * step * descent + slack:
            return float(step)
    return 0.0


def couple_pairs(pairwise: ArrayLike) -> Array:
    """Class probabilities (n, K) from r_ij = P(i | i or j), pairs (0,1), (0,2), ..., (1,2), ...

    The second method of Wu, Lin and Weng, "Probability estimates for multi-class classification
    by pairwise coupling" (2004): minimise sum (r_ji p_i - r_ij p_j)^2 = p'Qp over the simplex.
    They show that no p_i >= 0 binds, hence Qp is a multiple of the vector of ones e, and p is
    (Q + ee')^-1 e up to its sum. Q alone is singular where the pairs are consistent.
    """
    r = np.clip(np.asarray(pairwise, dtype=np.float64), PAIR_CLIP, 1 - PAIR_CLIP)
    n_classes = (1 + isqrt(1 + 8 * r.shape[1])) // 2
    size = max(1, CHUNK // n_classes**2)
    coupled = np.empty((len(r), n_classes))
    for start in range(0, len(r), size):
        x = _solve_for_ones(_coupling_matrices(r[start : start + size], n_classes))
        coupled[start : start + size] = np.maximum(x, 0.0)
    return coupled / coupled.sum(axis=1, keepdims=True)


def _coupling_matrices(r: Array, n_classes: int) -> Array:
    """Q + ee' of each row."""
    first, second = np.triu_indices(n_classes, 1)
    beaten = np.zeros((len(r), n_classes, n_classes))  # by the class of the last axis
    beaten[:, first, second] = 1 - r
    beaten[:, second, first] = r
    matrices = 1.0 - beaten * beaten.transpose(0, 2, 1)
    diagonal = np.arange(n_classes)
    matrices[:, diagonal, diagonal] += (beaten * beaten).sum(axis=2)
    return matrices


def _solve_for_ones(matrices: Array) -> Array:
    """The solution x of M x = e for positive definite M, which is overwritten.

    Elimination by elementwise steps: the sums of LAPACK may depend on threads and alignment, but
    here the result of a row depends on this row only.
    """
    n, n_classes, _ = matrices.shape
    x = np.ones((n, n_classes))
    for k in range(n_classes):
        factor = matrices[:, k + 1 :, k] / matrices[:, k, k, None]
        matrices[:, k + 1 :, k + 1 :] -= factor[:, :, None] * matrices[:, k, None, k + 1 :]
        x[:, k + 1 :] -= factor * x[:, k, None]
    for k in reversed(range(n_classes)):
        x[:, k] /= matrices[:, k, k]
        x[:, :k] -= matrices[:, :k, k] * x[:, k, None]
    return x


def agree_with(probabilities: ArrayLike, predicted: ArrayLike) -> Array:
    """The nearest probabilities whose argmax is `predicted`; rows that agree are not changed.

    Nearest in Euclidean distance, which is pooling: the predicted class and the classes above its
    final value share their mean t, the others stay. A mean keeps the sum and the sign, so the
    projection onto the cone p[predicted] >= p[j] stays in the simplex. The other classes are then
    capped slightly below t, so that there are no ties.
    """
    p = np.array(probabilities, dtype=np.float64, order="C")
    winner = np.asarray(predicted, dtype=np.intp)
    changed = np.flatnonzero(p.argmax(axis=1) != winner)
    others, place = p[changed], winner[changed, None]
    score = np.take_along_axis(others, place, axis=1)
    np.put_along_axis(others, place, 0.0, axis=1)
    # A class above the mean raises it and a class below lowers it, so t is the largest mean.
    sums = score + np.sort(others, axis=1)[:, ::-1].cumsum(axis=1)
    t = (sums / np.arange(2, p.shape[1] + 2)).max(axis=1, keepdims=True)
    capped = np.minimum(others, t * (1 - LEAD))
    freed = (others - capped).sum(axis=1, keepdims=True)
    np.put_along_axis(capped, place, score + freed, axis=1)
    p[changed] = capped
    return p


def log_loss(probabilities: ArrayLike, codes: ArrayLike, weight: ArrayLike) -> float:
    """The weighted mean of -log p[code], with p clipped to [eps, 1 - eps]."""
    p = np.asarray(probabilities, dtype=np.float64)
    of_class = p[np.arange(len(p)), np.asarray(codes, dtype=np.intp)]
    w = np.asarray(weight, dtype=np.float64)
    return float(np.average(-np.log(np.clip(of_class, EPS, 1 - EPS)), weights=w / w.max()))
