"""Pictures of AdaBoost: errors, margins, and rounds over two features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove import facts
from margrove.plot.drawing import (
    Picture,
    class_style,
    counted_rounds,
    drawn,
    explain_handles,
    number_rounds,
    table,
    tint,
    usable_axes,
    usable_panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["boosting", "boosting_errors", "boosting_margins", "boosting_rounds"]

_MEAN_AREA = 60.0  # of the dot of a row, in points squared
_LEAST_AREA = 3.0
_DASHES = ("dotted", "dashed", "dashdot", "solid")  # of stages; the last is solid


def boosting(
    model: Any, X: Any = None, y: Any = None, *, what: str = "errors", **settings: Any
) -> Picture:
    """Draw the course of boosting: errors, margins or rounds.

    Parameters
    ----------
    model : fitted AdaBoostClassifier
    X, y : rows and their classes
        Optional for "errors"; there, use rows that the model has not seen.
    what : {"errors", "margins", "rounds"}, default="errors"
        Which picture: that of `boosting_errors`, `boosting_margins` or `boosting_rounds`.
    **settings
        For that function.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    >>> model = margrove.AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> ax = margrove.plot.boosting(model, X, y, what="margins", ax=Figure().subplots())
    >>> ax.get_xlabel()
    'margin'
    """
    pictures: dict[str, Callable[..., Picture]] = {
        "errors": boosting_errors,
        "margins": boosting_margins,
        "rounds": boosting_rounds,
    }
    if what not in pictures:
        raise ValueError(f"what must be one of {', '.join(map(repr, pictures))}. Got {what!r}.")
    if what != "errors" and (X is None or y is None):
        raise ValueError(f"what={what!r} needs X and y, the rows of the fit and their classes.")
    return pictures[what](model, X, y, **settings)


# -- errors --------------------------------------------------------------------------------------


def boosting_errors(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    bounds: bool = True,
    scale: str = "linear",
    ax: Axes | None = None,
) -> Picture:
    """Draw the errors of a boosted model against its rounds, and their bounds.

    The numbers are available from `margrove.facts.boosting_errors`. Artists have a `gid`:
    "training", "validation", "test", "bound", "edge bound" and "kept".

    Parameters
    ----------
    model : fitted AdaBoostClassifier
    X, y : optional
        Rows that the model has not seen, and their classes. The error on the validation rows of
        `fit` is drawn in any case.
    bounds : bool, default=True
        Draw upper bounds of the training error, if they are known: the product of the normalisers
        Z, and exp(-2 sum gamma^2).
    scale : {"linear", "log"}, default="linear"
        Of the axis of rounds.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    >>> model = margrove.AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> ax = margrove.plot.boosting_errors(model, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['training error: 0', 'product of the Z: 0.516', 'exp(-2 sum of the squared edges): 0.602']
    """
    if scale not in ("linear", "log"):
        raise ValueError(f"scale must be 'linear' or 'log'. Got {scale!r}.")
    found = facts.boosting_errors(model, X, y)
    axes = usable_axes(ax)
    curves = [
        ("training", "training error", found.training, class_style(0)["color"], "solid"),
        ("validation", "validation error", found.validation, class_style(2)["color"], "solid"),
        ("test", "test error", found.test, class_style(1)["color"], "solid"),
    ]
    if bounds:
        curves += [
            ("bound", "product of the Z", found.bound, "0.3", "dashed"),
            ("edge bound", "exp(-2 sum of the squared edges)", found.edge_bound, "0.6", "dotted"),
        ]
    for gid, name, values, colour, dashes in curves:
        if values is None:
            continue
        rounds = found.rounds[: len(values)]
        last = float(values[min(found.n_kept, len(values)) - 1])
        (line,) = axes.plot(
            rounds, values, color=colour, linestyle=dashes, label=f"{name}: {last:.3g}",
            marker="." if len(rounds) == 1 else None,
        )  # fmt: skip
        line.set_gid(gid)
    if found.n_kept < len(found.rounds):
        kept = axes.axvline(
            found.n_kept, color="black", linewidth=1.0, label=f"{found.n_kept} rounds are kept"
        )
        kept.set_gid("kept")
    number_rounds(axes, scale)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("share misclassified")
    axes.legend()
    data = table(
        round=found.rounds,
        training=found.training,
        validation=found.validation,
        test=found.test,
        bound=found.bound,
        edge_bound=found.edge_bound,
    )
    return drawn(axes, data)


# -- margins -------------------------------------------------------------------------------------


def boosting_margins(
    model: Any,
    X: Any,
    y: Any,
    *,
    stages: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Picture:
    """Draw the cumulative distribution of margins after some numbers of rounds.

    Rows left of 0 are misclassified. More rounds increase small margins even after the last
    training error is gone. The numbers are available from `margrove.facts.margin_distributions`.
    Artists have a `gid`: "margins", one for each stage, and "zero".

    Parameters
    ----------
    model : fitted AdaBoostClassifier
    X, y : rows and their classes, usually those of `fit`
    stages : sequence of int, optional
        Numbers of rounds; by default 5, 100 and 1000, if there are as many, and all rounds.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    >>> model = margrove.AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> ax = margrove.plot.boosting_margins(model, X, y, stages=[1, 3], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['1 round', '3 rounds']
    """
    found = facts.margin_distributions(model, X, y, stages)
    axes = usable_axes(ax)
    is_bounded = all(stage.is_bounded for stage in found)
    low = min((stage.margins[0] for stage in found), default=0.0)
    high = max((stage.margins[-1] for stage in found), default=0.0)
    ends = (-1.0, 1.0) if is_bounded else (min(low, 0.0), max(high, 0.0))
    for k, stage in enumerate(found):
        (line,) = axes.step(
            np.concatenate([ends[:1], stage.margins, ends[1:]]),
            np.concatenate([[0.0], stage.shares, [1.0]]),
            where="post",
            color=class_style(k)["color"],
            linestyle=_DASHES[max(len(_DASHES) - len(found) + k, 0)],
            label=counted_rounds(stage.n_rounds),
        )
        line.set_gid("margins")
    axes.axvline(0.0, color="0.6", linewidth=1.0, zorder=0).set_gid("zero")
    axes.set_xlim(*ends)
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("margin")
    axes.set_ylabel("share of the rows with at most this margin")
    axes.legend(loc="upper left")
    return drawn(axes, _margin_table(found))


def _margin_table(found: Sequence[facts.MarginDistribution]) -> dict[str, Any]:
    return table(
        rounds=[stage.n_rounds for stage in found for _ in stage.margins],
        margin=[margin for stage in found for margin in stage.margins.tolist()],
        share=[share for stage in found for share in stage.shares.tolist()],
    )


# -- rounds over two features --------------------------------------------------------------------


def boosting_rounds(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    rounds: Sequence[int] | None = None,
    resolution: int = 200,
    legend: bool = True,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw rounds of boosting over two features, a panel each, and all of them together.

    The area of a point is the weight D of its row before the round, circles are around rows that
    the round misclassifies, and background colours are its predictions. The data are available from
    `margrove.facts.boosting_sketches`. Artists have a `gid`: "regions", "data", "mistakes" and
    "stump".

    Parameters
    ----------
    model : fitted AdaBoostClassifier
        With two features, both numbers.
    X, y, sample_weight
        The training data.
    rounds : sequence of int, optional
        Which rounds, from 1; by default the first three.
    resolution : int, default=200
        Cells along each axis, if members are not stumps; those of stumps are exact.
    legend : bool, default=True
        In the last panel.
    axes : sequence of matplotlib Axes, optional
        One for each round, and one more. By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_boosting_points(return_X_y=True)
    >>> model = margrove.AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> panels = margrove.plot.boosting_rounds(model, X, y, axes=Figure().subplots(1, 4))
    >>> for panel in panels:
    ...     print(panel.get_title())
    round 1: eps = 0.30, beta = 0.42
    round 2: eps = 0.21, beta = 0.65
    round 3: eps = 0.14, beta = 0.92
    all 3 rounds: error 0
    """
    with warnings.catch_warnings():  # the columns of the grid have no names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        found = facts.boosting_sketches(
            model, X, y, sample_weight, rounds=rounds, resolution=resolution
        )
    panels = usable_panels(axes, len(found.rounds), "round and one for all together")
    for panel, sketch in zip(panels, found.rounds, strict=True):
        handles = _draw_round(panel, found, sketch)
        panel.set_title(_title(sketch, len(model)), fontsize="medium")
        if legend and sketch.number is None:
            present = [found.classes[code] for code in np.unique(found.codes).tolist()]
            explain_handles(panel, handles, present, len(found.codes))
    return drawn(panels, _rounds_table(found))


def _rounds_table(found: facts.BoostingSketches) -> dict[str, Any]:
    """A table with a row for each panel and row of the data; NaN is the round of all together."""
    n_panels, n_rows = len(found.rounds), len(found.codes)
    numbers = [np.nan if one.number is None else one.number for one in found.rounds]
    return table(
        round=np.repeat(np.array(numbers, dtype=np.float64), n_rows),
        row=np.tile(np.arange(n_rows), n_panels),
        x=np.tile(found.points[:, 0], n_panels),
        y=np.tile(found.points[:, 1], n_panels),
        label=[found.classes[code] for code in found.codes.tolist()] * n_panels,
        weight=np.concatenate([one.weights for one in found.rounds]),
        is_wrong=np.concatenate([one.is_wrong for one in found.rounds]),
    )


def _draw_round(panel: Any, found: facts.BoostingSketches, sketch: facts.RoundSketch) -> list[Any]:
    """Draw one panel; returns the points of each class, for the legend."""
    from matplotlib.colors import ListedColormap

    n_classes = len(found.classes)
    panel.pcolormesh(
        found.x_edges,
        found.y_edges,
        sketch.said,
        cmap=ListedColormap([tint(code) for code in range(n_classes)]),
        vmin=-0.5,
        vmax=n_classes - 0.5,
        zorder=0,
    ).set_gid("regions")
    if sketch.threshold is not None:
        draw = panel.axvline if sketch.feature == 0 else panel.axhline
        draw(sketch.threshold, color="black", linewidth=1.2, zorder=2).set_gid("stump")
    n_rows = len(found.codes)
    weights = np.full(n_rows, 1.0 / n_rows) if sketch.number is None else sketch.weights
    areas = np.maximum(_MEAN_AREA * n_rows * weights, _LEAST_AREA)
    handles = []
    for code in np.unique(found.codes).tolist():
        of_class = found.codes == code
        handles.append(
            panel.scatter(
                *found.points[of_class].T,
                s=areas[of_class],
                linewidths=0.6,
                edgecolors="white",
                zorder=3,
                **class_style(code),
            )
        )
        handles[-1].set_gid("data")
    wrong = sketch.is_wrong
    if wrong.any():
        panel.scatter(
            *found.points[wrong].T, s=2.0 * areas[wrong] + 40.0, facecolors="none",
            edgecolors="black", linewidths=1.0, zorder=4,
        ).set_gid("mistakes")  # fmt: skip
    panel.set_xlim(found.x_edges[0], found.x_edges[-1])
    panel.set_ylim(found.y_edges[0], found.y_edges[-1])
    panel.set_xlabel(found.names[0], parse_math=False)
    panel.set_ylabel(found.names[1], parse_math=False)
    return handles


def _title(sketch: facts.RoundSketch, n_rounds: int) -> str:
    if sketch.number is None:
        rounds = "1 round" if n_rounds == 1 else f"all {n_rounds} rounds"
        return f"{rounds}: error {sketch.error:.3g}"
    beta = "" if sketch.beta is None else f", beta = {sketch.beta:.2f}"
    return f"round {sketch.number}: eps = {sketch.error:.2f}{beta}"
