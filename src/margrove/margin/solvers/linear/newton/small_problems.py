"""Newton's method for small dense problems, in one compiled call.

The method is that of `newton_process`, and so are the passes over the rows. On few rows and
features a step takes microseconds, and in Python a tenth of a millisecond. So here the machines are
solved one after the other by compiled code, which returns after some steps, or at the end.

With few features, systems are factorised, and passes go along the columns of X. With more, passes
go along the rows, and systems are solved by conjugate gradients: for a good step some ten products
are enough, where a factorisation costs as much as a hundred. If they are not, the process is slow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from margrove._data import Rows, read_only
from margrove._runtime import dot, four_dots, kernel
from margrove.margin.linear import LinearProblem, OneVsRest
from margrove.margin.solvers.linear.newton.line_search import LENGTH, begin_line, search_line
from margrove.margin.solvers.linear.newton.newton_steps import (
    NEWTON,
    make_system,
    offered_dual,
    set_gradient,
    spread_of,
)
from margrove.margin.solvers.linear.newton.row_passes import (
    LOSS,
    MASSES,
    N_CURVED,
    N_SUMS,
    SMOOTHING,
    measure_kinks,
    measure_squares,
    scale_best_rows,
)
from margrove.margin.solvers.linear.newton.row_tiles import tiled
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult
from margrove.margin.solvers.linear.row_groups import reading_order
from margrove.margin.solvers.linear.row_losses import RowLosses, is_smooth, losses_of
from margrove.margin.solvers.linear.row_sums import add_row, row_value

__all__ = ["SmallNewton", "is_for_gradients", "is_small"]

_MOST_CELLS = 20_000
_MOST_FEATURES = 64
_MOST_CELLS_BY_ROWS, _MOST_ROWS = 1_000_000, 5_000
_MOST_PRODUCTS = 60  # of a system, which then takes as long as to form and to factorise it
_RESIDUAL = 0.1  # of conjugate gradients, relative; smaller ones lead to more products in all

# The places of the numbers of a machine.
_B, _WIDTH, _PRIMAL, _DUAL, _GAP, _IDLE, _ROUNDS, _SLOT, _CENTRE, _BEST, _BEST_B = range(11)
_BALANCE, _SLOPE, _CONVERGED, _IS_STUCK, _IS_SLOW, N_NUMBERS = 11, 12, 13, 14, 15, 16


def is_small(problem: LinearProblem | OneVsRest) -> bool:
    """Whether the problem is one for `SmallNewton`, which then factorises its systems."""
    d = problem.n_features
    return problem.X.is_dense and d <= _MOST_FEATURES and d * len(problem) <= _MOST_CELLS


def is_for_gradients(problem: LinearProblem | OneVsRest) -> bool:
    """Whether `SmallNewton` solves the systems of this problem by conjugate gradients."""
    d, m = problem.n_features, len(problem)
    is_single = isinstance(problem, LinearProblem) or problem.n_machines == 1
    is_dense_and_smooth = problem.X.is_dense and is_smooth(problem)
    fits = d <= m and (m <= _MOST_ROWS or d * m <= _MOST_CELLS_BY_ROWS)
    return is_single and is_dense_and_smooth and fits and not is_small(problem)


class _Given(NamedTuple):
    """A problem for compiled code, with the class of each machine.

    columns   (d + 1, m)  those of X, and a last one of ones; none if passes go along the rows
    """

    X: Rows
    rows: np.ndarray
    by_rows: bool
    columns: np.ndarray
    losses: RowLosses
    own: np.ndarray
    price: float
    has_bias: bool
    reach: float
    is_smooth: bool
    tol: float
    most_rounds: int


class _State(NamedTuple):
    """The state of K machines, of which the one at `current[0]` is being solved.

    numbers       (K, N_NUMBERS)
    w, best       (K, d)  the point, and the best one so far
    betas         (3, K, m)  dual variables: at the point, at the centre of the smoothing, the best
    factors       (K + 1, 4)  of the parts of the best dual variables, and of those at the point
    moves         (K, m)  the change of the values by a step; at the end the values at the best one

    Of the current machine: values (m,), the parts of its dual variables (P, m) and X' of them
    (P, d), columns of the rows with curvature (d + 2, m), sums over the rows, the system of a step,
    with its factor (2, d + 1, d + 1), vectors (6, d + 1), and the state of a line search.

    chosen  int64 (m,)  by rows: those with curvature
    """

    current: np.ndarray
    numbers: np.ndarray
    w: np.ndarray
    best: np.ndarray
    betas: np.ndarray
    factors: np.ndarray
    moves: np.ndarray
    values: np.ndarray
    flags: np.ndarray
    parts: np.ndarray
    signed: np.ndarray
    curved: np.ndarray
    sums: np.ndarray
    systems: np.ndarray
    vectors: np.ndarray
    line: np.ndarray
    chosen: np.ndarray


class SmallNewton:
    """Newton steps over some machines of a small problem; see `slices.Process`."""

    unit = "step"

    def __init__(
        self,
        problem: LinearProblem | OneVsRest,
        demand: LinearDemand,
        *,
        machines: range | None = None,
    ) -> None:
        rows = tiled(problem)
        machines = range(rows.n_machines) if machines is None else machines
        is_second = rows.has_codes and rows.n_machines == 1
        m, d, K = len(problem), problem.n_features, len(machines)
        self.total: int | None = demand.epochs
        self._result: LinearResult | None = None
        self._order = reading_order(problem.X, d, problem.rows)
        has_bias, losses = bool(np.isfinite(problem.bias_price)), losses_of(problem, self._order)
        by_rows = not is_small(problem)
        columns = np.ones((0, 0) if by_rows else (d + 1, m))
        if not by_rows:
            columns[:d] = problem.X.dense[problem.rows[self._order]].T
        self._given = _Given(
            X=problem.X,
            rows=read_only(problem.rows[self._order]),
            by_rows=by_rows,
            columns=read_only(columns),
            losses=losses,
            own=np.arange(machines.start, machines.stop, dtype=np.int64) + int(is_second),
            price=float(problem.bias_price) if has_bias else 0.0,
            has_bias=has_bias,
            reach=2.0 if rows.of_classes else spread_of(losses.target),
            is_smooth=rows.is_smooth,
            tol=float(demand.tol),
            most_rounds=int(demand.epochs),
        )
        n_parts = 2 if rows.is_smooth else 4
        self._state = _State(
            current=np.full(1, -1),
            numbers=np.zeros((K, N_NUMBERS)),
            w=np.zeros((K, d)),
            best=np.zeros((K, d)),
            betas=np.zeros((3, K, m)),
            factors=np.ones((K + 1, 4)),
            moves=np.zeros((K, m)),
            values=np.zeros(m),
            flags=np.zeros((2, m), np.uint8),
            parts=np.empty((n_parts, m)),
            signed=np.empty((n_parts, d)),
            curved=np.empty((0, 0) if by_rows else (d + 2, m)),
            sums=np.empty(N_SUMS),
            systems=np.empty((2, 0, 0) if by_rows else (2, d + 1, d + 1)),
            vectors=np.empty((6, d + 1)),
            line=np.empty(8),
            chosen=np.empty(m, np.int64),
        )
        numbers = self._state.numbers
        numbers[:, _WIDTH] = 0.0 if rows.is_smooth else self._given.reach
        numbers[:, _PRIMAL], numbers[:, _DUAL] = np.inf, -np.inf
        _advance(self._given, self._state, 0)

    @property
    def rounds(self) -> int:
        return int(self._state.numbers[:, _ROUNDS].max())

    @property
    def n_finished(self) -> int:
        return int(self._state.current[0])

    def rounds_of_machines(self) -> list[int]:
        return [int(rounds) for rounds in self._state.numbers[:, _ROUNDS]]

    @property
    def finished(self) -> bool:
        return self.n_finished == len(self._given.own)

    @property
    def is_slow(self) -> bool:
        """Whether conjugate gradients take longer than to factorise the systems."""
        return bool(self._state.numbers[:, _IS_SLOW].any())

    def figures(self) -> dict[str, float]:
        numbers = self._state.numbers[: self.n_finished + 1]
        gap = np.maximum(numbers[:, _PRIMAL] - numbers[:, _DUAL], 0.0)
        return {"relative gap": float((gap / np.maximum(abs(numbers[:, _PRIMAL]), 1e-300)).max())}

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        m, d = len(self._order), self._state.w.shape[1]
        cost = m * (d + 10.0) + d**3 / 6.0
        if self._given.by_rows:
            cost = 20.0 * m * d
        return cost * float(_advance(self._given, self._state, max(1, int(work / cost))))

    def result(self) -> LinearResult:
        if self._result is not None:
            return self._result
        found = self._result_so_far()
        if self.finished:
            self._result = found
        return found

    def _result_so_far(self) -> LinearResult:
        state, K = self._state, len(self._given.own)
        if not self.finished:
            _write_best_values(self._given, state)
        numbers, machines = state.numbers, np.arange(K)
        beta, worst = np.empty((len(self._order), K)), np.empty((1, K))
        scale_best_rows(
            1, 1, 0, len(self._order), self._given.losses, self._given.own, machines, state.moves,
            state.betas, numbers[:, _BEST].astype(np.int64), state.factors, self._order, beta,
            worst,
        )  # fmt: skip
        return LinearResult(
            coef=state.best.copy(),
            intercept=numbers[:, _BEST_B].copy(),
            primal=numbers[:, _PRIMAL].copy(),
            dual=numbers[:, _DUAL].copy(),
            violation=worst[0],
            beta=beta,
            epochs=self.rounds,
            converged=numbers[:, _CONVERGED] > 0.0,
        )


@kernel(bare=True)
def _advance(given, state, most_steps):
    """Newton steps of one machine after the other; returns how many. At first all are at zero."""
    if state.current[0] < 0:
        if given.by_rows:
            _set_diagonal(given, state.vectors[5])
        _go_on(given, state)
    for count in range(most_steps):
        k = state.current[0]
        if k == len(given.own):
            return count
        _take_step(given, state, k)
        _go_on(given, state)
    return most_steps


@kernel(inner=True)
def _go_on(given, state):
    """If the current machine is solved, go on with the next one that is not."""
    while True:
        k = state.current[0]
        if k >= 0:
            numbers = state.numbers[k]
            is_over = numbers[_CONVERGED] + numbers[_IS_STUCK] > 0.0
            if not is_over and numbers[_ROUNDS] < given.most_rounds:
                return
            _set_values(given, state.best[k], numbers[_BEST_B], state.moves[k])
        state.current[0] += 1
        if k + 1 == len(given.own):
            return
        for i in range(len(state.values)):
            state.values[i] = 0.0
        _measure(given, state, k + 1)


@kernel(bare=True)
def _write_best_values(given, state):
    """Values at the best points of machines that are not solved; only after the last step."""
    for k in range(state.current[0], len(given.own)):
        _set_values(given, state.best[k], state.numbers[k, _BEST_B], state.moves[k])


@kernel(inner=True)
def _take_step(given, state, k):
    """A step of `NewtonProcess.advance` for one machine."""
    numbers, w, moves, step = state.numbers[k], state.w[k], state.moves[k], state.vectors[0]
    _set_direction(given, state, k)
    if numbers[_SLOPE] < 0.0:
        bias_step = step[len(w)]
        _set_values(given, step[: len(w)], bias_step, moves)
        linear, quadratic = given.price * numbers[_B] * bias_step, given.price * bias_step**2
        for j in range(len(w)):
            linear += w[j] * step[j]
            quadratic += step[j] * step[j]
        length = _search(given, state, k, numbers[_SLOPE], linear, quadratic)
        for j in range(len(w)):
            w[j] += length * step[j]
        numbers[_B] += length * bias_step
    gap = max(numbers[_PRIMAL] - numbers[_DUAL], 0.0)
    numbers[_ROUNDS] += 1.0
    _measure(given, state, k)
    is_free = given.has_bias and given.price == 0.0
    if is_free and numbers[_BALANCE] != 0.0 and state.sums[N_CURVED] == 0.0:
        _settle_bias(given, state, k)
    if numbers[_CONVERGED] > 0.0:
        _measure_afresh(given, state, k)
    _end_round(given, state, k, gap)


@kernel(inner=True)
def _search(given, state, k, slope, linear, quadratic):
    """Move the values along the moves, to the best point of this line; returns its length."""
    numbers, moves = state.numbers[k], state.moves[k]
    centre = state.betas[int(numbers[_CENTRE]), k]
    begin_line(state.line, slope, linear, quadratic)
    search_line(
        state.line, given.losses, given.own[k], state.values, moves, centre, numbers[_WIDTH]
    )
    length = state.line[LENGTH]
    for i in range(len(moves)):
        state.values[i] += length * moves[i]
    return length


@kernel(inner=True)
def _settle_bias(given, state, k):
    """The best b for this w, where no row has curvature; see `NewtonProcess._settle_biases`."""
    numbers, moves = state.numbers[k], state.moves[k]
    step = given.reach if numbers[_BALANCE] > 0.0 else -given.reach
    for i in range(len(moves)):
        moves[i] = step
    numbers[_B] += step * _search(given, state, k, -numbers[_BALANCE] * step, 0.0, 0.0)
    _measure(given, state, k)


@kernel(inner=True)
def _measure_afresh(given, state, k):
    """Measure the best point without the accumulated rounding of the steps."""
    numbers, w = state.numbers[k], state.w[k]
    for j in range(len(w)):
        w[j] = state.best[k, j]
    numbers[_B], numbers[_PRIMAL] = numbers[_BEST_B], np.inf
    _set_values(given, w, numbers[_B], state.values)
    _measure(given, state, k)


@kernel(inner=True)
def _end_round(given, state, k, gap_before):
    """See `NewtonMachine.end_round`; if the smoothed problem is solved, the smoothing narrows."""
    numbers = state.numbers[k]
    gap = max(numbers[_PRIMAL] - numbers[_DUAL], 0.0)
    numbers[_IDLE] = 0.0 if gap < 0.98 * gap_before else numbers[_IDLE] + 1.0
    is_downhill = numbers[_SLOPE] < 0.0
    is_stuck = numbers[_IDLE] > NEWTON.patience or (given.is_smooth and not is_downhill)
    numbers[_IS_STUCK] = 1.0 if is_stuck else 0.0
    if given.is_smooth or numbers[_CONVERGED] > 0.0:
        return
    if not is_downhill or state.sums[SMOOTHING] >= NEWTON.solved * numbers[_GAP]:
        numbers[_CENTRE] = numbers[_SLOT]
        width = numbers[_WIDTH] * NEWTON.shrink
        numbers[_WIDTH] = max(width, NEWTON.least_width * given.reach)
        _measure(given, state, k)


@kernel(inner=True)
def _measure(given, state, k):
    """Dual variables and both objectives at the values; see `NewtonMachine.take`."""
    numbers, w, sums, parts = state.numbers[k], state.w[k], state.sums, state.parts
    slot = 0
    while slot == numbers[_BEST] or (slot == numbers[_CENTRE] and not given.is_smooth):
        slot += 1
    numbers[_SLOT] = slot
    for p in range(len(sums)):
        sums[p] = 0.0
    own, beta, flags = given.own[k], state.betas[slot, k], state.flags
    if given.is_smooth:
        measure_squares(given.losses, own, 0, state.values, beta, flags[0], flags[1], parts, sums)
    else:
        centre = state.betas[int(numbers[_CENTRE]), k]
        measure_kinks(
            given.losses, own, numbers[_WIDTH], 0, state.values, centre, beta, flags[0], flags[1],
            parts, sums,
        )  # fmt: skip
    _combine(given, parts, state.signed)
    numbers[_BALANCE] = sums[MASSES] - sums[MASSES + 1] + sums[MASSES + 2] - sums[MASSES + 3]
    primal = 0.5 * given.price * numbers[_B] ** 2 + sums[LOSS]
    for j in range(len(w)):
        primal += 0.5 * w[j] * w[j]
    if primal < numbers[_PRIMAL]:
        numbers[_PRIMAL], numbers[_BEST_B] = primal, numbers[_B]
        for j in range(len(w)):
            state.best[k, j] = w[j]
    _offer_dual(given, state, k, primal)


@kernel(inner=True)
def _offer_dual(given, state, k, primal):
    numbers, factors = state.numbers[k], state.factors[len(state.factors) - 1]
    dual = offered_dual(
        state.sums, state.signed, given.has_bias and given.price == 0.0, given.price,
        numbers[_BALANCE], numbers[_PRIMAL], given.tol, factors,
    )  # fmt: skip
    if dual > numbers[_DUAL]:
        numbers[_DUAL], numbers[_BEST] = dual, numbers[_SLOT]
        for part in range(4):
            state.factors[k, part] = factors[part]
    numbers[_GAP] = primal - dual
    gap = numbers[_PRIMAL] - numbers[_DUAL]
    numbers[_CONVERGED] = 1.0 if gap <= given.tol * abs(numbers[_PRIMAL]) else 0.0


@kernel(inner=True)
def _set_values(given, w, b, values):
    """values = X w + b"""
    for i in range(len(values)):
        values[i] = b
    if given.by_rows:
        for i in range(len(values)):
            values[i] += row_value(given.X, given.rows[i], w)
        return
    for j in range(len(w)):
        column, weight = given.columns[j], w[j]
        for i in range(len(values)):
            values[i] += weight * column[i]


@kernel(inner=True)
def _combine(given, parts, signed):
    """signed = parts X"""
    for p in range(len(parts)):
        for j in range(signed.shape[1]):
            signed[p, j] = 0.0 if given.by_rows else dot(parts[p], given.columns[j])
    if given.by_rows:
        for i in range(parts.shape[1]):
            for p in range(len(parts)):
                if parts[p, i] != 0.0:
                    add_row(given.X, given.rows[i], parts[p, i], signed[p])


@kernel(inner=True)
def _set_direction(given, state, k):
    """The Newton step of w and b, and the slope along it."""
    if given.by_rows:
        _set_direction_by_gradients(given, state, k)
        return
    numbers, system, vectors = state.numbers[k], state.systems[0], state.vectors
    step, gradient = vectors[0], vectors[1]
    _sum_squares(given.columns, given.losses.factor, state.flags[0], state.curved, system)
    make_system(
        system, gradient, numbers[_WIDTH], state.w[k], numbers[_B], given.price, numbers[_BALANCE],
        state.signed, given.has_bias,
    )  # fmt: skip
    _solve(system, gradient, step, vectors[2], state.systems[1])
    numbers[_SLOPE] = dot(gradient, step)


@kernel(inner=True)
def _set_direction_by_gradients(given, state, k):
    """The same by conjugate gradients, for squared losses; see `conjugate_gradients`."""
    numbers, vectors, d = state.numbers[k], state.vectors, len(state.w[k])
    step, gradient, residual = vectors[0], vectors[1], vectors[2]
    direction, product, diagonal = vectors[3], vectors[4], vectors[5]
    set_gradient(
        gradient, state.w[k], numbers[_B], given.price, numbers[_BALANCE], state.signed,
        given.has_bias,
    )  # fmt: skip
    chosen = state.chosen[: _choose_curved(state.flags[0], state.chosen)]
    has_bias = given.has_bias and (len(chosen) > 0 or given.price > 0.0)
    energy = 0.0
    for j in range(d + 1):
        step[j], residual[j], direction[j] = 0.0, -gradient[j], -gradient[j] / diagonal[j]
        energy += residual[j] * direction[j]
    goal, n_products = _RESIDUAL**2 * energy, 0
    while energy > goal and n_products < _MOST_PRODUCTS:
        n_products += 1
        _multiply(given, chosen, has_bias, direction, product)
        along = dot(direction, product)
        if not along > 0.0:
            break
        length, fresh = energy / along, 0.0
        for j in range(d + 1):
            step[j] += length * direction[j]
            residual[j] -= length * product[j]
            fresh += residual[j] * residual[j] / diagonal[j]
        for j in range(d + 1):
            direction[j] = residual[j] / diagonal[j] + fresh / energy * direction[j]
        energy = fresh
    numbers[_IS_SLOW] = 1.0 if n_products == _MOST_PRODUCTS else 0.0
    numbers[_SLOPE] = dot(gradient, step)


@kernel(inner=True)
def _choose_curved(flags, chosen):
    """The rows with curvature come first; returns how many they are."""
    count = 0
    for i in range(len(flags)):
        chosen[count] = i
        count += flags[i]
    return count


@kernel(inner=True)
def _set_diagonal(given, diagonal):
    """The diagonal of the system of all rows, for those of some rows, too."""
    d = len(diagonal) - 1
    for j in range(d):
        diagonal[j] = 1.0
    diagonal[d] = given.price
    for i in range(len(given.rows)):
        x, factor = given.X.dense[given.rows[i]], given.losses.factor[i]
        for j in range(d):
            diagonal[j] += factor * x[j] * x[j]
        diagonal[d] += factor


@kernel(inner=True)
def _multiply(given, chosen, has_bias, vector, product):
    """The product of the system and a vector; without a bias, its last equation is b = -gradient.

    Four rows at a time, so that vector and product are read once for all of them.
    """
    X, rows, factor = given.X.dense, given.rows, given.losses.factor
    d, n = len(vector) - 1, len(chosen)
    w, out, shift, total = vector[:d], product[:d], 0.0, vector[d]
    if has_bias:
        shift, total = vector[d], given.price * vector[d]
    for j in range(d):
        out[j] = w[j]
    for place in range(0, n - n % 4, 4):
        i, j, k, m = chosen[place], chosen[place + 1], chosen[place + 2], chosen[place + 3]
        first, second, third, fourth = X[rows[i]], X[rows[j]], X[rows[k]], X[rows[m]]
        a, b, c, e = four_dots(w, first, second, third, fourth)
        a, b = factor[i] * (a + shift), factor[j] * (b + shift)
        c, e = factor[k] * (c + shift), factor[m] * (e + shift)
        for p in range(d):
            out[p] += (a * first[p] + b * second[p]) + (c * third[p] + e * fourth[p])
        total += (a + b) + (c + e) if has_bias else 0.0
    for place in range(n - n % 4, n):
        i = chosen[place]
        value = factor[i] * (dot(X[rows[i]], w) + shift)
        add_row(given.X, rows[i], value, out)
        total += value if has_bias else 0.0
    product[d] = total


@kernel(inner=True)
def _sum_squares(columns, factor, flags, curved, system):
    """The lower half of X'DX, bordered for the intercept, over the rows whose flag is set."""
    n, size = 0, len(columns)
    for i in range(len(flags)):
        n += flags[i]
    weighted = curved[size, :n]
    for a in range(size):
        column, kept, count = columns[a], curved[a], 0
        for i in range(len(flags)):
            if flags[i]:
                kept[count], weighted[count] = column[i], factor[i] * column[i]
                count += 1
        for b in range(a + 1):
            system[a, b] = dot(weighted, curved[b, :n])


@kernel(inner=True)
def _solve(system, gradient, step, scale, lower):
    """step = -system^-1 gradient by Cholesky's method, with the diagonal scaled to ones.

    If rounding makes the system indefinite, its diagonal grows; see `newton_steps.solved`.
    """
    n = len(gradient)
    for a in range(n):
        scale[a] = 1.0 / np.sqrt(system[a, a])
    jitter = 0.0
    while not _factorise(system, scale, 1.0 + jitter, lower):
        if jitter > 1.0:
            for a in range(n):
                step[a] = 0.0
            return
        jitter = max(1e-14, 100.0 * jitter)
    for a in range(n):
        step[a] = (-scale[a] * gradient[a] - dot(lower[a, :a], step[:a])) / lower[a, a]
    for back in range(n):
        a = n - 1 - back
        step[a] /= lower[a, a]
        for b in range(a):
            step[b] -= lower[a, b] * step[a]
    for a in range(n):
        step[a] *= scale[a]


@kernel(inner=True)
def _factorise(system, scale, diagonal, lower):
    """Cholesky's factor of the scaled system; False if it is not positive definite."""
    for a in range(len(scale)):
        for b in range(a):
            value = scale[a] * scale[b] * system[a, b] - dot(lower[a, :b], lower[b, :b])
            lower[a, b] = value / lower[b, b]
        square = diagonal - dot(lower[a, :a], lower[a, :a])
        if not square > 0.0:
            return False
        lower[a, a] = np.sqrt(square)
    return True
