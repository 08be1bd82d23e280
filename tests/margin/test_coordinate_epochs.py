"""Epochs of dual coordinate descent in compiled calls, and steps on faces, against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from margrove._data import kernel_rows
from margrove.margin.linear.problems import LinearProblem, OneVsRest, hinge_loss, tube_loss
from margrove.margin.solvers.linear.dual_coordinate_blocks import SingleBlock
from margrove.margin.solvers.linear.dual_coordinate_descent import CoordinateDescent
from margrove.margin.solvers.linear.dual_coordinate_loops import DescentState
from margrove.margin.solvers.linear.faces import FaceSteps
from margrove.margin.solvers.linear.result import LinearDemand

DEMAND = LinearDemand(tol=1e-6, epochs=40, seed=3)


def rows_of(m: int, d: int, form: Any = np.asarray) -> tuple[np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(m + d)
    X = rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.6)
    shared = {"X": kernel_rows(form(X)), "n_features": d, "rows": np.arange(m)}
    return X, shared | {"norms": (X**2).sum(axis=1)}


def single(squared: bool, price: float, form: Any = np.asarray) -> LinearProblem:
    X, shared = rows_of(60, 8, form)
    signs = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.1, 1.0, -1.0)
    return LinearProblem(**shared, loss=hinge_loss(signs, np.ones(60), squared=squared),
                         bias_price=price)  # fmt: skip


def many(squared: bool, price: float) -> OneVsRest:
    _, shared = rows_of(60, 8)
    return OneVsRest(**shared, codes=np.arange(60) % 5, C=np.full(60, 0.5), n_machines=5,
                     squared=squared, bias_price=price)  # fmt: skip


@pytest.mark.parametrize("price", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("make", [single, many])
def test_slices_of_any_length_give_the_same_bits(make: Any, squared: bool, price: float) -> None:
    whole = CoordinateDescent(make(squared, price), DEMAND)
    sliced = CoordinateDescent(make(squared, price), DEMAND)
    while not whole.finished:
        whole.advance(1e9)
    n_slices = 0
    while not sliced.finished:
        sliced.advance(1.0)  # one row
        n_slices += 1
    assert n_slices > 60
    assert whole.rounds == sliced.rounds <= DEMAND.epochs
    one, other = whole.result(), sliced.result()
    assert np.array_equal(one.coef, other.coef)
    assert np.array_equal(one.intercept, other.intercept)
    assert np.array_equal(one.beta, other.beta)


def dual_objective(X: np.ndarray, loss: Any, gain: float, beta: np.ndarray) -> float:
    w = X.T @ beta
    linear = loss.target @ beta - loss.tube * np.abs(beta).sum()
    return float(
        linear - 0.5 * (w @ w) - 0.5 * gain * beta.sum() ** 2 - 0.5 * loss.damping @ beta**2
    )


def state_at(X: np.ndarray, gain: float, beta: np.ndarray) -> DescentState:
    none = np.zeros(1)
    return DescentState(
        beta[:, None].copy(), (X.T @ beta)[:, None], np.array([gain * beta.sum()]),
        np.array([beta.sum()]), none, none, np.ones(len(X), bool), np.zeros((3, 1)),
    )  # fmt: skip


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("price", [0.5, np.inf])
def test_steps_on_the_face_of_all_variables_solve_the_system(price: float, form: Any) -> None:
    X, shared = rows_of(30, 12, form)
    rng = np.random.default_rng(0)
    loss = tube_loss(X[:, 0] + rng.standard_normal(30), rng.uniform(0.5, 2.0, 30), 0.0,
                     squared=True)  # fmt: skip
    problem = LinearProblem(**shared, loss=loss, bias_price=price)
    block = SingleBlock(problem, DEMAND)
    gain = 1.0 / price
    steps, state = FaceSteps(problem, block._given, gain), state_at(X, gain, np.full(30, 0.01))
    for _ in range(12):
        steps.step(np.arange(30), state)
    system = X @ X.T + gain + np.diag(loss.damping)
    assert np.allclose(state.beta[:, 0], np.linalg.solve(system, loss.target), atol=1e-8)
    assert np.allclose(state.W[:, 0], X.T @ state.beta[:, 0])
    assert np.allclose(state.bias[0], gain * state.beta.sum())
    assert np.isclose(state.balance[0], state.beta.sum())


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("squared", [False, True])
def test_a_step_on_a_face_stays_within_bounds_and_never_loses(
    squared: bool, epsilon: float
) -> None:
    X, shared = rows_of(40, 15)
    rng = np.random.default_rng(1)
    loss = tube_loss(X[:, 0] + rng.standard_normal(40), np.full(40, 0.7), epsilon, squared=squared)
    problem = LinearProblem(**shared, loss=loss, bias_price=2.0)
    steps = FaceSteps(problem, SingleBlock(problem, DEMAND)._given, 0.5)
    beta = np.clip(0.3 * rng.standard_normal(40), loss.low, loss.high)
    beta[:5] = 0.0
    active = np.arange(3, 40)
    state, gains = state_at(X, 0.5, beta), []
    for _ in range(5):
        before = state.beta[:, 0].copy()
        steps.step(active, state)
        after = state.beta[:, 0]
        assert ((after >= loss.low) & (after <= loss.high)).all()
        assert np.array_equal(after[:3], before[:3])  # not active
        if epsilon > 0.0:  # on this side of the kink at zero
            assert (after * before >= 0.0).all()
        gains.append(dual_objective(X, loss, 0.5, after) - dual_objective(X, loss, 0.5, before))
    assert min(gains) > -1e-12
    assert max(gains) > 1e-3
