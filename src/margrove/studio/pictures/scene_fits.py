"""Fits of the learner of a scene; the last models are cached by their training data."""

from __future__ import annotations

import hashlib
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from margrove.exceptions import NotSeparableError
from margrove.facts import describe
from margrove.studio.content import Scene, StudioError
from margrove.studio.worker import LruCache

__all__ = ["Fitted", "fitted", "missing", "remarks_of"]

_CACHED = 6
_MOST_REMARKS = 6
_HAVE_CALIBRATION = ("SVC", "NuSVC")  # probabilities only on request: they need more fits


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model, the time of its fit, and its warnings."""

    model: Any
    seconds: float
    remarks: tuple[str, ...]

    @cached_property
    def facts(self) -> Any:
        """Facts about the model, with its certificate if it has one."""
        return describe(self.model)


_models: LruCache[Fitted] = LruCache(_CACHED)


def fitted(scene: Scene, *, probability: bool = False) -> Fitted:
    """The learner of a scene, fitted to its training points.

    Parameters
    ----------
    scene : Scene
    probability : bool, default=False
        Whether probabilities are needed. Support vector machines have to know before the fit.

    Returns
    -------
    Fitted
        It may come from the cache: do not change the model.
    """
    lacking = missing(scene)
    if lacking:
        raise StudioError(lacking)
    probability = probability and scene.learner in _HAVE_CALIBRATION
    return _models.get(_key(scene, probability), lambda: _fit(scene, probability))


def missing(scene: Scene) -> str:
    """What a scene lacks for a fit, as a sentence for the page; "" if nothing."""
    _, y = scene.training()
    if scene.task == "regression":
        return "" if len(y) >= 2 else "Place at least two points: click into the plane."
    if len(y) == 0:
        return "There are no points yet. Click into the plane, or choose a set of points."
    if np.all(y == y[0]):
        return "All training points are of one class. Place points of another class, too."
    return ""


def _fit(scene: Scene, probability: bool) -> Fitted:
    X, y = scene.training()
    estimator = scene.estimator()
    if probability:
        estimator.set_params(probability=True)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = estimator.fit(X, y)
        except NotSeparableError as error:
            raise StudioError(
                "No boundary of this kernel separates the classes, so there is no hard margin. "
                "Choose a finite C or another kernel, or move the points apart."
            ) from error
        except (ValueError, TypeError, ArithmeticError) as error:
            raise StudioError(f"{scene.learner}: {error}") from error
    return Fitted(model, time.perf_counter() - start, remarks_of(caught))


def remarks_of(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """The texts of warnings, without repetitions."""
    texts = dict.fromkeys(
        str(warning.message)
        for warning in caught
        if not issubclass(warning.category, (DeprecationWarning, FutureWarning))
    )
    return tuple(texts)[:_MOST_REMARKS]


def _key(scene: Scene, probability: bool) -> bytes:
    X, y = scene.training()
    digest = hashlib.sha256(
        repr((scene.learner, sorted(scene.parameters.items()), scene.seed, probability)).encode()
    )
    digest.update(np.ascontiguousarray(X).data)
    digest.update(np.ascontiguousarray(y).data)
    return digest.digest()
