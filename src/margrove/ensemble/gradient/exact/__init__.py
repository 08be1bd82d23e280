"""Trees with exact splits, and the rounds of classic gradient boosting.

tables         the table that exact trees are grown on
nodes          the arrays of a growing tree
split_search   the search for the best split of a node
growth         the root, splitting nodes level by level, and the leaf of each row
trees          grows trees, one for each call
rounds         the rounds of classic gradient boosting: a process for `slices.drive`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
