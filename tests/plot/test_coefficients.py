"""Bars are the weights that `strongest_features` tells, with their names, largest on top."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge

from margrove import SVC, LinearSVC, LinearSVR, Perceptron
from margrove.datasets import load_digits, load_iris, make_moons
from margrove.exceptions import InvalidDataError
from margrove.facts import strongest_features
from margrove.plot import coefficients
from margrove.plot.drawing.canvas import class_style

mpl.use("Agg")

IRIS, SPECIES = load_iris(return_X_y=True)
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
MOONS, SIDES = make_moons(80, noise=0.25, random_state=1, return_X_y=True)
DIGITS, FIGURES = load_digits(return_X_y=True)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def of_iris():
    return LinearSVC().fit(IRIS, SPECIES)


@pytest.fixture(scope="module")
def of_digits():
    return Perceptron(max_iter=3, tol=None).fit(DIGITS[:300], FIGURES[:300])


def bars(ax):
    return [patch for patch in ax.patches if patch.get_gid() in ("positive", "negative")]


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_bars_are_the_strongest_features(of_iris) -> None:
    axes = coefficients(of_iris, n=3, feature_names=NAMES)
    assert len(axes) == 3
    told = strongest_features(of_iris, 3, NAMES)
    for ax, machine in zip(axes, told, strict=True):
        drawn = bars(ax)
        assert [bar.get_width() for bar in drawn] == [f.weight for f in machine.features]
        assert names(ax) == [f.name for f in machine.features]
        assert ax.get_title() == machine.machine
        heights = [ax.transData.transform((0.0, bar.get_y()))[1] for bar in drawn]
        assert heights == sorted(heights, reverse=True)  # the largest on top
        (zero,) = [line for line in ax.lines if line.get_gid() == "zero"]
        assert list(zero.get_xdata()) == [0.0, 0.0]


def test_the_sign_has_its_colour_and_its_name(of_iris) -> None:
    seen = set()
    for ax in coefficients(of_iris):
        for bar in bars(ax):
            gid = "positive" if bar.get_width() > 0 else "negative"
            assert bar.get_gid() == gid
            code = 1 if gid == "positive" else 0
            assert bar.get_facecolor() == to_rgba(class_style(code)["color"])
            seen.add(gid)
    assert seen == {"positive", "negative"}


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVR(),
        SVC(kernel="linear"),
        Ridge(),
    ],
)
def test_one_machine_is_one_panel(model) -> None:
    model.fit(MOONS, SIDES)
    ax = Figure().subplots()
    assert coefficients(model, ax=ax).ax is ax
    assert len(bars(ax)) == 2
    (alone,) = coefficients(model).axes
    assert isinstance(alone, Axes)


def test_many_machines_are_cut_and_the_title_says_so(of_digits) -> None:
    axes = coefficients(of_digits)
    assert len(axes) == 9
    assert axes[0].figure.get_suptitle().startswith("the first 9 of 10 machines")
    assert len(axes[0].figure.axes) == 9
    chosen = coefficients(of_digits, machines=range(10))
    assert len(chosen) == 10
    assert chosen[0].figure.get_suptitle() == ""
    assert len(chosen[0].figure.axes) == 10


def test_machines_are_picked_by_class_name_or_number(of_iris, of_digits) -> None:
    axes = coefficients(of_iris, machines=["virginica", 0, "'versicolor' against the rest"])
    assert [ax.get_title() for ax in axes] == [
        "'virginica' against the rest",
        "'setosa' against the rest",
        "'versicolor' against the rest",
    ]
    assert coefficients(of_digits, machines=[np.int64(7)]).get_title() == "7 against the rest"
    shifted = Perceptron(max_iter=2, tol=None).fit(DIGITS[:300], FIGURES[:300] + 1)
    assert coefficients(shifted, machines=[3]).get_title() == "3 against the rest"  # the class
    assert coefficients(shifted, machines=[0]).get_title() == "1 against the rest"
    two = LinearSVC().fit(MOONS, np.where(SIDES == 1, "b", "a"))
    assert coefficients(two, machines=["b"]).get_title() == "'b' against 'a'"
    pairs = SVC(kernel="linear").fit(IRIS, SPECIES)
    assert coefficients(pairs, machines=[1]).get_title() == "'setosa' against 'virginica'"


@pytest.mark.parametrize("machines", [["rose"], [3], [-1], [1.5]])
def test_machines_that_are_not_there(of_iris, machines) -> None:
    with pytest.raises(ValueError, match=r"machines has .* 'setosa', .* number from 0 to 2"):
        coefficients(of_iris, machines=machines)


@pytest.mark.parametrize("machines", ["setosa", 1, []])
def test_machines_must_be_a_list(of_iris, machines) -> None:
    with pytest.raises(ValueError, match="machines must be a list"):
        coefficients(of_iris, machines=machines)


def test_axes_can_be_given_for_each_machine(of_iris) -> None:
    grid = Figure().subplots(1, 3)
    axes = coefficients(of_iris, ax=grid)
    assert list(axes) == list(grid)
    with pytest.raises(ValueError, match=r"each of the 3 machines to draw\. Got 1"):
        coefficients(of_iris, ax=grid[0])
    with pytest.raises(TypeError, match="ax must be one of matplotlib's Axes"):
        coefficients(of_iris, machines=[0], ax=Figure())


def test_a_refusal_opens_no_figure(of_iris) -> None:
    with pytest.raises(InvalidDataError, match="feature_names must have one name"):
        coefficients(of_iris, feature_names=["a"])
    with pytest.raises(ValueError, match="n must be"):
        coefficients(of_iris, n=0)
    with pytest.raises(TypeError, match="has none"):
        coefficients(SVC().fit(MOONS, SIDES))
    assert plt.get_fignums() == []


def test_names_are_no_mathematics(tmp_path) -> None:
    model = LinearSVC().fit(MOONS, np.where(SIDES == 1, "$a_$", "$b^$"))
    ax = coefficients(model, feature_names=["$x_$", "$100 to $200^"])
    ax.figure.savefig(tmp_path / "bars.png")
    assert set(names(ax)) == {"$x_$", "$100 to $200^"}


def test_a_machine_without_weights_says_so() -> None:
    model = LinearSVC(penalty="l1", C=1e-6).fit(MOONS, SIDES)
    assert not model.coef_.any()
    ax = coefficients(model)
    assert bars(ax) == []
    assert ax.get_xlabel() == "all weights are zero"
