"""Histogram gradient boosting on a cluster; the trees are those of one machine, bit for bit.

estimators         HistGradientBoostingClassifier, HistGradientBoostingRegressor
cluster_table      the partitions of a fit: tasks on them, and worker groups that hold them
remote_rows        numbers of rows that stay on the workers
bins               the bins of columns, from the values of all partitions
bin_refinement     the same for columns with very many distinct values
coded_partitions   partitions as codes
rounds             rounds of boosting with the rows on workers
leader             the client's side of a worker group
remote_tree        a tree that is grown from sums of all workers
worker_program     the worker's side: sums over its rows
warmup             a small fit in one process that compiles all of these kernels
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
