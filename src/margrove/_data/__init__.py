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
"""

from margrove._data.canonical import CanonicalForm, canonical_form, given_order
from margrove._data.frames import collected, column_to_float, feature_names, is_frame
from margrove._data.labels import Labels, check_labels, check_targets
from margrove._data.rows import Rows, kernel_rows, read_only
from margrove._data.scan import RowScan, scan_rows
from margrove._data.seeds import seed_of
from margrove._data.tables import (
    ScannedTable,
    Table,
    check_and_scan,
    check_table,
    count_rows,
    like_fitted,
    numeric_matrix,
    require_finite,
)
from margrove._data.training import (
    Batch,
    OneClassLeftError,
    TargetBatch,
    TrainingLabels,
    check_batch,
    check_target_batch,
    check_training_labels,
)
from margrove._data.weights import check_weights, class_factors, moderate

__all__ = [
    "Batch",
    "CanonicalForm",
    "Labels",
    "OneClassLeftError",
    "RowScan",
    "Rows",
    "ScannedTable",
    "Table",
    "TargetBatch",
    "TrainingLabels",
    "canonical_form",
    "check_and_scan",
    "check_batch",
    "check_labels",
    "check_table",
    "check_target_batch",
    "check_targets",
    "check_training_labels",
    "check_weights",
    "class_factors",
    "collected",
    "column_to_float",
    "count_rows",
    "feature_names",
    "given_order",
    "is_frame",
    "kernel_rows",
    "like_fitted",
    "moderate",
    "numeric_matrix",
    "read_only",
    "require_finite",
    "scan_rows",
    "seed_of",
]
