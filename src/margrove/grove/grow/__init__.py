"""Growing a tree: nodes are searched for their best split, level by level or subtree by subtree.

assembly              from the nodes that a grower leaves behind to the arrays of a finished tree
custom_criterion      splits by a criterion that is a function of a node's sums
double_doubles        sums of fractions in twice the precision of float64
forest_tree_builder   a tree of a forest, grown in one compiled loop on whichever rows were drawn
multiway              multiway trees, as in the lectures: ID3 and C4.5
node_search           all that growing does with one node, in compiled code
nodes                 the nodes of a growing tree as rows of three arrays, which compiled code
                      fills
oblique               oblique trees: a node may ask a linear machine instead of one feature
oblique_directions    directions for oblique splits
scores                how good a split is: the score of two children, in integers wherever it can
                      be
split_search          the best split of a node by one feature
split_search_fast     the usual case, in loops with nothing else in them
split_search_rows     one node and one feature of a forest's tree
stopping              reasons not to split a node, asked from the root down
subtree               a subtree of at most 65,536 rows, grown in one compiled loop
tree_builder          growing a tree: large nodes one by one, the subtrees below them as blocks
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
