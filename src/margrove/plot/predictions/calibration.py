"""Reliability diagrams: predicted probabilities against observed shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, explain_handles, table, usable_axes
from margrove.select.calibrate import Calibrated, Reliability, ReliabilityCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["reliability_diagram"]

_LARGEST_AREA, _LEAST_AREA = 120.0, 12.0  # of a bin's dot, in points squared


def reliability_diagram(source: Any, *, classes: Any = None, ax: Axes | None = None) -> Picture:
    """Draw observed shares against predicted probabilities, bin by bin.

    Probabilities are right on the diagonal; below it the model is overconfident. The area of a dot
    is the weight of its bin, and bars are Wilson intervals. The numbers are available from the
    curves of `margrove.reliability`. Artists have a `gid`: "ideal", and "curve", "bins" and
    "interval" for each curve.

    Parameters
    ----------
    source : Reliability or Calibrated
        The result of `margrove.reliability` or `margrove.calibrate`; for the latter, the curves
        before and after are drawn.
    classes : list, optional
        Draw the curves of these classes. By default that of the second of two classes, or that of
        the most probable class if there are more.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from margrove.plot.predictions.calibration import reliability_diagram
    >>> from margrove.select.calibrate.reliability import reliability_of
    >>> found = reliability_of([0.1, 0.1, 0.1, 0.6, 0.6], [0, 0, 1, 1, 1])
    >>> ax = reliability_diagram(found, ax=Figure().subplots())
    >>> ax.lines[1].get_ydata().round(3).tolist()
    [0.333, 1.0]
    """
    curves = _curves(source, classes)
    axes = usable_axes(ax)
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="dashed", linewidth=1.0)[0].set_gid("ideal")
    handles = [_draw(axes, curve, code) for code, (_, curve) in enumerate(curves)]
    names = [f"{name}: expected error {curve.expected_error:.3g}" for name, curve in curves]
    explain_handles(axes, handles, names, n_points=0)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("mean predicted probability")
    axes.set_ylabel("share that came true")
    columns = ("lower", "upper", "predicted", "observed", "low", "high", "weight")
    data = table(
        curve=[name for name, curve in curves for _ in curve.weight],
        **{key: np.concatenate([getattr(curve, key) for _, curve in curves]) for key in columns},
    )
    return drawn(axes, data)


def _curves(source: Any, classes: Any) -> list[tuple[str, ReliabilityCurve]]:
    if isinstance(source, Calibrated):
        stages = [("before", source.before), ("after", source.after)]
    elif isinstance(source, Reliability):
        stages = [("", source)]
    else:
        raise TypeError(
            "source must be the result of margrove.reliability or margrove.calibrate. Got "
            f"{type(source).__name__}."
        )
    return [
        (f"{curve.name}, {stage}" if stage else curve.name, curve)
        for stage, found in stages
        if found is not None
        for curve in _chosen(found, classes)
    ]


def _chosen(found: Reliability, classes: Any) -> list[ReliabilityCurve]:
    if classes is None:
        return [found.curve]
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__len__") or not len(classes):
        raise ValueError(f"classes must be a list of classes, such as [0, 2]. Got {classes!r}.")
    known = found.classes.tolist()
    for label in classes:
        if label not in known:
            raise ValueError(f"classes has {label!r}, which is not one of {known}.")
    return [found.by_class[known.index(label)] for label in classes]


def _draw(axes: Any, curve: ReliabilityCurve, code: int) -> Any:
    colour = class_style(code)["color"]
    axes.vlines(curve.predicted, curve.low, curve.high, color=colour, alpha=0.5).set_gid("interval")
    (line,) = axes.plot(curve.predicted, curve.observed, color=colour)
    line.set_gid("curve")
    areas = np.maximum(_LARGEST_AREA * curve.weight / curve.weight.max(), _LEAST_AREA)
    axes.scatter(curve.predicted, curve.observed, s=areas, color=colour, zorder=3).set_gid("bins")
    return line
