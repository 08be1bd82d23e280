"""A subtree of a tree whose rows lie on many workers, grown by one that has been sent them.

It is grown by the local `Sapling`, whose root takes over what the node that it stands for has
inherited; random numbers belong to nodes, so the subtree is the one that would have grown anywhere.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.dask.cluster import GangBroken
from margrove.dask.forest_frames import Frame
from margrove.grove.grow.forest_tree_builder import Sapling
from margrove.grove.grow.nodes import DEPTH, HIGH, KEY, LOW, PARENT, Nodes
from margrove.grove.grow.subtree import N_NODES, N_WORDS
from margrove.grove.grow.tree_builder import columns_of
from margrove.grove.table.binning import BinnedDataset, Codes
from margrove.grove.table.columns import Columns
from margrove.grove.table.targets import Targets

__all__ = ["Guests", "Heritage", "grow_subtree", "joined_guests"]

_WORK_AT_ONCE = 2e7
_MANY_COLUMNS = 128  # see `forest_grower`


@dataclass(frozen=True)
class Guests:
    """Some rows of a node, with all that is known of them; see `Targets`.

    places   where each is in the order of the training
    codes    those of `Codes`, by their width, (columns, rows) each
    """

    places: np.ndarray
    codes: tuple[np.ndarray, np.ndarray, np.ndarray]
    labels: np.ndarray
    numbers: np.ndarray
    raw: np.ndarray
    weight: np.ndarray
    real: np.ndarray
    samples: np.ndarray


@dataclass(frozen=True)
class Heritage:
    """What the root of a subtree takes over from the node that it stands for.

    is_root   whether it is the root of the whole tree
    bounds    min_weight and min_decrease of the tree's rules
    """

    tree: int
    node: int
    is_root: bool
    key: int
    depth: int
    low: float
    high: float
    centre: np.ndarray
    exponent: np.ndarray
    bounds: tuple[int, float]


def joined_guests(parts: list[Guests], n_outputs: int) -> Guests:
    """The rows of all members, in the order of their places."""
    order = np.argsort(np.concatenate([own.places for own in parts]), kind="stable")

    def by_row(arrays: list[np.ndarray]) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate(arrays)[order])

    def flat(arrays: list[np.ndarray]) -> np.ndarray:
        whole = np.concatenate(arrays)
        return (
            np.ascontiguousarray(whole.reshape(-1, n_outputs)[order].ravel())
            if len(whole)
            else whole
        )

    codes = [
        np.ascontiguousarray(np.concatenate([own.codes[kind] for own in parts], axis=1)[:, order])
        for kind in range(3)
    ]
    return Guests(
        by_row([own.places for own in parts]),
        (codes[0], codes[1], codes[2]),
        flat([own.labels for own in parts]),
        flat([own.numbers for own in parts]),
        flat([own.raw for own in parts]),
        by_row([own.weight for own in parts]),
        by_row([own.real for own in parts]),
        by_row([own.samples for own in parts]),
    )


def grow_subtree(
    frame: Frame, known: Columns, guests: Guests, heritage: Heritage, gone: threading.Event
) -> tuple[np.ndarray, ...]:
    """The nodes of the subtree, as `Nodes` has them, without what only growing needs.

    known: columns of other rows, from which it is known what codes stand for.
    """
    data = _as_dataset(frame, guests)
    rules = frame.rules_of(heritage.bounds)
    columns = columns_of(data, by_row=len(data.codes.narrow) >= _MANY_COLUMNS)
    columns = columns._replace(values=known.values, first=known.first)
    sapling = Sapling(
        data,
        columns,
        _as_targets(frame, guests),
        rules,
        frame.kind.n_categories,
        max_leaves=frame.max_leaves,
        cuts=frame.cuts,
        weights_count=frame.weights_count,
    )
    _begin(sapling, guests, heritage)
    while not sapling.finished:
        sapling.advance(_WORK_AT_ONCE)
        if gone.is_set():
            raise GangBroken("Nobody waits for this subtree any more.")
    n, n_words = (int(sapling._progress[k]) for k in (N_NODES, N_WORDS))
    nodes: Nodes = sapling._nodes
    kept = (nodes.whole[:n], nodes.real[:n], nodes.stats[:n], nodes.value[:n])
    return (*(own.copy() for own in kept), nodes.subsets[:n_words].copy())


def _begin(sapling: Sapling, guests: Guests, heritage: Heritage) -> None:
    key: Any = np.int64(heritage.key).view(np.uint64)
    sapling.start(guests.weight, guests.samples, int(key))
    nodes = sapling._nodes
    nodes.whole[0, KEY], nodes.whole[0, DEPTH] = heritage.key, heritage.depth
    if heritage.is_root:
        return
    nodes.whole[0, PARENT] = 0  # any: its targets have a scale already
    nodes.real[0, LOW], nodes.real[0, HIGH] = heritage.low, heritage.high
    nodes.centre[0], nodes.exponent[0] = heritage.centre, heritage.exponent
    sapling._targets = sapling._targets._replace(numbers=guests.numbers)


def _as_dataset(frame: Frame, guests: Guests) -> BinnedDataset:
    empty = frame.data
    codes = Codes(*guests.codes, empty.codes.width, empty.codes.place)
    return BinnedDataset(
        codes, len(guests.places), empty.n_codes, empty.lows, empty.highs, empty.has_missing,
        empty.categorical,
    )  # fmt: skip


def _as_targets(frame: Frame, guests: Guests) -> Targets:
    return frame.targets._replace(
        labels=guests.labels,
        numbers=guests.numbers,
        raw=guests.raw,
        weight=guests.weight,
        real=guests.real,
        samples=guests.samples,
    )
