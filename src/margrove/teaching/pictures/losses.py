"""Losses as curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from margrove.plot.drawing import Picture, class_style, drawn, usable_axes
from margrove.teaching.facts import loss_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["loss_functions"]

_LABELS = {
    "zero_one": "0-1",
    "squared_hinge": "squared hinge",
    "epsilon_insensitive": "epsilon-insensitive",
}
_DASHES = ("solid", "dashed", "dashdot", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
_HIGHEST = 4.0  # end of the y axis: larger losses would make the others flat


def loss_functions(
    names: Sequence[str] | None = None,
    *,
    low: float = -2.0,
    high: float = 3.0,
    ax: Axes | None = None,
) -> Picture:
    """Draw losses against the margin y f(x), or against the residual y - f(x).

    The `gid` of a line is the name of its loss.

    Parameters
    ----------
    names : sequence of str, optional
        Of `margrove.losses.LOSSES`, all of margins or all of residuals. By default all of margins:
        0-1, perceptron, hinge, squared hinge, logistic and exponential.
    low, high : float, default=-2 and 3
        Ends of the axis.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.losses.loss_curves`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> picture = margrove.plot.loss_functions(["hinge", "logistic"], ax=Figure().subplots())
    >>> picture.frame().columns.tolist()
    ['margin', 'hinge', 'logistic']
    """
    found = loss_curves(names, low=low, high=high)
    axes = usable_axes(ax)
    for code, (name, values) in enumerate(zip(found.names, found.values, strict=True)):
        is_counting = name == "zero_one"
        look: dict[str, Any] = {
            "color": "black" if is_counting else class_style(code)["color"],
            "linestyle": _DASHES[code % len(_DASHES)],
            "linewidth": 2.5,
            "label": _LABELS.get(name, name),
        }
        if is_counting:  # it has a jump
            (line,) = axes.step(found.places, values, where="post", **look)
        else:
            (line,) = axes.plot(found.places, values, **look)
        line.set_gid(name)
    axes.axvline(0.0, color="0.8", linewidth=1.0, zorder=0)
    axes.set_xlim(found.places[0], found.places[-1])
    axes.set_ylim(-0.1, min(_HIGHEST, 1.05 * float(found.values.max()) + 0.1))
    of_margin = found.argument == "margin"
    axes.set_xlabel("margin  y f(x)" if of_margin else "residual  y - f(x)")
    axes.set_ylabel("loss")
    axes.legend()
    return drawn(axes, found)
