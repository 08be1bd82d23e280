"""Odd things that users, programs and operating systems do to estimators."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrove import KernelPerceptron, Perceptron, watch
from margrove.datasets import load_iris
from margrove.exceptions import MalformedSparseError

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
