"""Solvers of linear machines.

choice                    which solver a linear machine gets, and several machines as one process
crammer_singer            Crammer and Singer's machine for many classes
dual_coordinate_descent   dual coordinate descent for linear machines, many classes in one pass
dual_coordinate_loops     the loops of dual coordinate descent for linear machines
faces                     steps on a face of the dual of a linear machine: all free variables move
                          at once
l1_coordinate_descent     coordinate descent over features for the L1 penalty
l1_newton                 proximal Newton steps for the L1 penalty with few features
newton                    Newton's method for linear machines with few features
normal_equations          x as the sums that Newton's method takes of it
result                    what every solver of linear machines returns
sgd                       averaged stochastic gradient descent for linear machines
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
