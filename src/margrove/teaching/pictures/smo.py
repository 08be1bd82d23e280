"""The dual, step by step: pair steps in their box, coordinate ascent, and the KKT conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.plot.drawing import (
    SUPPORT_MARKERS,
    Picture,
    class_style,
    drawn,
    usable_axes,
    usable_panels,
)
from margrove.teaching.facts import (
    MultiplierFacts,
    SmoBox,
    SmoBoxes,
    coordinate_path,
    multiplier_facts,
    smo_boxes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coordinate_ascent", "multipliers", "smo_box"]

_CONTOURS = 12
_PADDING = 0.22  # around the box, as a share of its sides


def smo_box(
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    steps: Sequence[int] | None = None,
    legend: bool = True,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw steps of SMO: the box of two multipliers, the segment in it, and the end of the step.

    Grey lines are contours of the dual objective with all other multipliers fixed. The optimum on
    the line y_1 alpha_1 + y_2 alpha_2 = k may lie outside the box: it is clipped to the segment
    between L and H. Artists have a `gid`: "box", "objective", "segment", "ends", "before",
    "unclipped" and "after".

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Two classes.
    estimator : SVC, optional
        A copy is fitted. By default ``SVC(kernel="linear")``.
    steps : sequence of int, optional
        Which ones, from 1. By default the first whose optimum lies in the box, and the first that
        is clipped, if possible one whose optimum is near the box.
    legend : bool, default=True
        In the last panel.
    axes : sequence of matplotlib Axes, optional
        One for each step. By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.smo.smo_boxes`: all steps.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> picture = margrove.plot.smo_box(
    ...     [[1.0, 2.0], [0.0, 0.0]], [1, -1], axes=Figure().subplots()
    ... )
    >>> picture.get_title()
    'step 1: labels differ, not clipped'
    >>> picture.frame()[["L", "H", "unclipped"]].round(3).values.tolist()
    [[0.0, 1.0, 0.4]]
    """
    found = smo_boxes(X, y, estimator=estimator)
    chosen = _chosen(steps, found)
    panels = usable_panels(axes, len(chosen), "step")
    for panel, box in zip(panels, chosen, strict=True):
        _draw_box(panel, box)
    if legend:
        panels[-1].legend(loc="best", fontsize="small", framealpha=0.9)
    return drawn(panels, found)


def _chosen(steps: Any, found: SmoBoxes) -> list[SmoBox]:
    if not found.boxes:
        raise ValueError("This machine needed no step, so there is none to draw.")
    if steps is None:
        inside = [box for box in found.boxes if not box.is_clipped]
        clipped = [box for box in found.boxes if box.is_clipped]
        near = [box for box in clipped if _is_within(_optimum(box), _limits(box))]
        return [*inside[:1], *(near or clipped)[:1]]
    chosen = np.ravel(np.asarray(steps)).tolist()
    for number in chosen:
        if not isinstance(number, int) or not 1 <= number <= len(found.boxes):
            raise ValueError(f"steps must be numbers from 1 to {len(found.boxes)}. Got {number!r}.")
    if not chosen:
        raise ValueError("steps must have one number or more. Got none.")
    return [found.boxes[number - 1] for number in chosen]


def _draw_box(axes: Any, box: SmoBox) -> None:
    from matplotlib.patches import Rectangle

    u1, u2 = box.bounds
    ends = box.on_line([box.low, box.high])
    optimum, limits = _optimum(box), _limits(box)
    _draw_objective(axes, box, limits)
    axes.add_patch(
        Rectangle((0.0, 0.0), u1, u2, facecolor="none", edgecolor="black", linewidth=1.6, zorder=2)
    ).set_gid("box")
    far = 2.0 * max(u1, u2)
    line = box.on_line([box.before[1] - far, box.before[1] + far])
    axes.plot(*line.T, color="0.5", linestyle="dotted", linewidth=1.2, zorder=2)
    (segment,) = axes.plot(
        *ends.T, color=class_style(0)["color"], linewidth=3.0, zorder=3, label="allowed"
    )
    segment.set_gid("segment")
    _name_ends(axes, box, ends)
    if box.is_clipped and _is_within(optimum, limits):
        (mark,) = axes.plot(
            *optimum, "X", color=class_style(5)["color"], markersize=11, zorder=5,
            label="optimum on the line",
        )  # fmt: skip
        mark.set_gid("unclipped")
    for point, gid, marker, fill in (
        (box.before, "before", "o", "white"),
        (box.after, "after", "o", "black"),
    ):
        (mark,) = axes.plot(
            *point, marker, markerfacecolor=fill, markeredgecolor="black", markersize=10, zorder=6,
            linestyle="none", label=gid,
        )  # fmt: skip
        mark.set_gid(gid)
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel(rf"$\alpha_1$, of row {box.first}")
    axes.set_ylabel(rf"$\alpha_2$, of row {box.second}")
    labels = "labels differ" if box.signs[0] != box.signs[1] else "labels are equal"
    clipped = "clipped" if box.is_clipped else "not clipped"
    axes.set_title(f"step {box.number}: {labels}, {clipped}", fontsize="medium")


def _optimum(box: SmoBox) -> np.ndarray:
    """The highest point of the line; infinite if the objective has no maximum on it."""
    return box.on_line(box.unclipped)


def _limits(box: SmoBox) -> list[tuple[float, float]]:
    """The limits of the axes: around the box and, unless it is far away, the optimum."""
    optimum = _optimum(box)
    limits = []
    for k, bound in enumerate(box.bounds):
        padding = _PADDING * bound
        low, high = -padding, bound + padding
        if -bound <= optimum[k] <= 2.0 * bound:
            low, high = min(low, optimum[k] - padding), max(high, optimum[k] + padding)
        limits.append((float(low), float(high)))
    return limits


def _is_within(point: np.ndarray, limits: list[tuple[float, float]]) -> bool:
    return all(low <= value <= high for value, (low, high) in zip(point, limits, strict=True))


def _name_ends(axes: Any, box: SmoBox, ends: np.ndarray) -> None:
    (marks,) = axes.plot(*ends.T, "s", color=class_style(0)["color"], markersize=6, zorder=4)
    marks.set_gid("ends")
    for name, point, value in zip(("L", "H"), ends, (box.low, box.high), strict=True):
        axes.annotate(
            f"{name} = {value:.3g}", point, xytext=(8, -4), textcoords="offset points",
            color=class_style(0)["color"], fontweight="bold", zorder=7,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
        )  # fmt: skip


def _draw_objective(axes: Any, box: SmoBox, limits: list[tuple[float, float]]) -> None:
    x, y = (np.linspace(*limit, 120) for limit in limits)
    gains = box.gain(*np.meshgrid(x, y))
    if gains.max() > gains.min():
        axes.contour(
            x, y, gains, levels=_CONTOURS, colors="0.8", linewidths=0.8, linestyles="solid",
            zorder=1,
        ).set_gid("objective")  # fmt: skip


# -- one coordinate at a time --------------------------------------------------------------------


def coordinate_ascent(
    X: Any = None, y: Any = None, *, estimator: Any = None, ax: Axes | None = None
) -> Picture:
    """Draw coordinate ascent on the dual of a machine without a bias, over two rows.

    Artists have a `gid`: "box", "objective", "path", "start" and "end".

    Parameters
    ----------
    X : array-like of shape (2, n_features), optional
        By default two rows that need many steps.
    y : array-like of shape (2,), optional
        Their classes.
    estimator : SVC, optional
        With ``solver="cd"`` and ``fit_intercept=False``; a copy is fitted.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.smo.coordinate_path`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> picture = margrove.plot.coordinate_ascent(ax=Figure().subplots())
    >>> bool(picture.frame().objective.is_monotonic_increasing)
    True
    """
    found = coordinate_path(X, y, estimator=estimator)
    axes = usable_axes(ax)
    from matplotlib.patches import Rectangle

    ends = (-0.1 * found.C, 1.1 * found.C)
    places = np.linspace(*ends, 200)
    heights = found.objective(*np.meshgrid(places, places))
    top = float(found.objective(*found.path[-1]))
    levels = np.unique(top - (top - heights.min()) * np.linspace(1.0, 0.0, 16) ** 2)[1:]
    axes.contour(
        places, places, heights, levels=levels, cmap="cividis", linewidths=1.2, zorder=1
    ).set_gid("objective")
    axes.add_patch(
        Rectangle((0, 0), found.C, found.C, facecolor="none", edgecolor="black", linewidth=1.4)
    ).set_gid("box")
    style = class_style(5)["color"]
    (path,) = axes.plot(
        *found.path.T, color=style, linewidth=2.0, marker=".", markersize=7, zorder=3,
        label=f"{len(found.path) - 1} steps",
    )  # fmt: skip
    path.set_gid("path")
    for point, gid, fill in ((found.path[0], "start", "white"), (found.path[-1], "end", "black")):
        (mark,) = axes.plot(
            *point, "o", markerfacecolor=fill, markeredgecolor="black", markersize=10, zorder=4,
            label=f"{gid}: ({point[0]:.3g}, {point[1]:.3g})",
        )  # fmt: skip
        mark.set_gid(gid)
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel(r"$\alpha_1$")
    axes.set_ylabel(r"$\alpha_2$")
    axes.legend(loc="upper right")
    return drawn(axes, found)


# -- the KKT conditions --------------------------------------------------------------------------


def multipliers(model: Any, X: Any, y: Any, *, ax: Axes | None = None) -> Picture:
    """Draw the multiplier of each row against its margin: the KKT conditions as a picture.

    Rows with a multiplier of 0 are right of 1, those between 0 and C are at 1, those at C are left
    of it. Artists have a `gid`: "rows", one for each kind, and "conditions".

    Parameters
    ----------
    model : SVC of two classes
    X, y
        The training data.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.distances.multiplier_facts`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_moons(60, return_X_y=True)
    >>> model = margrove.SVC().fit(X, y)
    >>> picture = margrove.plot.multipliers(model, X, y, ax=Figure().subplots())
    >>> frame = picture.frame()
    >>> bool((frame.margin[frame.alpha == 0] > 0.99).all())
    True
    """
    found = multiplier_facts(model, X, y)
    axes = usable_axes(ax)
    highest = found.C if np.isfinite(found.C) else float(found.alphas.max())
    left = min(0.0, float(found.margins.min())) - 0.3
    right = max(2.0, float(found.margins.max())) + 0.3
    (path,) = axes.plot(
        [left, 1.0, 1.0, right], [highest, highest, 0.0, 0.0], color="0.6", linewidth=2.0,
        zorder=1, label="KKT conditions",
    )  # fmt: skip
    path.set_gid("conditions")
    _draw_kinds(axes, found)
    axes.axvline(0.0, color="0.8", linewidth=1.0, zorder=0)
    axes.set_xlim(left, right)
    axes.set_xlabel("margin  y f(x)")
    axes.set_ylabel(r"multiplier $\alpha$")
    axes.legend()
    return drawn(axes, found)


def _draw_kinds(axes: Any, found: MultiplierFacts) -> None:
    markers = dict(
        zip(("on the margin", "inside the margin", "misclassified"), SUPPORT_MARKERS, strict=True)
    )
    kinds = np.array(found.kinds, dtype=object)
    names = ["not a support vector", *markers]
    for code, name in enumerate(names):
        is_kind = kinds == name
        if not is_kind.any():
            continue
        dots = axes.scatter(
            found.margins[is_kind], found.alphas[is_kind], marker=markers.get(name, "."), s=60,
            zorder=3, color=class_style(code)["color"],
            label=f"{name} ({np.count_nonzero(is_kind)})",
        )  # fmt: skip
        dots.set_gid("rows")
