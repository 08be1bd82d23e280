"""What all pictures share: panels, colours, data behind a picture.

boundary_drawing   what `decision_boundary` draws: regions, lines, rows and support vectors
canvas             axes, colours and markers
picture            `Picture`, which every drawing function returns: the axes and their data
plane              the plane of two features that a picture shows, and a grid over it
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
