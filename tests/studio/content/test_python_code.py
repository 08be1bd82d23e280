"""Scripts to take along: they run, predict what the picture shows, and obey no name."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pytest
from tests.studio.content.scene_cases import CLASSIFIERS, GRID, REGRESSORS, given, scene
from tests.workbench.report.payloads import payloads

from margrove.studio.content.python_code import python_of
from margrove.studio.content.scenes import scene_from
from margrove.studio.pictures import cells_of, fitted, picture_of

PYTHON_PAYLOADS = [
    "'; import os; os.abort() #",
    '"; import os; os.abort() #',
    '"""\nimport os; os.abort()\n"""',
    "\\'); import os; os.abort()",
    "']; raise SystemExit #",
    "{model} {0} {__class__}",
    "%s %(x)s %n",
    "a\nimport os",
    "a\rimport os",
    "a\u2028import os",
    "a\x0cimport os",
    "\x00",
    "\ud800",
    "\u202eback",
    "\\",
    "\\N{BULLET}",
    "#",
    "f'{1/0}'",
    "__import__('os').abort()",
]


def run(text: str) -> dict[str, object]:
    space: dict[str, object] = {"__name__": "a scene"}
    exec(compile(text, "scene.py", "exec"), space)
    return space


@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_classes_are_those_of_the_picture(learner, capsys) -> None:
    own = scene("iris_ratios", learner, test_share=0.2)
    found = run(python_of(own))
    plane = picture_of(own, GRID)["plane"]
    assert np.array_equal(
        found["model"].predict(cells_of(own.view, GRID).points), plane["winner"]["values"]
    )
    error = picture_of(own, GRID)["figures"]["trainError"]
    out = capsys.readouterr().out
    assert out.startswith(f"training error: {error:.6f}\ntest error: ")


@pytest.mark.filterwarnings("ignore:AdaBoostRegressor stopped")
@pytest.mark.parametrize("learner", REGRESSORS)
def test_numbers_are_those_of_the_curve(learner, capsys) -> None:
    own = scene("staircase", learner)
    found = run(python_of(own))
    places = np.linspace(*own.view.x, 50)[:, None]
    assert np.array_equal(found["model"].predict(places), fitted(own).model.predict(places))
    error = picture_of(own, GRID)["figures"]["trainError"]
    assert capsys.readouterr().out == f"training error: {error:.6f}\n"


def test_it_runs_as_a_program(tmp_path) -> None:
    own = scene("moons", "SVC", {"C": None, "gamma": 2.0}, noise=0.0)
    program = tmp_path / "scene.py"
    program.write_text(python_of(own), encoding="ascii")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "training error: 0.000000\n"


def test_points_come_back_to_the_last_bit() -> None:
    own = scene("moons", "DecisionTreeClassifier", size=500)
    space = run(python_of(own))
    assert np.array_equal(space["X"], own.x)
    assert np.array_equal(space["y"], own.y)


def test_a_scene_without_points_is_a_script_too() -> None:
    for preset, learner in (("moons", "SVC"), ("sine", "SVR")):
        ast.parse(python_of(scene(preset, learner, x=[], y=[])))


@pytest.mark.parametrize("part", range(8))
def test_names_are_literals_and_nothing_else(part) -> None:
    for payload in [*payloads(), *PYTHON_PAYLOADS][part::8]:
        told = given("iris_ratios", "DecisionTreeClassifier") | {
            "classes": [payload, payload[::-1], payload + payload],
            "features": [payload, payload[1:]],
            "target": payload,
        }
        own = scene_from(told)
        text = python_of(own)
        text.encode("ascii")
        tree = ast.parse(text)
        named = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in ("CLASSES", "FEATURES", "TARGET")
        }
        assert named == {
            "CLASSES": list(own.classes),
            "FEATURES": list(own.features),
            "TARGET": own.target,
        }
        # All else is the same whatever the names are.
        assert _without_names(text) == _without_names(python_of(scene("iris_ratios", own.learner)))


def _without_names(text: str) -> list[str]:
    named = ("CLASSES = ", "FEATURES = ", "TARGET = ")
    return [line for line in text.splitlines() if not line.startswith(named)]
