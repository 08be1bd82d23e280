"""The pictures of the lectures; margrove.plot has all of them.

bagging         members and their vote, and a statistic over resamples
losses          losses as curves
machines        support vector machines in the plane
margins         margins as geometry: hulls and their nearest points
perceptron      a perceptron, mistake by mistake
plane_drawing   rows, lines and frames of pictures of the plane
smo             the dual, step by step: pair steps, coordinate ascent, and the KKT conditions
splits          trees: children of splits, regions leaf by leaf, predictions as heights
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
