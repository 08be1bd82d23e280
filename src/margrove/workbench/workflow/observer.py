"""Observer: gets notes and the progress of the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from margrove.workbench.workflow.comparison import TableComparison

__all__ = ["Observer", "SilentObserver"]


class Observer(Protocol):
    """Gets what a front end shows during the work; the outcome does not depend on it."""

    def note(self, text: str) -> None:
        """A text for the user."""

    def progress(self, step: str) -> AbstractContextManager[None]:
        """A context that is entered while a step runs."""

    def compared(self, comparison: TableComparison) -> None:
        """Called when the learners were compared, before one is chosen and fitted."""


class SilentObserver:
    """An observer that ignores everything."""

    def note(self, text: str) -> None:
        pass

    @contextmanager
    def progress(self, step: str) -> Iterator[None]:
        yield

    def compared(self, comparison: TableComparison) -> None:
        pass
