"""Pictures of decision trees.

One drawing of a tree has three renderers:

    facts.sketch_tree  ->  layout  ->  shapes  ->  tree_picture (matplotlib)
                                                   svg (SVG and HTML)
                                                   the report (with themes)

growth_pictures   pictures of growing and pruning
layout            the layout of a drawn tree: from a sketch to boxes, lines and texts
region_pictures   predictions of decision trees over one or two features
shapes            the shapes of a drawn tree: boxes, lines and texts, which every renderer draws
svg               a fitted decision tree as an SVG picture or an HTML page
tree_picture      a fitted decision tree as a matplotlib picture
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
