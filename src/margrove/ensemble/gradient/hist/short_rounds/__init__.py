"""Rounds that take less time than the Python around them: small tables, in one compiled call.

coded_losses     the usual losses by a code, for compiled loops
few_rows         a tree of few rows, by sorted lists instead of histograms
rounds_at_once   runs several rounds
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
