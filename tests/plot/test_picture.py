"""Every function that draws returns a Picture: axes to go on drawing, and what is drawn as data."""

from __future__ import annotations

import copy
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import margrove
from margrove import plot
from margrove.datasets import make_circles, make_gaussians, make_moons, make_separable_clouds
from margrove.grove.read.conditions import shown
from margrove.plot.drawing.picture import Picture, grid_table, table

mpl.use("Agg")

# Names of columns and classes that matplotlib, or a terminal, could take for something else.
COLUMNS = ["$cost_$ \\frac{", "_hidden\nname"]
CLASSES = np.array(["_a $x^$", "b\n<i>_"])
WITHOUT_A_PICTURE = {"Picture", "tree_html", "tree_svg"}


def _hostile(X, y):
    return pd.DataFrame(X, columns=COLUMNS), CLASSES[(y == np.max(y)).astype(int)]


MOONS, SIDES = _hostile(*make_moons(60, noise=0.25, random_state=1, return_X_y=True))
CLOUDS, CAMPS = _hostile(*make_separable_clouds(30, return_X_y=True))
CIRCLES, RINGS = _hostile(*make_circles(60, noise=0.05, return_X_y=True))
GAUSSIANS = make_gaussians(60)
NUMBERS = np.sin(2 * MOONS.to_numpy()[:, 0]) + MOONS.to_numpy()[:, 1]
LABELS = pd.DataFrame({"$sky": ["clear", "_dark"] * 10, "wind\n": ["$a$", "b", "c", "d"] * 5})
ANSWERS = CLASSES[np.tile([0, 1, 1, 1], 5)]


@pytest.fixture(scope="module", autouse=True)
def _models():
    """Made once, when first wanted."""
    MODELS.clear()
    yield
    MODELS.clear()


MODELS: dict[str, object] = {}
MAKERS = {
    "svc": lambda: margrove.SVC().fit(MOONS, SIDES),
    "line": lambda: margrove.SVC(kernel="linear").fit(MOONS, SIDES),
    "tree": lambda: margrove.DecisionTreeClassifier(max_depth=3).fit(MOONS, SIDES),
    "steps": lambda: margrove.DecisionTreeRegressor(max_leaf_nodes=5).fit(MOONS, NUMBERS),
    "forest": lambda: margrove.RandomForestClassifier(30, oob_score=True, random_state=0).fit(
        MOONS, SIDES
    ),
    "numbers": lambda: margrove.RandomForestRegressor(30, oob_score=True, random_state=0).fit(
        MOONS, NUMBERS
    ),
    "bag": lambda: margrove.BaggingClassifier(n_estimators=5, random_state=0).fit(
        MOONS.to_numpy(), SIDES
    ),
    "boosted": lambda: margrove.AdaBoostClassifier(n_estimators=4).fit(MOONS, SIDES),
    "gradient": lambda: margrove.HistGradientBoostingRegressor(max_iter=5).fit(MOONS, NUMBERS),
    "one feature": lambda: margrove.HistGradientBoostingRegressor(max_iter=5).fit(
        MOONS[COLUMNS[:1]], NUMBERS
    ),
    "search": lambda: margrove.SVCCV(Cs=3, gammas=3, cv=3).fit(MOONS, SIDES),
    "path": lambda: margrove.svm_path(margrove.SVC(), MOONS, SIDES, Cs=4),
    "tuned": lambda: margrove.autotune(
        margrove.DecisionTreeClassifier(), MOONS, SIDES, random_state=0
    ),
    "compared": lambda: margrove.compare(
        {"$a_": margrove.DecisionTreeClassifier(max_depth=1), "_b": margrove.SVC()},
        MOONS,
        SIDES,
        cv=3,
        random_state=0,
    ),
    "reliable": lambda: margrove.reliability(model("forest"), MOONS, SIDES),
    "bootstrapped": lambda: margrove.bootstrap(
        NUMBERS, np.median, n_resamples=50, method="percentile", random_state=0
    ),
}


def model(name):
    if name not in MODELS:
        MODELS[name] = MAKERS[name]()
    return MODELS[name]


# The picture that a small call draws, and how many panels it has.
CALLS = {
    "bagged_boundaries": (
        lambda **own: plot.bagged_boundaries(
            model("bag"), MOONS, SIDES, n_members=3, resolution=20, **own
        ),
        1,
    ),
    "boosting": (lambda **own: plot.boosting(model("boosted"), **own), 1),
    "boosting_errors": (lambda **own: plot.boosting_errors(model("boosted"), **own), 1),
    "boosting_margins": (
        lambda **own: plot.boosting_margins(model("boosted"), MOONS, SIDES, **own),
        1,
    ),
    "boosting_rounds": (
        lambda **own: plot.boosting_rounds(model("boosted"), MOONS, SIDES, rounds=[1], **own),
        2,
    ),
    "bootstrap_histogram": (
        lambda **own: plot.bootstrap_histogram(model("bootstrapped"), name="$median_", **own),
        1,
    ),
    "circle_to_line": (lambda **own: plot.circle_to_line(CIRCLES, RINGS, **own), 2),
    "coefficients": (lambda **own: plot.coefficients(model("line"), **own), 1),
    "compared_models": (lambda **own: plot.compared_models(model("compared"), **own), 1),
    "confusion_matrix": (
        lambda **own: plot.confusion_matrix(model("forest"), MOONS, SIDES, **own),
        1,
    ),
    "coordinate_ascent": (plot.coordinate_ascent, 1),
    "decision_boundary": (
        lambda **own: plot.decision_boundary(model("svc"), MOONS, SIDES, resolution=20, **own),
        1,
    ),
    "distances": (lambda **own: plot.distances(model("line"), MOONS, SIDES, **own), 1),
    "effect_of_c_and_gamma": (
        lambda **own: plot.effect_of_c_and_gamma(
            MOONS, SIDES, settings=[(1.0, 1.0), (10.0, None)], resolution=20, **own
        ),
        2,
    ),
    "error_against_size": (
        lambda **own: plot.error_against_size(
            model("tree"), MOONS, SIDES, MOONS[::2], SIDES[::2], **own
        ),
        1,
    ),
    "gain_against_threshold": (
        lambda **own: plot.gain_against_threshold(MOONS, SIDES, **own),
        1,
    ),
    "gradient_importances": (lambda **own: plot.gradient_importances(model("gradient"), **own), 1),
    "gradient_stages": (
        lambda **own: plot.gradient_stages(
            model("one feature"), MOONS[COLUMNS[:1]], NUMBERS, rounds=[1, 5], **own
        ),
        2,
    ),
    "gradient_tree": (lambda **own: plot.gradient_tree(model("gradient"), **own), 1),
    "hulls": (lambda **own: plot.hulls(CLOUDS, CAMPS, **own), 1),
    "importances": (lambda **own: plot.importances(model("forest"), **own), 1),
    "impurity_curves": (plot.impurity_curves, 1),
    "loss_curve": (lambda **own: plot.loss_curve(model("gradient"), **own), 1),
    "loss_functions": (plot.loss_functions, 1),
    "margin_distribution": (
        lambda **own: plot.margin_distribution(model("svc"), MOONS, SIDES, **own),
        1,
    ),
    "member_votes": (
        lambda **own: plot.member_votes(model("forest"), MOONS.to_numpy()[0], **own),
        1,
    ),
    "multipliers": (lambda **own: plot.multipliers(model("svc"), MOONS, SIDES, **own), 1),
    "oob_curve": (lambda **own: plot.oob_curve(model("forest"), **own), 1),
    "partial_dependence": (
        lambda **own: plot.partial_dependence(model("forest"), MOONS, [0, 1], n_grid=4, **own),
        2,
    ),
    "perceptron_steps": (
        lambda **own: plot.perceptron_steps(MOONS, SIDES, steps=[1, 2], **own),
        2,
    ),
    "precision_recall_curve": (
        lambda **own: plot.precision_recall_curve(model("forest"), MOONS, SIDES, **own),
        1,
    ),
    "prediction_intervals": (
        lambda **own: plot.prediction_intervals(model("numbers"), MOONS, NUMBERS, **own),
        1,
    ),
    "proximity_map": (lambda **own: plot.proximity_map(model("forest"), MOONS, SIDES, **own), 1),
    "regions": (lambda **own: plot.regions(model("tree"), MOONS, SIDES, **own), 1),
    "regression_blocks": (
        lambda **own: plot.regression_blocks(model("steps"), MOONS, NUMBERS, **own),
        1,
    ),
    "regression_surface": (
        lambda **own: plot.regression_surface(model("steps"), MOONS, NUMBERS, **own),
        1,
    ),
    "reliability_diagram": (lambda **own: plot.reliability_diagram(model("reliable"), **own), 1),
    "residuals": (lambda **own: plot.residuals(model("numbers"), MOONS, NUMBERS, **own), 1),
    "roc_curve": (lambda **own: plot.roc_curve(model("forest"), MOONS, SIDES, **own), 1),
    "score_map": (lambda **own: plot.score_map(model("search"), **own), 1),
    "separating_lines": (
        lambda **own: plot.separating_lines(CLOUDS, CAMPS, n_lines=3, **own),
        1,
    ),
    "slacks": (lambda **own: plot.slacks(model("line"), MOONS, SIDES, **own), 1),
    "smo_box": (lambda **own: plot.smo_box(MOONS, SIDES, **own), 2),
    "split_children": (lambda **own: plot.split_children(LABELS, ANSWERS, **own), 2),
    "support_vectors": (lambda **own: plot.support_vectors(model("svc"), **own), 1),
    "svm_and_bayes": (
        lambda **own: plot.svm_and_bayes(
            pd.DataFrame(GAUSSIANS.data, columns=COLUMNS),
            CLASSES[GAUSSIANS.target],
            GAUSSIANS.bayes_decision,
            resolution=20,
            **own,
        ),
        1,
    ),
    "svm_path": (lambda **own: plot.svm_path(model("path"), **own), 3),
    "tree": (lambda **own: plot.tree(model("tree"), **own), 1),
    "tree_growth": (lambda **own: plot.tree_growth(MOONS, SIDES, leaves=[2, 3], **own), 2),
    "tuning_curve": (lambda **own: plot.tuning_curve(model("tuned"), **own), 1),
    "worst_mistakes": (lambda **own: plot.worst_mistakes(model("tree"), MOONS, SIDES, **own), 1),
}
TAKES_AXES = {
    "boosting_rounds",
    "circle_to_line",
    "effect_of_c_and_gamma",
    "gradient_stages",
    "partial_dependence",
    "perceptron_steps",
    "smo_box",
    "split_children",
    "svm_path",
    "tree_growth",
}


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


def test_every_public_function_is_here() -> None:
    assert set(CALLS) == set(plot.__all__) - WITHOUT_A_PICTURE


@pytest.mark.parametrize("name", sorted(CALLS))
def test_given_axes_are_drawn_on_and_the_data_can_be_had(name, tmp_path) -> None:
    draw, n_panels = CALLS[name]
    figure = Figure(figsize=(4.0 * n_panels, 4.0))
    in_space = {"projection": "3d"} if name == "regression_blocks" else {}
    axes = figure.subplots(1, n_panels, squeeze=False, subplot_kw=in_space)[0].tolist()
    picture = draw(**({"axes": axes} if name in TAKES_AXES else {"ax": axes[0]}))
    assert isinstance(picture, Picture)
    assert list(picture.axes) == axes
    assert picture.ax is axes[0]
    assert picture.figure is figure
    assert plt.get_fignums() == []  # no other figure was opened
    frame = picture.frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) > 0
    assert all(isinstance(column, str) for column in frame.columns)
    figure.savefig(tmp_path / "picture.png", dpi=40)  # names are no mathematics


@pytest.mark.parametrize("name", sorted(CALLS))
def test_without_axes_a_figure_is_made(name) -> None:
    draw, n_panels = CALLS[name]
    picture = draw()
    assert len(picture) == n_panels
    assert [picture.figure.number] == plt.get_fignums()
    assert all(isinstance(panel, Axes) for panel in picture)
    assert all(panel.figure is picture.figure for panel in picture)


@pytest.mark.parametrize("name", sorted(set(CALLS) - TAKES_AXES - {"regression_blocks"}))
def test_a_picture_can_be_drawn_on_and_other_things_cannot(name) -> None:
    draw, _ = CALLS[name]
    if name != "coefficients":  # which takes many
        with pytest.raises(TypeError, match="must be one of matplotlib's Axes"):
            draw(ax=Figure())
    ground = plot.impurity_curves(ax=Figure().subplots())
    assert draw(ax=ground).ax is ground.ax


@pytest.mark.parametrize("name", sorted(TAKES_AXES))
def test_as_many_axes_as_panels(name) -> None:
    draw, n_panels = CALLS[name]
    with pytest.raises(ValueError, match=f"axes must be {n_panels}"):
        draw(axes=Figure().subplots(1, n_panels + 1))
    ground = Picture(tuple(Figure().subplots(1, n_panels)), {})
    assert draw(axes=ground).axes == ground.axes


# -- what a picture is ---------------------------------------------------------------------------


def test_one_panel_has_what_its_axes_have() -> None:
    picture = plot.impurity_curves(ax=Figure().subplots())
    assert picture.get_ylabel() == "impurity"
    picture.set_title("three measures")
    assert picture.ax.get_title() == "three measures"
    assert repr(picture).startswith("<Picture of 1 panel")
    with pytest.raises(AttributeError, match="nonsense"):
        picture.nonsense  # noqa: B018


def test_several_panels_are_a_sequence() -> None:
    picture = plot.svm_path(model("path"), axes=Figure().subplots(3))
    assert len(picture) == 3
    assert picture[0] is picture.axes[0]
    assert list(picture[1:]) == list(picture.axes[1:])
    assert [panel.get_xlabel() for panel in picture] == ["C"] * 3
    with pytest.raises(AttributeError, match=r"3 panels.*picture\.axes\[0\]\.get_title"):
        picture.get_title()
    assert "3 panels" in repr(picture)


def test_pictures_can_be_copied() -> None:
    picture = plot.impurity_curves(ax=Figure().subplots())
    assert copy.copy(picture).ax is picture.ax


def test_pictures_do_not_change() -> None:
    picture = plot.impurity_curves(ax=Figure().subplots())
    with pytest.raises(AttributeError):
        picture.data = {}


def test_columns_of_tables() -> None:
    columns = table(first=[1, 2, 3], second=None, third=np.array([1.0]))
    assert list(columns) == ["first", "third"]
    assert np.array_equal(columns["third"], [1.0, np.nan, np.nan], equal_nan=True)
    grid = grid_table(np.array([0.0, 1.0, 2.0]), np.array([5.0, 6.0]), f=np.arange(6).reshape(2, 3))
    assert grid["x"].tolist() == [0, 1, 2, 0, 1, 2]
    assert grid["y"].tolist() == [5, 5, 5, 6, 6, 6]
    assert grid["f"].tolist() == list(range(6))


# -- data of pictures that facts have no frame for -----------------------------------------------


def test_the_grid_of_a_boundary_is_what_the_model_says() -> None:
    picture = CALLS["decision_boundary"][0](ax=Figure().subplots())
    frame = picture.frame()
    rows = frame[["x", "y"]].set_axis(COLUMNS, axis=1)
    assert frame["value"].to_numpy() == pytest.approx(model("svc").decision_function(rows))
    assert frame["region"].tolist() == model("svc").predict(rows).tolist()


def test_the_nodes_of_a_tree() -> None:
    frame = CALLS["tree"][0](ax=Figure().subplots()).frame()
    tree = margrove.read_tree(model("tree"))
    assert frame["node"].tolist() == [node.number for node in tree.nodes]
    assert np.isnan(frame["parent"][0])
    assert frame["samples"][0] == 60
    assert (frame["question"] == "").sum() == model("tree").get_n_leaves()


def test_the_regions_of_a_tree_hold_its_rows() -> None:
    frame = CALLS["regions"][0](ax=Figure().subplots()).frame()
    x, y = MOONS.to_numpy()[0]
    inside = frame[
        (frame.low_x < x) & (x <= frame.high_x) & (frame.low_y < y) & (y <= frame.high_y)
    ]
    assert inside["prediction"].tolist() == [shown(model("tree").predict(MOONS[:1])[0])]


def test_rounds_and_errors_of_boosting() -> None:
    errors = CALLS["boosting_errors"][0](ax=Figure().subplots()).frame()
    assert errors["round"].tolist() == [1, 2, 3, 4]
    assert (errors["training"] <= errors["bound"] + 1e-12).all()
    rounds = CALLS["boosting_rounds"][0](axes=Figure().subplots(1, 2)).frame()
    first = rounds[rounds["round"] == 1]
    assert first["weight"].sum() == pytest.approx(1.0)
    assert len(rounds) == 2 * len(MOONS)


def test_scores_over_a_grid() -> None:
    search = model("search")
    frame = CALLS["score_map"][0](ax=Figure().subplots()).frame()
    best = frame.loc[frame["score"].idxmax()]
    assert best["score"] == pytest.approx(search.best_score_)
    assert len(frame) == 9
    line = margrove.LinearSVCCV(Cs=3, cv=3).fit(MOONS, SIDES)
    assert "gamma" not in plot.score_map(line, ax=Figure().subplots()).frame()


def test_names_in_legends_are_as_they_are_given() -> None:
    picture = CALLS["decision_boundary"][0](ax=Figure().subplots())
    texts = picture.get_legend().get_texts()
    assert {text.get_text() for text in texts} >= set(CLASSES.tolist())
    assert not any(text.get_parse_math() for text in texts)
    assert not picture.xaxis.label.get_parse_math()


def test_no_picture_needs_pyplot_when_axes_are_given() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS["hulls"][0](ax=Figure().subplots())
    assert plt.get_fignums() == []
