"""Where to draw and with what: axes, colours that colour-blind people can tell apart, markers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SUPPORT_MARKERS", "class_style", "tint", "usable_axes"]

# Okabe and Ito (2008), without black, which lines and support vectors have.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
# One more than colours: the first 56 classes differ in one or the other.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

SUPPORT_MARKERS = ("o", "D", "x")  # by kind, the harmless first


def class_style(code: int) -> dict[str, Any]:
    """Colour and marker of a class."""
    return {"color": _COLOURS[code % len(_COLOURS)], "marker": _MARKERS[code % len(_MARKERS)]}


def tint(code: int, strength: float = 0.3) -> tuple[float, float, float]:
    """The colour of a class, pale enough to draw on."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1.0 - strength * (1.0 - c) for c in to_rgb(class_style(code)["color"]))
    return red, green, blue


def usable_axes(ax: Axes | None) -> Axes:
    """The given axes, or new ones."""
    try:
        import matplotlib.axes
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "margrove[plot]".'
        ) from error
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots()[1]
    if not isinstance(ax, matplotlib.axes.Axes):
        raise TypeError(
            f"ax must be one of matplotlib's Axes or None. Got {type(ax).__name__}; of several "
            "axes, pass one, such as axes[0]."
        )
    return ax
