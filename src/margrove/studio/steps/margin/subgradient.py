"""Stochastic subgradients on the primal problem, visit by visit.

After a visit the iterate of the solver is shown, and at the end the fitted machine, which is the
average of the iterates of the last epochs. With s = n / (visits so far), v the weights of the
subgradients so far and B = sum v_j y_j, the iterate is

    f(x) = s sum_j (v_j y_j - B / n) K(x_j, x) + b

because steps are taken about the mean of the rows; b contains what does not depend on x. See
`margin.solvers.dual.primal_sgd`.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove._runtime import watch
from margrove.margin.solvers.dual import primal_objective
from margrove.studio.content import Scene, StudioError
from margrove.studio.pictures import over_points, plane_of
from margrove.studio.steps.margin.stepwise_solver import fitted_with
from margrove.studio.steps.traces import (
    MOST_STEPS,
    FirstAndLast,
    GridShape,
    Trace,
    curve_over_steps,
    point_number,
    require_few_points,
    require_two_classes,
    state_of,
    step_record,
)

__all__ = ["trace"]

_MOST_POINTS = 2_000


@dataclass(frozen=True, eq=False)
class Iterate:
    """An iterate, expanded over the training rows; alpha counts the violations of each row."""

    rows: np.ndarray
    coef: np.ndarray
    intercept: float
    alpha: np.ndarray
    objective: float = np.nan


@dataclass(frozen=True, eq=False)
class _Fit:
    scene: Scene
    fitted: Any
    recorded: FirstAndLast
    iterates: list[Iterate]

    def state(self, position: int, grid: GridShape) -> dict[str, Any]:
        visited = (
            [] if position == 0 else [point_number(self.scene, self.recorded.at(position).row)]
        )
        if position == len(self.recorded.numbers) - 1:
            plane = plane_of(self.fitted, self.scene, grid)
        elif position == 0:
            plane = None
        else:
            plane = self._plane(self.iterates[position], grid)
        return state_of(position, plane=plane, highlighted=visited)

    def _plane(self, iterate: Iterate, grid: GridShape) -> dict[str, Any]:
        X, y = self.scene.training()
        codes = np.searchsorted(self.fitted.classes_, y)
        order = np.argsort(codes[iterate.rows], kind="stable")  # class after class
        rows = iterate.rows[order]
        model = copy(self.fitted)
        model.support_ = rows.astype(np.int32)
        model.support_vectors_ = X[rows]
        model.n_support_ = np.bincount(codes[rows], minlength=2).astype(np.int32)
        model.dual_coef_ = iterate.coef[None, order]
        model.intercept_ = np.array([iterate.intercept])
        plane = plane_of(model, self.scene, grid, support=False)
        alpha = np.zeros(len(X))
        alpha[iterate.rows] = iterate.alpha
        plane["alpha"] = over_points(self.scene, alpha).astype(np.float32)
        return plane


def trace(scene: Scene) -> Trace:
    require_two_classes(scene, "The subgradient method, step by step,")
    require_few_points(scene, "The subgradient method, step by step,", _MOST_POINTS)
    estimator = scene.estimator().set_params(solver="sgd", class_weight=None)
    if not np.isfinite(estimator.C):
        raise StudioError("Subgradients need a finite C. Choose one.")
    X, y = scene.training()
    recorded = FirstAndLast()
    with warnings.catch_warnings(), watch(on_step=recorded):
        warnings.simplefilter("ignore")  # the certificate shows how good the solution is
        fitted = estimator.fit(X, y)
    iterates = _iterates(estimator, X, y)
    fit = _Fit(scene, fitted, recorded, iterates)
    numbers = recorded.numbers
    end = float(fitted.certificate_.machines[0].primal)
    objectives = [iterate.objective for iterate in iterates[: len(numbers) - 1]] + [end]
    return Trace(
        steps=[_describe(fit, k, objectives[k]) for k in range(1, len(numbers))],
        total=recorded.total,
        curves=[curve_over_steps("primal objective", objectives[: len(numbers)])],
        state=fit.state,
        scale="log",
    )


def _iterates(estimator: Any, X: np.ndarray, y: np.ndarray) -> list[Iterate]:
    """The iterates at the start and after each of the first visits that violated the margin."""
    found: list[Iterate] = []
    solvers: list[Any] = []
    means: list[np.ndarray] = []

    def look(solver: Any, visits: list[Any]) -> bool:
        if not solvers:
            solvers.append(solver)
            means.append(solver._K.mean(axis=0))
        found.append(iterate_of(solver, means[0]))
        return len(visits) >= MOST_STEPS

    fitted_with(estimator, X, y, look)
    (solver,) = solvers
    problem = solver._problem
    # One product for all iterates is much faster.
    values = np.stack([iterate.coef for iterate in found]) @ solver._K
    return [
        replace(
            iterate,
            objective=primal_objective(problem, iterate.coef * problem.y, f, iterate.intercept),
        )
        for iterate, f in zip(found, values, strict=True)
    ]


def iterate_of(solver: Any, means: np.ndarray) -> Iterate:
    """The current iterate of a `SubgradientProcess`; see the module for the formula.

    `means` are those of the rows of its Gram matrix.
    """
    problem = solver._problem
    n = len(problem)
    n_visits = solver._epoch * n + solver._cursor
    scale = n / n_visits if n_visits else 0.0
    visits = solver._visits
    signed = visits * problem.y
    balance = float(solver._balance[0])
    constant = solver._gamma * balance - float(signed @ means) + balance * float(means.mean())
    return Iterate(
        rows=np.asarray(solver._names),
        coef=scale * (signed - balance / n),
        intercept=float(solver._centre) + scale * constant,
        alpha=scale * visits,
    )


def _describe(fit: _Fit, position: int, objective: float) -> dict[str, Any]:
    visit, numbers = fit.recorded.at(position), fit.recorded.numbers
    point = point_number(fit.scene, visit.row) + 1
    value = f"{visit.value + 0.0:.3g}, below 1" if visit.value < 0.9995 else "just below 1"
    text = f"Point {point} has y f(x) = {value}: the weights take a step towards it, and shrink."
    skipped = numbers[position] - numbers[position - 1] - 1
    if position == len(numbers) - 1:
        later = f"{skipped} steps later, the last one. " if skipped else ""
        text = (
            f"{later}{text} The machine is the average of the iterates at the ends of the last "
            "epochs."
        )
    return step_record(
        text, epoch=visit.epoch + 1, point=point, y_f=visit.value, primal_objective=objective
    )
