"""Sums of kernel values of sparse rows, in compiled tiles.

The nonzeros of a tile of rows are sorted by column. Then each nonzero of a support vector is
multiplied by the nonzeros of its column: no other products are computed. An inner product is added
up in the order of the nonzeros of the support vector, so that a row does not depend on the others.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from margrove._data import kernel_rows
from margrove._runtime import TILE_ROWS, kernel, region
from margrove.margin.kernels.blocks import add_products, power_block, rbf_block_64, tanh_block
from margrove.margin.kernels.kernel import POLYNOMIAL, RBF, SIGMOID, DotKernel, Kernel, Points
from margrove.margin.kernels.tiles import in_slices

__all__ = ["add_sparse_sums", "is_sparse_sum"]

_AS_FEATURES = 4  # a nonzero takes as long as so many features of dense rows


def is_sparse_sum(kernel: Kernel, points: Points, support: Points) -> bool:
    """Whether rows are sparse on both sides, and the kernel is a known function of x.z."""
    is_known = isinstance(kernel, DotKernel) and kernel.formula() is not None
    return is_known and sp.issparse(points.X) and sp.issparse(support.X)


def add_sparse_sums(
    kernel: Kernel,
    points: Points,
    support: Points,
    pieces: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
    n_threads: int,
) -> None:
    """out[group] += K(points, sources of a piece) @ weights, in float64.

    pieces (m, 3): group, first and last source, without gaps; weights: of all pieces, each (k, n).
    """
    X, V = (kernel_rows(each.X.astype(np.float64, copy=False)) for each in (points, support))
    n_features, per_source = points.X.shape[1], len(V.data) / max(len(support), 1)
    in_slices(
        _add_tile, -(-len(points) // TILE_ROWS), n_threads, TILE_ROWS * len(support),
        int(_AS_FEATURES * per_source), X, n_features, points.squared_norms, kernel.formula(), V,
        support.squared_norms, pieces, weights, out,
    )  # fmt: skip


@region
def _add_tile(tile, first, X, n_features, a2, formula, V, b2, pieces, weights, out):
    """out[group, rows of the tile] += K(rows, sources of a piece) @ weights, for each piece."""
    start = (first + tile) * TILE_ROWS
    end, k = min(start + TILE_ROWS, len(a2)), out.shape[2]
    edges, rows, values = _by_column(X, start, end, n_features)
    largest = 0
    for number in range(len(pieces)):
        largest = max(largest, pieces[number, 2] - pieces[number, 1])
    memory = np.empty(largest * (end - start))
    for number in range(len(pieces)):
        group, low, high = pieces[number]
        block = memory[: (high - low) * (end - start)].reshape(high - low, end - start)
        _fill_products(V, low, high, edges, rows, values, block)
        _fill_values(formula, b2[low:high], a2[start:end], block)
        own = weights[k * low : k * high].reshape(k, high - low)
        add_products(own, block, out[group, start:end])


@kernel(hidden=True)
def _by_column(X, start, end, n_features):
    """The nonzeros of some rows, sorted by column: edges of the columns, rows, values."""
    first, last = X.indptr[start], X.indptr[end]
    edges = np.zeros(n_features + 1, np.int64)
    for p in range(first, last):
        edges[np.uint32(X.indices[p]) + 1] += 1
    for column in range(n_features):
        edges[column + 1] += edges[column]
    places = edges[:-1].copy()
    rows, values = np.empty(last - first, np.uint32), np.empty(last - first)
    for i in range(start, end):
        for p in range(X.indptr[i], X.indptr[i + 1]):
            column = np.uint32(X.indices[p])
            rows[places[column]], values[places[column]] = i - start, X.data[p]
            places[column] += 1
    return edges, rows, values


@kernel(inner=True)
def _fill_products(V, low, high, edges, rows, values, block):
    """block[j - low] <- inner products of v_j and the rows whose nonzeros are given by column."""
    data, indices, indptr = V.data, V.indices, V.indptr
    for j in range(low, high):
        out = block[j - low]
        out[:] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            column, value = np.uint32(indices[p]), data[p]
            for q in range(edges[column], edges[column + np.uint32(1)]):
                out[rows[q]] += value * values[q]


@kernel(hidden=True)
def _fill_values(formula, a2, b2, block):
    """Inner products <- kernel values."""
    if formula.code == RBF:
        rbf_block_64(block, a2, b2, formula.gamma)
    elif formula.code == POLYNOMIAL:
        power_block(block, len(a2), len(b2), formula.gamma, formula.coef0, formula.degree)
    elif formula.code == SIGMOID:
        tanh_block(block, len(a2), len(b2), formula.gamma, formula.coef0)
