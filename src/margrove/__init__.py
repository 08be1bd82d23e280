"""margrove: margin machines and groves of trees.

Public names are imported when they are first used, so that `import margrove` is fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
