"""margrove inspect"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from margrove.cli.options import shows_results
from margrove.cli.screen import Screen

__all__ = ["command"]

_MAX_LINES = 60


@click.command("inspect")
@click.argument("model", required=False, type=click.Path(path_type=Path))
@click.option("--all", "every_field", is_flag=True, help="List every field, however many.")
@shows_results
def command(model: Path | None, every_field: bool, screen: Screen) -> None:
    """Show the contents of a model file, without loading the model."""
    import io

    from margrove.cli.models import open_model
    from margrove.exchange.model_file import inspect_file, save

    if model is None:
        opened = open_model(None, screen)
        buffer = io.BytesIO()
        save(opened.model, buffer, about=opened.about)
        buffer.seek(0)
        summary = inspect_file(buffer)
    else:
        if not model.is_file():
            what = "is a folder" if model.is_dir() else "does not exist"
            raise click.UsageError(f"{model} {what}. `margrove fit` makes model files.")
        summary = inspect_file(model)
    if screen.as_json:
        screen.json(asdict(summary))
    else:
        lines = str(summary).splitlines()
        screen.text("\n".join(lines if every_field else lines[:_MAX_LINES]))
        if len(lines) > _MAX_LINES and not every_field:
            screen.note(f"and {len(lines) - _MAX_LINES:,} more lines; see --all.")
