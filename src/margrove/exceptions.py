"""Errors and warnings of this library. Each builds its own message: what, on what, the way out."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = [
    "ConvergenceWarning",
    "DataWarning",
    "FitCancelled",
    "InterruptedFitWarning",
    "InvalidDataError",
    "MalformedSparseError",
    "NotFittedError",
    "NumericalOverflowError",
]


class InvalidDataError(ValueError):
    """X, y or sample_weight cannot be used as they are."""


class MalformedSparseError(InvalidDataError):
    """A sparse matrix whose index arrays contradict each other."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(
            f"The sparse matrix {argument} is malformed: {problem}. "
            "Build it anew from its (row, column, value) triples, for example with "
            "scipy.sparse.coo_array((values, (rows, columns)), shape=...).tocsr()."
        )


class NumericalOverflowError(ValueError):
    """Finite input led to numbers beyond the range of floating point."""


class FitCancelled(Exception):  # noqa: N818, cancelling is not an error
    """A fit was cancelled from outside; the estimator is as it was before the fit."""


class InterruptedFitWarning(UserWarning):
    """A fit was interrupted and what had been learnt so far was kept."""


class DataWarning(UserWarning):
    """The data were usable, but something about them is probably not as intended."""
