"""Steps of growing and pruning a decision tree.

candidate_splits   the candidate splits of a node, and the gain of each
pruning            Cost-complexity pruning: from the whole tree to its root
splits             a tree, split by split: the candidate splits of each node, and the tree so far
tree_growth        a grown tree, its rows, and the order of its splits: the largest gain first
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
