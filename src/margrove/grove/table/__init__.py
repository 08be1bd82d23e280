"""What trees are grown from: rank codes of columns, targets as whole numbers, constraints.

binning         columns of a table as rank codes: what every tree of this library is grown on
columns         the features of a training set as compiled code sees them
constraints     monotonic constraints, as users write them
encoding        tables for trees: numbers
given_targets   y, weights and class weights as they are given to trees and forests
targets         y and weights as integers, whose sums do not depend on the order of the rows
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
