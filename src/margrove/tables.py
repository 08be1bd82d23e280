"""Raw tables: reading files, types of columns, and preparation for learners."""

from __future__ import annotations

from margrove.workbench.tables import Task, table_model, task_of_table
from margrove.workbench.tables.prepare import Column, TablePreparation, describe_columns
from margrove.workbench.tables.read import RawTable, ReadLimits, read_table

__all__ = [
    "Column",
    "RawTable",
    "ReadLimits",
    "TablePreparation",
    "Task",
    "describe_columns",
    "read_table",
    "table_model",
    "task_of_table",
]
