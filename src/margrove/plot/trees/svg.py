"""A fitted decision tree as an SVG picture or an HTML page; matplotlib is not needed.

All names and labels of the user are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from margrove.facts import TreeSketch, sketch_tree
from margrove.plot.trees.layout import drawing_of
from margrove.plot.trees.shapes import EDGES, FONT, INK, PAPER, Box, Drawing, Line, Shape

__all__ = ["tree_html", "tree_svg"]


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

    It contains no script and no link to other files. Shapes have the names of `plot.tree` as their
    class, and the number of their node as `data-node`.

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
    return "\n".join(_svg_lines(drawing_of(sketch))) + "\n"


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

    The page contains no script and no link to other files, and its policy forbids both.

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


def _svg_lines(drawing: Drawing) -> Iterator[str]:
    width, height = _number(drawing.width), _number(drawing.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}pt" height="{height}pt" font-family="sans-serif" '
        f'font-size="{_number(FONT)}">'
    )
    yield "<title>Decision tree</title>"
    # Edges first: boxes and texts of branches are drawn over them.
    for group in drawing.groups:
        for shape in group.shapes:
            if isinstance(shape, Line) and shape.role in EDGES:
                yield _svg_shape(shape, group.number)
    for group in drawing.groups:
        yield "<g>"
        if group.description:
            yield f"<title>{escape(group.description)}</title>"
        for shape in group.shapes:
            if shape.role not in EDGES:
                yield _svg_shape(shape, group.number)
        yield "</g>"
    yield "</svg>"


def _svg_shape(shape: Shape, number: int | None) -> str:
    names = f'class="{shape.role}"' + ("" if number is None else f' data-node="{number}"')
    if isinstance(shape, Box):
        return (
            f'<rect {names} x="{_number(shape.x)}" y="{_number(shape.y)}" '
            f'width="{_number(shape.width)}" height="{_number(shape.height)}" fill="{shape.fill}"'
            + _stroke(shape.edge, shape.line_width)
        )
    if isinstance(shape, Line):
        (x1, y1), (x2, y2) = shape.start, shape.end
        return (
            f'<line {names} x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" '
            f'y2="{_number(y2)}"' + _stroke(shape.colour, shape.line_width)
        )
    weight = ' font-weight="bold"' if shape.is_bold else ""
    anchor = ' text-anchor="middle"' if shape.is_centred else ""
    if shape.role == "branch":  # a halo, so that the line does not cross it
        weight += f' stroke="{PAPER}" stroke-width="4" paint-order="stroke"'
    baseline = _number(shape.y + 0.35 * FONT)
    return (
        f'<text {names} x="{_number(shape.x)}" y="{baseline}" fill="{INK}"{anchor}{weight}>'
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
    yield from _svg_lines(drawing_of(sketch))
    yield "</figure>"
    yield from _table_lines(sketch)
    yield "</body>"
    yield "</html>"


def _table_lines(sketch: TreeSketch) -> Iterator[str]:
    """A table with a row for each node that is shown."""
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
