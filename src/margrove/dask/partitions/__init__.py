"""Tables on a cluster: Dask collections as checked partitions on the workers.

blocks         Dask collections as delayed blocks
table          rows, targets and weights in aligned partitions
checks         checks of one partition, on the worker that computes it
encoding       categories and missing values, with the same numbers in all partitions
disk_storage   partitions in files, if they do not fit into the memory of the workers
shards         the rows that each worker of a group holds
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
