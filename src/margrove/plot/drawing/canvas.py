"""Axes, colours that colour-blind people can distinguish, and markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.plot.drawing.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "SUPPORT_MARKERS",
    "class_style",
    "counted_rounds",
    "explain_handles",
    "given_panels",
    "new_panels",
    "number_rounds",
    "tint",
    "usable_axes",
    "usable_panels",
]

# Okabe and Ito (2008), without black, the colour of lines and support vectors.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
# One more than colours: the first 56 classes differ in colour or marker.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

_MOST_COLUMNS = 4  # of panels
_PANEL = (3.2, 3.2)  # inches
_MANY_POINTS = 5_000  # from here on it takes too long to find the best place for a legend

SUPPORT_MARKERS = ("o", "D", "x")  # of the kinds of support vectors


def class_style(code: int) -> dict[str, Any]:
    """Colour and marker of a class."""
    return {"color": _COLOURS[code % len(_COLOURS)], "marker": _MARKERS[code % len(_MARKERS)]}


def tint(code: int, strength: float = 0.3) -> tuple[float, float, float]:
    """The colour of a class, pale enough to draw on."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1.0 - strength * (1.0 - c) for c in to_rgb(class_style(code)["color"]))
    return red, green, blue


def usable_axes(ax: Any) -> Axes:
    """The given axes, or new ones."""
    _require_matplotlib()
    if ax is None:
        return new_panels(1)[0]
    import matplotlib.axes

    if isinstance(ax, Picture) and len(ax) == 1:
        return ax.ax
    if not isinstance(ax, matplotlib.axes.Axes):
        raise TypeError(
            f"ax must be one of matplotlib's Axes or None. Got {type(ax).__name__}; of several "
            "axes, pass one, such as axes[0]."
        )
    return ax


def usable_panels(axes: Any, n_panels: int, what: str) -> list[Axes]:
    """The given axes, whose number is checked, or new ones side by side."""
    if axes is None:
        return new_panels(n_panels, min(n_panels, _MOST_COLUMNS), size=_PANEL)
    panels = given_panels(axes)
    if len(panels) != n_panels:
        raise ValueError(f"axes must be {n_panels}, one for each {what}. Got {len(panels)}.")
    return panels


def given_panels(axes: Any) -> list[Axes]:
    """Axes, a picture, or collections of axes, as a list of axes."""
    if isinstance(axes, Picture):
        return list(axes.axes)
    return [usable_axes(ax) for ax in np.ravel(np.asarray(axes, dtype=object))]


def new_panels(
    n_panels: int, n_columns: int = 1, size: tuple[float, float] | None = None
) -> list[Axes]:
    """The axes of a new figure, row by row, each of about `size` inches."""
    _require_matplotlib()
    import matplotlib.pyplot as plt

    n_rows = -(-n_panels // n_columns)
    settings: dict[str, Any] = {} if size is None else {"layout": "constrained"}
    if size is not None:
        settings["figsize"] = (size[0] * n_columns, size[1] * n_rows)
    axes = plt.subplots(n_rows, n_columns, squeeze=False, **settings)[1].ravel().tolist()
    for unused in axes[n_panels:]:
        unused.remove()
    return axes[:n_panels]


def explain_handles(axes: Any, handles: Sequence[Any], names: Sequence[str], n_points: int) -> None:
    """Draw a legend. Names come from the user: they are set afterwards, so that dollar signs and
    leading underscores have no special meaning."""
    place = "best" if n_points < _MANY_POINTS else "upper right"
    drawn = axes.legend(handles, [str(k) for k in range(len(handles))], loc=place, framealpha=0.9)
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)


def number_rounds(axes: Any, scale: str) -> None:
    """Make the x axis an axis of rounds, linear or logarithmic."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    if scale == "log":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("rounds")


def counted_rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _require_matplotlib() -> None:
    try:
        import matplotlib.axes  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "margrove[plot]".'
        ) from error
