"""Boosted models of a scene, also after fewer rounds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from margrove.studio.content import Scene
from margrove.studio.worker import LruCache

__all__ = ["Boosted", "boosted"]

_MODELS = 64


def boosted(scene: Scene, number: int | None = None) -> Any:
    """The learner of a scene, fitted; `number` replaces its number of rounds."""
    estimator = scene.estimator()
    if number is not None:
        name = "max_iter" if hasattr(estimator, "max_iter") else "n_estimators"
        estimator.set_params(**{name: number})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows the warnings
        return estimator.fit(*scene.training())


@dataclass(frozen=True, eq=False)
class Boosted:
    """A fitted model and the numbers of the shown rounds."""

    scene: Scene
    model: Any
    numbers: list[int]
    _models: LruCache[Any] = field(default_factory=lambda: LruCache(_MODELS), init=False)

    def after(self, number: int) -> Any:
        """The model after `number` rounds: a round depends only on earlier ones."""
        if number == len(self.model):
            return self.model
        return self._models.get(number, partial(boosted, self.scene, number))
