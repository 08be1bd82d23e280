"""Compared models side by side, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, new_panels, usable_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from margrove.select.compare import Comparison

__all__ = ["compared_models"]

_WIDTH, _FRAME_HEIGHT, _ROW_HEIGHT = 6.0, 1.1, 0.32  # inches


def compared_models(
    comparison: Comparison,
    *,
    what: Literal["scores", "differences"] = "scores",
    ax: Axes | None = None,
) -> Picture:
    """Draw the scores of compared models with their intervals, the best on top.

    Models that differ from the best one are orange, the others blue; those that failed are named
    in the title. The numbers are in `models` and `pairs` of the comparison. Artists have a `gid`:
    "score", "folds" (scores of single folds) and "interval"; or "difference", "interval" and
    "zero".

    Parameters
    ----------
    comparison : Comparison
        The result of `margrove.compare`.
    what : {"scores", "differences"}, default="scores"
        "differences" are those between the best model and each other one. Intervals of scores may
        overlap although the difference is clear, because models are compared on the same folds.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, SVC
    >>> from margrove.datasets import load_iris
    >>> from margrove.plot.models.comparisons import compared_models
    >>> from margrove.select.compare.comparison import compare
    >>> from matplotlib.figure import Figure
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare([DecisionTreeClassifier(), SVC()], X, y, random_state=0)
    >>> ax = compared_models(found, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['SVC', 'DecisionTreeClassifier']
    """
    if what not in ("scores", "differences"):
        raise ValueError(f"what must be 'scores' or 'differences'. Got {what!r} instead.")
    if what == "differences" and len(comparison.models) < 2:
        raise ValueError("what='differences' needs two models. For one, use what='scores'.")
    n_rows = len(comparison.models) - (what == "differences")
    if ax is None:
        axes = new_panels(1, size=(_WIDTH, _FRAME_HEIGHT + _ROW_HEIGHT * n_rows))[0]
    else:
        axes = usable_axes(ax)
    draw = _draw_scores if what == "scores" else _draw_differences
    draw(axes, comparison)
    axes.set_ylim(n_rows - 0.5, -0.5)  # the best on top
    if comparison.failed:
        names = ", ".join(model.name for model in comparison.failed)
        axes.set_title(f"failed: {names}", fontsize="medium", parse_math=False)
    return drawn(axes, comparison)


def _draw_scores(axes: Any, comparison: Comparison) -> None:
    rivals = [pair for pair in comparison.pairs if pair.first == comparison.best]
    worse = {pair.second for pair in rivals if pair.differs}
    for place, model in enumerate(comparison.models):
        folds = np.full(len(model.fold_scores), float(place))
        axes.plot(model.fold_scores, folds, ".", color="0.75", zorder=1)[0].set_gid("folds")
        _draw_interval(axes, place, model.score, model.interval, model.name in worse, "score")
    _name_rows(axes, [model.name for model in comparison.models])
    axes.set_xlabel(f"{comparison.scoring}, with {100 * comparison.confidence_level:g} % intervals")


def _draw_differences(axes: Any, comparison: Comparison) -> None:
    pairs = [pair for pair in comparison.pairs if pair.first == comparison.best]
    axes.axvline(0.0, color="black", linewidth=1.0).set_gid("zero")
    for place, pair in enumerate(pairs):
        _draw_interval(axes, place, pair.difference, pair.interval, pair.differs, "difference")
    _name_rows(axes, [pair.second for pair in pairs])
    level = f"{100 * comparison.confidence_level:g} % intervals"
    axes.set_xlabel(
        f"{comparison.scoring} of {comparison.best} minus theirs,\nwith {level}", parse_math=False
    )


def _draw_interval(
    axes: Any, place: int, value: float, interval: Any, differs: bool, gid: str
) -> None:
    style = class_style(1 if differs else 0)
    if np.isfinite(interval).all():
        axes.hlines(place, interval.low, interval.high, color=style["color"]).set_gid("interval")
    (dot,) = axes.plot([value], [place], style["marker"], color=style["color"], zorder=3)
    dot.set_gid(gid)


def _name_rows(axes: Any, names: list[str]) -> None:
    # Names come from the user: a dollar sign in them does not start a formula.
    axes.set_yticks(range(len(names)), labels=names, parse_math=False)
