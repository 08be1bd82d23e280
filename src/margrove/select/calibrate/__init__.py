"""Calibration of probabilities: reliability measures it, calibrate improves it.

calibration           calibrate: probabilities for any classifier, from scores of held-out rows
score_maps            sigmoid and isotonic maps from scores to probabilities, and their losses
reliability           reliability: predicted probabilities against observed frequencies
reliability_figures   bins of probabilities, the reliability curve, the Brier score, Wilson's
                      interval
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
