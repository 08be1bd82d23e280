"""Decision regions of a classifier, a regressor or an outlier detector over two features."""

from __future__ import annotations

import warnings
from numbers import Integral
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
)
from margrove.plot.drawing import (
    Pen,
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

    Classes are regions of pale colours with lines between them; a regression is a map of its
    values; an outlier detector is the region of the inliers. Parts can be found by their `gid`:
    "regions", "boundary", "margins", "data" and "support".

    Parameters
    ----------
    model : fitted estimator
        Any classifier, regressor or outlier detector under scikit-learn's API. Margins and
        support vectors are drawn of those that `margrove.facts.describe` knows.
    X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
        Rows to draw, usually those of `fit`.
    y : array-like of shape (n_samples,), optional
        Their classes or targets, for the colours.
    features : pair of int or str, default=(0, 1)
        The two columns to draw, by number or by name.
    at : int or array-like of shape (n_features,), optional
        What the other features are fixed at: a row of X, or values. By default their medians. The
        title says so. Data and support vectors are drawn wherever they are in the others.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    resolution : int, default=200
        Points of the grid along each axis.
    margins : bool, default=True
        Dashed lines at the margins of a machine for two classes: f = +-1 of a support vector
        machine, and of a perceptron that separates its data the parallels through the nearest
        rows.
    support : bool, default=True
        Mark support vectors, by kind where there is a proof: for that the model must remember its
        training data (it forgets them when pickled), or X and y must be those.
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
    if not isinstance(resolution, Integral) or isinstance(resolution, bool) or resolution < 2:
        raise ValueError(
            f"resolution must be a whole number of grid points, at least 2. Got {resolution!r}."
        )
    told = outline(model)
    _require_features(told)
    table = check_table(X, model)
    _require_same_columns(told, table)
    plane = plane_of(told, table, features, at)
    data = _data_of(told, y, table.X.shape[0])
    facts = _facts_of(model, X, y) if is_described(model) and (margins or support) else None
    vectors = facts.support_vectors if facts is not None and support else None
    axes = usable_axes(ax)

    points = plane.shadow(table.X)
    everything = points if vectors is None else np.vstack([points, plane.shadow(vectors)])
    ranges = range_of(everything, not_negative=told.needs_positive)
    x, y_ = (np.linspace(low, high, int(resolution)) for low, high in ranges)
    rows = plane.rows(x, y_, sparse=sp.issparse(table.X))
    surface = _surface(model, told, _as_given(rows, X, told), x, y_)

    pen = Pen(axes, legend_entries=[])
    if surface.kind == "classes":
        pen.draw_classes(surface)
    elif surface.kind == "values":
        pen.draw_values(surface, data)
    else:
        level = facts.margin_level if facts is not None and margins else None
        pen.draw_signed(surface, level)
    pen.draw_data(points, data)
    if data.codes is None or told.task == "outlier detection":
        pen.explain_regions(surface)
    if facts is not None and vectors is not None and facts.n_support:
        pen.draw_support(plane.shadow(vectors), facts)
    pen.label(plane, ranges)
    if legend:
        pen.draw_legend(len(points))
    return drawn(axes, _grid_of(surface))


# -- what is to be drawn -------------------------------------------------------------------------


def _require_features(told: Outline) -> None:
    if told.is_pairwise:
        raise InvalidDataError(
            f"This {told.estimator} has a precomputed kernel: X is a Gram matrix and there are no "
            "features to draw. Fit it with the kernel itself, as a name, a Kernel or a function."
        )
    if not told.task:
        raise TypeError(
            "decision_boundary draws classifiers, regressors and outlier detectors. Got "
            f"{told.estimator}."
        )


def _require_same_columns(told: Outline, table: Table) -> None:
    if table.X.shape[1] != told.n_features:
        raise InvalidDataError(
            f"X has {table.X.shape[1]} features, but {told.estimator} was fitted to "
            f"{told.n_features}. Pass all of them and choose with features=(i, j)."
        )
    names = table.feature_names
    if names is not None and told.feature_names is not None:
        wrong = [(a, b) for a, b in zip(names, told.feature_names, strict=True) if a != b]
        if wrong:
            raise InvalidDataError(
                f"X has a column {wrong[0][0]!r} where {told.estimator} was fitted to "
                f"{wrong[0][1]!r}. Pass the same columns in the same order."
            )


def _data_of(told: Outline, y: Any, n_rows: int) -> RowsToDraw:
    if y is None:
        return RowsToDraw()
    if told.task == "regression":
        return RowsToDraw(targets=check_targets(y, n_rows))
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InvalidDataError(
            f"y must have one label for each of the {n_rows} rows of X. Got shape {labels.shape}."
        )
    classes = (np.unique(labels) if told.classes is None else told.classes).tolist()
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
    """With kinds of support vectors, if either the model or X and y can tell them."""
    facts = describe(model)
    if facts.kinds or isinstance(facts, _WITHOUT_SUPPORT):
        return facts
    try:
        again = describe(model, X, y)
    except (InvalidDataError, TypeError):  # other rows than those of `fit`, no y, a subclass
        return facts
    # With weights that nobody has told us, the proof fails and the kinds mean nothing.
    return again if _is_as_promised(again) else facts


def _is_as_promised(facts: Facts) -> bool:
    """Whether the proof is about as good as `tol` asks, in the units of the estimator's."""
    if facts.proof is None:
        return False
    linear = isinstance(facts, LinearFacts)
    found = facts.proof.relative_gap if linear else facts.proof.violation
    return found <= 10.0 * float(facts.parameters["tol"])


def _as_given(rows: Any, X: Any, told: Outline) -> Any:
    """The rows of the grid as a dataframe of the same library, if the model knows names."""
    if told.feature_names is None or sp.issparse(rows) or isinstance(X, (np.ndarray, list, tuple)):
        return rows
    frame = frame_like(X, {name: rows[:, k] for k, name in enumerate(told.feature_names)})
    return rows if frame is None else frame


def _surface(model: Any, told: Outline, rows: Any, x: np.ndarray, y: np.ndarray) -> Surface:
    """One call of one public method, on all points together."""
    classes = np.empty(0) if told.classes is None else told.classes
    names = tuple(str(name) for name in classes.tolist())
    kind: Literal["signed", "classes", "values"] = "signed"
    method = "decision_function"
    if told.task == "regression":
        kind, method = "values", "predict"
    elif told.task == "outlier detection":
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
