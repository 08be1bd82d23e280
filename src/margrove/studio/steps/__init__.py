"""Step mode: a learner at work, one elementary step at a time.

    margin.perceptron               a mistake: the line before and after
    margin.smo                      a pair of dual variables, in their box
    margin.subgradient              a visit to a point that violates the margin
    margin.hull                     a move of the nearest points of two hulls
    trees.splits                    a leaf of a tree is split
    trees.pruning                   branches that are not worth the price of their leaves
    ensembles.member_steps          one more tree votes
    ensembles.adaboost              a round: weights of points and of the new rule
    ensembles.gradient_boosting     a round: a tree for the residuals

Each has a function `trace(scene)`, which fits the learner of the scene once and returns a `Trace`.
Intermediate models are estimators too: the library makes them from fewer steps.
"""

from margrove.studio.steps.step_modes import STEPS, StepMode, step_of, steps_of
from margrove.studio.steps.traces import MOST_STEPS

__all__ = ["MOST_STEPS", "STEPS", "StepMode", "step_of", "steps_of"]
