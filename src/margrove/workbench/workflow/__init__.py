"""From a raw table to a model that was tested: the steps that the commands and the studio share.

tables         a built-in data set as a raw table; some rows of a task; the doctor's diagnosis
held_out_rows  rows to learn from and rows to test with
learners       estimators by the short names of the registry, as models of raw tables
compiling      kernels compiled before the first run, on all cores
comparison     learners compared on a table
scores         the score of a model on rows that it has not seen
fitted_models  one learner: tuned, calibrated, fitted, tested
plan           all of it: compare, choose, fit
origins        what a model file says about how its model was made
remarks        what fits have warned of, as a few sentences
observer       who is told how far the work is

Nothing here knows a terminal, a page or a server. Outcomes are dataclasses; errors are
`margrove.select.errors.InvalidRequestError` and `margrove.exceptions.InvalidDataError`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
