"""compare: models on the same folds, tests that allow for overlapping folds, and blends.

comparison             compare
compared_models        the models of a comparison with their names, and the score
examples               the rows of a comparison, their folds, and fits to some of them
fits                   Comparing: fits all models to all folds, on threads or in worker processes
convergence_warnings   which fits warned that they had not converged
row_scores             scores that are means over rows, row by row
score_statistics       scores with intervals, and a test of each pair
resampled_tests        the corrected resampled t-test, Holm's adjustment, resampling
result                 Comparison: scores, differences of pairs, and both in words
blending               blends of models: voting, selected votes, stacking
greedy_selection       greedy selection of the members of an average
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
