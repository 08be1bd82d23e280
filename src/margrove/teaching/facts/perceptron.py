"""A perceptron step by step: the weights before and after each mistake.

    mistake on (x, y):   w <- w + step y x,   b <- b + step y

`margrove.watch` reports the mistakes and steps of a real fit; the weights are the sums of these
steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._data import data_frame
from margrove._runtime import watch
from margrove.facts import Plain, frozen
from margrove.margin.perceptron import Perceptron
from margrove.teaching.facts.planes import PlaneRows, plane_rows

__all__ = ["PerceptronSteps", "perceptron_steps"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PerceptronSteps(Plain):
    """The updates of a perceptron of two classes in the plane, in order.

    Attributes
    ----------
    rows : PlaneRows
        The data.
    epochs, mistaken : ndarray of int of shape (n_steps,)
        The pass over the data, from 0, and the row that was a mistake.
    values : ndarray of shape (n_steps,)
        y f(x) of that row before the step.
    steps : ndarray of shape (n_steps,)
        How far the weights moved along y x.
    weights : ndarray of shape (n_steps + 1, 2)
        At the start, and after each step.
    intercepts : ndarray of shape (n_steps + 1,)
    """

    rows: PlaneRows
    epochs: np.ndarray
    mistaken: np.ndarray
    values: np.ndarray
    steps: np.ndarray
    weights: np.ndarray
    intercepts: np.ndarray

    def __len__(self) -> int:
        return len(self.steps)

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each step, with the weights before and after."""
        columns: dict[str, Any] = {
            "step": np.arange(1, len(self) + 1),
            "epoch": self.epochs,
            "row": self.mistaken,
            "value": self.values,
            "size": self.steps,
        }
        for name, start in (("before", 0), ("after", 1)):
            span = slice(start, start + len(self))
            columns |= {f"w1_{name}": self.weights[span, 0], f"w2_{name}": self.weights[span, 1]}
            columns[f"b_{name}"] = self.intercepts[span]
        return data_frame(columns)


def perceptron_steps(X: Any, y: Any, *, estimator: Any = None) -> PerceptronSteps:
    """Fit a perceptron to two features and two classes, and record each of its steps.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes.
    estimator : Perceptron, optional
        A copy is fitted. It must not average or have a penalty, which change weights between
        mistakes. By default that of the lectures, without a bias:
        ``Perceptron(fit_intercept=False, shuffle=False, tol=None, max_iter=100)``.

    Returns
    -------
    PerceptronSteps

    Examples
    --------
    >>> from margrove.teaching.facts.perceptron import perceptron_steps
    >>> found = perceptron_steps([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> found.mistaken.tolist(), found.weights.tolist()
    ([0], [[0.0, 0.0], [2.0, 1.0]])
    """
    rows = plane_rows(X, y, "perceptron_steps")
    learner = _learner(estimator)
    updates: list[Any] = []
    with watch(on_step=updates.append):
        learner.fit(rows.points, rows.codes)
    mistaken = np.array([update.row for update in updates], dtype=np.int64)
    steps = np.array([update.step for update in updates], dtype=np.float64)
    moves = (steps * rows.signs[mistaken])[:, None] * rows.points[mistaken]
    shifts = steps * rows.signs[mistaken] * bool(learner.fit_intercept)
    return PerceptronSteps(
        rows=rows,
        epochs=frozen(np.array([update.epoch for update in updates], dtype=np.int64)),
        mistaken=frozen(mistaken),
        values=frozen(np.array([update.value for update in updates], dtype=np.float64)),
        steps=frozen(steps),
        weights=frozen(np.vstack([np.zeros((1, 2)), np.cumsum(moves, axis=0)])),
        intercepts=frozen(np.concatenate([[0.0], np.cumsum(shifts)])),
    )


def _learner(estimator: Any) -> Perceptron:
    if estimator is None:
        return Perceptron(fit_intercept=False, shuffle=False, tol=None, max_iter=100)
    if not isinstance(estimator, Perceptron):
        raise TypeError(
            f"estimator must be a margrove.Perceptron or None. Got {type(estimator).__name__}."
        )
    if estimator.penalty is not None or estimator.average or estimator.early_stopping:
        raise ValueError(
            "estimator must have penalty=None, average=False and early_stopping=False: with "
            "others, weights are not sums of mistakes."
        )
    learner: Perceptron = clone(estimator).set_params(warm_start=False)
    return learner
