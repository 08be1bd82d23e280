"""The .632+ error is that of the paper, for any estimator and any samples."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.oracles import bootstrap as oracle

from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor, watch
from margrove.datasets import load_iris, load_play_tennis
from margrove.ensemble.bootstrap.error import BootstrapError, bootstrap_error
from margrove.ensemble.bootstrap.resampling import CumulativeWeights, multiplicities
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
)

IRIS, SPECIES = load_iris(return_X_y=True)
RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
NOISY = np.where(X[:, 0] + RNG.normal(size=40) > 0, "up", "down")
TARGET = X[:, 0] + RNG.normal(size=40)
FIGURES = ("training", "out_of_bag", "no_information", "overfitting_rate", "e632", "e632_plus")


@contextmanager
def all_warnings():
    """All warnings, in order."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield told


def figures(error: BootstrapError) -> list[float]:
    return [getattr(error, name) for name in FIGURES]


def textbook(estimator, X, y, n_resamples, seed, loss):
    """The same by plain Python from the samples, with fits of scikit-learn."""
    samples, predictions = [], []
    for b in range(n_resamples):
        counts = multiplicities(CumulativeWeights(np.ones(len(y))), seed, b)
        rows = np.repeat(np.arange(len(y)), counts)
        samples.append(rows.tolist())
        predictions.append(sklearn.clone(estimator).fit(X[rows], y[rows]).predict(X).tolist())
    fitted = sklearn.clone(estimator).fit(X, y).predict(X).tolist()
    return oracle.error_632_plus(y.tolist(), fitted, samples, predictions, loss)


CASES = [
    (KNeighborsClassifier(1), NOISY, lambda t, p: float(t != p)),
    (KNeighborsClassifier(7), NOISY, lambda t, p: float(t != p)),
    (LogisticRegression(), NOISY, lambda t, p: float(t != p)),
    (DecisionTreeClassifier(max_depth=2), NOISY, lambda t, p: float(t != p)),
    (KNeighborsRegressor(1), TARGET, lambda t, p: (t - p) ** 2),
    (LinearRegression(), TARGET, lambda t, p: (t - p) ** 2),
    (DecisionTreeRegressor(max_depth=3), TARGET, lambda t, p: (t - p) ** 2),
]


@pytest.mark.parametrize(("estimator", "y", "loss"), CASES, ids=lambda case: str(case)[:24])
def test_the_632_plus_error_is_the_papers(estimator, y, loss) -> None:
    expected = textbook(estimator, X, y, 12, 5, loss)
    if never := expected["never_out_of_bag"]:
        with pytest.warns(DataWarning, match=f"{never} of 40 rows were in every resample"):
            error = bootstrap_error(estimator, X, y, n_resamples=12, random_state=5)
    else:
        error = bootstrap_error(estimator, X, y, n_resamples=12, random_state=5)
    assert error.never_out_of_bag == never
    for name in FIGURES:
        assert getattr(error, name) == pytest.approx(expected[name], rel=1e-12, abs=1e-14), name
    if error.out_of_bag <= error.no_information:
        w = error.e632_plus_weight
        mixed = (1 - w) * error.training + w * error.out_of_bag
        assert error.e632_plus == pytest.approx(mixed, rel=1e-12)


def test_losses_of_ones_own() -> None:
    def absolute(y_true, y_pred):
        return np.abs(y_true - y_pred)

    expected = textbook(LinearRegression(), X, TARGET, 30, 1, lambda t, p: abs(t - p))
    error = bootstrap_error(
        LinearRegression(), X, TARGET, n_resamples=30, scoring=absolute, random_state=1
    )
    assert figures(error) == pytest.approx([expected[name] for name in FIGURES], rel=1e-12)

    def wrong(y_true, y_pred):
        return y_true != y_pred

    ours = bootstrap_error(KNeighborsClassifier(1), X, NOISY, random_state=0)
    theirs = bootstrap_error(KNeighborsClassifier(1), X, NOISY, random_state=0, scoring=wrong)
    named = bootstrap_error(KNeighborsClassifier(1), X, NOISY, random_state=0, scoring="error")
    assert figures(theirs) == pytest.approx(figures(ours), rel=1e-13)
    assert figures(named) == figures(ours)


def test_pairs_are_thinned_out_evenly(monkeypatch) -> None:
    def absolute(y_true, y_pred):
        return np.abs(y_true - y_pred)

    options = {"n_resamples": 20, "scoring": absolute, "random_state": 1}
    exact = bootstrap_error(LinearRegression(), X, TARGET, **options).no_information
    monkeypatch.setattr("margrove.ensemble.bootstrap.losses._MOST_PAIRS", 40 * 10)
    thinned = bootstrap_error(LinearRegression(), X, TARGET, **options).no_information
    assert thinned != exact
    assert thinned == pytest.approx(exact, rel=0.05)
    monkeypatch.setattr("margrove.ensemble.bootstrap.losses._PAIRS_AT_ONCE", 1)
    assert bootstrap_error(LinearRegression(), X, TARGET, **options).no_information == (
        pytest.approx(thinned, rel=1e-13)
    )


def test_what_cannot_be_learnt_has_a_rate_of_one() -> None:
    """Random labels: 1-nn memorises its rows and learns nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(2, size=200)
    error = bootstrap_error(KNeighborsClassifier(1), X, y, n_resamples=50, random_state=0)
    assert error.training == 0.0
    assert error.no_information == pytest.approx(2 * y.mean() * (1 - y.mean()))
    assert error.overfitting_rate > 0.9
    assert error.e632_plus_weight > 0.9
    assert error.e632 < 0.4 < error.e632_plus


def test_a_learner_that_does_not_overfit() -> None:
    error = bootstrap_error(DummyClassifier(), X, NOISY, random_state=0)
    assert error.training == pytest.approx(error.no_information)
    assert error.overfitting_rate == 0.0
    assert error.e632_plus == error.e632
    assert error.e632_plus_weight == 0.632


def test_each_resample_has_its_error() -> None:
    error = bootstrap_error(KNeighborsClassifier(3), X, NOISY, n_resamples=25, random_state=2)
    for b in range(25):
        counts = multiplicities(CumulativeWeights(np.ones(40)), 2, b)
        rows, out = np.repeat(np.arange(40), counts), counts == 0
        model = KNeighborsClassifier(3).fit(X[rows], NOISY[rows])
        assert error.by_resample[b] == np.mean(model.predict(X[out]) != NOISY[out])


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5),
        DecisionTreeClassifier(splitter="random"),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_threads_do_not_change_a_bit_even_of_what_is_random(estimator) -> None:
    made = [
        bootstrap_error(
            estimator, IRIS[::3], SPECIES[::3], n_resamples=30, random_state=4, n_jobs=n_jobs
        )
        for n_jobs in (1, 2, 5)
    ]
    for other in made[1:]:
        assert figures(other) == figures(made[0])
        assert other.by_resample.tobytes() == made[0].by_resample.tobytes()


def test_the_estimator_stays_as_it_is() -> None:
    estimator = RandomForestClassifier(3)
    bootstrap_error(estimator, IRIS, SPECIES, n_resamples=30, random_state=0)
    assert not hasattr(estimator, "classes_")
    assert estimator.random_state is None


def test_a_random_state_of_its_own_is_respected() -> None:
    class Seeded(ClassifierMixin, BaseEstimator):
        seen: list = []  # noqa: RUF012

        def __init__(self, random_state=None) -> None:
            self.random_state = random_state

        def fit(self, X, y):
            self.seen.append(self.random_state)
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.repeat(self.classes_[:1], len(X))

    bootstrap_error(Seeded(7), X, NOISY, n_resamples=20, random_state=0)
    assert set(Seeded.seen) == {7}
    Seeded.seen.clear()
    bootstrap_error(Seeded(), X, NOISY, n_resamples=20, random_state=0)
    assert len(set(Seeded.seen)) == 21


def test_samples_that_miss_a_class() -> None:
    y = np.array(["rare"] + ["common", "other"] * 15)
    x = np.arange(31.0)[:, None]
    for estimator in (DecisionTreeClassifier(), SVC(), LogisticRegression()):
        error = bootstrap_error(estimator, x, y, n_resamples=25, random_state=0)
        assert 0 < error.out_of_bag <= 1
        assert error.never_out_of_bag == 0


def test_samples_of_one_class_predict_it() -> None:
    y = np.array(["rare"] + ["common"] * 14)
    x = np.arange(15.0)[:, None]
    with pytest.warns(DataWarning, match=r"contained one class only, to which SVC cannot") as told:
        error = bootstrap_error(SVC(), x, y, n_resamples=40, random_state=0)
    assert told[0].filename == __file__
    alone = sum(multiplicities(CumulativeWeights(np.ones(15)), 0, b)[0] == 0 for b in range(40))
    assert str(told[0].message).startswith(f"{alone} of 40 resamples")
    assert np.isfinite(figures(error)).all()
    # trees can be fitted to one class, and predict it
    tree = bootstrap_error(DecisionTreeClassifier(), x, y, n_resamples=40, random_state=0)
    assert np.isfinite(figures(tree)).all()


def test_stratified_samples_keep_the_sizes_of_classes() -> None:
    seen = []

    class Counting(DummyClassifier):
        def fit(self, X, y):
            seen.append(np.bincount(y).tolist())
            return super().fit(X, y)

    y = np.array([0] * 3 + [1] * 20 + [2] * 17)
    bootstrap_error(Counting(), X, y, n_resamples=30, stratify=True, random_state=0)
    assert seen == [[3, 20, 17]] * 31


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        lambda X: pd.DataFrame(X, columns=list("abc"), index=np.arange(40)[::-1]),
        lambda X: pl.DataFrame(X, schema=list("abc")),
        sp.csc_array,
        sp.coo_matrix,
        np.asfortranarray,
    ],
    ids=["list", "pandas", "polars", "csc", "coo", "fortran"],
)
def test_all_kinds_of_tables(convert) -> None:
    nearest = KNeighborsClassifier(3)
    expected = bootstrap_error(nearest, X, NOISY, n_resamples=20, random_state=0)
    labels = pd.Series(NOISY, index=np.arange(40) % 3)
    error = bootstrap_error(nearest, convert(X), labels, n_resamples=20, random_state=0)
    assert figures(error) == figures(expected)


def test_strings_and_targets_of_several_kinds() -> None:
    days = load_play_tennis(as_frame=True)
    tree = DecisionTreeClassifier()
    rows = [[*row, k] for k, row in enumerate(days.data.to_numpy().tolist())]
    frame = pd.DataFrame(rows)
    with all_warnings() as told:  # for values that are not in a sample
        error = bootstrap_error(tree, frame, days.target, n_resamples=60, random_state=0)
        listed = bootstrap_error(tree, rows, list(days.target), n_resamples=60, random_state=0)
    assert all("has not seen" in str(warning.message) for warning in told)
    assert figures(error) == figures(listed)
    nullable = pd.Series(SPECIES, dtype="Int64")
    assert bootstrap_error(tree, IRIS, nullable, n_resamples=30, random_state=0).training == 0.0


def test_several_outputs() -> None:
    both = np.c_[TARGET, TARGET**2]
    error = bootstrap_error(LinearRegression(), X, both, n_resamples=20, random_state=0)
    parts = [
        bootstrap_error(LinearRegression(), X, both[:, k], n_resamples=20, random_state=0)
        for k in range(2)
    ]
    for name in ("training", "out_of_bag", "no_information", "e632"):
        expected = np.mean([getattr(part, name) for part in parts])
        assert getattr(error, name) == pytest.approx(expected, rel=1e-12), name


def test_predictions_that_are_a_column() -> None:
    class Column(LinearRegression):
        def predict(self, X):
            return super().predict(X)[:, None]

    options = {"n_resamples": 20, "random_state": 0}
    expected = bootstrap_error(LinearRegression(), X, TARGET, **options)
    assert figures(bootstrap_error(Column(), X, TARGET, **options)) == figures(expected)


def test_rows_that_are_never_out_of_bag() -> None:
    with pytest.warns(DataWarning, match=r"\d+ of 40 rows were in every resample") as told:
        error = bootstrap_error(KNeighborsClassifier(1), X, NOISY, n_resamples=2, random_state=0)
    counts = [multiplicities(CumulativeWeights(np.ones(40)), 0, b) for b in range(2)]
    assert error.never_out_of_bag == np.count_nonzero((counts[0] > 0) & (counts[1] > 0))
    assert str(told[0].message).startswith(f"{error.never_out_of_bag} of 40")
    assert told[0].filename == __file__


def test_no_row_is_ever_out_of_bag() -> None:
    seed = next(
        seed
        for seed in range(100)
        if (multiplicities(CumulativeWeights(np.ones(2)), seed, 0) == 1).all()
    )
    with pytest.raises(ValueError, match=r"No row was out of bag.*Raise n_resamples"):
        bootstrap_error(DummyClassifier(), [[0], [1]], [0, 1], n_resamples=1, random_state=seed)


# -- what goes wrong -----------------------------------------------------------------------------


class Interrupted(RegressorMixin, BaseEstimator):
    """Interrupted at the k-th fit in the main thread."""

    fits_left = 0

    def fit(self, X, y):
        if threading.current_thread() is threading.main_thread():
            type(self).fits_left -= 1
            if type(self).fits_left < 0:
                raise KeyboardInterrupt
        else:
            time.sleep(0.002)  # and leave enough to the main thread
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_interrupt_keeps_the_samples_done(n_jobs) -> None:
    Interrupted.fits_left = 1000
    whole = bootstrap_error(Interrupted(), X, TARGET, random_state=0)
    Interrupted.fits_left = 30
    with pytest.raises(KeyboardInterrupt):
        bootstrap_error(Interrupted(), X, TARGET, random_state=0, n_jobs=n_jobs)
    Interrupted.fits_left = 30
    with pytest.warns(InterruptedFitWarning, match=r"BootstrapFits was interrupted after \d+"):
        error = bootstrap_error(
            Interrupted(), X, TARGET, random_state=0, n_jobs=n_jobs, on_interrupt="keep"
        )
    assert 28 <= len(error.by_resample) < 100
    assert set(error.by_resample) <= set(whole.by_resample)
    if n_jobs == 1:
        assert error.by_resample.tolist() == whole.by_resample[:29].tolist()
        again = bootstrap_error(DummyMean(), X, TARGET, random_state=0, n_resamples=29)
        assert figures(again) == figures(error)


class DummyMean(Interrupted):
    fits_left = 10**6


def test_an_interrupt_before_the_first_sample_has_nothing_to_keep() -> None:
    Interrupted.fits_left = 1
    with all_warnings(), pytest.raises(KeyboardInterrupt):
        bootstrap_error(Interrupted(), X, TARGET, on_interrupt="keep")


def test_time_that_is_up() -> None:
    with all_warnings() as told:
        error = bootstrap_error(
            DummyMean(), X, TARGET, n_resamples=100_000, max_time=1e-9, random_state=0
        )
    assert told[0].category is ConvergenceWarning
    assert "of 100000 resamples" in str(told[0].message)
    assert 1 <= len(error.by_resample) < 100_000


def test_watching_and_cancelling() -> None:
    told = []
    with watch(on_progress=told.append):
        bootstrap_error(SVC(), X, NOISY, n_resamples=30, random_state=0, n_jobs=2)
    assert {progress.learner for progress in told} == {"BootstrapFits"}
    assert told[-1].done == told[-1].total == 30
    event = threading.Event()
    event.set()
    with watch(cancel=event), pytest.raises(FitCancelled):
        bootstrap_error(DummyMean(), X, TARGET)


def test_settings_of_scikit_learn_reach_all_threads() -> None:
    seen = []

    class Asking(DummyClassifier):
        def fit(self, X, y):
            seen.append(sklearn.get_config()["working_memory"])
            return super().fit(X, y)

    with sklearn.config_context(working_memory=77):
        bootstrap_error(Asking(), X, NOISY, n_resamples=30, n_jobs=3)
    assert set(seen) == {77}


def test_errors_of_a_fit_name_the_sample() -> None:
    class Picky(DummyClassifier):
        def fit(self, X, y):
            if len(np.unique(X[:, 0])) < 40:
                raise LookupError("rows are missing")
            return super().fit(X, y)

    class Refusing(Picky):
        def fit(self, X, y):
            try:
                return super().fit(X, y)
            except LookupError as error:
                raise ValueError("no") from error

    for n_jobs in (1, 2):
        for estimator, kind in ((Picky(), LookupError), (Refusing(), ValueError)):
            with pytest.raises(kind) as told:
                bootstrap_error(estimator, X, NOISY, n_jobs=n_jobs)
            assert told.value.__notes__[0].startswith("Resample ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"estimator": DecisionTreeClassifier}, "estimator must be an instance"),
        ({"estimator": "tree"}, "estimator must be an instance of a classifier or a regressor"),
        ({"estimator": KMeans()}, "KMeans is neither a classifier nor a regressor, so scoring"),
        ({"X": X[:1], "y": NOISY[:1]}, "X has one row"),
        ({"X": X[:0], "y": NOISY[:0]}, "X has no rows"),
        ({"X": X[:-1]}, "X has 39 rows, but y has 40"),
        ({"y": None}, "y is None"),
        ({"y": np.c_[NOISY, NOISY]}, r"y has shape \(40, 2\)"),
        ({"n_resamples": 0}, "'n_resamples' parameter of bootstrap_error"),
        ({"n_resamples": True}, "'n_resamples' parameter"),
        ({"scoring": "accuracy"}, "'scoring' parameter of bootstrap_error"),
        ({"stratify": "yes"}, "'stratify' parameter"),
        ({"estimator": LinearRegression(), "y": TARGET, "stratify": True}, "is not a classifier"),
        ({"random_state": -1}, "'random_state' parameter"),
        ({"n_jobs": 0}, "'n_jobs' parameter must not be 0"),
        ({"max_time": -1.0}, "'max_time' parameter"),
        ({"on_interrupt": None}, "'on_interrupt' parameter"),
        ({"scoring": lambda t, p: 0.5}, r"scoring must return a number for each row.*shape \(\)"),
        ({"scoring": lambda t, p: np.full(len(t), np.nan)}, "The loss of 40 of the rows"),
    ],
)
def test_arguments_are_refused(given, message) -> None:
    arguments = {"estimator": DecisionTreeClassifier(), "X": X, "y": NOISY, **given}
    with pytest.raises((ValueError, TypeError), match=message):
        bootstrap_error(**arguments)


def test_results_print_pickle_and_hold_still() -> None:
    error = bootstrap_error(DecisionTreeClassifier(), X, NOISY, random_state=0)
    assert repr(error).startswith("BootstrapError(training=0, out_of_bag=0.")
    assert repr(error).endswith("n_resamples=100)")
    assert ".632+ error" in str(error)
    assert figures(pickle.loads(pickle.dumps(error))) == figures(error)
    with pytest.raises(AttributeError):
        error.training = 1.0
