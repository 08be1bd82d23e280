"""What a worker does for boosted stumps: it holds some columns of all rows, as codes.

Everybody knows the weights of all rows, and changes them alike after each round: the loops are
those of `adaboost.stumps`, and whole numbers do not depend on who adds them up. What is shared is
the search for the next stump, and the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove._runtime.threads import run_tiles
from margrove.dask.adaboost_blocks import ColumnRun, columns_of_sides, stump_table
from margrove.dask.shards import ShardRows
from margrove.ensemble.adaboost.stump_tables import write_sides
from margrove.ensemble.adaboost.stumps import (
    CHANCE,
    RUNNING,
    Search,
    StumpBooster,
    Stumps,
    _fill,
    _finish,
    _search,
    _update,
    new_stumps,
)

__all__ = ["Asked", "Best", "ColumnShard", "Rules", "search_of"]


@dataclass(frozen=True)
class Rules:
    """What all members are told; see `StumpBooster`."""

    n_features: int
    n_classes: int
    criterion: str
    bonus: float
    chance: float
    learning_rate: float


@dataclass(frozen=True)
class Best:
    """The best stump of a group; see `stumps.Search`."""

    best: np.ndarray
    score: np.ndarray
    left: np.ndarray

    @classmethod
    def of(cls, search: Search) -> Best:
        return cls(search.best.copy(), search.score.copy(), search.left.copy())


def search_of(best: Best) -> Search:
    """As compiled code takes it."""
    nothing = np.empty(0, np.int64)
    return Search(
        nothing, np.array(best.left), nothing, nothing, np.array(best.best), np.array(best.score)
    )


@dataclass(frozen=True)
class Asked:
    """A round: the stump (which was found before where it is replayed), and the side of each row.

    best     of all groups; None for a round that is replayed
    stump    that round as it was found
    sides    packed bits, 1 for the left; None for a leaf
    go_on    whether to search for the next one at once
    """

    best: Best | None
    stump: Stumps | None
    sides: np.ndarray | None
    go_on: bool


class ColumnShard:
    """The program of a gang."""

    def __init__(
        self,
        rows: ShardRows,
        rules: Rules,
        labels: np.ndarray,
        counts: np.ndarray | None,
        logs: np.ndarray | None,
        samples: np.ndarray | None,
    ) -> None:
        run: ColumnRun = rows.X
        n = run.shape[0]
        ones = np.ones(n, np.int64)
        self._run, self._table = run, stump_table(run, rows.n_threads)
        self._booster = _Booster(
            self._table._replace(columns=columns_of_sides(n, rules.n_features)),
            np.array(labels),
            rules.n_classes,
            ones if counts is None else counts,
            np.zeros(n) if logs is None else logs,
            ones if samples is None else samples,
            criterion=rules.criterion,
            bonus=rules.bonus,
            chance=rules.chance,
            learning_rate=rules.learning_rate,
            n_threads=rows.n_threads,
        )

    def search(self) -> list[Best]:
        """The best stump of each group."""
        return self._booster.search()

    def sides(self, feature: int, code: int) -> tuple[np.ndarray, float, float] | None:
        """On which side of a stump each row is, and the values that it is between; from who has
        its feature."""
        own = feature - self._run.first
        if not 0 <= own < self._run.shape[1]:
            return None
        on_left = np.empty(self._table.n_rows, np.bool_)
        write_sides(self._table.columns, own, code, on_left)
        values = self._table.values[own]
        return np.packbits(on_left), float(values[code]), float(values[code + 1])

    def finish(self, asked: Asked) -> tuple[int, Stumps | None, list[Best] | None]:
        """Change the weights; how boosting goes on, the round (from the first member), and what
        was found for the next one."""
        outcome = self._booster.finish(asked)
        stump = self._booster.last_stump() if self._run.number == 0 else None
        goes_on = asked.go_on and outcome == RUNNING
        return outcome, stump, self._booster.search() if goes_on else None


class _Booster(StumpBooster):
    """Boosts round by round, each in two steps between which somebody compares."""

    def search(self) -> list[Best]:
        groups, searches, rows = self._table.groups, self._searches, self._rows

        def search(k: int) -> None:
            _update(groups[k], rows, self._n_changed, searches[k])
            _search(groups[k], rows, self._plan, searches[k])

        run_tiles(search, len(groups), self._n_threads)
        self._n_changed = 0
        return [Best.of(own) for own in searches]

    def finish(self, asked: Asked) -> int:
        groups, searches, rows = self._table.groups, self._searches, self._rows
        n_classes, t = self.stumps.shares.shape[2], self.rounds
        if t == len(self.stumps.feature):
            room = new_stumps(2 * t, n_classes)
            for old, new in zip(self.stumps, room, strict=True):
                new[:t] = old
            self.stumps = room
        nobody = Best(np.full(7, -1), np.zeros(1), np.zeros(n_classes, np.int64))
        winner = search_of(asked.best or nobody)
        if asked.stump is not None:  # whose weights change the histograms all the same
            for k in range(len(groups)):
                _update(groups[k], rows, self._n_changed, searches[k])
            for own, known in zip(self.stumps, asked.stump, strict=True):
                own[t] = known[0]
        if asked.sides is not None:
            on_left = np.unpackbits(asked.sides, count=self._table.n_rows)
            codes = self._table.columns.dense.wide[0]
            np.subtract(on_left, np.uint32(1), out=codes, dtype=np.uint32)  # 0, or the largest
        restarted, self._n_changed, self.outcome = _finish(
            self._table.columns, rows, winner, self.stumps, self._plan, self._scales, t,
            asked.stump is not None,
        )  # fmt: skip
        if restarted:
            run_tiles(
                lambda k: _fill(groups[k], rows, self._plan.bits, searches[k]),
                len(groups),
                self._n_threads,
            )
        if self.outcome != CHANCE:
            self.rounds += 1
        return int(self.outcome)

    def last_stump(self) -> Stumps:
        return self.stumps.part(self.rounds, max(self.rounds - 1, 0))
