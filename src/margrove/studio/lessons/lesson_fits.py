"""Fitting the learner that a lesson asks about to the points that are on the page."""

from __future__ import annotations

import warnings
from typing import Any

from margrove.studio.content import Scene, StudioError
from margrove.studio.pictures import missing

__all__ = ["fitted_to"]


def fitted_to(scene: Scene, learner: str, **parameters: Any) -> Any:
    """A learner fitted to the training points of a scene.

    Its parameters are those of the scene, if it has the same learner, but for those given.
    """
    current = scene.parameters if scene.learner == learner else {}
    asked = scene.with_learner(learner, {**current, **parameters})
    lacking = missing(asked)
    if lacking:
        raise StudioError(lacking)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture tells what was warned of
        try:
            return asked.estimator().fit(*asked.training())
        except (ValueError, ArithmeticError) as error:
            raise StudioError(f"{learner}: {error}") from error
