"""What rounds of gradient boosting leave behind, as plain values, and back."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from margrove._runtime import MisfitError, finite_array, numbers_of
from margrove.ensemble.gradient.early_stopping import Monitor
from margrove.grove.serve import PackedTree, TreeForm

__all__ = ["restore_rounds", "state_of_rounds"]


class Rounds(Protocol):
    """See `hist.rounds` and `exact.rounds`; `first` is the number of the first round."""

    raw: np.ndarray
    trees: list[list[PackedTree]]
    losses: list[float]
    monitor: Monitor | None

    @property
    def first(self) -> int: ...


def state_of_rounds(process: Rounds, raw: np.ndarray) -> dict[str, Any]:
    """After the last round that is complete, when the raw scores were these."""
    n_known = process.first + len(process.trees) + 1
    return {
        "first": process.first,
        "trees": [[TreeForm.values(tree) for tree in own] for own in process.trees],
        "raw": raw.copy(),
        "losses": [float(own) for own in process.losses[:n_known]],
        "monitor": None if process.monitor is None else process.monitor.state(),
    }


def restore_rounds(process: Rounds, state: dict[str, Any], form: TreeForm | None) -> None:
    """Bring rounds that have not begun to where others of their kind were."""
    if form is None or (state["monitor"] is None) != (process.monitor is None):
        raise MisfitError("the rounds are watched otherwise")
    raw = finite_array(state["raw"], process.raw.shape, "raw")
    losses = numbers_of(state["losses"], "losses")
    trees = [form.trees(own) for own in state["trees"]]
    if any(len(own) != len(raw) for own in trees):
        raise MisfitError("a round has too few trees")
    if not len(process.losses) <= len(losses) <= process.first + len(trees) + 1:
        raise MisfitError("there are not as many losses as rounds")
    if process.monitor is not None:
        n_scores = len(process.monitor.scores) + len(trees)
        process.monitor.restore(state["monitor"])
        if len(process.monitor.scores) != n_scores:
            raise MisfitError("there are not as many scores as rounds")
    process.raw[...] = raw
    process.trees, process.losses = trees, losses
