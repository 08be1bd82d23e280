"""Names, numbers and shares as a page shows them.

Names of users are shown, never interpreted: unprintable characters (control characters, marks that
change the direction of text, halves of characters) are escaped, and long names are cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["count", "counted", "duration", "listed", "number", "percent", "signed", "visible"]

_MAX_LENGTH = 60


def visible(text: Any, most: int = _MAX_LENGTH) -> str:
    """The text with unprintable characters escaped, quoted if spaces matter, and cut.

    Examples
    --------
    >>> from margrove.workbench.report.texts import visible
    >>> visible("age"), visible("a\\u202eb"), visible(" x"), visible("abcdefgh", most=5)
    ('age', 'a\\\\u202eb', "' x'", 'abcd…')
    """
    text = str(text)
    is_cut = len(text) > most
    text = text[: most - 1] if is_cut else text
    shown = "".join(c if c.isprintable() else _escaped(c) for c in text)
    if not text or text != text.strip():
        shown = f"'{shown}'"
    return shown + ("…" if is_cut else "")


def _escaped(character: str) -> str:
    code = ord(character)
    short = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    if short is not None:
        return short
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )


def number(value: Any, digits: int = 4) -> str:
    """A number with `digits` significant digits; NaN and infinity as such, None as "—"."""
    if value is None:
        return "—"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return count(value)
    value = float(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if value == 0.0:
        return "0"
    if 10.0**digits <= abs(value) < 1e15:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
    return signed(text) if text.startswith("-") else text


def signed(text: str) -> str:
    """The text with a minus sign instead of a hyphen."""
    return text.replace("-", "\N{MINUS SIGN}", 1)


def count(value: Any) -> str:
    """A whole number, with commas."""
    return signed(f"{int(value):,}")


def counted(value: Any, noun: str) -> str:
    """'1 row', '1,200 rows', '3 classes'."""
    if int(value) == 1:
        return f"1 {noun}"
    return f"{count(value)} {noun}{'es' if noun.endswith('s') else 's'}"


def percent(share: float, digits: int = 1) -> str:
    """'86.4 %'; only 0 and 1 are shown as 0 % and 100 %."""
    if not math.isfinite(share):
        return number(share)
    text = f"{100.0 * share:.{digits}f}"
    if 0.0 < share < 1.0 and float(text) in (0.0, 100.0):
        text = f"{100.0 * share:.3g}" if share < 0.5 else f"more than {100.0 - 10.0**-digits:g}"
    return f"{text} %"


def duration(seconds: float) -> str:
    """'12 ms', '3.4 s', '5 min'."""
    if not math.isfinite(seconds):
        return number(seconds)
    if seconds < 1.0:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120.0 else f"{seconds / 60.0:.3g} min"


def listed(texts: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
