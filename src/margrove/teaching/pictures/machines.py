"""Support vector machines in the plane: squares, C and gamma, and the best possible boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.datasets import make_circles, make_moons
from margrove.plot import decision_boundary
from margrove.plot.drawing import (
    Picture,
    class_style,
    drawn,
    explain_handles,
    usable_axes,
    usable_panels,
)
from margrove.teaching.facts import grid_over, machine_effects, squared_circle, svm_beside_bayes
from margrove.teaching.pictures.plane_drawing import draw_line, draw_rows, frame_plane, shade_sides

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["circle_to_line", "effect_of_c_and_gamma", "svm_and_bayes"]


def circle_to_line(
    X: Any = None,
    y: Any = None,
    *,
    C: float = 100.0,
    legend: bool = True,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw how the map x -> (x1^2, x2^2) turns a circle into a line.

    The first panel has the rows, the second their squares; the boundary is that of a linear
    machine over the squares. Artists have a `gid`: "data", "regions" and "boundary".

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2), optional
        By default those of `datasets.make_circles`.
    y : array-like of shape (n_samples,), optional
        Two classes.
    C : float, default=100
        Of the machine.
    legend : bool, default=True
    axes : two matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.machines.squared_circle`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> picture = margrove.plot.circle_to_line(axes=Figure().subplots(1, 2))
    >>> frame = picture.frame()
    >>> bool((frame.x1_squared == frame.x1**2).all())
    True
    """
    X, y = _given_or(X, y, lambda: make_circles(noise=0.06, return_X_y=True))
    found = squared_circle(X, y, C=C)
    before, after = panels = usable_panels(axes, 2, "space")
    frame_plane(before, found.rows.points, found.rows.names, equal=True)
    corners = np.column_stack([before.get_xlim(), before.get_ylim()])
    x, y_, grid = grid_over(corners, 300)
    values = (grid**2 @ found.weights + found.intercept).reshape(len(y_), len(x))
    shade_sides(before, x, y_, values)
    if values.min() < 0.0 < values.max():
        before.contour(
            x, y_, values, levels=[0.0], colors="black", linewidths=2.0, zorder=2
        ).set_gid("boundary")
    handles = draw_rows(before, found.rows)
    frame_plane(before, found.rows.points, found.rows.names, equal=True)  # contours widened it
    before.set_title("features: a circle", fontsize="medium")

    x, y_, grid = grid_over(found.squares, 100)
    shade_sides(after, x, y_, (grid @ found.weights + found.intercept).reshape(len(y_), len(x)))
    draw_rows(after, found.rows, points=found.squares)
    draw_line(after, found.weights, found.intercept, "boundary", color="black", linewidth=2.0)
    first, second = found.rows.names
    frame_plane(after, found.squares, (f"{first}²", f"{second}²"), equal=False)
    after.set_title("their squares: a line", fontsize="medium")
    if legend:
        explain_handles(after, handles, found.rows.classes, len(found.rows.codes))
    return drawn(panels, found)


def effect_of_c_and_gamma(
    X: Any = None,
    y: Any = None,
    *,
    settings: str | Sequence[tuple[float, float | None]] = "all",
    resolution: int = 150,
    axes: Sequence[Axes] | None = None,
) -> Picture:
    """Draw machines that differ in C and gamma, a panel each, with their support vectors.

    Artists of each panel are those of `decision_boundary`.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2), optional
        By default those of `datasets.make_moons`.
    y : array-like of shape (n_samples,), optional
        Two classes.
    settings : {"all", "gamma", "C", "pairs", "linear"} or sequence of (C, gamma), default="all"
        The settings of the lectures: "gamma" is 0.01, 1, 10 and 500 at C = 1; "C" is 2 and 10000 at
        gamma = 1; "pairs" are (1, 0.01), (10, 100) and (10, 10000); "all" are these together.
        "linear" is a linear kernel at C = 0.01, 1, 10000 and 100000. A gamma of None is a linear
        kernel too.
    resolution : int, default=150
        Points of the grid along each axis.
    axes : sequence of matplotlib Axes, optional
        One for each setting. By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.machines.machine_effects`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> picture = margrove.plot.effect_of_c_and_gamma(
    ...     settings="gamma", resolution=20, axes=Figure().subplots(1, 4)
    ... )
    >>> picture.frame().gamma.tolist()
    [0.01, 1.0, 10.0, 500.0]
    """
    X, y = _given_or(X, y, lambda: make_moons(100, noise=0.25, return_X_y=True))
    found = machine_effects(X, y, settings)
    panels = usable_panels(axes, len(found.models), "setting of C and gamma")
    for panel, model, (C, gamma), n_support in zip(
        panels, found.models, found.settings, found.n_support.tolist(), strict=True
    ):
        decision_boundary(
            model, found.rows.points, found.rows.codes, ax=panel, resolution=resolution,
            legend=False,
        )  # fmt: skip
        kind = "linear" if gamma is None else f"gamma = {gamma:g}"
        panel.set_title(f"C = {C:g}, {kind}\n{n_support} support vectors", fontsize="medium")
        panel.set_xlabel(found.rows.names[0], parse_math=False)
        panel.set_ylabel(found.rows.names[1], parse_math=False)
    return drawn(panels, found)


def svm_and_bayes(
    X: Any = None,
    y: Any = None,
    bayes_decision: Callable[[np.ndarray], Any] | None = None,
    *,
    estimator: Any = None,
    resolution: int = 200,
    random_state: Any = 0,
    legend: bool = True,
    ax: Axes | None = None,
) -> Picture:
    """Draw the boundary of a machine beside that of the best possible classifier.

    Artists have a `gid`: "regions", "data", "support", "boundary" and "bayes".

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2), optional
        By default 200 rows of the two Gaussian mixtures of the lectures.
    y : array-like of shape (n_samples,), optional
        Two classes.
    bayes_decision : callable, optional
        A function from rows to the log-odds of the second class, as in `datasets.make_gaussians`.
    estimator : classifier with decision_function, optional
        A copy is fitted. By default ``SVC(C=1, gamma=1)``.
    resolution : int, default=200
        Points of the grid along each axis.
    random_state : int, default=0
        Of the mixtures.
    legend : bool, default=True
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture
        Its data are those of `margrove.teaching.facts.bayes.svm_beside_bayes`.

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> gaussians = margrove.datasets.make_gaussians(100)
    >>> picture = margrove.plot.svm_and_bayes(
    ...     gaussians.data, gaussians.target, gaussians.bayes_decision, resolution=20,
    ...     ax=Figure().subplots(),
    ... )
    >>> picture.frame().columns.tolist()
    ['x', 'y', 'machine', 'bayes']
    """
    found = svm_beside_bayes(
        X, y, bayes_decision, estimator=estimator, resolution=resolution, random_state=random_state
    )
    axes: Any = usable_axes(ax)
    shade_sides(axes, found.x, found.y, found.machine)
    handles, names = draw_rows(axes, found.rows), list(found.rows.classes)
    support = getattr(found.model, "support_", None)
    if support is not None:
        handles.append(
            axes.scatter(
                *found.rows.points[support].T, s=90, facecolors="none", edgecolors="black",
                linewidths=0.9, zorder=4,
            )
        )  # fmt: skip
        handles[-1].set_gid("support")
        names.append(f"support vectors ({len(support)})")
    purple = class_style(3)["color"]
    curves = (
        ("boundary", found.machine, "black", "solid", "machine", found.test_error),
        ("bayes", found.bayes, purple, "dashed", "Bayes", found.bayes_error),
    )
    for gid, values, colour, dashes, name, error in curves:
        handles.append(_draw_boundary(axes, found.x, found.y, values, colour, dashes, gid))
        names.append(name if error is None else f"{name}, test error {error:.3f}")
    frame_plane(axes, found.rows.points, found.rows.names, equal=False)
    if legend:
        explain_handles(axes, handles, names, len(found.rows.codes))
    return drawn(axes, found)


def _draw_boundary(
    axes: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray, colour: str, dashes: Any, gid: str
) -> Any:
    """Draw the contour at 0; returns a handle for the legend."""
    from matplotlib.lines import Line2D

    look = {"linewidths": 2.5, "linestyles": dashes, "zorder": 5}
    if values.min() < 0.0 < values.max():
        axes.contour(x, y, values, levels=[0.0], colors=[colour], **look).set_gid(gid)
    handle = Line2D([], [], color=colour, linewidth=2.5)
    handle.set_linestyle(dashes)
    return handle


def _given_or(X: Any, y: Any, default: Callable[[], Any]) -> tuple[Any, Any]:
    """X and y, or those of `default` if both are None."""
    if (X is None) != (y is None):
        raise ValueError("X and y belong together. Pass both, or none of them for an example.")
    if X is not None:
        return X, y
    rows, labels = default()
    return rows, labels
