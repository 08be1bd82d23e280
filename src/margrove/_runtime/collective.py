"""Sums over rows that may be on several machines.

A trainer whose decisions depend on its rows only through sums works the same on one machine and on
many: each machine has some of the rows and runs the whole trainer, and the collective replaces each
sum over its own rows by the sum over all rows. All machines then have the same bits, so they decide
the same, and nobody leads. On one machine nothing happens.

All members must call the same methods in the same order, with arrays of the same shape and dtype.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

__all__ = ["ALONE", "Alone", "Collective", "sum_together"]


class Collective(Protocol):
    """The machines that train one model, each with some of the rows.

    rank   the number of this member
    size   the number of members
    """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def sum(self, array: np.ndarray) -> None:
        """Replace a contiguous array by the sum over all members.

        Sums of whole numbers do not depend on how the rows are spread. Sums of floats do, but they
        are the same bits on all members.
        """

    def max(self, array: np.ndarray) -> None:
        """Replace a contiguous array by the elementwise maximum over all members."""

    def gather(self, value: Any) -> list[Any]:
        """The values of all members, by rank; arrays and small Python objects."""


class Alone:
    """One machine with all rows."""

    rank, size = 0, 1

    def sum(self, array: np.ndarray) -> None:
        pass

    def max(self, array: np.ndarray) -> None:
        pass

    def gather(self, value: Any) -> list[Any]:
        return [value]


ALONE = Alone()


def sum_together(collective: Collective, *arrays: np.ndarray) -> None:
    """Replace float64 arrays by their sums over all members, in one message."""
    if collective.size == 1:
        return
    packed = np.concatenate([array.ravel() for array in arrays])
    collective.sum(packed)
    ends = np.cumsum([array.size for array in arrays])
    for array, part in zip(arrays, np.split(packed, ends[:-1]), strict=True):
        array[...] = part.reshape(array.shape)
