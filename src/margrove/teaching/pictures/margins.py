"""Margins as geometry: hulls and their nearest points, many lines and the best one, slacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, explain_handles, tint, usable_axes
from margrove.teaching.facts import (
    PlaneDistances,
    hull_facts,
    plane_distances,
)
from margrove.teaching.facts import (
    separating_lines as lines_of,
)
from margrove.teaching.pictures.plane_drawing import draw_line, draw_rows, frame_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["distances", "hulls", "separating_lines", "slacks"]

_FEW_ROWS = 40  # each can have a number
_LEAST_WRITTEN = 0.01  # smaller slacks are not visible


def hulls(X: Any, y: Any, *, legend: bool = True, ax: Axes | None = None) -> Picture:
    """Draw the convex hulls of two classes, their nearest points, and the line in the middle.

    Artists have a `gid`: "hull", "data", "nearest", "shortest" (the segment between the nearest
    points), "boundary" and "margins".

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes that a line separates.
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.hulls.hull_facts`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_separable_clouds(return_X_y=True)
    >>> margrove.plot.hulls(X, y, ax=Figure().subplots()).get_title()
    'distance of the hulls: 3 = 2 / ||w||'
    """
    found = hull_facts(X, y)
    axes: Any = usable_axes(ax)
    for code, corners in enumerate(found.corners):
        (hull,) = axes.fill(
            *found.rows.points[corners].T, facecolor=tint(code), linewidth=1.5, zorder=1,
            edgecolor=class_style(code)["color"],
        )  # fmt: skip
        hull.set_gid("hull")
    handles, names = draw_rows(axes, found.rows), list(found.rows.classes)
    (segment,) = axes.plot(*found.nearest.T, color="black", linewidth=2.0, zorder=4)
    segment.set_gid("shortest")
    points = axes.scatter(*found.nearest.T, s=120, color="black", marker="X", zorder=5)
    points.set_gid("nearest")
    line = draw_line(axes, found.weights, found.intercept, "boundary", color="black", linewidth=2.0)
    margins = None
    for side in (-1.0, 1.0):
        margins = draw_line(
            axes, found.weights, found.intercept + side, "margins", color="black",
            linestyle="dashed", linewidth=1.2,
        )  # fmt: skip
    frame_plane(axes, found.rows.points, found.rows.names, equal=True)
    axes.set_title(f"distance of the hulls: {found.distance:.3g} = 2 / ||w||", fontsize="medium")
    if legend:
        handles += [points, line, margins]
        names += ["nearest points", "boundary, f = 0", "margins, f = ±1"]
        explain_handles(axes, handles, names, len(found.rows.codes))
    return drawn(axes, found)


def separating_lines(
    X: Any, y: Any, *, n_lines: int = 8, legend: bool = True, ax: Axes | None = None
) -> Picture:
    """Draw many lines that separate two classes, and the one with the largest margin.

    The thin lines are those of perceptrons that saw the rows in different orders. Artists have a
    `gid`: "data", "line", "boundary" and "margins".

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes that a line separates.
    n_lines : int, default=8
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.hulls.separating_lines`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_separable_clouds(return_X_y=True)
    >>> picture = margrove.plot.separating_lines(X, y, n_lines=5, ax=Figure().subplots())
    >>> frame = picture.frame()
    >>> bool(frame.margin.idxmax() == 5), round(float(frame.margin[5]), 6)
    (True, 1.5)
    """
    found = lines_of(X, y, n_lines)
    axes = usable_axes(ax)
    handles, names = draw_rows(axes, found.rows), list(found.rows.classes)
    lines = [
        draw_line(axes, weights, float(shift), "line", color="0.55", linewidth=1.0, zorder=2)
        for weights, shift in zip(found.weights[:-1], found.intercepts[:-1], strict=True)
    ]
    weights, shift = found.weights[-1], float(found.intercepts[-1])
    best = draw_line(axes, weights, shift, "boundary", color="black", linewidth=2.5, zorder=4)
    for side in (-1.0, 1.0):
        draw_line(
            axes, weights, shift + side, "margins", color="black", linestyle="dashed",
            linewidth=1.2, zorder=4,
        )  # fmt: skip
    frame_plane(axes, found.rows.points, found.rows.names, equal=True)
    if legend:
        least, most = (float(margin) for margin in (found.margins[:-1].min(), found.margins[-1]))
        handles += [lines[0], best]
        names += [f"perceptrons, margins from {least:.2g}", f"largest margin, {most:.3g}"]
        explain_handles(axes, handles, names, len(found.rows.codes))
    return drawn(axes, found)


# -- rows and a line -----------------------------------------------------------------------------


def distances(
    model: Any, X: Any, y: Any, *, legend: bool = True, ax: Axes | None = None
) -> Picture:
    """Draw the distances of rows from the line of a linear machine.

    Each row is joined to its projection x - f(x) w / ||w||^2, at a distance of |f(x)| / ||w||.
    Artists have a `gid`: "data", "distances", "boundary" and "normal" (w, as an arrow of length 1 /
    ||w||).

    Parameters
    ----------
    model : fitted linear classifier of two features and two classes
    X, y : rows and their classes
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.distances.plane_distances`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [4.0, 1.0]], [-1, -1, 1, 1]
    >>> model = margrove.SVC(kernel="linear", C=100).fit(X, y)
    >>> picture = margrove.plot.distances(model, X, y, ax=Figure().subplots())
    >>> picture.frame().distance.round(3).tolist()
    [1.0, 1.0, 1.0, 3.0]
    """
    found = plane_distances(model, X, y)
    return _draw_distances(found, "distances", legend, usable_axes(ax))


def slacks(model: Any, X: Any, y: Any, *, legend: bool = True, ax: Axes | None = None) -> Picture:
    """Draw the slacks of rows: how far each is on the wrong side of the margin of its class.

    A line joins each row with a slack to the margin; up to 40 of them have their number beside it.
    Artists have a `gid`: "data", "slacks", "boundary", "margins" and "value".

    Parameters
    ----------
    model : fitted linear classifier of two features and two classes
    X, y : rows and their classes
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.distances.plane_distances`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_gaussians(40, random_state=1, return_X_y=True)
    >>> model = margrove.SVC(kernel="linear").fit(X, y)
    >>> picture = margrove.plot.slacks(model, X, y, ax=Figure().subplots())
    >>> frame = picture.frame()
    >>> bool((frame.slack == (1 - frame.margin).clip(lower=0)).all())
    True
    """
    found = plane_distances(model, X, y)
    return _draw_distances(found, "slacks", legend, usable_axes(ax))


def _draw_distances(
    found: PlaneDistances, what: Literal["distances", "slacks"], legend: bool, axes: Any
) -> Picture:
    rows = found.rows
    handles, names = draw_rows(axes, rows), list(rows.classes)
    is_drawn = found.slacks > 0 if what == "slacks" else np.ones(len(rows.codes), dtype=bool)
    feet = (found.margin_feet if what == "slacks" else found.projections)[is_drawn]
    frame_plane(axes, np.vstack([rows.points, feet]), rows.names, equal=True)
    segments = np.stack([rows.points[is_drawn], feet], axis=1)
    from matplotlib.collections import LineCollection

    lines = LineCollection(list(segments), colors="0.35", linewidths=1.4, zorder=2)
    lines.set_gid(what)
    axes.add_collection(lines)
    line = draw_line(axes, found.weights, found.intercept, "boundary", color="black", linewidth=2.0)
    handles += [line, lines]
    if what == "slacks":
        for side in (-1.0, 1.0):
            margins = draw_line(
                axes, found.weights, found.intercept + side, "margins", color="black",
                linestyle="dashed", linewidth=1.2,
            )  # fmt: skip
        handles.insert(-1, margins)
        names += ["boundary, f = 0", "margins, f = ±1", f"slacks, {found.slacks.sum():.3g} in all"]
        _write_slacks(axes, found, np.flatnonzero(is_drawn))
    else:
        names += ["boundary, f = 0", f"distances, the smallest {found.distances.min():.3g}"]
        handles.append(_draw_normal(axes, found))
        names.append("w, of length 1 / ||w||")
    if legend:
        explain_handles(axes, handles, names, len(rows.codes))
    return drawn(axes, found)


def _write_slacks(axes: Any, found: PlaneDistances, places: np.ndarray) -> None:
    for row in places[found.slacks[places] >= _LEAST_WRITTEN][:_FEW_ROWS].tolist():
        text = axes.annotate(
            f"{found.slacks[row]:.2f}", found.rows.points[row], xytext=(5, 5),
            textcoords="offset points", fontsize="small", zorder=5,
        )  # fmt: skip
        text.set_gid("value")


def _draw_normal(axes: Any, found: PlaneDistances) -> Any:
    """Draw w / ||w||^2 as an arrow, from the line to the margin of the second class."""
    squared = float(found.weights @ found.weights)
    middle = found.rows.points.mean(axis=0)
    start = middle - (middle @ found.weights + found.intercept) / squared * found.weights
    arrow = axes.quiver(
        *start, *(found.weights / squared), angles="xy", scale_units="xy", scale=1.0, width=0.012,
        color=class_style(2)["color"], zorder=5,
    )  # fmt: skip
    arrow.set_gid("normal")
    return arrow
