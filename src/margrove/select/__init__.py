"""Choosing and judging models: paths, grids, cross-validation, autotune, compare, calibrate.

autotune/    autotune: for every family of estimators the search that is cheap and right
calibrate/   probabilities that mean what they say: reliability and calibrate
compare/     compare: models on the same folds
held_out/    rows held out: folds, estimators fitted to the rest, and their scores
learners/    the learners: one table that commands
machines/    searches over C and gamma that share their work
refusals     errors about what was asked for: a learner, folds, a test part, a time
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
