"""Sets of points: all draw, the same for the same seed, within what scenes accept."""

from __future__ import annotations

import pytest
from tests.studio.content.scene_cases import given, require_sendable

from margrove.studio.content.presets import PRESETS, points_of
from margrove.studio.content.scenes import StudioError, scene_from


def learner_for(preset: str) -> str:
    is_class = PRESETS[preset].task == "classification"
    return "DecisionTreeClassifier" if is_class else "DecisionTreeRegressor"


@pytest.mark.parametrize("name", PRESETS)
def test_they_are_scenes(name) -> None:
    own = PRESETS[name]
    require_sendable(own.as_dict())
    told = points_of(name, size=own.size, noise=own.noise, seed=0)
    require_sendable(told)
    found = scene_from(given() | told | {"learner": learner_for(name)})
    assert len(found.y) == own.size
    if own.task == "classification":
        assert len(found.classes) == len(set(found.y.tolist()))
    low, high = found.view.x
    assert low < found.x[:, 0].min() <= found.x[:, 0].max() < high


@pytest.mark.parametrize("name", PRESETS)
def test_a_seed_says_which(name) -> None:
    first, again, other = (points_of(name, size=30, noise=0.3, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert (first["x"] != other["x"]) == PRESETS[name].is_drawn


@pytest.mark.parametrize("name", [name for name, own in PRESETS.items() if own.is_drawn])
@pytest.mark.parametrize("size", [1, 9, 500])
@pytest.mark.parametrize("noise", [0, 5])
def test_sizes_and_noise(name, size, noise) -> None:
    told = points_of(name, size=size, noise=noise, seed=3)
    assert size <= len(told["y"]) <= max(size, 8)  # some need a few points
    scene_from(given() | told | {"learner": learner_for(name)})


@pytest.mark.parametrize(
    "wrong",
    [
        {"preset": "nothing"}, {"preset": ["moons"]}, {"preset": None}, {"size": 0},
        {"size": 10**9}, {"size": 1.5}, {"size": "10"}, {"size": True}, {"size": float("nan")},
        {"noise": -1}, {"noise": 1e9}, {"noise": float("nan")}, {"noise": None}, {"seed": -1},
        {"seed": 2**70}, {"seed": 0.5}, {"seed": float("inf")},
    ],
)  # fmt: skip
def test_what_is_refused(wrong) -> None:
    asked = {"preset": "moons", "size": 10, "noise": 0.1, "seed": 0} | wrong
    with pytest.raises(StudioError):
        points_of(asked.pop("preset"), **asked)
