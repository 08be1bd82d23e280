"""Problems of several Gram matrices in one call: the bits of one matrix after the other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from tests.margin.test_whole_problems import same
from tests.oracles.kernels import naive_gram

from margrove import SVC, SVR, NuSVC, NuSVR, OneClassSVM, watch
from margrove.exceptions import ConvergenceWarning
from margrove.margin.kernels import SharedGram, symmetric_gram, tile_of, tile_points
from margrove.margin.kernels.functions import (
    RBF,
    ChiSquare,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from margrove.margin.solvers.dual import (
    MatrixBuffers,
    MatrixProblems,
    SmoRule,
    solve_at_once,
    solve_with_matrices,
)
from margrove.margin.svm import problems

KERNELS = [RBF(gamma=0.3), Linear(), Polynomial(gamma=0.5, degree=2, coef0=1.0),
           Sigmoid(gamma=0.1), Laplacian(gamma=0.2), ChiSquare(gamma=0.4)]  # fmt: skip


@pytest.mark.nojit
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 150])
def test_small_matrices_are_symmetric_and_right(kernel, n) -> None:
    points = kernel.points(np.random.default_rng(n).random((n, 5)))
    K = symmetric_gram(kernel, points)
    assert np.array_equal(K, K.T)
    expected = naive_gram(kernel.name, points.X, points.X, **dataclasses.asdict(kernel))
    assert np.allclose(K, expected, rtol=1e-12, atol=1e-13)


def a_matrix(rng, n, kernel, tol=1e-4):
    """Points in three ranges, a problem for each pair of ranges; and the same for one matrix."""
    points = kernel.points(rng.random((n, 4)))
    parts = np.array_split(np.arange(n), 3)
    members = [np.concatenate([parts[i], parts[j]]) for i, j in ((0, 1), (0, 2), (1, 2))]
    stated = [
        problems.c_svc(np.where(np.arange(len(m)) < len(m) // 2, 1.0, -1.0), np.full(len(m), 3.0))
        for m in members
    ]
    rules = [SmoRule(tol=tol)] * 3
    tiles = [tile_of(np.empty((0, 0)), m) for m in members]
    sizes = [len(m) for m in members]
    diagonal = kernel.diagonal(points)
    own = MatrixProblems(tile_points(kernel, points), diagonal, stated, rules, tiles, sizes)
    shared = SharedGram(kernel, points, members, cache_bytes=10**8)
    found = solve_at_once(
        stated, rules, [shared.tile(m) for m in members], sizes, shared.diagonal, n_threads=1
    )
    return own, found


@pytest.mark.nojit
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_bits_are_those_of_one_matrix_after_the_other(n_threads) -> None:
    rng = np.random.default_rng(0)
    buffers = MatrixBuffers()
    for sizes in ((9, 40, 31, 24), (30,), (70, 12, 45)):  # memory is used again, and grows
        kernels = [KERNELS[k % len(KERNELS)] for k in range(len(sizes))]
        both = [a_matrix(rng, n, kernel) for n, kernel in zip(sizes, kernels, strict=True)]
        found = solve_with_matrices([own for own, _ in both], buffers, n_threads=n_threads)
        for results, (_, expected) in zip(found, both, strict=True):
            for result, other in zip(results, expected, strict=True):
                same(result, other)


@pytest.mark.parametrize("n", [1023, 1024, 1025, 1300])
def test_bits_do_not_depend_on_how_the_matrix_is_computed(n) -> None:
    own, expected = a_matrix(np.random.default_rng(n), n, RBF(gamma=2.0))
    [found] = solve_with_matrices([own], MatrixBuffers(), n_threads=1)
    for result, other in zip(found, expected, strict=True):
        same(result, other)


def test_a_matrix_with_an_unsolved_problem_says_so() -> None:
    rng = np.random.default_rng(1)
    solved, hopeless = (a_matrix(rng, 30, RBF(gamma=0.5), tol)[0] for tol in (1e-3, 1e-300))
    found = solve_with_matrices([solved, hopeless, solved], MatrixBuffers(), n_threads=2)
    assert [results is None for results in found] == [False, True, False]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "machine",
    [SVC(C=10.0), NuSVC(nu=0.2), SVR(C=10.0), NuSVR(), OneClassSVM(), SVC(multi_class="ovr")],
    ids=str,
)
def test_a_short_fit_has_the_bits_of_a_process(machine, form) -> None:
    """A fit that somebody watches is a process; others are one compiled call if they are short."""
    X = np.random.default_rng(0).random((90, 4))
    y = np.arange(90) % 3
    short = clone(machine).fit(form(X), y)
    with watch(on_progress=lambda progress: False):
        long = clone(machine).fit(form(X), y)
    for name in ("dual_coef_", "intercept_", "n_iter_", "support_"):
        found, expected = getattr(short, name), getattr(long, name)
        if sp.issparse(found):
            found, expected = found.toarray(), expected.toarray()
        assert np.array_equal(found, expected)


def test_a_limit_of_steps_is_kept_by_a_short_fit() -> None:
    X = np.random.default_rng(0).random((90, 4))
    with pytest.warns(ConvergenceWarning, match="max_iter=5"):
        assert SVC(C=10.0, max_iter=5).fit(X, np.arange(90) % 2).n_iter_[0] == 5
