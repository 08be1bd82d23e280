"""Growing a tree: the best split of each node is found, and its rows go to its children.

rules                 when a node is not split, and which splits are allowed
nodes                 the nodes of a growing tree, as arrays that compiled code fills
node_values           what the rows of a node sum up to, and the value of a leaf
search                the best split of a node
halving               the most even split, for trees that have become too deep
partitioning          the rows of a node become those of its children
frontier              the nodes that are still to be split
node_sums             what many large nodes sum up to, over tiles of their rows
group_search          the best splits of large nodes, through histograms of their codes
subtree               a subtree of at most 65,536 rows, grown in one compiled loop
grown_subtrees        many subtrees side by side, each grown in one tile
tree_builder          builds one tree: large nodes level by level, then their subtrees
forest_tree_builder   builds the trees of a forest, one after the other
multiway              builds a multiway tree, as in the lectures: ID3 and C4.5
oblique               builds an oblique tree: a node may ask a linear machine
oblique_directions    directions for oblique splits
stopping              reasons not to split a node that are asked of the grown tree
assembly              from the nodes of a builder to the arrays of a finished tree
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
