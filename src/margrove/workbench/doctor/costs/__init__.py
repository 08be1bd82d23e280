"""What a fit will cost, from a few small fits.

estimates   from what a few small fits cost to what a large one will
families    how the cost of each family of learners grows
probes      small fits of parts of a table, timed and weighed
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
