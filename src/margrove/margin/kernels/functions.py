"""The kernels of the library: **adding a kernel is adding one class here**.

A class defines everything about a kernel: its name, its formula in one line, its parameters with
their ranges and how they are tuned, its code on blocks, and its properties (see `Kernel`).
Estimators (`kernel="rbf"`), the grids of SVCCV and `autotune`, the command line, the studio, model
files, documentation and tests read it from `KERNELS`. Kernels are also plain callables, so that
scikit-learn's estimators accept them: `sklearn.svm.SVC(kernel=margrove.kernels.RBF(sigma=2.0))`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from margrove.margin.kernels.blocks import (
    chi_square,
    city_block,
    densified,
    exponential_block,
    rbf_block_32,
    rbf_block_64,
)
from margrove.margin.kernels.kernel import (
    CHI_SQUARE,
    LAPLACIAN,
    LINEAR,
    POLYNOMIAL,
    SIGMOID,
    DotKernel,
    Kernel,
    Points,
    parameter,
    registered,
    with_gamma_over,
)
from margrove.margin.kernels.kernel import RBF as RBF_CODE

__all__ = ["RBF", "ChiSquare", "Laplacian", "Linear", "Polynomial", "Sigmoid"]

_WIDTHS = (-3.0, 2.0)  # powers of ten, relative to gamma="scale"


# --- functions of the inner product -------------------------------------------------------------


@registered
@dataclass(frozen=True)
class Linear(DotKernel):
    """x.z"""

    name: ClassVar[str] = "linear"
    code: ClassVar[int] = LINEAR

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        pass


@registered
@dataclass(frozen=True)
class Polynomial(DotKernel):
    """(gamma x.z + coef0)^degree

    The lectures' (x.z / a + b)^d has gamma = 1/a and coef0 = b.
    """

    name: ClassVar[str] = "poly"
    code: ClassVar[int] = POLYNOMIAL
    gamma: float = parameter(1.0, low=0.0, tuned=_WIDTHS)
    degree: float = parameter(
        3, low=0.0, whole=True
    )  # an integer, because its base may be negative
    coef0: float = parameter(0.0)

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        dots *= self.gamma
        dots += self.coef0
        np.power(dots, self.degree, out=dots)


@registered
@dataclass(frozen=True)
class RBF(DotKernel):
    """exp(-gamma ||x - z||^2), the Gaussian kernel

    `sigma` in place of gamma means gamma = 1 / (2 sigma^2).
    """

    name: ClassVar[str] = "rbf"
    code: ClassVar[int] = RBF_CODE
    translation_invariant: ClassVar[bool] = True
    gamma: float = parameter(1.0, low=0.0, tuned=_WIDTHS)
    sigma: dataclasses.InitVar[float | None] = None

    def __post_init__(self, sigma: float | None) -> None:
        if sigma is not None:
            if not isinstance(sigma, Real) or not 0 < sigma < np.inf:
                raise ValueError(f"sigma must be a positive number. Got {sigma!r} instead.")
            object.__setattr__(self, "gamma", 0.5 / float(sigma) / float(sigma))
        super().__post_init__()

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        super().block(A, B, out)
        if out.dtype == np.float32:
            self._repair_rounded_distances(A, B, out)

    def _repair_rounded_distances(self, A: Points, B: Points, out: np.ndarray) -> None:
        """Compute pairs far from the origin in float64, because float32 loses their differences.

        The choice depends on the two points only, so that a value never depends on other points.
        """
        rounding = self.gamma * float(np.finfo(np.float32).eps)
        if rounding * (A.squared_norms.max() + B.squared_norms.max()) > 1e-4:
            far = rounding * (A.squared_norms[:, None] + B.squared_norms) > 1e-4
            exact = np.empty(out.shape)
            super().block(A.as_float64(), B.as_float64(), exact)
            out[far] = exact[far]

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        if dots.dtype == np.float32:
            rbf_block_32(dots, a2.astype(np.float32), b2.astype(np.float32), self.gamma)
        else:
            rbf_block_64(dots, a2, b2, self.gamma)

    def diagonal(self, A: Points) -> np.ndarray:
        return np.ones(len(A))


@registered
@dataclass(frozen=True)
class Sigmoid(DotKernel):
    """tanh(gamma x.z + coef0), not positive definite in general"""

    name: ClassVar[str] = "sigmoid"
    code: ClassVar[int] = SIGMOID
    positive_definite: ClassVar[bool] = False
    gamma: float = parameter(1.0, low=0.0, tuned=_WIDTHS)
    coef0: float = parameter(0.0)

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        with np.errstate(over="ignore"):  # tanh(inf) is 1
            dots *= self.gamma
        dots += self.coef0
        np.tanh(dots, out=dots)


# --- functions of the differences ---------------------------------------------------------------


@registered
@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma ||x - z||_1)"""

    name: ClassVar[str] = "laplacian"
    code: ClassVar[int] = LAPLACIAN
    translation_invariant: ClassVar[bool] = True
    permutation_invariant: ClassVar[bool] = True
    reads_sparse: ClassVar[bool] = False
    gamma: float = parameter(1.0, low=0.0, tuned=_WIDTHS)

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        city_block(densified(A.X), densified(B.X), out, *out.shape)
        exponential_block(out, *out.shape, self.gamma)

    def diagonal(self, A: Points) -> np.ndarray:
        return np.ones(len(A))

    def on_scaled(self, factor: float) -> Kernel:
        return with_gamma_over(self, factor)


@registered
@dataclass(frozen=True)
class ChiSquare(Kernel):
    """exp(-gamma sum (x - z)^2 / (x + z)), for histograms: features must not be negative"""

    name: ClassVar[str] = "chi2"
    code: ClassVar[int] = CHI_SQUARE
    permutation_invariant: ClassVar[bool] = True
    reads_sparse: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = True
    gamma: float = parameter(1.0, low=0.0, tuned=_WIDTHS)

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        chi_square(densified(A.X), densified(B.X), out, *out.shape)
        exponential_block(out, *out.shape, self.gamma)

    def diagonal(self, A: Points) -> np.ndarray:
        return np.ones(len(A))

    def on_scaled(self, factor: float) -> Kernel:
        return with_gamma_over(self, factor)
