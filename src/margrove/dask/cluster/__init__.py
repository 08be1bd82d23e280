"""A Dask cluster: its client and workers, waits with a limit, and retries after losses.

errors      errors of a cluster that say what to do
client      the client of a fit
workers     the workers, and whether their software and processors are the same
placement   tasks with preferred workers
waiting     waits for results of futures and for workers, with a limit
kernels     compiled kernels on the workers
retries     another attempt when a worker is lost
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
