"""compare: models on the same folds, with statistics that know that folds overlap, and blends.

blending           blends of models: votes, votes with selected weights, and stacking
comparison         comparison of models: the same folds for all
contestants        who takes part in a comparison, and by which score
early_ends         which fits said that they had not converged
examples           rows of a comparison, their folds, and the fit of a model to some of them
fits               fits of all models to all folds, on threads and in slices, and what came of
                   them
greedy_selection   greedy selection: which members, taken how often, make the best average
judging            scores of all models, with intervals, and tests of each pair
recorded_answers   recorded predictions as an estimator
resampled_tests    whether two learners differ, judged by scores of the same cross-validation
result             results of a comparison: scores, differences of pairs, and both in words
row_scores         scores that are means over rows, row by row
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
