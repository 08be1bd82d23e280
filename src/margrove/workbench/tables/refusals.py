"""Errors about tables, each with a way out in Python and one for the command line."""

from __future__ import annotations

import shlex

from margrove.exceptions import InvalidDataError

__all__ = ["beyond_limit", "of_another_type", "refused"]


def refused(what: str, way_out: str, command_way_out: str) -> InvalidDataError:
    """An error to be raised, which says what is wrong and the way out in Python.

    Its `for_commands` says the same to who works with the commands of margrove.

    Examples
    --------
    >>> from margrove.workbench.tables.refusals import beyond_limit
    >>> error = beyond_limit("t.csv has 9 rows, and at most 5 are read.", "max_rows")
    >>> str(error)
    't.csv has 9 rows, and at most 5 are read. Raise max_rows of ReadLimits.'
    >>> error.for_commands
    't.csv has 9 rows, and at most 5 are read. Give a part of it.'
    """
    error = InvalidDataError(f"{what} {way_out}")
    vars(error)["for_commands"] = f"{what} {command_way_out}"
    return error


def beyond_limit(what: str, limit: str, way_out: str = "Give a part of it.") -> InvalidDataError:
    """The error for a limit of `ReadLimits`, which commands cannot change."""
    return refused(what, f"Raise {limit} of ReadLimits.", way_out)


def of_another_type(
    what: str, column: str, advice: str, type_: str = "category"
) -> InvalidDataError:
    """The error for a column that may be meant as another type, after some advice."""
    option = f"--type {shlex.quote(f'{column}={type_}')}"
    return refused(what, f"{advice} types={{{column!r}: {type_!r}}}.", f"{advice} {option}.")
