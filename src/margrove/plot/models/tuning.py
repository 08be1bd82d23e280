"""Scores of autotune against a parameter."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, explain_handles, usable_axes
from margrove.select.autotune import Tuning, in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["tuning_curve"]

_WIDE = 50.0  # largest over smallest value; from here on the axis is logarithmic
_FEW_POINTS = 50  # each has a dot


def tuning_curve(source: Any, *, ax: Axes | None = None) -> Picture:
    """Draw the scores of all candidates of `margrove.autotune`.

    The x axis is the parameter with the most values, and each setting of the others has a line,
    with a band of one standard error. The numbers are available from `tuning_.frame()`. Artists
    have a `gid`: "curve" and "spread" for each setting, and "chosen".

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
            "source must be the result of margrove.autotune, or its tuning_. Got "
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
    """The parameter with the most values, of those that are numbers in all candidates."""
    counts = {}
    for name in tuning.candidates[0]:
        values = [candidate.get(name) for candidate in tuning.candidates]
        if all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
            counts[name] = len(set(values))
    if not counts:
        raise ValueError("No parameter that is a number was varied. For a table, use frame().")
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
    """Make the x axis logarithmic if values differ much; zero is at the left, if there is one."""
    positive = values[values > 0]
    if not len(positive) or values.min() < 0 or positive.max() <= _WIDE * positive.min():
        return
    if len(positive) == len(values):
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=float(positive.min()))
