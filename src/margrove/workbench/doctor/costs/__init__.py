"""Estimates of the time and memory of a fit, from a few small fits.

estimates    the arithmetic: from the costs of small fits to that of a large one
families     how the cost of each family of learners grows with the rows
probes       small fits to some rows of a table, with their time and memory
probe_rows   the rows of these fits
memory       the memory that a fit takes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
