"""Searches over C and gamma that share their work: SVCCV, SVRCV, LinearSVCCV, GridSearchCV.

c_search        what the searches over C share: once fitted they are the machine that they chose
gram_series     one Gram matrix after another over the same points
grid_cells      the cells of a grid of C and gamma
grid_search     GridSearchCV: scikit-learn's
grids           values of C and gamma to search
linear_cv       LinearSVCCV, a linear machine whose C is cross-validated along a path
machine_paths   all machines of a grid of C and gamma over all folds, as one process
path_tasks      the paths of a grid as tasks of other processes
svm_cv          SVCCV and SVRCV, kernel machines whose C and gamma are cross-validated
svm_paths       the sequence of kernel machines over C, each found from the one before
svm_problems    training sets of kernel machines as points
svm_search      Cross-validation of kernel machines over C and gamma, with the work shared
warm_paths      machines over C by warm starts, fold by fold
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
