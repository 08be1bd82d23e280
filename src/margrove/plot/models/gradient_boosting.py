"""Pictures of gradient boosting: losses, importances, trees, stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from margrove import facts
from margrove.facts.models import require_gradient_boosting, tree_of_round
from margrove.plot.drawing import (
    Picture,
    class_style,
    counted_rounds,
    drawn,
    number_rounds,
    range_of,
    table,
    usable_axes,
    usable_panels,
)
from margrove.plot.models.forests import importances
from margrove.plot.trees import tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["gradient_importances", "gradient_stages", "gradient_tree", "loss_curve"]

_MEASURES = {"gain": "gain of the splits, as a share", "split": "splits, as a share"}


# -- losses --------------------------------------------------------------------------------------


def loss_curve(
    model: Any,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    scale: str = "linear",
    ax: Axes | None = None,
) -> Picture:
    """Draw the losses of gradient boosting against its rounds.

    The best round is marked: that of the validation rows, or else of X and y. A validation score
    that is not a loss has its own axis, on the right. The numbers are available from
    `margrove.facts.loss_curve`. Artists have a `gid`: "training", "validation", "test", "score" and
    "best".

    Parameters
    ----------
    model : fitted gradient boosting
    X, y, sample_weight : optional
        Rows that the model has not seen, and their targets.
    scale : {"linear", "log"}, default="linear"
        Of the axis of rounds; "log" begins with the first round.
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
    >>> model = margrove.HistGradientBoostingClassifier(max_iter=20).fit(X[::2], y[::2])
    >>> ax = margrove.plot.loss_curve(model, X[1::2], y[1::2], ax=Figure().subplots())
    >>> [line.get_gid() for line in ax.lines]
    ['training', 'test', 'best']
    """
    if scale not in ("linear", "log"):
        raise ValueError(f"scale must be 'linear' or 'log'. Got {scale!r}.")
    found = facts.loss_curve(model, X, y, sample_weight)
    axes = usable_axes(ax)
    first = 1 if scale == "log" else 0
    handles = []
    for code, (name, values) in enumerate(
        (("training", found.training), ("test", found.test), ("validation", found.validation))
    ):
        if values is not None:
            label = f"{name} loss: {values[-1]:.3g}"
            handles.append(_draw_curve(axes, found, values, first, name, label, code))
    if found.score is not None:
        right = axes.twinx()
        label = f"{found.score_name}: {found.score[-1]:.3g}"
        handles.append(_draw_curve(right, found, found.score, first, "score", label, 3))
        right.set_ylabel(f"validation score ({found.score_name})", parse_math=False)
    if found.best_round is not None:
        best = axes.axvline(
            found.best_round, color="black", linewidth=1.0, linestyle="dotted",
            label=f"best after {counted_rounds(found.best_round)}",
        )  # fmt: skip
        best.set_gid("best")
        handles.append(best)
    number_rounds(axes, scale)
    axes.set_ylabel(f"loss ({found.loss})", parse_math=False)
    axes.legend(handles=handles)
    data = table(
        round=found.rounds,
        training=found.training,
        validation=found.validation,
        test=found.test,
        score=found.score,
    )
    return drawn(axes, data)


def _draw_curve(
    axes: Any, found: facts.LossCurve, values: Any, first: int, gid: str, label: str, code: int
) -> Any:
    (line,) = axes.plot(
        found.rounds[first:], values[first:], color=class_style(code)["color"], label=label
    )
    line.set_gid(gid)
    return line


# -- features and trees --------------------------------------------------------------------------


def gradient_importances(
    model: Any,
    *,
    kind: Literal["gain", "split"] = "gain",
    n: int = 20,
    feature_names: Any = None,
    ax: Axes | None = None,
) -> Picture:
    """Draw the most important features of gradient boosting, as bars.

    Artists have a `gid`: "importance" (bars) and "zero".

    Parameters
    ----------
    model : fitted gradient boosting
    kind : {"gain", "split"}, default="gain"
        By the gain of splits, or by their number.
    n : int, default=20
        Largest number of features; the title says so if there are more.
    feature_names : sequence of str, optional
        A name for each feature. By default those of the training data.
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
    >>> model = margrove.HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    >>> ax = margrove.plot.gradient_importances(model, kind="split", ax=Figure().subplots())
    >>> ax.get_xlabel()
    'splits, as a share'
    """
    require_gradient_boosting(model, "gradient_importances")
    names = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    axes = importances(model.importances(kind), n=n, feature_names=names, ax=ax)
    axes.set_xlabel(_MEASURES[kind])
    return axes


def gradient_tree(
    model: Any,
    number: int = 1,
    score: int = 0,
    *,
    max_depth: int | None = None,
    row: Any = None,
    decimals: int = 3,
    ax: Axes | None = None,
) -> Picture:
    """Draw a tree of gradient boosting: its leaves are what a round adds to the raw scores.

    Artists have the `gid` of those of `tree`.

    Parameters
    ----------
    model : fitted gradient boosting
    number : int, default=1
        Which round, from 1.
    score : int, default=0
        With more than two classes, which one, by its place in `classes_`.
    max_depth, row, decimals, ax
        As in `tree`.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = [[float(i)] for i in range(100)], [0.0] * 50 + [1.0] * 50
    >>> model = margrove.HistGradientBoostingRegressor(max_iter=3).fit(X, y)
    >>> ax = margrove.plot.gradient_tree(model, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts if text.get_gid().startswith("prediction")]
    ['mean 0.000', '-0.050', '0.050']
    """
    of_round = tree_of_round(model, number, score)
    return tree(of_round, max_depth=max_depth, row=row, decimals=decimals, ax=ax)


# -- one feature, stage by stage -----------------------------------------------------------------


def gradient_stages(
    model: Any,
    X: Any,
    y: Any,
    *,
    rounds: Sequence[int] | None = None,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw the predictions of gradient boosting over one feature after some rounds.

    The numbers are available from `margrove.facts.gradient_stages`. Artists have a `gid`:
    "data" and "prediction".

    Parameters
    ----------
    model : fitted gradient boosting
        For numbers, with one feature that is a number.
    X, y : rows and their targets, usually those of `fit`
    rounds : sequence of int, optional
        Numbers of rounds, a panel each; by default 1, 5, 20 and 100, if there are as many, and all
        rounds.
    axes : sequence of matplotlib Axes, optional
        One for each panel. By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import numpy as np
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> x = np.linspace(0.0, 6.0, 300)[:, None]
    >>> model = margrove.HistGradientBoostingRegressor(max_iter=20).fit(x, np.sin(x[:, 0]))
    >>> panels = margrove.plot.gradient_stages(
    ...     model, x, np.sin(x[:, 0]), rounds=(1, 20), axes=Figure().subplots(1, 2)
    ... )
    >>> [panel.get_title() for panel in panels]
    ['1 round: loss 0.212', '20 rounds: loss 0.00494']
    """
    found = facts.gradient_stages(model, X, y, rounds)
    panels = usable_panels(axes, len(found.rounds), "stage")
    values = np.concatenate([found.points, found.high[:-1]])
    low, high = range_of(values[:, None])[0] if len(values) else (0.0, 1.0)
    edges = np.concatenate([[low], found.high[:-1], [high]])
    for panel, count, predictions, loss in zip(
        panels, found.rounds, found.predictions, found.losses.tolist(), strict=True
    ):
        panel.scatter(
            found.points, found.targets, s=10, color=class_style(0)["color"], zorder=1
        ).set_gid("data")
        steps = panel.stairs(
            predictions, edges, baseline=None, color="black", linewidth=1.5, zorder=2
        )
        steps.set_gid("prediction")
        panel.set_title(f"{counted_rounds(count)}: loss {loss:.3g}", fontsize="medium")
        panel.set_xlabel(found.name, parse_math=False)
    n_stages, n_intervals = found.predictions.shape
    data = table(
        rounds=np.repeat(found.rounds, n_intervals),
        low=np.tile(np.concatenate([[-np.inf], found.high[:-1]]), n_stages),
        high=np.tile(found.high, n_stages),
        prediction=found.predictions.ravel(),
    )
    return drawn(panels, data)
