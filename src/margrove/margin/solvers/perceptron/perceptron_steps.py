"""The compiled loops of the perceptron: gather rows, compute scores, update after mistakes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, region
from margrove.margin.solvers.perceptron.separation import scores_csr, scores_dense

__all__ = ["ROWS_PER_GATHER", "BlockArrays", "StepRule", "StepTrace", "gather_rows", "visit_rows"]

ROWS_PER_GATHER = 256  # of a tile


class BlockArrays(NamedTuple):
    """The arrays that the compiled steps change, for K problems and d features; float64.

    W          (K, d) for dense X, (d, K) for sparse X, times scalars[0]
    b          (K,) intercepts
    drift, drift_b   as W and b: sums of each change times the presentations before it
    l1_done    as W: the L1 penalty that was applied to each weight so far
    scalars    (4,) scale of W, cumulative L1 penalty, presentations so far, 1 if a score was NaN
    loss       (K,) of this epoch
    mistakes   (K,)
    active     bool (K,) whether the problem is still trained
    """

    W: np.ndarray
    b: np.ndarray
    drift: np.ndarray
    drift_b: np.ndarray
    l1_done: np.ndarray
    scalars: np.ndarray
    loss: np.ndarray
    mistakes: np.ndarray
    active: np.ndarray


class StepRule(NamedTuple):
    """The part of `Rule` that the compiled steps read."""

    eta: float
    margin: float
    fit_intercept: bool
    l1: float
    l2: float
    average_from: int


class StepTrace(NamedTuple):
    """The recorded steps, for listeners.

    records  float64 (r, 5), empty without a listener: epoch, row, problem, value, step
    used     int64 (1,) the number of recorded steps
    """

    records: np.ndarray
    used: np.ndarray


@region(bare=True)
def gather_rows(tile, X, rows, out):
    """out[c] = row rows[c] of a dense X, in float64, for the rows of a tile."""
    for c in range(tile * ROWS_PER_GATHER, min((tile + 1) * ROWS_PER_GATHER, len(rows))):
        i = rows[c]
        for j in range(out.shape[1]):
            out[c, j] = X.dense[i, j]


@kernel
def _add_dense(buffer, c, W, k, step):
    """w_k += step * x"""
    for j in range(W.shape[1]):
        W[k, j] += step * buffer[c, j]


@kernel
def _add_csr(data, indices, first, last, W, k, step):
    """w_k += step * x for the CSR entries first .. last"""
    for p in range(first, last):
        W[np.uint64(indices[p]), k] += step * data[p]


@kernel
def _truncate(W, done, j, by_class, scale, budget):
    """L1 by cumulative penalty (Tsuruoka, Tsujii and Ananiadou 2009), feature j, all problems."""
    for k in range(W.shape[0] if by_class else W.shape[1]):
        a, b = (k, j) if by_class else (j, k)
        before = W[a, b] * scale
        after = before
        if before > 0.0:
            after = max(0.0, before - (budget + done[a, b]))
        elif before < 0.0:
            after = min(0.0, before + (budget - done[a, b]))
        done[a, b] += after - before
        W[a, b] = after / scale


@kernel
def _rescale(W, scale):
    # A loop: an array expression in a kernel takes a second to compile.
    for a in range(W.shape[0]):
        for b in range(W.shape[1]):
            W[a, b] *= scale


@kernel
def visit_rows(X, buffer, visits, start, end, first_problem, block, steps, epoch, rule):
    """Present the visits start to end to the problems of one block; returns where it stopped.

    Dense rows are read from buffer[0], buffer[1], ..., sparse ones from X. It stops early only if
    the records of steps are full. Row t is positive for problem k if codes[t] == k.
    """
    rows, codes, weights, norms = visits
    W, b, drift_W, drift_b, l1_done, scalars, loss, mistakes, active = block
    trace, n_traced = steps
    eta, margin, fit_intercept, l1, l2, average_from = rule
    n_problems = len(b)
    f = np.empty(n_problems)
    scale, l1_budget, clock = scalars[0], scalars[1], scalars[2]
    stopped = end
    c, first, last = 0, 0, 0
    for t in range(start, end):
        if trace.shape[0] > 0 and n_traced[0] + n_problems > trace.shape[0]:
            stopped = t
            break
        weight = weights[t]
        if X.is_dense:
            c = t - start
            scores_dense(buffer, c, W, f)
        else:
            first, last = X.indptr[rows[t]], X.indptr[rows[t] + 1]
            scores_csr(X.data, X.indices, first, last, W, f)
        score_scale = scale  # rows are scored before the penalty shrinks the weights
        if l2 > 0.0:
            scale *= max(0.0, 1.0 - eta * l2) ** weight
            if scale < 1e-9:
                _rescale(W, scale)
                scale = 1.0
        for k in range(n_problems):
            sign = 1.0 if codes[t] == first_problem + k else -1.0
            value = sign * (f[k] * score_scale + b[k])
            if value > margin or not active[k]:
                continue
            if not value <= margin:
                scalars[3] = 1.0
                continue
            step = weight
            if weight > 1.0:
                norm = norms[t] + (1.0 if fit_intercept else 0.0)
                if norm > 0.0:
                    step = min(weight, np.floor((margin - value) / (eta * norm)) + 1.0)
            loss[k] += weight * (margin - value)
            mistakes[k] += step
            change = eta * step * sign
            late = (clock - average_from) * change
            averaging = average_from >= 0 and clock > average_from
            if X.is_dense:
                _add_dense(buffer, c, W, k, change / scale)
                if averaging:
                    _add_dense(buffer, c, drift_W, k, late)
            else:
                _add_csr(X.data, X.indices, first, last, W, k, change / scale)
                if averaging:
                    _add_csr(X.data, X.indices, first, last, drift_W, k, late)
            if fit_intercept:
                b[k] += change
                if averaging:
                    drift_b[k] += late
            if trace.shape[0] > 0:
                m = n_traced[0]
                trace[m, 0], trace[m, 1], trace[m, 2] = epoch, rows[t], first_problem + k
                trace[m, 3], trace[m, 4] = value + 0.0, step  # never -0.0
                n_traced[0] = m + 1
        if l1 > 0.0:
            l1_budget += eta * l1 * weight
            if X.is_dense:
                for j in range(buffer.shape[1]):
                    _truncate(W, l1_done, j, X.is_dense, scale, l1_budget)
            else:
                for p in range(first, last):
                    _truncate(W, l1_done, np.int64(X.indices[p]), X.is_dense, scale, l1_budget)
        clock += weight
    scalars[0], scalars[1], scalars[2] = scale, l1_budget, clock
    return stopped
