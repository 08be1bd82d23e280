"""Steps on a face of the dual of a linear machine: all free variables move at once.

Coordinate descent quickly finds the variables that stay at a bound, but is slow for the others if
rows are long and similar. With the variables at a bound fixed, the step p of the free variables F
solves the linear system

    (X_F X_F' + c 1 1' + D_F + m) p = -g_F

where g is the gradient and c the curvature of the intercept. It is solved by conjugate gradients
(Hestenes and Stiefel 1952), preconditioned by its diagonal: a product reads the rows F twice.
Variables that would cross a bound are put on it, and the system of the remaining ones is solved
again, a few times. m is a damping after Levenberg (1944) and Marquardt (1963): it grows if a step
does not lower the objective (the step is then not taken), and shrinks if it does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from margrove._data import Rows
from margrove._runtime import dot, kernel
from margrove.margin.linear import LinearProblem
from margrove.margin.solvers.linear.dual_coordinate_loops import DescentState
from margrove.margin.solvers.linear.row_sums import add_row, row_value

__all__ = ["FaceSteps"]

_ROUNDS = 6
_MOST_PRODUCTS = 200
_LOOSEST, _TIGHTEST = 0.1, 1e-3  # relative residual of the system
_SETTLED = 0.02  # share of variables that may leave a face that counts as settled
_EASIER, _HARDER, _LEAST = 0.3, 5.0, 1e-6
_WORK_AT_ONCE = 50_000_000  # multiply-adds between two checks for an interrupt

# The places of the counts of a step, and of its numbers.
_N_FACE, _N_FREE, _N_LEFT, _ROUND, _N_PRODUCTS, _HAS_SYSTEM, _IS_BETTER, _N_COUNTS = range(8)
_B, _BEST_B, _CHANGE, _LEAST_CHANGE, _GOAL, _SIZE, _DAMPING, _RESIDUAL, _N_NUMBERS = range(9)


class _Step(NamedTuple):
    """The state of a step. The point: beta (m,), w = X'beta (d,) and b, and the best one so far.

    face       int64 (m,)  the variables of the face come first
    low, high  (m,)  bounds
    system     (6, m)  of the variables of the face: the gradient, the diagonal and the solution of
               the linear system; residual and direction of conjugate gradients, and the product
    work       (d,)
    counts     of variables on the face, on the first one, of those that left; rounds, products, ...
    numbers    b, the change of the objective, the residual at which a system is solved, ...
    """

    beta: np.ndarray
    w: np.ndarray
    best_beta: np.ndarray
    best_w: np.ndarray
    face: np.ndarray
    low: np.ndarray
    high: np.ndarray
    system: np.ndarray
    work: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray


class FaceSteps:
    """Takes steps on faces of one problem, and adapts their damping."""

    def __init__(self, problem: LinearProblem, given: tuple[Any, ...], gain: float) -> None:
        """`given` are X, rows, norms and losses for compiled code."""
        self._given = (*given, gain)
        self._cells = _cells_of(problem.X, problem.rows) + len(problem)
        self._scale = 0.0 if problem.is_smooth else 1.0 / problem.price
        self._size = len(problem), problem.n_features
        self._state: _Step | None = None

    def step(self, active: np.ndarray, descent: DescentState) -> None:
        """Move free variables of `active`, if that leads to a better point."""
        if self._state is None:
            self._state = self._first_state()
        _begin(self._given, self._state, active, descent)
        at_once = max(1, int(_WORK_AT_ONCE / (4.0 * self._cells)))
        while not _go_on(self._given, self._state, at_once):  # interrupts are noticed here
            pass
        _end(self._state, descent, self._scale)

    def _first_state(self) -> _Step:
        m, d = self._size
        step = _Step(
            beta=np.empty(m), w=np.empty(d), best_beta=np.empty(m), best_w=np.empty(d),
            face=np.empty(m, np.int64), low=np.empty(m), high=np.empty(m),
            system=np.empty((6, m)), work=np.empty(d), counts=np.zeros(_N_COUNTS, np.int64),
            numbers=np.zeros(_N_NUMBERS),
        )  # fmt: skip
        step.numbers[_DAMPING], step.numbers[_RESIDUAL] = self._scale, _LOOSEST
        return step


def _cells_of(X: Rows, rows: np.ndarray) -> float:
    if X.is_dense:
        return float(len(rows)) * X.dense.shape[1]
    return float((X.indptr[rows + 1] - X.indptr[rows]).sum())


@kernel(bare=True)
def _begin(given, step, active, descent):
    """The point and its face: the free variables, on this side of a kink at zero, or at it."""
    _, _, _, loss, _ = given
    beta, counts, numbers, n = descent.beta, step.counts, step.numbers, 0
    for i in range(len(beta)):
        value = step.beta[i] = beta[i, 0]
        step.low[i] = 0.0 if loss.tube > 0.0 and value >= 0.0 else loss.low[i]
        step.high[i] = 0.0 if loss.tube > 0.0 and value <= 0.0 else loss.high[i]
    for j in range(len(step.w)):
        step.w[j] = descent.W[j, 0]
    for t in range(len(active)):
        i = active[t]
        step.face[n] = i
        n += step.low[i] < step.beta[i] < step.high[i]
    numbers[_B] = descent.bias[0]
    numbers[_CHANGE] = numbers[_LEAST_CHANGE] = numbers[_GOAL] = 0.0
    counts[:] = 0
    counts[_N_FACE], counts[_N_FREE] = n, max(n, 1)


@kernel(bare=True)
def _go_on(given, step, most_products):
    """Some products of conjugate gradients and what follows; whether the step is over."""
    counts, numbers = step.counts, step.numbers
    while counts[_N_FACE] > 0 and counts[_ROUND] < _ROUNDS:
        if counts[_HAS_SYSTEM] == 0:
            _make_system(given, step)
        while numbers[_SIZE] > numbers[_GOAL] and counts[_N_PRODUCTS] < _MOST_PRODUCTS:
            if most_products == 0:
                return False
            _improve(given, step)
            most_products -= 1
        if _move(given, step):
            return True
    return True


@kernel(inner=True)
def _make_system(given, step):
    """The gradient and the diagonal; the solution is zero, and its residual the right side."""
    X, rows, norms, loss, gain = given
    counts, numbers, size = step.counts, step.numbers, 0.0
    for t in range(counts[_N_FACE]):
        i = step.face[t]
        old, damping = step.beta[i], loss.damping[i]
        side = 1.0 if old > 0.0 else (-1.0 if old < 0.0 else 0.0)
        value = row_value(X, rows[i], step.w) + numbers[_B]
        slope = value - loss.target[i] + damping * old + loss.tube * side
        diagonal = norms[i] + damping + numbers[_DAMPING] + gain
        step.system[0, t], step.system[1, t], step.system[2, t] = slope, diagonal, 0.0
        step.system[3, t], step.system[4, t] = -slope, -slope / diagonal
        size += slope * slope / diagonal
    numbers[_SIZE] = size
    # The residual of the first round is that of all.
    numbers[_GOAL] = max(numbers[_GOAL], numbers[_RESIDUAL] ** 2 * size)
    counts[_HAS_SYSTEM], counts[_N_PRODUCTS] = 1, 0


@kernel(inner=True)
def _improve(given, step):
    """A product of conjugate gradients; the size is sum residual^2 / diagonal."""
    X, rows, _, loss, gain = given
    n, numbers = step.counts[_N_FACE], step.numbers
    step.counts[_N_PRODUCTS] += 1
    _, diagonal, solution, residual, direction, product = step.system
    work, total = step.work, 0.0
    for j in range(len(work)):
        work[j] = 0.0
    for t in range(n):
        add_row(X, rows[step.face[t]], direction[t], work)
        total += direction[t]
    for t in range(n):
        i = step.face[t]
        damping = loss.damping[i] + numbers[_DAMPING]
        product[t] = row_value(X, rows[i], work) + damping * direction[t] + gain * total
    curvature = dot(product[:n], direction[:n])
    if not curvature > 0.0:
        numbers[_SIZE] = 0.0
        return
    length, size = numbers[_SIZE] / curvature, 0.0
    for t in range(n):
        solution[t] += length * direction[t]
        residual[t] -= length * product[t]
        size += residual[t] * residual[t] / diagonal[t]
    ratio = size / numbers[_SIZE]
    for t in range(n):
        direction[t] = residual[t] / diagonal[t] + ratio * direction[t]
    numbers[_SIZE] = size


@kernel(inner=True)
def _move(given, step):
    """Move the variables of the face, keep the best point; whether none of them is at a bound."""
    X, rows, _, loss, gain = given
    counts, numbers, work = step.counts, step.numbers, step.work
    total, linear, quadratic, n_inside = 0.0, 0.0, 0.0, 0
    for j in range(len(work)):
        work[j] = 0.0
    for t in range(counts[_N_FACE]):
        i = step.face[t]
        old = step.beta[i]
        new = min(max(old + step.system[2, t], step.low[i]), step.high[i])
        change = new - old
        step.beta[i] = new
        add_row(X, rows[i], change, work)
        total += change
        linear += step.system[0, t] * change
        quadratic += loss.damping[i] * change * change
        step.face[n_inside] = i
        n_inside += step.low[i] < new < step.high[i]
    for j in range(len(work)):
        step.w[j] += work[j]
    numbers[_B] += gain * total
    quadratic += dot(work, work) + gain * total * total
    numbers[_CHANGE] += linear + 0.5 * quadratic
    if numbers[_CHANGE] < numbers[_LEAST_CHANGE]:
        numbers[_LEAST_CHANGE], numbers[_BEST_B] = numbers[_CHANGE], numbers[_B]
        counts[_IS_BETTER] = 1
        for i in range(len(step.beta)):
            step.best_beta[i] = step.beta[i]
        for j in range(len(step.w)):
            step.best_w[j] = step.w[j]
    counts[_ROUND] += 1
    counts[_HAS_SYSTEM] = 0
    if n_inside == counts[_N_FACE]:
        return True
    counts[_N_LEFT] += counts[_N_FACE] - n_inside
    counts[_N_FACE] = n_inside
    return False


@kernel(bare=True)
def _end(step, descent, scale):
    """Go to the best point if it is better, and adapt the damping and the residual."""
    counts, numbers = step.counts, step.numbers
    # A small residual is useful only if the face will be the same next time.
    is_settled = counts[_N_LEFT] <= _SETTLED * counts[_N_FREE]
    residual = (0.2 if is_settled else 2.0) * numbers[_RESIDUAL]
    numbers[_RESIDUAL] = min(max(residual, _TIGHTEST), _LOOSEST)
    if scale > 0.0:
        factor = _EASIER if counts[_IS_BETTER] else _HARDER
        numbers[_DAMPING] = max(numbers[_DAMPING] * factor, _LEAST * scale)
    if counts[_IS_BETTER] == 0:
        return
    balance = 0.0
    for i in range(len(step.best_beta)):
        descent.beta[i, 0] = step.best_beta[i]
        balance += step.best_beta[i]
    for j in range(len(step.best_w)):
        descent.W[j, 0] = step.best_w[j]
    descent.bias[0], descent.balance[0] = numbers[_BEST_B], balance
