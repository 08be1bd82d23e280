"""Raw tables: reading files, types of columns, and preparation for learners.

read           read_table: CSV, TSV, JSON lines and Parquet, compressed or not, up to a limit
prepare        describe_columns and TablePreparation: columns of any type as numbers
tasks          task_of_table: the features and the target of a table
table_models   table_model: a pipeline of preparation and model
errors         errors about tables, with a way out in Python and one for commands
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
