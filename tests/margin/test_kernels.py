"""Every kernel of the registry: formula, symmetry, positive definiteness, blocks, dtypes."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC
from tests.oracles.kernels import FORMULAS, naive_gram

import margrove
from margrove.exceptions import InvalidDataError, NumericalOverflowError
from margrove.margin.kernels.functions import RBF, Linear, Polynomial
from margrove.margin.kernels.given_kernels import CallableKernel, Precomputed
from margrove.margin.kernels.gram_tiles import gram
from margrove.margin.kernels.kernel import INVARIANCES, Kernel, Points
from margrove.margin.kernels.registry import KERNELS, resolve_kernel


def product(X, Z):
    """In the module, so that it can be pickled."""
    return X @ Z.T


PARAMETERS = {"gamma": 0.7, "degree": 3, "coef0": 0.5}


def make(name, **changes):
    fields = {field.name for field in dataclasses.fields(KERNELS[name])}
    chosen = {key: value for key, value in (PARAMETERS | changes).items() if key in fields}
    return KERNELS[name](**chosen)


def rows(n=30, d=4, seed=0):
    return np.random.default_rng(seed).random((n, d)) * 2


@pytest.mark.nojit
def test_every_kernel_has_its_formula_in_the_oracle() -> None:
    assert set(KERNELS) == set(FORMULAS)


@pytest.mark.nojit
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_values_are_those_of_the_formula(name) -> None:
    X, Z = rows(13), rows(7, seed=1)
    expected = naive_gram(name, X, Z, **PARAMETERS)
    kernel = make(name)
    assert np.allclose(kernel(X, Z), expected, rtol=1e-13, atol=1e-14)
    assert np.allclose(kernel(sp.csr_array(X), sp.csc_matrix(Z)), expected, rtol=1e-13, atol=1e-14)
    single = kernel(X.astype(np.float32), Z.astype(np.float32))
    assert single.dtype == np.float32
    assert np.allclose(single, expected, rtol=2e-5)
    diagonal = kernel.diagonal(kernel.points(X))
    assert np.allclose(diagonal, np.diag(naive_gram(name, X, X, **PARAMETERS)), rtol=1e-13)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_gram_matrices_are_symmetric_and_positive_where_promised(name) -> None:
    K = make(name)(rows(60))
    assert np.allclose(K, K.T, rtol=1e-14, atol=0)
    if KERNELS[name].positive_definite:
        assert np.linalg.eigvalsh((K + K.T) / 2).min() > -1e-10 * np.abs(K).max()


def test_sigmoid_is_rightly_not_promised_to_be_positive() -> None:
    K = make("sigmoid", coef0=-1.0)(rows(60))
    assert np.linalg.eigvalsh(K).min() < -1e-6


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_entry_depends_on_its_two_points_only(name, dtype, sparse) -> None:
    """Whatever stands beside them, however many threads, wherever the tile ends."""
    kernel = make(name, gamma=0.1)
    X = rows(700).astype(dtype)
    A = kernel.points(sp.csr_array(X) if sparse else X)
    whole = gram(kernel, A, A)
    assert np.array_equal(whole, gram(kernel, A, A, n_threads=3))
    picked = np.array([0, 255, 256, 511, 512, 699])
    assert np.array_equal(whole[picked], gram(kernel, A.take(picked), A))
    assert np.array_equal(whole[:, picked], gram(kernel, A, A.take(picked)))
    out = np.empty((6, 700), dtype)
    assert gram(kernel, A.take(picked), A, out=out) is out


@given(
    st.lists(st.floats(0, 800), min_size=1, max_size=40),
    st.sampled_from([(np.float64, 4e-16), (np.float32, 4e-7)]),
)
def test_the_vectorised_exponential_is_accurate(exponents, precision) -> None:
    """exp(-gamma d^2) on the line: the relative error is a few units in the last place of x."""
    dtype, unit = precision
    z = np.sqrt(np.array(exponents)).astype(dtype)[:, None]
    kernel = RBF(gamma=1.0)
    values = gram(kernel, kernel.points(np.zeros((1, 1), dtype)), kernel.points(z))[0]
    exact = np.exp(-(z[:, 0].astype(np.float64) ** 2))
    limit = np.finfo(dtype).tiny * 2
    tolerance = unit * (4 + np.array(exponents)) * exact
    assert (np.abs(values - exact) <= tolerance + limit).all()
    assert (values > 0).all()


@pytest.mark.nojit
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_one_side_sparse_and_the_other_dense(name) -> None:
    X, Z = rows(20) + 3, rows(9, seed=1) + 3
    kernel = make(name, gamma=0.1)
    expected = kernel(X, Z)
    assert np.allclose(kernel(sp.csr_array(X), Z), expected, rtol=1e-10)
    assert np.allclose(kernel(X, sp.csr_array(Z)), expected, rtol=1e-10)
    if name == "sigmoid":
        return
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    model = margrove.KernelPerceptron(kernel=kernel, max_iter=5, tol=None).fit(X, y)
    there, here = model.decision_function(sp.csr_array(X)), model.decision_function(X)
    assert np.allclose(there, here, rtol=1e-7, atol=1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_points_of_two_spaces_are_refused(name, form) -> None:
    with pytest.raises(InvalidDataError, match="X has 5 columns and Z has 3"):
        make(name)(form(np.ones((2, 5))), form(np.ones((2, 3))))


@pytest.mark.nojit
@pytest.mark.parametrize("spread", [1.0, 1e2, 1e4, 1e6])
def test_float32_rows_of_any_scale_have_the_right_distances(spread) -> None:
    X = rows(40).astype(np.float32)
    X[:, 0] *= spread
    K = RBF(gamma=0.5)(X)
    assert np.allclose(np.diag(K), 1.0, atol=2e-4)
    assert np.allclose(K, naive_gram("rbf", X.astype(float), X.astype(float), gamma=0.5), atol=5e-4)


@pytest.mark.nojit
@pytest.mark.parametrize(
    "parameters",
    [{"gamma": -1.0}, {"gamma": np.nan}, {"gamma": np.inf}, {"gamma": "1"}, {"sigma": 0.0}],
)
def test_parameters_of_kernel_objects_are_checked(parameters) -> None:
    with pytest.raises(ValueError, match=r"gamma|sigma"):
        RBF(**parameters)


@pytest.mark.nojit
def test_single_precision_values_depend_on_their_two_points_only() -> None:
    X = (rows(60) * 20).astype(np.float32)
    kernel = RBF(gamma=0.05)
    far = np.vstack([X, np.full((1, 4), 3000, np.float32)])
    A = kernel.points(X)
    assert np.array_equal(gram(kernel, A, kernel.points(far))[:, :60], gram(kernel, A, A))
    assert kernel(X).dtype == np.float32


@pytest.mark.nojit
def test_kernel_classes_are_not_kernels() -> None:
    for wrong in (RBF, Kernel()):
        with pytest.raises(ValueError, match="'kernel' parameter must be a kernel, not a class"):
            margrove.KernelPerceptron(kernel=wrong).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(NumericalOverflowError):
        Linear()([[1e200], [-1e200]])
    assert RBF(sigma=1e200).gamma == 0.0
    quotient = KERNELS["chi2"](gamma=1e-150)([[1e150], [2e150]])
    assert quotient[0, 1] == pytest.approx(np.exp(-1 / 3))


@pytest.mark.nojit
def test_broken_powers_are_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        Polynomial(degree=2.5)
    with pytest.raises(ValueError, match="must not be negative"):
        Polynomial(degree=-2)
    with pytest.raises(ValueError, match="'degree' parameter"):
        margrove.KernelPerceptron(kernel="poly", degree=2.5).fit([[-1.0], [1.0]], [0, 1])


@pytest.mark.nojit
def test_extreme_data_end_in_errors_not_in_nan() -> None:
    X = rows(20) - 1
    y = np.arange(20) % 2
    with pytest.raises(NumericalOverflowError, match="gamma='scale'"):
        margrove.KernelPerceptron().fit(X * 1e-158, y)
    cubic = margrove.KernelPerceptron(kernel="poly").fit(X, y)
    with pytest.raises(NumericalOverflowError, match="row 0 of X"):
        cubic.decision_function([[1e150, -1e150, 1e150, 0.0]])
    with pytest.raises(NumericalOverflowError, match="overflow"):
        margrove.KernelPerceptron(kernel="linear", max_iter=500, tol=None).fit(X * 9e153, y)
    with pytest.raises(NumericalOverflowError, match="beyond float32"):
        CallableKernel(lambda A, B: np.full((len(A), len(B)), 1e200))(X.astype(np.float32))


@pytest.mark.nojit
def test_rbf_by_sigma_and_the_lectures_polynomial() -> None:
    assert RBF(sigma=2.0) == RBF(gamma=1 / 8)
    a, b, d = 2.0, 3.0, 4
    x, z = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    ours = Polynomial(gamma=1 / a, coef0=b, degree=d)(x, z)
    assert ours == pytest.approx((float(x[0] @ z[0]) / a + b) ** d)


MAPS = {
    "translation_invariant": lambda X: X + 1e6,
    "rotation_invariant": lambda X: X @ np.linalg.qr(rows(4, 4, seed=3))[0],
    "permutation_invariant": lambda X: X[:, [2, 0, 3, 1]],
}


@pytest.mark.nojit
@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("invariance", INVARIANCES)
def test_values_stay_under_the_maps_that_a_kernel_promises(name, invariance) -> None:
    X, Z = rows(20), rows(11, seed=1)
    kernel, moved = make(name), MAPS[invariance]
    if getattr(kernel, invariance):
        assert np.allclose(kernel(X, Z), kernel(moved(X), moved(Z)), rtol=1e-7)
    elif name != "chi2" or invariance == "translation_invariant":
        assert not np.allclose(kernel(X, Z), kernel(moved(X), moved(Z)), rtol=1e-7)


@pytest.mark.nojit
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_of_scaled_rows_have_the_same_values_up_to_a_constant(name) -> None:
    X, Z, kernel = rows(20), rows(11, seed=1), make(name)
    assert kernel.can_be_scaled()
    ratio = kernel.on_scaled(4.0)(4.0 * X, 4.0 * Z) / kernel(X, Z)
    assert np.allclose(ratio, ratio[0, 0], rtol=1e-12)


@pytest.mark.nojit
def test_gamma_is_resolved_as_in_scikit_learn() -> None:
    X, y = rows(40), np.arange(40) % 2
    for gamma in ("scale", "auto", 0.3):
        model = SVC(gamma=gamma).fit(X, y)
        for data in (X, sp.csr_array(X)):
            kernel = resolve_kernel(
                "rbf", gamma=gamma, degree=3, coef0=0, X=data, weight=np.ones(40)
            )
            assert kernel.gamma == pytest.approx(model._gamma, rel=1e-13)
    constant = resolve_kernel(
        "rbf", gamma="scale", degree=3, coef0=0, X=np.ones((3, 2)), weight=np.ones(3)
    )
    assert constant.gamma == 1.0


@pytest.mark.nojit
def test_kernels_given_as_objects_functions_and_matrices() -> None:
    X = rows(9)
    common = {"gamma": 1.0, "degree": 3, "coef0": 0.0, "X": X, "weight": np.ones(9)}
    assert resolve_kernel(RBF(gamma=3.0), **common) == RBF(gamma=3.0)
    assert isinstance(resolve_kernel("precomputed", **common), Precomputed)
    own = resolve_kernel(lambda A, B: A @ B.T, **common)
    assert isinstance(own, CallableKernel)
    assert np.allclose(own(X), X @ X.T)
    with pytest.raises(ValueError, match=r"'kernel' parameter must be one of \['chi2'"):
        resolve_kernel("gaussian", **common)
    K = X @ X.T
    precomputed = Precomputed()
    points = Points(K, np.zeros(9), np.arange(9))
    assert np.array_equal(gram(precomputed, points, points.take([4, 2])), K[:, [4, 2]])
    assert np.array_equal(precomputed.diagonal(points), np.diag(K))


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: A[:, 0], r"array of shape .* It must return shape"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "not finite"),
        (lambda A, B: np.full((len(A), len(B)), "x"), "not finite numbers"),
    ],
)
def test_bad_kernel_functions_are_named(function, message) -> None:
    with pytest.raises(InvalidDataError, match=f"kernel function <lambda> .*{message}"):
        CallableKernel(function)(rows(3))


@pytest.mark.nojit
def test_kernel_functions_cannot_change_the_data_and_their_errors_pass() -> None:
    def meddler(A, B):
        A[:] = 0
        return A @ B.T

    with pytest.raises(ValueError, match="read-only"):
        CallableKernel(meddler)(rows(3))

    def broken(A, B):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        CallableKernel(broken)(rows(3))


@pytest.mark.nojit
def test_registered_kernels_get_the_parameters_they_ask_for() -> None:
    def cauchy(X, Z, gamma):
        """1 / (1 + gamma ||x - z||^2)"""
        return 1 / (1 + gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=2))

    margrove.register_kernel("cauchy", cauchy, positive_definite=True)
    margrove.register_kernel("product", product)
    try:
        with pytest.raises(ValueError, match="exists already"):
            margrove.register_kernel("cauchy", cauchy)
        X, y = rows(30), np.arange(30) % 2
        model = margrove.KernelPerceptron(kernel="cauchy", gamma=2.0).fit(X, y)
        assert model.kernel_.gamma == 2.0
        assert np.allclose(model.kernel_(X), cauchy(X, X, 2.0))
        assert np.allclose(model.kernel_.diagonal(model.kernel_.points(X)), 1.0)
        again = pickle.loads(pickle.dumps(margrove.KernelPerceptron(kernel="product").fit(X, y)))
        assert np.allclose(again.kernel_(X), product(X, X))
    finally:
        del KERNELS["cauchy"], KERNELS["product"]
    with pytest.raises(ValueError, match="exists already"):
        margrove.register_kernel("rbf", cauchy)


@pytest.mark.nojit
def test_overflow_is_an_error_before_anything_is_computed() -> None:
    X = rows(5) * 1e200
    for kernel in (Linear(), RBF(gamma=1.0)):
        with pytest.raises(NumericalOverflowError, match="Scale the features"):
            kernel.require_finite(kernel.points(X))
    with pytest.raises(NumericalOverflowError, match=r"degree=50.*1e\+10|overflows"):
        margrove.KernelPerceptron(kernel="poly", degree=50, gamma=1e10).fit(rows(4), [0, 1, 0, 1])


@pytest.mark.nojit
def test_chi_square_refuses_negative_features() -> None:
    with pytest.raises(InvalidDataError, match=">= 0, got -1"):
        margrove.KernelPerceptron(kernel="chi2").fit([[1.0], [-1.0]], [0, 1])


@pytest.mark.nojit
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_are_values(name) -> None:
    kernel = make(name)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    with pytest.raises(dataclasses.FrozenInstanceError):
        kernel.gamma = 9.0
    assert KERNELS[name].__doc__


def test_scikit_learn_takes_our_kernels() -> None:
    X, y = rows(40), np.arange(40) % 2
    ours = SVC(kernel=RBF(gamma=0.4)).fit(X, y).decision_function(X)
    theirs = SVC(kernel="rbf", gamma=0.4).fit(X, y).decision_function(X)
    assert np.allclose(ours, theirs, atol=1e-6)
