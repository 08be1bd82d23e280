"""The values and dual variables of all rows, of several machines, for Newton's method.

A pass reads a tile of X once for all machines; see `row_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margrove._runtime import kernel, pool_words, region
from margrove.margin.linear import LinearProblem, OneVsRest, row_dual, row_loss
from margrove.margin.solvers.linear.line_search import LENGTH, Line, begin_search, search_lines
from margrove.margin.solvers.linear.normal_equations import BorderedSquares
from margrove.margin.solvers.linear.row_groups import (
    TILE_ROWS,
    RowGroups,
    combine_rows,
    reading_order,
    total_of,
)
from margrove.margin.solvers.linear.row_losses import is_smooth, loss_of, losses_of, part_of

__all__ = [
    "LINEAR",
    "LOSS",
    "MASSES",
    "N_CURVED",
    "N_SUMS",
    "QUADRATIC",
    "SMOOTHING",
    "MachineRows",
]

# The places of the sums of a machine: for each part of its dual variables (see `_measure_kinks`)
# their absolute sum, and the linear and the quadratic term of the dual objective; losses; what the
# smoothing adds to the gap; how many rows have curvature, and how many gained or lost it.
MASSES: int = 0
LINEAR: int = 4
QUADRATIC: int = 8
LOSS, SMOOTHING, N_CURVED, N_CHANGED = 12, 13, 14, 15
N_SUMS = 16


class MachineRows:
    """The rows of a problem, for the machines of a range; methods take some of these, int64 (a,).

    order      the order of the rows here, as places in the problem
    n_slots    how many sets of dual variables there are: one is written by `measure`, others are
               the centre of the smoothing, or the best so far
    """

    def __init__(
        self, problem: LinearProblem | OneVsRest, machines: range, *, n_threads: int = 1
    ) -> None:
        m, n_machines = len(problem), len(machines)
        self.order = reading_order(problem.X, problem.n_features, problem.rows)
        self.groups = RowGroups(
            problem.X, problem.n_features, problem.rows[self.order],
            n_columns=n_machines, n_threads=n_threads,
        )  # fmt: skip
        self.losses = losses_of(problem, self.order)
        is_second = isinstance(problem, OneVsRest) and problem.n_machines == 1
        self._own = np.arange(machines.start, machines.stop, dtype=np.int64) + int(is_second)
        self._n_parts = 2 if is_smooth(problem) else 4
        self.n_slots = 2 if is_smooth(problem) else 3
        self._values = np.zeros((n_machines, m))
        self._moves = np.empty((n_machines, m))
        self._beta = np.zeros((self.n_slots, n_machines, m))
        self._squares = BorderedSquares(self.groups, self.losses.factor, n_machines)

    def __len__(self) -> int:
        return len(self.order)

    def set_beta(self, machine: int, slot: int, beta: np.ndarray) -> None:
        """Set dual variables, which are given in the order of the problem."""
        low, high = self.losses.low, self.losses.high
        own = self.losses.codes == self._own[machine]
        low, high = np.where(own, low, -high), np.where(own, high, -low)
        self._beta[slot, machine] = np.clip(beta[self.order], low, high)

    def set_values(self, machines: np.ndarray, w: np.ndarray, b: np.ndarray) -> None:
        """Set the values to X w + b, for w (a, d) and b (a,)."""
        self.groups.products(w, b, machines, self._values)

    def set_moves(self, machines: np.ndarray, w: np.ndarray, b: np.ndarray) -> None:
        """Set the change of the values by a step w (a, d), b (a,)."""
        self.groups.products(w, b, machines, self._moves)

    def set_bias_moves(self, machine: int, step: float) -> None:
        self._moves[machine] = step

    def search(
        self, machines: np.ndarray, lines: Sequence[Line], widths: np.ndarray, centres: np.ndarray
    ) -> list[float]:
        """The lengths of the moves of these machines; see `line_search`."""
        groups, state = self.groups, begin_search(lines)
        partial = np.empty((groups.count, len(machines), 2))
        while not search_lines(
            pool_words(groups.n_threads), groups.count, groups.n_threads,
            groups.passes_at_once(2.0 * len(machines)), state, groups.size, self.losses, self._own,
            machines, widths, self._values, self._moves, self._beta, centres, partial,
        ):  # fmt: skip
            pass
        return [float(length) for length in state[:, LENGTH]]

    def measure(
        self,
        machines: np.ndarray,
        lengths: np.ndarray,
        widths: np.ndarray,
        centres: np.ndarray,
        slots: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Make moves of these lengths and write the dual variables to `slots`.

        Returns the sums (a, ...), and X' of each part of the dual variables (a, parts, d).
        """
        groups, columns = self.groups, len(machines) * self._n_parts
        sums = np.empty((groups.count, len(machines), N_SUMS))
        combined = np.empty((groups.count, columns, groups.n_features))
        groups.run(
            _measure, groups.cells * columns, groups.by_blas, groups.X, groups.rows, self.losses,
            self._own, machines, lengths, widths, self._values, self._moves, self._beta, slots,
            centres, self._squares.flags, self._squares.known, sums, combined,
        )  # fmt: skip
        shape = len(machines), self._n_parts, groups.n_features
        return total_of(sums), total_of(combined).reshape(shape)

    def squares(self, machines: np.ndarray, sums: np.ndarray, widths: np.ndarray) -> np.ndarray:
        """X'DX of the rows that had curvature in the last `measure`; see `normal_equations`.

        D is the curvature; of a loss with a kink, the curvature times the width.
        """
        ridge = np.where(widths > 0.0, widths, 1.0)
        return self._squares.update(machines, sums[:, N_CURVED], sums[:, N_CHANGED], ridge)

    def forget_squares(self, machine: int) -> None:
        self._squares.forget(machine)

    def best(
        self, machines: np.ndarray, slots: np.ndarray, factors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Dual variables, times the factors (a, 4) of their parts, (m, a); the largest violations.

        The violations (a,) are those at the values that `set_moves` has put in place of the moves.
        """
        beta = np.empty((len(self), len(machines)))
        worst = np.empty((self.groups.count, len(machines)))
        self.groups.run(
            _best, 4.0 * len(machines), self.losses, self._own, machines, self._moves, self._beta,
            slots, factors, self.order, beta, worst,
        )  # fmt: skip
        return beta, worst.max(axis=0)


@region
def _measure(
    tile, first, size, by_blas, X, rows, losses, own, machines, lengths, widths, values, moves,
    betas, slots, centres, flags, known, sums, combined,
):  # fmt: skip
    n_machines, columns, d = len(machines), combined.shape[1], combined.shape[2]
    n_parts = columns // n_machines
    group = first + tile
    begin, stop = group * size, min((group + 1) * size, len(rows))
    sums[group] = 0.0
    combined[group] = 0.0
    parts, product = np.empty(TILE_ROWS * columns), np.empty((columns, d))
    block = np.empty(TILE_ROWS * d if by_blas else 0)
    for start in range(begin, stop, TILE_ROWS):
        n = min(TILE_ROWS, stop - start)
        signed = parts[: n * columns].reshape(columns, n)
        for a in range(n_machines):
            k = machines[a]
            if lengths[a] != 0.0:
                _move(values[k, start : start + n], moves[k, start : start + n], lengths[a])
            flags_of, old_flags = flags[1 - known[k], k], flags[known[k], k]
            some = signed[a * n_parts : (a + 1) * n_parts]
            if n_parts == 2:
                _measure_squares(
                    losses, own[k], start, values[k], betas[slots[a], k], flags_of, old_flags, some,
                    sums[group, a],
                )  # fmt: skip
            else:
                _measure_kinks(
                    losses, own[k], widths[a], start, values[k], betas[centres[a], k],
                    betas[slots[a], k], flags_of, old_flags, some, sums[group, a],
                )  # fmt: skip
        combine_rows(by_blas, X, rows, start, signed, block, product, combined[group])


@kernel(inner=True)
def _move(values, moves, length):
    for i in range(len(values)):
        values[i] += length * moves[i]


@kernel(inner=True)
def _measure_squares(losses, own, start, values, beta, flags, old_flags, parts, sums):
    """For n rows of squared losses: dual variables, whether they have curvature, and their parts.

    parts (2, n): positive and negative dual variables. There is no branch, so that the loop uses
    vector registers.
    """
    n_curved, n_changed = 0, 0
    n, tube = parts.shape[1], losses.tube
    codes, target, low, high, damping, factor = part_of(losses, start, start + n)
    values, beta = values[start : start + n], beta[start : start + n]
    flags, old_flags = flags[start : start + n], old_flags[start : start + n]
    positive, negative = parts[0], parts[1]
    for i in range(n):
        side = 1.0 if codes[i] == own else -1.0
        residual = target[i] - side * values[i]
        excess = max(residual - tube, 0.0) + min(residual + tube, 0.0)
        mirrored = min(max(excess * factor[i], low[i]), high[i])
        dual = side * mirrored
        is_curved = np.uint8(mirrored != 0.0)
        beta[i] = dual
        n_curved += is_curved
        n_changed += is_curved ^ old_flags[i]
        flags[i] = is_curved
        positive[i], negative[i] = max(dual, 0.0), min(dual, 0.0)
    sums[N_CURVED] += n_curved
    sums[N_CHANGED] += n_changed
    _add_squares_of_parts(codes, own, target, damping, tube, beta, sums)


@kernel(inner=True, fast_sums=True)
def _add_squares_of_parts(codes, own, target, damping, tube, beta, sums):
    """Add up the parts of the dual objective and the losses of the rows.

    Not in the loop that writes: there the order of sums would depend on where arrays are in memory.
    """
    loss = 0.0
    up, down, linear_up, linear_down, square_up, square_down = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(beta)):
        dual = beta[i]
        mirrored = dual if codes[i] == own else -dual
        linear = target[i] * mirrored - tube * abs(mirrored)
        square = 0.5 * damping[i] * mirrored * mirrored
        is_up = dual > 0.0
        loss += square
        up += max(dual, 0.0)
        down -= min(dual, 0.0)
        linear_up += linear if is_up else 0.0
        linear_down += 0.0 if is_up else linear
        square_up += square if is_up else 0.0
        square_down += 0.0 if is_up else square
    sums[MASSES] += up
    sums[MASSES + 1] += down
    sums[LINEAR] += linear_up
    sums[LINEAR + 1] += linear_down
    sums[QUADRATIC] += square_up
    sums[QUADRATIC + 1] += square_down
    sums[LOSS] += loss


@kernel(inner=True)
def _measure_kinks(losses, own, width, start, values, centre, beta, flags, old_flags, parts, sums):
    """For n rows of smoothed losses: dual variables, whether they have curvature, and their parts.

    parts (4, n): positive and negative dual variables, first those between their bounds, then those
    at a bound.
    """
    for r in range(parts.shape[1]):
        i = start + r
        target, low, high, _ = loss_of(losses, i, own)
        residual = target - values[i]
        cost = row_loss(residual, low, high, 0.0, losses.tube)
        damping = width / losses.factor[i]
        dual = row_dual(residual + damping * centre[i], low, high, damping, losses.tube)
        is_curved = dual != 0.0 and low < dual < high
        linear = target * dual - losses.tube * abs(dual)
        beta[i] = dual
        flags[i] = is_curved
        sums[N_CURVED] += is_curved
        sums[N_CHANGED] += is_curved != old_flags[i]
        sums[LOSS] += cost
        sums[SMOOTHING] += cost - (dual * residual - losses.tube * abs(dual))
        part = (0 if dual > 0.0 else 1) + (0 if is_curved else 2)
        for other in range(4):
            parts[other, r] = 0.0
        parts[part, r] = dual
        sums[MASSES + part] += abs(dual)
        sums[LINEAR + part] += linear


@region(bare=True)
def _best(
    tile, first, size, losses, own, machines, values, betas, slots, factors, order, out, worst
):
    group = first + tile
    begin, stop = group * size, min((group + 1) * size, len(order))
    for a in range(len(machines)):
        k = machines[a]
        worst[group, a] = 0.0
        for i in range(begin, stop):
            target, low, high, damping = loss_of(losses, i, own[k])
            beta = betas[slots[a], k, i]
            part = (0 if beta > 0.0 else 1) + (0 if low < beta < high else 2)
            beta *= factors[a, part]
            out[order[i], a] = beta
            gradient = damping * beta - (target - values[k, i])
            left = gradient + losses.tube if beta > 0.0 else gradient - losses.tube
            right = gradient - losses.tube if beta < 0.0 else gradient + losses.tube
            if beta > low:
                worst[group, a] = max(worst[group, a], left)
            if beta < high:
                worst[group, a] = max(worst[group, a], -right)
