"""Bagging: estimators of any kind, fitted to samples of the rows and columns.

bagged_ensemble    base class of the two estimators: drawing, fitting, predicting, out-of-bag scores
estimator_states   fitted members as plain values for checkpoints, and back
estimators         BaggingClassifier, BaggingRegressor
members            the members of an ensemble: how they are made and fitted
mixed_tables       checks of X for an ensemble of any estimators: numbers or labels
predictions        predictions of the members, and their means and votes
samples            the rows and columns that each member is fitted on
seeded_clones      clones of an estimator with reproducible random states
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
