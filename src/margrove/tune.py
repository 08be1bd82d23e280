"""Tuning: regularisation paths, grids and cross-validation that share their work.

SVCCV, SVRCV, LinearSVCCV    machines that choose their own C and gamma
GridSearchCV                 scikit-learn's grid search, faster for margrove's machines
svm_path                     kernel machines of ascending C
autotune                     one call that chooses the main parameters of an estimator
"""

from margrove.select.autotune import autotune
from margrove.select.machines import SVCCV, SVRCV, GridSearchCV, LinearSVCCV, svm_path

__all__ = ["SVCCV", "SVRCV", "GridSearchCV", "LinearSVCCV", "autotune", "svm_path"]
