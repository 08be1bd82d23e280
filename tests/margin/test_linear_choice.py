"""Coordinate descent first, Newton's method if it is not enough: which solver "auto" is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from margrove import LinearSVC, LinearSVR
from margrove._data import kernel_rows
from margrove.margin.linear.problems import LinearProblem, hinge_loss
from margrove.margin.solvers.linear import choice
from margrove.margin.solvers.linear.choice import SolverSequence, choose_solver, linear_process
from margrove.margin.solvers.linear.dual_coordinate_descent import CoordinateDescent
from margrove.margin.solvers.linear.result import LinearDemand

DEMAND = LinearDemand(tol=1e-4, epochs=2000)


def two_classes(m: int, d: int, *, noise: float, squared: bool = False) -> LinearProblem:
    rng = np.random.default_rng(m + d)
    X = rng.standard_normal((m, d))
    signs = np.where(X[:, 0] + noise * rng.standard_normal(m) > 0, 1.0, -1.0)
    X[:, 0] += 3.0 * signs * (noise == 0.0)
    loss = hinge_loss(signs, np.ones(m), squared=squared)
    return LinearProblem(kernel_rows(X), d, np.arange(m), (X**2).sum(axis=1), loss, 0.0)


def solved(problem: LinearProblem) -> tuple[Any, Any]:
    process = linear_process(problem, DEMAND, kind="l2", solver="auto")
    assert isinstance(process, SolverSequence)
    while not process.finished:
        process.advance(1e7)
    return process._process, process.result()


def test_the_choice_follows_the_shape() -> None:
    assert choose_solver(two_classes(3000, 10, noise=1.0), "l2") == "newton"
    assert choose_solver(two_classes(1500, 150, noise=1.0, squared=True), "l2") == "newton"
    assert choose_solver(two_classes(60, 300, noise=1.0), "l2") == "cd"
    assert choose_solver(two_classes(60, 300, noise=1.0, squared=True), "l2") == "cd"
    assert choose_solver(two_classes(20, 2000, noise=1.0), "l2") == "cd"


def test_easy_problems_need_no_newton_steps() -> None:
    last, found = solved(two_classes(1500, 150, noise=0.0))
    assert isinstance(last, CoordinateDescent)
    assert found.converged.all()


def test_hard_problems_are_left_to_newton_steps_early() -> None:
    problem = two_classes(1500, 150, noise=2.0)
    trial = CoordinateDescent(problem, DEMAND, may_be_hard=True)
    while not trial.finished:
        trial.advance(1e7)
    assert trial.rounds == 4
    last, found = solved(problem)
    assert not isinstance(last, CoordinateDescent)
    assert found.converged.all()
    assert found.gap[0] <= 1e-4 * found.primal[0]


def test_a_trial_that_is_too_short_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = two_classes(200, 150, noise=1.0)
    _, expected = solved(problem)
    monkeypatch.setattr(choice, "_LEAST_EPOCHS", 2)
    monkeypatch.setattr(choice, "_epochs_worth_trying", lambda problem: 2)
    last, found = solved(problem)
    assert not isinstance(last, CoordinateDescent)
    assert found.converged.all()
    assert abs(found.primal[0] - expected.primal[0]) <= 2e-4 * expected.primal[0]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_machines_that_are_solved_one_by_one_do_not_depend_on_threads(loss: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 200))
    y = X[:, :4].argmax(axis=1)
    one, three = (LinearSVC(loss=loss, n_jobs=n).fit(X, y) for n in (1, 3))
    assert np.array_equal(one.coef_, three.coef_)
    assert np.array_equal(one.intercept_, three.intercept_)
    assert one.certificate_.relative_gap <= 1e-4


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_wide_regression_is_proved(C: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 90))
    y = X[:, 0] + 0.1 * rng.standard_normal(120)
    assert LinearSVR(C=C).fit(X, y).certificate_.relative_gap <= 1e-4
