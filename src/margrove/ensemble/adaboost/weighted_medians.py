"""Weighted medians of the members' predictions, as defined by AdaBoost.R2 and scikit-learn.

In ascending order, it is the first prediction at which the cumulative weight is at least half of
the total.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import region

__all__ = ["StagedMedians", "weighted_medians"]

_ROWS_OF_A_TILE = 2048


def weighted_medians(answers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The median of each row of `answers` (n, n_members), float64 (n,)."""
    order = np.argsort(answers, axis=1, kind="stable")
    sums = np.cumsum(weights[order], axis=1)
    place = np.argmax(sums >= 0.5 * sums[:, -1:], axis=1)
    rows = np.arange(len(answers))
    medians: np.ndarray = answers[rows, order[rows, place]]
    return medians


class StagedMedians:
    """The medians after each member, in 12 bytes for each row and member.

    answers   float64 (n, capacity)  predictions for each row, ascending
    members   int32 (n, capacity)  the member of each prediction
    """

    def __init__(self, n_rows: int, n_threads: int = 1) -> None:
        self._n_threads = n_threads
        self._answers = np.empty((n_rows, 0))
        self._members = np.empty((n_rows, 0), np.int32)
        self._weights = np.empty(0)

    def add(self, t: int, answers: np.ndarray, weight: float) -> np.ndarray:
        """The medians of the first t members and this one, (n,)."""
        if t == self._answers.shape[1]:
            self._enlarge(2 * t + 8)
        self._weights = np.append(self._weights[:t], weight)
        medians = np.empty(len(answers))
        n_tiles = -(-len(answers) // _ROWS_OF_A_TILE)
        arrays = self._answers, self._members, answers, self._weights, medians
        _insert(n_tiles, self._n_threads, *arrays)
        return medians

    def _enlarge(self, capacity: int) -> None:
        n_rows, used = self._answers.shape
        answers, members = np.empty((n_rows, capacity)), np.empty((n_rows, capacity), np.int32)
        answers[:, :used], members[:, :used] = self._answers, self._members
        self._answers, self._members = answers, members


@region(bare=True)
def _insert(tile, sorted_answers, members, answers, weights, medians):
    """Insert the answers of the last member in ascending order, behind equal ones."""
    last, begin = len(weights) - 1, tile * _ROWS_OF_A_TILE
    for i in range(begin, min(begin + _ROWS_OF_A_TILE, len(answers))):
        place = last
        while place > 0 and sorted_answers[i, place - 1] > answers[i]:
            sorted_answers[i, place] = sorted_answers[i, place - 1]
            members[i, place] = members[i, place - 1]
            place -= 1
        sorted_answers[i, place], members[i, place] = answers[i], last
        total = 0.0
        for k in range(last + 1):
            total += weights[members[i, k]]
        place, so_far = 0, weights[members[i, 0]]
        while so_far < 0.5 * total:
            place += 1
            so_far += weights[members[i, place]]
        medians[i] = sorted_answers[i, place]
