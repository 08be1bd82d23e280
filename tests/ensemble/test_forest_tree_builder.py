"""A tree of a forest is, in every array, the tree that `TreeBuilder` grows of the same rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from margrove.ensemble.bootstrap.resampling import (
    CumulativeWeights,
    multiplicities,
    stream,
    streams,
)
from margrove.grove.criteria import CRITERIA, class_criteria, number_criteria
from margrove.grove.grow.assembly import assemble
from margrove.grove.grow.forest_tree_builder import ForestTreeBuilder
from margrove.grove.grow.rules import Rules
from margrove.grove.grow.search.scores import log_table
from margrove.grove.grow.tree_builder import TreeBuilder, columns_of
from margrove.grove.serve.forest_walk import leaves_of_rows
from margrove.grove.serve.packed_trees import Kind, values_of_nodes
from margrove.grove.serve.tree_arrays import LEAF, SUBSET, THRESHOLD
from margrove.grove.serve.unfolding import packed_of, unfolded
from margrove.grove.table.binning import bin_columns
from margrove.grove.table.targets import class_targets, number_targets

OF_CLASSES = {name: CRITERIA[name].code for name in class_criteria(in_forests=True, distinct=True)}
OF_NUMBERS = {name: CRITERIA[name].code for name in number_criteria(in_forests=True, distinct=True)}
CODES = OF_CLASSES | OF_NUMBERS
QUICK = ("gini", "entropy", "squared_error")
EXACT = ("kind", "feature", "threshold", "first_child", "n_children", "children", "parent",
         "missing_child", "set_size", "branches", "coef", "weight", "n_samples")  # fmt: skip
CLOSE = ("value", "impurity", "decrease")


def table(rng, n, d, *, missing=0.0, n_categories=0):
    """Numbers of some columns repeat; the last column has labels, if asked for."""
    X = rng.standard_normal((n, d))
    X[:, ::2] = np.round(X[:, ::2], 1)
    if n_categories:
        X[:, -1] = rng.integers(0, n_categories, n)
    X[rng.random((n, d)) < missing] = np.nan
    return X


def target(rng, X, criterion, n_outputs=1, n_classes=3):
    signal = np.nan_to_num(X) @ rng.standard_normal((X.shape[1], n_outputs))
    signal += 0.5 * rng.standard_normal(signal.shape)
    if criterion in OF_CLASSES:
        cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
        return np.searchsorted(cuts, signal)
    if criterion in ("poisson", "gamma"):
        return np.round(np.exp(signal / 3), 2) + (0.01 if criterion == "gamma" else 0.0)
    return signal


def both(X, y, criterion, *, times, seed=7, factors=None, categorical=None, max_bins=None,
         max_leaves=0, slices=1e18, builder=None, **changes):  # fmt: skip
    """The tree of a builder, unfolded, and that of the grower; rows `times` as often."""
    n, d = X.shape
    y = y.reshape(n, -1)
    is_class = criterion in OF_CLASSES
    ones = np.ones(n)
    if is_class:
        counts = [int(own.max()) + 1 for own in y.T]
        targets = class_targets(y, counts, ones if factors is None else factors, times)
    else:
        counts = []
        targets = number_targets(y, ones if factors is None else factors, times)
    weight = times.astype(np.int64) * targets.weight
    is_categorical = np.zeros(d, dtype=bool)
    if categorical is not None:
        is_categorical[categorical] = True
    n_categories = np.where(is_categorical, np.nan_to_num(X).max(axis=0) + 1, 0).astype(np.int64)
    data = bin_columns(X, categorical=is_categorical, max_bins=max_bins)
    log, scale = np.zeros(1, np.int64), 1.0
    if criterion == "entropy" and targets.counted:
        log, scale = log_table(int(weight.sum()), y.shape[1])
    rules = Rules(
        criterion=CODES[criterion], counted=targets.counted, table=log, scale=scale,
        min_samples_split=2, min_samples_leaf=1, min_weight=0, max_depth=2**31, greedy_depth=500,
        min_decrease=0.0, max_features=d, random=False, monotone=np.empty(0, np.int8),
        at_zero=criterion in ("poisson", "gamma"), seed=0,
    )._replace(**changes)  # fmt: skip
    columns = columns_of(data, with_values=rules.random)
    key = int(stream(seed, 3))
    if builder is None:
        builder = ForestTreeBuilder(
            data, columns, targets, rules, n_categories, max_leaves=max_leaves,
            weights_count=factors is None,
        )  # fmt: skip
    builder.start(weight, times.astype(np.int64), key)
    while not builder.finished:
        builder.advance(slices)
    packed = builder.packed()

    own = targets._replace(
        weight=weight, samples=times.astype(np.int64), plain=False, real=weight * targets.unit,
        numbers=targets.numbers.copy(),
    )  # fmt: skip
    seeded = rules._replace(seed=int(np.uint64(key).view(np.int64)))
    grower = TreeBuilder(columns, own, seeded, np.flatnonzero(weight), max_leaves=max_leaves)
    while not grower.finished:
        grower.advance(1e9)
    expected = assemble(grower.result(), data, own, rules, n_categories)
    kind = Kind(rules.criterion, tuple(counts), y.shape[1], n_categories)
    packed.require_sound(kind, d)
    return SimpleNamespace(
        found=unfolded(packed, kind), expected=expected, packed=packed, kind=kind, builder=builder,
        weight=weight,
    )  # fmt: skip


def sets_of(arrays):
    """The categories that each node asks for."""
    return [
        arrays.words[start : start + size // 32 + 1].tolist()
        for start, size, kind in zip(arrays.set_start, arrays.set_size, arrays.kind, strict=True)
        if kind == SUBSET
    ]


def differences(grown, but=()):
    """The names of the arrays that are not the same."""
    found, expected = grown.found, grown.expected
    wrong = []
    for name in EXACT:
        a, b = getattr(found, name), getattr(expected, name)
        if not (a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")):
            wrong.append(name)
    if sets_of(found) != sets_of(expected):
        wrong.append("sets")
    leaves = expected.kind == LEAF
    for name in CLOSE:
        a, b = getattr(found, name), getattr(expected, name)
        # A decrease is a difference of losses, and as exact as those.
        size = expected.weight[0] * expected.impurity[0] if name == "decrease" else 1.0
        atol = 1e-14 * max(abs(size), float(np.abs(b).max(initial=0.0)))
        for part, which in ((name, leaves), (f"inner {name}", ~leaves)):
            if len(a) != len(b) or not np.allclose(a[which], b[which], rtol=1e-12, atol=atol):
                wrong.append(part)
    return [name for name in wrong if name not in but]


def drawn(n, seed=0):
    return multiplicities(CumulativeWeights(np.ones(n)), seed, 0)


# -- the searches: by count, in order, by draw, with all of their sizes ----------------------------


@pytest.mark.parametrize("criterion", CODES)
@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize("n", [2, 3, 23, 24, 25, 26, 90, 400])
def test_numbers_of_any_count(criterion, random, n) -> None:
    for d, max_features, seed in ((1, 1, 0), (4, 1, 1), (4, 2, 2), (4, 4, 3)):
        rng = np.random.default_rng(100 * n + seed)
        X = table(rng, n, d)
        y = target(rng, X, criterion)
        grown = both(X, y, criterion, times=drawn(n, seed), seed=seed, random=random,
                     max_features=max_features)  # fmt: skip
        assert not differences(grown), (d, max_features)
        assert n < 90 or grown.found.n_leaves > 5


@pytest.mark.parametrize("criterion", QUICK)
@pytest.mark.parametrize("n_classes", [1, 2, 9, 40])
def test_few_and_many_classes(criterion, n_classes) -> None:
    rng = np.random.default_rng(n_classes)
    X = table(rng, 350, 3)
    y = rng.integers(0, n_classes, 350)
    y[0] = n_classes - 1
    for random in (False, True):
        grown = both(X, y if criterion in OF_CLASSES else y.astype(float), criterion,
                     times=drawn(350), random=random, max_features=2)  # fmt: skip
        assert not differences(grown)


@pytest.mark.parametrize("criterion", CODES)
@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize(
    ("missing", "n_categories"), [(0.0, 5), (0.0, 70), (0.2, 0), (0.2, 5), (0.6, 40)]
)
def test_missing_values_and_categories(criterion, random, missing, n_categories) -> None:
    for n, max_features in ((20, 3), (150, 1), (400, 2), (400, 4)):
        rng = np.random.default_rng(n + n_categories)
        X = table(rng, n, 4, missing=missing, n_categories=n_categories)
        X[:n_categories, -1] = np.arange(min(n, n_categories))
        y = target(rng, X, criterion)
        grown = both(X, y, criterion, times=drawn(n, 1), random=random, max_features=max_features,
                     categorical=[3] if n_categories else None)  # fmt: skip
        assert not differences(grown), (n, max_features)
        if n == 400 and n_categories and not random:
            assert (grown.found.kind == SUBSET).any()


@pytest.mark.parametrize("criterion", QUICK)
@pytest.mark.parametrize("random", [False, True])
def test_codes_of_one_two_and_four_bytes(criterion, random) -> None:
    rng = np.random.default_rng(0)
    n = 70_000
    X = np.column_stack([np.arange(n, dtype=float), np.arange(n) % 3000, np.arange(n) % 200])
    rng.shuffle(X)
    y = np.sin(X[:, 0] / 5000) + np.cos(X[:, 1] / 300) + X[:, 2] / 400
    if criterion in OF_CLASSES:
        y = np.digitize(y, [0.0, 1.0])
    times = drawn(n)
    for max_features in (1, 3):
        grown = both(X, y, criterion, times=times, random=random, max_features=max_features,
                     min_samples_leaf=20, min_samples_split=40)  # fmt: skip
        assert not differences(grown)
        assert set(grown.found.feature[grown.found.kind == THRESHOLD]) == {0, 1, 2}


@pytest.mark.parametrize("criterion", CODES)
@pytest.mark.parametrize("max_bins", [2, 7, 255])
def test_merged_values(criterion, max_bins) -> None:
    rng = np.random.default_rng(3)
    X = table(rng, 300, 3, missing=0.05)
    y = target(rng, X, criterion)
    for random in (False, True):
        grown = both(X, y, criterion, times=drawn(300), max_bins=max_bins, random=random,
                     max_features=2)  # fmt: skip
        assert not differences(grown)


# -- rules -----------------------------------------------------------------------------------------


UNKNOWN_TO_HALVING = ("inner decrease", "inner impurity")
RULES = {
    "max_depth": {"max_depth": 3},
    "min_samples_leaf": {"min_samples_leaf": 6, "min_samples_split": 12},
    "min_samples_split": {"min_samples_split": 40},
    "min_weight": {"min_weight": 15},
    "min_decrease": {"min_decrease": 1.5},
    "best first": {"max_leaves": 9},
    "best first, to the end": {"max_leaves": 290},
    "best first, two": {"max_leaves": 2},
    "halving": {"greedy_depth": 2},
    "halving at once": {"greedy_depth": 0},
    "halving with bounds": {"greedy_depth": 3, "min_samples_leaf": 4, "min_samples_split": 8},
    "several": {"max_leaves": 20, "min_samples_leaf": 3, "min_samples_split": 6, "max_depth": 6},
}


@pytest.mark.parametrize("criterion", CODES)
@pytest.mark.parametrize("rules", RULES)
def test_rules_of_stopping(criterion, rules) -> None:
    for seed, (missing, labels) in enumerate(((0.0, 0), (0.1, 0), (0.1, 6))):
        for random, max_features in ((False, 4), (False, 2), (True, 2)):
            rng = np.random.default_rng(seed)
            X = table(rng, 300, 4, missing=missing, n_categories=labels)
            y = target(rng, X, criterion)
            grown = both(X, y, criterion, times=drawn(300, seed), random=random,
                         max_features=max_features, categorical=[3] if labels else None,
                         **RULES[rules])  # fmt: skip
            # What a split that only halves takes away is not looked at while the tree grows.
            but = UNKNOWN_TO_HALVING if "greedy_depth" in RULES[rules] else ()
            assert not differences(grown, but), (missing, labels, random, max_features)


@pytest.mark.parametrize("criterion", QUICK)
def test_a_chain_beyond_the_greedy_depth(criterion) -> None:
    n = 1200
    X = np.arange(float(n))[:, None]
    if criterion == "squared_error":
        y = 1.2 ** (X[:, 0] - n)  # the largest is split off, again and again
    else:
        y = np.arange(n) % 2
    for times in (np.ones(n, np.int64), drawn(n)):
        grown = both(X, y, criterion, times=times, greedy_depth=40)
        assert not differences(grown, UNKNOWN_TO_HALVING)
        assert grown.builder.n_balanced > 0
        assert grown.found.depth.max() > 40


@pytest.mark.parametrize(
    "criterion", ["gini", "entropy", "error", "squared_error", "poisson", "gamma"]
)
def test_monotone_constraints(criterion) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = table(rng, 200, 3, missing=0.1 * (seed % 2))
        y = target(rng, X, criterion, n_classes=2)
        for random in (False, True):
            grown = both(X, y, criterion, times=drawn(200, seed), random=random, max_features=2,
                         monotone=np.array([1, -1, 0], np.int8))  # fmt: skip
            assert not differences(grown)
            assert grown.found.n_leaves > 3


@pytest.mark.parametrize("criterion", CODES)
@pytest.mark.parametrize("n_outputs", [2, 3])
def test_several_outputs(criterion, n_outputs) -> None:
    for seed, labels in enumerate((0, 0, 6)):
        rng = np.random.default_rng(seed)
        X = table(rng, 250, 4, missing=0.1 * seed, n_categories=labels)
        y = target(rng, X, criterion, n_outputs)
        for random in (False, True):
            grown = both(X, y, criterion, times=drawn(250, seed), random=random, max_features=2,
                         categorical=[3] if labels else None)  # fmt: skip
            assert not differences(grown)


# -- weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CODES)
@pytest.mark.parametrize("unit", ["whole", "eighths", "any"])
def test_weights_that_are_not_numbers_of_rows(criterion, unit) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = table(rng, 300, 3, missing=0.1 * (seed == 2))
        y = target(rng, X, criterion)
        factors = rng.uniform(0.2, 3.0, 300)
        if unit != "any":
            part = 8 if unit == "eighths" else 1
            factors = np.maximum(np.round(factors * part), 1) / part
        for random in (False, True):
            grown = both(X, y, criterion, times=drawn(300, seed), factors=factors, random=random,
                         max_features=2, min_samples_leaf=2, min_samples_split=4)  # fmt: skip
            assert not differences(grown)
            assert grown.found.n_samples[0] == 300


@pytest.mark.parametrize("criterion", QUICK)
def test_many_copies_of_each_row(criterion) -> None:
    rng = np.random.default_rng(5)
    X = table(rng, 120, 3)
    y = target(rng, X, criterion)
    times = rng.integers(0, 1_000_000, 120)
    grown = both(X, y, criterion, times=times, max_features=2)
    # Copies take bits from the sums while the tree grows: 1e-10 of them is left.
    inner = ("inner value", "inner impurity", "inner decrease")
    assert not differences(grown, inner)
    assert grown.found.weight[0] == times.sum()
    for name in CLOSE:
        expected = getattr(grown.expected, name)
        assert np.allclose(getattr(grown.found, name), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("criterion", CODES)
def test_targets_far_from_zero_or_of_all_sizes(criterion) -> None:
    rng = np.random.default_rng(2)
    X = table(rng, 300, 3)
    for stretch in (1.0, 1e9, 1e-9):
        y = target(rng, X, criterion)
        if criterion in OF_NUMBERS:
            y = y * stretch + (1e6 * stretch if criterion == "squared_error" else 0.0)
            y[:20] *= 1e-6
        grown = both(X, y, criterion, times=drawn(300), max_features=2)
        assert not differences(grown, ("impurity", "decrease") * (stretch != 1.0))


# -- room ------------------------------------------------------------------------------------------


def test_room_serves_tree_after_tree() -> None:
    """A tree does not depend on the trees that grew there before, nor on the slices of its work."""
    for criterion, missing, labels in (
        ("gini", 0.0, 0), ("entropy", 0.2, 6), ("squared_error", 0.0, 0), ("gamma", 0.0, 0),
    ):  # fmt: skip
        rng = np.random.default_rng(4)
        X = table(rng, 3000, 4, missing=missing, n_categories=labels)
        y = target(rng, X, criterion)
        given = {"max_features": 2, "categorical": [3] if labels else None}
        builder = None
        for seed, slices in ((0, 1e18), (1, 1.0), (2, 5000.0), (0, 1e5)):
            grown = both(X, y, criterion, times=drawn(3000, seed), seed=seed, slices=slices,
                         builder=builder, **given)  # fmt: skip
            builder = grown.builder
            assert not differences(grown)


def test_one_row_and_one_value() -> None:
    for criterion in CODES:
        whole = np.array([2, 2, 2]) if criterion in OF_CLASSES else np.array([2.0, 2.0, 2.0])
        for times in (np.array([0, 1, 0]), np.array([5, 0, 1]), np.array([1, 1, 1])):
            grown = both(np.zeros((3, 2)), whole, criterion, times=times)
            assert not differences(grown)
            assert len(grown.found) == 1
            mixed = np.array([0, 1, 2]) if criterion in OF_CLASSES else np.array([1.0, 2.0, 5.0])
            assert not differences(both(np.ones((3, 2)), mixed, criterion, times=times))


# -- the packed form -------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CODES)
def test_rows_find_the_leaves_of_the_unfolded_tree(criterion) -> None:
    from margrove.grove.serve.tree_walk import leaves_of

    for missing, labels in ((0.0, 0), (0.3, 0), (0.1, 9)):
        rng = np.random.default_rng(6)
        X = table(rng, 300, 4, missing=missing, n_categories=labels)
        grown = both(X, target(rng, X, criterion), criterion, times=drawn(300), max_features=2,
                     categorical=[3] if labels else None)  # fmt: skip
        rows = table(rng, 777, 4, missing=missing, n_categories=labels)
        if labels:
            rows[:50, 3] = labels  # a label beyond all that are known
        found = np.empty(777, np.int32)
        leaves_of_rows(grown.packed, rows, grown.kind, found, has_nan=bool(np.isnan(rows).any()))
        order = leaves_of(grown.found, rows)
        values = values_of_nodes(grown.packed, grown.kind)
        assert np.array_equal(values[found], grown.found.value[order])
        assert (grown.found.kind[order] == LEAF).all()
        assert grown.packed.is_leaf[found].all()


@pytest.mark.parametrize("criterion", CODES)
def test_packed_and_unfolded_again(criterion) -> None:
    rng = np.random.default_rng(8)
    X = table(rng, 200, 4, missing=0.1, n_categories=7)
    y = target(rng, X, criterion)
    grown = both(X, y, criterion, times=drawn(200), categorical=[3], max_features=2, max_depth=4)
    again = unfolded(packed_of(grown.found, grown.kind), grown.kind)
    grown.found, grown.expected = again, grown.found
    assert not differences(grown)


def test_bytes_of_a_node() -> None:
    rng = np.random.default_rng(9)
    X = table(rng, 2000, 4)
    for criterion in QUICK:
        packed = both(X, target(rng, X, criterion), criterion, times=drawn(2000)).packed
        assert packed.nbytes == 20 * len(packed)


@pytest.mark.parametrize("criterion", QUICK)
@pytest.mark.parametrize("changes", [{}, {"random": True}, {"greedy_depth": 4}, {"max_depth": 5}])
@pytest.mark.parametrize("max_leaves", [0, 12])
def test_many_columns_that_are_constant_in_most_nodes(criterion, changes, max_leaves) -> None:
    """Nodes remember constant features; trees of best splits first do not."""
    rng = np.random.default_rng(8)
    X = np.where(rng.random((120, 90)) < 0.06, rng.integers(1, 4, (120, 90)), 0.0)
    X[:, 7] = 1.0
    y = target(rng, X, criterion)
    for max_features in (1, 6, 90):
        grown = both(X, y, criterion, times=drawn(120), max_features=max_features,
                     max_leaves=max_leaves, **changes)  # fmt: skip
        but = UNKNOWN_TO_HALVING if "greedy_depth" in changes else ()
        assert not differences(grown, but), max_features
        assert grown.found.n_leaves > 4
        again = both(X, y, criterion, times=drawn(120, 1), max_features=max_features,
                     max_leaves=max_leaves, builder=grown.builder, **changes)  # fmt: skip
        assert not differences(again, but), max_features


# -- many trees at once ----------------------------------------------------------------------------


ARRAYS = ("nodes", "weight", "values", "words", "samples", "impurity", "decrease", "medians")


@pytest.mark.parametrize("criterion", QUICK)
@pytest.mark.parametrize(
    "changes",
    [
        {}, {"random": True}, {"min_samples_leaf": 4}, {"max_depth": 3}, {"greedy_depth": 2},
        {"max_leaves": 6},
    ],
)  # fmt: skip
def test_trees_that_grow_together_are_those_that_grow_alone(criterion, changes) -> None:
    rng = np.random.default_rng(5)
    X = table(rng, 70, 4)
    y = target(rng, X, criterion)
    samples = [drawn(70, seed) for seed in range(9)]
    alone = both(X, y, criterion, times=samples[0], max_features=2, **changes)
    builder, rules = alone.builder, alone.builder._rules
    expected, halved = [], []
    for number, times in enumerate(samples):
        builder.start(times, times, int(stream(1, number)))
        while not builder.finished:
            builder.advance(1e9)
        expected.append(builder.packed())
        halved.append(builder.n_balanced)
    assert builder.takes_many
    trees, counts = builder.grow_all(np.stack(samples), streams(1, np.arange(9)), rules)
    assert counts == halved
    assert sum(halved) > 0 or changes != {"greedy_depth": 2}
    for tree, own in zip(trees, expected, strict=True):
        for name in ARRAYS:
            found, wanted = getattr(tree, name), getattr(own, name)
            if wanted is None:
                assert found is None, name
                continue
            assert found.dtype == wanted.dtype, name
            assert found.tobytes() == wanted.tobytes(), name
            assert not found.flags.writeable


def test_some_trees_do_not_grow_together() -> None:
    rng = np.random.default_rng(6)
    X = table(rng, 40, 3, missing=0.2)
    y = target(rng, X, "gini")
    assert not both(X, y, "gini", times=drawn(40)).builder.takes_many
    full = table(rng, 40, 3)
    assert not both(full, y, "gini", times=drawn(40), factors=rng.random(40)).builder.takes_many
    assert both(full, y, "gini", times=drawn(40)).builder.takes_many
