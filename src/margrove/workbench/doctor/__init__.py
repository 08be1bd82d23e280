"""The doctor: checks of a table before learning, and estimates of the cost of fits.

diagnosis         doctor, and its result, the Diagnosis
findings          Finding: one problem; KINDS, the list of all kinds of problems
checks/           checks of columns, labels, rows and targets
costs/            estimates of the time and memory of a fit, from a few small fits
examined_data     ExaminedData: what the checks get; the needs of an estimator
examined_target   ExaminedTarget: classes or numbers, and which rows have a target
system            system_facts: versions, processor, where machine code comes from
column_figures    missing values, distinct values, means and spreads of all columns
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
