"""The values and dual variables of all rows, of several machines, for Newton's method.

A pass reads a tile of X once for all machines; see `row_groups` and `row_tiles`. Sums and maxima
are those over the rows of all members.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margrove._runtime import ALONE, Collective, pool_words, sum_together
from margrove.margin.solvers.linear.newton.conjugate_gradients import CurvedRows
from margrove.margin.solvers.linear.newton.line_search import (
    LENGTH,
    Line,
    add_pulls,
    begin_search,
    is_search_over,
    look_at_all,
    search_lines,
)
from margrove.margin.solvers.linear.newton.normal_equations import BorderedSquares
from margrove.margin.solvers.linear.newton.row_passes import (
    N_CHANGED,
    N_CURVED,
    N_SUMS,
    measure_rows,
    scale_best_rows,
)
from margrove.margin.solvers.linear.newton.row_tiles import Tile, TiledProblem, added
from margrove.margin.solvers.linear.row_groups import total_of

__all__ = ["MachineRows"]

_GROUP_ROWS = 4096  # of a sum in a line search over tiles


class MachineRows:
    """The rows of a problem, for the machines of a range; methods take some of these, int64 (a,).

    tiles      those of this member
    curved     those that had curvature in the last `measure`
    n_slots    how many sets of dual variables there are: one is written by `measure`, others are
               the centre of the smoothing, or the best so far
    """

    def __init__(
        self,
        problem: TiledProblem,
        machines: range,
        *,
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> None:
        n_machines, self._n_features = len(machines), problem.n_features
        self._collective, self._n_threads = collective, n_threads
        self._keeps_beta = problem.keeps_beta
        self.n_slots = 2 if problem.is_smooth else 3
        self._n_parts = 2 if problem.is_smooth else 4
        self.tiles = [
            Tile(source, problem.n_features, n_machines, self.n_slots, n_threads)
            for source in problem.tiles
        ]
        is_second = problem.has_codes and problem.n_machines == 1
        self._own = np.arange(machines.start, machines.stop, dtype=np.int64) + int(is_second)
        self.curved = CurvedRows(self.tiles, problem.n_features, n_machines, collective)
        self._squares: BorderedSquares | None = None
        if not problem.by_gradients:
            self._squares = BorderedSquares(self.tiles, problem.n_features, n_machines)
        self._n_curved, self._n_changed = np.zeros(n_machines), np.zeros(n_machines)

    def __len__(self) -> int:
        return sum(map(len, self.tiles))

    def set_beta(self, machine: int, slot: int, beta: np.ndarray) -> None:
        """Set dual variables, which are given in the order of the problem."""
        begin = 0
        for tile in self.tiles:
            losses, part = tile.losses(), beta[begin : begin + len(tile)]
            own = losses.codes == self._own[machine]
            low = np.where(own, losses.low, -losses.high)
            high = np.where(own, losses.high, -losses.low)
            tile.beta[slot, machine] = np.clip(part[tile.order], low, high)
            begin += len(tile)

    def set_values(self, machines: np.ndarray, w: np.ndarray, b: np.ndarray) -> None:
        """Set the values to X w + b, for w (a, d) and b (a,)."""
        for tile in self.tiles:
            tile.groups().products(w, b, machines, tile.values)

    def set_moves(self, machines: np.ndarray, w: np.ndarray, b: np.ndarray) -> None:
        """Set the change of the values by a step w (a, d), b (a,)."""
        for tile in self.tiles:
            tile.groups().products(w, b, machines, tile.moves)

    def set_bias_moves(self, machine: int, step: float) -> None:
        for tile in self.tiles:
            tile.moves[machine] = step

    def search(
        self, machines: np.ndarray, lines: Sequence[Line], widths: np.ndarray, centres: np.ndarray
    ) -> list[float]:
        """The lengths of the moves of these machines; see `line_search`."""
        state = begin_search(lines)
        if self._collective is ALONE and len(self.tiles) == 1 and not self.tiles[0].is_stored:
            self._search_alone(state, machines, widths, centres)
        else:
            self._search_together(state, machines, widths, centres)
        return [float(length) for length in state[:, LENGTH]]

    def _search_alone(
        self, state: np.ndarray, machines: np.ndarray, widths: np.ndarray, centres: np.ndarray
    ) -> None:
        """The searches without returning to Python for each trial."""
        tile = self.tiles[0]
        groups, losses = tile.groups(), tile.losses()
        partial = np.empty((groups.count, len(machines), 2))
        while not search_lines(
            pool_words(groups.n_threads), groups.count, groups.n_threads,
            groups.passes_at_once(2.0 * len(machines)), state, groups.size, losses, self._own,
            machines, widths, tile.values, tile.moves, tile.beta, centres, partial,
        ):  # fmt: skip
            pass

    def _search_together(
        self, state: np.ndarray, machines: np.ndarray, widths: np.ndarray, centres: np.ndarray
    ) -> None:
        """The same searches with a sum over tiles and members for each trial."""
        while not is_search_over(state):
            pulls = np.zeros((len(machines), 2))
            for tile in self.tiles:
                count = -(-len(tile) // _GROUP_ROWS)
                partial = np.zeros((count, len(machines), 2))
                add_pulls(
                    pool_words(self._n_threads), count, self._n_threads, state, _GROUP_ROWS,
                    tile.losses(), self._own, machines, widths, tile.values, tile.moves, tile.beta,
                    centres, partial,
                )  # fmt: skip
                pulls += total_of(partial)
            self._collective.sum(pulls)
            look_at_all(state, pulls)

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
        columns, squares = len(machines) * self._n_parts, self._squares
        known = self.curved.known if squares is None else squares.known
        all_sums: np.ndarray | None = None
        all_combined: np.ndarray | None = None
        if squares is not None:
            squares.begin(machines)
        for tile in self.tiles:
            groups, losses = tile.groups(), tile.losses()
            sums = np.empty((groups.count, len(machines), N_SUMS))
            combined = np.empty((groups.count, columns, groups.n_features))
            groups.run(
                measure_rows, groups.cells * columns, groups.by_blas, groups.X, groups.rows, losses,
                self._own, machines, lengths, widths, tile.values, tile.moves, tile.beta, slots,
                centres, tile.flags, known, sums, combined,
            )  # fmt: skip
            all_sums = added(all_sums, total_of(sums))
            all_combined = added(all_combined, total_of(combined))
            if squares is not None and squares.is_ahead:
                squares.add(tile, groups, losses.factor, machines)
        if all_sums is None or all_combined is None:
            all_sums = np.zeros((len(machines), N_SUMS))
            all_combined = np.zeros((columns, self._n_features))
        self._n_curved[machines] = all_sums[:, N_CURVED]
        self._n_changed[machines] = all_sums[:, N_CHANGED]
        sum_together(self._collective, all_sums, all_combined)
        return all_sums, all_combined.reshape(len(machines), self._n_parts, self._n_features)

    def squares(self, machines: np.ndarray, widths: np.ndarray) -> np.ndarray:
        """X'DX of the rows that had curvature in the last `measure`; see `normal_equations`.

        D is the curvature; of a loss with a kink, the curvature times the width.
        """
        assert self._squares is not None
        ridge = np.where(widths > 0.0, widths, 1.0)
        counts = self._n_curved[machines], self._n_changed[machines]
        found = self._squares.update(machines, *counts, ridge)
        self._collective.sum(found)
        return found

    def forget_squares(self, machine: int) -> None:
        if self._squares is not None:
            self._squares.forget(machine)

    def best(
        self, machines: np.ndarray, slots: np.ndarray, factors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Dual variables, times the factors (a, 4) of their parts, (m, a); the largest violations.

        The violations (a,) are those at the values that `set_moves` has put in place of the moves.
        The dual variables are those of the rows of this member, or none if results do not have
        them.
        """
        all_beta, worst = [np.empty((0, len(machines)))], np.zeros(len(machines))
        for tile in self.tiles:
            n_groups = -(-len(tile) // _GROUP_ROWS)
            beta = np.empty((len(tile), len(machines)))
            largest = np.empty((n_groups, len(machines)))
            scale_best_rows(
                n_groups, self._n_threads, 0, _GROUP_ROWS, tile.losses(), self._own, machines,
                tile.moves, tile.beta, slots, factors, tile.order, beta, largest,
            )  # fmt: skip
            np.maximum(worst, largest.max(axis=0), out=worst)
            if self._keeps_beta:
                all_beta.append(beta)
        self._collective.max(worst)
        return all_beta[1] if len(all_beta) == 2 else np.concatenate(all_beta), worst

    def mean_deviation(self) -> float:
        """The mean distance of the targets from their mean."""
        centre = 0.0
        for k in range(2):
            sums = np.zeros(2)
            for tile in self.tiles:
                values = tile.losses().target - centre
                sums += float(np.abs(values).sum() if k else values.sum()), len(tile)
            self._collective.sum(sums)
            centre = float(sums[0] / sums[1])
        return centre
