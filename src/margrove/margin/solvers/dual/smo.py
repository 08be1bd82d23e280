"""Sequential minimal optimisation with block decomposition.

    minimise    1/2 a'Qa + p'a     subject to   y'a = d,   0 <= a <= u,   Q_ij = y_i y_j K_ij

**A block.** The variables that violate most, half of them kept from the previous block, are solved
by pair steps (`pair_steps.solve_tile`), which need only their tile of K. Then full rows of K are
computed for the variables that changed, and the values (K c)_i, c = a y, of all points are updated
in one pass. Rows of free variables will be used again and are cached (`gram_rows.GramRows`); most
variables at a bound stay there. Blocks are small at first, and grow while much of a block is free
or changes: an easy problem has a few support vectors, and needs a few rows of K. A problem that
fits into one block is solved on its tile only (`whole_problems.solve_whole`).

**Stopping** is on the violation over all variables, from the values of all points. Values are
float64, but rows may be float32, whose rounding errors add up; their size is measured
(`gram_matrices.rounding_of`). If rounding could hide a violation of the size of the tolerance, the
values are recomputed in float64. If float32 makes no further progress, rows and tiles become
float64. If float64 makes no further progress, the limit of precision is reached, and the result has
`converged=False`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import read_only
from margrove._runtime import (
    MisfitError,
    array_of,
    kernel,
    on_large_pages,
    put_back,
    records_of,
    region,
    step_capacity,
    table_of,
    taken,
)
from margrove.margin.kernels import GramSource, TileView
from margrove.margin.solvers.dual.faces import descend_on_faces
from margrove.margin.solvers.dual.optimality import (
    ROWS_MEASURED,
    SmoRule,
    Variables,
    measure_part,
    offsets_of,
)
from margrove.margin.solvers.dual.pair_steps import FLOAT32_ETA, FLOAT64_ETA, PairRecord, solve_tile
from margrove.margin.solvers.dual.result import SolverResult, TracePoint
from margrove.margin.solvers.dual.whole_problems import (
    INNER_TOLERANCE,
    ROUNDING,
    SHARPENING_STEPS,
    FirstRound,
    most_steps,
    sharper_tolerance,
    solve_whole,
    split_by_sign,
    sum_of_tile,
)
from margrove.margin.svm import DualProblem

__all__ = ["Gram", "SmoProcess", "SmoStep"]

_STATE = ("alpha", "iterations", "rounds", "_at_floor")
_INNER_SHARE = 0.1  # a block is solved to this share of the violation at its start
_SLOW_STEPS = 10  # per variable
_MOST_DISAGREEMENTS = 20  # rounds in which pair steps and values disagree about the violation
_MOST_STALLS = 3  # recomputations of the values without progress
_MOST_IDLE_NEWTON = 40  # Newton descents without progress
_PROGRESS = 0.5  # of the violation, between two recomputations of the values
_SAFE_SHARE = 0.125  # of the tolerance: rounding below it needs no recomputation
_FIRST_BLOCK = 256
_SMALL_TILE = 512  # a huge page takes longer to clear than such a tile to compute
_ROUNDS_OF_SIZE = 8  # after which a block is doubled in any case
_ROWS_COPIED = 64  # in a tile


@dataclass(frozen=True)
class SmoStep:
    """One pair step: the rows of its two variables, and the change of y a (up and down)."""

    first: int
    second: int
    change: float


@dataclass(frozen=True)
class Gram:
    """The Gram matrix in float32 and float64.

    fast      float32 rows, or float64 rows if float32 would not be faster
    exact     a function that makes float64 rows
    values    (c, rows) -> (K c)_i of these rows, in float64
    rounding  root mean square error of an entry of `fast`
    """

    fast: GramSource
    exact: Callable[[], GramSource]
    values: Callable[[np.ndarray, np.ndarray], np.ndarray]
    rounding: float


class SmoProcess:
    """Pair steps over one dual problem; see `slices.Process`. A round is a block."""

    unit = "block"
    total: int | None = None

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram,
        rule: SmoRule,
        *,
        names: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> None:
        if problem.keeps_sum and np.count_nonzero(np.diff(problem.y)) > 1:
            raise ValueError("Variables must be sorted by sign if e'a is kept.")
        self._problem = problem
        self._gram = gram
        self._rule = rule
        self._names = names
        self._n_threads = n_threads
        self._source = gram.fast
        self._rounding = gram.rounding
        self._largest_entry = float(np.abs(gram.fast.diagonal).max(initial=0.0))
        self._is_whole = len(problem) <= rule.block
        given = (problem.rows, problem.y, problem.u, problem.y * problem.p)
        self._variables = Variables(*map(read_only, given))
        self._budget = rule.budget(len(problem))
        self.alpha = problem.start.copy()
        self._coef = self._coefficients()
        self._is_fresh = True
        self._block = np.empty(0, dtype=np.int64)
        self._n_kept = 0
        self._size = min(_FIRST_BLOCK, rule.block)
        self._last_tile = self._spare_tile = np.empty((0, 0), gram.fast.dtype)
        self._full: TileView | None = None
        self._values = self._all_values()
        self._steps: list[SmoStep] = []
        self._last_fresh = np.inf
        self._coef_of_fresh = self._coef
        self._stalls = 0
        self._is_slow = False
        self._idle_newton = 0
        self._disagreements = 0
        self._least_violation = np.inf
        self._at_floor = False
        self.rounds = 0
        self.iterations = 0
        self.trace: list[TracePoint] = []
        self._measure()

    @property
    def finished(self) -> bool:
        if self.converged or self._at_floor or self.iterations >= self._budget:
            return True
        return self._is_fresh and self.violation < min(self._rule.tol, self._noise())

    @property
    def converged(self) -> bool:
        if self.violation >= self._rule.tol or self._rule.tol < self._noise():
            return False
        return self._is_fresh or self._is_trusted()

    def figures(self) -> dict[str, float]:
        return {"violation": self.violation, "objective": self.objective}

    def read_steps(self) -> list[Any]:
        steps, self._steps = self._steps, []
        return steps

    def advance(self, work: float) -> float:
        """Solve one block, which is short enough for a slice, or recompute the values."""
        if self.violation < max(self._rule.tol, self._drift()):
            self._refresh()
            return float(len(self._problem))
        if self._is_slow and self._is_small() and self._idle_newton < _MOST_IDLE_NEWTON:
            self._step_on_faces()
            return float(len(self._problem)) ** 2
        alpha, values, steps, n_chosen = (
            self._solve_whole() if self._is_whole else self._solve_block()
        )
        if steps == 0:
            self._refresh()
            return float(len(self._problem))
        n_changed = np.count_nonzero(alpha != self.alpha)
        self._move(alpha, values, steps, n_chosen)
        return float(n_changed) * len(self._source) + float(steps) * n_chosen

    def go_on(self, first: FirstRound) -> SmoProcess:
        """Go on after a first round that was made elsewhere."""
        if first.steps:
            self._move(first.alpha, first.values, first.steps, len(self._problem))
        return self

    def _move(self, alpha: np.ndarray, values: np.ndarray, steps: int, n_chosen: int) -> None:
        """Take the point where a round of pair steps on so many variables has ended."""
        # In one step, so that alpha and values agree after an interrupt.
        self.alpha, self._values, self._is_fresh = alpha, values, False
        self._coef = self._coefficients()
        self._is_slow = steps >= _SLOW_STEPS * n_chosen
        self.iterations += steps
        self.rounds += 1
        self._measure()
        if self._is_whole and not self._is_slow:
            self._notice_rounding()

    def state(self) -> dict[str, Any]:
        """The point and its trace; everything else is recomputed by `restore`."""
        return taken(self, _STATE) | {"trace": table_of(self.trace)}

    def restore(self, state: dict[str, Any]) -> None:
        problem = self._problem
        alpha = array_of(state["alpha"], np.float64, (len(problem),), "alpha")
        if not problem.is_feasible(alpha):
            raise MisfitError("alpha is not feasible")
        trace = records_of(TracePoint, state["trace"], "trace")
        put_back(self, _STATE, state)
        self._coef = self._coef_of_fresh = self._coefficients()
        self._values = self._all_values()
        self._measure()
        self.trace = trace

    def result(self) -> SolverResult:
        rho, r = self._offsets()
        return SolverResult(
            alpha=self.alpha.copy(),
            rho=rho,
            r=r,
            objective=self.objective,
            violation=max(self.violation, self._noise() if self._rule.tol < self._noise() else 0.0),
            iterations=self.iterations,
            converged=self.converged,
            trace=list(self.trace),
        )

    # -- one block --

    def _choose_block(self) -> np.ndarray:
        """The worst violators of both sides, and the newer half of the last block."""
        size = self._size
        kept = self._block[: size // 2]
        is_taken = np.zeros(len(self._problem), dtype=bool)
        is_taken[kept] = True
        chosen, n_missing = [], size - len(kept)
        signs = (1, -1) if self._problem.keeps_sum else (0,)
        for number, sign in enumerate(signs):
            share = n_missing // (len(signs) - number)
            lowest = self._worst(sign, True, share // 2, is_taken)
            highest = self._worst(sign, False, share - len(lowest), is_taken)
            chosen += [lowest, highest]
            n_missing -= len(lowest) + len(highest)
        self._n_kept = len(kept)
        self._block = np.concatenate([*chosen, kept])
        return self._block

    def _worst(self, sign: int, rising: bool, count: int, is_taken: np.ndarray) -> np.ndarray:
        """Up to `count` variables of the lowest f that may rise, or of the highest that may fall.

        sign: the sign of their y, or 0 for both. They are marked as taken.
        """
        problem = self._problem
        values = np.empty(len(problem))
        _, y, u, _ = self._variables
        count = min(
            count, _write_candidates(self._f, self.alpha, u, y, sign, rising, is_taken, values)
        )
        if count <= 0:
            return np.empty(0, dtype=np.int64)
        found = np.sort(np.argpartition(values, count - 1)[:count])
        is_taken[found] = True
        return found

    def _solve_block(self) -> tuple[np.ndarray, np.ndarray, int, int]:
        """The new alpha and values, and the number of steps and of variables of the block."""
        problem = self._problem
        chosen, tile = self._tile_of_block(self._choose_block())
        tol = max(0.5 * self._rule.tol, _INNER_SHARE * self.violation)
        alpha, rows = self.alpha[chosen], problem.rows[chosen]
        most = min(self._budget - self.iterations, most_steps(len(chosen)))
        record = _record_of(most)
        steps = solve_tile(
            tile, self._source.diagonal[rows], problem.y[chosen], problem.u[chosen], alpha,
            self._f[chosen], problem.keeps_sum, tol, self._eta(), most, record,
        )  # fmt: skip
        self._keep(record, rows, steps)
        new_alpha = self.alpha.copy()
        new_alpha[chosen] = alpha
        self._adapt_size(new_alpha)
        values = self._values
        if steps:
            values = values + self._sum_of_rows(chosen, alpha, alpha - self.alpha[chosen])
        return new_alpha, values, int(steps), len(chosen)

    def _solve_whole(self) -> tuple[np.ndarray, np.ndarray, int, int]:
        """The same for all variables at once."""
        problem, tol = self._problem, self._rule.tol
        budget = self._budget - self.iterations
        record = _record_of(2 * min(budget, most_steps(len(problem))) + SHARPENING_STEPS)
        alpha, values = self.alpha.copy(), self._values.copy()
        tols = INNER_TOLERANCE * tol, sharper_tolerance(problem, tol)
        steps = solve_whole(
            self._full_tile(), self._source.diagonal, self._variables, problem.keeps_sum, tols,
            self._eta(), budget, alpha, values, self._f, record,
        )  # fmt: skip
        self._keep(record, problem.rows, steps)
        return alpha, values, int(steps), len(problem)

    def _adapt_size(self, alpha: np.ndarray) -> None:
        """Make the next block larger if this one was too small."""
        n_free = np.count_nonzero((alpha > 0.0) & (alpha < self._problem.u))
        n_changed = np.count_nonzero(alpha != self.alpha)
        is_last = (self.rounds + 1) % _ROUNDS_OF_SIZE == 0
        factor = 8 if 2 * n_changed > self._size else 2
        if is_last or 2 * n_free > self._size or 4 * n_changed > self._size:
            self._size = min(factor * self._size, self._rule.block)

    def _eta(self) -> float:
        return FLOAT32_ETA if self._source.dtype == np.float32 else FLOAT64_ETA

    def _tile_of_block(self, chosen: np.ndarray) -> tuple[np.ndarray, TileView]:
        """K of the block; the corner of the variables kept from the last block is copied."""
        rows, n_new, m = self._problem.rows[chosen], len(chosen) - self._n_kept, len(chosen)
        tile, spare = self._buffer(m), self._last_tile
        self._source.grow(rows, n_new, spare, tile)
        self._last_tile, self._spare_tile = tile, spare
        if not self._problem.keeps_sum:
            return chosen, TileView(tile, 0, m, 0)
        order = np.argsort(-self._problem.y[chosen], kind="stable")
        n_positive = int(np.count_nonzero(self._problem.y[chosen] > 0))
        sorted_tile = np.empty_like(tile)
        _permute(-(-m // _ROWS_COPIED), self._n_threads, tile, order, sorted_tile)
        return chosen[order], TileView(sorted_tile, 0, n_positive, n_positive)

    def _buffer(self, m: int) -> np.ndarray:
        """Memory for the tile of a block: that of the last tile but one, if it is large enough.

        Writing new memory takes longer than computing the kernel values of few features.
        """
        spare = self._spare_tile
        if spare.shape == (m, m) and spare.dtype == self._source.dtype:
            return spare
        if m <= _SMALL_TILE:
            return np.empty((m, m), self._source.dtype)
        return on_large_pages((m, m), self._source.dtype)

    def _full_tile(self) -> TileView:
        """All variables as one tile."""
        if self._full is None:
            n = len(self._source)
            shared = self._source.full()
            if shared is None:
                points = np.arange(n)
                shared = TileView(self._source.block(points, points), 0, n, 0)
            self._full = split_by_sign(self._problem, n, shared)
        return self._full

    def _is_small(self) -> bool:
        """Whether the full tile is in float64."""
        return len(self._problem) <= SmoRule.block and self._source.dtype == np.float64

    def _all_values(self) -> np.ndarray:
        """The values (K c)_i of all points, in float64."""
        if self._is_whole and self._source.dtype == np.float64 and self.alpha.any():
            n = len(self._source)
            return np.asarray(sum_of_tile(self._full_tile(), self._variables, self.alpha, n))
        return self._gram.values(self._coef, np.arange(len(self._source)))

    def _step_on_faces(self) -> None:
        """Newton steps, because pair steps are slow; the values are recomputed."""
        self._is_slow = False
        before = self.violation
        problem = self._problem
        K, first, middle, second = self._full_tile()
        t = np.arange(len(problem))
        index = np.where(t < middle, first + t, second + (t - middle))
        K = K[np.ix_(index, index)]
        self.alpha = descend_on_faces(K, problem.y, problem.u, self.alpha, self._f, self._groups())
        self._coef = self._coefficients()
        self._values = self._all_values()
        self._measure()
        self._idle_newton += not self.violation <= _PROGRESS * before

    def _keep(self, record: PairRecord, rows: np.ndarray, steps: int) -> None:
        """Keep the recorded steps for `read_steps`."""
        if not len(record.first):
            return
        names = rows if self._names is None else self._names[rows]
        first, second, change = (array[:steps] for array in record)
        self._steps += [
            SmoStep(int(i), int(j), float(d))
            for i, j, d in zip(names[first], names[second], change, strict=True)
        ]

    def _sum_of_rows(self, chosen: np.ndarray, alpha: np.ndarray, change: np.ndarray) -> np.ndarray:
        """K times the change of the coefficients, from full rows."""
        problem = self._problem
        rows, inverse = np.unique(problem.rows[chosen], return_inverse=True)
        weights = np.bincount(inverse, weights=change * problem.y[chosen])
        is_free = (alpha > 0.0) & (alpha < problem.u[chosen])
        again = np.bincount(inverse, weights=is_free) > 0
        moved = weights != 0.0
        return self._source.weighted_sum(rows[moved], weights[moved], again[moved])

    # -- violation and precision of the point --

    def _coefficients(self) -> np.ndarray:
        return self._problem.coefficients(self.alpha, len(self._gram.fast))

    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Which variables can move so that y a grows, and so that it falls."""
        below, above = self.alpha < self._problem.u, self.alpha > 0.0
        positive = self._problem.y > 0
        return np.where(positive, below, above), np.where(positive, above, below)

    def _groups(self) -> list[np.ndarray]:
        """Variables that may form pairs with each other."""
        if not self._problem.keeps_sum:
            return [np.ones(len(self._problem), dtype=bool)]
        return [self._problem.y > 0, self._problem.y < 0]

    def _measure(self) -> None:
        problem = self._problem
        self._f = np.empty(len(problem))
        n_parts = -(-len(problem) // ROWS_MEASURED)
        found = np.empty((n_parts, 5))
        measure_part(
            n_parts, self._n_threads, self._values, self._variables, self.alpha, problem.keeps_sum,
            self._f, found,
        )  # fmt: skip
        low_a, low_b, high_a, high_b, objectives = zip(*found.tolist(), strict=True)
        self.violation = max(0.0, max(high_a) - min(low_a), max(high_b) - min(low_b))
        self.objective = 0.5 * sum(objectives)
        self._length = float(np.sqrt(self._coef @ self._coef))
        self.trace.append(TracePoint(self.iterations, self.objective, self.violation))

    def _is_trusted(self) -> bool:
        """Whether the rounding error is small compared with the tolerance."""
        return self._rounding_error() <= _SAFE_SHARE * self._rule.tol

    def _noise(self) -> float:
        return ROUNDING * self._largest_entry * self._length

    def _rounding_error(self) -> float:
        """Five standard deviations of the error of a value; entries have independent errors."""
        return 5.0 * self._rounding * self._length

    def _drift(self) -> float:
        """The rounding error since values were last recomputed; 0 if it does not matter."""
        if self._rounding == 0.0:
            return 0.0
        drift = 5.0 * self._rounding * float(np.linalg.norm(self._coef - self._coef_of_fresh))
        return drift if drift > _SAFE_SHARE * self._rule.tol else 0.0

    def _refresh(self) -> None:
        """Recompute values in float64; raise the precision if there is no progress."""
        critical = self._critical_rows()
        values = self._values.copy()
        values[critical] = self._gram.values(self._coef, critical)
        self._values = values
        self._is_fresh = True
        self._coef_of_fresh = self._coef
        self._measure()
        is_progress = self.violation <= _PROGRESS * self._last_fresh
        self._stalls = 0 if is_progress else self._stalls + 1
        self._last_fresh = min(self._last_fresh, self.violation)
        if self.violation >= self._rule.tol and self._stalls > _MOST_STALLS:
            self._raise_precision()

    def _notice_rounding(self) -> None:
        """Raise the precision if pair steps on the full tile often end above the tolerance."""
        if self.violation < self._rule.tol or self.violation <= _PROGRESS * self._least_violation:
            self._disagreements = 0
            self._least_violation = self.violation
            return
        self._disagreements += 1
        if self._disagreements > _MOST_DISAGREEMENTS:
            self._disagreements = 0
            self._raise_precision()

    def _raise_precision(self) -> None:
        """Switch from float32 to float64; with float64, stop."""
        if self._source.dtype == np.float64:
            self._at_floor = True
            return
        self._source, self._rounding = self._gram.exact(), 0.0
        self._last_tile = self._spare_tile = np.empty((0, 0), self._source.dtype)
        self._full = None
        self._block = self._block[:0]
        self._last_fresh, self._stalls = np.inf, 0

    def _critical_rows(self) -> np.ndarray:
        """The rows that can determine the violation, within the rounding error of their values."""
        if self._rounding == 0.0:
            return np.arange(len(self._values))
        up, low = self._sides()
        reach = 2.0 * self._rounding_error()
        critical = np.zeros(len(self._values), dtype=bool)
        for group in self._groups():
            above, below = up & group, low & group
            highest = float(self._f.max(initial=-np.inf, where=below))
            lowest = float(self._f.min(initial=np.inf, where=above))
            near = (above & (self._f <= highest + reach)) | (below & (self._f >= lowest - reach))
            critical[self._problem.rows[near]] = True
        return np.flatnonzero(critical)

    def _offsets(self) -> tuple[float, float]:
        """rho and r, from f of the free variables, which is constant at the optimum."""
        if not self._problem.has_bias:
            return 0.0, 0.0
        rho, r = offsets_of(self._variables, self.alpha, self._f, self._problem.keeps_sum)
        return float(rho), float(r)


def _record_of(most: int) -> PairRecord:
    """Arrays for the steps, if somebody wants to see them; else empty ones."""
    size = most if step_capacity() else 0
    return PairRecord(np.empty(size, int), np.empty(size, int), np.empty(size))


@kernel
def _write_candidates(f, alpha, u, y, sign, rising, is_taken, values):
    """values <- f, or -f of variables that fall, and infinity if not allowed; returns how many."""
    count = 0
    for i in range(len(f)):
        can_move = alpha[i] < u[i] if (y[i] > 0.0) == rising else alpha[i] > 0.0
        is_candidate = can_move and not is_taken[i] and y[i] * sign >= 0.0
        values[i] = (f[i] if rising else -f[i]) if is_candidate else np.inf
        count += np.int64(np.isfinite(values[i]))
    return count


@region
def _permute(tile, K, order, out):
    """out[i, j] <- K[order[i], order[j]]"""
    for i in range(tile * _ROWS_COPIED, min((tile + 1) * _ROWS_COPIED, len(out))):
        row = K[order[i]]
        for j in range(len(out)):
            out[i, j] = row[order[j]]
