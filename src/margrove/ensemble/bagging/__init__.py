"""Bagging: estimators of any kind, fitted to samples of the rows and columns.

answers            what one member of an ensemble says of rows
bagged_ensemble    what the two baggings share: drawing, fitting, asking, figures out of bag
estimator_states   fitted members of ensembles as plain values, and back, as model files have them
estimators         BaggingClassifier, BaggingRegressor
members            the members of a bagged ensemble
mixed_tables       x for an ensemble of any estimators
samples            which rows and which columns each member of an ensemble is given
seeded_clones      clones whose random numbers can be repeated
votes              what the members of an ensemble say, put together
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
