"""How `describe` reads each family of models.

boosting                  how `describe` reads AdaBoost
boosting_stages           a boosted model stage by stage: the data behind its pictures
expansions                machines f(x) = sum_i c_i K(x_i, x) + b
forest_diagnostics        figures of a forest and its rows
forests                   everything about a forest or a bagged ensemble
gradient_boosting         everything about a model of gradient boosting
gradient_stages           gradient boosting round by round
importances               features by importance, with their spread where it is known
linear_machines           how LinearSVC and LinearSVR are described
perceptrons               how Perceptron and KernelPerceptron are described
split_gains               the gain of each threshold of each feature, if all rows were split there
strongest                 the features with the largest weights, by name, of any linear model
support_vector_machines   how SVC, NuSVC, SVR, NuSVR and OneClassSVM are described, with the proof
                          of their certificate
tree_sketches             a tree to be drawn: the nodes that are shown
trees                     how `describe` reads decision trees, and the data for pictures of whole
                          trees
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
