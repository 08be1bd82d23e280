"""Pruning: which nodes of a grown tree become leaves.

bottom_up         loops over a tree from the leaves up
cost_complexity   cost-complexity pruning: the nested trees between the full tree and its root
held_out_losses   the loss of each node as a leaf, on rows that were held out
pruning           `prune` and `cross_validated_alpha`, for estimators
pruning_rules     the other rules by which nodes become leaves
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
