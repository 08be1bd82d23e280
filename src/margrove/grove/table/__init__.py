"""What trees are grown from: rank codes of columns, targets as whole numbers, constraints.

binning         the columns of a table as rank codes; all trees are grown on these
column_codes    the columns of a dense table as codes, over tiles of its rows
constraints     monotonic constraints as users write them
encoding        tables for trees: numbers, and categories as numbers
sparse_columns  the columns of a sparse table as codes
targets         y and weights as integers, whose sums do not depend on the order of the rows
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
