"""Warnings of fits, as a few sentences."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

__all__ = ["remarks_of", "stopped_early"]

_NUMBER = re.compile(r"\d[\d.,]*(e[-+]?\d+)?")  # warnings that differ only in numbers are one
_UNSEEN = "has not seen"  # in warnings that every member of an ensemble repeats


def stopped_early(caught: Sequence[warnings.WarningMessage]) -> bool:
    """Whether a fit warned that it ended before it had converged."""
    from margrove.exceptions import ConvergenceWarning

    return any(issubclass(found.category, ConvergenceWarning) for found in caught)


def remarks_of(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """The warnings, once each; those about early ends become one sentence."""
    from margrove.exceptions import ConvergenceWarning

    early = [
        str(found.message) for found in caught if issubclass(found.category, ConvergenceWarning)
    ]
    others = dict.fromkeys(
        str(found.message)
        for found in caught
        if not issubclass(found.category, (ConvergenceWarning, DeprecationWarning, FutureWarning))
    )
    remarks = [text for text in others if _UNSEEN not in text]
    if len(remarks) < len(others):
        remarks.append("Some categories were only in test rows; they were treated as missing.")
    if early:
        reasons = dict.fromkeys(_NUMBER.sub("…", text) for text in early)
        remarks.append(f"{len(early)} fits ended early: {' '.join(list(reasons)[:3])}")
    return tuple(remarks)
