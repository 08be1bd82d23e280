"""Tables from files: CSV, TSV, JSON lines, Parquet, compressed or not.

cell_texts      what the text of a cell says: a number, a date, nothing
csv_files       CSV and TSV files: looked at first
csv_shape       the shape of a CSV file: rows of equally many cells
delimiters      which character separates the cells of a line
encodings       text in UTF-8, or an error that names the byte at which it is something else
json_lines      JSON lines: an object for each row, or a list of cells
limits          how much of a file is read before it is refused
parquet_files   parquet files
reading         tables from files: `read_table`
sources         the bytes of a table: from a file
typed_cells     columns of text, as CSV files have them, as columns of numbers, dates or text
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
