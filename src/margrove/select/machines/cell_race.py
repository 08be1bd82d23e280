"""Which cells of a grid are still worth solving, for searches with `drop=True`.

Cells are solved fold by fold. A cell is dropped after some folds if it cannot reach the best mean
of the cells that are complete (with refit="1se", that mean less its standard error):

- not even with the greatest possible score in all folds that are left, or
- not unless the folds that are left differ from those so far by more than `_DEVIATIONS` standard
  deviations of what chance does to rows that are shuffled. This needs scores that count rows. The
  standard deviation is that of the rows that only one of the two cells predicts right, or, if it is
  larger, that of the differences between folds.

Decisions are made between rounds of legs, so they do not depend on the number of threads. A machine
starts from that of the next smaller C, so that a path is a beginning of all C: a dropped cell is
solved if a cell of larger C is not dropped, and what is solved is the same as without dropping.
"""

from __future__ import annotations

import numpy as np

from margrove.select.held_out import FoldScorer
from margrove.select.machines.machine_paths import Leg

__all__ = ["CellRace"]

_DEVIATIONS = 5.0
_LEAST_FOLDS = 2  # before chance is considered
_EARLY = 0.7  # the share of the Cs, the smaller ones, whose cells are decided first: they cost less
_ROUNDING = 1e-9


class CellRace:
    """Chooses the next legs of a search, from the scores so far.

    keeps_standard_error   cells within one standard error of the best are not dropped
    splits_paths           smaller Cs first; does not pay for many small machines, because each leg
                           copies their tiles and scores anew
    """

    def __init__(
        self, fold_scorer: FoldScorer, *, keeps_standard_error: bool, splits_paths: bool
    ) -> None:
        self._scorer = fold_scorer
        self._keeps_standard_error = keeps_standard_error
        n_Cs, n_kernels, n_folds = fold_scorer.scores.shape
        self._n_early = int(np.ceil(_EARLY * n_Cs)) if splits_paths else n_Cs
        self._ends = np.zeros((n_kernels, n_folds), dtype=np.int64)
        fold_scorer.hits = {}

    def next_legs(self) -> list[Leg]:
        """What to solve next; nothing if all cells are complete or dropped."""
        is_known = self._is_known()
        is_open = ~is_known.all(axis=2) & ~self._is_hopeless(is_known)
        if is_open[: self._n_early].any():
            is_open[self._n_early :] = False
        ends = self._ends.copy()
        for kernel in np.flatnonzero(is_open.any(axis=0)):
            last = int(np.flatnonzero(is_open[:, kernel])[-1])
            fold = int(np.flatnonzero(self._ends[kernel] <= last)[0])
            ends[kernel, fold] = last + 1
        self._finish_favourite(is_open, is_known, ends)
        legs = [
            Leg(int(kernel), int(fold), int(ends[kernel, fold]))
            for kernel, fold in np.argwhere(ends > self._ends)
        ]
        self._ends = ends
        return legs

    def _is_known(self) -> np.ndarray:
        """Which scores are known, bool (n_C, n_kernels, n_folds)."""
        numbers = np.arange(len(self._scorer.scores))
        return np.asarray(numbers[:, None, None] < self._ends)

    def _finish_favourite(
        self, is_open: np.ndarray, is_known: np.ndarray, ends: np.ndarray
    ) -> None:
        """All folds of the open cell whose scores are best so far: others are compared with it."""
        n_known = is_known.sum(axis=2)
        sums = np.where(is_known, self._scorer.scores, 0.0).sum(axis=2)
        is_candidate = is_open & (n_known > 0) & ~np.isnan(sums)
        if is_candidate.any():
            means = np.where(is_candidate, sums / np.maximum(n_known, 1), -np.inf)
            c, kernel = np.unravel_index(np.argmax(means), means.shape)
            ends[kernel] = np.maximum(ends[kernel], c + 1)

    def _is_hopeless(self, is_known: np.ndarray) -> np.ndarray:
        """The cells that cannot win, bool (n_C, n_kernels)."""
        scores = self._scorer.scores
        n_folds = scores.shape[2]
        is_complete = is_known.all(axis=2)
        means = np.where(is_complete, scores.mean(axis=2), -np.inf)
        means = np.where(np.isnan(means), -np.inf, means)
        best = divmod(int(np.argmax(means)), means.shape[1])
        goal = float(means[best])
        if not np.isfinite(goal):
            return np.zeros(means.shape, dtype=bool)
        if self._keeps_standard_error and n_folds > 1:
            goal -= float(scores[best].std(ddof=1)) / np.sqrt(n_folds)
        greatest = np.where(is_known, scores, self._scorer.greatest).mean(axis=2)
        is_hopeless = greatest < goal - _ROUNDING * max(1.0, abs(goal))
        slack = float(means[best]) - goal
        for c, kernel in np.argwhere(~is_complete & ~is_hopeless):
            folds = np.flatnonzero(is_known[c, kernel])
            if len(folds) >= _LEAST_FOLDS:
                is_hopeless[c, kernel] = self._is_behind((c, kernel), best, folds, slack)
        return is_hopeless

    def _is_behind(
        self, cell: tuple[int, int], best: tuple[int, int], folds: np.ndarray, slack: float
    ) -> bool:
        """Whether a cell is further behind the best than the other folds may make up."""
        hits, n_folds = self._scorer.hits or {}, self._scorer.scores.shape[2]
        variance = 0.0  # of the sum of the differences
        for fold in folds:
            weight = self._scorer.row_weights(int(fold))
            if weight is None:
                return False
            differ = hits[cell[1], fold][cell[0]] != hits[best[1], fold][best[0]]
            squares = (weight / weight.sum()) ** 2
            variance += float(squares @ differ + squares.max())
        difference = self._scorer.scores[best][folds] - self._scorer.scores[cell][folds]
        variance = max(variance, len(folds) * float(difference.var(ddof=1)))
        share_left = 1.0 - len(folds) / n_folds
        deviation = np.sqrt(variance * share_left)
        ahead = float(difference.sum()) - len(folds) * slack
        return bool(ahead > _DEVIATIONS * deviation)
