"""Kernel functions, their Gram matrices, kernel expansions and explicit feature maps.

kernel           what a kernel is
functions        the kernels of the library, a class each
given_kernels    a Gram matrix, or a function, in place of a kernel
object_kernels   kernel functions of things that are not numbers: texts, trees, molecules
registry         kernels by name, and what the parameters of an estimator mean
blocks           compiled arithmetic on blocks of rows
gram_tiles       Gram matrices, computed tile by tile on several threads
gram_matrices    the Gram matrix of a training set in the precisions that a solver may want
gram_rows        rows and tiles of a Gram matrix on demand
expansions       sums of kernel values, which predictions are
feature_maps     explicit features whose inner product is a kernel
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
