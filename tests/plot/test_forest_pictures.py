"""Pictures of forests hold the numbers of the facts."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import margrove
from margrove import DecisionTreeClassifier, RandomForestClassifier, RandomForestRegressor
from margrove.datasets import load_iris
from margrove.facts import interval_coverage, proximity_plane
from margrove.plot import importances, oob_curve, prediction_intervals, proximity_map
from margrove.plot.drawing.canvas import class_style

mpl.use("Agg")

IRIS, CODES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "_versicolor", "$virginica$"])[CODES]
WIDTHS = IRIS[:, 3] + 0.1 * np.random.default_rng(0).standard_normal(150)
NAMES = ["sepal length", "sepal width", "petal length", "petal $width"]


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def of_classes():
    return RandomForestClassifier(60, oob_score=True, random_state=0).fit(IRIS, SPECIES)


@pytest.fixture(scope="module")
def of_numbers():
    forest = RandomForestRegressor(30, oob_score=True, min_samples_leaf=3, random_state=0)
    return forest.fit(IRIS[::2, :3], WIDTHS[::2])


def part(artists, gid):
    (found,) = [artist for artist in artists if artist.get_gid() == gid]
    return found


def parts(artists, gid):
    return [artist for artist in artists if artist.get_gid() == gid]


# -- the error as a forest grows -----------------------------------------------------------------


def test_the_curve_is_that_of_the_forest(of_classes) -> None:
    ax = oob_curve(of_classes)
    curve, last = part(ax.lines, "curve"), part(ax.lines, "last")
    assert np.array_equal(curve.get_xdata(), np.arange(1, 61))
    assert np.array_equal(curve.get_ydata(), of_classes.oob_curve_)
    assert (last.get_xdata(), last.get_ydata()) == ([60], [of_classes.oob_curve_[-1]])
    (text,) = ax.get_legend().get_texts()
    assert text.get_text() == f"60 trees: {of_classes.oob_curve_[-1]:.4g}"
    assert ax.get_xlabel() == "trees"
    assert ax.get_ylabel() == "out-of-bag error (share misclassified)"
    assert curve.get_marker() == "None"  # of so many trees


def test_a_short_curve_has_dots(of_numbers) -> None:
    ax = oob_curve(of_numbers, ax=Figure().subplots())
    assert part(ax.lines, "curve").get_marker() == "."
    assert ax.get_ylabel() == "out-of-bag error (mean squared error)"


def test_without_a_curve_nothing_is_drawn(of_classes) -> None:
    with pytest.raises(ValueError, match="Fit it with oob_score=True"):
        oob_curve(of_classes[:3])
    assert not plt.get_fignums()


# -- what matters --------------------------------------------------------------------------------


def test_bars_are_importances_by_name(of_classes) -> None:
    ax = importances(of_classes, feature_names=NAMES)
    bars = parts(ax.patches, "importance")
    order = np.argsort(-of_classes.feature_importances_)
    assert [bar.get_width() for bar in bars] == of_classes.feature_importances_[order].tolist()
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == [NAMES[j] for j in order]
    assert not any(label.get_parse_math() for label in labels)
    assert ax.yaxis_inverted()  # the most important on top
    assert ax.get_xlabel() == "decrease of the impurity, as a share"
    assert not parts(ax.collections, "interval")
    assert part(ax.lines, "zero").get_xdata() == [0.0, 0.0]
    assert ax.get_title() == ""


def test_studies_are_drawn_with_their_intervals(of_classes) -> None:
    study = margrove.oob_importances(of_classes, IRIS, SPECIES, random_state=0)
    ax = importances(study, n=3, ax=Figure().subplots())
    order = np.argsort(-study.mean)[:3]
    assert [bar.get_width() for bar in parts(ax.patches, "importance")] == study.mean[
        order
    ].tolist()
    segments = np.array(part(ax.collections, "interval").get_segments())
    assert np.array_equal(segments[:, 0, 0], study.low[order])
    assert np.array_equal(segments[:, 1, 0], study.high[order])
    assert np.array_equal(segments[:, 0, 1], [0, 1, 2])
    assert ax.get_xlabel().endswith("when permuted, with 95 % intervals")
    assert ax.get_title() == "the 3 most important of 4 features"


def test_trees_and_plain_numbers_are_drawn_too() -> None:
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS, SPECIES)
    ax = importances(tree, n=1, ax=Figure().subplots())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x2"]
    ax = importances([0.2, -0.1], ax=Figure().subplots())
    assert [bar.get_width() for bar in parts(ax.patches, "importance")] == [0.2, -0.1]


# -- rows in a plane -----------------------------------------------------------------------------


def test_rows_are_drawn_where_the_plane_has_them(of_classes) -> None:
    ax = proximity_map(of_classes, IRIS, SPECIES)
    plane = proximity_plane(of_classes, IRIS)
    drawn = parts(ax.collections, "data")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(of_classes.classes_)
    for code, (name, dots) in enumerate(zip(of_classes.classes_, drawn, strict=True)):
        assert np.array_equal(dots.get_offsets(), plane.points[name == SPECIES])
        assert dots.get_facecolor()[0] == pytest.approx(to_rgba(class_style(code)["color"]))
    assert ax.get_xlabel() == f"{100 * plane.shares[0]:.1f} % of the squared distances"
    assert ax.get_ylabel() == f"{100 * plane.shares[1]:.1f} % of the squared distances"
    assert proximity_map(of_classes, IRIS, SPECIES, legend=False).get_legend() is None


def test_targets_are_colours(of_numbers) -> None:
    ax = proximity_map(of_numbers, IRIS[:, :3], WIDTHS)
    assert np.array_equal(part(ax.collections, "data").get_array(), WIDTHS)
    assert ax.figure.axes[1].get_ylabel() == "target"
    bare = proximity_map(of_numbers, IRIS[:, :3], ax=Figure().subplots())
    assert part(bare.collections, "data").get_array() is None
    assert len(bare.figure.axes) == 1


# -- prediction intervals ------------------------------------------------------------------------


def test_intervals_and_targets_are_drawn_in_order(of_numbers) -> None:
    X, y = IRIS[1::2, :3], WIDTHS[1::2]
    ax = prediction_intervals(of_numbers, X, y, coverage=0.8)
    told = interval_coverage(of_numbers, X, y, coverage=0.8)
    band = part(ax.patches, "intervals").get_data()
    assert np.array_equal(band.values, told.high)
    assert np.array_equal(band.baseline, told.low)
    assert np.array_equal(band.edges, np.arange(76) - 0.5)
    assert np.array_equal(part(ax.lines, "prediction").get_ydata(), told.predictions)
    inside = part(ax.collections, "inside").get_offsets()
    outside = part(ax.collections, "outside").get_offsets()
    assert np.array_equal(inside[:, 1], told.truth[told.is_inside])
    assert np.array_equal(outside[:, 0], np.flatnonzero(~told.is_inside))
    share = len(inside) / (len(inside) + len(outside))
    assert ax.get_title() == f"{100 * share:.1f} % of 75 rows in their 80 % intervals"


def test_intervals_need_no_targets(of_numbers) -> None:
    ax = prediction_intervals(of_numbers, IRIS[:1, :3], method="conformal", ax=Figure().subplots())
    assert ax.get_title() == "90 % intervals of 1 row"
    assert not ax.collections
    low, high = of_numbers.predict_interval(IRIS[:1, :3], 0.9, method="conformal")[0]
    band = part(ax.patches, "intervals").get_data()
    assert (band.baseline[0], band.values[0]) == (low, high)


# -- where to draw -------------------------------------------------------------------------------


def test_axes_that_are_none_are_refused(of_classes) -> None:
    for draw in (oob_curve, importances):
        with pytest.raises(TypeError, match="ax must be one of matplotlib's Axes"):
            draw(of_classes, ax="here")


def test_matplotlib_is_imported_when_something_is_drawn() -> None:
    code = "import sys, margrove.plot.models.forests; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
