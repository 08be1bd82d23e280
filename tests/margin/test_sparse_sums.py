"""Expansions of sparse rows: values of pairs, whatever the other rows, threads and index types."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.kernels import naive_gram

from margrove import SVC, SVR
from margrove.margin.kernels import RBF, Linear, Polynomial, Sigmoid, kernel_sums

KERNELS = [RBF(0.3), Linear(), Polynomial(0.5, 3, 1.0), Sigmoid(0.2, -0.4)]


def table(n, d=30, density=0.2, seed=0):
    X = sp.random_array((n, d), density=density, format="csr", rng=np.random.default_rng(seed))
    X.data -= 0.4
    return X


def sums(kernel, X, V, coef, edges=None, n_threads=1):
    return kernel_sums(kernel, kernel.points(X), kernel.points(V), coef, edges, n_threads=n_threads)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("density", [0.02, 0.9])
def test_values_are_those_of_the_formula(kernel, density) -> None:
    X, V = table(300, density=density), table(40, density=density, seed=1)
    names = {"gamma": 0.0, "coef0": 0.0, "degree": 1}
    parameters = {name: getattr(kernel, name, default) for name, default in names.items()}
    expected = naive_gram(kernel.name, X.toarray(), V.toarray(), **parameters)
    assert np.allclose(sums(kernel, X, V, np.eye(40)), expected, rtol=1e-12, atol=1e-14)
    coef = np.random.default_rng(2).normal(size=(40, 3))
    edges = np.array([0, 10, 10, 40])  # the second group is empty
    found = sums(kernel, X, V, coef, edges)
    assert np.allclose(found[0], expected[:, :10] @ coef[:10], rtol=1e-12, atol=1e-12)
    assert not found[1].any()
    assert np.allclose(found[2], expected[:, 10:] @ coef[10:], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.3), Linear()], ids=repr)
def test_values_have_the_bits_of_the_gram_matrix(kernel) -> None:
    X, V = table(300), table(700, seed=1)
    A, B = kernel.points(X), kernel.points(V)
    block = np.empty((300, 700))
    kernel.block(A, B, block)
    assert np.array_equal(sums(kernel, X, V, np.eye(700)), block)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n_columns", [1, 9])
def test_a_row_does_not_depend_on_others_or_on_threads(kernel, n_columns) -> None:
    X, V = table(600), table(1100, seed=1)
    coef, edges = np.random.default_rng(2).normal(size=(1100, n_columns)), np.array([0, 600, 1100])
    found = sums(kernel, X, V, coef, edges)
    assert np.array_equal(sums(kernel, X, V, coef, edges, n_threads=3), found)
    for rows in ([0], [599], [5, 17], range(100, 400)):
        some = sums(kernel, X[list(rows)], V, coef, edges)
        assert np.array_equal(some, found[:, list(rows)])


def test_order_and_repetition_of_stored_entries() -> None:
    X = table(50)
    doubled = sp.csr_array((np.array([0.25, 1.0, 0.5, -2.0]), [7, 2, 7, 0], [0, 3, 3, 4]), (3, 30))
    plain = doubled.copy()
    plain.sum_duplicates()
    for kernel in KERNELS:
        norms = kernel.points(plain)
        points = type(norms)(doubled, norms.squared_norms, norms.columns)
        found = kernel_sums(kernel, kernel.points(X), points, np.eye(3))
        assert np.allclose(found, sums(kernel, X, plain, np.eye(3)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_empty_rows_and_vectors(kernel) -> None:
    nothing, V = sp.csr_array((5, 30)), table(20, seed=1)
    expected = np.full((5, 20), kernel(np.zeros((1, 30)), np.zeros((1, 30)))[0, 0])
    if not isinstance(kernel, RBF):
        assert np.allclose(sums(kernel, nothing, V, np.eye(20)), expected)
        assert np.allclose(sums(kernel, V, nothing, np.eye(5)), expected.T)
    assert not sums(kernel, table(5), V[:0], np.empty((0, 2))).any()


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_predictions_of_one_row_are_those_among_others(n_classes) -> None:
    X = table(300)
    y = np.random.default_rng(0).integers(0, n_classes, 300)
    model = SVC(decision_function_shape="ovo").fit(X, y)
    values, labels = model.decision_function(X), model.predict(X)
    dense = SVC(decision_function_shape="ovo").fit(X.toarray(), y).decision_function(X.toarray())
    assert np.allclose(values, dense, atol=1e-2)  # two fits, each up to tol
    wide, narrow = X.copy(), X.astype(np.float32)
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert np.array_equal(model.decision_function(wide), values)
    assert np.allclose(model.decision_function(narrow), values, atol=1e-5)
    for k in range(0, 300, 37):
        assert np.array_equal(model.decision_function(X[[k]])[0], values[k])
        assert model.predict(X[[k]])[0] == labels[k]


def test_squared_norms_are_those_of_the_rows() -> None:
    X = table(60)
    for given in (X, X.astype(np.float32), sp.csr_array((4, 3))):
        norms = Linear().points(given).squared_norms
        assert norms.dtype == np.float64
        assert np.allclose(norms, (given.toarray().astype(np.float64) ** 2).sum(axis=1), rtol=1e-14)


def test_regression_of_sparse_rows() -> None:
    X = table(400)
    y = np.asarray(X.sum(axis=1)).ravel()
    model = SVR(kernel="poly", C=10.0).fit(X, y)
    expected = model.kernel_(X, model.support_vectors_) @ model.dual_coef_.toarray()[0]
    assert np.allclose(model.predict(X), expected + model.intercept_, rtol=1e-10, atol=1e-10)
