"""Lessons about the bootstrap, bagging, forests and boosting.

adaboost_bound          the bound on the training error of AdaBoost
adaboost_by_hand        ten points: AdaBoost by hand
bagging_and_forests     Bagging, and forests
bootstrap_of_a_median   the bootstrap of a median
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
