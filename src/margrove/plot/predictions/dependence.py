"""Predictions if a column changes, and the kinds of support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import (
    DependenceCurve,
    Facts,
    PartialDependenceFacts,
    describe,
    partial_dependence_facts,
)
from margrove.plot.drawing import (
    Picture,
    class_style,
    drawn,
    explain_handles,
    new_panels,
    table,
    usable_axes,
    usable_panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["partial_dependence", "support_vectors"]

_MOST_OUTPUTS = 7  # as many as there are colours
_MOST_MACHINES = 30


def partial_dependence(
    source: Any,
    X: Any = None,
    features: Any = None,
    *,
    n_grid: int = 20,
    n_features: int = 4,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw the predictions of a model if one column changes and the others do not.

    Lines are averages over the rows; with a single output, a band contains the predictions for 80 %
    of the rows. Artists have a `gid`: "average", one for each output, and "spread".

    Parameters
    ----------
    source : fitted model, or PartialDependenceFacts
        The latter is returned by `margrove.facts.partial_dependence_facts`.
    X : table
        For a model: rows to average over, as for `predict`.
    features : list of int or str, optional
        Columns by number or name. By default those with the largest effect.
    n_grid : int, default=20
        Largest number of values of a column of numbers.
    n_features : int, default=4
        The number of columns, if `features` is not given.
    axes : sequence of matplotlib Axes, optional
        One for each column. By default those of a new figure.

    Returns
    -------
    Picture
        Its data are the PartialDependenceFacts.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> model = margrove.RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> picture = margrove.plot.partial_dependence(model, X, [2, 3], axes=Figure().subplots(1, 2))
    >>> [panel.get_xlabel() for panel in picture]
    ['x2', 'x3']
    """
    if isinstance(source, PartialDependenceFacts):
        if X is not None:
            raise ValueError("X is for a model. PartialDependenceFacts have their data already.")
        found = source
    elif X is None:
        raise ValueError("A model needs X, rows to average over. Got None.")
    else:
        found = partial_dependence_facts(source, X, features, n_grid=n_grid, n_features=n_features)
    if not found.curves:
        raise ValueError("No column has an effect on this model, so there is no curve to draw.")
    panels = usable_panels(axes, len(found.curves), "column")
    for panel, curve in zip(panels, found.curves, strict=True):
        handles = _draw_dependence(panel, curve)
        panel.set_xlabel(curve.name, parse_math=False)
    what = found.response if len(found.outputs) > 1 else f"{found.response} of {found.outputs[0]}"
    first = "prediction" if found.response == "prediction" else f"mean {what}"
    panels[0].set_ylabel(first, parse_math=False)
    low = min(float(_shown(curve).min()) for curve in found.curves)
    high = max(float(_shown(curve).max()) for curve in found.curves)
    padding = 0.05 * (high - low) or 0.5
    for panel in panels:  # the same scale makes columns comparable
        panel.set_ylim(low - padding, high + padding)
    if len(found.outputs) > 1:
        explain_handles(panels[0], handles, found.outputs[:_MOST_OUTPUTS], 0)
    return drawn(panels, found)


def _shown(curve: DependenceCurve) -> np.ndarray:
    """The heights that are drawn."""
    if len(curve.average) == 1:
        return np.concatenate([curve.average, curve.low, curve.high])
    return curve.average[:_MOST_OUTPUTS]


def _draw_dependence(axes: Any, curve: DependenceCurve) -> list[Any]:
    is_number = curve.kind == "number"
    places = curve.grid if is_number else np.arange(len(curve.grid))
    handles = []
    for code, average in enumerate(curve.average[:_MOST_OUTPUTS]):
        colour = class_style(code)["color"]
        if len(curve.average) == 1:
            _draw_spread(axes, curve, places, colour)
        (line,) = axes.plot(
            places, average, color=colour, linewidth=2.5 if is_number else 0.0,
            marker="." if is_number else class_style(code)["marker"],
            markersize=5 if is_number else 8,
        )  # fmt: skip
        line.set_gid("average")
        handles.append(line)
    if not is_number:
        names = [str(label) for label in curve.grid.tolist()]
        axes.set_xticks(places, labels=names, rotation=45, ha="right", parse_math=False)
    return handles


def _draw_spread(axes: Any, curve: DependenceCurve, places: Any, colour: str) -> None:
    low, high = curve.low[0], curve.high[0]
    if curve.kind == "number":
        band = axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
    else:
        band = axes.vlines(places, low, high, color=colour, alpha=0.4, linewidth=6)
    band.set_gid("spread")


def support_vectors(model: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None) -> Picture:
    """Draw how many support vectors of each kind the machines of a model have, as bars.

    Artists have a `gid`: "support" (bars).

    Parameters
    ----------
    model : fitted support vector machine
        One that `margrove.facts.describe` takes.
    X, y : optional
        The training data; needed if the model was pickled.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> picture = margrove.plot.support_vectors(margrove.SVC().fit(X, y), ax=Figure().subplots())
    >>> picture.frame().kind.unique().tolist()
    ['on the margin', 'inside the margin', 'misclassified']
    """
    model_facts = describe(model, X, y)
    if not isinstance(model_facts, Facts):
        raise TypeError(f"A support vector machine is needed. Got {model_facts.estimator}.")
    machines = model_facts.machines[:_MOST_MACHINES]
    if not all(machine.kinds for machine in machines):
        raise ValueError(
            f"The kinds of support vectors of this {model_facts.estimator} are not known"
            f"{f' ({model_facts.unproven})' if model_facts.unproven else ''}. Pass the X and y of "
            "its fit."
        )
    if ax is None:
        axes = new_panels(1, size=(6.4, 2.4 + 0.4 * len(machines)))[0]
    else:
        axes = usable_axes(ax)
    names = [kind.name for kind in machines[0].kinds]
    counts = np.array([[kind.count for kind in machine.kinds] for machine in machines])
    places = np.arange(len(machines))
    starts = np.zeros(len(machines))
    handles = []
    for code, column in enumerate(counts.T):
        bars = axes.barh(
            places, column, left=starts, color=class_style(code)["color"], edgecolor="white"
        )
        for bar in bars:
            bar.set_gid("support")
        handles.append(bars)
        starts = starts + column
    axes.set_yticks(places, labels=[machine.name for machine in machines], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.05 * max(1.0, float(starts.max())))
    axes.set_xlabel("support vectors")
    notes = [f"{name} ({int(total)})" for name, total in zip(names, counts.sum(0), strict=True)]
    explain_handles(axes, handles, notes, 0)
    if len(machines) < len(model_facts.machines):
        note = f"the first {len(machines)} of {len(model_facts.machines)} machines"
        axes.set_title(note, fontsize="medium")
    data = table(
        machine=[machine.name for machine in machines for _ in names],
        kind=names * len(machines),
        count=counts.ravel(),
    )
    return drawn(axes, data)
