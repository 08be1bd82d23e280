"""The pictures of the lectures; margrove.plot has them all.

bagging         members and their vote, and a statistic over resamples
losses          losses as curves
machines        support vector machines in the plane
margins         margins as geometry: hulls and their nearest points
perceptron      a perceptron, mistake by mistake
plane_drawing   what pictures of the plane share
smo             the dual, step by step: the box of a pair step, one coordinate at a time, and
                where it ends
splits          how trees begin and grow: children of splits
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
