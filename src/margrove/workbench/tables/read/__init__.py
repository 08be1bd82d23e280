"""Tables from files: CSV, TSV, JSON lines, Parquet, compressed or not.

reading         read_table, and RawTable, its result
limits          ReadLimits: how much of a file is read
sources         the bytes of a table, decompressed, and its format
encodings       checks that text is UTF-8
csv_files       CSV and TSV files: delimiter, names and cells
csv_shape       the number of rows and cells of a CSV file, checked before it is parsed
json_lines      JSON lines: an object or a list of cells for each row
parquet_files   Parquet files
typed_cells     columns of text, as CSV files have them, as numbers, dates or text
cell_texts      the meaning of the text of a cell: a number, a date, missing
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
