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

from dataclasses import dataclass

import numpy as np

from margrove._data import Rows, read_only
from margrove._runtime import kernel
from margrove.margin.linear import LinearProblem
from margrove.margin.solvers.linear.row_groups import multiply_rows

__all__ = ["FaceSteps"]

_ROUNDS = 6
_MOST_PRODUCTS = 200
_LOOSEST, _TIGHTEST = 0.1, 1e-3  # relative residual of the system
_SETTLED = 0.02  # share of variables that may leave a face that counts as settled
_EASIER, _HARDER, _LEAST = 0.3, 5.0, 1e-6
_WORK_AT_ONCE = 50_000_000  # multiply-adds between two checks for an interrupt


@dataclass
class _Point:
    """beta (m,), w = X'beta (d,), and b."""

    beta: np.ndarray
    w: np.ndarray
    b: float


class FaceSteps:
    """Takes steps on faces of one problem, and adapts their damping."""

    def __init__(self, problem: LinearProblem, gain: float) -> None:
        self._problem = problem
        self._gain = gain
        self._damping = 0.0 if problem.is_smooth else 1.0 / problem.price
        self._residual = _LOOSEST

    def step(
        self, active: np.ndarray, beta: np.ndarray, w: np.ndarray, b: float
    ) -> tuple[np.ndarray, np.ndarray, float] | None:
        """A better point, by moving free variables of `active`; None if none is found."""
        loss = self._problem.loss
        low, high = loss.low.copy(), loss.high.copy()
        if loss.tube > 0.0:  # the objective has a kink at zero: stay on this side
            low[beta > 0.0] = 0.0
            high[beta < 0.0] = 0.0
        current = beta[active]
        face = active[(current > low[active]) & (current < high[active])]
        point, best, change, least = _Point(beta.copy(), w.copy(), b), None, 0.0, 0.0
        self._goal = 0.0  # set by the first round, for all rounds
        n_free, n_left = max(1, len(face)), 0
        for _ in range(_ROUNDS):
            if not len(face):
                break
            change += self._move(point, face, low, high)
            if change < least:
                least, best = change, (point.beta.copy(), point.w.copy(), point.b)
            current = point.beta[face]
            inside = (current > low[face]) & (current < high[face])
            if inside.all():
                break
            n_left += len(face) - int(inside.sum())
            face = face[inside]
        # A small residual is useful only if the face will be the same next time.
        factor = 0.2 if n_left <= _SETTLED * n_free else 2.0
        self._residual = min(max(factor * self._residual, _TIGHTEST), _LOOSEST)
        if not self._problem.is_smooth:
            scaled = self._damping * (_HARDER if best is None else _EASIER)
            self._damping = max(scaled, _LEAST / self._problem.price)
        return best

    def _move(self, point: _Point, face: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
        """Move the variables of a face to its minimum; returns the change of the dual."""
        problem, loss = self._problem, self._problem.loss
        rows = read_only(problem.rows[face])
        old, damping = point.beta[face], loss.damping[face]
        values = _each(problem.X, rows, point.w, multiply_rows)
        gradient = values + point.b - loss.target[face] + damping * old + loss.tube * np.sign(old)
        system = _System(
            problem.X, rows, problem.norms[face], damping + self._damping, self._gain,
            np.empty(problem.n_features),
        )  # fmt: skip
        size = float((gradient**2 / system.diagonal).sum())
        self._goal = max(self._goal, self._residual**2 * size)
        new = np.clip(old + system.solved(-gradient, self._goal), low[face], high[face])
        change = new - old
        moved = np.zeros(problem.n_features)
        _each(problem.X, rows, moved, _combine, change)
        total = float(change.sum())
        point.beta[face] = new
        point.w += moved
        point.b += self._gain * total
        curvature = float(moved @ moved) + self._gain * total**2 + float(damping @ change**2)
        return float(gradient @ change) + 0.5 * curvature


@dataclass
class _System:
    """The linear system of a face, with its preconditioner."""

    X: Rows
    rows: np.ndarray
    norms: np.ndarray
    damping: np.ndarray
    gain: float
    work: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        return self.norms + self.damping + self.gain

    def solved(self, right: np.ndarray, goal: float) -> np.ndarray:
        """Solve by conjugate gradients, some products at a time, so that interrupts are noticed."""
        diagonal = self.diagonal
        solution = np.zeros(len(right))
        residual = right.copy()
        direction = residual / diagonal
        sizes = np.array([residual @ direction])
        cost = 4.0 * (_cells_of(self.X, self.rows) + len(right)) + len(self.work)
        at_once = max(1, int(_WORK_AT_ONCE / cost))
        for done in range(0, _MOST_PRODUCTS, at_once):
            _conjugate_gradients(
                self.X, self.rows, self.damping, self.gain, diagonal, goal,
                min(at_once, _MOST_PRODUCTS - done), solution, residual, direction, sizes,
                self.work,
            )  # fmt: skip
            if sizes[0] <= goal:
                break
        return solution


def _cells_of(X: Rows, rows: np.ndarray) -> float:
    if X.is_dense:
        return float(len(rows)) * X.dense.shape[1]
    return float((X.indptr[rows + 1] - X.indptr[rows]).sum())


def _each(
    X: Rows, rows: np.ndarray, w: np.ndarray, task: object, factors: object = None
) -> np.ndarray:
    """Run a pass over the rows in several calls, so that interrupts are noticed."""
    out = np.empty(len(rows)) if factors is None else factors
    step = max(1, int(_WORK_AT_ONCE * len(rows) / max(1.0, _cells_of(X, rows))))
    for start in range(0, len(rows), step):
        task(X, rows, start, min(start + step, len(rows)), w, out)  # type: ignore[operator]
    return out  # type: ignore[return-value]


@kernel
def _combine(X, rows, start, end, w, factors):
    """w += X'factors"""
    for i in range(start, end):
        row, factor = rows[i], factors[i]
        if X.is_dense:
            for j in range(X.dense.shape[1]):
                w[j] += factor * X.dense[row, j]
        else:
            for p in range(X.indptr[row], X.indptr[row + 1]):
                w[X.indices[p]] += factor * X.data[p]


@kernel(fast_sums=True)
def _conjugate_gradients(
    X, rows, damping, gain, diagonal, goal, n_products, solution, residual, direction, sizes, work
):  # fmt: skip
    """Reduce sizes[0] = sum residual^2 / diagonal below `goal`, by at most n_products products."""
    m = len(rows)
    product = np.empty(m)
    for _ in range(n_products):
        if sizes[0] <= goal:
            return
        work[:] = 0.0
        _combine(X, rows, 0, m, work, direction)
        total = 0.0
        for i in range(m):
            total += direction[i]
        multiply_rows(X, rows, 0, m, work, product)
        # Loops that write do not add up: the order of sums would depend on where arrays are.
        for i in range(m):
            product[i] += damping[i] * direction[i] + gain * total
        curvature = 0.0
        for i in range(m):
            curvature += product[i] * direction[i]
        if not curvature > 0.0:
            sizes[0] = 0.0
            return
        length = sizes[0] / curvature
        for i in range(m):
            solution[i] += length * direction[i]
            residual[i] -= length * product[i]
        size = 0.0
        for i in range(m):
            size += residual[i] * residual[i] / diagonal[i]
        ratio = size / sizes[0]
        for i in range(m):
            direction[i] = residual[i] / diagonal[i] + ratio * direction[i]
        sizes[0] = size
