"""Pictures of predictions hold the numbers of the facts."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.linear_model import LinearRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from margrove import SVC, DecisionTreeClassifier, RandomForestClassifier, facts, plot
from margrove.datasets import load_iris, make_moons
from margrove.facts.dependence import partial_dependence_facts
from margrove.facts.mistakes import residual_facts, worst_mistakes
from margrove.facts.predictions import (
    confusion,
    margins_of,
    precision_recall_curves,
    roc_curves,
)

mpl.use("Agg")

IRIS, CODES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "_versicolor", "$virginica$"])[CODES]
MOONS, SIDES = make_moons(120, noise=0.3, random_state=1, return_X_y=True)
SIDES = np.where(SIDES == 1, "right", "left")
WIDTHS = IRIS[:, 3]


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def of_two():
    return SVC().fit(MOONS[::2], SIDES[::2])


@pytest.fixture(scope="module")
def of_three():
    return RandomForestClassifier(20, max_depth=2, random_state=0).fit(IRIS[::2], SPECIES[::2])


@pytest.fixture(scope="module")
def of_numbers():
    return LinearRegression().fit(IRIS[::2, :3], WIDTHS[::2])


def parts(artists, gid):
    return [artist for artist in artists if artist.get_gid() == gid]


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# -- classes -------------------------------------------------------------------------------------


def test_cells_are_shares_and_numbers_are_counts(of_three) -> None:
    picture = plot.confusion_matrix(of_three, IRIS[1::2], SPECIES[1::2], ax=Figure().subplots())
    told = confusion(of_three, IRIS[1::2], SPECIES[1::2])
    (cells,) = parts(picture.images, "cells")
    assert np.asarray(cells.get_array()) == pytest.approx(np.nan_to_num(told.shares))
    counts = [text.get_text() for text in parts(picture.texts, "count")]
    assert counts == [f"{count:g}" for count in told.counts.ravel()]
    assert [label.get_text() for label in picture.get_yticklabels()] == list(told.classes)
    assert picture.get_title() == f"{100 * told.accuracy:.1f} % right"
    said = of_three.predict(IRIS[1::2])
    frame = picture.frame().set_index(["true", "predicted"])["rows"]
    for true in told.classes:
        for predicted in told.classes:
            both = np.count_nonzero((SPECIES[1::2] == true) & (said == predicted))
            assert frame[true, predicted] == both


def test_numbers_can_be_read_on_their_cells(of_three) -> None:
    picture = plot.confusion_matrix(of_three, IRIS, SPECIES, ax=Figure().subplots())
    (cells,) = parts(picture.images, "cells")
    shares = np.ravel(cells.get_array())
    for share, text in zip(shares, parts(picture.texts, "count"), strict=True):
        behind = np.mean(cells.cmap(cells.norm(share))[:3])
        assert abs(behind - np.mean(to_rgb(text.get_color()))) > 0.35


def test_facts_are_drawn_as_they_are(of_three) -> None:
    told = confusion(of_three, IRIS, SPECIES)
    picture = plot.confusion_matrix(told, ax=Figure().subplots())
    assert picture.data is told
    with pytest.raises(ValueError, match="has its data already"):
        plot.confusion_matrix(told, IRIS, SPECIES)
    with pytest.raises(ValueError, match=r"needs X and y.*margrove\.facts\.confusion"):
        plot.confusion_matrix(of_three)


def test_many_classes_have_no_numbers() -> None:
    rows, labels = np.arange(100.0)[:, None], (np.arange(100) // 2).astype(str)
    many = DecisionTreeClassifier().fit(rows, labels)
    picture = plot.confusion_matrix(many, rows, labels)
    assert not parts(picture.texts, "count")


def test_curves_have_the_areas_of_scikit_learn(of_two) -> None:
    X, y = MOONS[1::2], SIDES[1::2]
    scores = of_two.decision_function(X)
    picture = plot.roc_curve(of_two, X, y, ax=Figure().subplots())
    frame = picture.frame()
    area = np.trapezoid(frame["true_positive_rate"], frame["false_positive_rate"])
    assert area == pytest.approx(roc_auc_score(y == "right", scores))
    assert texts(picture) == [f"right: area {area:.3f}"]
    (curve,) = parts(picture.lines, "curve")
    assert np.array_equal(curve.get_xdata(), frame["false_positive_rate"])
    told = precision_recall_curves(of_two, X, y)
    picture = plot.precision_recall_curve(told, ax=Figure().subplots())
    expected = average_precision_score(y == "right", scores)
    assert texts(picture) == [f"right: average precision {expected:.3f}"]
    (chance,) = parts(picture.lines, "chance")
    assert chance.get_ydata()[0] == pytest.approx(np.mean(y == "right"))


def test_every_class_has_a_curve_and_its_name(of_three) -> None:
    picture = plot.roc_curve(of_three, IRIS, SPECIES, ax=Figure().subplots())
    assert len(parts(picture.lines, "curve")) == 3
    names = [text.rsplit(":", 1)[0] for text in texts(picture)]
    assert sorted(names) == sorted(set(SPECIES.tolist()))
    colours = {line.get_color() for line in parts(picture.lines, "curve")}
    assert len(colours) == 3


def test_a_class_without_rows_is_named(of_three) -> None:
    some = CODES < 2
    picture = plot.roc_curve(of_three, IRIS[some], SPECIES[some], ax=Figure().subplots())
    assert picture.get_title() == "no curve for $virginica$"
    assert not picture.title.get_parse_math()


def test_of_many_classes_the_first_are_drawn() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 2)), rng.integers(10, size=200)
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    told = roc_curves(model, X, y)
    picture = plot.roc_curve(told, ax=Figure().subplots())
    assert picture.get_title() == "the first 7 of 10 classes"
    assert len(picture.frame()["class"].unique()) == 10


# -- margins -------------------------------------------------------------------------------------


def test_bars_hold_all_margins(of_two) -> None:
    picture = plot.margin_distribution(of_two, MOONS, SIDES, bins=15, ax=Figure().subplots())
    told = margins_of(of_two, MOONS, SIDES)
    bars = parts(picture.patches, "margins")
    assert len(bars) == 2
    top, edges, _ = bars[-1].get_data()
    assert top.sum() == len(MOONS)
    assert edges[0] <= told.margins.min()
    assert edges[-1] >= told.margins.max()
    f = of_two.decision_function(MOONS)
    signed = np.where(SIDES == "right", f, -f)
    assert picture.frame()["margin"].to_numpy() == pytest.approx(signed)
    wrong = np.count_nonzero(of_two.predict(MOONS) != SIDES)
    assert f"boundary: {wrong} rows on the wrong side" in texts(picture)
    assert parts(picture.lines, "level")[0].get_xdata()[0] == 1.0


def test_a_forest_has_no_edge_of_the_margin(of_three) -> None:
    picture = plot.margin_distribution(of_three, IRIS, SPECIES, ax=Figure().subplots())
    assert not parts(picture.lines, "level")
    with pytest.raises(ValueError, match="bins must be"):
        plot.margin_distribution(of_three, IRIS, SPECIES, bins=0)


def test_kinds_of_support_vectors_are_counted(of_two) -> None:
    picture = plot.support_vectors(of_two, ax=Figure().subplots())
    kinds = facts.describe(of_two).machines[0].kinds
    assert picture.frame()["count"].tolist() == [kind.count for kind in kinds]
    widths = [bar.get_width() for bar in parts(picture.patches, "support")]
    assert sum(widths) == len(of_two.support_)
    iris = plot.support_vectors(SVC().fit(IRIS, SPECIES), ax=Figure().subplots())
    assert len(iris.get_yticklabels()) == 3
    with pytest.raises(TypeError, match="support vector machine"):
        plot.support_vectors(DecisionTreeClassifier().fit(IRIS, SPECIES))


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["truth", "residuals"])
def test_rows_are_where_their_errors_are(of_numbers, what) -> None:
    X, y = IRIS[1::2, :3], WIDTHS[1::2]
    picture = plot.residuals(of_numbers, X, y, what=what, ax=Figure().subplots())
    said = of_numbers.predict(X)
    expected = np.column_stack([y, said] if what == "truth" else [said, said - y])
    (dots,) = parts(picture.collections, "rows")
    assert np.asarray(dots.get_offsets()) == pytest.approx(expected)
    error = np.sqrt(np.mean((said - y) ** 2))
    assert picture.get_title().startswith(f"root mean squared error {error:.4g}, R²")
    assert picture.frame()["residual"].to_numpy() == pytest.approx(said - y)


def test_what_residuals_are_drawn(of_numbers) -> None:
    with pytest.raises(ValueError, match="what must be"):
        plot.residuals(of_numbers, IRIS[:, :3], WIDTHS, what="nonsense")
    told = residual_facts(of_numbers, IRIS[:, :3], WIDTHS)
    assert plot.residuals(told, ax=Figure().subplots()).data is told


def test_the_worst_mistakes_are_on_top(of_two) -> None:
    picture = plot.worst_mistakes(of_two, MOONS, SIDES, n=5, ax=Figure().subplots())
    told = worst_mistakes(of_two, MOONS, SIDES, 5)
    bars = parts(picture.patches, "mistake")
    assert [bar.get_width() for bar in bars] == [own.size for own in told.mistakes]
    assert picture.yaxis_inverted()
    first = told.mistakes[0]
    label = picture.get_yticklabels()[0].get_text()
    assert label == f"row {first.row}: {first.prediction} for {first.truth}"
    assert picture.get_title() == f"{told.n_wrong} of 120 rows are wrong"


def test_without_a_mistake_nothing_is_drawn() -> None:
    tree = DecisionTreeClassifier().fit(MOONS, SIDES)
    picture = plot.worst_mistakes(tree, MOONS, SIDES)
    assert picture.get_xlabel() == "no mistake"
    assert len(picture.frame()) == 0


# -- dependence ----------------------------------------------------------------------------------


def test_lines_are_the_averages(of_three) -> None:
    picture = plot.partial_dependence(of_three, IRIS, [2, 0], n_grid=5)
    told = partial_dependence_facts(of_three, IRIS, [2, 0], n_grid=5)
    for panel, curve in zip(picture, told.curves, strict=True):
        lines = parts(panel.lines, "average")
        for line, average in zip(lines, curve.average, strict=True):
            assert np.array_equal(line.get_xdata(), curve.grid)
            assert line.get_ydata() == pytest.approx(average)
        assert not parts(panel.collections, "spread")  # of three, bands would hide each other
    assert texts(picture[0]) == list(told.outputs)
    assert picture[0].get_ylim() == picture[1].get_ylim()


def test_labels_have_their_names_and_one_output_a_band() -> None:
    table = pd.DataFrame({"$colour": ["red", "_blue", "red", "green"] * 8, "size": range(32)})
    target = (table["$colour"] == "red") * 3.0 + table["size"]
    from margrove import DecisionTreeRegressor

    model = DecisionTreeRegressor(max_depth=4).fit(table, target)
    picture = plot.partial_dependence(model, table, ["$colour", "size"])
    names = [label.get_text() for label in picture[0].get_xticklabels()]
    assert sorted(names) == ["_blue", "green", "red"]
    assert len(parts(picture[1].collections, "spread")) == 1
    assert picture[0].get_ylabel() == "prediction"


def test_dependence_of_nothing(of_three) -> None:
    with pytest.raises(ValueError, match="rows to average over"):
        plot.partial_dependence(of_three)
    told = partial_dependence_facts(of_three, IRIS, [2])
    assert plot.partial_dependence(told).data is told
    with pytest.raises(ValueError, match="data already"):
        plot.partial_dependence(told, IRIS)
    constant = DecisionTreeClassifier().fit(IRIS, np.zeros(len(IRIS)))
    with pytest.raises(ValueError, match="No column has an effect"):
        plot.partial_dependence(constant, IRIS)
