"""Gradient boosting: classic, with exact splits, and by histograms.

classic_estimators   GradientBoostingClassifier, GradientBoostingRegressor
hist_estimators      HistGradientBoostingClassifier, HistGradientBoostingRegressor
classic_boosting     base class of the classic estimators
hist_boosting        base class of the histogram estimators
boosted_trees        base classes of all of them: fit and predictions
training_data        checked table, targets and weights; random draws of rows
losses/              the losses, one file each, with their registry
exact/               trees with exact splits, and the rounds of the classic estimators
hist/                trees on binned features, and the rounds of the histogram estimators
early_stopping       scores after each round, and when to stop
pieced_rows          a table in pieces that are read when they are needed
joint_selection      the k-th smallest of numbers that several machines have
scoring              the parameter `scoring` of the histogram estimators
history              the record of the rounds, and warnings about failures
round_states         rounds as plain values for checkpoints, and back
verbose_table        the table of rounds that `verbose` prints
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
