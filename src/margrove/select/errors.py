"""Errors about a request: an unknown learner, impossible folds, too little time."""

from __future__ import annotations

__all__ = ["ComparisonTimeoutError", "InvalidRequestError"]


class InvalidRequestError(ValueError):
    """A request for something that does not exist, or does not fit the table.

    For example an unknown learner, or more folds than rows. `for_commands` is the same message for
    the command line: it names options instead of arguments.
    """

    def __init__(self, message: str, for_commands: str | None = None) -> None:
        super().__init__(message)
        self.for_commands = for_commands or message


class ComparisonTimeoutError(ValueError):
    """A comparison reached its time limit before enough folds were done for all models."""
