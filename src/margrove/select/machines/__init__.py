"""Searches over C and gamma that share their work: SVCCV, SVRCV, LinearSVCCV, GridSearchCV.

c_search        the values of C and gamma to try; predictions of the best machine
grid_search     GridSearchCV: scikit-learn's grid search with shared work for machines of margrove
linear_cv       LinearSVCCV: a linear machine whose C is cross-validated
svm_cv          SVCCV and SVRCV: kernel machines whose C and gamma are cross-validated
svm_paths       svm_path: kernel machines of ascending C, each started from the one before
svm_problems    a training set and its folds as dual problems of kernel machines
svm_search      cross-validation of kernel machines, on threads or in worker processes
machine_paths   all kernel machines of a grid over all folds, as one process
warm_paths      linear machines of ascending C by warm starts, fold by fold
cell_race       which cells can still win, for searches that drop the others
gram_series     the Gram matrices of several kernels over the same points
grid_cells      the scores of a grid of C and gamma, the best cell, the table of results
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
