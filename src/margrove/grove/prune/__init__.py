"""Pruning: which nodes of a grown tree become leaves.

bottom_up         loops over a tree from the leaves up
cost_complexity   Cost-complexity pruning: the nested trees between a whole tree and its root
held_out_losses   what each node of a tree would lose as a leaf
pruning           Pruning: which nodes of a grown tree become leaves, and where to stop
pruning_rules     rules by which nodes of a tree become leaves, other than cost-complexity
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
