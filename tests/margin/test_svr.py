"""Estimators: SVR, NuSVR and OneClassSVM, against scikit-learn and on their own terms."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.preprocessing import StandardScaler
from tests.interrupts import interrupt_after, steady_clock
from tests.oracles.quadratic import objective, solve_qp

from margrove import SVR, NuSVR, OneClassSVM, watch
from margrove.datasets import load_breast_cancer, load_diabetes, load_iris
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    InterruptedFitWarning,
    NotSeparableError,
)
from margrove.margin.kernels.functions import RBF, Linear

TIGHT = 1e-6
CLOSE = 1e-4
THEIRS = {SVR: svm.SVR, NuSVR: svm.NuSVR, OneClassSVM: svm.OneClassSVM}
ALL = [(SVR, {"C": 2.0, "epsilon": 0.2}), (NuSVR, {"C": 2.0, "nu": 0.4}), (OneClassSVM, {})]


@cache
def diabetes(n=442):
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], ((y - y.mean()) / y.std())[:n]


def sine(n=50):
    x = np.linspace(0, 6, n)
    return x[:, None], np.sin(x)


def values_of(model, X):
    return model.decision_function(X) if isinstance(model, OneClassSVM) else model.predict(X)


def assert_same_machine(ours, theirs, X) -> None:
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    for name in ("dual_coef_", "intercept_", "support_vectors_"):
        own, other = getattr(ours, name), getattr(theirs, name)
        own = own.toarray() if sp.issparse(own) else own
        other = other.toarray() if sp.issparse(other) else other
        assert own.shape == other.shape
        scale = max(1.0, np.abs(other).max(initial=0.0))
        assert np.abs(own - other).max(initial=0.0) <= 10 * CLOSE * scale
    assert isinstance(ours.n_iter_, int)
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.shape_fit_ == theirs.shape_fit_
    if theirs.kernel == "linear":
        other = theirs.coef_.toarray() if sp.issparse(theirs.coef_) else theirs.coef_
        assert ours.coef_.shape == other.shape
        assert np.abs(ours.coef_ - other).max() <= CLOSE * max(1.0, np.abs(other).max())
    own, other = (
        model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
        for model in (ours, theirs)
    )
    assert own.shape == other.shape == (X.shape[0],)
    assert np.abs(own - other).max() <= CLOSE


# -- scikit-learn's answers ----------------------------------------------------------------------


SETTINGS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.01, "C": 10.0},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": 0.1},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_svr_is_scikit_learns(settings, epsilon) -> None:
    X, y = diabetes()
    common = {"epsilon": epsilon, "tol": TIGHT} | settings
    assert_same_machine(SVR(**common).fit(X, y), svm.SVR(**common).fit(X, y), X)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_nu_svr_is_scikit_learns(settings, nu) -> None:
    X, y = diabetes()
    common = {"nu": nu, "tol": TIGHT} | settings
    ours = NuSVR(**common).fit(X, y)
    assert_same_machine(ours, svm.NuSVR(**common).fit(X, y), X)
    # The tube it found is that of an SVR with the same solution.
    twin = SVR(epsilon=ours.epsilon_, tol=TIGHT, **settings).fit(X, y)
    assert np.abs(twin.predict(X) - ours.predict(X)).max() <= CLOSE
    outside = np.abs(y - ours.predict(X)) > ours.epsilon_ + 1e-5
    assert outside.mean() <= nu <= len(ours.support_) / len(y)


@pytest.mark.parametrize("name", ["iris", "breast cancer"])
@pytest.mark.parametrize("nu", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_one_class_svm_is_scikit_learns(name, nu, kernel) -> None:
    loader = {"iris": load_iris, "breast cancer": load_breast_cancer}[name]
    X = StandardScaler().fit_transform(np.unique(loader(return_X_y=True)[0], axis=0))
    if kernel == "linear":
        X = X + 3.0  # half-spaces are away from the origin
    common = {"nu": nu, "kernel": kernel, "tol": TIGHT}
    ours, theirs = OneClassSVM(**common).fit(X), svm.OneClassSVM(**common).fit(X)
    scale = np.abs(theirs.decision_function(X)).max()
    assert np.abs(ours.decision_function(X) - theirs.decision_function(X)).max() <= CLOSE * scale
    assert np.abs(ours.score_samples(X) - theirs.score_samples(X)).max() <= CLOSE * scale
    assert ours.offset_.shape == theirs.offset_.shape
    assert np.abs(ours.offset_ - theirs.offset_).max() <= CLOSE * scale
    assert np.array_equal(ours.offset_, -ours.intercept_)
    assert np.abs(ours.dual_coef_.sum() - nu * len(X)) <= 1e-9 * len(X)
    clear = np.abs(theirs.decision_function(X)) > CLOSE * scale
    assert np.array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    assert np.array_equal(ours.fit_predict(X), ours.predict(X))
    assert set(ours.predict(X)) <= {-1, 1}
    assert np.mean(ours.decision_function(X) < -1e-5 * scale) <= nu <= len(ours.support_) / len(X)
    if kernel == "rbf":
        assert set(ours.support_) == set(theirs.support_)


def test_callable_and_precomputed_kernels() -> None:
    X, y = diabetes(200)

    def kernel(A, B):
        return laplacian_kernel(A, B, gamma=0.1)

    K, new = kernel(X, X), X[:7] + 0.1
    for cls, settings in ALL:
        theirs = THEIRS[cls](kernel="precomputed", tol=TIGHT, **settings).fit(K, y)
        named = cls(kernel="laplacian", gamma=0.1, tol=TIGHT, **settings).fit(X, y)
        called = cls(kernel=kernel, tol=TIGHT, **settings).fit(X, y)
        given = cls(kernel="precomputed", tol=TIGHT, **settings).fit(K, y)
        assert_same_machine(given, theirs, K)
        expected = values_of(given, kernel(new, X))
        for model in (named, called):
            assert np.abs(values_of(model, new) - expected).max() <= CLOSE


@pytest.mark.parametrize(("cls", "settings"), ALL, ids=str)
def test_sample_weights(cls, settings) -> None:
    X, y = diabetes()
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(y))
    common = {"gamma": 0.05, "tol": TIGHT} | settings
    ours = cls(**common).fit(X, y, sample_weight=weight)
    theirs = THEIRS[cls](**common).fit(X, y, sample_weight=weight)
    own, other = values_of(ours, X), values_of_theirs(theirs, X)
    assert np.abs(own - other).max() <= CLOSE * max(1.0, np.abs(other).max())
    # A weight is a number of copies.
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    copies = np.random.default_rng(2).permutation(np.repeat(np.arange(len(y)), counts))
    weighted = cls(**common).fit(X, y, sample_weight=counts)
    copied = cls(**common).fit(X[copies], y[copies])
    assert np.abs(values_of(weighted, X) - values_of(copied, X)).max() <= 1e-9


def values_of_theirs(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize(("cls", "settings"), ALL, ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_float32_and_frames(cls, settings, kernel) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = diabetes(200)
    X = np.where(np.abs(X) < 0.5, 0.0, X.astype(np.float32))
    common = {"kernel": kernel, "gamma": 0.1, "tol": TIGHT} | settings
    if cls is OneClassSVM and kernel == "linear":
        X = X + 3.0
    plain = cls(**common).fit(X, y)
    expected = values_of(plain, X)
    scale = max(1.0, np.abs(expected).max())
    for index in (np.int32, np.int64):
        sparse = sp.csr_array(X)
        sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
        found = values_of(cls(**common).fit(sparse, y), sparse)
        assert np.abs(found - expected).max() <= CLOSE * scale
    narrow = cls(**common).fit(X.astype(np.float32), y)
    found = values_of(narrow, X.astype(np.float32))
    assert np.abs(found - expected).max() <= 1e-5 * scale
    columns = {f"c{k}": X[:, k] for k in range(X.shape[1])}
    for frame, target in (
        (pandas.DataFrame(columns), pandas.Series(y)),
        (polars.DataFrame(columns), polars.Series(y)),
    ):
        model = cls(**common).fit(frame, target)
        assert np.array_equal(values_of(model, frame), expected)
        assert model.feature_names_in_.tolist() == list(columns)


# -- what the attributes mean --------------------------------------------------------------------


@pytest.mark.nojit
def test_attributes_are_the_function() -> None:
    X, y = sine(30)
    model = SVR(C=5.0, gamma=1.0, epsilon=0.05, n_jobs=1).fit(X, y)
    K = RBF(gamma=1.0)(X, model.support_vectors_)
    expected = K @ model.dual_coef_[0] + model.intercept_
    assert np.abs(model.predict(X) - expected).max() <= 1e-12
    assert np.array_equal(model.support_vectors_, X[model.support_])
    residual = (y - model.predict(X))[model.support_]
    assert np.array_equal(np.sign(residual), np.sign(model.dual_coef_[0]))
    assert np.abs(residual).min() >= 0.05 - 1e-3
    assert np.abs(model.dual_coef_).max() <= 5.0
    assert abs(model.dual_coef_.sum()) <= 1e-12


@pytest.mark.nojit
@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.5)], ids=str)
def test_no_intercept_against_an_interior_point_method(kernel) -> None:
    X, y = sine(24)
    y, n = y + 0.3, 24
    signs = np.r_[np.ones(n), -np.ones(n)]
    Q = signs[:, None] * np.tile(kernel(X), (2, 2)) * signs
    p = np.r_[0.1 - y, 0.1 + y]
    u = np.full(2 * n, 2.0)
    best = solve_qp(Q, p, np.zeros((0, 2 * n)), np.zeros(0), u)
    for solver in ("auto", "cd"):
        model = SVR(C=2.0, kernel=kernel, fit_intercept=False, solver=solver, tol=1e-8, n_jobs=1)
        model.fit(X, y)
        assert model.intercept_.tolist() == [0.0]
        coef = np.zeros(n)
        coef[model.support_] = model.dual_coef_[0]
        alpha = np.r_[np.maximum(coef, 0), np.maximum(-coef, 0)]
        lowest = objective(Q, p, best)
        assert objective(Q, p, alpha) - lowest <= 1e-7 * abs(lowest)
        assert np.abs(model.predict(X) - kernel(X) @ (best[:n] - best[n:])).max() <= 1e-4


def test_wrong_solvers_are_refused() -> None:
    X, y = sine()
    with pytest.raises(ValueError, match="use fit_intercept=False"):
        SVR(solver="cd").fit(X, y)
    with pytest.raises(ValueError, match=r"'smo' is for machines with a bias.*'cd'"):
        SVR(solver="smo", fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="'solver' parameter of SVR"):
        SVR(solver="hull").fit(X, y)


@pytest.mark.parametrize("shift", [0.0, 1e3, -1e6])
def test_the_level_of_the_targets_is_the_intercepts_alone(shift) -> None:
    X, y = diabetes(150)
    plain = SVR(tol=TIGHT).fit(X, y)
    moved = SVR(tol=TIGHT).fit(X, y + shift)
    assert np.abs(moved.predict(X) - shift - plain.predict(X)).max() <= 1e-4
    assert moved.n_iter_ <= 2 * plain.n_iter_ + 100


@pytest.mark.parametrize("unit", [1e-100, 1e-25, 1e25, 1e100])
def test_the_unit_of_the_targets_does_not_matter(unit) -> None:
    X, y = diabetes(150)
    plain = SVR(tol=TIGHT, epsilon=0.1, C=1.0).fit(X, y)
    scaled = SVR(tol=TIGHT, epsilon=0.1 * unit, C=unit).fit(X, y * unit)
    assert np.abs(scaled.predict(X) / unit - plain.predict(X)).max() <= 1e-3


# -- hard tubes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("gamma", "epsilon"), [(1.0, 0.1), (1.0, 0.01), (10.0, 0.1), (10.0, 0.01), (100.0, 1e-3)]
)
def test_an_infinite_price_keeps_all_targets_in_the_tube(gamma, epsilon, fit_intercept) -> None:
    X, y = sine()
    # There is such a function: near interpolation with a little ridge.
    K = RBF(gamma=gamma)(X)
    coef = np.linalg.solve(K + 1e-6 * np.eye(len(y)), y)
    assert np.abs(K @ coef - y).max() < epsilon
    model = SVR(C=np.inf, gamma=gamma, epsilon=epsilon, fit_intercept=fit_intercept, tol=1e-5)
    model.fit(X, y)
    assert np.abs(model.predict(X) - y).max() <= epsilon + 2e-5
    found = model.dual_coef_[0] @ K[np.ix_(model.support_, model.support_)] @ model.dual_coef_[0]
    assert found <= coef @ K @ coef * (1 + 1e-3)  # and none is flatter


def test_an_infinite_price_that_nothing_meets_is_an_error() -> None:
    X, y = sine()
    model = SVR(kernel="linear").fit(X, y)
    before = model.predict(X)
    model.set_params(C=np.inf)
    with pytest.raises(NotSeparableError, match=r"within epsilon.*rows \d+") as caught:
        model.fit(X, y)
    rows, weights = np.asarray(caught.value.rows), np.asarray(caught.value.weights)
    assert len(rows) == len(weights) > 0
    assert np.array_equal(model.predict(X), before)
    # A proof: a sum of targets that every line gives as zero, and that is not within epsilon of it.
    assert any(
        abs(signed.sum()) <= 1e-6
        and np.abs(signed @ X[rows]).max() <= 1e-6
        and signed @ y[rows] > 0.1 * np.abs(signed).sum()
        for signed in (weights * np.array(signs) for signs in product([1, -1], repeat=len(rows)))
    )
    # The rows named cannot be met by themselves either.
    with pytest.raises(NotSeparableError):
        SVR(kernel="linear", C=np.inf).fit(X[rows], y[rows])
    for shift in (0.0, 0.3):  # the same x, targets too far apart
        with pytest.raises(NotSeparableError):
            SVR(C=np.inf, gamma=100.0).fit(np.vstack([X, X[:1]]), np.append(y, y[0] + 0.21 + shift))
    model = SVR(C=np.inf, gamma=100.0).fit(np.vstack([X, X[:1]]), np.append(y, y[0] + 0.15))
    assert np.abs(model.predict(X) - y).max() <= 0.1 + 1e-3


@pytest.mark.parametrize("limit", [{"max_iter": 3}, {"max_iter": 20}], ids=str)
def test_a_hard_tube_not_found_in_time_is_not_said_to_be_impossible(limit) -> None:
    X, y = sine()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=\d+.*KKT violation"):
        model = SVR(C=np.inf, **limit).fit(X, y)
    assert model.fit_status_ == 1
    assert np.isfinite(model.predict(X)).all()


# -- what must not matter ------------------------------------------------------------------------


@cache
def large(n=2500):
    """Twice as many variables, and more rows, than a block holds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(("cls", "settings"), ALL, ids=str)
def test_cache_and_threads_do_not_matter(cls, settings) -> None:
    X, y = large()
    models = [
        cls(cache_size=size, n_jobs=n_jobs, **settings).fit(X, y)
        for size, n_jobs in ((None, 2), (0.1, 2), (1.0, 1))
    ]
    for other in models[1:]:
        assert np.array_equal(other.dual_coef_, models[0].dual_coef_)
        assert np.array_equal(other.intercept_, models[0].intercept_)
        assert other.n_iter_ == models[0].n_iter_


@pytest.mark.parametrize(("cls", "settings"), ALL, ids=str)
def test_the_order_of_the_rows_does_not_matter(cls, settings) -> None:
    X, y = large()
    order = np.random.default_rng(0).permutation(len(X))
    model = cls(**settings).fit(X, y)
    other = clone(model).fit(X[order], y[order])
    assert np.array_equal(np.sort(order[other.support_]), model.support_)
    values = values_of(model, X)
    assert np.abs(values_of(other, X) - values).max() <= 1e-11 * np.abs(values).max()


@pytest.mark.parametrize(("cls", "settings"), ALL, ids=str)
def test_listening_changes_no_bit(cls, settings) -> None:
    X, y = diabetes(150)
    silent = cls(**settings).fit(X, y)
    steps = []
    with watch(on_step=steps.append):
        heard = cls(**settings).fit(X, y)
    assert np.array_equal(heard.dual_coef_, silent.dual_coef_)
    assert len(steps) == heard.n_iter_ == silent.n_iter_
    if cls is not OneClassSVM:  # which does not start from zero
        coef = np.zeros(len(y))
        for step in steps:
            coef[step.first] += step.change
            coef[step.second] -= step.change
        found = np.zeros(len(y))
        found[heard.support_] = heard.dual_coef_[0]
        assert np.abs(coef - found).max() <= 1e-9


# -- ending early --------------------------------------------------------------------------------


@pytest.mark.parametrize(("cls", "settings"), ALL, ids=str)
def test_a_budget_of_steps(cls, settings) -> None:
    X, y = diabetes()
    message = r"max_iter=7\).*raise max_iter.*KKT violation is .*duality gap "
    with pytest.warns(ConvergenceWarning, match=message):
        model = cls(max_iter=7, **settings).fit(X, y)
    assert model.n_iter_ == 7
    assert model.fit_status_ == 1
    assert np.isfinite(values_of(model, X)).all()


def hard_to_fit():
    rng = np.random.default_rng(0)
    return rng.normal(size=(800, 2)), rng.normal(size=800)


@pytest.mark.parametrize("cls", [SVR, NuSVR])
def test_budgets_of_time_and_interrupts(cls) -> None:
    X, y = hard_to_fit()
    model = cls(kernel="linear", C=1e8, tol=1e-9, max_time=0.1)
    with steady_clock(), pytest.warns(ConvergenceWarning, match=r"max_time=0\.1 s.*violation"):
        model.fit(X, y)
    assert model.fit_status_ == 1
    assert np.isfinite(model.predict(X)).all()
    model = cls(kernel="linear", C=1e8, tol=1e-9, on_interrupt="keep")
    told = pytest.warns(InterruptedFitWarning, match=f"{cls.__name__} was interrupted")
    with interrupt_after(1), told:
        model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()


# -- warm starts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("cls", "settings"), ALL, ids=str)
@pytest.mark.parametrize("change", ["nothing", "weights", "parameter", "targets"])
def test_warm_starts(cls, settings, change) -> None:
    X, y = diabetes()
    common = {"tol": TIGHT, "gamma": 0.05} | settings
    changed, weight = {}, None
    if change == "weights":
        weight = np.random.default_rng(0).uniform(0.8, 1.25, len(y))
    elif change == "parameter":
        changed = {"nu": 0.45} if cls is OneClassSVM else {"C": 2.2}
    target = y + 0.01 * np.sin(np.arange(len(y))) if change == "targets" else y
    cold = cls(**common | changed).fit(X, target, sample_weight=weight)
    warm = cls(warm_start=True, **common).fit(X, y)
    warm.set_params(**changed).fit(X, target, sample_weight=weight)
    assert warm.fit_status_ == 0
    assert warm.n_iter_ <= (0.05 if change == "nothing" else 1.1) * cold.n_iter_
    scale = max(1.0, np.abs(values_of(cold, X)).max())
    assert np.abs(values_of(warm, X) - values_of(cold, X)).max() <= CLOSE * scale


def test_a_warm_start_when_the_unit_of_the_targets_changes() -> None:
    X, y = diabetes(150)
    warm = SVR(warm_start=True, tol=TIGHT).fit(X, y)
    warm.set_params(C=1e30, epsilon=1e29).fit(X, y * 1e30)
    cold = SVR(tol=TIGHT).fit(X, y)
    assert np.abs(warm.predict(X) / 1e30 - cold.predict(X)).max() <= 1e-3


def test_a_warm_start_to_and_from_the_hard_tube() -> None:
    X, y = sine()
    warm = SVR(warm_start=True, gamma=1.0, tol=1e-5)
    for C in (1.0, np.inf, 1.0, np.inf):
        warm.set_params(C=C).fit(X, y)
        cold = SVR(C=C, gamma=1.0, tol=1e-5).fit(X, y)
        assert np.abs(warm.predict(X) - cold.predict(X)).max() <= 1e-3


# -- odd targets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [SVR, NuSVR])
@pytest.mark.parametrize("constant", [0.0, 3.5, -1e300])
def test_constant_targets(cls, constant) -> None:
    X, _ = sine()
    model = cls().fit(X, np.full(len(X), constant))
    assert (model.predict(X) == constant).all()
    assert len(model.support_) == 0 or cls is NuSVR


def test_a_tube_wider_than_the_targets_says_so() -> None:
    X, y = sine()
    with pytest.warns(DataWarning, match=r"epsilon=5 .* no support vectors"):
        model = SVR(epsilon=5.0).fit(X, y)
    assert len(model.support_) == 0
    assert model.support_vectors_.shape == (0, 1)
    assert (np.abs(model.predict(X) - y) <= 5.0).all()
    assert np.unique(model.predict(X)).size == 1


@pytest.mark.parametrize("cls", [SVR, NuSVR])
@pytest.mark.parametrize("factor", [1e2, 1e4, 1e6, 1e8, 1e10, 1e20])
def test_features_that_nobody_scaled(cls, factor) -> None:
    """What is said to be solved is solved, for the price that was asked for."""
    rng = np.random.default_rng(0)
    X, y = factor * rng.normal(size=(20, 1)), np.arange(20) % 6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = cls(kernel="linear", C=0.01).fit(X, y)
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    proof = model.certificate_
    assert caught or model.fit_status_ == 0
    if not caught:
        assert proof.violation <= 2e-3
        assert proof.relative_gap <= 1e-2
