"""Errors and warnings of this library. Messages say what is wrong, where, and what to do."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning, NotFittedError

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ClusterError",
    "ConvergenceWarning",
    "ConversionError",
    "DataWarning",
    "FallbackWarning",
    "FitCancelled",
    "InexactExplanationError",
    "InfeasibleNuError",
    "InterruptedFitWarning",
    "InvalidDataError",
    "MalformedSparseError",
    "ModelFileError",
    "NotFittedError",
    "NotSeparableError",
    "NumericalOverflowError",
    "UnsavableModelError",
]


class InvalidDataError(ValueError):
    """X, y or sample_weight are not valid."""


class MalformedSparseError(InvalidDataError):
    """The index arrays of a sparse matrix contradict each other."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(
            f"The sparse matrix {argument} is malformed: {problem}. "
            "Build it again from its (row, column, value) triples, for example with "
            "scipy.sparse.coo_array((values, (rows, columns)), shape=...).tocsr()."
        )


class NumericalOverflowError(ValueError):
    """Finite input led to numbers beyond the range of floating point."""


class InfeasibleNuError(ValueError):
    """nu is too large for a solution: the smaller class has too little weight for half of it."""

    def __init__(self, nu: float, feasible: float) -> None:
        self.feasible = feasible
        super().__init__(
            f"specified nu is infeasible: nu={nu:g}, but with these classes and weights it can be "
            f"at most {feasible:.6g}. Use a smaller nu, or balance the classes."
        )


class NotSeparableError(ValueError):
    """A hard margin was requested, but no hyperplane separates the classes.

    `rows` and `weights` prove it: in feature space, the weighted average of the rows of one class
    equals the weighted average of the rows of the other class.
    """

    def __init__(self, message: str, rows: Any = (), weights: Any = ()) -> None:
        super().__init__(message)
        self.rows = rows
        self.weights = weights


class InexactExplanationError(ArithmeticError):
    """The contributions of an explanation do not add up to the prediction of the model."""

    def __init__(self, model: str, off: float, allowed: float) -> None:
        self.off = off
        super().__init__(
            f"The SHAP values of this {model} do not add up to its predictions: a sum is off by "
            f"{off:.3g}, and {allowed:.3g} is allowed. Targets or weights may span too many orders "
            "of magnitude: scale them, or use check=False."
        )


class ModelFileError(ValueError):
    """A file that is not a margrove file, is incomplete, or contradicts itself.

    `offset` is the byte at which the error was found, if it is known.
    """

    def __init__(self, reason: str, offset: int | None = None, source: str = "") -> None:
        super().__init__(reason, offset, source)
        self.reason, self.offset, self.source = reason, offset, source

    def __str__(self) -> str:
        place = "" if self.offset is None else f" (at byte {self.offset})"
        return f"{self.source or 'The model file'} cannot be loaded{place}: {self.reason}"


class UnsavableModelError(TypeError):
    """A model contains a value that model files cannot hold; nothing was written."""

    def __init__(self, where: str, what: str, way_out: str) -> None:
        super().__init__(where, what, way_out)
        self.where, self.what, self.way_out = where, what, way_out

    def __str__(self) -> str:
        return f"This model cannot be saved: {self.where} is {self.what}. {self.way_out}"


class CheckpointError(ValueError):
    """A checkpoint cannot be resumed: another learner, other parameters or other data."""

    def __init__(self, file: str, reason: str, way_out: str) -> None:
        super().__init__(file, reason, way_out)
        self.file, self.reason, self.way_out = file, reason, way_out

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}. {self.way_out}"


class ConversionError(ValueError):
    """A model uses something that the other library does not support."""

    def __init__(self, model: str, problem: str, way_out: str) -> None:
        super().__init__(model, problem, way_out)
        self.model, self.problem, self.way_out = model, problem, way_out

    def __str__(self) -> str:
        return f"This {self.model} cannot be converted: {self.problem}. {self.way_out}."


class ClusterError(RuntimeError):
    """A cluster cannot do what was requested, or has lost data that it needs."""


class FitCancelled(Exception):  # noqa: N818, cancelling is not an error
    """A fit was cancelled from outside; the estimator is as it was before the fit."""


class InterruptedFitWarning(UserWarning):
    """A fit was interrupted and kept what it had learnt so far."""


class CheckpointWarning(UserWarning):
    """A fit inside a `checkpoint` block goes on, but the file does not contain its state."""


class FallbackWarning(UserWarning):
    """A fit ran in scikit-learn, because margrove does not support it."""


class DataWarning(UserWarning):
    """The data can be used, but something about them is probably not intended."""
