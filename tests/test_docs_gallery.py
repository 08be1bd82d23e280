"""The tutorials run, say what the lectures say, and are complete."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "examples/gallery"
sys.path.insert(0, str(ROOT / "docs/extensions"))

from offline_pages import loaded_from_elsewhere  # noqa: E402
from plain_docstrings import escaped  # noqa: E402
from tutorial_order import TUTORIALS, TutorialOrder  # noqa: E402

# What the lectures print, word for word in what the tutorials print.
PRINTED = {
    "maximal_margin": ["margin 1 / ||w|| = 1.500000"],
    "smo_step_by_step": ["by hand [0.4 0.4]", "the objective never fell: True"],
    "decision_trees": [
        "entropy of all days: 0.940",
        "gain of wind         0.048",
        "gain of temperature  0.029",
        "humidity: gain 0.971",
        "Pat    leaves 0.459 bits",
        "Type   leaves 1.000 bits",
    ],
    "impurity_and_gain": ["[ 1 50 50]: Gini index 0.5098", "'red': 0.375"],
    "adaboost": [
        "eps = 0.30, beta = 0.42",
        "eps = 0.21, beta = 0.65",
        "eps = 0.14, beta = 0.92",
        "weigh 0.500 together",
    ],
}


def test_tutorials_are_in_the_order_of_the_lectures() -> None:
    assert sorted(path.stem for path in GALLERY.glob("*.py")) == sorted(TUTORIALS)
    order = TutorialOrder("anywhere")
    assert order("perceptron.py") < order("adaboost.py") < order("comparing_models.py")


@pytest.mark.parametrize("name", TUTORIALS)
def test_links_of_tutorials(name) -> None:
    text = (GALLERY / f"{name}.py").read_text().replace("\n# ", " ")
    for target in re.findall(r":doc:`(?:[^`<]*<)?([^`>]+)>?`", text):
        assert target in TUTORIALS, target


@pytest.mark.parametrize(
    "name",
    [
        name if name in PRINTED else pytest.param(name, marks=pytest.mark.nightly)
        for name in TUTORIALS  # `make docs` runs them all
    ],
)
def test_tutorials_run(name, capsys) -> None:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    try:
        runpy.run_path(str(GALLERY / f"{name}.py"), run_name="__main__")
        assert plt.get_fignums()
    finally:
        plt.close("all")
    said = capsys.readouterr().out
    for words in PRINTED.get(name, []):
        assert words in said, words


@pytest.mark.parametrize(
    ("text", "suffix", "found"),
    [
        ('<script src="https://cdn.example/a.js"></script>', ".html", 1),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', ".html", 1),
        ('<link rel="canonical" href="https://example.org/">', ".html", 0),
        ('<a href="https://example.org/">read on</a><img src="a.png">', ".html", 0),
        ("<style>@import 'https://fonts.example/a.css';</style>", ".html", 1),
        ("a { background: url(https://example.org/a.png) }", ".css", 1),
        ("a { background: url(a.png) }", ".css", 0),
    ],
)
def test_what_pages_load_from_elsewhere_is_found(text, suffix, found) -> None:
    assert len(loaded_from_elsewhere(text, suffix)) == found


def test_docstrings_are_plain_text() -> None:
    given = [
        "ndarray of shape (n_estimators_,), |f(x)| and `coef_`, **coef_** : array",
        "",
        ">>> model.coef_ | 1",
        "array_",
        "",
        "Problem::",
        "",
        "    a_ | b",
        "after_ it",
    ]
    found = escaped(given)
    assert found[0] == (
        r"ndarray of shape (n_estimators\_,), \|f(x)\| and `coef_`, **coef_** : array"
    )
    assert found[1:8] == given[1:8]
    assert found[8] == r"after\_ it"
