"""Pictures of fitted models, drawn from what `margrove.facts` says about them.

Of a model
    decision_boundary       regions, boundary, margins and support vectors over two features
    coefficients            the features with the largest weights of a linear model
    importances             the features that matter most, with intervals where there are some
    partial_dependence      what a model says as one column changes
    support_vectors         how many support vectors of each kind
    multipliers             the multiplier of each row against its margin

Of what a model predicts
    confusion_matrix        how often each class was taken for each
    roc_curve               what is found of each class against false alarms
    precision_recall_curve  what is found against how much of it is right
    reliability_diagram     probabilities against how often they come true
    margin_distribution     how clearly rows are on their side
    residuals               errors of a model of numbers
    worst_mistakes          the rows that a model is most wrong about
    prediction_intervals    intervals of a forest of numbers, sorted, and what they cover

Of margins
    loss_functions          losses against the margin
    perceptron_steps        weights before and after each mistake
    separating_lines        many lines that separate two classes, and the best one
    hulls                   convex hulls, their nearest points, and the line in the middle
    distances, slacks       rows and the line of a linear machine, or its margins
    smo_box                 steps of SMO in their box
    coordinate_ascent       the dual, one coordinate at a time
    circle_to_line          what squares of the features do
    effect_of_c_and_gamma   machines that differ in C and gamma
    svm_and_bayes           a machine beside the best possible classifier

Of trees
    tree                    a decision tree, node by node
    tree_svg, tree_html     the same as text, without matplotlib
    regions                 the rectangles of a decision tree over two features
    tree_growth             the same, leaf by leaf
    regression_surface      what a regression tree says over one or two features
    regression_blocks       the same as heights over two features
    split_children          what a split by each categorical feature leaves
    gain_against_threshold  what each threshold would gain
    impurity_curves         three measures of impurity of two classes
    error_against_size      training and test error of a tree as it is pruned

Of ensembles
    bootstrap_histogram     a statistic over bootstrap samples
    bagged_boundaries       boundaries of single members, and of their vote
    member_votes            what each member says of one row
    oob_curve               out-of-bag error of a forest against its number of trees
    proximity_map           rows in a plane, near each other where a forest finds them alike
    boosting_errors         errors of a boosted model and what bounds them, round by round
    boosting_margins        how clearly rows are right after some numbers of rounds
    boosting_rounds         what each round saw and said, over two features
    boosting                one of these three, by name
    loss_curve              losses of gradient boosting, round by round
    gradient_importances    the features that gradient boosting split most by
    gradient_tree           a tree of gradient boosting: what a round adds
    gradient_stages         what gradient boosting says over one feature after some rounds

Of tuning and comparing
    svm_path                support vectors, margin and objective of machines over C
    score_map               cross-validated scores over C and gamma
    tuning_curve            what autotune tried, and what it chose
    compared_models         scores of compared models with their intervals

All but the two of text return a `Picture`: `axes` to go on drawing, `frame()` for what is drawn.
Matplotlib is imported when something is drawn; `pip install "margrove[plot]"` brings it.
"""

from margrove.plot.coefficients import coefficients
from margrove.plot.decision_boundary import decision_boundary
from margrove.plot.models.boosting import (
    boosting,
    boosting_errors,
    boosting_margins,
    boosting_rounds,
)
from margrove.plot.models.comparisons import compared_models
from margrove.plot.models.forests import (
    importances,
    oob_curve,
    prediction_intervals,
    proximity_map,
)
from margrove.plot.models.gradient_boosting import (
    gradient_importances,
    gradient_stages,
    gradient_tree,
    loss_curve,
)
from margrove.plot.models.paths import score_map, svm_path
from margrove.plot.models.tuning import tuning_curve
from margrove.plot.picture import Picture
from margrove.plot.predictions.calibration import reliability_diagram
from margrove.plot.predictions.dependence import partial_dependence, support_vectors
from margrove.plot.predictions.mistakes import residuals, worst_mistakes
from margrove.plot.predictions.predictions import (
    confusion_matrix,
    margin_distribution,
    precision_recall_curve,
    roc_curve,
)
from margrove.plot.trees.growth_pictures import (
    error_against_size,
    gain_against_threshold,
    impurity_curves,
)
from margrove.plot.trees.regions import regions, regression_surface
from margrove.plot.trees.svg import tree_html, tree_svg
from margrove.plot.trees.tree_picture import tree
from margrove.teaching.pictures.bagging import bagged_boundaries, bootstrap_histogram, member_votes
from margrove.teaching.pictures.losses import loss_functions
from margrove.teaching.pictures.machines import circle_to_line, effect_of_c_and_gamma, svm_and_bayes
from margrove.teaching.pictures.margins import distances, hulls, separating_lines, slacks
from margrove.teaching.pictures.perceptron import perceptron_steps
from margrove.teaching.pictures.smo import coordinate_ascent, multipliers, smo_box
from margrove.teaching.pictures.splits import regression_blocks, split_children, tree_growth

__all__ = [
    "Picture",
    "bagged_boundaries",
    "boosting",
    "boosting_errors",
    "boosting_margins",
    "boosting_rounds",
    "bootstrap_histogram",
    "circle_to_line",
    "coefficients",
    "compared_models",
    "confusion_matrix",
    "coordinate_ascent",
    "decision_boundary",
    "distances",
    "effect_of_c_and_gamma",
    "error_against_size",
    "gain_against_threshold",
    "gradient_importances",
    "gradient_stages",
    "gradient_tree",
    "hulls",
    "importances",
    "impurity_curves",
    "loss_curve",
    "loss_functions",
    "margin_distribution",
    "member_votes",
    "multipliers",
    "oob_curve",
    "partial_dependence",
    "perceptron_steps",
    "precision_recall_curve",
    "prediction_intervals",
    "proximity_map",
    "regions",
    "regression_blocks",
    "regression_surface",
    "reliability_diagram",
    "residuals",
    "roc_curve",
    "score_map",
    "separating_lines",
    "slacks",
    "smo_box",
    "split_children",
    "support_vectors",
    "svm_and_bayes",
    "svm_path",
    "tree",
    "tree_growth",
    "tree_html",
    "tree_svg",
    "tuning_curve",
    "worst_mistakes",
]
