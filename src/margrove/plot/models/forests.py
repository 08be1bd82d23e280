"""Pictures of forests: out-of-bag error, importances, proximities, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import (
    IntervalCoverage,
    ProximityPlane,
    interval_coverage,
    out_of_bag_curve,
    proximity_plane,
    ranked_importances,
)
from margrove.plot.drawing import (
    Picture,
    class_style,
    drawn,
    explain_handles,
    new_panels,
    table,
    usable_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["importances", "oob_curve", "prediction_intervals", "proximity_map"]

_FEW_POINTS = 50  # each has a dot
_WIDTH, _FRAME_HEIGHT, _BAR_HEIGHT = 5.5, 1.0, 0.25  # inches of bars
_DOTS: dict[str, Any] = {"s": 28, "linewidths": 0.6, "edgecolors": "white"}


def oob_curve(forest: Any, *, ax: Axes | None = None) -> Picture:
    """Draw the out-of-bag error of a forest against its number of trees.

    If the curve is flat at the end, more trees would not help. The numbers are available from
    `margrove.facts.out_of_bag_curve`. Artists have a `gid`: "curve" and "last".

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees
        With `oob_score=True` or `n_estimators="auto"`: other forests have no such curve.
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
    >>> forest = margrove.RandomForestClassifier(30, oob_score=True, random_state=0).fit(X, y)
    >>> ax = margrove.plot.oob_curve(forest, ax=Figure().subplots())
    >>> bool((ax.lines[0].get_ydata() == forest.oob_curve_).all())
    True
    """
    found = out_of_bag_curve(forest)
    axes = usable_axes(ax)
    from matplotlib.ticker import MaxNLocator

    n_trees, last = int(found.n_trees[-1]), float(found.errors[-1])
    marker = "." if n_trees <= _FEW_POINTS else None
    colour = class_style(0)["color"]
    (line,) = axes.plot(found.n_trees, found.errors, color=colour, marker=marker)
    line.set_gid("curve")
    trees = "1 tree" if n_trees == 1 else f"{n_trees} trees"
    (mark,) = axes.plot([n_trees], [last], "o", color="black", label=f"{trees}: {last:.4g}")
    mark.set_gid("last")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("trees")
    axes.set_ylabel(f"out-of-bag error ({found.error_name})")
    axes.legend()
    return drawn(axes, table(trees=found.n_trees, error=found.errors))


def importances(
    source: Any, *, n: int = 20, feature_names: Any = None, ax: Axes | None = None
) -> Picture:
    """Draw the most important features as bars, with intervals if there are any.

    The data are available from `margrove.facts.ranked_importances`. Artists have a `gid`:
    "importance" (bars), "interval" and "zero".

    Parameters
    ----------
    source : fitted estimator, OobImportances, PermutationImportances or array-like
        A tree, forest or bagged trees; the result of `oob_importances`, `oob_impurity_importances`
        or `permutation_importances`, which have intervals; or a number for each feature.
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
    >>> forest = margrove.RandomForestClassifier(50, random_state=0).fit(X, y)
    >>> found = margrove.oob_importances(forest, X, y, random_state=0)
    >>> ax = margrove.plot.importances(found, n=2, ax=Figure().subplots())
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['x2', 'x3']
    """
    found = ranked_importances(source, n, feature_names)
    places = range(len(found.values))
    if ax is None:
        axes = new_panels(1, size=(_WIDTH, _FRAME_HEIGHT + _BAR_HEIGHT * len(places)))[0]
    else:
        axes = usable_axes(ax)
    for bar in axes.barh(places, found.values, color=class_style(0)["color"]):
        bar.set_gid("importance")
    axes.axvline(0.0, color="black", linewidth=1.0).set_gid("zero")
    label = found.measure
    if found.low is not None and found.high is not None:
        axes.hlines(places, found.low, found.high, color="black").set_gid("interval")
        label += f", with {found.interval}"
    # Names come from the user: a dollar sign in them does not start a formula.
    axes.set_yticks(places, labels=found.names, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    if len(places) < found.n_features:
        note = f"the {len(places)} most important of {found.n_features} features"
        axes.set_title(note, fontsize="medium")
    data = table(feature=found.names, importance=found.values, low=found.low, high=found.high)
    return drawn(axes, data)


def proximity_map(
    forest: Any, X: Any, y: Any = None, *, legend: bool = True, ax: Axes | None = None
) -> Picture:
    """Draw rows near each other if the trees of a forest put them into the same leaves.

    Positions are classical scaling of the proximities; the labels of the axes say which share of
    the squared distances they show. Classes of training rows look further apart than those of new
    rows. The points are available from `margrove.facts.proximity_plane`. Their `gid` is "data".

    Parameters
    ----------
    forest : fitted random forest or extremely randomised trees
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        At most 5,000 rows.
    y : array-like of shape (n_samples,), optional
        Their classes or targets, for the colours.
    legend : bool, default=True
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
    >>> forest = margrove.RandomForestClassifier(30, random_state=0).fit(X, y)
    >>> ax = margrove.plot.proximity_map(forest, X, y, ax=Figure().subplots())
    >>> len(ax.collections), sum(len(part.get_offsets()) for part in ax.collections)
    (3, 150)
    """
    found = proximity_plane(forest, X, y)
    axes = usable_axes(ax)
    if found.codes is not None:
        _draw_classes(axes, found, found.codes, legend=legend)
    else:
        _draw_targets(axes, found)
    first, second = (f"{100 * share:.1f} % of the squared distances" for share in found.shares)
    axes.set_xlabel(first)
    axes.set_ylabel(second)
    axes.set_aspect("equal", adjustable="datalim")
    labels = None
    if found.codes is not None:
        labels = [found.classes[code] for code in found.codes.tolist()]
    x, y_ = found.points.T
    return drawn(axes, table(x=x, y=y_, label=labels, target=found.targets))


def _draw_classes(axes: Any, found: ProximityPlane, codes: np.ndarray, *, legend: bool) -> None:
    shown = np.unique(codes).tolist()
    handles = []
    for code in shown:
        of_class = found.points[codes == code]
        handles.append(axes.scatter(*of_class.T, **class_style(code), **_DOTS))
        handles[-1].set_gid("data")
    if legend:
        explain_handles(axes, handles, [found.classes[code] for code in shown], len(codes))


def _draw_targets(axes: Any, found: ProximityPlane) -> None:
    if found.targets is None:
        axes.scatter(*found.points.T, color="0.25", **_DOTS).set_gid("data")
        return
    dots = axes.scatter(*found.points.T, c=found.targets, cmap="cividis", **_DOTS)
    dots.set_gid("data")
    axes.figure.colorbar(dots, ax=axes, label="target")


def prediction_intervals(
    forest: Any,
    X: Any,
    y: Any = None,
    *,
    coverage: float = 0.9,
    method: str = "local",
    ax: Axes | None = None,
) -> Picture:
    """Draw the prediction intervals of rows, sorted by their predictions, and the truth.

    The title says how many targets lie in their intervals. The numbers are available from
    `margrove.facts.interval_coverage`. Artists have a `gid`: "intervals", "prediction", "inside"
    and "outside".

    Parameters
    ----------
    forest : fitted RandomForestRegressor or ExtraTreesRegressor
        With `oob_score=True`.
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
        Rows that the forest has not seen: training rows are predicted too well.
    y : array-like of shape (n_samples,), optional
        Their targets.
    coverage : float, default=0.9
        The share of new rows whose targets should lie in their intervals.
    method : {"local", "conformal"}, default="local"
        As in `predict_interval`.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import numpy as np
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> x = np.linspace(0.0, 6.0, 200)[:, None]
    >>> forest = margrove.RandomForestRegressor(30, oob_score=True, random_state=0)
    >>> forest = forest.fit(x[::2], np.sin(x[::2, 0]))
    >>> ax = margrove.plot.prediction_intervals(forest, x[1::2], ax=Figure().subplots())
    >>> ax.get_title()
    '90 % intervals of 100 rows'
    """
    found = interval_coverage(forest, X, y, coverage=coverage, method=method)
    axes = usable_axes(ax)
    places = np.arange(len(found.rows))
    # Each row has the width 1, so that a single row is visible too.
    edges = np.append(places, len(places)) - 0.5
    band = axes.stairs(
        found.high, edges, baseline=found.low, fill=True, color="0.85", label="intervals"
    )
    band.set_gid("intervals")
    (line,) = axes.plot(places, found.predictions, color="black", label="prediction", zorder=3)
    line.set_gid("prediction")
    if found.truth is not None and found.is_inside is not None:
        for code, (name, kept) in enumerate(
            (("inside", found.is_inside), ("outside", ~found.is_inside))
        ):
            dots = axes.scatter(
                places[kept], found.truth[kept], s=12, label=f"target {name}", zorder=2,
                **class_style(code),
            )  # fmt: skip
            dots.set_gid(name)
    axes.set_xlabel("rows by prediction")
    axes.set_ylabel("target")
    axes.set_title(_coverage_in_words(found), fontsize="medium")
    axes.legend(loc="upper left")
    data = table(
        row=found.rows,
        prediction=found.predictions,
        low=found.low,
        high=found.high,
        target=found.truth,
        is_inside=found.is_inside,
    )
    return drawn(axes, data)


def _coverage_in_words(found: IntervalCoverage) -> str:
    level, n = f"{100 * found.asked:g} %", len(found.rows)
    rows = "1 row" if n == 1 else f"{n} rows"
    if found.found is None:
        return f"{level} intervals of {rows}"
    return f"{100 * found.found:.1f} % of {rows} in their {level} intervals"
