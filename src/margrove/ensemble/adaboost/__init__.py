"""AdaBoost: rounds that give misclassified rows more weight.

algorithms         the algorithms of the AdaBoost family: what a round makes of a member's answers
boosted_ensemble   what boosted models share
classifier         adaBoostClassifier
deep_trees         trees of any depth for boosting, grown as those of forests are
level_trees        small trees for boosting, level by level, on the tables that stumps read
member_states      members of boosted models as plain values, and back
r2_rounds          AdaBoost.R2 (Drucker, 1997), round by round
regressor          adaBoostRegressor
rounds             Boosting, round by round: two processes for `slices.drive`, and the record that
                   they leave
stump_tables       tables as boosted stumps read them
stumps             boosting of stumps: all rounds in one compiled loop
training_data      what boosting is given: X as its learner takes it, labels or numbers, weights
weak_learners      learners that are asked again and again
weighted_medians   weighted medians of what members say of a row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
