"""Worker groups: one call of a method on the rows of all workers.

worker_group   the client's side: long-running tasks, one a worker
channels       authenticated sockets between the workers, and heartbeats
reductions     requests, replies, and the reduction of several replies to one
worker_loop    the worker's side: the loop that serves calls
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
