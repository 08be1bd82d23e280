"""Decision regions of a classifier, a regressor or an outlier detector over two features."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from margrove._data import Table, check_table, check_targets, frame_like
from margrove.exceptions import InvalidDataError
from margrove.facts import (
    BoostingFacts,
    EnsembleFacts,
    Facts,
    LinearFacts,
    Outline,
    PerceptronFacts,
    TreeFacts,
    describe,
    is_described,
    outline,
    require_whole,
)
from margrove.plot.drawing import (
    BoundaryDrawing,
    Picture,
    RowsToDraw,
    Surface,
    drawn,
    grid_table,
    plane_of,
    range_of,
    usable_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["decision_boundary"]

_WITHOUT_SUPPORT = (PerceptronFacts, TreeFacts, EnsembleFacts, BoostingFacts)


def decision_boundary(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    features: Any = (0, 1),
    at: Any = None,
    ax: Axes | None = None,
    resolution: int = 200,
    margins: bool = True,
    support: bool = True,
    legend: bool = True,
) -> Picture:
    """Draw the decisions of a fitted model over two features.

    Classes are regions of pale colours with lines between them, a regression is a map of its
    values, and an outlier detector is the region of the inliers. Artists have a `gid`:
    "regions", "boundary", "margins", "data" and "support".

    Parameters
    ----------
    model : fitted estimator
        Any classifier, regressor or outlier detector under scikit-learn's API. Margins and support
        vectors are drawn for those that `margrove.facts.describe` takes.
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Rows to draw, usually those of `fit`.
    y : array-like of shape (n_samples,), optional
        Their classes or targets, for the colours.
    features : pair of int or str, default=(0, 1)
        The two columns to draw, by number or by name.
    at : int or array-like of shape (n_features,), optional
        The values of the other features: those of a row of X, or an array. By default their
        medians. The title says so. Data and support vectors are drawn whatever their values are.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    resolution : int, default=200
        Points of the grid along each axis.
    margins : bool, default=True
        Dashed lines at the margins of a machine for two classes: f = +-1 for a support vector
        machine, and the parallels through the nearest rows for a perceptron that separates its
        data.
    support : bool, default=True
        Mark support vectors, by kind if there is a proof: for that the model must have its training
        data (a pickled model has not), or X and y must be the training data.
    legend : bool, default=True

    Returns
    -------
    Picture

    Examples
    --------
    >>> import margrove
    >>> from matplotlib.figure import Figure
    >>> X = [[0, 0], [0, 2], [1, 1], [2, 0], [2, 2], [3, 1]]
    >>> model = margrove.SVC(kernel="linear", C=10).fit(X, list("aaabbb"))
    >>> ax = margrove.plot.decision_boundary(model, X, list("aaabbb"), ax=Figure().subplots())
    >>> for text in ax.get_legend().get_texts():
    ...     print(text.get_text())
    a
    b
    boundary, f = 0
    margins, f = ±1
    on the margin (3)
    """
    resolution = require_whole("resolution", resolution, 2, " of grid points")
    summary = outline(model)
    _require_features(summary)
    table = check_table(X, model)
    _require_same_columns(summary, table)
    plane = plane_of(summary, table, features, at)
    data = _data_of(summary, y, table.X.shape[0])
    facts = _facts_of(model, X, y) if is_described(model) and (margins or support) else None
    vectors = facts.support_vectors if facts is not None and support else None
    axes = usable_axes(ax)

    points = plane.project(table.X)
    everything = points if vectors is None else np.vstack([points, plane.project(vectors)])
    ranges = range_of(everything, not_negative=summary.needs_positive)
    x, y_ = (np.linspace(low, high, resolution) for low, high in ranges)
    rows = plane.rows(x, y_, sparse=sp.issparse(table.X))
    surface = _surface(model, summary, _as_given(rows, X, summary), x, y_)

    drawing = BoundaryDrawing(axes, legend_entries=[])
    if surface.kind == "classes":
        drawing.draw_classes(surface)
    elif surface.kind == "values":
        drawing.draw_values(surface, data)
    else:
        level = facts.margin_level if facts is not None and margins else None
        drawing.draw_signed(surface, level)
    drawing.draw_data(points, data)
    if data.codes is None or summary.task == "outlier detection":
        drawing.explain_regions(surface)
    if facts is not None and vectors is not None and facts.n_support:
        drawing.draw_support(plane.project(vectors), facts)
    drawing.label(plane, ranges)
    if legend:
        drawing.draw_legend(len(points))
    return drawn(axes, _grid_of(surface))


# -- the data of the picture ---------------------------------------------------------------------


def _require_features(summary: Outline) -> None:
    if summary.is_pairwise:
        raise InvalidDataError(
            f"This {summary.estimator} has a precomputed kernel: X is a Gram matrix without "
            "features. Fit it with the kernel itself, as a name, a Kernel or a function."
        )
    if not summary.task:
        raise TypeError(
            "decision_boundary draws classifiers, regressors and outlier detectors. Got "
            f"{summary.estimator}."
        )


def _require_same_columns(summary: Outline, table: Table) -> None:
    if table.X.shape[1] != summary.n_features:
        raise InvalidDataError(
            f"X has {table.X.shape[1]} features, but {summary.estimator} was fitted to "
            f"{summary.n_features}. Pass all of them and choose with features=(i, j)."
        )
    names = table.feature_names
    if names is not None and summary.feature_names is not None:
        wrong = [(a, b) for a, b in zip(names, summary.feature_names, strict=True) if a != b]
        if wrong:
            raise InvalidDataError(
                f"X has a column {wrong[0][0]!r} where {summary.estimator} was fitted to "
                f"{wrong[0][1]!r}. Pass the same columns in the same order."
            )


def _data_of(summary: Outline, y: Any, n_rows: int) -> RowsToDraw:
    if y is None:
        return RowsToDraw()
    if summary.task == "regression":
        return RowsToDraw(targets=check_targets(y, n_rows))
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InvalidDataError(
            f"y must have one label for each of the {n_rows} rows of X. Got shape {labels.shape}."
        )
    classes = (np.unique(labels) if summary.classes is None else summary.classes).tolist()
    code_of = {name: code for code, name in enumerate(classes)}
    codes = np.array([code_of.get(label, -1) for label in labels.tolist()])
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InvalidDataError(
            f"y has {labels.tolist()[row]!r} at row {row}, which is not among the classes of the "
            f"model: {', '.join(map(repr, classes))}."
        )
    return RowsToDraw(codes, tuple(str(name) for name in classes))


def _facts_of(model: Any, X: Any, y: Any) -> Facts:
    """Facts with kinds of support vectors, if the model or X and y provide a proof."""
    facts = describe(model)
    if facts.kinds or isinstance(facts, _WITHOUT_SUPPORT):
        return facts
    try:
        again = describe(model, X, y)
    except (InvalidDataError, TypeError):  # other rows than those of `fit`, no y, a subclass
        return facts
    # If there were sample weights, which are unknown here, the proof fails and kinds are wrong.
    return again if _is_within_tol(again) else facts


def _is_within_tol(facts: Facts) -> bool:
    """Whether the proof is about as good as `tol` requires."""
    if facts.proof is None:
        return False
    linear = isinstance(facts, LinearFacts)
    found = facts.proof.relative_gap if linear else facts.proof.violation
    return found <= 10.0 * float(facts.parameters["tol"])


def _as_given(rows: Any, X: Any, summary: Outline) -> Any:
    """The rows of the grid as a dataframe of the same library, if the model has feature names."""
    if (
        summary.feature_names is None
        or sp.issparse(rows)
        or isinstance(X, (np.ndarray, list, tuple))
    ):
        return rows
    frame = frame_like(X, {name: rows[:, k] for k, name in enumerate(summary.feature_names)})
    return rows if frame is None else frame


def _surface(model: Any, summary: Outline, rows: Any, x: np.ndarray, y: np.ndarray) -> Surface:
    """The predictions on the grid, by one call of a public method."""
    classes = np.empty(0) if summary.classes is None else summary.classes
    names = tuple(str(name) for name in classes.tolist())
    kind: Literal["signed", "classes", "values"] = "signed"
    method = "decision_function"
    if summary.task == "regression":
        kind, method = "values", "predict"
    elif summary.task == "outlier detection":
        names = ("outside", "inside")
    elif len(classes) != 2 or not hasattr(model, "decision_function"):
        kind, method = "classes", "predict"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        values = np.asarray(getattr(model, method)(rows))
    if kind == "classes":
        values = np.searchsorted(classes, values)
    return Surface(kind, x, y, values.reshape(len(y), len(x)), names)


def _grid_of(surface: Surface) -> dict[str, Any]:
    """The points of the grid with their value, and the name of the region that they are in."""
    columns: dict[str, Any] = grid_table(surface.x, surface.y, value=surface.values)
    if surface.kind != "values":
        is_class = surface.kind == "classes"
        codes = columns["value"] if is_class else (columns["value"] > 0).astype(int)
        columns["region"] = np.array(surface.names, dtype=object)[codes]
    return columns
