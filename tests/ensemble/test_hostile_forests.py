"""Odd things that users, programs and operating systems do to forests.

Four outcomes are allowed: the right answer; the right answer and a named warning; an error that
names what was wrong, raised before anything fitted has changed; or an interrupt that leaves the
old forest, or keeps the trees so far where that was asked for.
"""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from contextlib import contextmanager, suppress
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from tests.interrupts import lines_until_interrupt

from margrove import (
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    watch,
)
from margrove._runtime import memory as _memory
from margrove.ensemble.forest import grower as forest_grower
from margrove.ensemble.forest import out_of_bag
from margrove.exceptions import DataWarning, InterruptedFitWarning, InvalidDataError
from margrove.grove.decision_tree import GREEDY_DEPTH
from margrove.grove.grow import forest_tree_builder
from margrove.grove.serve.packed_trees import PackedTree

OF_CLASSES = (RandomForestClassifier, ExtraTreesClassifier)
FORESTS = (*OF_CLASSES, RandomForestRegressor, ExtraTreesRegressor)
every_forest = pytest.mark.parametrize("cls", FORESTS, ids=[cls.__name__ for cls in FORESTS])

X = np.random.default_rng(0).standard_normal((80, 4))
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0] + np.random.default_rng(1).standard_normal(80)
LABELS = np.digitize(NUMBERS, [-1.0, 1.0])


def target_for(cls, labels=LABELS, numbers=NUMBERS):
    return labels if issubclass(cls, OF_CLASSES) else numbers


def forest_of(cls, n_estimators=5, **settings):
    return cls(n_estimators, **({"random_state": 0} | settings))


def answers(model, data):
    return getattr(model, "predict_proba", model.predict)(data)


@contextmanager
def only_warnings(*allowed):
    """Warnings of this library are allowed, other warnings are errors."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    strangers = [
        f"{w.filename}:{w.lineno}: {w.message}"
        for w in caught
        if not issubclass(w.category, allowed)
    ]
    assert not strangers


def complaints(model):
    """Violated invariants of a forest that was grown on X."""
    found = []
    for k, tree in enumerate(model.trees_):
        tree.require_sound(model.kind_, model.n_features_in_)
        arrays = model.estimators_[k].arrays_
        arrays.require_sound()
        for name in ("value", "weight", "impurity", "decrease"):
            numbers = getattr(arrays, name)
            if not np.isfinite(numbers).all() or (name != "value" and (numbers < 0).any()):
                found.append(f"{name} of tree {k} is negative or not finite")
        inner = np.flatnonzero(arrays.n_children)
        children = arrays.children.reshape(-1, 2)
        for name in ("n_samples", "weight"):
            own = getattr(arrays, name)
            if not np.allclose(own[inner], own[children].sum(axis=1)):
                found.append(f"{name} of tree {k} is not that of its children")
    return found


def answer(model, data, target, weight=None, warns=(DataWarning,)):
    """Fit, and check that the result is finite and valid; named warnings are allowed."""
    with only_warnings(*warns):
        model.fit(data, target, weight)
        values = answers(model, data)
        for own in values if isinstance(values, list) else [values]:
            assert np.isfinite(own).all()
        assert not complaints(model)
    return model


# -- parameters ------------------------------------------------------------------------------------


REFUSED = {
    "n_estimators": [0, -1, 1.5, True, "many", None, np.nan],
    "max_samples": [0, 0.0, -1, 2**53, 1e300, np.nan, np.inf, "all", True],
    "bootstrap": ["yes", None, 2],
    "oob_score": ["yes", None],
    "n_jobs": [0, 1.5, "all"],
    "warm_start": ["yes", None],
    "keep_samples": ["yes", None],
    "max_features": [0, -1, 1.5, "all", np.nan, True],
    "max_depth": [0, -1, 1.5, "deep"],
    "min_samples_leaf": [0, 1.5, -1, "few"],
    "min_samples_split": [1, 0.0, 1.5],
    "max_leaf_nodes": [1, 0, 2.5],
    "min_weight_fraction_leaf": [-0.1, 0.6, np.nan],
    "min_impurity_decrease": [-1.0, np.nan],
    "ccp_alpha": [-1.0, np.nan],
    "criterion": ["nonsense", None, "gain_ratio"],
    "max_bins": [1, 10**6, 2.5],
    "random_state": [-1, 2**32, "seed", 0.5],
    "max_time": [0, -1.0, "soon"],
    "on_interrupt": ["ignore", None],
    "categorical_features": ["some", [9], [-5]],
    "monotonic_cst": [[1], [2, 0, 0, 0], "up"],
    "verbose": [-1, "a"],
}


@every_forest
@pytest.mark.parametrize("name", REFUSED)
def test_nonsense_is_refused_and_named(cls, name) -> None:
    model = forest_of(cls, bootstrap=True).fit(X, target_for(cls))
    if name not in model.get_params():
        with pytest.raises(ValueError, match=name):
            model.set_params(**{name: True})
        return
    before, given = model.trees_, model.get_params()[name]
    said = answers(model, X)
    for value in REFUSED[name]:
        with pytest.raises((ValueError, TypeError), match=name):
            model.set_params(**{name: value}).fit(X, target_for(cls))
        assert model.trees_ is before
    assert np.array_equal(answers(model.set_params(**{name: given}), X), said)


@pytest.mark.parametrize("cls", OF_CLASSES)
def test_nonsense_for_classes(cls) -> None:
    for settings in (
        {"voting": "loud"}, {"class_weight": "heavy"}, {"class_weight": {0: -1.0}},
        {"class_weight": {0: np.nan}}, {"class_weight": [{0: 1}]}, {"monotonic_cst": [1, 0, 0, 0]},
        {"criterion": "squared_error"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"voting|class_weight|Monoton|criterion"):
            forest_of(cls, **settings).fit(X, LABELS)


@every_forest
def test_what_does_not_go_together(cls) -> None:
    for settings, named in (
        ({"oob_score": True, "bootstrap": False}, "bootstrap"),
        ({"n_estimators": "auto", "bootstrap": False}, "bootstrap"),
        ({"max_samples": 0.5, "bootstrap": False}, "max_samples"),
    ):
        with pytest.raises(ValueError, match=named):
            cls(**settings).fit(X, target_for(cls))


def test_what_regression_does_not_take() -> None:
    for settings, y, named in (
        ({"criterion": "poisson"}, NUMBERS, "negative"),
        ({"criterion": "gamma"}, np.abs(np.round(NUMBERS)), "above zero"),
        ({"criterion": "gini"}, NUMBERS, "criterion"),
        ({"monotonic_cst": [1, 0, 0, 0]}, np.c_[NUMBERS, NUMBERS], "multiple output"),
    ):
        with pytest.raises(ValueError, match=named):
            forest_of(RandomForestRegressor, **settings).fit(X, y)


def test_more_trees_than_memory_holds(monkeypatch) -> None:
    model = forest_of(RandomForestClassifier).fit(X, LABELS)
    before = model.trees_
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**11)
    for many in (10**9, 10**15, 2**63, 2**200):
        with pytest.raises(MemoryError, match=rf"forest of {many} trees needs.*100 GB"):
            model.set_params(n_estimators=many).fit(X, LABELS)
    with pytest.raises(ValueError, match="too large for float64"):
        model.set_params(n_estimators=2**2000).fit(X, LABELS)
    assert model.trees_ is before


def test_large_numbers_that_mean_no_limit() -> None:
    plain = forest_of(RandomForestClassifier).fit(X, LABELS).predict_proba(X)
    for settings in (
        {"max_depth": 10**9}, {"max_bins": 65535}, {"n_jobs": 1000}, {"n_jobs": -1000},
        {"max_time": 1e300},
    ):  # fmt: skip
        model = answer(forest_of(RandomForestClassifier, **settings), X, LABELS)
        assert np.array_equal(model.predict_proba(X), plain)
    best_first = answer(forest_of(RandomForestClassifier, max_leaf_nodes=2**40), X, LABELS)
    assert np.array_equal(best_first.predict_proba(X), plain)


# -- going on from an earlier forest ---------------------------------------------------------------


@every_forest
def test_warm_starts_that_go_down_or_elsewhere(cls) -> None:
    y = target_for(cls)
    model = forest_of(cls, 6, warm_start=True, bootstrap=True).fit(X, y)
    before = model.trees_
    for settings, data, target in (
        ({"n_estimators": 3}, X, y),
        ({"n_estimators": 8}, X[:, :2], y),
        ({"n_estimators": 8}, np.c_[X, X], y),
        ({"n_estimators": 8}, pd.DataFrame(X, columns=list("abcd")), y),
        ({"n_estimators": 8}, X, np.c_[y, y]),
        ({"n_estimators": 8}, X[:50], y[:50]),
    ):
        with pytest.raises(ValueError, match=r"n_estimators=3|warm_start|features"):
            model.set_params(**settings).fit(data, target)
        assert model.trees_ is before
    if cls in OF_CLASSES:
        with pytest.raises(ValueError, match="classes_"):
            model.fit(X, y + 1)
    assert model.trees_ is before
    model.set_params(n_estimators=7).fit(X, y)
    assert model.trees_[:6] == before
    # without a warm start, other data are allowed
    assert model.set_params(warm_start=False).fit(X[:50, :2], y[:50]).n_features_in_ == 2


def test_a_warm_start_without_an_earlier_forest() -> None:
    model = forest_of(RandomForestClassifier, warm_start=True).fit(X, LABELS)
    plain = forest_of(RandomForestClassifier).fit(X, LABELS)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


# -- data ------------------------------------------------------------------------------------------


@every_forest
def test_tables_that_are_none(cls) -> None:
    y = target_for(cls)
    model = forest_of(cls).fit(X, y)
    before = model.trees_
    infinite = X.copy()
    infinite[3, 2] = -np.inf
    for data, target in (
        (infinite, y), (sp.csr_array(infinite), y), (X[:, 0], y), (X[None], y), (X[:0], y[:0]),
        (X[:, :0], y), (X * 1j, y), (X, y[:10]), (X, None), (None, y), ("X", y), ({"a": 1}, y),
        (X, np.empty((80, 0))),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            model.fit(data, target)
        assert model.trees_ is before
    with pytest.raises(InvalidDataError, match=r"infinity.*row 3, column 2"):
        model.fit(infinite, y)


def test_targets_that_are_none() -> None:
    for bad in (np.nan, np.inf, -np.inf):
        y = NUMBERS.copy()
        y[5] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            forest_of(RandomForestRegressor).fit(X, y)
    for y in (NUMBERS, np.where(LABELS == 0, np.nan, 1.0), [None] * 80):
        with pytest.raises(ValueError, match=r"label|NaN|missing|None|class"):
            forest_of(RandomForestClassifier).fit(X, y)
    with pytest.raises(ValueError, match=r"could not convert|float"):
        forest_of(RandomForestRegressor).fit(X, np.array(["a"] * 80))


@every_forest
@pytest.mark.parametrize(
    ("weight", "named"),
    [
        (-np.ones(80), "negative"), (np.full(80, np.nan), "NaN"), (np.full(80, np.inf), "infinity"),
        (np.zeros(80), "zero for all"), (np.ones(3), "shape"), (np.ones((80, 2)), "1D"),
        (["a"] * 80, "could not convert|weight"),
    ],
)  # fmt: skip
def test_weights_that_are_none(cls, weight, named) -> None:
    with pytest.raises(ValueError, match=named):
        forest_of(cls).fit(X, target_for(cls), weight)


@every_forest
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e-3, 0.5, 100.0, 2e7, 1.5e200, 1.7e308])
@pytest.mark.sampled(20)
def test_weights_of_any_size(cls, bootstrap, weight) -> None:
    y, own = target_for(cls), np.full(80, weight)
    with_oob = bootstrap and weight != 2e7  # with so many copies, none of 80 rows is left out
    model = forest_of(cls, 12, bootstrap=bootstrap, oob_score=with_oob)
    answer(model, X, y, own)
    alike = answer(clone(model).set_params(min_samples_leaf=2, max_depth=4), X, y, own)
    assert alike.score(X, y) > 0.5
    if not bootstrap:
        assert answers(model, X) == pytest.approx(answers(clone(model).fit(X, y), X), rel=1e-9)


@every_forest
@pytest.mark.parametrize(
    "weight", [10.0 ** np.linspace(-200, 200, 80), np.where(np.arange(80) == 3, 1e20, 1.0)]
)
def test_weights_of_all_sizes_at_once(cls, weight) -> None:
    y, heaviest = target_for(cls), int(np.argmax(weight))
    with only_warnings(DataWarning):
        drawn = forest_of(cls, 30, bootstrap=True, oob_score=True).fit(X, y, weight)
        whole = forest_of(cls, 5, bootstrap=False).fit(X, y, weight)
        assert np.isfinite(answers(drawn, X)).all()
        assert np.isfinite(answers(whole, X)).all()
    assert all((rows == heaviest).mean() > 0.9 for rows in drawn.estimators_samples_)
    assert drawn.predict(X)[heaviest] == pytest.approx(y[heaviest], rel=1e-14)
    assert whole.predict(X) == pytest.approx(y, rel=1e-14)


EDGES = {
    "neighbours": np.nextafter(1.0, 2.0) ** np.arange(8),
    "denormals": np.arange(1, 9) * 5e-324,
    "largest": np.array([-1.7e308, -1e308, -1.0, 0.0, 1.0, 1e308, 1.7e308, 1.79e308]),
    "all sizes": 10.0 ** np.linspace(-307, 308, 8),
    "beyond single precision": 2.0**52 + np.arange(8.0),
    "around zero": np.array([-1e-300, -5e-324, 0.0, 5e-324, 1e-300, 1e-200, 1.0, 1e300]),
}


@every_forest
@pytest.mark.parametrize("case", EDGES)
def test_values_however_close_or_far(cls, case) -> None:
    """Without bootstrap, trees of unlimited depth distinguish all values."""
    rows = np.repeat(EDGES[case], 3)[:, None]
    y = np.repeat(np.arange(8) % 3, 3)
    y = y if cls in OF_CLASSES else y.astype(float)
    model = answer(forest_of(cls, bootstrap=False), rows, y)
    assert np.array_equal(model.predict(rows), y)
    assert np.array_equal(answer(forest_of(cls, 3), -rows, y).predict(-rows) >= 0, y >= 0)


@every_forest
def test_nothing_to_learn(cls) -> None:
    y = target_for(cls)
    constant = answer(forest_of(cls), np.ones((80, 3)), y)
    assert {len(tree) for tree in constant.trees_} == {1}
    assert np.ptp(answers(constant, np.arange(6.0).reshape(2, 3)), axis=0).max() == 0.0
    missing = answer(forest_of(cls), np.full((80, 2), np.nan), y)
    assert {len(tree) for tree in missing.trees_} == {1}
    same = answer(forest_of(cls, 40, bootstrap=True, oob_score=True), X, np.full(80, 7))
    assert (same.predict(X) == 7).all()
    assert {len(tree) for tree in same.trees_} == {1}
    assert same.oob_curve_[-1] == 0.0
    signs = answer(forest_of(cls), np.where(np.arange(80) % 2, 0.0, -0.0)[:, None], y)
    assert {len(tree) for tree in signs.trees_} == {1}


@every_forest
def test_one_and_two_rows(cls) -> None:
    labels = np.array(["a", "b"]) if cls in OF_CLASSES else np.array([3.0, 4.0])
    for bootstrap in (False, True):
        settings = {"bootstrap": bootstrap, "oob_score": bootstrap}
        one = answer(forest_of(cls, 5, **settings), [[1.0]], labels[:1])
        assert one.predict([[5.0], [np.nan]]).tolist() == [labels[0]] * 2
        two = answer(forest_of(cls, 60, **settings), [[1.0], [2.0]], labels)
        assert set(two.predict([[0.0], [9.0]])) <= set(labels) or cls not in OF_CLASSES
        assert len(one.estimators_samples_[0]) == 1
    alone = answer(forest_of(cls, "auto", bootstrap=True), [[1.0]], labels[:1])
    assert len(alone) < 10_000


def test_as_many_classes_as_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there are many classes
        model = forest_of(ExtraTreesClassifier, 3).fit(X, np.arange(80))
    assert np.array_equal(model.predict(X), np.arange(80))


def test_a_class_without_weight_is_left_out_and_said_so() -> None:
    with pytest.warns(DataWarning, match="class 1 have sample_weight 0"):
        model = forest_of(RandomForestClassifier).fit(X, LABELS, np.where(LABELS == 1, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 2]
    only = forest_of(RandomForestClassifier).fit(X[LABELS != 1], LABELS[LABELS != 1])
    assert np.array_equal(model.predict_proba(X), only.predict_proba(X))


@every_forest
def test_trees_as_deep_as_there_are_rows(cls) -> None:
    n = GREEDY_DEPTH + 300
    rows = np.arange(float(n))[:, None]
    y = np.arange(n) % 2 if cls in OF_CLASSES else 1.5 ** (rows[:, 0] - n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # that nodes were halved
        model = forest_of(cls, 2, bootstrap=False).fit(rows, y)
    assert np.array_equal(model.predict(rows), y)
    twin = pickle.loads(pickle.dumps(model))
    assert np.array_equal(twin.apply(rows), model.apply(rows))
    assert model.decision_path(rows[::50])[0].shape[0] == n // 50
    assert np.isfinite(model.feature_importances_).all()


@every_forest
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_another_thread_may_write_to_the_data(cls, kind) -> None:
    """The result is arbitrary, but nothing crashes."""
    rng = np.random.default_rng(0)
    table = kind(rng.integers(0, 50, (600, 5)).astype(float))
    y = target_for(cls, rng.integers(0, 3, 600), rng.standard_normal(600))
    spoiled = (table.indices, table.indptr) if sp.issparse(table) else (table,)
    stop, ended = threading.Event(), 0

    def vandal():
        while not stop.is_set():
            for array in spoiled:
                array[:] = rng.integers(-(2**31), 2**31, array.shape)

    thread = threading.Thread(target=vandal)
    thread.start()
    try:
        for _ in range(4):
            with suppress(ValueError):  # a spoiled table was noticed
                model = forest_of(cls, 3, max_depth=6).fit(table, y)
                assert not complaints(model)
            ended += 1
    finally:
        stop.set()
        thread.join()
    assert ended == 4


def test_tables_are_not_written_to() -> None:
    for data in (X.copy(), np.asfortranarray(X), sp.csr_array(np.round(X))):
        parts = (data.data, data.indices, data.indptr) if sp.issparse(data) else (data,)
        for part in parts:
            part.flags.writeable = False
        y, weight = LABELS.copy(), np.ones(80)
        y.flags.writeable = weight.flags.writeable = False
        model = forest_of(RandomForestClassifier, 30, oob_score=True).fit(data, y, weight)
        assert np.array_equal(model.predict(data), model.predict(data.copy()))


# -- prediction ------------------------------------------------------------------------------------


METHODS = ("predict", "predict_proba", "predict_log_proba", "apply", "decision_path", "score")


def called(model, method, data):
    function = getattr(model, method)
    return function(data, [0] * len(data)) if method == "score" else function(data)


@every_forest
def test_nothing_works_before_the_fit(cls) -> None:
    model = forest_of(cls)
    for method in METHODS:
        if hasattr(cls, method):
            with pytest.raises(NotFittedError):
                called(model, method, X)
    for name in ("feature_importances_", "estimators_", "estimators_samples_", "estimator_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)
    for use in (len, list, lambda m: m[0], lambda m: m[:2], lambda m: m + m):
        with pytest.raises(NotFittedError):
            use(model)
    assert "RandomForest" in repr(model) or "ExtraTrees" in repr(model)
    with pytest.raises(NotFittedError):
        model + clone(model).fit(X, target_for(cls))


@every_forest
def test_rows_that_are_none(cls) -> None:
    model = forest_of(cls).fit(X, target_for(cls))
    infinite = X.copy()
    infinite[7, 1] = np.inf
    for data in (
        X[:, :3], np.c_[X, X], X[0], X[None], X[:0], None, "X", X * 1j, infinite, -infinite,
        sp.csr_array(infinite), sp.csr_array(X[:, :3]), np.array([["a"] * 4]),
    ):  # fmt: skip
        for method in ("predict", "apply", "decision_path"):
            with pytest.raises((ValueError, TypeError)):
                called(model, method, data)
    with pytest.raises(InvalidDataError, match=r"infinity.*row 7, column 1"):
        model.predict(infinite)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        model.predict(X[:, :3])
    last = np.zeros((5000, 4))
    last[-1, -1] = np.inf  # in another piece than the first rows
    with pytest.raises(InvalidDataError, match="row 4999, column 3"):
        model.predict(last)


@every_forest
def test_rows_never_seen_before(cls) -> None:
    model = forest_of(cls).fit(X, target_for(cls))
    for row in (np.full((1, 4), np.nan), np.full((1, 4), 1.79e308), np.full((1, 4), -1.79e308),
                np.full((1, 4), 5e-324), np.array([[np.nan, 1e308, -1e308, 0.0]])):  # fmt: skip
        with only_warnings():
            assert np.isfinite(answers(model, row)).all()
            assert np.isfinite(answers(model, sp.csr_array(row))).all()
        each = np.stack([answers(tree, row) for tree in model])
        assert answers(model, row) == pytest.approx(each.mean(axis=0), rel=1e-12, abs=1e-15)


def test_malformed_sparse_tables() -> None:
    model = forest_of(RandomForestClassifier).fit(X, LABELS)
    good = sp.csr_array(np.round(X))
    for name, at, value in (
        ("indices", 0, 99), ("indices", 0, -1), ("indptr", 3, 10**6), ("indptr", 3, -5),
    ):  # fmt: skip
        bad = good.copy()
        getattr(bad, name)[at] = value
        for use in (model.predict, model.apply, lambda data: model.fit(data, LABELS)):
            with pytest.raises(ValueError, match=r"sparse|index|indices|indptr"):
                use(bad)
    assert model.predict(good).shape == (80,)


@every_forest
def test_many_threads_predict_at_once(cls) -> None:
    model = forest_of(cls, 8, n_jobs=2).fit(X, target_for(cls))
    rows = np.random.default_rng(0).standard_normal((3000, 4))
    expected, wrong = answers(model, rows), []

    def ask():
        for _ in range(5):
            if not np.array_equal(answers(model, rows), expected):
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_threads_fit_at_once() -> None:
    expected = pickle.dumps(forest_of(RandomForestClassifier).fit(X, LABELS).trees_)
    found = []

    def fit():
        model = forest_of(RandomForestClassifier, n_jobs=2).fit(X, LABELS)
        found.append(pickle.dumps(model.trees_))

    threads = [threading.Thread(target=fit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


# -- altered state ---------------------------------------------------------------------------------


@every_forest
def test_trees_that_are_none(cls) -> None:
    model = forest_of(cls, 3).fit(X, target_for(cls))
    tree = DecisionTreeClassifier().fit(X, LABELS)
    for trees in ([], None, "abc", [None], [tree], {}, [*model.trees_, 3]):
        other = copy.copy(model)
        other.trees_ = trees
        with pytest.raises(ValueError, match="trees_ is not a list of trees"):
            other.predict(X)
        with pytest.raises((ValueError, TypeError)):
            other.apply(X)
    assert answers(model, X).shape[0] == 80


@every_forest
def test_trees_of_another_forest(cls) -> None:
    wide = np.random.default_rng(0).standard_normal((300, 40))
    other = forest_of(cls, bootstrap=True).fit(wide, target_for(cls, wide[:, 39] > 0, wide[:, 39]))
    other.predict(wide)
    model = forest_of(cls).fit(X, target_for(cls))
    answers(model, X)
    mixed = copy.copy(model)
    mixed.trees_ = [*model.trees_, *other.trees_]
    for method in ("predict", "apply"):
        with pytest.raises(ValueError, match="not sound"):
            called(mixed, method, X)
    narrow = copy.copy(model)
    narrow.n_features_in_ = 1
    with pytest.raises(ValueError, match="not sound"):
        narrow.predict(X[:, :1])
    if cls in OF_CLASSES:
        fewer = copy.copy(model)
        fewer.kind_ = model.kind_._replace(n_classes=(2,))
        with pytest.raises(ValueError, match="not sound"):
            fewer.predict_proba(X)


def test_arrays_of_trees_cannot_be_written_to() -> None:
    tree = forest_of(RandomForestClassifier).fit(X, LABELS).trees_[0]
    for field in fields(tree):
        own = getattr(tree, field.name)
        if own is not None and own.size:
            with pytest.raises(ValueError, match="read-only"):
                own[0] = 1
    with pytest.raises(AttributeError):
        tree.nodes = tree.nodes


def altered(tree, rng):
    """Change a bit, a number or the length of an array, one to three times."""
    parts = {field.name: getattr(tree, field.name) for field in fields(tree)}
    for name in rng.choice(["nodes", "nodes", "nodes", "weight", "values", "words"], 3):
        own = parts[name].copy()
        if not own.size:
            continue
        flat = own.reshape(-1)
        place = rng.integers(own.size)
        way = rng.integers(5)
        if way == 0:
            flat.view(np.uint8)[rng.integers(own.nbytes)] ^= np.uint8(1 << rng.integers(8))
        elif way == 1:
            flat[place] = rng.choice([0, 1, 7, 1000])
        elif way == 2 and own.dtype.kind == "f":
            flat[place] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1.0])
        elif way == 3:
            own = own[: rng.integers(len(own) + 1)]
        parts[name] = own
    return PackedTree(**parts)


ALTERED = {
    "classes": (RandomForestClassifier, {}, LABELS),
    "small trees": (RandomForestClassifier, {"max_depth": 3}, LABELS),
    "numbers": (RandomForestRegressor, {}, NUMBERS),
    "medians": (RandomForestRegressor, {"criterion": "absolute_error"}, NUMBERS),
    "outputs": (RandomForestRegressor, {}, np.c_[NUMBERS, -NUMBERS]),
    "outputs of classes": (RandomForestClassifier, {}, np.c_[LABELS, LABELS > 1]),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_trees_are_found_out_or_do_no_harm(name) -> None:
    cls, settings, y = ALTERED[name]
    rng = np.random.default_rng(0)
    data = X.copy()
    data[:, 3] = rng.integers(0, 40, 80)
    data[rng.random(data.shape) < 0.05] = np.nan
    model = forest_of(cls, 1, categorical_features=[3], **settings).fit(data, y)
    tree, refused = model.trees_[0], 0
    for _ in range(400):
        model.trees_ = [altered(tree, rng)]
        try:
            values = answers(model, data)
        except ValueError as error:
            assert "not sound" in str(error)  # noqa: PT017
            refused += 1
        else:
            for own in values if isinstance(values, list) else [values]:
                assert np.isfinite(own).all()
            assert (model.apply(data) < max(len(tree), 1)).all()
    assert 100 < refused < 400


def test_children_and_leaves_that_lead_nowhere() -> None:
    model = forest_of(RandomForestClassifier, 1).fit(X, LABELS)
    tree = model.trees_[0]
    n = len(tree)
    leaf, inner = int(np.flatnonzero(tree.is_leaf)[0]), int(np.flatnonzero(~tree.is_leaf)[-1])
    links = {
        "a leaf asks": (2 * leaf + 1, leaf | (0xFFFFFFF << 32)),
        "beyond the end": (2 * inner + 1, n - 1),
        "far beyond": (2 * inner + 1, 10**6),
        "back to the root": (2 * inner + 1, 0),
        "a feature too many": (2 * inner + 1, int(tree.left[inner]) | (4 << 32)),
        "a set that is not there": (2 * inner + 1, int(tree.left[inner]) | (1 << 60)),
        "the sign": (2 * inner + 1, int(tree.left[inner]) - 2**63),
        "a class too many": (2 * leaf, int(np.float64(1e6).view(np.int64))),
        "a class below zero": (2 * leaf, int(np.float64(-1.0).view(np.int64))),
        "no value": (2 * leaf, int(np.float64(np.nan).view(np.int64))),
    }
    for name, (place, word) in links.items():
        nodes = tree.nodes.copy()
        nodes[place] = word
        model.trees_ = [replace(tree, nodes=nodes)]
        for method in ("predict", "apply", "decision_path"):
            with pytest.raises(ValueError, match="not sound"):
                called(model, method, X)
        assert name


def test_pickles_of_another_version(monkeypatch) -> None:
    model = forest_of(RandomForestClassifier).fit(X, LABELS)
    state = model.__getstate__() | {"_margrove_version": "0.0.1"}
    other = RandomForestClassifier.__new__(RandomForestClassifier)
    with pytest.warns(InconsistentVersionWarning, match=r"0\.0\.1"):
        other.__setstate__(state)
    assert np.array_equal(other.predict(X), model.predict(X))


def test_other_parameters_after_the_fit_change_no_prediction() -> None:
    for cls in (RandomForestClassifier, RandomForestRegressor):
        model = forest_of(cls, 6).fit(X, target_for(cls))
        expected, leaves = answers(model, X), model.apply(X)
        model.set_params(n_estimators=3, criterion="nonsense", max_depth=-1, bootstrap=None,
                         random_state="x", max_features=99, oob_score=True)  # fmt: skip
        assert np.array_equal(answers(model, X), expected)
        assert np.array_equal(model.apply(X), leaves)
        assert len(model) == 6
        assert model.feature_importances_.sum() == pytest.approx(1.0)


# -- interrupts ------------------------------------------------------------------------------------


FILES = (forest_grower.__file__, out_of_bag.__file__, forest_tree_builder.__file__)


def fit_interrupted(model, data, y, moment):
    return lines_until_interrupt(model.fit, data, y, files=FILES, moment=moment)


GROWING = {
    "classes": RandomForestClassifier(6, oob_score=True),
    "drawn thresholds": ExtraTreesClassifier(6),
    "numbers": RandomForestRegressor(6, oob_score=True, max_leaf_nodes=6),
    "pruned": RandomForestClassifier(6, ccp_alpha=0.02),
    "medians": RandomForestRegressor(6, criterion="absolute_error"),
    "balanced": RandomForestClassifier(6, class_weight="balanced_subsample"),
}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.sampled(2)
def test_an_interrupt_at_any_line_of_growing(name) -> None:
    """The old forest stays, or the new one has the first trees of an uninterrupted fit."""
    model = clone(GROWING[name]).set_params(random_state=0, n_jobs=1, on_interrupt="keep")
    y = target_for(type(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # six trees have seen all of some rows
        old = clone(model).fit(X[:20], y[:20])
        whole = clone(model)
        lines = fit_interrupted(whole, X, y, -1)
    expected = [pickle.dumps(tree) for tree in whole.trees_]
    kept = set()
    for moment in range(0, len(lines), 2):
        other = copy.copy(old)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert len(fit_interrupted(other, X, y, moment)) == moment
        if other.trees_ is old.trees_:
            continue
        assert InterruptedFitWarning in {w.category for w in told}
        n = len(other.trees_)
        assert [pickle.dumps(tree) for tree in other.trees_] == expected[:n]
        assert np.isfinite(answers(other, X)).all()
        kept.add(n)
    assert kept >= {1, 2, 3, 4, 5}


def test_an_interrupt_with_several_threads() -> None:
    """The trees that are kept are always the first ones, without a gap."""
    rng = np.random.default_rng(0)
    data, y = rng.standard_normal((1000, 6)), rng.integers(0, 2, 1000)
    model = forest_of(RandomForestClassifier, 40, n_jobs=2, on_interrupt="keep")
    n_lines = len(fit_interrupted(model, data, y, -1))
    whole = [pickle.dumps(tree) for tree in model.trees_]
    for moment in np.linspace(n_lines // 4, n_lines - 1, 25).astype(int):
        other = clone(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterruptedFitWarning)
            fit_interrupted(other, data, y, moment)
        if hasattr(other, "trees_"):
            assert [pickle.dumps(tree) for tree in other.trees_] == whole[: len(other)]

    def interrupt(progress):
        if progress.done == 5:
            raise KeyboardInterrupt

    with watch(on_progress=interrupt), pytest.warns(InterruptedFitWarning, match="after 5 trees"):
        other = clone(model).fit(data, y)
    assert [pickle.dumps(tree) for tree in other.trees_] == whole[:5]
