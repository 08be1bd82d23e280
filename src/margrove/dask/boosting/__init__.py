"""Histogram gradient boosting on a cluster: the trainer of one machine, on every worker.

estimators     HistGradientBoostingClassifier, HistGradientBoostingRegressor
remote_rows    numbers of rows that stay on the workers
rounds         the rounds that the workers report, and a new start if one of them is lost
program        what a worker runs: the usual rounds on its rows
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
