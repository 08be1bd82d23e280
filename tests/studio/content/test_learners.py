"""The catalogue: complete, legible, and every entry of every menu works."""

from __future__ import annotations

import inspect

import pytest
from tests.studio.content.scene_cases import (
    CLASSIFIERS,
    GRID,
    REGRESSORS,
    given,
    require_sendable,
    scene,
)

import margrove
from margrove.studio.content.scenes import StudioError, scene_from
from margrove.studio.learners.registry import LEARNERS, NOT_OFFERED
from margrove.studio.pictures import fitted, picture_of


def points_for(name: str) -> str:
    return "moons" if LEARNERS[name].task == "classification" else "staircase"


def test_every_estimator_is_offered_or_there_is_a_reason() -> None:
    estimators = {
        name
        for name in margrove.__all__
        if inspect.isclass(found := getattr(margrove, name)) and hasattr(found, "fit")
    }
    assert estimators == set(LEARNERS) | set(NOT_OFFERED)
    assert not set(LEARNERS) & set(NOT_OFFERED)
    assert set(LEARNERS) == {*CLASSIFIERS, *REGRESSORS}


@pytest.mark.parametrize("name", LEARNERS)
def test_entries_are_as_the_page_expects_them(name) -> None:
    told = LEARNERS[name].as_dict()
    require_sendable(told)
    assert 4 <= len(told["parameters"]) <= 9
    names = [own["name"] for own in told["parameters"]]
    assert len(set(names)) == len(names)
    for own in told["parameters"]:
        assert own["title"]
        assert own["summary"].endswith(".")
        if own["kind"] in ("number", "integer"):
            assert own["low"] < own["high"]
            assert own["scale"] == "linear" or own["low"] > 0
            assert own["default"] is None or own["low"] <= own["default"] <= own["high"]
        if own["default"] is None:
            assert own["none"]
        if own["kind"] == "choice":
            known = [choice["value"] for choice in own["choices"]]
            assert own["default"] in known or own["default"] is None
        if "when" in own:
            assert own["when"]["name"] in names
            assert own["when"]["values"]


@pytest.mark.parametrize("name", LEARNERS)
def test_parameters_are_those_of_the_estimators(name) -> None:
    learner = LEARNERS[name]
    own = inspect.signature(getattr(margrove, name)).parameters
    member = learner.arguments(learner.checked({}), 0).member
    inside = inspect.signature(getattr(margrove, member)).parameters if member else {}
    for parameter in learner.parameters:
        assert parameter.name in (inside if parameter.of_member else own)


@pytest.mark.parametrize("name", LEARNERS)
def test_defaults_give_a_picture(name) -> None:
    picture = picture_of(scene(points_for(name), name, size=40), GRID)
    require_sendable(picture)
    assert picture["figures"]["trainError"] is not None


def test_step_modes_are_those_that_there_are() -> None:
    from margrove.studio.steps import STEPS

    for name, learner in LEARNERS.items():
        own = {kind for kind, mode in STEPS.items() if name in mode.learners}
        assert set(learner.steps) == own, name


def choices_of_menus() -> list[tuple[str, str, object]]:
    return [
        (name, parameter.name, choice.value)
        for name, learner in LEARNERS.items()
        for parameter in learner.parameters
        if parameter.choices is not None
        for choice in parameter.choices()
    ]


@pytest.mark.parametrize(("name", "parameter", "value"), choices_of_menus())
def test_every_choice_works(name, parameter, value) -> None:
    told = given(points_for(name), name, {parameter: value}, size=24, noise=0.1)
    told["x"] = [[1.0 + abs(own) for own in row] for row in told["x"]]  # for histograms
    if LEARNERS[name].task == "regression":
        told["y"] = [1.0 + abs(own) for own in told["y"]]  # for deviances
    picture = picture_of(scene_from(told), GRID)
    assert picture["figures"]["trainError"] < 1.5


@pytest.mark.parametrize(
    ("name", "parameter", "end"),
    [
        (name, parameter.name, end)
        for name, learner in LEARNERS.items()
        for parameter in learner.parameters
        if parameter.kind in ("number", "integer")
        for end in ("low", "high")
    ],
)
def test_ends_of_sliders_are_accepted(name, parameter, end) -> None:
    found = next(own for own in LEARNERS[name].parameters if own.name == parameter)
    value = getattr(found, end)
    assert found.checked(value) == value
    with pytest.raises(ValueError, match="between"):
        found.checked(value - 1 if end == "low" else value + 1)


def test_a_registered_kernel_is_in_the_menus() -> None:
    def tripled(a, b):
        return 3.0 * (a @ b.T)

    margrove.register_kernel("tripled", tripled)
    try:
        kernel = next(
            own for own in LEARNERS["SVC"].as_dict()["parameters"] if own["name"] == "kernel"
        )
        assert "tripled" in [choice["value"] for choice in kernel["choices"]]
        assert fitted(scene(parameters={"kernel": "tripled"}, size=20)).model.kernel == "tripled"
    finally:
        del margrove.kernels.KERNELS["tripled"]
    with pytest.raises(StudioError, match="kernel must be one of"):
        scene(parameters={"kernel": "tripled"})
