"""Errors that are bugs of the studio: a code for the page, the place in the terminal, no data."""

from __future__ import annotations

import os
import secrets
import sys
import traceback
from pathlib import Path

__all__ = ["report_internal_error"]


def report_internal_error(error: Exception) -> str:
    """Print where an error happened; returns the random code that the page shows instead.

    The message of the error may contain data. It is printed only if MARGROVE_TRACEBACK is set.
    """
    code = secrets.token_hex(4)
    last_frames = traceback.extract_tb(error.__traceback__)[-1:]
    where = "unknown place"
    if last_frames:
        where = f"{Path(last_frames[0].filename).name}:{last_frames[0].lineno}"
    line = f"margrove: internal error {code}: {type(error).__name__} in {where}"
    print(line, file=sys.stderr, flush=True)  # noqa: T201
    if os.environ.get("MARGROVE_TRACEBACK"):
        traceback.print_exception(error)
    return code
