"""Scenes: points, a view, and a learner with its parameters, checked when the page sends them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from margrove.select.learners import Value
from margrove.studio.content.checks import (
    LARGEST_SEED,
    StudioError,
    brief,
    checked_number,
    checked_whole,
)
from margrove.studio.learners import LEARNERS, Offer, Task

__all__ = ["MAX_CLASSES", "MAX_POINTS", "Scene", "StudioError", "View", "scene_from"]

MAX_POINTS = 20_000
MAX_CLASSES = 4
_LARGEST = 1e9  # of coordinates
_LONGEST_NAME = 200
_FEW_POINTS = 500  # threads would take longer
_KEYS = (
    "version", "task", "x", "y", "testShare", "seed", "view", "features", "target", "classes",
    "learner", "parameters",
)  # fmt: skip


@dataclass(frozen=True)
class View:
    """The part of the plane that is drawn: [low, high] along each axis."""

    x: tuple[float, float]
    y: tuple[float, float]

    def as_dict(self) -> dict[str, Any]:
        return {"x": list(self.x), "y": list(self.y)}


@dataclass(frozen=True, eq=False)
class Scene:
    """Points, a view and a learner: all that a picture depends on.

    Attributes
    ----------
    task : "classification" or "regression"
    x : ndarray of shape (n, 2), or (n, 1) for regression
    y : ndarray of shape (n,)
        Classes 0 to 3 as int64, or values as float64.
    test_share : float
    seed : int
    view : View
    features : pair of str
        The second is unused in regression.
    target : str
    classes : tuple of str
        A name for each class of y, or for more classes; () in regression.
    learner : str
        A key of LEARNERS.
    parameters : dict
        All parameters of the learner, as the page knows them.
    """

    task: Task
    x: np.ndarray
    y: np.ndarray
    test_share: float
    seed: int
    view: View
    features: tuple[str, str]
    target: str
    classes: tuple[str, ...]
    learner: str
    parameters: dict[str, Value]

    @property
    def offered(self) -> Offer:
        """The learner's entry in the catalogue."""
        return LEARNERS[self.learner]

    @cached_property
    def is_test(self) -> np.ndarray:
        """Which points are kept for testing; every class keeps at least one training point.

        Each point has a random number, drawn in order, and the lowest ones are the test points. So
        the choice hardly changes when a point is added.
        """
        n = len(self.y)
        found = np.zeros(n, dtype=bool)
        n_test = min(round(self.test_share * n), n - 1)
        if n_test > 0:
            draws = np.random.default_rng(self.seed).random(n)
            found[np.argsort(draws, kind="stable")[:n_test]] = True
            if self.task == "classification":
                for label in np.unique(self.y).tolist():
                    members = np.flatnonzero(self.y == label)
                    if found[members].all():
                        found[members[np.argmax(draws[members])]] = False
        found.flags.writeable = False
        return found

    @cached_property
    def training_rows(self) -> np.ndarray:
        """Indices of the training points."""
        return np.flatnonzero(~self.is_test)

    def training(self) -> tuple[np.ndarray, np.ndarray]:
        """X and y of the training points."""
        return self.x[self.training_rows], self.y[self.training_rows]

    def testing(self) -> tuple[np.ndarray, np.ndarray]:
        """X and y of the test points."""
        return self.x[self.is_test], self.y[self.is_test]

    def estimator(self) -> Any:
        """A new estimator with the parameters of the scene; threads do not change its result."""
        n_jobs = 1 if len(self.y) <= _FEW_POINTS else None
        return self.offered.new_estimator(self.parameters, self.seed, n_jobs=n_jobs)

    def with_learner(self, learner: str, parameters: dict[str, Any] | None = None) -> Scene:
        """The same points for another learner, or for other parameters."""
        return replace(self, learner=learner, parameters=_parameters(learner, parameters or {}))

    def as_dict(self) -> dict[str, Any]:
        """The scene as the page stores it."""
        return {
            "version": 1,
            "task": self.task,
            "x": self.x.tolist(),
            "y": self.y.tolist(),
            "testShare": self.test_share,
            "seed": self.seed,
            "view": self.view.as_dict(),
            "features": list(self.features),
            "target": self.target,
            "classes": list(self.classes),
            "learner": self.learner,
            "parameters": dict(self.parameters),
        }


# -- reading ---------------------------------------------------------------------------------------


def scene_from(given: Any) -> Scene:
    """A scene from a request of the page or from a saved file.

    Parameters
    ----------
    given : dict
        As `Scene.as_dict` returns it; everything in it is checked.

    Returns
    -------
    Scene

    Examples
    --------
    >>> from margrove.studio.content.scenes import scene_from
    >>> scene = scene_from({
    ...     "version": 1, "task": "classification", "x": [[0, 0], [1, 1]], "y": [0, 1],
    ...     "testShare": 0, "seed": 0, "view": {"x": [-1, 2], "y": [-1, 2]},
    ...     "features": ["x1", "x2"], "target": "class", "classes": ["a", "b"],
    ...     "learner": "SVC", "parameters": {"kernel": "linear", "C": 10},
    ... })
    >>> scene.estimator().C, scene.training()[0].shape
    (10.0, (2, 2))
    """
    if not isinstance(given, dict):
        raise StudioError(f"A scene is an object with points and a learner. Got {_kind(given)}.")
    _check_keys(given)
    task = given["task"]
    if task not in ("classification", "regression"):
        raise StudioError(f"task must be classification or regression. Got {brief(task)}.")
    x = _coordinates(given["x"], 2 if task == "classification" else 1)
    y = _classes_of(given["y"], len(x)) if task == "classification" else _values(given["y"], len(x))
    learner = _learner(given["learner"], task)
    return Scene(
        task=task,
        x=x,
        y=y,
        test_share=checked_number(given["testShare"], "testShare", 0.0, 0.5),
        seed=checked_whole(given["seed"], "seed", 0, LARGEST_SEED),
        view=_view(given["view"]),
        features=_features(given["features"]),
        target=_name(given["target"], "target"),
        classes=_class_names(given["classes"], y) if task == "classification" else (),
        learner=learner,
        parameters=_parameters(learner, given["parameters"]),
    )


def _check_keys(given: dict[Any, Any]) -> None:
    unknown = [key for key in given if key not in _KEYS]
    missing = [key for key in _KEYS if key not in given]
    if unknown:
        raise StudioError(
            f"A scene has no {brief(unknown[0])}. It has {', '.join(_KEYS)}. Was it saved by a "
            "newer version?"
        )
    if missing:
        raise StudioError(f"The scene lacks {', '.join(missing)}.")
    version = given["version"]
    if isinstance(version, bool) or version != 1:
        raise StudioError(
            f"This scene has version {brief(version)}, and this studio reads version 1."
        )


def _coordinates(given: Any, d: int) -> np.ndarray:
    found = _array(given, "x")
    if found.size == 0:
        return np.zeros((0, d))
    if found.ndim != 2 or found.shape[1] != d:
        what = "two coordinates" if d == 2 else "one coordinate, as [[1.5], [2]],"
        raise StudioError(f"x must have {what} for each point. Got shape {found.shape}.")
    return _finite(found, "x")


def _classes_of(given: Any, n: int) -> np.ndarray:
    found = _values(given, n)
    codes = found.astype(np.int64)
    if np.any(codes != found) or (len(codes) and not 0 <= codes.min() <= codes.max() < MAX_CLASSES):
        raise StudioError(f"y must have classes 0 to {MAX_CLASSES - 1}, whole numbers.")
    return codes


def _values(given: Any, n: int) -> np.ndarray:
    found = _array(given, "y")
    if found.size == 0 and n == 0:
        return np.zeros(0)
    if found.shape != (n,):
        raise StudioError(f"y must have one value for each of {n} points. Got shape {found.shape}.")
    return _finite(found, "y")


def _array(given: Any, name: str) -> np.ndarray:
    if not isinstance(given, (list, tuple, np.ndarray)):
        raise StudioError(f"{name} must be a list of numbers. Got {_kind(given)}.")
    if len(given) > MAX_POINTS:
        raise StudioError(
            f"The studio draws at most {MAX_POINTS:,} points. Got {len(given):,}; take a sample."
        )
    try:
        found = np.asarray(given)
    except ValueError:
        raise StudioError(f"{name} must have equally many numbers for each point.") from None
    if found.size and found.dtype.kind not in "iuf":
        raise StudioError(f"{name} must contain numbers only.")
    return found


def _finite(found: np.ndarray, name: str) -> np.ndarray:
    values = found.astype(np.float64)
    if not np.isfinite(values).all():
        raise StudioError(f"{name} has a value that is not finite. Remove that point.")
    if np.abs(values).max(initial=0.0) > _LARGEST:
        raise StudioError(
            f"{name} has a value beyond {_LARGEST:g}. Divide by a power of ten: the picture is "
            "then the same."
        )
    return values


def _view(given: Any) -> View:
    if not isinstance(given, dict) or set(given) != {"x", "y"}:
        raise StudioError("view must have x and y, [low, high] each.")
    return View(_range(given["x"], "view.x"), _range(given["y"], "view.y"))


def _range(given: Any, name: str) -> tuple[float, float]:
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise StudioError(f"{name} must be [low, high].")
    low, high = (checked_number(value, name, -10 * _LARGEST, 10 * _LARGEST) for value in given)
    if not high - low > 1e-9 * max(abs(low), abs(high), 1e-30):
        raise StudioError(
            f"{name} must have its low end below its high end. Got {low:g}, {high:g}."
        )
    return low, high


def _features(given: Any) -> tuple[str, str]:
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        raise StudioError("features must be the names of the two axes.")
    return _name(given[0], "features"), _name(given[1], "features")


def _class_names(given: Any, y: np.ndarray) -> tuple[str, ...]:
    if not isinstance(given, (list, tuple)) or len(given) > MAX_CLASSES:
        raise StudioError(f"classes must be at most {MAX_CLASSES} names.")
    names = [_name(value, "classes") for value in given]
    n_needed = int(y.max(initial=-1)) + 1
    names += [f"class {k + 1}" for k in range(len(names), n_needed)]
    return tuple(names)


def _name(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise StudioError(f"{what} must be text. Got {_kind(given)}.")
    # JSON can contain half a surrogate pair, which can be neither sent nor printed.
    return given[:_LONGEST_NAME].encode("utf-8", "replace").decode("utf-8")


def _learner(given: Any, task: Task) -> str:
    if not isinstance(given, str) or given not in LEARNERS:
        raise StudioError(f"There is no learner {brief(given)}. There are {', '.join(LEARNERS)}.")
    if LEARNERS[given].task != task:
        fitting = [name for name, entry in LEARNERS.items() if entry.task == task]
        raise StudioError(f"{given} is not for {task}. There are {', '.join(fitting)}.")
    return given


def _parameters(learner: str, given: Any) -> dict[str, Value]:
    if not isinstance(given, dict):
        raise StudioError(f"parameters must be an object. Got {_kind(given)}.")
    try:
        return LEARNERS[learner].checked(given)
    except ValueError as error:
        raise StudioError(str(error)) from None


def _kind(given: Any) -> str:
    return "nothing" if given is None else type(given).__name__
