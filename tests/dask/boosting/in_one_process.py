"""A table without a cluster: partitions, tasks and worker programs in this process."""

from __future__ import annotations

import itertools
import pickle
from types import SimpleNamespace

import numpy as np

from margrove.dask.boosting.cluster_table import BoostingTable
from margrove.dask.boosting.worker_program import BoostingProgram
from margrove.dask.cluster.errors import WorkerLost
from margrove.dask.partitions.shards import pieces_of_rows


class GroupInProcess:
    """Workers one after the other; what they say travels as it does on sockets."""

    def __init__(self, programs, breaks_at) -> None:
        self.programs, self._breaks_at = programs, breaks_at
        self.n_asked = 0

    def call(self, method, *arguments, reduce="sum"):
        return self.call_each(method, [arguments] * len(self.programs), reduce)

    def start_call(self, method, *arguments, reduce="sum"):
        return method, arguments, reduce

    def finish_call(self, request):
        method, arguments, reduce = request
        return self.call(method, *arguments, reduce=reduce)

    def call_each(self, method, arguments, reduce="sum"):
        self.n_asked += 1
        replies = []
        if (
            self._breaks_at
            and method in self._breaks_at[0]
            and self.n_asked > self._breaks_at[0][1]
        ):
            self._breaks_at.pop(0)
            raise WorkerLost("A worker is lost.", "tcp://nobody:1")
        for program, worker_arguments in zip(self.programs, arguments, strict=True):
            told = pickle.loads(pickle.dumps(worker_arguments))
            replies.append(pickle.loads(pickle.dumps(getattr(program, method)(*told))))
        if reduce == "sum":
            return sum(replies[1:], start=replies[0])
        return np.max(replies, axis=0) if reduce == "max" else replies


class BoostingTableInProcess(BoostingTable):
    """Partitions of these lengths, and so many worker programs of so many threads each."""

    def __init__(self, X, lengths, n_workers, n_threads=1) -> None:
        self._X, self._lengths = X, np.asarray(lengths)
        self._n_workers, self._n_threads = n_workers, n_threads
        self.groups, self.breaks_at = [], []

    @property
    def shape(self):
        return self._X.shape

    def close(self) -> None:
        pass

    def _offsets(self):
        return np.concatenate([[0], np.cumsum(self._lengths)])

    def _map(self, function, arguments, *, stores=False):
        ends = self._offsets()
        partitions = [self._X[start:end] for start, end in itertools.pairwise(ends)]
        return [
            self._submit(function, partition, *others)
            for partition, others in zip(partitions, arguments, strict=True)
        ]

    def _submit(self, function, *arguments):
        return pickle.loads(pickle.dumps(function(*arguments)))

    def _results(self, futures):
        return futures

    def open_group(self, train, prepare, lost=None):
        runs = self._runs(train, self._n_workers)
        shards = [
            SimpleNamespace(
                X=[
                    (self._coded[k], first, last)
                    for k, first, last in pieces_of_rows(self._lengths, start, stop)
                ],
                n_threads=self._n_threads,
            )
            for start, stop in runs
        ]
        group = GroupInProcess([BoostingProgram(shard) for shard in shards], self.breaks_at)
        self.groups.append(group)
        prepare(group, runs)
        return group
