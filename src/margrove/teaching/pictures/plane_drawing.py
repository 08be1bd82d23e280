"""Parts of pictures of the plane: rows by class, lines w.x + b = 0, regions, frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.plot.drawing import class_style, range_of, tint
from margrove.teaching.facts import PlaneRows

__all__ = ["draw_line", "draw_rows", "frame_plane", "shade_sides"]

_DOTS: dict[str, Any] = {"s": 36, "linewidths": 0.6, "edgecolors": "white"}


def draw_rows(axes: Any, rows: PlaneRows, *, points: np.ndarray | None = None) -> list[Any]:
    """Draw the rows, or other points of the same classes; returns a handle for each class."""
    places = rows.points if points is None else points
    handles = []
    for code in range(len(rows.classes)):
        dots = places[rows.codes == code]
        handles.append(axes.scatter(*dots.T, zorder=3, **class_style(code), **_DOTS))
        handles[-1].set_gid("data")
    return handles


def draw_line(axes: Any, weights: np.ndarray, shift: float, gid: str, **look: Any) -> Any:
    """Draw the line weights . x + shift = 0 across the picture; nothing if all weights are 0."""
    length = float(np.linalg.norm(weights))
    if length == 0.0:
        return None
    normal = np.asarray(weights) / length
    foot = -shift / length * normal
    line = axes.axline(tuple(foot), tuple(foot + np.array([-normal[1], normal[0]])), **look)
    line.set_gid(gid)
    return line


def shade_sides(axes: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray) -> None:
    """Fill the regions where values over a grid are below and above 0 with pale class colours."""
    levels = [min(0.0, float(values.min())) - 1.0, 0.0, max(0.0, float(values.max())) + 1.0]
    axes.contourf(x, y, values, levels=levels, colors=[tint(0), tint(1)], zorder=0).set_gid(
        "regions"
    )


def frame_plane(axes: Any, points: np.ndarray, names: tuple[str, str], *, equal: bool) -> None:
    """Set the limits around the points and the names; `equal` gives both axes the same scale."""
    (left, right), (bottom, top) = range_of(points)
    if equal:
        half = 0.5 * max(right - left, top - bottom)
        middle_x, middle_y = 0.5 * (left + right), 0.5 * (bottom + top)
        left, right = middle_x - half, middle_x + half
        bottom, top = middle_y - half, middle_y + half
        axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_xlabel(names[0], parse_math=False)
    axes.set_ylabel(names[1], parse_math=False)
