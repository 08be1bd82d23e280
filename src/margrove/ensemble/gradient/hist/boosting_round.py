"""A round of boosting that is not complete, as those see it who grow its trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from margrove.ensemble.gradient.hist import nodes
from margrove.grove.serve import PackedTree

__all__ = ["BoostingRound"]


@dataclass
class BoostingRound:
    """A round, with a tree for each score.

    rows, others   int32, the rows that trees are grown on, and all other rows
    n_rows         the number of rows of all members that trees are grown on
    sources        the gradients of each score, and the raw scores, to which trees are added
    renew          renew(tree, raw, leaves, rows, starts) sets the values of leaves by the residuals
                   of their rows: leaf k has rows[starts[k] : starts[k + 1]]. None if leaves have
                   the values of Newton steps.
    grown          the trees that are grown, or None
    score          the number of the next tree
    """

    rows: np.ndarray
    others: np.ndarray
    n_rows: int
    sources: Sequence[nodes.Source]
    rules: Sequence[nodes.GrowthRules]
    renew: (
        Callable[[nodes.BoostedTree, np.ndarray, np.ndarray, np.ndarray, np.ndarray], None] | None
    )
    grown: list[PackedTree | None] = field(init=False)
    score: int = 0

    def __post_init__(self) -> None:
        self.grown = [None] * len(self.sources)

    @property
    def is_complete(self) -> bool:
        return self.score == len(self.sources)
