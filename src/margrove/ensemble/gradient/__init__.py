"""Gradient boosting: classic, with exact splits, and by histograms.

boosted_trees        what gradient boosting models share
classic_estimators   GradientBoostingClassifier, GradientBoostingRegressor
early_stopping       when boosting is to stop: scores after each round
exact/               trees of classic gradient boosting, with exact splits
hist/                trees of histogram gradient boosting: bins, histograms, splits, rounds
hist_estimators      HistGradientBoostingClassifier, HistGradientBoostingRegressor
history              what happened in the rounds of gradient boosting, and what is wrong with it
losses/              the losses of gradient boosting, by name; each is a file of this folder
round_states         what rounds of gradient boosting leave behind, as plain values, and back
training_data        what gradient boosting is given
verbose_table        the table of rounds that `verbose` prints
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
