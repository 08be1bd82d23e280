"""The picture of a scene: a fit, and what the page draws of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margrove.exceptions import InvalidDataError, NumericalOverflowError
from margrove.studio.content import Scene, StudioError
from margrove.studio.pictures.curves import curve_of
from margrove.studio.pictures.figures import empty_figures, figures_of
from margrove.studio.pictures.planes import plane_of
from margrove.studio.pictures.point_facts import MACHINES
from margrove.studio.pictures.scene_fits import Fitted, fitted, missing
from margrove.studio.pictures.surfaces import Wanted

__all__ = ["picture_of"]


def picture_of(scene: Scene, grid: Sequence[int], surface: Wanted = "score") -> dict[str, Any]:
    """Fit the learner of a scene and return what the page draws.

    Parameters
    ----------
    scene : Scene
    grid : pair of int
        Rows and columns of the surface.
    surface : "score" or "probability"

    Returns
    -------
    dict
        A `Picture` of the protocol. For a scene with too few points, one with a remark only.

    Examples
    --------
    >>> from margrove.studio.pictures import picture_of
    >>> from margrove.studio.content.presets import points_of
    >>> from margrove.studio.content.scenes import scene_from
    >>> points = points_of("moons", size=100, noise=0.1, seed=0)
    >>> scene = scene_from(points | {
    ...     "version": 1, "testShare": 0.2, "seed": 0, "learner": "SVC", "parameters": {},
    ... })
    >>> picture = picture_of(scene, [20, 30])
    >>> picture["plane"]["surface"]["shape"], int(picture["isTest"].sum())
    ([20, 30], 20)
    """
    if surface not in ("score", "probability"):
        raise StudioError("surface must be score or probability.")
    lacking = missing(scene)
    if lacking:
        return _picture(scene, empty_figures(lacking))
    found = fitted(scene, probability=surface == "probability")
    try:
        return _drawn(found, scene, grid, surface)
    except (InvalidDataError, NumericalOverflowError) as error:
        raise StudioError(f"{scene.learner}: {error}") from error


def _drawn(found: Fitted, scene: Scene, grid: Sequence[int], surface: Wanted) -> dict[str, Any]:
    facts = found.facts if scene.learner in MACHINES else None  # needed twice
    drawn: dict[str, Any] = (
        {"plane": plane_of(found.model, scene, grid, surface, facts=facts)}
        if scene.task == "classification"
        else {"curve": curve_of(found.model, scene, facts=facts)}
    )
    return _picture(scene, figures_of(found, scene), **drawn)


def _picture(
    scene: Scene, figures: dict[str, Any], *, plane: Any = None, curve: Any = None
) -> dict[str, Any]:
    return {
        "task": scene.task,
        "isTest": scene.is_test.astype("uint8"),
        "figures": figures,
        "plane": plane,
        "curve": curve,
    }
