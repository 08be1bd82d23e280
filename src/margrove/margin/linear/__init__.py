"""Linear support vector machines: LinearSVC, LinearSVR, their paths and certificates.

certificates     proof of how good a fitted linear machine is, ours or scikit-learn's
linear_machine   what LinearSVC and LinearSVR share
linear_svc       linearSVC
linear_svr       linearSVR
path             regularisation paths of linear machines
problems         linear machines: one problem in two forms, and short builders for each loss
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
