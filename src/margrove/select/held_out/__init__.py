"""Rows held out: folds, estimators fitted to the rest, and their scores.

answers          models whose answers about some rows are known
folds            folds of a cross-validation, as rows: the one place that makes them
learning_rows    rows held out: folds of any kind
machine_scores   how well the machines of a fold do on the rows that it holds out
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
