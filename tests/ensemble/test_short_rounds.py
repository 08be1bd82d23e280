"""Several rounds in one compiled call are the rounds that run one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from margrove import HistGradientBoostingClassifier, HistGradientBoostingRegressor, watch
from margrove._runtime import kernel
from margrove.ensemble.gradient.hist import rounds as gradient_rounds
from margrove.ensemble.gradient.hist.binning import bins_and_table
from margrove.ensemble.gradient.hist.binning import tables as gradient_tables
from margrove.ensemble.gradient.hist.partitioning import code_of
from margrove.ensemble.gradient.hist.rounds import GradientRounds
from margrove.ensemble.gradient.hist.settings import GradientSettings
from margrove.ensemble.gradient.hist.short_rounds import few_rows, rounds_at_once
from margrove.ensemble.gradient.losses import (
    gradient_loss_of,
    mean_of_rows,
    mean_of_sums,
    row_sums,
    sum_rows,
)
from margrove.ensemble.gradient.training_data import TrainingRows


def with_holes(X):
    X = X.copy()
    X[np.random.default_rng(3).random(X.shape) < 0.1] = np.nan
    return X


def categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 40, 400), rng.normal(size=400), rng.integers(0, 3, 400)])
    return X.astype(float), np.sin(X[:, 0]) + X[:, 1]


def crowded():
    """Columns of few values, most of which are zero, that cannot share bytes."""
    rng = np.random.default_rng(1)
    X = rng.integers(1, 4, (500, 30)) * (rng.random((500, 30)) < 0.15)
    return X.astype(float), X[:, :9].sum(axis=1) + rng.normal(size=500)


def indicators():
    labels = np.random.default_rng(2).integers(0, 12, 300)
    return np.eye(12)[labels], np.sin(labels) + np.random.default_rng(3).normal(size=300)


def one_far_away():
    X, y = load_diabetes(return_X_y=True)
    y[7] = 1e7
    return X, y


TABLES = {
    "numbers": (lambda: load_diabetes(return_X_y=True), None),
    "two classes": (lambda: load_breast_cancer(return_X_y=True), 2),
    "three classes": (lambda: load_iris(return_X_y=True), 3),
    "categories": (categories, None),
    "crowded": (crowded, None),
    "indicators": (indicators, None),
    "one far away": (one_far_away, None),
}
SETTINGS = {
    "default": {},
    "small leaves": {"min_samples_leaf": 1, "max_leaf_nodes": None, "max_depth": 5},
    "level by level": {"level_wise": True, "max_leaf_nodes": 7, "min_samples_leaf": 4},
    "penalty": {"l2_regularization": 3.0, "min_samples_leaf": 2, "learning_rate": 1.0},
}


def rounds_of(table, *, holes=False, weight=None, copies=None, n_threads=1, **settings):
    load, n_classes = TABLES[table]
    X, y = load()
    X, y = with_holes(X) if holes else X, np.asarray(y, float)
    n = len(y)
    n_categories = np.zeros(X.shape[1], np.int64)
    if table == "categories":
        n_categories[[0, 2]] = 40, 3
    given = np.random.default_rng(5)
    rows = TrainingRows(
        y, given.random(n) if weight else None, given.integers(1, copies, n) if copies else None
    )
    loss = gradient_loss_of("log_loss" if n_classes else "squared_error", n_classes=n_classes)
    bins, binned = bins_and_table(X, n_categories, weight=rows.total_weight)
    raw = np.repeat(rows.start(loss)[:, None], n, axis=1)
    return GradientRounds(
        bins, binned, rows, raw, loss, GradientSettings(**settings), 12, n_threads=n_threads
    )


def run(process, *, at_once=True):
    """All rounds; how many each call has run."""
    assert process._at_once is not None
    if not at_once:
        process._at_once = None
    lengths = []
    while not process.finished:
        before = process.rounds
        process.advance(1e12)
        lengths.append(process.rounds - before)
    return lengths


def assert_same(one, other) -> None:
    assert np.array_equal(one.raw, other.raw)
    assert np.array_equal(one.all_losses(), other.all_losses())
    for mine, yours in zip(one.trees, other.trees, strict=True):
        for tree, twin in zip(mine, yours, strict=True):
            for name in ("nodes", "weight", "words", "impurity", "decrease", "values"):
                a, b = getattr(tree, name), getattr(twin, name)
                assert a.dtype == b.dtype
                assert np.array_equal(a, b)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("table", TABLES)
def test_rounds_at_once_are_those_one_by_one(table, settings, monkeypatch) -> None:
    monkeypatch.setattr(gradient_rounds, "is_worth_lists", lambda *given: True)
    for given in ({}, {"holes": True}, {"weight": True}, {"copies": 3}):
        one, other = (rounds_of(table, **given, **SETTINGS[settings]) for _ in range(2))
        run(one)
        run(other, at_once=False)
        assert any(tree.n_leaves > 1 for own in one.trees for tree in own)
        assert_same(one, other)


def test_constraints() -> None:
    signs = np.array([0, 1, -1, 0, 0, 1, 0, 0, 0, 0])
    sets = np.zeros((2, 10), np.bool_)
    sets[0, :5] = sets[1, 4:] = True
    for settings in ({"signs": signs}, {"sets": sets}, {"signs": signs, "sets": sets}):
        one, other = (rounds_of("numbers", holes=True, **settings) for _ in range(2))
        run(one)
        run(other, at_once=False)
        assert_same(one, other)


@pytest.mark.parametrize("table", ["two classes", "numbers"])
def test_threads_change_nothing(table, monkeypatch) -> None:
    monkeypatch.setattr(gradient_rounds, "available_cores", lambda: 3)
    monkeypatch.setattr("margrove.ensemble.gradient.hist.local_trees._CELLS_TO_SHARE_A_TREE", 1)
    monkeypatch.setattr(gradient_rounds, "is_worth_lists", lambda *given: True)
    one, other = (rounds_of(table, holes=True, n_threads=k) for k in (1, 3))
    run(one)
    run(other)
    assert len(one._at_once._lists.groups) == 2 < len(other._at_once._lists.groups)
    assert_same(one, other)


@pytest.mark.parametrize("table", TABLES)
def test_lists_have_the_codes_of_the_table_in_order(table) -> None:
    X = with_holes(TABLES[table][0]()[0])
    _, binned = bins_and_table(X, np.zeros(X.shape[1], np.int64))
    n, d = binned.n_rows, len(binned.features)
    lists = few_rows.sorted_lists(binned, np.array([0, d]))
    rows, codes = lists.entries & 0xFFFF, lists.entries >> 16
    code = getattr(code_of, "py_func", code_of)  # it is called by kernels only
    for place in range(d):
        assert sorted(rows[place]) == list(range(n))
        assert (np.diff(codes[place].astype(int)) >= 0).all()
        expected = [code(binned, place, row) for row in rows[place].tolist()]
        assert codes[place].tolist() == expected


def test_when_lists_are_worth_it(monkeypatch) -> None:
    def is_worth(X):
        _, table = bins_and_table(X, np.zeros(X.shape[1], np.int64))
        return few_rows.is_worth_lists(table, len(X), 20)

    rng = np.random.default_rng(0)
    assert is_worth(rng.normal(size=(300, 5))) is True
    assert not is_worth(rng.normal(size=(1100, 5)))
    assert not is_worth(rng.integers(0, 2, (500, 5)).astype(float))
    assert not is_worth(np.empty((300, 0)))
    X = rng.integers(1, 200, (400, 40)) * (rng.random((400, 40)) < 0.15)
    for most, expected in ((1 << 24, True), (0, False)):  # of lists of rows only
        monkeypatch.setattr(gradient_tables, "_MOST_BYTES_OF_LISTS", most)
        assert is_worth(X.astype(float)) == expected


# -- what happens between two calls ----------------------------------------------------------------


def test_calls_run_twice_as_many_rounds_each_time() -> None:
    assert run(rounds_of("numbers")) == [1, 2, 4, 5]
    process = rounds_of("numbers")
    process._one_by_one = True
    assert run(process) == [1] * 12
    process = rounds_of("numbers")
    for _ in range(3):
        process.advance(1.0)
    assert process.rounds == 3
    assert len(process.losses) == 3
    process.prepare()  # begins a round
    assert len(process.losses) == 4
    run(process)
    whole = rounds_of("numbers")
    run(whole)
    assert_same(whole, process)


@pytest.mark.parametrize(
    "settings",
    [{"subsample": 0.5}, {"max_features": 0.5}, {"early_stopping": True},
     {"loss": "absolute_error"}, {"loss": "poisson"}],
)  # fmt: skip
def test_rounds_that_need_python_run_one_by_one(settings, monkeypatch) -> None:
    monkeypatch.setattr(rounds_at_once.RoundsAtOnce, "run", lambda *given: 1 / 0)
    X, y = load_diabetes(return_X_y=True)
    model = HistGradientBoostingRegressor(max_iter=4, **settings).fit(X, y)
    assert model.n_iter_ == 4


def test_listeners_hear_of_every_round() -> None:
    X, y = load_iris(return_X_y=True)
    heard = []
    with watch(on_progress=lambda progress: heard.append(progress.done)):
        HistGradientBoostingClassifier(max_iter=30).fit(X, y)
    assert heard == list(range(1, 31))


@pytest.mark.parametrize("has_weight", [False, True])
def test_means_of_rounds_are_those_of_rows(has_weight) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 70, 40_000):
        weight = rng.random(n) * (rng.random(n) < 0.8) if has_weight else None
        values = [rng.normal(size=n) ** 2 * 10.0**k for k in (-300, 0, 5, 290)]
        values += [np.zeros(n), np.append(values[1][1:], np.inf), np.append(values[1][1:], np.nan)]
        sums = row_sums(weight, n, len(values))
        for number, own in enumerate(values):
            _sum_rows(own.copy(), sums, number)
            expected = mean_of_rows(own.copy(), weight)
            found = mean_of_sums(sums, number)
            assert found == expected or (np.isnan(found) and np.isnan(expected))


@kernel
def _sum_rows(values, sums, number):
    sum_rows(values, sums, number)
