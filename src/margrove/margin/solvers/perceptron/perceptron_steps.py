"""The compiled loops of the perceptron: epochs, scores, updates after mistakes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.margin.solvers.perceptron.epochs import end_epoch, shuffle
from margrove.margin.solvers.perceptron.separation import scores_csr, scores_dense

__all__ = [
    "CURSOR",
    "EPOCH",
    "BlockArrays",
    "EpochArrays",
    "EpochRule",
    "StepRule",
    "StepTrace",
    "visit_rows",
]

CURSOR, EPOCH = range(2)  # places of `EpochArrays.counts`


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


class EpochRule(NamedTuple):
    """When epochs end; tol is NaN if the loss does not matter.

    total       the weight of all rows
    is_plain    whether a problem that made no mistake in an epoch cannot change any more
    is_judged   whether each epoch is judged by the loss in it, not by the caller
    """

    seed: np.uint64
    shuffle: bool
    shuffle_key: np.uint64
    most_epochs: int
    tol: float
    patience: int
    total: float
    is_plain: bool
    is_judged: bool


class EpochArrays(NamedTuple):
    """Where the epochs of a block are, and the arrays of `EarlyStopping` for its K problems.

    order     int64 (m,)  the visits of an epoch
    counts    int64 (2,)  visits in this epoch, epochs
    before    (K,)        mistakes before this epoch
    settled   bool (K,)   whether the problem cannot change any more
    """

    order: np.ndarray
    counts: np.ndarray
    before: np.ndarray
    settled: np.ndarray
    best: np.ndarray
    bad_epochs: np.ndarray
    converged: np.ndarray
    n_iter: np.ndarray


class StepTrace(NamedTuple):
    """The recorded steps, for listeners.

    records  float64 (r, 5), empty without a listener: epoch, row, problem, value, step
    used     int64 (1,) the number of recorded steps
    """

    records: np.ndarray
    used: np.ndarray


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
def _present_rows(X, buffer, visits, start, end, first_problem, block, steps, epoch, rule):
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


@kernel
def visit_rows(
    X, buffer, gathered, base, visits, first_problem, block, steps, rule, epoch_rule, epochs,
    most_visits,
):  # fmt: skip
    """Present up to most_visits rows to the problems of one block, some at a time.

    `base` are all visits, in their base order. Those that come next are gathered in `visits`, and
    their rows, if X is dense, in `buffer` (`gathered` is the same array), because they are far
    apart in memory. It stops early if the records of steps are full, and after an epoch that the
    caller judges, or after which a problem has converged or a weight is not finite.
    """
    order, counts = epochs.order, epochs.counts
    while most_visits > 0:
        if counts[CURSOR] == 0:
            _begin_epoch(block, epoch_rule, epochs)
        start = counts[CURSOR]
        n = min(len(visits.rows), len(order) - start, most_visits)
        _gather(X, base, order[start : start + n], visits, buffer)
        reached = _present_rows(
            X, gathered, visits, 0, n, first_problem, block, steps, counts[EPOCH], rule
        )
        counts[CURSOR] += reached
        most_visits -= reached
        if reached < n:
            return
        if counts[CURSOR] == len(order) and _end_epoch(block, epoch_rule, epochs):
            return


@kernel(inner=True)
def _begin_epoch(block, rule, epochs):
    for k in range(len(block.loss)):
        block.loss[k] = 0.0
        epochs.before[k] = block.mistakes[k]
    if rule.shuffle:
        shuffle(epochs.order, rule.seed, rule.shuffle_key + np.uint64(epochs.counts[EPOCH]))


@kernel(inner=True)
def _gather(X, base, order, visits, buffer):
    """Copy the visits of an order, with the rows of a dense X in float64.

    Short loops, so that many reads are under way at the same time.
    """
    for c in range(len(order)):
        visits.rows[c] = base.rows[order[c]]
    for c in range(len(order)):
        visits.codes[c] = base.codes[order[c]]
    for c in range(len(order)):
        visits.weight[c] = base.weight[order[c]]
    for c in range(len(order)):
        visits.norms[c] = base.norms[order[c]]
    if X.is_dense:
        for c in range(len(order)):
            row = visits.rows[c]
            for j in range(X.dense.shape[1]):
                buffer[c, j] = X.dense[row, j]


@kernel(inner=True)
def _end_epoch(block, rule, epochs):
    """Whether the caller is to look at the block now."""
    counts, mistakes, total = epochs.counts, block.mistakes, 0.0
    counts[CURSOR] = 0
    counts[EPOCH] += 1
    for a in range(block.W.shape[0]):
        for b in range(block.W.shape[1]):
            total += 0.0 * block.W[a, b]  # NaN if a weight is not finite
    for k in range(len(block.b)):
        total += 0.0 * block.b[k]
        epochs.settled[k] = rule.is_plain and mistakes[k] == epochs.before[k]
    if total != 0.0:  # NaN, too
        block.scalars[3] = 1.0
    if block.scalars[3] != 0.0 or not rule.is_judged:
        return True
    for k in range(len(block.b)):
        block.loss[k] /= rule.total
    end_epoch(
        counts[EPOCH], block.loss, epochs.settled, rule.tol, rule.patience, epochs.best,
        epochs.bad_epochs, epochs.converged, epochs.n_iter,
    )  # fmt: skip
    n_new = 0
    for k in range(len(block.b)):
        n_new += block.active[k] and epochs.converged[k]
    return n_new > 0 or counts[EPOCH] == rule.most_epochs
