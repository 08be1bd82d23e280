"""The best splits of large nodes, from sums by code that members send for the features drawn."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np

from margrove.dask.forest_draws import drawn_groups
from margrove.dask.forest_ground import Ground, Place, Trunk
from margrove.dask.forest_groups import Groups, dense_as_groups, search_in_groups, sum_of_groups
from margrove.dask.forest_sums import Summary
from margrove.grove.grow.node_search import Basic, Scratch, keep_split, make_subset, new_basic
from margrove.grove.grow.nodes import (
    BALANCED,
    CODE,
    DECREASE,
    DEPTH,
    DRAWN,
    FEATURE,
    KEY,
    MISSING_LEFT,
    NEXT_CODE,
    SAMPLES,
    SUBSET,
    WEIGHT,
)
from margrove.grove.grow.tree_builder import _shuffle

__all__ = ["search_nodes"]

_MOST_CELLS = 1 << 24  # of sums that travel at a time

Job = tuple[int, int, int]  # a tree, a node of it, a feature


def search_nodes(ground: Ground, places: list[Place], summaries: list[Summary]) -> Iterator[None]:
    """Sets what is known of the nodes' splits; FEATURE stays -1 where there is none."""
    searches = []
    for (tree, node), summary in zip(places, summaries, strict=True):
        if not tree.may_split(node, summary.pure):
            continue
        if tree.nodes.whole[node, DEPTH] >= tree.rules.greedy_depth:
            yield from _halve(ground, tree, node)
        else:
            searches.append(_Search(ground, tree, node, summary))
    open_ones = searches
    while open_ones:
        wanted = [own.next_features() for own in open_ones]
        jobs = [
            (own.tree.number, own.node, feature)
            for own, features in zip(open_ones, wanted, strict=True)
            for feature in features
        ]
        pairs = list(zip(open_ones, wanted, strict=True))
        rows = [own.tree.rows[own.node] for own, features in pairs for _ in features]
        keys = [own.key for own, features in pairs for _ in features]
        answers = iter((yield from _asked(ground, jobs, rows, keys)))
        for own, features in zip(open_ones, wanted, strict=True):
            own.look_at([(feature, next(answers)) for feature in features])
        open_ones = [own for own in open_ones if not own.is_done]
    for own in searches:
        own.keep()


def _asked(
    ground: Ground, jobs: list[Job], rows: list[int], keys: list[int]
) -> Generator[None, None, list[Groups]]:
    """Sums by code, or of what is on either side of a threshold that is drawn."""
    is_drawn = [ground.draws_threshold_of(feature) for _, _, feature in jobs]
    found: list[Groups | None] = [None] * len(jobs)
    for drawn in (False, True):
        which = [k for k, own in enumerate(is_drawn) if own == drawn]
        if not which:
            continue
        some = [jobs[k] for k in which]
        if drawn:
            groups = yield from drawn_groups(ground, some, [keys[k] for k in which])
        else:
            groups = yield from _groups(ground, some, [rows[k] for k in which])
        for k, own in zip(which, groups, strict=True):
            found[k] = own
    return [own for own in found if own is not None]


def _largest_set(ground: Ground) -> int:
    columns = ground.columns
    if not columns.categorical.any():
        return 0
    return int(columns.n_codes[columns.categorical].max()) // 32 + 1


def _groups(
    ground: Ground, jobs: list[Job], rows: list[int]
) -> Generator[None, None, list[Groups]]:
    """Groups of all members together, in the order of the jobs; nodes have so many rows.

    Where there are fewer codes than rows, sums of all codes travel, added up on the way.
    """
    n_codes, n_sums = ground.columns.n_codes, 2 + ground.frame.n_stats
    found: dict[Job, Groups] = {}
    dense: list[Job] = []
    sparse: list[Job] = []
    for job, n_rows in zip(jobs, rows, strict=True):
        (dense if n_codes[job[2]] < n_rows + 256 else sparse).append(job)
    for some in _runs(dense, [(int(n_codes[job[2]]) + 1) * n_sums for job in dense]):
        sums = ground.gang.ask("dense_groups", some)
        yield
        parts = np.split(sums, np.cumsum([int(n_codes[job[2]]) + 1 for job in some])[:-1])
        found |= {job: dense_as_groups(own) for job, own in zip(some, parts, strict=True)}
    sizes = dict(zip(jobs, rows, strict=True))
    for some in _runs(sparse, [sizes[job] * n_sums for job in sparse]):
        told = ground.gang.ask("sparse_groups", some, combine="list")
        yield
        for k, job in enumerate(some):
            found[job] = sum_of_groups([own[k] for own in told])
    return [found[job] for job in jobs]


def _runs(jobs: list[Job], cells: list[int]) -> list[list[Job]]:
    """Neighbours that together have few cells; one at least."""
    runs: list[list[Job]] = []
    room = 0
    for job, own in zip(jobs, cells, strict=True):
        if own > room:
            runs.append([])
            room = _MOST_CELLS
        runs[-1].append(job)
        room -= own
    return runs


@dataclass
class _Search:
    """Features of one node in turn, or as drawn, until enough have been looked at."""

    ground: Ground
    tree: Trunk
    node: int
    summary: Summary

    def __post_init__(self) -> None:
        d = len(self.ground.columns.n_codes)
        self._features = np.arange(d)
        if self.tree.rules.max_features < d:
            key = self.tree.nodes.whole[self.node, KEY]
            _shuffle(self._features, np.uint64(key.view(np.uint64)))
        self._basic: Basic = new_basic(d, self.ground.frame.n_stats)
        self._basic.best[0] = -1
        self._basic.offset[:] = self.summary.offset
        self._winner: Scratch | None = None
        self._tried = self._looked_at = 0

    @property
    def key(self) -> int:
        """What random numbers of the node derive from."""
        return int(self.tree.nodes.whole[self.node, KEY])

    @property
    def is_done(self) -> bool:
        return self._tried == len(self._features) or (
            self._looked_at >= self.tree.rules.max_features and self._basic.best[0] >= 0
        )

    def next_features(self) -> list[int]:
        """As many as are sure to be looked at; more where none has a split yet."""
        most = int(self.tree.rules.max_features)
        count = most - self._looked_at if self._looked_at < most else most
        features: list[int] = self._features[self._tried : self._tried + count].tolist()
        return features

    def look_at(self, found: list[tuple[int, Groups]]) -> None:
        ground, tree, basic = self.ground, self.tree, self._basic
        for feature, groups in found:
            if self.is_done:
                break
            self._tried += 1
            if len(groups) < 2:
                continue
            self._looked_at += 1
            before = basic.best.copy(), basic.score[0]
            scratch = search_in_groups(groups, feature, ground.columns, ground.targets, tree.rules,
                                       tree.nodes, self.node, basic)  # fmt: skip
            if not np.array_equal(before[0], basic.best) or before[1] != basic.score[0]:
                self._winner = scratch

    def keep(self) -> None:
        if self._winner is None:
            return
        tree, node, ground = self.tree, self.node, self.ground
        tree.make_room(0, _largest_set(ground))
        tree.words = int(
            keep_split(tree.nodes, node, self.summary.base, tree.words, ground.columns,
                       ground.targets, tree.rules, self._winner)
        )  # fmt: skip
        feature = tree.nodes.whole[node, FEATURE]
        if feature >= 0 and self._winner.group_code[-1] != ground.columns.n_codes[feature]:
            tree.nodes.whole[node, MISSING_LEFT] = -1  # there is none


def _halve(ground: Ground, tree: Trunk, node: int) -> Iterator[None]:
    """The most even split there is, by the number of rows; see `block`."""
    n_codes = ground.columns.n_codes
    counts = ground.gang.ask("count_rows", tree.number, node)
    yield
    most, feature, code, following = 0, -1, 0, 0
    is_missing = False
    for j, own in enumerate(np.split(counts, np.cumsum(n_codes + 1)[:-1])):
        present = np.flatnonzero(own)
        below = np.cumsum(own[present])[:-1]
        if not len(below):
            continue
        even = np.minimum(below, tree.rows[node] - below)
        k = int(np.argmax(even))
        if even[k] > most:
            most, feature = int(even[k]), j
            code, following = int(present[k]), int(present[k + 1])
            is_missing = bool(own[-1])
    if feature < 0:
        return
    (groups,) = yield from _groups(ground, [(tree.number, node, feature)], [tree.rows[node]])
    weight, samples = groups.sums[groups.codes <= code, :2].sum(axis=0)
    whole, rules = tree.nodes.whole[node], tree.rules
    if (
        min(samples, whole[SAMPLES] - samples) < rules.min_samples_leaf
        or min(weight, whole[WEIGHT] - weight) < rules.min_weight
    ):
        return
    whole[FEATURE], whole[BALANCED] = feature, 1
    whole[SUBSET], whole[MISSING_LEFT] = -1, 0 if is_missing else -1
    whole[CODE], whole[NEXT_CODE] = code, following
    tree.nodes.real[node, DECREASE], tree.nodes.real[node, DRAWN] = 0.0, np.nan
    tree.make_room(0, _largest_set(ground))
    tree.words = int(make_subset(tree.nodes, node, tree.words, ground.columns))
