"""Probabilities that mean what they say: reliability and calibrate.

calibration           probabilities for any classifier, from scores of rows that it has not seen
reliability           whether probabilities mean what they say
reliability_figures   bins of predicted probabilities
score_maps            from scores of rows held out to probabilities
wilson                Wilson's interval of a share
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
