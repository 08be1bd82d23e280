"""Perceptron: the textbook's updates one for one, Novikoff's bound, and what the API promises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Perceptron as SklearnPerceptron
from tests.oracles.perceptron import train_penalised, train_perceptron

from margrove import KernelPerceptron, Perceptron, watch
from margrove._data import canonical_form
from margrove.datasets import load_iris, make_separable_clouds, make_xor
from margrove.exceptions import ConvergenceWarning, NumericalOverflowError
from margrove.margin.solvers.perceptron.epochs import shuffle

whole_numbers = st.integers(0, 2**32 - 1)


def integer_problem(seed, n=25, d=3, spread=4, n_classes=2):
    """Small integers, on which every sum is exact and any order of operations agrees."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-spread, spread + 1, (n, d)).astype(float)
    X = np.unique(X, axis=0)
    return X, rng.integers(0, n_classes, len(X))


def separable_problem(seed, n=30, d=3):
    rng = np.random.default_rng(seed)
    w, b = rng.standard_normal(d), rng.standard_normal()
    X = rng.standard_normal((n, d)) * 3
    f = X @ w + b
    X, f = X[np.abs(f) > 0.3], f[np.abs(f) > 0.3]
    return X, (f > 0).astype(int)


def visiting_orders(X, codes, epochs, seed=0):
    """The orders that the estimator visits the (distinct) rows in."""
    rows = canonical_form(X, codes.astype(np.int64), np.ones(len(X))).rows
    orders = []
    for epoch in range(epochs):
        order = np.arange(len(rows))
        shuffle(order, np.uint64(seed), np.uint64(epoch))
        orders.append(rows[order])
    return orders


@pytest.mark.nojit
@given(whole_numbers, st.booleans(), st.sampled_from([0.0, 1.0, 2.5]))
@settings(max_examples=30)
def test_updates_are_the_textbooks_one_for_one(seed, intercept, margin) -> None:
    X, y = integer_problem(seed)
    if len(set(y)) < 2:
        return
    epochs = 6
    textbook = train_perceptron(
        X, 2 * y - 1, visiting_orders(X, y, epochs), margin=margin, intercept=intercept
    )
    steps = []
    model = Perceptron(max_iter=epochs, tol=None, fit_intercept=intercept, margin=margin)
    with watch(on_step=steps.append):
        model.fit(X, y)
    assert [(step.epoch, step.row) for step in steps] == textbook.mistakes
    assert model.mistakes_ == len(textbook.mistakes)
    assert np.array_equal(model.coef_[0], textbook.w[: X.shape[1]])
    if intercept:
        assert model.intercept_[0] == textbook.w[-1]
    assert model.n_iter_ == textbook.epochs


@given(whole_numbers)
def test_novikoff_bounds_the_mistakes(seed) -> None:
    X, y = separable_problem(seed)
    if len(set(y)) < 2:
        return
    model = Perceptron(max_iter=100_000, tol=None).fit(X, y)
    assert model.separated_
    assert model.margin_ > 0
    assert model.mistakes_ <= model.novikoff_bound_
    assert model.score(X, y) == 1.0
    augmented = np.column_stack([X, np.ones(len(X))])
    w = np.r_[model.coef_[0], model.intercept_]
    margins = (2 * y - 1) * (augmented @ w) / np.linalg.norm(w)
    assert model.margin_ == pytest.approx(margins.min(), rel=1e-9)
    assert model.radius_ == pytest.approx(np.linalg.norm(augmented, axis=1).max())
    assert model.novikoff_bound_ == pytest.approx((model.radius_ / model.margin_) ** 2)


@given(whole_numbers, st.floats(0.1, 3), st.floats(0.1, 5))
@settings(max_examples=40)
def test_the_bound_holds_with_margin_step_length_and_weights(seed, margin, eta0) -> None:
    X, y = separable_problem(seed)
    if len(set(y)) < 2:
        return
    weight = np.random.default_rng(seed).choice([0.3, 1.0, 4.0], len(y))
    model = Perceptron(max_iter=100_000, tol=None, margin=margin, eta0=eta0)
    model.fit(X, y, sample_weight=weight)
    assert model.separated_
    assert model.mistakes_ <= model.novikoff_bound_


@given(whole_numbers, st.booleans(), st.integers(2, 4))
@settings(max_examples=30)
def test_primal_and_dual_agree_exactly(seed, intercept, n_classes) -> None:
    X, y = integer_problem(seed, n_classes=n_classes)
    if len(set(y)) < 2:
        return
    common = {"max_iter": 7, "tol": None, "fit_intercept": intercept}
    primal = Perceptron(**common).fit(X, y)
    dual = KernelPerceptron(kernel="linear", **common).fit(X, y)
    assert np.array_equal(dual.dual_coef_ @ dual.support_vectors_, primal.coef_)
    assert np.array_equal(dual.intercept_, primal.intercept_)
    assert np.array_equal(dual.class_mistakes_, primal.class_mistakes_)
    assert np.array_equal(dual.decision_function(X), primal.decision_function(X))
    assert dual.separated_ == primal.separated_


@pytest.mark.parametrize(
    ("penalty", "average"),
    [("l1", False), ("l2", False), ("elasticnet", False), (None, False), (None, True)],
)
def test_penalties_and_averaging_against_the_plain_loop(penalty, average) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 5)), rng.integers(0, 2, 40)
    share = {"l1": 1.0, "l2": 0.0, "elasticnet": 0.3, None: 0.0}[penalty]
    alpha = 0.02 if penalty else 0.0
    w, b = train_penalised(
        X, 2 * y - 1, visiting_orders(X, y, 5), l1=share * alpha, l2=(1 - share) * alpha,
        average=average,
    )  # fmt: skip
    model = Perceptron(
        penalty=penalty, alpha=0.02, l1_ratio=0.3, max_iter=5, tol=None, average=average
    )
    for data in (X, sp.csr_array(X)):
        model.fit(data, y)
        assert np.allclose(model.coef_[0], w, rtol=1e-9, atol=1e-12)
        assert model.intercept_[0] == pytest.approx(b)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [None, "l1", "l2", "elasticnet"])
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1.0])
def test_without_shuffling_it_is_scikit_learns_perceptron(intercept, penalty, alpha) -> None:
    X, y = load_iris(return_X_y=True)
    common = {"shuffle": False, "max_iter": 9, "tol": None, "fit_intercept": intercept}
    common |= {"penalty": penalty, "alpha": alpha}
    for labels in (y, (y == 1).astype(int)):
        ours = Perceptron(**common).fit(X, labels)
        theirs = SklearnPerceptron(**common).fit(X, labels)
        assert np.allclose(ours.coef_, theirs.coef_)
        assert np.allclose(ours.intercept_, theirs.intercept_)
        assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_signature_and_attributes_are_a_superset_of_scikit_learns() -> None:
    ours, theirs = Perceptron(), SklearnPerceptron()
    for name, value in theirs.get_params().items():
        assert name in ours.get_params()
        assert ours.get_params()[name] == value, name
    X, y = load_iris(return_X_y=True)
    fitted = {n for n in vars(theirs.fit(X, y)) if n.endswith("_") and not n.startswith("_")}
    assert fitted <= set(vars(ours.fit(X, y)))


@pytest.mark.parametrize(
    ("penalty", "average"), [(None, False), (None, True), ("l2", False), ("l1", False)]
)
def test_many_classes_are_as_many_binary_problems(penalty, average) -> None:
    """Also when one stops long before the others. In given order, as labels shape the shuffle."""
    X, y = load_iris(return_X_y=True)
    common = {"max_iter": 40, "tol": 1e-3, "n_iter_no_change": 3, "shuffle": False}
    common |= {"penalty": penalty, "alpha": 0.01, "average": average}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        together = Perceptron(**common).fit(X, y)
        epochs = set()
        for k in range(3):
            alone = Perceptron(**common).fit(X, (y == k).astype(int))
            epochs.add(alone.n_iter_)
            assert np.allclose(together.coef_[k], alone.coef_[0])
            assert together.intercept_[k] == pytest.approx(alone.intercept_[0])
    assert len(epochs) > 1


def test_non_separable_data_stop_by_patience_or_warn() -> None:
    X, y = make_xor(200, return_X_y=True)
    model = Perceptron().fit(X, y)
    assert not model.separated_
    assert model.margin_ <= 0
    assert model.novikoff_bound_ == np.inf
    assert model.n_iter_ < 1000
    with pytest.warns(ConvergenceWarning, match="max_iter=2 epochs"):
        Perceptron(max_iter=2).fit(X, y)


def test_separable_clouds_are_separated() -> None:
    clouds = make_separable_clouds(200)
    model = Perceptron(max_iter=10_000).fit(clouds.data, clouds.target)
    assert model.separated_
    assert model.n_iter_ < 10_000


@pytest.mark.nojit
def test_weights_are_presentations_in_succession() -> None:
    """A row of weight 5 is a mistake only until it is right, as five copies would be."""
    X, y = np.array([[1.0], [-3.0]]), np.array([1, 0])
    model = Perceptron(max_iter=1, tol=None, shuffle=False, fit_intercept=False)
    assert model.fit(X, y, sample_weight=[5, 1]).mistakes_ == 1  # right after one presentation
    assert model.fit(X, y, sample_weight=[0.25, 1]).coef_[0, 0] == 0.25
    two = Perceptron(max_iter=1, tol=None, shuffle=False, fit_intercept=False, margin=2.5)
    assert two.fit(X[:2], y, sample_weight=[5, 1]).mistakes_ == 3  # 1, 2, then 3 > 2.5


def test_partial_fit_is_an_epoch_and_streams_on() -> None:
    X, y = load_iris(return_X_y=True)
    whole = Perceptron(max_iter=1, tol=None).fit(X, y)
    stream = Perceptron().partial_fit(X, y, classes=[0, 1, 2])
    assert np.array_equal(whole.coef_, stream.coef_)
    first = stream.mistakes_
    for _ in range(30):
        stream.partial_fit(X[50:], y[50:])
        stream.partial_fit(X[:50], y[:50])
    assert stream.mistakes_ > first
    assert stream.t_ == 1 + 150 * 31
    assert stream.score(X, y) > 0.6
    averaged = Perceptron(average=True, shuffle=False)
    averaged.partial_fit(X[::2], y[::2], classes=[0, 1, 2]).partial_fit(X[1::2], y[1::2])
    both = np.r_[0:150:2, 1:150:2]
    once = Perceptron(average=True, shuffle=False, max_iter=1, tol=None).fit(X[both], y[both])
    assert np.allclose(averaged.coef_, once.coef_, rtol=1e-12)


def test_warm_start_and_given_weights_continue() -> None:
    X, y = load_iris(return_X_y=True)
    settings = {"shuffle": False, "tol": None}
    full = Perceptron(max_iter=6, **settings).fit(X, y)
    warm = Perceptron(max_iter=3, warm_start=True, **settings).fit(X, y).fit(X, y)
    assert np.allclose(full.coef_, warm.coef_)
    half = Perceptron(max_iter=3, **settings).fit(X, y)
    given_weights = Perceptron(max_iter=3, **settings).fit(
        X, y, coef_init=half.coef_, intercept_init=half.intercept_
    )
    assert np.allclose(full.coef_, given_weights.coef_)
    assert given_weights.novikoff_bound_ == np.inf
    for wrong in (np.ones(7), half.coef_.T):
        with pytest.raises(ValueError, match="coef_init does not match"):
            half.fit(X, y, coef_init=wrong)
    with pytest.raises(ValueError, match="intercept_init contains NaN"):
        half.fit(X, y, intercept_init=[np.nan] * 3)
    with pytest.raises(ValueError, match="warm_start=False"):
        warm.fit(X[:, :2], y)


def test_weights_that_the_user_sets_are_continued_from() -> None:
    """As in federated learning: coef_ is assigned between calls."""
    X, y = load_iris(return_X_y=True)
    for average in (False, True):
        model = Perceptron(average=average).partial_fit(X, y, classes=[0, 1, 2])
        model.intercept_[:] = 1000.0  # a shifted threshold counts too
        assert np.abs(model.partial_fit(X[:1], y[:1]).intercept_).max() > 500
        model.coef_ = np.full((3, 4), 100.0)
        model.partial_fit(X, y)
        assert np.abs(model.coef_).max() > 20
    fresh = Perceptron()
    fresh.classes_, fresh.coef_, fresh.intercept_ = np.arange(3), np.ones((3, 4)), np.zeros(3)
    fresh.partial_fit(X, y)
    assert fresh.n_features_in_ == 4


def test_warm_starts_keep_the_books() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron(warm_start=True, max_iter=2, tol=None, shuffle=False)
    first = model.fit(X, y).mistakes_
    assert model.t_ == 301
    whole = Perceptron(max_iter=4, tol=None, shuffle=False).fit(X, y)
    assert model.fit(X, y).mistakes_ == whole.mistakes_ > first
    assert model.t_ == 601
    clouds = make_separable_clouds(50)
    separated = Perceptron(warm_start=True).fit(clouds.data, clouds.target)
    assert separated.novikoff_bound_ < np.inf  # the first fit starts from zero


def test_averages_do_not_depend_on_the_scale_of_the_weights() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    settings = {"average": True, "max_iter": 3, "tol": None}
    small = [
        Perceptron(**settings).fit(X, y, sample_weight=np.full(40, s)).coef_ / s
        for s in (2.0**-1, 2.0**-10, 2.0**-20)
    ]
    assert np.allclose(small[0], small[1])
    assert np.allclose(small[0], small[2])


def test_streams_of_odd_weights() -> None:
    model = Perceptron().partial_fit(
        [[1.0], [-1.0]], [0, 1], classes=[0, 1], sample_weight=[1e25, 1]
    )
    before = model.coef_.copy()
    model.partial_fit([[5.0]], [1], sample_weight=[0.0])  # nothing is there
    assert np.array_equal(model.coef_, before)
    assert np.isfinite(model.partial_fit([[2.0]], [1]).coef_).all()
    heavy = Perceptron(class_weight={0: 1e300, 1: 1e300})
    assert np.isfinite(heavy.fit([[1.0], [-1.0]], [0, 1], sample_weight=[1e20, 1e20]).t_)
    with pytest.raises(ValueError, match="early_stopping should be False"):
        Perceptron(early_stopping=True).partial_fit([[1.0]], [0], classes=[0, 1])
    with pytest.raises(ValueError, match="classes must be a list"):
        Perceptron().partial_fit([[1.0]], [0], classes=np.array(3))


def test_balanced_fractional_weights_in_any_order() -> None:
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((60, 3)), rng.integers(0, 3, 60), rng.random(60)
    model = Perceptron(class_weight="balanced", max_iter=4, tol=None)
    expected = model.fit(X, y, sample_weight=w).coef_
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(60)
        again = model.fit(X[order], y[order], sample_weight=w[order]).coef_
        assert np.array_equal(again, expected)


def test_early_stopping_keeps_identical_rows_together() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron(early_stopping=True, max_iter=200).fit(X, y)
    weighted = Perceptron(early_stopping=True, max_iter=200).fit(
        X, y, sample_weight=np.full(150, 2)
    )
    copied = Perceptron(early_stopping=True, max_iter=200).fit(np.vstack([X, X]), np.r_[y, y])
    assert model.n_iter_ < 200
    assert np.array_equal(weighted.coef_, copied.coef_)
    with pytest.raises(ValueError, match="empty validation set"):
        Perceptron(early_stopping=True).fit(X[::50], y[::50])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_overflow_is_an_error_that_names_the_way_out(kind) -> None:
    X, y = make_xor(40, return_X_y=True)
    with pytest.raises(NumericalOverflowError, match="StandardScaler"):
        Perceptron(max_iter=50).fit(kind(X * 1e300), y)
    with pytest.raises(ValueError, match="overflow"):
        Perceptron(eta0=1e308, max_iter=50).fit(kind(X * 100), y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("eta0", 0.0), ("eta0", -1), ("eta0", "1"), ("eta0", True), ("eta0", np.array([1.0])),
        ("eta0", np.nan), ("eta0", 10**400),
        ("max_iter", 0), ("max_iter", 1.5), ("max_iter", True), ("tol", -1.0),
        ("tol", np.nan), ("margin", -0.5), ("margin", np.inf), ("alpha", -1), ("l1_ratio", 2),
        ("penalty", "l3"), ("max_time", 0), ("max_time", -1), ("on_interrupt", "stop"),
        ("validation_fraction", 1.0), ("n_jobs", 0.5), ("average", -1), ("n_iter_no_change", 0),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameter, value) -> None:
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of Perceptron"):
        Perceptron(**{parameter: value}).fit([[0.0], [1.0]], [0, 1])


def test_averaging_and_a_penalty_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="average=True cannot be combined with penalty='l2'"):
        Perceptron(average=True, penalty="l2").fit([[0.0], [1.0]], [0, 1])


def test_numpy_numbers_are_numbers() -> None:
    model = Perceptron(eta0=np.float32(1), max_iter=np.int64(5), tol=None)
    assert model.fit([[0.0], [1.0]], [0, 1]).n_iter_ <= 5


def test_sparsify_and_densify() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron(penalty="l1", alpha=0.1).fit(X, y)
    before = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    assert np.array_equal(model.decision_function(X), before)
    assert isinstance(model.densify().coef_, np.ndarray)


def test_altered_state_is_noticed() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron().fit(X, y)
    model.coef_ = model.coef_[:, :2]
    for data in (X, sp.csr_array(X)):
        with pytest.raises(ValueError, match="fitted state was altered"):
            model.predict(data)


def test_float32_predictions_are_close() -> None:
    X, y = load_iris(return_X_y=True)
    model = Perceptron(max_iter=50, tol=None).fit(X, y)
    scale = np.abs(model.decision_function(X)).max()
    difference = model.decision_function(X.astype(np.float32)) - model.decision_function(X)
    assert np.abs(difference).max() < 1e-5 * scale
