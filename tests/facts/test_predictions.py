"""Facts about predictions: against scikit-learn's figures, and what they promise by themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics, svm
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrove.datasets import load_iris
from margrove.facts.classification_scores import class_scores
from margrove.facts.predictions import (
    confusion,
    margins_of,
    precision_recall_curves,
    residual_facts,
    roc_curves,
    worst_mistakes,
)


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"], dtype=object)[np.asarray(y, int)]


@pytest.fixture(scope="module")
def two_clouds():
    generator = np.random.default_rng(3)
    X = np.concatenate([generator.normal(0, 1, (60, 2)), generator.normal(1.5, 1, (40, 2))])
    return X, np.array(["no"] * 60 + ["yes"] * 40)


def test_confusion_is_that_of_scikit_learn(flowers):
    X, y = flowers
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(X[:, :2], y)
    told = confusion(model, X[:, :2], y)
    predicted = model.predict(X[:, :2])
    assert told.classes == ("setosa", "versicolor", "virginica")
    np.testing.assert_array_equal(told.counts, metrics.confusion_matrix(y, predicted))
    assert told.accuracy == metrics.accuracy_score(y, predicted)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(y, predicted)
    np.testing.assert_allclose(told.precision, precision)
    np.testing.assert_allclose(told.recall, recall)
    np.testing.assert_allclose(told.f1, f1)
    np.testing.assert_array_equal(told.support, support)


def test_confusion_by_weight_and_with_classes_that_the_model_does_not_know(two_clouds):
    X, y = two_clouds
    model = GaussianNB().fit(X, y)
    weight = np.arange(len(y), dtype=float)
    told = confusion(model, X, y, weight)
    expected = metrics.confusion_matrix(y, model.predict(X), sample_weight=weight)
    np.testing.assert_allclose(told.counts, expected)
    strange = y.astype(object)
    strange[:5] = "perhaps"
    told = confusion(model, X, strange)
    assert told.classes == ("no", "yes", "perhaps")
    assert told.counts[2].sum() == 5
    assert np.isnan(told.precision[2])
    assert told.total == 100


def test_most_confused_pairs_come_first(flowers):
    X, y = flowers
    told = confusion(GaussianNB().fit(X[:, :1], y), X[:, :1], y)
    pairs = told.confused()
    assert [count for *_, count in pairs] == sorted((c for *_, c in pairs), reverse=True)
    wrong = told.counts.sum() - np.trace(told.counts)
    assert sum(count for *_, count in pairs) == wrong
    assert told.confused(1) == pairs[:1]


@pytest.mark.parametrize("learner", [GaussianNB(), RidgeClassifier()], ids=["chances", "scores"])
def test_curves_of_two_classes_are_those_of_the_second(two_clouds, learner):
    X, y = two_clouds
    model = learner.fit(X, y)
    has_chances = hasattr(model, "predict_proba")
    scores = model.predict_proba(X)[:, 1] if has_chances else model.decision_function(X)
    told = roc_curves(model, X, y)
    (curve,) = told.curves
    assert curve.name == "yes"
    assert curve.share == 0.4
    assert told.score == ("predict_proba" if has_chances else "decision_function")
    assert curve.area == pytest.approx(metrics.roc_auc_score(y == "yes", scores))
    assert told.area == curve.area
    (curve,) = precision_recall_curves(model, X, y).curves
    expected = metrics.average_precision_score(y == "yes", scores)
    assert curve.average_precision == pytest.approx(expected)
    assert len(curve.precision) == len(curve.recall) == len(curve.thresholds)


def test_curves_of_many_classes_and_weights(flowers):
    X, y = flowers
    model = GaussianNB().fit(X[:, :2], y)
    weight = np.linspace(0.0, 2.0, len(y))
    told = roc_curves(model, X[:, :2], y, weight)
    assert [curve.name for curve in told.curves] == model.classes_.tolist()
    for k, curve in enumerate(told.curves):
        expected = metrics.roc_auc_score(
            y == model.classes_[k], model.predict_proba(X[:, :2])[:, k], sample_weight=weight
        )
        assert curve.area == pytest.approx(expected)


def test_a_class_without_rows_has_no_curve(flowers):
    X, y = flowers
    model = GaussianNB().fit(X, y)
    told = roc_curves(model, X[50:], y[50:])
    assert told.undefined == ("setosa",)
    assert [curve.name for curve in told.curves] == ["versicolor", "virginica"]
    only = roc_curves(model, X[:50], y[:50])
    assert only.curves == ()
    assert np.isnan(only.area)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_scores_of_pairs_become_scores_of_classes(n_classes):
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), 15)
    X = generator.normal(size=(len(y), 2)) + 4 * np.column_stack([y % 2, y // 2])
    pairs = svm.SVC(decision_function_shape="ovo").fit(X, y)
    rest = svm.SVC(decision_function_shape="ovr").fit(X, y)
    np.testing.assert_allclose(class_scores(pairs, X).values, rest.decision_function(X))
    assert roc_curves(pairs, X, y).area == pytest.approx(roc_curves(rest, X, y).area)


def test_labels_alone_are_not_enough_for_curves(flowers):
    X, y = flowers

    class Labels:
        classes_ = np.unique(y)

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    with pytest.raises(TypeError, match="neither predict_proba nor decision_function"):
        roc_curves(Labels(), X, y)
    told = worst_mistakes(Labels(), X, y, n=3)
    assert told.n_wrong == 100
    assert [own.row for own in told.mistakes] == [50, 51, 52]
    assert np.isnan(told.mistakes[0].size)


def test_margins_of_two_classes_are_y_f(two_clouds):
    X, y = two_clouds
    model = svm.SVC(kernel="linear").fit(X, y)
    told = margins_of(model, X, y)
    sign = np.where(y == "yes", 1.0, -1.0)
    np.testing.assert_allclose(told.margins, sign * model.decision_function(X))
    assert told.level == 1.0
    assert told.n_wrong == np.count_nonzero(model.predict(X) != y)
    assert told.n_inside == np.count_nonzero((told.margins >= 0) & (told.margins < 1))


@pytest.mark.parametrize(
    "learner", [svm.SVC(), GaussianNB(), RidgeClassifier()], ids=["svc", "bayes", "ridge"]
)
def test_margins_of_many_classes_are_negative_where_rows_are_wrong(flowers, learner):
    X, y = flowers
    model = make_pipeline(StandardScaler(), learner).fit(X[:, :2], y)
    told = margins_of(model, X[:, :2], y)
    wrong = model.predict(X[:, :2]) != y
    np.testing.assert_array_equal(told.margins < 0, wrong)
    assert told.level is None
    assert told.n_inside is None


def test_margins_need_classes_that_are_known(two_clouds):
    X, y = two_clouds
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="'perhaps', which the model does not know"):
        margins_of(model, X, np.where(y == "no", "perhaps", y))


def test_residuals_are_those_of_scikit_learn():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(50, 2))
    y = X[:, 0] + generator.normal(size=50)
    weight = generator.uniform(size=50)
    model = LinearRegression().fit(X, y)
    told = residual_facts(model, X, y, weight)
    predicted = model.predict(X)
    np.testing.assert_array_equal(told.residuals, predicted - y)
    assert told.r2 == pytest.approx(metrics.r2_score(y, predicted, sample_weight=weight))
    assert told.root_mean_squared_error == pytest.approx(
        metrics.root_mean_squared_error(y, predicted, sample_weight=weight)
    )
    assert told.mean_absolute_error == pytest.approx(
        metrics.mean_absolute_error(y, predicted, sample_weight=weight)
    )
    assert told.r2 == pytest.approx(1 - told.root_mean_squared_error**2 / told.constant_error**2)


def test_residuals_of_one_row_and_refusals(two_clouds):
    X, y = two_clouds
    model = LinearRegression().fit(X, np.arange(100.0))
    assert residual_facts(model, X[:1], [3.0]).r2 is None
    with pytest.raises(TypeError, match="predicts classes"):
        residual_facts(GaussianNB().fit(X, y), X, y)
    with pytest.raises(TypeError, match="2 outputs"):
        residual_facts(LinearRegression().fit(X, X), X, X)
    with pytest.raises(TypeError, match="A classifier is needed"):
        confusion(model, X, y)


def test_worst_mistakes_are_the_surest(two_clouds):
    X, y = two_clouds
    model = GaussianNB().fit(X, y)
    told = worst_mistakes(model, X, y, n=5)
    wrong = np.flatnonzero(model.predict(X) != y)
    assert told.n_wrong == len(wrong)
    chances = model.predict_proba(X)
    given = chances[np.arange(100), np.searchsorted(model.classes_, y)]
    expected = wrong[np.argsort(given[wrong], kind="stable")][:5]
    assert [own.row for own in told.mistakes] == expected.tolist()
    assert told.mistakes[0].size == pytest.approx(1 - given[expected[0]])
    assert {own.truth for own in told.mistakes} <= {"no", "yes"}
    assert all(own.truth != own.prediction for own in told.mistakes)


def test_worst_mistakes_of_numbers_and_of_scores(two_clouds):
    X, y = two_clouds
    numbers = LinearRegression().fit(X, np.arange(100.0))
    told = worst_mistakes(numbers, X, np.arange(100.0), n=3)
    sizes = np.abs(numbers.predict(X) - np.arange(100.0))
    assert [own.row for own in told.mistakes] == np.argsort(-sizes)[:3].tolist()
    told = worst_mistakes(RidgeClassifier().fit(X, y), X, y)
    assert told.mistakes[0].size >= told.mistakes[-1].size > 0
    with pytest.raises(ValueError, match="n must be"):
        worst_mistakes(numbers, X, np.arange(100.0), n=0)


def test_all_are_plain_and_frames(two_clouds):
    X, y = two_clouds
    model = GaussianNB().fit(X, y)
    told = [
        confusion(model, X, y),
        roc_curves(model, X, y),
        precision_recall_curves(model, X, y),
        margins_of(model, X, y),
        worst_mistakes(model, X, y),
        residual_facts(LinearRegression().fit(X, X[:, 0] ** 2), X, X[:, 0] ** 2),
    ]
    for own in told:
        json.dumps(own.as_dict(), allow_nan=False)
        assert len(own.frame())


def test_nearest_centroid_has_labels_of_its_own(flowers):
    X, y = flowers
    assert confusion(NearestCentroid().fit(X, y), X, y).accuracy > 0.9
