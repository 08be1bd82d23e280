"""Grown trees as arrays, and rows on their way through them.

boosted_scores   scores of boosting: sums over rounds of small trees
boosted_walk     the trees of boosting one after the other in one array
class_shares     the shares of the classes in the nodes of a tree, output by output
forest_walk      rows on their way through the trees of a forest, and what they gather there
leaf_bits        many rows at the leaves of small trees, without any walking
packed_trees     a tree in 20 bytes a node, as a forest keeps it
tree_arrays      a grown tree as flat arrays
tree_packing     from the nodes that have grown to a packed tree
tree_states      packed trees as plain values, and back
tree_sums        fitted models whose answer is a sum of what trees say, as such sums
tree_walk        the way of a row through a tree of `tree_arrays`
unfolding        packed trees as `TreeArrays`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
