"""Features as bytes: bins, and the table of all rows.

columns          columns as codes: bins of numbers, or categories
dense_codes      the codes of large dense tables, in a few passes over the rows
bin_refinement   bins of columns with many rows, without sorting
tables           the binned table, by rows and by columns
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
