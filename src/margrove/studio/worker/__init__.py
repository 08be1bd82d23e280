"""The worker process, which computes the answers, and its supervisor.

answers             for each kind of request, the function that answers it
lru_cache           a cache of the last fits, so that going back to an earlier picture needs no
                    new fit
request_queue       the queue of requests: round robin over the tabs, and over the channels of a
                    tab
warm_up             small fits that load or compile the kernels of the first pictures
worker_main         the main loop of the worker process
worker_process      the server's handle of the worker process: start, write, read, kill
worker_protocol     messages between the server and the worker process: a kind, a number, and
                    bytes
worker_supervisor   sends requests to the worker process, and enforces cancels and time limits
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
