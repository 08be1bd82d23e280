"""Growing trees whose rows are with several members of a collective.

Every member partitions its rows and counts histograms (`joint_rows`). The collective adds these up,
and every member finds the same splits in the sums (`joint_splits`). All nodes that will probably be
split are sent at once, those of all classes together, so a tree takes about as many exchanges as it
has levels. If a member has several threads, each has some of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from margrove._runtime import Collective, run_tiles
from margrove.ensemble.gradient.hist import nodes, trees
from margrove.ensemble.gradient.hist.binning import GradientTable
from margrove.ensemble.gradient.hist.boosting_round import BoostingRound
from margrove.ensemble.gradient.hist.joint import rows as joint_rows
from margrove.ensemble.gradient.hist.joint import splits as joint_splits
from margrove.ensemble.gradient.hist.packed_words import SAMPLES_OF_A_WORD
from margrove.ensemble.gradient.hist.packing import Meanings, packed
from margrove.ensemble.gradient.hist.settings import TreeSizes

__all__ = ["JointTree", "JointTrees"]

_BYTES_OF_SUMS = 1 << 28  # of one tree
_BYTES_OF_TREES = 1 << 30  # that are grown at once
_TREES_AT_ONCE = 8
_NODES_AT_ONCE = 256  # that are partitioned together
_MOST_LEAVES = 2**20
_FIRST_NODES = 64  # capacity of the nodes of a thread
_LEAST_ROWS = 1 << 14  # of a thread
_NOTHING = np.empty(0, np.int64)


@dataclass
class _Part:
    """The rows of one thread in one tree.

    source   the data, with these rows
    tree     the nodes by their numbers in `joint_rows`; only `start` and `end` are used
    space    buffers
    n_nodes  the number of nodes for which there is room
    """

    source: nodes.Source
    tree: nodes.BoostedTree
    space: nodes.Workspace
    n_nodes: int = 1

    def make_room(self, n_more: int) -> None:
        """Make room for further nodes."""
        self.n_nodes += n_more
        if self.n_nodes > len(self.tree.nodes):
            larger = nodes.new_tree(0, 2 * self.n_nodes, 1, 0)
            larger.nodes[: len(self.tree.nodes)] = self.tree.nodes
            self.tree = self.tree._replace(nodes=larger.nodes)


@dataclass
class JointTree:
    """A tree that grows.

    tree      its nodes, the same on all members
    parts     the rows of this member
    packed    int64 (n,)  a buffer for gradients as whole numbers
    n_orders, reply_size   nodes that are to be partitioned next; see `joint_splits.go_on`
    leaves    int64 (leaves,)  of a grown tree; handles: their numbers in `rows`
    largest   float64 (2,)  gradient and hessian of all rows, absolute
    counts    int64 (2,)  samples, and the most samples that one row stands for
    """

    rules: nodes.GrowthRules
    tree: nodes.BoostedTree
    space: nodes.Workspace
    known: joint_splits.Expansions
    parts: list[_Part] = field(default_factory=list)
    packed: np.ndarray = field(default_factory=lambda: _NOTHING)
    largest: np.ndarray = field(default_factory=lambda: np.zeros(2))
    counts: np.ndarray = field(default_factory=lambda: np.ones(2, np.int64))
    is_wide: bool = False
    n_orders: int = 0
    reply_size: int = 0
    leaves: np.ndarray = field(default_factory=lambda: _NOTHING)
    handles: np.ndarray = field(default_factory=lambda: _NOTHING)

    @property
    def is_grown(self) -> bool:
        return self.n_orders == 0

    def collect_leaves(self) -> None:
        self.leaves = np.flatnonzero(self.tree.grown_nodes.left < 0)
        self.handles = self.known.handles[self.leaves]

    @property
    def root_in_words(self) -> bool:
        return not self.is_wide and int(self.counts[0]) <= SAMPLES_OF_A_WORD

    def rows_of_leaves(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of this member by leaves, ascending in each, and where each leaf begins.

        They are sorted because a split that was undone has changed the order of a leaf's rows.
        """
        of_parts = [
            (part.tree.rows, part.tree.nodes.start[self.handles], part.tree.nodes.end[self.handles])
            for part in self.parts
        ]
        pieces = [
            np.sort(np.concatenate([rows[starts[k] : ends[k]] for rows, starts, ends in of_parts]))
            for k in range(len(self.handles))
        ]
        starts = np.cumsum([0, *(len(piece) for piece in pieces)])
        return np.concatenate(pieces), starts

    def add_values(self, raw: np.ndarray, n_threads: int) -> None:
        """Add the values of the leaves to the scores of the rows of this member."""
        handles, values = self.handles, self.tree.nodes.value[self.leaves]

        def add(place: int) -> None:
            joint_rows.add_leaves(self.parts[place].tree, handles, values, raw)

        run_tiles(add, len(self.parts), n_threads)


class JointTrees:
    """Grows the trees of rounds on the rows of all members; see `LocalTrees`."""

    def __init__(
        self,
        table: GradientTable,
        meanings: Meanings,
        sizes: TreeSizes,
        *,
        n_scores: int,
        n_threads: int,
        collective: Collective,
    ) -> None:
        self._table, self._meanings, self._sizes = table, meanings, sizes
        self._n_threads, self._collective = n_threads, collective
        n_bytes = 24.0 * table.n_cells * (sizes.n_slots + sizes.max_leaves)
        most = max(int(min(_BYTES_OF_TREES // max(n_bytes, 1.0), _TREES_AT_ONCE)), 1)
        self._trees = [self._new_tree() for _ in range(min(most, n_scores))]
        self._replies: list[np.ndarray] = []

    def _new_tree(self) -> JointTree:
        table, max_leaves = self._table, self._sizes.max_leaves
        n_slots = self._sizes.n_slots
        most = max(_BYTES_OF_SUMS // max(24 * table.n_cells, 1), 4)
        if self._sizes.is_tight:
            n_entries = min(max_leaves, most)
        else:
            n_entries = int(min(max_leaves, _NODES_AT_ONCE, max(most // 4, 1)))
            n_slots = min(max_leaves + 1, n_slots + 2 * n_entries)
        nothing = table._replace(n_rows=0)
        rules: nodes.GrowthRules = None  # type: ignore[assignment]  # see `grow`
        return JointTree(
            rules,
            nodes.new_tree(0, max_leaves, n_slots, self._sizes.n_sets),
            nodes.new_workspace(nothing, max_leaves, n_slots, 1),
            joint_splits.new_expansions(table, max_leaves, n_entries, _NODES_AT_ONCE),
        )

    def advance(self, current: BoostingRound, work: float) -> float:
        """Grow some trees of a round, all of them together; returns how much work that was."""
        first = current.score
        last = min(first + len(self._trees), len(current.sources))
        growing = self._grow(current, range(first, last))
        for score, tree in zip(range(first, last), growing, strict=True):
            self._keep(current, tree, score)
        current.score = last
        return float(len(growing) * len(current.rows) * len(self._table.features))

    def _grow(self, current: BoostingRound, scores: range) -> list[JointTree]:
        growing = self._trees[: len(scores)]
        for tree, score in zip(growing, scores, strict=True):
            tree.rules, tree.is_wide = current.rules[score], False
            trees.begin(tree.tree)
            self._divide(tree, current.sources[score])
        self._survey(growing)
        self._start_roots(growing, current.n_rows)
        while under_way := [tree for tree in growing if not tree.is_grown]:
            self._expand(under_way)
        if current.renew is None:
            self._write_values(growing)
        return growing

    def _keep(self, current: BoostingRound, tree: JointTree, score: int) -> None:
        """Store a grown tree, and add its values to the scores of the rows of this member."""
        raw, others = current.sources[score].raw, current.others
        if current.renew is not None:
            current.renew(tree.tree, raw, tree.leaves, *tree.rows_of_leaves())
        tree.add_values(raw, self._n_threads)

        def add(tile: int) -> None:
            own = others[tile * _LEAST_ROWS : (tile + 1) * _LEAST_ROWS]
            joint_rows.add_to_others(self._table, tree.tree, own, raw)

        run_tiles(add, -(-len(others) // _LEAST_ROWS), self._n_threads)
        current.grown[score] = packed(tree.tree, self._meanings)

    # -- rows --

    def _divide(self, tree: JointTree, source: nodes.Source) -> None:
        """Divide the rows of this member among its threads."""
        if len(tree.packed) != len(source.gradient):
            tree.packed = np.empty(len(source.gradient), np.int64)
        source = source._replace(packed=tree.packed)
        n = len(source.rows)
        n_parts = max(1, min(self._n_threads, n // _LEAST_ROWS))
        borders = [k * n // n_parts for k in range(n_parts + 1)]
        for place in range(n_parts):
            own = source._replace(rows=source.rows[borders[place] : borders[place + 1]])
            if place == len(tree.parts):
                space = nodes.new_workspace(self._table._replace(n_rows=0), 1, 1, 1)
                tree.parts.append(_Part(own, nodes.new_tree(0, _FIRST_NODES, 1, 0), space))
            part = tree.parts[place]
            part.source, part.n_nodes = own, 1
            part.tree.state[:] = np.zeros((), nodes.STATE)
            if len(part.tree.rows) != len(own.rows):
                part.tree = part.tree._replace(
                    rows=np.empty(len(own.rows), np.int32), spare=np.empty(len(own.rows), np.int32)
                )
        del tree.parts[n_parts:]

    def _each_part(
        self, growing: Sequence[JointTree], do: Callable[[int, JointTree, _Part], None]
    ) -> None:
        """do(number of the part, tree, part) for all trees, on all threads."""

        def run(place: int) -> None:
            for tree in growing:
                do(place, tree, tree.parts[place])

        run_tiles(run, len(growing[0].parts), self._n_threads)

    def _summed(
        self,
        growing: Sequence[JointTree],
        size: int,
        write: Callable[[JointTree, _Part, np.ndarray], None],
    ) -> np.ndarray:
        """The sum over all members of what write(tree, part, reply) writes or adds."""
        replies = [self._reply(place, size) for place in range(len(growing[0].parts))]
        self._each_part(growing, lambda place, tree, part: write(tree, part, replies[place]))
        total, *others = replies
        for other in others:
            total += other
        self._collective.sum(total)
        return total

    def _reply(self, place: int, size: int) -> np.ndarray:
        """Zeros in reused memory, which is several times as fast as new memory."""
        if place == len(self._replies):
            self._replies.append(np.empty(0, np.int64))
        if len(self._replies[place]) < size:
            self._replies[place] = np.empty(2 * size, np.int64)
        reply = self._replies[place][:size]
        reply[:] = 0
        return reply

    # -- the root --

    def _survey(self, growing: Sequence[JointTree]) -> None:
        """Find the largest gradients and the number of samples."""
        n_parts = len(growing[0].parts)
        largest = np.zeros((n_parts, len(growing), 3))  # gradient, hessian, samples of a row
        samples = np.zeros((n_parts, len(growing)), np.int64)
        places = {id(tree): k for k, tree in enumerate(growing)}

        def survey(place: int, tree: JointTree, part: _Part) -> None:
            sizes, counts = np.zeros(2), np.ones(2, np.int64)
            joint_rows.find_largest_of_rows(part.source, sizes, counts)
            k = places[id(tree)]
            largest[place, k] = *sizes, counts[1]
            samples[place, k] = counts[0]

        self._each_part(growing, survey)
        all_largest, all_samples = largest.max(axis=0), samples.sum(axis=0)
        self._collective.max(all_largest)
        self._collective.sum(all_samples)
        for k, tree in enumerate(growing):
            tree.largest = all_largest[k, :2].copy()
            tree.counts = np.array([all_samples[k], int(all_largest[k, 2])])

    def _start_roots(self, growing: Sequence[JointTree], n_rows: int) -> None:
        """Start the roots; with wide gradients where packed ones are not precise enough."""
        waiting = list(growing)
        while waiting:
            at, size, scales = {}, 0, {}
            for tree in waiting:
                scales[id(tree)] = np.empty(2)
                joint_splits.choose_scales(
                    tree.tree, tree.is_wide, tree.largest, tree.counts, scales[id(tree)]
                )
                at[id(tree)] = size
                size += 3 + self._table.n_cells * (1 if tree.root_in_words else 3)

            def write(tree: JointTree, part: _Part, reply: np.ndarray) -> None:
                begin, (g_scale, h_scale) = at[id(tree)], scales[id(tree)]  # noqa: B023
                joint_rows.write_rows(
                    part.source, tree.is_wide, int(tree.counts[1]), g_scale, h_scale, part.tree,
                    reply[begin : begin + 3],
                )  # fmt: skip
                joint_rows.count_root(
                    self._table, part.source, part.tree, part.space, tree.root_in_words,
                    reply[begin + 3 :],
                )  # fmt: skip

            reply = self._summed(waiting, size, write)
            waiting = [
                tree
                for tree in waiting
                if not self._accept_root(tree, reply[at[id(tree)] :], n_rows)
            ]

    def _widen(self, tree: JointTree) -> None:
        """Make arrays for wide gradients, which the parts share."""
        tree.is_wide = True
        n = len(tree.parts[0].source.gradient)
        g, h = np.empty(n, np.int64), np.empty(n, np.int64)
        for part in tree.parts:
            part.source = part.source._replace(g=g, h=h)

    def _accept_root(self, tree: JointTree, reply: np.ndarray, n_rows: int) -> bool:
        """Set the sums of the root; returns False if wider whole numbers are needed."""
        phase = joint_splits.begin_root(
            tree.rules, tree.tree, tree.known, n_rows, tree.is_wide, tree.largest, tree.counts,
            reply[:3],
        )  # fmt: skip
        if phase == nodes.TOO_UNEVEN:
            self._widen(tree)
            return False
        joint_splits.search_root(self._table, tree.rules, tree.tree, tree.space, reply[3:])
        self._continue(tree, _NOTHING)
        return True

    # -- nodes --

    def _expand(self, growing: Sequence[JointTree]) -> None:
        """Partition the rows of some nodes of each tree, and split as far as that allows."""
        sections, size = {}, 0
        for tree in growing:
            sections[id(tree)] = slice(size, size + tree.reply_size)
            size += tree.reply_size
            for part in tree.parts:
                part.make_room(2 * tree.n_orders)

        def split(tree: JointTree, part: _Part, reply: np.ndarray) -> None:
            joint_rows.split_nodes(
                self._table, part.source, part.tree, part.space, tree.known.orders, tree.n_orders,
                reply[sections[id(tree)]],
            )  # fmt: skip

        reply = self._summed(growing, size, split)
        for tree in growing:
            self._continue(tree, reply[sections[id(tree)]])

    def _continue(self, tree: JointTree, reply: np.ndarray) -> None:
        # Every node that can be split is split, so the order does not matter, unless features are
        # drawn by the number of the node.
        in_any_order = (
            not self._sizes.is_tight
            and tree.rules.tried >= 1.0
            and self._sizes.max_leaves < _MOST_LEAVES
        )
        tree.n_orders, tree.reply_size = joint_splits.go_on(
            self._table, tree.rules, tree.tree, tree.space, tree.known, in_any_order, reply
        )
        if tree.is_grown and in_any_order:
            joint_splits.in_usual_order(tree.tree, tree.known)
        if tree.is_grown:
            tree.collect_leaves()

    # -- leaves --

    def _write_values(self, growing: Sequence[JointTree]) -> None:
        """Set the values of leaves from the sums over all members."""
        sections, size = {}, 0
        for tree in growing:
            sections[id(tree)] = slice(size, size + 2 * len(tree.handles))
            size += 2 * len(tree.handles)

        def add_up(tree: JointTree, part: _Part, reply: np.ndarray) -> None:
            sums = reply[sections[id(tree)]].reshape(-1, 2)
            joint_rows.add_up_leaves(part.source, part.tree, tree.handles, tree.tree.scales, sums)

        reply = self._summed(growing, size, add_up)
        for tree in growing:
            sums = reply[sections[id(tree)]].reshape(-1, 2)
            joint_splits.write_values(tree.rules, tree.tree, tree.leaves, sums)
