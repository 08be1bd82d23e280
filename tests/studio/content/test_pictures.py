"""Pictures say what the models say, point by point and cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studio.content.scene_cases import CLASSIFIERS, GRID, given, require_sendable, scene

import margrove
from margrove.studio.content.scenes import StudioError, scene_from
from margrove.studio.pictures import (
    cells_of,
    curve_from_values,
    fitted,
    picture_of,
    plane_from_values,
    plane_of,
)

MARGINS = ("SVC", "NuSVC", "LinearSVC")


def grid_of(told):
    return told["values"].reshape(told["shape"])


# -- surfaces --------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["moons", "iris_ratios", "four_clouds"])
@pytest.mark.parametrize("surface", ["score", "probability"])
@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_cells_get_the_class_that_the_model_predicts(learner, surface, preset) -> None:
    own = scene(preset, learner, size=40, noise=0.3)
    picture = picture_of(own, GRID, surface)
    require_sendable(picture)
    plane = picture["plane"]
    model = fitted(own, probability=surface == "probability").model
    predicted = model.predict(cells_of(own.view, GRID).points)
    assert np.array_equal(grid_of(plane["winner"]).ravel(), predicted)
    assert plane["classes"] == np.unique(own.y).tolist()
    assert plane["surface"]["shape"] == GRID
    values = grid_of(plane["surface"])
    assert np.isfinite(values).all()
    if plane["kind"] == "score":
        assert plane["low"] == -plane["high"] < 0
        assert np.array_equal(values > 0, grid_of(plane["winner"]) == plane["classes"][1])
    else:
        assert (plane["low"], plane["high"]) == (0, 1)
        assert 0 <= values.min() <= values.max() <= 1
    assert (plane["kind"] == "confidence") == (preset != "moons")


def test_rows_go_from_the_bottom_up() -> None:
    told = given(learner="DecisionTreeClassifier", x=[[0, 0], [0, 1]], y=[0, 1])
    own = scene_from(told | {"view": {"x": [-1, 1], "y": [-1, 2]}})
    assert (
        grid_of(picture_of(own, [6, 2])["plane"]["winner"]).tolist() == [[0, 0]] * 3 + [[1, 1]] * 3
    )


@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_probabilities_where_there_are_some(learner) -> None:
    own = scene(learner=learner, size=40)
    kind = picture_of(own, GRID, "probability")["plane"]["kind"]
    has_none = learner in ("Perceptron", "KernelPerceptron", "LinearSVC")
    assert kind == ("score" if has_none else "probability")


def test_kernels_of_histograms_are_drawn_below_zero_as_at_zero() -> None:
    points = {"x": [[0.1, 0.2], [0.4, 0.9], [0.8, 0.3], [0.7, 0.7]], "y": [0, 1, 0, 1]}
    own = scene(parameters={"kernel": "chi2"}, view={"x": [-1, 1], "y": [-1, 1]}, **points)
    values = grid_of(picture_of(own, [8, 8])["plane"]["surface"])
    assert np.array_equal(values[:4], np.repeat(values[:1], 4, axis=0))
    assert not np.array_equal(values[4:], np.repeat(values[4:5], 4, axis=0))
    line = scene("sine", "SVR", {"kernel": "chi2"}, x=[[0.5], [1.0], [2.0]], y=[0.0, 1.0, 0.0])
    assert np.isfinite(picture_of(line, GRID)["curve"]["y"]).all()


@pytest.mark.parametrize("grid", [[1, 10], [10], "10", None, [10, 401], [10.5, 10], [True, 10]])
def test_grids_that_are_refused(grid) -> None:
    with pytest.raises(StudioError, match="rows, columns"):
        picture_of(scene(), grid)


def test_surfaces_that_are_refused() -> None:
    with pytest.raises(StudioError, match="score or probability"):
        picture_of(scene(), GRID, "depth")


# -- support vectors -------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", MARGINS)
def test_points_lie_where_their_kind_says(learner) -> None:
    own = scene("gaussians", learner, {"kernel": "linear"} if learner != "LinearSVC" else {},
                size=80, noise=0.8, test_share=0.2)  # fmt: skip
    plane = picture_of(own, GRID)["plane"]
    assert plane["hasMargins"]
    model = fitted(own).model
    signs = np.where(own.y == 1, 1.0, -1.0)
    beyond = 1.0 - signs * model.decision_function(own.x)  # > 0 inside the margin
    kind, alpha, slack = plane["supportKind"], plane["alpha"], plane["slack"]
    room = max(model.certificate_.violation, 1e-4)
    assert set(kind) >= {0, 2, 3}
    assert np.all(np.abs(beyond[kind == 1]) <= 2 * room)
    assert np.all((beyond[kind == 2] >= -room) & (beyond[kind == 2] <= 1 + room))
    assert np.all(beyond[kind == 3] >= 1 - room)
    assert np.array_equal(kind > 0, alpha > 0)
    train = ~own.is_test
    assert np.allclose(slack[train], np.maximum(beyond[train], 0.0), atol=1e-4)
    for given_to_test_points in (kind, alpha, slack):
        assert not given_to_test_points[own.is_test].any()


def test_alpha_is_the_dual_variable() -> None:
    own = scene("gaussians", "SVC", {"C": 2.0}, size=60, noise=0.8)
    alpha, model = picture_of(own, GRID)["plane"]["alpha"], fitted(own).model
    assert np.allclose(alpha[model.support_], np.abs(model.dual_coef_[0]))
    assert alpha.max() == pytest.approx(2.0)


def test_more_classes_have_kinds_but_no_slack() -> None:
    plane = picture_of(scene("iris_ratios", "SVC"), GRID)["plane"]
    assert plane["slack"] is None
    assert not plane["hasMargins"]
    assert set(plane["supportKind"]) >= {0, 2, 3}


@pytest.mark.parametrize("learner", ["DecisionTreeClassifier", "Perceptron", "AdaBoostClassifier"])
def test_others_have_no_support_vectors(learner) -> None:
    plane = picture_of(scene(learner=learner), GRID)["plane"]
    assert plane["alpha"] is plane["slack"] is plane["supportKind"] is None


def test_a_kernel_perceptron_keeps_points() -> None:
    own = scene(learner="KernelPerceptron")
    plane = picture_of(own, GRID)["plane"]
    assert plane["supportKind"] is None
    assert np.array_equal(np.flatnonzero(plane["alpha"]), np.unique(fitted(own).model.support_))


# -- hulls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [20, 400])
@pytest.mark.parametrize("learner", MARGINS)
def test_hulls_of_clouds_that_are_three_apart(learner, size) -> None:
    given_kernel = {} if learner == "LinearSVC" else {"kernel": "linear"}
    own = scene("separable_clouds", learner, given_kernel, size=size, noise=0)
    hulls = picture_of(own, GRID)["plane"]["hulls"]
    assert hulls["distance"] == pytest.approx(3.0, abs=1e-6)
    first, second = np.array(hulls["nearest"])
    assert np.linalg.norm(first - second) == pytest.approx(3.0, abs=1e-6)
    assert [len(corners) for corners in hulls["corners"]] == [4, 3]


def test_twice_the_margin_is_the_distance() -> None:
    own = scene("separable_clouds", "SVC", {"kernel": "linear", "C": None}, size=30, noise=0)
    picture = picture_of(own, GRID)
    width = 2.0 / np.linalg.norm(fitted(own).model.coef_)
    assert picture["plane"]["hulls"]["distance"] == pytest.approx(width, rel=1e-3)


@pytest.mark.parametrize(
    ("preset", "learner", "parameters"),
    [
        ("moons", "SVC", {"kernel": "linear"}),  # no line separates
        ("separable_clouds", "SVC", {"kernel": "rbf"}),
        ("separable_clouds", "DecisionTreeClassifier", {}),
        ("iris_ratios", "SVC", {"kernel": "linear"}),
    ],
)
def test_where_there_are_no_hulls(preset, learner, parameters) -> None:
    assert picture_of(scene(preset, learner, parameters), GRID)["plane"]["hulls"] is None


def test_hulls_of_classes_on_lines_and_of_single_points() -> None:
    points = [[float(k), 0.0] for k in range(60)] + [[0.0, 5.0]] * 60
    own = scene(parameters={"kernel": "linear"}, x=points, y=[0] * 60 + [1] * 60)
    hulls = picture_of(own, GRID)["plane"]["hulls"]
    assert hulls["distance"] == pytest.approx(5.0)


# -- trees and ensembles ---------------------------------------------------------------------------


def test_regions_fill_the_view_and_agree_with_the_tree() -> None:
    own = scene(learner="DecisionTreeClassifier", size=100)
    regions = picture_of(own, GRID)["plane"]["regions"]
    area = sum((r["x"][1] - r["x"][0]) * (r["y"][1] - r["y"][0]) for r in regions)
    (x0, x1), (y0, y1) = own.view.x, own.view.y
    assert area == pytest.approx((x1 - x0) * (y1 - y0))
    middles = [[sum(r["x"]) / 2, sum(r["y"]) / 2] for r in regions]
    assert fitted(own).model.predict(middles).tolist() == [r["class"] for r in regions]


def test_slanting_trees_have_no_rectangles() -> None:
    own = scene(learner="DecisionTreeClassifier", parameters={"splitter": "oblique"})
    assert picture_of(own, GRID)["plane"]["regions"] == []


@pytest.mark.parametrize(
    "learner",
    ["RandomForestClassifier", "ExtraTreesClassifier", "BaggingClassifier", "AdaBoostClassifier"],
)
def test_members_are_drawn_each(learner) -> None:
    # Classes 1 and 3, which members that were taught numbers of classes would call 0 and 1.
    told = given(learner=learner, parameters={"n_estimators": 15})
    own = scene_from(told | {"y": [1 + 2 * label for label in told["y"]]})
    members = picture_of(own, GRID)["plane"]["members"]
    assert members["shape"] == [12, *GRID]
    points = cells_of(own.view, GRID).points
    model = fitted(own).model
    found = grid_of(members)
    assert set(np.unique(found)) == {1, 3}
    first = np.asarray(model.estimators_[0].predict(points)).astype(int)
    first = first if set(first) <= {1, 3} else model.classes_[first]
    assert np.array_equal(found[0].ravel(), first)


@pytest.mark.parametrize("learner", ["SVC", "DecisionTreeClassifier", "GradientBoostingClassifier"])
def test_no_members_elsewhere(learner) -> None:
    assert picture_of(scene(learner=learner), GRID)["plane"]["members"] is None


def test_weights_of_boosting_are_one_on_average() -> None:
    own = scene("boosting_points", "AdaBoostClassifier", {"n_estimators": 3, "criterion": "error"})
    plane = picture_of(own, GRID)["plane"]
    assert plane["weight"].mean() == pytest.approx(1.0)
    assert plane["weight"].min() < 0.5
    assert plane["weight"].max() > 1.5
    assert picture_of(scene(), GRID)["plane"]["weight"] is None


# -- figures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_errors_are_those_of_the_model(learner) -> None:
    own = scene(learner=learner, size=80, test_share=0.3)
    figures = picture_of(own, GRID)["figures"]
    model = fitted(own).model
    assert figures["trainError"] == pytest.approx(1 - model.score(*own.training()))
    assert figures["testError"] == pytest.approx(1 - model.score(*own.testing()))
    assert figures["seconds"] >= 0
    assert figures["counts"]
    assert [line["good"] for line in figures["certificate"]] == sorted(
        line["good"] for line in figures["certificate"]
    )


def test_there_is_no_test_error_without_test_points() -> None:
    assert picture_of(scene(), GRID)["figures"]["testError"] is None


def test_a_machine_is_proved() -> None:
    own = scene()
    figures = picture_of(own, GRID)["figures"]
    lines = {line["name"]: line for line in figures["certificate"]}
    assert lines["duality gap"]["good"]
    counts = {own["name"]: own["value"] for own in figures["counts"]}
    n_wrong = round(figures["trainError"] * len(own.training_rows))
    right = counts["on the margin"] + counts["inside the margin"]
    assert counts["support vectors"] == right + n_wrong


def test_a_perceptron_that_fails_says_so_first() -> None:
    figures = picture_of(scene("xor", "Perceptron"), GRID)["figures"]
    assert figures["certificate"][0] == {
        "name": "separates the points", "value": "no", "good": False
    }  # fmt: skip


def test_warnings_of_the_fit_are_remarks() -> None:
    own = scene("moons", "SVC", size=40, x=[[k * 1e6, k % 3] for k in range(40)])
    remarks = picture_of(own, GRID)["figures"]["remarks"]
    assert all(isinstance(text, str) for text in remarks)


# -- numbers ---------------------------------------------------------------------------------------


def test_the_tube_of_a_machine() -> None:
    own = scene("sine", "SVR", {"epsilon": 0.3})
    curve = picture_of(own, GRID)["curve"]
    require_sendable(curve)
    assert np.allclose(curve["high"] - curve["y"], 0.3, atol=1e-5)
    outside = np.abs(curve["residual"]) > 0.3 + 2e-3
    assert np.array_equal(curve["supportKind"] == 3, outside)
    assert np.all(np.abs(np.abs(curve["residual"][curve["supportKind"] == 1]) - 0.3) < 2e-3)


def test_the_interval_of_a_forest_has_most_points_in_it() -> None:
    own = scene("sine", "RandomForestRegressor", size=100)
    curve = picture_of(own, GRID)["curve"]
    assert "90%" in curve["band"]
    assert np.all(curve["low"] <= curve["y"] + 1e-6)
    assert np.all(curve["y"] <= curve["high"] + 1e-6)
    assert curve["members"]["shape"] == [12, len(curve["x"])]


def test_residuals_are_of_all_points() -> None:
    own = scene("staircase", "DecisionTreeRegressor", {"max_depth": 2}, test_share=0.2)
    picture = picture_of(own, GRID)
    model = fitted(own).model
    assert np.allclose(picture["curve"]["residual"], own.y - model.predict(own.x), atol=1e-6)
    rms = np.sqrt(np.mean((own.training()[1] - model.predict(own.training()[0])) ** 2))
    assert picture["figures"]["trainError"] == pytest.approx(rms)
    assert picture["plane"] is None


# -- little to draw --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": [], "y": []}, "no points"),
        ({"x": [[0, 0]], "y": [0]}, "one class"),
        ({"x": [[0, 0], [1, 1]], "y": [2, 2]}, "one class"),
    ],
)
@pytest.mark.parametrize("learner", CLASSIFIERS)
def test_a_picture_says_what_is_missing(learner, changes, words) -> None:
    picture = picture_of(scene_from(given(learner=learner) | changes), GRID)
    require_sendable(picture)
    assert words in picture["figures"]["remarks"][0]
    assert picture["plane"] is picture["curve"] is None
    assert len(picture["isTest"]) == len(changes["y"])


def test_a_curve_needs_two_points() -> None:
    picture = picture_of(scene("sine", "SVR", x=[[1.0]], y=[0.0]), GRID)
    assert "two points" in picture["figures"]["remarks"][0]


@pytest.mark.parametrize("learner", CLASSIFIERS)
@pytest.mark.parametrize(
    "points",
    [
        {"x": [[1.0, 1.0]] * 6, "y": [0, 1] * 3},  # all equal, of both classes
        {"x": [[1e9, -1e9], [1e9, 1e9], [-1e9, 0]], "y": [0, 1, 0]},
        {"x": [[1e-12, 0], [0, 1e-12]], "y": [0, 1]},
        {"x": [[0, 0], [1, 1], [2, 2], [3, 3]], "y": [0, 1, 2, 3]},
    ],
    ids=["equal", "huge", "tiny", "one of each"],
)
def test_odd_points_give_a_picture_or_a_reason(learner, points) -> None:
    own = scene_from(given(learner=learner) | points)
    try:
        require_sendable(picture_of(own, GRID))
    except StudioError as error:
        assert len(str(error)) > 20  # noqa: PT017


def test_a_share_that_cannot_be_says_so() -> None:
    own = scene("moons", "NuSVC", {"nu": 0.9}, x=[[0, 0], [1, 0], [2, 0], [9, 9]], y=[0, 0, 0, 1])
    with pytest.raises(StudioError, match="nu"):
        picture_of(own, GRID)


def test_no_slack_where_no_line_separates() -> None:
    own = scene("moons", "SVC", {"C": None, "kernel": "linear"}, size=100, noise=0.4)
    with pytest.raises(StudioError, match="no hard margin"):
        picture_of(own, GRID)


# -- parts for others ------------------------------------------------------------------------------


def test_planes_of_states_on_the_way() -> None:
    own = scene()
    values = cells_of(own.view, GRID).points[:, 0].reshape(GRID)
    plane = plane_from_values(own, values)
    require_sendable(plane)
    assert np.array_equal(grid_of(plane["winner"]), values > 0)
    labels = np.full(GRID, 2)
    assert set(plane_from_values(own, labels=labels, classes=(0, 1, 2))["winner"]["values"]) == {2}
    with pytest.raises(TypeError, match="values, or labels"):
        plane_from_values(own)


def test_a_part_of_a_forest_is_drawn_like_a_whole() -> None:
    own = scene(learner="RandomForestClassifier", parameters={"n_estimators": 20})
    forest = fitted(own).model
    plane = plane_of(forest[:3], own, GRID, support=False, members=False)
    assert np.array_equal(
        plane["winner"]["values"], forest[:3].predict(cells_of(own.view, GRID).points)
    )


def test_curves_of_states_on_the_way() -> None:
    own = scene("sine", "GradientBoostingRegressor")
    x = np.linspace(*own.view.x, 50)
    curve = curve_from_values(own, x, 2.0 * x)
    assert np.allclose(curve["residual"], own.y - 2.0 * own.x[:, 0], atol=1e-5)


def test_a_fit_is_remembered() -> None:
    own = scene(size=50)
    again = scene(size=50, view={"x": [0, 1], "y": [0, 1]})
    assert fitted(own) is fitted(again)  # another view asks for no other model
    assert fitted(own) is not fitted(scene(size=50, parameters={"C": 2.0}))
    assert isinstance(fitted(own).model, margrove.SVC)
