"""Scores against what tuning has varied."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, explain_handles, usable_axes
from margrove.select.autotune import Tuning, in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["tuning_curve"]

_WIDE = 50.0  # the last value over the first, from which an axis is logarithmic
_FEW_POINTS = 50  # that get a dot each


def tuning_curve(source: Any, *, ax: Axes | None = None) -> Picture:
    """Draw the scores of all that `margrove.autotune` has tried.

    The parameter with the most values is the axis, and each setting of the others has a line, with
    a band of one standard error. The numbers can be had from `tuning_.frame()`. Parts can be found
    by their `gid`: "curve" and "spread" for each setting, and "chosen".

    Parameters
    ----------
    source : Tuning, or an estimator that `margrove.autotune` has returned
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> from margrove.plot.models.tuning import tuning_curve
    >>> from margrove.select.autotune.automatic import autotune
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> tree = autotune(margrove.DecisionTreeClassifier(), X, y, random_state=0)
    >>> ax = tuning_curve(tree, ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('ccp_alpha', 'accuracy')
    """
    tuning = getattr(source, "tuning_", source)
    if not isinstance(tuning, Tuning):
        raise TypeError(
            "source must be what margrove.autotune returns, or its tuning_. Got "
            f"{type(source).__name__}."
        )
    axis = _axis(tuning)
    axes = usable_axes(ax)
    handles, names = [], []
    lines = _lines(tuning, axis)
    for code, (name, places) in enumerate(lines.items()):
        handles.append(_draw(axes, tuning, axis, np.array(places), code))
        names.append(name)
    chosen = tuning.candidates[tuning.chosen]
    (mark,) = axes.plot([chosen[axis]], [tuning.score], "o", color="black", zorder=4)
    mark.set_gid("chosen")
    handles, names = [*handles, mark], [*names, f"chosen: {in_words(chosen)}"]
    explain_handles(axes, handles, names, n_points=len(tuning.scores))
    _scale(axes, np.array([candidate[axis] for candidate in tuning.candidates], np.float64))
    axes.set_xlabel(axis, parse_math=False)
    axes.set_ylabel(tuning.scoring, parse_math=False)
    return drawn(axes, tuning)


def _axis(tuning: Tuning) -> str:
    """The number with the most values among those that all candidates have."""
    counts = {}
    for name in tuning.candidates[0]:
        values = [candidate.get(name) for candidate in tuning.candidates]
        if all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
            counts[name] = len(set(values))
    if not counts:
        raise ValueError("No number was varied: there is no curve to draw. frame() has a table.")
    return max(counts, key=lambda name: counts[name])


def _lines(tuning: Tuning, axis: str) -> dict[str, list[int]]:
    """The candidates of each setting of the other parameters."""
    lines: dict[str, list[int]] = {}
    for place, candidate in enumerate(tuning.candidates):
        others = {name: value for name, value in candidate.items() if name != axis}
        lines.setdefault(in_words(others) or tuning.measured_by, []).append(place)
    return lines


def _draw(axes: Any, tuning: Tuning, axis: str, places: np.ndarray, code: int) -> Any:
    values = np.array([tuning.candidates[place][axis] for place in places], dtype=np.float64)
    order = np.argsort(values, kind="stable")
    values, places = values[order], places[order]
    scores, errors = tuning.scores[places], tuning.standard_errors[places]
    colour = class_style(code)["color"]
    marker = "." if len(values) <= _FEW_POINTS else None
    (line,) = axes.plot(values, scores, color=colour, marker=marker)
    line.set_gid("curve")
    spread = axes.fill_between(
        values, scores - errors, scores + errors, color=colour, alpha=0.2, linewidth=0
    )
    spread.set_gid("spread")
    return line


def _scale(axes: Any, values: np.ndarray) -> None:
    """Logarithmic where values differ much; zero, if it is there, has its place at the left."""
    positive = values[values > 0]
    if not len(positive) or values.min() < 0 or positive.max() <= _WIDE * positive.min():
        return
    if len(positive) == len(values):
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=float(positive.min()))
