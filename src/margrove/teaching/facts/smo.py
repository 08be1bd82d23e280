"""Sequential minimal optimisation and coordinate ascent, step by step, as geometry.

A step of SMO changes alpha_1 and alpha_2 along the line y_1 alpha_1 + y_2 alpha_2 = k:

    eta       = K_11 + K_22 - 2 K_12
    unclipped = alpha_2 + y_2 (E_1 - E_2) / eta
    alpha_2   = unclipped, clipped to [L, H]

with L = max(0, alpha_2 - alpha_1), H = min(C, C + alpha_2 - alpha_1) for unequal labels, and
L = max(0, alpha_1 + alpha_2 - C), H = min(C, alpha_1 + alpha_2) for equal ones. `margrove.watch`
reports the pairs and steps of a real fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._data import check_labels, check_table, data_frame
from margrove._runtime import watch
from margrove.exceptions import InvalidDataError
from margrove.facts import Plain, frozen
from margrove.margin.svm import SVC

__all__ = ["CoordinatePath", "SmoBox", "SmoBoxes", "coordinate_path", "smo_boxes"]

_TOLERANCE = 1e-5  # of a recorded step and the formula, relative to the bound


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoBox(Plain):
    """One step: two variables in their box.

    Attributes
    ----------
    number : int
        From 1.
    first, second : int
        The rows of alpha_1 and alpha_2.
    signs : tuple of two float
        Their labels, -1 or 1.
    bounds : tuple of two float
        Their C; k equal rows of a class are one variable with the bound k C.
    before, after : ndarray of shape (2,)
        alpha_1 and alpha_2.
    unclipped : float
        alpha_2 after the step if there were no bounds.
    low, high : float
        L and H.
    curvature : ndarray of shape (2, 2)
        Q of both variables, y_i y_j K_ij.
    slope : ndarray of shape (2,)
        The gradient of the dual objective before the step.
    """

    number: int
    first: int
    second: int
    signs: tuple[float, float]
    bounds: tuple[float, float]
    before: np.ndarray
    after: np.ndarray
    unclipped: float
    low: float
    high: float
    curvature: np.ndarray
    slope: np.ndarray

    @property
    def is_clipped(self) -> bool:
        return not self.low <= self.unclipped <= self.high

    def on_line(self, second: Any) -> np.ndarray:
        """The points of the line at these values of alpha_2, of shape (..., 2)."""
        given = np.asarray(second, dtype=np.float64)
        first = self.before[0] - self.signs[0] * self.signs[1] * (given - self.before[1])
        return np.stack([first, given], axis=-1)

    def gain(self, first: Any, second: Any) -> np.ndarray:
        """The dual objective there minus that before the step."""
        d = np.stack([np.asarray(first) - self.before[0], np.asarray(second) - self.before[1]], -1)
        return np.asarray(d @ self.slope - 0.5 * np.einsum("...i,ij,...j", d, self.curvature, d))


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoBoxes(Plain):
    """The steps of a fit, in order.

    Attributes
    ----------
    boxes : tuple of SmoBox
    n_steps : int
        Of the fit. If a small problem is finished with Newton steps on many variables, pair steps
        after these are not among the boxes.
    """

    boxes: tuple[SmoBox, ...]
    n_steps: int

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each step."""
        columns: dict[str, Any] = {
            "step": [box.number for box in self.boxes],
            "first": [box.first for box in self.boxes],
            "second": [box.second for box in self.boxes],
            "y_1": [box.signs[0] for box in self.boxes],
            "y_2": [box.signs[1] for box in self.boxes],
        }
        for name in ("before", "after"):
            for k in (0, 1):
                columns[f"alpha_{k + 1}_{name}"] = [getattr(box, name)[k] for box in self.boxes]
        for name, column in (("low", "L"), ("high", "H"), ("unclipped", "unclipped")):
            columns[column] = [getattr(box, name) for box in self.boxes]
        return data_frame(columns | {"is_clipped": [box.is_clipped for box in self.boxes]})


def smo_boxes(X: Any, y: Any, *, estimator: Any = None) -> SmoBoxes:
    """Fit a support vector machine to two classes, and record each pair step.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Two classes.
    estimator : SVC, optional
        With a finite C, an intercept and no class weights; a copy is fitted. By default
        ``SVC(kernel="linear")``.

    Returns
    -------
    SmoBoxes

    Examples
    --------
    >>> from margrove.teaching.facts.smo import smo_boxes
    >>> (box,) = smo_boxes([[1.0, 2.0], [0.0, 0.0]], [1, -1]).boxes
    >>> round(box.unclipped, 6), box.low, box.high, box.is_clipped
    (0.4, 0.0, 1.0, False)
    """
    machine = _machine(estimator, SVC(kernel="linear"), "smo")
    table = check_table(X, machine, accept_sparse=False)
    labels = check_labels(y, len(table.X))
    if len(labels.classes) != 2:
        raise InvalidDataError(f"y must have two classes for SMO. Got {len(labels.classes)}.")
    steps: list[Any] = []
    with watch(on_step=steps.append):
        machine.fit(table.X, labels.codes)
    signs = np.where(labels.codes == 1, 1.0, -1.0)
    bounds = machine.C * _copies(np.column_stack([table.X, signs]))
    K = np.asarray(machine.kernel_(table.X), dtype=np.float64)
    return SmoBoxes(boxes=tuple(_boxes(steps, K, signs, bounds)), n_steps=len(steps))


def _machine(estimator: Any, default: SVC, solver: str) -> SVC:
    if estimator is None:
        return default
    if not isinstance(estimator, SVC):
        raise TypeError(
            f"estimator must be a margrove.SVC or None. Got {type(estimator).__name__}."
        )
    solvers = ("auto", "smo") if solver == "smo" else (solver,)
    has_bias = solver == "smo"
    if (
        estimator.solver not in solvers
        or not np.isfinite(estimator.C)
        or estimator.class_weight is not None
        or bool(estimator.fit_intercept) != has_bias
        or estimator.kernel == "precomputed"
    ):
        raise ValueError(
            f"estimator must have solver={solvers[-1]!r}, fit_intercept={has_bias}, a finite C, a "
            f"kernel that is not precomputed, and no class weights. Got {estimator!r}."
        )
    machine: SVC = clone(estimator).set_params(warm_start=False)
    return machine


def _copies(rows: np.ndarray) -> np.ndarray:
    """The number of rows that equal each row: the solver has one variable for all of them."""
    _, place, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return counts[place.ravel()].astype(np.float64)


def _boxes(
    steps: list[Any], K: np.ndarray, signs: np.ndarray, bounds: np.ndarray
) -> Iterator[SmoBox]:
    """The recorded steps up to the first that differs from the formula."""
    alpha = np.zeros(len(signs))
    for number, step in enumerate(steps, start=1):
        i, j = pair = [step.first, step.second]
        y1, y2 = signs[pair].tolist()
        a1, a2 = alpha[pair].tolist()
        u1, u2 = bounds[pair].tolist()
        f = K[pair] @ (alpha * signs)  # the bias drops out of E_1 - E_2
        errors = f - signs[pair]
        eta = float(K[i, i] + K[j, j] - 2.0 * K[i, j])
        unclipped = a2 + y2 * float(errors[0] - errors[1]) / eta if eta > 0.0 else np.inf
        if y1 != y2:
            low, high = max(0.0, a2 - a1), min(u2, u1 + a2 - a1)
        else:
            low, high = max(0.0, a1 + a2 - u1), min(u2, a1 + a2)
        recorded = a2 - y2 * step.change
        clipped = min(max(unclipped, low), high)
        if abs(recorded - clipped) > _TOLERANCE * max(u1, u2):
            return
        box = SmoBox(
            number=number,
            first=step.first,
            second=step.second,
            signs=(y1, y2),
            bounds=(u1, u2),
            before=frozen(np.array([a1, a2])),
            after=frozen(np.array([a1 + y1 * step.change, recorded])),
            unclipped=float(unclipped),
            low=low,
            high=high,
            curvature=frozen(np.outer(signs[pair], signs[pair]) * K[np.ix_(pair, pair)]),
            slope=frozen(1.0 - signs[pair] * f),
        )
        alpha[pair] = box.after
        yield box


# -- one variable at a time ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class CoordinatePath(Plain):
    """Coordinate ascent on the dual of a machine without a bias, over two rows.

    Attributes
    ----------
    C : float
        The bound of both variables.
    curvature : ndarray of shape (2, 2)
        Q; the dual objective is alpha_1 + alpha_2 - alpha'Q alpha / 2.
    path : ndarray of shape (n_steps + 1, 2)
        Both variables at the start, which is 0, and after each step.
    variables : ndarray of int of shape (n_steps,)
        Which of them changed; -1 for an extrapolation step of both.
    """

    C: float
    curvature: np.ndarray
    path: np.ndarray
    variables: np.ndarray

    def objective(self, first: Any, second: Any) -> np.ndarray:
        """The dual objective there."""
        a = np.stack(np.broadcast_arrays(first, second), axis=-1).astype(np.float64)
        return np.asarray(a.sum(axis=-1) - 0.5 * np.einsum("...i,ij,...j", a, self.curvature, a))

    def frame(self) -> Any:
        """A pandas DataFrame, a row for the start and for each step."""
        return data_frame(
            {
                "step": np.arange(len(self.path)),
                "moved": [
                    "",
                    *({0: "alpha_1", 1: "alpha_2"}.get(k, "both") for k in self.variables),
                ],
                "alpha_1": self.path[:, 0],
                "alpha_2": self.path[:, 1],
                "objective": self.objective(*self.path.T),
            }
        )


def coordinate_path(X: Any = None, y: Any = None, *, estimator: Any = None) -> CoordinatePath:
    """Fit a machine without a bias to two rows, one variable at a time.

    Parameters
    ----------
    X : array-like of shape (2, n_features), optional
        By default two rows that need many steps.
    y : array-like of shape (2,), optional
        Their classes.
    estimator : SVC, optional
        With ``solver="cd"`` and ``fit_intercept=False``; a copy is fitted. By default
        ``SVC(kernel="linear", solver="cd", fit_intercept=False)``.

    Returns
    -------
    CoordinatePath

    Examples
    --------
    >>> from margrove.teaching.facts.smo import coordinate_path
    >>> found = coordinate_path()
    >>> found.path[-1].round(2).tolist()
    [0.6, 0.4]
    """
    if (X is None) != (y is None):
        raise ValueError("X and y belong together. Pass both or none of them.")
    if X is None:
        X, y = [[1.0, 0.2], [-1.0, 0.3]], [1, -1]
    default = SVC(kernel="linear", solver="cd", fit_intercept=False)
    machine = _machine(estimator, default, "cd")
    table = check_table(X, machine, accept_sparse=False)
    labels = check_labels(y, len(table.X))
    if len(table.X) != 2 or len(labels.classes) != 2:
        raise InvalidDataError(
            "coordinate_path draws two variables: X and y must be two rows of two classes. Got "
            f"{len(table.X)} rows and {len(labels.classes)} classes."
        )
    steps: list[Any] = []
    with watch(on_step=steps.append):
        machine.fit(table.X, labels.codes)
    signs = np.where(labels.codes == 1, 1.0, -1.0)
    K = np.asarray(machine.kernel_(table.X), dtype=np.float64)
    return CoordinatePath(
        C=float(machine.C),
        curvature=frozen(np.outer(signs, signs) * K),
        path=frozen(_path(steps, float(machine.C))),
        variables=frozen(np.array([step.variable for step in steps], dtype=np.int64)),
    )


def _path(steps: list[Any], C: float) -> np.ndarray:
    path = [np.zeros(2)]
    start, epoch = path[0], -1
    for step in steps:
        if step.epoch > epoch:
            start, epoch = path[-1], step.epoch
        alpha = path[-1].copy()
        if step.variable >= 0:
            alpha[step.variable] += step.change
        else:
            alpha += step.change * (alpha - start)
        path.append(np.clip(alpha, 0.0, C))
    return np.array(path)
