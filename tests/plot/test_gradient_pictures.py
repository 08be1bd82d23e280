"""Pictures of gradient boosting hold the numbers of its history, trees and predictions."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from margrove import SVC, HistGradientBoostingClassifier, HistGradientBoostingRegressor
from margrove.datasets import load_iris
from margrove.plot import gradient_importances, gradient_stages, gradient_tree, importances
from margrove.plot import loss_curve as draw_losses

mpl.use("Agg")

IRIS, CODES = load_iris(return_X_y=True, as_frame=True)
NAMES = np.array(["setosa", "_versicolor", "$virginica$"])[CODES]
x = np.linspace(0.0, 6.0, 200)[:, None]
WAVE = np.sin(x[:, 0])


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def flowers():
    return HistGradientBoostingClassifier(max_iter=6).fit(IRIS, NAMES)


@pytest.fixture(scope="module")
def wave():
    return HistGradientBoostingRegressor(max_iter=25, max_leaf_nodes=4).fit(x, WAVE)


def part(artists, gid):
    (found,) = [artist for artist in artists if artist.get_gid() == gid]
    return found


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


# -- losses --------------------------------------------------------------------------------------


def test_losses_are_those_of_the_history(wave) -> None:
    ax = draw_losses(wave)
    line = part(ax.lines, "training")
    assert np.array_equal(line.get_xdata(), np.arange(26))
    assert np.array_equal(line.get_ydata(), wave.history_.training_loss)
    assert [line.get_gid() for line in ax.lines] == ["training"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rounds", "loss (squared_error)")


def test_the_best_round_is_marked() -> None:
    y = WAVE + np.random.default_rng(0).normal(size=200)
    model = HistGradientBoostingRegressor(
        max_iter=200, learning_rate=0.5, early_stopping=True, random_state=0
    ).fit(x, y)
    best = int(np.argmax(model.history_.validation_score))
    ax = draw_losses(model, x[::2], WAVE[::2], scale="log")
    assert part(ax.lines, "best").get_xdata()[0] == best < len(model)
    assert texts(ax.get_legend())[-1] == f"best after {best} rounds"
    scores = model.history_.validation_score
    assert np.array_equal(part(ax.lines, "validation").get_ydata(), -scores[1:])
    assert len(part(ax.lines, "test").get_ydata()) == len(model)
    assert ax.get_xscale() == "log"


def test_another_score_has_an_axis_of_its_own() -> None:
    model = HistGradientBoostingClassifier(
        max_iter=5, early_stopping=True, scoring="accuracy", random_state=0
    ).fit(IRIS, NAMES)
    ax = draw_losses(model, ax=Figure().subplots())
    left, right = ax.figure.axes
    assert left is ax.ax
    assert np.array_equal(part(right.lines, "score").get_ydata(), model.validation_score_)
    assert right.get_ylabel() == "validation score (accuracy)"
    assert len(texts(ax.get_legend())) == 3


# -- importances and trees -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gain", "split"])
def test_bars_are_importances(flowers, kind) -> None:
    ax = gradient_importances(flowers, kind=kind, n=3)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(flowers.importances(kind), reverse=True)[:3]
    first = IRIS.columns[np.argmax(flowers.importances(kind))]
    assert ax.get_yticklabels()[0].get_text() == first
    assert ax.get_xlabel().endswith(", as a share")
    assert ("gain" in ax.get_xlabel()) == (kind == "gain")
    named = gradient_importances(flowers, kind=kind, feature_names=list("abcd"))
    assert {label.get_text() for label in named.get_yticklabels()} == set("abcd")


def test_importances_of_any_model_are_the_gains(flowers) -> None:
    assert importances(flowers).get_xlabel() == "gain of the splits, as a share"


def test_leaves_of_a_tree_are_what_it_adds(flowers) -> None:
    for score in range(3):
        ax = gradient_tree(flowers, 2, score, decimals=6)
        tree = flowers.tree(1, score)
        shown = [text for text in ax.texts if text.get_gid().startswith("prediction")]
        for text in shown:
            node = int(text.get_gid().split()[1])
            said = float(text.get_text().removeprefix("mean "))
            assert said == pytest.approx(tree.value[node, 0], abs=1e-6)
        assert len(shown) == len(tree)
    questions = [text.get_text() for text in ax.texts if text.get_gid().startswith("question")]
    assert all(question.startswith(("petal", "sepal")) for question in questions)
    path = gradient_tree(flowers, 1, row=IRIS.iloc[0])
    assert any((line.get_gid() or "").startswith("path") for line in path.lines)


# -- stages --------------------------------------------------------------------------------------


def test_stages_are_steps_through_the_data(wave) -> None:
    panels = gradient_stages(wave, x, WAVE)
    assert [panel.get_title() for panel in panels] == [
        f"{count} round{'' if count == 1 else 's'}: loss {wave.history_.training_loss[count]:.3g}"
        for count in (1, 5, 20, 25)
    ]
    staged = list(wave.staged_predict(x))
    for panel, stage in zip(panels, (1, 5, 20, 25), strict=True):
        assert np.array_equal(part(panel.collections, "data").get_offsets()[:, 1], WAVE)
        steps = part(panel.patches, "prediction").get_data()
        place = np.searchsorted(steps.edges[1:], x[:, 0])
        assert np.array_equal(steps.values[place], staged[stage - 1])
        assert steps.edges[0] < x.min()
        assert steps.edges[-1] > x.max()


def test_panels_of_ones_own(wave) -> None:
    own = Figure().subplots(1, 2)
    drawn = gradient_stages(wave, x, WAVE, rounds=(1, 25), axes=own)
    assert list(drawn.axes) == own.tolist()
    assert not plt.get_fignums()


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m: draw_losses(m, x), ValueError, "belong together"),
        (lambda m: draw_losses(m, scale="wide"), ValueError, "'linear' or 'log'"),
        (lambda m: draw_losses(SVC()), TypeError, "takes gradient boosting of margrove"),
        (lambda m: gradient_importances(SVC()), TypeError, "takes gradient boosting of margrove"),
        (lambda m: gradient_importances(m, kind="sum"), ValueError, "'gain' or 'split'"),
        (lambda m: gradient_importances(m, n=0), ValueError, "at least 1"),
        (lambda m: gradient_tree(SVC()), TypeError, "takes gradient boosting of margrove"),
        (lambda m: gradient_tree(m, 26), ValueError, "from 1 to 25"),
        (lambda m: gradient_tree(m, 1, 1), ValueError, "from 0 to 0"),
        (lambda m: gradient_stages(m, x, WAVE, rounds=[26]), ValueError, "from 1 to 25"),
        (
            lambda m: gradient_stages(m, x, WAVE, axes=[Figure().subplots()]),
            ValueError,
            "axes must be 4, one for each stage",
        ),
    ],
)
def test_what_is_refused(wave, call, error, match) -> None:
    with pytest.raises(error, match=match):
        call(wave)
    assert not plt.get_fignums()
