"""Scenes for tests, and what may be in an answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margrove.studio.content.presets import points_of
from margrove.studio.content.scenes import Scene, scene_from

GRID = [12, 16]
CLASSIFIERS = (
    "Perceptron", "KernelPerceptron", "LinearSVC", "SVC", "NuSVC", "DecisionTreeClassifier",
    "BaggingClassifier", "RandomForestClassifier", "ExtraTreesClassifier", "AdaBoostClassifier",
    "GradientBoostingClassifier", "HistGradientBoostingClassifier",
)  # fmt: skip
REGRESSORS = (
    "LinearSVR", "SVR", "NuSVR", "DecisionTreeRegressor", "BaggingRegressor",
    "RandomForestRegressor", "ExtraTreesRegressor", "AdaBoostRegressor",
    "GradientBoostingRegressor", "HistGradientBoostingRegressor",
)  # fmt: skip


def given(
    preset: str = "moons",
    learner: str = "SVC",
    parameters: dict[str, Any] | None = None,
    *,
    size: int = 60,
    noise: float = 0.2,
    test_share: float = 0.0,
    **others: Any,
) -> dict[str, Any]:
    """A scene as the page sends it."""
    return (
        points_of(preset, size=size, noise=noise, seed=0)
        | {
            "version": 1,
            "testShare": test_share,
            "seed": 0,
            "learner": learner,
            "parameters": parameters or {},
        }
        | others
    )


def scene(*arguments: Any, **settings: Any) -> Scene:
    return scene_from(given(*arguments, **settings))


def require_sendable(value: Any, path: str = "") -> None:
    """JSON without NaN, string keys, and arrays of the kinds that frames hold."""
    if isinstance(value, dict):
        for key, own in value.items():
            assert type(key) is str, path
            require_sendable(own, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for k, own in enumerate(value):
            require_sendable(own, f"{path}[{k}]")
    elif isinstance(value, np.ndarray):
        assert value.dtype in (np.float32, np.float64, np.int32, np.uint8, np.int64, bool), path
    else:
        assert value is None or type(value) in (str, bool, int, float), f"{path}: {type(value)}"
        assert not isinstance(value, float) or math.isfinite(value), path
