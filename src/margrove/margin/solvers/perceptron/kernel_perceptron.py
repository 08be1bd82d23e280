"""The perceptron in dual form: w = sum_i a_i y_i phi(x_i), with K(x, z) = phi(x).phi(z).

    for (x_j, y_j) in the data, in a new order each epoch:
        if y_j f(x_j) <= margin:        f(x) = sum_i a_i y_i K(x_i, x) [+ intercept]
            a_j <- a_j + 1              the mistakes made on example j

With an intercept the kernel is K + 1: a constant feature 1 in feature space, as for the primal
perceptron, which makes exactly the same updates.

**Blocks.** The decision values F of all rows are stored. The rows of a block are presented one by
one, with the small Gram matrix of the block. Changes wait until there are enough for a full tile;
then the kernel values of the changed rows with all rows are computed at once, by GEMM, and F is
updated. At its start, a block adds the effect of the waiting changes to the values of its own rows.
So little more than the kernel values of mistaken rows is computed, and only F is stored.

**Budget.** With at most `budget` support vectors, blocks are a quarter of the budget, and after a
block the excess is removed: the shortest terms of w first, by sum_k a_ik^2 K(x_i, x_i). The
intercept needs no memory and is not changed. (Removing the vectors that the others classify best,
the oldest, or random ones was worse on digits and moons, and so was an intercept that changes.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import TILE_ROWS, single_threaded_blas, step_capacity
from margrove._runtime import kernel as compiled
from margrove.exceptions import NumericalOverflowError
from margrove.margin.kernels import Kernel, Points, gram, kernel_sums
from margrove.margin.solvers.perceptron.epochs import EarlyStopping, shuffle
from margrove.margin.solvers.perceptron.perceptron import PerceptronUpdate

__all__ = ["DualRule", "KernelPerceptronProcess"]


@dataclass(frozen=True)
class DualRule:
    """The update rule and the stopping rule."""

    margin: float = 0.0
    fit_intercept: bool = True
    budget: int | None = None
    shuffle: bool = True
    seed: int = 0
    shuffle_key: int = 0
    max_epochs: int = 100
    tol: float | None = 1e-3
    patience: int = 5


class KernelPerceptronProcess:
    """Epochs of dual perceptron steps; see `slices.Process`.

    points   all rows that are or may become support vectors
    codes    int64 (n,) class of each point; two classes are one problem, "is it the second?"
    weight   float64 (n,) the weight of each row
    visited  int64 (m,) positions of the points to present
    coef     float64 (n, K) signed dual coefficients a_i y_i to start from; changed in place
    intercept  float64 (K,) likewise
    origin   int64 (n,) the user's row of each point, for step listeners
    """

    unit = "epoch"

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        codes: np.ndarray,
        weight: np.ndarray,
        visited: np.ndarray,
        coef: np.ndarray,
        intercept: np.ndarray,
        rule: DualRule,
        *,
        origin: np.ndarray,
        n_threads: int = 1,
    ) -> None:
        self.kernel = kernel
        self._points = points
        self._codes = codes
        self._weight = weight
        self._visited = visited
        self._origin = origin
        self._rule = rule
        self._n_threads = n_threads
        self._first_class = 1 if coef.shape[1] == 1 else 0
        self._diagonal = kernel.diagonal(points)
        self.coef = coef
        self.intercept = intercept
        self._values = np.zeros_like(coef)
        self._waiting = np.empty(0, dtype=np.int64)
        self._waiting_change = np.empty((0, coef.shape[1]))
        self.mistakes = np.zeros(coef.shape[1])
        self._block_rows = TILE_ROWS
        if rule.budget is not None:
            self._block_rows = min(TILE_ROWS, max(1, rule.budget // 4))
        self._order = np.arange(len(visited))
        self._loss = np.zeros(coef.shape[1])
        self._epoch = 0
        self.total: int | None = rule.max_epochs
        self._cursor = 0
        self.stopping = EarlyStopping(coef.shape[1], rule.tol, rule.patience)
        capacity = step_capacity()
        self._trace = np.empty((max(capacity, TILE_ROWS * coef.shape[1]) if capacity else 0, 5))
        self._n_traced = np.zeros(1, dtype=np.int64)
        self._begin_epoch()
        self.recompute_values()

    # -- the interface of `slices.Process` --

    @property
    def rounds(self) -> int:
        return self._epoch

    @property
    def finished(self) -> bool:
        return self._epoch >= self._rule.max_epochs or bool(self.stopping.converged.all())

    def figures(self) -> dict[str, float]:
        support = int(self.coef.any(axis=1).sum())
        return {"mistakes": float(self.mistakes.sum()), "support vectors": support}

    def attributes(self) -> dict[str, Any]:
        """The state as fitted attributes: support vectors, their coefficients, the intercept."""
        support = np.flatnonzero(self.coef.any(axis=1))
        return {
            "support_": support,
            "dual_coef_": np.ascontiguousarray(self.coef[support].T),
            "intercept_": self.intercept.copy(),
        }

    def advance(self, work: float) -> float:
        """Present full blocks until the work is done; so results do not depend on slices."""
        with single_threaded_blas():  # once for all products of a slice
            return self._present_blocks(work)

    def _present_blocks(self, work: float) -> float:
        spent = 0.0
        while spent < work and self._cursor < len(self._order):
            if len(self._trace) and self._n_traced[0] + TILE_ROWS * len(self.mistakes) > len(
                self._trace
            ):
                break
            spent += self._present_block()
        if self._cursor >= len(self._order):
            self._end_epoch()
        return spent

    def read_steps(self) -> list[PerceptronUpdate]:
        records = self._trace[: self._n_traced[0]]
        self._n_traced[0] = 0
        return [
            PerceptronUpdate(int(epoch), int(self._origin[int(i)]), int(k), value, step)
            for epoch, i, k, value, step in records.tolist()
        ]

    # -- blocks --

    def _present_block(self) -> float:
        block = self._visited[self._order[self._cursor : self._cursor + self._block_rows]]
        points = self._points.take(block)
        constant = 1.0 if self._rule.fit_intercept else 0.0
        tile = gram(self.kernel, points, points).astype(np.float64) + constant
        values = self._values[block] + self._waiting_values(points) + self.intercept
        change = np.zeros((len(block), self.coef.shape[1]))
        before = self._snapshot(block)
        try:
            _visit_block(
                tile, block, self._codes, self._weight, values, change, self._first_class,
                self._rule.margin, ~self.stopping.converged, self._loss, self.mistakes,
                self._epoch, self._trace, self._n_traced,
            )  # fmt: skip
            changed = change.any(axis=1)
            self._apply(block[changed], change[changed])
            self.intercept += constant * change.sum(axis=0)
        except BaseException:  # an interrupt: undo the incomplete block
            self._restore(before, block)
            raise
        self._cursor += len(block)
        self._remove_excess()
        cells = self._points.X.shape[1] + 40.0
        work = cells * len(block) * (len(block) + len(self._waiting))
        if len(self._waiting) >= TILE_ROWS:
            work += cells * len(self._waiting) * len(self._points)
            self._apply_waiting()
        return work

    def _snapshot(self, block: np.ndarray) -> list[np.ndarray]:
        return [self.intercept.copy(), self.mistakes.copy(), self._loss.copy(), self.coef[block]]

    def _restore(self, before: list[np.ndarray], block: np.ndarray) -> None:
        self.intercept[:], self.mistakes[:], self._loss[:] = before[:3]
        self.coef[block] = before[3]

    def _waiting_values(self, points: Points) -> np.ndarray:
        """The effect of the waiting changes on the values of a block."""
        if len(self._waiting) == 0:
            return np.zeros((len(points), self.coef.shape[1]))
        sources = self._points.take(self._waiting)
        return kernel_sums(
            self.kernel, points, sources, self._waiting_change, n_threads=self._n_threads
        )

    def _apply(self, rows: np.ndarray, change: np.ndarray) -> None:
        self.coef[rows] += change
        self._waiting = np.r_[self._waiting, rows]
        self._waiting_change = np.vstack([self._waiting_change, change])

    def _remove_excess(self) -> None:
        if self._rule.budget is None:
            return
        support = np.flatnonzero(self.coef.any(axis=1))
        excess = len(support) - self._rule.budget
        if excess > 0:
            length = (self.coef[support] ** 2).sum(axis=1) * self._diagonal[support]
            shortest = support[np.argsort(length, kind="stable")[:excess]]
            self._apply(shortest, -self.coef[shortest])

    def _apply_waiting(self) -> None:
        """values += K(all, waiting) @ change; sums that overflow are found after each epoch."""
        if len(self._waiting):
            sources = self._points.take(self._waiting)
            self._values += kernel_sums(
                self.kernel, self._points, sources, self._waiting_change, n_threads=self._n_threads
            )
        self._waiting = self._waiting[:0]
        self._waiting_change = self._waiting_change[:0]

    def recompute_values(self) -> None:
        """Recompute the decision values: at the start, and after an interrupt of an update."""
        self._values[:] = 0.0
        self._waiting = np.flatnonzero(self.coef.any(axis=1))
        self._waiting_change = self.coef[self._waiting]

    @property
    def values(self) -> np.ndarray:
        """f (n, K) of all points."""
        self._apply_waiting()
        return self._values + self.intercept

    # -- epochs --

    def _begin_epoch(self) -> None:
        self._cursor = 0
        self._loss[:] = 0.0
        self._mistakes_before = self.mistakes.copy()
        if self._rule.shuffle:
            self._shuffle()

    def _shuffle(self) -> None:
        epoch = np.uint64(self._rule.shuffle_key + self._epoch)
        shuffle(self._order, np.uint64(self._rule.seed), epoch)

    def _end_epoch(self) -> None:
        self._epoch += 1
        self._require_finite()
        settled = self.mistakes == self._mistakes_before
        mean_loss = self._loss / self._weight[self._visited].sum()
        self.stopping.end_epoch(self._epoch, mean_loss, settled)
        if not self.finished:
            self._begin_epoch()

    def _require_finite(self) -> None:
        if not np.isfinite(self._values).all():
            raise NumericalOverflowError(
                f"Floating-point overflow occurred at epoch #{self._epoch}: the decision values "
                "grew beyond floating point. Scale the features, for example with "
                "sklearn.preprocessing.StandardScaler, or use a smaller degree or gamma."
            )

    def margins(self) -> np.ndarray:
        """(K,) the smallest y f(x) / ||w|| over the visited rows, in the feature space."""
        rows = self._visited
        problems = self._first_class + np.arange(len(self.mistakes))
        signs = np.where(self._codes[rows][:, None] == problems, 1.0, -1.0)
        values = self.values
        # ||w||^2 = sum_i a_i y_i (f(x_i) - b), and b^2 for the constant feature.
        squared = np.einsum("ik,ik->k", self.coef, values - self.intercept) + self.intercept**2
        norm = np.sqrt(np.maximum(squared, 0.0))
        smallest = (signs * values[rows]).min(axis=0)
        return np.divide(smallest, norm, out=np.zeros(len(norm)), where=norm > 0) + 0.0

    @property
    def radius(self) -> float:
        """The largest ||phi(x)|| of a visited row, including the constant feature."""
        constant = 1.0 if self._rule.fit_intercept else 0.0
        return float(np.sqrt(max(0.0, self._diagonal[self._visited].max() + constant)))


@compiled
def _visit_block(
    tile, block, codes, weights, values, change, first_class, margin, active, loss, mistakes, epoch,
    trace, n_traced,
):  # fmt: skip
    """Present the rows of a block in order; tile is their Gram matrix, values their f(x)."""
    size, n_problems = values.shape
    for t in range(size):
        weight = weights[block[t]]
        for k in range(n_problems):
            sign = 1.0 if codes[block[t]] == first_class + k else -1.0
            value = sign * values[t, k]
            if value > margin or not active[k]:
                continue
            step = weight
            if weight > 1.0 and tile[t, t] > 0.0:
                step = min(weight, np.floor((margin - value) / tile[t, t]) + 1.0)
            loss[k] += weight * (margin - value)
            mistakes[k] += step
            change[t, k] += sign * step
            for s in range(t, size):
                values[s, k] += sign * step * tile[t, s]
            if trace.shape[0] > 0:
                m = n_traced[0]
                trace[m, 0], trace[m, 1], trace[m, 2] = epoch, block[t], k
                trace[m, 3], trace[m, 4] = value + 0.0, step  # never -0.0
                n_traced[0] = m + 1
