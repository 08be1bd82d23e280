"""When a forest has trees enough: its out-of-bag error has stopped falling."""

from __future__ import annotations

import math

from margrove.ensemble.forest.out_of_bag import OutOfBag

__all__ = ["is_flat"]

_FEWEST, _EVERY = 50, 25
_WORTH_IT = 0.01  # of the error, for which one grows twice as many trees


def is_flat(out_of_bag: OutOfBag) -> bool:
    """Whether the second half of the trees has lowered the error by less than a hundredth.

    Errors of neighbouring numbers of trees are averaged, so that one lucky tree does not decide.
    Less than half a row is nothing, too.
    """
    curve = out_of_bag.curve
    n = len(curve)
    if n < 2 * _FEWEST or n % _EVERY:
        return False
    if not all(map(math.isfinite, curve[n // 3 :])):
        return True  # nothing is ever left out, or errors are beyond floating point
    width = n // 10
    now = sum(curve[-width:]) / width
    before = sum(curve[n // 2 - width : n // 2]) / width
    least = 0.5 / len(out_of_bag.counts) if out_of_bag.is_for_classes else 0.0
    return before - now <= max(_WORTH_IT * abs(now), least)
