"""Rows in one run a worker."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from margrove.dask.partitions.shards import plan_shards, shards_in_place

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
