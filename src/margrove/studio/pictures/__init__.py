"""From a scene to what the page draws: surfaces over the plane, curves, figures.

picture_of           all of it, for a scene
plane_of             what a fitted classifier says over the plane
plane_from_values    the same from values on a grid, for states on the way
curve_of             what a fitted regressor says over one feature
curve_from_values    the same from values
cells_of             the middles of the cells of a grid over a view
fitted               the fitted model of a scene; the last few are remembered
"""

from margrove.studio.pictures.curves import curve_from_values, curve_of, places_of
from margrove.studio.pictures.grids import Cells, cells_of
from margrove.studio.pictures.picture import picture_of
from margrove.studio.pictures.planes import plane_from_values, plane_of
from margrove.studio.pictures.scene_fits import Fitted, fitted

__all__ = [
    "Cells",
    "Fitted",
    "cells_of",
    "curve_from_values",
    "curve_of",
    "fitted",
    "picture_of",
    "places_of",
    "plane_from_values",
    "plane_of",
]
