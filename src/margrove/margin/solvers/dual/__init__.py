"""Solvers of the dual problems of kernel machines.

c_path               the machines of a whole sequence of C over one Gram matrix
choice               the ways to solve a dual problem, by name: what `solver=` of an estimator
                     means
coordinate_descent   dual coordinate descent, for machines without a bias
face_newton          a Newton step on the face of the free variables
faces                newton steps on a face: all free variables of a small problem move at once
hull                 maximum margins as geometry: the nearest points of the two classes' convex
                     hulls
hull_margins         hard and soft margins by geometry
many_problems        several problems as one process
pair_steps           pair steps on one tile of a Gram matrix
primal_sgd           stochastic subgradients on the primal problem of the soft margin
result               what every solver of a dual problem returns
smo                  sequential minimal optimisation inside block decomposition
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
