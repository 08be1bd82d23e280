"""Trees node by node, and the way of a row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.studio.content.scene_cases import given, require_sendable, scene
from tests.workbench.report.payloads import payloads

from margrove import DecisionTreeClassifier, read_tree
from margrove.studio.content import StudioError
from margrove.studio.content.tree_views import answer_follow, answer_tree, tree_of
from margrove.studio.pictures import fitted

WITH_TREES = (
    ("DecisionTreeClassifier", 1), ("RandomForestClassifier", 50), ("ExtraTreesClassifier", 50),
    ("BaggingClassifier", 12), ("AdaBoostClassifier", None), ("GradientBoostingClassifier", 300),
    ("HistGradientBoostingClassifier", 300),
)  # fmt: skip


def test_a_tree_of_a_scene_is_that_of_the_model() -> None:
    told = given("iris_ratios", "DecisionTreeClassifier", {"max_depth": 3})
    tree = answer_tree({"scene": told}, 0)
    require_sendable(tree)
    model = fitted(scene("iris_ratios", "DecisionTreeClassifier", {"max_depth": 3})).model
    reading = read_tree(model)
    assert len(tree["nodes"]) == len(reading.nodes)
    for node, own in zip(tree["nodes"], reading.nodes, strict=True):
        assert node["id"] == own.number
        assert node["parent"] == (-1 if own.parent is None else own.parent)
        assert node["rows"] == own.samples
        assert node["impurity"] == own.impurity
        assert node["shares"] == list(own.value)
        assert (node["question"] == "") == own.is_leaf
        assert node["answer"] == told["classes"][own.prediction]
    assert tree["nodes"][0]["question"].startswith(tuple(told["features"]))
    assert {node["branch"] for node in tree["nodes"][1:]} == {"yes", "no"}


@pytest.mark.parametrize(("learner", "n"), WITH_TREES)
def test_members_of_ensembles(learner, n) -> None:
    told = given("iris_ratios", learner)
    first = answer_tree({"scene": told}, 0)
    require_sendable(first)
    assert n is None or first["members"] == n
    last = answer_tree({"scene": told}, first["members"] - 1)
    assert last["nodes"][0]["parent"] == -1
    with pytest.raises(StudioError, match="member must be"):
        answer_tree({"scene": told}, first["members"])
    if "Gradient" not in learner:
        assert set(first["classes"]) <= set(told["classes"])
        assert {node["answer"] for node in first["nodes"]} <= set(told["classes"])
    way = answer_follow({"scene": told}, 0, 5)["nodes"]
    assert way[0] == 0
    assert first["nodes"][way[-1]]["question"] == ""
    for parent, child in pairwise(way):
        assert first["nodes"][child]["parent"] == parent


def test_regression_trees_answer_numbers() -> None:
    tree = answer_tree({"scene": given("staircase", "DecisionTreeRegressor", {"max_depth": 1})}, 0)
    assert tree["classes"] == []
    assert all(node["shares"] == [] for node in tree["nodes"])
    assert float(tree["nodes"][1]["answer"]) < 2


def test_a_round_that_has_several_trees() -> None:
    boosted = {"algorithm": "gentle", "n_estimators": 3}
    with pytest.raises(StudioError, match="a tree for each class"):
        answer_tree({"scene": given("iris_ratios", "AdaBoostClassifier", boosted)}, 0)
    two = answer_tree({"scene": given("moons", "AdaBoostClassifier", boosted)}, 2)
    assert (two["members"], two["classes"]) == (3, [])  # trees of numbers


def test_machines_have_no_trees() -> None:
    with pytest.raises(StudioError, match="no trees"):
        answer_tree({"scene": given()}, 0)


@pytest.mark.filterwarnings("ignore:.*levels deep")
def test_a_tree_as_deep_as_it_has_rows() -> None:
    n = 3000
    x = np.arange(n, dtype=float)[:, None]
    tree = tree_of(DecisionTreeClassifier(max_depth=None).fit(x, np.arange(n) % 2))
    assert len(tree["nodes"]) == 2 * n - 1
    require_sendable(tree)


@pytest.mark.filterwarnings("ignore:.*levels deep")
def test_too_many_nodes_are_refused() -> None:
    n = 10_500
    x = np.arange(n, dtype=float)[:, None]
    with pytest.raises(StudioError, match="nodes"):
        tree_of(DecisionTreeClassifier().fit(x, np.arange(n) % 2))


# -- tables of the lectures ------------------------------------------------------------------------


def test_the_tree_of_the_tennis_days() -> None:
    tree = answer_tree({"lecture": "play_tennis", "parameters": {}}, 0)
    require_sendable(tree)
    root = tree["nodes"][0]
    assert (root["question"], root["rows"]) == ("outlook", 14)
    assert root["impurity"] == pytest.approx(0.940, abs=5e-4)
    branches = {node["branch"]: node for node in tree["nodes"] if node["parent"] == 0}
    assert set(branches) == {"sunny", "overcast", "rain"}
    assert branches["overcast"]["answer"] == "yes"
    assert branches["sunny"]["question"] == "humidity"
    assert branches["rain"]["question"] == "wind"
    assert tree["table"]["columns"] == ["outlook", "temperature", "humidity", "wind"]
    assert len(tree["table"]["rows"]) == 14


def test_following_a_day() -> None:
    source = {"lecture": "play_tennis", "parameters": {}}
    tree = answer_tree(source, 0)
    for row, (cells, target) in enumerate(
        zip(tree["table"]["rows"], tree["table"]["target"], strict=True)
    ):
        way = answer_follow(source, 0, row)["nodes"]
        asked = [tree["nodes"][node]["branch"] for node in way[1:]]
        assert set(asked) <= set(cells)
        assert tree["nodes"][way[-1]]["answer"] == target


def test_the_guests_of_the_restaurant() -> None:
    tree = answer_tree({"lecture": "restaurant", "parameters": {}}, 0)
    assert tree["nodes"][0]["question"] == "Pat"
    binary = answer_tree({"lecture": "restaurant", "parameters": {"split": "binary"}}, 0)
    assert {node["branch"] for node in binary["nodes"][1:]} == {"yes", "no"}


@pytest.mark.parametrize(
    "source",
    [
        None, [], "scene", {}, {"lecture": "nothing", "parameters": {}}, {"lecture": None},
        {"lecture": "play_tennis", "parameters": {"criterion": "squared_error"}},
        {"lecture": "play_tennis", "parameters": {"nothing": 1}},
        {"scene": None}, {"scene": {}},
    ],
)  # fmt: skip
def test_sources_that_are_refused(source) -> None:
    with pytest.raises(StudioError):
        answer_tree(source, 0)


@pytest.mark.parametrize("row", [-1, 14, None, 1.5, "1", True])
def test_rows_that_are_refused(row) -> None:
    with pytest.raises(StudioError, match="row must be"):
        answer_follow({"lecture": "play_tennis", "parameters": {}}, 0, row)


@pytest.mark.parametrize("member", [-1, 1, None, 0.5, "0", True])
def test_members_that_are_refused(member) -> None:
    with pytest.raises(StudioError, match="member must be"):
        answer_tree({"lecture": "play_tennis", "parameters": {}}, member)


def test_names_are_shown_as_they_are_or_quoted() -> None:
    for payload in payloads()[::10]:
        told = given("moons", "DecisionTreeClassifier", {"max_depth": 1})
        tree = answer_tree(
            {"scene": told | {"features": [payload, payload], "classes": [payload, "b"]}}, 0
        )
        require_sendable(tree)
        assert "\n" not in tree["nodes"][0]["question"]
