"""Kernel functions, their Gram matrices, kernel expansions and explicit feature maps.

kernel           the base class of kernels: parameters, code on blocks of rows, properties
functions        the kernels of the library, a class each
given_kernels    kernels that users give: a Gram matrix, or a function (also of texts or molecules)
registry         kernels by name, and the meaning of the parameters of an estimator
blocks           compiled arithmetic on blocks of rows
tiles            tiles of a Gram matrix in compiled code
gram_tiles       Gram matrices, computed tile by tile on several threads
gram_rows        rows and tiles of a Gram matrix on demand, with a cache
gram_matrices    the Gram matrix of a training set in float32 and float64
expansions       kernel expansions: the sums of kernel values behind predictions
sparse_sums      these sums for sparse rows
signs            the signs of kernel expansions, faster than their values
few_rows         sums for few rows with a bound of their error, for labels
feature_maps     explicit features whose inner product is a kernel
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
