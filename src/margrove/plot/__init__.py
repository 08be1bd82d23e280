"""Pictures of fitted models, drawn from what `margrove.facts` says about them.

    decision_boundary       regions, boundary, margins and support vectors over two features
    coefficients            the features with the largest weights of a linear model
    tree                    a decision tree, node by node
    tree_svg, tree_html     the same as text, without matplotlib
    regions                 the rectangles of a decision tree over two features
    regression_surface      what a regression tree says over one or two features
    gain_against_threshold  what each threshold would gain
    impurity_curves         three measures of impurity of two classes
    error_against_size      training and test error of a tree as it is pruned
    oob_curve               out-of-bag error of a forest against its number of trees
    importances             the features that matter most, with intervals where there are some
    proximity_map           rows in a plane, near each other where a forest finds them alike
    prediction_intervals    intervals of a forest of numbers, sorted, and what they cover
    boosting_errors         errors of a boosted model and what bounds them, round by round
    boosting_margins        how clearly rows are right after some numbers of rounds
    boosting_rounds         what each round saw and said, over two features
    boosting                one of these three, by name
    loss_curve              losses of gradient boosting, round by round
    gradient_importances    the features that gradient boosting split most by
    gradient_tree           a tree of gradient boosting: what a round adds
    gradient_stages         what gradient boosting says over one feature after some rounds
    svm_path                support vectors, margin and objective of machines over C
    score_map               cross-validated scores over C and gamma
    tuning_curve            what autotune tried, and what it chose
    compared_models         scores of compared models with their intervals
    reliability_diagram     probabilities against how often they come true

Matplotlib is imported when something is drawn; `pip install "margrove[plot]"` brings it.
"""

from margrove.plot.boosting_pictures import (
    boosting,
    boosting_errors,
    boosting_margins,
    boosting_rounds,
)
from margrove.plot.calibration_pictures import reliability_diagram
from margrove.plot.coefficients import coefficients
from margrove.plot.comparison_pictures import compared_models
from margrove.plot.decision_boundary import decision_boundary
from margrove.plot.forest_pictures import (
    importances,
    oob_curve,
    prediction_intervals,
    proximity_map,
)
from margrove.plot.gradient_pictures import (
    gradient_importances,
    gradient_stages,
    gradient_tree,
    loss_curve,
)
from margrove.plot.path_pictures import score_map, svm_path
from margrove.plot.tree import tree
from margrove.plot.tree_markup import tree_html, tree_svg
from margrove.plot.tree_pictures import (
    error_against_size,
    gain_against_threshold,
    impurity_curves,
    regions,
    regression_surface,
)
from margrove.plot.tuning_pictures import tuning_curve

__all__ = [
    "boosting",
    "boosting_errors",
    "boosting_margins",
    "boosting_rounds",
    "coefficients",
    "compared_models",
    "decision_boundary",
    "error_against_size",
    "gain_against_threshold",
    "gradient_importances",
    "gradient_stages",
    "gradient_tree",
    "importances",
    "impurity_curves",
    "loss_curve",
    "oob_curve",
    "prediction_intervals",
    "proximity_map",
    "regions",
    "regression_surface",
    "reliability_diagram",
    "score_map",
    "svm_path",
    "tree",
    "tree_html",
    "tree_svg",
    "tuning_curve",
]
