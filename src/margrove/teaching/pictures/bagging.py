"""Members and their vote, and a statistic over resamples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, explain_handles, tint, usable_axes
from margrove.teaching.facts import (
    bagged_boundaries as boundaries_of,
)
from margrove.teaching.facts import (
    bootstrap_histogram as histogram_of,
)
from margrove.teaching.facts import (
    member_votes as votes_of,
)
from margrove.teaching.pictures.plane_drawing import draw_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bagged_boundaries", "bootstrap_histogram", "member_votes"]


def bagged_boundaries(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_members: int = 10,
    resolution: int = 200,
    legend: bool = True,
    ax: Axes | None = None,
) -> Picture:
    """Draw the boundaries of single members of bagging or a forest, and that of their vote.

    Artists have a `gid`: "regions", "data", "member" and "vote".

    Parameters
    ----------
    model : fitted BaggingClassifier or forest of classifiers, of two features
    X, y : rows and their classes
    n_members : int, default=10
        Largest number of members.
    resolution : int, default=200
        Points of the grid along each axis.
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.bagging.bagged_boundaries`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_moons(100, return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(30, random_state=0).fit(X, y)
    >>> picture = margrove.plot.bagged_boundaries(
    ...     forest, X, y, resolution=30, ax=Figure().subplots()
    ... )
    >>> sorted(picture.frame().vote.unique().tolist())
    ['0', '1']
    """
    found = boundaries_of(model, X, y, n_members=n_members, resolution=resolution)
    axes = usable_axes(ax)
    from matplotlib.colors import ListedColormap
    from matplotlib.lines import Line2D

    n_classes = len(found.rows.classes)
    axes.pcolormesh(
        found.x, found.y, found.vote, cmap=ListedColormap([tint(k) for k in range(n_classes)]),
        vmin=-0.5, vmax=n_classes - 0.5, shading="nearest", rasterized=True, zorder=0,
    ).set_gid("regions")  # fmt: skip
    for predicted in found.members:
        _draw_edges(axes, found.x, found.y, predicted, "member", colors="0.35", linewidths=0.8)
    _draw_edges(axes, found.x, found.y, found.vote, "vote", colors="black", linewidths=3.0)
    handles: list[Any] = draw_rows(axes, found.rows)
    axes.set_xlim(found.x[0], found.x[-1])
    axes.set_ylim(found.y[0], found.y[-1])
    axes.set_xlabel(found.rows.names[0], parse_math=False)
    axes.set_ylabel(found.rows.names[1], parse_math=False)
    if legend:
        handles += [
            Line2D([], [], color="0.35", linewidth=0.8),
            Line2D([], [], color="black", linewidth=3.0),
        ]
        members = f"{len(found.members)} members"
        names = [*found.rows.classes, members, f"vote of all {found.n_members}"]
        explain_handles(axes, handles, names, len(found.rows.codes))
    return drawn(axes, found)


def _draw_edges(
    axes: Any, x: np.ndarray, y: np.ndarray, codes: np.ndarray, gid: str, **look: Any
) -> None:
    """Draw lines around the regions of all classes but the first, which are all lines."""
    for code in np.unique(codes)[1:]:
        axes.contour(x, y, codes >= code, levels=[0.5], zorder=2, **look).set_gid(gid)


def member_votes(model: Any, row: Any, *, label: Any = None, ax: Axes | None = None) -> Picture:
    """Draw the probability of a class for one row by each member of bagging or a forest.

    Members that predict the class are blue, the others orange. Artists have a `gid`: "member"
    (bars), "average" and "half".

    Parameters
    ----------
    model : fitted BaggingClassifier or forest of classifiers
    row : array-like of shape (n_features,)
    label : optional
        The class; by default the one that the model predicts.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.bagging.member_votes`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_moons(100, return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(8, max_depth=2, random_state=0).fit(X, y)
    >>> picture = margrove.plot.member_votes(forest, X[0], ax=Figure().subplots())
    >>> len(picture.frame())
    8
    """
    found = votes_of(model, row, label=label)
    axes = usable_axes(ax)
    places = np.arange(len(found.probabilities))
    names = ("votes for it", "votes against it")
    handles = []
    for code, is_class in enumerate((found.says_so, ~found.says_so)):
        bars = axes.bar(
            places[is_class],
            found.probabilities[is_class],
            color=class_style(code)["color"],
            width=0.8,
        )
        for bar in bars:
            bar.set_gid("member")
        handles.append(_patch(class_style(code)["color"]))
    mean = axes.axhline(found.average, color="black", linewidth=2.5)
    mean.set_gid("average")
    axes.axhline(0.5, color="0.5", linestyle="dotted", linewidth=1.2).set_gid("half")
    axes.set_ylim(0.0, 1.4)  # space for the legend
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_xlabel("member")
    axes.set_ylabel(f"probability of {found.label}", parse_math=False)
    n_for = int(found.says_so.sum())
    axes.set_title(f"{n_for} of {len(places)} votes", fontsize="medium")
    explain_handles(axes, [*handles, mean], [*names, f"average, {found.average:.3g}"], len(places))
    return drawn(axes, found)


def _patch(colour: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour)


def bootstrap_histogram(
    result: Any, *, bins: int | str = "auto", name: str = "statistic", ax: Axes | None = None
) -> Picture:
    """Draw how a statistic varies over bootstrap samples, with its standard error and interval.

    Artists have a `gid`: "resamples" (bars), "estimate", "mean" and "interval".

    Parameters
    ----------
    result : BootstrapResult
        The result of `margrove.bootstrap` for a statistic that is one number.
    bins : int or str, default="auto"
        As in `numpy.histogram_bin_edges`.
    name : str, default="statistic"
        Of the statistic, for the axis.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.bagging.bootstrap_histogram`.

    Examples
    --------
    >>> import numpy as np
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> sample = np.random.default_rng(0).exponential(size=50)
    >>> result = margrove.bootstrap(sample, np.median, random_state=0)
    >>> picture = margrove.plot.bootstrap_histogram(result, name="median", ax=Figure().subplots())
    >>> int(picture.frame()["count"].sum())
    1000
    """
    found = histogram_of(result, bins=bins)
    axes = usable_axes(ax)
    bars = axes.stairs(found.counts, found.edges, fill=True, color=tint(0, 0.6))
    bars.set_gid("resamples")
    level = f"{100 * found.confidence_level:g} % interval"
    interval = axes.axvspan(found.low, found.high, color=tint(1, 0.35), zorder=0)
    interval.set_gid("interval")
    estimate = axes.axvline(found.estimate, color="black", linewidth=2.5)
    estimate.set_gid("estimate")
    mean = axes.axvline(found.mean, color=class_style(5)["color"], linewidth=2.0, linestyle="--")
    mean.set_gid("mean")
    names = [
        f"{found.n_resamples} resamples, standard error {found.standard_error:.3g}",
        f"estimate {found.estimate:.4g}",
        f"mean of the resamples {found.mean:.4g}",
        f"{level} {found.low:.4g} to {found.high:.4g}",
    ]
    axes.set_ylim(0, 1.45 * max(1, int(found.counts.max())))  # space for the legend
    explain_handles(axes, [bars, estimate, mean, interval], names, 0)
    axes.set_xlabel(name, parse_math=False)
    axes.set_ylabel("resamples")
    return drawn(axes, found)
