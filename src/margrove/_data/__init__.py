"""The boundary: user data become canonical arrays here, or a helpful error.

Inside the library
    X               C-contiguous float64 or float32 array, or CSR with sorted, unique column
                    indices; finite, unless the learner accepts missing values
    y               int64 codes into `classes`, or float64 targets
    sample_weight   float64, finite, >= 0, at least one > 0

scikit-learn's validation does most of the work. This folder adds a structure check of sparse
matrices (compiled code trusts their indices), Arrow tables and lazy frames, errors that name row
and column, and labels that NumPy's fixed-width strings would change. Nothing is written to an
estimator before a fit has succeeded.

canonical       the canonical form of a training set: the rules behind `sample_weight`
class_tables    the classes of rows that are in several places
coded_tables    any table as a matrix of numbers, and what its columns were before
columns         the columns of any table as arrays: numbers, labels or dates; parts of dates
frames          dataframes of any library: reading, selecting, creating
labels          checks y: class labels as codes, and regression targets
rows            X in the form that compiled code reads, and a scan of its rows
seeds           one seed from any `random_state`
sparse          checks every index of a sparse matrix
tables          checks X: arrays of any layout and type, sparse matrices, dataframes
training        checks X, y and weights together, for `fit` and `partial_fit`
weights         checks weights of rows and of classes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
