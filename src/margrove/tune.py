"""Tuning: regularisation paths, grids and cross-validation that share their work.

SVCCV, SVRCV, LinearSVCCV    machines that choose their own C and gamma
GridSearchCV                 scikit-learn's, which shares work where machines of ours are tuned
svm_path                     the machines of ascending C
autotune                     for every family what is cheap and right, and why
"""

from margrove.select.autotune import autotune
from margrove.select.machines import SVCCV, SVRCV, GridSearchCV, LinearSVCCV, svm_path

__all__ = ["SVCCV", "SVRCV", "GridSearchCV", "LinearSVCCV", "autotune", "svm_path"]
