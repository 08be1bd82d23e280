"""Solvers of the dual problems of kernel machines.

choice               the solvers by name, as in `solver=` of an estimator
result               the result of every solver of a dual problem
many_problems        several problems as one process
smo                  sequential minimal optimisation with block decomposition
whole_problems       the same for problems without blocks, many of them in one compiled call
many_matrices        the same for problems of several Gram matrices, computed in the same call
optimality           tolerance, violation, objective and offsets of a point
pair_steps           the compiled pair steps on one tile of a Gram matrix
faces                Newton steps on a face: all free variables of a small problem move at once
c_path               the machines for a sequence of C over one Gram matrix
face_newton          Newton steps from face to face, compiled, for `c_path`
symmetric_inverse    inverses of small symmetric matrices, compiled, for `face_newton`
coordinate_descent   dual coordinate descent, for machines without a bias
hull                 the nearest points of the reduced convex hulls of two classes
hull_margins         hard and soft margins from the nearest points of convex hulls
primal_sgd           stochastic subgradient steps on the primal problem of the soft margin
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
