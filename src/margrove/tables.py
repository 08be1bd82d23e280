"""Raw tables: reading files, what their columns hold, and a preparation that is learnt."""

from __future__ import annotations

from margrove.workbench.tables.prepare.column_types import Column, describe_columns
from margrove.workbench.tables.prepare.preparation import TablePreparation
from margrove.workbench.tables.read.limits import ReadLimits
from margrove.workbench.tables.read.reading import RawTable, read_table
from margrove.workbench.tables.table_models import table_model
from margrove.workbench.tables.tasks import Task, task_of_table

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
