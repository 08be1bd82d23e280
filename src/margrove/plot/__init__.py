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

boundaries         decision regions of a classifier
coefficient_bars   the largest weights of a linear model as bars, a panel for each machine
drawing/           what all pictures share: panels, colours, the data behind a picture
lecture_pictures   pictures of the lectures, which `margrove.plot` offers beside its own
models/            pictures of models: boosting, forests, paths, tuning, comparisons
predictions/       pictures of predictions and of their quality
trees/             pictures of decision trees
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
