"""The perceptron: stochastic subgradient steps on the perceptron loss, one example at a time.

    minimise  sum_n  max(0, margin - y_n (w.x_n + b))   [+ alpha * penalty(w)]

    for (x, y) in the data, in a new order each epoch:
        if y (w.x + b) <= margin:          a mistake; "<=", or w would never leave zero
            w <- w + eta y x,   b <- b + eta y

Rosenblatt 1958; margin = 0 is the plain perceptron. With an intercept this is the perceptron in
the space of (x, 1).

**Weights.** A row of weight k is presented k times in succession. It stops being a mistake after
`needed` presentations, so the visit is one step of eta * min(k, needed). For k = 1 this is the
textbook's step; for fractions it is a shorter step.

**Novikoff.** If u with ||u|| = 1 separates the data with margin gamma in a ball of radius R, the
number M of mistakes obeys  M <= (R^2 + 2 margin / eta) / gamma^2.  Each step adds at least
eta gamma to w.u and at most eta^2 R^2 + 2 eta margin to ||w||^2; a shorter step adds less of both,
so the bound also holds for the sum of fractional steps.

**Many classes** are one-vs-rest problems that share one pass: each row is read once for all of
them. For dense data the weights are class-major (K, d), with a dot product for each class; for
sparse data they are feature-major (d, K), so that a nonzero reads one cache line for eight classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove._data import kernel_rows, read_only
from margrove._runtime import is_watched_by_rounds, row_products, run_tiles, step_capacity
from margrove.exceptions import NumericalOverflowError
from margrove.margin.solvers.perceptron.epochs import EarlyStopping, Visits
from margrove.margin.solvers.perceptron.perceptron_steps import (
    CURSOR,
    EPOCH,
    BlockArrays,
    EpochArrays,
    EpochRule,
    StepRule,
    StepTrace,
    visit_rows,
)

__all__ = [
    "LinearState",
    "PerceptronProcess",
    "PerceptronUpdate",
    "Rule",
]

_CLASSES_PER_STEP = 4  # sparse blocks have a multiple of this: half a cache line of weights
_BUFFER_ROWS, _BUFFER_CELLS = 256, 2**15


@dataclass(frozen=True)
class PerceptronUpdate:
    """One mistake: the `row` of X, the one-vs-rest `problem`, and `value` = y f(x) before it."""

    epoch: int
    row: int
    problem: int
    value: float
    step: float


@dataclass(frozen=True)
class Rule:
    """The update rule and the stopping rule."""

    eta: float = 1.0
    margin: float = 0.0
    fit_intercept: bool = True
    l1: float = 0.0
    l2: float = 0.0
    average_from: int = -1  # presentations before averaging starts; negative: never
    shuffle: bool = True
    seed: int = 0
    shuffle_key: int = 0  # grows from batch to batch of a stream, so that the order changes
    max_epochs: int = 1000
    tol: float | None = 1e-3
    patience: int = 5


@dataclass
class LinearState:
    """Weights of K problems: coef (K, d), intercept (K,), sums for averaging, presentations (K,).

    The average of all iterates is coef - drift_coef / (presentations - average_from), where `drift`
    is the sum of each change times the number of presentations before it.
    """

    coef: np.ndarray
    intercept: np.ndarray
    drift_coef: np.ndarray
    drift_intercept: np.ndarray
    presentations: np.ndarray

    @classmethod
    def zeros(cls, n_problems: int, n_features: int, *, average: bool) -> LinearState:
        shape = (n_problems, n_features)
        drift = shape if average else (0, 0)
        nothing = [np.zeros(n_problems) for _ in range(3)]
        return cls(np.zeros(shape), nothing[0], np.zeros(drift), nothing[1], nothing[2])

    def averaged(self, average_from: int) -> LinearState:
        """The mean iterate, or the last iterate if averaging has not started."""
        if average_from < 0:
            return self
        counted = self.presentations - average_from
        counted = np.where(counted > 0, counted, np.inf)  # not started: the last iterate
        coef = self.coef - self.drift_coef / counted[:, None]
        return replace(self, coef=coef, intercept=self.intercept - self.drift_intercept / counted)


class _Block:
    """A few one-vs-rest problems that one thread trains together, and their epochs.

    visits, buffer   the visits that come next, and their rows if X is dense
    """

    def __init__(
        self,
        problems: np.ndarray,
        state: LinearState,
        stopping: EarlyStopping,
        *,
        n_visits: int,
        n_columns: int,
        is_dense: bool,
        with_l1: bool,
    ) -> None:
        self.problems = problems
        self.some = slice(int(problems[0]), int(problems[-1]) + 1)
        n_rows = max(1, min(_BUFFER_ROWS, _BUFFER_CELLS // max(1, n_columns), n_visits))
        self.visits = Visits.empty(n_rows)
        self.buffer = np.empty((n_rows if is_dense else 0, n_columns))
        self.gathered = read_only(self.buffer)
        self.epochs = EpochArrays(
            np.arange(n_visits), np.zeros(2, np.int64), np.zeros(len(problems)),
            np.zeros(len(problems), np.bool_), *stopping.of_problems(self.some),
        )  # fmt: skip
        self.n_judged = 0  # epochs
        self.is_dense = is_dense
        self.W = self._laid_out(state.coef[problems])
        self.b = state.intercept[problems].copy()
        averaging = state.drift_coef.size > 0
        self.drift_W = self._laid_out(state.drift_coef[problems]) if averaging else np.zeros((0, 0))
        self.drift_b = state.drift_intercept[problems].copy()
        self.l1_done = np.zeros(self.W.shape if with_l1 else (0, 0))
        clock = state.presentations[problems[0]]
        self.scalars = np.array([1.0, 0.0, clock, 0.0])  # scale, l1 total, clock, nan
        self.loss = np.zeros(len(problems))
        self.mistakes = np.zeros(len(problems))
        self.active = np.ones(len(problems), dtype=np.bool_)

    def arrays(self) -> BlockArrays:
        """The arrays that the compiled steps change."""
        return BlockArrays(
            self.W, self.b, self.drift_W, self.drift_b, self.l1_done, self.scalars, self.loss,
            self.mistakes, self.active,
        )  # fmt: skip

    @property
    def epoch(self) -> int:
        return int(self.epochs.counts[EPOCH])

    def _laid_out(self, coef: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(coef if self.is_dense else coef.T)

    def write_to(self, state: LinearState) -> None:
        """Copy the weights of active problems; stopped problems were copied when they stopped."""
        learning, problems = self.active, self.problems[self.active]
        coef = (self.W if self.is_dense else self.W.T) * self.scalars[0]
        state.coef[problems] = coef[learning]
        state.intercept[problems] = self.b[learning]
        if state.drift_coef.size:
            drift = self.drift_W if self.is_dense else self.drift_W.T
            state.drift_coef[problems] = drift[learning]
            state.drift_intercept[problems] = self.drift_b[learning]
        state.presentations[problems] = self.scalars[2]


class PerceptronProcess:
    """Epochs of perceptron steps over weighted rows; see `slices.Process`.

    X          checked X, dense or CSR
    codes      int64 (n,) class of each original row
    rows       int64 (m,) the rows to present, in their base order
    weight     float64 (m,) their weights, including class weights
    squared_norms  float64 (n,) ||x||^2 of all rows
    held_out   positions in `rows` that are used for early stopping only, or None
    """

    unit = "epoch"

    def __init__(
        self,
        X: Any,
        codes: np.ndarray,
        n_problems: int,
        rows: np.ndarray,
        weight: np.ndarray,
        squared_norms: np.ndarray,
        rule: Rule,
        state: LinearState,
        *,
        held_out: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> None:
        self._view = kernel_rows(X)
        self._rule = rule
        self._state = state
        self._n_threads = n_threads
        self._validation: _Validation | None = None
        # Problem k is "is it class k?"; two classes are one problem, "is it the second?".
        problem_codes = codes - 1 if n_problems == 1 else codes
        self._base = Visits(rows, problem_codes[rows], weight, squared_norms[rows])
        if held_out is not None:
            self._validation = _Validation(X, self._base.permuted(held_out))
            self._base = self._base.permuted(np.setdiff1d(np.arange(len(rows)), held_out))
        self.total: int | None = rule.max_epochs
        self.stopping = EarlyStopping(n_problems, rule.tol, rule.patience)
        self._blocks = self._make_blocks(n_problems)
        self._work_of_a_row = self._cells_of_a_row() * sum(len(block.b) for block in self._blocks)
        capacity = step_capacity()
        self._trace = np.empty((max(capacity, n_problems) if capacity else 0, 5))
        self._n_traced = np.zeros(1, dtype=np.int64)
        self._epoch_rule = self._rule_of_epochs()

    def _rule_of_epochs(self) -> EpochRule:
        rule = self._rule
        return EpochRule(
            seed=np.uint64(rule.seed),
            shuffle=rule.shuffle,
            shuffle_key=np.uint64(rule.shuffle_key),
            most_epochs=rule.max_epochs,
            tol=self.stopping.tol,
            patience=rule.patience,
            total=float(self._base.weight.sum()),
            is_plain=rule.l1 == 0.0 and rule.l2 == 0.0 and rule.average_from < 0,
            is_judged=self._validation is None,
        )

    def _make_blocks(self, n_problems: int) -> list[_Block]:
        """At most one block for each thread; with a step listener, one block, to keep the order."""
        per_block = n_problems
        if self._n_threads > 1 and not step_capacity():
            per_block = -(-n_problems // self._n_threads)
            if not self._view.is_dense:
                per_block = -(-per_block // _CLASSES_PER_STEP) * _CLASSES_PER_STEP
        return [
            _Block(
                np.arange(start, min(start + per_block, n_problems)),
                self._state,
                self.stopping,
                n_visits=len(self._base.rows),
                n_columns=self._view.dense.shape[1],
                is_dense=self._view.is_dense,
                with_l1=self._rule.l1 > 0.0,
            )
            for start in range(0, n_problems, per_block)
        ]

    # -- the interface of `slices.Process` --

    @property
    def rounds(self) -> int:
        return max(block.epoch for block in self._blocks)

    @property
    def finished(self) -> bool:
        return not self._running()

    def _running(self) -> list[_Block]:
        most = self._rule.max_epochs
        return [
            block
            for block in self._blocks
            if block.epoch < most and not block.epochs.converged.all()
        ]

    @property
    def mistakes(self) -> np.ndarray:
        """The number of mistakes so far, float64 (K,)."""
        if len(self._blocks) == 1:
            return self._blocks[0].mistakes.copy()
        return np.concatenate([block.mistakes for block in self._blocks])

    def figures(self) -> dict[str, float]:
        return {"mistakes": float(self.mistakes.sum())}

    def attributes(self) -> dict[str, Any]:
        """The current weights for predictions."""
        state = self.weights.averaged(self._rule.average_from)
        return {"coef_": state.coef.copy(), "intercept_": state.intercept.copy()}

    @property
    def weights(self) -> LinearState:
        for block in self._blocks:
            block.write_to(self._state)
        return self._state

    def advance(self, work: float) -> float:
        """Some visits of each block, or fewer if something else is due after an epoch."""
        running, before = self._running(), self._n_visits()
        most, by_rounds = max(1, int(work / self._work_of_a_row)), is_watched_by_rounds()
        full, trace = self._rule, StepTrace(self._trace, self._n_traced)
        rule = StepRule(
            full.eta, full.margin, full.fit_intercept, full.l1, full.l2, full.average_from
        )

        def learn(place: int) -> None:
            block = running[place]
            left = len(self._base.rows) - int(block.epochs.counts[CURSOR])
            visit_rows(
                self._view, block.buffer, block.gathered, self._base, block.visits,
                block.some.start, block.arrays(), trace, rule, self._epoch_rule, block.epochs,
                max(1, min(most, left)) if by_rounds else most,
            )  # fmt: skip

        run_tiles(learn, len(running), self._n_threads)
        for block in running:
            self._look_at(block)
        return (self._n_visits() - before) / len(running) * self._work_of_a_row

    def _n_visits(self) -> int:
        n = len(self._base.rows)
        return sum(n * block.epoch + int(block.epochs.counts[CURSOR]) for block in self._blocks)

    def _look_at(self, block: _Block) -> None:
        """Judge an epoch by the held-out rows; keep the weights of problems that have stopped."""
        self._require_finite(block)
        if self._validation is not None and block.epoch > block.n_judged:
            block.n_judged = block.epoch
            error = self._validation.error(self.attributes())[block.some]
            self.stopping.end_epoch(block.epoch, error, block.epochs.settled, block.some)
        learning = ~block.epochs.converged
        if (block.active != learning).any():
            block.write_to(self._state)
            block.active[:] = learning

    def _cells_of_a_row(self) -> float:
        if self._view.is_dense:
            return self._view.dense.shape[1] + 32.0
        return len(self._view.data) / max(1, len(self._view.indptr) - 1) + 32.0

    def read_steps(self) -> list[PerceptronUpdate]:
        records = self._trace[: self._n_traced[0]]
        self._n_traced[0] = 0
        return [
            PerceptronUpdate(int(epoch), int(row), int(problem), float(value), float(step))
            for epoch, row, problem, value, step in records
        ]

    def _require_finite(self, block: _Block) -> None:
        if block.scalars[3]:
            raise NumericalOverflowError(
                f"Floating-point under-/overflow occurred at epoch #{block.epoch}: the weights "
                "of the perceptron grew beyond floating point. Scaling input data with "
                "StandardScaler or MinMaxScaler might help, or a smaller eta0."
            )


class _Validation:
    """Held-out rows, on which the one-vs-rest error of each problem is measured."""

    def __init__(self, X: Any, held_out: Visits) -> None:
        self._X = X[held_out.rows]
        self._codes = held_out.codes
        self._weight = held_out.weight / held_out.weight.sum()

    def error(self, attributes: dict[str, Any]) -> np.ndarray:
        scores = row_products(self._X, attributes["coef_"].T) + attributes["intercept_"]
        wrong = (scores > 0) != (self._codes[:, None] == np.arange(scores.shape[1]))
        return self._weight @ wrong
