"""A small fit in this process that runs all kernels of boosting on a cluster once.

It does not need Dask, so that `margrove.warmup` compiles these kernels without it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from margrove.dask.boosting.bin_refinement import refined_columns
from margrove.dask.boosting.bins import ColumnCodes, bins_of, columns_of_partitions
from margrove.dask.boosting.coded_partitions import CodedPartition, code_partition
from margrove.dask.boosting.leader import BoostingLeader
from margrove.dask.boosting.remote_rows import PartitionRows, RemoteRows
from margrove.dask.boosting.remote_tree import RemoteTree, TreeBuffers
from margrove.dask.boosting.worker_program import BoostingProgram, BoostingSetup, GrownTree
from margrove.ensemble.gradient import GradientData, SoFar, kind_of
from margrove.ensemble.gradient.hist import meanings_of, nodes, packed
from margrove.ensemble.gradient.losses import LogLoss, SquaredError
from margrove.grove.table import TreeTable

__all__ = ["grow_a_tree"]

_LEAVES = 8


class _GroupOfOne:
    """A worker group with one worker, in this process."""

    def __init__(self, partition: CodedPartition) -> None:
        self._program = BoostingProgram(
            SimpleNamespace(X=[(partition, 0, partition.n_rows)], n_threads=1)
        )

    def call(self, method: str, *arguments: Any, reduce: str = "sum") -> Any:
        found = getattr(self._program, method)(*arguments)
        return [found] if reduce == "list" else found

    def start_call(self, *request: Any) -> Any:
        return request

    def finish_call(self, order: Any) -> Any:
        return self.call(*order)

    def call_each(self, method: str, arguments: list[Any], reduce: str = "sum") -> Any:
        return self.call(method, *arguments[0], reduce=reduce)


def grow_a_tree(n_rows: int = 2100) -> None:
    """Grow a tree on half of the rows, and add it to the scores of all rows."""
    X = np.random.default_rng(0).standard_normal((n_rows, 3)).round(2)
    for labels in (X[:, 0] > 0, 0 + (X[:, 0] > 0) + (X[:, 1] > 0)):
        _derive(labels.astype(np.float64))
    leader = _leader(X)
    drawn = np.arange(0, n_rows, 2, dtype=np.int32)
    survey = leader.begin(SquaredError(), drawn).surveys[0]
    buffers = TreeBuffers(leader.table, _LEAVES, _LEAVES + 1, 0, is_tight=True)
    for order in (nodes.BEST_FIRST, nodes.SMALL_FIRST):
        tree = RemoteTree(buffers, _rules(order), 0, len(drawn), survey)
        for _ in leader.grow([tree], with_values=True):
            pass
        arrays, leaves = tree.tree, tree.leaves
        values = arrays.nodes.value[leaves]
        found = packed(arrays, meanings_of(bins_of(leader.columns), leader.table))
        leader.add(
            [GrownTree(0, tree.handles_of(leaves), values, arrays.nodes.copy(), found)], None
        )


def _derive(labels: np.ndarray) -> None:
    """Compute gradients of the log loss."""
    n, loss = len(labels), LogLoss().with_classes(int(labels.max()) + 1)
    raw, gradient, hessian = (np.zeros((loss.n_scores, n)) for _ in range(3))
    loss.derive(labels, raw, None, gradient, hessian, np.empty(n))
    loss.value(labels, raw, None)


def _leader(X: np.ndarray) -> BoostingLeader:
    n, d = X.shape
    numbers = np.zeros(d, np.int64)
    table = TreeTable(RemoteRows(np.arange(n), d), None, {})
    columns, kind = _columns(X, numbers), kind_of(numbers)
    so_far, held_out = SoFar([], np.zeros(1), (), (), 1.0), np.arange(100)
    setup = BoostingSetup(columns, numbers > 0, kind, so_far)
    partition = code_partition(X, PartitionRows(None), held_out, columns, {}, so_far, kind)

    def open_group(train: np.ndarray, prepare: Any, lost: str | None) -> Any:
        group = _GroupOfOne(partition)
        prepare(group, [(0, n)])
        return group

    given = GradientData(table, X[:, 0].copy(), None, None, None)
    return BoostingLeader(open_group, given, held_out, setup)


def _columns(X: np.ndarray, numbers: np.ndarray) -> list[ColumnCodes]:
    """Bins by both methods, of a writable and of a read-only partition, as Dask may give."""
    kept = X.copy()
    kept.flags.writeable = False
    partitions, rows = [X, kept], [PartitionRows(None)] * 2

    def map_each(function: Any, arguments: Any) -> list[Any]:
        return [
            function(partition, *others)
            for partition, others in zip(partitions, arguments, strict=True)
        ]

    def submit(function: Any, *arguments: Any) -> Any:
        return function(*arguments)

    columns_of_partitions(map_each, submit, rows, [None, None], {}, numbers, 255)
    return refined_columns(map_each, submit, list, rows, 2 * len(X), [None, None], {}, numbers, 255)


def _rules(order: int) -> nodes.GrowthRules:
    return nodes.GrowthRules(
        order, _LEAVES, 2**31, 20, 1e-3, 0.0, 0.0, np.inf, 0.1, 1.0, 0, True,
        np.empty(0, np.int64), np.empty((0, 3), np.bool_),
    )  # fmt: skip
