"""Errors of intermediate models on the training and the test points of a scene."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from margrove.studio.content import Scene

__all__ = ["ErrorMeter", "error_name"]

_MOST_POINTS = 2_000  # points of each kind, for hundreds of models


def error_name(scene: Scene) -> str:
    """The name of the error: the share of mistakes, or the root of the mean squared error."""
    return "error" if scene.task == "classification" else "root mean squared error"


class ErrorMeter:
    """Computes errors of models on the points of a scene, or on some if there are many."""

    def __init__(self, scene: Scene) -> None:
        self._is_class = scene.task == "classification"
        self._training = _some(*scene.training())
        self._test = _some(*scene.testing()) if scene.is_test.any() else None
        name = error_name(scene)
        n = len(scene.training_rows)
        of = f", of {len(self._training[1]):,} points" if n > _MOST_POINTS else ""
        self.training_name = f"training {name}{of}"
        self.test_name = f"test {name}"

    def errors(self, model: Any) -> tuple[float, float | None]:
        """On training points and, where there are some, on test points."""
        test = None if self._test is None else self._error(model, *self._test)
        return self._error(model, *self._training), test

    def _error(self, model: Any, X: np.ndarray, y: np.ndarray) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the picture shows the warnings of the fit
            found = np.asarray(model.predict(X))
        if self._is_class:
            return float(np.mean(found != y))
        return float(np.sqrt(np.mean((found - y) ** 2)))


def _some(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every k-th point."""
    every = -(-len(y) // _MOST_POINTS)
    return (X[::every], y[::every]) if every > 1 else (X, y)
