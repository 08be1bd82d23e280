"""Pictures of the predictions of decision trees over one or two features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import TreeRegions, tree_regions
from margrove.facts.models import codes_or_targets
from margrove.plot.drawing import (
    Picture,
    class_style,
    drawn,
    explain_handles,
    range_of,
    table,
    tint,
    usable_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["regions", "regression_surface"]


def regions(
    model: Any, X: Any = None, y: Any = None, *, legend: bool = True, ax: Axes | None = None
) -> Picture:
    """Draw the rectangles into which a tree divides the plane of two features.

    The edges are exact, not those of a grid. They are available as data from
    `margrove.facts.tree_regions`. Artists have a `gid`: "regions" and "data".

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
        With two features, or with splits by two of its features; they must be numbers.
    X, y : array-like, optional
        Rows to draw, and their classes or targets for the colours.
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_xor(random_state=0, return_X_y=True)
    >>> model = margrove.DecisionTreeClassifier().fit(X, y)
    >>> ax = margrove.plot.regions(model, X, y, ax=Figure().subplots())
    >>> len(ax.collections[0].get_paths()) == model.get_n_leaves()
    True
    """
    found = tree_regions(model)
    if len(found.features) != 2:
        raise ValueError(
            "regions takes a tree over two features, but this one has one. Use "
            "plot.regression_surface for a regressor, or plot.tree."
        )
    points, codes, targets = _data_of(model, found, X, y)
    axes = usable_axes(ax)
    ranges = _ranges(found, points)
    if found.classes:
        _draw_class_regions(axes, found, ranges, points, codes, legend=legend)
    else:
        _draw_value_regions(axes, found, ranges, points, targets)
    axes.set_xlim(*ranges[0])
    axes.set_ylim(*ranges[1])
    axes.set_xlabel(found.names[0], parse_math=False)
    axes.set_ylabel(found.names[1], parse_math=False)
    return drawn(axes, _region_table(found))


def regression_surface(model: Any, X: Any, y: Any, *, ax: Axes | None = None) -> Picture:
    """Draw the predictions of a regression tree: steps over one feature, rectangles over two.

    Artists have a `gid`: "prediction" (steps) or "regions", and "data".

    Parameters
    ----------
    model : fitted DecisionTreeRegressor
        With one or two features, or with splits by one or two of its features; they must be
        numbers.
    X, y : array-like
        Rows to draw, and their targets.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [5.0, 5.0, 8.0, 8.0]
    >>> model = margrove.DecisionTreeRegressor().fit(X, y)
    >>> ax = margrove.plot.regression_surface(model, X, y, ax=Figure().subplots())
    >>> ax.patches[0].get_data().values
    array([5., 8.])
    """
    found = tree_regions(model)
    if found.classes:
        raise TypeError(
            "regression_surface takes regressors, but this tree predicts classes. Use plot.regions."
        )
    if len(found.features) == 2:
        return regions(model, X, y, ax=ax)
    points, _, targets = _data_of(model, found, X, y)
    axes = usable_axes(ax)
    low, high = _ranges(found, points)[0]
    edges = np.concatenate([[low], found.high[:-1, 0], [high]])
    axes.stairs(found.values, edges, baseline=None, color="black", linewidth=1.5).set_gid(
        "prediction"
    )
    if targets is not None:
        style = class_style(0)
        axes.scatter(points[:, 0], targets, s=18, color=style["color"], zorder=1).set_gid("data")
    axes.set_xlabel(found.names[0], parse_math=False)
    axes.set_ylabel("prediction")
    return drawn(axes, _region_table(found))


def _region_table(found: TreeRegions) -> dict[str, Any]:
    ends = {
        f"{end}_{axis}": getattr(found, end)[:, k]
        for k, axis in enumerate("xy"[: len(found.features)])
        for end in ("low", "high")
    }
    predicted = [found.classes[code] for code in found.values] if found.classes else found.values
    return table(leaf=found.leaves, **ends, prediction=predicted)


def _data_of(
    model: Any, found: TreeRegions, X: Any, y: Any
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Rows without missing values, as points (n, k), and their classes or targets."""
    if X is None:
        if y is not None:
            raise ValueError("y needs X, the positions of the rows. Pass both or none of them.")
        return np.empty((0, len(found.features))), None, None
    points = np.asarray(model._rows(X), dtype=np.float64)[:, list(found.features)]
    codes, targets = codes_or_targets(model, y, len(points))
    kept = np.isfinite(points).all(axis=1)
    return (
        points[kept],
        None if codes is None else codes[kept],
        None if targets is None else targets[kept],
    )


def _ranges(found: TreeRegions, points: np.ndarray) -> list[tuple[float, float]]:
    """The ranges of all points and edges; from 0 to 1 if there are none."""
    ranges = []
    for k in range(len(found.features)):
        values = np.concatenate([points[:, k], found.low[:, k], found.high[:, k]])
        values = values[np.isfinite(values)]
        ranges += range_of(values[:, None]) if len(values) else [(0.0, 1.0)]
    return ranges


def _rectangles(found: TreeRegions, ranges: list[tuple[float, float]]) -> list[Any]:
    """The visible rectangles of the regions."""
    from matplotlib.patches import Rectangle

    limits = np.array(ranges)
    low = np.maximum(found.low, limits[:, 0])
    high = np.minimum(found.high, limits[:, 1])
    return [Rectangle(tuple(a), *(b - a)) for a, b in zip(low, high, strict=True)]


def _draw_class_regions(
    axes: Any,
    found: TreeRegions,
    ranges: list[tuple[float, float]],
    points: np.ndarray,
    codes: np.ndarray | None,
    *,
    legend: bool,
) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch

    colours = [tint(int(code)) for code in found.values]
    patches = PatchCollection(
        _rectangles(found, ranges), facecolors=colours, edgecolors="white", linewidths=0.5, zorder=0
    )
    patches.set_gid("regions")
    axes.add_collection(patches)
    look: dict[str, Any] = {"s": 28, "linewidths": 0.6, "edgecolors": "white", "zorder": 3}
    if codes is None:
        if len(points):
            axes.scatter(*points.T, color="0.25", s=18, zorder=3).set_gid("data")
        shown = np.unique(found.values).tolist()
        handles: list[Any] = [Patch(color=tint(code)) for code in shown]
    else:
        shown = np.unique(codes).tolist()
        handles = []
        for code in shown:
            handles.append(axes.scatter(*points[codes == code].T, **class_style(code), **look))
            handles[-1].set_gid("data")
    if legend:
        explain_handles(axes, handles, [found.classes[code] for code in shown], len(points))


def _draw_value_regions(
    axes: Any,
    found: TreeRegions,
    ranges: list[tuple[float, float]],
    points: np.ndarray,
    targets: np.ndarray | None,
) -> None:
    from matplotlib.collections import PatchCollection

    values = found.values if targets is None else np.concatenate([found.values, targets])
    low, high = float(values.min()), float(values.max())
    patches = PatchCollection(
        _rectangles(found, ranges), cmap="cividis", edgecolors="face", linewidths=0.5, zorder=0
    )
    patches.set_array(found.values)
    patches.set_clim(low, high if low < high else low + 1.0)
    patches.set_gid("regions")
    axes.add_collection(patches)
    axes.figure.colorbar(patches, ax=axes, label="prediction")
    if len(points):
        look: dict[str, Any] = {"color": "0.25"}
        if targets is not None:
            look = {"c": targets, "cmap": "cividis", "norm": patches.norm}
        axes.scatter(*points.T, s=28, linewidths=0.6, edgecolors="white", zorder=3, **look).set_gid(
            "data"
        )
