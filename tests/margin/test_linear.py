"""LinearSVC and LinearSVR: right, on every shape of data, by every solver."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.oracles.linear import best_joint, best_l1, best_l2, primal_l2
from threadpoolctl import threadpool_info

import margrove
from margrove import SVC, SVR, LinearSVC, LinearSVR
from margrove.exceptions import DataWarning
from margrove.margin.solvers.linear.newton import NewtonProcess

SHAPES = ("tall", "wide", "sparse", "duplicated", "collinear", "unscaled")
INTERCEPTS = {"free": (True, None), "none": (False, None), 2.0: (True, 2.0)}


def table(rng, shape):
    n, d = {"tall": (40, 3), "wide": (12, 30)}.get(shape, (25, 5))
    X = rng.normal(size=(n, d))
    if shape == "sparse":
        X *= rng.random((n, d)) < 0.3
    elif shape == "duplicated":
        X = X[rng.integers(0, 6, n)]
    elif shape == "collinear":
        X[:, -1] = X[:, 0] + X[:, 1]
    elif shape == "unscaled":
        X *= 10.0 ** rng.integers(-3, 3, d)
    return X


def classes(rng, n, n_classes=2):
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return y


def quiet(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return model.fit(*data)


def hinge_terms(y, C, squared):
    signs = np.where(y > 0, 1.0, -1.0)
    bound = np.full(len(y), np.inf) if squared else C
    low, high = np.where(signs > 0, 0.0, -bound), np.where(signs > 0, bound, 0.0)
    return signs, low, high, 0.5 / C if squared else np.zeros(len(y)), 0.0


def tube_terms(y, C, squared, epsilon):
    bound = np.full(len(y), np.inf) if squared else C
    return y, -bound, bound, 0.5 / C if squared else np.zeros(len(y)), epsilon


@pytest.mark.parametrize("solver", ["cd", "newton"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_classifiers_reach_the_best_objective(seed, shape, loss, intercept, solver):
    rng = np.random.default_rng(seed)
    X = table(rng, shape)
    y = classes(rng, len(X))
    C = float(10.0 ** rng.uniform(-2, 1))
    weight = rng.integers(1, 4, len(X)).astype(float)
    fit_intercept, scaling = INTERCEPTS[intercept]
    model = LinearSVC(
        loss=loss, C=C, tol=1e-8, fit_intercept=fit_intercept, intercept_scaling=scaling,
        solver=solver, max_iter=200_000,
    )  # fmt: skip
    quiet(model, X, y, weight)
    terms = hinge_terms(y, C * weight, loss == "squared_hinge")
    best = best_l2(X, *terms, intercept=intercept)
    reached = primal_l2(X, *terms, model.coef_[0], model.intercept_[0], intercept=intercept)
    assert abs(reached - best) <= 1e-6 * best
    proof = model.certificate_
    assert proof.primal == pytest.approx(reached, rel=1e-9)
    assert proof.dual <= best * (1 + 1e-7)
    assert proof.relative_gap <= 1e-7


@pytest.mark.parametrize("solver", ["cd", "newton"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_regressors_reach_the_best_objective(seed, shape, loss, intercept, solver):
    rng = np.random.default_rng(seed)
    X = table(rng, shape)
    y = X[:, 0] + rng.normal(size=len(X)) + 3.0
    C = float(10.0 ** rng.uniform(-2, 1))
    epsilon = float(rng.choice([0.0, 0.3]))
    weight = rng.integers(1, 4, len(X)).astype(float)
    fit_intercept, scaling = INTERCEPTS[intercept]
    model = LinearSVR(
        loss=loss, C=C, epsilon=epsilon, tol=1e-8, fit_intercept=fit_intercept,
        intercept_scaling=scaling, solver=solver, max_iter=200_000,
    )  # fmt: skip
    quiet(model, X, y, weight)
    terms = tube_terms(y, C * weight, loss.startswith("squared"), epsilon)
    best = best_l2(X, *terms, intercept=intercept)
    reached = primal_l2(X, *terms, model.coef_, model.intercept_[0], intercept=intercept)
    assert abs(reached - best) <= 1e-6 * best
    proof = model.certificate_
    assert proof.primal == pytest.approx(reached, rel=1e-9)
    assert proof.relative_gap <= 1e-7


@pytest.mark.parametrize("solver", ["cd", "newton"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled(30)
def test_the_l1_penalty_reaches_the_best_objective(seed, shape, intercept, solver):
    rng = np.random.default_rng(seed)
    X = table(rng, shape)
    y = classes(rng, len(X))
    C = float(10.0 ** rng.uniform(-1, 1))
    fit_intercept, scaling = INTERCEPTS[intercept]
    model = LinearSVC(
        "l1", C=C, tol=1e-8, fit_intercept=fit_intercept, intercept_scaling=scaling,
        solver=solver, max_iter=200_000,
    )  # fmt: skip
    quiet(model, X, y)
    signs = np.where(y > 0, 1.0, -1.0)
    best = best_l1(X, signs, np.full(len(y), C), intercept=intercept)
    w, b = model.coef_[0], model.intercept_[0]
    slack = np.maximum(0.0, 1.0 - signs * (X @ w + b))
    price = 0.0 if isinstance(intercept, str) else 1.0 / intercept
    reached = np.abs(w).sum() + price * abs(b) + C * (slack**2).sum()
    assert abs(reached - best) <= 1e-6 * best
    assert model.certificate_.relative_gap <= 1e-7


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("seed", range(4))
def test_crammer_and_singer_reach_the_best_objective(seed, intercept):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 2))
    y = classes(rng, len(X), 3)
    C = float(10.0 ** rng.uniform(-1, 0.5))
    fit_intercept, scaling = INTERCEPTS[intercept]
    model = LinearSVC(
        loss="hinge", multi_class="crammer_singer", C=C, tol=1e-7, fit_intercept=fit_intercept,
        intercept_scaling=scaling, max_iter=200_000,
    ).fit(X, y)  # fmt: skip
    best = best_joint(X, y, np.full(len(y), C), 3, intercept=intercept)
    proof = model.certificate_
    assert proof.primal == pytest.approx(best, rel=1e-5)
    assert proof.dual <= best * (1 + 1e-6)
    assert proof.relative_gap <= 1e-6


@pytest.mark.parametrize("solver", ["cd", "newton"])
def test_the_hinge_finds_what_the_linear_kernel_finds(solver):
    X, y = load_iris(return_X_y=True)
    rows = y > 0
    linear = LinearSVC(loss="hinge", tol=1e-10, solver=solver, max_iter=10**6)
    linear.fit(X[rows], y[rows])
    kernel = SVC(kernel="linear", tol=1e-9).fit(X[rows], y[rows])
    assert np.abs(linear.decision_function(X) - kernel.decision_function(X)).max() < 1e-4


@pytest.mark.parametrize("solver", ["cd", "newton"])
def test_regression_finds_what_the_linear_kernel_finds(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=80)
    linear = LinearSVR(epsilon=0.2, tol=1e-10, solver=solver, max_iter=10**6).fit(X, y)
    kernel = SVR(kernel="linear", epsilon=0.2, tol=1e-9).fit(X, y)
    assert np.abs(linear.predict(X) - kernel.predict(X)).max() < 1e-4


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [3, 20])
def test_many_classes_in_one_pass_are_each_class_alone(loss, n_classes):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.normal(size=(120, 30)) * (rng.random((120, 30)) < 0.4))
    y = classes(rng, 120, n_classes)
    together = LinearSVC(loss=loss, tol=1e-7, solver="cd", max_iter=10**5).fit(X, y)
    for k in range(n_classes):
        alone = LinearSVC(loss=loss, tol=1e-7, solver="newton").fit(X, y == k)
        assert np.abs(together.coef_[k] - alone.coef_[0]).max() < 1e-3
        assert together.certificate_.machines[k].primal == pytest.approx(
            alone.certificate_.primal, rel=1e-6
        )


@given(st.integers(0, 10**6))
@example(9128)
@settings(max_examples=40, deadline=None)
def test_the_gap_is_a_bound_whatever_the_tolerance(seed):
    rng = np.random.default_rng(seed)
    X = table(rng, str(rng.choice(SHAPES)))
    y = classes(rng, len(X))
    squared = bool(rng.integers(2))
    C = float(10.0 ** rng.uniform(-3, 1))
    model = LinearSVC(
        loss="squared_hinge" if squared else "hinge",
        C=C,
        tol=float(10.0 ** rng.uniform(-5, -0.5)),
        solver=str(rng.choice(["cd", "newton"])),
    )
    quiet(model, X, y)
    best = best_l2(X, *hinge_terms(y, np.full(len(y), C), squared), intercept="free")
    proof = model.certificate_
    assert proof.dual <= best * (1 + 1e-7)
    assert proof.primal >= best * (1 - 1e-7)
    assert proof.relative_gap <= model.tol * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["cd", "newton"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_dense_and_sparse_and_any_number_of_threads_agree(solver, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 40)) * (rng.random((600, 40)) < 0.3)
    y = classes(rng, 600, n_classes)
    one = LinearSVC(solver=solver, n_jobs=1).fit(X, y)
    two = LinearSVC(solver=solver, n_jobs=2).fit(X, y)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.intercept_, two.intercept_)
    sparse = sp.csr_array(X)
    for index in (np.int32, np.int64):
        sparse.indices = sparse.indices.astype(index)
        sparse.indptr = sparse.indptr.astype(index)
        assert np.allclose(LinearSVC(solver=solver).fit(sparse, y).coef_, one.coef_, atol=1e-2)


@pytest.mark.parametrize(
    "model", [LinearSVC(), LinearSVC("l1"), LinearSVC(loss="hinge", solver="cd"), LinearSVR()]
)
def test_warm_starts_take_fewer_rounds(model):
    X, y = load_iris(return_X_y=True)
    warm = clone(model).set_params(warm_start=True, tol=1e-6)
    warm.fit(X, y == 2)
    warm.set_params(C=1.1).fit(X, y == 2)
    cold = clone(model).set_params(C=1.1, tol=1e-6).fit(X, y == 2)
    assert warm.n_iter_ <= cold.n_iter_
    assert warm.certificate_.relative_gap <= 1e-6
    assert np.allclose(warm.coef_, cold.coef_, atol=1e-2)


def test_of_equal_decision_values_the_first_class_wins():
    X, y = np.eye(3), np.array(["a", "b", "c"])
    model = LinearSVC().fit(X, y)
    model.coef_ = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [0.0, 2.0, 0.0]])
    model.intercept_ = np.zeros(3)
    assert model.predict(X).tolist() == ["a", "b", "a"]
    assert np.array_equal(model.predict(X), y[model.decision_function(X).argmax(axis=1)])


def test_pickles_forget_the_data_but_predict():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))
    with pytest.raises(AttributeError, match="not available after pickling"):
        _ = copy.certificate_
    again = margrove.certificate(copy, X, y)
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_scikit_learns_machines_are_certified():
    from sklearn.svm import LinearSVC as Theirs
    from sklearn.svm import LinearSVR as TheirRegression

    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    proof = margrove.certificate(Theirs(tol=1e-6, random_state=0).fit(X, y), X, y)
    assert len(proof.machines) == 3
    assert 0 <= proof.relative_gap < 1e-3
    poor = margrove.certificate(Theirs(C=1.0, tol=10.0, random_state=0).fit(X, y), X, y)
    assert poor.gap > proof.gap
    theirs = TheirRegression(tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    assert margrove.certificate(theirs, X, y).relative_gap < 1e-2


def test_a_hopeless_number_of_rounds_is_told():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 20)), rng.integers(0, 2, 200)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 was reached.*coordinate descent"):
        LinearSVC(max_iter=1, solver="cd", tol=1e-8).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' and loss='hinge'"),
        ({"multi_class": "crammer_singer", "solver": "newton"}, "one-vs-rest"),
        ({"C": 0.0}, "'C'"),
        ({"intercept_scaling": -1.0}, "'intercept_scaling'"),
        ({"solver": "sag"}, "'solver'"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**settings).fit([[0.0], [1.0]], [0, 1])


# -- streams and paths -----------------------------------------------------------------------------


def separable_stream(rng, n=3000, n_classes=2):
    X = rng.normal(size=(n, 6))
    scores = X @ rng.normal(size=(6, n_classes)) + rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_stream_comes_close_to_the_batch(form, loss, n_classes):
    X, y = separable_stream(np.random.default_rng(0), n_classes=n_classes)
    stream = LinearSVC(loss=loss)
    for batch in np.array_split(np.arange(len(y)), 10):
        stream.partial_fit(form(X[batch]), y[batch], classes=np.arange(n_classes))
    whole = LinearSVC(loss=loss).fit(X, y)
    assert stream.t_ == len(y) + 1
    assert stream.score(X, y) >= whole.score(X, y) - 0.01
    assert stream.coef_.shape == whole.coef_.shape


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_a_stream_of_numbers_comes_close_to_the_batch(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    y = X @ [1.0, 0.5, 0.0, -1.0, 2.0] + 3.0 + 0.3 * rng.normal(size=4000)
    stream = LinearSVR(loss=loss, epsilon=0.1)
    for batch in np.array_split(np.arange(4000), 8):
        stream.partial_fit(X[batch], y[batch])
    whole = LinearSVR(loss=loss, epsilon=0.1).fit(X, y)
    assert stream.score(X, y) >= whole.score(X, y) - 0.01
    assert np.abs(stream.coef_ - whole.coef_).max() < 0.1


def test_a_row_of_weight_two_in_a_stream_is_nearly_two_rows():
    X, y = separable_stream(np.random.default_rng(1))
    double = LinearSVC().partial_fit(X, y, classes=[0, 1], sample_weight=np.full(len(y), 2.0))
    twice = LinearSVC().partial_fit(np.r_[X, X], np.r_[y, y], classes=[0, 1])
    assert np.array_equal(double.coef_, twice.coef_)  # equal rows are merged
    none = LinearSVC().partial_fit(X, y, classes=[0, 1])
    zeros = np.r_[np.ones(len(y)), np.zeros(len(y))]
    also = LinearSVC().partial_fit(
        np.r_[X, X], np.r_[y, 1 - y], classes=[0, 1], sample_weight=zeros
    )
    assert np.array_equal(none.coef_, also.coef_)


def test_streams_go_on_after_pickling_and_from_a_fit():
    X, y = separable_stream(np.random.default_rng(2))
    first = LinearSVC().partial_fit(X[:1000], y[:1000], classes=[0, 1])
    copy = pickle.loads(pickle.dumps(first))
    first.partial_fit(X[1000:], y[1000:])
    copy.partial_fit(X[1000:], y[1000:])
    assert np.array_equal(first.coef_, copy.coef_)
    fitted = LinearSVC().fit(X[:1000], y[:1000])
    before = fitted.coef_.copy()
    fitted.partial_fit(X[1000:1010], y[1000:1010])
    assert fitted.coef_.shape == before.shape
    assert not np.array_equal(fitted.coef_, before)
    with pytest.raises(AttributeError, match="not available after pickling"):
        _ = fitted.certificate_


def test_what_a_stream_cannot_do_is_refused_by_name():
    X, y = [[0.0], [1.0]], [0, 1]
    with pytest.raises(ValueError, match="classes must be passed"):
        LinearSVC().partial_fit(X, y)
    with pytest.raises(ValueError, match="penalty='l2'"):
        LinearSVC("l1").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="balanced"):
        LinearSVC(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="was not in `classes`"):
        LinearSVC().partial_fit(X, [0, 2], classes=[0, 1])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_stochastic_steps_come_close_to_the_best_objective(loss):
    X, y = separable_stream(np.random.default_rng(3))
    quick = LinearSVC(loss=loss, solver="sgd").fit(X, y)
    exact = LinearSVC(loss=loss).fit(X, y)
    assert quick.certificate_.primal <= 1.02 * exact.certificate_.primal
    assert quick.certificate_.dual <= exact.certificate_.primal


@pytest.mark.parametrize(
    "model", [LinearSVC(), LinearSVC(loss="hinge"), LinearSVC("l1"), LinearSVR(epsilon=0.1)]
)
def test_a_path_is_the_fits_at_its_prices(model):
    X, y = load_iris(return_X_y=True)
    prices = [0.01, 0.1, 1.0]
    model = clone(model).set_params(tol=1e-6)
    points = list(margrove.linear_path(model, X, y == 2, prices))
    assert [point.C for point in points] == prices
    for point in points:
        alone = clone(model).set_params(C=point.C).fit(X, y == 2)
        assert point.relative_gap <= 1e-6
        assert np.abs(point.coef - np.atleast_2d(alone.coef_)).max() < 2e-2
    assert not hasattr(model, "coef_")


def test_a_path_names_what_is_wrong():
    with pytest.raises(ValueError, match="ascend"):
        margrove.linear_path(LinearSVC(), [[0.0], [1.0]], [0, 1], [1.0, 0.1])
    with pytest.raises(ValueError, match="positive"):
        margrove.linear_path(LinearSVC(), [[0.0], [1.0]], [0, 1], [0.0])
    with pytest.raises(TypeError, match="LinearSVC and LinearSVR"):
        margrove.linear_path(SVC(), [[0.0], [1.0]], [0, 1], [1.0])


def test_the_last_machine_sums_as_those_before_it(monkeypatch) -> None:
    """With n_jobs=2 one machine may be left, for which BLAS must not use more threads."""
    X = np.random.default_rng(0).standard_normal((300, 80))
    n_threads, usual = set(), NewtonProcess.advance

    def advance(process, work):
        n_threads.update(
            own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"
        )
        return usual(process, work)

    monkeypatch.setattr(NewtonProcess, "advance", advance)
    for n_jobs in (1, 2):
        LinearSVC(solver="newton", n_jobs=n_jobs).fit(X, np.arange(300) % 3)
    assert n_threads == {1}
