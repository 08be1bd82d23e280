"""The best split of a node.

node_search         the best split of a node: its features are searched one after the other
split_search        one feature, for every criterion and kind of feature
split_search_fast   one feature, in the usual case
split_search_rows   one feature, for forests: codes are gathered when asked for
custom_criterion    the best split by a criterion that is a function of a node's sums
scores              how good a split is, in whole numbers wherever it can be
double_doubles      sums of fractions in twice the precision of float64
buffers             the arrays in which a search works and leaves the best split so far
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
