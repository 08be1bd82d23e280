"""margrove datasets"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from margrove.cli.options import force_option, output_option, shows_results
from margrove.cli.output_files import FORMATS, check_output, format_of, write_table
from margrove.cli.screen import Screen

__all__ = ["command"]


@click.command("datasets")
@click.argument("name", required=False)
@output_option("Write NAME to this file. [default: standard output]")
@click.option("--format", "form", type=click.Choice(FORMATS), help="[default: by --output, or csv]")
@force_option
@shows_results
def command(
    name: str | None, output: Path | None, form: str | None, force: bool, screen: Screen
) -> None:
    """List the built-in data sets, or write one as a table."""
    if name is None:
        _list(screen)
        return
    from margrove.workbench.workflow import built_in_table

    form = format_of(output, form)
    if output is not None:
        check_output(output, force=force)
    table = built_in_table(name)
    write_table(table.frame, output, form)
    if output is not None:
        screen.note(f"{table.frame.height:,} rows of {name} are in {output}.")


def _list(screen: Screen) -> None:
    from margrove.datasets import DATASETS

    found = [_summary(name, load) for name, load in DATASETS.items()]
    screen.table(
        "Built-in data sets",
        ("name", "what it is", "rows", "features", "target"),
        [tuple(entry.values()) for entry in found],
        numbers_from=2,
        caption="margrove compare --data NAME; margrove datasets NAME writes one as CSV",
    )
    screen.json(found)


def _summary(name: str, load: Any) -> dict[str, Any]:
    import numpy as np

    bunch = load()
    is_number = bunch.target.dtype.kind == "f"
    kind = "numbers" if is_number else f"{len(np.unique(bunch.target))} classes"
    first_line = (load.__doc__ or "").strip().partition("\n")[0]
    return {
        "name": name,
        "what": first_line,
        "rows": int(bunch.data.shape[0]),
        "features": int(bunch.data.shape[1]),
        "target": kind,
    }
