"""Choosing and judging models: paths, grids, cross-validation, autotune, compare, calibrate.

autotune/    autotune: one call that chooses the main parameters of an estimator
calibrate/   reliability and calibrate: how far probabilities can be trusted, and better ones
compare/     compare: several models on the same folds
held_out/    folds, estimators fitted to their training rows, scores of the held-out rows
learners/    the registry of learners
machines/    searches over C and gamma that share their work
errors       InvalidRequestError and ComparisonTimeoutError
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
