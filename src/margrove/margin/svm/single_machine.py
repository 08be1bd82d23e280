"""The base class of machines with one dual problem over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import Table
from margrove.margin.decisions import finite_decisions, require_shape
from margrove.margin.kernels import dual_coefficients, like_table
from margrove.margin.solvers.dual import SolverResult
from margrove.margin.svm.kernel_machine import TrainingSet
from margrove.margin.svm.problems import DualProblem
from margrove.margin.svm.support_vector_machine import (
    FitRecord,
    Machine,
    StatedFit,
    SupportVectorMachine,
)

__all__ = ["SingleMachine", "TargetScale"]


@dataclass(frozen=True)
class TargetScale:
    """Scaled targets (y - centre) * factor: centred and, if they were extreme, of size one.

    The factor is a power of two, so that it causes no rounding.
    """

    centre: float
    factor: float

    @classmethod
    def of(cls, targets: np.ndarray, *, centred: bool = True) -> TargetScale:
        low, high = float(targets.min()), float(targets.max())
        centre = 0.5 * low + 0.5 * high if centred else 0.0
        spread = max(abs(low - centre), abs(high - centre))
        if spread == 0.0 or 1e-20 < spread < 1e20:
            return cls(centre, 1.0)
        exponent = max(-1000, min(1000, -int(np.frexp(spread)[1])))
        return cls(centre, float(np.ldexp(1.0, exponent)))

    def apply(self, targets: np.ndarray) -> np.ndarray:
        if self.factor == 1.0:
            return targets - self.centre
        return targets * self.factor - self.centre * self.factor  # the difference may overflow


class SingleMachine(SupportVectorMachine):
    """One machine over all rows: regression, or OneClassSVM."""

    def _stated_one(
        self,
        training: TrainingSet,
        problem: DualProblem,
        scale: TargetScale,
        table: Table,
        given: tuple[Any, Any, Any],
    ) -> StatedFit:
        """The fit with this problem; `given` are the X, y and sample_weight of `fit`."""
        machine = Machine(np.arange(len(training.rows)), problem)
        if (
            self.warm_start
            and hasattr(self, "dual_coef_")
            and (self.shape_fit_[0] == training.X.shape[0])
        ):
            coef = np.zeros(training.X.shape[0])
            coef[self.support_] = dual_coefficients(self)[0] * scale.factor
            (machine,) = self._warm_started(training, [machine], [coef])

        def learnt(results: list[SolverResult]) -> dict[str, Any]:
            return table.attributes | self._learnt(training, problem, results[0], scale)

        def attributes(results: list[SolverResult]) -> dict[str, Any]:
            self._require_solution(training, problem, results[0])
            traces, scales = [results[0].trace], [1.0 / self._price()]
            record = FitRecord(*given, traces, scales, self._parameters())
            return learnt(results) | {"_record": record}

        return StatedFit(training, [machine], given[0], given[1], learnt, attributes)

    def _require_solution(
        self, training: TrainingSet, problem: DualProblem, result: SolverResult
    ) -> None:
        """Raise an error if the result shows that the problem has no solution."""

    def _learnt(
        self, training: TrainingSet, problem: DualProblem, result: SolverResult, scale: TargetScale
    ) -> dict[str, Any]:
        coef = problem.coefficients(result.alpha, len(training.rows)) / scale.factor
        row_coef = training.shared_out(coef)
        support = np.flatnonzero(row_coef)
        return {
            "support_": support.astype(np.int32),
            "support_vectors_": self._vectors(training.X, support),
            "n_support_": np.array([len(support)], dtype=np.int32),
            "dual_coef_": like_table(row_coef[support][None], training.X),
            "intercept_": np.array([scale.centre - result.rho / scale.factor]),
            "kernel_": training.kernel,
            "feature_scale_": training.scale,
            "n_iter_": int(result.iterations),
            "fit_status_": int(not result.converged),
            "shape_fit_": training.X.shape,
        }

    def _values(self, X: Any) -> np.ndarray:
        return self._values_of(self._sound_rows(X))

    def _sound_rows(self, X: Any) -> Any:
        """The X of `predict`, after checks of the fitted state."""
        self._require_fitted()
        require_shape(self, "intercept_", (1,))
        require_shape(self, "dual_coef_", (1, len(self.support_)))
        return self._checked_rows(X)

    def _values_of(self, X: Any) -> np.ndarray:
        """The values of checked rows."""
        return finite_decisions(self._expansion(X, dual_coefficients(self).T) + self.intercept_)
