"""Certificates: objectives from their definitions, and a gap that never promises too much."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from tests.oracles.quadratic import objective, solve_qp

import margrove
from margrove import SVC, SVR, NuSVC, NuSVR, OneClassSVM, Perceptron
from margrove.datasets import load_breast_cancer, load_iris
from margrove.exceptions import ConvergenceWarning, DataWarning, InvalidDataError
from margrove.margin.kernels.functions import RBF, Linear

KERNELS = [Linear(), RBF(gamma=0.5), RBF(gamma=5.0)]
TOLERANCES = [1e-1, 1e-2, 1e-3]


def a_problem(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    labels = (X[:, 0] + 0.7 * rng.normal(size=n) > 0).astype(int)
    labels[:2] = 0, 1
    targets = X[:, 0] ** 2 + 0.3 * rng.normal(size=n)
    return X, labels, targets, rng.uniform(0.5, 2.0, n), 10.0 ** rng.uniform(-1, 1.5)


def coefficients(model, n):
    coef = np.zeros(n)
    coef[model.support_] = model.dual_coef_[0]
    return coef


def best_of(K, signs, p, u, equal_sums=True):
    """The best dual objective, to be compared with `dual`."""
    n = len(signs)
    rows = np.arange(n) % len(K)
    Q = signs[:, None] * K[np.ix_(rows, rows)] * signs
    A = signs[None] if equal_sums else np.zeros((0, n))
    alpha = solve_qp(Q, p, A, np.zeros(len(A)), u)
    return -objective(Q, p, alpha)


def assert_bounds_the_error(proof, primal, dual, best) -> None:
    """The definitions agree, the best value is in between, and so the gap bounds both errors."""
    scale = max(1e-3, abs(best))
    assert proof.dual == pytest.approx(dual, rel=1e-9, abs=1e-9)
    assert proof.primal == pytest.approx(primal, rel=1e-9, abs=1e-9)
    assert proof.gap == pytest.approx(primal - dual, rel=1e-6, abs=1e-9 * scale)
    assert proof.gap >= 0
    assert proof.dual <= best + 1e-7 * scale
    assert best <= proof.primal + 1e-7 * scale
    assert proof.gap >= best - proof.dual - 1e-7 * scale


examples = given(
    seed=st.integers(0, 10**6), kernel=st.sampled_from(KERNELS), tol=st.sampled_from(TOLERANCES)
)


@settings(max_examples=40)
@examples
def test_svc(seed, kernel, tol) -> None:
    X, y, _, weight, C = a_problem(seed)
    signs, K = 2.0 * y - 1, kernel(X)
    model = SVC(C=C, kernel=kernel, tol=tol).fit(X, y, sample_weight=weight)
    coef = coefficients(model, len(y))
    f = K @ coef + model.intercept_
    primal = 0.5 * coef @ K @ coef + C * weight @ np.maximum(0, 1 - signs * f)
    dual = np.abs(coef).sum() - 0.5 * coef @ K @ coef
    best = best_of(K, signs, -np.ones(len(y)), C * weight)
    assert_bounds_the_error(model.certificate_, primal, dual, best)


@settings(max_examples=25)
@examples
def test_svc_without_a_bias(seed, kernel, tol) -> None:
    X, y, _, weight, C = a_problem(seed)
    signs, K = 2.0 * y - 1, kernel(X)
    model = SVC(C=C, kernel=kernel, tol=tol, fit_intercept=False).fit(X, y, sample_weight=weight)
    coef = coefficients(model, len(y))
    primal = 0.5 * coef @ K @ coef + C * weight @ np.maximum(0, 1 - signs * (K @ coef))
    dual = np.abs(coef).sum() - 0.5 * coef @ K @ coef
    best = best_of(K, signs, -np.ones(len(y)), C * weight, equal_sums=False)
    assert_bounds_the_error(model.certificate_, primal, dual, best)


@settings(max_examples=25)
@examples
def test_nu_svc(seed, kernel, tol) -> None:
    """As the C-SVC with C = 1 / r, whose solution it has."""
    X, y, _, weight, _ = a_problem(seed)
    signs, K = 2.0 * y - 1, kernel(X)
    nu = 0.8 * 2 * min(weight[y == 0].sum(), weight[y == 1].sum()) / weight.sum()
    model = NuSVC(nu=nu, kernel=kernel, tol=tol)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*leaves no margin", DataWarning)
        model.fit(X, y, sample_weight=weight)
    if not len(model.support_):
        return
    coef = coefficients(model, len(y))
    bounds = weight * np.abs(coef).sum() / (nu * weight.sum())
    assert (np.abs(coef) <= bounds * (1 + 1e-9)).all()
    f = K @ coef + model.intercept_
    primal = 0.5 * coef @ K @ coef + bounds @ np.maximum(0, 1 - signs * f)
    dual = np.abs(coef).sum() - 0.5 * coef @ K @ coef
    best = best_of(K, signs, -np.ones(len(y)), bounds)
    assert_bounds_the_error(model.certificate_, primal, dual, best)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(KERNELS),
    tol=st.sampled_from(TOLERANCES),
    cls=st.sampled_from([SVR, NuSVR]),
)
def test_regression(seed, kernel, tol, cls) -> None:
    X, _, y, weight, C = a_problem(seed)
    K, n = kernel(X), len(y)
    own = {"epsilon": 0.1} if cls is SVR else {"nu": 0.4}
    model = cls(C=C, kernel=kernel, tol=tol, **own).fit(X, y, sample_weight=weight)
    epsilon = getattr(model, "epsilon_", 0.1)
    coef = coefficients(model, n)
    errors = np.maximum(0, np.abs(y - K @ coef - model.intercept_) - epsilon)
    primal = 0.5 * coef @ K @ coef + C * weight @ errors
    dual = y @ coef - epsilon * np.abs(coef).sum() - 0.5 * coef @ K @ coef
    signs = np.r_[np.ones(n), -np.ones(n)]
    best = best_of(K, signs, np.r_[epsilon - y, epsilon + y], C * np.r_[weight, weight])
    assert_bounds_the_error(model.certificate_, primal, dual, best)
    assert np.allclose(model.certificate_.errors, errors)


@settings(max_examples=25)
@examples
def test_one_class(seed, kernel, tol) -> None:
    X, _, _, weight, _ = a_problem(seed)
    K, n, nu = kernel(X), len(X), 0.3
    model = OneClassSVM(nu=nu, kernel=kernel, tol=tol).fit(X, sample_weight=weight)
    coef, rho = coefficients(model, n), float(model.offset_[0])
    total = nu * weight.sum()
    primal = 0.5 * coef @ K @ coef - rho * total + weight @ np.maximum(0, rho - K @ coef)
    dual = -0.5 * coef @ K @ coef
    alpha = solve_qp(K, np.zeros(n), np.ones((1, n)), np.array([total]), weight)
    best = -0.5 * alpha @ K @ alpha
    assert_bounds_the_error(model.certificate_, primal, dual, best)


def test_many_machines_are_summed() -> None:
    X, y = load_iris(return_X_y=True)
    for kind in ("ovo", "ovr"):
        model = SVC(multi_class=kind, class_weight="balanced", tol=1e-2).fit(X, y)
        proof = model.certificate_
        assert len(proof.machines) == 3
        for name in ("primal", "dual", "gap"):
            assert getattr(proof, name) == sum(getattr(m, name) for m in proof.machines)
        assert proof.violation == max(m.violation for m in proof.machines) == proof.worst.violation
        assert proof.violation < 1e-2 * (1 + 1e-6)
        assert proof.relative_gap == proof.gap / max(abs(proof.primal), abs(proof.dual))
        with pytest.raises(AttributeError, match=r"3 machines.*machines\[k\]\.margin_width"):
            _ = proof.margin_width
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = proof.nonsense
        assert "worst" in str(proof)


def test_one_vs_one_machines_are_binary_machines() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], np.array(["a", "b", "c"])[y[::2]]
    proof = SVC(tol=1e-8).fit(X, y).certificate_
    for part, (i, j) in zip(proof.machines, [("a", "b"), ("a", "c"), ("b", "c")], strict=True):
        assert part.name == f"{i!r} against {j!r}"
        rows = np.flatnonzero((y == i) | (y == j))
        assert np.array_equal(part.rows, rows)
        gamma = 1 / (X.shape[1] * X.var())
        alone = SVC(tol=1e-8, gamma=gamma).fit(X[rows], y[rows]).certificate_
        assert part.dual == pytest.approx(alone.dual, rel=1e-6)
        assert part.norm == pytest.approx(alone.norm, rel=1e-5)


# -- parts ---------------------------------------------------------------------------------------


def clouds(distance=2.0, n=80, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + distance * y[:, None], y


def test_kinds_of_support_vectors_partition_them() -> None:
    X, y = clouds()
    for C in (0.05, 1.0, 100.0):
        model = SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
        proof = model.certificate_
        support = np.sort(model.support_)
        assert np.array_equal(np.sort(proof.support), support)
        for kinds in (
            (proof.on_margin, proof.inside_margin, proof.misclassified),
            (proof.free, proof.bounded),
        ):
            assert np.array_equal(np.sort(np.concatenate(kinds)), support)
        slack = np.maximum(0, 1 - (2 * y - 1) * model.decision_function(X))
        assert set(proof.misclassified) == set(np.flatnonzero(slack > 1))
        assert set(proof.free) <= set(proof.on_margin)
        assert (slack[proof.inside_margin] > 0).all()
        assert (slack[proof.inside_margin] <= 1).all()
        assert np.allclose(proof.alpha[np.isin(proof.rows, proof.bounded)], C)
        assert np.allclose(proof.errors, slack, atol=1e-12)
        assert np.allclose(proof.decision, model.decision_function(X))
        for row in (0, 7, int(support[0])):
            assert proof.slack(row) == pytest.approx(slack[row], abs=1e-12)


def test_slack_of_a_row_that_took_no_part() -> None:
    X, y = load_iris(return_X_y=True)
    proof = SVC().fit(X, y).certificate_
    with pytest.raises(InvalidDataError, match="not fitted to row 120"):
        proof.machines[0].slack(120)
    weight = np.ones(100)
    weight[3] = 0
    proof = SVC().fit(X[:100], y[:100], sample_weight=weight).certificate_
    with pytest.raises(InvalidDataError, match="not fitted to row 3"):
        proof.slack(3)
    assert 3 not in proof.rows


def test_the_margin_is_two_over_the_norm() -> None:
    X, y = clouds(6.0)
    for C in (0.1, np.inf):
        model = SVC(C=C, kernel="linear").fit(X, y)
        width = 2 / np.linalg.norm(model.coef_)
        assert model.certificate_.margin_width == pytest.approx(width)
        assert model.certificate_.norm == pytest.approx(np.linalg.norm(model.coef_))
        assert f"{width:.6g}" in str(model.certificate_)
    with pytest.warns(ConvergenceWarning):
        nothing = SVC(max_iter=0).fit(X, y)
    assert nothing.certificate_.margin_width == np.inf


def test_the_violation_is_between_the_rows_named() -> None:
    X, y = clouds()
    signs = 2 * y - 1
    for tol in (1.0, 0.1, 1e-3):
        model = SVC(tol=tol).fit(X, y)
        proof = model.certificate_
        coef = coefficients(model, len(y))
        f = model.decision_function(X) - model.intercept_ - signs
        alpha = np.abs(coef)
        up = np.where(signs > 0, alpha < 1, alpha > 0)
        low = np.where(signs > 0, alpha > 0, alpha < 1)
        assert proof.violation == pytest.approx(f[low].max() - f[up].min(), abs=1e-12)
        assert proof.violation < tol
        i, j = proof.violating_rows
        assert f[j] - f[i] == pytest.approx(proof.violation, abs=1e-12)
        assert up[i]
        assert low[j]
        assert f"between rows {i} and {j}" in str(proof)


def test_the_trace_comes_down() -> None:
    X, y = clouds(1.0, 3000)
    for model in (SVC(C=10.0), SVR(C=10.0), OneClassSVM(nu=0.1)):
        model.fit(X, y)
        trace = model.certificate_.trace
        assert len(trace) >= 2
        objectives = np.array([point.objective for point in trace])
        assert (np.diff(objectives) <= 1e-9 * np.abs(objectives).max()).all()
        assert (np.diff([point.iterations for point in trace]) >= 0).all()
        assert trace[-1].iterations == np.sum(model.n_iter_)
        assert trace[-1].violation <= model.tol
        assert trace[-1].violation < trace[0].violation
    assert trace[-1].objective == pytest.approx(-model.certificate_.dual, rel=1e-4)


@pytest.mark.parametrize("solver", ["hull", "cd", "sgd"])
def test_the_other_solvers_have_traces_and_proofs(solver) -> None:
    X, y = clouds()
    model = SVC(solver=solver, fit_intercept=solver != "cd").fit(X, y)
    proof = model.certificate_
    assert proof.trace
    assert 0 <= proof.relative_gap <= (0.011 if solver == "sgd" else 1e-3)


def test_hard_margins() -> None:
    X, y = clouds(8.0)
    exact = SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X, y)
    best = 0.5 * float(np.sum(exact.coef_**2))
    for tol in (0.5, 1e-2, 1e-6):
        proof = SVC(C=np.inf, kernel="linear", tol=tol).fit(X, y).certificate_
        assert proof.dual <= best * (1 + 1e-8)
        assert proof.primal >= best * (1 - 1e-8)
        assert proof.gap == pytest.approx(proof.primal - proof.dual, abs=1e-12)
        assert len(proof.bounded) == 0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_hard_tubes(fit_intercept) -> None:
    """A function that leaves the tube by a little is no upper bound on the flattest inside."""
    x = np.linspace(0, 6, 30)
    X, y = x[:, None], np.sin(x)
    settings = {"C": np.inf, "gamma": 1.0, "epsilon": 0.05, "fit_intercept": fit_intercept}
    best = SVR(tol=1e-6, **settings).fit(X, y).certificate_.dual
    for tol in (0.3, 0.03, 1e-3):
        proof = SVR(tol=tol, **settings).fit(X, y).certificate_
        assert proof.dual <= best * (1 + 1e-4)
        assert proof.primal >= best * (1 - 1e-4)
        assert proof.gap >= best - proof.dual - 1e-4 * best


# -- of other people's machines ------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_scikit_learns_machines(kernel) -> None:
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0) + 2.0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    common = {"kernel": kernel, "tol": 1e-5, "gamma": 0.05, "coef0": 0.1}
    for theirs, ours in (
        (svm.SVC(class_weight={0: 2.0}, **common), SVC(class_weight={0: 2.0}, **common)),
        (svm.SVR(**common), SVR(**common)),
        (svm.OneClassSVM(**common), OneClassSVM(**common)),
        (svm.NuSVC(nu=0.3, **common), NuSVC(nu=0.3, **common)),
    ):
        with warnings.catch_warnings():
            if kernel == "sigmoid":
                warnings.simplefilter("ignore")  # it is not positive definite
            theirs.fit(X, y, sample_weight=weight)
            ours.fit(X, y, sample_weight=weight)
        their_proof = margrove.certificate(theirs, X, y, weight)
        our_proof = margrove.certificate(ours, X, y, weight)
        assert len(their_proof.machines) == len(our_proof.machines)
        if kernel != "sigmoid":
            assert their_proof.dual == pytest.approx(our_proof.dual, rel=1e-3)
            assert 0 <= their_proof.relative_gap < 1e-2
            assert 0 <= our_proof.relative_gap < 1e-2


@pytest.mark.parametrize("nu", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
def test_the_tube_of_scikit_learns_nu_svr_is_found_from_its_support_vectors(nu, C) -> None:
    X, y = load_iris(return_X_y=True)
    theirs = margrove.certificate(svm.NuSVR(nu=nu, C=C, tol=1e-5).fit(X, y), X, y)
    ours = margrove.certificate(NuSVR(nu=nu, C=C, tol=1e-5).fit(X, y), X, y)
    assert 0 <= theirs.relative_gap < 1e-2
    assert theirs.norm == pytest.approx(ours.norm, rel=1e-2)


@pytest.mark.parametrize("cls", [svm.SVC, SVC])
def test_sparse_and_precomputed(cls) -> None:
    X, y = load_iris(return_X_y=True)
    dense = margrove.certificate(cls(gamma=0.5).fit(X, y), X, y)
    sparse = margrove.certificate(cls(gamma=0.5).fit(sp.csr_array(X), y), sp.csr_array(X), y)
    assert sparse.primal == pytest.approx(dense.primal, rel=1e-5)
    K = RBF(gamma=0.5)(X)
    given = margrove.certificate(cls(kernel="precomputed").fit(K, y), K, y)
    assert given.primal == pytest.approx(dense.primal, rel=1e-3)
    function = margrove.certificate(cls(kernel=RBF(gamma=0.5).__call__).fit(X, y), X, y)
    assert function.primal == pytest.approx(dense.primal, rel=1e-3)


def test_strangers_are_refused() -> None:
    X, y = load_iris(return_X_y=True)
    for model in (Perceptron().fit(X, y), LogisticRegression(max_iter=1000).fit(X, y)):
        with pytest.raises(TypeError, match=f"model must be one of .* Got {type(model).__name__}"):
            margrove.certificate(model, X, y)
    for model in (SVC(), svm.SVC()):
        with pytest.raises(NotFittedError):
            margrove.certificate(model, X, y)
    with pytest.raises(NotFittedError):
        _ = SVC().certificate_


# -- the data it is about ------------------------------------------------------------------------


def test_a_pickled_model_has_forgotten_its_data() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weight = np.linspace(0.5, 2.0, len(y))
    model = SVC().fit(X, y, sample_weight=weight)
    proof = model.certificate_
    assert model.certificate_ is proof  # computed once
    data = pickle.dumps(model)
    assert len(data) < X.nbytes
    again = pickle.loads(data)
    with pytest.raises(AttributeError, match=r"margrove\.certificate\(model, X, y"):
        _ = again.certificate_
    other = margrove.certificate(again, X, y, weight)
    assert other.primal == proof.primal
    assert other.dual == proof.dual


@pytest.mark.parametrize("cls", [SVC, svm.SVC])
def test_other_data_are_noticed(cls) -> None:
    X, y = load_iris(return_X_y=True)
    model = cls().fit(X, y)
    with pytest.raises(InvalidDataError, match="not rows of X"):
        margrove.certificate(model, X + 1e-9, y)
    with pytest.raises(InvalidDataError, match="not rows of X"):
        margrove.certificate(model, X[::-1], y[::-1])
    with pytest.raises(InvalidDataError, match="X has only 50 rows"):
        margrove.certificate(model, X[:50], y[:50])
    with pytest.raises(InvalidDataError, match=r"7.* at row 3, which is not a class of the model"):
        margrove.certificate(model, X, np.where(np.arange(150) == 3, 7, y))
    with pytest.raises(ValueError, match="150"):
        margrove.certificate(model, X, y[:-1])


def test_data_changed_after_the_fit_are_noticed() -> None:
    X, y = (a.copy() for a in load_iris(return_X_y=True))
    model = SVC().fit(X, y)
    X *= 2
    with pytest.raises(InvalidDataError, match="not rows of X"):
        _ = model.certificate_


@pytest.mark.parametrize("cls", [SVC, svm.SVC])
def test_labels_and_weights_that_it_was_not_fitted_to_are_noticed(cls) -> None:
    """The coefficients are not feasible for them, so that nothing could be proved."""
    X, y = clouds()
    with pytest.raises(InvalidDataError):
        margrove.certificate(cls().fit(X, y), X, 1 - y)
    weighted = cls(C=10.0).fit(X, y, sample_weight=np.full(len(y), 3.0))
    with pytest.raises(InvalidDataError):
        margrove.certificate(weighted, X, y)
    assert margrove.certificate(weighted, X, y, np.full(len(y), 3.0)).relative_gap < 1e-2


def test_the_certificate_is_that_of_the_last_fit() -> None:
    X, y = clouds()
    expected = SVC(C=10.0).fit(X, y).certificate_
    model = SVC(C=10.0).fit(X, y)
    model.set_params(C=0.01, kernel="linear")
    assert model.certificate_.primal == expected.primal
    assert model.certificate_.dual == expected.dual
    first = SVC().fit(X, y)
    before = first.certificate_
    assert first.fit(X[:40], y[:40]).certificate_ is not before
    assert len(first.certificate_.rows) == 40


@pytest.mark.parametrize("weight", [1e-200, 1e-5, 1e5])
def test_extreme_weights(weight) -> None:
    X, y = clouds()
    model = SVC(gamma=0.5).fit(X, y, sample_weight=np.full(len(y), weight))
    proof = model.certificate_
    assert np.isfinite(proof.primal)
    assert proof.gap >= 0
    assert proof.relative_gap < 1e-2


@pytest.mark.parametrize("factor", [1e-120, 1e120])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_extreme_features(factor, kernel) -> None:
    X, y = clouds(8.0 if kernel == "linear" else 2.0)  # a linear kernel's C is as extreme
    model = SVC(kernel=kernel).fit(X * factor, y)
    proof = model.certificate_
    assert np.isfinite(proof.primal)
    assert 0 <= proof.relative_gap < 1e-2


def test_repeated_rows_share_what_one_would_have() -> None:
    X, y = clouds()
    twice = np.repeat(np.arange(len(y)), 2)
    plain = SVC(C=2.0, gamma=0.5, tol=1e-6).fit(X, y, sample_weight=np.full(len(y), 2.0))
    copied = SVC(C=2.0, gamma=0.5, tol=1e-6).fit(X[twice], y[twice])
    assert copied.certificate_.dual == pytest.approx(plain.certificate_.dual, rel=1e-9)
    assert copied.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-9)
    assert (copied.certificate_.alpha <= 2.0).all()
