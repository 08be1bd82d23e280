"""Pictures of the lectures: what is drawn is where the facts say it is."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import margrove
from margrove import SVC, plot
from margrove.datasets import (
    load_iris_ratios,
    load_play_tennis,
    make_circles,
    make_gaussians,
    make_moons,
    make_separable_clouds,
    make_xor,
)
from margrove.exceptions import InvalidDataError, NotSeparableError

mpl.use("Agg")

CLOUDS, CAMPS = make_separable_clouds(40, return_X_y=True)
OVERLAPPING, SIDES = make_gaussians(40, random_state=1, return_X_y=True)
MOONS, HORNS = make_moons(60, noise=0.25, random_state=1, return_X_y=True)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


def parts(artists, gid):
    return [artist for artist in artists if artist.get_gid() == gid]


def part(artists, gid):
    (found,) = parts(artists, gid)
    return found


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def on_line(line):
    """Two points of a line from edge to edge."""
    start, end = line.get_xy1(), line.get_xy2()
    return np.array([start, end])


# -- losses --------------------------------------------------------------------------------------


def test_losses_are_told_apart_by_more_than_colour() -> None:
    picture = plot.loss_functions(ax=Figure().subplots())
    names = ["zero_one", "perceptron", "hinge", "squared_hinge", "logistic", "exponential"]
    lines = [part(picture.lines, name) for name in names]
    frame = picture.frame()
    for line, name in zip(lines, names, strict=True):
        assert np.array_equal(line.get_ydata(), frame[name])
    looks = {(line.get_color(), str(line.get_linestyle())) for line in lines}
    assert len(looks) == 6
    assert all(line.get_linewidth() >= 2 for line in lines)
    assert texts(picture)[:2] == ["0-1", "perceptron"]
    residual = plot.loss_functions(["squared", "absolute"], ax=Figure().subplots())
    assert residual.get_xlabel() == "residual  y - f(x)"


# -- perceptrons ---------------------------------------------------------------------------------


def test_arrows_add_up_and_lines_are_boundaries() -> None:
    picture = plot.perceptron_steps(OVERLAPPING, SIDES, steps=[2, 3])
    told = picture.data
    for panel, number in zip(picture, (2, 3), strict=True):
        before, added, after = (
            part(panel.collections, gid) for gid in ("before", "added", "after")
        )
        along = [np.array([own.U[0], own.V[0]]) for own in (before, added, after)]
        assert along[0] + along[1] == pytest.approx(along[2])
        scale = np.linalg.norm(along[2]) / np.linalg.norm(told.weights[number])
        assert along[2] == pytest.approx(scale * told.weights[number])
        assert along[0] == pytest.approx(scale * told.weights[number - 1])
        for gid, k in (("line before", number - 1), ("line after", number)):
            points = on_line(part(panel.lines, gid))
            assert points @ told.weights[k] + told.intercepts[k] == pytest.approx(0.0, abs=1e-9)
        mark = part(panel.collections, "mistake").get_offsets()[0]
        assert np.asarray(mark) == pytest.approx(OVERLAPPING[told.mistaken[number - 1]])
        assert panel.get_aspect() == 1.0  # angles are right
    assert texts(picture[-1])[-1] == "mistake"


def test_steps_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="steps must be numbers from 1 to"):
        plot.perceptron_steps(CLOUDS, CAMPS, steps=[0])
    with pytest.raises(ValueError, match="Got none"):
        plot.perceptron_steps(CLOUDS, CAMPS, steps=[])
    assert plt.get_fignums() == []


# -- hulls, lines, slacks ------------------------------------------------------------------------


def test_the_line_cuts_the_middle_of_the_shortest_segment() -> None:
    picture = plot.hulls(CLOUDS, CAMPS, ax=Figure().subplots())
    told = picture.data
    assert len(parts(picture.patches, "hull")) == 2
    ends = part(picture.lines, "shortest").get_xydata()
    assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(3.0)
    boundary = on_line(part(picture.lines, "boundary"))
    assert boundary @ told.weights + told.intercept == pytest.approx(0.0, abs=1e-9)
    assert (boundary[1] - boundary[0]) @ (ends[1] - ends[0]) == pytest.approx(0.0, abs=1e-6)
    sides = {round(float((on_line(own) @ told.weights + told.intercept)[0]), 6)
             for own in parts(picture.lines, "margins")}  # fmt: skip
    assert sides == {-1.0, 1.0}
    assert picture.get_aspect() == 1.0
    frame = picture.frame()
    nearest = frame[frame["part"] == "nearest"][["x", "y"]].to_numpy()
    assert np.asarray(part(picture.collections, "nearest").get_offsets()) == pytest.approx(nearest)


def test_hulls_that_meet_are_not_drawn() -> None:
    with pytest.raises(NotSeparableError):
        plot.hulls(*make_xor(40, return_X_y=True))
    assert plt.get_fignums() == []


def test_thin_lines_separate_too() -> None:
    picture = plot.separating_lines(CLOUDS, CAMPS, n_lines=6, ax=Figure().subplots())
    assert len(parts(picture.lines, "line")) == 6
    assert len(parts(picture.lines, "margins")) == 2
    assert texts(picture)[-1] == "largest margin, 1.5"


def test_segments_join_rows_to_line_and_margins() -> None:
    model = SVC(kernel="linear").fit(OVERLAPPING, SIDES)
    picture = plot.distances(model, OVERLAPPING, SIDES, ax=Figure().subplots())
    segments = np.array(part(picture.collections, "distances").get_segments())
    assert segments[:, 0] == pytest.approx(OVERLAPPING)
    assert model.decision_function(segments[:, 1]) == pytest.approx(0.0, abs=1e-9)
    normal = part(picture.collections, "normal")
    length = np.hypot(normal.U[0], normal.V[0])
    assert length == pytest.approx(1 / np.linalg.norm(model.coef_))

    picture = plot.slacks(model, OVERLAPPING, SIDES, ax=Figure().subplots())
    segments = np.array(part(picture.collections, "slacks").get_segments())
    frame = picture.frame()
    late = frame["slack"] > 0
    assert segments[:, 0] == pytest.approx(OVERLAPPING[late])
    f = model.decision_function(segments[:, 1])
    assert f == pytest.approx(np.where(SIDES[late] == 1, 1.0, -1.0))
    numbers = [text.get_text() for text in picture.texts if text.get_gid() == "value"]
    assert numbers == [f"{xi:.2f}" for xi in frame["slack"] if xi >= 0.01]


# -- the dual ------------------------------------------------------------------------------------


def test_the_box_and_what_is_in_it() -> None:
    picture = plot.smo_box(OVERLAPPING, SIDES)
    boxes = [box for box in picture.data.boxes if not box.is_clipped][:1]
    number = int(picture[1].get_title().split()[1].rstrip(":"))
    boxes.append(picture.data.boxes[number - 1])
    assert len(picture) == 2
    assert boxes[1].is_clipped
    for panel, box in zip(picture, boxes, strict=True):
        frame = part(panel.patches, "box")
        assert (frame.get_width(), frame.get_height()) == box.bounds
        ends = part(panel.lines, "ends").get_xydata()
        assert ends[:, 1] == pytest.approx([box.low, box.high])
        y1, y2 = box.signs
        assert y1 * ends[:, 0] + y2 * ends[:, 1] == pytest.approx(box.before @ [y1, y2])
        assert part(panel.lines, "before").get_xydata()[0] == pytest.approx(box.before)
        assert part(panel.lines, "after").get_xydata()[0] == pytest.approx(box.after)
    clipped = part(picture[1].lines, "after").get_xydata()[0]
    box = boxes[1]
    assert clipped[1] == pytest.approx(np.clip(box.unclipped, box.low, box.high), abs=1e-6)


def test_steps_of_smo_are_chosen_by_number() -> None:
    picture = plot.smo_box(OVERLAPPING, SIDES, steps=[1, 2, 3])
    assert [panel.get_title().split(":")[0] for panel in picture] == ["step 1", "step 2", "step 3"]
    for steps, message in (([0], "from 1 to"), ([10**6], "from 1 to"), ([], "Got none")):
        with pytest.raises(ValueError, match=message):
            plot.smo_box(OVERLAPPING, SIDES, steps=steps)


def test_a_way_along_the_axes() -> None:
    picture = plot.coordinate_ascent(ax=Figure().subplots())
    path = part(picture.lines, "path").get_xydata()
    assert np.array_equal(path, picture.data.path)
    assert part(picture.lines, "end").get_xydata()[0] == pytest.approx([0.6, 0.4], abs=0.01)


def test_rows_lie_on_the_kkt_conditions() -> None:
    model = SVC(C=2.0, tol=1e-6).fit(MOONS, HORNS)
    picture = plot.multipliers(model, MOONS, HORNS, ax=Figure().subplots())
    drawn = np.vstack([own.get_offsets() for own in parts(picture.collections, "rows")])
    assert len(drawn) == len(MOONS)
    corners = part(picture.lines, "conditions").get_xydata()
    assert corners[1:3].tolist() == [[1.0, 2.0], [1.0, 0.0]]
    assert sum(int(text.split("(")[1][:-1]) for text in texts(picture)[1:]) == len(MOONS)


# -- machines ------------------------------------------------------------------------------------


def test_the_boundary_is_a_circle_before_and_a_line_after() -> None:
    X, y = make_circles(100, noise=0.05, return_X_y=True)
    picture = plot.circle_to_line(X, y)
    told = picture.data
    before, after = picture
    outline = part(before.collections, "boundary").get_paths()[0].vertices
    f = outline**2 @ told.weights + told.intercept
    assert f == pytest.approx(0.0, abs=1e-2 * np.abs(told.frame()["f"]).max())
    straight = on_line(part(after.lines, "boundary"))
    assert straight @ told.weights + told.intercept == pytest.approx(0.0, abs=1e-9)
    squares = np.vstack([own.get_offsets() for own in parts(after.collections, "data")])
    assert sorted(map(tuple, squares)) == sorted(map(tuple, X**2))
    with pytest.raises(ValueError, match="belong together"):
        plot.circle_to_line(X)


def test_panels_say_what_differs() -> None:
    picture = plot.effect_of_c_and_gamma(
        MOONS, HORNS, settings=[(1.0, 0.5), (10_000.0, None)], resolution=20
    )
    told = picture.data.n_support
    assert [panel.get_title() for panel in picture] == [
        f"C = 1, gamma = 0.5\n{told[0]} support vectors",
        f"C = 10000, linear\n{told[1]} support vectors",
    ]
    marked = sum(len(own.get_offsets()) for own in parts(picture[0].collections, "support"))
    assert marked == told[0]


def test_all_settings_of_the_lectures_are_drawn() -> None:
    picture = plot.effect_of_c_and_gamma(resolution=10)
    assert len(picture) == 8
    frame = picture.frame()
    assert set(frame["gamma"]) == {0.01, 1.0, 10.0, 100.0, 500.0, 10_000.0}
    assert set(frame["C"]) == {1.0, 2.0, 10.0, 10_000.0}


def test_both_boundaries_are_drawn() -> None:
    picture = plot.svm_and_bayes(resolution=30, ax=Figure().subplots())
    assert parts(picture.collections, "boundary")
    assert parts(picture.collections, "bayes")
    support = part(picture.collections, "support").get_offsets()
    assert len(support) == len(picture.data.model.support_)
    assert texts(picture)[-1] == f"Bayes, test error {picture.data.bayes_error:.3f}"


# -- ensembles -----------------------------------------------------------------------------------


def test_thin_members_and_a_bold_vote() -> None:
    forest = margrove.RandomForestClassifier(12, random_state=0).fit(MOONS, HORNS)
    picture = plot.bagged_boundaries(
        forest, MOONS, HORNS, n_members=5, resolution=30, ax=Figure().subplots()
    )
    members = parts(picture.collections, "member")
    assert len(members) == 5
    (vote,) = parts(picture.collections, "vote")
    assert np.max(vote.get_linewidth()) > 2 * max(np.max(own.get_linewidth()) for own in members)
    assert texts(picture)[-2:] == ["5 members", "vote of all 12"]


def test_bars_of_members_and_their_average() -> None:
    forest = margrove.RandomForestClassifier(9, max_depth=2, random_state=0).fit(MOONS, HORNS)
    picture = plot.member_votes(forest, MOONS[1], label=1, ax=Figure().subplots())
    frame = picture.frame()
    heights = {bar.get_x(): bar.get_height() for bar in parts(picture.patches, "member")}
    drawn = [heights[x] for x in sorted(heights)]
    assert drawn == pytest.approx(frame["probability"].tolist())
    mean = part(picture.lines, "average").get_ydata()[0]
    assert mean == pytest.approx(forest.predict_proba(MOONS[1:2])[0, 1])
    assert picture.get_title() == f"{int(frame['says_so'].sum())} of 9 votes"


def test_the_histogram_of_a_median() -> None:
    sample = np.random.default_rng(1).exponential(size=40)
    result = margrove.bootstrap(sample, np.median, n_resamples=200, random_state=0)
    picture = plot.bootstrap_histogram(result, bins=10, name="median", ax=Figure().subplots())
    counts, edges, _ = part(picture.patches, "resamples").get_data()
    assert counts.sum() == 200
    assert np.array_equal(edges[:-1], picture.frame()["low"])
    assert part(picture.lines, "estimate").get_xdata()[0] == np.median(sample)
    assert picture.get_xlabel() == "median"


# -- trees ---------------------------------------------------------------------------------------


def test_children_of_tennis() -> None:
    X, y = load_play_tennis(return_X_y=True, as_frame=True)
    picture = plot.split_children(X, y)
    assert len(picture) == 4
    frame = picture.frame()
    assert frame.groupby("feature")["rows"].sum().tolist() == [14] * 4
    bars = parts(picture[0].patches, "children")
    assert sum(bar.get_width() for bar in bars) == 14
    numbers = [text.get_text() for text in picture[0].texts]
    assert numbers == ["0.00", "0.97", "0.97"]  # overcast, rain, sunny


def test_regions_grow_in_number() -> None:
    X, y = load_iris_ratios(return_X_y=True)
    picture = plot.tree_growth(X, y, leaves=[2, 4])
    for panel, n_leaves in zip(picture, (2, 4), strict=True):
        assert len(part(panel.collections, "regions").get_paths()) == n_leaves
    assert picture[0].get_title().startswith("2 leaves: error ")


def test_blocks_are_as_high_as_predictions() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((80, 2))
    y = (X[:, 0] > 0.5) * 2.0 + (X[:, 1] > 0.5)
    model = margrove.DecisionTreeRegressor(max_leaf_nodes=4).fit(X, y)
    picture = plot.regression_blocks(model, X, y)
    assert sorted(picture.frame()["prediction"]) == [0.0, 1.0, 2.0, 3.0]
    assert picture.get_zlabel() == "prediction"
    with pytest.raises(TypeError, match="three-dimensional"):
        plot.regression_blocks(model, X, ax=Figure().subplots())
    with pytest.raises(TypeError, match="regressors over two features"):
        plot.regression_blocks(margrove.DecisionTreeClassifier().fit(X, y > 1), X)


@pytest.mark.parametrize("draw", [plot.hulls, plot.separating_lines, plot.perceptron_steps])
def test_a_refusal_opens_no_figure(draw) -> None:
    with pytest.raises(InvalidDataError, match="two features"):
        draw(np.zeros((4, 3)), [0, 0, 1, 1])
    assert plt.get_fignums() == []


def test_the_page_names_calls_that_exist() -> None:
    """docs/plots.md maps every figure of the lectures to a call."""
    page = (Path(__file__).parents[2] / "docs" / "plots.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in page.splitlines() if re.match(r"\| 00\d", line)]
    lectures = {number for line in lines for number in re.findall(r"00\d", line[1])}
    assert lectures == {"000", "001", "002", "003", "004"}
    assert all("plot." in line[3] or line[3].strip() == "the same" for line in lines)
    assert set(re.findall(r"plot\.(\w+)\(", page)) <= set(plot.__all__)
