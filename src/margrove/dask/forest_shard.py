"""What one member of a gang does for a forest whose codes no worker could hold alone.

It has the codes of its own rows. Of a large node it tells sums, parts the rows as it is told, and
in the end sends the rows of each small node to whoever grows the subtree there. All sums are whole
numbers, so that those of the members add up to what one machine would have found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._runtime.threads import run_tiles
from margrove.dask.forest_codes import layout_of
from margrove.dask.forest_cuts import CodedColumns
from margrove.dask.forest_draws import Draw, range_of_codes, sums_of_sides
from margrove.dask.forest_exchange import Exchange
from margrove.dask.forest_frames import Frame, LeafRule, OwnRows, Parting
from margrove.dask.forest_groups import Groups, group_of_codes
from margrove.dask.forest_guests import Guests, Heritage, grow_subtree, joined_guests
from margrove.dask.forest_samples import balanced_weights, left_out_of, multiplicities_of
from margrove.dask.shards import ShardRows
from margrove.ensemble.forest.shards import largest_loss, sum_losses
from margrove.grove.grow.nodes import CODE, FEATURE, MISSING_LEFT, N_WHOLE, SUBSET
from margrove.grove.grow.tree_builder import _part_rows, columns_of
from margrove.grove.serve.forest_walk import leaves_of_some
from margrove.grove.serve.packed_trees import PackedTree
from margrove.grove.table.binning import BinnedDataset
from margrove.grove.table.columns import Columns
from margrove.grove.table.targets import Targets

__all__ = ["ForestShard"]

_DTYPES = (np.uint8, np.uint16, np.uint32)


@dataclass
class _TreeRows:
    """The rows of a tree, those of a node side by side: `spans` says where."""

    rows: np.ndarray
    targets: Targets
    spans: dict[int, tuple[int, int]]

    def of(self, node: int) -> np.ndarray:
        start, end = self.spans[node]
        return self.rows[start:end]


class ForestShard:
    """A program for `Gang`; rows.X are the codes, row by row, as bytes."""

    def __init__(self, rows: ShardRows) -> None:
        self._bytes: np.ndarray | None = rows.X
        self._gone, self._n_threads = rows.gone, rows.n_threads
        self._trees: dict[int, _TreeRows] = {}
        self._drawn: dict[int, np.ndarray] = {}
        self._frame: Frame
        self._own: OwnRows
        self._data: BinnedDataset
        self._columns: Columns
        self._exchange: Exchange

    # -- beginning --

    def learn(self, frame: Frame) -> None:
        self._frame = frame

    def take_rows(self, own: OwnRows | None) -> None:
        """Once: the codes by columns, in the order of the places; None is for somebody else."""
        if own is None or self._bytes is None:
            return
        empty = self._frame.data
        codes = layout_of(empty.n_codes, len(own.order))
        begin = 0
        for j, kind in enumerate(codes.width):
            end = begin + _DTYPES[kind]().itemsize
            cells = np.ascontiguousarray(self._bytes[own.order, begin:end])
            codes[kind][codes.place[j]] = cells.view(_DTYPES[kind]).ravel()
            begin = end
        self._bytes = None
        self._own = own
        self._data = BinnedDataset(
            codes, len(own.order), empty.n_codes, empty.lows, empty.highs, empty.has_missing,
            empty.categorical,
        )  # fmt: skip
        self._columns = columns_of(self._data, with_values=self._frame.rules.random)

    def open_exchange(self, rank: int, key: bytes) -> tuple[str, int]:
        self._exchange = Exchange(rank, key, self._gone)
        return self._exchange.address

    def join_exchange(self, addresses: list[tuple[str, int]], workers: list[str]) -> None:
        self._exchange.join([(host, port) for host, port in addresses], workers)

    # -- samples --

    def draw(self, numbers: list[int]) -> np.ndarray:
        """Who is in the sample of each tree; how often each class is, where that matters."""
        frame, own = self._frame, self._own
        counts = np.zeros((len(numbers), frame.n_stats if frame.balanced else 0), np.int64)
        for k, number in enumerate(numbers):
            samples = multiplicities_of(own, frame, number) if frame.n_units else own.samples
            self._drawn[number] = samples
            if frame.balanced:
                each = np.repeat(samples, frame.n_outputs)
                counts[k] = _whole_sums(own.labels, each, frame.n_stats)
        return counts

    def weigh(self, numbers: list[int], counts: np.ndarray) -> np.ndarray:
        """Begin trees; rows and weight of each."""
        found = np.zeros((len(numbers), 2), np.int64)
        frame, own = self._frame, self._own
        for k, number in enumerate(numbers):
            samples = self._drawn.pop(number)
            weight = samples
            if not frame.n_units:
                weight = own.weight
            elif frame.balanced:
                weight = balanced_weights(own, frame, samples, counts[k])
            elif own.factors is not None:
                weight = samples * own.factors
            rows = np.flatnonzero(weight > 0).astype(np.int64)
            n_numbers = 0 if frame.is_class else len(own.raw)
            targets = frame.targets._replace(
                labels=own.labels,
                numbers=np.zeros(n_numbers, np.int64),
                raw=own.raw,
                weight=weight,
                real=own.real,
                samples=samples,
            )
            self._trees[number] = _TreeRows(rows, targets, {0: (0, len(rows))})
            found[k] = len(rows), int(weight.sum())
        return found

    def forget(self) -> None:
        """All trees that are under way."""
        self._trees, self._drawn = {}, {}

    # -- large nodes --

    def sum_up(self, asked: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weight, samples and sums of classes of nodes; lowest and highest targets."""
        frame = self._frame
        whole = np.zeros((len(asked), 2 + frame.n_stats), np.int64)
        lows = np.full((len(asked), frame.n_outputs), np.inf)
        highs = np.full((len(asked), frame.n_outputs), -np.inf)
        for k, (number, node) in enumerate(asked):
            tree = self._trees[number]
            rows, targets = tree.of(node), tree.targets
            weight = targets.weight[rows]
            whole[k, 0], whole[k, 1] = weight.sum(), targets.samples[rows].sum()
            if frame.is_class:
                labels = targets.labels.reshape(-1, frame.n_outputs)[rows].ravel()
                each = np.repeat(weight, frame.n_outputs)
                whole[k, 2:] = _whole_sums(labels, each, frame.n_stats)
            elif len(rows):
                raw = targets.raw.reshape(-1, frame.n_outputs)[rows]
                lows[k], highs[k] = raw.min(axis=0), raw.max(axis=0)
        return whole, lows, highs

    def sum_numbers(
        self, asked: list[tuple[int, int]], centres: np.ndarray, powers: list[int | None]
    ) -> np.ndarray:
        """Sums of the targets, which get a new scale where one is given; see `targets`."""
        frame = self._frame
        sums = np.zeros((len(asked), frame.n_outputs), np.int64)
        for k, (number, node) in enumerate(asked):
            tree = self._trees[number]
            rows, targets = tree.of(node), tree.targets
            numbers = targets.numbers.reshape(-1, frame.n_outputs)
            power = powers[k]
            if power is not None:
                raw = targets.raw.reshape(-1, frame.n_outputs)[rows]
                scaled = (raw - centres[k]) * 2.0 ** float(power)
                numbers[rows] = _weighted(targets.weight[rows][:, None], scaled, frame)
            sums[k] = numbers[rows].sum(axis=0)
        return sums

    def dense_groups(self, jobs: list[tuple[int, int, int]]) -> np.ndarray:
        """Sums of all codes of features of nodes, one below the other; see `Groups`."""
        n_codes = self._frame.data.n_codes
        sizes = [int(n_codes[feature]) + 1 for _, _, feature in jobs]
        ends = np.cumsum(sizes)
        found = np.zeros((int(ends[-1]), 2 + self._frame.n_stats), np.int64)

        def fill(k: int) -> None:
            groups = self._group(*jobs[k])
            found[ends[k] - sizes[k] + groups.codes] = groups.sums

        run_tiles(fill, len(jobs), self._n_threads)
        return found

    def sparse_groups(self, jobs: list[tuple[int, int, int]]) -> list[Groups]:
        """The same of the codes that there are."""
        found: list[Any] = [None] * len(jobs)

        def fill(k: int) -> None:
            found[k] = self._group(*jobs[k])

        run_tiles(fill, len(jobs), self._n_threads)
        return found

    def _group(self, number: int, node: int, feature: int) -> Groups:
        tree = self._trees[number]
        return group_of_codes(self._columns, feature, tree.rows, tree.spans[node], tree.targets)

    def code_ranges(self, jobs: list[tuple[int, int, int]]) -> np.ndarray:
        """The lowest and the highest code of features of nodes, (k, 2)."""
        found = np.zeros((len(jobs), 2), np.int64)

        def fill(k: int) -> None:
            number, node, feature = jobs[k]
            found[k] = range_of_codes(self._columns, feature, self._trees[number].of(node))

        run_tiles(fill, len(jobs), self._n_threads)
        return found

    def drawn_sums(self, draws: list[Draw]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What lies below and above thresholds; see `sums_of_sides`."""
        sums = np.zeros((len(draws), 3, 2 + self._frame.n_stats), np.int64)
        codes = np.zeros((2, len(draws)), np.int64)

        def fill(k: int) -> None:
            number, node, feature, last = draws[k]
            tree = self._trees[number]
            sums[k], codes[0, k], codes[1, k] = sums_of_sides(
                self._columns, feature, last, tree.of(node), tree.targets
            )

        run_tiles(fill, len(draws), self._n_threads)
        return sums, codes[0], codes[1]

    def count_rows(self, number: int, node: int) -> np.ndarray:
        """How many rows of a node have each code, feature after feature."""
        rows = self._trees[number].of(node)
        return np.concatenate(
            [
                np.bincount(self._data.column(j)[rows], minlength=int(n) + 1)
                for j, n in enumerate(self._data.n_codes)
            ]
        )

    def part(self, partings: list[Parting]) -> np.ndarray:
        """Rows of both children, (k, 2)."""
        found = np.zeros((len(partings), 2), np.int64)
        for k, own in enumerate(partings):
            tree = self._trees[own.tree]
            whole = np.zeros((1, N_WHOLE), np.int64)
            whole[0, [FEATURE, CODE, MISSING_LEFT]] = own.feature, own.code, own.missing_left
            whole[0, SUBSET] = -1 if own.words is None else 0
            words = np.zeros(1, np.uint32) if own.words is None else own.words
            start, end = tree.spans.pop(own.node)
            middle = int(_part_rows(tree.rows, start, end, self._columns, whole, words, 0))
            tree.spans[own.first], tree.spans[own.first + 1] = (start, middle), (middle, end)
            found[k] = middle - start, end - middle
        return found

    # -- leaves of numbers --

    def sum_above(self, leaves: list[LeafRule]) -> np.ndarray:
        """Sums of how far targets are above the lowest, in units of 1 / factor."""
        return np.array([self._sum_above(leaf) for leaf in leaves], dtype=np.int64)

    def _sum_above(self, leaf: LeafRule) -> int:
        raw, weight = self._of_leaf(leaf)
        return int(_weighted(weight, (raw - leaf.low) * leaf.factor, self._frame).sum())

    def largest_losses(self, leaves: list[LeafRule]) -> tuple[np.ndarray, np.ndarray]:
        """The largest loss of a row in each leaf; the sum of the given weights."""
        criterion = self._frame.rules.criterion
        found = np.zeros(len(leaves))
        totals = np.zeros(len(leaves))
        for k, leaf in enumerate(leaves):
            raw, _ = self._of_leaf(leaf)
            found[k] = largest_loss(raw, leaf.low, leaf.above, criterion)
            totals[k] = self._own.real[self._trees[leaf.tree].of(leaf.node)].sum()
        return found, totals

    def sum_losses(self, leaves: list[LeafRule]) -> np.ndarray:
        """Sums of the losses, in whole numbers."""
        return np.array([self._sum_losses(leaf) for leaf in leaves], dtype=np.int64)

    def _sum_losses(self, leaf: LeafRule) -> int:
        raw, weight = self._of_leaf(leaf)
        if leaf.is_quick:
            share = (raw - leaf.low - leaf.above) / leaf.largest
            return int((weight * np.rint(share * share * leaf.scale).astype(np.int64)).sum())
        return int(
            sum_losses(raw, weight, leaf.low, leaf.above, self._frame.rules.criterion,
                       leaf.largest, leaf.scale, bool(self._frame.targets.counted))
        )  # fmt: skip

    def _of_leaf(self, leaf: LeafRule) -> tuple[np.ndarray, np.ndarray]:
        tree = self._trees[leaf.tree]
        rows = tree.of(leaf.node)
        raw = tree.targets.raw.reshape(-1, self._frame.n_outputs)[rows, leaf.output]
        return raw, tree.targets.weight[rows]

    def places_of(self, number: int, node: int) -> np.ndarray:
        places: np.ndarray = self._own.places[self._trees[number].of(node)]
        return places

    # -- small nodes --

    def send_guests(self, journeys: list[list[tuple[int, int]]]) -> None:
        """The rows of small nodes to those who grow them; one list of nodes for each member."""
        for other, nodes in enumerate(journeys):
            self._exchange.send(other, [self._guests(*own) for own in nodes])

    def _guests(self, number: int, node: int) -> Guests:
        tree = self._trees[number]
        rows, targets = tree.of(node), tree.targets
        n_outputs = self._frame.n_outputs

        def flat(own: np.ndarray) -> np.ndarray:
            return own.reshape(-1, n_outputs)[rows].ravel() if len(own) else own

        narrow, medium, wide = (np.ascontiguousarray(own[:, rows]) for own in self._data.codes[:3])
        del tree.spans[node]
        return Guests(
            self._own.places[rows],
            (narrow, medium, wide),
            flat(targets.labels),
            flat(targets.numbers),
            flat(targets.raw),
            targets.weight[rows],
            targets.real[rows],
            targets.samples[rows],
        )

    def grow_guests(self, wanted: list[Heritage]) -> list[tuple[np.ndarray, ...]]:
        """The subtrees of the rows that have been sent here."""
        parts = self._exchange.receive()
        found: list[Any] = [None] * len(wanted)

        def grow(k: int) -> None:
            guests = joined_guests([own[k] for own in parts], self._frame.n_outputs)
            for own in parts:
                own[k] = None
            found[k] = grow_subtree(self._frame, self._columns, guests, wanted[k], self._gone)

        run_tiles(grow, len(wanted), self._n_threads)
        return found

    # -- rows that were not drawn --

    def listen(self, trees: dict[int, PackedTree]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Leaves of own rows that trees, whose thresholds are codes, have not seen, and how much of
        each they have not."""
        return {number: self._listen(number, tree) for number, tree in trees.items()}

    def _listen(self, number: int, tree: PackedTree) -> tuple[np.ndarray, np.ndarray]:
        left_out = left_out_of(self._own, self._frame, number)
        leaves = np.full(len(left_out), -1, np.int32)
        rows = CodedColumns(self._data)
        leaves_of_some(tree, rows, np.flatnonzero(left_out), self._frame.kind, leaves)  # type: ignore[arg-type]
        return leaves, left_out


def _whole_sums(labels: np.ndarray, weight: np.ndarray, n_stats: int) -> np.ndarray:
    """Sums by label; they are below 2^53, so floats hold them."""
    return np.bincount(labels, weights=weight, minlength=n_stats).astype(np.int64)


def _weighted(weight: np.ndarray, own: np.ndarray, frame: Frame) -> np.ndarray:
    """See `targets.quantise`."""
    if frame.targets.counted:
        return weight * np.rint(own).astype(np.int64)
    return np.rint(weight * own).astype(np.int64)
