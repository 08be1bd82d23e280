"""The best split of a node: features are searched one after the other, the better split is kept.

node_search            the loop over the features of a node, for single trees
node_search_forest     the same for forests; nodes of more than 65,536 rows: see `tree_builder`
sparse_search          the loop over the features of a node of a sparse table, for single trees
split_search           one feature, for every criterion and kind of feature
split_search_fast      one feature, in the usual case
split_search_groups    one feature of a large node, in the usual case: thresholds of a histogram
split_search_forest    one feature, for forests: codes are gathered when asked for
custom_criterion       the best split by a criterion that is a function of a node's sums
scores                 the score of a split, and which of two splits is better (`consider`)
double_doubles         sums of fractions in twice the precision of float64
buffers                the arrays in which a search works and leaves the best split so far
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
