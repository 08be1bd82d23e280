"""How `describe` reads each family of models.

boosting                  AdaBoost
boosting_stages           AdaBoost round by round: the data behind its pictures
expansions                kernel machines f(x) = sum_i c_i K(x_i, x) + b
forest_diagnostics        out-of-bag error by trees, proximities in a plane, intervals
forests                   forests and bagged ensembles
gradient_boosting         gradient boosting
gradient_stages           gradient boosting round by round
importances               features by importance, with intervals if they are known
linear_machines           LinearSVC and LinearSVR
perceptrons               Perceptron and KernelPerceptron
split_gains               the gain of each threshold of each feature, if all rows are split there
strongest                 the features with the largest weights of any linear model
support_vector_machines   SVC, NuSVC, SVR, NuSVR and OneClassSVM
tree_sketches             the nodes of a tree as a drawing shows them
trees                     decision trees: their facts, regions and pruning errors
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
