"""A fitted decision tree as a drawing: on matplotlib's axes, as SVG, or as a page of HTML.

    sketch of the tree  ->  positions  ->  shapes          ->  one of three pens
    margrove.facts          tidily         lines, boxes        matplotlib, SVG, HTML

All lengths are in points, downwards from the top left corner. Nothing is recursive.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import SketchNode, SplitHistogram, TreeSketch, sketch_tree
from margrove.plot.canvas import class_style, new_panels, usable_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["tidy_positions", "tree", "tree_html", "tree_svg"]

_FONT, _LINE, _PAD = 10.0, 14.0, 6.0
_BAR, _HISTOGRAM = 8.0, 30.0  # heights
_GAP, _DROP, _MARGIN = 14.0, 44.0, 12.0  # beside, below and around nodes
_NARROWEST = 60.0
_LETTER, _BOLD_LETTER = 0.62, 0.68  # widths of a letter, of the font's size
_LONGEST_QUESTION, _LONGEST_ANSWER = 190.0, 110.0  # widths
_MOST_OUTPUTS = 4  # with a bar each
_MOST_CLASSES = 12  # in the legend
_MOST_PARTS = 20  # of a bar
_LARGEST_FIGURE = 100.0  # inches

_INK, _FAINT, _PAPER = "#222222", "#999999", "#ffffff"


def tree(
    model: Any,
    *,
    max_depth: int | None = None,
    row: Any = None,
    X: Any = None,
    y: Any = None,
    decimals: int = 3,
    ax: Axes | None = None,
) -> Axes:
    """Draw a fitted decision tree.

    Each node shows what it asks or predicts, how many training rows came by, and the shares of the
    classes as a bar, or the mean. What is drawn can be had as data from
    `margrove.facts.sketch_tree`.

    Parts can be found by their `gid`, which ends in the number of the node: "node 0" and "leaf 1"
    are boxes, "question 0", "prediction 1", "samples 1" and "branch 1" (the answer that leads to
    it) are texts, "edge 1" or "path 1" is the line from above, "share 1" is a part of its bar,
    "histogram 0" and "threshold 0" are those of a split, "hidden 2" stands for nodes that are not
    shown. "legend" and "note" have no number.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    max_depth : int, optional
        Of the lowest nodes drawn; three points stand for those below. By default as deep as 200
        nodes reach; a note says so.
    row : array-like of shape (n_features,), mapping or table of one row, optional
        Whose way is drawn bold.
    X, y : array-like, optional
        Rows, and their classes or targets: each question gets a small histogram of the feature
        that it asks.
    decimals : int, default=3
        Digits after the point.
    ax : matplotlib Axes, optional
        By default those of a new figure that is as large as the tree needs.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_play_tennis(return_X_y=True, as_frame=True)
    >>> model = margrove.DecisionTreeClassifier(split="multiway").fit(X, y)
    >>> ax = margrove.plot.tree(model, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts if text.get_gid().startswith("branch")][:3]
    ['overcast', 'rain', 'strong']
    """
    sketch = sketch_tree(model, max_depth=max_depth, row=row, X=X, y=y, decimals=decimals)
    drawing = _drawing_of(sketch)
    if ax is None:
        width, height = (
            min(side / 72.0, _LARGEST_FIGURE) for side in (drawing.width, drawing.height)
        )
        axes = new_panels(1, size=(width, height))[0]
        axes.set_position((0.0, 0.0, 1.0, 1.0))
    else:
        axes = usable_axes(ax)
    _draw(axes, drawing)
    return axes


def tree_svg(
    model: Any,
    *,
    max_depth: int | None = None,
    row: Any = None,
    X: Any = None,
    y: Any = None,
    decimals: int = 3,
) -> str:
    """A fitted decision tree as a picture in SVG, made without matplotlib.

    It contains no script and refers to nothing outside. Shapes have the names of `plot.tree` as
    their class, and the number of their node as `data-node`.

    Parameters
    ----------
    model, max_depth, row, X, y, decimals
        As for `plot.tree`.

    Returns
    -------
    str

    Examples
    --------
    >>> import margrove
    >>> model = margrove.DecisionTreeRegressor().fit([[1.0], [3.0]], [0.0, 5.0])
    >>> margrove.plot.tree_svg(model).startswith("<svg xmlns=")
    True
    """
    sketch = sketch_tree(model, max_depth=max_depth, row=row, X=X, y=y, decimals=decimals)
    return "\n".join(_svg_lines(_drawing_of(sketch))) + "\n"


def tree_html(
    model: Any,
    *,
    max_depth: int | None = None,
    row: Any = None,
    X: Any = None,
    y: Any = None,
    decimals: int = 3,
) -> str:
    """A fitted decision tree as a page of HTML: the picture of `tree_svg` and a table of its nodes.

    The page contains no script, refers to nothing outside, and forbids both.

    Parameters
    ----------
    model, max_depth, row, X, y, decimals
        As for `plot.tree`.

    Returns
    -------
    str

    Examples
    --------
    >>> import margrove
    >>> model = margrove.DecisionTreeRegressor().fit([[1.0], [3.0]], [0.0, 5.0])
    >>> margrove.plot.tree_html(model).splitlines()[0]
    '<!DOCTYPE html>'
    """
    sketch = sketch_tree(model, max_depth=max_depth, row=row, X=X, y=y, decimals=decimals)
    return "\n".join(_html_lines(sketch)) + "\n"


# -- positions -----------------------------------------------------------------------------------


def tidy_positions(
    parent: Sequence[int | None], widths: Sequence[float], gap: float = _GAP
) -> np.ndarray:
    """Where the centres of nodes are from left to right; the root is at 0.

    Nodes are in preorder. Those of the same depth do not overlap and are `gap` apart at least, a
    parent is in the middle between its first and its last child, and the mirrored tree has the
    mirrored positions.

    As in Reingold and Tilford (1981): children's subtrees are pushed together until their contours
    touch. Subtrees between two large ones would all lean to one side, so that is done once from
    the left and once from the right. The mean of both is as tidy: all of the above is linear.
    """
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent):
        if above is not None:
            children[above].append(node)
    mirrored = [own[::-1] for own in children]
    from_left = _pushed_together(parent, children, widths, gap)
    from_right = _pushed_together(parent, mirrored, widths, gap)
    return 0.5 * (from_left - from_right)


@dataclass
class _Contour:
    """How far a subtree reaches to one side, the lowest level first, less a common shift.

    Lowest first, because levels are added on top; the shift, because a subtree moves as a whole.
    So merging two contours takes no longer than the shorter one is.
    """

    reach: list[float]
    shift: float = 0.0

    def covered_by(self, other: _Contour) -> _Contour:
        """The contour of both subtrees, where `other` is on the outside and hides this one."""
        n_common = len(other.reach)
        if n_common >= len(self.reach):
            return other
        for level in range(1, n_common + 1):
            self.reach[-level] = other.reach[-level] + other.shift - self.shift
        return self


def _pushed_together(
    parent: Sequence[int | None],
    children: Sequence[Sequence[int]],
    widths: Sequence[float],
    gap: float,
) -> np.ndarray:
    """Each subtree as far to the left as those before it permit."""
    n = len(parent)
    offset = np.zeros(n)  # from the parent
    left: list[_Contour | None] = [None] * n
    right: list[_Contour | None] = [None] * n
    for node in range(n - 1, -1, -1):
        outer_left, outer_right = _Contour([]), _Contour([])
        centre = 0.0
        for child in children[node]:
            own_left, own_right = left[child], right[child]
            left[child] = right[child] = None
            assert own_left is not None
            assert own_right is not None
            push = _least_distance(outer_right, own_left, gap)
            own_left.shift += push
            own_right.shift += push
            outer_left = own_left.covered_by(outer_left)
            outer_right = outer_right.covered_by(own_right)
            offset[child] = push
        if children[node]:
            centre = 0.5 * (offset[children[node][0]] + offset[children[node][-1]])
        for child in children[node]:
            offset[child] -= centre
        half = 0.5 * widths[node]
        for contour, reach in ((outer_left, -half), (outer_right, half)):
            contour.shift -= centre
            contour.reach.append(reach - contour.shift)
        left[node], right[node] = outer_left, outer_right
    for node in range(1, n):
        offset[node] += offset[parent[node]]
    return offset


def _least_distance(right: _Contour, left: _Contour, gap: float) -> float:
    n_common = min(len(right.reach), len(left.reach))
    if not n_common:
        return 0.0
    apart = max(right.reach[-k] - left.reach[-k] for k in range(1, n_common + 1))
    return apart + right.shift - left.shift + gap


# -- shapes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Box:
    """A rectangle; x and y are its top left corner."""

    role: str
    x: float
    y: float
    width: float
    height: float
    fill: str
    edge: str | None = None
    line_width: float = 0.0


@dataclass(frozen=True)
class _Line:
    role: str
    start: tuple[float, float]
    end: tuple[float, float]
    colour: str
    line_width: float


@dataclass(frozen=True)
class _Words:
    """A line of text; y is its middle, x its middle too, or where it starts."""

    role: str
    x: float
    y: float
    text: str
    is_bold: bool = False
    is_centred: bool = True


_Shape = _Box | _Line | _Words


@dataclass(frozen=True)
class _Group:
    """The shapes of a node, or those of none, and the same in words."""

    number: int | None
    words: str
    shapes: tuple[_Shape, ...]


@dataclass(frozen=True)
class _Drawing:
    width: float
    height: float
    groups: tuple[_Group, ...]


@dataclass(frozen=True)
class _Card:
    """What is in the box of a node, and how large it is."""

    lines: tuple[tuple[str, str], ...]  # role and text, the first bold
    bars: tuple[tuple[float, ...], ...]
    histogram: SplitHistogram | None
    answer: str
    width: float
    height: float

    @property
    def slot(self) -> float:
        """The width that it takes, with the answer above."""
        return max(self.width, _width(self.answer))


def _drawing_of(sketch: TreeSketch) -> _Drawing:
    cards = [_card(sketch, node) for node in sketch.nodes]
    slots = np.array([card.slot for card in cards])
    x = tidy_positions([node.parent for node in sketch.nodes], slots.tolist())
    heading = _heading(sketch)
    tree_width = float((x + slots / 2).max() - (x - slots / 2).min())
    width = max([tree_width, *(_right_end(shape) for shape in heading)]) + 2 * _MARGIN
    x += 0.5 * (width - tree_width) - (x - slots / 2).min()
    top = _MARGIN + _LINE * len({shape.y for shape in heading if isinstance(shape, _Words)})
    tops, bottom = _tops(sketch, cards, top + (_LINE if heading else 0.0))
    groups = [_Group(None, "", tuple(heading))]
    ramp = _ramp_of(sketch)
    for k, (node, card) in enumerate(zip(sketch.nodes, cards, strict=True)):
        at = float(x[k]), tops[node.depth]
        own = list(_node_shapes(node, card, ramp, *at))
        if node.parent is not None:
            above = sketch.nodes[node.parent]
            start = float(x[node.parent]), tops[above.depth] + cards[node.parent].height
            own.insert(0, _line_to(node, start, at))
            own.append(_Words("branch", at[0], at[1] - 0.6 * _LINE, card.answer))
        groups.append(_Group(node.number, _node_words(sketch, node), tuple(own)))
    return _Drawing(width, bottom + _MARGIN, tuple(groups))


def _card(sketch: TreeSketch, node: SketchNode) -> _Card:
    told = [("question", node.question)] if node.question else [("prediction", node.prediction)]
    told.append(("samples", f"{node.samples:,} sample{'' if node.samples == 1 else 's'}"))
    if node.question and node.means:
        middle = "median" if sketch.criterion == "absolute_error" else "mean"
        told.append(("prediction", f"{middle} {node.prediction}"))
    lines = tuple((role, _cut(text, _LONGEST_QUESTION)) for role, text in told)
    bars = node.shares[:_MOST_OUTPUTS]
    widest = max(_width(text, is_bold=k == 0) for k, (_, text) in enumerate(lines))
    height = _LINE * len(lines) + (_BAR + 2.0) * len(bars)
    if node.histogram is not None:
        height += _HISTOGRAM + _PAD
    return _Card(
        lines=lines,
        bars=bars,
        histogram=node.histogram,
        answer=_cut(node.branch, _LONGEST_ANSWER),
        width=max(widest, _NARROWEST) + 2 * _PAD,
        height=height + 2 * _PAD,
    )


def _tops(sketch: TreeSketch, cards: list[_Card], top: float) -> tuple[list[float], float]:
    """Where the boxes of each depth begin, and where the last ones end."""
    heights = np.zeros(1 + max(node.depth for node in sketch.nodes))
    for node, card in zip(sketch.nodes, cards, strict=True):
        heights[node.depth] = max(heights[node.depth], card.height)
    starts = top + np.concatenate([[0.0], np.cumsum(heights + _DROP)])
    hangs = any(node.hidden for node in sketch.nodes)
    bottom = starts[-1] - _DROP + (2 * _LINE if hangs else 0.0)
    return starts.tolist(), float(bottom)


def _line_to(node: SketchNode, start: tuple[float, float], end: tuple[float, float]) -> _Line:
    if node.path_share > 0.0:
        return _Line("path", start, end, _INK, 1.0 + 2.0 * node.path_share)
    return _Line("edge", start, end, _FAINT, 1.0)


def _node_shapes(
    node: SketchNode, card: _Card, ramp: _Ramp, x: float, y: float
) -> Iterator[_Shape]:
    left, inner = x - 0.5 * card.width, card.width - 2 * _PAD
    on_path = node.path_share > 0.0
    yield _Box(
        "node" if node.question else "leaf", left, y, card.width, card.height,
        _fill(node, ramp), _INK if on_path else _FAINT, 2.5 if on_path else 1.0,
    )  # fmt: skip
    down = y + _PAD
    for k, (role, text) in enumerate(card.lines):
        yield _Words(role, x, down + 0.5 * _LINE, text, is_bold=k == 0)
        down += _LINE
    for shares in card.bars:
        yield from _share_bar(shares, left + _PAD, down + 2.0, inner)
        down += _BAR + 2.0
    if card.histogram is not None:
        yield from _histogram_bars(card.histogram, left + _PAD, down + _PAD, inner, ramp)
    if node.hidden:
        below = y + card.height + _LINE
        count = f"{node.hidden:,} node{'' if node.hidden == 1 else 's'}"
        yield _Words("hidden", x, below, f"… {count}")


def _share_bar(shares: Sequence[float], x: float, y: float, width: float) -> Iterator[_Box]:
    for code, share in _largest_parts(shares):
        yield _Box("share", x, y, width * share, _BAR, _class_colour(code))
        x += width * share


def _largest_parts(amounts: Sequence[float]) -> list[tuple[int | None, float]]:
    """Code and amount of each class that has some; of many, the small ones as one without code."""
    parts = [(code, amount) for code, amount in enumerate(amounts) if amount > 0]
    if len(parts) <= _MOST_PARTS:
        return [*parts]
    largest = sorted(parts, key=lambda part: -part[1])[: _MOST_PARTS - 1]
    rest = sum(amounts) - sum(amount for _, amount in largest)
    return [*sorted(largest), (None, rest)]


def _class_colour(code: int | None) -> str:
    return _FAINT if code is None else str(class_style(code)["color"])


def _histogram_bars(
    histogram: SplitHistogram, x: float, y: float, width: float, ramp: _Ramp
) -> Iterator[_Shape]:
    """Bars on a common floor, the rows of the classes on top of each other."""
    floor = y + _HISTOGRAM
    yield _Line("floor", (x, floor), (x + width, floor), _FAINT, 0.5)
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])
    half = 0.5 * high - 0.5 * low  # the range itself may overflow

    def across(value: float) -> float:
        return x + width * (0.5 if half == 0.0 else (0.5 * value - 0.5 * low) / half)

    most = max(1, int(histogram.counts.sum(axis=0).max()))
    for bar, counts in enumerate(histogram.counts.T.tolist()):
        start, end = (across(float(edge)) for edge in histogram.edges[bar : bar + 2])
        if start == end:  # all rows have the same value
            start, end = start - 0.1 * width, end + 0.1 * width
        top = floor
        for code, count in _largest_parts(counts):
            height = _HISTOGRAM * count / most
            top -= height
            fill = _bar_colour(histogram, code, bar, ramp)
            yield _Box("histogram", start, top, max(end - start - 0.5, 0.5), height, fill)
    if histogram.threshold is not None:
        at = across(histogram.threshold)
        yield _Line("threshold", (at, y - 2.0), (at, floor), _INK, 1.0)


def _bar_colour(histogram: SplitHistogram, code: int | None, bar: int, ramp: _Ramp) -> str:
    if histogram.means is not None:
        return ramp.colour(float(histogram.means[bar]))
    return _class_colour(code if len(histogram.counts) > 1 else None)


def _fill(node: SketchNode, ramp: _Ramp) -> str:
    """Pale enough to write on: leaves have the colour of their class, all have that of a mean."""
    if node.means:
        return _pale(ramp.colour(node.means[0]), 0.5)
    if node.question:
        return _PAPER
    return _pale(_class_colour(int(np.argmax(node.shares[0]))), 0.3)


@dataclass(frozen=True)
class _Ramp:
    """Colours of numbers, from nearly white for the lowest to blue for the highest."""

    low: float
    high: float

    def colour(self, value: float) -> str:
        half = 0.5 * self.high - 0.5 * self.low  # the range itself may overflow
        place = 0.5 if not half > 0.0 else (0.5 * value - 0.5 * self.low) / half
        return _pale(_class_colour(0), 0.1 + 0.9 * min(max(place, 0.0), 1.0))


def _ramp_of(sketch: TreeSketch) -> _Ramp:
    means = [node.means[0] for node in sketch.nodes if node.means]
    return _Ramp(min(means, default=0.0), max(means, default=0.0))


def _pale(colour: str, strength: float) -> str:
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 - strength * (255 - part)):02x}" for part in parts)


def _heading(sketch: TreeSketch) -> list[_Shape]:
    """The legend, a line for each output, and what is not shown."""
    shapes: list[_Shape] = []
    y = _MARGIN + 0.5 * _LINE
    for output, classes in enumerate(sketch.classes[:_MOST_OUTPUTS]):
        x = _MARGIN
        several = len(sketch.classes) > 1
        entries: list[tuple[str | None, str]] = [(None, f"output {output}:")] if several else []
        entries += [
            (_class_colour(code), _cut(label, _LONGEST_ANSWER))
            for code, label in enumerate(classes[:_MOST_CLASSES])
        ]
        if len(classes) > _MOST_CLASSES:
            entries.append((None, f"and {len(classes) - _MOST_CLASSES} more"))
        for colour, text in entries:
            if colour is not None:
                shapes.append(_Box("legend", x, y - 0.5 * _BAR, _BAR, _BAR, colour))
                x += _BAR + 3.0
            shapes.append(_Words("legend", x, y, text, is_centred=False))
            x += _width(text) + _GAP
        y += _LINE
    if sketch.cut_at is not None:
        note = (
            f"down to depth {sketch.cut_at} of {sketch.depth}: {len(sketch.nodes):,} of "
            f"{sketch.n_nodes:,} nodes; max_depth=... shows others"
        )
        shapes.append(_Words("note", _MARGIN, y, note, is_centred=False))
    return shapes


def _right_end(shape: _Shape) -> float:
    return shape.x + _width(shape.text) - _MARGIN if isinstance(shape, _Words) else 0.0


def _node_words(sketch: TreeSketch, node: SketchNode) -> str:
    """All that is known of a node, a line each, for readers of pictures without eyes."""
    words = [f"node {node.number}" + (f", {node.branch}" if node.branch else "")]
    words.append(node.question or node.prediction)
    words.append(f"{node.samples} samples, {100.0 * node.coverage:.3g} % of the weight")
    words.append(f"{sketch.criterion} {node.impurity:.4g}")
    for classes, shares in zip(sketch.classes, node.shares, strict=True):
        pairs = zip(classes, shares, strict=True)
        words.append(", ".join(f"{label}: {share:.3g}" for label, share in pairs if share > 0.0))
    return "\n".join(words)


def _width(text: str, is_bold: bool = False) -> float:
    letter = _BOLD_LETTER if is_bold else _LETTER
    return _FONT * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else letter for c in text)


def _cut(text: str, most: float) -> str:
    if _width(text) <= most:
        return text
    end, room = 0, most - _FONT
    while room > 0.0:
        room -= _width(text[end])
        end += 1
    return text[: end - 1] + "…"


# -- matplotlib ----------------------------------------------------------------------------------


def _draw(axes: Axes, drawing: _Drawing) -> None:
    """In the drawing's own coordinates; texts and lines shrink with it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    extent = axes.get_window_extent()
    inches = extent.width / axes.figure.dpi, extent.height / axes.figure.dpi
    scale = min(72.0 * inches[0] / drawing.width, 72.0 * inches[1] / drawing.height, 1.0)
    axes.set_xlim(0.0, drawing.width)
    axes.set_ylim(drawing.height, 0.0)
    axes.set_axis_off()
    for group in drawing.groups:
        for shape in group.shapes:
            artist: Any
            if isinstance(shape, _Box):
                artist = axes.add_patch(
                    Rectangle((shape.x, shape.y), shape.width, shape.height, zorder=2,
                              facecolor=shape.fill, edgecolor=shape.edge or "none",
                              linewidth=shape.line_width * scale)
                )  # fmt: skip
            elif isinstance(shape, _Line):
                ends = zip(shape.start, shape.end, strict=True)
                is_edge = shape.role in ("edge", "path")
                artist = axes.add_line(
                    Line2D(*ends, color=shape.colour, linewidth=shape.line_width * scale,
                           zorder=1 if is_edge else 3)
                )  # fmt: skip
            else:
                artist = _write(axes, shape, scale)
            artist.set_gid(shape.role if group.number is None else f"{shape.role} {group.number}")


def _write(axes: Axes, words: _Words, scale: float) -> Any:
    """Names are the user's: a dollar sign in them is no mathematics."""
    behind = {"facecolor": _PAPER, "edgecolor": "none", "pad": 0.5}
    return axes.text(
        words.x,
        words.y,
        words.text,
        fontsize=max(_FONT * scale, 0.5),
        fontweight="bold" if words.is_bold else "normal",
        color=_INK,
        ha="center" if words.is_centred else "left",
        va="center",
        parse_math=False,
        zorder=4,
        bbox=behind if words.role == "branch" else None,
    )


# -- SVG and HTML --------------------------------------------------------------------------------


def _svg_lines(drawing: _Drawing) -> Iterator[str]:
    """Every text goes through `escape`; all else is ours."""
    width, height = _number(drawing.width), _number(drawing.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}pt" height="{height}pt" font-family="sans-serif" '
        f'font-size="{_number(_FONT)}">'
    )
    yield "<title>Decision tree</title>"
    # Lines first: boxes and answers are drawn over them.
    for group in drawing.groups:
        for shape in group.shapes:
            if isinstance(shape, _Line) and shape.role in ("edge", "path"):
                yield _svg_shape(shape, group.number)
    for group in drawing.groups:
        yield "<g>"
        if group.words:
            yield f"<title>{escape(group.words)}</title>"
        for shape in group.shapes:
            if shape.role not in ("edge", "path"):
                yield _svg_shape(shape, group.number)
        yield "</g>"
    yield "</svg>"


def _svg_shape(shape: _Shape, number: int | None) -> str:
    told = f'class="{shape.role}"' + ("" if number is None else f' data-node="{number}"')
    if isinstance(shape, _Box):
        return (
            f'<rect {told} x="{_number(shape.x)}" y="{_number(shape.y)}" '
            f'width="{_number(shape.width)}" height="{_number(shape.height)}" fill="{shape.fill}"'
            + _stroke(shape.edge, shape.line_width)
        )
    if isinstance(shape, _Line):
        (x1, y1), (x2, y2) = shape.start, shape.end
        return (
            f'<line {told} x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" '
            f'y2="{_number(y2)}"' + _stroke(shape.colour, shape.line_width)
        )
    weight = ' font-weight="bold"' if shape.is_bold else ""
    anchor = ' text-anchor="middle"' if shape.is_centred else ""
    if shape.role == "branch":  # a halo, so that the line does not cross it
        weight += f' stroke="{_PAPER}" stroke-width="4" paint-order="stroke"'
    baseline = _number(shape.y + 0.35 * _FONT)
    return (
        f'<text {told} x="{_number(shape.x)}" y="{baseline}" fill="{_INK}"{anchor}{weight}>'
        f"{escape(shape.text)}</text>"
    )


def _stroke(colour: str | None, width: float) -> str:
    return "/>" if colour is None else f' stroke="{colour}" stroke-width="{_number(width)}"/>'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


_STYLE = """
body { font-family: sans-serif; color: #222222; margin: 2em; }
figure { margin: 0 0 2em 0; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2em 0.8em; border-bottom: 1px solid #dddddd; }
tr.path { font-weight: bold; }
"""


def _html_lines(sketch: TreeSketch) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    )
    yield "<title>Decision tree</title>"
    yield f"<style>{_STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield "<h1>Decision tree</h1>"
    yield f"<p>{sketch.n_nodes:,} nodes, depth {sketch.depth}, {escape(sketch.criterion)}</p>"
    yield "<figure>"
    yield from _svg_lines(_drawing_of(sketch))
    yield "</figure>"
    yield from _table_lines(sketch)
    yield "</body>"
    yield "</html>"


def _table_lines(sketch: TreeSketch) -> Iterator[str]:
    """The nodes that are shown, a row each."""
    titles = ("node", "below", "answer", "question", "prediction", "samples", sketch.criterion)
    yield "<table>"
    yield f"<tr>{''.join(f'<th>{escape(title)}</th>' for title in titles)}</tr>"
    for node in sketch.nodes:
        above = "" if node.parent is None else str(sketch.nodes[node.parent].number)
        cells = (str(node.number), above, node.branch, node.question, node.prediction,
                 f"{node.samples:,}", f"{node.impurity:.4g}")  # fmt: skip
        row = '<tr class="path">' if node.path_share > 0.0 else "<tr>"
        yield f"{row}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>"
