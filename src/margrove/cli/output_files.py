"""Files that commands write: whole or not at all; tables are harmless in a spreadsheet."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click

__all__ = ["FORMATS", "check_output", "format_of", "guarded", "write_table"]

FORMATS = ("csv", "tsv", "jsonl", "parquet")
# A cell of text that begins with one of these is a formula to a spreadsheet.
_FORMULA = "=+-@\t\r\0'"


def check_output(path: Path, *, force: bool, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse, before any work is done, a file that could not be written at the end."""
    if path.is_dir():
        raise click.UsageError(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise click.UsageError(f"There is no folder {path.parent}. Make it first.")
    if any(given is not None and _is_same(given, path) for given in inputs):
        raise click.UsageError(f"{path} is what is read from. Name another file to write to.")
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there already. Use --force to replace it.")


def _is_same(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)


def format_of(path: Path | None, given: str | None) -> str:
    """The format: by the name of the file unless given; CSV on standard output."""
    if given is not None:
        return given
    if path is None:
        return "csv"
    suffix = path.suffix.lower().removeprefix(".")
    if suffix == "ndjson":
        return "jsonl"
    if suffix not in FORMATS:
        raise click.UsageError(
            f"{path} should end with .{', .'.join(FORMATS)}, or say --format. Got {path.suffix!r}."
        )
    return suffix


def write_table(frame: Any, path: Path | None, form: str, *, safe: bool = True) -> None:
    """To a file, in one step at the end, or to standard output."""
    from margrove._files import write_atomically

    data = _encoded(frame, form, safe)
    if path is not None:
        write_atomically(path, [data])
        return
    sys.stdout.flush()
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:  # a text stream in place of a terminal
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
    """Text that a spreadsheet would run gets an apostrophe in front; so does one that has it.

    Taking one apostrophe from each text that begins with one gives the table back.
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
