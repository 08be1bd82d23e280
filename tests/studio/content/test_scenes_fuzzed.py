"""Scenes with something wrong somewhere: a picture, or an error in words, and nothing else."""

from __future__ import annotations

import copy
import random

import pytest
from tests.studio.content.scene_cases import CLASSIFIERS, REGRESSORS, given, require_sendable

from margrove.studio.content import StudioError
from margrove.studio.worker.answers import ANSWERS
from margrove.studio.worker.worker_main import Job

NASTY = (
    None, True, False, 0, 1, -1, 3, 0.5, 1e308, -1e308, 5e-324, 2**63, 10**400, float("nan"),
    float("inf"), "", "x", "\x00", "__class__", [], {}, [[]], [None], {"x": 1}, [1, 2], [[1, 2]],
    "9" * 5000,
)  # fmt: skip
KERNELS = ("SVC", "SVR")
KINDS = ("picture", "picture", "picture", "code", "tree", "map")


def places(value, path=()):
    """All places in nested lists and objects."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, own in inside:
        if isinstance(own, (dict, list)):
            yield from places(own, (*path, key))
        else:
            yield (*path, key)


def mutated(told, lot: random.Random):
    told = copy.deepcopy(told)
    path = lot.choice([own for own in places(told) if own])
    inside = told
    for key in path[:-1]:
        inside = inside[key]
    action = lot.random()
    if action < 0.1:
        del inside[path[-1]]
    elif action < 0.2 and isinstance(inside, dict):
        inside[lot.choice(["extra", "C", "__init__"])] = lot.choice(NASTY)
    else:
        inside[path[-1]] = lot.choice(NASTY)
    return told


def asked(kind, scene):
    if kind == "picture":
        return {"scene": scene, "grid": [6, 7], "surface": "score"}
    return {"source": {"scene": scene}, "member": 0} if kind == "tree" else {"scene": scene}


@pytest.mark.parametrize("learner", [*CLASSIFIERS, *REGRESSORS])
def test_mutated_scenes(learner) -> None:
    lot = random.Random(learner)
    preset = "moons" if learner in CLASSIFIERS else "sine"
    told = given(preset, learner, size=12, test_share=0.2)
    told["parameters"] = {"kernel": "rbf", "gamma": 1.0, "C": 2.0} if learner in KERNELS else {}
    for _ in range(30):
        kind, scene = lot.choice(KINDS), mutated(mutated(told, lot), lot)
        try:
            require_sendable(ANSWERS[kind](asked(kind, scene), Job()))
        except StudioError as error:
            assert 10 < len(str(error)) < 2000  # noqa: PT017
