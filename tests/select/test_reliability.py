"""Probabilities are compared with observed classes, and calibrated by held-out rows."""

from __future__ import annotations

import inspect
import pickle
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import binomtest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.oracles.calibration import (
    bins_by_loops,
    errors_by_loops,
    log_loss_by_loops,
    nested_probabilities,
)

import margrove
from margrove.datasets import load_iris
from margrove.plot.predictions.calibration import reliability_diagram
from margrove.select.calibrate import score_maps
from margrove.select.calibrate.calibration import calibrate
from margrove.select.calibrate.reliability import reliability, reliability_of

mpl.use("Agg")

IRIS, CODES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[CODES]


def two_classes(n=300, seed=0, gap=1.0):
    """Two overlapping clouds with labels "no" and "yes", and noise columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 3)) + y[:, None] * [gap, 0.5, 0.0]
    return X, np.array(["no", "yes"])[y]


def simulated(n, seed=0, sharpness=1.0):
    """Probabilities that are right if sharpness is 1 and overconfident above; and outcomes."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.02, 0.98, n)
    return expit(sharpness * logit(truth)), (rng.random(n) < truth).astype(int), truth


def small(cls):
    """A fast classifier of each kind."""
    parameters = inspect.signature(cls).parameters
    wanted = {"n_estimators": 5, "random_state": 0, "min_samples_leaf": 5}
    settings = {name: value for name, value in wanted.items() if name in parameters}
    if cls.__name__.startswith("Hist"):
        settings |= {"max_iter": 5}
    return cls(**settings)


CLASSIFIERS = sorted(
    {
        getattr(margrove, name)
        for name in margrove.__all__
        if inspect.isclass(getattr(margrove, name))
        and issubclass(getattr(margrove, name), BaseEstimator)
        and not name.endswith("CV")
        and is_classifier(getattr(margrove, name)())
    },
    key=lambda cls: cls.__name__,
)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


# -- reliability ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", [1, 7, 10])
def test_uniform_bins_are_those_of_a_loop(n_bins) -> None:
    rng = np.random.default_rng(1)
    p = np.round(rng.random(200), 1)  # many at the ends of bins
    y, weight = rng.integers(0, 2, 200), rng.integers(0, 4, 200).astype(float)
    found = reliability_of(p, y, sample_weight=weight, n_bins=n_bins)
    expected = bins_by_loops(p, y, weight, np.arange(n_bins + 1) / n_bins)
    curve = found.curve
    got = np.column_stack([curve.predicted, curve.observed, curve.weight])
    assert np.allclose(got, expected, rtol=1e-12)
    assert np.allclose([found.expected_error, found.maximum_error], errors_by_loops(expected))
    assert np.all((curve.lower <= curve.predicted) & (curve.predicted <= curve.upper + 1e-12))


def test_curve_is_that_of_scikit_learn() -> None:
    p, y, _ = simulated(500)
    found = reliability_of(p, y, n_bins=8)
    observed, predicted = calibration_curve(y, p, n_bins=8)
    assert np.allclose(found.curve.observed, observed, rtol=1e-12)
    assert np.allclose(found.curve.predicted, predicted, rtol=1e-12)


def test_quantile_bins_hold_equal_weight() -> None:
    p, y, _ = simulated(1000)
    found = reliability_of(p, y, n_bins=8, strategy="quantile")
    assert found.curve.weight.tolist() == [125.0] * 8
    edges = np.sort(p)[[124, 249, 374, 499, 624, 749, 874]]
    expected = bins_by_loops(p, y, np.ones(1000), [0, *edges, 1])
    assert np.allclose(found.curve.observed, expected[:, 1])
    assert found.expected_error == pytest.approx(errors_by_loops(expected)[0], rel=1e-12)
    assert found.adaptive_error == found.expected_error
    assert reliability_of(p, y, n_bins=8).adaptive_error == found.expected_error


def test_equal_probabilities_share_a_bin() -> None:
    found = reliability_of([0.3] * 6 + [0.9] * 2, [0, 1] * 4, n_bins=4, strategy="quantile")
    assert np.allclose(found.curve.predicted, [0.3, 0.9])
    assert found.curve.weight.tolist() == [6.0, 2.0]


def test_scores_are_those_of_scikit_learn() -> None:
    forest = margrove.RandomForestClassifier(20, random_state=0).fit(IRIS[::2], SPECIES[::2])
    X, y = IRIS[1::2], SPECIES[1::2]
    weight = np.random.default_rng(0).random(len(y))
    found = reliability(forest, X, y, sample_weight=weight)
    given = forest.predict_proba(X)
    assert found.log_loss == pytest.approx(log_loss(y, given, sample_weight=weight), rel=1e-10)
    by_loop = log_loss_by_loops(given, CODES[1::2], weight)
    assert found.log_loss == pytest.approx(by_loop, rel=1e-10)
    expected = brier_score_loss(y, given, sample_weight=weight, labels=forest.classes_)
    assert found.brier.score == pytest.approx(expected, rel=1e-10)
    p, came_true, _ = simulated(300)
    two = reliability_of(p, came_true)
    assert two.brier.score == pytest.approx(brier_score_loss(came_true, p), rel=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_decomposition_adds_up(n_classes, strategy) -> None:
    rng = np.random.default_rng(n_classes)
    given = rng.dirichlet(np.ones(n_classes), 150)
    y, weight = rng.integers(0, n_classes, 150), rng.random(150)
    b = reliability_of(given, y, sample_weight=weight, n_bins=6, strategy=strategy).brier
    total = b.calibration - b.resolution + b.uncertainty + b.within_bins
    assert total == pytest.approx(b.score, abs=1e-14)
    assert b.calibration > 0
    assert b.resolution > 0
    shares = np.bincount(y, weights=weight) / weight.sum()
    spread = shares * (1 - shares)
    expected = spread[1] if n_classes == 2 else spread.sum()
    assert b.uncertainty == pytest.approx(expected, rel=1e-12)


def test_nothing_is_hidden_within_bins_of_one_value() -> None:
    p = np.repeat([0.05, 0.35, 0.75], 40)
    y = np.random.default_rng(0).integers(0, 2, 120)
    b = reliability_of(p, y).brier
    assert b.within_bins == pytest.approx(0.0, abs=1e-16)
    means = y.reshape(3, 40).mean(axis=1)
    assert b.calibration == pytest.approx(np.mean((means - [0.05, 0.35, 0.75]) ** 2), rel=1e-12)


def test_intervals_are_wilsons() -> None:
    p, y, _ = simulated(200)
    found = reliability_of(p, y, n_bins=5, confidence_level=0.9)
    for k in range(5):
        weight, curve = found.curve.weight[k], found.curve
        test = binomtest(round(curve.observed[k] * weight), int(weight))
        expected = test.proportion_ci(0.9, "wilson")
        assert (curve.low[k], curve.high[k]) == pytest.approx((expected.low, expected.high))


def test_weights_are_repetitions_and_no_evidence() -> None:
    p, y, _ = simulated(150)
    times = np.random.default_rng(0).integers(0, 4, 150)
    weighted = reliability_of(p, y, sample_weight=times, strategy="quantile")
    repeated = reliability_of(np.repeat(p, times), np.repeat(y, times), strategy="quantile")
    for name in ("predicted", "observed", "weight"):
        assert np.allclose(getattr(weighted.curve, name), getattr(repeated.curve, name))
    assert weighted.expected_error == pytest.approx(repeated.expected_error, rel=1e-10)
    assert weighted.brier.score == pytest.approx(repeated.brier.score, rel=1e-12)
    assert weighted.log_loss == pytest.approx(repeated.log_loss, rel=1e-12)
    # the scale of the weights says nothing, and equal ones are none
    plain, scaled = reliability_of(p, y), reliability_of(p, y, sample_weight=np.full(150, 1e-200))
    assert np.allclose(plain.curve.low, scaled.curve.low, rtol=1e-10)
    assert scaled.curve.chance_error == pytest.approx(plain.curve.chance_error, rel=1e-10)


def test_right_probabilities_have_the_error_of_chance() -> None:
    errors, chances = [], []
    for seed in range(60):
        p, y, _ = simulated(400, seed)
        found = reliability_of(p, y)
        errors.append(found.expected_error)
        chances.append(found.curve.chance_error)
    assert np.mean(errors) == pytest.approx(np.mean(chances), rel=0.06)
    p, y, _ = simulated(40_000)
    assert reliability_of(p, y).expected_error < 0.01


def test_too_sure_probabilities_have_the_error_they_should() -> None:
    p, y, truth = simulated(60_000, sharpness=3.0)
    found = reliability_of(p, y, n_bins=50, strategy="quantile")
    assert found.expected_error == pytest.approx(np.abs(p - truth).mean(), abs=0.01)
    assert found.expected_error > 10 * found.curve.chance_error
    high = found.curve.predicted > 0.8
    assert np.all(found.curve.observed[high] < found.curve.predicted[high])


def test_top_label_and_each_class_by_loops() -> None:
    rng = np.random.default_rng(3)
    given = rng.dirichlet([1, 1, 1], 120)
    y = rng.integers(0, 3, 120)
    found = reliability_of(given, y, classes=[0, 1, 2])
    assert found.curve is found.top_label
    edges, ones = np.arange(11) / 10, np.ones(120)
    top = bins_by_loops(given.max(axis=1), given.argmax(axis=1) == y, ones, edges)
    assert found.expected_error == pytest.approx(errors_by_loops(top)[0], rel=1e-12)
    each = [errors_by_loops(bins_by_loops(given[:, k], y == k, ones, edges))[0] for k in range(3)]
    assert [curve.expected_error for curve in found.by_class] == pytest.approx(each)
    assert found.classwise_error == pytest.approx(np.mean(each))
    frame = found.frame()
    assert set(frame["curve"]) == {"top label", "0", "1", "2"}
    top_rows = frame[frame["curve"] == "top label"]
    assert np.array_equal(top_rows["observed"], found.top_label.observed)


def test_of_two_classes_the_second_is_told() -> None:
    X, y = two_classes()
    model = margrove.HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    found = reliability(model, X, y)
    assert found.curve is found.by_class[1]
    assert found.curve.name == "yes"
    assert set(found.frame()["curve"]) == {"no", "yes"}
    # the first class is the mirror image
    assert found.by_class[0].expected_error == pytest.approx(found.expected_error, abs=0.05)
    text = str(found)
    assert text.startswith("reliability of class yes, 300 rows in 10 bins")
    assert f"log loss           {found.log_loss:.6g}" in text
    assert "expected_error=" in repr(found)
    assert "bins" in repr(found.curve)


def test_models_of_scikit_learn_and_frames_are_welcome() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    X, y = two_classes()
    model = LogisticRegression().fit(X, y)
    plain = reliability(model, X, y)
    assert reliability(model, X, pd.Series(y)).expected_error == plain.expected_error
    assert reliability(model, X, pl.Series(y)).log_loss == plain.log_loss
    table = pd.DataFrame(X, columns=list("abc"))
    tree = margrove.DecisionTreeClassifier(max_depth=2).fit(table, pd.Series(y))
    assert 0 <= reliability(tree, table, pd.Series(y)).expected_error < 0.2


@pytest.mark.parametrize(
    ("probabilities", "y", "settings", "message"),
    [
        ([0.2, 1.4], [0, 1], {}, "from 0 to 1. Got 0.2 to 1.4"),
        ([0.2, np.nan], [0, 1], {}, "from 0 to 1"),
        ([[0.2, 0.2], [0.5, 0.5]], [0, 1], {}, "of row 0 add up to 0.4"),
        ([[0.2, 0.3, 0.5]] * 2, [0, 1], {}, "3 columns, but there are 2 classes"),
        ([[0.2, 0.8]] * 2, [0, 7], {"classes": [0, 1]}, "y has the class 7"),
        (["a", "b"], [0, 1], {}, "must be numbers"),
        ([0.2, 0.3], [0, 1, 1], {}, "inconsistent numbers"),
        ([0.2, 0.3], [0, 1], {"n_bins": 0}, "n_bins"),
        ([0.2, 0.3], [0, 1], {"n_bins": True}, "n_bins"),
        ([0.2, 0.3], [0, 1], {"strategy": "even"}, "strategy"),
        ([0.2, 0.3], [0, 1], {"confidence_level": 1.0}, "confidence_level"),
        ([0.2, 0.3], [0, 1], {"sample_weight": [0, 0]}, "zero for all rows"),
        ([0.2, 0.3], [0, 1], {"sample_weight": [1, -1]}, "negative at row 1"),
    ],
)
def test_what_cannot_be_judged_is_refused(probabilities, y, settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        reliability_of(probabilities, y, **settings)


def test_models_without_probabilities_are_refused() -> None:
    X, y = two_classes(60)
    with pytest.raises(TypeError, match=r"Use margrove\.calibrate to get"):
        reliability(margrove.LinearSVC().fit(X, y), X, y)
    with pytest.raises(TypeError, match="fit it with probability=True"):
        reliability(margrove.SVC().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        reliability(margrove.RandomForestClassifier(), X, y)
    with pytest.raises(TypeError, match="Got the class SVC"):
        reliability(margrove.SVC, X, y)
    outputs = margrove.DecisionTreeClassifier().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="2 outputs at once"):
        reliability(outputs, X, y)


def test_probabilities_of_svc_can_be_judged() -> None:
    X, y = two_classes(120)
    machine = margrove.SVC(probability=True).fit(X[::2], y[::2])
    assert reliability(machine, X[1::2], y[1::2]).log_loss < 0.69


# -- calibration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.sampled(10)
def test_every_classifier_gets_probabilities(cls, n_classes) -> None:
    X, y = two_classes(150, gap=2.0) if n_classes == 2 else (IRIS[::2], SPECIES[::2])
    estimator = small(cls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", margrove.exceptions.ConvergenceWarning)
        found = calibrate(estimator, X, y, method="sigmoid", cv=3, random_state=0)
    assert not hasattr(estimator, "classes_")
    given = found.model.predict_proba(X)
    assert given.shape == (len(X), n_classes)
    assert np.allclose(given.sum(axis=1), 1.0)
    assert found.model.classes_.tolist() == sorted(set(y))
    assert found.model.score(X, y) > 0.6
    assert found.method == "sigmoid"
    assert found.after.n_rows == len(X)
    assert found.after.log_loss < np.log(n_classes)  # better than to know nothing
    has_own = hasattr(clone(estimator).fit(X, y), "predict_proba")
    assert (found.before is not None) == has_own


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_the_model_is_scikit_learns(method) -> None:
    X, y = two_classes()
    estimator = margrove.GradientBoostingClassifier(n_estimators=10, random_state=0)
    cv = StratifiedKFold(4)
    found = calibrate(estimator, X, y, method=method, cv=cv)
    twin = CalibratedClassifierCV(clone(estimator), method=method, cv=cv, ensemble=False).fit(X, y)
    assert np.array_equal(found.model.predict_proba(X), twin.predict_proba(X))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("data", ["two", "three"])
def test_after_is_nested_cross_validation(method, data) -> None:
    X, y = two_classes(150) if data == "two" else (IRIS, SPECIES)
    estimator = margrove.LinearSVC(max_iter=100_000)
    folds = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, y))
    found = calibrate(estimator, X, y, method=method, cv=folds, n_bins=5)
    expected = reliability_of(
        nested_probabilities(estimator, X, y, folds, method),
        np.concatenate([y[test] for _, test in folds]),
        n_bins=5,
    )
    assert found.after.log_loss == pytest.approx(expected.log_loss, rel=1e-4)
    assert found.after.brier.score == pytest.approx(expected.brier.score, rel=1e-4)


def test_isotonic_map_is_isotonic_regression_of_scores_held_out() -> None:
    X, y = two_classes(200)
    folds = list(StratifiedKFold(5).split(X, y))
    found = calibrate(margrove.LinearSVC(), X, y, method="isotonic", cv=folds)
    scores = np.empty(200)
    for train, test in folds:
        scores[test] = margrove.LinearSVC().fit(X[train], y[train]).decision_function(X[test])
    twin = IsotonicRegression(out_of_bounds="clip").fit(scores, y == "yes")
    whole = margrove.LinearSVC().fit(X, y).decision_function(X)
    assert np.allclose(found.model.predict_proba(X)[:, 1], twin.predict(whole), atol=1e-12)


def test_sigmoid_maps_minimise_platts_loss() -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.standard_normal(200), rng.random(200)
    came_true = rng.random(200) < expit(2 * values - 0.5)
    n_true, n_false = weight[came_true].sum(), weight[~came_true].sum()
    target = np.where(came_true, (n_true + 1) / (n_true + 2), 1 / (n_false + 2))

    def loss(line):
        z = line[0] * values + line[1]
        return np.sum(weight * (np.logaddexp(0.0, z) - target * z))

    slope, offset = minimize(loss, [0.0, 0.0], tol=1e-14).x
    asked = np.linspace(-3, 3, 20)
    got = score_maps._sigmoid(values, came_true, weight)(asked)
    assert np.allclose(got, expit(slope * asked + offset), atol=1e-5)


def test_auto_takes_the_least_loss_and_may_leave_things_alone() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 1))
    y = (rng.random(2000) < expit(X[:, 0])).astype(int)
    good = calibrate(LogisticRegression(), X, y, cv=3, random_state=0)
    assert list(good.losses) == ["none", "sigmoid", "isotonic"]
    assert good.method == min(good.losses, key=good.losses.get) == "none"
    assert isinstance(good.model, LogisticRegression)
    assert good.after.log_loss == pytest.approx(good.before.log_loss, rel=0.02)
    # a bump that no sigmoid can follow: naive Bayes of squares would, steps do
    bump = (rng.random(2000) < np.where(np.abs(X[:, 0]) < 0.7, 0.9, 0.1)).astype(int)

    found = calibrate(Distance(), X, bump, cv=3, random_state=0, scoring="brier")
    assert found.method == "isotonic"
    assert found.losses["isotonic"] < found.losses["sigmoid"]
    assert "cross-validated brier: sigmoid" in str(found)


class Distance(ClassifierMixin, BaseEstimator):
    """Scores are distances from 0, without probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return -np.abs(X[:, 0])

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > -0.7).astype(int)]


class NoScores(ClassifierMixin, BaseEstimator):
    """Predicts classes, without scores or probabilities."""

    def fit(self, X, y):
        return self


def test_losses_are_those_of_maps_fitted_to_the_other_folds() -> None:
    X, y = two_classes(150)
    forest = margrove.RandomForestClassifier(10, min_samples_leaf=5, random_state=0)
    folds = list(StratifiedKFold(3).split(X, y))
    found = calibrate(forest, X, y, cv=folds, nested=False)
    held_out = np.empty(150)
    for train, test in folds:
        held_out[test] = clone(forest).fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    assert found.losses["none"] == pytest.approx(log_loss(y, held_out), rel=1e-10)
    assert found.before.log_loss == pytest.approx(log_loss(y, held_out), rel=1e-10)
    mapped = np.empty(150)
    for _, test in folds:
        rest = np.setdiff1d(np.arange(150), test)
        steps = IsotonicRegression(out_of_bounds="clip").fit(held_out[rest], y[rest] == "yes")
        mapped[test] = steps.predict(held_out[test])
    assert found.losses["isotonic"] == pytest.approx(log_loss(y, mapped), rel=1e-9)
    assert found.after.log_loss == found.losses[found.method]


def test_over_confident_trees_are_mended() -> None:
    X, y = two_classes(900, seed=1)
    found = calibrate(margrove.DecisionTreeClassifier(random_state=0), X, y, random_state=0)
    assert found.before.expected_error > 0.2  # each leaf is sure of itself
    assert found.after.expected_error < 0.05
    assert found.after.log_loss < 0.1 * found.before.log_loss
    rows = found.frame().set_index("figure")
    assert rows.loc["log loss", "after"] == found.after.log_loss
    assert rows.loc["expected error", "before"] == found.before.expected_error
    assert "before       after" in str(found)
    assert repr(found).startswith("Calibrated('sigmoid', before: expected_error=")
    assert "cv=<5 given folds>" in repr(found.model)
    assert found.model.cv.get_n_splits() == 5


def test_after_is_honest_where_rows_are_known_by_heart() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 2, 300)  # nothing to learn
    tree = margrove.DecisionTreeClassifier(random_state=0)
    found = calibrate(tree, X, y, method="sigmoid", random_state=0)
    assert found.after.log_loss > 0.68
    assert abs(found.model.predict_proba(X)[:, 1] - 0.5).max() < 0.2


def test_weights_reach_estimator_and_map_through_pipelines() -> None:
    X, y = two_classes(200)
    weight = np.where(y == "yes", 3.0, 1.0)
    folds = list(StratifiedKFold(3).split(X, y))
    plain = calibrate(margrove.LinearSVC(), X, y, method="sigmoid", cv=folds, sample_weight=weight)
    twin = CalibratedClassifierCV(margrove.LinearSVC(), cv=folds, ensemble=False)
    twin.fit(X, y, sample_weight=weight)
    assert np.array_equal(plain.model.predict_proba(X), twin.predict_proba(X))
    piped = calibrate(
        make_pipeline("passthrough", margrove.LinearSVC()), X, y, method="sigmoid", cv=folds,
        sample_weight=weight,
    )  # fmt: skip
    assert np.array_equal(piped.model.predict_proba(X), plain.model.predict_proba(X))
    assert piped.after.log_loss == plain.after.log_loss
    unweighted = calibrate(margrove.LinearSVC(), X, y, method="sigmoid", cv=folds)
    means = [found.model.predict_proba(X)[:, 1].mean() for found in (unweighted, plain)]
    assert means[1] > means[0] + 0.1


def test_frozen_models_are_only_mapped() -> None:
    X, y = two_classes(400)
    tree = margrove.DecisionTreeClassifier(max_depth=4).fit(X[:200], y[:200])
    weight = np.ones(200)
    found = calibrate(
        FrozenEstimator(tree), X[200:], y[200:], method="isotonic", cv=3, sample_weight=weight
    )
    direct = reliability(tree, X[200:], y[200:])
    assert found.before.log_loss == pytest.approx(direct.log_loss, rel=1e-12)
    assert found.model.calibrated_classifiers_[0].estimator.estimator is tree


def test_threads_and_pickles_change_nothing() -> None:
    X, y = two_classes(120)
    forest = margrove.RandomForestClassifier(5, random_state=0)
    one, two = (calibrate(forest, X, y, cv=3, random_state=0, n_jobs=n) for n in (None, 2))
    assert one.losses == two.losses
    assert one.after.log_loss == two.after.log_loss
    again = pickle.loads(pickle.dumps(one))
    assert np.array_equal(again.model.predict_proba(X), two.model.predict_proba(X))
    assert again.after.expected_error == one.after.expected_error


def test_groups_stay_together_and_gram_matrices_are_cut() -> None:
    X, y = two_classes(120)
    groups = np.arange(120) // 4
    found = calibrate(margrove.LinearSVC(), X, y, cv=3, groups=groups, method="sigmoid")
    assert found.after.n_rows == 120
    same = [
        calibrate(margrove.LinearSVC(), X, y, cv=cv, groups=g, method="sigmoid").after.log_loss
        for cv, g in ((GroupKFold(3), groups), (list(GroupKFold(3).split(X, y, groups)), None))
    ]
    assert same[0] == same[1]
    folds = list(StratifiedKFold(3).split(X, y))
    gram = calibrate(margrove.SVC(kernel="precomputed"), X @ X.T, y, cv=folds, method="sigmoid")
    line = calibrate(margrove.SVC(kernel="linear"), X, y, cv=folds, method="sigmoid")
    assert gram.after.log_loss == pytest.approx(line.after.log_loss, rel=1e-2)


def test_frames_and_other_labels_are_welcome() -> None:
    pd = pytest.importorskip("pandas")
    X, y = two_classes(90)
    folds = list(StratifiedKFold(3).split(X, y))
    table = pd.DataFrame(X, columns=list("abc"))
    model = make_pipeline(StandardScaler(), margrove.LinearSVC())
    framed = calibrate(model, table, pd.Series(y, index=range(90, 180)), cv=folds, method="sigmoid")
    plain = calibrate(model, X, y.tolist(), cv=folds, method="sigmoid")
    truth = calibrate(model, X.tolist(), y == "yes", cv=folds, method="sigmoid")
    assert framed.after.log_loss == plain.after.log_loss == truth.after.log_loss
    assert framed.model.predict(table)[:5].tolist() == plain.model.predict(X)[:5].tolist()
    assert truth.model.predict(X).dtype == bool


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "platt"}, "method"),
        ({"cv": 1}, "cv must be a number of folds from 2"),
        ({"cv": True}, "cv must be"),
        ({"cv": 2}, "Use cv=3 or more, or nested=False"),
        ({"cv": ShuffleSplit(3, random_state=0)}, "hold out each row exactly once"),
        ({"cv": [(np.arange(60), np.arange(60))]}, "tests on rows that it trains on"),
        ({"groups": [1, 2]}, "groups must name a group for each of the 60 rows"),
        ({"groups": np.zeros(60)}, "need as many groups. Got 1"),
        ({"scoring": "roc_auc"}, "scoring"),
        ({"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(settings, message) -> None:
    X, y = two_classes(60)
    with pytest.raises(ValueError, match=message):
        calibrate(margrove.LinearSVC(), X, y, **settings)


def test_estimators_and_data_that_make_no_sense_are_refused() -> None:
    X, y = two_classes(60)
    with pytest.raises(TypeError, match=r"needs a classifier\. Got LinearSVR"):
        calibrate(margrove.LinearSVR(), X, y)
    with pytest.raises(TypeError, match=r"such as LinearSVC\(\)"):
        calibrate(margrove.LinearSVC, X, y)
    with pytest.raises(TypeError, match="Got str"):
        calibrate("LinearSVC", X, y)
    with pytest.raises(TypeError, match="decision_function or predict_proba"):
        calibrate(NoScores(), X, y)
    with pytest.raises(ValueError, match="one class only"):
        calibrate(margrove.LinearSVC(), X, np.zeros(60, int))
    with pytest.raises(ValueError, match="class 'rare' has 1"):
        calibrate(margrove.LinearSVC(), X, ["rare", *y[1:]])
    with pytest.raises(ValueError, match="does not take it in fit"):
        calibrate(Distance(), X, y, sample_weight=np.ones(60))
    by_pairs = margrove.SVC(decision_function_shape="ovo")
    with pytest.raises(ValueError, match="gives 6 scores for 4 classes"):
        calibrate(by_pairs, X, np.arange(60) % 4)


# -- pictures ------------------------------------------------------------------------------------


def parts(artists, gid):
    return [artist for artist in artists if artist.get_gid() == gid]


def test_the_picture_holds_the_numbers() -> None:
    p, y, _ = simulated(200)
    found = reliability_of(p, y)
    ax = found.plot(ax=Figure().subplots())
    (line,) = parts(ax.lines, "curve")
    assert np.array_equal(line.get_xdata(), found.curve.predicted)
    assert np.array_equal(line.get_ydata(), found.curve.observed)
    (bars,) = parts(ax.collections, "interval")
    assert np.allclose(
        [s[:, 1] for s in bars.get_segments()], np.c_[found.curve.low, found.curve.high]
    )
    (dots,) = parts(ax.collections, "bins")
    assert dots.get_sizes().max() == 120.0
    assert len(parts(ax.lines, "ideal")) == 1
    (text,) = ax.get_legend().get_texts()
    assert text.get_text() == f"1: expected error {found.expected_error:.3g}"


def test_before_and_after_and_classes_can_be_drawn() -> None:
    tree = margrove.DecisionTreeClassifier(max_depth=2)
    found = calibrate(tree, IRIS, SPECIES, method="isotonic", cv=3, random_state=0)
    ax = found.plot()
    names = [text.get_text().partition(":")[0] for text in ax.get_legend().get_texts()]
    assert names == ["top label, before", "top label, after"]
    ax = found.after.plot(classes=["virginica", "setosa"])
    names = [text.get_text().partition(":")[0] for text in ax.get_legend().get_texts()]
    assert names == ["virginica", "setosa"]
    assert np.array_equal(parts(ax.lines, "curve")[1].get_ydata(), found.after.by_class[0].observed)
    with pytest.raises(ValueError, match="classes has 'rose'"):
        found.plot(classes=["rose"])
    with pytest.raises(ValueError, match="must be a list"):
        found.plot(classes="setosa")
    with pytest.raises(TypeError, match="Got DecisionTreeClassifier"):
        reliability_diagram(tree)
