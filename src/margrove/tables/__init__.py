"""Raw tables: reading files, what their columns hold, and a preparation that is learnt.

sources      bytes from files, standard input, compressed or not, up to a limit
encodings    text, or an error that says at which byte it is none
delimiters   what separates the cells
csv_shape    rows and quotes of a CSV file, checked before anything is parsed
cell_texts   what a cell of text says: a number, a date, nothing
csv_files  json_lines  parquet_files    the formats
reading      read_table: any of them
frame_columns    the columns of any library's frame, as arrays
column_types     describe_columns: number, category, date, text, constant, ignored
column_parts     what is learnt of a column of each type, and applied to others
word_counts  date_parts    texts and dates as numbers
preparation      TablePreparation: all columns of a table, for one of two families of models
table_models     table_model: a preparation and a model
tasks            task_of_table: what is to be predicted from what
"""

from __future__ import annotations

from margrove.tables.column_types import Column, describe_columns
from margrove.tables.limits import ReadLimits
from margrove.tables.preparation import TablePreparation
from margrove.tables.reading import RawTable, read_table
from margrove.tables.table_models import table_model
from margrove.tables.tasks import Task, task_of_table

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
