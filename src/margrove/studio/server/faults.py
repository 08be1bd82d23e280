"""Faults of our own: a number for the page, the place for the terminal, data for nobody."""

from __future__ import annotations

import os
import secrets
import sys
import traceback
from pathlib import Path

__all__ = ["noted_fault"]


def noted_fault(error: Exception) -> str:
    """Tell the terminal where it happened, and give the number that is shown instead.

    What an error says may hold data. It is printed only where MARGROVE_TRACEBACK asks for it.
    """
    code = secrets.token_hex(4)
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f"{Path(place[0].filename).name}:{place[0].lineno}" if place else "nowhere"
    line = f"margrove: fault {code}: {type(error).__name__} in {where}"
    print(line, file=sys.stderr, flush=True)  # noqa: T201
    if os.environ.get("MARGROVE_TRACEBACK"):
        traceback.print_exception(error)
    return code
