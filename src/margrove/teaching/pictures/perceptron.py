"""A perceptron, mistake by mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, explain_handles, usable_panels
from margrove.teaching.facts import PerceptronSteps
from margrove.teaching.facts import perceptron_steps as steps_of
from margrove.teaching.pictures.plane_drawing import draw_line, draw_rows, frame_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["perceptron_steps"]

_FIRST_PANELS = 4
_LONGEST = 0.85  # of an arrow, as a share of the distance to the edge of the picture


def perceptron_steps(
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    steps: Sequence[int] | None = None,
    legend: bool = True,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw how a perceptron learns from mistakes: the weights before and after, a panel each.

    Arrows are the weights before a step, the vector added to them (y x of the mistake, as an arrow
    from the tip of the first) and the weights after it, all on the same scale; lines are the
    boundaries before and after. Artists have a `gid`: "data", "mistake", "before", "added",
    "after", "line before" and "line after".

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes.
    estimator : Perceptron, optional
        A copy is fitted. By default that of the lectures: no bias, rows in their order.
    steps : sequence of int, optional
        Which ones, from 1; by default the first four.
    legend : bool, default=True
        In the last panel.
    axes : sequence of matplotlib Axes, optional
        One for each step. By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.perceptron.perceptron_steps`: all steps.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = [[2.0, 1.0], [1.0, -3.0], [-2.0, 1.0]], [1, 1, -1]
    >>> picture = margrove.plot.perceptron_steps(X, y, steps=[1, 2], axes=Figure().subplots(1, 2))
    >>> [panel.get_title() for panel in picture]
    ['step 1: row 0, y f(x) = 0', 'step 2: row 1, y f(x) = -1']
    """
    found = steps_of(X, y, estimator=estimator)
    chosen = _chosen(steps, len(found))
    panels = usable_panels(axes, len(chosen), "step")
    for panel, number in zip(panels, chosen, strict=True):
        handles, names = _draw_step(panel, found, number)
        value = found.values[number - 1] + 0.0
        panel.set_title(
            f"step {number}: row {found.mistaken[number - 1]}, y f(x) = {value:.3g}",
            fontsize="medium",
        )
    if legend:
        explain_handles(panels[-1], handles, names, len(found.rows.codes))
        last: Any = panels[-1]
        for text in last.get_legend().get_texts():
            text.set_fontsize("small")
    return drawn(panels, found)


def _chosen(steps: Any, n_steps: int) -> list[int]:
    if not n_steps:
        raise ValueError("This perceptron made no mistake, so there is no step to draw.")
    if steps is None:
        return list(range(1, min(n_steps, _FIRST_PANELS) + 1))
    chosen = list(np.ravel(np.asarray(steps)).tolist())
    for number in chosen:
        if not isinstance(number, int) or not 1 <= number <= n_steps:
            raise ValueError(f"steps must be numbers from 1 to {n_steps}. Got {number!r}.")
    if not chosen:
        raise ValueError("steps must have one number or more. Got none.")
    return chosen


def _draw_step(axes: Any, found: PerceptronSteps, number: int) -> tuple[list[Any], list[str]]:
    """Draw one panel; returns handles and names for the legend."""
    rows, row = found.rows, found.mistaken[number - 1]
    before, after = found.weights[number - 1], found.weights[number]
    handles, names = draw_rows(axes, rows), list(rows.classes)
    mark = axes.scatter(
        *rows.points[row], s=220, facecolors="none", edgecolors="black", linewidths=1.8, zorder=4
    )
    mark.set_gid("mistake")
    everything = np.vstack([rows.points, np.zeros((1, 2))])
    frame_plane(axes, everything, rows.names, equal=True)
    scale = _scale(axes, np.stack([before, after]))
    arrows = [
        (np.zeros(2), before, "0.45", "before", "w before"),
        (before, after - before, class_style(2)["color"], "added", "added: y x"),
        (np.zeros(2), after, "black", "after", "w after"),
    ]
    for start, along, colour, gid, name in arrows:
        if np.any(along != 0.0):
            handles.append(_arrow(axes, scale * start, scale * along, colour, gid))
            names.append(name)
    for weights, shift, colour, dashes, gid in (
        (before, found.intercepts[number - 1], "0.45", "dashed", "line before"),
        (after, found.intercepts[number], "black", "solid", "line after"),
    ):
        draw_line(axes, weights, float(shift), gid, color=colour, linestyle=dashes, linewidth=1.5)
    return [*handles, mark], [*names, "mistake"]


def _scale(axes: Any, tips: np.ndarray) -> float:
    """The factor by which arrows from the origin to these tips fit into the picture."""
    limits = np.array([axes.get_xlim(), axes.get_ylim()])
    edges = np.where(tips > 0.0, limits[:, 1], limits[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.where(tips == 0.0, np.inf, edges / tips).min()
    return _LONGEST * float(largest) if np.isfinite(largest) else 1.0


def _arrow(axes: Any, start: np.ndarray, along: np.ndarray, colour: str, gid: str) -> Any:
    arrow = axes.quiver(
        *start, *along, color=colour, angles="xy", scale_units="xy", scale=1.0, width=0.014,
        zorder=5,
    )  # fmt: skip
    arrow.set_gid(gid)
    return arrow
