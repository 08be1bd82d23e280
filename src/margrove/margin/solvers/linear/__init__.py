"""Solvers of linear machines.

choice                    which solver a linear machine gets, and several machines as one process
result                    the result of every solver of linear machines
dual_coordinate_descent   dual coordinate descent, many classes in one pass
dual_coordinate_blocks    the machines that one thread solves together, and their progress
dual_coordinate_epochs    epochs in one compiled call, until something else is due
dual_coordinate_loops     the compiled loops of dual coordinate descent
faces                     steps on a face of the dual: all free variables move at once
newton/                   Newton's method, with the L2 or the L1 penalty, on one or several machines
row_losses                the losses of rows, for several machines or one
row_sums                  sums over the cells of one row
row_groups                rows of X in groups, for passes over them on several threads
l1_coordinate_descent     coordinate descent over features for the L1 penalty
crammer_singer            Crammer and Singer's machine for many classes
sgd                       averaged stochastic gradient descent
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
