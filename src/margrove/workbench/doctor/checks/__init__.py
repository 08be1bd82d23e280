"""Checks of columns, labels, rows and targets: functions from `ExaminedData` to findings.

columns         columns, without regard to the target
labels          columns of labels
column_copies   columns that are equal, up to units or names of labels
rows            copies of rows, contradicting rows, empty rows
targets         classes or numbers of the target, and missing values that depend on it
leaks           columns that determine the target
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
