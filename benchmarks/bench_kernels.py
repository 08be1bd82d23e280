"""Gram blocks against scikit-learn's pairwise kernels: 4096 x 20000 pairs in 54 dimensions."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.utils import gen_batches

from compare import Case
from margrove.margin.kernels.gram_tiles import gram
from margrove.margin.kernels.registry import KERNELS

PEERS = {
    "rbf": partial(rbf_kernel, gamma=0.02),
    "poly": partial(polynomial_kernel, gamma=0.02, degree=3, coef0=1.0),
    "laplacian": partial(laplacian_kernel, gamma=0.02),
}
PARAMETERS = {
    "rbf": {"gamma": 0.02},
    "poly": {"gamma": 0.02, "degree": 3, "coef0": 1.0},
    "laplacian": {"gamma": 0.02},
}


def load(dtype, n_rows, n_columns):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n_rows, 54)).astype(dtype)
    B = rng.standard_normal((n_columns, 54)).astype(dtype)
    return A, B, np.empty((n_rows, n_columns), dtype=dtype)


def ours(name, data):
    A, B, out = data
    kernel = KERNELS[name](**PARAMETERS[name])
    return gram(kernel, kernel.points(A), kernel.points(B), out=out, n_threads=2)


def theirs(name, data):
    A, B, out = data
    for rows in gen_batches(len(A), 1024):
        out[rows] = PEERS[name](A[rows], B)
    return out


def quality(name, result, data):
    A, B, _ = data
    kernel = KERNELS[name](**PARAMETERS[name])
    exact = kernel(A[:50].astype(np.float64), B[:50].astype(np.float64))
    return {"largest error": float(np.abs(result[:50, :50] - exact).max())}


def case(name, dtype, n_rows, n_columns):
    return Case(
        name=f"{name}, {np.dtype(dtype).name}, {n_rows} x {n_columns}",
        data=partial(load, dtype, n_rows, n_columns),
        ours={"margrove": partial(ours, name)},
        peers={"scikit-learn": partial(theirs, name)},
        quality=partial(quality, name),
        decisive="-largest error",
        allowance=1e-4 if dtype == np.float32 else 1e-12,
    )


CASES = [
    case("rbf", np.float64, 4096, 20_000),
    case("rbf", np.float32, 4096, 20_000),
    case("poly", np.float64, 4096, 20_000),
    case("laplacian", np.float64, 1024, 5_000),
]
