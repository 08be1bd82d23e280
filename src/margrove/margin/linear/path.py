"""Regularisation paths of linear machines: each solution starts from the previous one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove.margin.linear.linear_machine import LinearMachine

__all__ = ["PathPoint", "linear_path"]


@dataclass(frozen=True)
class PathPoint:
    """The solution for one C.

    Attributes
    ----------
    C : float
    coef : ndarray of shape (n_machines, n_features)
    intercept : ndarray of shape (n_machines,)
    relative_gap : float
        The largest relative duality gap of the machines.
    n_iter : int
        Epochs or steps from the previous point.
    n_nonzero : int
        Number of weights that are not zero.
    """

    C: float
    coef: np.ndarray
    intercept: np.ndarray
    relative_gap: float
    n_iter: int
    n_nonzero: int


def linear_path(
    estimator: LinearMachine, X: Any, y: Any, Cs: Sequence[float], sample_weight: Any = None
) -> Iterator[PathPoint]:
    """Solutions for ascending C, each started from the previous one.

    Parameters
    ----------
    estimator : LinearSVC or LinearSVR
        Its other parameters are used for all points; it is not changed.
    X, y, sample_weight : as for `fit`
    Cs : sequence of float
        Positive and ascending, because the bounds of dual variables grow with C.

    Yields
    ------
    PathPoint

    Examples
    --------
    >>> from margrove import LinearSVC, linear_path
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> for point in linear_path(LinearSVC("l1"), X, y == 2, [0.001, 0.01, 0.1]):
    ...     print(point.C, point.n_nonzero)
    0.001 0
    0.01 1
    0.1 2
    """
    if not isinstance(estimator, LinearMachine):
        raise TypeError(
            f"linear_path is for LinearSVC and LinearSVR. Got {type(estimator).__name__}."
        )
    values = list(Cs)
    if not all(isinstance(C, Real) and 0 < C < np.inf for C in values):
        raise ValueError(f"Cs must be positive finite numbers. Got {values!r}.")
    if any(later <= earlier for earlier, later in pairwise(values)):
        raise ValueError(f"Cs must ascend. Got {values!r}; use sorted(Cs).")
    return _points(clone(estimator).set_params(warm_start=True), X, y, values, sample_weight)


def _points(model: Any, X: Any, y: Any, Cs: list[Any], sample_weight: Any) -> Iterator[PathPoint]:
    for C in Cs:
        model.set_params(C=C).fit(X, y, sample_weight)
        found = model._record.result
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(found.primal > 0, found.gap / found.primal, 0.0)
        coef = np.atleast_2d(model.coef_)
        yield PathPoint(
            float(C),
            coef,
            np.ravel(model.intercept_),
            float(relative.max()),
            int(model.n_iter_),
            int(np.count_nonzero(coef)),
        )
