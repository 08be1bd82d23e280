"""A Dask cluster: its client and workers, waits that end, and attempts after a worker was lost.

errors    errors of a cluster, in words that say what to do
client    the client of a fit
workers   the workers, and whether they compute alike
waiting   results of futures, and workers, while there is something to wait for
kernels   compiled kernels on the workers
retries   another attempt when a worker is lost
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
