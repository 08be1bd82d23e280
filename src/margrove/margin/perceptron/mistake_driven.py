"""The base class of the two perceptrons: how they run, predict and count their mistakes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from margrove._runtime import Ending, Estimator, Process, drive
from margrove.exceptions import ConvergenceWarning
from margrove.margin.decisions import decided_classes
from margrove.margin.solvers.perceptron import EarlyStopping

__all__ = [
    "MistakeDriven",
    "mistake_attributes",
    "separation_attributes",
]


class MistakeDriven(ClassifierMixin, Estimator):
    """A classifier that is updated when it makes a mistake."""

    classes_: np.ndarray
    max_time: float | None
    on_interrupt: Any
    verbose: int
    max_iter: int
    tol: float | None

    def decision_function(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        return decided_classes(self, self.decision_function(X))

    def _drive(
        self,
        process: Process,
        X: Any,
        y: Any,
        sample_weight: Any,
        fitted: Callable[[], dict[str, Any]],
    ) -> Ending:
        return drive(
            process,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=int(self.verbose),
            X=X,
            y=y,
            fitted=fitted,
            given={"sample_weight": sample_weight},
        )

    def _warn_unless_converged(self, ending: Ending, stopping: EarlyStopping) -> None:
        if ending == "finished" and self.tol is not None and not stopping.converged.all():
            warnings.warn(
                "Maximum number of iteration reached before convergence: after max_iter="
                f"{self.max_iter} epochs the loss still improves by more than tol={self.tol:g}. "
                "Consider increasing max_iter to improve the fit.",
                ConvergenceWarning,
                stacklevel=3,
            )


def mistake_attributes(mistakes: np.ndarray, earlier: Any = None) -> dict[str, Any]:
    """`mistakes_` and `class_mistakes_`, plus those of an estimator's earlier batches."""
    if earlier is not None and hasattr(earlier, "class_mistakes_"):
        mistakes = mistakes + earlier.class_mistakes_
    total = float(mistakes.sum())
    return {
        "mistakes_": int(total) if total.is_integer() else total,
        "class_mistakes_": mistakes,
    }


def separation_attributes(
    margins: np.ndarray, radius: float, *, extra_room: float, theorem_applies: bool
) -> dict[str, Any]:
    """Margins, radius, and Novikoff's bound (radius^2 + extra_room) / margin^2 of each problem."""
    separated = bool((margins > 0).all())
    bound = np.inf
    if separated and theorem_applies:
        bound = float(((radius**2 + extra_room) / margins**2).sum())
    return {
        "separated_": separated,
        "margin_": float(margins.min()),
        "class_margins_": margins,
        "radius_": radius,
        "novikoff_bound_": bound,
    }
