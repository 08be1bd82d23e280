"""Trees: children of splits, regions leaf by leaf, and predictions as heights over a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts.models import tree_regions
from margrove.plot.drawing import (
    Picture,
    class_style,
    drawn,
    explain_handles,
    new_panels,
    range_of,
    table,
    usable_axes,
    usable_panels,
)
from margrove.plot.trees import regions
from margrove.teaching.facts import (
    SplitChildren,
)
from margrove.teaching.facts import (
    split_children as children_of,
)
from margrove.teaching.facts import (
    tree_growth as growth_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["regression_blocks", "split_children", "tree_growth"]


def split_children(
    X: Any,
    y: Any,
    features: Any = None,
    *,
    criterion: str = "entropy",
    legend: bool = True,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw the children of a split by each categorical feature, with their classes.

    Titles have the mean impurity of the children and the gain. Artists have a `gid`:
    "children", the bars, and "impurity", the numbers beside them.

    Parameters
    ----------
    X : dataframe or array-like of shape (n_samples, n_features)
        Categories.
    y : array-like of shape (n_samples,)
        Classes.
    features : str, int or sequence of them, optional
        By default all of them.
    criterion : {"entropy", "gini", "error"}, default="entropy"
    legend : bool, default=True
        In the first panel.
    axes : sequence of matplotlib Axes, optional
        One for each feature. By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_play_tennis(return_X_y=True, as_frame=True)
    >>> picture = margrove.plot.split_children(X, y, ["outlook", "wind"], axes=Figure().subplots(2))
    >>> for panel in picture:
    ...     print(panel.get_title())
    outlook: gain 0.247
    entropy 0.940 to 0.694
    wind: gain 0.048
    entropy 0.940 to 0.892
    """
    found = children_of(X, y, features, criterion=criterion)
    panels = usable_panels(axes, len(found), "feature")
    for panel, children in zip(panels, found, strict=True):
        handles = _draw_children(panel, children)
    if legend:
        panels[0].set_ylim(len(found[0].values) + 0.4, -0.6)  # space below the bars
        explain_handles(panels[0], handles, found[0].classes, 0)
    data = table(
        feature=[
            children.feature
            for children in found
            for _ in children.values
            for _ in children.classes
        ],
        value=[value for children in found for value in children.values for _ in children.classes],
        label=[label for children in found for _ in children.values for label in children.classes],
        rows=np.concatenate([children.counts.ravel() for children in found]),
        impurity=np.concatenate([np.repeat(o.impurities, len(o.classes)) for o in found]),
        gain=[
            children.gain for children in found for _ in children.values for _ in children.classes
        ],
    )
    return drawn(panels, data)


def _draw_children(axes: Any, children: SplitChildren) -> list[Any]:
    places = np.arange(len(children.values))
    starts = np.zeros(len(places))
    handles = []
    for code in range(len(children.classes)):
        bars = axes.barh(
            places, children.counts[:, code], left=starts, color=class_style(code)["color"],
            edgecolor="white", height=0.7,
        )  # fmt: skip
        for bar in bars:
            bar.set_gid("children")
        handles.append(bars)
        starts += children.counts[:, code]
    for place, end, impurity in zip(places, starts, children.impurities.tolist(), strict=True):
        axes.annotate(
            f"{impurity + 0.0:.2f}", (end, place), xytext=(4, 0), textcoords="offset points",
            va="center", fontweight="bold",
        ).set_gid("impurity")  # fmt: skip
    axes.set_yticks(places, labels=children.values, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * starts.max())
    axes.set_xlabel(f"rows, and {children.criterion}")
    change = f"{children.criterion} {children.before:.3f} to {children.after:.3f}"
    axes.set_title(
        f"{children.feature}: gain {children.gain + 0.0:.3f}\n{change}",
        fontsize="medium",
        parse_math=False,
    )
    return handles


def tree_growth(
    X: Any,
    y: Any,
    *,
    leaves: Sequence[int] = (2, 3, 4, 5),
    legend: bool = True,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw the regions of trees with more and more leaves, grown best-first.

    Artists of each panel are those of `regions`.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
    leaves : sequence of int, default=(2, 3, 4, 5)
        The largest number of leaves of each tree, a panel each.
    legend : bool, default=True
        In the last panel.
    axes : sequence of matplotlib Axes, optional
        One for each tree. By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.splits.tree_growth`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_iris_ratios(return_X_y=True)
    >>> picture = margrove.plot.tree_growth(X, y, leaves=[2, 3], axes=Figure().subplots(1, 2))
    >>> [panel.get_title() for panel in picture]
    ['2 leaves: error 0.34', '3 leaves: error 0.14']
    """
    found = growth_of(X, y, leaves)
    panels = usable_panels(axes, len(found.models), "tree")
    for panel, model, region, error in zip(
        panels, found.models, found.regions, found.errors.tolist(), strict=True
    ):
        regions(model, found.rows.points, found.rows.codes, legend=False, ax=panel)
        handles = [artist for artist in panel.collections if artist.get_gid() == "data"]
        panel.set_xlabel(found.rows.names[0], parse_math=False)
        panel.set_ylabel(found.rows.names[1], parse_math=False)
        panel.set_title(f"{len(region.leaves)} leaves: error {error:.3g}", fontsize="medium")
    if legend:
        explain_handles(panels[-1], handles, found.rows.classes, len(found.rows.codes))
    return drawn(panels, found)


def regression_blocks(model: Any, X: Any, y: Any = None, *, ax: Any = None) -> Picture:
    """Draw the predictions of a regression tree over two features as blocks of these heights.

    Artists have a `gid`: "blocks" and "data".

    Parameters
    ----------
    model : fitted DecisionTreeRegressor
        With two features, or with splits by two of its features; they must be numbers.
    X : array-like
        Rows, which determine the range of the axes.
    y : array-like, optional
        Their targets; with them, rows are drawn.
    ax : three-dimensional matplotlib Axes, optional
        Such as ``plt.subplot(projection="3d")``. By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import numpy as np
    >>> import margrove
    >>> X = np.random.default_rng(0).random((100, 2))
    >>> model = margrove.DecisionTreeRegressor(max_leaf_nodes=5).fit(X, X[:, 0] * X[:, 1])
    >>> from matplotlib.figure import Figure
    >>> picture = margrove.plot.regression_blocks(
    ...     model, X, ax=Figure().add_subplot(projection="3d")
    ... )
    >>> len(picture.frame())
    5
    """
    found = tree_regions(model)
    if found.classes or len(found.features) != 2:
        raise TypeError(
            "regression_blocks takes regressors over two features. Use plot.regions for classes, "
            "and plot.regression_surface for one feature."
        )
    points = np.asarray(model._rows(X), dtype=np.float64)[:, list(found.features)]
    axes = _axes_in_space(ax)
    (left, right), (bottom, top) = range_of(points[np.isfinite(points).all(axis=1)])
    low = np.maximum(found.low, [left, bottom])
    high = np.minimum(found.high, [right, top])
    floor = min(0.0, float(found.values.min()))
    is_seen = (high > low).all(axis=1)
    colours = _heights_as_colours(found.values[is_seen])
    blocks = axes.bar3d(
        low[is_seen, 0], low[is_seen, 1], floor, *(high - low)[is_seen].T,
        found.values[is_seen] - floor, color=colours, edgecolor="white", linewidth=0.6, alpha=0.9,
    )  # fmt: skip
    blocks.set_gid("blocks")
    if y is not None:
        targets = np.asarray(y, dtype=np.float64)
        axes.scatter(*points.T, targets, color="black", s=8, depthshade=False).set_gid("data")
    axes.set_xlabel(found.names[0], parse_math=False)
    axes.set_ylabel(found.names[1], parse_math=False)
    axes.set_zlabel("prediction")
    data = table(
        leaf=found.leaves,
        low_x=found.low[:, 0],
        high_x=found.high[:, 0],
        low_y=found.low[:, 1],
        high_y=found.high[:, 1],
        prediction=found.values,
    )
    return drawn(axes, data)


def _axes_in_space(ax: Any) -> Any:
    """The given three-dimensional axes, or new ones."""
    if ax is None:
        flat = new_panels(1, size=(6.0, 5.0))[0]
        figure = flat.figure
        flat.remove()
        return figure.add_subplot(projection="3d")
    axes = usable_axes(ax)
    if not hasattr(axes, "bar3d"):
        raise TypeError(
            'ax must be three-dimensional Axes, such as plt.subplot(projection="3d"). Got '
            f"{type(axes).__name__}."
        )
    return axes


def _heights_as_colours(values: np.ndarray) -> Any:
    from matplotlib import colormaps

    low, high = float(values.min()), float(values.max())
    return colormaps["cividis"]((values - low) / (high - low) if high > low else values * 0.0)
