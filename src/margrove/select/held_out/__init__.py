"""Held-out rows: folds, estimators fitted to the training rows, and scores of the others.

folds            Fold: the training and test rows of a fold; everything that makes folds
learning_rows    LearningRows: X, y and weights of a cross-validation, and fits to some rows
answers          known_answers: stands in for a model whose predictions are known
machine_scores   FoldScorer: scores of kernel machines on the held-out rows of a fold
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
