"""Sums over boosted trees: bit for bit those of rows that walk one by one."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles import scoring as plain

from margrove import DecisionTreeRegressor
from margrove.exceptions import DataWarning
from margrove.grove.grow.search.scores import SQUARED
from margrove.grove.serve import boosted_scores as scoring
from margrove.grove.serve import leaf_bits
from margrove.grove.serve.boosted_scores import TreeScores
from margrove.grove.serve.packed_trees import FEATURE_AT, MISSING_AT, SET_AT, Kind, PackedTree
from margrove.grove.serve.row_blocks import dense_blocks, dense_rows
from margrove.grove.serve.unfolding import packed_of
from margrove.grove.table.encoding import read_table_like_fitted

N_CATEGORIES = np.array([0, 0, 0, 3, 32, 100])  # the first three columns are numbers
POOL = np.array([-np.inf, -1e300, -2.5, -1.0, -0.0, 0.1, 0.25, 1.0, 3.0, 1e300, np.inf])


@pytest.fixture(params=["walk", "tables"])
def method(request, monkeypatch):
    """Both methods, for any number of rows; the other one is disabled."""
    if request.param == "walk":
        monkeypatch.setattr(scoring, "_SPLITS_OF_A_WALK", 0)
        monkeypatch.setattr(scoring, "look_up_tile", None)
    else:
        monkeypatch.setattr(scoring, "_SPLITS_OF_A_WALK", 10**9)
        monkeypatch.setattr(scoring, "_COLUMNS_OF_A_WALK", 10**9)
        monkeypatch.setattr(scoring, "_ROWS_FOR_TABLES", 1)
        monkeypatch.setattr(scoring, "walk_tile", None)
    return request.param


def random_tree(rng, n_leaves, *, pool=POOL, n_categories=N_CATEGORIES, features=range(6)):
    """Leaves drawn by chance are split, so many times."""
    links, numbers, words = [0], [rng.normal()], []
    leaves = [0]
    for _ in range(n_leaves - 1):
        node = leaves.pop(int(rng.integers(len(leaves))))
        left, feature = len(links), int(rng.choice(list(features)))
        link = left | feature << FEATURE_AT | int(rng.integers(2)) << MISSING_AT
        number = float(rng.choice(pool))
        if n_categories[feature]:
            link |= 1 << SET_AT
            number = float(len(words))
            words += rng.integers(0, 2**32, n_categories[feature] // 32 + 1).tolist()
        links[node], numbers[node] = link, number
        links += [left, left + 1]
        numbers += rng.normal(size=2).tolist()
        leaves += [left, left + 1]
    nodes = np.stack([np.array(numbers).view(np.int64), np.array(links)], axis=1).ravel()
    weight = np.ones(len(links), np.int32)
    return PackedTree(nodes, weight, np.empty((0, 1)), np.array(words, np.uint32))


def random_rounds(seed, sizes, n_scores=1, **settings):
    rng = np.random.default_rng(seed)
    return [[random_tree(rng, size, **settings) for _ in range(n_scores)] for size in sizes]


def random_rows(seed, n, *, missing=0.15, pool=POOL, n_categories=N_CATEGORIES):
    """Numbers on the thresholds and between them."""
    rng = np.random.default_rng(seed)
    known = pool[np.isfinite(pool)]
    columns = [
        rng.integers(0, count, n).astype(float)
        if count
        else np.where(rng.random(n) < 0.5, rng.choice(known, n), rng.normal(size=n))
        for count in n_categories
    ]
    rows = np.stack(columns, axis=1)
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def agrees(rounds, X, *, n_categories=N_CATEGORIES, start=(0.5,), rows=None):
    found = TreeScores(rounds, n_categories, np.array(start))
    rows = X if rows is None else rows
    assert np.array_equal(found.scores(X), plain.scores(rounds, rows, n_categories, start))
    assert np.array_equal(found.leaves(X), plain.leaves(rounds, rows, n_categories))
    return found


@pytest.mark.nojit
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40])
def test_a_few_rows(method, n) -> None:
    agrees(random_rounds(n, [1, 2, 3, 8, 12]), random_rows(n, n))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 100, 255])
def test_trees_of_all_sizes(method, size) -> None:
    agrees(random_rounds(size, [size] * 5), random_rows(size, 150))


@pytest.mark.parametrize("seed", range(8))
def test_trees_of_different_sizes(method, seed) -> None:
    sizes = np.random.default_rng(seed).integers(1, 80, size=12)
    agrees(random_rounds(seed, sizes), random_rows(seed, 70))


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_missing_values(method, missing) -> None:
    agrees(random_rounds(1, [20] * 6), random_rows(1, 100, missing=missing))


@pytest.mark.nojit
def test_more_thresholds_than_a_byte_tells_apart(method) -> None:
    pool = np.random.default_rng(0).normal(size=3000)
    trees = random_rounds(2, [30] * 40, pool=pool, features=range(2))
    found = agrees(trees, random_rows(2, 20, pool=pool))
    if method == "tables":
        assert np.bincount(found._bits.columns.feature)[:2].min() >= 3


@pytest.mark.nojit
def test_every_threshold_of_a_full_column(method) -> None:
    """254 of them, and values on and next to each."""
    cuts = np.arange(254.0)
    rng = np.random.default_rng(3)
    trees = [
        [random_tree(rng, 2, pool=cuts[k : k + 1], n_categories=np.zeros(1, int), features=[0])]
        for k in range(254)
    ]
    edges = np.concatenate([cuts[::9], [0.0, 252.0, 253.0]])
    X = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [np.nan]])
    found = agrees(trees, X[:, None], n_categories=np.zeros(1, int))
    if method == "tables":
        assert found._bits.columns.feature.tolist() == [0]


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 254, 255, 256, 700])
def test_categories(method, count) -> None:
    """Those that a byte cannot hold are walked, and unknown ones go where missing ones go."""
    n_categories = np.array([count, 0])
    trees = random_rounds(4, [1, 10, 40], n_categories=n_categories, features=[0, 0, 1])
    X = random_rows(4, 200, n_categories=n_categories)
    X[:5, 0] = count + np.arange(5)
    found = agrees(trees, X, n_categories=n_categories)
    if method == "tables":
        assert (np.diff(found._bits.first) == ([1, 1, 2] if count <= 255 else [1, 0, 0])).all()


@pytest.mark.nojit
def test_large_trees_among_small_ones(method, monkeypatch) -> None:
    monkeypatch.setattr(leaf_bits, "_MOST_LEAVES", 10)
    found = agrees(random_rounds(5, [3, 11, 10, 30, 1], 2), random_rows(5, 20), start=(1.0, -1.0))
    if method == "tables":
        assert np.diff(found._bits.first).tolist() == [1, 1, 0, 0, 1, 1, 0, 0, 1, 1]


@pytest.mark.nojit
def test_several_scores_and_rounds_in_part(method) -> None:
    trees, X = random_rounds(6, [5, 9, 2, 17], 3), random_rows(6, 30)
    start = (0.1, 0.2, 0.3)
    found = agrees(trees, X, start=start)
    assert (found.n_rounds, found.n_scores) == (4, 3)
    all_leaves = found.leaves(X)
    for first, last in [(0, 4), (0, 1), (1, 3), (3, 4), (2, None), (2, 2), (3, 1), (0, 9)]:
        raw = np.repeat(np.array(start)[:, None], 30, axis=1)
        found.add(X, raw, first, last)
        assert np.array_equal(raw, plain.scores(trees[first:last], X, N_CATEGORIES, start))
        columns = np.arange(12).reshape(4, 3)[first:last].ravel()
        assert np.array_equal(found.leaves(X, first, last), all_leaves[:, columns])


@pytest.mark.parametrize("n", [1023, 1024, 1025, 2500])
def test_many_rows(method, n) -> None:
    agrees(random_rounds(7, [31, 40, 7]), random_rows(7, n))


def test_tables_are_made_once_enough_rows_have_been_asked_for(monkeypatch) -> None:
    trees, X = random_rounds(12, [31] * 6), random_rows(12, 400)
    wanted = np.array(plain.scores(trees, X, N_CATEGORIES, (0.0,)))
    made, usual = [], scoring.leaf_bits_of
    monkeypatch.setattr(scoring, "leaf_bits_of", lambda joined: made.append(1) or usual(joined))
    found = TreeScores(trees, N_CATEGORIES, np.zeros(1))
    for _ in range(600):  # a row alone always walks
        found.scores(X[:1])
    assert made == []
    for call in range(20):
        rows = slice(20 * call, 20 * call + 100)
        assert np.array_equal(found.scores(X[rows]), wanted[:, rows])
        asked = sum(len(X[20 * k : 20 * k + 100]) for k in range(call + 1))
        assert len(made) == (asked >= scoring._ROWS_FOR_TABLES)


def test_threads_change_nothing(method, monkeypatch) -> None:
    monkeypatch.setattr(scoring, "_WORK_FOR_THREADS", 0)
    monkeypatch.setattr(scoring, "_WORK_OF_A_TILE", 0)
    trees, X = random_rounds(8, [31, 12, 33], 2), random_rows(8, 5000)
    tiles = []

    def noting(region):
        return lambda *given: (tiles.append(given[:2]), region(*given))

    for name in ("walk_tile", "look_up_tile"):
        monkeypatch.setattr(scoring, name, noting(getattr(scoring, name)))
    found = TreeScores(trees, N_CATEGORIES, np.zeros(2))
    one, two = (found.scores(X, n_threads=count) for count in (1, 2))
    assert tiles == [(5, 1), (5, 2)]
    assert np.array_equal(one, two)
    assert np.array_equal(found.leaves(X, n_threads=1), found.leaves(X, n_threads=2))
    assert np.array_equal(one[:, -100:], plain.scores(trees, X[-100:], N_CATEGORIES, (0.0, 0.0)))


def test_floats_of_32_bits_are_compared_as_they_are(method) -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    near = X[np.isfinite(X)].astype(np.float64)
    pool = np.concatenate([near, near + 1e-12, near - 1e-12])
    trees = random_rounds(9, [31] * 10, pool=pool, features=range(3))
    agrees(trees, X, n_categories=np.zeros(3, int), rows=X.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows(method, dtype, monkeypatch) -> None:
    rng = np.random.default_rng(10)
    X = np.where(rng.random((500, 6)) < 0.3, np.round(rng.normal(size=(500, 6)), 1), 0.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    X = X.astype(dtype)
    nobody = np.zeros(6, int)
    trees = random_rounds(10, [20] * 5, n_categories=nobody)
    agrees(trees, sp.csr_matrix(X), n_categories=nobody, rows=X.astype(np.float64))
    monkeypatch.setattr(scoring, "_MOST_CELLS", 70)
    agrees(trees, sp.csr_array(X), n_categories=nobody, rows=X.astype(np.float64))


@pytest.mark.nojit
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_of_rows(dtype) -> None:
    given = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [2, 0, 0, 1], [0, 1, 1, 3, 4]), shape=(4, 3))
    dense = given.toarray()  # a cell that is given twice is the sum
    given.data = given.data.astype(dtype)
    for rows in (given, np.asfortranarray(dense, dtype)):
        blocks = [(begin, X.copy()) for begin, X in dense_blocks(rows, 3, n_threads=2)]
        assert [begin for begin, _ in blocks] == [0, 3]
        assert np.array_equal(np.concatenate([X for _, X in blocks]), dense)
        assert np.array_equal(dense_rows(rows), dense)
        assert dense_rows(rows[:0]).shape == (0, 3)
        assert dense_rows(rows).flags.c_contiguous
        assert not dense_rows(rows).flags.writeable


@pytest.mark.nojit
def test_nothing_to_add() -> None:
    nothing = TreeScores([], N_CATEGORIES, np.array([1.0, 2.0]))
    assert nothing.scores(random_rows(0, 3)).tolist() == [[1.0] * 3, [2.0] * 3]
    assert nothing.leaves(random_rows(0, 3)).shape == (3, 0)
    some = TreeScores(random_rounds(0, [4]), N_CATEGORIES, np.zeros(1))
    assert some.scores(np.empty((0, 6))).shape == (1, 0)
    assert some.leaves(np.empty((0, 6))).shape == (0, 1)


def test_tables_are_made_when_there_are_rows_enough() -> None:
    found = TreeScores(random_rounds(11, [31] * 20), N_CATEGORIES, np.zeros(1))
    X = random_rows(11, 1000)
    few = found.scores(X[:300])
    assert found._bits is None
    many = found.scores(X)
    assert found._bits is not None
    assert np.array_equal(found.scores(X[:300]), few)
    assert np.array_equal(many[:, :300], few)
    one = TreeScores(random_rounds(11, [31]), N_CATEGORIES, np.zeros(1))
    one.scores(X)
    assert one._bits is None  # codes for one tree do not pay
    assert not found.is_worth_sharing(300)
    assert found.is_worth_sharing(10**6)
    assert not found.is_worth_sharing(3_000, 3, 4)


@pytest.mark.nojit
def test_pickles_are_made_of_trees() -> None:
    found = TreeScores(random_rounds(12, [9, 9], 2), N_CATEGORIES, np.array([0.5, -0.5]))
    X = random_rows(12, 30)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.scores(X), found.scores(X))
    assert not again._joined.links.flags.writeable


UNSOUND = {
    "a link is invalid": lambda nodes: nodes.__setitem__(2 * 8 + 1, 8 | 1 << MISSING_AT),
    "a child does not come after": lambda nodes: nodes.__setitem__(2 * 8 + 1, 1),
    "its parent": lambda nodes: nodes.__setitem__(2 * 8 + 1, 99),
    "no parent, or several": lambda nodes: nodes.__setitem__(1, nodes[1] + 2),
    "unknown feature": lambda nodes: nodes.__setitem__(1, nodes[1] | 9 << FEATURE_AT),
    "threshold is missing": lambda nodes: nodes.view(float).__setitem__(0, np.nan),
    "after the end of its array": lambda nodes: nodes.__setitem__(1, nodes[1] | 1 << SET_AT),
    "not finite": lambda nodes: nodes.view(float).__setitem__(2 * 8, np.inf),
}


@pytest.mark.nojit
@pytest.mark.parametrize("problem", UNSOUND)
def test_unsound_trees_are_refused(problem) -> None:
    trees = random_rounds(13, [5, 5, 5], features=range(2))
    sound = trees[1][0]
    assert sound.is_leaf[8]
    nodes = sound.nodes.copy()
    UNSOUND[problem](nodes)
    trees[1][0] = replace(sound, nodes=nodes)
    with pytest.raises(ValueError, match=problem):
        TreeScores(trees, N_CATEGORIES, np.zeros(1))
    trees[1][0] = replace(sound, nodes=sound.nodes[:-2])
    with pytest.raises(ValueError, match="differ in length"):
        TreeScores(trees, N_CATEGORIES, np.zeros(1))


def grown(X, y, rounds, **settings):
    """Rounds of trees on what is left of y."""
    trees, models, left = [], [], y.copy()
    for k in range(rounds):
        model = DecisionTreeRegressor(random_state=k, max_features=0.7, **settings).fit(X, left)
        n_categories = np.array([len(model.categories_.get(j, ())) for j in range(X.shape[1])])
        left -= model.predict(X)
        models.append(model)
        trees.append([packed_of(model.arrays_, Kind(SQUARED, (), 1, n_categories))])
    return trees, models, n_categories


@pytest.mark.parametrize("max_leaf_nodes", [8, 31, 100])
def test_trees_that_were_grown(method, max_leaf_nodes) -> None:
    rng = np.random.default_rng(14)
    X = rng.normal(size=(600, 5))
    X[:, 0] = rng.integers(0, 12, 600)
    X[:, 1] = rng.integers(0, 60, 600)
    y = np.sin(3 * X[:, 2]) + rng.normal(size=12)[X[:, 0].astype(int)] + X[:, 1] % 7
    X[:, 2:][rng.random((600, 3)) < 0.1] = np.nan
    trees, models, n_categories = grown(
        X, y, 12, max_leaf_nodes=max_leaf_nodes, categorical_features=[0, 1]
    )
    assert n_categories.tolist() == [12, 60, 0, 0, 0]
    fresh = rng.normal(size=(300, 5))
    fresh[:, :2] = rng.integers(-1, 70, (300, 2))  # some of which are unknown
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        rows = read_table_like_fitted(fresh, models[0])
        wanted = np.zeros(300)
        for model in models:
            wanted += model.predict(fresh)
    assert np.isnan(rows[:, :2]).any()
    found = agrees(trees, rows, n_categories=n_categories, start=(0.0,))
    assert np.array_equal(found.scores(rows)[0], wanted)


def test_rows_that_are_as_wanted_are_not_looked_at_twice() -> None:
    rng = np.random.default_rng(15)
    X = rng.normal(size=(50, 3))
    model = DecisionTreeRegressor().fit(X, X[:, 0])
    for own in (X, X[:1], X.astype(np.float32), np.full((1, 3), np.nan)):
        assert read_table_like_fitted(own, model) is own
    for own in (X[:, ::-1], np.asfortranarray(X), X.astype(">f8"), X.view(np.recarray), X.tolist()):
        found = read_table_like_fitted(own, model)
        assert found is not own
        assert type(found) is np.ndarray
        assert found.flags.c_contiguous
        assert found.dtype == np.float64
        assert found.dtype.isnative
        assert np.array_equal(found, own)
    with pytest.raises(ValueError, match="2 features, but DecisionTreeRegressor is expecting 3"):
        model.predict(np.ones((1, 2)))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(np.empty((0, 3)))
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict(np.ones(3))
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 3), np.inf))
