"""Trees of classic gradient boosting, with exact splits.

growth         nodes of an exact tree: the root
nodes          the nodes of an exact tree while it grows, and all that is needed to split them
rounds         classic gradient boosting, round by round: a process for `slices.drive`
split_search   the best split of a node of an exact tree
tables         tables as exact trees read them
trees          trees of classic gradient boosting
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
