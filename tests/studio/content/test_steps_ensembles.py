"""Ensembles on the way are ensembles of the first members, and rounds are those that are told."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studio.content.scene_cases import GRID, scene

import margrove
from margrove.studio.pictures import cells_of, places_of
from margrove.studio.steps import step_of, steps_of
from margrove.studio.steps.ensembles.member_steps import first_members

CLASS_BAGS = ("BaggingClassifier", "RandomForestClassifier", "ExtraTreesClassifier")
NUMBER_BAGS = ("BaggingRegressor", "RandomForestRegressor", "ExtraTreesRegressor")
GRADIENT = {
    "GradientBoostingClassifier": "n_estimators",
    "GradientBoostingRegressor": "n_estimators",
    "HistGradientBoostingClassifier": "max_iter",
    "HistGradientBoostingRegressor": "max_iter",
}


def bag_scene(name, **parameters):
    preset = "moons" if name in CLASS_BAGS else "sine"
    return scene(preset, name, {"n_estimators": 6} | parameters, test_share=0.2)


# -- bags and forests ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASS_BAGS + NUMBER_BAGS)
def test_the_first_members_are_an_ensemble_of_so_many(name):
    shown = bag_scene(name)
    X, y = shown.training()
    model = shown.estimator().fit(X, y)
    for k in (1, 3, 6):
        fewer = shown.estimator().set_params(n_estimators=k).fit(X, y)
        np.testing.assert_array_equal(
            first_members(model, k).predict(shown.x), fewer.predict(shown.x)
        )
    assert len(model) == 6


@pytest.mark.parametrize("name", CLASS_BAGS)
def test_surfaces_and_errors_of_the_first_members(name):
    shown = bag_scene(name)
    steps = steps_of("members", shown)
    cells = cells_of(shown.view, GRID).points
    for k in (1, 4):
        fewer = shown.estimator().set_params(n_estimators=k).fit(*shown.training())
        state = step_of("members", shown, k, GRID)
        np.testing.assert_array_equal(state["plane"]["winner"]["values"], fewer.predict(cells))
        figures = steps["steps"][k - 1]["figures"]
        assert figures["training error"] == pytest.approx(1 - fewer.score(*shown.training()))
        assert figures["test error"] == pytest.approx(1 - fewer.score(*shown.testing()))
        assert state["tree"]["members"] == 6
        assert state["tree"]["member"] == k - 1
    assert step_of("members", shown, 0, GRID)["plane"] is None


def test_points_that_a_member_has_not_seen_are_marked():
    shown = bag_scene("RandomForestClassifier")
    model = shown.estimator().fit(*shown.training())
    n = len(shown.training_rows)
    for k, seen in enumerate(model.estimators_samples_, start=1):
        marked = step_of("members", shown, k, GRID)["highlighted"]
        left_out = np.setdiff1d(np.arange(n), seen)
        assert marked == shown.training_rows[left_out].tolist()
        assert steps_of("members", shown)["steps"][k - 1]["figures"]["points seen"] == n - len(
            left_out
        )
    everyone = bag_scene("ExtraTreesClassifier")
    assert step_of("members", everyone, 2, GRID)["highlighted"] == []


@pytest.mark.parametrize("name", ["RandomForestClassifier", "RandomForestRegressor"])
def test_the_out_of_bag_curve_is_that_of_the_forest(name):
    shown = bag_scene(name)
    curve = steps_of("members", shown)["curves"][-1]
    assert curve["name"].startswith("out-of-bag")
    assert np.isnan(curve["values"][0])
    forest = shown.estimator().set_params(oob_score=True)
    with pytest.warns(UserWarning, match="out of bag|out-of-bag"):
        forest.fit(*shown.training())
    wanted = forest.oob_curve_ if "Classifier" in name else np.sqrt(forest.oob_curve_)
    np.testing.assert_allclose(curve["values"][1:], wanted, rtol=1e-6)


# -- AdaBoost --------------------------------------------------------------------------------------


def test_rounds_of_adaboost_are_those_that_are_told():
    shown = scene("moons", "AdaBoostClassifier", {"n_estimators": 8}, noise=0.3, test_share=0.2)
    X, y = shown.training()
    told = []
    model = shown.estimator()
    with margrove.watch(on_step=told.append):
        model.fit(X, y)
    steps = steps_of("adaboost", shown)
    assert steps["total"] == len(told) == 8
    weights = list(model.staged_weights(X, y))
    scores = list(model.staged_decision_function(cells_of(shown.view, GRID).points))
    for k, heard in enumerate(told, start=1):
        figures = steps["steps"][k - 1]["figures"]
        assert figures["round"] == heard.number == k
        assert figures["epsilon"] == pytest.approx(heard.error)
        assert figures["beta"] == pytest.approx(heard.weight / 2)
        assert figures["training error"] == pytest.approx(heard.training_error)
        state = step_of("adaboost", shown, k, GRID)
        np.testing.assert_allclose(
            state["plane"]["weight"][shown.training_rows], weights[k] * len(y), rtol=1e-5
        )
        np.testing.assert_allclose(
            state["plane"]["surface"]["values"], scores[k - 1], rtol=1e-6, atol=1e-7
        )
        # The points that are missed are those that weigh more afterwards.
        heavier = shown.training_rows[weights[k] > weights[k - 1] * (1 + 1e-12)]
        assert state["highlighted"] == heavier.tolist()


def test_the_bounds_are_above_the_training_error():
    shown = scene("moons", "AdaBoostClassifier", {"n_estimators": 20}, noise=0.3)
    error, bound, edges = (own["values"] for own in steps_of("adaboost", shown)["curves"])
    assert (error <= bound + 1e-6).all()
    assert (bound <= edges + 1e-6).all()
    assert bound[0] == edges[0] == 1.0
    zs = [own["figures"]["Z"] for own in steps_of("adaboost", shown)["steps"]]
    np.testing.assert_allclose(np.cumprod(zs), bound[1:], rtol=1e-5)


def test_the_ten_points_of_the_lecture():
    parameters = {"n_estimators": 3, "criterion": "error"}
    shown = scene("boosting_points", "AdaBoostClassifier", parameters, size=10)
    steps = steps_of("adaboost", shown)["steps"]
    assert [round(own["figures"]["epsilon"], 2) for own in steps] == [0.3, 0.21, 0.14]
    assert [round(own["figures"]["beta"], 2) for own in steps] == [0.42, 0.65, 0.92]
    marked = [step_of("adaboost", shown, k, GRID)["highlighted"] for k in (1, 2, 3)]
    assert [len(own) for own in marked] == [3, 3, 3]
    assert steps[0]["figures"]["rule"] == "x1 <= 2.500: +, else -"
    assert steps[-1]["figures"]["training error"] == 0.0


def test_boosting_that_ends_early_says_why():
    points = {"x": [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], "y": [0, 0, 1, 1]}
    steps = steps_of("adaboost", scene("moons", "AdaBoostClassifier", **points))
    assert steps["total"] == 1
    assert steps["steps"][0]["text"].endswith("It ends here: perfect.")


# -- gradient boosting -----------------------------------------------------------------------------


def gradient_scene(name, **parameters):
    preset = "moons" if "Classifier" in name else "sine"
    return scene(preset, name, {GRADIENT[name]: 9} | parameters, test_share=0.2)


@pytest.mark.parametrize("name", list(GRADIENT))
def test_rounds_of_gradient_boosting_are_staged_predictions(name):
    shown = gradient_scene(name)
    X, y = shown.training()
    model = shown.estimator().fit(X, y)
    steps = steps_of("gradient", shown)
    assert steps["total"] == 9
    np.testing.assert_allclose(
        steps["curves"][0]["values"], model.history_.training_loss, rtol=1e-6
    )
    is_number = shown.task == "regression"
    where = places_of(shown)[:, None] if is_number else cells_of(shown.view, GRID).points
    stages = model.staged_predict(where) if is_number else model.staged_decision_function(where)
    stages = [own.copy() for own in stages]
    for k in (1, 5, 9):
        state = step_of("gradient", shown, k, GRID)
        found = state["curve"]["y"] if is_number else state["plane"]["surface"]["values"]
        np.testing.assert_allclose(found, stages[k - 1], rtol=1e-6, atol=1e-6)
        assert state["tree"]["member"] == k - 1


@pytest.mark.parametrize("name", ["GradientBoostingRegressor", "HistGradientBoostingRegressor"])
def test_boosting_of_numbers_starts_from_the_mean(name):
    shown = gradient_scene(name)
    start = step_of("gradient", shown, 0, GRID)["curve"]
    mean = shown.training()[1].mean()
    np.testing.assert_allclose(start["y"], mean, rtol=1e-5)
    np.testing.assert_allclose(start["residual"], shown.y - mean, rtol=1e-4, atol=1e-5)


def test_draws_of_points_are_the_same_in_fewer_rounds():
    shown = gradient_scene("GradientBoostingRegressor", subsample=0.5)
    model = shown.estimator().fit(*shown.training())
    stages = [own.copy() for own in model.staged_predict(places_of(shown)[:, None])]
    for k in (2, 6):
        found = step_of("gradient", shown, k, GRID)["curve"]["y"]
        np.testing.assert_allclose(found, stages[k - 1], rtol=1e-6, atol=1e-6)


def test_three_classes_have_three_trees_a_round():
    shown = scene("iris_ratios", "GradientBoostingClassifier", {"n_estimators": 4})
    steps = steps_of("gradient", shown)
    assert "3 trees, one for each class," in steps["steps"][0]["text"]
    assert step_of("gradient", shown, 2, GRID)["tree"]["member"] == 3
