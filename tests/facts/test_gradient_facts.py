"""What is said about gradient boosting is true: losses, rounds, sizes, stages."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss, mean_pinball_loss, mean_poisson_deviance

from margrove import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from margrove.datasets import load_iris
from margrove.exceptions import NotFittedError
from margrove.facts import (
    GradientFacts,
    describe,
    gradient_stages,
    is_described,
    loss_curve,
    ranked_importances,
    round_facts,
)
from margrove.facts.models.gradient_stages import tree_of_round

IRIS, CODES = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[CODES]
X = np.random.default_rng(0).normal(size=(400, 3))
Y = X[:, 0] * (X[:, 1] > 0) + 0.2 * np.random.default_rng(1).normal(size=400)
FRAME = pd.DataFrame(X, columns=["width", "height", "noise"])


@pytest.fixture(scope="module")
def flowers():
    return HistGradientBoostingClassifier(max_iter=6).fit(IRIS, LABELS)


@pytest.fixture(scope="module")
def numbers():
    model = HistGradientBoostingRegressor(
        max_iter=300, learning_rate=0.3, early_stopping=True, random_state=0
    )
    return model.fit(FRAME, Y)


# -- describe ------------------------------------------------------------------------------------


def test_three_classes(flowers) -> None:
    told = describe(flowers, IRIS, LABELS)
    assert isinstance(told, GradientFacts)
    assert (told.loss, told.n_rounds, told.n_trees) == ("log_loss", 6, 18)
    assert told.classes.tolist() == ["setosa", "versicolor", "virginica"]
    trees = [flowers.tree(t, k) for t in range(6) for k in range(3)]
    assert told.leaves.by_member.tolist() == [tree.n_leaves for tree in trees]
    assert told.leaves.by_member.sum() == flowers.history_.n_leaves.sum()
    assert told.depth.by_member.tolist() == [tree.depth.max() for tree in trees]
    assert told.start.tolist() == [0.0, 0.0, 0.0]  # as many of each
    assert told.loss_at_start == pytest.approx(np.log(3.0))
    assert told.loss_at_end == pytest.approx(log_loss(LABELS, flowers.predict_proba(IRIS)))
    assert told.loss_of_rows == pytest.approx(told.loss_at_end)
    assert (told.best_round, told.validation_score) == (None, None)
    assert told.outcome_in_words == "all rounds were made"
    assert np.array_equal(told.importances, flowers.feature_importances_)
    assert told.strongest[0].index == int(np.argmax(told.importances))
    assert describe(flowers).loss_of_rows is None
    assert json.loads(json.dumps(told.as_dict()))["n_trees"] == 18


def test_a_model_that_stopped_early(numbers) -> None:
    told = describe(numbers, FRAME, Y)
    scores = numbers.history_.validation_score
    assert told.outcome == "stopped early"
    assert "all rounds are kept" in told.outcome_in_words
    assert told.n_rounds == len(numbers) == told.n_trees < 300
    assert scores[told.best_round] == scores.max()
    assert told.best_round < told.n_rounds
    assert told.validation_score == scores[-1]
    assert told.feature_names == ("width", "height", "noise")
    assert [feature.name for feature in told.strongest[:2]] == ["width", "height"]
    assert told.loss_of_rows == pytest.approx(0.5 * np.mean((Y - numbers.predict(FRAME)) ** 2))


def test_weights_of_rows_count_in_their_loss(flowers) -> None:
    weight = np.random.default_rng(0).integers(0, 4, 150)
    told = describe(flowers, IRIS, LABELS, weight)
    wanted = log_loss(LABELS, flowers.predict_proba(IRIS), sample_weight=weight)
    assert told.loss_of_rows == pytest.approx(wanted)


def test_rounds_cut_short_are_explained() -> None:
    model = HistGradientBoostingRegressor(max_iter=10_000, max_time=1e-9)
    with pytest.warns(UserWarning, match="max_time"):
        model.fit(X, Y)
    assert describe(model).outcome_in_words == "max_time was reached"


def test_importances_say_what_they_are(numbers) -> None:
    found = ranked_importances(numbers)
    assert found.measure == "gain of the splits, as a share"
    assert found.names[0] == "width"
    assert np.array_equal(found.values, np.sort(numbers.feature_importances_)[::-1])


def test_only_fitted_gradient_boosting_is_taken() -> None:
    assert is_described(HistGradientBoostingRegressor())
    for function in (describe, loss_curve, lambda model: round_facts(model, 1)):
        with pytest.raises(NotFittedError):
            function(HistGradientBoostingRegressor())
    other = AdaBoostClassifier(n_estimators=1).fit(IRIS, LABELS)
    for function in (loss_curve, lambda model: round_facts(model, 1)):
        with pytest.raises(TypeError, match=r"takes gradient boosting of margrove\. Got AdaBoost"):
            function(other)


# -- losses --------------------------------------------------------------------------------------


def test_losses_are_those_of_the_history(numbers) -> None:
    told = loss_curve(numbers)
    assert told.rounds.tolist() == list(range(len(numbers) + 1))
    assert np.array_equal(told.training, numbers.history_.training_loss)
    assert np.array_equal(told.validation, -numbers.history_.validation_score)
    assert told.validation[told.best_round] == told.validation.min()
    assert (told.loss, told.score, told.test) == ("squared_error", None, None)


def test_losses_of_other_rows_round_by_round(flowers) -> None:
    told = loss_curve(flowers, IRIS[1::2], LABELS[1::2])
    wanted = [log_loss(LABELS[1::2], p) for p in flowers.staged_predict_proba(IRIS[1::2])]
    np.testing.assert_allclose(told.test[1:], wanted)
    assert told.test[0] == pytest.approx(np.log(3.0))
    assert told.best_round == int(np.argmin(told.test)) == 6
    assert told.validation is None
    again = loss_curve(flowers, IRIS, LABELS)
    np.testing.assert_allclose(again.test, again.training)


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        ({"loss": "quantile", "quantile": 0.8},
         lambda y, p: mean_pinball_loss(y, p, alpha=0.8)),
        ({"loss": "absolute_error"}, lambda y, p: np.abs(y - p).mean()),
        ({"loss": "poisson"}, lambda y, p: np.mean(p - y * np.log(p))),
    ],
    ids=lambda own: own["loss"] if isinstance(own, dict) else "",
)  # fmt: skip
def test_losses_of_numbers(settings, loss) -> None:
    y = np.round(Y - Y.min())
    model = HistGradientBoostingRegressor(max_iter=5, **settings).fit(X[::2], y[::2])
    told = loss_curve(model, X[1::2], y[1::2])
    wanted = [loss(y[1::2], found) for found in model.staged_predict(X[1::2])]
    np.testing.assert_allclose(told.test[1:], wanted)


def test_poisson_losses_differ_by_a_constant_from_the_deviance() -> None:
    y = np.round(Y - Y.min())
    model = HistGradientBoostingRegressor("poisson", max_iter=5).fit(X, y)
    told = loss_curve(model, X, y)
    half = [mean_poisson_deviance(y, found) / 2 for found in model.staged_predict(X)]
    np.testing.assert_allclose(np.diff(half), np.diff(told.test[1:]), atol=1e-12)


def test_the_bend_of_huber_is_found_anew_for_other_rows() -> None:
    model = HistGradientBoostingRegressor("huber", max_iter=5).fit(X, Y)
    told = loss_curve(model, X, Y)
    np.testing.assert_allclose(told.test, told.training)
    assert told.test[-1] > 0.0


def test_losses_of_the_classic_pair() -> None:
    model = GradientBoostingClassifier(n_estimators=6).fit(IRIS[::2], LABELS[::2])
    told = loss_curve(model, IRIS[1::2], LABELS[1::2])
    wanted = [log_loss(LABELS[1::2], p) for p in model.staged_predict_proba(IRIS[1::2])]
    np.testing.assert_allclose(told.test[1:], wanted)
    stopped = GradientBoostingRegressor(
        n_estimators=200, n_iter_no_change=3, learning_rate=0.5, random_state=0
    ).fit(X, Y)
    told = loss_curve(stopped)
    assert np.array_equal(told.validation, -stopped.history_.validation_score)
    assert describe(stopped, X, Y).n_rounds == stopped.n_estimators_ < 200


def test_losses_of_boosting_that_starts_from_another_model() -> None:
    model = GradientBoostingRegressor(n_estimators=6, init=LinearRegression()).fit(X, Y)
    told = loss_curve(model, X, Y)
    start = 0.5 * np.mean((Y - model.init_.predict(X)) ** 2)
    assert told.test[0] == pytest.approx(start)
    np.testing.assert_allclose(told.test, told.training)
    assert describe(model, X, Y).loss_of_rows == pytest.approx(told.training[-1])
    line = GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X[:, :1], Y)
    with pytest.raises(ValueError, match="starts from LinearRegression"):
        gradient_stages(line, X[:, :1], Y)


def test_a_score_that_is_no_loss() -> None:
    model = HistGradientBoostingClassifier(
        max_iter=5, early_stopping=True, scoring="accuracy", random_state=0
    ).fit(IRIS, LABELS)
    told = loss_curve(model)
    assert told.validation is None
    assert told.score_name == "accuracy"
    assert np.array_equal(told.score, model.history_.validation_score)
    assert told.score[told.best_round] == told.score.max()

    def share_right(estimator, X, y):
        return float(np.mean(estimator.predict(X) == y))

    other = HistGradientBoostingClassifier(
        max_iter=2, early_stopping=True, scoring=share_right, random_state=0
    )
    assert loss_curve(other.fit(IRIS, LABELS)).score_name == "share_right"


def test_what_losses_refuse(flowers) -> None:
    with pytest.raises(ValueError, match="X and y belong together"):
        loss_curve(flowers, IRIS)
    with pytest.raises(ValueError, match="not among the classes"):
        loss_curve(flowers, IRIS, ["rose"] * 150)


# -- rounds --------------------------------------------------------------------------------------


def test_rounds_one_by_one(flowers) -> None:
    history = flowers.history_
    gains = np.zeros(4)
    for number in range(1, 7):
        told = round_facts(flowers, number)
        trees = [flowers.tree(number - 1, k) for k in range(3)]
        assert told.number == number
        assert told.loss_before == history.training_loss[number - 1]
        assert told.loss_after == history.training_loss[number] < told.loss_before
        assert told.leaves == tuple(tree.n_leaves for tree in trees)
        assert sum(told.leaves) == history.n_leaves[number - 1]
        assert told.depth == tuple(tree.depth.max() for tree in trees)
        assert told.gain == pytest.approx(sum(tree.decrease.sum() for tree in trees))
        assert told.gain == pytest.approx(sum(feature.weight for feature in told.features))
        weights = [feature.weight for feature in told.features]
        assert weights == sorted(weights, reverse=True)
        raws = list(flowers.staged_decision_function(IRIS))
        before = raws[number - 2] if number > 1 else np.zeros((150, 3))
        assert told.largest_step == pytest.approx(np.abs(raws[number - 1] - before).max())
        for feature in told.features:
            gains[feature.index] += feature.weight
    np.testing.assert_allclose(gains / gains.sum(), flowers.feature_importances_)


def test_a_round_knows_names_and_its_validation(numbers) -> None:
    told = round_facts(numbers, 1)
    assert {feature.name for feature in told.features} <= {"width", "height", "noise"}
    assert told.validation_score == numbers.history_.validation_score[1]
    for number in (0, len(numbers) + 1, 1.0, True):
        with pytest.raises(ValueError, match=f"from 1 to {len(numbers)}"):
            round_facts(numbers, number)


def test_trees_of_rounds_add_up_to_the_scores(flowers, numbers) -> None:
    for model, rows, wanted in (
        (flowers, IRIS, flowers.decision_function(IRIS).T),
        (numbers, FRAME, numbers.predict(FRAME)[None]),
    ):
        for score, own in enumerate(wanted):
            trees = [tree_of_round(model, t, score) for t in range(1, len(model) + 1)]
            total = model._scores.start[score] + sum(tree.predict(rows) for tree in trees)
            np.testing.assert_allclose(total, own, atol=1e-12)
    with pytest.raises(ValueError, match="from 0 to 2"):
        tree_of_round(flowers, 1, 3)


# -- stages --------------------------------------------------------------------------------------


def test_stages_say_what_the_model_said() -> None:
    x = np.sort(np.random.default_rng(0).uniform(0, 6, 300))[:, None]
    y = np.sin(x[:, 0])
    model = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=4).fit(x, y)
    told = gradient_stages(model, x, y)
    assert told.rounds == (1, 5, 20, 40)
    staged = list(model.staged_predict(x))
    place = np.searchsorted(told.high, x[:, 0])  # low < x <= high
    for stage, said in zip(told.rounds, told.predictions, strict=True):
        assert np.array_equal(said[place], staged[stage - 1])
    assert told.losses.tolist() == model.history_.training_loss[[1, 5, 20, 40]].tolist()
    assert np.all(np.diff(told.high) > 0)
    assert told.high[-1] == np.inf
    one = gradient_stages(model, x, y, [1])
    assert len(one.high) == 4
    assert set(one.predictions[0]) == set(staged[0])


def test_stages_want_numbers_over_one_number(numbers, flowers) -> None:
    for model, rows, y in ((numbers, FRAME, Y), (flowers, IRIS, LABELS)):
        with pytest.raises(ValueError, match="one feature, which is a number"):
            gradient_stages(model, rows, y)
    x = FRAME[["width"]].assign(width=lambda own: np.where(own.width > 1, np.nan, own.width))
    model = HistGradientBoostingRegressor(max_iter=3).fit(x, Y)
    told = gradient_stages(model, x, Y, (3,))
    assert told.name == "width"
    assert len(told.points) == len(told.targets) == int(np.isfinite(x["width"]).sum())
    for rounds in ([4], [0], []):
        with pytest.raises(ValueError, match="rounds"):
            gradient_stages(model, x, Y, rounds)
