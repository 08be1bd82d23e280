"""Drawings of trees hold what `sketch_tree` tells; pictures hold the numbers of the facts."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from tests.grove.hand_made import HOSTILE_NAMES, chain, random_model
from tests.interrupts import lines_until_interrupt

from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.datasets import load_iris, load_play_tennis, make_moons
from margrove.exceptions import InvalidDataError, NotFittedError
from margrove.facts import gain_curves, pruning_errors, sketch_tree, tree_regions
from margrove.grove.serve.tree_arrays import LEAF, MULTIWAY, OBLIQUE, SUBSET, THRESHOLD
from margrove.plot import (
    error_against_size,
    gain_against_threshold,
    impurity_curves,
    regions,
    regression_surface,
    tree,
    tree_html,
    tree_svg,
)
from margrove.plot.drawing.canvas import class_style, tint
from margrove.plot.trees.layout import tidy_positions

mpl.use("Agg")

IRIS, SPECIES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
MOONS, SIDES = make_moons(150, noise=0.3, random_state=1, return_X_y=True)
TARGETS = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]
DAYS, PLAYED = load_play_tennis(return_X_y=True, as_frame=True)
EVERY_KIND = (THRESHOLD, SUBSET, MULTIWAY, OBLIQUE)
SVG = "{http://www.w3.org/2000/svg}"
CASES_OF_THE_PAGE = Path(__file__).parents[2] / "studio-ui/src/views/tree/layoutCases.json"


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def of_iris():
    return DecisionTreeClassifier(max_depth=3).fit(IRIS, SPECIES)


@pytest.fixture(scope="module")
def of_tennis():
    return DecisionTreeClassifier(split="multiway", criterion="entropy").fit(DAYS, PLAYED)


@pytest.fixture(scope="module")
def of_moons():
    return DecisionTreeClassifier(max_depth=4).fit(MOONS, SIDES)


@pytest.fixture(scope="module")
def of_targets():
    return DecisionTreeRegressor(max_depth=3).fit(MOONS, TARGETS)


def numbered(artists, *roles):
    """{number: artist} of those whose gid is a role and a number."""
    found = {}
    for artist in artists:
        role, _, number = (artist.get_gid() or "").partition(" ")
        if role in roles and number:
            found.setdefault(int(number), artist)
    return found


def text_of(ax, role):
    return {k: text.get_text() for k, text in numbered(ax.texts, role).items()}


def boxes(ax):
    """{number: (left, top, right, bottom)}"""
    return {
        k: (box.get_x(), box.get_y(), box.get_x() + box.get_width(), box.get_y() + box.get_height())
        for k, box in numbered(ax.patches, "node", "leaf").items()
    }


# -- the drawing ---------------------------------------------------------------------------------


def test_every_node_is_a_box_with_its_texts(of_iris) -> None:
    ax = tree(of_iris)
    arrays = of_iris.arrays_
    assert len(numbered(ax.patches, "leaf")) == of_iris.get_n_leaves()
    assert len(numbered(ax.patches, "node")) == len(arrays) - of_iris.get_n_leaves()
    told = sketch_tree(of_iris).nodes
    assert text_of(ax, "question") == {node.number: node.question for node in told if node.question}
    assert text_of(ax, "question")[0] == "x2 <= 2.450"
    predicted = of_iris.classes_[arrays.value.argmax(axis=1)]
    leaves = np.flatnonzero(arrays.kind == LEAF).tolist()
    assert text_of(ax, "prediction") == {leaf: predicted[leaf] for leaf in leaves}
    words = ["1 sample" if n == 1 else f"{n} samples" for n in arrays.n_samples]
    assert text_of(ax, "samples") == dict(enumerate(words))
    assert text_of(ax, "branch")[1] == "yes"
    assert numbered(ax.patches, "leaf")[1].get_facecolor() == pytest.approx(
        to_rgba(tint(0)), abs=0.01
    )


def test_bars_are_the_shares_of_the_classes(of_iris) -> None:
    ax = tree(of_iris)
    for number, shares in enumerate(of_iris.arrays_.value):
        bars = [bar for bar in ax.patches if bar.get_gid() == f"share {number}"]
        whole = sum(bar.get_width() for bar in bars)
        widths = {bar.get_facecolor(): bar.get_width() / whole for bar in bars}
        there = {
            to_rgba(class_style(code)["color"]): share
            for code, share in enumerate(shares)
            if share > 0
        }
        assert widths == pytest.approx(there)
    legend = [text.get_text() for text in ax.texts if text.get_gid() == "legend"]
    assert legend == ["setosa", "versicolor", "virginica"]


@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_touch_and_lines_join_them(seed) -> None:
    model = random_model(seed, kinds=EVERY_KIND, n_splits=25)
    ax = tree(model, max_depth=100)
    where = boxes(ax)
    assert len(where) == len(model.arrays_)
    depth = model.arrays_.depth
    for level in range(depth.max() + 1):
        row = sorted(where[k] for k in np.flatnonzero(depth == level).tolist())
        assert all(a[2] < b[0] for a, b in pairwise(row))
        assert len({box[1] for box in row}) == 1
        if level:
            above = [where[k][3] for k in np.flatnonzero(depth == level - 1).tolist()]
            assert row[0][1] > max(above)
    lines = numbered(ax.lines, "edge")
    assert sorted(lines) == list(range(1, len(where)))
    for child, line in lines.items():
        box, above = where[child], where[int(model.arrays_.parent[child])]
        ends = line.get_xydata()
        assert ends[0] == pytest.approx([(above[0] + above[2]) / 2, above[3]])
        assert ends[1] == pytest.approx([(box[0] + box[2]) / 2, box[1]])
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    assert top == 0 < bottom
    assert all(left <= a < b <= right and c < d <= bottom for a, c, b, d in where.values())


def test_texts_fit_into_their_boxes(of_iris) -> None:
    ax = tree(of_iris)
    ax.figure.canvas.draw()
    where = {k: box.get_window_extent() for k, box in numbered(ax.patches, "node", "leaf").items()}
    for role in ("question", "prediction", "samples"):
        for number, text in numbered(ax.texts, role).items():
            own, box = text.get_window_extent(), where[number]
            assert own.x0 >= box.x0
            assert own.x1 <= box.x1
            assert own.y0 >= box.y0
            assert own.y1 <= box.y1


def test_branches_of_categories_have_their_names(of_tennis) -> None:
    ax = tree(of_tennis)
    assert text_of(ax, "question") == {0: "outlook", 2: "wind", 5: "humidity"}
    assert text_of(ax, "branch") == {
        1: "overcast", 2: "rain", 3: "strong", 4: "weak", 5: "sunny", 6: "high", 7: "normal"
    }  # fmt: skip


def test_the_way_of_a_row_is_bold(of_iris) -> None:
    for row in (0, 70, 140):
        ax = tree(of_iris, row=IRIS[row])
        way = of_iris.decision_path(IRIS[[row]]).indices.tolist()
        bold = numbered(ax.lines, "path")
        assert sorted(bold) == sorted(way)[1:]
        thin = numbered(ax.lines, "edge")
        assert {*bold, *thin} == set(range(1, len(of_iris.arrays_)))
        assert min(line.get_linewidth() for line in bold.values()) > max(
            line.get_linewidth() for line in thin.values()
        )
        thick = {
            k
            for k, box in numbered(ax.patches, "node", "leaf").items()
            if box.get_linewidth() > 1.0
        }
        assert thick == set(way)
    assert numbered(tree(of_iris).lines, "path") == {}


def test_a_row_without_a_value_takes_all_branches(of_tennis) -> None:
    day = {"outlook": None, "temperature": "hot", "humidity": "high", "wind": "weak"}
    ax = tree(of_tennis, row=day)
    lines = numbered(ax.lines, "path")
    assert sorted(lines) == [1, 2, 4, 5, 6]
    assert lines[2].get_linewidth() > lines[1].get_linewidth()  # 5 days rather than 4


def test_a_cut_tree_says_what_is_hidden(of_iris) -> None:
    ax = tree(of_iris, max_depth=1)
    assert sorted(boxes(ax)) == [0, 1, 2]
    hidden = len(of_iris.arrays_) - 3
    assert text_of(ax, "hidden") == {2: f"… {hidden} nodes"}
    (note,) = [text.get_text() for text in ax.texts if text.get_gid() == "note"]
    assert note.startswith(f"down to depth 1 of 3: 3 of {len(of_iris.arrays_)} nodes")
    whole = tree(of_iris, max_depth=3)
    assert text_of(whole, "hidden") == {}
    assert [text for text in whole.texts if text.get_gid() == "note"] == []
    root = tree(of_iris, max_depth=0)
    assert list(boxes(root)) == [0]


def test_numbers_are_written_and_shaded(of_targets) -> None:
    ax = tree(of_targets)
    value, kind = of_targets.arrays_.value[:, 0], of_targets.arrays_.kind
    assert text_of(ax, "prediction") == {
        k: f"{own:.3f}" if kind[k] == LEAF else f"mean {own:.3f}" for k, own in enumerate(value)
    }
    shade = {k: sum(box.get_facecolor()) for k, box in numbered(ax.patches, "node", "leaf").items()}
    assert min(shade, key=shade.get) == np.argmax(value)  # the darkest is the highest
    assert max(shade, key=shade.get) == np.argmin(value)
    assert not any(text.get_gid() == "legend" for text in ax.texts)
    medians = DecisionTreeRegressor(criterion="absolute_error", max_depth=1).fit(MOONS, TARGETS)
    assert text_of(tree(medians), "prediction")[0] == f"median {np.median(TARGETS):.3f}"


def test_histograms_are_drawn_where_rows_are_given(of_iris) -> None:
    ax = tree(of_iris, X=IRIS, y=SPECIES)
    told = {node.number: node.histogram for node in sketch_tree(of_iris, X=IRIS, y=SPECIES).nodes}
    for number, histogram in told.items():
        bars = [bar for bar in ax.patches if bar.get_gid() == f"histogram {number}"]
        if histogram is None:
            assert bars == []
            continue
        heights = np.array([bar.get_height() for bar in bars])
        counts = histogram.counts.T[histogram.counts.T > 0]
        assert heights / heights.sum() == pytest.approx(counts / counts.sum())
        colours = [class_style(code)["color"] for code in np.nonzero(histogram.counts.T)[1]]
        assert [bar.get_facecolor() for bar in bars] == [to_rgba(colour) for colour in colours]
        line = numbered(ax.lines, "threshold")[number]
        x = line.get_xdata()[0]
        low, high = histogram.edges[[0, -1]]
        floor = numbered(ax.lines, "floor")[number].get_xdata()
        place = (x - floor[0]) / (floor[1] - floor[0])
        assert place == pytest.approx((histogram.threshold - low) / (high - low))
    assert not any((bar.get_gid() or "").startswith("histogram") for bar in tree(of_iris).patches)


def test_several_outputs_have_a_bar_each() -> None:
    y = np.column_stack([SIDES, MOONS[:, 0] > 0]).astype(int)
    model = DecisionTreeClassifier(max_depth=2).fit(MOONS, y)
    ax = tree(model)
    root = [bar for bar in ax.patches if bar.get_gid() == "share 0"]
    assert len(root) == 4
    assert len({bar.get_y() for bar in root}) == 2
    legend = [text.get_text() for text in ax.texts if text.get_gid() == "legend"]
    assert legend == ["output 0:", "0", "1", "output 1:", "0", "1"]


def test_many_classes_are_drawn_as_few_parts() -> None:
    rng = np.random.default_rng(0)
    model = DecisionTreeClassifier(max_depth=1).fit(rng.normal(size=(900, 1)), np.arange(900) % 300)
    ax = tree(model)
    bars = [bar for bar in ax.patches if bar.get_gid() == "share 0"]
    assert len(bars) == 20
    box = numbered(ax.patches, "node")[0]
    assert sum(bar.get_width() for bar in bars) == pytest.approx(box.get_width() - 12)
    legend = [text.get_text() for text in ax.texts if text.get_gid() == "legend"]
    assert legend[-1] == "and 288 more"


def test_axes_can_be_given_and_texts_shrink_to_them(of_iris) -> None:
    ax = Figure(figsize=(3, 2)).subplots()
    assert tree(of_iris, ax=ax).ax is ax
    assert plt.get_fignums() == []
    small = {text.get_fontsize() for text in ax.texts}
    assert len(small) == 1
    assert 0 < small.pop() < 5
    large = tree(of_iris)
    assert {round(text.get_fontsize(), 9) for text in large.texts} == {10.0}
    with pytest.raises(TypeError, match="ax must be one of matplotlib's Axes"):
        tree(of_iris, ax=Figure())


def test_a_refusal_opens_no_figure(of_iris) -> None:
    with pytest.raises(NotFittedError):
        tree(DecisionTreeClassifier())
    with pytest.raises(TypeError, match=r"A fitted decision tree of margrove is needed\. Got SVC"):
        tree(SVC().fit(MOONS, SIDES))
    with pytest.raises(ValueError, match="max_depth must be a whole number"):
        tree(of_iris, max_depth=-1)
    with pytest.raises(ValueError, match="one row"):
        tree(of_iris, row=IRIS[:2])
    with pytest.raises(InvalidDataError, match="y has rose"):
        tree(of_iris, X=IRIS[:1], y=["rose"])
    assert plt.get_fignums() == []


def test_a_single_leaf_is_a_tree() -> None:
    model = DecisionTreeClassifier().fit(MOONS, np.zeros(len(MOONS), int))
    ax = tree(model, row=MOONS[0], X=MOONS, y=np.zeros(len(MOONS), int))
    assert list(boxes(ax)) == [0]
    assert text_of(ax, "prediction") == {0: "0"}
    assert len(ET.fromstring(tree_svg(model)).findall(f".//{SVG}rect[@class='leaf']")) == 1


def test_a_deep_chain_is_drawn() -> None:
    for model in (chain(5000), chain(5000, left_is_deep=True)):
        ax = tree(model, max_depth=6, row=[9_999.0])
        svg = tree_svg(model, max_depth=6)
        assert len(boxes(ax)) == 13
        assert list(text_of(ax, "hidden").values()) == [f"… {2 * (5000 - 6):,} nodes"]
        assert svg.count('class="leaf"') == 6
        assert len(boxes(tree(model))) <= 200  # nobody said how deep


# -- positions -----------------------------------------------------------------------------------


def slow_positions(children, widths, gap, node=0):
    """{node: x}, and by depth how far the subtree reaches: by recursion, from the left."""
    placed, left, right = {}, [], []
    firsts = []
    for child in children[node]:
        own, own_left, own_right = slow_positions(children, widths, gap, child)
        common = zip(right, own_left, strict=False)
        push = max((a - b + gap for a, b in common), default=0.0)
        firsts.append(push)
        placed |= {k: x + push for k, x in own.items()}
        left += [x + push for x in own_left[len(left) :]]
        right = [x + push for x in own_right] + right[len(own_right) :]
    centre = (firsts[0] + firsts[-1]) / 2 if firsts else 0.0
    placed = {k: x - centre for k, x in placed.items()} | {node: 0.0}
    half = widths[node] / 2
    return placed, [-half, *(x - centre for x in left)], [half, *(x - centre for x in right)]


@st.composite
def trees_in_preorder(draw):
    """The parent of each node: any node on the way to the one before."""
    parent = [None]
    for node in range(1, draw(st.integers(1, 25))):
        way = [node - 1]
        while parent[way[-1]] is not None:
            way.append(parent[way[-1]])
        parent.append(draw(st.sampled_from(way)))
    widths = draw(st.lists(st.integers(1, 9), min_size=len(parent), max_size=len(parent)))
    return parent, [float(width) for width in widths]


def test_the_page_of_the_studio_has_the_same_positions() -> None:
    """The page lays trees out again at every fold; its tests read the same file."""
    cases = json.loads(CASES_OF_THE_PAGE.read_text())
    assert len(cases) > 5
    for case in cases:
        parents = [None if parent < 0 else parent for parent in case["parents"]]
        x = tidy_positions(parents, case["widths"], case["gap"])
        assert np.allclose(x, case["x"], rtol=0, atol=1e-8)


@given(trees_in_preorder())
def test_positions_are_tidy(drawn) -> None:
    parent, widths = drawn
    children = [
        [k for k, above in enumerate(parent) if above == node] for node in range(len(parent))
    ]
    x = tidy_positions(parent, widths, gap=2.0)
    depth = [0] * len(parent)
    for node, above in enumerate(parent[1:], 1):
        depth[node] = depth[above] + 1
    for level in range(max(depth) + 1):
        row = [k for k, own in enumerate(depth) if own == level]
        for a, b in pairwise(row):
            assert x[b] - x[a] >= (widths[a] + widths[b]) / 2 + 2.0 - 1e-9
    for node, own in enumerate(children):
        if own:
            assert x[node] == pytest.approx((x[own[0]] + x[own[-1]]) / 2)
    from_left = slow_positions(children, widths, 2.0)[0]
    from_right = slow_positions([own[::-1] for own in children], widths, 2.0)[0]
    for node in range(len(parent)):
        assert x[node] == pytest.approx((from_left[node] - from_right[node]) / 2)


def test_mirrored_trees_have_mirrored_positions() -> None:
    """A root with a deep, a flat and a deep subtree: the flat one is in the middle."""
    parent = [None, 0, 1, 1, 0, 0, 5, 5]
    x = tidy_positions(parent, [10.0] * 8, gap=2.0)
    assert x[4] == pytest.approx(0.0)
    assert x[1] == pytest.approx(-x[5])
    assert x[2] == pytest.approx(-x[7])


def test_positions_of_deep_trees_take_linear_time() -> None:
    files, lines = {tidy_positions.__code__.co_filename}, []
    for depth in (1000, 2000, 4000):
        parent = [None]
        for level in range(depth):  # two children, of which the second has children
            parent += [2 * level, 2 * level]
        given = parent, [1.0] * len(parent), 1.0
        lines.append(len(lines_until_interrupt(tidy_positions, *given, files=files)))
        assert tidy_positions(*given)[-1] == pytest.approx(depth)
    assert lines[2] - lines[1] == 2 * (lines[1] - lines[0])


# -- SVG and HTML --------------------------------------------------------------------------------


def test_svg_draws_the_same_tree(of_iris) -> None:
    settings = {"row": IRIS[70], "X": IRIS, "y": SPECIES, "max_depth": 2}
    root = ET.fromstring(tree_svg(of_iris, **settings))
    ax = tree(of_iris, **settings)
    assert root.tag == f"{SVG}svg"
    for tag, artists in (("rect", ax.patches), ("line", ax.lines), ("text", ax.texts)):
        drawn = sorted(artist.get_gid() for artist in artists)
        written = sorted(
            f"{element.get('class')} {element.get('data-node', '')}".strip()
            for element in root.iter(f"{SVG}{tag}")
        )
        assert written == drawn
    texts = sorted(text.get_text() for text in ax.texts)
    assert sorted(element.text for element in root.iter(f"{SVG}text")) == texts
    for number, box in numbered(ax.patches, "node", "leaf").items():
        (element,) = [
            element
            for element in root.iter(f"{SVG}rect")
            if element.get("data-node") == str(number) and element.get("class") in ("node", "leaf")
        ]
        where = [float(element.get(name)) for name in ("x", "y", "width", "height")]
        expected = [box.get_x(), box.get_y(), box.get_width(), box.get_height()]
        assert where == pytest.approx(expected, abs=0.01)
        assert to_rgba(element.get("fill")) == box.get_facecolor()


class Tags(HTMLParser):
    """The tags, attributes and texts of a page, as a browser's parser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data):
        self.texts.append(data)


OUR_TAGS = {
    "body", "figure", "g", "h1", "head", "html", "line", "meta", "p", "rect", "style", "svg",
    "table", "td", "text", "th", "title", "tr",
}  # fmt: skip
OUR_ATTRIBUTES = {
    "charset", "class", "content", "data-node", "fill", "font-family", "font-size", "font-weight",
    "height", "http-equiv", "lang", "paint-order", "role", "stroke", "stroke-width", "text-anchor",
    "viewbox", "width", "x", "x1", "x2", "xmlns", "y", "y1", "y2",
}  # fmt: skip


def tags_of(text):
    parser = Tags()
    parser.feed(text)
    parser.close()
    return parser


@pytest.mark.parametrize("outputs", ["classes", "two", "number"])
@pytest.mark.parametrize("seed", range(4))
def test_hostile_names_are_inert(seed, outputs) -> None:
    """Names and labels of random models are scripts, quotes, line breaks and escapes."""
    model = random_model(seed, kinds=EVERY_KIND, shared=True, outputs=outputs)
    page = tree_html(model)
    found = tags_of(page)
    assert found.tags <= OUR_TAGS
    assert found.attributes <= OUR_ATTRIBUTES
    ET.fromstring(tree_svg(model))  # or it raises
    assert all(c.isprintable() or c == "\n" for c in page)
    texts = "".join(found.texts)
    for node in sketch_tree(model).nodes:
        assert node.question in texts
        assert node.prediction in texts


@pytest.mark.parametrize(
    "name", [*HOSTILE_NAMES, "]]>", "<!--", "--><img src=x onerror=a()>", "x" * 10**6]
)
def test_each_hostile_name_is_inert_everywhere(name, tmp_path) -> None:
    frame = pd.DataFrame({name: ["left", name, name, "left"] * 3})
    y = np.array([name, "fine", "fine", name] * 3, dtype=object)
    model = DecisionTreeClassifier(split="multiway").fit(frame, y)
    for text in (tree_svg(model), tree_html(model, row=frame[:1], X=frame, y=y)):
        found = tags_of(text)
        assert found.tags <= OUR_TAGS
        assert found.attributes <= OUR_ATTRIBUTES
        assert len(text) < 20_000
    root = ET.fromstring(tree_svg(model))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= OUR_TAGS
    ax = tree(model)
    assert all(text.get_text().isprintable() for text in ax.texts)
    ax.figure.savefig(tmp_path / "tree.png")


def test_dollars_are_no_mathematics(tmp_path) -> None:
    frame = pd.DataFrame({"$x_$": MOONS[:, 0], "$100 to $200^": MOONS[:, 1]})
    model = DecisionTreeClassifier(max_depth=1).fit(frame, np.where(SIDES, "$a_$", "_b"))
    ax = tree(model)
    ax.figure.savefig(tmp_path / "tree.png")
    texts = [text.get_text() for text in ax.texts]
    assert {"$a_$", "_b"} <= set(texts)
    assert any(text.startswith("$") and "<=" in text for text in texts)
    ax = regions(model, frame, np.where(SIDES, "$a_$", "_b"))
    ax.figure.savefig(tmp_path / "regions.png")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$a_$", "_b"]
    assert ax.get_xlabel() == "$x_$"
    ax = gain_against_threshold(frame, SIDES)
    ax.figure.savefig(tmp_path / "gain.png")
    assert ax.get_legend().get_texts()[0].get_text() == "$x_$"


def test_pages_forbid_scripts_and_list_the_nodes(of_tennis) -> None:
    page = tree_html(of_tennis, row=DAYS[:1])
    assert "default-src 'none'" in page
    assert "<script" not in page
    rows = page.split("<table>")[1].split("<tr")[2:]
    assert len(rows) == len(of_tennis.arrays_)
    bold = [k for k, row in enumerate(rows) if row.startswith(' class="path"')]
    assert bold == of_tennis.decision_path(DAYS[:1]).indices.tolist()
    assert page == tree_html(of_tennis, row=DAYS[:1])


def test_svg_needs_no_matplotlib() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import margrove\n"
        "model = margrove.DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])\n"
        "print(len(margrove.plot.tree_svg(model)), len(margrove.plot.tree_html(model)))\n"
        "try: margrove.plot.tree(model)\n"
        "except ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "margrove[plot]" in out.stdout


# -- pictures ------------------------------------------------------------------------------------


def of_gid(artists, gid):
    return [artist for artist in artists if artist.get_gid() == gid]


@pytest.mark.parametrize(
    "criterion", ["gini", "entropy", "error", "squared_error", "absolute_error"]
)
def test_the_curves_peak_where_a_stump_splits(criterion) -> None:
    is_class = criterion in ("gini", "entropy", "error")
    y = SIDES if is_class else TARGETS
    ax = gain_against_threshold(MOONS, y, criterion=criterion)
    kind = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    stump = kind(criterion=criterion, max_depth=1).fit(MOONS, y).arrays_
    gain = stump.decrease[0] / stump.weight[0]
    curves = of_gid(ax.lines, "curve")
    assert len(curves) == 2
    x, height = curves[stump.feature[0]].get_data()
    assert x[np.argmax(height)] == stump.threshold[0]
    assert max(max(curve.get_ydata()) for curve in curves) == pytest.approx(gain)
    (best,) = of_gid(ax.lines, "best")
    assert best.get_xydata()[0] == pytest.approx([stump.threshold[0], gain])
    (line,) = of_gid(ax.lines, "threshold")
    assert line.get_xdata()[0] == stump.threshold[0]
    for curve, told in zip(curves, gain_curves(MOONS, y, criterion=criterion).curves, strict=True):
        assert np.array_equal(curve.get_ydata(), told.decreases)


def test_curves_can_be_chosen_and_many_are_cut() -> None:
    ax = gain_against_threshold(IRIS, SPECIES, feature=[3], ax=Figure().subplots())
    assert len(of_gid(ax.lines, "curve")) == 1
    assert ax.get_legend().get_texts()[0].get_text() == "x3"
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(150, 14)), IRIS[:, 2]])
    ax = gain_against_threshold(X, SPECIES)
    assert len(of_gid(ax.lines, "curve")) == 10
    assert ax.get_title() == "the 10 of 15 features that gain most"
    assert "x14" in [text.get_text() for text in ax.get_legend().get_texts()]
    constant = gain_against_threshold(np.ones((4, 1)), [0, 1, 0, 1])
    assert constant.get_xlabel() == "no feature has two values"
    assert of_gid(constant.lines, "best") == []


def test_three_impurities_of_two_classes() -> None:
    ax = impurity_curves()
    lines = {line.get_gid(): line for line in ax.lines}
    p = lines["gini"].get_xdata()
    assert (p[0], p[-1]) == (0.0, 1.0)
    assert lines["gini"].get_ydata() == pytest.approx(2 * p * (1 - p))
    assert lines["error"].get_ydata() == pytest.approx(np.minimum(p, 1 - p))
    inner = p[1:-1]
    entropy = -(inner * np.log2(inner) + (1 - inner) * np.log2(1 - inner))
    assert lines["entropy"].get_ydata()[1:-1] == pytest.approx(entropy / 2)
    assert lines["entropy"].get_ydata()[[0, -1]] == pytest.approx([0.0, 0.0])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["Gini index", "entropy / 2", "classification error"]


def centres(collection):
    """The middle of each rectangle."""
    corners = [path.vertices[:4] for path in collection.get_paths()]
    return np.array([(own.min(axis=0) + own.max(axis=0)) / 2 for own in corners])


def test_regions_have_the_colours_of_their_class(of_moons) -> None:
    ax = regions(of_moons, MOONS, SIDES)
    (drawn,) = of_gid(ax.collections, "regions")
    assert len(drawn.get_paths()) == of_moons.get_n_leaves()
    predicted = of_moons.predict(centres(drawn))
    assert len(set(predicted)) == 2
    expected = [to_rgba(tint(int(code))) for code in predicted]
    assert np.allclose(drawn.get_facecolors(), expected)
    x, y = ax.get_xlim(), ax.get_ylim()
    sizes = [np.ptp(path.vertices[:4], axis=0).prod() for path in drawn.get_paths()]
    assert sum(sizes) == pytest.approx((x[1] - x[0]) * (y[1] - y[0]))  # all of what is seen
    data = of_gid(ax.collections, "data")
    assert sum(len(own.get_offsets()) for own in data) == len(MOONS)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1"]


def test_regions_without_data_show_all_edges(of_moons) -> None:
    ax = regions(of_moons)
    (drawn,) = of_gid(ax.collections, "regions")
    assert len(drawn.get_paths()) == of_moons.get_n_leaves()
    assert min(np.ptp(path.vertices[:4], axis=0).min() for path in drawn.get_paths()) > 0
    assert of_gid(ax.collections, "data") == []
    assert regions(of_moons, legend=False).get_legend() is None
    plain = regions(of_moons, MOONS)
    assert len(of_gid(plain.collections, "data")[0].get_offsets()) == len(MOONS)
    with pytest.raises(ValueError, match="y needs X"):
        regions(of_moons, y=SIDES)


def test_rows_without_a_value_have_no_place(of_moons) -> None:
    X = MOONS.copy()
    X[:7, 0] = np.nan
    data = of_gid(regions(of_moons, X, SIDES).collections, "data")
    assert sum(len(own.get_offsets()) for own in data) == len(MOONS) - 7


def test_the_surface_over_two_features(of_targets) -> None:
    ax = regression_surface(of_targets, MOONS, TARGETS)
    (drawn,) = of_gid(ax.collections, "regions")
    assert len(drawn.get_paths()) == of_targets.get_n_leaves()
    assert np.allclose(drawn.get_array(), of_targets.predict(centres(drawn)))
    (data,) = of_gid(ax.collections, "data")
    assert np.array_equal(data.get_array(), TARGETS)
    assert data.norm is drawn.norm
    assert drawn.get_clim() == (TARGETS.min(), TARGETS.max())


def test_the_surface_over_one_feature_is_steps() -> None:
    x = np.random.default_rng(0).uniform(0, 6, 80)
    model = DecisionTreeRegressor(max_depth=3).fit(x[:, None], np.sin(x))
    ax = regression_surface(model, x[:, None], np.sin(x))
    (steps,) = of_gid(ax.patches, "prediction")
    values, edges, _ = steps.get_data()
    assert len(values) == model.get_n_leaves()
    assert edges[0] < x.min()
    assert edges[-1] > x.max()
    assert values == pytest.approx(model.predict(((edges[:-1] + edges[1:]) / 2)[:, None]))
    assert edges[1:-1] == pytest.approx(
        np.sort(model.arrays_.threshold[model.arrays_.kind != LEAF])
    )
    (data,) = of_gid(ax.collections, "data")
    assert np.array_equal(data.get_offsets(), np.column_stack([x, np.sin(x)]))


def test_surfaces_and_regions_refuse_what_they_cannot_draw(of_iris, of_moons) -> None:
    with pytest.raises(TypeError, match=r"Use plot\.regions"):
        regression_surface(of_moons, MOONS, SIDES)
    line = DecisionTreeRegressor().fit(MOONS[:, :1], TARGETS)
    with pytest.raises(ValueError, match="over two features, but this one has one"):
        regions(line)
    with pytest.raises(ValueError, match="one or two"):
        regions(DecisionTreeClassifier().fit(IRIS, SPECIES))
    assert tree_regions(of_moons).classes == ("0", "1")
    assert plt.get_fignums() == []


def test_errors_are_drawn_against_leaves() -> None:
    halves = MOONS[::2], SIDES[::2], MOONS[1::2], SIDES[1::2]
    ax = error_against_size(DecisionTreeClassifier(), *halves)
    told = pruning_errors(DecisionTreeClassifier(), *halves)
    (training,) = of_gid(ax.lines, "training")
    (test,) = of_gid(ax.lines, "test")
    assert np.array_equal(
        training.get_xydata(), np.column_stack([told.n_leaves, told.training_errors])
    )
    assert np.array_equal(test.get_xydata(), np.column_stack([told.n_leaves, told.test_errors]))
    assert training.get_ydata()[0] == 0.0  # overfitted
    assert test.get_ydata()[0] > 0.0
    (best,) = of_gid(ax.lines, "best")
    assert best.get_ydata()[0] == min(test.get_ydata())
    size = int(told.n_leaves[told.best])
    assert ax.get_legend().get_texts()[2].get_text() == f"smallest test error: {size} leaves"
    assert (ax.get_xscale(), ax.get_ylabel()) == ("linear", "share misclassified")


def test_many_sizes_are_on_a_logarithmic_scale() -> None:
    model = DecisionTreeRegressor().fit(MOONS, TARGETS)
    ax = error_against_size(model, MOONS, TARGETS, MOONS + 0.1, TARGETS, ax=Figure().subplots())
    assert (ax.get_xscale(), ax.get_ylabel()) == ("log", "mean squared error")
    assert of_gid(ax.lines, "training")[0].get_xdata()[0] == model.get_n_leaves()
