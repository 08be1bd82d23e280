"""Linear and logarithmic scales from values to positions, and their ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from margrove.workbench.report.texts import number, signed

__all__ = ["Scale", "round_ticks", "scale_of"]

_WIDE = 50.0  # ratio of the ends, above which a scale may be logarithmic
_LARGEST = 1.7e308


@dataclass(frozen=True)
class Scale:
    """Maps values from low to high to positions from start to end."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False
    is_whole: bool = False
    is_share: bool = False

    def at(self, value: float) -> float:
        """The position of a value; values beyond the ends are clipped."""
        low, high = self.low, self.high
        if self.is_log:
            low, high = math.log(low), math.log(high)
            value = math.log(max(value, self.low))
        half = 0.5 * high - 0.5 * low  # high - low can overflow
        place = (0.5 * value - 0.5 * low) / half if half > 0.0 else 0.5
        return self.start + min(max(place, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """The values of the ticks, and their labels."""
        if self.is_log:
            return [(value, number(value, 3)) for value in _powers(self.low, self.high, most)]
        values = round_ticks(self.low, self.high, most, is_whole=self.is_whole)
        if self.is_share:
            return [(value, signed(f"{100 * value:.4g} %")) for value in values]
        return [(value, _tick_text(value, values)) for value in values]


def scale_of(
    values: Any,
    start: float,
    end: float,
    *,
    room: float = 0.04,
    may_be_log: bool = False,
    from_zero: bool = False,
    is_whole: bool = False,
    is_share: bool = False,
) -> Scale:
    """A scale for all finite values, with a margin of `room` (a share) at both ends."""
    finite = np.asarray(values, dtype=np.float64).ravel()
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if may_be_log and low > 1e-290 and high < 1e290 and high > _WIDE * low:
        ratio = math.exp(room * (math.log(high) - math.log(low)))
        return Scale(low / ratio, high * ratio, start, end, is_log=True)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if not low < high:
        margin = max(1.0, abs(low)) * 0.5
        low = max(low - (0.0 if from_zero and low == 0.0 else margin), -_LARGEST)
        high = min(high + margin, _LARGEST)
    width = min(high, 8e307) * room - max(low, -8e307) * room
    below = 0.0 if from_zero and low == 0.0 else width
    above = 0.0 if from_zero and high == 0.0 else width
    if is_share:
        bottom, top = (0.0 if low >= 0.0 else low - below), (1.0 if high <= 1.0 else high + above)
        low, high = max(low - below, bottom), min(high + above, top)
        return Scale(low, high, start, end, is_share=True)
    low, high = max(low - below, -_LARGEST), min(high + above, _LARGEST)
    return Scale(low, high, start, end, is_whole=is_whole)


def round_ticks(low: float, high: float, most: int = 6, *, is_whole: bool = False) -> list[float]:
    """At most `most` multiples of 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> from margrove.workbench.report.scales import round_ticks
    >>> round_ticks(0.0, 1.0), round_ticks(-3.0, 17.0, most=5)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0, 10.0, 15.0])
    """
    width = high / most - low / most
    if not 0.0 < width < math.inf:
        return [low]
    exponent = math.floor(math.log10(width))
    if not -300 < exponent < 300:
        return [low, high]
    steps = [factor * 10.0**exponent for factor in (1.0, 2.0, 5.0, 10.0, 20.0)]
    for step in steps:
        if is_whole and step < 1.0:
            continue
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [round(k * step, max(0, 2 - exponent)) + 0.0 for k in range(first, last + 1)]
    return [low, high]


def _powers(low: float, high: float, most: int) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if first > last:
        return [low, high]
    step = max(1, -(-(last - first + 1) // most))
    return [10.0**k for k in range(first, last + 1, step)]


def _tick_text(value: float, values: list[float]) -> str:
    """A tick label with as many decimals as the smallest step needs."""
    largest = max(map(abs, values), default=0.0)
    if largest >= 1e6 or 0.0 < largest < 1e-3:
        return number(value, 3)
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0.0 else 0
    text = f"{value:,.{decimals}f}"
    return signed(text)
