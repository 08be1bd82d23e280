"""Rounds of gradient boosting as plain values for checkpoints, and back."""

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
    """The state after the last complete round, with these raw scores (n_scores, n)."""
    n_known = process.first + len(process.trees) + 1
    return {
        "first": process.first,
        "trees": [[TreeForm.values(tree) for tree in trees] for trees in process.trees],
        "raw": raw.copy(),
        "losses": [float(loss) for loss in process.losses[:n_known]],
        "monitor": None if process.monitor is None else process.monitor.state(),
    }


def restore_rounds(process: Rounds, state: dict[str, Any], form: TreeForm | None) -> None:
    """Restore a process that has not begun from a state; raises `MisfitError`."""
    if form is None or (state["monitor"] is None) != (process.monitor is None):
        raise MisfitError("one of the fits stops early and the other does not")
    raw = finite_array(state["raw"], process.raw.shape, "raw")
    losses = numbers_of(state["losses"], "losses")
    trees = [form.trees(trees_of_round) for trees_of_round in state["trees"]]
    if any(len(trees_of_round) != len(raw) for trees_of_round in trees):
        raise MisfitError("a round has the wrong number of trees")
    if not len(process.losses) <= len(losses) <= process.first + len(trees) + 1:
        raise MisfitError("the number of losses does not fit the number of rounds")
    if process.monitor is not None:
        n_scores = len(process.monitor.scores) + len(trees)
        process.monitor.restore(state["monitor"])
        if len(process.monitor.scores) != n_scores:
            raise MisfitError("the number of scores does not fit the number of rounds")
    process.raw[...] = raw
    process.trees, process.losses = trees, losses
