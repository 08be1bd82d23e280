"""Newton steps of small problems in compiled code, against the process for problems of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from margrove import LinearSVC, LinearSVR
from margrove._data import kernel_rows
from margrove.margin.linear.problems import LinearProblem, OneVsRest, tube_loss
from margrove.margin.solvers.linear.choice import linear_process
from margrove.margin.solvers.linear.newton.newton_process import NewtonProcess
from margrove.margin.solvers.linear.newton.small_problems import (
    SmallNewton,
    is_for_gradients,
    is_small,
)
from margrove.margin.solvers.linear.result import LinearDemand, LinearResult

DEMAND = LinearDemand(tol=1e-7, epochs=300)


def table(m: int, d: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(m + d)
    X, rows = rng.standard_normal((m + 5, d)), rng.permutation(m + 5)[:m]
    shared = {"X": kernel_rows(X), "n_features": d, "rows": rows}
    return X, rows, shared | {"norms": (X[rows] ** 2).sum(axis=1)}


def of_classes(n_classes: int, *, squared: bool, price: float, d: int = 5) -> OneVsRest:
    X, rows, shared = table(80, d)
    codes = (X[rows, 0] + 0.5 * X[rows, -1] > 0).astype(np.int64)
    codes[:n_classes] = np.arange(n_classes)
    C = np.random.default_rng(1).uniform(0.1, 3.0, len(rows))
    n_machines = 1 if n_classes == 2 else n_classes
    return OneVsRest(
        **shared, codes=codes, C=C, n_machines=n_machines, squared=squared, bias_price=price
    )


def of_numbers(*, squared: bool, price: float, epsilon: float = 0.1) -> LinearProblem:
    X, rows, shared = table(70, 3)
    targets = X[rows, 0] + np.sin(3.0 * X[rows, 1])
    C = np.random.default_rng(2).uniform(0.1, 3.0, len(rows))
    loss = tube_loss(targets, C, epsilon, squared=squared)
    return LinearProblem(**shared, loss=loss, bias_price=price)


def solved(process: Any, work: float = 1e6) -> LinearResult:
    while not process.finished:
        process.advance(work)
    return process.result()


def problems() -> list[Any]:
    found: list[Any] = []
    for squared in (False, True):
        for price in (0.0, 0.25, np.inf):
            found += [of_classes(k, squared=squared, price=price) for k in (2, 4)]
            found += [of_numbers(squared=squared, price=price, epsilon=e) for e in (0.0, 0.2)]
    return found


@pytest.mark.parametrize("problem", problems())
def test_the_same_steps_as_on_large_problems(problem: Any) -> None:
    assert is_small(problem)
    small, large = SmallNewton(problem, DEMAND), NewtonProcess(problem, DEMAND)
    found, expected = solved(small), solved(large)
    assert found.converged.all()
    assert small.rounds_of_machines() == large.rounds_of_machines()
    for name in ("coef", "intercept", "primal", "dual"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-5, atol=1e-6)
    assert found.beta.shape == expected.beta.shape
    assert np.allclose(found.beta, expected.beta, atol=1e-2)
    assert (found.violation >= 0.0).all()


@pytest.mark.parametrize("squared", [False, True])
def test_slices_of_any_length_give_the_same_bits(squared: bool) -> None:
    problem = of_classes(3, squared=squared, price=0.0)
    whole, sliced = SmallNewton(problem, DEMAND), SmallNewton(problem, DEMAND)
    rounds = []
    while not sliced.finished:
        sliced.advance(1.0)
        rounds.append(sum(sliced.rounds_of_machines()))
        assert np.isfinite(sliced.result().coef).all()
    assert rounds == list(range(1, len(rounds) + 1))
    one, other = solved(whole), sliced.result()
    assert np.array_equal(one.coef, other.coef)
    assert np.array_equal(one.beta, other.beta)
    assert np.array_equal(one.violation, other.violation)


def test_some_of_the_machines() -> None:
    problem = of_classes(5, squared=True, price=0.0)
    all_machines = solved(SmallNewton(problem, DEMAND))
    some = solved(SmallNewton(problem, DEMAND, machines=range(2, 4)))
    assert np.array_equal(some.coef, all_machines.coef[2:4])
    assert np.array_equal(some.beta, all_machines.beta[:, 2:4])


def test_the_limit_of_rounds_ends_a_machine() -> None:
    problem = of_classes(3, squared=False, price=0.0)
    process = SmallNewton(problem, LinearDemand(tol=1e-12, epochs=2))
    found = solved(process)
    assert process.rounds_of_machines() == [2, 2, 2]
    assert not found.converged.any()
    assert (found.primal >= found.dual).all()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_enormous_and_tiny_prices_are_solved_by_the_solvers_together(scale: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4))
    y = X[:, 0] + 0.3 * rng.standard_normal(60)
    for model, target in (
        (LinearSVC(C=scale, loss="hinge"), y > 0),
        (LinearSVC(C=scale), y > 0),
        (LinearSVR(C=scale, epsilon=0.1), y),
    ):
        assert model.fit(X, target).certificate_.relative_gap <= 1e-4


def test_what_is_small() -> None:
    assert not is_small(of_classes(2, squared=True, price=0.0, d=65))
    assert is_small(of_classes(2, squared=True, price=0.0, d=64))


# -- systems solved by conjugate gradients --


def of_many_features(price: float, kind: Any = np.float64, *, scale: float = 1.0) -> LinearProblem:
    rng = np.random.default_rng(5)
    turned = np.linalg.qr(rng.standard_normal((90, 90)))[0]
    X = rng.standard_normal((150, 90)) @ (turned * np.logspace(0.0, np.log10(scale), 90)) @ turned.T
    X = X.astype(kind)
    rows = rng.permutation(150)[:140]
    shared = {"X": kernel_rows(X), "n_features": 90, "rows": rows}
    shared |= {"norms": (X[rows].astype(np.float64) ** 2).sum(axis=1)}
    targets = X[rows, 0] + np.sin(3.0 * X[rows, 1]) + rng.standard_normal(140)
    C = rng.uniform(0.1, 3.0, len(rows))
    return LinearProblem(**shared, loss=tube_loss(targets, C, 0.1, squared=True), bias_price=price)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("price", [0.0, 0.25, np.inf])
def test_conjugate_gradients_lead_to_the_same_solution(price: float, kind: Any) -> None:
    for problem in (
        of_many_features(price, kind),
        of_classes(2, squared=True, price=price, d=75),
    ):
        assert is_for_gradients(problem)
        assert not is_small(problem)
        process = SmallNewton(problem, DEMAND)
        found, expected = solved(process), solved(NewtonProcess(problem, DEMAND))
        assert found.converged.all()
        assert not process.is_slow
        for name in ("coef", "intercept", "primal", "dual"):
            assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-4, atol=1e-4)
        assert np.allclose(found.beta, expected.beta, atol=1e-2)
        assert (found.dual <= expected.primal + 1e-9).all()
        if price == 0.0:
            assert abs(found.beta.sum()) < 1e-9


def test_slices_by_conjugate_gradients_give_the_same_bits() -> None:
    problem = of_many_features(0.0)
    whole, sliced = SmallNewton(problem, DEMAND), SmallNewton(problem, DEMAND)
    while not sliced.finished:
        sliced.advance(1.0)
    one, other = solved(whole), sliced.result()
    assert whole.rounds == sliced.rounds
    assert np.array_equal(one.coef, other.coef)
    assert np.array_equal(one.beta, other.beta)


def test_slow_conjugate_gradients_are_noticed_and_systems_are_factorised() -> None:
    problem = of_many_features(0.0, scale=1e5)
    process = SmallNewton(problem, DEMAND)
    while not process.finished and not process.is_slow:
        process.advance(1.0)
    assert process.is_slow
    assert not process.finished
    together = linear_process(problem, DEMAND, kind="l2", solver="auto")
    names = set()
    while not together.finished:
        names.add(type(together._process).__name__)
        together.advance(1.0)
    assert "NewtonProcess" in names
    assert together.result().converged.all()


def test_what_is_for_conjugate_gradients() -> None:
    assert not is_for_gradients(of_classes(2, squared=True, price=0.0, d=64))  # small
    assert is_for_gradients(of_classes(2, squared=True, price=0.0, d=65))
    assert not is_for_gradients(of_classes(2, squared=False, price=0.0, d=65))  # kinks
    assert not is_for_gradients(of_classes(3, squared=True, price=0.0, d=65))  # machines together
    assert not is_for_gradients(of_classes(2, squared=True, price=0.0, d=81))  # wide
