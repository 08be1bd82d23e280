"""Solvers of linear machines.

choice                    which solver a linear machine gets, and several machines as one process
result                    the result of every solver of linear machines
dual_coordinate_descent   dual coordinate descent, many classes in one pass
dual_coordinate_blocks    the machines that one thread solves together, and their progress
dual_coordinate_loops     the compiled loops of dual coordinate descent
faces                     steps on a face of the dual: all free variables move at once
newton                    Newton's method for linear machines with few features
newton_steps              Newton steps of one machine: what needs no rows
newton_machines           many machines by Newton's method, and what to do if it fails
machine_rows              the values and dual variables of all rows, of several machines
row_losses                the losses of rows, for several machines or one
line_search               exact line searches of several machines
row_groups                rows of X in groups, for passes over them on several threads
normal_equations          the sums X p, X'B and X'DX; X'DX follows the rows with curvature
l1_newton                 proximal Newton steps for the L1 penalty with few features
l1_coordinate_descent     coordinate descent over features for the L1 penalty
crammer_singer            Crammer and Singer's machine for many classes
sgd                       averaged stochastic gradient descent
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
