"""From a raw table to a model that was tested: the steps that the commands and the studio share.

tables         a built-in data set as a raw table; some rows of a task; the doctor's diagnosis
held_out       rows to learn from and rows to test with
learners       estimators by the short names of the registry, as models of raw tables
compiling      kernels compiled before the first run, on all cores
comparison     learners compared on a table
scores         the score of a model on rows that it has not seen
fitted_models  one learner: tuned, calibrated, fitted, tested
plan           all of it: compare, choose, fit
provenance     what a model file says about how its model was made
remarks        what fits have warned of, as a few sentences
observer       who is told how far the work is

Nothing here knows a terminal, a page or a server. Outcomes are dataclasses; errors are
`margrove.select.refusals.InvalidRequestError` and `margrove.exceptions.InvalidDataError`.
"""

from margrove.workbench.workflow.comparison import TableComparison, compare_learners
from margrove.workbench.workflow.fitted_models import FittedModel, fit_learner
from margrove.workbench.workflow.held_out import HeldOutRows, held_out
from margrove.workbench.workflow.learners import BASELINE, compared_learners, make_learner
from margrove.workbench.workflow.observer import Observer, SilentObserver
from margrove.workbench.workflow.plan import Outcome, Plan, run_workflow
from margrove.workbench.workflow.provenance import digest_of, provenance
from margrove.workbench.workflow.scores import HeldOutScore, score_predictions
from margrove.workbench.workflow.tables import built_in_table, diagnosis_of, part_of, sample_of

__all__ = [
    "BASELINE",
    "FittedModel",
    "HeldOutRows",
    "HeldOutScore",
    "Observer",
    "Outcome",
    "Plan",
    "SilentObserver",
    "TableComparison",
    "built_in_table",
    "compare_learners",
    "compared_learners",
    "diagnosis_of",
    "digest_of",
    "fit_learner",
    "held_out",
    "make_learner",
    "part_of",
    "provenance",
    "run_workflow",
    "sample_of",
    "score_predictions",
]
