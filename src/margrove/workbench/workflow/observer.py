"""Who is told how far the work is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from margrove.workbench.workflow.comparison import TableComparison

__all__ = ["Observer", "SilentObserver"]


class Observer(Protocol):
    """What front ends have to hear about; nothing of it is part of the outcome."""

    def note(self, text: str) -> None:
        """Something that people who watch want to know."""

    def progress(self, step: str) -> AbstractContextManager[None]:
        """Entered while a step runs."""

    def compared(self, comparison: TableComparison) -> None:
        """The learners were compared; the choice and the fit come next."""


class SilentObserver:
    """Ignores everything."""

    def note(self, text: str) -> None:
        pass

    @contextmanager
    def progress(self, step: str) -> Iterator[None]:
        yield

    def compared(self, comparison: TableComparison) -> None:
        pass
