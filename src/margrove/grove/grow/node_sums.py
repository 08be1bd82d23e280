"""What large nodes sum up to: `node_values.sum_node` for many nodes, over tiles of their rows.

Sums are whole numbers, and extremes are taken in the order of the rows, so the tiles do not show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import fields_of, kernel, region
from margrove.grove.grow.node_values import NARROWER
from margrove.grove.grow.nodes import Nodes
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.search import SQUARED, score_of_node
from margrove.grove.table import Targets, fitting_exponent, quantise_rows

__all__ = ["Chunks", "NearRows", "NodeSums", "chunks_of", "new_near_rows", "sum_nodes"]

_ROWS_OF_CHUNK = 1 << 14


class Chunks(NamedTuple):
    """Runs of rows of some nodes: chunk c is rows[begin[c]:end[c]] of the node at owner[c]."""

    owner: np.ndarray
    begin: np.ndarray
    end: np.ndarray


class NearRows(NamedTuple):
    """Labels (int32) or numbers (int64) in the order of the builder's rows, so that loops over the
    rows of a node read them one after the other; empty unless each row counts once."""

    labels: np.ndarray
    numbers: np.ndarray


class NodeSums(NamedTuple):
    """pure bool, base float64, offset int64 (nodes, n_stats): see `node_values.sum_node`."""

    pure: np.ndarray
    base: np.ndarray
    offset: np.ndarray


class _Parts(NamedTuple):
    """Sums of chunks."""

    stats: np.ndarray
    weight: np.ndarray
    samples: np.ndarray
    low: np.ndarray
    high: np.ndarray


def chunks_of(nodes: Nodes, which: np.ndarray) -> Chunks:
    """The rows of some nodes in tiles."""
    record = fields_of(nodes.record)
    start, end = record["start"][which], record["end"][which]
    counts = -(-(end - start) // _ROWS_OF_CHUNK)
    owner = np.repeat(np.arange(len(which)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = start[owner] + number * _ROWS_OF_CHUNK
    return Chunks(owner, begin, np.minimum(begin + _ROWS_OF_CHUNK, end[owner]))


def new_near_rows(targets: Targets, n_rows: int) -> NearRows:
    """Room for the labels or numbers of so many rows."""
    is_near = targets.plain and len(targets.starts) == 2
    return NearRows(
        np.empty(n_rows if is_near and len(targets.labels) else 0, np.int32),
        np.empty(n_rows if is_near and len(targets.raw) else 0, np.int64),
    )


def sum_nodes(
    nodes: Nodes,
    which: np.ndarray,
    rows: np.ndarray,
    targets: Targets,
    rules: Rules,
    near: NearRows,
    n_threads: int,
) -> NodeSums:
    """Sum up the rows of some nodes, by any criterion but the absolute error."""
    chunks = chunks_of(nodes, which)
    n, n_stats, n_numbers = len(chunks.owner), nodes.stats.shape[1], nodes.centre.shape[1]
    parts = _Parts(
        np.empty((n, n_stats), np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty((n, n_numbers)), np.empty((n, n_numbers)),
    )  # fmt: skip
    lower, upper = np.empty((len(which), n_numbers)), np.empty((len(which), n_numbers))
    is_new_scale = np.zeros(len(which), dtype=bool)
    found = NodeSums(
        np.empty(len(which), dtype=bool),
        np.empty(len(which)),
        np.zeros((len(which), n_stats), np.int64),
    )
    _sum_rows(n, n_threads, chunks, rows, targets, near, parts)
    _add_up(nodes, which, chunks, parts, targets, rules, lower, upper, is_new_scale)
    if n_numbers:
        _sum_numbers(n, n_threads, nodes, which, chunks, rows, targets, near, is_new_scale,
                     parts.stats)  # fmt: skip
    _finish(nodes, which, chunks, parts.stats, targets, rules, lower, upper, found)
    return found


@region(bare=True)
def _sum_rows(tile, chunks, rows, targets, near, parts):
    """Weight and samples of a chunk; of classes the sums, of numbers the extremes."""
    begin, end = chunks.begin[tile], chunks.end[tile]
    n_outputs, is_class = len(targets.starts) - 1, len(targets.labels) > 0
    weight, samples = end - begin, end - begin
    if not targets.plain:
        weight, samples = 0, 0
        for p in range(begin, end):
            weight += targets.weight[rows[p]]
            samples += targets.samples[rows[p]]
    parts.weight[tile], parts.samples[tile] = weight, samples
    stats = parts.stats[tile]
    for k in range(len(stats)):
        stats[k] = 0
    if len(near.labels) > 0:
        for p in range(begin, end):
            label = targets.labels[rows[p]]
            near.labels[p] = label
            stats[label] += 1
    elif is_class:
        for p in range(begin, end):
            row = rows[p]
            for o in range(n_outputs):
                stats[targets.labels[row * n_outputs + o]] += targets.weight[row]
    else:
        for o in range(n_outputs):
            low, high = np.inf, -np.inf
            for p in range(begin, end):
                target = targets.raw[rows[p] * n_outputs + o]
                low = min(low, target)
                high = max(high, target)
            parts.low[tile, o], parts.high[tile, o] = low, high


@kernel(bare=True)
def _add_up(nodes, which, chunks, parts, targets, rules, lower, upper, is_new_scale):
    """Add the parts of all nodes up; of numbers, choose zero point and scale."""
    record = nodes.record
    n_outputs, is_class = len(targets.starts) - 1, len(targets.labels) > 0
    for k in range(len(which)):
        record.weight[which[k]] = 0
        record.samples[which[k]] = 0
        for o in range(lower.shape[1]):
            lower[k, o], upper[k, o] = np.inf, -np.inf
    for c in range(len(chunks.owner)):
        k = chunks.owner[c]
        record.weight[which[k]] += parts.weight[c]
        record.samples[which[k]] += parts.samples[c]
        for o in range(lower.shape[1]):
            lower[k, o] = min(lower[k, o], parts.low[c, o])
            upper[k, o] = max(upper[k, o], parts.high[c, o])
    if is_class:
        return
    for k in range(len(which)):
        node = which[k]
        widest = 0.0
        for o in range(n_outputs):
            low, high = lower[k, o], upper[k, o]
            middle = 0.0 if rules.at_zero and low <= 0.0 else 0.5 * low + 0.5 * high
            widest = max(widest, abs(low - middle), abs(high - middle))
        power = fitting_exponent(widest, record.weight[node])
        room = power - nodes.exponent[node, 0]
        is_new_scale[k] = record.parent[node] < 0 or (widest > 0.0 and room > NARROWER)
        if is_new_scale[k]:
            for o in range(n_outputs):
                low, high = lower[k, o], upper[k, o]
                middle = 0.0 if rules.at_zero and low <= 0.0 else 0.5 * low + 0.5 * high
                nodes.centre[node, o] = middle
                nodes.exponent[node, o] = power


@region(bare=True)
def _sum_numbers(tile, nodes, which, chunks, rows, targets, near, is_new_scale, stats):
    """Sums of the whole numbers of a chunk, which may get a new scale before."""
    begin, end, k = chunks.begin[tile], chunks.end[tile], chunks.owner[tile]
    node = which[k]
    if is_new_scale[k]:
        quantise_rows(targets, rows, begin, end, nodes.centre[node], nodes.exponent[node, 0])
    n_outputs = len(targets.starts) - 1
    for o in range(n_outputs):
        for p in range(begin, end):
            stats[tile, o] += targets.numbers[rows[p] * n_outputs + o]
    for p in range(begin, end if len(near.numbers) > 0 else begin):
        near.numbers[p] = targets.numbers[rows[p]]


@kernel(bare=True)
def _finish(nodes, which, chunks, parts, targets, rules, lower, upper, found):
    """Sums, means and scores of all nodes."""
    record = nodes.record
    is_class, n_outputs = len(targets.labels) > 0, len(targets.starts) - 1
    for k in range(len(which)):
        nodes.stats[which[k]] = 0
    for c in range(len(chunks.owner)):
        node = which[chunks.owner[c]]
        for j in range(parts.shape[1]):
            nodes.stats[node, j] += parts[c, j]
    for k in range(len(which)):
        node = which[k]
        stats, weight = nodes.stats[node], record.weight[node]
        pure, base = True, 0.0
        for o in range(n_outputs):
            if is_class:
                most = 0
                for j in range(targets.starts[o], targets.starts[o + 1]):
                    most = max(most, stats[j])
                pure &= most == weight
                continue
            pure &= lower[k, o] == upper[k, o]
            found.offset[k, o] = np.int64(np.rint(float(stats[o]) / float(weight)))
            unit = 2.0 ** float(-nodes.exponent[node, o])
            mean = nodes.centre[node, o] + float(stats[o]) / float(weight) * unit
            nodes.value[node, o] = min(max(mean, lower[k, o]), upper[k, o])
            if rules.criterion == SQUARED:
                rest = float(stats[o] - weight * found.offset[k, o])
                base += rest * rest / weight
        if is_class:
            base = score_of_node(rules.criterion, rules.counted, stats, targets.starts, weight,
                                 rules.table, rules.scale)  # fmt: skip
        found.pure[k], found.base[k] = pure, base
