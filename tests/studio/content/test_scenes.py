"""Scenes from outside: what is kept, and what is refused, in words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.studio.content.scene_cases import given, scene

from margrove.studio.content.scenes import MAX_POINTS, StudioError, scene_from


def test_a_scene_comes_back_as_it_was() -> None:
    told = given(learner="SVC", parameters={"C": 3.0, "kernel": "poly"}, test_share=0.25)
    again = json.loads(json.dumps(scene_from(told).as_dict()))
    assert again["parameters"] == scene_from(again).parameters
    assert again["parameters"]["C"] == 3.0
    assert again["parameters"]["degree"] == 3  # defaults are filled in
    assert {key: again[key] for key in told if key != "parameters"} == {
        key: told[key] for key in told if key != "parameters"
    }


def test_numbers_of_one_feature_come_back_too() -> None:
    told = scene("sine", "SVR").as_dict()
    assert scene_from(json.loads(json.dumps(told))).as_dict() == told


DEEP: list[object] = []
for _ in range(900):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "version 1"),
        ({"version": True}, "version"),
        ({"task": "clustering"}, "classification or regression"),
        ({"x": [[0.0, float("nan")]], "y": [0]}, "finite"),
        ({"x": [[0.0, float("inf")]], "y": [0]}, "finite"),
        ({"x": [[0.0, 1e300]], "y": [0]}, "beyond"),
        ({"x": [[0.0, 10**400]], "y": [0]}, "numbers"),
        ({"x": [["0", "1"]], "y": [0]}, "numbers"),
        ({"x": [[None, 1]], "y": [0]}, "numbers"),
        ({"x": [[True, False]], "y": [0]}, "numbers"),
        ({"x": [[0.0, 1.0], [1.0]], "y": [0, 1]}, "equally many numbers"),
        ({"x": [[0.0]], "y": [0]}, "two coordinates"),
        ({"x": [[[0.0, 1.0]]], "y": [0]}, "two coordinates"),
        ({"x": "points", "y": [0]}, "list of numbers"),
        ({"x": {"0": 1}, "y": [0]}, "list of numbers"),
        ({"x": [[0.0, 1.0]], "y": [0, 1]}, "one value for each"),
        ({"x": [[0.0, 1.0]], "y": [4]}, "classes 0 to 3"),
        ({"x": [[0.0, 1.0]], "y": [-1]}, "classes 0 to 3"),
        ({"x": [[0.0, 1.0]], "y": [0.5]}, "classes 0 to 3"),
        ({"x": [[0.0, 1.0]] * (MAX_POINTS + 1), "y": [0] * (MAX_POINTS + 1)}, "at most 20,000"),
        ({"testShare": 0.7}, "from 0 to 0.5"),
        ({"testShare": "a"}, "testShare must be a number"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "whole"),
        ({"seed": float("nan")}, "seed"),
        ({"view": {"x": [0, 1]}}, "view"),
        ({"view": {"x": [1, 0], "y": [0, 1]}}, "low end below"),
        ({"view": {"x": [0, 0], "y": [0, 1]}}, "low end below"),
        ({"view": {"x": [0, 1e300], "y": [0, 1]}}, "view.x"),
        ({"view": [0, 1, 0, 1]}, "view"),
        ({"features": ["x1"]}, "two axes"),
        ({"features": ["x1", 2]}, "text"),
        ({"target": None}, "text"),
        ({"classes": list("abcde")}, "at most 4"),
        ({"classes": [["a"]]}, "text"),
        ({"learner": "KMeans"}, "There are Perceptron"),
        ({"learner": ["SVC"]}, "There are"),
        ({"learner": DEEP}, "There are"),
        ({"x": DEEP, "y": [0]}, "x must"),
        ({"parameters": {"C": DEEP}}, "C must be"),
        ({"parameters": {"kernel": DEEP}}, "kernel must be"),
        ({"testShare": DEEP}, "testShare"),
        ({"learner": "__class__"}, "There are"),
        ({"learner": "SVR"}, "not for classification"),
        ({"parameters": []}, "parameters must be"),
        ({"parameters": {"random_state": 3}}, "no parameter"),
        ({"parameters": {"C": "1"}}, "C must be a number"),
        ({"parameters": {"C": True}}, "C must be a number"),
        ({"parameters": {"C": 0}}, "between"),
        ({"parameters": {"C": 10**400}}, "C must be a number"),
        ({"parameters": {"C": float("nan")}}, "C must be a number"),
        ({"parameters": {"degree": 2.5}}, "whole"),
        ({"parameters": {"degree": 100}}, "between"),
        ({"parameters": {"kernel": "precomputed"}}, "kernel must be one of"),
        ({"parameters": {"kernel": ["rbf"]}}, "kernel must be one of"),
        ({"parameters": {"kernel": None}}, "kernel must be one of"),
        ({"learner": "Perceptron", "parameters": {"average": 1}}, "true or false"),
        ({"unknown": 1}, "no 'unknown'"),
        ({"__proto__": 1}, "no '__proto__'"),
    ],
)  # fmt: skip
def test_what_is_refused(changes, words) -> None:
    with pytest.raises(StudioError, match=words):
        scene_from(given() | changes)


@pytest.mark.parametrize("nothing", [None, 1, "scene", [], float("nan")])
def test_what_is_no_scene(nothing) -> None:
    with pytest.raises(StudioError, match="A scene is an object"):
        scene_from(nothing)


def test_what_lacks_a_part_says_which() -> None:
    told = given()
    for key in list(told):
        with pytest.raises(StudioError, match=key):
            scene_from({name: own for name, own in told.items() if name != key})


def test_names_are_cut_and_whole() -> None:
    found = scene(classes=["a" * 1000, "\ud800"], features=["\udfff", "x"])
    assert len(found.classes[0]) == 200
    json.dumps(found.as_dict(), ensure_ascii=False).encode()  # half a character could not be sent


def test_classes_without_a_name_get_one() -> None:
    assert scene("iris_ratios", classes=["setosa"]).classes == ("setosa", "class 2", "class 3")


def test_scenes_may_be_empty() -> None:
    found = scene(x=[], y=[])
    assert found.x.shape == (0, 2)
    assert found.is_test.shape == (0,)
    assert scene("sine", "SVR", x=[], y=[]).x.shape == (0, 1)


# -- test points -----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5])
def test_the_share_of_test_points_is_exact(share) -> None:
    found = scene(size=100, test_share=share)
    assert found.is_test.sum() == round(share * 100)
    assert len(found.training()[1]) + len(found.testing()[1]) == 100


def test_another_point_hardly_changes_which_are_test_points() -> None:
    whole = given(size=61, test_share=0.3)
    fewer = whole | {"x": whole["x"][:60], "y": whole["y"][:60]}
    before, after = scene_from(fewer).is_test, scene_from(whole).is_test[:60]
    assert np.count_nonzero(before != after) <= 1


def test_every_class_keeps_a_point_to_learn_from() -> None:
    for seed in range(20):
        told = given(test_share=0.5, seed=seed)
        rare = told | {"x": told["x"][:8], "y": [0, 0, 0, 0, 0, 1, 2, 3]}
        assert set(scene_from(rare).training()[1]) == {0, 1, 2, 3}


def test_a_single_point_is_learnt_from() -> None:
    assert not scene(x=[[0.0, 0.0]], y=[0], test_share=0.5).is_test.any()


# -- estimators ------------------------------------------------------------------------------------


def test_the_estimator_has_the_parameters_of_the_scene() -> None:
    found = scene(parameters={"C": None, "gamma": None, "kernel": "rbf"}, seed=7).estimator()
    assert np.inf == found.C
    assert found.gamma == "scale"
    assert found.random_state == 7


def test_members_get_theirs() -> None:
    found = scene(learner="AdaBoostClassifier", parameters={"max_depth": 4}).estimator()
    assert found.estimator.max_depth == 4
    assert found.n_estimators == 50


def test_parameters_that_do_not_apply_are_left_alone() -> None:
    found = scene(learner="LinearSVC", parameters={"loss": "hinge", "penalty": "l1"}).estimator()
    assert found.penalty == "l2"


def test_the_same_points_for_another_learner() -> None:
    found = scene().with_learner("DecisionTreeClassifier", {"max_depth": 2})
    assert type(found.estimator()).__name__ == "DecisionTreeClassifier"
    with pytest.raises(StudioError, match="max_depth"):
        found.with_learner("DecisionTreeClassifier", {"max_depth": -2})
