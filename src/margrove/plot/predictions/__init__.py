"""Pictures of predictions and of their quality.

calibration   reliability diagrams: predicted probabilities against observed shares
dependence    predictions if a column changes, and kinds of support vectors
mistakes      pictures of errors: residuals and worst mistakes
predictions   pictures of classifiers: confusion, ROC and precision-recall curves, margins
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
