"""Step mode: the fit of a learner, one elementary step at a time.

    margin.perceptron               a mistake: the line before and after
    margin.smo                      a pair of dual variables, in their box
    margin.subgradient              a visit to a point that violates the margin
    margin.hull                     a move of the nearest points of two hulls
    trees.splits                    a leaf of a tree is split
    trees.pruning                   branches are pruned that gain less than the price of a leaf
    ensembles.member_steps          one more member votes
    ensembles.adaboost              a round: weights of points and of the new member
    ensembles.gradient_boosting     a round: a tree for the residuals

Each has a function `trace(scene)`, which fits the learner of the scene once and returns a `Trace`.
Intermediate models are estimators, too, which the library makes from fewer steps.

ensembles/    steps of ensembles: members of bagging and forests, rounds of boosting
margin/       steps of the perceptron and of the solvers of support vector machines
shown_trees   trees for step modes, in the format of the tree viewer
step_modes    the step modes: their titles, their learners, and the functions that trace them
traces        the trace of a fit: a description of each step
trees/        steps of growing and pruning a decision tree
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
