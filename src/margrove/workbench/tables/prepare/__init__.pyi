from .cell_changes import as_numbers as as_numbers
from .column_types import Column as Column
from .column_types import TypedColumn as TypedColumn
from .column_types import describe_columns as describe_columns
from .column_types import typed_columns as typed_columns
from .preparation import TablePreparation as TablePreparation
from .table_columns import frame_columns as frame_columns
