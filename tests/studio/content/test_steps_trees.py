"""Trees on the way are trees: those of fewer leaves, and those of a higher price."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studio.content.scene_cases import GRID, scene

import margrove
from margrove.facts import gain_curves
from margrove.studio.content.lectures import lecture_table
from margrove.studio.steps import step_of, steps_of
from margrove.studio.steps.trees.tree_growth import Growth

TENNIS_GAINS = {"outlook": 0.246, "temperature": 0.029, "humidity": 0.151, "wind": 0.048}


def tree_scene(**settings):
    return scene("moons", "DecisionTreeClassifier", noise=0.3, size=80, **settings)


def winners(state):
    return state["plane"]["winner"]["values"]


# -- splits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_trees_grow_best_first(criterion):
    """After k splits it is the tree of k + 1 leaves that `max_leaf_nodes` grows."""
    X, y = margrove.datasets.make_moons(80, noise=0.3, return_X_y=True)
    model = margrove.DecisionTreeClassifier(criterion=criterion).fit(X, y)
    growth = Growth(model, X, y)
    for k in range(1, len(growth.order) + 1):
        wanted = margrove.DecisionTreeClassifier(criterion=criterion, max_leaf_nodes=k + 1)
        wanted.fit(X, y)
        np.testing.assert_array_equal(growth.after(k).predict_proba(X), wanted.predict_proba(X))
        assert growth.after(k).get_n_leaves() == k + 1


def test_nodes_rows_and_losses_of_a_growth():
    X, y = margrove.datasets.make_moons(80, noise=0.3, return_X_y=True)
    growth = Growth(margrove.DecisionTreeClassifier().fit(X, y), X, y)
    losses = growth.losses(X, y)
    for k, node in enumerate(growth.order, start=1):
        tree = growth.after(k)
        shown_as = growth.number_of(node, k)
        assert tree.arrays_.n_samples[shown_as] == len(growth.rows_of(node))
        assert tree.arrays_.feature[shown_as] == growth.arrays.feature[node]
        assert losses[k] == pytest.approx(1.0 - tree.score(X, y))


def test_the_chosen_question_gains_most():
    shown = tree_scene(test_share=0.25)
    steps = steps_of("splits", shown)
    X, y = shown.training()
    for number in range(1, len(steps["steps"]) + 1):
        state = step_of("splits", shown, number, GRID)
        gains = state["gains"]
        (chosen,) = (own for own in gains["candidates"] if own["isChosen"])
        best = max(own["gain"] for own in gains["candidates"])
        assert chosen["gain"] == pytest.approx(best, abs=1e-12)
        assert chosen["gain"] == pytest.approx(steps["steps"][number - 1]["figures"]["gain"])
        assert np.nanmax(chosen["gains"]) == pytest.approx(best, abs=1e-6)
        node = state["tree"]["nodes"][gains["node"]]
        assert node["rows"] == len(state["highlighted"])
        assert node["question"]
        leaves = [own for own in state["tree"]["nodes"] if not own["question"]]
        assert len(leaves) == number + 1 == steps["steps"][number - 1]["figures"]["leaves"]
    first = step_of("splits", shown, 1, GRID)["gains"]["candidates"]
    for curve, candidate in zip(gain_curves(X, y).curves, first, strict=True):
        np.testing.assert_allclose(candidate["thresholds"], curve.thresholds, rtol=1e-6)
        np.testing.assert_allclose(candidate["gains"], curve.decreases, rtol=1e-5, atol=1e-7)


def test_errors_of_trees_as_they_grow():
    shown = tree_scene(test_share=0.25)
    training, test = (own["values"] for own in steps_of("splits", shown)["curves"])
    model = shown.estimator().fit(*shown.training())
    assert training[0] == pytest.approx(1 - np.bincount(shown.training()[1]).max() / 60)
    assert training[-1] == pytest.approx(1 - model.score(*shown.training()))
    assert test[-1] == pytest.approx(1 - model.score(*shown.testing()), abs=1e-6)


def test_a_regression_tree_grows():
    shown = scene("sine", "DecisionTreeRegressor", {"max_leaf_nodes": 6}, test_share=0.2)
    steps = steps_of("splits", shown)
    assert steps["total"] == 5
    mean = shown.training()[1].mean()
    start = step_of("splits", shown, 0, GRID)
    np.testing.assert_allclose(start["curve"]["y"], mean, rtol=1e-5)
    assert start["gains"] is None
    model = shown.estimator().fit(*shown.training())
    last = step_of("splits", shown, 5, GRID)
    wanted = shown.y - model.predict(shown.x)
    np.testing.assert_allclose(last["curve"]["residual"], wanted, rtol=1e-5, atol=1e-6)
    rms = steps["curves"][1]["values"][-1]
    assert rms == pytest.approx(np.sqrt(np.mean(wanted[shown.is_test] ** 2)), rel=1e-5)


@pytest.mark.parametrize("splitter", ["random", "oblique"])
def test_questions_that_are_not_the_best_thresholds(splitter):
    shown = tree_scene(parameters={"splitter": splitter, "max_depth": 3})
    for number in range(1, len(steps_of("splits", shown)["steps"]) + 1):
        candidates = step_of("splits", shown, number, GRID)["gains"]["candidates"]
        (chosen,) = (own for own in candidates if own["isChosen"])
        assert chosen["gain"] > 0
        best = max(own["gain"] for own in candidates)
        assert splitter == "oblique" or chosen["gain"] <= best + 1e-12


def test_the_gains_of_tennis():
    """Those of the lecture, at the root and below sunny days."""
    table = lecture_table("play_tennis")
    gains = step_of("splits", table, 1)["gains"]
    assert gains["criterion"] == "entropy"
    found = {own["feature"]: own["gain"] for own in gains["candidates"]}
    assert found == pytest.approx(TENNIS_GAINS, abs=1.1e-3)
    assert [own["feature"] for own in gains["candidates"] if own["isChosen"]] == ["outlook"]
    below = [step_of("splits", table, k)["gains"]["candidates"] for k in (2, 3)]
    chosen = [next(own for own in part if own["isChosen"])["feature"] for part in below]
    assert sorted(chosen) == ["humidity", "wind"]
    assert [max(own["gain"] for own in part) for part in below] == pytest.approx(
        [0.971, 0.971], 1e-3
    )


def test_the_gains_of_the_restaurant():
    candidates = step_of("splits", lecture_table("restaurant"), 1)["gains"]["candidates"]
    gains = {own["feature"]: own["gain"] for own in candidates}
    assert gains["Pat"] == pytest.approx(0.541, abs=1e-3)
    assert gains["Type"] == pytest.approx(0.0, abs=1e-12)
    assert max(gains, key=gains.get) == "Pat"


# -- pruning ---------------------------------------------------------------------------------------


def test_pruned_trees_are_those_of_a_price():
    shown = tree_scene(test_share=0.3)
    steps = steps_of("pruning", shown)
    X, y = shown.training()
    leaves = [shown.estimator().fit(X, y).get_n_leaves()]
    for number, step in enumerate(steps["steps"], start=1):
        figures = step["figures"]
        # A little above the price at which branches go, so that rounding does not decide.
        model = shown.estimator().set_params(ccp_alpha=figures["alpha"] * (1 + 1e-9)).fit(X, y)
        assert figures["leaves"] == model.get_n_leaves()
        leaves.append(figures["leaves"])
        assert figures["training error"] == pytest.approx(1 - model.score(X, y), abs=1e-9)
        assert figures["test error"] == pytest.approx(1 - model.score(*shown.testing()), abs=1e-9)
        state = step_of("pruning", shown, number, GRID)
        assert len([own for own in state["tree"]["nodes"] if not own["question"]]) == leaves[-1]
        assert state["highlighted"]
    assert leaves == sorted(leaves, reverse=True)
    assert leaves[-1] == 1
    training = steps["curves"][0]["values"]
    assert (np.diff(training) >= -1e-7).all()


def test_pruning_starts_from_the_whole_tree():
    """Whatever price is set; the step that leads to it is named."""
    whole = tree_scene()
    priced = tree_scene(parameters={"ccp_alpha": 0.02})
    start = step_of("pruning", priced, 0, GRID)
    np.testing.assert_array_equal(winners(start), winners(step_of("pruning", whole, 0, GRID)))
    texts = [own["text"] for own in steps_of("pruning", priced)["steps"]]
    (named,) = (k for k, text in enumerate(texts, start=1) if "the chosen price" in text)
    model = priced.estimator().fit(*priced.training())
    assert steps_of("pruning", priced)["steps"][named - 1]["figures"]["leaves"] == (
        model.get_n_leaves()
    )


def test_large_trees_are_not_drawn_beside_the_picture():
    shown = scene("sine", "DecisionTreeRegressor", size=2500)
    n = len(steps_of("splits", shown)["steps"])
    last = step_of("splits", shown, n, GRID)
    assert last["tree"] is None
    assert last["curve"] is not None
    assert step_of("splits", shown, 3, GRID)["tree"] is not None
