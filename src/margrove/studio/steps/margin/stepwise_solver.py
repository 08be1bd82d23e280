"""Support vector machines whose solver takes one elementary step at a time, and can be stopped.

The machine is fitted as usual; only its solver is wrapped. So the estimator itself turns the state
of the solver after k steps into coefficients, support vectors and intercept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from margrove._runtime import watch
from margrove.margin.solvers.dual import Solver
from margrove.margin.svm import SVC

__all__ = ["ended_after", "fitted_with"]

_ONE_STEP = 1e-9  # an amount of work for which a solver takes a single step

Look = Callable[[Any, list[Any]], bool]  # takes a solver and its steps; True ends the fit


class _Stepwise:
    """A solver that takes one step at a time and calls `look` after each; see `Process`."""

    def __init__(self, solver: Any, look: Look) -> None:
        self._solver, self._look = solver, look
        self._steps: list[Any] = []
        self._unread: list[Any] = []
        self._ended = look(solver, self._steps)
        self.unit, self.total = solver.unit, solver.total

    @property
    def rounds(self) -> int:
        return int(self._solver.rounds)

    @property
    def finished(self) -> bool:
        return self._ended or bool(self._solver.finished)

    def figures(self) -> dict[str, float]:
        found: dict[str, float] = self._solver.figures()
        return found

    def advance(self, work: float) -> float:
        done = float(self._solver.advance(_ONE_STEP))
        steps = self._solver.read_steps()
        self._steps += steps
        self._unread += steps
        self._ended = bool(steps) and self._look(self._solver, self._steps)
        return done

    def read_steps(self) -> list[Any]:
        steps, self._unread = self._unread, []
        return steps

    def result(self) -> Any:
        return self._solver.result()


class _StepwiseSVC(SVC):
    """An SVC with a stepwise solver, for solvers that take the whole Gram matrix."""

    _look: Look

    def _dense_solver(self, *arguments: Any) -> Solver:
        return _Stepwise(super()._dense_solver(*arguments), self._look)


def fitted_with(estimator: SVC, X: np.ndarray, y: np.ndarray, look: Look) -> SVC:
    """A copy of the estimator, fitted step by step.

    Parameters
    ----------
    estimator : SVC
        With a solver for the whole Gram matrix.
    X, y : rows of two classes
    look : callable
        Called with the solver and the list of all its steps, at the start and after each step.
        Returning True ends the fit with the current solution.

    Returns
    -------
    SVC
    """
    parameters = estimator.get_params(deep=False)
    stepwise = _StepwiseSVC(**parameters)
    stepwise._look = look
    machine = SVC(**parameters)
    # Solvers record their steps only if there is a callback for them.
    with warnings.catch_warnings(), watch(on_step=lambda step: None):
        warnings.simplefilter("ignore")  # that it was stopped early
        stepwise.fit(X, y)
    machine.__dict__ |= {name: value for name, value in vars(stepwise).items() if name != "_look"}
    return machine


def ended_after(estimator: SVC, X: np.ndarray, y: np.ndarray, n_steps: int) -> SVC:
    """The machine after `n_steps` elementary steps of its solver."""
    return fitted_with(estimator, X, y, lambda solver, steps: len(steps) >= n_steps)
