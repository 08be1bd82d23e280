"""A decision tree: drawing, rules, importances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from margrove.facts import SketchNode, TreeSketch, ranked_importances, sketch_tree
from margrove.grove.read import prediction_text, rules
from margrove.plot.trees import EDGES, Box, Drawing, Line, Shape, drawing_of
from margrove.workbench.report import charts
from margrove.workbench.report.blocks import (
    Block,
    Card,
    Cards,
    Cell,
    Figure,
    Table,
    TreeFigure,
    Words,
)
from margrove.workbench.report.markup import Markup, joined, tag
from margrove.workbench.report.plot_area import series_class
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import count, counted, number, percent, visible

__all__ = ["tree_blocks", "tree_figure"]

_MAX_NODES = 40  # in the drawing
_MAX_RULES = 25
_IMPORTANT = 15
_MAX_DEPTH = 8
_SCALE = 1.25  # of the drawing, because its letters are small


def tree_blocks(subject: Subject) -> list[Block]:
    facts = subject.facts
    first = visible(facts.root_question, 200)
    blocks: list[Block] = [
        Words(
            f"A tree of {counted(facts.n_nodes, 'node')}"
            + (f"; the first question is “{first}”." if first != "''" else ": it has no split.")
        ),
        Cards(
            (
                Card("leaves", count(facts.n_leaves)),
                Card("depth", count(facts.depth), "questions on the longest path"),
                Card("features used", count(len(facts.features_used)),
                     f"of {count(facts.n_features)}"),
                Card("training error", number(facts.training_error),
                     visible(facts.training_error_name)),
            )
        ),
        tree_figure(subject.named, "tree"),
        _rule_table(subject),
    ]  # fmt: skip
    if len(facts.features_used):
        found = ranked_importances(subject.named, _IMPORTANT, subject.names)
        n = int((found.values > 0).sum())
        chart = charts.ranked_bars(
            found.names[:n],
            found.values[:n],
            title=found.measure,
            label="Importances of the features",
        )
        blocks.append(Figure("What the tree depends on", chart))
    return blocks


def tree_figure(model: Any, key: str) -> TreeFigure:
    """A drawing of the upper nodes of a tree, at most 40."""
    depth = _MAX_DEPTH
    sketch = sketch_tree(model, max_depth=depth)
    while len(sketch.nodes) > _MAX_NODES and depth > 1:
        depth -= 1
        sketch = sketch_tree(model, max_depth=depth)
    drawing = drawing_of(sketch)
    caption = (
        "Bars are shares of the classes."
        if sketch.classes
        else "The stronger the colour, the higher."
    )
    if sketch.cut_at is not None:
        caption += (
            f" Shown are {count(len(sketch.nodes))} of {counted(sketch.n_nodes, 'node')}, down to "
            f"depth {sketch.cut_at} of {sketch.depth}."
        )
    return TreeFigure(
        key=key,
        title="The tree",
        chart=_tree_svg(drawing, sketch, key),
        width=drawing.width,
        caption=caption,
        nodes=tuple(_node_data(sketch)),
    )


def _node_data(sketch: TreeSketch) -> Iterator[dict[str, Any]]:
    """What a click on a node shows: the path to it, and its figures."""
    paths: list[list[str]] = []
    for node in sketch.nodes:
        path: list[str] = []
        if node.parent is not None:
            above = sketch.nodes[node.parent]
            path = [*paths[node.parent], f"{visible(above.question)}: {visible(node.branch)}"]
        paths.append(path)
        yield {
            "number": node.number,
            "parent": None if node.parent is None else sketch.nodes[node.parent].number,
            "rule": " → ".join(path) or "all rows",
            "says": _node_text(sketch, node),
        }


def _node_text(sketch: TreeSketch, node: SketchNode) -> str:
    share = percent(node.coverage)
    return (
        f"{counted(node.samples, 'row')} ({share} of the weight), {sketch.criterion} "
        f"{number(node.impurity)}; prediction: {visible(node.prediction)}"
    )


def _tree_svg(drawing: Drawing, sketch: TreeSketch, key: str) -> Markup:
    lines, groups = [], []
    for group in drawing.groups:
        shapes = []
        for shape in group.shapes:
            if isinstance(shape, Line) and shape.role in EDGES:
                lines.append(_shape(shape, group.number))
            elif shape.role != "note":  # the caption says it
                shapes.append(_shape(shape, None))
        if group.number is None:
            groups.append(tag("g", joined(shapes)))
        else:
            title = tag("title", *_lines(group.description))
            groups.append(
                tag("g", title, joined(shapes), class_="tree-group", data_node=group.number)
            )
    return tag(
        "svg", joined([*lines, *groups]), class_="tree", data_tree=key, role="img",
        viewBox=f"0 0 {drawing.width:.0f} {drawing.height:.0f}",
        width=f"{_SCALE * drawing.width:.0f}", height=f"{_SCALE * drawing.height:.0f}",
        aria_label=f"Decision tree of {sketch.n_nodes} nodes",
    )  # fmt: skip


def _lines(description: str) -> list[Markup]:
    """The lines of a title, each escaped separately."""
    parts = [str(tag("a", line))[3:-4] for line in description.splitlines()[:20] if line]
    return [Markup("\n".join(parts))]


def _shape(shape: Shape, child: int | None) -> Markup:
    """One shape; `child` is the lower node of an edge. Colours are those of the style sheet."""
    if isinstance(shape, Line):
        (x1, y1), (x2, y2) = shape.start, shape.end
        return tag("line", class_=f"tree-{shape.role}", x1=x1, y1=y1, x2=x2, y2=y2,
                   data_to=child)  # fmt: skip
    if isinstance(shape, Box):
        return _box(shape)
    return tag(
        "text", visible(shape.text),
        class_=f"tree-{shape.role}" + (" bold" if shape.is_bold else ""),
        x=shape.x, y=shape.y + 3.5, text_anchor="middle" if shape.is_centred else None,
    )  # fmt: skip


def _box(shape: Box) -> Markup:
    place: dict[str, Any] = {
        "x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height,
    }  # fmt: skip
    colour = "rest" if shape.class_code is None else series_class(shape.class_code)
    if shape.role not in ("node", "leaf"):
        return tag("rect", class_=f"tree-{shape.role} {colour}", **place)
    plate = tag("rect", class_="tree-plate", rx=4.0, **place)
    name = f"tree-{shape.role}" + (f" {colour}" if shape.strength else "")
    strength = shape.strength or None
    return joined([plate, tag("rect", class_=name, rx=4.0, fill_opacity=strength, **place)])


def _rule_table(subject: Subject) -> Table:
    found = sorted(rules(subject.named), key=lambda rule: -rule.coverage)
    rows = []
    for rule in found[:_MAX_RULES]:
        conditions = " and ".join(condition.text for condition in rule.conditions) or "always"
        prediction = prediction_text(rule.prediction, 4)
        share = rule.share if isinstance(rule.share, float) else None
        rows.append(
            (
                Cell(visible(conditions, 400)),
                Cell(visible(prediction, 80)),
                *([] if share is None else [Cell(percent(share), share, is_number=True)]),
                Cell(count(rule.samples), rule.samples, is_number=True),
                Cell(percent(rule.coverage), rule.coverage, is_number=True),
            )
        )
    left_out = len(found) - len(rows)
    note = f"{counted(left_out, 'rule')} that cover less left out." if left_out else ""
    has_shares = len(rows[0]) == 5
    titles = (("if", False), ("then", False), *((("share that is", True),) if has_shares else ()),
              ("rows", True), ("of all rows", True))  # fmt: skip
    return Table("Rules, the one that covers most first", titles, tuple(rows), note, style="rules")
