"""KernelPerceptron: the dual textbook loop, any kernel, streams and budgets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.margin.test_perceptron import integer_problem, visiting_orders
from tests.oracles.perceptron import train_dual

from margrove import KernelPerceptron, watch
from margrove.datasets import load_digits, load_iris, make_circles, make_moons, make_xor
from margrove.exceptions import InvalidDataError
from margrove.margin.kernels.functions import RBF, Polynomial
from margrove.margin.kernels.given_kernels import Precomputed
from margrove.margin.kernels.registry import KERNELS

whole_numbers = st.integers(0, 2**32 - 1)


@pytest.mark.nojit
@given(whole_numbers, st.booleans(), st.sampled_from([0.0, 3.0]))
@settings(max_examples=25)
def test_alpha_counts_the_textbooks_mistakes(seed, intercept, margin) -> None:
    X, y = integer_problem(seed)
    if len(set(y)) < 2:
        return
    kernel = Polynomial(gamma=1.0, degree=2, coef0=1.0)
    K = kernel(X) + intercept
    orders = visiting_orders(X, y, 5)
    alpha = train_dual(K, 2 * y - 1, orders, margin=margin)
    model = KernelPerceptron(
        kernel=kernel, max_iter=5, tol=None, fit_intercept=intercept, margin=margin
    ).fit(X, y)
    assert np.array_equal(model.alpha_, alpha)
    assert model.mistakes_ == alpha.sum()
    assert set(model.support_) == set(np.flatnonzero(alpha))
    assert np.array_equal(model.decision_function(X), K @ (alpha * (2 * y - 1)))


@pytest.mark.nojit
def test_steps_are_reported_with_the_users_rows() -> None:
    X, y = make_moons(80, return_X_y=True)
    steps = []
    with watch(on_step=steps.append):
        model = KernelPerceptron(max_iter=3, tol=None).fit(X, y)
    counts = np.bincount([step.row for step in steps], minlength=len(X))
    assert np.array_equal(counts, model.alpha_)
    silent = KernelPerceptron(max_iter=3, tol=None).fit(X, y)
    assert np.array_equal(silent.dual_coef_, model.dual_coef_)


@given(whole_numbers)
@settings(max_examples=25)
def test_novikoff_in_the_feature_space(seed) -> None:
    X, y = integer_problem(seed)
    if len(set(y)) < 2:
        return
    model = KernelPerceptron(gamma=1.0, max_iter=10_000, tol=None).fit(X, y)
    assert model.separated_  # distinct points are separable under the Gaussian kernel
    assert model.mistakes_ <= model.novikoff_bound_
    assert model.score(X, y) == 1.0
    signs = 2 * y - 1
    K = RBF(gamma=1.0)(X) + 1.0
    coef = model.alpha_ * signs
    margin = (signs * (K @ coef)).min() / np.sqrt(coef @ K @ coef)
    assert model.margin_ == pytest.approx(margin, rel=1e-9)
    assert model.radius_ == pytest.approx(np.sqrt(2.0))


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_every_kernel_learns_the_moons(name) -> None:
    X, y = make_moons(300, noise=0.1, return_X_y=True)
    X = X - X.min(axis=0)
    model = KernelPerceptron(kernel=name, gamma=1.0 if name == "poly" else 5.0, coef0=1.0)
    for data in (X, sp.csr_array(X), X.astype(np.float32)):
        model.fit(data, y)
        assert np.isfinite(model.decision_function(data)).all()
        if KERNELS[name].positive_definite:
            assert model.score(data, y) > 0.8


def test_circles_need_the_squares() -> None:
    """The lectures' x -> (x1^2, x2^2): a polynomial kernel does what no line can."""
    X, y = make_circles(200, noise=0.05, return_X_y=True)
    assert KernelPerceptron(kernel="poly", degree=2, coef0=1.0).fit(X, y).score(X, y) == 1.0
    assert KernelPerceptron(kernel="linear", max_iter=30).fit(X, y).score(X, y) < 0.8


def test_precomputed_and_callable_kernels_equal_the_named_one() -> None:
    X, y = make_xor(90, return_X_y=True)
    kernel = RBF(gamma=2.0)
    common = {"max_iter": 4, "tol": None, "shuffle": False}
    named = KernelPerceptron(kernel="rbf", gamma=2.0, **common).fit(X, y)
    own = KernelPerceptron(kernel=kernel.__call__, **common).fit(X, y)
    precomputed = KernelPerceptron(kernel="precomputed", **common).fit(kernel(X), y)
    for other, data in ((own, X), (precomputed, kernel(X))):
        assert np.array_equal(other.alpha_, named.alpha_)
        assert np.allclose(other.decision_function(data), named.decision_function(X))
    new = X[:7] + 0.1
    assert np.allclose(precomputed.decision_function(kernel(new, X)), named.decision_function(new))


def test_bad_gram_matrices() -> None:
    y = [0, 1, 0]
    for K, message in (
        (np.ones((3, 2)), r"shape \(3, 2\)"),
        (np.array([[1, 2, 0], [3, 1, 0], [0, 0, 1.0]]), r"not symmetric: X\[0, 1\] = 2"),
    ):
        with pytest.raises(InvalidDataError, match=message):
            KernelPerceptron(kernel="precomputed").fit(K, y)
    model = KernelPerceptron(kernel="precomputed").fit(np.eye(3), y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.ones((2, 5)))
    with pytest.raises(ValueError, match="precomputed"):
        model.partial_fit(np.eye(3), y)


def test_precomputed_as_an_object_is_precomputed() -> None:
    X, y = make_xor(30, return_X_y=True)
    K = RBF(gamma=2.0)(X)
    model = KernelPerceptron(kernel=Precomputed(), max_iter=3, tol=None).fit(K, y)
    named = KernelPerceptron(kernel="precomputed", max_iter=3, tol=None).fit(K, y)
    assert np.array_equal(model.alpha_, named.alpha_)
    with pytest.raises(InvalidDataError, match="square"):
        KernelPerceptron(kernel=Precomputed()).fit(X, y)
    with pytest.raises(ValueError, match="precomputed"):
        KernelPerceptron(kernel=Precomputed()).partial_fit(K, y, classes=[0, 1])
    for changed in ({"kernel": "rbf"}, {"kernel": RBF(gamma=9.0)}):
        with pytest.raises(ValueError, match="differs from the kernel of the earlier batches"):
            model.set_params(**changed).partial_fit(K, y)


def test_steps_of_a_stream_name_rows_of_the_batch() -> None:
    X, y = load_iris(return_X_y=True)
    model = KernelPerceptron(gamma=0.5).partial_fit(X[::2], y[::2], classes=[0, 1, 2])
    steps = []
    with watch(on_step=steps.append):
        model.partial_fit(X[1::2], y[1::2])
    new = model.support_[model.support_ >= 0]
    assert {step.row for step in steps} == set(new.tolist())
    assert {step.row for step in steps} <= set(range(75))


@pytest.mark.parametrize("budget", [1, 20, 60])
def test_the_budget_on_support_vectors_holds(budget) -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:700], y[:700]
    free = KernelPerceptron(max_iter=5, tol=None).fit(X, y)
    model = KernelPerceptron(max_support=budget, max_iter=5, tol=None).fit(X, y)
    assert len(model.support_) <= budget < len(free.support_)
    assert model.novikoff_bound_ == np.inf
    expected = model.kernel_(X, X[model.support_]) @ model.dual_coef_.T + model.intercept_
    assert np.allclose(model.decision_function(X), expected, atol=1e-9)
    if budget == 60:
        assert model.score(X, y) > 0.5


def test_decision_values_survive_many_blocks_and_epochs() -> None:
    """The running sums equal the sums from scratch."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 5)), rng.integers(0, 3, 1500)
    model = KernelPerceptron(max_iter=4, tol=None).fit(X, y)
    coef = model.dual_coef_
    scratch = model.kernel_(X, model.support_vectors_) @ coef.T + coef.sum(axis=1)
    assert np.allclose(model.decision_function(X), scratch, rtol=1e-10, atol=1e-10)
    squared = np.einsum("ki,ij,kj->k", coef, model.kernel_(model.support_vectors_) + 1.0, coef)
    signs = np.where(y[:, None] == np.arange(3), 1, -1)
    margins = (signs * scratch).min(axis=0) / np.sqrt(squared)
    assert np.allclose(model.class_margins_, margins, rtol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_streams_keep_what_they_learnt(kind) -> None:
    X, y = load_iris(return_X_y=True)
    once = KernelPerceptron(max_iter=1, tol=None, gamma=0.5).fit(kind(X), y)
    stream = KernelPerceptron(gamma=0.5).partial_fit(kind(X), y, classes=[0, 1, 2])
    assert np.array_equal(once.dual_coef_, stream.dual_coef_)
    before = stream.mistakes_
    for _ in range(10):
        stream.partial_fit(kind(X), y)
    assert stream.mistakes_ > before
    assert stream.n_iter_ == 11
    K = stream.kernel_(kind(X), stream.support_vectors_)
    from_scratch = K @ stream.dual_coef_.T + stream.dual_coef_.sum(axis=1)
    assert np.allclose(stream.decision_function(kind(X)), from_scratch, atol=1e-10)
    assert (stream.support_ == -1).any()
    small = KernelPerceptron(gamma=0.5, max_support=15)
    for part in np.array_split(np.random.default_rng(0).permutation(150), 6):
        small.partial_fit(kind(X[part]), y[part], classes=[0, 1, 2])
        assert len(small.support_) <= 15


def test_identical_rows_share_their_mistakes() -> None:
    X, y = make_xor(40, return_X_y=True)
    model = KernelPerceptron(max_iter=3, tol=None).fit(np.vstack([X, X]), np.r_[y, y])
    assert np.array_equal(model.alpha_[:40], model.alpha_[40:])
    assert model.alpha_.sum() == pytest.approx(model.mistakes_)
    assert len(model.support_) <= 40


def test_kernels_with_a_negative_diagonal() -> None:
    X, y = make_xor(40, return_X_y=True)
    model = KernelPerceptron(kernel="sigmoid", coef0=-5, gamma=0.01, fit_intercept=False)
    assert model.fit(X, y).radius_ == 0.0


def test_altered_state_is_noticed() -> None:
    X, y = make_xor(40, return_X_y=True)
    model = KernelPerceptron().fit(X, y)
    model.dual_coef_ = model.dual_coef_[:, :-1]
    with pytest.raises(ValueError, match="fitted state was altered"):
        model.predict(X)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("gamma", -1.0), ("gamma", np.nan), ("gamma", np.inf), ("gamma", "big"), ("degree", -1),
        ("coef0", np.nan), ("max_support", 0), ("kernel", 3), ("kernel", "gaussian"),
        ("max_iter", 0), ("margin", -1),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameter, value) -> None:
    with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
        KernelPerceptron(**{parameter: value}).fit([[0.0], [1.0]], [0, 1])
