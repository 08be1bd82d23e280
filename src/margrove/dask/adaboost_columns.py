"""Boosted stumps whose columns are spread over workers, as their leader sees them.

A round is two messages to all. Each member says what the best stump of each of its groups of
features is; they are compared here, group after group, as on one machine. Who has the feature of
the best one says on which side each row is, a bit a row, and all go on from there. The groups are
those that one machine would have formed, of which there are eight at most: beyond, workers have
nothing to do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np

from margrove._runtime.memory import _readable
from margrove._runtime.process_tasks import even_runs
from margrove.dask.adaboost_blocks import coded_block, cut_columns, facts_of, run_of_columns
from margrove.dask.adaboost_member import Asked, Best, Rules, search_of
from margrove.dask.cluster import ClusterError, GangBroken
from margrove.dask.gang import Gang
from margrove.dask.parts import Parts
from margrove.dask.persistence import _wait_until_missed, persistently
from margrove.dask.shards import Shard
from margrove.dask.waiting import gathered
from margrove.ensemble.adaboost import stump_tables
from margrove.ensemble.adaboost.stumps import (
    CHANCE,
    RUNNING,
    Search,
    Stumps,
    _take_better,
    new_stumps,
)
from margrove.grove.grow.scores import CODE_OF
from margrove.grove.table.binning import midpoint

__all__ = [
    "ColumnBooster",
    "ColumnTable",
    "Columns",
    "StumpStart",
    "are_many",
    "columns_of_parts",
]

_MOST_TASKS = 16_000  # that tell columns apart
_MOST_OF_A_ROW = 1.25  # what a column of n rows may cost, in n
_BYTES_A_ROW = 90.0  # of what members know of all rows, and 8 for each of many classes
_BYTES_A_CELL = 12.0  # codes, once more while they arrive, and where they are
_MOST_LOSSES = 10  # of workers, between which no round was boosted
_PROGRAM = "margrove.dask.adaboost_member:ColumnShard"
_SENDS_ROWS = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # labels and weights


@dataclass(frozen=True)
class Columns:
    """The columns of a table, coded, on workers; `groups` are searched for stumps together.

    blocks   futures of `adaboost_blocks.Block`
    starts   the first column of each
    cost     of each column
    """

    client: Any
    n_rows: int
    blocks: list[Any]
    starts: list[int]
    groups: list[np.ndarray]
    cost: np.ndarray


@dataclass
class ColumnTable:
    """Stands for X where a local fit expects it.

    columns    known once it is known which rows count
    booster    who boosts on it, to be closed after the fit
    """

    parts: Parts
    columns: Columns | None = None
    booster: ColumnBooster | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.parts.n_rows, self.parts.n_features

    def close(self) -> None:
        if self.booster is not None:
            self.booster.close()


def are_many(n_rows: int, n_features: int) -> bool:
    """Whether so many cells may make two groups; fewer are not worth a message a round."""
    return _MOST_OF_A_ROW * n_rows * n_features >= 2 * stump_tables._CELLS_OF_A_GROUP


def columns_of_parts(parts: Parts, kept: np.ndarray | None, n_workers: int) -> Columns | None:
    """Code the columns, of rows that count (a mask; None: all); None where one has missing or
    infinite values."""
    client, d = parts.client, parts.n_features
    n_blocks = int(np.clip(n_workers, 1, max(1, min(d, _MOST_TASKS // len(parts.X)))))
    borders = [k * d // n_blocks for k in range(n_blocks + 1)]
    masks: list[Any] = [None] * len(parts.X)
    with dask.config.set(_SENDS_ROWS):
        if kept is not None:
            own = np.split(kept, parts.offsets[1:-1])
            masks = [client.submit(np.array, mask, pure=False) for mask in own]
        blocks = [
            client.submit(
                coded_block,
                parts.map_each(cut_columns, [(first, last, mask) for mask in masks]),
                pure=False,
            )
            for first, last in itertools.pairwise(borders)
        ]
    facts = gathered(client, [client.submit(facts_of, block, pure=False) for block in blocks])
    if any(own.is_odd.any() for own in facts):
        return None
    n = parts.n_rows if kept is None else int(kept.sum())
    cost = np.concatenate([own.cost for own in facts])
    groups = stump_tables.parts_of_equal_cost(
        cost, stump_tables._CELLS_OF_A_GROUP, stump_tables._MOST_GROUPS
    )
    return Columns(client, n, blocks, borders[:-1], groups, cost)


@dataclass(frozen=True)
class StumpStart:
    """What boosting starts from: labels, and counts, logarithms and samples as `StumpBooster`
    takes them."""

    labels: np.ndarray
    counts: np.ndarray
    logs: np.ndarray
    samples: np.ndarray

    def futures(self, client: Any) -> list[Any]:
        """What members are sent; None for what is one, or zero, throughout."""
        given = [
            self.labels.astype(np.int32),
            None if (self.counts == 1).all() else self.counts,
            None if not self.logs.any() else self.logs,
            None if (self.samples == 1).all() else self.samples,
        ]
        with dask.config.set(_SENDS_ROWS):
            return [
                None if own is None else client.submit(np.array, own, pure=False) for own in given
            ]


class ColumnBooster:
    """Boosts like `StumpBooster`, on workers; if one is lost, on those that are left.

    What was found is known here, and another gang goes through it once more. `threshold` is that
    of a `StumpTable`.
    """

    def __init__(self, columns: Columns, rules: Rules, start: StumpStart) -> None:
        self._columns, self._rules = columns, rules
        self._start = start.futures(columns.client)
        self._gang: Any = None
        self._bests: list[Best] | None = None
        self._thresholds: dict[tuple[int, int], float] = {}
        self._losses, self._rounds_at_loss = 0, -1
        self.stumps = new_stumps(16, rules.n_classes)
        self.rounds = 0
        self.outcome = RUNNING

    @property
    def cost_of_round(self) -> float:
        return float(self._columns.cost.max() + self._columns.n_rows)

    def threshold(self, feature: int, code: int) -> float:
        return self._thresholds[feature, code]

    def advance(self, n_rounds: int) -> None:
        """Some rounds more, or until boosting stops."""
        last = self.rounds + n_rounds
        while self.rounds < last and self.outcome == RUNNING:
            try:
                self._one_round(go_on=self.rounds + 1 < last)
            except GangBroken as error:
                self._recover(error)
            except BaseException:  # nobody knows what members have done of this round
                self.close()
                raise

    def _one_round(self, *, go_on: bool) -> None:
        gang = self._gang or self._opened()
        if self._bests is None:
            self._bests = _flat(gang.ask("search", combine="list"))
        best = self._better(self._bests)
        sides = self._sides(gang, int(best.best[0]), int(best.best[5]))
        told = gang.ask("finish", Asked(Best.of(best), None, sides, go_on), combine="list")
        outcome, stump, _ = told[0]
        self._bests = None if told[0][2] is None else _flat([own for _, _, own in told])
        if outcome != CHANCE:
            self._take(stump)
        self.outcome = outcome

    def _better(self, bests: list[Best]) -> Search:
        """The best of all groups, compared in their order: nearly equal ones depend on it."""
        first, *others = (search_of(own) for own in bests)
        for other in others:
            if other.best[0] >= 0:
                _take_better(CODE_OF[self._rules.criterion], other, first)
        return first

    def _sides(self, gang: Any, feature: int, code: int) -> np.ndarray | None:
        if feature < 0:
            return None
        found = gang.ask("sides", feature, code, combine="list")
        sides, low, high = next(own for own in found if own is not None)
        self._thresholds[feature, code] = midpoint(low, high)
        bits: np.ndarray = sides
        return bits

    def _take(self, stump: Stumps) -> None:
        if self.rounds == len(self.stumps.feature):
            room = new_stumps(2 * self.rounds, self._rules.n_classes)
            for old, new in zip(self.stumps, room, strict=True):
                new[: self.rounds] = old
            self.stumps = room
        for own, known in zip(self.stumps, stump, strict=True):
            own[self.rounds] = known[0]
        self.rounds += 1

    # -- gangs --

    def close(self) -> None:
        gang, self._gang, self._bests = self._gang, None, None
        if gang is not None:
            gang.close()

    def _recover(self, error: GangBroken) -> None:
        self.close()
        self._losses = self._losses + 1 if self.rounds == self._rounds_at_loss else 1
        self._rounds_at_loss = self.rounds
        if self._losses > _MOST_LOSSES:
            raise ClusterError(
                f"A fit lost workers {_MOST_LOSSES} times within a round and was given up. Last of "
                f"all: {error} Workers that run out of memory are killed: use larger ones."
            ) from error
        _wait_until_missed(self._columns.client, error.worker)

    def _opened(self) -> Any:
        """A gang that has gone through all rounds so far."""
        self._gang = persistently(self._open, self._columns.client)
        return self._gang

    def _open(self, workers: list[str]) -> Any:
        columns = self._columns
        workers = self._roomy(workers)
        cost = [float(columns.cost[group].sum()) for group in columns.groups]
        runs = [
            [columns.groups[k] for k in own]
            for own in even_runs(cost, min(len(workers), len(columns.groups)))
        ]
        shards = [
            Shard(worker, 0, columns.n_rows, ((k, 0, columns.n_rows),))
            for k, worker in enumerate(workers[: len(runs)])
        ]
        held = [self._run(k, groups, shards[k].worker) for k, groups in enumerate(runs)]
        lengths = np.full(len(runs), columns.n_rows)
        parts = Parts(held, None, None, lengths, len(columns.cost), None, columns.client)
        gang = Gang(columns.client, shards, parts, _PROGRAM, self._rules, *self._start)
        gang.__enter__()
        try:
            for t in range(self.rounds):
                stump = self.stumps.part(t + 1, t)
                sides = self._sides(gang, int(stump.feature[0]), int(stump.code[0]))
                gang.ask("finish", Asked(None, stump, sides, False), combine="none")
        except BaseException:
            gang.close()
            raise
        return gang

    def _roomy(self, workers: list[str]) -> list[str]:
        """Workers that can hold their part of the columns, and what is known of all rows."""
        columns, n_classes = self._columns, self._rules.n_classes
        known = columns.client.scheduler_info(n_workers=-1)["workers"]
        limits = {own: float(known.get(own, {}).get("memory_limit") or 0) for own in workers}
        a_row = _BYTES_A_ROW + (8.0 * n_classes if n_classes > 2 else 0.0)
        cells = _BYTES_A_CELL * len(columns.cost) / min(len(workers), len(columns.groups))
        needed = columns.n_rows * (a_row + cells)
        roomy = [worker for worker, limit in limits.items() if not limit or limit >= needed]
        if not roomy:
            raise ClusterError(
                f"Stumps are boosted by workers of which each holds some columns of all "
                f"{columns.n_rows} rows, and all weights: about {_readable(needed)}, and the "
                f"largest may use {_readable(max(limits.values()))}. Use more workers (up to "
                f"{len(columns.groups)}), workers with more memory, or fewer columns; "
                "HistGradientBoostingClassifier leaves the rows where they are."
            )
        return roomy

    def _run(self, number: int, groups: list[np.ndarray], worker: str) -> Any:
        columns = self._columns
        first, last = int(groups[0][0]), int(groups[-1][-1])
        ends = [*columns.starts[1:], len(columns.cost)]
        used = [
            k
            for k, (start, end) in enumerate(zip(columns.starts, ends, strict=True))
            if start <= last and end > first
        ]
        submit: Callable[..., Any] = columns.client.submit
        return submit(
            run_of_columns,
            number,
            [columns.blocks[k] for k in used],
            [columns.starts[k] for k in used],
            groups,
            workers=[worker],
            allow_other_workers=True,
            pure=False,
        )


def _flat(found: Sequence[Sequence[Best]]) -> list[Best]:
    return [best for own in found for best in own]
