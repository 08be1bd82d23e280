"""Trees of histogram boosting against a search of all splits of every node."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import gradient_trees as oracle

from margrove._runtime import pool_words
from margrove.ensemble.gradient.hist import leaves, trees
from margrove.ensemble.gradient.hist import nodes as parts
from margrove.ensemble.gradient.hist.binning import tables as gradient_tables
from margrove.ensemble.gradient.hist.binning.tables import bins_and_table
from margrove.ensemble.gradient.hist.packed_words import SAMPLES_OF_A_WORD, packed_word, unpacked
from margrove.ensemble.gradient.hist.packing import meanings_of, packed
from margrove.grove.grow.search.scores import SQUARED
from margrove.grove.serve.forest_walk import leaves_of_rows
from margrove.grove.serve.packed_trees import Kind

NOTHING = np.empty(0, np.int64)
ORDERS = {parts.BEST_FIRST: oracle.BEST_FIRST, parts.LEVEL_BY_LEVEL: oracle.LEVEL_BY_LEVEL}
CATEGORIES = 5
MANY = 150  # copies that make a few rows a table which is packed


@pytest.fixture(autouse=True)
def _divisions_are_silent():
    """Division by zero is silent, as in compiled code."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yield


def mixed_columns(seed, n, *, missing=0.0, categories=CATEGORIES):
    """Numbers of few values and of more, one that is nearly always zero, and categories."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.integers(0, 4, n), rng.integers(0, 9, n), rng.random(n) < 0.15,
              rng.integers(0, categories, n)].astype(float)  # fmt: skip
    X[rng.random(X.shape) < missing] = np.nan
    return X, np.array([0, 0, 0, categories])


def numbers(seed, n, d=6):
    """Many values, and columns of which most cells are zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, ::3] *= rng.random((n, len(range(0, d, 3)))) < 0.1
    return X, np.zeros(d, np.int64)


def indicators(seed, n, d=40):
    """Columns of which one is 1 in each row: they share a byte."""
    labels = np.random.default_rng(seed).integers(0, d, n)
    return (labels[:, None] == np.arange(d)).astype(float), np.zeros(d, np.int64)


def crowded(seed, n, d=16):
    """Sparse columns that cannot share bytes: they are stored as lists."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 9, (n, d)) * (rng.random((n, d)) < 0.15)
    X[:, 0] = rng.integers(0, 9, n)
    return X.astype(float), np.zeros(d, np.int64)


TABLES = {"mixed": numbers, "indicators": indicators, "crowded": crowded}


def gradients(seed, n):
    rng = np.random.default_rng(seed + 1000)
    return rng.normal(size=n), rng.random(n) + 0.1


def rules(table, *, order=parts.BEST_FIRST, max_leaves=8, max_depth=2**31, min_samples=1,
          min_hessian=1e-3, min_worth=0.0, l2=0.0, longest_step=np.inf, rate=0.1, tried=1.0, seed=0,
          adds=True, signs=None, sets=None):  # fmt: skip
    """`signs` and `sets` are by feature."""
    d = len(table.features)
    signs = NOTHING if signs is None else np.asarray(signs, np.int64)[table.features]
    sets = np.empty((0, d), np.bool_) if sets is None else sets[:, table.features].copy("C")
    return parts.GrowthRules(
        order=order, max_leaves=max_leaves, max_depth=max_depth, min_samples=min_samples,
        min_hessian=min_hessian, min_worth=min_worth, l2=l2, longest_step=longest_step, rate=rate,
        tried=tried, seed=seed, adds=adds, signs=signs, sets=sets,
    )  # fmt: skip


class Growth:
    """A tree, and the data that it is grown on.

    All rows may be repeated, one table after the other: `rows_of` names them once.
    """

    def __init__(
        self, table, g, h, own, *, copies=None, rows=None, wide=False, n_cores=1, repeats=1
    ):
        n = table.n_rows
        chosen = np.arange(n) if rows is None else rows
        n_slots = 48 if own.order == parts.SMALL_FIRST else own.max_leaves + 1
        self.table, self.rules, self.repeats = table, own, repeats
        self.tree = parts.new_tree(len(chosen), own.max_leaves, n_slots, len(own.sets))
        self.room = parts.new_workspace(table, own.max_leaves, n_slots, n_cores)
        self.n_cores = n_cores
        words = np.empty(n if wide else 0, np.int64)
        self.source = parts.Source(
            chosen.astype(np.int32), g, h, NOTHING if copies is None else copies, np.zeros(n),
            np.empty(n, np.int64), words, words.copy(),
        )  # fmt: skip
        self.tree.state.is_uneven[0] = wide
        trees.begin(self.tree)

    def go_on(self, work=np.inf):
        return trees.grow(pool_words(self.n_cores), self.n_cores, *self.given, float(work))

    @property
    def given(self):
        return self.table, self.source, self.rules, self.tree, self.room

    def is_done(self):
        return self.state.job == trees.NO_JOB

    @property
    def raw(self):
        return self.source.raw

    @property
    def nodes(self):
        return self.tree.grown_nodes

    @property
    def state(self):
        return self.tree.state[0]

    def rows_of(self, node):
        own = self.nodes[node]
        rows = np.sort(self.tree.rows[own.start : own.end])
        return rows[rows < self.table.n_rows // self.repeats].tolist()

    @property
    def leaves(self):
        return np.flatnonzero(self.nodes.left < 0)


def grown(table, g, h, own, **given):
    growth = Growth(table, g, h, own, **given)
    if growth.go_on() == parts.TOO_UNEVEN:
        words = np.empty((2, table.n_rows), np.int64)
        growth.source = growth.source._replace(g=words[0], h=words[1])
        trees.begin(growth.tree)
        growth.go_on()
    assert growth.state.phase == (parts.ADDED if own.adds else parts.GROWN)
    return growth


def split_of(growth, node):
    own, table = growth.nodes[node], growth.table
    place = own.place
    at = int(own.code)
    if own.is_set:
        words = growth.nodes.codes_left[node]
        codes = range(int(table.n_codes[place]) + 1)
        at = frozenset(k for k in codes if int(words[k // 32]) >> (k % 32) & 1)
    left = growth.rows_of(own.left)
    is_left = bool(own.missing_left)
    return oracle.Split(int(table.features[place]), at, is_left, tuple(left))


def problem_of(growth, *, bits=11, signs=None):
    own, table, n = growth.rules, growth.table, growth.table.n_rows // growth.repeats
    g, g_unit = oracle.whole_numbers(growth.source.gradient[:n], bits)
    h, h_unit = oracle.whole_numbers(growth.source.hessian[:n], bits)
    limits = oracle.Rules(
        own.l2, own.min_samples, own.min_hessian, own.min_worth, own.max_depth, own.max_leaves,
        ORDERS.get(own.order, oracle.BEST_FIRST), signs,
    )  # fmt: skip
    return oracle.Problem(
        oracle.codes_of(table)[:n], table.n_codes[table.places], table.is_category[table.places],
        g, h, [growth.repeats] * n, (g_unit, h_unit), limits,
    )  # fmt: skip


def assert_as_the_oracle(growth, problem) -> None:
    nodes = oracle.grow(problem)
    expected = [(own.rows, own.split if own.children else None) for own in nodes]
    found = [
        (growth.rows_of(k), None if own.left < 0 else split_of(growth, k))
        for k, own in enumerate(growth.nodes)
    ]
    if growth.rules.order == parts.SMALL_FIRST:  # nodes are in another order
        expected.sort(key=lambda own: own[0])
        found.sort(key=lambda own: own[0])
    else:
        inner = growth.nodes.left >= 0
        unit = 1.0 if problem.rules.signs is not None else problem.units[0] ** 2 / problem.units[1]
        gains = growth.nodes.gain[inner] * growth.tree.units[2]
        own = [node.gain * unit for node in nodes if node.children]
        assert np.allclose(gains, own, rtol=1e-9, atol=1e-14)
    assert found == expected


# -- every split of every node ---------------------------------------------------------------------


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "n": draw(st.integers(8, 36)),
        "missing": draw(st.sampled_from([0.0, 0.0, 0.3])),
        "order": draw(st.sampled_from([parts.BEST_FIRST, parts.LEVEL_BY_LEVEL, parts.SMALL_FIRST])),
        "max_leaves": draw(st.integers(2, 8)),
        "max_depth": draw(st.sampled_from([1, 2, 3, 2**31])),
        "min_samples": draw(st.integers(1, 4)),
        "min_hessian": draw(st.sampled_from([1e-3, 1.0, 3.0])),
        "min_worth": draw(st.sampled_from([0.0, 0.0, 3.0])),
        "l2": draw(st.sampled_from([0.0, 0.7, 20.0])),
        "packed": draw(st.booleans()),
        "lists": draw(st.booleans()),
    }


def grown_in(case, signs=None):
    """A tree, and the input of the oracle; a few rows are packed only if they are repeated."""
    n, repeats = case["n"], MANY if case["packed"] else 1
    X, n_categories = mixed_columns(case["seed"], n, missing=case["missing"])
    with pytest.MonkeyPatch.context() as patch:
        if case["lists"]:
            patch.setattr(gradient_tables, "BYTES_OF_A_LIST", 0)
            patch.setattr(gradient_tables, "BYTES_OF_AN_ENTRY", 0)
        _, table = bins_and_table(np.tile(X, (repeats, 1)), n_categories)
    g, h = (np.tile(own, repeats) for own in gradients(case["seed"], n))
    names = ("order", "max_depth", "min_hessian", "min_worth", "l2", "max_leaves")
    limits = {name: case[name] for name in names} | {"min_samples": repeats * case["min_samples"]}
    if case["order"] == parts.SMALL_FIRST:
        limits["max_leaves"] = n  # this is no limit
    own = rules(table, **limits, rate=1.0, signs=signs)
    growth = grown(table, g, h, own, repeats=repeats)
    assert growth.state.is_wide == (not case["packed"])
    bits = 11 if case["packed"] else min(40, 61 - n.bit_length())
    return growth, problem_of(growth, bits=bits, signs=signs)


@given(cases())
@settings(max_examples=60)
def test_each_split_is_the_best_of_all(case) -> None:
    assert_as_the_oracle(*grown_in(case))


@pytest.mark.nojit
@pytest.mark.parametrize("order", [parts.BEST_FIRST, parts.LEVEL_BY_LEVEL, parts.SMALL_FIRST])
def test_each_split_is_the_best_of_all_without_the_compiler_too(order) -> None:
    case = {"seed": 3, "n": 30, "missing": 0.2, "order": order, "max_leaves": 6, "max_depth": 4,
            "min_samples": 2, "min_hessian": 0.5, "min_worth": 1.0, "l2": 0.3,
            "packed": order == parts.BEST_FIRST, "lists": order == parts.SMALL_FIRST}  # fmt: skip
    assert_as_the_oracle(*grown_in(case))


@pytest.mark.parametrize(("l2", "max_leaves", "signs"), [(0.7, 8, (-1, 1, 1, 0)),
                                                         (0.0, 7, (-1, 1, -1, 0))])  # fmt: skip
def test_bounds_are_kept_where_every_split_is_worth_less_than_nothing(
    l2, max_leaves, signs
) -> None:
    """A node may be worth less than -1 within its bounds."""
    case = {"seed": 146, "n": 35, "missing": 0.0, "order": parts.BEST_FIRST, "max_depth": 3,
            "min_samples": 1, "min_hessian": 1e-3, "min_worth": 0.0, "packed": True,
            "lists": False, "l2": l2, "max_leaves": max_leaves}  # fmt: skip
    assert_as_the_oracle(*grown_in(case, signs))


@given(cases(), st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3))
@settings(max_examples=30)
def test_each_split_is_the_best_of_those_that_bounds_allow(case, signs) -> None:
    growth, problem = grown_in(case | {"order": parts.BEST_FIRST}, (*signs, 0))
    assert_as_the_oracle(growth, problem)
    for k, node in enumerate(oracle.grow(problem)):
        assert (growth.nodes.low[k], growth.nodes.high[k]) == (node.low, node.high)
        if not node.children:
            assert node.low <= growth.nodes.value[k] <= node.high


@given(st.integers(0, 10**6), st.integers(2, 6))
@settings(max_examples=25)
def test_categories_of_equal_size_are_parted_as_well_as_by_any_subset(seed, n_categories) -> None:
    labels = np.tile(np.arange(n_categories), 600)
    _, table = bins_and_table(labels[:, None].astype(float), np.array([n_categories]))
    g = np.random.default_rng(seed).normal(size=len(labels))
    growth = grown(table, g, np.ones(len(labels)), rules(table, max_leaves=2))
    whole, _ = oracle.whole_numbers(g, 11)
    sums = [sum(own for own, k in zip(whole, labels, strict=True) if k == c)
            for c in range(n_categories)]  # fmt: skip

    def worth(left):
        right = set(range(n_categories)) - set(left)
        return sum(sum(sums[k] for k in side) ** 2 / len(side) for side in (left, right))

    subsets = [own for size in range(1, n_categories)
               for own in combinations(range(n_categories), size)]  # fmt: skip
    left = {int(labels[row]) for row in growth.rows_of(1)}
    assert worth(left) == pytest.approx(max(map(worth, subsets)), rel=1e-12)


@pytest.mark.nojit
def test_of_equal_splits_that_by_the_first_feature() -> None:
    x = np.arange(20.0)
    rare = (x == 0.0).astype(float)  # a sparse column, which has a later place
    X = np.c_[rare, x, x]
    for columns, best in (((0, 1, 2), 1), ((1, 2, 0), 0), ((0, 0), 0)):
        _, table = bins_and_table(X[:, columns], np.zeros(len(columns), np.int64))
        g = np.where(x < 10, 1.0, -1.0)
        growth = grown(table, g, np.ones(20), rules(table, max_leaves=2))
        assert table.features[growth.nodes.place[0]] == best
    X = np.c_[x, rare]  # the first row apart: both can
    for columns in ((0, 1), (1, 0)):
        _, table = bins_and_table(X[:, columns].copy(), np.zeros(2, np.int64))
        growth = grown(table, np.where(x == 0.0, 19.0, -1.0), np.ones(20), rules(table))
        assert table.n_dense == 1
        assert table.features[growth.nodes.place[0]] == 0


@pytest.mark.nojit
def test_nothing_to_gain_is_no_split() -> None:
    X, n_categories = numbers(0, 50)
    for own in (np.ones((50, 3)), np.full((50, 2), np.nan)):
        _, table = bins_and_table(own, np.zeros(own.shape[1], np.int64))
        growth = grown(table, *gradients(0, 50), rules(table))
        assert len(growth.nodes) == 1
    _, table = bins_and_table(X, n_categories)
    for g in (np.zeros(50), np.full(50, 0.3)):
        growth = grown(table, g, np.ones(50), rules(table))
        assert len(growth.nodes) == 1
        assert np.allclose(growth.raw, -0.1 * g[0], rtol=1e-12)


# -- histograms ------------------------------------------------------------------------------------


def histogram_of(growth, node):
    """g, h and samples, (3, cells), as used in the search of the node."""
    sums = growth.room.sums[growth.nodes.slot[node]]
    if growth.nodes.is_packed[node]:
        return np.array([unpacked(word) for word in sums[0]]).T
    return sums


def counted(growth, node, copies):
    """The same histogram, computed row by row."""
    table, rows = growth.table, growth.rows_of(node)
    own = growth.source
    if len(own.g):
        g, h, times = own.g, own.h, np.ones(len(own.g), np.int64) if copies is None else copies
    else:
        g, h, times = np.array([unpacked(word) for word in own.packed]).T
    found = np.zeros((3, table.n_cells), np.int64)
    codes = oracle.codes_of(table)[:, table.features]
    for place in range(len(table.features)):
        cells = table.first[place] + codes[rows, place]
        for k, by in enumerate((g, h, times)):
            np.add.at(found[k], cells, by[rows])
    return found


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    ("n", "copies", "wide"),
    [(1200, 1, False), (400, 1, True), (400, 8, False), (400, 8, True), (3000, 8, False),
     (12_000, 1, False)],
)  # fmt: skip
def test_histograms_by_subtraction_are_those_of_the_rows(n, copies, wide, kind) -> None:
    X, n_categories = TABLES[kind](n, n)
    _, table = bins_and_table(X, n_categories, max_bins=20)
    assert bool(len(table.entries)) == (kind == "crowded")
    assert kind != "indicators" or len(table.by_columns) == 1
    real = sorted(oracle.meaning_of_cells(table))
    g, h = gradients(n, n)
    times = np.random.default_rng(1).integers(1, copies + 1, n) if copies > 1 else None
    growth = Growth(table, g, h, rules(table, max_leaves=8), copies=times, wide=wide)
    seen, sizes = 0, set()
    while not growth.is_done():
        is_look = growth.state.job == trees.SEARCH
        growth.go_on(1.0)  # a step
        if not is_look:
            continue
        for node in (growth.state.small, growth.state.large):
            if node >= 0:
                expected = counted(growth, node, times)
                assert np.array_equal(histogram_of(growth, node)[:, real], expected[:, real])
                sizes.add(bool(growth.nodes.is_packed[node]))
                seen += 1
    assert seen >= 10
    n_samples = n if times is None else int(times.sum())
    both = {False, True} if n_samples > SAMPLES_OF_A_WORD else {True}
    assert sizes == ({False} if wide else both)


@pytest.mark.nojit
def test_words() -> None:
    rng = np.random.default_rng(0)
    for scale in (1, 2048):
        g = np.append(rng.integers(-scale, scale + 1, 50), [-scale, scale])
        h = np.append(rng.integers(0, scale + 1, 50), [0, scale])
        word = np.int64(0)
        for own, other in zip(g, h, strict=True):
            assert unpacked(packed_word(own, other, np.int64(1))) == (own, other, 1)
            word += packed_word(own, other, np.int64(1))
        assert unpacked(word) == (g.sum(), h.sum(), len(g))
    most = SAMPLES_OF_A_WORD
    lowest = packed_word(np.int64(-2048), np.int64(2048), np.int64(1)) * np.int64(most)
    assert unpacked(lowest) == (-2048 * most, 2048 * most, most)


# -- what leaves say -------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("copies", [False, True])
def test_values_of_leaves_are_newton_steps(l2, copies) -> None:
    X, n_categories = numbers(1, 100)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(2, 100)
    times = np.random.default_rng(1).integers(1, 5, 100) if copies else np.ones(100, np.int64)
    own = rules(table, l2=l2, rate=0.3)
    growth = grown(table, g, h, own, copies=times if copies else None)
    assert len(growth.leaves) == 8
    for leaf in growth.leaves:
        rows = growth.rows_of(leaf)
        total_h = math.fsum(times[rows] * h[rows])
        expected = -0.3 * math.fsum(times[rows] * g[rows]) / (total_h + l2)
        assert growth.nodes.value[leaf] == pytest.approx(expected, rel=1e-12)
        assert growth.nodes.hessian[leaf] == pytest.approx(total_h, rel=1e-12)
        assert np.array_equal(growth.raw[rows], np.full(len(rows), growth.nodes.value[leaf]))
        assert growth.nodes.count[leaf] == times[rows].sum()


@pytest.mark.nojit
def test_steps_that_are_too_long_are_shortened() -> None:
    X, n_categories = numbers(1, 100)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(2, 100)
    whole = grown(table, g, 1e-2 * h, rules(table, rate=0.5))
    short = grown(table, g, 1e-2 * h, rules(table, rate=0.5, longest_step=20.0))
    steps, found = (own.nodes.value[own.leaves] / 0.5 for own in (whole, short))
    is_long = np.abs(steps) > 20.0
    assert 0 < is_long.sum() < len(steps)
    assert np.array_equal(found[~is_long], steps[~is_long])
    expected = np.sign(steps) * (20.0 + np.log1p(np.abs(steps) - 20.0))
    assert np.allclose(found[is_long], expected[is_long], rtol=1e-12)


def test_values_have_all_digits_although_gradients_of_the_search_have_few() -> None:
    n = 3000
    x = np.arange(n) % 2
    _, table = bins_and_table(x[:, None].astype(float), np.zeros(1, np.int64))
    g = 1.0 + 1e-9 * np.random.default_rng(0).random(n) - 2.0 * x
    growth = grown(table, g, np.ones(n), rules(table, rate=1.0))
    for k in range(2):
        assert growth.raw[k] == pytest.approx(-math.fsum(g[x == k]) / (n / 2), rel=1e-13)


@pytest.mark.nojit
def test_values_may_be_added_later() -> None:
    X, n_categories = numbers(3, 80)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(4, 80)
    growth = grown(table, g, h, rules(table, adds=False))
    assert not growth.raw.any()
    growth.nodes.value[:] = np.arange(len(growth.nodes))
    leaves.add_values(pool_words(1), 1, growth.tree, growth.room, growth.raw)
    for leaf in growth.leaves:
        assert (growth.raw[growth.rows_of(leaf)] == leaf).all()


@pytest.mark.nojit
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_other_rows_and_packed_trees_find_the_same_leaves(missing) -> None:
    n = 150
    X, n_categories = mixed_columns(7, n, missing=missing, categories=40)
    bins, table = bins_and_table(X, n_categories)
    g, h = gradients(8, n)
    some = np.arange(0, n, 2)
    growth = grown(table, g, h, rules(table, max_leaves=12), rows=some)
    assert sorted(row for leaf in growth.leaves for row in growth.rows_of(leaf)) == some.tolist()
    assert not growth.raw[1::2].any()
    others = np.arange(1, n, 2).astype(np.int32)
    leaves.add_to_others(-(-n // 2048), 1, table, growth.tree, others, growth.raw)
    kind = Kind(SQUARED, (), 1, n_categories)
    tree = packed(growth.tree, meanings_of(bins, table))
    tree.require_sound(kind, 4)
    at = np.empty(n, np.int32)
    leaves_of_rows(tree, X, kind, at, has_nan=True)
    assert np.array_equal(tree.nodes.view(np.float64)[2 * at], growth.raw)
    for leaf in growth.leaves:
        assert np.flatnonzero(at[::2] == leaf).tolist() == [r // 2 for r in growth.rows_of(leaf)]
    assert (tree.decrease[~tree.is_leaf] > 0.0).all()
    assert np.array_equal(tree.weight, growth.nodes.count)


# -- packed words, and wide ones -------------------------------------------------------------------


def test_gradients_that_differ_much_in_size_are_counted_widely() -> None:
    n = 1500
    X, n_categories = numbers(5, n)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(6, n)
    own = rules(table, max_leaves=5)
    assert Growth(table, g, h, own).go_on() == parts.ADDED
    for lopsided in ((g * np.where(np.arange(n) == 0, 1e5, 1.0), h),
                     (g, h * np.where(np.arange(n) == 0, 1e5, 1.0))):  # fmt: skip
        growth = Growth(table, *lopsided, own)
        assert growth.go_on() == parts.TOO_UNEVEN
        assert not growth.raw.any()
        growth = grown(table, *lopsided, own)
        assert growth.state.is_wide == 1
        assert_is_a_valid_tree(growth)
        assert_leaves_have_newton_steps(growth, *lopsided)


def test_rows_of_many_copies_are_counted_widely() -> None:
    X, n_categories = numbers(5, 300)
    _, table = bins_and_table(X, n_categories)
    copies = np.ones(300, np.int64)
    copies[7] = 100_000
    own = rules(table, min_samples=20)
    growth = Growth(table, *gradients(6, 300), own, copies=copies)
    assert growth.go_on() == parts.TOO_UNEVEN
    growth = grown(table, *gradients(6, 300), own, copies=copies)
    assert_is_a_valid_tree(growth, copies)
    assert growth.nodes.count[0] == 100_299


def assert_is_a_valid_tree(growth, copies=None) -> None:
    """Children share the rows of their parent, and leaves keep to the limits."""
    times = np.ones(growth.table.n_rows, np.int64) if copies is None else copies
    for k, own in enumerate(growth.nodes):
        rows = growth.rows_of(k)
        assert own.count == times[rows].sum() >= growth.rules.min_samples
        if own.left >= 0:
            left, right = (growth.rows_of(own.left + side) for side in range(2))
            assert sorted(left + right) == rows
            assert growth.nodes.gain[k] > 0.0
            for total in ("total_g", "total_h", "count"):
                children = growth.nodes[own.left : own.left + 2][total]
                assert children.sum() == own[total]
    assert len(growth.leaves) == growth.state.n_leaves <= growth.rules.max_leaves


def assert_leaves_have_newton_steps(growth, g, h) -> None:
    for leaf in growth.leaves:
        rows = growth.rows_of(leaf)
        expected = -0.1 * math.fsum(g[rows]) / math.fsum(h[rows])
        # sums keep 50 bits of the largest
        assert growth.raw[rows] == pytest.approx(expected, rel=1e-9)


def test_wide_and_packed_agree_where_nothing_is_rounded() -> None:
    n = 2000
    rng = np.random.default_rng(0)
    X, n_categories = numbers(1, n)
    _, table = bins_and_table(X, n_categories)
    g, h = rng.integers(-2000, 2001, n).astype(float), rng.integers(1, 2001, n).astype(float)
    one, other = (grown(table, g, h, rules(table, max_leaves=20), wide=k) for k in (False, True))
    assert one.state.is_wide == 0
    assert other.state.is_wide == 1
    assert_same_tree(one, other, but=("is_packed", "total_g", "total_h", "left_g",
                                      "left_h"))  # fmt: skip


# -- what does not matter --------------------------------------------------------------------------


def assert_same_tree(one, other, but=()) -> None:
    """Equal bit for bit, except for slots and for unused fields of leaves."""
    assert len(one.nodes) == len(other.nodes)
    inner = one.nodes.left >= 0
    everywhere = ("start", "end", "depth", "left", "total_g", "total_h",
                  "count", "is_packed")  # fmt: skip
    where_split = ("place", "code", "missing_left", "is_set", "left_g",
                   "left_h", "left_count")  # fmt: skip
    for columns, nodes in ((everywhere, slice(None)), (where_split, inner)):
        for column in set(columns) - set(but):
            assert np.array_equal(one.nodes[nodes][column], other.nodes[nodes][column]), column
    gains = [own.nodes.gain[inner] * own.tree.units[2] for own in (one, other)]
    assert np.array_equal(*gains)
    assert np.array_equal(one.nodes.value[~inner], other.nodes.value[~inner])
    sets = one.nodes.is_set * inner == 1
    assert np.array_equal(one.nodes.codes_left[sets], other.nodes.codes_left[sets])
    assert np.array_equal(one.tree.rows, other.tree.rows)
    assert np.array_equal(one.raw, other.raw)


@pytest.mark.parametrize("n", [300, 3000])
def test_bytes_of_features_that_are_lists_change_nothing(n, monkeypatch) -> None:
    X, n_categories = crowded(3, n)
    g, h = gradients(4, n)
    trees_found = []
    for most in (0, 1 << 24):
        monkeypatch.setattr(gradient_tables, "_MOST_BYTES_OF_LISTS", most)
        _, table = bins_and_table(X, n_categories)
        assert (table.columns < 0).any() == (most == 0)
        trees_found.append(grown(table, g, h, rules(table, max_leaves=20), wide=n < 1000))
    assert_same_tree(*trees_found)
    assert len(trees_found[0].nodes) == 39


def grown_by_threads(table, g, h, own, n_threads, **given):
    """Grow with several threads, each of which takes part even if there is little to do."""
    growth = Growth(table, g, h, own, n_cores=n_threads, **given)
    phase = growth.go_on()
    assert phase == (parts.ADDED if own.adds else parts.GROWN)
    return growth


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize(
    ("n", "case"),
    [
        (20_000, {}),
        (20_000, {"order": parts.LEVEL_BY_LEVEL}),
        (20_000, {"order": parts.SMALL_FIRST, "max_leaves": 5000}),
        (20_000, {"signs": [1, -1, 0, 1, 0, 0]}),
        (20_000, {"tried": 0.5, "seed": 7}),
        (20_000, {"wide": True}),
        (20_000, {"kind": "indicators"}),
        (20_000, {"kind": "crowded"}),
        (40_000, {}),
        (40_000, {"wide": True}),
        (40_000, {"copies": True}),
        (40_000, {"kind": "indicators"}),
        (40_000, {"kind": "crowded", "wide": True}),
    ],
)
@pytest.mark.sampled(8)
def test_several_cores_grow_the_same_tree(n, case, n_threads) -> None:
    case = dict(case)
    kind = case.pop("kind", "mixed")
    X, n_categories = TABLES[kind](9, n)
    if kind == "mixed":
        X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    _, table = bins_and_table(X, n_categories, max_bins=60)
    g, h = gradients(10, n)
    given = {"wide": case.pop("wide", False)}
    if case.pop("copies", False):
        given["copies"] = np.random.default_rng(2).integers(1, 5, n)
    own = rules(table, **({"max_leaves": 15, "min_samples": 5} | case))
    alone = Growth(table, g, h, own, **given)
    assert alone.go_on() == parts.ADDED
    assert len(alone.leaves) > 10
    for _ in range(3):  # without synchronisation, threads fail sometimes
        assert_same_tree(alone, grown_by_threads(table, g, h, own, n_threads, **given))


def test_columns_that_share_a_byte_are_searched_by_several_threads() -> None:
    X, n_categories = indicators(9, 20_000)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(10, 20_000)
    own = rules(table, max_leaves=15, min_samples=5)
    alone = Growth(table, g, h, own)
    alone.go_on()
    assert len(parts.new_workspace(table, 15, 16, 2).groups) > 2
    for _ in range(30):  # two threads rarely search at the same time
        assert_same_tree(alone, grown_by_threads(table, g, h, own, 2))


@pytest.mark.parametrize("adds", [True, False])
def test_leaves_are_filled_by_several_threads(adds) -> None:
    """Tiles of rows begin and end within leaves, and some leaves have many tiles."""
    n = 70_000
    X, n_categories = numbers(1, n)
    _, table = bins_and_table(X, n_categories, max_bins=20)
    g, h = gradients(2, n)
    for own in (rules(table, max_leaves=3, adds=adds), rules(table, max_leaves=3000, adds=adds)):
        alone, other = Growth(table, g, h, own), grown_by_threads(table, g, h, own, 3)
        alone.go_on()
        if not adds:
            for growth in (alone, other):
                growth.nodes.value[:] = np.arange(len(growth.nodes))
                given = growth.tree, growth.room, growth.raw
                leaves.add_values(pool_words(growth.n_cores), growth.n_cores, *given)
        assert alone.raw.any()
        assert_same_tree(alone, other)


def test_the_order_of_rows_does_not_matter() -> None:
    n = 800
    X, n_categories = mixed_columns(4, n, missing=0.1, categories=12)
    g, h = gradients(11, n)
    order = np.random.default_rng(5).permutation(n)
    _, table = bins_and_table(X, n_categories)
    _, mixed = bins_and_table(X[order], n_categories)
    own = {"max_leaves": 20, "min_samples": 5}
    one = grown(table, g, h, rules(table, **own))
    other = grown(mixed, g[order], h[order], rules(mixed, **own))
    assert np.array_equal(one.raw[order], other.raw)
    assert np.array_equal(one.nodes.gain, other.nodes.gain)


@pytest.mark.parametrize("most", [4, 16, 50])
def test_copies_are_rows_repeated(most) -> None:
    n = 800
    X, n_categories = mixed_columns(6, n, missing=0.1, categories=12)
    g, h = gradients(12, n)
    g[0] = 100.0  # samples, not rows, tell whether gradients are too lopsided to be packed
    copies = np.random.default_rng(6).integers(1, most + 1, n)
    rows = np.repeat(np.arange(n), copies)
    _, table = bins_and_table(X, n_categories, weight=copies.astype(float))
    _, long = bins_and_table(X[rows], n_categories)
    own = {"max_leaves": 20, "min_samples": 8}
    one = grown(table, g, h, rules(table, **own), copies=copies)
    other = grown(long, g[rows], h[rows], rules(long, **own))
    assert np.array_equal(one.raw[rows], other.raw)
    for column in ("count", "total_g", "total_h"):
        assert np.array_equal(one.nodes[column], other.nodes[column])


@pytest.mark.parametrize("work", [1.0, 2000.0])
@pytest.mark.parametrize("adds", [True, False])
def test_where_slices_end_does_not_matter(work, adds) -> None:
    X, n_categories = numbers(2, 1200)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(13, 1200)
    own = rules(table, max_leaves=10, adds=adds)
    whole, sliced = grown(table, g, h, own), Growth(table, g, h, own)
    last = parts.ADDED if adds else parts.GROWN
    phases = [sliced.go_on(work)]
    while not sliced.is_done():
        phases.append(sliced.go_on(work))
    assert len(phases) > 5
    assert phases[-1] == last
    assert_same_tree(whole, sliced)


def test_a_tree_is_grown_anew_in_the_room_of_another() -> None:
    n = 1200
    X, n_categories = mixed_columns(4, n, missing=0.1, categories=40)
    _, table = bins_and_table(X, n_categories)
    own = rules(table, max_leaves=20)
    first = grown(table, *gradients(1, n), own)
    again = Growth(table, *gradients(2, n), own)
    again.tree, again.room = first.tree, first.room
    trees.begin(again.tree)
    assert again.go_on() == parts.ADDED
    assert_same_tree(grown(table, *gradients(2, n), own), again)


# -- limits ----------------------------------------------------------------------------------------


def test_limits() -> None:
    X, n_categories = numbers(4, 400)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(5, 400)
    for limits in ({"max_leaves": 5}, {"min_samples": 60, "max_leaves": 31},
                   {"max_depth": 2, "max_leaves": 31}, {"min_hessian": 40.0, "max_leaves": 31},
                   {"order": parts.SMALL_FIRST, "min_samples": 10, "max_leaves": 40},
                   {"order": parts.LEVEL_BY_LEVEL, "max_leaves": 12}):  # fmt: skip
        own = rules(table, **limits)
        growth = grown(table, g, h, own)
        assert_is_a_valid_tree(growth)
        ends = growth.leaves
        assert 2 <= len(ends) <= own.max_leaves
        assert growth.nodes.depth[ends].max() <= own.max_depth
        assert growth.nodes.hessian[ends].min() >= own.min_hessian - 0.1
        if limits.get("order") == parts.LEVEL_BY_LEVEL:
            inner = growth.nodes.left >= 0
            assert (np.diff(growth.nodes.left[inner]) == 2).all()  # one after the other


def test_small_halves_first_need_few_histograms() -> None:
    n = 3000
    X, n_categories = numbers(1, n)
    _, table = bins_and_table(X, n_categories)
    g, h = gradients(3, n)
    growth = Growth(table, g, h, rules(table, order=parts.SMALL_FIRST, max_leaves=n))
    fewest = len(growth.tree.free)
    while not growth.is_done():
        growth.go_on(1.0)
        fewest = min(fewest, growth.state.n_free)
    assert len(growth.leaves) > 1000
    assert len(growth.tree.free) - fewest <= math.log2(n) + 2
    assert growth.state.n_free == len(growth.tree.free)


@pytest.mark.parametrize("tried", [0.01, 0.3, 0.55, 0.99])
def test_so_many_features_are_tried(tried) -> None:
    X, n_categories = numbers(3, 1200, d=11)
    _, table = bins_and_table(X, n_categories)
    drawn = np.zeros(11)
    n_nodes = 0
    for seed in range(10):
        own = rules(table, max_leaves=20, tried=tried, seed=seed)
        growth = Growth(table, *gradients(4, 1200), own)
        while not growth.is_done():
            growth.go_on(1.0)
            if growth.state.job == trees.SEARCH:
                for k, name in enumerate(("small", "large")):
                    if growth.state[name] >= 0:
                        allowed = growth.room.allowed[k]
                        assert allowed.sum() == math.ceil(tried * 11)
                        drawn += allowed
                        n_nodes += 1
                        known = allowed.copy()
    assert known.any()
    share = math.ceil(tried * 11) / 11
    spread = 5.0 * math.sqrt(share * (1 - share) / n_nodes)
    assert np.abs(drawn / n_nodes - share).max() < spread + 1e-9


def test_nodes_are_split_by_features_that_they_were_given() -> None:
    X, n_categories = numbers(3, 1200, d=11)
    _, table = bins_and_table(X, n_categories)
    sets = np.zeros((3, 11), bool)
    sets[0, :4] = sets[1, 3:7] = sets[2, 7:] = True
    growth = Growth(table, *gradients(4, 1200), rules(table, max_leaves=20, tried=0.5, sets=sets))
    given = {}
    while not growth.is_done():
        growth.go_on(1.0)
        if growth.state.job == trees.SEARCH:
            for k, name in enumerate(("small", "large")):
                given[int(growth.state[name])] = growth.room.allowed[k].copy()
    inner = np.flatnonzero(growth.nodes.left >= 0)
    assert len(inner) > 10
    for node in inner:
        assert given[node][growth.nodes.place[node]]


@pytest.mark.nojit
def test_paths_keep_to_one_set() -> None:
    X, n_categories = numbers(3, 300, d=7)
    _, table = bins_and_table(X, n_categories)
    sets = np.zeros((3, 7), bool)
    sets[0, [0, 1, 2]] = sets[1, [2, 3]] = sets[2, [4, 5, 6]] = True
    growth = grown(table, *gradients(14, 300), rules(table, max_leaves=25, sets=sets))
    used = {0: frozenset()}
    for node in range(len(growth.nodes)):
        own = growth.nodes[node]
        if own.left >= 0:
            path = used[node] | {int(table.features[own.place])}
            used[own.left] = used[own.left + 1] = path
    assert all(any(own[list(path)].all() for own in sets) for path in used.values())
    assert {2, 3} in used.values() or {0, 1, 2} in used.values() or {4, 5, 6} in used.values()
