"""Histograms of gradients and the trees that grow from them, against sums row by row."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles import gradient_trees as oracle

from margrove.ensemble import gradient_trees as trees
from margrove.ensemble.gradient_tables import read_gradient_table
from margrove.grove.binning import bin_columns
from margrove.grove.packed import Kind, cuts_of
from margrove.grove.scores import SQUARED
from margrove.grove.walk import add_values, leaves_of_rows

NOTHING = np.empty(0, np.int64)


def table(seed, n=300, *, missing=0.0):
    """Columns of many values and of few, and such that are nearly always zero."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.normal(size=(n, 3)), rng.integers(0, 5, (n, 2)), rng.random((n, 3)) < 0.1]
    X = X.astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return bin_columns(X, max_bins=255)


def gradients(seed, n):
    """Whole numbers, which words hold without rounding."""
    rng = np.random.default_rng(seed)
    return rng.integers(-2000, 2001, n).astype(float), rng.integers(1, 2000, n).astype(float)


def words_of(g, h, *, wide=False):
    packed = np.empty(len(g), np.int64)
    trees.pack_words(g, h, 1.0, 1.0, 0, len(g), packed)
    if wide:
        return trees.Words(NOTHING, g.astype(np.int64), h.astype(np.int64))
    return trees.Words(packed, NOTHING, NOTHING)


def rules(*, max_leaves=8, min_samples=5, l2=1.0, wide=False, max_depth=2**31):
    return trees.GrowthRules(max_leaves, max_depth, min_samples, 0.0, l2, 1.0, 1.0, wide)


def grown(data, g, h, own, *, wide=False, rows=None, n_groups=1):
    read = read_gradient_table(data, n_groups)
    leaves = trees.new_leaves(data.n_rows, own.max_leaves)
    rooms = [trees.new_room(group.size, own.max_leaves) for group in read.groups]
    words = words_of(g, h, wide=wide)
    chosen = np.arange(data.n_rows) if rows is None else rows
    trees.plant(leaves, chosen.astype(np.int32), words, wide)
    if n_groups == 1:
        trees.grow(read.groups[0], read.columns, data.n_codes, words, own, leaves, rooms[0])
    else:
        trees.grow_together(
            read.groups, read.columns, data.n_codes, words, own, leaves, rooms, n_threads=2
        )
    return leaves


def rows_of_leaves(leaves):
    whole = leaves.whole[: leaves.state[trees.N_NODES]]
    ends = [(own[trees.START], own[trees.END]) for own in whole if own[trees.LEFT] < 0]
    return sorted(tuple(sorted(leaves.rows[a:b].tolist())) for a, b in ends)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("n", [300, 20_000])
def test_histograms_are_sums_over_rows(n, n_groups, missing) -> None:
    data = table(1, n, missing=missing)
    g, h = gradients(2, n)
    words = words_of(g, h)
    rows = np.sort(np.random.default_rng(3).permutation(n)[: n // 2]).astype(np.int32)
    read = read_gradient_table(data, n_groups)
    assert len(read.groups) == n_groups
    assert sorted(j for group in read.groups for j in group.features) == list(range(8))
    for group in read.groups:
        sums, room = np.empty((group.size, 3), np.int64), np.zeros(group.size, np.int64)
        trees.count_rows(group, rows, 0, len(rows), room, words.packed, sums)
        widely = np.empty_like(sums)
        wide = words_of(g, h, wide=True)
        trees.count_rows_widely(group, rows, 0, len(rows), wide.g, wide.h, widely)
        assert np.array_equal(sums, widely)
        for k, j in enumerate(group.features):
            codes = data.column(j)[rows]
            size = data.n_codes[j] + 1
            own = sums[group.first[k] : group.first[k] + size]
            expected = [np.bincount(codes, by[rows], size) for by in (g, h, np.ones(n))]
            shown = np.arange(size) != group.omitted[k]
            assert np.array_equal(own[shown], np.stack(expected, axis=1)[shown].astype(int))
            assert not own[~shown].any()


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("wide", [False, True])
def test_leaves_are_those_of_brute_force(seed, missing, wide) -> None:
    data = table(seed, 120, missing=missing)
    g, h = gradients(seed + 50, 120)
    own = rules(max_leaves=6, min_samples=4, wide=wide)
    leaves = grown(data, g, h, own, wide=wide)
    codes = np.stack([data.column(j) for j in range(8)], axis=1)
    expected, gains = oracle.grow(codes, data.n_codes, g, h, max_leaves=6, min_samples=4, l2=1.0)
    assert rows_of_leaves(leaves) == sorted(tuple(sorted(rows.tolist())) for rows in expected)
    whole = leaves.whole[: leaves.state[trees.N_NODES]]
    inner = whole[:, trees.LEFT] >= 0
    found = leaves.real[: len(whole), trees.GAIN][inner]
    assert np.allclose(np.sort(found), np.sort(gains), rtol=1e-9)


@pytest.mark.parametrize("n_groups", [2, 5])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_several_cores_grow_the_same_tree(n_groups, missing) -> None:
    data = table(3, 3000, missing=missing)
    g, h = gradients(4, 3000)
    alone = grown(data, g, h, rules(max_leaves=31))
    together = grown(data, g, h, rules(max_leaves=31), n_groups=n_groups)
    n = alone.state[trees.N_NODES]
    assert n == together.state[trees.N_NODES] == 61
    assert np.array_equal(alone.whole[:n], together.whole[:n])
    assert np.array_equal(alone.real[:n, trees.GAIN], together.real[:n, trees.GAIN])
    assert np.array_equal(alone.rows, together.rows)


def test_categories_are_parted_by_their_means() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 200)
    data = bin_columns(labels[:, None].astype(float), categorical=np.array([True]), max_bins=255)
    g = np.where(np.isin(labels, [1, 4]), -100.0, 50.0)
    leaves = grown(data, g, np.ones(200), rules(max_leaves=2))
    left = set(labels[leaves.rows[leaves.whole[1, trees.START] : leaves.whole[1, trees.END]]])
    assert left in ({1, 4}, {0, 2, 3, 5})
    assert leaves.whole[0, trees.IS_SET] == 1


def test_limits() -> None:
    data = table(4, 400)
    g, h = gradients(5, 400)
    for own in (rules(max_leaves=5), rules(min_samples=60, max_leaves=31),
                rules(max_depth=2, max_leaves=31)):  # fmt: skip
        leaves = grown(data, g, h, own)
        whole = leaves.whole[: leaves.state[trees.N_NODES]]
        ends = whole[whole[:, trees.LEFT] < 0]
        assert len(ends) <= own.max_leaves
        assert (ends[:, trees.END] - ends[:, trees.START]).min() >= own.min_samples
        assert ends[:, trees.DEPTH].max() <= own.max_depth
    assert leaves.state[trees.N_LEAVES] == 4  # two levels


def test_some_rows_only() -> None:
    data = table(6, 500)
    g, h = gradients(7, 500)
    rows = np.arange(0, 500, 2)
    leaves = grown(data, g, h, rules(), rows=rows)
    assert sorted(row for own in rows_of_leaves(leaves) for row in own) == rows.tolist()


def test_values_of_leaves() -> None:
    data = table(8, 300)
    g, h = gradients(9, 300)
    leaves = grown(data, g, h, rules())
    trees.write_values(leaves, g, h, 2.0**30, 2.0**30, 1.0, 0.1)
    raw = np.zeros(300)
    trees.add_values(leaves, raw)
    for rows in map(list, rows_of_leaves(leaves)):
        expected = -0.1 * g[rows].sum() / (h[rows].sum() + 1.0)
        assert np.allclose(raw[rows], expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_packed_trees_send_rows_where_they_grew(missing) -> None:
    rng = np.random.default_rng(2)
    X = np.c_[rng.normal(size=(400, 2)), rng.integers(0, 40, 400), rng.random(400) < 0.1]
    X = X.astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    categorical = np.array([False, False, True, False])
    data = bin_columns(X, max_bins=255, categorical=categorical)
    g, h = gradients(3, 400)
    leaves = grown(data, g, h, rules(max_leaves=15))
    trees.write_values(leaves, g, h, 2.0**30, 2.0**30, 1.0, 0.1)
    expected, found = np.zeros(400), np.zeros((400, 1))
    trees.add_values(leaves, expected)
    kind = Kind(SQUARED, (), 1, np.where(categorical, 40, 0))
    tree = trees.packed(leaves, cuts_of(data), kind.n_categories)
    tree.require_sound(kind, 4)
    at = np.empty(400, np.int32)
    leaves_of_rows(tree, X, kind, at, has_nan=True)
    add_values(tree, at, kind, None, found)
    assert np.array_equal(found[:, 0], expected)
    assert tree.decrease.sum() > 0.0


def test_equal_rows_have_no_split() -> None:
    data = bin_columns(np.ones((50, 3)), max_bins=255)
    leaves = grown(data, *gradients(1, 50), rules())
    assert leaves.state[trees.N_NODES] == 1
