"""Conversion of fitted models from and to scikit-learn, and programs that run on margrove instead.

from_sklearn   converts a fitted estimator of scikit-learn
to_sklearn     converts a fitted estimator of margrove; each estimator has it as a method

adaboost                 AdaBoost: members and their weights
forests                  random forests and extremely randomised trees
gradient_boosting        gradient boosting with exact splits
hist_gradient_boosting   gradient boosting on binned features
linear                   linear machines: weights and intercepts
machines                 support vector machines: LIBSVM's support vectors
pairs                    how one class of estimators is converted
patching                 lets unchanged programs for scikit-learn run on margrove
registry                 `from_sklearn` and `to_sklearn`
replacements             the classes that replace those of scikit-learn while it is patched
trees                    decision trees: nodes and thresholds
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
