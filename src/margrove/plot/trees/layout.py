"""The layout of a drawn tree: from a sketch to boxes, lines and texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from margrove.facts import SketchNode, SplitHistogram, TreeSketch
from margrove.grove import CRITERIA
from margrove.plot.trees.shapes import FONT, INK, NEUTRAL, Box, Drawing, Group, Line, Shape, Text

__all__ = ["drawing_of", "tidy_positions"]

# Lengths in points
_LINE, _PAD = 14.0, 6.0  # height of a line of text, and padding in a box
_BAR, _HISTOGRAM = 8.0, 30.0  # heights
_GAP, _DROP, _MARGIN = 14.0, 44.0, 12.0  # between nodes, between levels, around the drawing
_NARROWEST = 60.0  # width of a box
_LETTER, _BOLD_LETTER = 0.62, 0.68  # widths of a letter, relative to the font size
_LONGEST_QUESTION, _LONGEST_ANSWER = 190.0, 110.0  # widths
_MOST_OUTPUTS = 4  # each has a bar
_MOST_CLASSES = 12  # in the legend
_MOST_SEGMENTS = 20  # of a bar
_LEAF_STRENGTH, _MEAN_STRENGTH = 0.3, 0.5  # of colours, pale enough to write on


@dataclass(frozen=True)
class _Card:
    """The content of the box of a node, and its size."""

    lines: tuple[tuple[str, str], ...]  # role and text, the first bold
    bars: tuple[tuple[float, ...], ...]
    histogram: SplitHistogram | None
    answer: str
    width: float
    height: float

    @property
    def slot(self) -> float:
        """The width of the box, or of the branch's text above it."""
        return max(self.width, _width(self.answer))


def drawing_of(sketch: TreeSketch) -> Drawing:
    """All shapes of a tree, nodes in preorder."""
    cards = [_card(sketch, node) for node in sketch.nodes]
    slots = np.array([card.slot for card in cards])
    x = tidy_positions([node.parent for node in sketch.nodes], slots.tolist(), _GAP)
    heading = _heading(sketch)
    tree_width = float((x + slots / 2).max() - (x - slots / 2).min())
    width = max([tree_width, *(_right_end(shape) for shape in heading)]) + 2 * _MARGIN
    x += 0.5 * (width - tree_width) - (x - slots / 2).min()
    top = _MARGIN + _LINE * len({shape.y for shape in heading if isinstance(shape, Text)})
    tops, bottom = _tops(sketch, cards, top + (_LINE if heading else 0.0))
    groups = [Group(None, "", tuple(heading))]
    ramp = _ramp_of(sketch)
    for k, (node, card) in enumerate(zip(sketch.nodes, cards, strict=True)):
        at = float(x[k]), tops[node.depth]
        shapes = list(_node_shapes(node, card, ramp, *at))
        if node.parent is not None:
            above = sketch.nodes[node.parent]
            start = float(x[node.parent]), tops[above.depth] + cards[node.parent].height
            shapes.insert(0, _line_to(node, start, at))
            shapes.append(Text("branch", at[0], at[1] - 0.6 * _LINE, card.answer))
        groups.append(Group(node.number, _description(sketch, node), tuple(shapes)))
    return Drawing(width, bottom + _MARGIN, tuple(groups))


def _has_medians(criterion: str) -> bool:
    known = CRITERIA.get(criterion)  # None if it was registered in another process
    return known is not None and known.has_medians


def _card(sketch: TreeSketch, node: SketchNode) -> _Card:
    texts = [("question", node.question)] if node.question else [("prediction", node.prediction)]
    texts.append(("samples", _counted(node.samples, "sample")))
    if node.question and node.means:
        middle = "median" if _has_medians(sketch.criterion) else "mean"
        texts.append(("prediction", f"{middle} {node.prediction}"))
    lines = tuple((role, _cut(text, _LONGEST_QUESTION)) for role, text in texts)
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
    """The tops of the boxes of each depth, and the bottom of the last ones."""
    heights = np.zeros(1 + max(node.depth for node in sketch.nodes))
    for node, card in zip(sketch.nodes, cards, strict=True):
        heights[node.depth] = max(heights[node.depth], card.height)
    starts = top + np.concatenate([[0.0], np.cumsum(heights + _DROP)])
    has_hidden = any(node.hidden for node in sketch.nodes)
    bottom = starts[-1] - _DROP + (2 * _LINE if has_hidden else 0.0)
    return starts.tolist(), float(bottom)


def _line_to(node: SketchNode, start: tuple[float, float], end: tuple[float, float]) -> Line:
    if node.path_share > 0.0:
        return Line("path", start, end, INK, 1.0 + 2.0 * node.path_share)
    return Line("edge", start, end, NEUTRAL, 1.0)


def _node_shapes(node: SketchNode, card: _Card, ramp: _Ramp, x: float, y: float) -> Iterator[Shape]:
    left, inner = x - 0.5 * card.width, card.width - 2 * _PAD
    on_path = node.path_share > 0.0
    yield Box(
        "node" if node.question else "leaf", left, y, card.width, card.height,
        *_colour(node, ramp), INK if on_path else NEUTRAL, 2.5 if on_path else 1.0,
    )  # fmt: skip
    down = y + _PAD
    for k, (role, text) in enumerate(card.lines):
        yield Text(role, x, down + 0.5 * _LINE, text, is_bold=k == 0)
        down += _LINE
    for shares in card.bars:
        yield from _share_bar(shares, left + _PAD, down + 2.0, inner)
        down += _BAR + 2.0
    if card.histogram is not None:
        yield from _histogram_bars(card.histogram, left + _PAD, down + _PAD, inner, ramp)
    if node.hidden:
        below = y + card.height + _LINE
        yield Text("hidden", x, below, f"… {_counted(node.hidden, 'node')}")


def _share_bar(shares: Sequence[float], x: float, y: float, width: float) -> Iterator[Box]:
    for code, share in _segments(shares):
        yield Box("share", x, y, width * share, _BAR, code)
        x += width * share


def _segments(amounts: Sequence[float]) -> list[tuple[int | None, float]]:
    """Code and amount of each class; of many classes, small ones are one segment without a code."""
    segments = [(code, amount) for code, amount in enumerate(amounts) if amount > 0]
    if len(segments) <= _MOST_SEGMENTS:
        return [*segments]
    largest = sorted(segments, key=lambda segment: -segment[1])[: _MOST_SEGMENTS - 1]
    rest = sum(amounts) - sum(amount for _, amount in largest)
    return [*sorted(largest), (None, rest)]


def _histogram_bars(
    histogram: SplitHistogram, x: float, y: float, width: float, ramp: _Ramp
) -> Iterator[Shape]:
    """Stacked bars, a segment for the rows of each class."""
    floor = y + _HISTOGRAM
    yield Line("floor", (x, floor), (x + width, floor), NEUTRAL, 0.5)
    low, high = float(histogram.edges[0]), float(histogram.edges[-1])

    def across(value: float) -> float:
        return x + width * _place_between(low, high, value)

    most = max(1, int(histogram.counts.sum(axis=0).max()))
    for bar, counts in enumerate(histogram.counts.T.tolist()):
        start, end = (across(float(edge)) for edge in histogram.edges[bar : bar + 2])
        if start == end:  # all rows have the same value
            start, end = start - 0.1 * width, end + 0.1 * width
        top = floor
        for code, count in _segments(counts):
            height = _HISTOGRAM * count / most
            top -= height
            colour = _bar_colour(histogram, code, bar, ramp)
            yield Box("histogram", start, top, max(end - start - 0.5, 0.5), height, *colour)
    if histogram.threshold is not None:
        at = across(histogram.threshold)
        yield Line("threshold", (at, y - 2.0), (at, floor), INK, 1.0)


def _bar_colour(
    histogram: SplitHistogram, code: int | None, bar: int, ramp: _Ramp
) -> tuple[int | None, float]:
    """Class code and strength."""
    if histogram.means is not None:
        return 0, ramp.strength(float(histogram.means[bar]))
    return (code if len(histogram.counts) > 1 else None), 1.0


def _colour(node: SketchNode, ramp: _Ramp) -> tuple[int | None, float]:
    """Class code and strength: a leaf shows its class, and every node shows its mean."""
    if node.means:
        return 0, _MEAN_STRENGTH * ramp.strength(node.means[0])
    if node.question:
        return None, 0.0
    return int(np.argmax(node.shares[0])), _LEAF_STRENGTH


@dataclass(frozen=True)
class _Ramp:
    """Strengths of a colour for numbers: nearly white for the lowest, full for the highest."""

    low: float
    high: float

    def strength(self, value: float) -> float:
        place = _place_between(self.low, self.high, value)
        return 0.1 + 0.9 * min(max(place, 0.0), 1.0)


def _place_between(low: float, high: float, value: float) -> float:
    """0 for the lowest value, 1 for the highest; 0.5 if the two are the same."""
    half = 0.5 * high - 0.5 * low  # high - low may overflow
    return (0.5 * value - 0.5 * low) / half if half > 0.0 else 0.5


def _ramp_of(sketch: TreeSketch) -> _Ramp:
    means = [node.means[0] for node in sketch.nodes if node.means]
    return _Ramp(min(means, default=0.0), max(means, default=0.0))


def _heading(sketch: TreeSketch) -> list[Shape]:
    """The legend, one line for each output, and a note if nodes are not shown."""
    shapes: list[Shape] = []
    y = _MARGIN + 0.5 * _LINE
    for output, classes in enumerate(sketch.classes[:_MOST_OUTPUTS]):
        x = _MARGIN
        several = len(sketch.classes) > 1
        entries: list[tuple[int | None, str]] = [(None, f"output {output}:")] if several else []
        entries += [
            (code, _cut(label, _LONGEST_ANSWER))
            for code, label in enumerate(classes[:_MOST_CLASSES])
        ]
        if len(classes) > _MOST_CLASSES:
            entries.append((None, f"and {len(classes) - _MOST_CLASSES} more"))
        for code, text in entries:
            if code is not None:
                shapes.append(Box("legend", x, y - 0.5 * _BAR, _BAR, _BAR, code))
                x += _BAR + 3.0
            shapes.append(Text("legend", x, y, text, is_centred=False))
            x += _width(text) + _GAP
        y += _LINE
    if sketch.cut_at is not None:
        note = (
            f"down to depth {sketch.cut_at} of {sketch.depth}: {len(sketch.nodes):,} of "
            f"{sketch.n_nodes:,} nodes; max_depth=... shows others"
        )
        shapes.append(Text("note", _MARGIN, y, note, is_centred=False))
    return shapes


def _right_end(shape: Shape) -> float:
    return shape.x + _width(shape.text) - _MARGIN if isinstance(shape, Text) else 0.0


def _description(sketch: TreeSketch, node: SketchNode) -> str:
    """All facts about a node, one per line, for tooltips and screen readers."""
    lines = [f"node {node.number}" + (f", {node.branch}" if node.branch else "")]
    lines.append(node.question or node.prediction)
    lines.append(f"{node.samples} samples, {100.0 * node.coverage:.3g} % of the weight")
    lines.append(f"{sketch.criterion} {node.impurity:.4g}")
    for classes, shares in zip(sketch.classes, node.shares, strict=True):
        pairs = zip(classes, shares, strict=True)
        lines.append(", ".join(f"{label}: {share:.3g}" for label, share in pairs if share > 0.0))
    return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _width(text: str, is_bold: bool = False) -> float:
    letter = _BOLD_LETTER if is_bold else _LETTER
    return FONT * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else letter for c in text)


def _cut(text: str, most: float) -> str:
    if _width(text) <= most:
        return text
    end, rest = 0, most - FONT
    while rest > 0.0:
        rest -= _width(text[end])
        end += 1
    return text[: end - 1] + "…"


# -- positions from left to right ----------------------------------------------------------------


def tidy_positions(parent: Sequence[int | None], widths: Sequence[float], gap: float) -> np.ndarray:
    """The horizontal positions of the centres of nodes; the root is at 0.

    Nodes are in preorder. Nodes of the same depth do not overlap and are at least `gap` apart, a
    parent is in the middle between its first and its last child, and the mirrored tree has the
    mirrored positions.

    As in Reingold and Tilford (1981), subtrees of siblings are moved together until their contours
    touch. Small subtrees between two large ones would all be on one side, so this is done once from
    the left and once from the right. The mean of both keeps the properties above, which are linear.
    """
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent):
        if above is not None:
            children[above].append(node)
    mirrored = [below[::-1] for below in children]
    from_left = _pushed_together(parent, children, widths, gap)
    from_right = _pushed_together(parent, mirrored, widths, gap)
    return 0.5 * (from_left - from_right)


@dataclass
class _Contour:
    """How far a subtree extends to one side at each level, the lowest first, minus a common shift.

    Lowest first, because levels are added on top; the shift, because a subtree moves as one.
    So merging two contours takes time in proportion to the shorter one.
    """

    reach: list[float]
    shift: float = 0.0

    def covered_by(self, other: _Contour) -> _Contour:
        """The contour of both subtrees, if `other` is on the outside."""
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
    """Positions with each subtree as far to the left as those before it permit."""
    n = len(parent)
    offset = np.zeros(n)  # from the parent
    left: list[_Contour | None] = [None] * n
    right: list[_Contour | None] = [None] * n
    for node in range(n - 1, -1, -1):
        outer_left, outer_right = _Contour([]), _Contour([])
        centre = 0.0
        for child in children[node]:
            child_left, child_right = left[child], right[child]
            left[child] = right[child] = None
            assert child_left is not None
            assert child_right is not None
            push = _least_distance(outer_right, child_left, gap)
            child_left.shift += push
            child_right.shift += push
            outer_left = child_left.covered_by(outer_left)
            outer_right = outer_right.covered_by(child_right)
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
