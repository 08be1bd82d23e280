"""Kernel machines f(x) = sum_i c_i K(x_i, x) + b: their kernel, support vectors and norm."""

from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._runtime import resolve_n_jobs
from margrove.facts.machine_values import KernelFacts
from margrove.facts.plain_values import frozen, in_words
from margrove.margin.kernels import CallableKernel, Kernel, Linear, Precomputed, kernel_sums
from margrove.margin.svm import KernelMachine

__all__ = ["against_the_rest", "expansion_fields", "support_fields"]


def support_fields(model: KernelMachine) -> dict[str, Any]:
    """The fields that all machines share: the kernel and the support vectors."""
    vectors = None if isinstance(model.kernel_, Precomputed) else model.support_vectors_
    return {
        "kernel": _kernel_facts(model),
        "n_support": len(model.support_),
        "support": frozen(model.support_),
        "support_vectors": vectors if sp.issparse(vectors) else frozen(vectors),
    }


def _kernel_facts(model: KernelMachine) -> KernelFacts:
    kernel = model.kernel_
    fields = dataclasses.fields(kernel)
    parameters = {field.name: getattr(kernel, field.name) for field in fields}
    name, documented = kernel.name or type(kernel).__name__, inspect.getdoc(type(kernel))
    if isinstance(kernel, CallableKernel):
        function = parameters.pop("function")
        name = getattr(function, "__name__", type(function).__name__)
        documented = inspect.getdoc(function) if hasattr(function, "__name__") else documented
    return KernelFacts(
        name=name,
        parameters={key: in_words(value) for key, value in parameters.items()},
        formula=(documented or "").partition("\n")[0],
        is_positive_definite=bool(kernel.positive_definite),
        is_translation_invariant=bool(kernel.translation_invariant),
        feature_scale=float(getattr(model, "feature_scale_", 1.0)),
    )


def against_the_rest(names: list[Any]) -> list[str]:
    """The names of machines of one class against the rest; two classes have one machine."""
    if len(names) == 2:
        return [f"{names[1]!r} against {names[0]!r}"]
    return [f"{name!r} against the rest" for name in names]


def expansion_fields(model: Any, coef: np.ndarray, *, norm: float | None = None) -> dict[str, Any]:
    """The fields of one machine: its vectors, coefficients, weights and norm."""
    used = np.flatnonzero(coef)
    weights = _linear_weights(model, used, coef[used])
    if weights is not None:
        norm = float(np.linalg.norm(weights))
    elif norm is None:
        norm = _feature_norm(model, used, coef[used])
    return {
        "n_support": len(used),
        "support": frozen(model.support_[used]),
        "coefficients": frozen(coef[used]),
        "weights": frozen(weights),
        "norm": norm,
    }


def _linear_weights(model: Any, used: np.ndarray, coef: np.ndarray) -> np.ndarray | None:
    if not isinstance(model.kernel_, Linear):
        return None
    scale = float(getattr(model, "feature_scale_", 1.0))
    return np.asarray(coef @ (model.support_vectors_[used] * scale)) * scale


def _feature_norm(model: Any, used: np.ndarray, coef: np.ndarray) -> float | None:
    """||w|| = sqrt(c' K c), from the support vectors only."""
    kernel: Kernel = model.kernel_
    if isinstance(kernel, Precomputed):
        return None
    if len(used) == 0:
        return 0.0
    vectors = model.support_vectors_[used].astype(np.float64)
    vectors = vectors * float(getattr(model, "feature_scale_", 1.0))
    points = kernel.points(vectors, shift=kernel.centre(vectors))
    n_threads = resolve_n_jobs(model.n_jobs, unset="all")
    values = kernel_sums(kernel, points, points, coef[:, None], n_threads=n_threads)
    return math.sqrt(max(0.0, float(coef @ values[:, 0])))
