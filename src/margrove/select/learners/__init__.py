"""The registry of learners: commands, studio, tuning, costs, model files and docs read it.

learner      Learner, an entry of the registry, and TaskEstimator, its estimator for one task
parameters   Parameter: a parameter that the studio shows, with its range or choices
builtin      margrove's own entries
registry     LEARNERS, register_learner, and functions that look entries up
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

import_modules()  # the modules import this package, so this must be the last line
