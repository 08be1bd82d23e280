"""Tables on a cluster: Dask collections as checked partitions that lie on the workers.

blocks         Dask collections as delayed blocks
table          rows, targets and weights in aligned partitions
checks         what is checked of one partition, on the worker that computes it
encoding       categories and missing values, numbered alike in all partitions
disk_storage   partitions in files, where the workers' memory does not hold them
shards         the rows that each worker of a group holds
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
