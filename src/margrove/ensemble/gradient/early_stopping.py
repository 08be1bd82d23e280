"""Early stopping: scores after each round, on validation rows or on the training rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import ALONE, Collective, finite_array, numbers_of, region, require_memory
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.grove.serve import Kind, PackedTree, add_round, is_flat, leaves_of_rows

__all__ = ["ClassicMonitor", "HeldOut", "Monitor", "SoFar", "add_trees"]

_ROWS_AT_ONCE = 4096
_CELLS_FOR_THREADS = 1 << 16
_ROWS_OF_A_TILE = 8192


@dataclass(frozen=True)
class HeldOut:
    """Validation rows; X as in `TreeTable`, weight float64 (n,) or None.

    numbers   int64 (n,)  their numbers, if other members of a collective have more of them
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    numbers: np.ndarray | None = None


@dataclass(frozen=True)
class SoFar:
    """The state that boosting continues from.

    rounds   the trees of earlier rounds
    start    float64 (n_scores,)  raw scores before the first round
    losses   training losses before the first round and after each
    scores   validation scores, likewise
    scale    targets are divided by it in new rounds, but not in the trees of `rounds`
    before   a function of X that gives raw scores by another model, or None
    """

    rounds: list[list[PackedTree]]
    start: np.ndarray
    losses: tuple[float, ...]
    scores: tuple[float, ...]
    scale: float
    before: Callable[[Any], np.ndarray] | None = None

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same scores."""
        return not self.rounds and self.before is None

    def raw_of(self, X: Any, kind: Kind, *, n_threads: int = 1) -> np.ndarray:
        """Raw scores of rows, float64 (n_scores, n)."""
        require_memory(
            8.0 * len(self.start) * X.shape[0],
            "The scores of all classes",
            "Use fewer classes, or fewer rows.",
        )
        raw = np.empty((len(self.start), X.shape[0]))
        if self.is_constant:
            n_tiles = -(-X.shape[0] // _ROWS_OF_A_TILE)
            _fill_rows(n_tiles, n_threads, self.start * self.scale / self.scale, raw)
            return raw
        raw[:] = self.start[:, None] * self.scale
        if self.before is not None:
            raw += self.before(X)
        for tree in (tree for trees in self.rounds for tree in trees):
            tree.require_sound(kind, X.shape[1])
        if self.rounds:
            for score in range(len(raw)):
                add_trees([trees[score] for trees in self.rounds], X, kind, raw[score])
        raw /= self.scale
        return raw


class Monitor:
    """The scores after each round (higher is better), and the decision when to stop.

    Without validation rows they are scores of the training set. `score(raw)` computes a score of
    scikit-learn; by default scores are negative losses.
    """

    def __init__(
        self,
        kind: Kind,
        held_out: HeldOut | None,
        raw: np.ndarray,
        *,
        score: Callable[[np.ndarray], float] | None = None,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        scores: Sequence[float] = (),
        n_threads: int = 1,
        collective: Collective = ALONE,
    ) -> None:
        self._collective = collective
        self._kind, self._held_out, self._raw = kind, held_out, raw
        self._score, self._n_iter_no_change, self._tol = score, n_iter_no_change, tol
        self.scores, self._n_threads = list(scores), n_threads

    def state(self) -> dict[str, Any]:
        """The raw scores of the validation rows and the scores, after a round."""
        return {"raw": self._raw.copy(), "scores": [float(score) for score in self.scores]}

    def restore(self, state: Any) -> None:
        raw = finite_array(state["raw"], self._raw.shape, "raw of the validation rows")
        self.scores = numbers_of(state["scores"], "scores")
        self._raw[...] = raw

    @property
    def scores_are_losses(self) -> bool:
        return self._score is None

    @property
    def wants_training_loss(self) -> bool:
        return self._held_out is None and self._score is None

    def add(
        self,
        trees: list[PackedTree],
        training_loss: float | None,
        raw: np.ndarray,
        loss: GradientLoss,
    ) -> None:
        """Score the model after a round with these trees, or before the first round with none.

        `raw` are the raw scores of the training set, `loss` is the loss of the round.
        """
        if self._held_out is not None:
            self._add_values(trees, self._held_out.X)
            self.scores.append(self._score_of(self._raw, loss))
        elif training_loss is not None:
            self.scores.append(-training_loss)
        else:
            self.scores.append(self._score_of(raw, loss))

    def _add_values(self, trees: list[PackedTree], X: Any) -> None:
        """Add the values of the trees of a round to the scores of the validation rows."""
        if trees and is_flat(X):
            n_threads = self._n_threads if X.size >= _CELLS_FOR_THREADS else 1
            n_categories = self._kind.n_categories[: X.shape[1]]
            add_round(trees, X, n_categories, self._raw, n_threads=n_threads)
            return
        for score, tree in enumerate(trees):
            add_trees([tree], X, self._kind, self._raw[score])

    def _score_of(self, raw: np.ndarray, loss: GradientLoss) -> float:
        if self._score is not None:
            return float(self._score(raw))
        assert self._held_out is not None
        rows = self._held_out
        return -loss.value(
            rows.y, raw, rows.weight, n_threads=self._n_threads, collective=self._collective
        )

    @property
    def says_stop(self) -> bool:
        """Whether none of the last scores is better than the score before them."""
        if len(self.scores) <= self._n_iter_no_change:
            return False
        *_, reference = self.scores[: -self._n_iter_no_change]
        recent = self.scores[-self._n_iter_no_change :]
        return not any(score > reference + self._tol for score in recent)


class ClassicMonitor(Monitor):
    """The stopping rule of scikit-learn's classic estimators, which uses validation losses."""

    @property
    def says_stop(self) -> bool:
        """Whether the last loss is not lower than any of the losses before it."""
        *earlier, last = self.scores[1:]  # without the score before the first round
        if len(earlier) < self._n_iter_no_change:
            return False
        recent = earlier[-self._n_iter_no_change :]
        return not any(last > score + self._tol for score in recent)


def add_trees(trees: list[PackedTree], X: Any, kind: Kind, raw: np.ndarray) -> None:
    """raw[i] += the values of the trees for row i, one tree after the other."""
    for begin in range(0, X.shape[0], _ROWS_AT_ONCE):
        batch = X[begin : begin + _ROWS_AT_ONCE]
        rows = np.ascontiguousarray(batch.toarray() if hasattr(batch, "toarray") else batch)
        has_nan = bool(np.isnan(rows).any())
        leaves = np.empty(len(rows), np.int32)
        for tree in trees:
            leaves_of_rows(tree, rows, kind, leaves, has_nan=has_nan)
            raw[begin : begin + len(rows)] += tree.nodes.view(np.float64)[2 * leaves]


@region(bare=True)
def _fill_rows(tile, start, raw):
    for k in range(len(raw)):
        for i in range(tile * _ROWS_OF_A_TILE, min((tile + 1) * _ROWS_OF_A_TILE, raw.shape[1])):
            raw[k, i] = start[k]
