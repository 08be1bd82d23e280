"""Pictures of errors: residuals and worst mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from margrove.facts import (
    ResidualFacts,
    WorstMistakes,
    residual_facts,
)
from margrove.facts import (
    worst_mistakes as mistakes_of,
)
from margrove.plot.drawing import Picture, class_style, drawn, facts_of, new_panels, usable_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["residuals", "worst_mistakes"]


def residuals(
    source: Any,
    X: Any = None,
    y: Any = None,
    *,
    what: Literal["truth", "residuals"] = "truth",
    sample_weight: Any = None,
    ax: Axes | None = None,
) -> Picture:
    """Draw the errors of a regressor: predictions against the truth, or residuals.

    Artists have a `gid`: "rows" and "ideal".

    Parameters
    ----------
    source : fitted regressor or ResidualFacts
        The latter is returned by `margrove.facts.residual_facts`.
    X, y : rows and their targets
        For a regressor; use rows that it has not seen.
    what : {"truth", "residuals"}, default="truth"
        "truth" draws predictions against the truth, "residuals" prediction minus truth against
        predictions.
    sample_weight : array-like of shape (n_samples,), optional
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are the ResidualFacts.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 6.0]
    >>> tree = margrove.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> picture = margrove.plot.residuals(tree, X, y, ax=Figure().subplots())
    >>> picture.frame().residual.tolist()
    [0.0, 0.0, 1.0, -1.0]
    """
    if what not in ("truth", "residuals"):
        raise ValueError(f"what must be 'truth' or 'residuals'. Got {what!r}.")
    found = facts_of(source, ResidualFacts, residual_facts, X, y, sample_weight=sample_weight)
    axes = usable_axes(ax)
    many = len(found.truth) > 2_000
    look: dict[str, Any] = {"s": 8 if many else 24, "alpha": 0.3 if many else 0.7}
    x, height = (found.truth, found.predictions) if what == "truth" else (
        found.predictions, found.residuals)  # fmt: skip
    axes.scatter(x, height, color=class_style(0)["color"], linewidths=0, **look).set_gid("rows")
    if what == "truth":
        ends = [float(np.min([x, height])), float(np.max([x, height]))]
        axes.plot(ends, ends, color="black", linewidth=1.5)[0].set_gid("ideal")
        axes.set_xlabel("truth")
        axes.set_ylabel("prediction")
    else:
        axes.axhline(0.0, color="black", linewidth=1.5).set_gid("ideal")
        axes.set_xlabel("prediction")
        axes.set_ylabel("prediction minus truth")
    explained = "" if found.r2 is None else f", R² {found.r2:.3f}"
    axes.set_title(
        f"root mean squared error {found.root_mean_squared_error:.4g}{explained}", fontsize="medium"
    )
    return drawn(axes, found)


# -- mistakes ------------------------------------------------------------------------------------


def worst_mistakes(
    source: Any, X: Any = None, y: Any = None, *, n: int = 10, ax: Axes | None = None
) -> Picture:
    """Draw the rows with the largest errors, the largest on top.

    Artists have a `gid`: "mistake" (bars).

    Parameters
    ----------
    source : fitted model or WorstMistakes
        The latter is returned by `margrove.facts.worst_mistakes`.
    X, y : rows and their classes or targets
        For a model; use rows that it has not seen.
    n : int, default=10
        Largest number of rows.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are the WorstMistakes.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 6.0]
    >>> tree = margrove.DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> picture = margrove.plot.worst_mistakes(tree, X, y, ax=Figure().subplots())
    >>> [label.get_text() for label in picture.get_yticklabels()]
    ['row 2: 5 for 4', 'row 3: 5 for 6']
    """
    found = facts_of(source, WorstMistakes, mistakes_of, X, y, **({} if X is None else {"n": n}))
    rows = found.mistakes
    if ax is None:
        axes = new_panels(1, size=(6.5, 1.3 + 0.3 * max(1, len(rows))))[0]
    else:
        axes = usable_axes(ax)
    places = range(len(rows))
    sizes = np.nan_to_num(np.array([row.size for row in rows], dtype=np.float64))
    for bar in axes.barh(places, sizes, color=class_style(5)["color"]):
        bar.set_gid("mistake")
    names = [f"row {row.row}: {_short(row.prediction)} for {_short(row.truth)}" for row in rows]
    axes.set_yticks(places, labels=names, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(found.measure if rows else "no mistake")
    axes.set_title(f"{found.n_wrong} of {found.n_rows} rows are wrong", fontsize="medium")
    return drawn(axes, found)


def _short(value: str | float) -> str:
    if isinstance(value, str):
        return value if len(value) <= 24 else value[:23] + "…"
    return f"{value:.4g}"
