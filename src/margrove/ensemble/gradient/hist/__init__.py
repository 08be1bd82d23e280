"""Trees of histogram gradient boosting: bins, histograms, splits, rounds.

bin_refinement   bins of columns of many rows, by refinement
children         children of a split: their sums and bounds
columns          columns in codes: at most 255 bins of numbers
histograms       histograms of histogram boosting
leader           trees of histogram boosting whose rows are in several places
leaves           the values of leaves, by sums of gradients of 50 bits, and how scores of rows
                 change by them
nodes            the nodes of a tree of histogram boosting while it grows
packed_words     Gradients, hessians and numbers of samples, packed into one word
packing          boosted trees in the form that ensembles keep
partitioning     rows of a split: which of them go left, and all in their order
root             the root of a tree: gradients and hessians as integers, and a node of all rows
rounds           gradient boosting, round by round: a process for `slices.drive`
shards           shards of the rows of histogram boosting
split_search     the best split of a node of histogram boosting, from the sums of its codes
tables           tables as histogram boosting reads them: codes of at most 255 values, row by row
trees            trees of histogram boosting
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
