"""Block SMO against an interior-point method, on every formulation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.quadratic import objective, solve_qp

from margrove.margin.kernels.functions import RBF, Linear, Polynomial
from margrove.margin.kernels.gram_matrices import gram_of
from margrove.margin.solvers.dual import SmoProcess, SmoRule
from margrove.margin.svm import problems

KERNELS = [Linear(), RBF(gamma=0.5), RBF(gamma=20.0), Polynomial(gamma=1.0, degree=2, coef0=1.0)]
FORMULATIONS = ["c_svc", "nu_svc", "epsilon_svr", "nu_svr", "one_class"]


def a_problem(formulation, rng, n, d):
    X = rng.normal(size=(n, d))
    signs = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    signs = np.sort(signs)  # classes stand one after the other
    weight = rng.uniform(0.5, 2.0, size=n)
    C = weight * 10.0 ** rng.uniform(-2, 2)
    targets = X[:, 0] ** 2 + 0.3 * rng.normal(size=n)
    nu = rng.uniform(0.05, 0.9)
    builders = {
        "c_svc": lambda: problems.c_svc(signs, C),
        "nu_svc": lambda: problems.nu_svc(
            signs, nu * problems.largest_feasible_nu(signs, weight), weight
        ),
        "epsilon_svr": lambda: problems.epsilon_svr(targets, C, 0.1),
        "nu_svr": lambda: problems.nu_svr(targets, C, nu),
        "one_class": lambda: problems.one_class(weight, nu),
    }
    return X, builders[formulation]()


def run(problem, X, kernel, n_threads=1, **rule):
    gram = gram_of(kernel, kernel.points(X), cache_bytes=10**8, n_threads=n_threads)
    process = SmoProcess(problem, gram, SmoRule(**rule), n_threads=n_threads)
    while not process.finished:
        process.advance(1.0)
    return process.result()


def best_objective(problem, X, kernel):
    K = kernel(X)[np.ix_(problem.rows, problem.rows)]
    Q = problem.y[:, None] * K * problem.y
    A = np.vstack([problem.y, np.ones(len(problem))]) if problem.keeps_sum else problem.y[None]
    alpha = solve_qp(Q, problem.p, A, A @ problem.start, problem.u)
    return objective(Q, problem.p, alpha), Q


@pytest.mark.parametrize("formulation", FORMULATIONS)
@settings(max_examples=200)
@given(seed=st.integers(0, 10**6), kernel=st.sampled_from(KERNELS), n=st.integers(4, 40))
def test_objective_is_that_of_an_interior_point_method(formulation, seed, kernel, n):
    X, problem = a_problem(formulation, np.random.default_rng(seed), n, 3)
    best, Q = best_objective(problem, X, kernel)
    scale = max(abs(best), 1e-3)
    for tol, relative in ((1e-6, 1e-6), (1e-8, 1e-9)):
        found = run(problem, X, kernel, tol=tol)
        assert found.converged
        assert ((found.alpha >= 0) & (found.alpha <= problem.u)).all()
        assert abs(problem.y @ (found.alpha - problem.start)) <= 1e-9 * problem.u.max()
        if problem.keeps_sum:
            assert abs((found.alpha - problem.start).sum()) <= 1e-9 * problem.u.max()
        assert objective(Q, problem.p, found.alpha) - best <= relative * scale


@pytest.mark.parametrize("formulation", FORMULATIONS)
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from([RBF(gamma=0.5), RBF(gamma=20.0)]),
    block=st.sampled_from([16, 32]),
)
def test_blocks_smaller_than_the_problem_lead_to_the_same_solution(
    formulation, seed, kernel, block
):
    X, problem = a_problem(formulation, np.random.default_rng(seed), 40, 3)
    best, Q = best_objective(problem, X, kernel)
    found = run(problem, X, kernel, tol=1e-6, block=block)
    assert found.converged
    assert ((found.alpha >= 0) & (found.alpha <= problem.u)).all()
    assert objective(Q, problem.p, found.alpha) - best <= 1e-6 * max(abs(best), 1e-3)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), kernel=st.sampled_from(KERNELS))
def test_any_feasible_start_leads_to_the_same_solution(formulation, seed, kernel):
    rng = np.random.default_rng(seed)
    X, problem = a_problem(formulation, rng, 30, 3)
    best, Q = best_objective(problem, X, kernel)
    total = problem.y @ problem.start
    for guess in (
        np.zeros(len(problem)),
        problem.u,
        rng.uniform(0, 1, len(problem)) * problem.u,
        10.0 * rng.uniform(0, 1, len(problem)) * problem.u,
        rng.integers(0, 2, len(problem)) * problem.u,
    ):
        moved = problem.starting_near(guess)
        assert ((moved.start >= 0) & (moved.start <= problem.u * (1 + 1e-12))).all()
        assert abs(problem.y @ moved.start - total) <= 1e-9 * problem.u.sum()
        if problem.keeps_sum:
            assert abs((moved.start - problem.start).sum()) <= 1e-9 * problem.u.sum()
        found = run(moved, X, kernel, tol=1e-6)
        assert objective(Q, problem.p, found.alpha) - best <= 1e-6 * max(abs(best), 1e-3)


def test_the_solution_is_a_start_that_stays():
    for formulation in FORMULATIONS:
        X, problem = a_problem(formulation, np.random.default_rng(0), 40, 3)
        solved = run(problem, X, RBF(gamma=0.5), tol=1e-8)
        again = run(problem.starting_near(solved.alpha), X, RBF(gamma=0.5), tol=1e-6)
        assert again.iterations == 0, formulation


class RecordedRows:
    """Rows of K that note how many variables each block has."""

    def __init__(self, rows):
        self._rows = rows
        self.sizes = []

    def __getattr__(self, name):
        return getattr(self._rows, name)

    def __len__(self):
        return len(self._rows)

    def grow(self, rows, *others):
        self.sizes.append(len(rows))
        self._rows.grow(rows, *others)


@pytest.mark.parametrize(("distance", "is_easy"), [(3.0, True), (0.2, False)])
def test_blocks_grow_if_there_are_many_support_vectors(distance, is_easy) -> None:
    rng = np.random.default_rng(0)
    signs = np.repeat([-1.0, 1.0], 1500)
    X = rng.normal(size=(3000, 2)) + distance * signs[:, None]
    kernel = RBF(gamma=0.02)
    problem = problems.c_svc(signs, np.full(3000, 1.0))
    gram = gram_of(kernel, kernel.points(X), cache_bytes=10**8)
    recorded = RecordedRows(gram.fast)
    process = SmoProcess(problem, dataclasses.replace(gram, fast=recorded), SmoRule())
    while not process.finished:
        process.advance(1.0)
    assert process.result().converged
    assert max(recorded.sizes) == (256 if is_easy else 2048)
    assert recorded.sizes[0] == 256
