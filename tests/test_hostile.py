"""Odd things that users, programs and operating systems do to estimators."""

from __future__ import annotations

import copy
import pickle
import re
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrove import (
    SVC,
    SVR,
    KernelPerceptron,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    watch,
)
from margrove.datasets import load_iris
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    InfeasibleNuError,
    MalformedSparseError,
    NumericalOverflowError,
)
from tests.interrupts import interrupt_after, within_slices

CLASSES = [Perceptron, KernelPerceptron]
X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize("cls", CLASSES)
def test_using_before_fitting(cls) -> None:
    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(cls(), method)(X)


@pytest.mark.parametrize("cls", CLASSES)
def test_no_rows_at_predict_are_an_error_as_in_scikit_learn(cls) -> None:
    with pytest.raises(ValueError, match="0 sample"):
        cls().fit(X, Y).predict(X[:0])


@pytest.mark.parametrize("cls", CLASSES)
def test_one_row_of_each_class_and_one_column_are_enough(cls) -> None:
    model = cls().fit([[0.0], [5.0]], ["a", "b"])
    assert model.predict([[0.0], [5.0]]).tolist() == ["a", "b"]


@pytest.mark.parametrize("cls", CLASSES)
def test_identical_rows_with_both_labels(cls) -> None:
    model = cls(max_iter=20, tol=None).fit(np.ones((10, 3)), np.arange(10) % 2)
    assert np.isfinite(model.decision_function(np.ones((1, 3)))).all()
    assert not model.separated_
    again = cls(max_iter=20, tol=None).fit(np.ones((10, 3)), np.arange(10) % 2)
    assert np.array_equal(model.decision_function(X[:, :3]), again.decision_function(X[:, :3]))


@pytest.mark.parametrize("cls", CLASSES)
def test_signed_zeros_are_equal(cls) -> None:
    data = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    signed = np.where(data == 0, -0.0, data)
    labels = [0, 0, 1, 1]
    assert np.array_equal(
        cls().fit(data, labels).decision_function(data),
        cls().fit(signed, labels).decision_function(signed),
    )


@pytest.mark.parametrize("cls", CLASSES)
def test_constant_and_wildly_scaled_features(cls) -> None:
    data = np.column_stack([X, np.full(len(X), 7.0), X[:, 0] * 1e20])
    model = cls(max_iter=5, tol=None).fit(data, Y)
    assert np.isfinite(model.decision_function(data)).all()


@pytest.mark.parametrize("cls", CLASSES)
def test_many_more_features_than_rows(cls) -> None:
    wide = sp.random_array((20, 100_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    labels = np.arange(20) % 2
    assert cls().fit(wide, labels).score(wide, labels) == 1.0


@pytest.mark.parametrize("cls", CLASSES)
def test_as_many_classes_as_rows(cls) -> None:
    with pytest.warns(UserWarning, match="unique classes is greater than 50%"):
        model = cls(max_iter=3, tol=None).fit(X[:60] + np.arange(60)[:, None], np.arange(60))
    assert len(model.classes_) == 60


@pytest.mark.parametrize("cls", CLASSES)
def test_copies_subclasses_and_pickles(cls) -> None:
    model = cls(max_iter=7, tol=None).fit(X, Y)
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(twin.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()

    class Mine(cls):
        pass

    assert np.array_equal(
        Mine(max_iter=7, tol=None).fit(X, Y).decision_function(X), model.decision_function(X)
    )


def test_a_kernel_that_cannot_be_pickled_says_so() -> None:
    model = KernelPerceptron(kernel=lambda A, B: A @ B.T, max_iter=2, tol=None).fit(X, Y)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(model)


def test_subclasses_keep_what_they_add() -> None:
    class Scaled(Perceptron):
        def fit(self, X, y):
            self.scaler_ = StandardScaler().fit(X)
            return super().fit(self.scaler_.transform(X), y)

        def predict(self, X):
            return super().predict(self.scaler_.transform(X))

    model = Scaled().fit(X, Y).fit(X, Y)
    assert model.score(X, Y) > 0.7


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("name", ["classes_", "intercept_"])
def test_altered_attributes_are_noticed(cls, name) -> None:
    model = cls(max_iter=3, tol=None).fit(X, Y)
    setattr(model, name, getattr(model, name)[:-1])
    with pytest.raises(ValueError, match="fitted state was altered"):
        model.predict(X)


@pytest.mark.parametrize("kernel", ["rbf", "chi2", "linear"])
def test_altered_support_vectors_never_reach_compiled_code(kernel) -> None:
    model = KernelPerceptron(kernel=kernel, max_iter=3, tol=None).fit(X, Y)
    model.support_vectors_ = model.support_vectors_[:, :2]
    with pytest.raises(ValueError, match="support_vectors_ has shape"):
        model.predict(X)
    model = KernelPerceptron(kernel=kernel, max_iter=3, tol=None).fit(sp.csr_array(X), Y)
    model.support_vectors_.indices[:] = 2**30
    with pytest.raises(MalformedSparseError):
        model.predict(sp.csr_array(X))


class ArrayLike:
    """An array of another library: converted once, never element by element."""

    def __init__(self, values):
        self.values = values
        self.conversions = 0

    @property
    def shape(self):
        return self.values.shape

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        self.conversions += 1
        return self.values.astype(dtype or self.values.dtype)

    def __getitem__(self, key):
        raise AssertionError("element by element")


@pytest.mark.parametrize("cls", CLASSES)
def test_foreign_arrays_are_converted_not_iterated(cls) -> None:
    foreign = ArrayLike(X)
    model = cls(max_iter=3, tol=None).fit(foreign, Y)
    assert foreign.conversions <= 2
    assert np.array_equal(model.predict(ArrayLike(X)), model.predict(X))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_another_thread_may_write_to_the_data(cls, kind) -> None:
    """The result means nothing then, but nothing crashes: no index is read from their array."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 5, (500, 8)).astype(float)
    labels = rng.integers(0, 3, 500)
    given = sp.csr_array(data) if kind == "csr" else data
    stop = threading.Event()

    def vandal():
        while not stop.is_set():
            if kind == "csr":
                given.indices[:] = rng.integers(-(2**31), 2**31 - 1, len(given.indices))
                given.indptr[:] = rng.integers(-(2**31), 2**31 - 1, len(given.indptr))
            else:
                given[:] = rng.standard_normal(given.shape)

    thread = threading.Thread(target=vandal)
    thread.start()
    outcomes = []
    try:
        for _ in range(30):
            try:
                model = cls(max_iter=3, tol=None).fit(given, labels)
                outcomes.append(np.isfinite(model.intercept_).all())
            except ValueError as error:
                outcomes.append(bool(str(error)))
    finally:
        stop.set()
        thread.join()
    assert outcomes == [True] * 30


@pytest.mark.parametrize("cls", CLASSES)
def test_a_fit_reads_indices_of_its_own(cls) -> None:
    """Written over in the middle of a fit, the user's index arrays change no bit of the result."""
    rng = np.random.default_rng(0)
    data = sp.csr_array(rng.integers(0, 5, (500, 8)).astype(float))
    labels = rng.integers(0, 3, 500)
    expected = cls(max_iter=4, tol=None).fit(data, labels).decision_function(data)
    given, scribbles = data.copy(), []

    def scribble(progress):
        given.indices[:] = rng.integers(-(2**31), 2**31 - 1, len(given.indices))
        given.indptr[:] = rng.integers(-(2**31), 2**31 - 1, len(given.indptr))
        scribbles.append(progress)

    with watch(on_progress=scribble):
        model = cls(max_iter=4, tol=None).fit(given, labels)
    assert len(scribbles) >= 4
    assert np.array_equal(model.decision_function(data), expected)


@pytest.mark.parametrize("cls", CLASSES)
def test_nothing_of_the_users_is_changed(cls) -> None:
    data, labels, weight = X.copy(), Y.copy(), np.linspace(0, 2, len(Y))
    kept = data.copy(), labels.copy(), weight.copy()
    cls(max_iter=3, tol=None).fit(data, labels, sample_weight=weight)
    assert all(np.array_equal(a, b) for a, b in zip((data, labels, weight), kept, strict=True))


@pytest.mark.parametrize("cls", CLASSES)
def test_scikit_learns_tools_work_on_top(cls) -> None:
    pipeline = make_pipeline(StandardScaler(), cls(max_iter=30, tol=None))
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.7
    assert OneVsOneClassifier(cls(max_iter=30, tol=None)).fit(X, Y).score(X, Y) > 0.8


@pytest.mark.parametrize("cls", CLASSES)
def test_metadata_routing(cls) -> None:
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            cls(max_iter=3, tol=None).set_fit_request(sample_weight=True),
        )
        weight = np.arange(len(Y)) % 3
        routed = pipeline.fit(X, Y, sample_weight=weight)
    direct = cls(max_iter=3, tol=None).fit(
        StandardScaler().fit_transform(X), Y, sample_weight=weight
    )
    assert np.array_equal(routed[-1].decision_function(X), direct.decision_function(X))


# -- support vector machines: numerics -----------------------------------------------------------

SVMS = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]
KERNEL_NAMES = ["linear", "rbf", "poly", "sigmoid", "laplacian", "chi2"]
X2, Y2 = X[Y != 2], Y[Y != 2]  # two classes that a line separates


def machine(cls, **changes):
    return cls(**({"nu": 0.2} if cls is NuSVC else {}) | changes)


def values_of(model, data):
    values = getattr(model, "decision_function", model.predict)(data)
    assert np.isfinite(values).all()
    return values


@contextmanager
def only_warnings(*allowed):
    """Named warnings of ours are an answer, stray ones of NumPy are not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    strangers = [str(w.message) for w in caught if not issubclass(w.category, allowed)]
    assert not strangers


@pytest.mark.parametrize("C", [1e10, 1e20, 1e50, 1e100, 1e300])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_no_price_makes_a_fit_of_noise_hang(kernel, C) -> None:
    rng = np.random.default_rng(0)
    data, labels = rng.standard_normal((60, 4)), rng.integers(0, 2, 60)
    with within_slices(), only_warnings(ConvergenceWarning) as caught:
        model = SVC(kernel=kernel, C=C).fit(data, labels)
    values_of(model, data)
    assert np.isfinite(model.dual_coef_).all()
    assert model.fit_status_ == (1 if caught else 0)
    for warning in caught:
        gap = re.search(r"duality gap (\S+)", str(warning.message)).group(1)
        assert np.isfinite(float(gap))


@pytest.mark.parametrize("C", [1e10, 1e50, 1e100, 1e300])
def test_no_price_makes_a_fit_of_overlapping_classes_useless(C) -> None:
    """What is left of iris when it stops early is still a classifier."""
    with within_slices(), only_warnings(ConvergenceWarning):
        model = SVC(kernel="linear", C=C).fit(X[Y != 0], Y[Y != 0])
    assert model.score(X[Y != 0], Y[Y != 0]) > 0.8


@pytest.mark.parametrize("C", [1e10, 1e100, 1e300])
def test_an_extreme_price_on_separable_classes_is_the_hard_margin(C) -> None:
    hard = SVC(C=np.inf, kernel="linear", tol=1e-6).fit(X2, Y2)
    model = SVC(C=C, kernel="linear", tol=1e-6).fit(X2, Y2)
    assert np.abs(model.coef_ - hard.coef_).max() <= 1e-4
    assert np.abs(model.intercept_ - hard.intercept_).max() <= 1e-4


@pytest.mark.parametrize("cls", [SVR, NuSVR])
@pytest.mark.parametrize("C", [1e10, 1e100, 1e300])
def test_no_price_makes_a_regression_hang(cls, C) -> None:
    rng = np.random.default_rng(0)
    data, targets = rng.standard_normal((60, 3)), rng.standard_normal(60)
    with within_slices(), only_warnings(ConvergenceWarning):
        values_of(cls(kernel="linear", C=C).fit(data, targets), data)


@pytest.mark.parametrize("cls", [SVC, SVR, NuSVR])
@pytest.mark.parametrize("C", [0, -1, np.nan, -np.inf, "1", True, None, np.array([1.0]), [1.0]])
def test_a_price_that_is_none(cls, C) -> None:
    with pytest.raises(ValueError, match=f"'C' parameter of {cls.__name__} must be"):
        cls(C=C).fit(X2, Y2)


@pytest.mark.parametrize("C", [np.float32(1), np.float16(1), np.int8(1), np.uint64(1), 1])
def test_a_price_of_numpys(C) -> None:
    expected = values_of(SVC(C=1.0).fit(X, Y), X)
    assert np.array_equal(values_of(SVC(C=C).fit(X, Y), X), expected)
    with pytest.raises(ValueError, match="'C' parameter of NuSVR"):
        NuSVR(C=np.inf).fit(X, Y)


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("gamma", [np.inf, np.nan, -1.0, -1e-300, "big", True, None])
def test_a_gamma_that_is_none(cls, gamma) -> None:
    with pytest.raises(ValueError, match=f"'gamma' parameter of {cls.__name__} must be"):
        machine(cls, gamma=gamma).fit(X, Y)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
@pytest.mark.parametrize("gamma", [0.0, 0, 1e-300])
def test_a_gamma_of_zero_is_a_constant_kernel_and_says_so(kernel, gamma) -> None:
    weights = np.where(Y == 1, 1.5, 1.0)
    with pytest.warns(DataWarning, match=r"kernel is constant .*gamma"):
        model = SVC(kernel=kernel, gamma=gamma).fit(X, Y, sample_weight=weights)
    assert np.isfinite(model.decision_function(X)).all()
    assert set(model.predict(X)) == {1}  # the heaviest class


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e16, 1e30, 1e308])
def test_an_enormous_gamma_memorises_and_says_so(kernel, gamma) -> None:
    data, first = np.unique(X2, axis=0, return_index=True)
    with only_warnings(DataWarning) as caught:
        model = SVC(kernel=kernel, gamma=gamma).fit(data, Y2[first])
        assert model.score(data, Y2[first]) == 1.0
    assert "kernel is the identity" in str(caught[0].message)
    assert np.unique(model.decision_function(data + 0.01)).size == 1


@pytest.mark.parametrize("kernel", ["sigmoid", "chi2"])
def test_an_enormous_gamma_of_other_kernels(kernel) -> None:
    with only_warnings(DataWarning):
        values_of(SVC(kernel=kernel, gamma=1e308).fit(X, Y), X)
    with pytest.raises(NumericalOverflowError, match="Polynomial"):
        SVC(kernel="poly", gamma=1e308).fit(X, Y)


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_no_variance_at_all(cls, kernel) -> None:
    """gamma="scale" is 1 then, as in scikit-learn, and the answer the same for all rows."""
    data, target = np.full((10, 3), 2.0), np.arange(10) % 5 == 0
    with only_warnings(DataWarning) as caught:
        model = machine(cls, kernel=kernel).fit(data, target)
    assert "All features are constant" in str(caught[0].message)
    assert getattr(model.kernel_, "gamma", 1.0) == 1.0
    assert np.unique(values_of(model, data)).size == 1
    if cls in (SVC, NuSVC):
        assert not model.predict(data).any()


@pytest.mark.parametrize("factor", [1e-305, 1e-290, 1e-200, 1e-100, 1e100, 1e200, 1e290])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_features_beyond_the_square_root_of_floating_point(kernel, factor) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not positive semidefinite", DataWarning)
        plain = SVC(kernel=kernel, decision_function_shape="ovo").fit(X, Y)
        scaled = SVC(kernel=kernel, decision_function_shape="ovo").fit(X * factor, Y)
    tolerance = 0.05 if factor < 1e-300 else 1e-2  # subnormal numbers have few digits
    difference = values_of(scaled, X * factor) - values_of(plain, X)
    assert np.abs(difference).max() <= tolerance
    assert np.array_equal(scaled.support_vectors_, (X * factor)[scaled.support_])


@pytest.mark.parametrize("factor", [1e-200, 1e-100, 1e100, 1e150])
def test_a_gamma_in_the_units_of_extreme_features(factor) -> None:
    plain = SVC(gamma=0.5, tol=1e-6).fit(X2, Y2)
    gamma = 0.5 / factor / factor
    if not 0 < gamma < np.inf:
        return
    scaled = SVC(gamma=gamma, tol=1e-6).fit(X2 * factor, Y2)
    assert np.abs(values_of(scaled, X2 * factor) - values_of(plain, X2)).max() <= 1e-4


@pytest.mark.parametrize("factor", [1e-200, 1e-100, 1e100, 1e200])
def test_a_linear_kernel_of_extreme_features(factor) -> None:
    """Scaling the features is scaling C the other way, by the square."""
    with within_slices(), only_warnings(ConvergenceWarning):
        model = SVC(kernel="linear").fit(X * factor, Y)
    values_of(model, X * factor)
    assert np.isfinite(model.intercept_).all()
    separable = SVC(kernel="linear").fit(X2 * factor, Y2)
    assert np.isfinite(separable.coef_).all()
    if factor > 1:
        assert separable.score(X2 * factor, Y2) == 1.0


def test_powers_beyond_floating_point_are_refused_before_the_fit() -> None:
    model = SVC().fit(X, Y)
    before = model.decision_function(X)
    model.set_params(kernel="poly", degree=50, gamma=1e10)
    steps = []
    with (
        watch(on_step=steps.append),
        pytest.raises(NumericalOverflowError, match=r"Polynomial\(.*degree=50.*StandardScaler"),
    ):
        model.fit(X, Y)
    assert not steps
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_powers_just_within_floating_point(C) -> None:
    for gamma, degree in ((4178.0, 7), (1e3, 30), (10.0, 50)):
        with within_slices(), only_warnings(ConvergenceWarning):
            model = SVC(kernel="poly", degree=degree, gamma=gamma, C=C).fit(X2, Y2)
        values_of(model, X2)


@pytest.mark.parametrize("cls", SVMS)
def test_kernels_that_are_no_inner_products(cls) -> None:
    rng = np.random.default_rng(0)
    K = rng.standard_normal((60, 60))
    K += K.T
    target = rng.integers(0, 2, 60)
    for matrix in (K, -np.eye(60)):
        with within_slices(), only_warnings(DataWarning) as caught:
            model = machine(cls, kernel="precomputed").fit(matrix, target)
        assert re.search(r"not positive .*smallest eigenvalue .* -\d", str(caught[0].message))
        values_of(model, K)
    with within_slices(), only_warnings(DataWarning):
        values_of(machine(cls, kernel="sigmoid", coef0=-1.0).fit(X, Y), X)
        values_of(machine(cls, kernel="precomputed").fit(np.zeros((60, 60)), target), K)


def test_the_objective_of_an_indefinite_problem_falls_all_the_same() -> None:
    rng = np.random.default_rng(1)
    K = rng.standard_normal((200, 200))
    K += K.T
    with within_slices(), pytest.warns(DataWarning, match="not positive semidefinite"):
        model = SVC(kernel="precomputed", C=10.0).fit(K, rng.integers(0, 2, 200))
    objectives = [point.objective for point in model.certificate_.trace]
    assert (np.diff(objectives) <= 1e-9 * np.abs(objectives).max()).all()


@pytest.mark.parametrize("cls", SVMS)
def test_bad_gram_matrices(cls) -> None:
    model = machine(cls, kernel="precomputed").fit(np.eye(60), np.arange(60) % 2)
    before = values_of(model, np.eye(60))
    target = np.arange(60) % 2
    for K, message in (
        (np.triu(np.ones((60, 60))), r"not symmetric: X\[0, 1\] = 1 but X\[1, 0\] = 0"),
        (np.ones((60, 59)), r"square.*shape \(60, 59\)"),
        (np.full((60, 60), np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(K, target)
    with pytest.raises(TypeError, match="toarray"):
        model.fit(sp.csr_array(np.eye(60)), target)
    for wrong in (np.ones((3, 59)), np.ones((3, 61))):
        with pytest.raises(ValueError, match=rf"{wrong.shape[1]} features.*60 features"):
            model.predict(wrong)
    nearly = np.eye(60) + 1e-12 * np.triu(np.ones((60, 60)), 1)
    machine(cls, kernel="precomputed").fit(nearly, target)
    assert np.array_equal(values_of(model, np.eye(60)), before)


def raising(A, B):
    raise LookupError("mine")


def mutating(A, B):
    K = A @ B.T
    A[:] = 0
    return K


def wavering():
    rng = np.random.default_rng(0)

    def wavers(A, B):
        return A @ B.T + rng.standard_normal((len(A), len(B)))

    return wavers


def lopsided(A, B):
    return A @ B.T + np.arange(len(A))[:, None]


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (lambda A, B: (A @ B.T)[:, :-1], ValueError, r"<lambda> returned .*shape \(\d+, \d+\)"),
        (lambda A, B: 1.0, ValueError, r"<lambda> returned .*shape \(\)"),
        (lambda A, B: None, ValueError, "<lambda> returned"),
        (lambda A, B: A @ B.T * np.nan, ValueError, "<lambda> returned values that are not finite"),
        (lambda A, B: (A @ B.T).astype(object), ValueError, "<lambda> returned .*object"),
        (lambda A, B: A @ B.T + 0j, ValueError, "<lambda> returned .*complex"),
        (raising, LookupError, "^mine$"),
        (mutating, ValueError, "read-only"),
        (wavering(), ValueError, "wavers"),
        (lopsided, ValueError, "lopsided"),
    ],
)
def test_kernel_functions_that_do_not_keep_their_word(cls, kernel, error, message) -> None:
    data, copy_of_data = X2.copy(), X2.copy()
    model = machine(cls).fit(data, Y2)
    before = values_of(model, data)
    model.set_params(kernel=kernel)
    with within_slices(), pytest.raises(error, match=message):
        model.fit(data[:70, :3], Y2[:70])
    assert np.array_equal(data, copy_of_data)
    model.set_params(kernel="rbf")
    assert np.array_equal(values_of(model, data), before)


def test_a_kernel_function_that_fails_late() -> None:
    calls = []

    def tired(A, B):
        calls.append(len(A))
        if len(calls) > 3:
            raise LookupError("enough")
        return A @ B.T

    model = SVC().fit(X, Y)
    before = model.decision_function(X)
    with pytest.raises(LookupError, match="enough"):
        model.set_params(kernel=tired).fit(X2, Y2)
    model.set_params(kernel="rbf")
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_ones", [5, 7])
def test_identical_rows_of_both_classes(kernel, n_ones) -> None:
    data, labels = np.ones((10, 3)), np.arange(10) < n_ones
    with pytest.warns(DataWarning, match="All features are constant"):
        model = SVC(kernel=kernel).fit(data, labels)
    assert model.predict(np.ones((1, 3))).tolist() == [True]  # the majority; a tie is the second's
    assert np.abs(model.dual_coef_).max() <= 1.0
    with pytest.warns(DataWarning):
        again = SVC(kernel=kernel).fit(data[::-1], labels[::-1])
    assert np.array_equal(values_of(model, data), values_of(again, data))


def test_every_row_with_both_labels() -> None:
    data, labels = np.vstack([X2, X2]), np.r_[Y2, 1 - Y2]
    model = SVC().fit(data, labels)
    assert np.array_equal(np.abs(model.dual_coef_), np.ones((1, len(data))))  # all at their bound
    assert np.abs(values_of(model, data)).max() <= 1e-9
    again = SVC().fit(data, labels)
    assert np.array_equal(again.dual_coef_, model.dual_coef_)
    half = SVC(C=2.0).fit(np.vstack([X2, X2[:10]]), np.r_[Y2, 1 - Y2[:10]])
    assert half.score(X2[10:], Y2[10:]) == 1.0


@pytest.mark.parametrize("cls", SVMS)
def test_lattices_of_ties(cls) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 4, (200, 2)).astype(float)
    target = rng.integers(0, 2, 200)
    own = {"nu": 0.5} if cls is NuSVC else {}
    with within_slices(), only_warnings(DataWarning, ConvergenceWarning):
        models = [machine(cls, kernel="linear", **own).fit(data, target) for _ in range(2)]
    assert np.array_equal(values_of(models[0], data), values_of(models[1], data))
    assert np.array_equal(models[0].n_iter_, models[1].n_iter_)


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("tol", [0, 0.0, np.inf, np.nan, -1.0, "1", None, True])
def test_a_tolerance_that_is_none(cls, tol) -> None:
    with pytest.raises(ValueError, match=f"'tol' parameter of {cls.__name__} must be"):
        machine(cls, tol=tol).fit(X, Y)


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("tol", [1e-15, 1e-300])
def test_a_tolerance_below_floating_point_ends_at_its_floor(cls, kernel, tol) -> None:
    usual = machine(cls, kernel=kernel, tol=1e-9).fit(X2, Y2)
    with within_slices(), only_warnings(ConvergenceWarning) as caught:
        model = machine(cls, kernel=kernel, tol=tol).fit(X2, Y2)
    assert np.abs(values_of(model, X2) - values_of(usual, X2)).max() <= 1e-4
    for warning in caught:
        found = re.search(r"violation is (\S+)", str(warning.message)).group(1)
        assert float(found) > 0  # nothing is short of a tolerance that is met


def test_a_very_wide_tolerance_is_a_fit_of_no_steps() -> None:
    model = SVC(tol=1e6).fit(X2, Y2)
    assert model.n_iter_.tolist() == [0]
    values_of(model, X2)


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_hundred_thousand_times_as_many_features_as_rows(cls, kernel) -> None:
    rng = np.random.default_rng(0)
    wide = sp.random_array((10, 10**6), density=1e-4, rng=rng, format="csr")
    target = np.arange(10) % 2
    model = machine(cls, kernel=kernel).fit(wide, target)
    values_of(model, wide)
    assert sp.issparse(model.support_vectors_)
    if cls in (SVC, NuSVC):
        assert model.score(wide, target) == 1.0


@pytest.mark.parametrize("cls", SVMS)
def test_constant_features_do_not_matter(cls) -> None:
    plain = machine(cls, gamma=0.5).fit(X, Y)
    model = machine(cls, gamma=0.5).fit(np.column_stack([X, np.full(len(X), 7.0)]), Y)
    found = values_of(model, np.column_stack([X, np.full(len(X), 7.0)]))
    assert np.abs(found - values_of(plain, X)).max() <= 1e-2


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_feature_that_drowns_the_others_is_named(cls, kind) -> None:
    data = np.column_stack([X, X[:, 0] * 1e20])
    given = sp.csr_array(data) if kind == "sparse" else data
    with pytest.warns(DataWarning, match=r"Feature 4 is 1\.5e\+20 times .*StandardScaler"):
        model = machine(cls).fit(given, Y)
    values_of(model, given)


@pytest.mark.parametrize("cls", [SVR, NuSVR])
@pytest.mark.parametrize("unit", [1e308, 1e300, 1e200, 1e-200, 1e-300])
def test_targets_of_any_size(cls, unit) -> None:
    targets = X[:, 0] / 8.0 * unit
    with within_slices(), only_warnings(DataWarning, ConvergenceWarning):
        model = cls().fit(X[:, 1:], targets)
    assert np.abs(values_of(model, X[:, 1:]) / 10).max() <= targets.max()


@pytest.mark.parametrize("cls", [SVR, NuSVR])
def test_targets_whose_range_is_beyond_floating_point(cls) -> None:
    targets = np.where(Y > 0, 1.7e308, -1.7e308)
    with only_warnings(DataWarning):
        model = cls().fit(X, targets)
        assert np.abs(values_of(model, X)).max() <= 1.7e308


@pytest.mark.parametrize("epsilon", [-1.0, np.inf, np.nan, "1", True, None])
def test_a_tube_that_is_none(epsilon) -> None:
    with pytest.raises(ValueError, match="'epsilon' parameter of SVR must be"):
        SVR(epsilon=epsilon).fit(X, Y)


@pytest.mark.parametrize("epsilon", [1.0, 1e300])
def test_a_tube_wider_than_the_targets(epsilon) -> None:
    with pytest.warns(DataWarning, match="no support vectors"):
        model = SVR(epsilon=epsilon).fit(X, Y)
    assert len(model.support_) == 0
    assert (values_of(model, X) == 1.0).all()


@pytest.mark.parametrize("cls", [NuSVC, NuSVR, OneClassSVM])
@pytest.mark.parametrize("nu", [0, 0.0, -0.1, 1.1, np.nan, np.inf, "1", True, None])
def test_a_nu_that_is_none(cls, nu) -> None:
    with pytest.raises(ValueError, match=f"'nu' parameter of {cls.__name__} must be"):
        cls(nu=nu).fit(X, Y)


@pytest.mark.parametrize("cls", [NuSVC, NuSVR, OneClassSVM])
@pytest.mark.parametrize("nu", [1, 1e-3, 1e-12])
def test_the_ends_of_nu(cls, nu) -> None:
    with within_slices(), only_warnings(DataWarning, ConvergenceWarning):
        model = cls(nu=nu).fit(X, Y)
    values_of(model, X)
    if cls is not NuSVR and nu == 1:
        assert len(model.support_) == len(X)


def test_a_nu_beyond_the_feasible_is_told_the_largest() -> None:
    data = np.random.default_rng(0).standard_normal((100, 3))
    labels = np.arange(100) < 10  # a tenth of the rows
    model = NuSVC(nu=0.1).fit(data, labels)
    before = model.decision_function(data)
    with pytest.raises(InfeasibleNuError, match=r"nu=0\.5, .*at most 0\.2\b"):
        model.set_params(nu=0.5).fit(data, labels)
    assert np.array_equal(model.decision_function(data), before)


# -- support vector machines: data ---------------------------------------------------------------


@pytest.mark.parametrize("cls", SVMS)
def test_failed_fits_leave_the_old_machine(cls) -> None:
    model = machine(cls).fit(X, Y)
    before = values_of(model, X)
    attributes = dict(vars(model))
    spoiled = X.copy()
    spoiled[17, 2] = np.nan
    for wrong, message in (
        (spoiled, r"NaN.*column 2.*row 17|NaN.*row 17.*column 2"),
        (np.where(np.isnan(spoiled), np.inf, spoiled), "infinity"),
        (X[:0], "0 sample"),
        (X[:, :0], "0 feature"),
        (X[0], "1D array"),
        (X[:, :, None], "dim 3|3D|found array with dim"),
        (X + 0j, "[Cc]omplex"),
        (X.astype("datetime64[s]"), "datetime64"),
        (np.ma.masked_array(X, X > 5), "masked"),
        (np.full(X.shape, "a"), "."),
        ({"a": 1}, "."),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(wrong, Y[: len(wrong)] if hasattr(wrong, "ndim") and wrong.ndim == 2 else Y)
    if cls is not OneClassSVM:
        for wrong in (Y[:-1], np.where(Y == 0, np.nan, 1.0), np.where(Y == 0, np.inf, 1.0), None):
            with pytest.raises(ValueError, match=r"[Yy]"):
                model.fit(X, wrong)
    for weight, message in (
        (np.zeros(150), "zero for all rows"),
        (np.full(150, -1.0), "positive for no row"),
        (np.full(150, np.nan), "NaN"),
        (np.full(150, np.inf), "infinity"),
        (np.ones(149), "149"),
        (np.ones((150, 1)), "1D"),
        (2.0, "1D"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y, sample_weight=weight)
    assert vars(model).keys() == attributes.keys()
    assert all(vars(model)[name] is value for name, value in attributes.items())
    assert np.array_equal(values_of(model, X), before)


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_labels_that_are_none(cls) -> None:
    with pytest.raises(ValueError, match=r"1 class.*2 classes"):
        machine(cls).fit(X, np.zeros(150))
    with pytest.raises(ValueError, match=r"Unknown label type|continuous"):
        machine(cls).fit(X, X[:, 0] + 0.01)
    with pytest.raises(ValueError, match="mixes"):
        machine(cls).fit(X, ["a", 1, 2] * 50)
    for wrong in ({0: 0.0}, {0: -1.0}, {0: np.nan}, "Balanced", {7: 1.0}):
        with pytest.raises(ValueError, match="class_weight"):
            machine(cls, class_weight=wrong).fit(X, Y)


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_a_class_without_weight_is_left_out_and_said_so(cls) -> None:
    weight = np.where(Y == 1, 0.0, 1.0)
    with pytest.warns(DataWarning, match="class 1 have sample_weight 0"):
        model = machine(cls).fit(X, Y, sample_weight=weight)
    assert model.classes_.tolist() == [0, 2]
    only = machine(cls).fit(X[Y != 1], Y[Y != 1])
    assert np.allclose(values_of(model, X), values_of(only, X))


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("weight", [1e-320, 1e-200, 1e200, 1e308])
def test_extreme_weights(cls, weight) -> None:
    with within_slices(), only_warnings(ConvergenceWarning, DataWarning):
        model = machine(cls).fit(X, Y, sample_weight=np.full(150, weight))
    values_of(model, X)
    assert np.isfinite(model.dual_coef_).all()


@pytest.mark.parametrize("cls", SVMS)
def test_layouts_and_types_that_hold_the_same_numbers(cls) -> None:
    data = np.round(X * 10)
    expected = values_of(machine(cls).fit(data, Y), data)
    wide = np.zeros((150, 8))
    wide[:, ::2] = data
    locked = data.copy()
    locked.flags.writeable = False
    shifted = np.frombuffer(b"\0" + data.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    for same in (
        np.asfortranarray(data),
        data[::-1].copy()[::-1],
        wide[:, ::2],
        locked,
        shifted.reshape(150, 4),
        data.astype(">f8"),
        data.astype(np.int8),
        data.astype(np.uint64),
        data.astype(object),
        data.tolist(),
    ):
        model = machine(cls).fit(same, Y)
        assert np.array_equal(values_of(model, data), expected)
        assert np.array_equal(values_of(model, same), expected)
    expected = values_of(machine(cls, tol=1e-8).fit(data, Y), data)
    for narrow in (np.float32, np.float16):
        model = machine(cls, tol=1e-8).fit(data.astype(narrow), Y)
        scale = max(1.0, np.abs(expected).max())
        assert np.abs(values_of(model, data.astype(narrow)) - expected).max() <= 1e-5 * scale


@pytest.mark.parametrize("cls", SVMS)
def test_signed_zeros_are_equal_for_machines(cls) -> None:
    data = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    signed = np.where(data == 0, -0.0, data)
    own = {"nu": 1.0} if cls is NuSVC else {}
    models = [machine(cls, **own).fit(rows, [0, 0, 1, 1]) for rows in (data, signed)]
    assert np.array_equal(values_of(models[0], data), values_of(models[1], signed))


@pytest.mark.parametrize("cls", SVMS)
def test_malformed_sparse_matrices_never_reach_compiled_code(cls) -> None:
    good = sp.csr_array(X)
    model = machine(cls).fit(good, Y)
    for name, value in (("indices", 2**30), ("indices", -1), ("indptr", 2**30), ("indptr", -5)):
        bad = good.copy()
        getattr(bad, name)[len(getattr(bad, name)) // 2] = value
        with pytest.raises(MalformedSparseError):
            machine(cls).fit(bad, Y)
        with pytest.raises(MalformedSparseError):
            model.predict(bad)
    model.support_vectors_.indices[:] = 2**30
    with pytest.raises(MalformedSparseError):
        model.predict(good)


@pytest.mark.parametrize("cls", SVMS)
@pytest.mark.parametrize("name", ["intercept_", "dual_coef_", "support_vectors_", "support_"])
def test_altered_machines_are_noticed(cls, name) -> None:
    model = machine(cls).fit(X, Y)
    setattr(model, name, getattr(model, name)[..., :-1])
    with pytest.raises(ValueError, match=r"altered|support_vectors_ has shape|shape"):
        model.predict(X)


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_altered_counts_are_noticed(cls) -> None:
    for change in ([1000, 0, 0], [-1, 2, 3], [0, 0, 0]):
        model = machine(cls).fit(X, Y)
        model.n_support_ = np.array(change)
        with pytest.raises(ValueError, match="altered"):
            model.predict(X)


@pytest.mark.parametrize("cls", SVMS)
def test_predicting_uses_what_was_fitted(cls) -> None:
    with pytest.raises(NotFittedError):
        machine(cls).predict(X)
    model = machine(cls).fit(X, Y)
    before = values_of(model, X)
    model.set_params(kernel="linear", gamma=-1.0, tol=-1.0, degree=-3, max_iter=-9)
    assert np.array_equal(values_of(model, X), before)
    model.set_params(kernel="precomputed")
    assert np.array_equal(values_of(model, X), before)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


@pytest.mark.parametrize("cls", SVMS)
def test_copies_and_pickles_of_machines(cls) -> None:
    model = machine(cls).fit(X, Y)
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(values_of(twin, X), values_of(model, X))
    own = machine(cls, kernel=lambda A, B: A @ B.T).fit(X, Y)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(own)


@pytest.mark.parametrize("cls", SVMS)
def test_machines_leave_what_is_the_users_alone(cls) -> None:
    data, target, weight = X.copy(), Y.copy(), np.linspace(0.1, 2, len(Y))
    kept = data.copy(), target.copy(), weight.copy()
    model = machine(cls).fit(data, target, sample_weight=weight)
    values_of(model, data)
    assert all(np.array_equal(a, b) for a, b in zip((data, target, weight), kept, strict=True))
    expected = values_of(model, X)
    data[:] = 0.0  # the machine has vectors of its own
    assert np.array_equal(values_of(model, X), expected)


def test_as_many_classes_as_rows_of_a_machine() -> None:
    data = X[:40] + np.arange(40)[:, None]
    with pytest.warns(UserWarning, match="unique classes is greater than 50%"):
        model = SVC(C=10.0).fit(data, np.arange(40))
    assert model.score(data, np.arange(40)) == 1.0
    assert model.intercept_.shape == (780,)


# -- support vector machines: interrupts ---------------------------------------------------------


@pytest.mark.parametrize(("cls", "n_jobs"), [(SVC, 1), (SVC, 2), (NuSVR, 1)])
def test_interrupts_of_machines_are_obeyed_and_leave_the_old_one(cls, n_jobs) -> None:
    rng = np.random.default_rng(0)
    data, target = rng.standard_normal((4000, 20)), rng.integers(0, 2, 4000)
    model = cls(C=1e4, gamma=0.2, n_jobs=n_jobs).fit(X, Y).set_params(tol=1e-12)
    before = values_of(model, X)
    for n_slices in (1, 3):
        with pytest.raises(KeyboardInterrupt), interrupt_after(n_slices):
            model.fit(data, target)
        assert np.array_equal(values_of(model, X), before)
