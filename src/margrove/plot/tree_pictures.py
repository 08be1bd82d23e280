"""How decision trees are grown, what they say, and when they are too large, in pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import (
    GainCurve,
    GainCurves,
    PruningErrors,
    TreeRegions,
    gain_curves,
    pruning_errors,
    tree_regions,
)
from margrove.facts.trees import codes_or_targets
from margrove.grove.criteria import CRITERIA
from margrove.plot.canvas import class_style, explain_handles, tint, usable_axes
from margrove.plot.plane import range_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "error_against_size",
    "gain_against_threshold",
    "impurity_curves",
    "regions",
    "regression_surface",
]

_MOST_CURVES = 10  # if nobody says which
_FEW_POINTS = 50  # that get a dot each
_MANY_LEAVES = 50  # from here on sizes are on a logarithmic scale

# Entropy in bits is halved: then all three are 1/2 for two equal classes.
_OF_TWO_CLASSES = (("gini", "Gini index", 1.0), ("entropy", "entropy / 2", 0.5),
                   ("error", "classification error", 1.0))  # fmt: skip


# -- how a tree is grown -------------------------------------------------------------------------


def gain_against_threshold(
    X: Any, y: Any, *, criterion: str = "gini", feature: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw how much each threshold of each feature would lower the impurity.

    The highest point is the split that a tree makes first. The curves can be had as data from
    `margrove.facts.gain_curves`. Parts can be found by their `gid`: "curve", "best" and
    "threshold".

    Parameters
    ----------
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    criterion : str, default="gini"
        One of `margrove.grove.criteria.CRITERIA`; those of numbers take y as numbers.
    feature : int, str or list of them, optional
        Which columns; by default all that are numbers, or the ten that gain most: the title says
        so.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> ax = margrove.plot.gain_against_threshold(X, y, feature=[2, 3], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['x2', 'x3', 'x2 <= 2.45']
    """
    found = gain_curves(X, y, criterion=criterion, feature=feature)
    curves = _most_telling(found) if feature is None else list(found.curves)
    axes = usable_axes(ax)
    handles, names = [], []
    for code, curve in enumerate(curves):
        handles.append(_draw_curve(axes, curve, code))
        names.append(curve.feature)
    best = found.best
    if best is not None and best.best is not None:
        threshold, gain = (float(values[best.best]) for values in (best.thresholds, best.decreases))
        axes.axvline(threshold, color="0.6", linewidth=1.0, zorder=0).set_gid("threshold")
        (mark,) = axes.plot([threshold], [gain], "o", color="black", zorder=3)
        mark.set_gid("best")
        handles.append(mark)
        names.append(f"{best.feature} <= {threshold:.4g}")
    axes.set_xlabel("threshold" if best is not None else "no feature has two values")
    axes.set_ylabel(f"decrease of the impurity ({criterion})")
    if len(curves) < len(found.curves):
        note = f"the {len(curves)} of {len(found.curves)} features that gain most"
        axes.set_title(note, fontsize="medium")
    explain_handles(axes, handles, names, sum(len(curve.thresholds) for curve in curves))
    return axes


def _most_telling(found: GainCurves) -> list[GainCurve]:
    """Those that gain most, in the order of their columns."""
    gains = [
        -1.0 if curve.best is None else float(curve.decreases[curve.best]) for curve in found.curves
    ]
    chosen = np.sort(np.argsort(-np.array(gains), kind="stable")[:_MOST_CURVES])
    return [found.curves[k] for k in chosen]


def _draw_curve(axes: Axes, curve: GainCurve, code: int) -> Any:
    style = class_style(code)
    marker = style["marker"] if len(curve.thresholds) <= _FEW_POINTS else None
    (line,) = axes.plot(
        curve.thresholds, curve.decreases, color=style["color"], marker=marker, markersize=4.0
    )
    line.set_gid("curve")
    return line


def impurity_curves(*, ax: Axes | None = None) -> Axes:
    """Draw the Gini index, the entropy and the classification error of two classes.

    They are drawn against the share p of one class; the entropy, in bits, is halved, so that all
    three are 1/2 where the classes are equal. The `gid` of a curve is its criterion.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> ax = margrove.plot.impurity_curves(ax=Figure().subplots())
    >>> [(line.get_gid(), float(line.get_ydata().max())) for line in ax.lines]
    [('gini', 0.5), ('entropy', 0.5), ('error', 0.5)]
    """
    axes = usable_axes(ax)
    share = np.linspace(0.0, 1.0, 201)
    both = np.stack([share, 1.0 - share], axis=1)
    for code, (criterion, label, factor) in enumerate(_OF_TWO_CLASSES):
        of_shares = CRITERIA[criterion].of_shares
        assert of_shares is not None
        values = factor * of_shares(both)
        (line,) = axes.plot(share, values, color=class_style(code)["color"], label=label)
        line.set_gid(criterion)
    axes.set_xlabel("share p of one of two classes")
    axes.set_ylabel("impurity")
    axes.legend()
    return axes


# -- what a tree says ----------------------------------------------------------------------------


def regions(
    model: Any, X: Any = None, y: Any = None, *, legend: bool = True, ax: Axes | None = None
) -> Axes:
    """Draw the rectangles into which a tree cuts the plane of two features.

    The edges are where they are, not those of a grid. They can be had as data from
    `margrove.facts.tree_regions`. Parts can be found by their `gid`: "regions" and "data".

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
        With two features, or one that asks two of them, all as numbers.
    X, y : array-like, optional
        Rows to draw, and their classes or targets for the colours.
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_xor(random_state=0, return_X_y=True)
    >>> model = margrove.DecisionTreeClassifier().fit(X, y)
    >>> ax = margrove.plot.regions(model, X, y, ax=Figure().subplots())
    >>> len(ax.collections[0].get_paths()) == model.get_n_leaves()
    True
    """
    found = tree_regions(model)
    if len(found.features) != 2:
        raise ValueError(
            "regions draws a tree over two features, and this one has one. Use "
            "plot.regression_surface for a regressor, or plot.tree."
        )
    points, codes, targets = _data_of(model, found, X, y)
    axes = usable_axes(ax)
    ranges = _ranges(found, points)
    if found.classes:
        _draw_class_regions(axes, found, ranges, points, codes, legend=legend)
    else:
        _draw_value_regions(axes, found, ranges, points, targets)
    axes.set_xlim(*ranges[0])
    axes.set_ylim(*ranges[1])
    axes.set_xlabel(found.names[0], parse_math=False)
    axes.set_ylabel(found.names[1], parse_math=False)
    return axes


def regression_surface(model: Any, X: Any, y: Any, *, ax: Axes | None = None) -> Axes:
    """Draw what a regression tree says: steps over one feature, rectangles over two.

    Parts can be found by their `gid`: "prediction" (steps) or "regions", and "data".

    Parameters
    ----------
    model : fitted DecisionTreeRegressor
        With one or two features, or one that asks no more of them, all as numbers.
    X, y : array-like
        Rows to draw, and their targets.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [5.0, 5.0, 8.0, 8.0]
    >>> model = margrove.DecisionTreeRegressor().fit(X, y)
    >>> ax = margrove.plot.regression_surface(model, X, y, ax=Figure().subplots())
    >>> ax.patches[0].get_data().values
    array([5., 8.])
    """
    found = tree_regions(model)
    if found.classes:
        raise TypeError(
            "regression_surface draws regressors, and this tree tells classes. Use plot.regions."
        )
    if len(found.features) == 2:
        return regions(model, X, y, ax=ax)
    points, _, targets = _data_of(model, found, X, y)
    axes = usable_axes(ax)
    low, high = _ranges(found, points)[0]
    edges = np.concatenate([[low], found.high[:-1, 0], [high]])
    axes.stairs(found.values, edges, baseline=None, color="black", linewidth=1.5).set_gid(
        "prediction"
    )
    if targets is not None:
        style = class_style(0)
        axes.scatter(points[:, 0], targets, s=18, color=style["color"], zorder=1).set_gid("data")
    axes.set_xlabel(found.names[0], parse_math=False)
    axes.set_ylabel("prediction")
    return axes


def _data_of(
    model: Any, found: TreeRegions, X: Any, y: Any
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Rows that have all values, as points (n, k), and their classes or targets."""
    if X is None:
        if y is not None:
            raise ValueError("y needs X: rows without a place cannot be drawn.")
        return np.empty((0, len(found.features))), None, None
    points = np.asarray(model._rows(X), dtype=np.float64)[:, list(found.features)]
    codes, targets = codes_or_targets(model, y, len(points))
    kept = np.isfinite(points).all(axis=1)
    return (
        points[kept],
        None if codes is None else codes[kept],
        None if targets is None else targets[kept],
    )


def _ranges(found: TreeRegions, points: np.ndarray) -> list[tuple[float, float]]:
    """Of all points and all edges; without any, from 0 to 1."""
    ranges = []
    for k in range(len(found.features)):
        seen = np.concatenate([points[:, k], found.low[:, k], found.high[:, k]])
        seen = seen[np.isfinite(seen)]
        ranges += range_of(seen[:, None]) if len(seen) else [(0.0, 1.0)]
    return ranges


def _rectangles(found: TreeRegions, ranges: list[tuple[float, float]]) -> list[Any]:
    """What can be seen of the regions."""
    from matplotlib.patches import Rectangle

    limits = np.array(ranges)
    low = np.maximum(found.low, limits[:, 0])
    high = np.minimum(found.high, limits[:, 1])
    return [Rectangle(tuple(a), *(b - a)) for a, b in zip(low, high, strict=True)]


def _draw_class_regions(
    axes: Any,
    found: TreeRegions,
    ranges: list[tuple[float, float]],
    points: np.ndarray,
    codes: np.ndarray | None,
    *,
    legend: bool,
) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch

    colours = [tint(int(code)) for code in found.values]
    drawn = PatchCollection(
        _rectangles(found, ranges), facecolors=colours, edgecolors="white", linewidths=0.5, zorder=0
    )
    drawn.set_gid("regions")
    axes.add_collection(drawn)
    look: dict[str, Any] = {"s": 28, "linewidths": 0.6, "edgecolors": "white", "zorder": 3}
    if codes is None:
        if len(points):
            axes.scatter(*points.T, color="0.25", s=18, zorder=3).set_gid("data")
        shown = np.unique(found.values).tolist()
        handles: list[Any] = [Patch(color=tint(code)) for code in shown]
    else:
        shown = np.unique(codes).tolist()
        handles = []
        for code in shown:
            handles.append(axes.scatter(*points[codes == code].T, **class_style(code), **look))
            handles[-1].set_gid("data")
    if legend:
        explain_handles(axes, handles, [found.classes[code] for code in shown], len(points))


def _draw_value_regions(
    axes: Any,
    found: TreeRegions,
    ranges: list[tuple[float, float]],
    points: np.ndarray,
    targets: np.ndarray | None,
) -> None:
    from matplotlib.collections import PatchCollection

    seen = found.values if targets is None else np.concatenate([found.values, targets])
    low, high = float(seen.min()), float(seen.max())
    drawn = PatchCollection(
        _rectangles(found, ranges), cmap="cividis", edgecolors="face", linewidths=0.5, zorder=0
    )
    drawn.set_array(found.values)
    drawn.set_clim(low, high if low < high else low + 1.0)
    drawn.set_gid("regions")
    axes.add_collection(drawn)
    axes.figure.colorbar(drawn, ax=axes, label="prediction")
    if len(points):
        look: dict[str, Any] = {"color": "0.25"}
        if targets is not None:
            look = {"c": targets, "cmap": "cividis", "norm": drawn.norm}
        axes.scatter(*points.T, s=28, linewidths=0.6, edgecolors="white", zorder=3, **look).set_gid(
            "data"
        )


# -- when a tree is too large --------------------------------------------------------------------


def error_against_size(
    model: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, ax: Axes | None = None
) -> Axes:
    """Draw training and test error against the number of leaves, as a tree is pruned.

    Sizes are those of cost-complexity pruning. The training error falls as a tree grows, the test
    error does not: from some size on the tree learns its rows by heart. The numbers can be had
    from `margrove.facts.pruning_errors`. Parts can be found by their `gid`: "training", "test" and
    "best".

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        Fitted to X and y, or still to be: then a copy is, with `ccp_alpha=0`.
    X, y : training rows and their targets
    X_test, y_test : other rows and their targets
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X, y = margrove.datasets.make_moons(200, noise=0.3, random_state=0, return_X_y=True)
    >>> tree = margrove.DecisionTreeClassifier()
    >>> ax = margrove.plot.error_against_size(
    ...     tree, X[::2], y[::2], X[1::2], y[1::2], ax=Figure().subplots()
    ... )
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('leaves', 'share misclassified')
    """
    found = pruning_errors(model, X, y, X_test, y_test)
    axes = usable_axes(ax)
    from matplotlib.ticker import MaxNLocator

    _draw_errors(axes, found)
    if found.n_leaves[0] >= _MANY_LEAVES:
        axes.set_xscale("log")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("leaves")
    axes.set_ylabel(found.error_name)
    axes.legend()
    return axes


def _draw_errors(axes: Axes, found: PruningErrors) -> None:
    marker = "." if len(found.n_leaves) <= _FEW_POINTS else None
    for code, (name, errors) in enumerate(
        (("training", found.training_errors), ("test", found.test_errors))
    ):
        (line,) = axes.plot(
            found.n_leaves,
            errors,
            color=class_style(code)["color"],
            marker=marker,
            label=f"{name} error",
        )
        line.set_gid(name)
    size = int(found.n_leaves[found.best])
    (mark,) = axes.plot(
        [size],
        [found.test_errors[found.best]],
        "o",
        color="black",
        label=f"least test error: {size} {'leaf' if size == 1 else 'leaves'}",
    )
    mark.set_gid("best")
