"""The sums of Newton's method over rows: X'DX that changes with its rows, and bits on threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from margrove import LinearSVC, LinearSVR
from margrove._data import kernel_rows
from margrove.margin.linear import LinearProblem, LossOfRows
from margrove.margin.solvers.linear import Tile
from margrove.margin.solvers.linear.newton.normal_equations import BorderedSquares, bordered_squares
from margrove.margin.solvers.linear.row_groups import RowGroups, reading_order


def _table(kind: str, n: int, d: int) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(n, d))
    return X.astype(np.float32) if kind == "float32" else X * (np.abs(X) > 1.0)


def _given(kind: str, X: np.ndarray) -> object:
    return sp.csr_array(X) if kind == "sparse" else X


def _bordered(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    extended = np.column_stack([X.astype(np.float64), np.ones(len(X))])
    return extended.T @ (weight[:, None] * extended)


def _tile(X: object, rows: np.ndarray, factor: np.ndarray, n_threads: int = 1) -> Tile:
    """A tile of two machines over some rows, whose curvature is `factor` where it is not zero."""
    ends = np.full(len(rows), np.inf)
    loss = LossOfRows(np.ones(len(rows)), -ends, ends, 1.0 / factor, 0.0)
    problem = LinearProblem(kernel_rows(X), X.shape[1], rows, np.ones(len(rows)), loss, 0.0)
    return Tile(problem, X.shape[1], 2, 2, n_threads)


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
@pytest.mark.parametrize(("n", "d"), [(40, 3), (9_000, 7), (700, 300)])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n_tiles", [1, 3])
def test_squares_follow_the_flags_of_their_rows(kind, n, d, n_threads, n_tiles) -> None:
    rng = np.random.default_rng(1)
    X, factor = _table(kind, n, d), rng.random(n) + 0.5
    rows = np.array_split(np.sort(rng.permutation(n)[: n - 5]), n_tiles)
    tiles = [_tile(_given(kind, X), some, factor[some], n_threads) for some in rows]
    squares = BorderedSquares(tiles, d, 2)
    machines = np.arange(2)
    for share in (1.0, 0.9, 0.88, 0.1, 0.11, 0.0):
        counted, changed = np.zeros(2), np.zeros(2)
        expected = np.zeros((2, d + 1, d + 1))
        for tile, some in zip(tiles, rows, strict=True):
            flags = rng.random((2, len(some))) < share
            changed += (flags != tile.flags[squares.known, machines]).sum(axis=1)
            counted += flags.sum(axis=1)
            tile.flags[1 - squares.known, machines] = flags
            expected += [_bordered(X[some], factor[some] * flags[k]) for k in machines]
        found = squares.update(machines, counted, changed, np.ones(2))
        for k in machines:
            assert np.allclose(np.tril(found[k]), np.tril(expected[k]), rtol=1e-9, atol=1e-9)
            assert np.array_equal(found[k], found[k].T)


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
@pytest.mark.parametrize(("n", "d"), [(40, 3), (60_000, 7)])
def test_sums_are_products_of_matrices(kind, n, d) -> None:
    rng = np.random.default_rng(2)
    X, rows = _table(kind, n, d), rng.permutation(n)[: n // 2]
    view = kernel_rows(_given(kind, X))
    order = reading_order(view, d, rows)
    assert np.array_equal(np.sort(order), np.arange(len(rows)))
    if n > 1000:  # a large table is read in the order of its memory
        assert np.array_equal(rows[order], np.sort(rows))
    groups = RowGroups(view, d, rows[order], n_threads=2)
    chosen = X[rows[order]].astype(np.float64)
    P, b, weight = rng.normal(size=(3, d)), rng.normal(size=3), rng.random(len(rows))
    found = np.empty((3, len(rows)))
    groups.products(P, b, np.array([2, 0, 1]), found)
    assert np.allclose(found[[2, 0, 1]], P @ chosen.T + b[:, None])
    B = rng.normal(size=(3, len(rows)))
    assert np.allclose(groups.combinations(B), B @ chosen)
    assert np.allclose(bordered_squares(groups, weight), _bordered(chosen, weight))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(solver="newton"),
        LinearSVC(solver="newton", loss="hinge"),
        LinearSVC("l1", solver="newton", C=0.01),
        LinearSVR(solver="newton"),
        LinearSVR(solver="newton", loss="squared_epsilon_insensitive"),
    ],
)
def test_newton_steps_have_the_same_bits_on_any_number_of_threads(model) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12_000, 9))
    y = (X @ rng.normal(size=(9, 4)) + rng.normal(size=(12_000, 4))).argmax(axis=1)
    found = []
    for n_jobs in (1, 2, 5):
        model.set_params(n_jobs=n_jobs).fit(X, y)
        result = model._record.result
        found.append([model.coef_, model.intercept_, result.beta, result.primal, result.dual])
        assert result.converged.all()
    for other in found[1:]:
        assert all(map(np.array_equal, found[0], other))


def test_more_machines_than_are_solved_together() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 5))
    y = (X @ rng.normal(size=(5, 11))).argmax(axis=1)
    together = LinearSVC(solver="newton", tol=1e-8).fit(X, y)
    for k in (0, 10):
        alone = LinearSVC(solver="newton", tol=1e-8).fit(X, y == k)
        assert np.abs(together.coef_[k] - alone.coef_[0]).max() < 1e-4
        assert np.isclose(together._record.result.primal[k], alone._record.result.primal[0])
