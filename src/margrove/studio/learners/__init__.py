"""The learners that the page offers, and their parameters.

choices    menus of parameters, read from the registries of the library at each request
grove      parameters of trees and ensembles of trees that the page shows
margin     parameters of perceptrons and support vector machines that the page shows
offers     a learner with the parameters that the page shows
registry   all learners that the page offers, by the names of their classes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
