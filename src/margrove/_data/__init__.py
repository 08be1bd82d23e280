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

from margrove._data.canonical import (
    CanonicalForm,
    canonical_form,
    canonical_form_by_hash,
    given_order,
)
from margrove._data.coded_tables import (
    CATEGORY,
    CodedColumn,
    CodedTable,
    ColumnKind,
    ColumnName,
    as_matrix,
    code_array,
    code_objects,
    code_series,
    code_table,
)
from margrove._data.columns import (
    EXACT_INTEGERS,
    Cells,
    DateCells,
    LabelCells,
    NumberCells,
    UnreadableCells,
    columns_of,
    holds_text,
    is_missing,
    merge_labels,
    type_of_cell,
)
from margrove._data.date_parts import DATE_PARTS, date_part
from margrove._data.frames import (
    as_series,
    collected,
    column_names,
    column_to_list,
    feature_names,
    frame_like,
    frame_to_objects,
    has_numbers_only,
    is_frame,
    library_of,
    replace_cells,
    select_columns,
    take_rows,
    to_polars,
)
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
    "CATEGORY",
    "DATE_PARTS",
    "EXACT_INTEGERS",
    "Batch",
    "CanonicalForm",
    "Cells",
    "CodedColumn",
    "CodedTable",
    "ColumnKind",
    "ColumnName",
    "DateCells",
    "LabelCells",
    "Labels",
    "NumberCells",
    "OneClassLeftError",
    "RowScan",
    "Rows",
    "ScannedTable",
    "Table",
    "TargetBatch",
    "TrainingLabels",
    "UnreadableCells",
    "as_matrix",
    "as_series",
    "canonical_form",
    "canonical_form_by_hash",
    "check_and_scan",
    "check_batch",
    "check_labels",
    "check_table",
    "check_target_batch",
    "check_targets",
    "check_training_labels",
    "check_weights",
    "class_factors",
    "code_array",
    "code_objects",
    "code_series",
    "code_table",
    "collected",
    "column_names",
    "column_to_list",
    "columns_of",
    "count_rows",
    "date_part",
    "feature_names",
    "frame_like",
    "frame_to_objects",
    "given_order",
    "has_numbers_only",
    "holds_text",
    "is_frame",
    "is_missing",
    "kernel_rows",
    "library_of",
    "like_fitted",
    "merge_labels",
    "moderate",
    "numeric_matrix",
    "read_only",
    "replace_cells",
    "require_finite",
    "scan_rows",
    "seed_of",
    "select_columns",
    "take_rows",
    "to_polars",
    "type_of_cell",
]
