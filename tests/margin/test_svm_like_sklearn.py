"""Where support vector machines follow scikit-learn beyond its estimator checks."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_digits, load_iris

import margrove
from margrove import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, facts
from margrove.exceptions import DataWarning, InvalidDataError

X, Y = load_iris(return_X_y=True)
MACHINES = [SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR]
KERNEL_MACHINES = MACHINES[:5]


def values_of(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


def small(cls, **settings):
    return cls(**({"nu": 0.3} if "nu" in cls().get_params() else {}), **settings)


# -- sparse in, sparse out --


@pytest.mark.parametrize("cls", KERNEL_MACHINES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.lil_array, sp.csc_matrix])
def test_coefficients_are_sparse_where_the_table_is(cls, kernel, form) -> None:
    dense = small(cls, kernel=kernel).fit(X, Y)
    sparse = small(cls, kernel=kernel).fit(form(X), Y)
    names = ["dual_coef_", "support_vectors_", *(["coef_"] if kernel == "linear" else [])]
    for name in names:
        assert isinstance(getattr(dense, name), np.ndarray)
        assert sp.issparse(getattr(sparse, name))
        np.testing.assert_allclose(getattr(sparse, name).toarray(), getattr(dense, name), atol=1e-5)
    for rows in (X, form(X)):
        np.testing.assert_allclose(values_of(sparse, rows), values_of(dense, X), atol=1e-5)


@pytest.mark.parametrize("cls", KERNEL_MACHINES)
def test_a_machine_of_a_sparse_table_is_a_whole_model(cls, tmp_path) -> None:
    data = sp.csr_array(X)
    model = small(cls, kernel="linear").fit(data, Y)
    margrove.save(model, tmp_path / "model.margrove")
    for again in (pickle.loads(pickle.dumps(model)), margrove.load(tmp_path / "model.margrove")):
        assert sp.issparse(again.dual_coef_)
        assert np.array_equal(values_of(again, data), values_of(model, data))
    dense = small(cls, kernel="linear").fit(X, Y)
    assert model.certificate_.relative_gap == pytest.approx(dense.certificate_.relative_gap)
    described, expected = facts.describe(model, data, Y), facts.describe(dense, X, Y)
    assert described.n_support == expected.n_support
    ours = [machine.norm for machine in described.machines]
    assert ours == pytest.approx([machine.norm for machine in expected.machines])


def test_a_warm_start_from_sparse_coefficients() -> None:
    data = sp.csr_array(X)
    for cls in (SVC, SVR):
        model = cls(warm_start=True).fit(data, Y)
        steps = np.sum(model.n_iter_)
        assert np.sum(model.fit(data, Y).n_iter_) < max(1, 0.2 * steps)


def test_altered_sparse_coefficients_are_noticed() -> None:
    model = SVC().fit(sp.csr_array(X), Y)
    model.dual_coef_ = sp.csr_array(model.dual_coef_.toarray()[:, :-1])
    with pytest.raises(ValueError, match="state was altered: dual_coef_ has shape"):
        model.predict(X)


def test_weights_of_linear_machines_can_be_kept_sparse() -> None:
    data, labels = load_digits(return_X_y=True)
    model = LinearSVC(penalty="l1", C=0.01).fit(data, labels)
    expected, dense = model.decision_function(data), model.coef_
    assert model.sparsify() is model
    assert sp.issparse(model.coef_)
    assert np.array_equal(model.decision_function(data), expected)
    assert model.certificate_.relative_gap < 1e-3
    assert np.array_equal(model.densify().coef_, dense)
    with pytest.raises(margrove.exceptions.NotFittedError):
        LinearSVC().sparsify()


# -- negative weights --


@pytest.mark.parametrize("cls", MACHINES)
def test_rows_of_negative_weight_leave_the_problem(cls) -> None:
    weight = np.where(np.arange(len(Y)) % 7 == 3, -2.0, 1.0)
    with pytest.warns(DataWarning, match="21 rows have a negative sample_weight and are left out"):
        model = small(cls).fit(X, Y, sample_weight=weight)
    expected = small(cls).fit(X, Y, sample_weight=np.maximum(weight, 0.0))
    assert np.array_equal(values_of(model, X), values_of(expected, X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of the same rows, where they are read again
        assert model.certificate_.relative_gap < 1e-2


@pytest.mark.parametrize("cls", MACHINES)
def test_nothing_left_is_an_error(cls) -> None:
    with pytest.raises(InvalidDataError, match="all samples have zero or negative weights"):
        small(cls).fit(X, Y, sample_weight=np.full(len(Y), -1.0))


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (SVC, "belong to the same class"),
        (LinearSVC, "belong to the same class"),
        (NuSVC, "specified nu is infeasible: .* at most 0"),
    ],
)
def test_one_class_left_is_an_error(cls, message) -> None:
    with (
        pytest.warns(DataWarning, match="negative sample_weight"),
        pytest.raises(ValueError, match=message),
    ):
        small(cls).fit(X, Y, sample_weight=np.where(Y == 0, 1.0, -1.0))


# -- tiny problems have one solution --


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_a_kernel_is_the_same_however_it_is_given(C) -> None:
    K = X @ X.T
    built_in = SVC(kernel="linear", C=C).fit(X, Y)
    function = SVC(kernel=lambda A, B: A @ B.T, C=C).fit(X, Y)
    matrix = SVC(kernel="precomputed", C=C).fit(K, Y)
    for model, rows in ((function, X), (matrix, K)):
        expected = built_in.decision_function(X)
        assert np.abs(model.decision_function(rows) - expected).max() <= 1e-5
        assert np.array_equal(model.support_, built_in.support_)


# -- kernel functions --


def test_a_kernel_function_may_return_a_sparse_matrix() -> None:
    data = sp.csr_array(X)
    function = SVC(kernel=lambda A, B: A @ B.T).fit(data, Y)
    expected = SVC(kernel="linear").fit(data, Y)
    assert np.array_equal(function.predict(data), expected.predict(data))


def shared_letters(left, right):
    return np.array([[len(set(a) & set(b)) for b in right] for a in left], dtype=float)


WORDS = ["tree", "trees", "reed", "margin", "mango", "grain", "steer", "rain", "ream", "gin"]
KINDS = [0, 0, 0, 1, 1, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("cls", [SVC, NuSVC, SVR, OneClassSVM])
def test_a_kernel_function_of_texts(cls) -> None:
    K = shared_letters(WORDS, WORDS)
    new = ["main", "street"]
    model = small(cls, kernel=shared_letters).fit(WORDS, KINDS)
    expected = small(cls, kernel="precomputed").fit(K, KINDS)
    found = values_of(model, new)
    assert np.array_equal(found, values_of(expected, shared_letters(new, WORDS)))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(values_of(again, new), found)
    assert model.certificate_.relative_gap == expected.certificate_.relative_gap
    theirs = getattr(sklearn.svm, cls.__name__)(
        kernel=shared_letters, **({"nu": 0.3} if "nu" in cls().get_params() else {})
    ).fit(WORDS, KINDS)
    assert np.abs(values_of(theirs, new) - found).max() <= 1e-2


def test_a_failed_fit_to_texts_changes_nothing() -> None:
    model = SVC(kernel=shared_letters).fit(WORDS, KINDS)
    before = model.decision_function(["main"])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(WORDS, KINDS[:-1])
    assert np.array_equal(model.decision_function(["main"]), before)
    model.kernel = len
    assert np.array_equal(model.decision_function(["main"]), before)


def test_a_function_of_texts_that_returns_nonsense() -> None:
    def shapeless(left, right):
        return np.zeros(3)

    with pytest.raises(InvalidDataError, match=r"shapeless returned an array of shape \(3,\)"):
        SVC(kernel=shapeless).fit(WORDS, KINDS)


# -- the smallest C that admits a feature --


@pytest.mark.parametrize("solver", ["newton", "cd"])
@pytest.mark.parametrize("intercept", [{"fit_intercept": False}, {"intercept_scaling": 10.0}])
def test_just_above_the_smallest_c_there_are_weights(solver, intercept) -> None:
    is_first = (Y == 0).astype(int)
    least = sklearn.svm.l1_min_c(X, is_first, loss="squared_hinge", **intercept)
    model = LinearSVC(penalty="l1", solver=solver, **intercept)
    below = model.set_params(C=0.999 * least).fit(X, is_first)
    assert not below.coef_.any()
    above = model.set_params(C=1.01 * least).fit(X, is_first)
    assert above.coef_.any() or above.intercept_.any()
