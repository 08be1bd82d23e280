"""Random forests and extremely randomised trees, and what can be measured of them.

class_forest         forests for classification
estimators           random forests and extremely randomised trees
forest               what the four forests share: their parameters, and growing
grower               grows the trees of a forest on several cores; a process for `slices.drive`
importance_kernels   compiled loops of the studies of forests
importances          what a fitted forest makes of its features
intervals            how sure a forest of numbers is
number_forest        forests for regression
out_of_bag           what the trees of a forest say of the rows that they have not seen
proximity            how alike rows are to a forest
registered_trees     trees of a forest by a registered criterion: see `register_criterion`
studied_rows         the rows that a forest is studied on
training_data        what the trees of a forest are grown from
tree_collection      the trees of a fitted forest: rows walk through them, and forests are values
tree_correlation     why a forest is better than its trees
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
