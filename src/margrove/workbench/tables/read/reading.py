"""read_table: tables from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.read.cell_texts import shown
from margrove.workbench.tables.read.limits import ReadLimits
from margrove.workbench.tables.read.sources import table_contents

__all__ = ["RawTable", "check_types", "read_table"]

TYPES = ("number", "category", "date", "text", "ignored")


@dataclass(frozen=True)
class RawTable:
    """A table as it was read.

    Attributes
    ----------
    frame : polars.DataFrame
        Numbers, dates and texts, null where a cell is missing.
    name : str
        Name of the file.
    notes : tuple of str
        What was decided when it was read, such as "the delimiter is ';'".
    """

    frame: Any
    name: str
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        return int(self.frame.height)

    @property
    def n_columns(self) -> int:
        return int(self.frame.width)


def read_table(
    source: Any,
    *,
    limits: ReadLimits | None = None,
    types: Mapping[str, str] | None = None,
    others: str | None = None,
) -> RawTable:
    """Read a table from a file.

    CSV (separated by commas, semicolons, tabs or bars), TSV, JSON lines and Parquet, each also
    compressed as .gz or .zst. Texts are UTF-8; the first line of CSV has the names of the columns.
    A cell is missing if it is empty or one of NA, N/A, n/a, NaN, nan, NULL, null, None, ?.

    A column in which every cell is a number is a column of numbers, and one in which every cell is
    a date is a column of dates. If nearly all cells are numbers, the others are an error that names
    the first of them: nothing is guessed.

    Parameters
    ----------
    source : str, path or binary file object
        "-" is standard input.
    limits : ReadLimits or None, default=None
        How much is read; None means the defaults of `ReadLimits`.
    types : dict or None, default=None
        Types of columns by name, to override those found from the cells: "number", "category",
        "date", "text" or "ignored".
    others : str or None, default=None
        Type of all columns that `types` does not name; None: found from the cells. With
        "ignored", nothing in them is an error.

    Returns
    -------
    RawTable
        Its `frame` is a `polars.DataFrame`, and `notes` say what was decided.

    Raises
    ------
    InvalidDataError
        If the file does not exist or is not a table. The error names the line or byte.

    Examples
    --------
    >>> import io
    >>> from margrove.tables import read_table
    >>> table = read_table(io.BytesIO(b"age;born;name\\n3,5;2021-04-01;Ada\\n7;2017-12-24;?\\n"))
    >>> table.frame["age"].to_list(), table.frame["name"].to_list()
    ([3.5, 7.0], ['Ada', None])
    >>> table.notes
    ("the delimiter is ';'", "a comma is the decimal point in 'age'")
    """
    _require_polars()
    limits = ReadLimits() if limits is None else limits
    given = check_types(types)
    if others is not None and others not in TYPES:
        raise ValueError(
            f"others must be one of {', '.join(map(repr, TYPES))} or None. Got {others!r}."
        )
    contents = table_contents(source, limits)

    def is_ignored(column: str) -> bool:
        return given.get(column, others) == "ignored"

    if contents.format == "parquet":
        from margrove.workbench.tables.read.parquet_files import read_parquet

        found = read_parquet(contents, limits, is_ignored)
    elif contents.format == "jsonl":
        from margrove.workbench.tables.read.json_lines import read_json_lines

        found = read_json_lines(contents, limits, is_ignored)
    else:
        from margrove.workbench.tables.read.csv_files import read_csv

        found = read_csv(contents, given, limits, others)
    _require_columns(given, found.frame.columns, contents.name)
    return RawTable(found.frame, contents.name, found.notes)


def _require_polars() -> None:
    try:
        import polars as pl  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reading a file needs polars: pip install 'margrove[data]'. pandas DataFrames and "
            "arrays work without it."
        ) from error


def check_types(types: Mapping[str, str] | None) -> dict[str, str]:
    """The types of columns that the user has given, checked; {} for None."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise TypeError(
            f"types must be a dict such as {{'name': 'text'}}. Got {type(types).__name__} instead."
        )
    for column, type_ in types.items():
        if type_ not in TYPES:
            raise ValueError(
                f"types[{column!r}] must be one of {', '.join(map(repr, TYPES))}. Got {type_!r}."
            )
    return dict(types)


def _require_columns(types: Mapping[str, str], columns: list[str], name: str) -> None:
    for column, type_ in types.items():
        if type_ != "ignored" and column not in columns:
            present = ", ".join(map(shown, columns[:20]))
            raise InvalidDataError(
                f"{name} has no column {shown(column)}, which is needed. Its columns are {present}"
                f"{' and more' if len(columns) > 20 else ''}."
            )
