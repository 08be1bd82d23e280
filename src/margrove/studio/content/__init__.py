"""What the page shows: scenes, presets, tuning maps, trees, tables of the user.

checks         checks of values that the page sends
lectures       contents of the lectures without points
presets        Presets: sets of points to start from, of the lectures or generated
python_code    a scene as a Python script that does the same with margrove alone
scenes         Scenes: points, a view, and a learner with its parameters, checked when the page
               sends them
table_points   a scene from a table: two of its columns
tree_views     trees for the tree viewer
tuning_maps    the map of C and gamma: accuracy of support vector machines by cross-validation
user_tables    the user's tables: their columns, a comparison of learners, a report
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
