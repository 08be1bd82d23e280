"""Pictures of boosting hold the numbers of its history, margins and weights."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from margrove import SVC, AdaBoostClassifier, DecisionTreeClassifier
from margrove.datasets import load_boosting_points, load_iris
from margrove.plot import (
    boosting,
    boosting_errors,
    boosting_margins,
    boosting_rounds,
    decision_boundary,
)

mpl.use("Agg")

POINTS, SIGNS = load_boosting_points(return_X_y=True)
IRIS, CODES = load_iris(return_X_y=True)
PAIR, NAMES = IRIS[:, 1:3], np.array(["setosa", "_versicolor", "$virginica$"])[CODES]


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def three():
    stump = DecisionTreeClassifier(max_depth=1, criterion="error")
    return AdaBoostClassifier(stump, n_estimators=3).fit(POINTS, SIGNS)


@pytest.fixture(scope="module")
def stopped():
    model = AdaBoostClassifier(
        n_estimators=200, early_stopping=True, n_iter_no_change=8, random_state=0
    )
    return model.fit(PAIR, CODES == 1)


def part(artists, gid):
    (found,) = [artist for artist in artists if artist.get_gid() == gid]
    return found


def parts(artists, gid):
    return [artist for artist in artists if artist.get_gid() == gid]


# -- errors --------------------------------------------------------------------------------------


def test_errors_and_bounds_are_those_of_the_history(three) -> None:
    ax = boosting_errors(three)
    for gid, values in (
        ("training", three.history_.training_error),
        ("bound", three.history_.bound),
        ("edge bound", three.history_.edge_bound),
    ):
        line = part(ax.lines, gid)
        assert np.array_equal(line.get_xdata(), [1, 2, 3])
        assert np.array_equal(line.get_ydata(), values)
    assert not parts(ax.lines, "validation")
    assert not parts(ax.lines, "kept")
    assert ax.get_legend().get_texts()[0].get_text() == "training error: 0"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rounds", "share misclassified")


def test_validation_test_and_the_rounds_that_are_kept(stopped) -> None:
    ax = boosting_errors(stopped, PAIR[::3], CODES[::3] == 1, bounds=False, scale="log")
    n_kept, n_run = len(stopped), len(stopped.history_)
    assert n_kept < n_run
    assert np.array_equal(
        part(ax.lines, "validation").get_ydata(), stopped.history_.validation_error
    )
    test = part(ax.lines, "test").get_ydata()
    scores = list(stopped.staged_score(PAIR[::3], CODES[::3] == 1))
    assert np.allclose(test, 1.0 - np.array(scores), atol=1e-15)
    assert part(ax.lines, "kept").get_xdata()[0] == n_kept
    assert not parts(ax.lines, "bound")
    assert ax.get_xscale() == "log"


def test_no_bound_is_drawn_where_there_is_none() -> None:
    model = AdaBoostClassifier(n_estimators=5).fit(PAIR, NAMES)  # SAMME, three classes
    ax = boosting_errors(model)
    assert [line.get_gid() for line in ax.lines] == ["training"]


# -- margins -------------------------------------------------------------------------------------


def test_margins_are_steps_of_their_distribution(three) -> None:
    ax = boosting_margins(three, POINTS, SIGNS, stages=[1, 3])
    lines = parts(ax.lines, "margins")
    assert [line.get_label() for line in lines] == ["1 round", "3 rounds"]
    for line, stage in zip(lines, (1, 3), strict=True):
        margins = np.sort(three.margins(POINTS, SIGNS, n_rounds=stage))
        assert np.array_equal(line.get_xdata(), [-1.0, *margins, 1.0])
        assert np.allclose(line.get_ydata(), [0.0, *np.arange(1, 11) / 10, 1.0])
        assert line.get_drawstyle() == "steps-post"
    assert lines[-1].get_linestyle() == "-"
    assert ax.get_xlim() == (-1.0, 1.0)


def test_stages_of_the_lectures(stopped) -> None:
    model = AdaBoostClassifier(n_estimators=120).fit(PAIR, CODES == 1)
    ax = boosting_margins(model, PAIR, CODES == 1)
    labels = [line.get_label() for line in parts(ax.lines, "margins")]
    assert labels == ["5 rounds", "100 rounds", "120 rounds"]


def test_margins_that_are_no_shares_have_their_own_range() -> None:
    model = AdaBoostClassifier(n_estimators=30, algorithm="gentle").fit(PAIR, NAMES)
    ax = boosting_margins(model, PAIR, NAMES, stages=[30])
    margins = model.margins(PAIR, NAMES)
    assert ax.get_xlim() == (min(margins.min(), 0.0), margins.max())


# -- rounds --------------------------------------------------------------------------------------


def test_ten_points_round_by_round(three) -> None:
    panels = boosting_rounds(three, POINTS, SIGNS)
    assert [panel.get_title() for panel in panels] == [
        "round 1: eps = 0.30, beta = 0.42",
        "round 2: eps = 0.21, beta = 0.65",
        "round 3: eps = 0.14, beta = 0.92",
        "all 3 rounds: error 0",
    ]
    weights = list(three.staged_weights(POINTS, SIGNS))
    for panel, D in zip(panels[:3], weights, strict=False):
        minus, plus = parts(panel.collections, "data")
        assert np.array_equal(minus.get_offsets(), POINTS[SIGNS == -1])
        areas = np.concatenate([minus.get_sizes(), plus.get_sizes()])
        own = np.concatenate([D[SIGNS == -1], D[SIGNS == 1]])
        assert np.allclose(areas / areas.sum(), own)  # the area is the weight
        assert len(part(panel.collections, "mistakes").get_offsets()) == 3
    lines = [part(panel.lines, "stump") for panel in panels[:3]]
    assert [line.get_xdata()[0] for line in lines[:2]] == [2.5, 7.5]
    assert lines[2].get_ydata()[0] == 6.0
    last = panels[3]
    assert not parts(last.collections, "mistakes")
    assert not parts(last.lines, "stump")
    assert len(set(parts(last.collections, "data")[0].get_sizes())) == 1
    regions = part(last.collections, "regions").get_array()  # cells between 2.5, 7.5 and 6
    assert regions.tolist() == [[1, 0, 0], [1, 1, 0]]


def test_other_members_are_drawn_on_a_grid() -> None:
    tree = DecisionTreeClassifier(max_depth=2)
    model = AdaBoostClassifier(tree, n_estimators=6).fit(PAIR, NAMES)
    panels = boosting_rounds(
        model, PAIR, NAMES, rounds=[1, 6], resolution=30, axes=Figure().subplots(1, 3)
    )
    assert [part(panel.collections, "regions").get_array().shape for panel in panels] == (
        [(30, 30)] * 3
    )
    texts = [text.get_text() for text in panels[-1].get_legend().get_texts()]
    assert texts == sorted(set(NAMES.tolist()))


@pytest.mark.parametrize("algorithm", ["real", "gentle", "logit"])
def test_members_that_do_not_vote(algorithm) -> None:
    model = AdaBoostClassifier(n_estimators=3, algorithm=algorithm).fit(PAIR, NAMES)
    panels = boosting_rounds(model, PAIR, NAMES, resolution=10)
    assert "beta" not in panels[0].get_title()
    wrong = part(panels[-1].collections, "mistakes").get_offsets()
    assert len(wrong) == np.count_nonzero(model.predict(PAIR) != NAMES)


# -- by name, and what is refused ----------------------------------------------------------------


def test_one_function_draws_all(three) -> None:
    assert boosting(three).get_ylabel() == "share misclassified"
    assert boosting(three, POINTS, SIGNS, what="margins").get_xlabel() == "margin"
    assert len(boosting(three, POINTS, SIGNS, what="rounds", rounds=[2])) == 2


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m: boosting(m, what="trees"), ValueError, "one of 'errors', 'margins', 'rounds'"),
        (lambda m: boosting(m, what="margins"), ValueError, "needs X and y"),
        (lambda m: boosting_errors(m, POINTS), ValueError, "belong together"),
        (lambda m: boosting_errors(m, scale="wide"), ValueError, "'linear' or 'log'"),
        (lambda m: boosting_margins(m, POINTS, SIGNS, stages=[4]), ValueError, "from 1 to 3"),
        (lambda m: boosting_rounds(m, POINTS, SIGNS, rounds=[0]), ValueError, "from 1 to 3"),
        (lambda m: boosting_rounds(m, POINTS, SIGNS, resolution=1), ValueError, "at least 2"),
        (lambda m: boosting_rounds(m, POINTS, ["?"] * 10), ValueError, "not among the classes"),
        (
            lambda m: boosting_rounds(m, POINTS, SIGNS, axes=[Figure().subplots()]),
            ValueError,
            "axes must be 4",
        ),
        (lambda m: boosting_errors(SVC()), TypeError, "takes an AdaBoostClassifier"),
    ],
)
def test_what_is_refused(three, call, error, match) -> None:
    with pytest.raises(error, match=match):
        call(three)
    assert not plt.get_fignums()


def test_rounds_want_two_features() -> None:
    model = AdaBoostClassifier(n_estimators=2).fit(IRIS, CODES == 1)
    with pytest.raises(ValueError, match="the model has 4"):
        boosting_rounds(model, IRIS, CODES == 1)


def test_a_decision_boundary_is_drawn_as_of_any_classifier(three) -> None:
    ax = decision_boundary(three, POINTS, SIGNS, resolution=20)
    assert len(parts(ax.collections, "data")) == 2
