"""Trees on binned features, and the rounds of histogram gradient boosting.

columns          columns as codes: bins of numbers, or categories
dense_codes      the codes of large dense tables, in a few passes over the rows
bin_refinement   bins of columns with many rows, without sorting
tables           the binned table, by rows and by columns
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
rounds           the rounds of boosting: a process for `slices.drive`
leader           grows a tree whose rows are on several workers: the leader
shards           the same: a worker with a shard of the rows
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
