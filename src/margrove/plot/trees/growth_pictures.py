"""Pictures of growing and pruning: gains of thresholds, impurities, errors against size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.facts import (
    GainCurve,
    GainCurves,
    PruningErrors,
    gain_curves,
    pruning_errors,
)
from margrove.grove import CRITERIA
from margrove.plot.drawing import Picture, class_style, drawn, explain_handles, table, usable_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "error_against_size",
    "gain_against_threshold",
    "impurity_curves",
]

_MOST_CURVES = 10  # if `feature` is not given
_FEW_POINTS = 50  # each has a dot
_MANY_LEAVES = 50  # from here on the scale of sizes is logarithmic

# Entropy in bits is halved: then all three are 1/2 for two equal classes.
_OF_TWO_CLASSES = (("gini", "Gini index", 1.0), ("entropy", "entropy / 2", 0.5),
                   ("error", "classification error", 1.0))  # fmt: skip


# -- how a tree is grown -------------------------------------------------------------------------


def gain_against_threshold(
    X: Any, y: Any, *, criterion: str = "gini", feature: Any = None, ax: Axes | None = None
) -> Picture:
    """Draw how much a split at each threshold of each feature lowers the impurity.

    The highest point is the first split of a tree. The curves are available as data from
    `margrove.facts.gain_curves`. Artists have a `gid`: "curve", "best" and "threshold".

    Parameters
    ----------
    X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    criterion : str, default="gini"
        One of `margrove.grove.criteria.CRITERIA`; criteria for regression take y as numbers.
    feature : int, str or list of them, optional
        Which columns; by default all that are numbers, or the ten with the largest gain, and the
        title says so.
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
    >>> ax = margrove.plot.gain_against_threshold(X, y, feature=[2, 3], ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['x2', 'x3', 'x2 <= 2.45']
    """
    found = gain_curves(X, y, criterion=criterion, feature=feature)
    curves = _largest_gains(found) if feature is None else list(found.curves)
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
    data = table(
        feature=[curve.feature for curve in curves for _ in curve.thresholds],
        threshold=np.concatenate([np.empty(0), *(curve.thresholds for curve in curves)]),
        gain=np.concatenate([np.empty(0), *(curve.decreases for curve in curves)]),
    )
    return drawn(axes, data)


def _largest_gains(found: GainCurves) -> list[GainCurve]:
    """The curves with the largest gains, in the order of their columns."""
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


def impurity_curves(*, ax: Axes | None = None) -> Picture:
    """Draw the Gini index, the entropy and the classification error of two classes.

    They are drawn against the share p of one class; the entropy, in bits, is halved, so that all
    three are 1/2 for equal shares. The `gid` of a curve is its criterion.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

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
    curves = {}
    for code, (criterion, label, factor) in enumerate(_OF_TWO_CLASSES):
        of_shares = CRITERIA[criterion].of_shares
        assert of_shares is not None
        curves[criterion] = factor * of_shares(both)
        (line,) = axes.plot(share, curves[criterion], color=class_style(code)["color"], label=label)
        line.set_gid(criterion)
    axes.set_xlabel("share p of one of two classes")
    axes.set_ylabel("impurity")
    axes.legend()
    return drawn(axes, table(share=share, **curves))


# -- when a tree is too large --------------------------------------------------------------------


def error_against_size(
    model: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, ax: Axes | None = None
) -> Picture:
    """Draw training and test error against the number of leaves, as a tree is pruned.

    Sizes are those of cost-complexity pruning. The training error falls as a tree grows, the test
    error does not: from some size on the tree overfits. The numbers are available from
    `margrove.facts.pruning_errors`. Artists have a `gid`: "training", "test" and "best".

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        Fitted to X and y; if it is not fitted, a copy is fitted with `ccp_alpha=0`.
    X, y : training rows and their targets
    X_test, y_test : other rows and their targets
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

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
    data = table(
        leaves=found.n_leaves,
        ccp_alpha=found.ccp_alphas,
        training=found.training_errors,
        test=found.test_errors,
    )
    return drawn(axes, data)


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
        label=f"smallest test error: {size} {'leaf' if size == 1 else 'leaves'}",
    )
    mark.set_gid("best")
