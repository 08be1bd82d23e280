"""Machines over C, and scores over C and gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.plot.drawing import Picture, class_style, drawn, table, usable_axes, usable_panels

__all__ = ["score_map", "svm_path"]


def svm_path(path: Any, *, axes: Any = None) -> Picture:
    """Draw support vectors, margin and objective of a sequence of machines against C.

    The data are `path.points`, or `path.frame()`.

    Parameters
    ----------
    path : SvmPath
        The result of `margrove.svm_path`.
    axes : three matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> path = margrove.svm_path(margrove.SVC(), [[0], [1], [2], [3]], [0, 0, 1, 1], Cs=5)
    >>> axes = margrove.plot.svm_path(path, axes=Figure().subplots(3))
    >>> [ax.get_ylabel() for ax in axes]
    ['support vectors', 'margin', 'minus dual objective']
    """
    points = path.points
    Cs = [point.C for point in points]
    panels = usable_panels(axes, 3, "figure of the path")
    counts, margins, objectives = panels
    counts.plot(Cs, [p.n_support for p in points], label="all", gid="all", **class_style(0))
    bounded = [p.n_bounded for p in points]
    counts.plot(Cs, bounded, label="at their bound", gid="bounded", **class_style(1))
    counts.set_ylabel("support vectors")
    counts.legend()
    margins.plot(Cs, [p.margin for p in points], gid="margin", **class_style(2))
    margins.set_ylabel("margin")
    margins.set_yscale("log")
    objectives.plot(Cs, [-p.objective for p in points], gid="objective", **class_style(3))
    objectives.set_ylabel("minus dual objective")
    objectives.set_yscale("symlog")
    for panel in panels:
        panel.set_xscale("log")
        panel.set_xlabel("C")
    return drawn(panels, path)


def score_map(search: Any, *, ax: Any = None) -> Picture:
    """Draw the cross-validated scores of a search over C and gamma as a map.

    The chosen cell has a circle. The data are `search.cells_`, or `search.cv_results_`. A search
    over C only is drawn as a line with a band of one standard error.

    Parameters
    ----------
    search : fitted SVCCV, SVRCV or LinearSVCCV
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from margrove.datasets import load_iris
    >>> from matplotlib.figure import Figure
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = margrove.plot.score_map(
    ...     margrove.SVCCV(Cs=3, gammas=3).fit(X, y), ax=Figure().subplots()
    ... )
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('C', 'gamma')
    """
    cells = getattr(search, "cells_", None)
    if cells is None:
        raise ValueError(
            "score_map needs a fitted SVCCV, SVRCV or LinearSVCCV. "
            f"Got {type(search).__name__}; call fit first."
        )
    ax = usable_axes(ax)
    ax.set_xscale("log")
    ax.set_xlabel("C")
    if np.isnan(cells.gammas).any():
        _draw_line(ax, search, cells)
        return drawn(ax, _cell_table(cells))
    mesh = ax.pcolormesh(
        _edges(cells.Cs), _edges(cells.gammas), cells.means.T, cmap="cividis", gid="scores"
    )
    ax.figure.colorbar(mesh, ax=ax, label="mean score")
    ax.plot(search.C_, search.gamma_, "o", mfc="none", mec="white", ms=12, mew=2, gid="chosen")
    ax.set_yscale("log")
    ax.set_ylabel("gamma")
    ax.set_title(f"{search.best_score_:.4g} at C={search.C_:.3g}, gamma={search.gamma_:.3g}")
    return drawn(ax, _cell_table(cells))


def _cell_table(cells: Any) -> dict[str, Any]:
    n_Cs, n_gammas = cells.means.shape
    has_gamma = not np.isnan(cells.gammas).any()
    return table(
        C=np.repeat(cells.Cs, n_gammas),
        gamma=np.tile(cells.gammas, n_Cs) if has_gamma else None,
        score=cells.means.ravel(),
        standard_error=cells.standard_errors.ravel(),
    )


def _draw_line(ax: Any, search: Any, cells: Any) -> None:
    means, errors = cells.means[:, 0], cells.standard_errors[:, 0]
    ax.plot(cells.Cs, means, gid="scores", **class_style(0))
    ax.fill_between(cells.Cs, means - errors, means + errors, alpha=0.2, gid="errors")
    ax.axvline(search.C_, color="black", linestyle="--", gid="chosen")
    ax.set_ylabel("mean score")
    ax.set_title(f"{search.best_score_:.4g} at C={search.C_:.3g}")


def _edges(values: np.ndarray) -> np.ndarray:
    """The edges of cells: halfway between the values, on a logarithmic scale."""
    logs = np.log10(values)
    steps = np.diff(logs) if len(logs) > 1 else np.array([1.0])
    inner = logs[:-1] + np.diff(logs) / 2
    return 10.0 ** np.concatenate([[logs[0] - steps[0] / 2], inner, [logs[-1] + steps[-1] / 2]])
