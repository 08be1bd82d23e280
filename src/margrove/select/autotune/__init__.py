"""autotune: for every family of estimators the search that is cheap and right.

automatic                 `autotune`: one call that picks what matters most for each kind of
                          estimator
boosting                  Boosting: how many rounds, from the mean of the folds' curves
forests                   forests and bags: how many trees, and how many features they look at
grids                     learners that bring a grid of values to try
linear_machines           linear machines: the price C of mistakes, along a path for each fold
perceptrons               Perceptrons: how often to go through the rows, and whether to average on
                          the way
scores                    scores of fitted models on rows held out
support_vector_machines   support vector machines: the price C (or nu) and the width gamma of the
                          kernel
task                      what a family of estimators is given to tune
trees                     decision trees: how far to prune them, by cross-validation
tuning                    what tuning has tried and chosen, and how a choice is made from scores
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
