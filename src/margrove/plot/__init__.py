"""Pictures of fitted models, drawn from the data of `margrove.facts`.

Of a model
    decision_boundary       regions, boundary, margins and support vectors over two features
    coefficients            the features with the largest weights of a linear model
    importances             the most important features, with intervals if there are any
    partial_dependence      predictions if one column changes
    support_vectors         the number of support vectors of each kind
    multipliers             the multiplier of each row against its margin

Of predictions
    confusion_matrix        how often each class was predicted as each
    roc_curve               true against false positive rate of each class
    precision_recall_curve  precision against recall of each class
    reliability_diagram     predicted probabilities against observed shares
    margin_distribution     how far rows are on the right side of the decision
    residuals               errors of a regressor
    worst_mistakes          the rows with the largest errors
    prediction_intervals    prediction intervals of a forest, sorted, and their coverage

Of margins
    loss_functions          losses against the margin
    perceptron_steps        weights before and after each mistake
    separating_lines        many lines that separate two classes, and the best one
    hulls                   convex hulls, their nearest points, and the line in the middle
    distances, slacks       rows and the line of a linear machine, or its margins
    smo_box                 steps of SMO in their box
    coordinate_ascent       the dual, one coordinate at a time
    circle_to_line          a circle that becomes a line if features are squared
    effect_of_c_and_gamma   machines that differ in C and gamma
    svm_and_bayes           a machine beside the best possible classifier

Of trees
    tree                    a decision tree, node by node
    tree_svg, tree_html     the same as text, without matplotlib
    regions                 the rectangles of a decision tree over two features
    tree_growth             the same, leaf by leaf
    regression_surface      predictions of a regression tree over one or two features
    regression_blocks       the same as heights over two features
    split_children          the children of a split by each categorical feature
    gain_against_threshold  the gain of each threshold
    impurity_curves         three measures of impurity of two classes
    error_against_size      training and test error of a tree as it is pruned

Of ensembles
    bootstrap_histogram     a statistic over bootstrap samples
    bagged_boundaries       boundaries of single members, and of their vote
    member_votes            the prediction of each member for one row
    oob_curve               out-of-bag error of a forest against its number of trees
    proximity_map           rows in a plane, near each other if a forest puts them into one leaf
    boosting_errors         errors of AdaBoost and their bounds, round by round
    boosting_margins        margins of rows after some numbers of rounds
    boosting_rounds         weights and predictions of each round, over two features
    boosting                one of these three, by name
    loss_curve              losses of gradient boosting, round by round
    gradient_importances    the most important features of gradient boosting
    gradient_tree           a tree of gradient boosting: what a round adds
    gradient_stages         predictions of gradient boosting over one feature after some rounds

Of tuning and comparing
    svm_path                support vectors, margin and objective of machines over C
    score_map               cross-validated scores over C and gamma
    tuning_curve            the candidates of autotune, and the chosen one
    compared_models         scores of compared models with their intervals

All but `tree_svg` and `tree_html` return a `Picture`: `axes` to continue drawing, `frame()` for the
data. Matplotlib is imported when something is drawn; `pip install "margrove[plot]"` installs it.

boundaries         decision regions of a classifier
coefficient_bars   the largest weights of a linear model as bars, a panel for each machine
drawing/           what all pictures share: panels, colours, the data behind a picture
lecture_pictures   pictures of the lectures, from `margrove.teaching`
models/            pictures of models: boosting, forests, paths, tuning, comparisons
predictions/       pictures of predictions and of their quality
trees/             pictures of decision trees
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
