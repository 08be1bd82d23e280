"""Fitted models both ways between scikit-learn and margrove.

from_sklearn   a fitted estimator of scikit-learn's, as one of ours
to_sklearn     the way back; each estimator has it as a method

adaboost                 AdaBoost: members and their weights
float32_thresholds       thresholds for float64 values that split them as float32 ones split
                         rounded values
forests                  random forests and extremely randomised trees
gradient_boosting        gradient boosting with exact splits
hist_gradient_boosting   gradient boosting on binned features
linear                   linear machines: weights and intercepts
machines                 support vector machines: LIBSVM's support vectors
pairs                    what converting one kind of estimator takes
patching                 programs written for scikit-learn run on margrove, without a change
registry                 `from_sklearn` and `to_sklearn`
replacements             the classes that stand in for scikit-learn's while it is patched
trees                    decision trees: scikit-learn's nodes as ours, and back
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
