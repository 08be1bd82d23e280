"""The base class of kernels: parameters, code on blocks of rows, and properties.

A kernel is a small frozen dataclass. Its fields are its parameters, `block` (or `finish`, for
functions of the inner product) is its formula, and class attributes are its properties. Everything
that the library knows about a kernel is read from its class: see `Kernel`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove._data import check_table
from margrove.exceptions import InvalidDataError, NumericalOverflowError
from margrove.margin.kernels.blocks import inner_products, largest_value, row_norms

__all__ = [
    "CHI_SQUARE",
    "INVARIANCES",
    "KERNELS",
    "LAPLACIAN",
    "LINEAR",
    "POLYNOMIAL",
    "RBF",
    "SIGMOID",
    "USUAL_PARAMETERS",
    "DotKernel",
    "Formula",
    "Kernel",
    "KernelParameter",
    "Points",
    "parameter",
    "registered",
    "with_gamma_over",
]

_LARGEST_GAMMA = 1e300
_LARGEST_DEGREE = 2**31

# The kernels that compiled tiles know.
LINEAR, POLYNOMIAL, RBF, SIGMOID, LAPLACIAN, CHI_SQUARE = range(6)

# Class attributes: under which maps of all points the values stay the same.
INVARIANCES = ("translation_invariant", "rotation_invariant", "permutation_invariant")


@dataclass(frozen=True)
class KernelParameter:
    """A numeric parameter of a kernel.

    default      the default value
    low, high    the smallest and the largest valid value
    whole        whether it must be an integer
    tuned        powers of ten between which it is tuned, relative to `gamma="scale"`; None if it is
                 not tuned. Grid searches tune `gamma` only.
    """

    default: float = 1.0
    low: float = -np.inf
    high: float = np.inf
    whole: bool = False
    tuned: tuple[float, float] | None = None

    def check(self, value: Any, name: str, owner: str) -> None:
        """Raise ValueError unless the value is in range."""
        start, end = f"The {name!r} parameter of {owner} must", f"Got {value!r} instead."
        if not isinstance(value, Real) or not np.isfinite(float(value)):
            raise ValueError(f"{start} be a finite number. {end}")
        number = float(value)
        if self.low == 0 and number < 0:
            raise ValueError(f"{start} not be negative. {end}")
        if not self.low <= number <= self.high:
            raise ValueError(f"{start} be from {self.low:g} to {self.high:g}. {end}")
        if self.whole and not number.is_integer():
            raise ValueError(f"{start} be a whole number. {end}")


# The parameters of kernel machines; a kernel that is given by name gets their values.
USUAL_PARAMETERS = {
    "gamma": KernelParameter(1.0, low=0.0, tuned=(-3.0, 2.0)),
    "degree": KernelParameter(3, low=0.0),
    "coef0": KernelParameter(0.0),
}


def parameter(
    default: float,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    whole: bool = False,
    tuned: tuple[float, float] | None = None,
) -> Any:
    """A field of a kernel class: its default, its range and how it is tuned."""
    described = KernelParameter(default, low, high, whole, tuned)
    return dataclasses.field(default=default, metadata={"parameter": described})


class Formula(NamedTuple):
    """A kernel as compiled code knows it."""

    code: int
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1


@dataclass(frozen=True)
class Points:
    """One side of a Gram matrix.

    X              (n, d) dense or CSR, or rows of a precomputed Gram matrix
    squared_norms  float64 (n,) of the rows
    columns        int64 (n,) positions in the training set, which a precomputed kernel needs
    """

    X: Any
    squared_norms: np.ndarray
    columns: np.ndarray

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def as_float64(self) -> Points:
        return Points(self.X.astype(np.float64), self.squared_norms, self.columns)

    def as_float32(self) -> Points:
        with np.errstate(over="ignore"):
            return Points(self.X.astype(np.float32), self.squared_norms, self.columns)

    def take(self, index: Any) -> Points:
        return Points(self.X[index], self.squared_norms[index], self.columns[index])


@dataclass(frozen=True)
class Kernel:
    """A kernel K(x, z). A subclass defines `block`, `diagonal`, and the attributes below.

    docstring              its first line is the formula, shown in documentation and facts
    name                   its name in `kernel=` of an estimator
    fields                 its parameters, see `parameter`; for gamma, degree and coef0 a plain
                           `gamma: float = 1.0` is enough
    positive_definite      it is an inner product: every Gram matrix is positive semidefinite
    translation_invariant  K(x + t, z + t) = K(x, z); the origin may then be moved for precision
    rotation_invariant     K(Q x, Q z) = K(x, z) for orthogonal Q
    permutation_invariant  the order of the features does not matter
    reads_sparse           its code reads CSR blocks; if not, blocks are made dense, one at a time
    nonnegative            it is only defined for features >= 0
    code                   of kernels that have compiled tiles, see `tiles`

    Model files contain the name and the parameters of a registered kernel, never its code.
    """

    name: ClassVar[str] = ""
    positive_definite: ClassVar[bool] = True
    translation_invariant: ClassVar[bool] = False
    rotation_invariant: ClassVar[bool] = False
    permutation_invariant: ClassVar[bool] = False
    reads_sparse: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = False

    @classmethod
    def parameters(cls) -> dict[str, KernelParameter]:
        """The parameters by name: all fields whose default is a number."""
        return dict(_parameters_of(cls))  # type: ignore[arg-type]

    @classmethod
    def summary(cls) -> str:
        """The formula in one line, for documentation and menus."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        """Write K(a, b) to the contiguous `out` (len(A), len(B)), which is at most one tile."""
        raise NotImplementedError

    def diagonal(self, A: Points) -> np.ndarray:
        """K(a, a) for all points, float64."""
        raise NotImplementedError

    def formula(self) -> Formula | None:
        """The kernel for compiled tiles; None if they do not know it."""
        code = vars(type(self)).get("code")  # of the class itself: a subclass may compute more
        if code is None or getattr(self, "degree", 1) > _LARGEST_DEGREE:
            return None
        gamma, coef0 = float(getattr(self, "gamma", 1.0)), float(getattr(self, "coef0", 0.0))
        return Formula(code, gamma, coef0, int(getattr(self, "degree", 1)))

    def __post_init__(self) -> None:
        for name, described in self.parameters().items():
            described.check(getattr(self, name), name, type(self).__name__)

    def on_scaled(self, factor: float) -> Kernel:
        """The kernel whose values for factor * x are those of this kernel for x, up to a constant.

        Kernels that override this allow to scale features that are extremely large or small.
        """
        return self

    @classmethod
    def can_be_scaled(cls) -> bool:
        """Whether the kernel overrides `on_scaled`."""
        return cls.on_scaled is not Kernel.on_scaled

    def points(self, X: Any, *, shift: np.ndarray | None = None) -> Points:
        """The points of checked rows; `shift` moves the origin, which only changes rounding."""
        if self.nonnegative:
            values = X.data if sp.issparse(X) else X
            if values.size and values.min() < 0:
                raise InvalidDataError(
                    f"The kernel {self.name!r} needs features >= 0, got {values.min():g}. Use "
                    "counts or frequencies, or kernel='rbf'."
                )
        if shift is not None:
            X = X - shift.astype(X.dtype)
        return Points(X, row_norms(X), np.arange(X.shape[0]))

    def centre(self, *sides: Any) -> np.ndarray | None:
        """The origin for all sides of a Gram matrix: the mean of the first side.

        None (no shift) for sparse data and for kernels that are not translation invariant.
        """
        if not self.translation_invariant or any(sp.issparse(side) for side in sides):
            return None
        return np.asarray(sides[0].mean(axis=0, dtype=np.float64))

    def require_finite(self, A: Points) -> None:
        """Raise NumericalOverflowError if K overflows on these points."""
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.diagonal(A)
        if not (np.isfinite(A.squared_norms).all() and np.isfinite(diagonal).all()):
            raise NumericalOverflowError(
                f"{self!r} overflows on these data: the largest value of a feature is "
                f"{largest_value(A.X):.3g}. Scale the features, for example with "
                "sklearn.preprocessing.StandardScaler, or use a smaller degree or gamma."
            )

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """The Gram matrix of the rows of X and of Z (default: X)."""
        from margrove.margin.kernels.gram_tiles import gram

        X = check_table(X, self).X
        Z = X if Z is None else check_table(Z, self).X
        if X.shape[1] != Z.shape[1]:
            raise InvalidDataError(
                f"X has {X.shape[1]} columns and Z has {Z.shape[1]}. Both must have the same "
                "columns."
            )
        shift = self.centre(X, Z)
        A = self.points(X, shift=shift)
        B = A if Z is X else self.points(Z, shift=shift)
        for side in (A, B):
            self.require_finite(side)
        return gram(self, A, B)


@dataclass(frozen=True)
class DotKernel(Kernel):
    """A kernel that is a function of x.z, ||x||^2 and ||z||^2: one GEMM and one pass."""

    rotation_invariant: ClassVar[bool] = True
    permutation_invariant: ClassVar[bool] = True

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        inner_products(A.X, B.X, out)
        self.finish(out, A.squared_norms, B.squared_norms)

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        """Turn inner products into kernel values, in place."""
        raise NotImplementedError

    def on_scaled(self, factor: float) -> Kernel:
        return with_gamma_over(self, factor, factor)

    def diagonal(self, A: Points) -> np.ndarray:
        squared = A.squared_norms.astype(np.float64)
        values = squared[:, None].copy()
        self.finish(values, squared, np.zeros(1))
        return values[:, 0]


@lru_cache
def _parameters_of(cls: type[Kernel]) -> dict[str, KernelParameter]:
    return {
        field.name: field.metadata.get("parameter") or _usual_parameter(field)
        for field in dataclasses.fields(cls)
        if field.init and isinstance(field.default, Real)
    }


def _usual_parameter(field: Any) -> KernelParameter:
    """A field without a range: gamma, degree and coef0 have their usual ranges."""
    usual = USUAL_PARAMETERS.get(field.name, KernelParameter())
    return dataclasses.replace(usual, default=field.default)


def with_gamma_over(kernel: Any, *factors: float) -> Kernel:
    """The same kernel with gamma divided by the factors, within the range of floats."""
    if not hasattr(kernel, "gamma"):
        return kernel
    gamma = kernel.gamma
    for factor in factors:
        gamma = min(gamma / factor, _LARGEST_GAMMA)
    return dataclasses.replace(kernel, gamma=gamma)


# All kernels by name. Import it from `registry`, which imports the kernels of the library first.
KERNELS: dict[str, type[Kernel]] = {}


def registered(cls: type[Kernel]) -> type[Kernel]:
    """Put a kernel class into KERNELS; a name that another class has is an error."""
    known = KERNELS.get(cls.name)
    if known is not None and _place_of(known) != _place_of(cls):
        raise ValueError(
            f"name={cls.name!r} of {cls.__qualname__} is taken by {'.'.join(_place_of(known))}. "
            "Choose another name."
        )
    KERNELS[cls.name] = cls
    return cls


def _place_of(cls: type[Kernel]) -> tuple[str, str]:
    """Where a class is defined; a class that is defined again has the same place."""
    return cls.__module__, cls.__qualname__
