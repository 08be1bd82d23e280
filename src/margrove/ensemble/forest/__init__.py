"""Random forests and extremely randomised trees, and measurements of fitted forests.

estimators           the four estimators
forest_classifier    base class for classification
forest_regressor     base class for regression, with intervals and quantiles
forest               base class of both: parameters and fit
tree_collection      the trees of a fitted forest: prediction, slicing, adding
rows                 the rows of a fit, in this process
training_data        the data that trees are grown from: codes, targets, samples
grower               grows the trees on several cores; a process for `slices.drive`
registered_trees     grows trees by a registered criterion, see `register_criterion`
out_of_bag           sums of out-of-bag predictions, and the error after each tree
intervals            quantiles, variances and prediction intervals
evaluation_data      the rows that a fitted forest is measured on
importances          importances of features, measured on out-of-bag rows
importance_kernels   compiled loops for importances and proximities
proximity            similarity of rows: how often they are in the same leaf
tree_correlation     strength and correlation of the trees
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
