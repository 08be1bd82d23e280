"""Output for people: results on standard output, progress and notes on standard error.

Names come from users' files. They may hold line breaks, terminal escapes or rich's own markup;
`shown` makes one harmless line of them.
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

_LONGEST_NAME = 60


def shown(text: Any, longest: int = _LONGEST_NAME) -> str:
    """The same for rich: cut, and without markup."""
    from rich.markup import escape

    line = visible(text)
    return escape(line if len(line) <= longest else f"{line[: longest - 1]}…")


def duration(seconds: float) -> str:
    if seconds < 1.0:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120.0:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"


class Screen:
    """Where a command prints: tables for people, or one JSON document for programs."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        from rich.console import Console

        self.as_json = as_json
        self.quiet = quiet
        self._results = Console(highlight=False)
        self._notes = Console(stderr=True, highlight=False)

    def note(self, text: str) -> None:
        """A note on standard error, so that results can be piped."""
        if not self.quiet:
            self._notes.print(visible(text), markup=False, soft_wrap=True, style="dim")

    def say(self, text: str, *, style: str | None = None) -> None:
        """A sentence of the result."""
        if not self.as_json:
            self._results.print(visible(text), markup=False, soft_wrap=True, style=style)

    def text(self, block: str) -> None:
        """Lines of the result; each is made harmless."""
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
        """A table; columns from `numbers_from` on are set to the right, row `best` stands out."""
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
        """The result for programs."""
        if self.as_json:
            click.echo(json.dumps(_without_nan(document), indent=2, ensure_ascii=True))

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Print each warning once, in one line, without the path of a module."""
        told: set[str] = set()

        def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            text = str(message)
            if issubclass(category, UserWarning) and text not in told:
                told.add(text)
                self.note(text)

        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = tell
            yield

    def compared(self, comparison: TableComparison) -> None:
        """Show who won, before the winner is fitted."""
        from margrove.cli.results import show_comparison

        if not self.quiet:
            show_comparison(comparison, self)

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """A bar on standard error while fits inside report how far they are."""
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
    """JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {str(key): _without_nan(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(own) for own in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
