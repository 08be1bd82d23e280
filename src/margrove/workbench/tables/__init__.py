"""Raw tables: reading files, what their columns hold, and a preparation that is learnt.

read           read_table: CSV, TSV, JSON lines and Parquet, compressed or not, up to a limit
prepare        describe_columns and TablePreparation: columns of any type as numbers
tasks          task_of_table: what is to be predicted from what
table_models   table_model: a preparation and a model as one
refusals       errors about tables, with a way out in Python and one by commands
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
