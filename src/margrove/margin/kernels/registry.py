"""The registry of kernels: names, classes, and the meaning of an estimator's parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

import margrove.margin.kernels.functions  # noqa: F401  (its kernels are in KERNELS then)
from margrove._runtime import single_threaded_blas
from margrove.exceptions import NumericalOverflowError
from margrove.margin.kernels.blocks import densified
from margrove.margin.kernels.given_kernels import CallableKernel, Precomputed
from margrove.margin.kernels.kernel import (
    INVARIANCES,
    KERNELS,
    USUAL_PARAMETERS,
    Kernel,
    KernelParameter,
    Points,
    registered,
)

__all__ = [
    "KERNELS",
    "has_width",
    "kernel_class",
    "kernel_table",
    "needs_nonnegative",
    "register_kernel",
    "registered",
    "resolve_kernel",
    "tuned_widths",
]


def register_kernel(
    name: str,
    function: Callable[..., Any],
    *,
    positive_definite: bool = False,
    parameters: Mapping[str, KernelParameter] | None = None,
    invariances: Sequence[str] = (),
    reads_sparse: bool = True,
    nonnegative: bool = False,
) -> type[Kernel]:
    """Make `kernel=name` mean your function in every kernel machine of the library.

    Menus, grids, the command line and model files then know it as well. A model file contains its
    name and parameters, not its code: register it also in the process that loads the file.

    Parameters
    ----------
    name : str
        A new name.
    function : callable
        `function(X, Z)` returns the (len(X), len(Z)) array of K(x, z). If it has keyword
        parameters `gamma`, `degree` or `coef0`, it gets the estimator's. Other parameters with a
        number as default are parameters of the kernel, too. The first line of the docstring is
        shown as the formula.
    positive_definite : bool, default=False
        Whether K is an inner product; tests and solvers may rely on it.
    parameters : mapping of str to KernelParameter, optional
        Defaults, ranges and grids that differ from the usual ones.
    invariances : sequence of str, default=()
        Any of "translation_invariant", "rotation_invariant" and "permutation_invariant". The
        origin of dense data may be moved for the first.
    reads_sparse : bool, default=True
        Whether the function takes CSR matrices. If not, it gets dense blocks of rows.
    nonnegative : bool, default=False
        Whether the kernel is defined for features >= 0 only.

    Returns
    -------
    type
        The class of the kernel, whose fields are the parameters.

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
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a nonempty string. Got {name!r} instead.")
    if name in KERNELS or name in ("precomputed", "callable"):
        raise ValueError(f"A kernel named {name!r} exists already: {sorted(KERNELS)}.")
    for invariance in invariances:
        if invariance not in INVARIANCES:
            raise ValueError(f"invariances must be among {list(INVARIANCES)}. Got {invariance!r}.")
    properties = {
        "positive_definite": positive_definite,
        "reads_sparse": reads_sparse,
        "nonnegative": nonnegative,
        **dict.fromkeys(invariances, True),
    }
    described = _parameters(function, parameters or {})
    return registered(_class_of(name, function, properties, described))


def _parameters(
    function: Callable[..., Any], given: Mapping[str, KernelParameter]
) -> dict[str, KernelParameter]:
    """The parameters of a kernel function, from its signature and `given`."""
    found = {}
    for name, argument in inspect.signature(function).parameters.items():
        usual, default = USUAL_PARAMETERS.get(name), argument.default
        is_number = isinstance(default, Real) and not isinstance(default, bool)
        if name in given:
            found[name] = given[name]
        elif usual is not None:
            found[name] = usual
        elif is_number and argument.kind is not inspect.Parameter.POSITIONAL_ONLY:
            found[name] = KernelParameter(float(default))
    unknown = sorted(set(given) - set(found))
    if unknown:
        raise ValueError(
            f"The kernel function has no parameter {unknown[0]!r}. It has {sorted(found)}."
        )
    return found


def _class_of(
    name: str,
    function: Callable[..., Any],
    properties: dict[str, bool],
    parameters: dict[str, KernelParameter],
) -> type[Kernel]:
    """A kernel class whose `block` calls a function."""
    reads_sparse = properties["reads_sparse"]

    def values_of(self: Any) -> dict[str, float]:
        return {key: getattr(self, key) for key in parameters}

    def block(self: Any, A: Points, B: Points, out: np.ndarray) -> None:
        values = values_of(self)

        def bound(X: Any, Z: Any) -> Any:
            sides = (X, Z) if reads_sparse else (densified(X), densified(Z))
            return function(*sides, **values)

        bound.__name__ = name
        CallableKernel(bound).block(A, B, out)

    def diagonal(self: Any, A: Points) -> np.ndarray:
        return CallableKernel.diagonal(self, A)

    def reduce(self: Any) -> tuple[Any, ...]:
        return _unpickle, (name, function, properties, parameters, values_of(self))

    fields = [
        (key, float, dataclasses.field(default=found.default, metadata={"parameter": found}))
        for key, found in parameters.items()
    ]
    return dataclasses.make_dataclass(
        f"Registered_{name}",
        fields,
        bases=(Kernel,),
        frozen=True,
        namespace={
            "name": name,
            **properties,
            "block": block,
            "diagonal": diagonal,
            "__reduce__": reduce,
            "__doc__": function.__doc__ or f"The registered kernel {name!r}.",
        },
    )


def _unpickle(
    name: str,
    function: Callable[..., Any],
    properties: dict[str, bool],
    parameters: dict[str, KernelParameter],
    values: dict[str, float],
) -> Kernel:
    """Unpickle a registered kernel, also in a process that has not registered it yet.

    The pickle refers to the function by its name, as for any function, so that worker processes can
    use it.
    """
    if name not in KERNELS:
        registered(_class_of(name, function, properties, parameters))
    return KERNELS[name](**values)


def kernel_class(kernel: Any) -> type[Kernel] | None:
    """The class of a kernel given by name, as an object or as a function; None if unknown."""
    if isinstance(kernel, str):
        return Precomputed if kernel == Precomputed.name else KERNELS.get(kernel)
    if isinstance(kernel, Kernel):
        return type(kernel)
    return CallableKernel if callable(kernel) else None


def kernel_table() -> str:
    """All kernels as a Markdown table, for the documentation."""
    rows = [
        "| `kernel=` | K(x, z) | parameters | positive definite | sparse X |",
        "|---|---|---|---|---|",
    ]
    for name, kernel in KERNELS.items():
        parameters = ", ".join(f"`{parameter}`" for parameter in kernel.parameters()) or "none"
        definite = "yes" if kernel.positive_definite else "no"
        sparse = "yes" if kernel.reads_sparse else "in dense blocks"
        rows.append(f"| `{name!r}` | {kernel.summary()} | {parameters} | {definite} | {sparse} |")
    return "\n".join(row.replace("||x - z||", "‖x - z‖") for row in rows)


def needs_nonnegative(kernel: Any) -> bool:
    """Whether a kernel, as given to an estimator, is defined for features >= 0 only."""
    found = kernel_class(kernel)
    return found is not None and found.nonnegative


def has_width(kernel: Any) -> bool:
    """Whether the kernel is given by name and has a `gamma` (the gamma of an object is fixed)."""
    return isinstance(kernel, str) and kernel in KERNELS and "gamma" in KERNELS[kernel].parameters()


def tuned_widths(kernel: Any) -> tuple[float, float] | None:
    """Powers of ten between which `gamma` is tuned, relative to `gamma="scale"`, or None."""
    return KERNELS[kernel].parameters()["gamma"].tuned if has_width(kernel) else None


def resolve_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: float | Literal["scale", "auto"],
    degree: float,
    coef0: float,
    X: Any,
    weight: np.ndarray,
) -> Kernel:
    """The kernel object for an estimator's parameters, and for rows X of the given weights."""
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
            f"a callable. Got {kernel!r} instead. Register a kernel of your own with "
            "margrove.register_kernel, in each process that uses it."
        )
    chosen = KERNELS[kernel]
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    wanted = set(given) & set(chosen.parameters())
    if "gamma" in wanted:
        given["gamma"] = _resolve_gamma(gamma, X, weight)
    return chosen(**{name: given[name] for name in wanted})


def _resolve_gamma(gamma: float | str, X: Any, weight: np.ndarray) -> float:
    """scikit-learn's "scale" and "auto", with the variance of the weighted rows."""
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
