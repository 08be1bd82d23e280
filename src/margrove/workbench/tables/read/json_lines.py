"""JSON lines: an object or a list of cells for each row."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from margrove._runtime import require_memory
from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.errors import beyond_limit, of_another_type
from margrove.workbench.tables.read.cell_texts import shown
from margrove.workbench.tables.read.csv_files import checked_names
from margrove.workbench.tables.read.encodings import checked_text
from margrove.workbench.tables.read.limits import ReadLimits
from margrove.workbench.tables.read.sources import Contents
from margrove.workbench.tables.read.typed_cells import TypedFrame

__all__ = ["ignored_nested", "read_json_lines", "refuse_nested"]

_MEMORY_PER_BYTE = 3  # bytes of memory for each byte of the file
_INTEGER_LIMIT = 2**63


def read_json_lines(
    contents: Contents, limits: ReadLimits, is_ignored: Callable[[str], bool]
) -> TypedFrame:
    """Read JSON lines, with the types of JSON. If rows are lists, columns are numbered.

    A key that a row does not have is missing. Values that are objects or lists are refused, unless
    their column is ignored: then they are missing.
    """
    import polars as pl

    name = contents.name
    data, notes = checked_text(contents.data, name)
    lines = data.count(b"\n") + 1
    if lines > limits.max_rows:
        raise beyond_limit(
            f"{name} has {lines} lines, and at most {limits.max_rows} are read.", "max_rows"
        )
    require_memory(_MEMORY_PER_BYTE * len(data), f"{name}", "Give a part of it.")
    if data.lstrip()[:1] == b"[":
        frame = _of_lists(data, name)
        notes = (*notes, "rows are lists: columns are numbered")
    else:
        frame = _of_objects(data, name)
    checked_names(frame.columns, name, limits)
    ignored = ignored_nested(frame.schema, is_ignored)
    frame = frame.with_columns([pl.lit(None).alias(column) for column in ignored])
    refuse_nested(frame.schema, name)
    _check_cells(frame, name, limits)
    if not frame.height:
        raise InvalidDataError(f"{name} has no rows.")
    return TypedFrame(frame, notes)


def _of_objects(data: bytes, name: str) -> Any:
    import polars as pl

    try:
        return pl.read_ndjson(io.BytesIO(data), infer_schema_length=None)
    except (Exception, pl.exceptions.PanicException) as error:  # polars raises many types
        rows = [_object(line, number, name) for number, line in _numbered(data)]
        keys = list(dict.fromkeys(key for row in rows for key in row))
        columns = {key: _column([row.get(key) for row in rows], key, name) for key in keys}
        if not columns:
            raise InvalidDataError(f"{name} has no columns.") from error
        return pl.DataFrame(columns)


def _of_lists(data: bytes, name: str) -> Any:
    import polars as pl

    rows: list[list[Any]] = []
    for number, line in _numbered(data):
        row = _parsed(line, number, name)
        if not isinstance(row, list) or (rows and len(row) != len(rows[0])):
            expected = f" of {len(rows[0])} cells" if rows else ""
            raise InvalidDataError(f"{name}: line {number} is not a list{expected}.")
        rows.append(row)
    columns = {}
    for j in range(len(rows[0])):
        key = f"column_{j + 1}"
        columns[key] = _column([row[j] for row in rows], key, name)
    return pl.DataFrame(columns)


def _numbered(data: bytes) -> list[tuple[int, bytes]]:
    lines = enumerate(data.split(b"\n"), start=1)
    return [(number, line) for number, line in lines if line.strip()]


def _parsed(line: bytes, number: int, name: str) -> Any:
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = str(error).partition(": line")[0]
        raise InvalidDataError(f"{name}: line {number} is not JSON ({reason}).") from None


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number; null is missing")


def _object(line: bytes, number: int, name: str) -> dict[str, Any]:
    row = _parsed(line, number, name)
    if not isinstance(row, dict):
        raise InvalidDataError(
            f"{name}: line {number} is not an object of names and values such as "
            '{"age": 39, "sex": "male"}.'
        )
    return row


def _column(cells: list[Any], key: str, name: str) -> Any:
    """A column of numbers, strings or booleans; strings if types are mixed."""
    import polars as pl

    types = {type(cell) for cell in cells if cell is not None}
    for kind in (dict, list):
        if kind in types:
            raise InvalidDataError(
                f"{name}: column {shown(key)} contains {'lists' if kind is list else 'objects'}. "
                "Put their values into separate columns, or leave it out."
            )
    if types <= {int, float}:
        if float not in types and all(cell is None or abs(cell) < _INTEGER_LIMIT for cell in cells):
            return pl.Series(key, cells, dtype=pl.Int64)
        numbers = [None if cell is None else _as_float(cell) for cell in cells]
        return pl.Series(key, numbers, dtype=pl.Float64)
    if types == {bool}:
        return pl.Series(key, cells, dtype=pl.Boolean)
    texts = [cell if cell is None or isinstance(cell, str) else json.dumps(cell) for cell in cells]
    return pl.Series(key, texts, dtype=pl.String)


def _as_float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def refuse_nested(schema: Mapping[str, Any], name: str) -> None:
    """Raise if a column of a polars schema has nested or binary values."""
    for column, dtype in schema.items():
        if _is_nested(dtype):
            raise of_another_type(
                f"{name}: column {shown(column)} contains {_word_for(dtype)}, not plain values.",
                column,
                "Put them into separate columns, or leave it out:",
                "ignored",
            )


def ignored_nested(schema: Mapping[str, Any], is_ignored: Callable[[str], bool]) -> list[str]:
    """The nested columns that are ignored."""
    return [column for column, dtype in schema.items() if _is_nested(dtype) and is_ignored(column)]


def _is_nested(dtype: Any) -> bool:
    import polars as pl

    return bool(dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Unknown))


def _word_for(dtype: Any) -> str:
    return str(dtype).partition("(")[0].lower() + " values"


def _check_cells(frame: Any, name: str, limits: ReadLimits) -> None:
    import polars as pl

    for column in frame.select(pl.col(pl.String)).iter_columns():
        length = column.str.len_bytes().max()
        if length is not None and length > limits.max_cell_length:
            raise beyond_limit(
                f"{name}: column {shown(column.name)} has a cell of {length} bytes, and at most "
                f"{limits.max_cell_length} are allowed.",
                "max_cell_length",
                "Shorten it.",
            )
