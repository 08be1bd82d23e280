"""Kernel functions, their Gram matrices, kernel expansions and explicit feature maps.

kernel.py, functions.py   what a kernel is; the kernels of the library
given_kernels.py          a Gram matrix or a function in place of one; object_kernels.py: of texts,
                          trees and the like
registry.py               names of kernels, and what an estimator's parameters mean
blocks.py, gram_*.py      compiled arithmetic; Gram matrices in tiles, rows on demand
expansions.py             sums of kernel values, which predictions are
feature_maps.py           explicit features whose inner product is a kernel
"""

from margrove.margin.kernels.functions import (
    RBF,
    ChiSquare,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from margrove.margin.kernels.given_kernels import CallableKernel, Precomputed
from margrove.margin.kernels.kernel import DotKernel, Kernel, KernelParameter, parameter
from margrove.margin.kernels.registry import KERNELS, register_kernel, registered

__all__ = [
    "KERNELS",
    "RBF",
    "CallableKernel",
    "ChiSquare",
    "DotKernel",
    "Kernel",
    "KernelParameter",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "parameter",
    "register_kernel",
    "registered",
]
