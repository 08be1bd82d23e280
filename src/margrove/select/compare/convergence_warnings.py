"""Which fits warned that they had not converged.

Fits run on several threads, and Python has one record of warnings for all threads. So each
ConvergenceWarning is recorded together with the fit of its thread, and issued again when the fits
are done.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from margrove.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarnings", "Fit"]

_REGISTRY: dict[Any, Any] = {}  # so that "once per location" holds for repeated warnings too


class Fit(NamedTuple):
    """A fit of a comparison: the names of its models, and the fold."""

    names: tuple[str, ...]
    fold: int


class _Warning(NamedTuple):
    fit: Fit
    message: Warning | str
    category: type[Warning]
    filename: str
    line: int


_CURRENT: ContextVar[Fit | None] = ContextVar("fit of a comparison", default=None)


class ConvergenceWarnings:
    """Records convergence warnings by fit, and issues them again."""

    def __init__(self) -> None:
        self._recorded: list[_Warning] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Entered by the thread that starts the fits, which run on any threads."""
        with warnings.catch_warnings():
            show_as_before = warnings.showwarning
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
                    self._recorded.append(_Warning(fit, message, category, filename, lineno))
                else:
                    show_as_before(message, category, filename, lineno, file, line)

            warnings.showwarning = show
            yield

    @contextmanager
    def of_fit(self, names: tuple[str, ...], fold: int) -> Iterator[None]:
        """Entered by the thread that runs this fit."""
        token = _CURRENT.set(Fit(names, fold))
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def has(self, name: str, fold: int) -> bool:
        return any(w.fit.fold == fold and name in w.fit.names for w in self._recorded)

    def take(self) -> Iterator[tuple[Fit, Any]]:
        """Each recorded warning, as its fit and a function that issues it again."""
        recorded, self._recorded = self._recorded, []
        for warning in recorded:

            def issue(warning: _Warning = warning) -> None:
                warnings.warn_explicit(
                    warning.message,
                    warning.category,
                    warning.filename,
                    warning.line,
                    registry=_REGISTRY,
                )

            yield warning.fit, issue
