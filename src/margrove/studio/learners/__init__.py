"""The learners that the page offers, and their parameters.

choices    Menus, made from the registries of the library each time they are asked for
grove      parameters of trees and ensembles of trees that the page shows
margin     parameters of perceptrons and support vector machines that the page shows
offers     a learner as the page offers it
registry   the learners that the page offers
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
