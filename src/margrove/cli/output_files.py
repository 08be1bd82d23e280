"""Files that commands write, completely or not at all; tables are safe for spreadsheets."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click

__all__ = ["FORMATS", "check_output", "format_of", "guarded", "write_table"]

FORMATS = ("csv", "tsv", "jsonl", "parquet")
# A spreadsheet reads a text that begins with one of these as a formula.
_FORMULA = "=+-@\t\r\0'"


def check_output(path: Path, *, force: bool, inputs: tuple[Path | None, ...] = ()) -> None:
    """Raise before any work is done if the file could not be written at the end."""
    if path.is_dir():
        raise click.UsageError(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise click.UsageError(f"There is no folder {path.parent}. Create it first.")
    if any(given is not None and _is_same(given, path) for given in inputs):
        raise click.UsageError(f"{path} is an input of the command. Name another file to write to.")
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists already. Use --force to replace it.")


def _is_same(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)


def format_of(path: Path | None, given: str | None) -> str:
    """The given format, or that of the name of the file; CSV for standard output."""
    if given is not None:
        return given
    if path is None:
        return "csv"
    suffix = path.suffix.lower().removeprefix(".")
    if suffix == "ndjson":
        return "jsonl"
    if suffix not in FORMATS:
        raise click.UsageError(
            f"{path} must end with .{', .'.join(FORMATS)}; or use --format. Got {path.suffix!r}."
        )
    return suffix


def write_table(frame: Any, path: Path | None, form: str, *, safe: bool = True) -> None:
    """Write a table to a file, in one step, or to standard output."""
    from margrove._files import write_atomically

    data = _encoded(frame, form, safe)
    if path is not None:
        write_atomically(path, [data])
        return
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:  # a text stream without a buffer
        click.echo(data.decode(), nl=False)


def _encoded(frame: Any, form: str, safe: bool) -> bytes:
    buffer = io.BytesIO()
    if form == "parquet":
        frame.write_parquet(buffer)
    elif form == "jsonl":
        frame.write_ndjson(buffer)
    else:
        table = guarded(frame) if safe else frame
        table.write_csv(buffer, separator="\t" if form == "tsv" else ",")
    return buffer.getvalue()


def guarded(frame: Any) -> Any:
    """The table with an apostrophe before texts that a spreadsheet would read as formulas.

    Texts that begin with an apostrophe get another one, so that removing one apostrophe from each
    gives the original table.
    """
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    columns = [
        pl.when(pl.any_horizontal([pl.col(name).str.starts_with(mark) for mark in _FORMULA]))
        .then(pl.lit("'") + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in texts
    ]
    return frame.with_columns(columns).rename(
        {name: f"'{name}" for name in frame.columns if name[:1] in tuple(_FORMULA)}
    )
