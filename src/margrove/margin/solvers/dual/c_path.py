"""The machines for a sequence of C over one Gram matrix, in one compiled loop.

    minimise    1/2 a'Qa + p'a     subject to   y'a = 0,   0 <= a <= C w,   Q_ij = y_i y_j K_ij

Values of C ascend. A machine starts from the solution a of the previous one, scaled by a factor s:
the objective of s a, s a'p + s^2 a'Qa / 2, has its minimum at a known s, between 1 (no variable is
at a bound, so the solution is the same for every larger C) and the ratio of the two C (all
variables are at a bound).

A round takes the free variables and the worst violators, copies their tile of K in float32 and
solves it by pair steps (`pair_steps.solve_tile`). The changes are then added to the values (K c)_i
of all rows in float64, so that the next round corrects the rounding of the tile. Stopping is always
on the violation over all variables. When pair steps have taken as long as Newton steps from face to
face would (see `face_newton`), these follow, and mostly finish the machine. If float32 makes no
progress, tiles become float64.

The loop returns after a number of pair steps, to be called again with the same arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.margin.kernels import TileView
from margrove.margin.solvers.dual.face_newton import (
    LARGEST_FACE,
    apply_changes,
    descend_on_faces,
    measure,
)
from margrove.margin.solvers.dual.pair_steps import (
    FLOAT32_ETA,
    FLOAT64_ETA,
    PairRecord,
    solve_tile,
)

__all__ = [
    "BROKEN_OFF",
    "CONVERGED",
    "UNCHANGED",
    "PathMachine",
    "PathPoint",
    "PathResults",
    "follow_path",
]

CONVERGED, UNCHANGED, BROKEN_OFF = 1, 2, 3  # how a machine ended

# The least number of variables of a tile (an eighth of all if that is more; more if more are free),
# and the least number of violators in it (a sixteenth of all if that is more).
_BLOCK, _LEAST_VIOLATORS = 256, 64
_LARGEST_BLOCK = 4096
_INNER_SHARE = 0.1  # a block is solved to this share of the violation at its start
_STEPS_PER_VARIABLE = 50  # in a tile of too many free variables for a descent on faces
# The cost of a pair step and of a variable in it, in multiply-adds of a descent on faces.
_STEP_COST, _COST_IN_STEP = 1200.0, 4.0
_LEAST_STEPS = 500  # before a descent on faces
_TYPICAL_CHANGES, _MOST_CHANGES = 100.0, 200  # of the free variables in a descent
_STEPS_OF_CHANGE = 50  # a change of the free variables takes about as long, for slices
_PROGRESS = 0.5
_MOST_STALLS_32 = 4  # rounds without progress before tiles become float64
_MOST_STALLS_64 = 40  # rounds without progress before the machine is given up
_NEGLIGIBLE = 1e-10  # relative to the largest alpha

# Slots of `progress`.
_POINT, _BEGUN, _STEPS, _STALLS, _IS_DOUBLE, _SPENT = range(6)
_BEST = 0


class PathMachine(NamedTuple):
    """A machine of m variables, arrays (m,): rows of K, y, p, and bounds divided by C."""

    rows: np.ndarray
    y: np.ndarray
    p: np.ndarray
    weight: np.ndarray


class PathPoint(NamedTuple):
    """The state of a path.

    alpha     float64 (m,)
    values    float64 (n,) (K c)_i of all rows
    progress  int64 (6,)
    least     float64 (1,) the least violation so far
    """

    alpha: np.ndarray
    values: np.ndarray
    progress: np.ndarray
    least: np.ndarray

    @classmethod
    def at_start(cls, alpha: np.ndarray, values: np.ndarray) -> PathPoint:
        return cls(alpha, values, np.zeros(6, dtype=np.int64), np.full(1, np.inf))


class PathResults(NamedTuple):
    """The results for k values of C.

    alphas      float64 (k, m)
    rhos, violations, objectives   float64 (k,)
    steps       int64 (k,)
    endings     int8 (k,) CONVERGED, UNCHANGED or BROKEN_OFF
    """

    alphas: np.ndarray
    rhos: np.ndarray
    violations: np.ndarray
    objectives: np.ndarray
    steps: np.ndarray
    endings: np.ndarray


@kernel
def follow_path(K, machine, Cs, tol, budget, slice_steps, at, found):
    """Continue the path for about `slice_steps`; return whether its end has been reached.

    K: float64 (n, n). `machine` is a `PathMachine`, Cs float64 (k,), `at` a `PathPoint`, and
    `found` the `PathResults` to write to.
    """
    rows, y, p, weight = machine
    alpha, values, progress, least = at
    alphas, rhos, violations, objectives, steps, endings = found
    m = len(alpha)
    f, u = np.empty(m), np.empty(m)
    no_index = np.empty(0, np.int64)
    nothing = PairRecord(no_index, no_index, np.empty(0))
    done = 0
    while progress[_POINT] < len(Cs):
        point = progress[_POINT]
        for v in range(m):
            u[v] = Cs[point] * weight[v]
        if not progress[_BEGUN]:
            if point > 0:
                _stretch(rows, y, p, u, Cs[point] / Cs[point - 1], alpha, values)
            progress[_BEGUN], progress[_STEPS], progress[_STALLS], progress[_SPENT] = 1, 0, 0, 0
            least[_BEST] = np.inf
        while True:
            violation = measure(rows, y, p, u, alpha, values, f)
            if violation < tol or progress[_STEPS] >= budget or progress[_STALLS] > _MOST_STALLS_64:
                break
            if done >= slice_steps:
                return False
            chosen, n_free, is_all = _choose(y, u, alpha, f)
            most = max(_most_steps(len(chosen), n_free) - progress[_SPENT], len(chosen))
            most = min(most, budget - progress[_STEPS])
            inner_tol = 0.5 * tol if is_all else max(0.5 * tol, _INNER_SHARE * violation)
            q, tile_rows, moved = len(chosen), _taken(rows, chosen), _taken(alpha, chosen)
            tile_y, tile_u, tile_f = _taken(y, chosen), _taken(u, chosen), _taken(f, chosen)
            # Both precisions are here, not in a function each: a called kernel is compiled again
            # for every caller, and pair steps are most of the code.
            if progress[_IS_DOUBLE]:
                double = np.empty((q, q), np.float64)
                diagonal = _gather(K, tile_rows, double)
                taken = solve_tile(
                    TileView(double, 0, q, 0), diagonal, tile_y, tile_u, moved, tile_f, False,
                    inner_tol, FLOAT64_ETA, most, nothing,
                )  # fmt: skip
            else:
                single = np.empty((q, q), np.float32)
                diagonal = _gather(K, tile_rows, single)
                taken = solve_tile(
                    TileView(single, 0, q, 0), diagonal, tile_y, tile_u, moved, tile_f, False,
                    inner_tol, FLOAT32_ETA, most, nothing,
                )  # fmt: skip
            apply_changes(K, rows, y, chosen, moved, alpha, values)
            is_slow = taken >= most
            progress[_SPENT] += taken
            if is_slow:
                progress[_SPENT] = 0
                n_changes = descend_on_faces(K, machine, u, alpha, values, f, tol, _MOST_CHANGES)
                done += _STEPS_OF_CHANGE * n_changes
            # If violators are left out, or the tile is not solved, the violation need not fall.
            _notice_stall((is_all and not is_slow) or taken == 0, violation, progress, least)
            progress[_STEPS] += max(taken, 1)
            done += max(taken, 1)
        for v in range(m):
            alphas[point, v] = alpha[v]
        rhos[point] = _offset(y, u, alpha, f)
        violations[point] = violation
        objectives[point] = _objective(rows, y, p, alpha, values)
        steps[point] = progress[_STEPS]
        if violation >= tol:
            endings[point] = BROKEN_OFF
        elif point > 0 and progress[_STEPS] == 0 and _largest_share(u, alpha) < 1.0:
            endings[point] = UNCHANGED
        else:
            endings[point] = CONVERGED
        progress[_POINT] += 1
        progress[_BEGUN] = 0
    return True


@kernel
def _most_steps(n_chosen, n_free):
    """The limit of pair steps before a descent on faces: as many as take the time of one."""
    if n_free > LARGEST_FACE:
        return _STEPS_PER_VARIABLE * n_chosen
    operations = n_free * n_free * (0.5 * n_free + _TYPICAL_CHANGES)
    return int(operations / (_STEP_COST + _COST_IN_STEP * n_chosen)) + n_chosen + _LEAST_STEPS


@kernel
def _notice_stall(should_fall, violation, progress, least):
    """Count rounds that should have halved the violation and did not."""
    if violation <= _PROGRESS * least[_BEST]:
        progress[_STALLS] = 0
        least[_BEST] = violation
    elif should_fall:
        progress[_STALLS] += 1
        if not progress[_IS_DOUBLE] and progress[_STALLS] > _MOST_STALLS_32:
            progress[_IS_DOUBLE], progress[_STALLS] = 1, 0


@kernel(fast_sums=True)
def _stretch(rows, y, p, u, ratio, alpha, values):
    """Scale the point to where the objective is lowest on its ray, at most by `ratio`."""
    linear = quadratic = 0.0
    is_bounded = False
    for v in range(len(alpha)):
        is_bounded |= alpha[v] * ratio >= u[v] * (1.0 - 1e-9)
        linear -= p[v] * alpha[v]
        quadratic += y[v] * alpha[v] * values[rows[v]]
    if not is_bounded:  # larger bounds change nothing
        return
    scale = ratio
    if quadratic > 0.0:
        scale = min(ratio, max(1.0, linear / quadratic))
    if scale > ratio * (1.0 - 1e-9):
        scale = ratio
    for v in range(len(alpha)):
        alpha[v] *= scale
        if alpha[v] > u[v] * (1.0 - 1e-12):
            alpha[v] = u[v]
    for i in range(len(values)):
        values[i] *= scale


@kernel
def _objective(rows, y, p, alpha, values):
    """1/2 a'Qa + p'a"""
    total = 0.0
    for v in range(len(alpha)):
        total += alpha[v] * (0.5 * y[v] * values[rows[v]] + p[v])
    return total


@kernel
def _largest_share(u, alpha):
    """The largest quotient of a variable and its bound."""
    largest = 0.0
    for v in range(len(alpha)):
        largest = max(largest, alpha[v] / u[v])
    return largest


@kernel
def _offset(y, u, alpha, f):
    """rho: the mean f of the free variables, else the middle of the interval that bounds allow."""
    largest = 0.0
    for v in range(len(alpha)):
        largest = max(largest, alpha[v])
    negligible = _NEGLIGIBLE * largest
    total, count = 0.0, 0
    above, below = np.inf, -np.inf
    for v in range(len(alpha)):
        rises = u[v] - alpha[v] > negligible if y[v] > 0.0 else alpha[v] > negligible
        falls = alpha[v] > negligible if y[v] > 0.0 else u[v] - alpha[v] > negligible
        if rises and falls:
            total += f[v]
            count += 1
        if rises:
            above = min(above, f[v])
        if falls:
            below = max(below, f[v])
    if count:
        return total / count
    if above == np.inf or below == -np.inf:
        return 0.0 if above == -below else (below if above == np.inf else above)
    return 0.5 * (above + below)


@kernel
def _choose(y, u, alpha, f):
    """The free variables and the worst violators of both sides.

    Returns their numbers, how many variables are free, and whether all violators are chosen.
    """
    m = len(alpha)
    lowest, highest, n_free = np.inf, -np.inf, 0
    for v in range(m):
        below, above = alpha[v] < u[v], alpha[v] > 0.0
        n_free += below and above
        if below if y[v] > 0.0 else above:
            lowest = min(lowest, f[v])
        if above if y[v] > 0.0 else below:
            highest = max(highest, f[v])
    least = max(_LEAST_VIOLATORS, m // 16)
    takes_free = n_free <= _LARGEST_BLOCK - least
    count = max(least, _BLOCK - n_free, m // 8 - n_free) if takes_free else _LARGEST_BLOCK
    # How far a variable is beyond the extreme of the other side, or 0.
    rising, falling = np.zeros(m), np.zeros(m)
    is_chosen = np.zeros(m, np.uint8)
    n_rising = n_falling = 0
    for v in range(m):
        below, above = alpha[v] < u[v], alpha[v] > 0.0
        if below and above and takes_free:
            is_chosen[v] = 1
            continue
        if (below if y[v] > 0.0 else above) and f[v] < highest:
            rising[v] = highest - f[v]
            n_rising += 1
        if (above if y[v] > 0.0 else below) and f[v] > lowest:
            falling[v] = f[v] - lowest
            n_falling += 1
    most_rising = max(count // 2, count - n_falling)
    most_falling = count - min(n_rising, most_rising)
    _mark_largest(rising, n_rising, most_rising, is_chosen)
    _mark_largest(falling, n_falling, most_falling, is_chosen)
    chosen = np.empty(m, np.int64)
    n_chosen = 0
    for v in range(m):
        chosen[n_chosen] = v
        n_chosen += is_chosen[v]
    is_all = takes_free and n_rising <= most_rising and n_falling <= most_falling
    return chosen[:n_chosen], n_free, is_all


@kernel
def _mark_largest(scores, count, most, is_marked):
    """Mark the `most` largest of the `count` scores that are above zero."""
    limit = 0.0
    if count > most:
        limit = _kth_largest(scores, most)
    ties = most
    for v in range(len(scores)):
        if scores[v] > limit:
            is_marked[v] = 1
            ties -= 1
    for v in range(len(scores)):
        if ties > 0 and limit > 0.0 and scores[v] == limit:
            is_marked[v] = 1
            ties -= 1


@kernel
def _kth_largest(scores, k):
    """The k-th largest number, by Hoare's selection on a copy."""
    values = scores.copy()
    low, high, place = 0, len(values) - 1, k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]


@kernel
def _taken(values, index):
    """values[index]; a plain loop compiles faster."""
    out = np.empty(len(index), values.dtype)
    for a in range(len(index)):
        out[a] = values[index[a]]
    return out


@kernel
def _gather(K, rows, tile):
    """tile <- K of these rows; return its diagonal in float64."""
    q = len(rows)
    diagonal = np.empty(q)
    for a in range(q):
        row = K[rows[a]]
        diagonal[a] = row[rows[a]]
        for b in range(q):
            tile[a, b] = row[rows[b]]
    return diagonal
