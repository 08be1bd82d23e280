"""Decision regions of a classifier, a regressor or an outlier detector over two features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from margrove._data import Table, check_table, check_targets
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
from margrove.plot.canvas import SUPPORT_MARKERS, class_style, tint, usable_axes
from margrove.plot.plane import Plane, plane_of, range_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["decision_boundary"]

_WITHOUT_SUPPORT = (PerceptronFacts, TreeFacts, EnsembleFacts, BoostingFacts)
_COLOUR_STEPS = 12
_MANY_ROWS = 5_000  # from here on the best place for a legend takes too long to find


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
) -> Axes:
    """Draw what a fitted model decides over two features.

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
    matplotlib Axes

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

    picture = _Picture(axes, legend_entries=[])
    if surface.kind == "classes":
        picture.draw_classes(surface)
    elif surface.kind == "values":
        picture.draw_values(surface, data)
    else:
        level = facts.margin_level if facts is not None and margins else None
        picture.draw_signed(surface, level)
    picture.draw_data(points, data)
    if data.codes is None or told.task == "outlier detection":
        picture.explain_regions(surface)
    if facts is not None and vectors is not None and facts.n_support:
        picture.draw_support(plane.shadow(vectors), facts)
    picture.label(plane, ranges)
    if legend:
        picture.draw_legend(len(points))
    return axes


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


@dataclass(frozen=True)
class _Data:
    """What is known of the rows to draw: codes into `names`, or targets, or nothing."""

    codes: np.ndarray | None = None
    names: tuple[str, ...] = ()
    targets: np.ndarray | None = None


def _data_of(told: Outline, y: Any, n_rows: int) -> _Data:
    if y is None:
        return _Data()
    if told.task == "regression":
        return _Data(targets=check_targets(y, n_rows))
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
    return _Data(codes, tuple(str(name) for name in classes))


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
    import narwhals.stable.v2 as nw

    frame = nw.from_native(X, pass_through=True)
    if not hasattr(frame, "implementation"):
        return rows
    columns = {name: rows[:, k] for k, name in enumerate(told.feature_names)}
    return nw.from_dict(columns, backend=frame.implementation).to_native()


@dataclass(frozen=True)
class _Surface:
    """What the model says on the grid.

    kind    "signed": f, with its boundary at 0; "classes": codes; "values": of a regression
    x, y    the coordinates of the grid
    values  (len(y), len(x))
    names   of the regions, if there are any
    """

    kind: Literal["signed", "classes", "values"]
    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    names: tuple[str, ...] = ()

    def within(self, *levels: float) -> list[float]:
        """The levels that there are contours of; matplotlib warns of the others."""
        low, high = float(self.values.min()), float(self.values.max())
        return [level for level in levels if low < level < high]


def _surface(model: Any, told: Outline, rows: Any, x: np.ndarray, y: np.ndarray) -> _Surface:
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
    return _Surface(kind, x, y, values.reshape(len(y), len(x)), names)


# -- drawing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Picture:
    """Axes, and what has been drawn that a legend should explain."""

    axes: Any
    legend_entries: list[Any]

    def draw_signed(self, surface: _Surface, margin_level: float | None) -> None:
        """Two regions, the boundary f = 0 between them and, dashed, the margins."""
        f = surface.values
        levels = [min(0.0, 1.1 * f.min()) - 1.0, 0.0, max(0.0, 1.1 * f.max()) + 1.0]
        colours = [tint(0), tint(1)]
        self.axes.contourf(
            surface.x, surface.y, f, levels=levels, colors=colours, zorder=0
        ).set_gid("regions")
        self._draw_lines(surface, [0.0], "boundary", "boundary, f = 0", linewidths=1.5)
        if margin_level is not None:
            label = f"margins, f = ±{margin_level:.3g}"
            levels = [-margin_level, margin_level]
            self._draw_lines(surface, levels, "margins", label, linestyles="dashed")

    def draw_classes(self, surface: _Surface) -> None:
        """A region for each class and lines around them."""
        from matplotlib.colors import ListedColormap

        n_classes = len(surface.names)
        self.axes.pcolormesh(
            surface.x,
            surface.y,
            surface.values,
            cmap=ListedColormap([tint(code) for code in range(n_classes)]),
            vmin=-0.5,
            vmax=n_classes - 0.5,
            shading="nearest",
            rasterized=True,
            zorder=0,
        ).set_gid("regions")
        label: str | None = "boundaries"
        for code in np.unique(surface.values)[1:]:  # around all but one is around all
            own = _Surface("signed", surface.x, surface.y, (surface.values >= code) - 0.5)
            self._draw_lines(own, [0.0], "boundary", label, linewidths=1.0)
            label = None

    def draw_values(self, surface: _Surface, data: _Data) -> None:
        """Filled contours of a function, with a bar that explains them."""
        low, high = float(surface.values.min()), float(surface.values.max())
        if data.targets is not None:
            low, high = min(low, data.targets.min()), max(high, data.targets.max())
        if not low < high:
            low, high = low - 0.5, high + 0.5
        levels = np.linspace(low, high, _COLOUR_STEPS + 1)
        filled = self.axes.contourf(
            surface.x, surface.y, surface.values, levels=levels, cmap="cividis", zorder=0
        )
        filled.set_gid("regions")
        self.axes.figure.colorbar(filled, ax=self.axes, label="prediction")

    def explain_regions(self, surface: _Surface) -> None:
        """Patches of the pale colours, where no markers of the same colours do that."""
        from matplotlib.patches import Patch

        patches = [Patch(color=tint(k), label=name) for k, name in enumerate(surface.names)]
        self.legend_entries[:0] = patches

    def draw_data(self, points: np.ndarray, data: _Data) -> None:
        look: dict[str, Any] = {"s": 28, "linewidths": 0.6, "edgecolors": "white", "zorder": 3}
        if data.codes is not None:
            present = [code for code in range(len(data.names)) if (data.codes == code).any()]
            entries = []
            for code in present:
                own = points[data.codes == code]
                style = class_style(code)
                drawn = self.axes.scatter(*own.T, label=data.names[code], **style, **look)
                drawn.set_gid("data")
                entries.append(drawn)
            self.legend_entries[:0] = entries
            return
        if data.targets is not None:
            regions = next(c for c in self.axes.collections if c.get_gid() == "regions")
            look |= {"c": data.targets, "cmap": regions.get_cmap(), "norm": regions.norm}
        else:
            look |= {"color": "0.25"}
        self.axes.scatter(*points.T, **look).set_gid("data")

    def draw_support(self, positions: np.ndarray, facts: Facts) -> None:
        """Marks around the support vectors, a kind at a time."""
        kinds = [(kind.name, np.isin(facts.support, kind.rows)) for kind in facts.kinds]
        if not kinds:
            kinds = [("support vectors", np.ones(len(facts.support), dtype=bool))]
        for marker, (name, chosen) in zip(SUPPORT_MARKERS, kinds, strict=False):
            if not chosen.any():
                continue
            hollow: dict[str, Any] = {"facecolors": "none", "edgecolors": "black"}
            drawn = self.axes.scatter(
                *positions[chosen].T,
                marker=marker,
                s=110 if marker != "x" else 60,
                linewidths=1.2,
                label=f"{name} ({np.count_nonzero(chosen)})",
                zorder=4,
                **(hollow if marker != "x" else {"color": "black"}),
            )
            drawn.set_gid("support")
            self.legend_entries.append(drawn)

    def label(self, plane: Plane, ranges: list[tuple[float, float]]) -> None:
        self.axes.set_xlim(*ranges[0])
        self.axes.set_ylim(*ranges[1])
        self.axes.set_xlabel(plane.labels[0])
        self.axes.set_ylabel(plane.labels[1])
        if plane.note:
            self.axes.set_title(plane.note, fontsize="medium")

    def draw_legend(self, n_rows: int) -> None:
        if self.legend_entries:
            place = "best" if n_rows < _MANY_ROWS else "upper right"
            self.axes.legend(handles=self.legend_entries, loc=place, framealpha=0.9)

    def _draw_lines(
        self, surface: _Surface, levels: list[float], gid: str, label: str | None, **look: Any
    ) -> None:
        from matplotlib.lines import Line2D

        present = surface.within(*levels)
        if not present:
            return
        look = {"linestyles": "solid", "linewidths": 1.0, **look}
        lines = self.axes.contour(
            surface.x, surface.y, surface.values, levels=present, colors="black", zorder=2, **look
        )
        lines.set_gid(gid)
        if label is not None:
            entry = Line2D([], [], color="black", label=label)
            entry.set_linestyle(look["linestyles"])
            entry.set_linewidth(look["linewidths"])
            self.legend_entries.append(entry)
