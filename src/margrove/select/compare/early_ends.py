"""Which fits said that they had not converged.

A fit says so by a ConvergenceWarning. Fits run on several threads, and Python's record of warnings
is one for all threads: so each warning is noted together with the fit that was going on in its
thread, and given again when the fits are done, for whoever wants to hear it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from margrove.exceptions import ConvergenceWarning

__all__ = ["EarlyEnds", "Fit"]

_REGISTRY: dict[Any, Any] = {}  # what Python says once a place is said once


class Fit(NamedTuple):
    """A fit of a comparison: the names that it is for, and the fold."""

    names: tuple[str, ...]
    fold: int


class _Warning(NamedTuple):
    fit: Fit
    message: Warning | str
    category: type[Warning]
    filename: str
    line: int


_CURRENT: ContextVar[Fit | None] = ContextVar("fit of a comparison", default=None)


class EarlyEnds:
    """Notes convergence warnings by fit, and gives them again."""

    def __init__(self) -> None:
        self._noted: list[_Warning] = []

    @contextmanager
    def noting(self) -> Iterator[None]:
        """While fits run, on any threads; entered by the thread that starts them."""
        with warnings.catch_warnings():
            earlier = warnings.showwarning
            warnings.simplefilter("always", ConvergenceWarning)

            def show(
                message: Warning | str,
                category: type[Warning],
                filename: str,
                lineno: int,
                file: Any = None,
                line: str | None = None,
            ) -> None:
                fit = _CURRENT.get()
                if fit is not None and issubclass(category, ConvergenceWarning):
                    self._noted.append(_Warning(fit, message, category, filename, lineno))
                else:
                    earlier(message, category, filename, lineno, file, line)

            warnings.showwarning = show
            yield

    @contextmanager
    def of_fit(self, names: tuple[str, ...], fold: int) -> Iterator[None]:
        """Entered by the thread that fits."""
        token = _CURRENT.set(Fit(names, fold))
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def has(self, name: str, fold: int) -> bool:
        return any(own.fit.fold == fold and name in own.fit.names for own in self._noted)

    def take(self) -> Iterator[tuple[Fit, Any]]:
        """Each warning that was noted, as a function that gives it again."""
        noted, self._noted = self._noted, []
        for own in noted:

            def give_again(own: _Warning = own) -> None:
                warnings.warn_explicit(
                    own.message, own.category, own.filename, own.line, registry=_REGISTRY
                )

            yield own.fit, give_again
