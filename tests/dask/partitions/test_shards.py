"""Rows in one run a worker."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from margrove.dask.partitions import disk_storage, shards
from margrove.dask.partitions.shards import (
    RowsOnDisk,
    Shard,
    plan_shards,
    rows_of_shard,
    shards_in_place,
    tiles_of_shard,
)

WORKERS = ["a", "b", "c", "d"]


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    st.integers(1, 4),
    st.integers(1, 30),
)
def test_every_row_is_in_one_shard_and_borders_are_multiples(lengths, n_workers, multiple):
    shards = plan_shards(np.array(lengths), WORKERS[:n_workers], None, multiple)
    n = sum(lengths)
    assert shards[0].start == 0
    assert shards[-1].stop == n
    assert len({shard.worker for shard in shards}) == len(shards) <= n_workers
    numbers = np.split(np.arange(n), np.cumsum(lengths)[:-1])
    for shard, after in zip(shards, [*shards[1:], None], strict=True):
        assert shard.start % multiple == 0
        assert shard.stop > shard.start
        assert after is None or after.start == shard.stop
        held = np.concatenate([numbers[k][first:last] for k, first, last in shard.pieces])
        np.testing.assert_array_equal(held, np.arange(shard.start, shard.stop))
    tiles = [-(-(shard.stop - shard.start) // multiple) for shard in shards]
    assert max(tiles) - min(tiles) <= 1


def test_runs_go_where_their_rows_are():
    shards = plan_shards(np.array([10, 10, 10, 10]), WORKERS, [["d"], ["c"], ["b"], ["a"]])
    assert [shard.worker for shard in shards] == ["d", "c", "b", "a"]
    strangers = plan_shards(np.array([10, 10]), WORKERS[:2], [["z"], ["a", "z"]])
    assert [shard.worker for shard in strangers] == ["b", "a"]


def test_what_shards_hold_does_not_depend_on_where_partitions_are():
    lengths = np.array([5, 80, 3, 60])
    one = plan_shards(lengths, WORKERS, [["a"], ["b"], ["b"], ["d"]], 16)
    other = plan_shards(lengths, WORKERS, None, 16)
    assert [shard.pieces for shard in one] == [shard.pieces for shard in other]


def test_few_rows_need_few_workers():
    assert len(plan_shards(np.array([3]), WORKERS)) == 3
    assert len(plan_shards(np.array([100]), WORKERS, None, 32768)) == 1


@pytest.mark.parametrize("form", ["dense", "csr", "frame"])
def test_rows_of_a_shard_are_in_order(form):
    X = np.arange(24.0).reshape(12, 2)
    make = {"dense": np.array, "csr": sp.csr_array, "frame": pd.DataFrame}[form]
    shard = Shard("a", 3, 10, ((0, 3, 5), (1, 0, 4), (3, 0, 1)))
    partitions = [make(X[:5]), make(X[5:9]), make(X[9:])]
    y = [np.arange(0, 5), np.arange(5, 9), np.arange(9, 12)]
    rows = rows_of_shard(shard, partitions, y, None, 2, threading.Event())
    found = rows.X.toarray() if form == "csr" else np.asarray(rows.X)
    np.testing.assert_array_equal(found, X[3:10])
    assert rows.y.tolist() == list(range(3, 10))
    assert rows.weight is None
    assert rows.n_rows == 7
    assert rows.n_threads == 2


def test_arrays_that_came_over_the_network_become_writable():
    X = np.ones((4, 2))
    X.flags.writeable = False
    rows = rows_of_shard(Shard("a", 0, 4, ((0, 0, 4),)), [X], None, None, 1, threading.Event())
    assert rows.X.flags.writeable
    array = np.ones((4, 2))
    same = rows_of_shard(Shard("a", 0, 4, ((0, 0, 4),)), [array], None, None, 1, threading.Event())
    assert same.X is array  # a whole partition is not copied


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sets(st.sampled_from([*WORKERS, "z"]))),
        min_size=1,
        max_size=12,
    ).filter(lambda partitions: any(length for length, _ in partitions))
)
def test_partitions_stay_where_they_are(partitions):
    lengths = np.array([length for length, _ in partitions])
    where = [sorted(holders) for _, holders in partitions]
    found = shards_in_place(lengths, WORKERS, where)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    seen = []
    for shard in found:
        assert shard.pieces
        for (k, first, last), start in zip(shard.pieces, shard.first_rows(), strict=True):
            assert (first, last, start) == (0, lengths[k], offsets[k])
            assert shard.worker in where[k] or not set(where[k]) & set(WORKERS)
            assert shard.start <= start < shard.stop
            seen.append(k)
    assert sorted(seen) == np.flatnonzero(lengths).tolist()
    assert len({shard.worker for shard in found}) == len(found)


def test_partitions_that_several_hold_go_to_the_worker_with_the_fewest_rows():
    found = shards_in_place(np.array([8, 5, 2]), WORKERS[:2], [["a"], ["a", "b"], ["a", "b"]])
    assert [(shard.worker, [piece[0] for piece in shard.pieces]) for shard in found] == [
        ("a", [0]),
        ("b", [1, 2]),
    ]


@pytest.fixture
def on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_storage, "_folder", lambda: str(tmp_path))
    return disk_storage.PartitionOnDisk


def test_tiles_of_rows_on_disk(on_disk, monkeypatch):
    monkeypatch.setattr(shards, "_TILE_BYTES", 3 * 2 * 8)
    X = np.arange(40.0).reshape(20, 2)
    shard = Shard("a", 2, 20, ((0, 2, 10), (2, 0, 5)), (2, 15))
    partitions = [on_disk(X[:10]), X[15:]]
    y = [np.arange(0, 10), np.arange(15, 20)]
    tiles = tiles_of_shard(shard, partitions, y, None, 2, threading.Event())
    assert [(tile.start, tile.stop) for tile in tiles] == [(2, 4), (4, 7), (7, 10), (15, 20)]
    for tile in tiles:
        rows = tile.X.read() if isinstance(tile.X, RowsOnDisk) else tile.X
        assert tile.X.shape == rows.shape
        np.testing.assert_array_equal(rows, X[tile.start : tile.stop])
        np.testing.assert_array_equal(tile.y, np.arange(tile.start, tile.stop))
        assert any(np.shares_memory(tile.y, targets) for targets in y)
        assert tile.weight is None
    assert [isinstance(tile.X, RowsOnDisk) for tile in tiles] == [True, True, True, False]


def test_a_sparse_part_on_disk_is_one_tile(on_disk, monkeypatch):
    monkeypatch.setattr(shards, "_TILE_BYTES", 1)
    X = sp.random_array((9, 4), density=0.5, format="csr", rng=0)
    (tile,) = tiles_of_shard(
        Shard("a", 2, 8, ((0, 2, 8),)), [on_disk(X)], None, None, 1, threading.Event()
    )
    np.testing.assert_array_equal(tile.X.read().toarray(), X[2:8].toarray())


def test_rows_in_memory_are_one_tile():
    X = np.arange(24.0).reshape(12, 2)
    shard = Shard("a", 3, 9, ((0, 3, 5), (1, 0, 4)))
    (tile,) = tiles_of_shard(shard, [X[:5], X[5:]], None, None, 1, threading.Event())
    np.testing.assert_array_equal(tile.X, X[3:9])
