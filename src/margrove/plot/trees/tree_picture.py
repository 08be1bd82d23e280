"""A fitted decision tree as a matplotlib picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import TreeSketch, sketch_tree
from margrove.plot.drawing import Picture, drawn, new_panels, table, usable_axes
from margrove.plot.trees.layout import drawing_of
from margrove.plot.trees.shapes import EDGES, FONT, INK, PAPER, Box, Drawing, Line, Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["tree"]

_LARGEST_FIGURE = 100.0  # inches


def tree(
    model: Any,
    *,
    max_depth: int | None = None,
    row: Any = None,
    X: Any = None,
    y: Any = None,
    decimals: int = 3,
    ax: Axes | None = None,
) -> Picture:
    """Draw a fitted decision tree.

    Each node shows its split or its prediction, the number of training samples, and the class
    shares as a bar, or the mean. The data are available from `margrove.facts.sketch_tree`.

    Artists have a `gid` that ends in the number of the node: "node 0" and "leaf 1" are boxes,
    "question 0", "prediction 1", "samples 1" and "branch 1" (the branch that leads to it) are
    texts, "edge 1" or "path 1" is the line from above, "share 1" is a segment of its bar,
    "histogram 0" and "threshold 0" are those of a split, "hidden 2" is the text about nodes that
    are not shown. "legend" and "note" have no number.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    max_depth : int, optional
        Depth of the lowest nodes drawn. By default as deep as 200 nodes reach; a note says so.
    row : array-like of shape (n_features,), mapping or table of one row, optional
        A row whose path is drawn bold.
    X, y : array-like, optional
        Rows, and their classes or targets: each split gets a small histogram of its feature.
    decimals : int, default=3
        Digits after the point.
    ax : matplotlib Axes, optional
        By default those of a new figure in the size of the tree.

    Returns
    -------
    Picture

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
    drawing = drawing_of(sketch)
    if ax is None:
        width, height = (
            min(side / 72.0, _LARGEST_FIGURE) for side in (drawing.width, drawing.height)
        )
        axes = new_panels(1, size=(width, height))[0]
        axes.set_position((0.0, 0.0, 1.0, 1.0))
    else:
        axes = usable_axes(ax)
    _draw(axes, drawing)
    return drawn(axes, _node_table(sketch))


def _node_table(sketch: TreeSketch) -> dict[str, Any]:
    """The nodes that are shown; the parent of the root is missing."""
    nodes = sketch.nodes
    parents = [np.nan if node.parent is None else nodes[node.parent].number for node in nodes]
    names = ("depth", "branch", "question", "prediction", "samples", "coverage", "impurity")
    return table(
        node=[node.number for node in nodes],
        parent=np.array(parents, dtype=np.float64),
        **{name: [getattr(node, name) for node in nodes] for name in names},
    )


def _draw(axes: Axes, drawing: Drawing) -> None:
    """Draw in the coordinates of the drawing; texts and lines shrink with it."""
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
            if isinstance(shape, Box):
                artist = axes.add_patch(
                    Rectangle((shape.x, shape.y), shape.width, shape.height, zorder=2,
                              facecolor=shape.fill, edgecolor=shape.edge or "none",
                              linewidth=shape.line_width * scale)
                )  # fmt: skip
            elif isinstance(shape, Line):
                ends = zip(shape.start, shape.end, strict=True)
                artist = axes.add_line(
                    Line2D(*ends, color=shape.colour, linewidth=shape.line_width * scale,
                           zorder=1 if shape.role in EDGES else 3)
                )  # fmt: skip
            else:
                artist = _write(axes, shape, scale)
            artist.set_gid(shape.role if group.number is None else f"{shape.role} {group.number}")


def _write(axes: Axes, line: Text, scale: float) -> Any:
    """Write a text. Names come from the user: a dollar sign in them does not start a formula."""
    behind = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.5}
    return axes.text(
        line.x,
        line.y,
        line.text,
        fontsize=max(FONT * scale, 0.5),
        fontweight="bold" if line.is_bold else "normal",
        color=INK,
        ha="center" if line.is_centred else "left",
        va="center",
        parse_math=False,
        zorder=4,
        bbox=behind if line.role == "branch" else None,
    )
