"""What fits have warned of, as a few sentences."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

__all__ = ["remarks_of", "stopped_early"]

_NUMBER = re.compile(r"\d[\d.,]*(e[-+]?\d+)?")  # reasons that differ in numbers are one
_UNSEEN = "has not seen"  # in warnings, of which each tree of a bag has its own


def stopped_early(caught: Sequence[warnings.WarningMessage]) -> bool:
    """Whether a fit has said that it ended before it had converged."""
    from margrove.exceptions import ConvergenceWarning

    return any(issubclass(found.category, ConvergenceWarning) for found in caught)


def remarks_of(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """What is worth telling, once each: that fits stopped early is said in one line."""
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
        remarks.append("Some categories were in test rows only; they were treated as missing.")
    if early:
        reasons = dict.fromkeys(_NUMBER.sub("…", text) for text in early)
        remarks.append(f"{len(early)} fits ended early: {' '.join(list(reasons)[:3])}")
    return tuple(remarks)
