"""The compiled loops of dual coordinate descent; see `dual_coordinate_descent`.

Each exists for one machine with any loss, and for LANES one-vs-rest machines at once:

    visit     coordinate steps on some rows, and the shares of these rows in the duality gap
    weigh     W += X'beta
    examine   losses, the linear part of the dual and the largest violation, at a fixed point
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.margin.linear import row_loss
from margrove.margin.solvers.linear.row_sums import add_row, row_value

__all__ = [
    "LANES",
    "DescentState",
    "LaneTargets",
    "examine_lanes",
    "examine_one",
    "visit_lanes",
    "visit_one",
    "weigh_lanes",
    "weigh_one",
]

LANES = 16  # machines whose weights are stored together
_UNBOUNDED = 1e30


class DescentState(NamedTuple):
    """The arrays that coordinate steps change, for L machines, m rows, d features; L is 1 or LANES.

    beta        (m, L) dual variables, float64, or float32 for lanes if that is precise enough
    W           (d, L) of the same type: the sum of beta x over the rows
    bias        (L,)   the intercepts
    balance     (L,)   sums of beta
    worst       (L,)   the largest violation of the last pass
    next_worst  (L,)   the same of this pass
    kept        bool (m,) whether the row is visited in the next pass
    sums        float64 (3, L): losses, beta times values, shares of the duality gap
    """

    beta: np.ndarray
    W: np.ndarray
    bias: np.ndarray
    balance: np.ndarray
    worst: np.ndarray
    next_worst: np.ndarray
    kept: np.ndarray
    sums: np.ndarray


class LaneTargets(NamedTuple):
    """The targets of one-vs-rest machines for m rows.

    codes       int64 (m,) the class of each row; for machine k, class first + k is +1, others -1
    C           float64 (m,) the penalty C of each row
    n_machines  the number of lanes with a machine
    squared     whether the loss is the squared hinge
    """

    codes: np.ndarray
    C: np.ndarray
    first: int
    n_machines: int
    squared: bool


# -- one machine -----------------------------------------------------------------------------------


@kernel(inner=True)
def _left_and_right(gradient, beta, tube):
    """The two one-sided derivatives of the dual (as a minimisation) at beta."""
    if beta > 0.0:
        return gradient + tube, gradient + tube
    if beta < 0.0:
        return gradient - tube, gradient - tube
    return gradient - tube, gradient + tube


@kernel(bare=True)
def visit_one(X, rows, norms, loss, gain, active, start, end, state):
    """Coordinate steps on the rows active[start:end]."""
    beta, W, bias, balance, worst, next_worst, kept, sums = state
    w, tube, threshold = W.reshape(-1), loss.tube, worst[0]
    for t in range(start, end):
        i = active[t]
        low, high, damping, old = loss.low[i], loss.high[i], loss.damping[i], beta[i, 0]
        value = row_value(X, rows[i], w)
        residual = loss.target[i] - value - bias[0]
        cost = row_loss(residual, low, high, damping, tube)
        sums[0, 0] += cost
        sums[1, 0] += old * value
        sums[2, 0] += cost - (old * residual - tube * abs(old) - 0.5 * damping * old * old)
        gradient = damping * old - residual
        left, right = _left_and_right(gradient, old, tube)
        down = left if old > low else -np.inf  # > 0: going down helps
        up = -right if old < high else -np.inf
        violation = max(down, up, 0.0)
        next_worst[0] = max(next_worst[0], violation)
        if violation == 0.0:
            kept[i] = max(down, up) >= -threshold
            continue
        curvature = max(norms[i] + gain + damping, 1e-300)
        target = curvature * old - gradient
        shrunk = target - tube if target > tube else (target + tube if target < -tube else 0.0)
        new = min(max(shrunk / curvature, low), high)
        step = new - old
        if step != 0.0:
            beta[i, 0] = new
            balance[0] += step
            bias[0] += gain * step
            add_row(X, rows[i], step, w)


@kernel(bare=True)
def weigh_one(X, rows, start, end, beta, W):
    """W += X'beta of the rows start .. end"""
    w = W.reshape(-1)
    for i in range(start, end):
        if beta[i, 0] != 0.0:
            add_row(X, rows[i], beta[i, 0], w)


@kernel(bare=True)
def examine_one(X, rows, loss, start, end, beta, W, bias, sums):
    """sums (3, 1) <- losses, the linear part of the dual, the largest violation."""
    w, tube = W.reshape(-1), loss.tube
    for i in range(start, end):
        low, high, damping, old = loss.low[i], loss.high[i], loss.damping[i], beta[i, 0]
        residual = loss.target[i] - row_value(X, rows[i], w) - bias[0]
        sums[0, 0] += row_loss(residual, low, high, damping, tube)
        sums[1, 0] += loss.target[i] * old - tube * abs(old) - 0.5 * damping * old * old
        left, right = _left_and_right(damping * old - residual, old, tube)
        down = left if old > low else 0.0
        up = -right if old < high else 0.0
        sums[2, 0] = max(sums[2, 0], down, up)


# -- sixteen machines ------------------------------------------------------------------------------


@kernel(fast_sums=True)
def _values_of_lanes(X, row, W, values):
    """values += x W, four entries of x at a time, in one pass over the lanes.

    Unsigned indices avoid the test for negative ones.
    """
    number = values.dtype.type
    flat = W.reshape(-1)
    lanes = np.uint64(LANES)
    if X.is_dense:
        for j in range(X.dense.shape[1]):
            x = number(X.dense[row, j])
            at = np.uint64(j) * lanes
            for lane in range(LANES):
                values[lane] += x * flat[at + np.uint64(lane)]
        return
    p, end = X.indptr[row], X.indptr[row + 1]
    while p + 4 <= end:
        a, b = np.uint64(X.indices[p]) * lanes, np.uint64(X.indices[p + 1]) * lanes
        c, d = np.uint64(X.indices[p + 2]) * lanes, np.uint64(X.indices[p + 3]) * lanes
        xa, xb = number(X.data[p]), number(X.data[p + 1])
        xc, xd = number(X.data[p + 2]), number(X.data[p + 3])
        for lane in range(LANES):
            k = np.uint64(lane)
            values[lane] += (
                xa * flat[a + k] + xb * flat[b + k] + xc * flat[c + k] + xd * flat[d + k]
            )
        p += 4
    while p < end:
        x, at = number(X.data[p]), np.uint64(X.indices[p]) * lanes
        for lane in range(LANES):
            values[lane] += x * flat[at + np.uint64(lane)]
        p += 1


@kernel
def _add_to_lanes(X, row, steps, W):
    """W += x' steps"""
    number = steps.dtype.type
    flat = W.reshape(-1)
    lanes = np.uint64(LANES)
    if X.is_dense:
        for j in range(X.dense.shape[1]):
            x, at = number(X.dense[row, j]), np.uint64(j) * lanes
            for lane in range(LANES):
                flat[at + np.uint64(lane)] += x * steps[lane]
        return
    for p in range(X.indptr[row], X.indptr[row + 1]):
        x, at = number(X.data[p]), np.uint64(X.indices[p]) * lanes
        for lane in range(LANES):
            flat[at + np.uint64(lane)] += x * steps[lane]


@kernel(fast_sums=True)
def visit_lanes(X, rows, norms, targets, gain, active, start, end, state):
    """Coordinate steps for LANES machines at once; lanes without a machine never change.

    Everything has the type of beta and there are no branches, so that loops over lanes vectorise.
    Sums are moved to float64 every few rows.
    """
    beta, W, bias, balance, worst, next_worst, kept, sums = state
    codes, C, first, n_machines, squared = targets
    number = beta.dtype.type
    zero, one, half = number(0.0), number(1.0), number(0.5)
    values = np.empty(LANES, beta.dtype)
    steps = np.empty(LANES, beta.dtype)
    sign = np.full(LANES, -one, beta.dtype)
    used = np.zeros(LANES, beta.dtype)
    used[:n_machines] = one
    costs = np.zeros(LANES, beta.dtype)
    products = np.zeros(LANES, beta.dtype)
    shares = np.zeros(LANES, beta.dtype)
    for t in range(start, end):
        i = active[t]
        row = rows[i]
        for lane in range(LANES):
            values[lane] = zero
        _values_of_lanes(X, row, W, values)
        positive = codes[i] - first
        if 0 <= positive < n_machines:
            sign[positive] = one
        price = number(C[i])
        damping = half / price if squared else zero
        bound = number(_UNBOUNDED) if squared else price
        linear = zero if squared else price
        inverse = one / max(number(norms[i] + gain) + damping, number(1e-30))
        moved = zero
        idle = zero
        for lane in range(LANES):
            s, old, value = sign[lane], beta[i, lane], values[lane]
            residual = s - value - bias[lane]
            alpha = s * old  # >= 0
            margin = s * residual  # 1 - y f
            slack = max(margin, zero)
            cost = slack * (linear + (price - linear) * slack)
            costs[lane] += used[lane] * cost
            products[lane] += old * value
            shares[lane] += used[lane] * (cost - alpha * margin + half * damping * alpha * alpha)
            slope = damping * alpha - margin  # of the dual (as a minimisation) along alpha
            new = min(max(alpha - slope * inverse, zero), bound * used[lane])
            move = new - alpha
            size = abs(slope)
            # At a bound, and pushed against it.
            at_rest = one if (alpha == zero) & (slope >= zero) else zero
            at_rest = one if (alpha == bound) & (slope <= zero) else at_rest
            violation = used[lane] * (one - at_rest) * size
            next_worst[lane] = max(next_worst[lane], violation)
            idle += at_rest if size > worst[lane] else one - used[lane]
            moved += abs(move)
            steps[lane] = s * move
            beta[i, lane] = s * new
        kept[i] = idle < LANES
        if moved > zero:
            for lane in range(LANES):
                balance[lane] += steps[lane]
                bias[lane] += number(gain) * steps[lane]
            _add_to_lanes(X, row, steps, W)
        if 0 <= positive < n_machines:
            sign[positive] = -one
        if t % 256 == 255 or t == end - 1:
            for lane in range(LANES):
                sums[0, lane] += costs[lane]
                sums[1, lane] += products[lane]
                sums[2, lane] += shares[lane]
                costs[lane] = products[lane] = shares[lane] = zero


@kernel
def weigh_lanes(X, rows, start, end, beta, W):
    """W += X'beta of the rows start .. end"""
    steps = np.empty(LANES, np.float64)
    for i in range(start, end):
        is_zero = True
        for lane in range(LANES):
            steps[lane] = beta[i, lane]
            is_zero &= beta[i, lane] == 0.0
        if not is_zero:
            _add_to_lanes(X, rows[i], steps, W)


@kernel
def examine_lanes(X, rows, targets, start, end, beta, W, bias, sums):
    """sums (3, LANES) <- losses, the linear part of the dual, the largest violation."""
    codes, C, first, n_machines, squared = targets
    values = np.empty(LANES, np.float64)
    for i in range(start, end):
        values[:] = bias
        _values_of_lanes(X, rows[i], W, values)
        positive = codes[i] - first
        damping = 0.5 / C[i] if squared else 0.0
        bound = np.inf if squared else C[i]
        for lane in range(n_machines):
            s = 1.0 if lane == positive else -1.0
            alpha = s * np.float64(beta[i, lane])
            residual = 1.0 - s * values[lane]
            slack = max(residual, 0.0)
            sums[0, lane] += C[i] * slack * slack if squared else C[i] * slack
            sums[1, lane] += alpha - 0.5 * damping * alpha * alpha
            slope = damping * alpha - residual
            # float32 rounds C: a variable that is this close to the bound is at the bound.
            down = slope if alpha > 0.0 else 0.0
            up = -slope if alpha < bound * (1.0 - 1e-6) else 0.0
            sums[2, lane] = max(sums[2, lane], down, up)
