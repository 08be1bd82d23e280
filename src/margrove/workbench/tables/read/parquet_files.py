"""Parquet files; their size in memory is checked before they are read."""

from __future__ import annotations

import io
from collections.abc import Callable

from margrove._runtime import require_memory
from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.errors import beyond_limit
from margrove.workbench.tables.read.csv_files import checked_names
from margrove.workbench.tables.read.json_lines import ignored_nested, refuse_nested
from margrove.workbench.tables.read.limits import ReadLimits
from margrove.workbench.tables.read.sources import Contents, readable_size
from margrove.workbench.tables.read.typed_cells import TypedFrame

__all__ = ["read_parquet"]

_MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_BYTES_PER_CELL = 16


def read_parquet(
    contents: Contents, limits: ReadLimits, is_ignored: Callable[[str], bool]
) -> TypedFrame:
    """Read a Parquet file with its types; an error names a nested column.

    Ignored nested columns are not read: their cells are missing.
    """
    name, data = contents.name, contents.data
    _check_frame(data, name)
    import polars as pl

    try:
        schema = pl.read_parquet_schema(io.BytesIO(data))
        checked_names(list(schema), name, limits)
        ignored = ignored_nested(schema, is_ignored)
        read = [column for column in schema if column not in ignored]
        refuse_nested({column: schema[column] for column in read or schema}, name)
        n_rows = int(pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item())
    except InvalidDataError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # polars raises many types
        raise _damaged(name, error) from error
    _check_size(n_rows, len(schema), len(data), name, limits)
    try:
        frame = pl.read_parquet(io.BytesIO(data), columns=read, glob=False)
    except MemoryError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        raise _damaged(name, error) from error
    empty = [pl.lit(None).alias(column) for column in ignored]
    return TypedFrame(frame.with_columns(empty).select(list(schema)) if ignored else frame, ())


def _check_frame(data: bytes, name: str) -> None:
    if data.startswith(_ENCRYPTED) or data.endswith(_ENCRYPTED):
        raise InvalidDataError(f"{name} is encrypted. Decrypt it first.")
    if not data.startswith(_MAGIC):
        raise InvalidDataError(f"{name} is not a Parquet file: it does not begin with PAR1.")
    if len(data) < 12 or not data.endswith(_MAGIC):
        raise InvalidDataError(
            f"{name} was cut off: it does not end with PAR1, as a Parquet file does."
        )
    footer = int.from_bytes(data[-8:-4], "little")
    if footer > len(data) - 12:
        raise InvalidDataError(
            f"{name} is damaged: it declares a footer of {readable_size(footer)}."
        )


def _damaged(name: str, error: BaseException) -> InvalidDataError:
    reason = str(error).strip().partition("\n")[0][:200]
    if "encrypt" in reason.lower():  # only some columns are, so the footer could be read
        return InvalidDataError(f"{name} is encrypted. Decrypt it first.")
    return InvalidDataError(f"{name} cannot be read as Parquet: {reason or type(error).__name__}")


def _check_size(n_rows: int, n_columns: int, size: int, name: str, limits: ReadLimits) -> None:
    if n_rows == 0 or n_columns == 0:
        raise InvalidDataError(f"{name} has {n_rows} rows and {n_columns} columns.")
    if n_rows > limits.max_rows:
        raise beyond_limit(
            f"{name} has {n_rows} rows, and at most {limits.max_rows} are read.", "max_rows"
        )
    needed = _BYTES_PER_CELL * n_rows * n_columns
    if limits.max_bytes is not None and needed > limits.max_bytes:
        raise beyond_limit(
            f"{name} has {n_rows} rows and {n_columns} columns, which take "
            f"{readable_size(needed)}, and {readable_size(limits.max_bytes)} is the limit.",
            "max_bytes",
        )
    require_memory(needed + size, f"{name}, with {n_rows} rows,", "Give a part of it.")
