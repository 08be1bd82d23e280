"""Pictures of models: boosting, forests, paths, tuning, comparisons.

boosting            pictures of AdaBoost: errors, margins, and rounds over two features
comparisons         compared models side by side, with their intervals
forests             pictures of forests: out-of-bag error, importances, proximities, intervals
gradient_boosting   pictures of gradient boosting: losses, importances, trees, stages
paths               machines over C, and scores over C and gamma
tuning              scores of autotune against a parameter
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
