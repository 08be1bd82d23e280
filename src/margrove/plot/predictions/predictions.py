"""Pictures of classifiers: confusion, ROC and precision-recall curves, margins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import (
    ConfusionMatrix,
    MarginFacts,
    PrecisionRecallCurves,
    RocCurves,
    confusion,
    margins_of,
    precision_recall_curves,
    require_whole,
    roc_curves,
)
from margrove.plot.drawing import (
    Picture,
    class_style,
    drawn,
    explain_handles,
    facts_of,
    new_panels,
    usable_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "confusion_matrix",
    "margin_distribution",
    "precision_recall_curve",
    "roc_curve",
]

_MOST_WRITTEN = 20  # with more classes, cells have no numbers
_MOST_CURVES = 7  # as many as there are colours
_SIDE = 0.55  # of a cell, in inches
_DASHES = ("solid", "dashed", "dashdot", "dotted")


def confusion_matrix(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Picture:
    """Draw how often each true class was predicted as each class.

    Colours are shares of the rows of a class, numbers are counts of rows. Artists have a `gid`:
    "cells" and "count".

    Parameters
    ----------
    source : fitted classifier or ConfusionMatrix
        The latter is returned by `margrove.facts.confusion`.
    X, y : rows and their classes
        For a classifier; use rows that it has not seen.
    sample_weight : array-like of shape (n_samples,), optional
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are the ConfusionMatrix.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> model = margrove.DecisionTreeClassifier(max_depth=2).fit(X[::2], y[::2])
    >>> picture = margrove.plot.confusion_matrix(model, X[1::2], y[1::2], ax=Figure().subplots())
    >>> int(picture.frame().rows.sum())
    75
    """
    found = facts_of(source, ConfusionMatrix, confusion, X, y, sample_weight=sample_weight)
    k = len(found.classes)
    if ax is None:
        side = max(4.5, 1.8 + _SIDE * min(k, 30))
        axes = new_panels(1, size=(side + 0.8, side))[0]
    else:
        axes = usable_axes(ax)
    shares = np.nan_to_num(found.shares)
    cells = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    cells.set_gid("cells")
    axes.figure.colorbar(cells, ax=axes, label="share of the rows of a class", shrink=0.8)
    if k <= _MOST_WRITTEN:
        _write_counts(axes, found.counts, shares)
    turned = 90 if max((len(name) for name in found.classes), default=0) * k > 40 else 0
    axes.set_xticks(range(k), labels=found.classes, parse_math=False, rotation=turned)
    axes.set_yticks(range(k), labels=found.classes, parse_math=False)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    axes.set_title(f"{100 * found.accuracy:.1f} % right", fontsize="medium")
    return drawn(axes, found)


def _write_counts(axes: Any, counts: np.ndarray, shares: np.ndarray) -> None:
    is_whole = bool(np.all(counts == np.round(counts)))
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if shares[row, column] > 0.5 else "black"
        text = f"{count:,.0f}" if is_whole else f"{count:.3g}"
        axes.text(column, row, text, ha="center", va="center", color=colour).set_gid("count")


def roc_curve(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Picture:
    """Draw the ROC curve of each class: true against false positive rate.

    Artists have a `gid`: "curve", one for each class, and "chance".

    Parameters
    ----------
    source : fitted classifier or RocCurves
        The latter is returned by `margrove.facts.roc_curves`.
    X, y : rows and their classes
        For a classifier; use rows that it has not seen.
    sample_weight : array-like of shape (n_samples,), optional
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are the RocCurves.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_moons(200, noise=0.3, return_X_y=True)
    >>> model = margrove.SVC().fit(X[::2], y[::2])
    >>> picture = margrove.plot.roc_curve(model, X[1::2], y[1::2], ax=Figure().subplots())
    >>> picture.frame().columns.tolist()
    ['class', 'false_positive_rate', 'true_positive_rate', 'threshold']
    """
    found = facts_of(source, RocCurves, roc_curves, X, y, sample_weight=sample_weight)
    axes = _square(ax)
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="dotted", linewidth=1.5)[0].set_gid("chance")
    handles, names = [], []
    for code, curve in enumerate(found.curves[:_MOST_CURVES]):
        handles.append(
            _draw_curve(axes, curve.false_positive_rate, curve.true_positive_rate, code, "default")
        )
        names.append(f"{curve.name}: area {curve.area:.3f}")
    _finish_curves(axes, found, handles, names)
    axes.set_xlabel("false positive rate: share of the others predicted as the class")
    axes.set_ylabel("true positive rate: share of the class that is found")
    return drawn(axes, found)


def precision_recall_curve(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Picture:
    """Draw the precision-recall curve of each class.

    Dotted lines are the precision if the class is predicted for all rows. Artists have a `gid`:
    "curve" and "chance", one for each class.

    Parameters
    ----------
    source : fitted classifier or PrecisionRecallCurves
        The latter is returned by `margrove.facts.precision_recall_curves`.
    X, y : rows and their classes
        For a classifier; use rows that it has not seen.
    sample_weight : array-like of shape (n_samples,), optional
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are the PrecisionRecallCurves.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_moons(200, noise=0.3, return_X_y=True)
    >>> model = margrove.SVC().fit(X[::2], y[::2])
    >>> picture = margrove.plot.precision_recall_curve(
    ...     model, X[1::2], y[1::2], ax=Figure().subplots()
    ... )
    >>> picture.frame().columns.tolist()
    ['class', 'recall', 'precision', 'threshold']
    """
    found = facts_of(
        source, PrecisionRecallCurves, precision_recall_curves, X, y, sample_weight=sample_weight
    )
    axes = _square(ax)
    handles, names = [], []
    for code, curve in enumerate(found.curves[:_MOST_CURVES]):
        colour = class_style(code)["color"]
        axes.axhline(curve.share, color=colour, linestyle="dotted", linewidth=1.2).set_gid("chance")
        handles.append(_draw_curve(axes, curve.recall, curve.precision, code, "steps-post"))
        names.append(f"{curve.name}: average precision {curve.average_precision:.3f}")
    _finish_curves(axes, found, handles, names)
    axes.set_xlabel("recall: share of the class that is found")
    axes.set_ylabel("precision: share of the predictions that is right")
    return drawn(axes, found)


def _square(ax: Any) -> Any:
    """Square axes for two shares, from 0 to 1."""
    axes: Any = new_panels(1, size=(5.5, 5.5))[0] if ax is None else usable_axes(ax)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal", adjustable="box")
    return axes


def _draw_curve(axes: Any, x: np.ndarray, y: np.ndarray, code: int, steps: str) -> Any:
    (line,) = axes.plot(
        x, y, color=class_style(code)["color"], linestyle=_DASHES[code % len(_DASHES)],
        linewidth=2.5, drawstyle=steps,
    )  # fmt: skip
    line.set_gid("curve")
    return line


def _finish_curves(axes: Any, found: Any, handles: list[Any], names: list[str]) -> None:
    if len(found.curves) > _MOST_CURVES:
        note = f"the first {_MOST_CURVES} of {len(found.curves)} classes"
        axes.set_title(note, fontsize="medium")
    elif found.undefined:
        absent = ", ".join(found.undefined[:5]) + (", ..." if len(found.undefined) > 5 else "")
        axes.set_title(f"no curve for {absent}", fontsize="medium", parse_math=False)
    if handles:
        explain_handles(axes, handles, names, 0)


def margin_distribution(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    bins: int = 30,
    ax: Axes | None = None,
) -> Picture:
    """Draw a histogram of the margins of rows, class by class.

    Rows left of 0 are misclassified. For a support vector machine, rows between 0 and 1 are right,
    but inside the margin. Artists have a `gid`: "margins", one for each class, "zero" and "level".

    Parameters
    ----------
    source : fitted classifier or MarginFacts
        The latter is returned by `margrove.facts.margins_of`.
    X, y : rows and their classes
        For a classifier.
    bins : int, default=30
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are the MarginFacts.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_moons(100, return_X_y=True)
    >>> model = margrove.SVC().fit(X, y)
    >>> picture = margrove.plot.margin_distribution(model, X, y, ax=Figure().subplots())
    >>> len(picture.frame())
    100
    """
    found = facts_of(source, MarginFacts, margins_of, X, y)
    bins = require_whole("bins", bins, 1)
    axes = usable_axes(ax)
    ends = [float(found.margins.min()), float(found.margins.max()), 0.0, found.level or 0.0]
    edges = np.linspace(
        min(ends), max(ends) if max(ends) > min(ends) else min(ends) + 1.0, bins + 1
    )
    shown = np.unique(found.codes).tolist()
    handles: list[Any] = []
    below = np.zeros(bins)
    for code in shown:
        counts = np.histogram(found.margins[found.codes == code], bins=edges)[0]
        bars = axes.stairs(
            below + counts, edges, baseline=below, fill=True, color=class_style(code)["color"],
            edgecolor="white", linewidth=0.6,
        )  # fmt: skip
        bars.set_gid("margins")
        handles.append(bars)
        below = below + counts
    names = [found.classes[code] for code in shown]
    zero = axes.axvline(0.0, color="black", linewidth=2.0)
    zero.set_gid("zero")
    handles.append(zero)
    names.append(f"boundary: {found.n_wrong} rows on the wrong side")
    if found.level is not None:
        edge = axes.axvline(found.level, color="black", linewidth=1.5, linestyle="dashed")
        edge.set_gid("level")
        handles.append(edge)
        names.append(f"edge of the margin: {found.n_inside} rows inside")
    explain_handles(axes, handles, names, 0)
    axes.set_xlabel(f"margin: {found.measure}")
    axes.set_ylabel("rows")
    return drawn(axes, found)
