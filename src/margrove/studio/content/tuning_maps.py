"""The map of C and gamma: accuracy of support vector machines by cross-validation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from margrove.studio.content.checks import StudioError
from margrove.studio.content.scenes import Scene
from margrove.studio.learners import kernels_with
from margrove.studio.pictures import as_grid, missing

__all__ = ["map_of"]

_FOLDS = 5
_VALUES = 13  # of C, and of gamma
_MOST_POINTS = 1_200  # more would take minutes, for nearly the same map


def map_of(scene: Scene) -> dict[str, Any]:
    """Cross-validate a grid of C and gamma on the training points of a scene.

    The kernel is that of the scene if it has a gamma, otherwise the Gaussian one.

    Returns
    -------
    dict
        A `TuningMap` of the protocol.
    """
    from margrove.select.machines import SVCCV

    if scene.task != "classification":
        raise StudioError(
            "The map shows accuracies, which need classes. Choose a set of points with classes."
        )
    lacking = missing(scene)
    if lacking:
        raise StudioError(lacking)
    X, y = _sample(*scene.training(), scene.seed)
    folds = min(_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    if folds < 2:
        raise StudioError(
            "Cross-validation needs at least two points of each class. Add some points."
        )
    search = SVCCV(_VALUES, _VALUES, cv=folds, refit=False, **_kernel(scene))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            search.fit(X, y)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise StudioError(str(error)) from error
    return {
        "C": search.Cs_.tolist(),
        "gamma": search.gammas_.tolist(),
        "score": as_grid(search.scores_.mean(axis=2).T),
        "best": {
            "C": float(search.C_),
            "gamma": float(search.gamma_),
            "score": float(search.best_score_),
        },
        "folds": folds,
    }


def _kernel(scene: Scene) -> dict[str, Any]:
    """The parameters of the scene that the search takes as well."""
    given = scene.parameters
    kernel = given.get("kernel")
    if kernel not in kernels_with("gamma")():
        return {"kernel": "rbf"}
    arguments = scene.offered.arguments(given, scene.seed).of_estimator
    wanted = ("kernel", "degree", "coef0", "class_weight")
    return {name: arguments[name] for name in wanted if name in arguments}


def _sample(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if len(y) <= _MOST_POINTS:
        return X, y
    rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:_MOST_POINTS])
    return X[rows], y[rows]
