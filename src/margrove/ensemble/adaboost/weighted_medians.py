"""Weighted medians of what members say of a row, as AdaBoost.R2 and scikit-learn define them.

Of the answers in ascending order, the first at which the weights so far are half of all.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel

__all__ = ["StagedMedians", "weighted_medians"]


def weighted_medians(answers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of each row of `answers` (n, members)."""
    order = np.argsort(answers, axis=1, kind="stable")
    sums = np.cumsum(weights[order], axis=1)
    place = np.argmax(sums >= 0.5 * sums[:, -1:], axis=1)
    every = np.arange(len(answers))
    found: np.ndarray = answers[every, order[every, place]]
    return found


class StagedMedians:
    """The medians after each member; 12 bytes for each row and member.

    answers   float64 (n, room)  of each row, ascending
    owners    int32 (n, room)  whose they are
    """

    def __init__(self, n_rows: int) -> None:
        self._answers = np.empty((n_rows, 0))
        self._owners = np.empty((n_rows, 0), np.int32)
        self._weights = np.empty(0)

    def add(self, t: int, answers: np.ndarray, weight: float) -> np.ndarray:
        """The medians of the first t members and this one, (n,)."""
        if t == self._answers.shape[1]:
            self._make_room(2 * t + 8)
        self._weights = np.append(self._weights[:t], weight)
        medians = np.empty(len(answers))
        _insert(self._answers, self._owners, answers, self._weights, medians)
        return medians

    def _make_room(self, count: int) -> None:
        n_rows, used = self._answers.shape
        larger, owners = np.empty((n_rows, count)), np.empty((n_rows, count), np.int32)
        larger[:, :used], owners[:, :used] = self._answers, self._owners
        self._answers, self._owners = larger, owners


@kernel
def _insert(sorted_answers, owners, answers, weights, medians):
    """Put the answers of the last member in their places, behind equal ones."""
    last = len(weights) - 1
    for i in range(len(answers)):
        place = last
        while place > 0 and sorted_answers[i, place - 1] > answers[i]:
            sorted_answers[i, place] = sorted_answers[i, place - 1]
            owners[i, place] = owners[i, place - 1]
            place -= 1
        sorted_answers[i, place], owners[i, place] = answers[i], last
        total = 0.0
        for k in range(last + 1):
            total += weights[owners[i, k]]
        place, so_far = 0, weights[owners[i, 0]]
        while so_far < 0.5 * total:
            place += 1
            so_far += weights[owners[i, place]]
        medians[i] = sorted_answers[i, place]
