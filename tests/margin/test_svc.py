"""SVC and NuSVC: scikit-learn's answers, independent solutions, and what must not matter."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from tests.interrupts import interrupt_after, steady_clock
from tests.oracles.quadratic import objective, solve_qp

from margrove import SVC, NuSVC, watch
from margrove._runtime import memory as _memory
from margrove.datasets import load_breast_cancer, load_digits, load_iris, make_moons
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    InfeasibleNuError,
    InterruptedFitWarning,
    NotSeparableError,
)
from margrove.margin.kernels.functions import RBF, Linear
from margrove.margin.kernels.given_kernels import Precomputed

TIGHT = 1e-6
CLOSE = 1e-4


def without_repeats(X, y):
    """Equal rows share their coefficient here and do not in LIBSVM."""
    first = np.unique(np.column_stack([X, y]), axis=0, return_index=True)[1]
    return X[np.sort(first)], y[np.sort(first)]


@cache
def data(name):
    loaders = {"iris": load_iris, "breast cancer": load_breast_cancer, "digits": load_digits}
    X, y = loaders[name](return_X_y=True)
    if name == "digits":
        return without_repeats(X[:400] / 16.0, y[:400])
    X, y = without_repeats(X, y)
    return StandardScaler().fit_transform(X), y


@cache
def crowd(n=120, n_classes=6, seed=0):
    """Overlapping clouds: votes tie, and no machine is sure of anything."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n_classes, 2))[y] + rng.normal(size=(n, 2)), y


def binary(name="iris"):
    X, y = data(name)
    return (X[y > 0], y[y > 0]) if name == "iris" else (X, y)


SETTINGS = [
    {"kernel": "rbf", "C": 1.0},
    {"kernel": "rbf", "C": 100.0, "gamma": 0.05},
    {"kernel": "linear", "C": 1.0},
    {"kernel": "poly", "degree": 3, "coef0": 1.0},
    {"kernel": "poly", "degree": 2, "gamma": "auto", "C": 5.0},
]


def assert_same_machine(ours, theirs, X) -> None:
    """All public attributes, up to what two solvers of tolerance 1e-6 may differ by."""
    assert np.array_equal(ours.classes_, theirs.classes_)
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    for name in ("support_", "n_support_"):
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    for name in ("dual_coef_", "intercept_", "support_vectors_"):
        own, other = getattr(ours, name), getattr(theirs, name)
        other = other.toarray() if sp.issparse(other) else other
        own = own.toarray() if sp.issparse(own) else own
        assert own.shape == other.shape
        scale = max(1.0, np.abs(other).max()) if other.size else 1.0
        assert np.abs(own - other).max(initial=0.0) <= 10 * CLOSE * scale
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.shape_fit_ == theirs.shape_fit_
    if theirs.kernel == "linear":
        own, other = ours.coef_, theirs.coef_
        other = other.toarray() if sp.issparse(other) else other
        assert own.shape == other.shape
        assert np.abs(own - other).max() <= CLOSE
    assert_same_answers(ours, theirs, X)


def assert_same_answers(ours, theirs, X) -> None:
    own, other = ours.decision_function(X), theirs.decision_function(X)
    assert own.shape == other.shape
    assert np.abs(own - other).max() <= CLOSE
    assert np.array_equal(ours.predict(X), theirs.predict(X))


# -- scikit-learn's answers ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iris", "breast cancer", "digits"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_svc_is_scikit_learns(name, settings) -> None:
    X, y = data(name)
    common = {"tol": TIGHT, "decision_function_shape": "ovo"} | settings
    assert_same_machine(SVC(**common).fit(X, y), svm.SVC(**common).fit(X, y), X)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("iris", "rbf"), ("breast cancer", "rbf"), ("breast cancer", "linear"), ("digits", "linear")],
)
@pytest.mark.parametrize("nu", [0.1, 0.3])
def test_nu_svc_is_scikit_learns(name, nu, kernel) -> None:
    X, y = data(name)
    common = {"nu": nu, "kernel": kernel, "tol": 1e-8, "decision_function_shape": "ovo"}
    ours, theirs = NuSVC(**common).fit(X, y), svm.NuSVC(**common).fit(X, y)
    # Their tolerance is on a margin of r, ours too: decision values are larger by 1 / r.
    values = ours.decision_function(X), theirs.decision_function(X)
    assert values[0].shape == values[1].shape
    assert np.abs(values[0] - values[1]).max() <= CLOSE * max(1.0, np.abs(values[1]).max())
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape


@pytest.mark.parametrize("weighted", [False, True])
def test_nu_bounds_margin_errors_and_support_vectors(weighted) -> None:
    X, y = data("breast cancer")
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    for nu in (0.05, 0.3, 0.6):
        model = NuSVC(nu=nu, tol=1e-8).fit(X, y, sample_weight=weight)
        errors = (2 * y - 1) * model.decision_function(X) < 1 - 1e-5
        share = weight / weight.sum()
        assert share[errors].sum() <= nu + 1e-9
        assert share[model.support_].sum() >= nu - 1e-9


@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("cls", ["SVC", "NuSVC"])
def test_one_column_a_class_and_broken_ties(cls, break_ties) -> None:
    X, y = crowd()
    settings = {"break_ties": break_ties, "tol": TIGHT}
    if cls == "NuSVC":
        settings |= {"nu": 0.7, "gamma": 0.5, "tol": 1e-8}
    ours = {"SVC": SVC, "NuSVC": NuSVC}[cls](**settings).fit(X, y)
    theirs = getattr(svm, cls)(**settings).fit(X, y)
    assert_same_answers(ours, theirs, X)
    assert ours.decision_function(X).shape == (len(X), 6)
    by_value = ours.classes_[ours.decision_function(X).argmax(axis=1)]
    if break_ties:
        assert np.array_equal(ours.predict(X), by_value)


def test_ties_of_votes_go_to_the_first_class() -> None:
    X, y = crowd(90, 5, seed=3)
    model = SVC(gamma=30.0, decision_function_shape="ovo").fit(X, y)
    far = np.full((1, 2), 1e3)  # every machine says its intercept there
    votes = np.zeros(5)
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    for (i, j), value in zip(pairs, model.decision_function(far)[0], strict=True):
        votes[i if value > 0 else j] += 1
    assert model.predict(far)[0] == np.flatnonzero(votes == votes.max())[0]


def test_break_ties_needs_a_column_a_class() -> None:
    X, y = crowd()
    model = SVC(break_ties=True, decision_function_shape="ovo").fit(X, y)
    with pytest.raises(ValueError, match=r"break_ties must be False .* 'ovo'"):
        model.predict(X)


@pytest.mark.parametrize("name", ["iris", "breast cancer"])
def test_callable_and_precomputed_kernels(name) -> None:
    X, y = data(name)

    def kernel(A, B):
        return laplacian_kernel(A, B, gamma=0.3)

    theirs = svm.SVC(kernel=kernel, tol=TIGHT).fit(X, y)
    own = SVC(kernel=kernel, tol=TIGHT).fit(X, y)
    assert_same_answers(own, theirs, X)
    assert np.array_equal(own.support_, theirs.support_)
    assert_same_answers(SVC(kernel="laplacian", gamma=0.3, tol=TIGHT).fit(X, y), theirs, X)
    K = kernel(X, X)
    for given in ("precomputed", Precomputed()):
        ours = SVC(kernel=given, tol=TIGHT).fit(K, y)
        assert_same_answers(ours, svm.SVC(kernel="precomputed", tol=TIGHT).fit(K, y), K)
        assert ours.support_vectors_.shape == (0, 0)
        new = X[:7] + 0.1
        expected = theirs.decision_function(new)
        assert np.abs(ours.decision_function(kernel(new, X)) - expected).max() <= CLOSE


@pytest.mark.parametrize("weighting", ["balanced", {0: 0.2, 1: 3.0}, {1: 5.0}])
def test_class_weights(weighting) -> None:
    X, y = data("breast cancer")
    common = {"class_weight": weighting, "tol": TIGHT}
    ours, theirs = SVC(**common).fit(X, y), svm.SVC(**common).fit(X, y)
    assert_same_machine(ours, theirs, X)
    assert np.allclose(ours.class_weight_, theirs.class_weight_)
    X, y = crowd()
    common = {"class_weight": {0: 3.0, 4: 0.1}, "tol": TIGHT, "decision_function_shape": "ovo"}
    assert_same_machine(SVC(**common).fit(X, y), svm.SVC(**common).fit(X, y), X)


@pytest.mark.parametrize("name", ["iris", "breast cancer"])
@pytest.mark.parametrize("weighting", [None, {0: 2.0, 1: 0.5}])
def test_sample_weights(name, weighting) -> None:
    X, y = data(name)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(y))
    common = {"class_weight": weighting, "tol": TIGHT, "gamma": 0.1}
    common |= {"decision_function_shape": "ovo"}
    ours = SVC(**common).fit(X, y, sample_weight=weight)
    theirs = svm.SVC(**common).fit(X, y, sample_weight=weight)
    assert_same_machine(ours, theirs, X)
    weight[::3] = 0.0
    ours = SVC(**common).fit(X, y, sample_weight=weight)
    theirs = svm.SVC(**common).fit(X, y, sample_weight=weight)
    assert_same_answers(ours, theirs, X)
    assert not (ours.support_ % 3 == 0).any()


def test_sample_weights_of_the_nu_machine() -> None:
    X, y = data("breast cancer")
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    common = {"nu": 0.3, "gamma": 0.05, "tol": 1e-8}
    ours = NuSVC(**common).fit(X, y, sample_weight=weight)
    theirs = svm.NuSVC(**common).fit(X, y, sample_weight=weight)
    assert_same_answers(ours, theirs, X)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["b", "c", "a"], dtype=object),
        np.array([30, -1, 5]),
        np.array([0.5, 2.0, 1.0]) * 2,
    ],
    ids=str,
)
def test_labels_of_any_type(names) -> None:
    X, codes = data("iris")
    y = names[codes]
    ours, theirs = SVC(tol=TIGHT).fit(X, y), svm.SVC(tol=TIGHT).fit(X, y)
    assert_same_answers(ours, theirs, X)
    assert ours.predict(X).dtype == ours.classes_.dtype
    assert ours.classes_.tolist() == sorted(names.tolist())
    yes = y == names[0]
    assert_same_answers(SVC(tol=TIGHT).fit(X, yes), svm.SVC(tol=TIGHT).fit(X, yes), X)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows(kernel, index) -> None:
    X, y = data("digits")
    sparse = sp.csr_array(X)
    theirs = svm.SVC(kernel=kernel, tol=TIGHT).fit(sparse, y)
    given = sparse.copy()
    given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    ours = SVC(kernel=kernel, tol=TIGHT).fit(given, y)
    assert_same_machine(ours, theirs, sparse)
    assert sp.issparse(ours.support_vectors_)
    dense = SVC(kernel=kernel, tol=TIGHT).fit(X, y)
    assert np.array_equal(dense.support_, ours.support_)
    assert np.allclose(ours.decision_function(given), dense.decision_function(X), atol=1e-9)
    assert np.allclose(ours.decision_function(X), dense.decision_function(X), atol=1e-9)
    assert np.allclose(dense.decision_function(given), dense.decision_function(X), atol=1e-9)


def test_very_sparse_rows_that_stay_sparse() -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 5000), density=0.004, rng=rng, format="csr")
    y = (np.asarray(X[:, :2500].sum(axis=1)) > np.asarray(X[:, 2500:].sum(axis=1))).astype(int)
    for kernel in ("rbf", "linear"):
        ours = SVC(kernel=kernel, tol=TIGHT).fit(X, y)
        assert_same_machine(ours, svm.SVC(kernel=kernel, tol=TIGHT).fit(X, y), X)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_float32_rows(kernel) -> None:
    X, y = data("breast cancer")
    narrow = X.astype(np.float32)
    ours = SVC(kernel=kernel, tol=TIGHT).fit(narrow, y)
    exact = SVC(kernel=kernel, tol=TIGHT).fit(narrow.astype(np.float64), y)
    assert np.array_equal(ours.support_, exact.support_)
    assert np.allclose(ours.dual_coef_, exact.dual_coef_, atol=1e-9)
    values = exact.decision_function(narrow.astype(np.float64))
    assert np.abs(ours.decision_function(narrow) - values).max() <= 1e-5 * np.abs(values).max()
    assert_same_answers(ours, svm.SVC(kernel=kernel, tol=TIGHT).fit(X, y), X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library) -> None:
    frames = pytest.importorskip(library)
    X, y = data("iris")
    columns = {f"column {k}": X[:, k] for k in range(X.shape[1])}
    frame = frames.DataFrame(columns)
    labels = frames.Series(np.array(["one", "two", "three"])[y])
    model = SVC(tol=TIGHT).fit(frame, labels)
    assert model.feature_names_in_.tolist() == list(columns)
    plain = SVC(tol=TIGHT).fit(X, np.array(["one", "two", "three"])[y])
    assert np.array_equal(model.decision_function(frame), plain.decision_function(X))
    assert np.array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="column 0"):
        model.predict(frame.rename({"column 0": "other"}) if library == "polars" else
                      frame.rename(columns={"column 0": "other"}))  # fmt: skip


# -- what the attributes mean --------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_attributes_are_the_machine(multi_class) -> None:
    """Decision values from kernel, coefficients and intercept alone."""
    X, y = crowd(40, 3)
    model = SVC(gamma=0.7, multi_class=multi_class, decision_function_shape="ovo", n_jobs=1)
    model.fit(X, y)
    K = RBF(gamma=0.7)(X, model.support_vectors_)
    assert np.array_equal(model.support_vectors_, X[model.support_])
    assert model.n_support_.sum() == len(model.support_)
    assert np.array_equal(y[model.support_], np.repeat([0, 1, 2], model.n_support_))
    if multi_class == "ovr":
        expected = K @ model.dual_coef_.T + model.intercept_
        signs = np.where(y[model.support_] == np.arange(3)[:, None], 1, -1)
        assert (model.dual_coef_ * signs >= 0).all()
    else:
        coef, codes = model.dual_coef_, y[model.support_]
        columns = []
        for (i, j), b in zip([(0, 1), (0, 2), (1, 2)], model.intercept_, strict=True):
            weights = np.where(codes == i, coef[j - 1], np.where(codes == j, coef[i], 0.0))
            columns.append(K @ weights + b)
        expected = np.column_stack(columns)
    assert np.abs(model.decision_function(X) - expected).max() <= 1e-10
    assert (np.abs(model.dual_coef_) <= 1.0).all()


@pytest.mark.nojit
def test_coef_is_of_the_linear_kernel_only() -> None:
    X, y = crowd(40, 3)
    model = SVC(kernel="linear", decision_function_shape="ovo", n_jobs=1).fit(X, y)
    assert model.coef_.shape == (3, 2)
    assert np.allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X))
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    same = SVC(kernel=Linear(), n_jobs=1).fit(X, y)
    assert np.array_equal(same.coef_, model.coef_)
    assert not hasattr(SVC(n_jobs=1).fit(X, y), "coef_")
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = SVC(n_jobs=1).fit(X, y).coef_


def test_one_against_the_rest_is_as_many_binary_machines() -> None:
    X, y = crowd()
    for cls, settings in ((SVC, {"C": 3.0}), (NuSVC, {"nu": 0.25})):
        model = cls(multi_class="ovr", gamma=1.0, tol=1e-9, **settings).fit(X, y)
        parts = [cls(gamma=1.0, tol=1e-9, **settings).fit(X, y == k) for k in range(6)]
        values = np.column_stack([part.decision_function(X) for part in parts])
        assert model.decision_function(X).shape == values.shape
        assert np.abs(model.decision_function(X) - values).max() <= CLOSE
        top = np.sort(values, axis=1)
        clear = top[:, -1] - top[:, -2] > 2 * CLOSE
        assert np.array_equal(model.predict(X)[clear], values.argmax(axis=1)[clear])
        assert clear.mean() > 0.9
        assert model.dual_coef_.shape == (6, len(model.support_))
        assert model.intercept_.shape == model.n_iter_.shape == (6,)


def test_two_classes_are_one_machine_either_way() -> None:
    X, y = binary()
    values = [SVC(multi_class=kind).fit(X, y).decision_function(X) for kind in ("ovo", "ovr")]
    assert values[0].shape == (len(X),)
    assert np.array_equal(*values)


# -- without a bias ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.3)], ids=str)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_no_intercept_against_an_interior_point_method(kernel, C) -> None:
    X, y = binary()
    X, y = X[::2], y[::2] == 2
    signs = np.where(y, 1.0, -1.0)
    Q = signs[:, None] * kernel(X) * signs
    n = len(y)
    alpha = solve_qp(Q, -np.ones(n), np.zeros((0, n)), np.zeros(0), np.full(n, C))
    best = objective(Q, -np.ones(n), alpha)
    for solver in ("auto", "cd"):
        model = SVC(C=C, kernel=kernel, fit_intercept=False, solver=solver, tol=1e-8).fit(X, y)
        assert model.intercept_.tolist() == [0.0]
        coef = np.zeros(n)
        coef[model.support_] = model.dual_coef_[0] * signs[model.support_]
        assert coef.min() >= 0
        assert coef.max() <= C
        assert objective(Q, -np.ones(n), coef) - best <= 1e-8 * abs(best)
        expected = kernel(X) @ (alpha * signs)
        assert np.abs(model.decision_function(X) - expected).max() <= 1e-4


def test_no_intercept_for_many_classes_and_by_subgradients() -> None:
    X, y = crowd()
    for kind in ("ovo", "ovr"):
        exact = SVC(fit_intercept=False, multi_class=kind, tol=TIGHT).fit(X, y)
        assert not exact.intercept_.any()
        rough = SVC(fit_intercept=False, multi_class=kind, solver="sgd").fit(X, y)
        assert not rough.intercept_.any()
        primal = exact.certificate_.primal
        assert abs(rough.certificate_.primal - primal) <= 0.02 * primal


# -- other solvers -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_all_solvers_find_the_same_machine(kernel, C) -> None:
    X, y = binary()
    smo = SVC(C=C, kernel=kernel, solver="smo", tol=1e-8).fit(X, y)
    auto = SVC(C=C, kernel=kernel, tol=1e-8).fit(X, y)
    assert np.array_equal(smo.decision_function(X), auto.decision_function(X))
    best = smo.certificate_.dual
    hull = SVC(C=C, kernel=kernel, solver="hull", tol=TIGHT).fit(X, y)
    assert abs(hull.certificate_.dual - best) <= 1e-6 * best
    assert abs(hull.certificate_.primal - best) <= 1e-5 * best
    assert np.abs(hull.decision_function(X) - smo.decision_function(X)).max() <= 1e-3
    sgd = SVC(C=C, kernel=kernel, solver="sgd").fit(X, y)
    assert abs(sgd.certificate_.dual - best) <= 0.02 * best
    assert abs(sgd.certificate_.primal - best) <= 0.02 * best


def test_hulls_of_the_nu_machine_and_of_many_classes() -> None:
    X, y = crowd(80, 4)
    for multi_class, nu in (("ovo", 0.7), ("ovr", 0.35)):
        settings = {"multi_class": multi_class, "decision_function_shape": "ovo", "tol": 1e-8}
        for cls, own in ((NuSVC, {"nu": nu}), (SVC, {"C": 0.5})):
            smo = cls(**settings, **own).fit(X, y)
            hull = cls(**settings, **own, solver="hull").fit(X, y)
            for ours, other in zip(
                smo.certificate_.machines, hull.certificate_.machines, strict=True
            ):
                if cls is SVC:  # nu machines may have an interval of offsets, and so of scales
                    assert abs(ours.dual - other.dual) <= 1e-6 * ours.dual
                assert ours.relative_gap <= 1e-4
                assert other.relative_gap <= 1e-4


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "cd"}, r"solver='cd' is for machines without a bias: use fit_intercept=False"),
        ({"solver": "smo", "fit_intercept": False}, r"'smo' is for machines with a bias.*'cd'"),
        ({"solver": "hull", "fit_intercept": False}, r"'hull' is for machines with a bias.*'cd'"),
        ({"solver": "sgd", "C": np.inf}, r"'sgd' needs a finite C.*'hull'"),
        ({"solver": "newton"}, r"'solver' parameter of SVC must be a str among"),
    ],
    ids=str,
)
def test_solvers_that_do_not_apply_say_which_does(settings, message) -> None:
    X, y = crowd(30, 2)
    with pytest.raises(ValueError, match=message):
        SVC(n_jobs=1, **settings).fit(X, y)
    with pytest.raises(ValueError, match="'solver' parameter of NuSVC"):
        NuSVC(solver="cd").fit(X, y)


def test_solvers_that_need_the_whole_matrix_ask_for_memory_first(monkeypatch) -> None:
    X, y = binary()
    model = SVC().fit(X, y)
    before = model.decision_function(X)
    monkeypatch.setattr(_memory, "available_memory", lambda: 10)
    monkeypatch.setattr(_memory, "_SMALL", 0)
    model.set_params(solver="hull")
    with pytest.raises(MemoryError, match=r"Gram matrix of \d+ rows.*solver='smo'"):
        model.fit(X, y)
    assert np.array_equal(model.decision_function(X), before)


# -- hard margins --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "smo", "hull"])
def test_hard_margin_is_the_widest(solver) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.arange(60) % 2
        X = rng.normal(size=(60, 3)) + 2.5 * np.where(y == 1, 1, -1)[:, None]
        model = SVC(C=np.inf, kernel="linear", solver=solver, tol=1e-8).fit(X, y)
        theirs = svm.SVC(C=1e8, kernel="linear", tol=1e-10).fit(X, y)
        assert np.abs(model.coef_ - theirs.coef_).max() <= 1e-5
        assert np.abs(model.intercept_ - theirs.intercept_).max() <= 1e-5
        margins = (2 * y - 1) * model.decision_function(X)
        assert margins.min() >= 1 - 1e-7
        assert model.certificate_.margin_width == pytest.approx(2 / np.linalg.norm(model.coef_))
        assert model.certificate_.relative_gap <= 1e-6
        assert model.score(X, y) == 1.0


def assert_common_point(error, kernel, X, y) -> None:
    """The weighted average of one class's rows is one of the other's, in feature space."""
    rows, weights = np.asarray(error.rows), np.asarray(error.weights)
    labels = y[rows]
    assert (weights >= 0).all()
    assert len(np.unique(rows)) == len(rows)
    sides = np.unique(labels)
    assert len(sides) == 2
    signed = np.where(labels == sides[0], weights, -weights)
    for side in sides:
        assert weights[labels == side].sum() == pytest.approx(1.0)
    K = kernel(X[rows])
    assert signed @ K @ signed <= 1e-10 * np.abs(K).max()


@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.5)], ids=str)
def test_a_hard_margin_that_does_not_exist_is_disproved(kernel) -> None:
    X, y = crowd(60, 2, seed=1)
    y = np.array(["no", "yes"])[y]
    if isinstance(kernel, RBF):  # which separates all but equal rows
        X, y = np.vstack([X, X[:1]]), np.append(y, "no" if y[0] == "yes" else "yes")
    model = SVC(kernel=kernel).fit(X, y)
    before = model.decision_function(X)
    model.set_params(C=np.inf)
    with pytest.raises(NotSeparableError, match="No hyperplane separates the classes") as caught:
        model.fit(X, y)
    assert_common_point(caught.value, kernel, X, y)
    assert np.array_equal(model.decision_function(X), before)


def test_the_pair_that_cannot_be_separated_is_named() -> None:
    X, codes = data("iris")
    y = np.array(["setosa", "versicolor", "virginica"])[codes]
    with pytest.raises(NotSeparableError, match="'versicolor' against 'virginica'") as caught:
        SVC(C=np.inf, kernel="linear").fit(X, y)
    assert_common_point(caught.value, Linear(), X, y)
    with pytest.raises(NotSeparableError, match="'versicolor' against the rest"):
        SVC(C=np.inf, kernel="linear", multi_class="ovr").fit(X, y)
    model = SVC(C=np.inf, gamma=1.0).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.nojit
def test_xor_needs_products() -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([0, 0, 1, 1])
    with pytest.raises(NotSeparableError) as caught:
        SVC(C=np.inf, kernel="linear", n_jobs=1).fit(X, y)
    assert_common_point(caught.value, Linear(), X, y)
    assert np.allclose(caught.value.weights, 0.5)
    model = SVC(C=np.inf, kernel="poly", degree=2, gamma=1.0, coef0=1.0, n_jobs=1).fit(X, y)
    assert np.allclose(model.decision_function(X), [-1, -1, 1, 1])


def test_a_hard_margin_without_a_bias() -> None:
    rng = np.random.default_rng(0)
    w = np.array([1.0, -2.0, 0.5])
    X = rng.normal(size=(60, 3))
    X = X[np.abs(X @ w) > 0.5]
    y = X @ w > 0
    model = SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-8).fit(X, y)
    signs = np.where(y, 1.0, -1.0)
    assert (signs * model.decision_function(X)).min() >= 1 - 1e-6
    Q = signs[:, None] * (X @ X.T) * signs
    n = len(y)
    alpha = solve_qp(Q, -np.ones(n), np.zeros((0, n)), np.zeros(0), np.full(n, 1e3))
    assert np.abs(model.coef_[0] - (alpha * signs) @ X).max() <= 1e-5
    with pytest.raises(NotSeparableError):
        SVC(C=np.inf, kernel="linear", fit_intercept=False).fit(np.abs(X) + 1, X[:, 0] > 0)


# -- what must not matter ------------------------------------------------------------------------


@cache
def large(n_classes=2, n=3000):
    """More rows than a block holds, so that blocks change and rows are evicted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    score = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
    return X, np.searchsorted(edges, score)


@pytest.mark.parametrize(
    ("n_classes", "settings"),
    [
        (2, {"C": 1.0}),
        (2, {"C": 10.0, "tol": 1e-5}),
        (2, {"kernel": "linear"}),
        (5, {"C": 1.0}),
        (5, {"C": 1.0, "multi_class": "ovr"}),
    ],
    ids=str,
)
def test_the_size_of_the_cache_does_not_matter(n_classes, settings) -> None:
    X, y = large(n_classes)
    sizes = (0.1, None) if n_classes > 2 else (0.1, 2.0, None)
    models = [SVC(cache_size=size, **settings).fit(X, y) for size in sizes]
    for other in models[1:]:
        assert np.array_equal(other.n_iter_, models[0].n_iter_)
        assert np.array_equal(other.dual_coef_, models[0].dual_coef_)
        assert np.array_equal(other.intercept_, models[0].intercept_)


def test_the_size_of_the_cache_does_not_matter_for_the_nu_machine() -> None:
    X, y = large()
    models = [NuSVC(nu=0.4, cache_size=size).fit(X, y) for size in (0.1, None)]
    assert np.array_equal(models[0].dual_coef_, models[1].dual_coef_)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_number_of_threads_does_not_matter(n_classes) -> None:
    X, y = large(n_classes)
    models = [SVC(n_jobs=n).fit(X, y) for n in (1, 2, 4)]
    for other in models[1:]:
        assert np.array_equal(other.dual_coef_, models[0].dual_coef_)
        assert np.array_equal(other.decision_function(X), models[0].decision_function(X))


@pytest.mark.parametrize("cls", [SVC, NuSVC])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_order_of_the_rows_does_not_matter(cls, n_classes) -> None:
    X, y = large(n_classes)
    settings = {"nu": 0.3} if cls is NuSVC else {}
    order = np.random.default_rng(0).permutation(len(X))
    model = cls(decision_function_shape="ovo", **settings).fit(X, y)
    other = clone(model).fit(X[order], y[order])
    assert np.array_equal(np.sort(order[other.support_]), np.sort(model.support_))
    values = model.decision_function(X)
    # Sums over support vectors run in the order of the rows.
    assert np.abs(other.decision_function(X) - values).max() <= 1e-11 * np.abs(values).max()


def test_the_order_of_the_rows_of_a_gram_matrix_hardly_matters() -> None:
    X, y = crowd()
    K = RBF(gamma=0.5)(X)
    order = np.random.default_rng(0).permutation(len(X))
    model = SVC(kernel="precomputed", tol=1e-8, decision_function_shape="ovo").fit(K, y)
    other = clone(model).fit(K[np.ix_(order, order)], y[order])
    difference = other.decision_function(K[:, order]) - model.decision_function(K)
    assert np.abs(difference).max() <= 1e-5


@pytest.mark.parametrize(
    "factor",
    [
        1e-60,
        pytest.param(1e-40, marks=pytest.mark.nightly),
        pytest.param(1e-25, marks=pytest.mark.nightly),
        pytest.param(1e25, marks=pytest.mark.nightly),
        1e40,
        pytest.param(1e60, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_many_rows_of_features_beyond_single_precision(kernel, factor) -> None:
    X, y = large(2, 2500)
    gamma = 0.3 / factor**2 if kernel != "laplacian" else 0.3 / factor
    plain = SVC(kernel=kernel, gamma=0.3).fit(X, y)
    scaled = SVC(kernel=kernel, gamma=gamma).fit(X * factor, y)
    assert np.isfinite(scaled.dual_coef_).all()
    difference = scaled.decision_function(X * factor) - plain.decision_function(X)
    assert np.abs(difference).max() <= 2e-2
    assert scaled.certificate_.violation <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_many_rows_of_a_linear_kernel_beyond_single_precision(factor) -> None:
    X, y = large(2, 2500)
    X = X + 4.0 * np.where(y == 1, 1.0, -1.0)[:, None]
    plain = SVC(kernel="linear").fit(X, y)
    scaled = SVC(kernel="linear", C=1.0 / factor**2).fit(X * factor, y)
    assert np.abs(scaled.coef_ * factor - plain.coef_).max() <= 1e-2
    assert scaled.fit_status_ == 0


# -- watching ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [150, 3000])
def test_steps_add_up_to_the_machine(n) -> None:
    X, y = large(2)
    X, y = X[:n], y[:n]
    silent = SVC(n_jobs=2).fit(X, y)
    steps = []
    with watch(on_step=steps.append):
        model = SVC(n_jobs=2).fit(X, y)
    assert np.array_equal(model.dual_coef_, silent.dual_coef_)
    assert np.array_equal(model.intercept_, silent.intercept_)
    assert len(steps) == model.n_iter_.sum() == silent.n_iter_.sum()
    coef = np.zeros(n)
    for step in steps:
        assert step.change > 0
        coef[step.first] += step.change
        coef[step.second] -= step.change
    found = np.zeros(n)
    found[model.support_] = model.dual_coef_[0]
    assert np.abs(coef - found).max() <= 1e-9


@pytest.mark.parametrize("cls", [SVC, NuSVC])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_listening_to_many_machines_changes_no_bit(cls, multi_class) -> None:
    X, y = crowd()
    settings = {"multi_class": multi_class} | ({"nu": 0.25} if cls is NuSVC else {})
    silent = cls(**settings).fit(X, y)
    steps = []
    with watch(on_step=steps.append):
        heard = cls(**settings).fit(X, y)
    assert np.array_equal(heard.dual_coef_, silent.dual_coef_)
    assert len(steps) == heard.n_iter_.sum()


@pytest.mark.parametrize("solver", ["hull", "cd", "sgd"])
def test_listening_to_the_other_solvers_changes_no_bit(solver) -> None:
    X, y = crowd(60, 3)
    model = SVC(solver=solver, fit_intercept=solver != "cd")
    silent = clone(model).fit(X, y)
    steps = []
    with watch(on_step=steps.append):
        heard = clone(model).fit(X, y)
    assert steps
    assert np.array_equal(heard.dual_coef_, silent.dual_coef_)


def test_progress_counts_machines() -> None:
    X, y = crowd()
    seen = []
    with watch(on_progress=seen.append):
        SVC().fit(X, y)
    assert {(p.learner, p.unit, p.total) for p in seen} == {("SVC", "problem", 15)}
    assert seen[-1].done == 15
    assert seen[-1].figures["violation"] < 1e-3


def test_ending_a_fit_keeps_what_there_is() -> None:
    X, y = crowd()
    with watch(on_progress=lambda progress: True):
        model = SVC().fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


# -- ending early --------------------------------------------------------------------------------


def hard_to_fit(n=800):
    """Labels that no one can learn, at a price that makes one try."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), rng.integers(0, 2, n)


@pytest.mark.parametrize("max_iter", [0, 1, 5])
def test_a_budget_of_steps(max_iter) -> None:
    X, y = binary()
    message = rf"max_iter={max_iter}\).*raise max_iter.*KKT violation is .*duality gap "
    with pytest.warns(ConvergenceWarning, match=message):
        model = SVC(max_iter=max_iter).fit(X, y)
    assert model.n_iter_.tolist() == [max_iter]
    assert model.fit_status_ == 1
    assert np.isfinite(model.decision_function(X)).all()
    # What was kept is feasible, and the warning did not exaggerate.
    assert abs(model.dual_coef_.sum()) <= 1e-12
    assert model.certificate_.gap > 0


def test_the_warning_names_the_worst_machine_and_its_gap() -> None:
    X, y = data("iris")
    with pytest.warns(ConvergenceWarning) as caught:
        model = SVC(max_iter=5, decision_function_shape="ovo").fit(X, y)
    (message,) = [str(w.message) for w in caught]
    proof = model.certificate_
    assert proof.worst.name in message
    assert f"{proof.worst.violation:.3g}" in message
    assert f"{proof.worst.gap:.3g}" in message


@pytest.mark.parametrize("solver", ["hull", "cd", "sgd"])
def test_a_budget_of_steps_holds_for_every_solver(solver) -> None:
    X, y = hard_to_fit(100)
    model = SVC(solver=solver, tol=1e-9, max_iter=5, fit_intercept=solver != "cd")
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model.fit(X, y)
    assert model.fit_status_ == 1
    assert (model.n_iter_ <= 5 * 100).all()  # steps of some of them are sweeps over all rows


def test_a_budget_of_time() -> None:
    X, y = hard_to_fit()
    told = pytest.warns(ConvergenceWarning, match=r"max_time=0.1 s.*violation")
    with steady_clock(), told as caught:
        model = SVC(kernel="linear", C=1e8, max_time=0.1, tol=1e-9).fit(X, y)
    assert len(caught) == 1
    assert model.fit_status_ == 1
    assert np.isfinite(model.coef_).all()
    assert "duality gap" in str(caught[0].message)


def test_an_interrupt_can_keep_what_was_learnt() -> None:
    X, y = hard_to_fit()
    model = SVC(kernel="linear", C=1e8, tol=1e-9, on_interrupt="keep")
    told = pytest.warns(InterruptedFitWarning, match=r"SVC was interrupted .*violation")
    with interrupt_after(1), told:
        model.fit(X, y)
    assert model.n_iter_[0] > 0
    assert np.isfinite(model.decision_function(X)).all()
    assert abs(model.dual_coef_.sum()) <= 1e-9 * np.abs(model.dual_coef_).sum()


def test_machines_whose_turn_never_came_are_there_all_the_same() -> None:
    X, y = crowd()
    with watch(on_progress=lambda progress: progress.done >= 1):
        model = SVC(n_jobs=1).fit(X, y)
    assert model.decision_function(X).shape == (len(X), 6)
    assert model.intercept_.shape == (15,)


# -- warm starts ---------------------------------------------------------------------------------


WARM = [
    (SVC, {"C": 2.0}),
    (SVC, {"C": 2.0, "multi_class": "ovr"}),
    (NuSVC, {"nu": 0.7}),
    (NuSVC, {"nu": 0.25, "multi_class": "ovr"}),
]


@pytest.mark.parametrize(("cls", "settings"), WARM, ids=str)
def test_a_warm_start_at_the_solution_stays_there(cls, settings) -> None:
    X, y = crowd()
    common = {"gamma": 1.0, "decision_function_shape": "ovo", "tol": TIGHT} | settings
    cold = cls(**common).fit(X, y)
    warm = cls(warm_start=True, **common).fit(X, y)
    warm.fit(X, y)
    assert warm.n_iter_.sum() <= 0.05 * cold.n_iter_.sum()
    scale = np.abs(cold.decision_function(X)).max()
    assert np.abs(warm.decision_function(X) - cold.decision_function(X)).max() <= CLOSE * scale


@pytest.mark.parametrize(("cls", "settings"), WARM, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_warm_start_leads_to_the_same_solution(cls, settings, weighted) -> None:
    X, y = crowd()
    common = {"gamma": 1.0, "decision_function_shape": "ovo", "tol": TIGHT} | settings
    name, factor = ("nu", 0.9) if cls is NuSVC else ("C", 1.1)
    changed = {name: settings[name] * factor}
    weight = np.random.default_rng(0).uniform(0.8, 1.25, len(y)) if weighted else None
    cold = cls(**common | changed).fit(X, y, sample_weight=weight)
    warm = cls(warm_start=True, **common).fit(X, y)
    warm.set_params(**changed).fit(X, y, sample_weight=weight)
    assert warm.n_iter_.sum() <= 1.1 * cold.n_iter_.sum()
    scale = max(1.0, np.abs(cold.decision_function(X)).max())
    assert np.abs(warm.decision_function(X) - cold.decision_function(X)).max() <= CLOSE * scale
    assert warm.fit_status_ == 0


def test_a_warm_start_from_another_world() -> None:
    """Other rows, other labels, other classes: the last solution is no help, and no harm."""
    X, y = crowd()
    warm = SVC(warm_start=True, tol=TIGHT, gamma=0.5).fit(X, y)
    rng = np.random.default_rng(0)
    for rows, labels in (
        (X[::-1].copy(), y),
        (X, rng.permutation(y)),
        (X[:100], y[:100]),
        (X, y % 2),
        (X, np.array(["a", "b"])[y % 2]),
        (np.hstack([X, X**2]), y),
    ):
        cold = SVC(tol=TIGHT, gamma=0.5).fit(rows, labels)
        warm.fit(rows, labels)
        assert np.array_equal(warm.predict(rows), cold.predict(rows))
        if len(cold.classes_) == 2:
            difference = warm.decision_function(rows) - cold.decision_function(rows)
            assert np.abs(difference).max() <= CLOSE


def test_a_warm_start_after_a_change_of_multi_class() -> None:
    X, y = crowd(90, 3)  # as many pairs as classes
    warm = SVC(warm_start=True, tol=TIGHT, gamma=0.5).fit(X, y)
    warm.set_params(multi_class="ovr").fit(X, y)
    cold = SVC(multi_class="ovr", tol=TIGHT, gamma=0.5).fit(X, y)
    assert np.abs(warm.decision_function(X) - cold.decision_function(X)).max() <= CLOSE


def test_a_warm_start_over_many_powers_of_c() -> None:
    X, y = make_moons(200, noise=0.2, return_X_y=True)
    warm = SVC(warm_start=True, gamma=1.0, tol=TIGHT)
    for C in 10.0 ** np.arange(-3, 5):
        warm.set_params(C=C).fit(X, y)
        cold = SVC(C=C, gamma=1.0, tol=TIGHT).fit(X, y)
        assert abs(warm.certificate_.dual - cold.certificate_.dual) <= 1e-6 * cold.certificate_.dual


def test_a_warm_start_to_and_from_the_hard_margin() -> None:
    X, y = data("iris")
    X, y = X[y < 2], y[y < 2]
    warm = SVC(warm_start=True, tol=TIGHT)
    for C in (1.0, np.inf, 1.0, 1e-3, np.inf):
        warm.set_params(C=C).fit(X, y)
        cold = SVC(C=C, tol=TIGHT).fit(X, y)
        assert np.abs(warm.decision_function(X) - cold.decision_function(X)).max() <= CLOSE


# -- nu ------------------------------------------------------------------------------------------


def test_infeasible_nu_says_what_is_feasible() -> None:
    X, y = crowd(100, 2)
    y = (np.arange(100) < 10).astype(int)
    with pytest.raises(InfeasibleNuError, match=r"nu=0\.5, but .* at most 0\.2") as caught:
        NuSVC(nu=0.5).fit(X, y)
    model = NuSVC(nu=caught.value.feasible).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_nu_too_small_for_any_margin_warns() -> None:
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = np.r_[np.zeros(9), 1, 1, np.ones(9)].astype(int)  # one row of each is among the others
    y[10] = 0
    with pytest.warns(DataWarning, match="leaves no margin"):
        model = NuSVC(nu=0.01, kernel="linear").fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


# -- among scikit-learn's tools ------------------------------------------------------------------


def test_cross_validation_cuts_gram_matrices_on_both_sides() -> None:
    X, y = data("iris")
    K = RBF(gamma=0.3)(X)
    scores = cross_val_score(SVC(kernel="precomputed"), K, y, cv=3)
    assert np.array_equal(scores, cross_val_score(svm.SVC(kernel="precomputed"), K, y, cv=3))
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}, cv=3).fit(X, y)
    theirs = GridSearchCV(svm.SVC(), search.param_grid, cv=3).fit(X, y)
    assert search.best_params_ == theirs.best_params_
    assert search.best_score_ == theirs.best_score_


@pytest.mark.skipif(not hasattr(SVC, "set_callbacks"), reason="this scikit-learn has no callbacks")
@pytest.mark.parametrize("settings", [{}, {"C": np.inf, "gamma": 3.0}, {"multi_class": "ovr"}])
def test_each_machine_is_a_task_with_a_usable_model(settings) -> None:
    X, y = data("iris")

    class Recorder:
        def __init__(self):
            self.scores = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
            if context.task_name == "problem":
                self.scores.append(fitted_estimator.score(X, y))
            return False

    recorder = Recorder()
    watched = SVC(n_jobs=1, **settings).set_callbacks(recorder).fit(X, y)
    plain = SVC(n_jobs=1, **settings).fit(X, y)
    assert np.array_equal(watched.dual_coef_, plain.dual_coef_)
    assert recorder.scores
    assert recorder.scores[-1] == plain.score(X, y)


@pytest.mark.parametrize("size", [1e-9, 1e9, np.float32(1), 1])
def test_caches_of_any_size(size) -> None:
    X, y = binary()
    expected = SVC().fit(X, y).dual_coef_
    assert np.array_equal(SVC(cache_size=size).fit(X, y).dual_coef_, expected)


@pytest.mark.parametrize("size", [0, -1, np.inf, np.nan, "1", True])
def test_caches_of_no_size(size) -> None:
    X, y = binary()
    with pytest.raises(ValueError, match="'cache_size' parameter of SVC must be"):
        SVC(cache_size=size).fit(X, y)


def test_the_progress_bar_goes_to_standard_error(capsys) -> None:
    X, y = binary()
    SVC().fit(X, y)
    assert capsys.readouterr() == ("", "")
    SVC(verbose=1).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "SVC, problems" in err
