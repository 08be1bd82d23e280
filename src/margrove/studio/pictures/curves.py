"""Predictions of a regressor over one feature, as the page draws them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from margrove.studio.content import Scene
from margrove.studio.pictures.grids import as_float32, as_grid
from margrove.studio.pictures.member_pictures import curves_of_members
from margrove.studio.pictures.point_facts import support_of
from margrove.studio.pictures.surfaces import within_domain

__all__ = ["curve_from_values", "curve_of", "places_of"]

_PLACES = 481
_CONFIDENCE = 0.9


def places_of(scene: Scene, n: int = _PLACES) -> np.ndarray:
    """The n positions along the view at which a curve is drawn, ascending."""
    return np.linspace(*scene.view.x, n)


def curve_of(
    model: Any, scene: Scene, *, support: bool = True, members: bool = True, facts: Any = None
) -> dict[str, Any]:
    """Predictions of a fitted regressor over the view of a scene, and facts about its points.

    Parameters
    ----------
    model : fitted regressor of one feature
        Fitted to `scene.training()`.
    scene : Scene
    support : bool, default=True
        Whether support vectors are included: only if the model was fitted to all training points.
    members : bool, default=True
        Whether the members of an ensemble are drawn.
    facts : optional
        `margrove.facts.describe(model)`, if it is known already.

    Returns
    -------
    dict
        A `Curve` of the protocol.
    """
    x = places_of(scene)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the picture shows the warnings of the fit
        places = within_domain(model, x[:, None])
        y = np.asarray(model.predict(places), dtype=np.float64)
        at_points = np.asarray(model.predict(scene.x)) if len(scene.x) else np.zeros(0)
        low, high, band = _band(model, x, y)
    facts_of_points = support_of(model, scene, facts) if support else None
    return curve_from_values(
        scene,
        x,
        y,
        at_points=at_points,
        low=low,
        high=high,
        band=band,
        alpha=None if facts_of_points is None else facts_of_points.alpha,
        support_kind=None if facts_of_points is None else facts_of_points.kind,
        members=curves_of_members(model, x) if members else None,
    )


def curve_from_values(
    scene: Scene,
    x: np.ndarray,
    y: np.ndarray,
    *,
    at_points: np.ndarray | None = None,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
    band: str = "",
    alpha: np.ndarray | None = None,
    support_kind: np.ndarray | None = None,
    members: np.ndarray | None = None,
) -> dict[str, Any]:
    """A `Curve` of the protocol from values.

    Parameters
    ----------
    scene : Scene
    x, y : ndarray of shape (n_places,)
        The curve, x ascending.
    at_points : ndarray of shape (n_points,), optional
        The values of the curve at the points of the scene; by default interpolated.
    low, high : ndarray of shape (n_places,), optional
        The edges of the band; `band` is its name.
    alpha, support_kind : ndarray of shape (n_points,), optional
    members : ndarray of shape (n_members, n_places), optional
    """
    if at_points is None:
        at_points = np.interp(scene.x[:, 0], x, y)
    return {
        "x": np.asarray(x, dtype=np.float32),
        "y": np.asarray(y, dtype=np.float32),
        "low": as_float32(low),
        "high": as_float32(high),
        "band": band,
        "supportKind": None if support_kind is None else np.asarray(support_kind, dtype=np.uint8),
        "alpha": as_float32(alpha),
        "residual": np.asarray(scene.y - at_points, dtype=np.float32),
        "members": None if members is None else as_grid(members),
    }


def _band(
    model: Any, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None, str]:
    """The tube of a support vector machine, or the interval of a forest."""
    tube = tube_of(model)
    if tube is not None:
        return y - tube, y + tube, f"the tube: errors up to {tube:.3g} are free"
    if hasattr(model, "residuals_"):
        try:
            bounds = model.predict_interval(x[:, None], _CONFIDENCE)
        except ValueError:  # too few points are out of bag for some tree
            return None, None, ""
        if np.isfinite(bounds).all():
            return bounds[:, 0], bounds[:, 1], f"{_CONFIDENCE:.0%} of new points are in between"
    return None, None, ""


def tube_of(model: Any) -> float | None:
    """Half the width of the tube of a support vector regression, or None."""
    if type(model).__name__ not in ("SVR", "NuSVR", "LinearSVR"):
        return None
    found = getattr(model, "epsilon_", None)  # found by NuSVR
    return float(model.epsilon if found is None else found)
