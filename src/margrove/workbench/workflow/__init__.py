"""From a raw table to a tested model: the steps that the commands and the studio share.

plan           run_workflow: compare learners, choose one, fit and test it
tables         a built-in data set as a raw table; some rows of a task; the doctor's diagnosis
held_out_rows  training rows and test rows, and the number of folds
learners       estimators by the names of the registry, as models of raw tables
compiling      compiles kernels before the first run, on all cores
comparison     compares learners on a table
fitted_models  one learner: tuned, calibrated, fitted, tested; what a model file says about it
scores         the score of a model on rows that it has not seen
remarks        warnings of fits, as a few sentences
observer       Observer: gets notes and the progress of the work

This folder knows no terminal, page or server. Outcomes are dataclasses; errors are
`margrove.select.errors.InvalidRequestError` and `margrove.exceptions.InvalidDataError`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
