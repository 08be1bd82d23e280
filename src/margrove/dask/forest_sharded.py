"""Grows a forest whose codes stay where they are: some rows on each worker, none on all of them.

A process for `slices.drive`. Trees are grown some at a time, so that they share round trips. When
a worker is lost, those that are left begin the trees under way anew; what has grown is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from margrove._runtime.slices import SLICE_SECONDS
from margrove.dask.cluster import ClusterError, GangBroken
from margrove.dask.forest_cuts import cuts_of_trees, with_codes_as_thresholds
from margrove.dask.forest_frames import Frame, frame_of, own_rows
from margrove.dask.forest_ground import Ground
from margrove.dask.forest_plots import Unseen
from margrove.dask.forest_trunks import Trunks, whole_tree
from margrove.ensemble.forest.grower import ForestGrower
from margrove.ensemble.forest.training_data import ForestTraining, Sampler
from margrove.grove.grow.nodes import BALANCED
from margrove.grove.grow.subtree import LARGEST_BLOCK
from margrove.grove.grow.tree_builder import columns_of
from margrove.grove.serve.packed_trees import PackedTree, pack
from margrove.grove.table.binning import BinnedDataset

__all__ = ["ShardedGrower"]

_MOST_TREES = 32  # that grow at the same time
_MOST_LOSSES = 10  # of workers, between which no tree has grown
_SHARE_OF_MEMORY = 0.1  # of a worker's, for rows that are sent to it, and for trees under way
_BYTES_A_GUEST = 250.0  # besides its codes: targets, and what growing needs
_BYTES_A_ROW = 40.0  # of a tree under way
_PLENTY = 4e9  # bytes, where nobody has set a limit


class ShardedGrower(ForestGrower):
    """The same forest, in shards of its rows.

    fewest_rows         of a node that is worth a round trip
    subtrees_a_member   at least, so that nobody waits long for the last
    """

    fewest_rows: ClassVar[int] = LARGEST_BLOCK
    subtrees_a_member: ClassVar[int] = 8

    def __init__(self, training: ForestTraining, sampler: Sampler, *given: Any, n_threads: int,
                 **options: Any) -> None:  # fmt: skip
        super().__init__(training, sampler, *given, n_threads=1, **options)
        self._shards = self._find_shards(training)
        self._gang: Any = None
        self._places: list[np.ndarray] = []
        self._lost: str | None = None
        self._losses = 0
        self._under_way: list[int] = []
        self._trunks: Trunks | None = None
        self._growing: Iterator[None] | None = None
        self._known: tuple[BinnedDataset, Frame] | None = None

    def _find_shards(self, training: ForestTraining) -> Any:
        from margrove.dask.forest_shards import ShardsOnCluster

        return ShardsOnCluster.of(training)

    # -- growing --

    def _grow_for_a_while(self) -> None:
        deadline = time.monotonic() + SLICE_SECONDS
        while self._advance_trees() and time.monotonic() < deadline:
            pass

    def _advance_trees(self) -> bool:
        """One round trip; whether there is more to be done before a tree can be shown."""
        if not self._under_way:
            self._under_way = self._next_numbers()
            if not self._under_way:
                return False
        try:
            if self._growing is None:
                ground = self._ground()
                self._trunks = Trunks(ground, self._under_way)
                self._growing = self._trunks.grow()
            if next(self._growing, "done") is None:
                return True
            self._harvest()
        except GangBroken as error:
            self._lose(error)
            return True
        except BaseException:  # an interrupt: members may be anywhere
            self._end_gang()
            raise
        return False

    def _next_numbers(self) -> list[int]:
        numbers: list[int] = []
        if self._enough:
            return numbers
        most = self._trees_at_once()
        for number in self._numbers:
            if number >= self._last:
                break
            numbers.append(number)
            if len(numbers) == most:
                break
        return numbers

    def _harvest(self) -> None:
        assert self._trunks is not None
        trees, halved = {}, {}
        trunks = self._trunks.trees
        grown = [whole_tree(trunk, best_first=self._max_leaves > 0) for trunk in trunks]
        cuts = cuts_of_trees(grown, self._learn()[0], self._shards.merged, self._shards)
        for trunk, (nodes, n) in zip(trunks, grown, strict=True):
            tree = pack(
                nodes, n, self._targets(), trunk.rules, cuts, self._columns,
                self._kind.n_categories, weights_count=self._sampler.weights_count,
            )  # fmt: skip
            halved[trunk.number] = int(nodes.whole[:n, BALANCED].sum())
            trees[trunk.number] = tree if self._finish is None else self._finish(tree)
        seen = self._heard(trees) if self._looks_out else dict.fromkeys(trees)
        self._halved |= halved
        self._grown |= {number: (tree, seen[number]) for number, tree in trees.items()}
        self._under_way, self._growing, self._trunks, self._losses = [], None, None, 0

    def _targets(self) -> Any:
        return self._training.targets._replace(
            unit=self._sampler.unit, counted=self._sampler.counted
        )

    # -- rows that were not drawn --

    def _seen_by(self, tree: PackedTree, number: int) -> Any:
        while True:
            try:
                return self._heard({number: tree})[number]
            except GangBroken as error:
                self._lose(error)

    def _heard(self, trees: dict[int, PackedTree]) -> dict[int, Unseen]:
        self._open_gang()
        asked = {
            number: with_codes_as_thresholds(tree, self._shards) for number, tree in trees.items()
        }
        parts = self._gang.ask("listen", asked, combine="list")
        m = len(self._training.order)
        found = {}
        for number in trees:
            leaves, left_out = np.full(m, -1, np.int32), np.zeros(m, np.int32)
            for places, own in zip(self._places, parts, strict=True):
                leaves[places], left_out[places] = own[number]
            found[number] = Unseen.of(leaves, left_out)
        return found

    # -- members --

    def _ground(self) -> Ground:
        self._open_gang()
        _, frame = self._learn()
        small, most_guests = self._sizes()
        return Ground(
            self._gang, frame, self._columns, self._targets(), self._rules_of, small, most_guests
        )

    def _learn(self) -> tuple[BinnedDataset, Frame]:
        """What codes stand for; what members are told of it."""
        if self._known is None:
            rules = self._rules
            data = self._shards.known(everything=rules.random)
            self._columns = columns_of(data, with_values=rules.random)
            frame = frame_of(
                self._training, self._sampler, rules, self._kind, self._max_leaves, data
            )
            self._known = data, frame
        return self._known

    def _open_gang(self) -> None:
        if self._gang is None:
            self._learn()
            self._gang = self._shards.open(self._prepare, self._lost)
            self._lost = None

    def _prepare(self, gang: Any, places: list[np.ndarray]) -> None:
        """Tell the members of a new gang what they need; places of the rows of each."""
        _, frame = self._learn()
        gang.ask("learn", frame, combine="none")
        self._places = []
        for rank, own in enumerate(places):  # one by one, for the sake of this machine's memory
            told: list[tuple[Any]] = [(None,)] * gang.n_members
            rows = own_rows(self._training, self._sampler, own)
            told[rank] = (rows,)
            gang.ask_each("take_rows", told, combine="none")
            self._places.append(rows.places)
        key = self._shards.new_key()
        calls = [(rank, key) for rank in range(gang.n_members)]
        addresses = gang.ask_each("open_exchange", calls, combine="list")
        gang.ask("join_exchange", addresses, gang.workers, combine="none")

    def _lose(self, error: GangBroken) -> None:
        self._end_gang()
        self._lost = error.worker
        self._losses += 1
        if self._losses > _MOST_LOSSES:
            raise ClusterError(
                f"{self._losses} workers were lost in a row while no tree was finished. Last of "
                f"all: {error} Workers that run out of memory are killed: set max_bins=255 (one "
                "byte a cell), or use more or larger ones; their logs say more."
            ) from error

    def _end_gang(self) -> None:
        self._growing, self._trunks, self._gang = None, None, None
        self._shards.close()

    # -- sizes --

    def _sizes(self) -> tuple[int, int]:
        """Rows of a node that is left to one worker, and of all that one is sent at a time."""
        n_rows, n_members = len(self._training.order), self._gang.n_members
        codes = float(np.array([1, 2, 4])[self._columns.width].sum())
        room = int(_SHARE_OF_MEMORY * self._memory() / (2.0 * codes + _BYTES_A_GUEST))
        fair = n_rows // (self.subtrees_a_member * n_members)
        return max(1, min(room, max(fair, self.fewest_rows))), max(1, room)

    def _trees_at_once(self) -> int:
        self._open_gang()
        a_tree = _BYTES_A_ROW * len(self._training.order) / self._gang.n_members
        return int(np.clip(_SHARE_OF_MEMORY * self._memory() / a_tree, 1, _MOST_TREES))

    def _memory(self) -> float:
        return float(self._shards.memory() or _PLENTY)
