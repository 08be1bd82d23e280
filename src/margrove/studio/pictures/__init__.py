"""From a scene to what the page draws: surfaces over the plane, curves, figures.

picture_of           the whole picture of a scene
plane_of             predictions of a fitted classifier over the plane
plane_from_values    the same from values on a grid, for intermediate models
curve_of             predictions of a fitted regressor over one feature
curve_from_values    the same from values
cells_of             the centres of the cells of a grid over a view
fitted               the fitted model of a scene; the last few are cached

curves            predictions of a regressor over one feature, as the page draws them
figures           numbers beside a picture: errors, counts, and the certificate of the solution
grids             grids over a view: cells, and the points in their centres
member_pictures   predictions of single members of an ensemble
picture           the picture of a scene: a fit, and what the page draws of it
planes            predictions of a classifier over two features, with hulls and tree regions
point_facts       facts about each point: dual variable, slack, kind of support vector, weight
scene_fits        fits of the learner of a scene
surfaces          values and classes on all cells of a grid, from one call of a public method
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
