"""Small problems in one compiled call: the same bits as one by one, whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.margin.test_smo import FORMULATIONS, KERNELS, a_problem
from tests.oracles.quadratic import objective, solve_qp

from margrove.margin.kernels import SharedGram
from margrove.margin.kernels.functions import RBF
from margrove.margin.solvers.dual import SmoProcess, SmoRule, SolverResult, solve_at_once
from margrove.margin.solvers.dual.whole_problems import FirstRound
from margrove.margin.svm import problems


def to_its_end(process):
    while not process.finished:
        process.advance(1.0)
    return process.result()


def shared_gram(kernel, X, members):
    return SharedGram(kernel, kernel.points(X), members, cache_bytes=10**8)


def at_once(stated, rules, gram, members, n_threads=1):
    return solve_at_once(
        stated,
        rules,
        [gram.tile(each) for each in members],
        [len(each) for each in members],
        gram.diagonal,
        n_threads=n_threads,
    )


def same(first, second):
    assert np.array_equal(first.alpha, second.alpha)
    for name in ("rho", "r", "objective", "violation", "iterations", "converged", "trace"):
        assert getattr(first, name) == getattr(second, name), name


@pytest.mark.parametrize("formulation", FORMULATIONS)
@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(KERNELS),
    n=st.integers(4, 40),
    tol=st.sampled_from([1e-2, 1e-3, 1e-8]),
    max_iter=st.sampled_from([-1, -1, 3]),
)
def test_bits_are_those_of_the_process(formulation, seed, kernel, n, tol, max_iter) -> None:
    """Also where a first round is not enough, and where the number of steps is limited."""
    X, problem = a_problem(formulation, np.random.default_rng(seed), n, 3)
    members, rule = np.arange(n), SmoRule(tol=tol, max_iter=max_iter)
    gram = shared_gram(kernel, X, [members])
    expected = to_its_end(SmoProcess(problem, gram.of_points(members), rule))
    [found] = at_once([problem], [rule], gram, [members])
    if isinstance(found, FirstRound):
        process = SmoProcess(problem, gram.of_points(members), rule).go_on(found)
        same(to_its_end(process), expected)
    else:
        same(found, expected)
        assert found.converged


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_pairs_of_classes_are_parts_of_one_matrix(n_threads) -> None:
    rng = np.random.default_rng(0)
    sizes = [7, 12, 3, 20]
    ends = np.cumsum(sizes)
    X = rng.normal(size=(ends[-1], 3)) + np.repeat(rng.normal(size=(4, 3)), sizes, axis=0)
    ranges = [np.arange(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    kernel = RBF(gamma=0.5)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    members = [np.concatenate([ranges[i], ranges[j]]) for i, j in pairs]
    stated = [
        problems.c_svc(np.repeat([1.0, -1.0], [sizes[i], sizes[j]]), np.full(len(each), 2.0))
        for (i, j), each in zip(pairs, members, strict=True)
    ]
    rules = [SmoRule(tol=1e-6)] * len(pairs)
    found = at_once(stated, rules, shared_gram(kernel, X, members), members, n_threads)
    for problem, each, result in zip(stated, members, found, strict=True):
        assert isinstance(result, SolverResult)
        Q = problem.y[:, None] * kernel(X[each]) * problem.y
        best = solve_qp(Q, problem.p, problem.y[None], np.zeros(1), problem.u)
        assert objective(Q, problem.p, result.alpha) <= objective(Q, problem.p, best) + 1e-6
        alone = shared_gram(kernel, X[each], [np.arange(len(each))])
        [same_result] = at_once([problem], rules[:1], alone, [np.arange(len(each))])
        assert np.allclose(result.alpha, same_result.alpha, rtol=1e-9, atol=1e-12)


def test_a_tolerance_below_rounding_is_left_to_the_process() -> None:
    X, problem = a_problem("c_svc", np.random.default_rng(3), 30, 3)
    members = np.arange(30)
    gram = shared_gram(RBF(gamma=0.5), X, [members])
    [found] = at_once([problem], [SmoRule(tol=1e-300)], gram, [members])
    assert isinstance(found, FirstRound)
    assert found.steps > 0
    result = to_its_end(
        SmoProcess(problem, gram.of_points(members), SmoRule(tol=1e-300)).go_on(found)
    )
    assert not result.converged
    assert result.violation < 1e-10
