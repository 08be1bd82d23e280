"""Output of commands: results on standard output, progress and notes on standard error.

Names come from users' files. They can contain line breaks, terminal escapes or markup of rich;
`shown` makes a single safe line of them.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from margrove.workbench import visible

if TYPE_CHECKING:
    from margrove.workbench.workflow import TableComparison

__all__ = ["Screen", "duration", "shown", "visible"]

_MAX_NAME = 60


def shown(text: Any, most: int = _MAX_NAME) -> str:
    """The `visible` text for rich: shortened, with markup escaped."""
    from rich.markup import escape

    line = visible(text)
    return escape(line if len(line) <= most else f"{line[: most - 1]}…")


def duration(seconds: float) -> str:
    if seconds < 1.0:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120.0:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"


class Screen:
    """Prints the output of a command: tables and sentences, or one JSON document."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        from rich.console import Console

        self.as_json = as_json
        self.quiet = quiet
        self._results = Console(highlight=False)
        self._notes = Console(stderr=True, highlight=False)

    def note(self, text: str) -> None:
        """Print a note on standard error, so that results can be piped."""
        if not self.quiet:
            self._notes.print(visible(text), markup=False, soft_wrap=True, style="dim")

    def say(self, text: str, *, style: str | None = None) -> None:
        """Print a sentence of the result."""
        if not self.as_json:
            self._results.print(visible(text), markup=False, soft_wrap=True, style=style)

    def text(self, block: str) -> None:
        """Print lines of the result, each made `visible`."""
        for line in block.splitlines():
            indent = line[: len(line) - len(line.lstrip())]
            click.echo(indent + visible(line.lstrip()))

    def table(
        self,
        title: str,
        heads: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        caption: str | None = None,
        numbers_from: int = 1,
        best: int | None = None,
    ) -> None:
        """Print a table; columns from `numbers_from` on are right-aligned, row `best` is bold."""
        from rich.table import Table

        if self.as_json:
            return
        view = Table(title=shown(title, 200), caption=shown(caption, 400) if caption else None)
        for place, head in enumerate(heads):
            view.add_column(shown(head), justify="right" if place >= numbers_from else "left")
        for place, row in enumerate(rows):
            view.add_row(*(shown(cell) for cell in row), style="bold" if place == best else None)
        self._results.print(view)

    def json(self, document: Any) -> None:
        """Print the result as JSON, if --json was given."""
        if self.as_json:
            click.echo(json.dumps(_without_nan(document), indent=2, ensure_ascii=True))

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Print each warning once, in one line, without the path of a module."""
        printed: set[str] = set()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            text = str(message)
            if issubclass(category, UserWarning) and text not in printed:
                printed.add(text)
                self.note(text)

        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield

    def compared(self, comparison: TableComparison) -> None:
        """Print the comparison before the winner is fitted."""
        from margrove.cli.results import show_comparison

        if not self.quiet:
            show_comparison(comparison, self)

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Show a progress bar on standard error while fits run inside."""
        if self.quiet or self.as_json:
            yield
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from margrove._runtime import watch

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._notes, transient=True) as bars:
            task = bars.add_task(visible(what), total=None)

            def update(progress: Any) -> None:
                bars.update(
                    task,
                    description=f"{visible(what)} · {progress.learner}",
                    total=progress.total,
                    completed=progress.done,
                )

            with watch(on_progress=update):
                yield


def _without_nan(value: Any) -> Any:
    """The value with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
