"""The boundary: whatever users hand in becomes canonical arrays here, or an error that helps.

Inside the library
    X               C-contiguous float64 or float32 array, or CSR with sorted, unique column
                    indices, always finite unless asked otherwise
    y               int64 codes into `classes`, or float64 targets
    sample_weight   float64, finite, >= 0, at least one > 0

scikit-learn's validation does what it does well; this adds what it lacks: a structure check of
sparse matrices (compiled code trusts their indices), Arrow tables and lazy frames, errors that
name row and column, labels that survive NumPy's fixed-width strings, and no side effects: nothing
is written to an estimator before a fit has succeeded.

canonical       the canonical form of a training set: the law behind `sample_weight`
coded_tables    any table as a matrix of numbers, and what its columns were before
columns         the columns of any table as arrays: numbers, labels or dates
date_parts      dates as numbers: the parts that calendars and clocks show, and days since 1970
frames          dataframes of any library
labels          y: class labels as codes that survive any round trip, and regression targets
result_frames   results as tables of pandas, which is imported when one is asked for
rows            x as compiled code sees it
scan            one pass over X for what every fit needs to know about each row
seeds           one seed from whatever is given as `random_state`
sparse          sparse matrices: every index is checked before compiled code
tables          X: arrays of any layout and type
training        X, y and both kinds of weight together, for a fit of all rows or of one batch of a
                stream
weights         weights of rows and of classes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
