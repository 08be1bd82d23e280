"""What all pictures share: panels, colours, data behind a picture.

boundary_drawing   the pen of `decision_boundary`: regions, lines, rows and support vectors
canvas             where to draw and with what: axes, colours, markers
picture            `Picture`, which every drawing function returns: the axes and the data drawn
plane              which two features a picture shows, and the grid over them
sources            where pictures of predictions get their facts: from a model and rows, or as given
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
