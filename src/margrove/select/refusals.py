"""Errors about what was asked for: a learner, folds, a test part, a time."""

from __future__ import annotations

__all__ = ["ComparisonTimeoutError", "InvalidRequestError"]


class InvalidRequestError(ValueError):
    """What was asked for does not exist, or does not fit the table: a learner, folds, a test part.

    `for_commands` says the same with the options of the command line as the way out.
    """

    def __init__(self, message: str, for_commands: str | None = None) -> None:
        super().__init__(message)
        self.for_commands = for_commands or message


class ComparisonTimeoutError(ValueError):
    """The time of a comparison was up before enough folds were done for all models."""
