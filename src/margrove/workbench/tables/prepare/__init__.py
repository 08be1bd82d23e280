"""Preparation of tables for models, learnt from one table and applied to others.

preparation       TablePreparation: raw tables for models
table_columns     the columns of any table: numbers, dates, and labels as text
column_types      describe_columns: the type of each column
cell_changes      conversions of cells between types without loss
column_learning   what is learnt from the cells of a column
column_encoders   the learnt values of a column of each type, applied to other rows
word_counts       texts as counts of words
tree_tables       numbers and labels as a table for trees
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
