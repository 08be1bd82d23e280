"""The table of rounds that `verbose` prints, as scikit-learn's gradient boosting does."""

from __future__ import annotations

import sys
import time

__all__ = ["RoundTable"]

_MINUTE = 60.0


class RoundTable:
    """Lines on standard output, one a round: its number, the losses, the time that is left.

    With verbose=1 there are fewer and fewer: rounds 1 to 10, then each tenth, each hundredth, ...

    first   the number of rounds before these
    last    the number of rounds that there are to be
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
        """Print the line of a round: its training loss, and what it made better out of bag."""
        done = number - self._first
        left = (self._last - number) * (time.monotonic() - self._start) / done
        time_left = f"{left / _MINUTE:.2f}m" if left > _MINUTE else f"{left:.2f}s"
        _print(str(number), *(f"{loss:.4f}" for loss in losses), time_left)
        if self._verbose == 1 and done >= 10 * self._every:
            self._every *= 10


def _print(number: str, *others: str) -> None:
    sys.stdout.write(f"{number:>10} " + " ".join(f"{own:>16}" for own in others) + "\n")
