"""Steps of the perceptron and of the solvers of support vector machines.

hull              the hard margin as geometry: the nearest points of two hulls, move by move
perceptron        the perceptron, mistake by mistake: the line before and after each
smo               sequential minimal optimisation, pair by pair
stepwise_solver   support vector machines whose solver takes one elementary step at a time
subgradient       stochastic subgradients on the primal problem, visit by visit
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
