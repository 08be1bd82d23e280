"""Bagging: a slow reference, votes and averages, out-of-bag predictions, and weights."""

from __future__ import annotations

import inspect
import pickle
import threading
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn.ensemble
import sklearn.svm
import sklearn.tree
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.interrupts import steady_clock

from margrove import (
    SVC,
    SVR,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    LinearSVC,
    LinearSVR,
    watch,
)
from margrove._data import canonical_form
from margrove._runtime.slices import SUPPORTS_CALLBACKS
from margrove.datasets import load_iris
from margrove.ensemble.bagging.estimators import BaggingClassifier, BaggingRegressor
from margrove.ensemble.bagging.samples import plan_samples
from margrove.ensemble.bootstrap.resampling import CumulativeWeights, multiplicities
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
    InvalidDataError,
    MalformedSparseError,
)

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
_RNG = np.random.default_rng(0)
NOISE = _RNG.standard_normal((90, 4))
LINE = NOISE @ [1.0, -2.0, 0.5, 0.0] + _RNG.standard_normal(90)
THREE = _RNG.integers(0, 3, 90)
BOTH = [BaggingClassifier, BaggingRegressor]

CLASSIFIERS = {
    "tree": DecisionTreeClassifier(),
    "random tree": DecisionTreeClassifier(max_features=2),
    "LinearSVC": LinearSVC(),
    "SVC": SVC(),
    "neighbours": KNeighborsClassifier(),
    "scikit-learn's tree": sklearn.tree.DecisionTreeClassifier(),
    "scikit-learn's LinearSVC": sklearn.svm.LinearSVC(),
    "scikit-learn's SVC": sklearn.svm.SVC(),
    "pipeline": make_pipeline(StandardScaler(), SVC()),
}
REGRESSORS = {
    "tree": DecisionTreeRegressor(),
    "LinearSVR": LinearSVR(),
    "SVR": SVR(),
    "neighbours": KNeighborsRegressor(),
    "scikit-learn's tree": sklearn.tree.DecisionTreeRegressor(),
    "Ridge": Ridge(),
}
by_name = pytest.mark.parametrize("name", CLASSIFIERS)
# these get all rows in the order of X, and may depend on it
GIVEN_ALL_ROWS = {"scikit-learn's tree", "scikit-learn's LinearSVC", "scikit-learn's SVC", "Ridge"}


def bagged(name, cls=BaggingClassifier, **settings):
    members = CLASSIFIERS if cls is BaggingClassifier else REGRESSORS
    return cls(members[name], **{"n_estimators": 6, "random_state": 3} | settings)


def values_of(model, X):
    if isinstance(model, BaggingRegressor):
        return model.predict(X)
    return model.predict_proba(X)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


# -- scikit-learn's checks and our own --


@pytest.mark.parametrize("cls", BOTH)
def test_parameters_and_attributes_are_documented(cls) -> None:
    parameters = set(cls().get_params())
    assert parameters == set(cls._parameter_constraints)
    before, _, after = inspect.getdoc(cls).partition("Attributes\n")
    assert not [name for name in parameters if f"{name} :" not in before]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        model = cls(oob_score=True).fit(X, Y)
    fitted = [name for name in vars(model) if name.endswith("_")]
    assert {"estimators_", "oob_score_"} <= set(fitted)
    assert not [name for name in fitted if name not in after]


@pytest.mark.parametrize("cls", BOTH)
def test_parameters_of_scikit_learn_are_taken_with_its_defaults(cls) -> None:
    ours, theirs = cls().get_params(), getattr(sklearn.ensemble, cls.__name__)().get_params()
    assert set(theirs) <= set(ours)
    different = {name for name, value in theirs.items() if ours[name] != value}
    assert different <= {"max_samples"}  # 1.0 means all rows, like None


# -- the slow plain twin --


def plain_samples(X, y, weight, seed, n_estimators):
    """How often each row is in each sample, one row at a time; there are no copies."""
    form = canonical_form(X, y, weight)
    assert len(form.rows) == (weight > 0).sum()
    line = CumulativeWeights(form.weight)
    for number in range(n_estimators):
        drawn = np.zeros(len(y), int)
        for row, count in zip(form.rows, multiplicities(line, seed, number), strict=True):
            drawn[row] = count
        yield drawn


@pytest.mark.parametrize("weighted", [False, True])
def test_a_plain_loop_gives_the_same_classifier(weighted, rng) -> None:
    weight = rng.integers(0, 4, 90).astype(float) if weighted else np.ones(90)
    model = BaggingClassifier(n_estimators=7, random_state=5)
    model.fit(NOISE, THREE, sample_weight=weight if weighted else None)
    total = np.zeros((90, 3))
    samples = list(plain_samples(NOISE, THREE, weight, 5, 7))
    for drawn in samples:
        tree = DecisionTreeClassifier().fit(NOISE, THREE, sample_weight=drawn)
        total += tree.predict_proba(NOISE)
    assert np.array_equal(model.predict_proba(NOISE), total / 7)
    assert np.array_equal(model.predict(NOISE), np.argmax(total, axis=1))
    for drawn, indices in zip(samples, model.estimators_samples_, strict=True):
        assert np.array_equal(np.bincount(indices, minlength=90), drawn)
        assert drawn.sum() == weight.sum()


def test_a_plain_loop_gives_the_same_regressor() -> None:
    model = BaggingRegressor(n_estimators=7, random_state=5).fit(NOISE, LINE)
    total = np.zeros(90)
    for drawn in plain_samples(NOISE, LINE, np.ones(90), 5, 7):
        rows = np.repeat(np.arange(90), drawn)
        total += DecisionTreeRegressor().fit(NOISE[rows], LINE[rows]).predict(NOISE)
    assert np.array_equal(model.predict(NOISE), total / 7)


@by_name
def test_members_are_the_estimator_fitted_on_their_samples(name) -> None:
    model = bagged(name, max_features=3).fit(X, NAMES)
    for member, rows, columns in zip(
        model.estimators_, model.estimators_samples_, model.estimators_features_, strict=True
    ):
        alone = clone(member).fit(X[rows][:, columns], Y[rows])
        assert np.array_equal(member.predict(X[:, columns]), alone.predict(X[:, columns]))


# -- votes and averages --


def test_votes_are_counted_and_averages_are_averages() -> None:
    tree = DecisionTreeClassifier(max_depth=1)
    soft = BaggingClassifier(tree, 9, random_state=0).fit(X, NAMES)
    hard = BaggingClassifier(tree, 9, random_state=0, voting="hard").fit(X, NAMES)
    ballots = np.array([member.predict(X) for member in hard])
    counts = np.array([(ballots == code).sum(axis=0) for code in range(3)]).T
    assert np.array_equal(hard.predict_proba(X), counts / 9)
    assert np.array_equal(hard.predict(X), hard.classes_[np.argmax(counts, axis=1)])
    average = sum(member.predict_proba(X) for member in soft) / 9
    assert np.array_equal(soft.predict_proba(X), average)
    assert not np.array_equal(soft.predict_proba(X), hard.predict_proba(X))


def test_votes_stand_in_for_probabilities_that_are_not_there() -> None:
    soft, hard = (bagged("LinearSVC", voting=voting).fit(X, Y) for voting in ("soft", "hard"))
    assert np.array_equal(soft.predict_proba(X), hard.predict_proba(X))
    with np.errstate(divide="ignore"):
        assert np.array_equal(soft.predict_log_proba(X), np.log(soft.predict_proba(X)))


def test_of_equally_many_votes_the_first_class_wins() -> None:
    model = BaggingClassifier(DummyClassifier(strategy="uniform"), 2, voting="hard").fit(X, NAMES)
    shares = model.predict_proba(X)
    assert ((shares == 0.5).sum(axis=1) == 2).any()
    assert np.array_equal(model.predict(X), model.classes_[np.argmax(shares, axis=1)])


def test_logarithms_do_not_underflow() -> None:
    model = BaggingClassifier(GaussianNB(), 5, random_state=0).fit(X, Y)
    far = X[:5] * 1e3
    assert (model.predict_proba(far) == 0).any()
    assert np.isfinite(model.predict_log_proba(far)).all()
    near = model.predict_proba(X[:5])
    assert model.predict_log_proba(X[:5]) == pytest.approx(np.log(near), rel=1e-9)


@pytest.mark.parametrize("name", ["SVC", "LinearSVC", "scikit-learn's SVC"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_functions_are_averaged(name, n_classes) -> None:
    rows = np.isin(Y, range(n_classes))
    model = bagged(name).fit(X[rows], Y[rows])
    average = sum(member.decision_function(X) for member in model) / 6
    assert model.decision_function(X) == pytest.approx(average, rel=1e-12)
    assert not hasattr(BaggingClassifier(), "decision_function")
    assert not hasattr(BaggingClassifier().fit(X, Y), "decision_function")


# -- classes that a sample misses --


def rare_class():
    """Class 1 has two rows, so most samples of 8 rows do not contain it."""
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])[np.where(np.arange(60) < 2, 1, np.arange(60) % 2 * 2)]
    centres = {"a": -2.0, "b": 0.0, "c": 2.0}
    points = np.c_[[centres[label] for label in labels], rng.standard_normal(60)]
    return points, labels


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("name", ["tree", "scikit-learn's tree", "neighbours", "pipeline"])
def test_a_sample_without_a_class_keeps_the_order_of_the_classes(name, voting) -> None:
    points, labels = rare_class()
    model = bagged(name, max_samples=8, voting=voting, n_estimators=20).fit(points, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]
    misses_some = name not in GIVEN_ALL_ROWS
    assert any(member.classes_.tolist() == [0, 2] for member in model) == misses_some
    assert any(member.classes_.tolist() == [0, 1, 2] for member in model)
    expected = np.zeros((60, 3))
    for member in model:
        if voting == "hard" or not hasattr(member, "predict_proba"):
            expected[np.arange(60), member.predict(points)] += 1
        else:
            for column, code in enumerate(member.classes_):
                expected[:, code] += member.predict_proba(points)[:, column]
    assert np.array_equal(model.predict_proba(points), expected / 20)
    assert model.predict_proba(points).sum(axis=1) == pytest.approx(1.0)
    assert (model.predict(points) == labels)[2:].mean() > 0.9


def test_decisions_about_a_class_are_by_those_who_know_it() -> None:
    points, labels = rare_class()
    model = bagged("SVC", max_samples=20, n_estimators=20).fit(points, labels)
    knowing = [member for member in model if len(member.classes_) == 3]
    assert 0 < len(knowing) < 20
    decisions = model.decision_function(points)
    average = sum(member.decision_function(points)[:, 1] for member in knowing) / len(knowing)
    assert decisions[:, 1] == pytest.approx(average, rel=1e-12)
    assert decisions.shape == (60, 3)
    assert np.isfinite(decisions).all()


def test_an_estimator_that_needs_two_classes_says_which_sample_has_one() -> None:
    model = BaggingClassifier(SVC(), 10, max_samples=2, random_state=0)
    with pytest.raises(InvalidDataError, match=r"SVC .* estimator \d of .* class .* only"):
        model.fit(X, NAMES)


def test_class_weights_are_those_of_the_labels() -> None:
    labels = np.array([7, 8, 9])[Y]  # members are fitted to codes 0, 1, 2
    weights = {7: 1.0, 8: 50.0, 9: 1.0}
    stump = DecisionTreeClassifier(max_depth=1)
    one = BaggingClassifier(clone(stump).set_params(class_weight=weights), random_state=0)
    by_code = clone(stump).set_params(class_weight={0: 1.0, 1: 50.0, 2: 1.0})
    two = BaggingClassifier(by_code, random_state=0)
    none = BaggingClassifier(stump, random_state=0)
    shares = [model.fit(X, labels).predict_proba(X) for model in (one, two, none)]
    assert np.array_equal(shares[0], shares[1])
    assert not np.array_equal(shares[0], shares[2])


# -- out of bag --


def test_figures_out_of_bag_of_classes() -> None:
    model = BaggingClassifier(n_estimators=25, oob_score=True, random_state=0).fit(NOISE, THREE)
    sums, counts = np.zeros((90, 3)), np.zeros(90)
    for row in range(90):
        for member, drawn in zip(model, model.estimators_samples_, strict=True):
            if row not in drawn:
                sums[row] += member.predict_proba(NOISE[row : row + 1])[0]
                counts[row] += 1
    expected = sums / counts[:, None]
    assert np.array_equal(model.oob_decision_function_, expected)
    assert model.oob_score_ == np.mean(np.argmax(expected, axis=1) == THREE)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_figures_out_of_bag_of_numbers(n_outputs) -> None:
    y = LINE if n_outputs == 1 else np.c_[LINE, -2 * LINE]
    model = BaggingRegressor(n_estimators=25, oob_score=True, random_state=0).fit(NOISE, y)
    expected = np.zeros(y.shape)
    for row in range(90):
        said = [
            member.predict(NOISE[row : row + 1])[0]
            for member, drawn in zip(model, model.estimators_samples_, strict=True)
            if row not in drawn
        ]
        expected[row] = np.sum(said, axis=0) / len(said)
    assert model.oob_prediction_ == pytest.approx(expected, rel=1e-12)
    residual, spread = ((y - expected) ** 2).sum(axis=0), ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    assert model.oob_score_ == pytest.approx(np.mean(1 - residual / spread), rel=1e-9)


@pytest.mark.parametrize("cls", BOTH)
def test_rows_in_every_bag_are_counted_and_have_no_figures(cls) -> None:
    model = cls(n_estimators=2, oob_score=True, random_state=0)
    with pytest.warns(DataWarning, match=r"(\d+) of 90 rows are in the sample of every") as record:
        model.fit(NOISE, THREE)
    in_all = np.bincount(np.concatenate([np.unique(s) for s in model.estimators_samples_])) == 2
    assert f". {in_all.sum()} of 90 rows" in str(record[0].message)
    classes = cls is BaggingClassifier
    figures = model.oob_decision_function_[:, 0] if classes else model.oob_prediction_
    assert np.array_equal(np.isnan(figures), in_all)
    found = np.argmax(model.oob_decision_function_, axis=1) if classes else figures
    metric = accuracy_score if classes else sklearn.metrics.r2_score
    assert model.oob_score_ == metric(THREE[~in_all], found[~in_all])


@pytest.mark.parametrize(("cls", "shape"), [(BaggingClassifier, (4, 2)), (BaggingRegressor, (4,))])
def test_nobody_is_out_of_bag(cls, shape) -> None:
    model = cls(n_estimators=1, oob_score=True, max_samples=200, random_state=0)
    with pytest.warns(DataWarning, match="4 of 4 rows"):
        model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert np.isnan(model.oob_score_)
    figures = getattr(model, "oob_decision_function_", getattr(model, "oob_prediction_", None))
    assert figures.shape == shape
    assert np.isnan(figures).all()


def test_a_score_out_of_bag_of_ones_own() -> None:
    def share_of_right(truth, found):
        assert set(truth) | set(found) <= set(NAMES)
        return np.mean(truth == found)

    few = slice(20, None)  # classes of different sizes
    scores = []
    for own in (True, share_of_right, balanced_accuracy_score):
        model = BaggingClassifier(n_estimators=30, oob_score=own, random_state=0)
        scores.append(model.fit(X[few], NAMES[few]).oob_score_)
    assert scores[0] == scores[1]
    right = np.argmax(model.oob_decision_function_, axis=1) == Y[few]
    by_class = [right[Y[few] == code].mean() for code in range(3)]
    assert scores[2] == pytest.approx(np.mean(by_class), rel=1e-12)


def test_weights_count_in_the_score_out_of_bag(rng) -> None:
    weight = rng.integers(0, 3, 90)
    model = BaggingClassifier(n_estimators=40, oob_score=True, random_state=0)
    model.fit(NOISE, THREE, sample_weight=weight)
    right = np.argmax(model.oob_decision_function_, axis=1) == THREE
    assert model.oob_score_ == pytest.approx(np.average(right, weights=weight), rel=1e-12)


# -- the law of weights --


def assert_alike(name, weighted, copied, repeated, rows) -> None:
    """Samples and fitted estimators are equal."""
    for one, two in zip(weighted.estimators_samples_, copied.estimators_samples_, strict=True):
        assert np.array_equal(np.sort(one), np.sort(repeated[two]))
    if name not in GIVEN_ALL_ROWS:
        assert np.array_equal(values_of(weighted, rows), values_of(copied, rows))


@by_name
def test_weights_are_copies_and_the_order_does_not_matter(name, rng) -> None:
    weight = rng.integers(0, 4, 90)
    repeated = rng.permutation(np.repeat(np.arange(90), weight))
    model = bagged(name)
    weighted = clone(model).fit(NOISE, THREE, sample_weight=weight)
    copied = clone(model).fit(NOISE[repeated], THREE[repeated])
    assert_alike(name, weighted, copied, repeated, NOISE)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("sampling", [{"bootstrap": False, "max_samples": 0.6}, {}])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_weights_of_numbers_are_copies(name, sampling, form, rng) -> None:
    weight = rng.integers(0, 4, 90)
    repeated = rng.permutation(np.repeat(np.arange(90), weight))
    rows = form(np.round(NOISE, 1) * (rng.random(NOISE.shape) < 0.8))
    model = bagged(name, BaggingRegressor, **sampling)
    weighted = clone(model).fit(rows, LINE, sample_weight=weight)
    copied = clone(model).fit(rows[repeated], LINE[repeated])
    assert_alike(name, weighted, copied, repeated, rows)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_missing_values_labels_and_several_outputs_obey_the_law(bootstrap, rng) -> None:
    weight = rng.integers(0, 4, 90)
    repeated = rng.permutation(np.repeat(np.arange(90), weight))
    with_gaps = np.where(rng.random((90, 4)) < 0.3, np.nan, np.round(NOISE))
    labels = np.array(["x", "y", "z"], dtype=object)[rng.integers(0, 3, (90, 4))]
    settings = {"bootstrap": bootstrap, "max_samples": 0.7, "random_state": 0}
    for table in (with_gaps, labels):
        one = BaggingClassifier(**settings).fit(table, THREE, sample_weight=weight)
        two = BaggingClassifier(**settings).fit(table[repeated], THREE[repeated])
        assert np.array_equal(one.predict_proba(table), two.predict_proba(table))
    y = np.c_[LINE, THREE]
    one = BaggingRegressor(**settings).fit(with_gaps, y, sample_weight=weight)
    two = BaggingRegressor(**settings).fit(with_gaps[repeated], y[repeated])
    assert np.array_equal(one.predict(with_gaps), two.predict(with_gaps))


@pytest.mark.parametrize("bootstrap", [True, False])
def test_weights_that_are_not_whole(bootstrap, rng) -> None:
    weight = rng.random(90) * (rng.random(90) < 0.8)
    model = BaggingClassifier(bootstrap=bootstrap, max_samples=0.5, random_state=0)
    one = clone(model).fit(NOISE, THREE, sample_weight=weight)
    kept = rng.permutation(np.flatnonzero(weight))
    two = clone(model).fit(NOISE[kept], THREE[kept], sample_weight=weight[kept])
    assert np.array_equal(one.predict_proba(NOISE), two.predict_proba(NOISE))
    for rows in one.estimators_samples_:
        assert len(rows) == round(0.5 * (weight > 0).sum())
        assert (weight[rows] > 0).all()
        assert bootstrap or len(set(rows)) == len(rows)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_rows_are_drawn_in_proportion_to_their_weights(bootstrap) -> None:
    """Expectations within five standard deviations; without replacement, of a first draw."""
    weight = np.array([0.5, 1.5, 3.0, 5.0])
    samples = plan_samples(
        np.arange(4.0)[:, None],
        np.arange(4.0),
        weight,
        seed=0,
        max_samples=1,
        with_replacement=bootstrap,
    )
    n = 4000
    drawn = [samples.indices(number) for number in range(n)]
    share = np.bincount(np.concatenate(drawn), minlength=4) / n
    expected = weight / weight.sum()
    assert (np.abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n)).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_without_replacement_no_row_comes_more_often_than_it_is_there(weighted, rng) -> None:
    weight = rng.integers(0, 4, 90) if weighted else np.ones(90, int)
    model = BaggingClassifier(n_estimators=30, bootstrap=False, max_samples=0.4, random_state=0)
    model.fit(NOISE, THREE, sample_weight=weight)
    samples = model.estimators_samples_
    for rows in samples:
        assert len(rows) == round(0.4 * weight.sum())
        assert (np.bincount(rows, minlength=90) <= weight).all()
    assert len({tuple(rows) for rows in samples}) == 30
    everything = clone(model).set_params(max_samples=1.0).fit(NOISE, THREE, sample_weight=weight)
    for rows in everything.estimators_samples_:
        assert np.array_equal(np.bincount(rows, minlength=90), weight)


def test_weights_that_do_nothing_are_warned_of(rng) -> None:
    weight = rng.random(90)
    model = BaggingClassifier(bootstrap=False, random_state=0)
    with pytest.warns(DataWarning, match="recommended to use bootstrap=True, got False"):
        model.fit(NOISE, THREE, sample_weight=weight)
    model.set_params(max_samples=0.5).fit(NOISE, THREE, sample_weight=weight)  # no warning
    model.set_params(max_samples=1.0).fit(NOISE, THREE, sample_weight=np.ceil(3 * weight))


def test_a_class_without_weight_stays_with_a_share_of_zero() -> None:
    for member in (None, GaussianNB()):
        model = BaggingClassifier(member, random_state=0)
        model.fit(X, NAMES, sample_weight=(Y != 1).astype(float))
        assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        kept = np.flatnonzero(Y != 1)
        assert all(np.isin(rows, kept).all() for rows in model.estimators_samples_)
    tree = BaggingClassifier(random_state=0).fit(X, NAMES, sample_weight=Y != 1)
    assert (tree.predict_proba(X)[:, 1] == 0.0).all()


# -- what members are given --


class Records(ClassifierMixin, BaseEstimator):
    """Stores the arguments of fit."""

    def fit(self, X, y, sample_weight=None):
        self.given_ = (X, y, sample_weight)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], int)


def test_estimators_of_others_get_all_rows_and_how_often_each_was_drawn(rng) -> None:
    weight = rng.integers(0, 3, 150)
    model = BaggingClassifier(Records(), max_features=2, random_state=0)
    model.fit(X, NAMES, sample_weight=weight)
    for k, member in enumerate(model):
        rows, codes, counts = member.given_
        assert np.array_equal(rows, X[:, model.estimators_features_[k]])
        assert np.array_equal(codes, Y)
        drawn = np.bincount(model.estimators_samples_[k], minlength=150)
        assert np.array_equal(counts, drawn)


@pytest.mark.parametrize("form", [sp.csc_array, sp.csc_matrix, sp.csr_array, sp.csr_matrix])
def test_sparse_containers_stay_what_they_are(form) -> None:
    model = BaggingClassifier(Records(), max_features=3, random_state=0).fit(form(X), Y)
    assert {type(member.given_[0]) for member in model} == {form}
    model = BaggingClassifier(Records(), random_state=0).fit(form(X).tocoo(), Y)
    assert {member.given_[0].format for member in model} == {"csr"}


def test_samples_of_one_class_do_not_stop_estimators_that_take_weights() -> None:
    model = BaggingClassifier(LogisticRegression(), 20, random_state=1).fit([[1.0], [3.0]], [1, 0])
    assert any(len(set(rows)) == 1 for rows in model.estimators_samples_)
    assert model.predict([[0.0], [4.0]]).tolist() == [1, 0]


# -- members depend on seed, number and data alone --


@pytest.mark.parametrize("name", [*CLASSIFIERS, "Ridge"])
def test_results_do_not_depend_on_n_jobs(name) -> None:
    y, cls = (THREE, BaggingClassifier) if name in CLASSIFIERS else (LINE, BaggingRegressor)
    outcomes = []
    for n_jobs in (1, 2, 5):
        settings = {"n_jobs": n_jobs, "oob_score": True, "n_estimators": 9, "max_features": 0.8}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            model = bagged(name, cls, **settings).fit(NOISE, y)
        figures = getattr(model, "oob_decision_function_", getattr(model, "oob_prediction_", None))
        outcomes.append((values_of(model, NOISE), figures, np.array(model.estimators_features_)))
    for other in outcomes[1:]:
        for a, b in zip(outcomes[0], other, strict=True):
            assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.nightly
def test_processes_do_as_threads_do() -> None:
    model = bagged("scikit-learn's tree", n_jobs=2)
    threads = clone(model).fit(X, NAMES)
    with joblib.parallel_config(backend="loky"):
        processes = clone(model).fit(X, NAMES)
        assert np.array_equal(processes.predict_proba(X), threads.predict_proba(X))


def test_a_thousand_members_are_handed_over_in_order() -> None:
    """Fast members are fitted in growing batches."""
    quick = DummyClassifier(strategy="stratified")
    one, two = (
        BaggingClassifier(quick, 300, random_state=1, n_jobs=n).fit(X[::30], Y[::30])
        for n in (1, 3)
    )
    assert [m.random_state for m in one] == [m.random_state for m in two]
    assert len({m.random_state for m in one}) == 300


@pytest.mark.parametrize("random_state", [7, None, "generator"])
@pytest.mark.parametrize("name", ["random tree", "neighbours"])
def test_a_warm_start_is_the_same_as_all_at_once(name, random_state) -> None:
    def state():
        return np.random.default_rng(1) if random_state == "generator" else random_state

    warm = bagged(name, n_estimators=3, warm_start=True, random_state=state()).fit(X, NAMES)
    first = warm.estimators_[:]
    warm.set_params(n_estimators=8).fit(X, NAMES)
    assert warm.estimators_[:3] == first
    assert len(warm.estimators_samples_) == len(warm) == 8
    if random_state is not None:
        whole = bagged(name, n_estimators=8, random_state=state()).fit(X, NAMES)
        assert np.array_equal(warm.predict_proba(X), whole.predict_proba(X))
        for a, b in zip(warm.estimators_samples_, whole.estimators_samples_, strict=True):
            assert np.array_equal(a, b)


def test_a_warm_start_can_have_figures_out_of_bag() -> None:
    whole = BaggingClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, Y)
    warm = BaggingClassifier(n_estimators=20, warm_start=True, random_state=0).fit(X, Y)
    warm.set_params(n_estimators=30, oob_score=True).fit(X, Y)
    assert np.array_equal(warm.oob_decision_function_, whole.oob_decision_function_)
    with pytest.raises(ValueError, match="samples of the same rows"):
        warm.set_params(n_estimators=31).fit(X[::2], Y[::2])
    assert np.array_equal(warm.oob_decision_function_, whole.oob_decision_function_)


def test_a_warm_start_that_does_not_fit() -> None:
    model = BaggingClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, Y)
    before = model.predict_proba(X)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        assert model.fit(X, Y) is model
    for change, data, message in (
        ({"n_estimators": 4}, (X, Y), r"n_estimators=4 must be larger or equal .*=5"),
        ({"n_estimators": 6}, (X[:, :2], Y), "X has 2 features, but the 5 estimators"),
        ({"n_estimators": 6}, (X, NAMES), "y has the classes"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(**change).fit(*data)
        assert np.array_equal(model.predict_proba(X), before)


def test_a_warm_start_on_other_rows_remembers_both_samples() -> None:
    model = BaggingClassifier(n_estimators=2, warm_start=True, random_state=0).fit(X, Y)
    earlier = model.estimators_samples_
    model.set_params(n_estimators=4).fit(X[::2], Y[::2])
    for a, b in zip(earlier, model.estimators_samples_[:2], strict=True):
        assert np.array_equal(a, b)
    assert [len(rows) for rows in model.estimators_samples_] == [150, 150, 75, 75]


def test_random_states_of_nested_estimators_are_set() -> None:
    inner = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_features=1))
    model = BaggingClassifier(inner, 5, random_state=0).fit(X, Y)
    states = [member[-1].random_state for member in model]
    assert len(set(states)) == 5
    assert states == [member[-1].random_state for member in clone(model).fit(X, Y)]
    assert inner[-1].random_state is None


# -- columns --


@pytest.mark.parametrize("bootstrap_features", [True, False])
@pytest.mark.parametrize(("asked", "got"), [(1, 1), (3, 3), (0.5, 2), (0.01, 1), (1.0, 4), (4, 4)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
def test_columns(asked, got, bootstrap_features, form) -> None:
    settings = {"max_features": asked, "bootstrap_features": bootstrap_features}
    model = BaggingClassifier(n_estimators=12, random_state=0, **settings).fit(form(X), Y)
    assert {len(columns) for columns in model.estimators_features_} == {got}
    assert {member.n_features_in_ for member in model} == {got}
    drawn = {tuple(columns) for columns in model.estimators_features_}
    if bootstrap_features or got < 4:
        assert len(drawn) > 1
    if not bootstrap_features:
        assert all(len(set(columns)) == got for columns in drawn)
    assert model.score(form(X), Y) > 0.7


# -- kinds of tables --


@pytest.mark.parametrize("name", ["tree", "SVC", "neighbours", "scikit-learn's tree"])
def test_sparse_tables(name, rng) -> None:
    rows = np.round(NOISE) * (rng.random(NOISE.shape) < 0.6)
    expected = None
    for form in (sp.csr_matrix, sp.csr_array, sp.csc_array, sp.csc_matrix, sp.coo_array):
        wide = form(rows)
        for attribute in ("indices", "indptr"):
            if hasattr(wide, attribute):
                setattr(wide, attribute, getattr(wide, attribute).astype(np.int64))
        for table in (form(rows), wide):
            found = bagged(name).fit(table, THREE).predict_proba(table)
            expected = found if expected is None else expected
            assert np.array_equal(found, expected)
    if name == "tree":
        assert np.array_equal(bagged(name).fit(rows, THREE).predict_proba(rows), expected)
    broken = sp.csr_array(rows)
    broken.indices[0] = 77
    with pytest.raises(MalformedSparseError, match="outside"):
        bagged(name).fit(broken, THREE)


@pytest.mark.parametrize("library", [pd, pl])
def test_dataframes(library) -> None:
    frame = library.DataFrame({f"column {j}": X[:, j] for j in range(4)})
    species = library.Series(NAMES.tolist())
    model = BaggingClassifier(random_state=0, max_features=2).fit(frame, species)
    assert model.feature_names_in_.tolist() == [f"column {j}" for j in range(4)]
    assert model.n_features_in_ == 4
    same = BaggingClassifier(random_state=0, max_features=2).fit(X, NAMES)
    assert np.array_equal(model.predict(frame), same.predict(X))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict(X), same.predict(X))
    names = {"column 0": "other"}
    renamed = frame.rename(names) if library is pl else frame.rename(columns=names)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(renamed)


@pytest.mark.parametrize("library", [pd, pl])
def test_strings_reach_an_estimator_that_takes_them(library, rng) -> None:
    colours = np.array(["red", "green", "blue"])[rng.integers(0, 3, 90)]
    frame = library.DataFrame({"colour": colours.tolist(), "size": NOISE[:, 0]})
    answer = np.where(colours == "red", "yes", "no")
    model = BaggingClassifier(random_state=0).fit(frame, answer)
    assert model.score(frame, answer) == 1.0
    shuffled = rng.permutation(90)
    mixed = frame[shuffled.tolist()] if library is pl else frame.iloc[shuffled]
    other = BaggingClassifier(random_state=0).fit(mixed, answer[shuffled])
    assert np.array_equal(other.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match=r"could not convert|not compatible|labels|not a number"):
        BaggingClassifier(SVC()).fit(frame, answer)


def test_missing_values_reach_an_estimator_that_takes_them(rng) -> None:
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    tree = BaggingClassifier(random_state=0).fit(gaps, Y)
    assert tree.score(gaps, Y) > 0.9
    imputed = BaggingClassifier(make_pipeline(SimpleImputer(), SVC()), random_state=0)
    assert imputed.fit(gaps, Y).score(gaps, Y) > 0.8
    assert BaggingClassifier().__sklearn_tags__().input_tags.allow_nan
    assert not BaggingClassifier(SVC()).__sklearn_tags__().input_tags.allow_nan
    first = int(np.flatnonzero(np.isnan(gaps).any(axis=1))[0])
    with pytest.raises(InvalidDataError, match=rf"NaN \(first at row {first},"):
        BaggingClassifier(SVC(), random_state=0).fit(gaps, Y)


def test_float32_and_lists() -> None:
    model = BaggingClassifier(random_state=0).fit(X.astype(np.float32), Y)
    assert model.predict(X.astype(np.float32)).shape == (150,)
    lists = BaggingClassifier(random_state=0).fit(X.tolist(), NAMES.tolist())
    assert np.array_equal(
        lists.predict_proba(X), BaggingClassifier(random_state=0).fit(X, NAMES).predict_proba(X)
    )


def test_a_matrix_of_pairs() -> None:
    gram = X @ X.T
    model = BaggingClassifier(SVC(kernel="precomputed"), 5, random_state=0).fit(gram, Y)
    assert model.score(gram, Y) > 0.9
    assert model.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="pairwise matrix"):
        BaggingClassifier(SVC(kernel="precomputed"), max_features=0.5).fit(gram, Y)


def test_several_outputs() -> None:
    both = np.c_[LINE, -LINE]
    model = BaggingRegressor(random_state=0).fit(NOISE, both)
    assert model.predict(NOISE).shape == (90, 2)
    single = BaggingRegressor(random_state=0).fit(NOISE, LINE[:, None])
    assert single.predict(NOISE).shape == (90,)


# -- metadata --


class Routed(ClassifierMixin, BaseEstimator):
    """Stores the arguments of fit, and predicts the majority class."""

    def fit(self, X, y, sample_weight=None, origin=None):
        self.classes_ = np.unique(y)
        self.seen_, self.weighted_, self.rows_ = origin, sample_weight is not None, len(X)
        return self

    def predict(self, X, shift=0):
        self.shift_ = shift
        return np.full(len(X), self.classes_[0])


def test_metadata_reach_the_members_row_by_row() -> None:
    origin = np.arange(150)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        BaggingClassifier(Routed()).fit(X, Y, origin=origin)
    with config_context(enable_metadata_routing=True):
        asking = Routed().set_fit_request(origin=True).set_predict_request(shift=True)
        for member, weighted in ((asking, False), (clone(asking), True)):
            member.set_fit_request(sample_weight=weighted)
            model = BaggingClassifier(member, 3, random_state=0, n_jobs=2).fit(X, Y, origin=origin)
            model.predict(X, shift=2)
            for fitted, rows in zip(model, model.estimators_samples_, strict=True):
                assert fitted.weighted_ == weighted
                assert fitted.shift_ == 2
                assert np.array_equal(fitted.seen_, origin if weighted else rows)


def test_a_search_hands_weights_to_the_ensemble() -> None:
    with config_context(enable_metadata_routing=True):
        model = BaggingClassifier(random_state=0, n_estimators=3).set_fit_request(
            sample_weight=True
        )
        model.set_score_request(sample_weight=False)
        grid = {"estimator__max_depth": [1, 2], "estimator": [DecisionTreeClassifier()]}
        search = GridSearchCV(model, grid, cv=2).fit(X, Y, sample_weight=(Y < 2).astype(float) + 1)
    assert search.best_params_["estimator__max_depth"] == 2


# -- running: time, interrupts, progress --


class Slow(ClassifierMixin, BaseEstimator):
    """Sleeps, or calls `action` after some fits."""

    fits = 0
    action = None

    def fit(self, X, y, sample_weight=None):
        Slow.fits += 1
        if Slow.action is not None and Slow.fits > 3:
            Slow.action()
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.classes_[-1])


@pytest.fixture
def slow(monkeypatch):
    def set_action(action):
        monkeypatch.setattr(Slow, "fits", 0)
        monkeypatch.setattr(Slow, "action", staticmethod(action))

    set_action(None)
    return set_action


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_time_runs_out(n_jobs, slow) -> None:
    model = BaggingClassifier(Slow(), 10_000, max_time=0.3, n_jobs=n_jobs, random_state=0)
    told = pytest.warns(ConvergenceWarning, match=r"max_time=0.3 s after \d+ of 10000 estimators")
    with steady_clock(), told:
        model.fit(X, Y)
    n = len(model.estimators_)
    assert n == 6 if n_jobs == 1 else 6 <= n < 100  # the last batch is complete
    assert len(model.estimators_samples_) == len(model.estimators_features_) == n
    assert np.array_equal(model.predict_proba(X)[:, -1], np.ones(150))
    again = BaggingClassifier(Slow(), n, random_state=0).fit(X, Y)
    for a, b in zip(again.estimators_samples_, model.estimators_samples_, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_the_former_fit(n_jobs, slow) -> None:
    model = BaggingClassifier(Slow(), 4, n_jobs=n_jobs).fit(X, NAMES)
    before = vars(model).copy()

    def interrupt():
        raise KeyboardInterrupt

    slow(interrupt)
    model.set_params(n_estimators=500)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:100], Y[:100])
    assert vars(model) == before | {"n_estimators": 500}
    assert model.predict(X[:2]).tolist() == ["virginica"] * 2


def test_an_interrupt_keeps_what_was_fitted(slow) -> None:
    def interrupt():
        raise KeyboardInterrupt

    slow(interrupt)
    model = BaggingClassifier(Slow(), 500, on_interrupt="keep", random_state=0)
    with pytest.warns(InterruptedFitWarning, match="interrupted after 3 estimators"):
        model.fit(X, Y)
    assert len(model) == 3
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert len(model.estimators_samples_) == 3


def test_an_interrupt_before_the_first_member_leaves_the_former_fit(slow) -> None:
    model = BaggingClassifier(Slow(), 2, on_interrupt="keep").fit(X, Y)
    former = model.estimators_

    def interrupt():
        raise KeyboardInterrupt

    slow(interrupt)
    Slow.fits = 10
    with (
        pytest.raises(KeyboardInterrupt),
        pytest.warns(InterruptedFitWarning, match="after 0 estimators"),
    ):
        model.fit(X, Y)
    assert model.estimators_ is former


def test_progress_is_told_and_can_be_stopped() -> None:
    seen = []
    with watch(on_progress=seen.append):
        BaggingClassifier(n_estimators=5).fit(X, Y)
    assert [progress.done for progress in seen] == [1, 2, 3, 4, 5]
    assert {(p.learner, p.unit, p.total) for p in seen} == {("BaggingClassifier", "estimator", 5)}
    with watch(on_progress=lambda progress: progress.done == 2):
        assert len(BaggingClassifier(n_estimators=5).fit(X, Y)) == 2
    cancel = threading.Event()
    cancel.set()
    with watch(cancel=cancel), pytest.raises(FitCancelled):
        BaggingClassifier().fit(X, Y)


@pytest.mark.skipif(not SUPPORTS_CALLBACKS, reason="scikit-learn has no callbacks")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_callbacks_hear_of_every_member(n_jobs) -> None:
    class Recorder:
        def __init__(self):
            self.heard = []

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.task_name == "estimator":
                self.heard.append(len(fitted_estimator.estimators_))

        def teardown(self, estimator, context):
            pass

    recorder = Recorder()
    BaggingClassifier(n_estimators=7, n_jobs=n_jobs).set_callbacks(recorder).fit(X, Y)
    assert recorder.heard == [1, 2, 3, 4, 5, 6, 7]


def test_a_bar_is_shown(capfd) -> None:
    BaggingRegressor(n_estimators=2, verbose=1).fit(X, Y)
    assert "BaggingRegressor, estimators" in capfd.readouterr().err


# -- hostile --


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, "'n_estimators' parameter .* Got 0"),
        ({"n_estimators": 2.5}, "'n_estimators' parameter .* Got 2.5"),
        ({"n_estimators": True}, "'n_estimators' parameter"),
        ({"max_samples": 0}, "'max_samples' parameter .* Got 0"),
        ({"max_samples": 0.0}, "'max_samples' parameter .* Got 0.0"),
        ({"max_samples": 1.5}, "'max_samples' parameter .* Got 1.5"),
        ({"max_samples": -3}, "'max_samples' parameter .* Got -3"),
        ({"max_samples": float("nan")}, "'max_samples' parameter .* Got nan"),
        ({"max_samples": "all"}, "'max_samples' parameter .* Got 'all'"),
        ({"max_samples": 151, "bootstrap": False}, "max_samples=151 must be <= n_samples=150"),
        ({"max_features": 0}, "'max_features' parameter .* Got 0"),
        ({"max_features": float("nan")}, "'max_features' parameter .* Got nan"),
        ({"max_features": 5}, "max_features must be <= n_features. Got max_features=5"),
        ({"bootstrap": "yes"}, "'bootstrap' parameter"),
        ({"oob_score": "yes"}, "'oob_score' parameter"),
        ({"oob_score": True, "bootstrap": False}, "only available if bootstrap=True"),
        ({"n_jobs": 0}, "'n_jobs' parameter must not be 0"),
        ({"random_state": -1}, "'random_state' parameter"),
        ({"max_time": 0}, "'max_time' parameter"),
        ({"on_interrupt": "stop"}, "'on_interrupt' parameter"),
        ({"estimator": "tree"}, "'estimator' parameter"),
        ({"estimator": StandardScaler()}, "'estimator' parameter"),
    ],
)
def test_parameters_that_make_no_sense(cls, settings, message) -> None:
    model = cls(n_estimators=2).fit(X, Y)
    before, usual = model.predict(X), model.get_params()
    with pytest.raises(ValueError, match=message):
        model.set_params(**settings).fit(X, Y)
    model.set_params(**usual)
    assert np.array_equal(model.predict(X), before)


def test_more_parameters_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match=r"'voting' parameter .* Got 'loud'"):
        BaggingClassifier(voting="loud").fit(X, Y)
    with pytest.raises(TypeError, match=r"must be an instance. Got the class SVC .* SVC\(\)"):
        BaggingClassifier(SVC).fit(X, Y)


@pytest.mark.parametrize("cls", BOTH)
def test_data_that_make_no_sense(cls) -> None:
    model = cls(n_estimators=3, random_state=0).fit(X, Y)
    before = model.predict(X)
    infinite = np.where(X > 5, np.inf, X)
    first = int(np.flatnonzero(np.isinf(infinite).any(axis=1))[0])
    for data, message in (
        ((infinite, Y), rf"infinity \(first at row {first},"),
        ((X, Y[:-1]), "inconsistent numbers of samples"),
        ((X, None), "requires y"),
        ((X[:0], Y[:0]), "0 sample"),
        ((X[:, :0], Y), "0 feature"),
        ((X[0], Y), "Expected 2D"),
        ((X, Y, np.zeros(150)), "sample_weight is zero for all rows"),
        ((X, Y, -np.ones(150)), "sample_weight is negative at row 0"),
        ((X, Y, np.ones(3)), "sample_weight.shape"),
        ((X, Y, np.full(150, np.nan)), "sample_weight contains NaN"),
        ((X, Y, np.full(150, 1e9)), "sums to 150000000000, .* max_samples as an int"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(*data)
        assert np.array_equal(model.predict(X), before)
    huge = clone(model).set_params(max_samples=100).fit(X, Y, np.full(150, 1e9))
    assert [len(rows) for rows in huge.estimators_samples_] == [100] * 3


@pytest.mark.parametrize("cls", BOTH)
def test_what_is_not_fitted_says_so(cls) -> None:
    model = cls()
    for method in ("predict", "predict_proba", "predict_log_proba"):
        if hasattr(model, method):
            with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance is not fitted"):
                getattr(model, method)(X)
    assert not hasattr(model, "estimators_samples_")
    fitted = cls(n_estimators=2).fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        fitted.predict(X[:, :3])


def test_an_error_of_a_member_says_which_it_was() -> None:
    class Failing(Slow):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("no")

    for n_jobs, first_ones in ((1, {0}), (2, {0, 1})):  # either of two threads may be the first
        with pytest.raises(RuntimeError, match="no") as caught:
            BaggingClassifier(Failing(), n_jobs=n_jobs).fit(X, Y)
        notes = " ".join(caught.value.__notes__)
        assert any(f"estimator {k} of BaggingClassifier" in notes for k in first_ones)


def test_one_row_and_one_class() -> None:
    one = BaggingClassifier(n_estimators=2).fit([[1.0, 2.0]], ["only"])
    assert one.predict([[5.0, 5.0]]).tolist() == ["only"]
    assert one.predict_proba([[5.0, 5.0]]).tolist() == [[1.0]]
    assert BaggingRegressor(n_estimators=2).fit([[1.0]], [3.0]).predict([[0.0]]).tolist() == [3.0]


def test_more_draws_than_rows() -> None:
    model = BaggingClassifier(n_estimators=2, max_samples=1000, random_state=0).fit(X, Y)
    assert [len(rows) for rows in model.estimators_samples_] == [1000, 1000]


@pytest.mark.parametrize("cls", BOTH)
def test_pickles_clones_and_copies(cls) -> None:
    model = cls(n_estimators=3, random_state=0, max_features=2).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict(X), again.predict(X))
    for a, b in zip(model.estimators_samples_, again.estimators_samples_, strict=True):
        assert np.array_equal(a, b)
    assert not hasattr(clone(model), "estimators_")
    assert model[0] is model.estimators_[0]
    assert list(model) == model.estimators_


def test_a_rows_answer_does_not_depend_on_its_neighbours() -> None:
    model = BaggingClassifier(random_state=0).fit(X, Y)
    alone = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(150)])
    assert np.array_equal(model.predict_proba(X), alone)


def test_bagging_helps() -> None:
    """On a line with noise, fifty trees reduce the error of one tree by more than a third."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((1200, 4))
    line = points @ [1.0, -2.0, 0.5, 0.0] + rng.standard_normal(1200)
    train, test = slice(0, 200), slice(200, None)
    one = DecisionTreeRegressor().fit(points[train], line[train])
    many = BaggingRegressor(n_estimators=50, random_state=0).fit(points[train], line[train])
    errors = [np.mean((m.predict(points[test]) - line[test]) ** 2) for m in (one, many)]
    assert errors[1] < 0.67 * errors[0]
