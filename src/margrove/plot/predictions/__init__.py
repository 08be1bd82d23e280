"""Pictures of predictions and of their quality.

calibration   reliability diagrams: probabilities against what came true
dependence    how the answer changes with a column
mistakes      pictures of errors: residuals and worst mistakes
predictions   pictures of classifiers: confusion, ROC and precision-recall curves, margins
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
