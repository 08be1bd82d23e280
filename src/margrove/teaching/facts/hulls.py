"""Two separable classes in the plane: their hulls, the nearest points, and the lines between them.

The dual of the hard margin finds the nearest points u and v of the two convex hulls. w has the
direction of u - v, the plane goes through the middle between them, and ||u - v|| = 2 / ||w||.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from margrove._data import data_frame
from margrove.facts import Plain, frozen, require_whole
from margrove.margin.perceptron import Perceptron
from margrove.margin.svm import SVC
from margrove.teaching.facts.planes import PlaneRows, plane_rows

__all__ = ["HullFacts", "SeparatingLines", "hull_facts", "separating_lines"]


@dataclass(frozen=True, kw_only=True, eq=False)
class HullFacts(Plain):
    """Hulls of two classes and the plane in the middle.

    Attributes
    ----------
    rows : PlaneRows
    corners : tuple of two ndarray of int
        Rows at the corners of the hull of each class, in order around it.
    nearest : ndarray of shape (2, 2)
        The nearest points of both hulls.
    weights : ndarray of shape (2,)
    intercept : float
        Of the plane weights . x + intercept = 0, which is 1 and -1 at the nearest points.
    distance : float
        Between the nearest points: twice the margin.
    support : ndarray of int
        Rows whose weighted averages are the nearest points.
    shares : ndarray
        Their weights in these averages, which sum to 1 in each class.
    """

    rows: PlaneRows
    corners: tuple[np.ndarray, np.ndarray]
    nearest: np.ndarray
    weights: np.ndarray
    intercept: float
    distance: float
    support: np.ndarray
    shares: np.ndarray

    def frame(self) -> Any:
        """A pandas DataFrame: corners of the hulls, support vectors and nearest points."""
        classes = self.rows.classes
        groups: list[tuple[str, str, np.ndarray, np.ndarray]] = [
            ("corner", classes[k], self.rows.points[corners], np.ones(len(corners)))
            for k, corners in enumerate(self.corners)
        ]
        for row, share in zip(self.support.tolist(), self.shares.tolist(), strict=True):
            point = self.rows.points[[row]]
            groups.append(("support", classes[self.rows.codes[row]], point, np.array([share])))
        groups += [("nearest", classes[k], self.nearest[[k]], np.ones(1)) for k in (0, 1)]
        return data_frame(
            {
                "part": [kind for kind, _, points, _ in groups for _ in points],
                "class": [name for _, name, points, _ in groups for _ in points],
                "x": np.concatenate([points[:, 0] for _, _, points, _ in groups]),
                "y": np.concatenate([points[:, 1] for _, _, points, _ in groups]),
                "share": np.concatenate([shares for *_, shares in groups]),
            }
        )


def hull_facts(X: Any, y: Any) -> HullFacts:
    """The hulls of two separable classes, their nearest points, and the plane of largest margin.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes that a line separates; if none does, `NotSeparableError` names a point that both
        hulls contain.

    Returns
    -------
    HullFacts

    Examples
    --------
    >>> from margrove.teaching.facts.hulls import hull_facts
    >>> found = hull_facts([[0, 0], [0, 2], [3, 1], [4, 5]], [-1, -1, 1, 1])
    >>> found.nearest.round(6).tolist(), round(found.distance, 6)
    ([[0.0, 1.0], [3.0, 1.0]], 3.0)
    """
    rows = plane_rows(X, y, "hulls")
    machine = SVC(kernel="linear", C=np.inf, solver="hull", tol=1e-8).fit(rows.points, rows.codes)
    signed = machine.dual_coef_[0]
    is_second = signed > 0
    shares = np.abs(signed)
    for is_class in (is_second, ~is_second):
        shares[is_class] /= shares[is_class].sum()
    vectors = rows.points[machine.support_]
    nearest = np.stack(
        [shares[is_class] @ vectors[is_class] for is_class in (~is_second, is_second)]
    )
    corners = tuple(_corners(rows.points, np.flatnonzero(rows.codes == k)) for k in (0, 1))
    return HullFacts(
        rows=rows,
        corners=(frozen(corners[0]), frozen(corners[1])),
        nearest=frozen(nearest),
        weights=frozen(machine.coef_[0]),
        intercept=float(machine.intercept_[0]),
        distance=float(np.linalg.norm(nearest[1] - nearest[0])),
        support=frozen(machine.support_),
        shares=frozen(shares),
    )


def _corners(points: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The rows at the corners of a hull, in order around it; for points on a line, its ends."""
    corners = points[members]
    try:
        return members[ConvexHull(corners).vertices] if len(members) > 2 else members
    except QhullError:
        centred = corners - corners.mean(axis=0)
        along = centred @ np.linalg.svd(centred)[2][0]
        ends = [int(np.argmin(along)), int(np.argmax(along))]
        return members[np.unique(ends)]


# -- other lines ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class SeparatingLines(Plain):
    """Lines weights . x + intercept = 0 that separate two classes; the last has the largest margin.

    Attributes
    ----------
    rows : PlaneRows
    weights : ndarray of shape (n_lines + 1, 2)
    intercepts : ndarray of shape (n_lines + 1,)
    margins : ndarray of shape (n_lines + 1,)
        The smallest distance of a row from each line.
    """

    rows: PlaneRows
    weights: np.ndarray
    intercepts: np.ndarray
    margins: np.ndarray

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each line."""
        n = len(self.margins) - 1
        return data_frame(
            {
                "learner": ["Perceptron"] * n + ["SVC"],
                "w1": self.weights[:, 0],
                "w2": self.weights[:, 1],
                "b": self.intercepts,
                "margin": self.margins,
            }
        )


def separating_lines(X: Any, y: Any, n_lines: int = 8) -> SeparatingLines:
    """Lines of perceptrons that see the rows in different orders, and the line of an SVM.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes that a line separates.
    n_lines : int, default=8
        The number of perceptrons.

    Returns
    -------
    SeparatingLines

    Examples
    --------
    >>> from margrove.teaching.facts.hulls import separating_lines
    >>> found = separating_lines([[0, 0], [0, 2], [3, 1], [4, 5]], [-1, -1, 1, 1], n_lines=5)
    >>> bool((found.margins[:-1] <= found.margins[-1]).all()), round(float(found.margins[-1]), 6)
    (True, 1.5)
    """
    rows = plane_rows(X, y, "separating_lines")
    count = require_whole("n_lines", n_lines, 1)
    machine = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(rows.points, rows.codes)
    # Rows are centred: far from the origin, a perceptron converges slowly.
    middle = rows.points.mean(axis=0)
    learners = [
        Perceptron(random_state=seed, tol=None, max_iter=10_000).fit(
            rows.points - middle, rows.codes
        )
        for seed in range(count)
    ]
    weights = np.stack([learner.coef_[0] for learner in learners] + [machine.coef_[0]])
    intercepts = np.array([learner.intercept_[0] for learner in learners] + [machine.intercept_[0]])
    intercepts[:-1] -= weights[:-1] @ middle
    values = (rows.points @ weights.T + intercepts) * rows.signs[:, None]
    return SeparatingLines(
        rows=rows,
        weights=frozen(weights),
        intercepts=frozen(intercepts),
        margins=frozen(values.min(axis=0) / np.linalg.norm(weights, axis=1)),
    )
