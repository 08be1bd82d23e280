"""Odd things that users, programs and operating systems do to decision trees.

Four outcomes are allowed: the right answer; the right answer and a named warning; an error that
names what was wrong, raised before anything fitted has changed; or an interrupt that leaves the
old tree, or keeps a sound one where that was asked for.
"""

from __future__ import annotations

import copy
import pickle
import sys
import threading
import warnings
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError

import margrove
from margrove import DecisionTreeClassifier, DecisionTreeRegressor, plot, watch
from margrove._runtime import memory as _memory
from margrove._runtime import slices
from margrove.datasets import load_iris
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
    InvalidDataError,
    MalformedSparseError,
)
from margrove.grove import decision_tree
from margrove.grove.criteria import class_criteria, number_criteria
from margrove.grove.decision_tree import GREEDY_DEPTH
from margrove.grove.export.exports import tree_from_json
from margrove.grove.grow import multiway, subtree, tree_builder
from margrove.grove.serve.tree_arrays import LEAF, SUBSET, THRESHOLD
from tests.interrupts import interrupt_after, lines_until_interrupt

OF_CLASSES = tuple(class_criteria(distinct=True))
OF_NUMBERS = tuple(number_criteria(distinct=True))
CRITERIA = OF_CLASSES + OF_NUMBERS
X, Y = load_iris(return_X_y=True)


def _noise(seed, n, d):
    return np.random.default_rng(seed).standard_normal((n, d))


NOISE = _noise(0, 80, 4)
THREE = np.random.default_rng(1).integers(0, 3, 80)
TWO = (NOISE[:, 0] + _noise(2, 80, 1)[:, 0] > 0).astype(int)
LINE = np.round(NOISE @ [1.0, -2.0, 0.5, 0.0] + _noise(3, 80, 1)[:, 0], 3)


def tree(criterion, **changes):
    cls = DecisionTreeClassifier if criterion in OF_CLASSES else DecisionTreeRegressor
    return cls(criterion=criterion, **changes)


def target_for(criterion, labels=THREE, numbers=LINE):
    if criterion in OF_CLASSES:
        return labels
    return np.exp(numbers / 4) if criterion in ("poisson", "gamma") else numbers


@contextmanager
def only_warnings(*allowed):
    """Named warnings of ours are an answer, stray ones of NumPy are not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    strangers = [
        f"{w.filename}:{w.lineno}: {w.message}"
        for w in caught
        if not issubclass(w.category, allowed) and "unique classes" not in str(w.message)
    ]
    assert not strangers


def values_of(model, data):
    values = getattr(model, "predict_proba", model.predict)(data)
    for own in values if isinstance(values, list) else [values]:
        assert np.isfinite(own).all()
    return values


def differences(one, other, but=()):
    """Which arrays of two trees differ in any bit."""
    found = []
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name not in but and not (
            a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        ):
            found.append(field.name)
    return found


NUMBERS = ("threshold", "weight", "value", "impurity", "decrease")


def complaints(model, data, target, weight=None):
    """What is not true of a binary tree that is true of every one."""
    arrays, found = model.arrays_, []
    given = np.ones(len(target)) if weight is None else np.asarray(weight, dtype=float)
    whole = bool(np.all(given == np.floor(given))) and given.sum() <= 2.0**52
    samples = given.astype(np.int64) if whole else (given > 0).astype(np.int64)
    passed = model.decision_path(data).toarray().astype(bool).T
    if not np.array_equal(passed @ samples, arrays.n_samples) or arrays.n_samples.min() < 1:
        found.append("rows in training and in prediction take different ways")
    for name in ("value", "weight", "impurity", "decrease"):
        numbers = getattr(arrays, name)
        if not np.isfinite(numbers).all() or (name != "value" and (numbers < 0).any()):
            found.append(f"{name} is negative or not finite")
    if not (model.feature_importances_ >= 0).all():
        found.append("importances are negative or not finite")
    if isinstance(model, DecisionTreeClassifier):
        return found + ["no shares"] * (not np.allclose(arrays.value.sum(axis=1), 1.0))
    for node in np.flatnonzero(arrays.kind == LEAF):
        own = np.asarray(target)[passed[node] & (given > 0)]
        if not own.min() <= arrays.value[node, 0] <= own.max():
            found.append("a value beyond all its targets")
    return found


def answer(model, data, target, weight=None):
    """Fit and hold the result to the law: finite, true, and warned of by name."""
    with only_warnings(DataWarning):
        model.fit(data, target, weight)
        values_of(model, data)
        assert not complaints(model, data, target, weight)
    return model


# -- random problems, and what must not matter to them ---------------------------------------------


class Problem:
    """A random table, target and settings."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 90)), int(rng.integers(1, 5))
        self.criterion = CRITERIA[seed % 8]
        self.X = rng.standard_normal((n, d)) * 10.0 ** rng.choice([-300, 0, 0, 300], d)
        self.X[:, 0] = rng.integers(0, 3, n)
        self.X[rng.random((n, d)) < rng.choice([0.0, 0.0, 0.05, 0.6])] = np.nan
        self.y = rng.integers(0, rng.choice([2, 3, 7]), n)
        if self.criterion in OF_NUMBERS:
            self.y = np.abs(rng.standard_normal(n)) + 1e-3 + rng.choice([0.0, 1e3, 1e9])
        options = {
            "max_leaf_nodes": int(rng.integers(2, 20)),
            "max_depth": int(rng.integers(1, 8)),
            "min_samples_leaf": int(rng.integers(1, 10)),
            "min_weight_fraction_leaf": float(rng.uniform(0, 0.2)),
            "splitter": "random",
            "max_bins": int(rng.integers(2, 10)),
            "categorical_features": [0],
        }
        self.settings = {name: value for name, value in options.items() if rng.random() < 0.2}
        self.settings["random_state"] = int(rng.integers(0, 99))

    def fitted(self, rows=slice(None), weight=None):
        with only_warnings():
            return tree(self.criterion, **self.settings).fit(self.X[rows], self.y[rows], weight)


def test_random_problems_obey_the_law() -> None:
    for seed in range(320):
        problem = Problem(seed)
        model = problem.fitted()
        settings, arrays = problem.settings, model.arrays_
        assert not complaints(model, problem.X, problem.y), seed
        assert arrays.n_leaves <= settings.get("max_leaf_nodes", np.inf), seed
        assert model.get_depth() <= settings.get("max_depth", np.inf), seed
        if len(arrays) > 1:
            least = settings.get("min_weight_fraction_leaf", 0.0) * len(problem.y) * (1 - 1e-9)
            assert arrays.n_samples.min() >= settings.get("min_samples_leaf", 1), seed
            assert arrays.weight.min() >= least, seed


def test_neither_order_nor_repetition_nor_block_size_matters(monkeypatch) -> None:
    """A weight of k is the row k times, one of 0 no row; a node's split depends on its rows only.

    Impurities are sums of rounded losses, equal up to their last bits.
    """
    for seed in range(1000, 1200):
        problem = Problem(seed)
        # Without weight there are still categories, and classes would be left out with a warning.
        least = int("categorical_features" in problem.settings or problem.criterion in OF_CLASSES)
        times = problem.rng.integers(least, 4, len(problem.y))
        times[0] = 1
        rows = problem.rng.permutation(np.repeat(np.arange(len(times)), times))
        expected = problem.fitted(weight=times.astype(float)).arrays_
        assert not differences(expected, problem.fitted(rows).arrays_, ("impurity",)), seed
        for size in (1, 7):
            with monkeypatch.context() as patch:
                small_blocks(patch, size)
                other = problem.fitted(weight=times.astype(float)).arrays_
            assert not differences(expected, other, ("impurity",)), seed
            assert other.impurity == pytest.approx(expected.impurity, rel=1e-12, abs=1e-300), seed


def small_blocks(patch, size):
    """Let nodes of more rows than `size` be large ones."""

    class Small(tree_builder.TreeBuilder):
        def __init__(self, *args, **settings):
            super().__init__(*args, most_rows=size, **settings)

    patch.setattr(decision_tree, "TreeBuilder", Small)


# -- numerics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("offset", [1e9, 1e12, -1e12])
def test_an_offset_of_the_targets_changes_no_split(criterion, offset) -> None:
    targets = np.round(LINE * 1024) / 1024  # exact with the offset, too
    plain = answer(tree(criterion), NOISE, targets).arrays_
    shifted = answer(tree(criterion), NOISE, targets + offset).arrays_
    assert plain.n_leaves > 40
    assert not differences(plain, shifted, ("value", "impurity", "decrease"))
    leaves = plain.kind == LEAF
    assert np.array_equal(plain.value[leaves] + offset, shifted.value[leaves])
    assert shifted.impurity == pytest.approx(plain.impurity, rel=1e-9, abs=1e-12)
    rows, y = np.arange(40.0)[:, None], np.r_[np.arange(20.0) * 1e-9, 1e15 + np.arange(20.0)]
    assert np.array_equal(answer(tree(criterion), rows, y).predict(rows), y)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("start", [1e9, 1e12, 2.0**52, -(2.0**52)])
def test_values_closer_than_single_precision_can_tell(criterion, start) -> None:
    rows = start + np.arange(60.0)[:, None]
    y = target_for(criterion, np.arange(60) % 3, np.arange(60) % 3 - 1.0)
    assert np.array_equal(answer(tree(criterion), rows, y).predict(rows), y)


EDGES = {
    "neighbours": np.nextafter(1.0, 2.0) ** np.arange(8),
    "denormals": np.arange(1, 9) * 5e-324,
    "small": np.array([-2e-310, -1e-310, 0.0, 1e-310, 2e-310, 1e-308, 1e-300, 1.0]),
    "largest": np.array([-1.7e308, -1e308, -1.0, 0.0, 1.0, 1e308, 1.7e308, 1.79e308]),
    "all sizes": 10.0 ** np.linspace(-307, 308, 8),
    "around zero": np.array([-1e-300, -5e-324, 0.0, 5e-324, 1e-300, 1e-200, 1.0, 1e300]),
    "largest neighbours": np.nextafter(np.full(8, 1.7e308), np.inf) * (1 - np.arange(8) * 2e-16),
}


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("case", EDGES)
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_thresholds_lie_between_values_however_close_or_far(case, criterion, splitter) -> None:
    values = np.unique(EDGES[case])
    labels = np.arange(len(values)) % 2
    y = target_for(criterion, labels, labels - 0.5)
    model = answer(tree(criterion, splitter=splitter, random_state=0), values[:, None], y)
    assert np.array_equal(model.predict(values[:, None]), y)
    asked = np.sort(model.arrays_.threshold[model.arrays_.kind == THRESHOLD])
    assert len(asked) == len(values) - 1
    assert (values[:-1] <= asked).all()
    assert (asked < values[1:]).all()


@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_signed_zeros_are_equal(split) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(-1, 2, (80, 3)).astype(float)
    signed = np.where((data == 0) & (rng.random(data.shape) < 0.5), -0.0, data)
    for categories in (None, [0]):
        for criterion in ("gini", "squared_error"):
            model = tree(criterion, split=split, categorical_features=categories)
            one, other = (clone(model).fit(t, target_for(criterion)) for t in (data, signed))
            assert not differences(one.arrays_, other.arrays_)
            assert np.array_equal(one.apply(signed), one.apply(data))
    zeros = np.array([[0.0], [-0.0], [0.0], [-0.0]])
    assert DecisionTreeClassifier(split=split).fit(zeros, [0, 1, 0, 1]).get_depth() == 0


@pytest.mark.parametrize("criterion", OF_NUMBERS)
@pytest.mark.parametrize("power", [-990, -400, 40, 400])
def test_units_of_targets_do_not_matter(criterion, power) -> None:
    targets = target_for(criterion)
    plain = answer(tree(criterion, min_samples_leaf=3), NOISE, targets)
    scaled = tree(criterion, min_samples_leaf=3).fit(NOISE, targets * 2.0**power)
    assert not differences(plain.arrays_, scaled.arrays_, NUMBERS)
    assert np.array_equal(plain.predict(NOISE) * 2.0**power, scaled.predict(NOISE))
    if power != -990:  # where squares of targets are no numbers
        assert scaled.feature_importances_ == pytest.approx(plain.feature_importances_, abs=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_tables_of_one_kind_are_a_leaf(criterion) -> None:
    y = target_for(criterion)
    for constant in (np.ones((80, 3)), np.full((80, 2), np.nan), np.zeros((80, 1))):
        assert answer(tree(criterion), constant, y).get_n_leaves() == 1
    one = answer(tree(criterion), NOISE, np.full(80, y[0]))
    assert one.get_depth() == 0
    assert one.predict(NOISE[:2]).tolist() == [y[0], y[0]]
    assert tree(criterion).fit(NOISE[:1], y[:1]).predict(NOISE[:2]).tolist() == [y[0], y[0]]
    # the same rows with other targets cannot be told apart
    twice = answer(tree(criterion), np.vstack([NOISE, NOISE]), np.r_[y, y[::-1]])
    assert twice.get_n_leaves() <= 80


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error", "squared_error"])
def test_ties_go_to_the_first_feature_and_the_lowest_threshold(criterion) -> None:
    column = np.arange(6.0)
    twice = np.column_stack([column, column[::-1], column])
    arrays = tree(criterion).fit(twice, [0, 1, 1, 1, 1, 0]).arrays_
    assert (arrays.feature[0], arrays.threshold[0]) == (0, 0.5)
    rng = np.random.default_rng(0)
    for _ in range(25):
        data, y = rng.integers(0, 3, (30, 2)).astype(float), rng.integers(0, 2, 30)
        once = tree(criterion).fit(data, y).arrays_
        again = tree(criterion, n_jobs=2).fit(np.column_stack([data, data]), y).arrays_
        assert not differences(once, again, ("coef",))


@pytest.mark.parametrize("criterion", ["gamma", "poisson"])
def test_targets_that_differ_by_any_factor(criterion) -> None:
    rows = np.arange(4.0)[:, None]
    model = answer(tree(criterion, max_depth=1), rows, np.array([1e-17, 1e-20, 1.0, 1.0]))
    assert model.predict(rows) == pytest.approx([5.005e-18, 5.005e-18, 1.0, 1.0], rel=1e-9)


@pytest.mark.parametrize("settings", [{}, {"oblique_learner": "prototypes"}], ids=str)
def test_oblique_splits_take_any_table(settings) -> None:
    data = np.column_stack([NOISE, THREE])
    for given in (data, np.where(data > 1.5, np.nan, data), data * 1e200, data * 1e-300):
        model = DecisionTreeClassifier(splitter="oblique", categorical_features=[4], **settings)
        assert answer(model, given, TWO).score(given, TWO) == 1.0
    for refused in ({"max_features": 2}, {"max_bins": 5}, {"monotonic_cst": [1, 0, 0, 0, 0]}):
        with pytest.raises(ValueError, match=f"cannot be combined with {next(iter(refused))}"):
            DecisionTreeClassifier(splitter="oblique", **refused).fit(data, TWO)


# -- depth, breadth and size -----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_alternating_labels_are_halved_from_some_depth_on(criterion) -> None:
    """Peeling off a row at a time would take quadratic work and a depth of thousands."""
    rows, labels = np.arange(4000.0)[:, None], np.arange(4000) % 2
    y = target_for(criterion, labels, labels + 1.0)
    with pytest.warns(DataWarning, match=f"more than {GREEDY_DEPTH} levels deep.*max_depth"):
        model = tree(criterion, max_depth=10**9).fit(rows, y)
    assert np.array_equal(model.predict(rows), y)
    assert model.get_n_leaves() == 4000
    assert model.get_depth() <= GREEDY_DEPTH + 2 * np.log2(4000)
    assert answer(tree(criterion, max_depth=20), rows, y).get_depth() == 20
    if criterion == "gini":  # also large nodes
        rows, y = np.arange(80_000.0)[:, None], np.arange(80_000) % 2
        with pytest.warns(DataWarning, match="levels deep"):
            assert tree(criterion).fit(rows, y).score(rows, y) == 1.0


CHAINS = {  # a multiway tree is not halved: it gets deeper than Python recurses
    "labels in turn": (DecisionTreeClassifier(split="multiway"), np.arange(2500) % 2),
    "exponential": (DecisionTreeRegressor(), 1.2 ** np.arange(2500.0)),
    "exponential medians": (tree("absolute_error"), 1.2 ** np.arange(2500.0)),
    "exponential counts": (tree("poisson"), 1.2 ** np.arange(2500.0)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_read_printed_drawn_and_saved(name) -> None:
    model, y = clone(CHAINS[name][0]), CHAINS[name][1]
    rows = np.arange(2500.0)[:, None]
    with only_warnings(DataWarning):
        model.fit(rows, y)
    assert model.get_depth() > (2 * sys.getrecursionlimit() if "turn" in name else 150)
    for twin in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(twin.predict(rows), y)
    assert not differences(tree_from_json(margrove.export_json(model)), model.arrays_)
    assert len(margrove.rules(model)) == len(margrove.regions(model)) == 2500
    assert margrove.export_text(model).count("\n") > 2500
    assert margrove.export_dot(model).count("->") == 4998
    assert "CASE" in margrove.export_sql(model)
    assert plot.tree_svg(model).rstrip().endswith("</svg>")
    assert margrove.explain(model, rows[-1:]).prediction == y[-1]
    space = {}
    exec(margrove.export_python(model), space)
    assert [space["predict"](row) for row in rows[::500].tolist()] == y[::500].tolist()
    path = model.decision_path(rows[::50])
    depths = model.arrays_.depth[model.apply(rows[::50])]
    assert np.array_equal(np.asarray(path.sum(axis=1)).ravel() - 1, depths)
    assert margrove.prune(model, "nodes", nodes=[0]).get_n_leaves() == 1


def test_as_many_classes_as_rows_if_there_is_memory(monkeypatch) -> None:
    model = DecisionTreeClassifier().fit(X, Y)
    before = model.arrays_
    with pytest.warns(UserWarning, match="unique classes is greater than 50%"):
        few = DecisionTreeClassifier().fit(np.arange(400.0)[:, None], np.arange(400))
    assert np.array_equal(few.predict(np.arange(400.0)[:, None]), np.arange(400))
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**9)
    rows = np.arange(20_000.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there are many classes
        with pytest.raises(MemoryError, match=r"needs 25\.6 GB.*1 GB is available.*max_depth"):
            model.fit(rows, np.arange(20_000))
    assert model.arrays_ is before


# -- weights and labels ----------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weights_of_any_size(criterion) -> None:
    y = target_for(criterion)
    plain = answer(tree(criterion, min_samples_leaf=2), NOISE, y, np.full(80, 0.5))
    for weight in (1e-320, 1e-300, 1e-3, 1.5e200, 1e300, 1.7e308):
        model = tree(criterion, min_samples_leaf=2)
        with only_warnings():
            model.fit(NOISE, y, np.full(80, weight))
            assert np.isfinite(model.arrays_.impurity).all()
            assert np.isfinite(model.feature_importances_).all()
        assert not differences(plain.arrays_, model.arrays_, NUMBERS)
        assert values_of(model, NOISE) == pytest.approx(values_of(plain, NOISE), rel=1e-9)
    for weight in (10.0 ** np.linspace(-200, 200, 80), np.where(np.arange(80) == 3, 1e20, 1.0)):
        with only_warnings():
            model = tree(criterion).fit(NOISE, y, weight)
        heaviest = int(np.argmax(weight))
        assert model.predict(NOISE)[heaviest] == y[heaviest]
        assert np.isfinite(values_of(model, NOISE)).all()


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error", "squared_error"])
@pytest.mark.parametrize("weight", [2.0**31 // 40, 2.0**40, 2.0**52, 3.0**33])
def test_weights_that_fill_the_integers(criterion, weight) -> None:
    data = NOISE[:40]
    labels = (data[:, 0] > 0.3).astype(int)
    expected = tree(criterion, max_depth=1).fit(data, labels).arrays_
    found = answer(tree(criterion, max_depth=1), data, labels, np.full(40, weight)).arrays_
    assert (found.feature[0], found.threshold[0]) == (0, expected.threshold[0])


def test_a_class_without_weight_is_left_out_and_said_so() -> None:
    with pytest.warns(DataWarning, match="class 1 have sample_weight 0"):
        model = DecisionTreeClassifier().fit(NOISE, THREE, np.where(THREE == 1, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 2]
    only = DecisionTreeClassifier().fit(NOISE[THREE != 1], THREE[THREE != 1])
    assert not differences(model.arrays_, only.arrays_)


def given(X=NOISE, y=THREE, weight=None, **settings):
    return X, y, weight, settings


def fitted(X, y, weight, settings):
    model = tree(settings.get("criterion", "gini"), **settings)
    return model.fit(X, y[: X.shape[0]] if hasattr(X, "shape") else y, weight)


WORDS = np.array(["a", "a\0", "b" * 99_999], dtype=object)
SHUFFLED = np.random.default_rng(0).permutation(64)
SAME = {
    "odd features": (given(X, Y), given(np.c_[X, X[:, 0] * 1e20, 1e-20 * X, np.ones(150), X], Y)),
    "class weights": (given(y=TWO, weight=np.where(TWO == 1, 3.0, 0.5)),
                      given(y=TWO, class_weight={0: 0.5, 1: 3.0})),
    "balanced, other order": (given(NOISE[:64], THREE[:64], class_weight="balanced"),
                              given(NOISE[SHUFFLED], THREE[SHUFFLED], class_weight="balanced")),
    "strings": (given(), given(y=WORDS[THREE])),
    "large floats": (given(), given(y=np.array([-5.0, 16777216.0, 16777217.0])[THREE])),
    "large integers": (given(), given(y=np.array([1, 2, 2**62])[THREE])),
    "truths": (given(y=TWO), given(y=TWO > 0)),
    "None for NaN": (given(np.where(NOISE > 1, np.nan, NOISE)),
                     given(np.where(NOISE > 1, None, NOISE).tolist())),
    **{
        str(changes): (given(), given(**changes))
        for changes in ({"max_depth": 10**9}, {"max_leaf_nodes": 2**40}, {"max_bins": 65535},
                        {"max_leaf_nodes": 10**30}, {"n_jobs": 1000}, {"n_jobs": -1000})
    },
    **{
        str(changes): (given(np.ones((80, 1))), given(NOISE[:, :1], **changes))
        for changes in ({"min_samples_leaf": 10**30}, {"min_samples_leaf": 0.99},
                        {"min_samples_split": 10**30}, {"ccp_alpha": 1e300},
                        {"min_impurity_decrease": 1e300})
    },
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_things_that_are_the_same(case) -> None:
    one, other = (fitted(*own) for own in SAME[case])
    assert not differences(one.arrays_, other.arrays_, ("coef",))
    for model, (data, y, *_) in ((one, SAME[case][0]), (other, SAME[case][1])):
        assert model.get_n_leaves() == 1 or model.predict(data).tolist() == y.tolist()


# -- tables ----------------------------------------------------------------------------------------


def _spoiled(value):
    data = NOISE.copy()
    data[17, 2] = value
    return data


REFUSED = [
    ("infinity.*row 17, column 2", given(_spoiled(np.inf))),
    ("infinity.*row 17, column 2", given(_spoiled(-np.inf), max_bins=3)),
    ("infinity", given(sp.csr_array(_spoiled(np.inf)))), ("0 sample", given(NOISE[:0])),
    ("0 feature", given(NOISE[:, :0])), ("1D array", given(NOISE[:, 0])),
    ("dim 3|3D", given(NOISE[:, :, None])), ("[Cc]omplex", given(NOISE + 0j)),
    ("datetime64", given(np.abs(NOISE).astype("datetime64[s]"))),
    ("timedelta64", given(np.abs(NOISE).astype("timedelta64[s]"))),
    ("masked", given(np.ma.masked_array(NOISE, NOISE > 1))), ("dict", given({"a": 1})),
    ("set", given({1, 2})), ("generator", given(row for row in ())), ("str", given("table.csv")),
    ("Path", given(Path("table.csv"))), ("same number of cells", given([["a", 1.0], ["b"]])),
    ("string or a real number", given(np.array([["a", [1]], ["b", [2]]], dtype=object))),
    ("X has 80 rows, y has 79", given(y=np.r_[THREE[:-1]])),
    ("NaN or infinity.*row 3", given(y=np.where(np.arange(80) == 3, np.nan, THREE))),
    ("continuous|Unknown label type", given(y=NOISE[:, 0])), ("mixes", given(y=["a", 1] * 40)),
    ("NaN or None.*row 0", given(y=[None, "a"] * 40)),
    ("masked", given(y=np.ma.masked_array(TWO, TWO == 1))),
    ("datetime64", given(y=np.zeros(80, dtype="datetime64[s]"))),
    ("'a'", given(y=["a"] * 80, criterion="squared_error")),
    ("y contains infinity", given(y=np.full(80, np.inf), criterion="squared_error")),
    ("y contains NaN", given(y=np.full(80, np.nan), criterion="absolute_error")),
    ("negative", given(y=LINE, criterion="poisson")),
    ("are zero", given(y=np.zeros(80), criterion="poisson")),
    ("above zero", given(y=np.zeros(80), criterion="gamma")),
    ("zero for all rows", given(weight=np.zeros(80))),
    ("negative at row 0", given(weight=np.full(80, -1.0))),
    ("weight.*NaN", given(weight=np.full(80, np.nan))),
    ("weight.*infinity", given(weight=np.full(80, np.inf), criterion="squared_error")),
    ("79", given(weight=np.ones(79))), ("1D", given(weight=np.ones((80, 1)))),
    ("1D", given(weight=2.0)), ("'a'", given(weight=["a"] * 80)),
    ("class_weight", given(class_weight={0: 0.0})),
    ("class_weight", given(class_weight={0: np.nan})),
    ("class_weight", given(class_weight={7: 1.0})),
    ("class_weight", given(class_weight="Balanced")),
    ("class_weight is a list", given(class_weight=[{0: 1.0}])),
    (r"monotonic_cst has shape \(1,\).*4 features", given(y=TWO, monotonic_cst=[1])),
    (r"monotonic_cst has shape \(5,\).*4 features", given(y=TWO, monotonic_cst=[1] * 5)),
    (r"monotonic_cst has shape \(1, 4\)", given(y=TWO, monotonic_cst=[[1, 0, 0, 0]])),
    ("monotonic_cst must be.*-1, 0 or 1", given(y=TWO, monotonic_cst=[1, 0, 2, 0])),
    ("monotonic_cst must be.*-1, 0 or 1", given(y=TWO, monotonic_cst=[np.nan, 0, 0, 0])),
    ("monotonic_cst must hold -1, 0 or 1", given(y=TWO, monotonic_cst=[None, 0, 0, 0])),
    ("not fitted on data with feature names", given(y=TWO, monotonic_cst={"a": 1})),
    ("multiclass", given(monotonic_cst=[1, 0, 0, 0])),
    ("Categorical feat", given(y=TWO, monotonic_cst=[1, 0, 0, 0], categorical_features=[0])),
    ("multiway.*monotonic_cst", given(y=TWO, monotonic_cst=[1, 0, 0, 0], split="multiway")),
    (r"indices must be in.*\[0, 3\]. Got 5", given(categorical_features=[5])),
    ("bool, int or str, got: NoneType", given(categorical_features=[None])),
    (r"mask must have shape.*\(4,\). Got \(1,\)", given(categorical_features=[True])),
    ("data without feature names. Got 'colour'", given(categorical_features=["colour"])),
    ("categorical_features needs a dense X", given(sp.csr_array(NOISE), categorical_features=[0])),
    ("multiway.*max_features.*binary", given(split="multiway", max_features=1)),
    ("oblique.*multiway", given(split="multiway", splitter="oblique")),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals_say_why_and_leave_the_old_tree(case) -> None:
    message, (data, y, weight, settings) = REFUSED[case]
    model = tree(settings.get("criterion", "gini")).fit(NOISE, TWO + 1)
    model.set_params(**settings)
    attributes, before = dict(vars(model)), values_of(model, NOISE)
    n = data.shape[0] if hasattr(data, "shape") else 80
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(data, y[:n], weight)
    assert vars(model) == attributes
    assert np.array_equal(values_of(model, NOISE), before)


def test_layouts_and_types_that_hold_the_same_numbers(tmp_path) -> None:
    data = np.round(X * 10)
    expected = DecisionTreeClassifier().fit(data, Y)
    wide, locked = np.zeros((150, 8)), data.copy()
    wide[:, ::2] = data
    locked.flags.writeable = False
    data.tofile(tmp_path / "table")
    mapped = np.memmap(tmp_path / "table", dtype=float, mode="r", shape=(150, 4))
    shifted = np.frombuffer(b"\0" + data.tobytes(), dtype=np.uint8)[1:].view(np.float64)
    long = sp.csr_array(data)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    twice = np.repeat(long.data, 2) / 2, np.repeat(long.indices, 2), 2 * long.indptr
    padded = sp.csr_array(np.where(data == 0, 99.0, data))
    padded.data[padded.data == 99.0] = 0.0
    fractions = np.array([[Fraction(v) for v in row] for row in data.tolist()], dtype=object)
    types = (">f8", np.float16, np.float32, np.int8, np.uint64, np.longdouble, object)
    sparse = (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array, sp.dok_array, sp.bsr_array)
    for same in (
        np.asfortranarray(data), data[::-1].copy()[::-1], wide[:, ::2], locked, mapped,
        shifted.reshape(150, 4), data.tolist(), fractions, long, sp.csr_array(twice), padded,
        *(data.astype(dtype) for dtype in types), *(kind(data) for kind in sparse),
    ):  # fmt: skip
        with only_warnings():
            model = DecisionTreeClassifier().fit(same, Y)
            assert not differences(model.arrays_, expected.arrays_)
            assert np.array_equal(values_of(model, same), values_of(expected, data))
    spread = np.broadcast_to(data[:, :1], (150, 4))
    one, other = (DecisionTreeClassifier().fit(t, Y) for t in (spread, spread.copy()))
    assert not differences(one.arrays_, other.arrays_)
    with pytest.warns(DataWarning, match="above 2\\*\\*53"):
        DecisionTreeClassifier().fit(data.astype(np.uint64) + np.uint64(2**60), Y)


@pytest.mark.parametrize(
    ("part", "value"), [("indices", 2**30), ("indices", -1), ("indptr", 2**30), ("indptr", -5)]
)
def test_malformed_sparse_matrices_never_reach_compiled_code(part, value) -> None:
    bad = sp.csr_array(NOISE)
    model = DecisionTreeClassifier().fit(bad, TWO)
    before = model.arrays_
    getattr(bad, part)[len(getattr(bad, part)) // 2] = value
    for call in (model.predict, model.apply, model.decision_path, lambda X: model.fit(X, TWO)):
        with pytest.raises(MalformedSparseError, match=r"X.*malformed"):
            call(bad)
    assert model.arrays_ is before


def test_categories_of_any_kind() -> None:
    labels = ["a", "a ", " a", "A", "a\0", "\u00e9", "e\u0301", "x" * 9999, "nan", "", "\U0001f600"]
    column = np.array([[label] for label in labels * 3], dtype=object)
    y = np.tile(np.arange(len(labels)), 3)
    for split in ("binary", "multiway"):
        model = DecisionTreeClassifier(split=split).fit(column, y)
        assert sorted(model.categories_[0]) == sorted(labels)
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(column), y)
    mixed = np.array([["a"], [1], [2.5], ["b"], [None], [np.nan], [-1]], dtype=object)
    y = np.array([0, 1, 2, 3, 4, 4, 5])
    model = DecisionTreeClassifier().fit(mixed, y)
    assert np.array_equal(model.predict(mixed), y)
    numbers = np.array([[3.0], [1.0], [2.0], [np.nan]] * 5)
    model = DecisionTreeClassifier(categorical_features="all").fit(numbers, [0, 1, 0, 2] * 5)
    assert model.arrays_.kind[0] == SUBSET
    with pytest.warns(DataWarning, match=r"has not seen 7\.0 in column 0"):
        assert model.predict([[7.0]]) == model.predict([[np.nan]])
    assert np.array_equal(model.predict(sp.csr_array(numbers)), model.predict(numbers))


def test_missing_values_go_where_they_were_learnt_to_go() -> None:
    data = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan], [np.nan]])
    for criterion in ("gini", "squared_error", "absolute_error", "entropy"):
        for y, side in (([0, 0, 1, 1, 0, 0], 0), ([0, 0, 1, 1, 1, 1], 1), ([0] * 4 + [1] * 2, 1)):
            found = tree(criterion).fit(data, y).predict([[np.nan], [-1e308]])
            assert found.tolist() == [side, 0]
        empty = np.column_stack([np.full(80, np.nan), NOISE[:, 0], np.full(80, np.nan)])
        model = answer(tree(criterion), empty, target_for(criterion))
        assert set(model.arrays_.feature) == {-1, 1}


def test_data_frames() -> None:
    colours = np.array(["red", "green", "blue", ""])[np.random.default_rng(0).integers(0, 4, 80)]
    y = ((colours == "red") ^ (NOISE[:, 0] > 0)).astype(int)
    frame = pd.DataFrame({"size": NOISE[:, 0], "colour": colours.tolist()})
    categories = pd.Categorical(colours, categories=["never", "red", "", "green", "blue"])
    model = DecisionTreeClassifier().fit(frame, pd.Series(y, index=np.arange(80)[::-1]))
    for same in (
        frame.assign(colour=categories),
        frame.astype({"colour": "string", "size": "Float64"}),
        pl.from_dict({"size": NOISE[:, 0], "colour": colours.tolist()}).lazy(),
    ):
        assert not differences(DecisionTreeClassifier().fit(same, y).arrays_, model.arrays_)
        assert np.array_equal(model.predict(same), y)
    for wrong, message in (
        (frame[["colour", "size"]], "same order"),
        (frame.assign(more=1), "more"),
        (frame.set_axis(["size", "size"], axis=1), "more than one column named 'size'"),
        (frame.assign(size="large"), "'size'.*was a number in training"),
        (frame.assign(colour=pd.Timestamp(0)), "'colour'.*neither a number nor a label"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(wrong)
    strange = frame.assign(colour=[f"new {k}" for k in range(80)])
    with pytest.warns(DataWarning, match=r"'new 0' in column 'colour'.*and others"):
        assert np.array_equal(model.predict(strange), model.predict(frame.assign(colour=None)))
    with pytest.raises(InvalidDataError, match="Column 'colour' of X holds labels"):
        DecisionTreeClassifier(categorical_features=None).fit(frame, y)


# -- parameters ------------------------------------------------------------------------------------

PARAMETERS = {
    "max_depth": [0, -1, 1.5, "a", True, np.nan], "max_leaf_nodes": [0, 1, -1, 1.5, True],
    "min_samples_leaf": [0, -1, 1.5, 0.0, 1.0, np.nan, True], "max_bins": [1, 0, 65536, 2.5, True],
    "min_samples_split": [0, 1, -1, 1.5, 0.0, np.nan], "min_impurity_decrease": [-1, np.nan, None],
    "max_features": [0, -1, 0.0, 1.1, np.nan, "auto", True], "ccp_alpha": [-1, np.nan, np.inf],
    "min_weight_fraction_leaf": [-0.1, 0.51, np.nan, "a"], "n_jobs": [1.5, "2", 0],
    "max_time": [0, -1, np.nan, np.inf, "1"], "random_state": [-1, 2**64, 1.5, "a"],
    "significance": [0, 1, -1, np.nan], "max_error": [-1, np.nan],
    "validation_fraction": [0.0, 1.0, np.nan], "criterion": ["mse", None, 1],
    "splitter": ["worst", None], "split": ["ternary", None], "oblique_learner": ["forest", None],
    "on_interrupt": ["ignore", None], "categorical_features": ["some", 3], "verbose": [-1, "a"],
}  # fmt: skip


@pytest.mark.parametrize("cls", [DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize("parameter", PARAMETERS)
def test_parameters_that_are_none(cls, parameter) -> None:
    model = cls().fit(NOISE, TWO)
    before, expected = model.arrays_, model.predict(NOISE)
    for value in PARAMETERS[parameter]:
        model.set_params(**{parameter: value})
        with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
            model.fit(NOISE, TWO)
    assert model.arrays_ is before
    model.set_params(n_jobs=None)
    assert np.array_equal(model.predict(NOISE), expected)


@pytest.mark.parametrize("criterion", ["gini", "gain_ratio", "squared_error"])
def test_what_is_drawn_depends_on_the_seed(criterion) -> None:
    def drawn(seed, count=1):
        model = tree(criterion, max_features=count, random_state=seed).fit(NOISE, THREE)
        return model.max_features_, margrove.export_json(model)

    for kind in (np.random.RandomState, np.random.default_rng, int, np.int64):
        assert drawn(kind(3)) == drawn(kind(3))
    assert len({drawn(seed) for seed in (3, 4, 5, 2**32 - 1)}) > 1
    counts = [drawn(0, count)[0] for count in (1e-9, "log2", "sqrt", 0.99, 1.0, 10**30)]
    assert counts == [1, 2, 2, 3, 4, 4]


# -- after the fit ---------------------------------------------------------------------------------


def test_predicting_uses_what_was_fitted() -> None:
    methods = ("predict", "apply", "decision_path", "predict_proba", "predict_log_proba")
    for method in methods:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(DecisionTreeClassifier(), method)(NOISE)
    model = DecisionTreeClassifier().fit(NOISE, THREE)
    before = values_of(model, NOISE)
    model.set_params(criterion="nonsense", max_depth=-1, split=None, splitter=7, max_bins=-3)
    assert np.array_equal(values_of(model, NOISE), before)
    for wrong, message in (
        (NOISE[:, :3], "3 features.*expecting 4"),
        (np.column_stack([NOISE, NOISE]), "8 features.*expecting 4"),
        (NOISE[:0], "0 sample"),
        (np.where(NOISE > 2, np.inf, NOISE), r"infinity.*row \d+, column \d"),
    ):
        for method in methods:
            with pytest.raises(ValueError, match=message):
                getattr(model, method)(wrong)


ALTERED = {
    "feature": 2**30, "children": 2**40, "first_child": 2**40, "n_children": -1,
    "parent": -(2**40), "missing_child": 2**30, "kind": 77, "set_size": 2**40, "threshold": np.nan,
}  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"split": "multiway"}], ids=str)
@pytest.mark.parametrize("name", ALTERED)
def test_altered_trees_never_reach_compiled_code(name, settings) -> None:
    data = np.round(NOISE)
    model = DecisionTreeClassifier(categorical_features=[0], max_depth=4, **settings)
    arrays = model.fit(data, THREE).arrays_
    with pytest.raises(ValueError, match="read-only"):
        getattr(arrays, name)[0] = 0
    own = getattr(arrays, name)
    for spoil in (np.full_like(own, ALTERED[name]), own[:2].copy()):
        broken = model._with_arrays(replace(arrays, **{name: spoil}))
        for method in ("predict", "apply", "predict_proba", "decision_path"):
            for given in (data, sp.csr_array(data)):
                with pytest.raises(ValueError, match=r"not sound|altered"):
                    getattr(broken, method)(given)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_copies_pickles_subclasses_and_data_of_the_users(criterion) -> None:
    given = NOISE.copy(), target_for(criterion).copy(), np.linspace(0, 2, 80)
    kept, y = copy.deepcopy(given), target_for(criterion)
    assert tree(criterion).fit(*given).predict(given[0]).shape == (80,)
    assert all(np.array_equal(a, b) for a, b in zip(given, kept, strict=True))
    model = tree(criterion).fit(given[0], y)
    given[0][:] = 0.0  # which is the user's own
    for twin in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not differences(twin.arrays_, tree(criterion).fit(NOISE, y).arrays_)
        assert np.array_equal(values_of(twin, NOISE), values_of(model, NOISE))
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        clone(model).predict(NOISE)

    class Mine(type(model)):
        pass

    assert not differences(Mine(criterion=criterion).fit(NOISE, y).arrays_, model.arrays_)
    with pytest.warns(InconsistentVersionWarning, match=r"0\.0\.0"):
        twin.__setstate__(model.__getstate__() | {"_margrove_version": "0.0.0"})
    assert np.array_equal(values_of(twin, NOISE), values_of(model, NOISE))
    again = model.set_params(max_depth=2).fit(NOISE[:, :2], y)
    assert again.n_features_in_ == 2
    assert again.predict(NOISE[:, :2]).shape == (80,)


# -- threads, budgets, interrupts ------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_the_number_of_threads_changes_no_bit(criterion) -> None:
    data, y = _noise(0, 80_000, 3), np.random.default_rng(0).integers(0, 3, 80_000)
    data[np.random.default_rng(1).random(data.shape) < 0.01] = np.nan
    for settings in ({}, {"max_features": 2, "random_state": 7}):
        model = tree(criterion, max_depth=5, **settings)
        one, two, five = (clone(model).set_params(n_jobs=n).fit(data, y) for n in (1, 2, 5))
        for other in (two, five):
            assert not differences(one.arrays_, other.arrays_)
            assert np.array_equal(one.predict(data), other.predict(data))


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_another_thread_may_write_to_the_data(kind) -> None:
    """The result means nothing then, but nothing crashes: no index is read from their array."""
    rng = np.random.default_rng(0)
    table, labels = kind(rng.integers(0, 50, (1000, 5)).astype(float)), rng.integers(0, 3, 1000)
    spoiled = (table.indices, table.indptr) if sp.issparse(table) else (table,)
    stop, ended = threading.Event(), 0

    def vandal():
        while not stop.is_set():
            for array in spoiled:
                array[:] = rng.integers(-(2**31), 2**31, array.shape)

    thread = threading.Thread(target=vandal)
    thread.start()
    try:
        for _ in range(12):
            with suppress(ValueError):  # a spoiled table was noticed
                model = DecisionTreeClassifier(max_depth=6).fit(table, labels)
                assert np.isfinite(model.arrays_.value).all()
            ended += 1
    finally:
        stop.set()
        thread.join()
    assert ended == 12


SLOW = {
    "block": (DecisionTreeClassifier(n_jobs=1), 60_000, 12),
    "best first": (DecisionTreeClassifier(max_leaf_nodes=20_000, n_jobs=1), 60_000, 12),
    "large": (DecisionTreeClassifier(n_jobs=2), 150_000, 12),
    "medians": (DecisionTreeRegressor(criterion="absolute_error", n_jobs=1), 20_000, 10),
    "multiway": (DecisionTreeClassifier(split="multiway"), 10_000, 10),
}


def slow(name, **changes):
    """A fit of many slices."""
    model, n, d = SLOW[name]
    rng = np.random.default_rng(0)
    return clone(model).set_params(**changes), rng.standard_normal((n, d)), rng.integers(0, 3, n)


def is_sound(model, data):
    """What holds of a tree that was cut short: its leaves have the rows that they were given."""
    arrays = model.arrays_
    arrays.require_sound()
    values_of(model, data)
    for name in ("value", "weight", "impurity", "decrease"):
        assert np.isfinite(getattr(arrays, name)).all()
    leaves = np.bincount(model.apply(data), minlength=len(arrays))
    assert np.array_equal(leaves[arrays.kind == LEAF], arrays.n_samples[arrays.kind == LEAF])
    return True


@pytest.mark.parametrize("name", SLOW)
def test_budgets_cancels_and_listeners(name) -> None:
    model, data, target = slow(name, max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-06.*Raise max_time"):
        model.fit(data, target)
    assert is_sound(model, data)
    seen = []
    with watch(on_progress=lambda progress: seen.append(progress) or len(seen) == 2):
        model.set_params(max_time=None).fit(data, target)
    assert len(seen) == 2
    assert is_sound(model, data)
    before, stop = model.arrays_, threading.Event()
    stop.set()
    with watch(cancel=stop), pytest.raises(FitCancelled, match="as it was before"):
        model.fit(data, target)
    again = watch(on_progress=lambda progress: model.fit(data, target))
    with again, pytest.raises(RuntimeError, match="clone"):
        model.fit(data, target)
    assert model.arrays_ is before


@pytest.mark.parametrize("name", SLOW)
def test_interrupts_leave_the_old_tree_or_keep_a_sound_one(name) -> None:
    model, data, target = slow(name)
    model.fit(data[:200], target[:200])
    before = model.arrays_
    with interrupt_after(1):
        with pytest.raises(KeyboardInterrupt):
            model.fit(data, target)
        assert model.arrays_ is before
        with pytest.warns(InterruptedFitWarning, match="keeps what it has learnt"):
            model.set_params(on_interrupt="keep").fit(data, target)
    assert model.arrays_ is not before
    assert is_sound(model, data)


FILES = (tree_builder.__file__, subtree.__file__, multiway.__file__)


def moments_of(lines):
    """When each line was run for the first time, for the last, and in the middle."""
    times = {}
    for moment, line in enumerate(lines):
        times.setdefault(line, []).append(moment)
    return sorted({own[k * (len(own) - 1) // 2] for own in times.values() for k in range(3)})


GROWING = {
    "classes": DecisionTreeClassifier(),
    "best first": DecisionTreeClassifier(max_leaf_nodes=12),
    "numbers": DecisionTreeRegressor(),
    "medians": DecisionTreeRegressor(criterion="absolute_error"),
    "constraints": DecisionTreeRegressor(monotonic_cst=[1, 0, -1]),
    "categories": DecisionTreeClassifier(categorical_features=[0]),
    "drawn": DecisionTreeClassifier(max_features=1, random_state=0),
    "multiway": DecisionTreeClassifier(split="multiway", categorical_features=[0]),
    "multiway best first": DecisionTreeClassifier(split="multiway", max_leaf_nodes=9),
}


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("classes", "numbers") else pytest.param(name, marks=pytest.mark.nightly)
        for name in GROWING
    ],
)
def test_an_interrupt_at_any_line_of_growing(name, monkeypatch) -> None:
    """Before growing starts, or once it has ended, the old tree stays; else what has grown."""
    small_blocks(monkeypatch, 10)
    rng = np.random.default_rng(0)
    data, y = np.round(rng.standard_normal((60, 3)), 1), rng.integers(0, 3, 60)
    old = clone(GROWING[name]).set_params(on_interrupt="keep").fit(data[:20], y[:20])
    expected = clone(old)
    lines = lines_until_interrupt(expected.fit, data, y, files=FILES)
    kept = 0
    told = []  # not by `catch_warnings`, which threads of other tests may end
    recorder = SimpleNamespace(warn=lambda message, category, **place: told.append(category))
    for moment in moments_of(lines):
        model = copy.copy(old)
        told.clear()
        with monkeypatch.context() as patch:
            patch.setattr(slices, "warnings", recorder)
            run = lines_until_interrupt(model.fit, data, y, files=FILES, moment=moment)
        assert len(run) == moment
        if model.arrays_ is not old.arrays_:
            assert told == [InterruptedFitWarning]
            assert is_sound(model, data)
            assert len(model.arrays_) <= len(expected.arrays_)
            kept += 1
    assert kept > 20
    assert not differences(clone(old).fit(data, y).arrays_, expected.arrays_)
