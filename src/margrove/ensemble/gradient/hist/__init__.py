"""Trees on binned features, and the rounds of histogram gradient boosting.

binning/         features as bytes: bins, and the table of all rows
nodes            the arrays of a growing tree
packed_words     gradient, hessian and number of samples in one 64-bit word
root             gradients and hessians as integers, and the root
histograms       histograms of nodes
split_search     the search for the best split of a node
children         the children of a split, and which leaf is split next
partitioning     partitions the rows of a node
leaves           leaf values, and their addition to the scores
tiles            the regions in which a tree grows
trees            grows a tree in one compiled loop, on one thread or several
packing          grown trees as packed trees for prediction
settings         how trees are grown, and the sizes that follow
rounds           the rounds of boosting: a process for `slices.drive`
boosting_round   a round, as those see it who grow its trees
local_trees      grows the trees of a round on one machine
short_rounds/    several rounds of small tables in one compiled call
joint/           trees on rows that are with several members of a collective
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
