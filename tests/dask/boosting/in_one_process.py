"""A workforce without a cluster: parts, tasks and members in this process, for quick tests."""

from __future__ import annotations

import itertools
import pickle
from types import SimpleNamespace

import numpy as np

from margrove.dask.boosting.cluster_table import Workforce
from margrove.dask.boosting.worker_program import BoostingShard
from margrove.dask.cluster.workers import GangBroken
from margrove.dask.partitions.shards import _pieces


class GangHere:
    """Members one after the other; what they say travels as it does on sockets."""

    def __init__(self, members, breaks_at) -> None:
        self.members, self._breaks_at = members, breaks_at
        self.n_asked = 0

    def ask(self, method, *arguments, combine="sum"):
        return self.ask_each(method, [arguments] * len(self.members), combine)

    def order(self, method, *arguments, combine="sum"):
        return method, arguments, combine

    def answer(self, order):
        method, arguments, combine = order
        return self.ask(method, *arguments, combine=combine)

    def ask_each(self, method, arguments, combine="sum"):
        self.n_asked += 1
        replies = []
        if (
            self._breaks_at
            and method in self._breaks_at[0]
            and self.n_asked > self._breaks_at[0][1]
        ):
            self._breaks_at.pop(0)
            raise GangBroken("A worker is lost.", "tcp://nobody:1")
        for member, own in zip(self.members, arguments, strict=True):
            told = pickle.loads(pickle.dumps(own))
            replies.append(pickle.loads(pickle.dumps(getattr(member, method)(*told))))
        if combine == "sum":
            return sum(replies[1:], start=replies[0])
        return np.max(replies, axis=0) if combine == "max" else replies


class WorkforceHere(Workforce):
    """A table cut into parts of these lengths, and so many members of so many threads each."""

    def __init__(self, X, lengths, n_members, n_threads=1) -> None:
        self._X, self._lengths = X, np.asarray(lengths)
        self._n_members, self._n_threads = n_members, n_threads
        self.gangs, self.breaks_at = [], []

    @property
    def shape(self):
        return self._X.shape

    def close(self) -> None:
        pass

    def _offsets(self):
        return np.concatenate([[0], np.cumsum(self._lengths)])

    def _map(self, function, arguments, *, stores=False):
        ends = self._offsets()
        parts = [self._X[start:end] for start, end in itertools.pairwise(ends)]
        return [
            self._submit(function, part, *own) for part, own in zip(parts, arguments, strict=True)
        ]

    def _submit(self, function, *arguments):
        return pickle.loads(pickle.dumps(function(*arguments)))

    def _results(self, futures):
        return futures

    def open_gang(self, train, prepare, lost=None):
        runs = self._runs(train, self._n_members)
        shards = [
            SimpleNamespace(
                X=[
                    (self._coded[k], first, last)
                    for k, first, last in _pieces(self._lengths, start, stop)
                ],
                n_threads=self._n_threads,
            )
            for start, stop in runs
        ]
        gang = GangHere([BoostingShard(shard) for shard in shards], self.breaks_at)
        self.gangs.append(gang)
        prepare(gang, runs)
        return gang
