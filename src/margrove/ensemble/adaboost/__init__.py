"""AdaBoost: rounds that give misclassified rows more weight.

classifier            AdaBoostClassifier
regressor             AdaBoostRegressor
classifier_training   the fit of AdaBoostClassifier
boosted_ensemble      base class of both
training_data         checks of X, and which trees the fast learners support
algorithms            the algorithms of the AdaBoost family: weights of members and rows
rounds                the rounds of the classifier: processes for `slices.drive`, and their history
r2_rounds             the rounds of the regressor: AdaBoost.R2 (Drucker, 1997)
weak_learners         the protocol of learners; learners for any estimator and for trees
members               the fitted members: estimators, packed trees or stumps; their plain values
deep_trees            a learner for trees of any depth, grown like the trees of a forest
level_trees           a learner for small trees, grown level by level
level_search          the best splits of all nodes of a level
stumps                boosting of stumps: all rounds in one compiled loop
stump_kernels         the compiled functions of that loop
stump_search          the search for the best stump in histograms and sorted orders
stump_tables          the table that stumps and small trees are grown on
weighted_medians      weighted medians of the members' predictions
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
