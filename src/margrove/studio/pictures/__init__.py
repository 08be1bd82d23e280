"""From a scene to what the page draws: surfaces over the plane, curves, figures.

picture_of           all of it, for a scene
plane_of             what a fitted classifier says over the plane
plane_from_values    the same from values on a grid, for states on the way
curve_of             what a fitted regressor says over one feature
curve_from_values    the same from values
cells_of             the middles of the cells of a grid over a view
fitted               the fitted model of a scene; the last few are remembered

curves            predictions of a regressor over one feature, as the page draws them
figures           numbers beside a picture: errors, counts, and the certificate of the solution
grids             grids over a view: cells, and the points in their middles
hulls             convex hulls of two separable classes, beside the line of a linear machine
member_pictures   predictions of single members of an ensemble
picture           the picture of a scene: a fit, and all that the page draws of it
planes            predictions of a classifier over two features, as the page draws them
point_facts       facts about each point: dual variable, slack, kind of support vector, weight
scene_fits        fits of the learner of a scene
surfaces          values and classes on all cells of a grid, from one call of a public method
tree_regions      the rectangles of a single tree, within a view
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
