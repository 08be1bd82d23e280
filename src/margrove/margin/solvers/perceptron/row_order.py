"""In which order rows are presented."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel

__all__ = ["Visits", "shuffle"]


class Visits(NamedTuple):
    """The m rows of an epoch in the order of their presentation.

    rows, codes     int64 (m,) the number of each in X, and its class
    weight, norms   float64 (m,) weights and squared norms
    """

    rows: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    norms: np.ndarray

    def permuted(self, order: np.ndarray) -> Visits:
        return Visits(self.rows[order], self.codes[order], self.weight[order], self.norms[order])


@kernel
def shuffle(order, seed, epoch):
    """A permutation that is a function of (seed, epoch) alone: Fisher-Yates over splitmix64."""
    state = (seed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + epoch * np.uint64(
        0xD1B54A32D192ED03
    )
    for i in range(len(order)):
        order[i] = i
    for i in range(len(order) - 1, 0, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        high = (z ^ (z >> np.uint64(31))) >> np.uint64(32)
        j = np.int64((high * np.uint64(i + 1)) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]
