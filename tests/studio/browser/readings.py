"""Numbers as the page writes them, so that what it shows can be compared with what is so."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal


def share(value: float | None) -> str:
    """An error of a classifier."""
    if value is None:
        return "\N{EN DASH}"
    percent = value * 100
    digits = 1 if percent == 0 or percent >= 10 else 2
    return f"{_plain(_rounded(percent, digits))} %"


def number(value: float | None, digits: int = 3) -> str:
    """A figure beside a picture, with so many significant digits."""
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if value == 0:
        return "0"
    assert 1e-4 <= abs(value) < 1e6, "no test shows such a number"
    if value == int(value):
        return str(int(value)).replace("-", "\N{MINUS SIGN}")
    return _plain(_significant(value, digits)).replace("-", "\N{MINUS SIGN}")


def cell(value: float | str) -> str:
    """A figure in the table of steps: four digits."""
    if isinstance(value, str):
        return value
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if abs(value) < 1e-4:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{_plain(Decimal(mantissa))}e{int(exponent)}"
    return _plain(_significant(value, 4))


def rounding_error() -> re.Pattern[str]:
    """Zero, up to the last bits."""
    return re.compile("^(0|\\d(\\.\\d+)?e\N{MINUS SIGN}1[2-9])$")


def _rounded(value: float, digits: int) -> Decimal:
    """As toFixed does: the exact value, halves away from zero."""
    return Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _significant(value: float, digits: int) -> Decimal:
    """As toPrecision does."""
    exact = Decimal(value)
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), ROUND_HALF_UP)


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
