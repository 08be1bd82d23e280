"""CSV and TSV files: checked, parsed by polars, with cells read by the rules of `cell_texts`."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from typing import Any

from margrove._runtime import require_memory
from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.errors import beyond_limit
from margrove.workbench.tables.read.cell_texts import MISSING, shown
from margrove.workbench.tables.read.csv_shape import CsvShape, checked_shape
from margrove.workbench.tables.read.encodings import checked_text
from margrove.workbench.tables.read.limits import ReadLimits
from margrove.workbench.tables.read.sources import Contents
from margrove.workbench.tables.read.typed_cells import TypedFrame, typed_frame

__all__ = ["checked_names", "read_csv"]

_BYTES_PER_CELL = 32  # a text and the number that it becomes
_DELIMITER_NAMES = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
_SAMPLE_BYTES = 1 << 18
_SAMPLE_LINES = 200


def read_csv(
    contents: Contents, types: Mapping[str, str], limits: ReadLimits, others: str | None = None
) -> TypedFrame:
    """Read a CSV or TSV file; an InvalidDataError names the line that is wrong."""
    name = contents.name
    data, notes = checked_text(contents.data, name)
    data = _with_line_feeds(data, name)
    delimiter = "\t" if contents.format == "tsv" else _likely_delimiter(data)
    if contents.format == "csv" and delimiter != ",":
        notes = (*notes, f"the delimiter is {_DELIMITER_NAMES[delimiter]}")
    columns = _names_of(data, delimiter, name, limits)
    shape = checked_shape(data, delimiter, name)
    if shape.n_rows > limits.max_rows:
        raise beyond_limit(
            f"{name} has {shape.n_rows} rows, and at most {limits.max_rows} are read.", "max_rows"
        )
    if shape.n_rows == 0:
        raise InvalidDataError(f"{name} has a line of names but no rows.")
    require_memory(
        _BYTES_PER_CELL * shape.n_rows * shape.n_columns,
        f"{name}, with {shape.n_rows} rows and {shape.n_columns} columns,",
        "Give a part of it.",
    )
    frame = _parsed(data, delimiter, columns, shape, name)
    _check_cells(frame, shape, name, limits)
    if others is not None:
        types = dict.fromkeys(columns, others) | dict(types)
    typed = typed_frame(frame, types, name, shape.place_of)
    return TypedFrame(typed.frame, (*notes, *typed.notes))


def _with_line_feeds(data: bytes, name: str) -> bytes:
    """The data with every line ended by a line feed, without empty lines at the end."""
    if b"\r" in data:
        if b"\n" not in data:
            raise InvalidDataError(
                f"{name} has lines that end with a carriage return only. Convert them to line "
                "feeds, for example with tr '\\r' '\\n'."
            )
        data = data.replace(b"\r\n", b"\n")
    stripped = data.rstrip(b"\n")
    return stripped + b"\n" if stripped.strip() else b""


def _likely_delimiter(data: bytes) -> str:
    """The delimiter that splits most of the first lines into the same, largest number of cells.

    A comma if there is none: the table then has a single column.
    """
    lines = _lines_outside_quotes(data)
    if not lines:
        return ","
    found = {}
    for delimiter in _DELIMITER_NAMES:
        counts = [line.count(delimiter.encode()) for line in lines]
        header = counts[0]
        agreeing = Counter(counts)[header] / len(counts)
        if header:
            found[delimiter] = (agreeing >= 0.9, agreeing == 1.0, header)
    return max(found, key=lambda delimiter: found[delimiter]) if found else ","


def _lines_outside_quotes(data: bytes) -> list[bytes]:
    """The first lines, without the text between quotes."""
    sample = data[:_SAMPLE_BYTES]
    outside = b"".join(sample.split(b'"')[::2])
    lines = [line for line in outside.split(b"\n")[: _SAMPLE_LINES + 1] if line.strip(b"\r ")]
    if len(lines) > 1 and (len(data) > _SAMPLE_BYTES or len(lines) > _SAMPLE_LINES):
        lines.pop()  # it may be incomplete
    return lines


def _names_of(data: bytes, delimiter: str, name: str, limits: ReadLimits) -> list[str]:
    """The names of the columns, from the first row."""
    if not data:
        raise InvalidDataError(f"{name} has only empty lines. A table needs names and rows.")
    start = data[: 1 << 16]
    longest = limits.max_columns * (limits.max_name_length + 3)
    if start.count(b'"') % 2 or b"\n" not in start:
        start = data[:longest]
    text = start.decode("utf-8", errors="ignore")
    csv.field_size_limit(max(csv.field_size_limit(), limits.max_cell_length))
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (csv.Error, StopIteration) as error:
        raise InvalidDataError(f"{name}: the line of names cannot be read ({error}).") from None
    return checked_names([cell.strip() for cell in names], name, limits)


def checked_names(names: list[str], name: str, limits: ReadLimits) -> list[str]:
    """The names of columns, if they are not too many or too long, not empty, and all different."""
    if len(names) > limits.max_columns:
        raise beyond_limit(
            f"{name} has {len(names)} columns, and at most {limits.max_columns} are read.",
            "max_columns",
        )
    seen: set[str] = set()
    for number, column in enumerate(names, start=1):
        if not column.strip():
            raise InvalidDataError(
                f"{name}: column {number} has no name. Give it one in the first line."
            )
        if len(column) > limits.max_name_length:
            raise InvalidDataError(
                f"{name}: the name of column {number} has {len(column)} characters, and at most "
                f"{limits.max_name_length} are allowed. Does the first line contain the names?"
            )
        if column in seen:
            raise InvalidDataError(
                f"{name} has more than one column named {shown(column)}. Rename them: columns are "
                "matched by name."
            )
        seen.add(column)
    return names


def _parsed(data: bytes, delimiter: str, columns: list[str], shape: CsvShape, name: str) -> Any:
    """The table as a polars.DataFrame of texts."""
    import polars as pl

    try:
        frame = pl.read_csv(
            io.BytesIO(data),
            separator=delimiter,
            has_header=False,
            new_columns=columns,
            infer_schema=False,
            null_values=list(MISSING),
            glob=False,
        )[1:]
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InvalidDataError(f"{name} cannot be read: {reason[:200]}") from error
    if (frame.height, frame.width) != (shape.n_rows, shape.n_columns):
        raise InvalidDataError(
            f"{name} can be read in two ways, as {shape.n_rows} rows or as {frame.height}. Put "
            "cells with line breaks or delimiters into quotes."
        )
    return frame


def _check_cells(frame: Any, shape: CsvShape, name: str, limits: ReadLimits) -> None:
    import polars as pl

    longest = frame.select(pl.all().str.len_bytes().max())
    for column in frame.columns:
        length = longest[column][0]
        if length is not None and length > limits.max_cell_length:
            row = int(frame[column].str.len_bytes().arg_max() or 0)
            raise beyond_limit(
                f"{name}: {shape.place_of(row)}, column {shown(column)}, has {length} bytes, and "
                f"at most {limits.max_cell_length} are allowed.",
                "max_cell_length",
                "Shorten it.",
            )
