"""Errors about tables, each with a way out in Python and one for the command line."""

from __future__ import annotations

import shlex

from margrove.exceptions import InvalidDataError

__all__ = ["beyond_limit", "of_another_type", "refused"]


def refused(what: str, way_out: str, command_way_out: str) -> InvalidDataError:
    """An error that says what is wrong and the way out in Python.

    Its `for_commands` is the same message with the way out for the command line.

    Examples
    --------
    >>> from margrove.workbench.tables.errors import beyond_limit
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
    """The error for a limit of `ReadLimits`; the commands have no option for these."""
    return refused(what, f"Raise {limit} of ReadLimits.", way_out)


def of_another_type(
    what: str, column: str, advice: str, type_: str = "category"
) -> InvalidDataError:
    """The error for a column that may need another type; `advice` precedes that type."""
    option = f"--type {shlex.quote(f'{column}={type_}')}"
    return refused(what, f"{advice} types={{{column!r}: {type_!r}}}.", f"{advice} {option}.")
