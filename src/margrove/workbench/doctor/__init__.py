"""The doctor: what is wrong with a table, and what fits to it will cost.

checks/           what can be wrong with columns, labels, rows and targets
column_figures    figures of all columns of a table at once
costs/            what a fit will cost, from a few small fits
diagnosis         the doctor: what is wrong with a table
examined_data     what the doctor's checks look at: table, target, and needs of the estimator
examined_target   the target as the doctor sees it: classes or numbers, and which rows have one
findings          what the doctor can find: a closed list of kinds, and one finding as a value
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
