"""Inverses of small symmetric matrices, and descents on faces, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from margrove.margin.solvers.dual.c_path import PathMachine
from margrove.margin.solvers.dual.face_newton import descend_on_faces
from margrove.margin.solvers.dual.symmetric_inverse import factorise, invert, multiply


def lower(A, room):
    """Its lower triangle in a larger array; what must not be read is NaN."""
    L = np.full((len(A) + room, len(A) + room), np.nan)
    below = np.tril_indices(len(A))
    L[below] = A[below]
    return L


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 66])
def test_inverse_and_product(n):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n + 3))
    A = A @ A.T + 0.1 * np.eye(n)
    L = lower(A, 2)
    assert factorise(L, n)
    np.testing.assert_allclose(np.tril(L[:n, :n]), np.linalg.cholesky(A), atol=1e-10)
    invert(L, n)
    M = np.linalg.inv(A)
    np.testing.assert_allclose(L[np.tril_indices(n)], M[np.tril_indices(n)], atol=1e-8)
    x, found = rng.standard_normal(n), np.empty(n)
    multiply(L, n, x, found)
    np.testing.assert_allclose(found, M @ x, atol=1e-8)


def test_an_indefinite_matrix_has_no_factor():
    assert not factorise(lower(np.array([[1.0, 2.0], [2.0, 1.0]]), 0), 2)


@pytest.mark.parametrize("C", [3.0, 30.0, 1000.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_descent_ends_at_the_optimum(C, seed):
    """From any feasible point; the violation is that of the definition."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3))
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    u, alpha = np.full(60, C), np.zeros(60)
    for sign in (1.0, -1.0):  # some free variables of both classes, with equal sums
        some = np.flatnonzero(y == sign)[:10]
        alpha[some] = 0.5 * C
    values, f = K @ (y * alpha), np.empty(60)
    machine = PathMachine(np.arange(60), y, -np.ones(60), np.ones(60))
    n_changes = descend_on_faces(K, machine, u, alpha, values, f, 1e-6, 400)
    assert n_changes > 0
    assert np.all((alpha >= 0) & (alpha <= C))
    assert abs(y @ alpha) < 1e-9 * C
    np.testing.assert_allclose(values, K @ (y * alpha), atol=1e-9 * max(1.0, C))
    gradient = K @ (y * alpha) - y
    up = np.where(y > 0, alpha < u, alpha > 0)
    low = np.where(y > 0, alpha > 0, alpha < u)
    assert gradient[low].max() - gradient[up].min() < 1e-6


def test_a_descent_stops_after_the_given_number_of_changes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.where(np.arange(60) < 30, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    alpha = np.full(60, 0.5)
    values, f = K @ (y * alpha), np.empty(60)
    machine = PathMachine(np.arange(60), y, -np.ones(60), np.ones(60))
    n_changes = descend_on_faces(K, machine, np.ones(60), alpha, values, f, 1e-6, 3)
    assert 3 <= n_changes <= 5
    np.testing.assert_allclose(values, K @ (y * alpha), atol=1e-12)
    assert abs(y @ alpha) < 1e-12


def test_equal_rows_have_no_inverse_but_do_no_harm():
    K = np.ones((6, 6))
    y = np.array([1.0, -1.0] * 3)
    alpha = np.full(6, 0.5)
    values, f = K @ (y * alpha), np.empty(6)
    machine = PathMachine(np.arange(6), y, -np.ones(6), np.ones(6))
    descend_on_faces(K, machine, np.ones(6), alpha, values, f, 1e-6, 10)
    assert np.all((alpha >= 0) & (alpha <= 1))
    assert abs(y @ alpha) < 1e-12
    np.testing.assert_allclose(values, K @ (y * alpha), atol=1e-9)
