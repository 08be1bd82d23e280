"""Lessons about decision trees.

impurity                  Impurity: three ways to measure a mixture
overfitting_and_pruning   Overfitting, and pruning against it
restaurant                the restaurant: a question that tells nothing
tennis                    Tennis: which question to ask first
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
