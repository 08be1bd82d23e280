"""Columns of any table as numbers that models take, learnt from one table and applied to others.

cell_changes      conversions of cells without loss; else an error that names the cell
column_encoders   what is learnt of a column of each type, and how it is applied to other rows
column_learning   what is learnt from the cells of a column
column_types      what the columns of a table hold, as a person would say: `describe_columns`
preparation       raw tables for models: `TablePreparation`
table_columns     the columns of any table for the preparation: numbers, dates, and labels as text
tree_tables       numbers and labels as trees take them
word_counts       texts as counts of words
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
