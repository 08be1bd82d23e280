"""Grown trees as arrays, and how rows find their leaves.

boosted_scores   scores of boosting: sums over rounds of small trees
boosted_walk     the trees of boosting joined in one array, and rows that walk through them
forest_tables    rows walk through all trees of a forest in one region
forest_walk      rows walk through the trees of a forest and collect values or votes
leaf_bits        the leaves of many rows in small trees, found with bit masks
packed_trees     a tree in 20 bytes a node, as forests and boosting keep it
row_blocks       rows of any table as kernels take them
tree_arrays      a grown tree as flat arrays
tree_packing     from the nodes that have grown to a packed tree
tree_sums        fitted models whose prediction is a sum over trees
tree_walk        rows walk through a tree of `tree_arrays`
unfolding        packed trees as `TreeArrays`, and back
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
