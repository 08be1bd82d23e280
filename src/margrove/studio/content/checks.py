"""Checks of values that the page sends; a value that is refused raises a StudioError."""

from __future__ import annotations

from typing import Any

__all__ = ["LARGEST_SEED", "StudioError", "brief", "checked_number", "checked_whole"]

LARGEST_SEED = 2**32 - 1
_LONGEST = 60  # characters of a value in an error message


class StudioError(ValueError):
    """An error that the user of the page can correct; its text is shown there."""


def checked_number(value: Any, name: str, low: float, high: float) -> float:
    """The value as a float, if it is a number from `low` to `high`."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise StudioError(f"{name} must be a number from {low:g} to {high:g}. Got {brief(value)}.")
    return float(value)


def checked_whole(value: Any, name: str, low: int, high: int) -> int:
    """The value as an int, if it is a whole number from `low` to `high`; 3.0 is one."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or value != int(value):
        raise StudioError(
            f"{name} must be a whole number from {low} to {high}. Got {brief(value)}."
        )
    return int(value)


def brief(value: Any) -> str:
    """The value in ASCII characters, shortened for an error message."""
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # deeply nested lists, or thousands of digits
        return type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
