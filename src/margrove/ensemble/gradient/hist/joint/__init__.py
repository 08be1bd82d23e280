"""Trees on rows that are with several members of a collective.

tables   the binned table of the rows of one member; the bins are those of all rows
rows     the rows of one member: partitions nodes, and counts histograms
splits   the splits, which every member finds in the sums over all
trees    grows the trees of a round with these two
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
