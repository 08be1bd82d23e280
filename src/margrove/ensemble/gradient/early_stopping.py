"""When boosting is to stop: scores after each round, on rows that were set apart or on its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime import finite_array, numbers_of, require_memory
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.grove.serve import Kind, PackedTree, leaves_of_rows

__all__ = ["ClassicMonitor", "HeldOut", "Monitor", "SoFar", "add_trees"]

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class HeldOut:
    """Rows that trees are not grown on; X as `TreeTable` has it, weight float64 (n,) or None."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None


@dataclass(frozen=True)
class SoFar:
    """Where boosting goes on from: rounds of trees, where these began, and what was found.

    Targets were divided by `scale` for what is to come, but not for the trees that are there.
    """

    rounds: list[list[PackedTree]]
    start: np.ndarray
    losses: tuple[float, ...]
    scores: tuple[float, ...]
    scale: float
    before: Callable[[Any], np.ndarray] | None = None  # raw scores by another model to start from

    @property
    def is_constant(self) -> bool:
        """Whether all rows have the same scores."""
        return not self.rounds and self.before is None

    def raw_of(self, X: Any, kind: Kind) -> np.ndarray:
        """Raw scores of rows, (scores, n)."""
        require_memory(
            8.0 * len(self.start) * X.shape[0],
            "The scores of all classes",
            "Use fewer classes, or fewer rows.",
        )
        raw = np.repeat(self.start[:, None] * self.scale, X.shape[0], axis=1)
        if self.before is not None:
            raw += self.before(X)
        for tree in (tree for own in self.rounds for tree in own):
            tree.require_sound(kind, X.shape[1])
        if self.rounds:
            for score in range(len(raw)):
                add_trees([own[score] for own in self.rounds], X, kind, raw[score])
        raw /= self.scale
        return raw


class Monitor:
    """The scores so far, of which more is better.

    Without rows held out they are those of the training set. `score(raw)` is what scikit-learn's
    `scoring` asks for; without it scores are losses with a minus sign.
    """

    def __init__(
        self,
        kind: Kind,
        held_out: HeldOut | None,
        raw: np.ndarray,
        *,
        score: Callable[[np.ndarray], float] | None = None,
        patience: int = 10,
        tol: float = 1e-7,
        scores: Sequence[float] = (),
    ) -> None:
        self._kind, self._held_out, self._raw = kind, held_out, raw
        self._score, self._patience, self._tol = score, patience, tol
        self.scores = list(scores)

    def state(self) -> dict[str, Any]:
        """After a round: raw scores of the rows held out, and what they were scored with."""
        return {"raw": self._raw.copy(), "scores": [float(own) for own in self.scores]}

    def restore(self, state: Any) -> None:
        raw = finite_array(state["raw"], self._raw.shape, "raw of the rows held out")
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
        """Score the model with the trees of another round, or as it is before the first one.

        `raw` is of the training set, `loss` that of the round.
        """
        if self._held_out is not None:
            for score, tree in enumerate(trees):
                add_trees([tree], self._held_out.X, self._kind, self._raw[score])
            self.scores.append(self._score_of(self._raw, loss))
        elif training_loss is not None:
            self.scores.append(-training_loss)
        else:
            self.scores.append(self._score_of(raw, loss))

    def _score_of(self, raw: np.ndarray, loss: GradientLoss) -> float:
        if self._score is not None:
            return float(self._score(raw))
        assert self._held_out is not None
        return -loss.value(self._held_out.y, raw, self._held_out.weight)

    @property
    def says_stop(self) -> bool:
        """Whether none of the last scores is better than the one before them."""
        if len(self.scores) <= self._patience:
            return False
        *_, reference = self.scores[: -self._patience]
        return not any(own > reference + self._tol for own in self.scores[-self._patience :])


class ClassicMonitor(Monitor):
    """The rule of scikit-learn's classic pair, which looks at validation losses only."""

    @property
    def says_stop(self) -> bool:
        """Whether the last loss is no lower than any of the ones before it."""
        *earlier, last = self.scores[1:]  # after a round each
        if len(earlier) < self._patience:
            return False
        return not any(last > own + self._tol for own in earlier[-self._patience :])


def add_trees(trees: list[PackedTree], X: Any, kind: Kind, raw: np.ndarray) -> None:
    """raw[i] += what the trees say of row i, one after the other."""
    for begin in range(0, X.shape[0], _ROWS_AT_ONCE):
        part = X[begin : begin + _ROWS_AT_ONCE]
        rows = np.ascontiguousarray(part.toarray() if hasattr(part, "toarray") else part)
        has_nan = bool(np.isnan(rows).any())
        found = np.empty(len(rows), np.int32)
        for tree in trees:
            leaves_of_rows(tree, rows, kind, found, has_nan=has_nan)
            raw[begin : begin + len(rows)] += tree.nodes.view(np.float64)[2 * found]
