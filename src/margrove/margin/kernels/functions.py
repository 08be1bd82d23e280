"""Kernel functions: inner products in a feature space nobody has to enter.

A kernel is a small frozen dataclass: its fields are its parameters, `finish` or `block` its
formula, `diagonal` the squared lengths. `KERNELS` names them; `kernel="rbf"` of an estimator,
command-line choices, documentation and tests are all generated from it, so that **adding a kernel
is adding one class here**. Kernels are also plain callables, so scikit-learn's estimators take
them: `sklearn.svm.SVC(kernel=margrove.kernels.RBF(sigma=2.0))`.

Everything is computed in blocks: one matrix product and one vectorised pass over it. Blocks have a
fixed shape (see `matrix_tiles`), so that an entry depends on its two points only.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from margrove._data import check_table, read_only
from margrove._runtime.matrix_tiles import TILE_ROWS, Scratch, on_large_pages
from margrove._runtime.threads import run_tiles, single_threaded_blas
from margrove.exceptions import InvalidDataError, NumericalOverflowError
from margrove.margin.kernels.blocks import (
    TILE_COLUMNS,
    chi_square,
    city_block,
    densified,
    inner_products,
    largest_value,
    rbf_block_32,
    rbf_block_64,
    row_norms,
)

__all__ = [
    "KERNELS",
    "RBF",
    "CallableKernel",
    "ChiSquare",
    "Kernel",
    "Laplacian",
    "Linear",
    "Points",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "gram",
    "register_kernel",
    "resolve_kernel",
    "symmetric_gram",
    "tile_of",
    "write_values",
]

_DIAGONAL_BLOCK = 64
_AT_ONCE = 1024  # points whose Gram matrix is one product
_LARGEST_GAMMA = 1e300

KERNELS: dict[str, type[Kernel]] = {}


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
    """K(x, z). Subclasses give `block`, `diagonal` and, where it holds, their two promises.

    `translation_invariant` kernels depend on x - z only; `positive_definite` ones are inner
    products, so that every Gram matrix is positive semidefinite.
    """

    name: ClassVar[str] = ""
    translation_invariant: ClassVar[bool] = False
    positive_definite: ClassVar[bool] = True

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        """Write K(a, b) into the contiguous out (len(A), len(B)), a block of at most one tile."""
        raise NotImplementedError

    def diagonal(self, A: Points) -> np.ndarray:
        """K(a, a) for all points, float64."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        for name in ("gamma", "degree", "coef0"):
            value = getattr(self, name, 0.0)
            if not isinstance(value, Real) or not np.isfinite(float(value)):
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be a finite number. "
                    f"Got {value!r} instead."
                )
            if name != "coef0" and value < 0:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must not be negative. "
                    f"Got {value!r} instead."
                )

    def on_scaled(self, factor: float) -> Kernel:
        """The kernel of factor * x that has the values of this one of x, up to a constant."""
        return self

    def points(self, X: Any, *, shift: np.ndarray | None = None) -> Points:
        """Prepare checked rows; `shift` moves the origin, which only rounding may notice."""
        if shift is not None:
            X = X - shift.astype(X.dtype)
        return Points(X, row_norms(X), np.arange(X.shape[0]))

    def centre(self, *sides: Any) -> np.ndarray | None:
        """The origin to use for all sides of a Gram matrix: the mean of the first.

        For kernels that only see differences, and dense data: None means to leave it.
        """
        if not self.translation_invariant or any(sp.issparse(side) for side in sides):
            return None
        return np.asarray(sides[0].mean(axis=0, dtype=np.float64))

    def require_finite(self, A: Points) -> None:
        """Refuse data on which K overflows, before anything is computed with it."""
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
        X = check_table(X, self).X
        Z = X if Z is None else check_table(Z, self).X
        if X.shape[1] != Z.shape[1]:
            raise InvalidDataError(
                f"X has {X.shape[1]} columns and Z has {Z.shape[1]}: a kernel needs points of one "
                "space."
            )
        shift = self.centre(X, Z)
        A = self.points(X, shift=shift)
        B = A if Z is X else self.points(Z, shift=shift)
        for side in (A, B):
            self.require_finite(side)
        return gram(self, A, B)


def gram(
    kernel: Kernel, A: Points, B: Points, *, out: np.ndarray | None = None, n_threads: int = 1
) -> np.ndarray:
    """K(a, b) for all pairs, tile by tile; the result does not depend on `n_threads`.

    A and B are `kernel.points(...)`; to get a Gram matrix from plain arrays, call the kernel.
    """
    kind = np.result_type(A.X.dtype, B.X.dtype)
    if out is None:
        out = np.empty((len(A), len(B)), dtype=kind)
    n_columns = -(-len(B) // TILE_COLUMNS)
    scratch = Scratch()

    def fill(tile: int) -> None:
        i, j = divmod(tile, n_columns)
        rows = slice(i * TILE_ROWS, (i + 1) * TILE_ROWS)
        columns = slice(j * TILE_COLUMNS, (j + 1) * TILE_COLUMNS)
        left, right = A.take(rows), B.take(columns)
        block = scratch.tile(len(left), len(right), kind)
        kernel.block(left, right, block)
        out[rows, columns] = block

    with single_threaded_blas():
        run_tiles(fill, -(-len(A) // TILE_ROWS) * n_columns, n_threads)
    return out


def symmetric_gram(
    kernel: Kernel, A: Points, *, out: np.ndarray | None = None, n_threads: int = 1
) -> np.ndarray:
    """K(a, a') for all pairs of points: half is computed, half mirrored."""
    n = len(A)
    if out is None:
        out = on_large_pages((n, n), A.X.dtype)
    is_plain = isinstance(A.X, np.ndarray) and A.X.dtype == np.float64
    if n <= _AT_ONCE and is_plain and isinstance(kernel, DotKernel):
        with single_threaded_blas():
            np.matmul(A.X, A.X.T, out=out)
        kernel.finish(out, A.squared_norms, A.squared_norms)
        return out
    stripes = [slice(i, min(i + TILE_COLUMNS, n)) for i in range(0, n, TILE_COLUMNS)]
    corners = [(i, j) for i in range(len(stripes)) for j in range(i, len(stripes))]
    parts = [A.take(stripe) for stripe in stripes]
    scratch = Scratch()

    def fill(corner: int) -> None:
        i, j = corners[corner]
        for start in range(stripes[i].start, stripes[i].stop, TILE_ROWS):
            rows = slice(start, min(start + TILE_ROWS, stripes[i].stop))
            left = A.take(rows)
            block = scratch.tile(len(left), len(parts[j]), A.X.dtype)
            kernel.block(left, parts[j], block)
            out[rows, stripes[j]] = block
        if i != j:
            out[stripes[j], stripes[i]] = out[stripes[i], stripes[j]].T

    with single_threaded_blas():
        run_tiles(fill, len(corners), n_threads)
    return out


def gram_at_once(kernel: Kernel, A: Points, B: Points) -> np.ndarray:
    """The same on this thread, in one GEMM where possible: no tile is filled up with nothing."""
    is_plain = isinstance(A.X, np.ndarray) and isinstance(B.X, np.ndarray)
    if not isinstance(kernel, DotKernel) or not is_plain:
        return gram(kernel, A, B)
    with single_threaded_blas():
        out = A.X @ B.X.T
    kernel.finish(out, A.squared_norms, B.squared_norms)
    return out


def tile_of(kernel: Kernel, A: Points, B: Points) -> np.ndarray:
    """K(a, b) for at most TILE_ROWS x TILE_COLUMNS pairs, on this thread."""
    tile = np.empty((len(A), len(B)), dtype=np.result_type(A.X.dtype, B.X.dtype))
    kernel.block(A, B, tile)
    return tile


def registered(cls: type[Kernel]) -> type[Kernel]:
    """Put a kernel class into KERNELS."""
    KERNELS[cls.name] = cls
    return cls


# --- functions of the inner product -------------------------------------------------------------


@dataclass(frozen=True)
class DotKernel(Kernel):
    """A kernel that is a function of x.z, ||x||^2 and ||z||^2: one GEMM and one pass."""

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        inner_products(A.X, B.X, out)
        self.finish(out, A.squared_norms, B.squared_norms)

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        """Turn inner products into kernel values, in place."""
        raise NotImplementedError

    def on_scaled(self, factor: float) -> Kernel:
        return _with_gamma_over(self, factor, factor)

    def diagonal(self, A: Points) -> np.ndarray:
        squared = A.squared_norms.astype(np.float64)
        values = squared[:, None].copy()
        self.finish(values, squared, np.zeros(1))
        return values[:, 0]


@registered
@dataclass(frozen=True)
class Linear(DotKernel):
    """x.z"""

    name: ClassVar[str] = "linear"

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        pass


@registered
@dataclass(frozen=True)
class Polynomial(DotKernel):
    """(gamma x.z + coef0)^degree; the lectures' (x.z / a + b)^d has gamma = 1/a, coef0 = b."""

    name: ClassVar[str] = "poly"
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        dots *= self.gamma
        dots += self.coef0
        np.power(dots, self.degree, out=dots)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree != int(self.degree):
            raise ValueError(
                "The 'degree' parameter of Polynomial must be a whole number, or powers of "
                f"negative numbers have no value. Got {self.degree!r} instead."
            )


@registered
@dataclass(frozen=True)
class RBF(DotKernel):
    """exp(-gamma ||x - z||^2), the Gaussian kernel; sigma means gamma = 1 / (2 sigma^2)."""

    name: ClassVar[str] = "rbf"
    translation_invariant: ClassVar[bool] = True
    gamma: float = 1.0
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
        """Far from the origin, differences drown in float32: those pairs are done in float64.

        Which pairs depends on the two points alone, so that a value never depends on others.
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
    """tanh(gamma x.z + coef0); not positive definite in general."""

    name: ClassVar[str] = "sigmoid"
    positive_definite: ClassVar[bool] = False
    gamma: float = 1.0
    coef0: float = 0.0

    def finish(self, dots: np.ndarray, a2: np.ndarray, b2: np.ndarray) -> None:
        with np.errstate(over="ignore"):  # tanh(inf) is 1
            dots *= self.gamma
        dots += self.coef0
        np.tanh(dots, out=dots)


def _with_gamma_over(kernel: Any, *factors: float) -> Kernel:
    """The same kernel with gamma divided, as far as floating point goes."""
    if not hasattr(kernel, "gamma"):
        return kernel
    gamma = kernel.gamma
    for factor in factors:
        gamma = min(gamma / factor, _LARGEST_GAMMA)
    return dataclasses.replace(kernel, gamma=gamma)


# --- functions of the differences ---------------------------------------------------------------


@registered
@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma ||x - z||_1)"""

    name: ClassVar[str] = "laplacian"
    translation_invariant: ClassVar[bool] = True
    gamma: float = 1.0

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        city_block(densified(A.X), densified(B.X), out)
        with np.errstate(over="ignore"):  # exp(-inf) is 0
            out *= -self.gamma
        np.exp(out, out=out)

    def diagonal(self, A: Points) -> np.ndarray:
        return np.ones(len(A))

    def on_scaled(self, factor: float) -> Kernel:
        return _with_gamma_over(self, factor)


@registered
@dataclass(frozen=True)
class ChiSquare(Kernel):
    """exp(-gamma sum (x - z)^2 / (x + z)), for histograms: features must not be negative."""

    name: ClassVar[str] = "chi2"
    gamma: float = 1.0

    def points(self, X: Any, *, shift: np.ndarray | None = None) -> Points:
        values = X.data if sp.issparse(X) else X
        if values.size and values.min() < 0:
            raise InvalidDataError(
                f"The chi-square kernel needs features >= 0, got {values.min():g}. Use counts or "
                "frequencies, or kernel='rbf'."
            )
        return super().points(X)

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        chi_square(densified(A.X), densified(B.X), out)
        with np.errstate(over="ignore"):  # exp(-inf) is 0
            out *= -self.gamma
        np.exp(out, out=out)

    def diagonal(self, A: Points) -> np.ndarray:
        return np.ones(len(A))

    def on_scaled(self, factor: float) -> Kernel:
        return _with_gamma_over(self, factor)


# --- given from outside -------------------------------------------------------------------------


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X is the Gram matrix itself: (n, n) in fit, (m, n) in predict."""

    name: ClassVar[str] = "precomputed"
    positive_definite: ClassVar[bool] = False

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        out[:] = A.X[:, B.columns]

    def diagonal(self, A: Points) -> np.ndarray:
        return np.asarray(A.X[np.arange(len(A)), A.columns], dtype=np.float64)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's function of two matrices, called with read-only blocks of rows."""

    name: ClassVar[str] = "callable"
    positive_definite: ClassVar[bool] = False
    function: Callable[[Any, Any], Any] = None  # type: ignore[assignment]

    def block(self, A: Points, B: Points, out: np.ndarray) -> None:
        write_values(self.function, self.function(_protected(A.X), _protected(B.X)), out)

    def diagonal(self, A: Points) -> np.ndarray:
        values = np.empty(len(A))
        for start in range(0, len(A), _DIAGONAL_BLOCK):  # few calls of a function that may be slow
            part = A.take(slice(start, start + _DIAGONAL_BLOCK))
            square = np.empty((len(part), len(part)))
            self.block(part, part, square)
            values[start : start + len(part)] = np.diag(square)
        return values


def write_values(function: Callable[[Any, Any], Any], values: Any, out: np.ndarray) -> None:
    """Write what a user's function returned, dense or sparse, into `out`, or say what is wrong."""
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    called = getattr(function, "__name__", repr(function))
    if values.shape != out.shape:
        raise InvalidDataError(
            f"The kernel function {called} returned an array of shape {values.shape} for "
            f"{len(out)} and {out.shape[1]} rows. It must return shape {out.shape}."
        )
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise InvalidDataError(
            f"The kernel function {called} returned values that are not finite numbers "
            f"(dtype {values.dtype})."
        )
    with np.errstate(over="ignore"):
        out[:] = values
    if not np.isfinite(out).all():
        raise NumericalOverflowError(
            f"The kernel function {called} returned values beyond {out.dtype}. Pass X as "
            "float64, or scale the kernel."
        )


def _protected(X: Any) -> Any:
    return X if sp.issparse(X) else read_only(X)


def register_kernel(
    name: str, function: Callable[..., Any], *, positive_definite: bool = False
) -> type[Kernel]:
    """Make `kernel=name` mean your own function in every kernel machine of the library.

    Parameters
    ----------
    name : str
        A new name.
    function : callable
        `function(X, Z)` returns the (len(X), len(Z)) array of K(x, z). If it has keyword
        parameters `gamma`, `degree` or `coef0`, it gets the estimator's.
    positive_definite : bool, default=False
        Whether K is an inner product; tests and solvers may rely on it.

    Examples
    --------
    >>> import numpy as np, margrove
    >>> def cosine(X, Z):
    ...     return X @ Z.T / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(Z, axis=1)
    >>> _ = margrove.register_kernel("cosine", cosine, positive_definite=True)
    >>> margrove.kernels.KERNELS["cosine"]()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    >>> del margrove.kernels.KERNELS["cosine"]
    """
    if name in KERNELS or name in ("precomputed", "callable"):
        raise ValueError(f"A kernel named {name!r} exists already: {sorted(KERNELS)}.")
    accepted = inspect.signature(function).parameters
    defaults = {"gamma": 1.0, "degree": 3, "coef0": 0.0}
    fields = [(key, float, value) for key, value in defaults.items() if key in accepted]

    def block(self: Any, A: Points, B: Points, out: np.ndarray) -> None:
        parameters = {key: getattr(self, key) for key, _, _ in fields}
        bound = CallableKernel(lambda X, Z: function(X, Z, **parameters))
        bound.block(A, B, out)

    def diagonal(self: Any, A: Points) -> np.ndarray:
        return CallableKernel.diagonal(self, A)

    def reduce(self: Any) -> tuple[Any, ...]:
        values = {key: getattr(self, key) for key, _, _ in fields}
        return _registered_again, (name, function, positive_definite, values)

    cls = dataclasses.make_dataclass(
        f"Registered_{name}",
        fields,
        bases=(Kernel,),
        frozen=True,
        namespace={
            "name": name,
            "positive_definite": positive_definite,
            "block": block,
            "diagonal": diagonal,
            "__reduce__": reduce,
            "__doc__": function.__doc__ or f"The registered kernel {name!r}.",
        },
    )
    return registered(cls)


def _registered_again(
    name: str, function: Callable[..., Any], positive_definite: bool, values: dict[str, float]
) -> Kernel:
    """Unpickle a registered kernel, also in a process that has not registered it yet."""
    if name not in KERNELS:
        register_kernel(name, function, positive_definite=positive_definite)
    return KERNELS[name](**values)


def resolve_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: float | Literal["scale", "auto"],
    degree: float,
    coef0: float,
    X: Any,
    weight: np.ndarray,
) -> Kernel:
    """The kernel object that an estimator's parameters mean, for rows X of the given weights."""
    if isinstance(kernel, type) or type(kernel) is Kernel:
        raise ValueError(
            f"The 'kernel' parameter must be a kernel, not a class. Got {kernel!r}; use an "
            "instance such as kernels.RBF(gamma=1.0)."
        )
    if isinstance(kernel, Kernel):
        return kernel
    if kernel == "precomputed":
        return Precomputed()
    if callable(kernel):
        return CallableKernel(kernel)
    if kernel not in KERNELS:
        raise ValueError(
            f"The 'kernel' parameter must be one of {sorted(KERNELS)}, 'precomputed', a Kernel or "
            f"a callable. Got {kernel!r} instead."
        )
    chosen = KERNELS[kernel]
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    wanted = {f.name for f in dataclasses.fields(chosen) if f.init and f.name in given}
    if "gamma" in wanted:
        given["gamma"] = _resolve_gamma(gamma, X, weight)
    return chosen(**{name: given[name] for name in wanted})


def _resolve_gamma(gamma: float | str, X: Any, weight: np.ndarray) -> float:
    """scikit-learn's "scale" and "auto", with the variance weighted as the rows are."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        with single_threaded_blas():
            variance = _weighted_variance(X, weight)
        if not variance > 0:
            return 1.0
        value = 1.0 / (X.shape[1] * variance)
        if not np.isfinite(value) or not np.isfinite(variance):
            raise NumericalOverflowError(
                f"gamma='scale' is beyond floating point for features of variance {variance:.3g}. "
                "Scale the features, for example with sklearn.preprocessing.StandardScaler."
            )
        return value
    return float(gamma)


def _weighted_variance(X: Any, weight: np.ndarray) -> float:
    share = weight / weight.sum() / X.shape[1]
    if sp.issparse(X):
        per_entry = np.repeat(share, np.diff(X.indptr))
        data = X.data.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = per_entry @ data
            stored = per_entry @ (data - mean) ** 2
            return float(stored + (1.0 - per_entry.sum()) * np.square(mean))
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float((share @ X.astype(np.float64, copy=False)).sum())
        return float((share @ (X - mean) ** 2).sum())
