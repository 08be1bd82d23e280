"""The learners: one table that commands, studio, tuning, costs, model files and docs read.

learner      Learner, the entry of the table, and TaskEstimator, a learner for one task
parameters   Parameter: what can be set, between which ends
builtin      margrove's own entries
registry     LEARNERS, register_learner, and looking entries up
"""

from margrove.select.learners.learner import Learner, Task, TaskEstimator
from margrove.select.learners.parameters import Choice, Parameter, Value, When
from margrove.select.learners.registry import (
    LEARNERS,
    estimator_named,
    import_modules,
    learner_named,
    learner_of_class,
    learners_at,
    learners_table,
    register_learner,
    require_modules,
    unregister_learner,
)

__all__ = [
    "LEARNERS",
    "Choice",
    "Learner",
    "Parameter",
    "Task",
    "TaskEstimator",
    "Value",
    "When",
    "estimator_named",
    "learner_named",
    "learner_of_class",
    "learners_at",
    "learners_table",
    "register_learner",
    "require_modules",
    "unregister_learner",
]

import_modules()  # they import this package, so all names must be there
