"""Errors and warnings of this library. Each builds its own message: what, on what, the way out."""

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


class InfeasibleNuError(ValueError):
    """No solution has so large a nu: the smaller class cannot hold its half of it."""

    def __init__(self, nu: float, feasible: float) -> None:
        self.feasible = feasible
        super().__init__(
            f"specified nu is infeasible: nu={nu:g}, but with these classes and weights it can be "
            f"at most {feasible:.6g}. Use a smaller nu, or balance the classes."
        )


class NotSeparableError(ValueError):
    """A hard margin was asked for, but no plane separates the classes.

    `rows` with `weights` prove it: in feature space, a weighted average of those of one class is
    one of those of the other.
    """

    def __init__(self, message: str, rows: Any = (), weights: Any = ()) -> None:
        super().__init__(message)
        self.rows = rows
        self.weights = weights


class InexactExplanationError(ArithmeticError):
    """The parts that an explanation has found do not add up to the model's answer."""

    def __init__(self, model: str, off: float, allowed: float) -> None:
        self.off = off
        super().__init__(
            f"The SHAP values of this {model} do not add up to its answers: a sum is off by "
            f"{off:.3g}, and {allowed:.3g} is allowed. Targets or weights may span too many orders "
            "of magnitude: scale them, or use check=False."
        )


class ModelFileError(ValueError):
    """A file that is not one of ours, or not whole, or that contradicts itself.

    `offset` is the byte at which that was noticed, where there is one.
    """

    def __init__(self, reason: str, offset: int | None = None, source: str = "") -> None:
        super().__init__(reason, offset, source)
        self.reason, self.offset, self.source = reason, offset, source

    def __str__(self) -> str:
        place = "" if self.offset is None else f" (at byte {self.offset})"
        return f"{self.source or 'The model file'} cannot be loaded{place}: {self.reason}"


class UnsavableModelError(TypeError):
    """A model has something in it that a model file does not hold; nothing was written."""

    def __init__(self, where: str, what: str, way_out: str) -> None:
        super().__init__(where, what, way_out)
        self.where, self.what, self.way_out = where, what, way_out

    def __str__(self) -> str:
        return f"This model cannot be saved: {self.where} is {self.what}. {self.way_out}"


class CheckpointError(ValueError):
    """A checkpoint that a fit cannot go on from: of another learner, other parameters or data."""

    def __init__(self, file: str, reason: str, way_out: str) -> None:
        super().__init__(file, reason, way_out)
        self.file, self.reason, self.way_out = file, reason, way_out

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}. {self.way_out}"


class ConversionError(ValueError):
    """A model has something in it that the other library does not have."""

    def __init__(self, model: str, problem: str, way_out: str) -> None:
        super().__init__(model, problem, way_out)
        self.model, self.problem, self.way_out = model, problem, way_out

    def __str__(self) -> str:
        return f"This {self.model} cannot be converted: {self.problem}. {self.way_out}."


class ClusterError(RuntimeError):
    """A cluster cannot do what was asked of it, or has lost what it needs for it."""


class FitCancelled(Exception):  # noqa: N818, cancelling is not an error
    """A fit was cancelled from outside; the estimator is as it was before the fit."""


class InterruptedFitWarning(UserWarning):
    """A fit was interrupted and what had been learnt so far was kept."""


class CheckpointWarning(UserWarning):
    """A fit inside a `checkpoint` block goes on, but is not, or not yet, kept in the file."""


class FallbackWarning(UserWarning):
    """A fit ran in scikit-learn, because margrove refuses what scikit-learn accepts."""


class DataWarning(UserWarning):
    """The data were usable, but something about them is probably not as intended."""
