"""The data behind the pictures of the lectures.

bagging      predictions of single members of bagging or a forest, and their vote
bayes        a support vector machine beside the best possible classifier
distances    rows and a linear machine: distances from its plane, slacks, and multipliers
hulls        two separable classes in the plane
losses       losses as functions of a margin z = y f(x), or of a residual
machines     support vector machines in the plane
perceptron   a perceptron step by step: the weights before and after each mistake
planes       rows of two features with their classes
smo          sequential minimal optimisation and coordinate ascent, step by step, as geometry
splits       trees: the children of a split by each feature, and regions leaf by leaf
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
