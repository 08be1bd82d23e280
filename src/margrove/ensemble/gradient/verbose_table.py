"""The table of rounds that `verbose` prints, as in scikit-learn's gradient boosting."""

from __future__ import annotations

import sys
import time

__all__ = ["RoundTable"]

_MINUTE = 60.0


class RoundTable:
    """Prints a line for each round on standard output: its number, the losses, the remaining time.

    With verbose=1 it prints rounds 1 to 10, then every tenth, then every hundredth, and so on.

    first   the number of earlier rounds
    last    the total number of rounds
    """

    def __init__(self, verbose: int, first: int, last: int, *, with_out_of_bag: bool) -> None:
        self._verbose, self._first, self._last = verbose, first, last
        self._every = 1
        self._start = time.monotonic()
        columns = ["Train Loss", *(["OOB Improve"] if with_out_of_bag else []), "Remaining Time"]
        _print("Iter", *columns)

    def is_due(self, number: int) -> bool:
        """Whether round `number`, counted from 1, has a line."""
        return (number - self._first) % self._every == 0

    def add(self, number: int, *losses: float) -> None:
        """Print the line of a round: its training loss and its out-of-bag improvement."""
        done = number - self._first
        left = (self._last - number) * (time.monotonic() - self._start) / done
        time_left = f"{left / _MINUTE:.2f}m" if left > _MINUTE else f"{left:.2f}s"
        _print(str(number), *(f"{loss:.4f}" for loss in losses), time_left)
        if self._verbose == 1 and done >= 10 * self._every:
            self._every *= 10


def _print(number: str, *others: str) -> None:
    sys.stdout.write(f"{number:>10} " + " ".join(f"{text:>16}" for text in others) + "\n")
