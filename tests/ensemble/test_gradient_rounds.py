"""Rounds of gradient boosting: losses decrease; slices, threads and row order do not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.ensemble import HistGradientBoostingRegressor as Peer

from margrove.ensemble.gradient.boosted_trees import kind_of
from margrove.ensemble.gradient.early_stopping import HeldOut, Monitor, SoFar, add_trees
from margrove.ensemble.gradient.hist import local_trees
from margrove.ensemble.gradient.hist import rounds as gradient_rounds
from margrove.ensemble.gradient.hist.binning.tables import bins_and_table
from margrove.ensemble.gradient.hist.rounds import GradientRounds
from margrove.ensemble.gradient.hist.settings import GradientSettings
from margrove.ensemble.gradient.losses import gradient_loss_of
from margrove.ensemble.gradient.training_data import TrainingRows

NUMBERS = kind_of(np.zeros(100, np.int64))
REGRESSIONS = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma",
               "tweedie")  # fmt: skip


@pytest.fixture(autouse=True)
def _divisions_are_silent():
    """Division by zero is silent, as in compiled code."""
    with np.errstate(divide="ignore", invalid="ignore"):
        yield


def rounds_of(X, y, loss, rounds=10, *, weight=None, copies=None, n_threads=1, draw=None,
              monitor=None, **settings):  # fmt: skip
    X, y = np.ascontiguousarray(X, float), np.asarray(y, float)
    rows = TrainingRows(y, weight, copies)
    bins, table = bins_and_table(X, np.zeros(X.shape[1], np.int64), weight=rows.total_weight)
    start = loss.start(y, rows.total_weight)
    return GradientRounds(
        bins, table, rows, np.repeat(start[:, None], len(y), axis=1), loss,
        GradientSettings(**settings), rounds, draw=draw or (lambda number: None),
        monitor=monitor, n_threads=n_threads,
    )  # fmt: skip


def boosted(*given, work=1e12, **settings):
    process = rounds_of(*given, **settings)
    while not process.finished:
        process.advance(work)
    return process


def loss_of(name, n_classes=None):
    return gradient_loss_of(name, n_classes=n_classes)


def assert_same(one, other) -> None:
    assert np.array_equal(one.raw, other.raw)
    assert one.rounds == other.rounds
    for mine, yours in zip(one.trees, other.trees, strict=True):
        for tree, twin in zip(mine, yours, strict=True):
            assert np.array_equal(tree.nodes, twin.nodes)
            assert np.array_equal(tree.words, twin.words)
            assert np.array_equal(tree.weight, twin.weight)
            assert np.array_equal(tree.decrease, twin.decrease)


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_loss_of_numbers_falls(name) -> None:
    X, y = load_diabetes(return_X_y=True)
    process = boosted(X, y, loss_of(name), 20)
    losses = process.all_losses()
    assert len(losses) == 21
    if name != "huber":  # its delta changes from round to round
        assert (np.diff(losses) < 0).all()
    found = process.loss.link_inverse(process.raw)
    if name != "quantile":
        assert np.abs(y - found).mean() < 0.75 * np.abs(y - np.median(y)).mean()
    else:
        assert (y <= found).mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("load", "n_classes"), [(load_breast_cancer, 2), (load_iris, 3)])
def test_the_loss_of_classes_falls(load, n_classes) -> None:
    X, y = load(return_X_y=True)
    process = boosted(X, y, loss_of("log_loss", n_classes), 30)
    losses = process.all_losses()
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.2 * losses[0]
    shares = process.loss.link_inverse(process.raw)
    assert (np.argmax(shares, axis=1) == y).mean() > 0.97
    assert [len(own) for own in process.trees] == [1 if n_classes == 2 else 3] * 30


@pytest.mark.nojit
@pytest.mark.parametrize("settings", [{}, {"level_wise": True}, {"max_leaf_nodes": None}])
def test_a_first_round_by_hand(settings) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    process = boosted(X, y, loss_of("squared_error"), 1, learning_rate=0.3, min_samples_leaf=5,
                      l2_regularization=1.0, **settings)  # fmt: skip
    (tree,) = process.trees[0]
    assert tree.n_leaves > 2
    expected = np.full(60, math.fsum(y) / 60)
    leaves = process.raw[0] - expected
    for value in np.unique(leaves):
        rows = leaves == value
        assert rows.sum() >= 5
        step = 0.3 * math.fsum(y[rows] - expected[rows]) / (rows.sum() + 1.0)
        assert value == pytest.approx(step, rel=1e-12)
    before, after = (0.5 * np.mean((own - y) ** 2) for own in (expected, process.raw[0]))
    assert process.all_losses() == pytest.approx([before, after], rel=1e-12)


@pytest.mark.parametrize("name", ["absolute_error", "quantile"])
def test_leaves_of_other_losses_are_quantiles_of_their_residuals(name) -> None:
    X, y = load_diabetes(return_X_y=True)
    loss = loss_of(name)
    start = loss.start(y, None)[0]
    process = boosted(X, y, loss, 1, learning_rate=0.5)
    moved = process.raw[0] - start
    values = np.unique(moved.round(9))
    assert len(values) > 5
    for value in values:
        rows = np.abs(moved - value) < 1e-6
        assert value == pytest.approx(0.5 * np.median(y[rows] - start), abs=1e-6)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "absolute_error", "iris"])
def test_trees_give_the_scores_of_the_training(name) -> None:
    load, loss = {
        "squared_error": (load_diabetes, loss_of("squared_error")),
        "absolute_error": (load_diabetes, loss_of("absolute_error")),
        "log_loss": (load_breast_cancer, loss_of("log_loss", 2)),
        "iris": (load_iris, loss_of("log_loss", 3)),
    }[name]
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(0)
    drawn = {t: np.sort(rng.permutation(len(y))[: len(y) // 2]).astype(np.int32) for t in range(6)}
    for draw in (None, drawn.__getitem__):
        process = boosted(X, y, loss, 6, draw=draw, min_samples_leaf=5)
        raw = np.repeat(loss.start(y.astype(float), None)[:, None], len(y), axis=1)
        for own in process.trees:
            for score, tree in enumerate(own):
                tree.require_sound(kind_of(np.zeros(X.shape[1], np.int64)), X.shape[1])
                add_trees([tree], X, NUMBERS, raw[score])
        assert np.array_equal(raw, process.raw)


# -- what does not matter --------------------------------------------------------------------------


CASES = {
    "numbers": (load_diabetes, "squared_error", None, {}),
    "medians": (load_diabetes, "absolute_error", None, {}),
    "two classes": (load_breast_cancer, "log_loss", 2, {"max_leaf_nodes": None}),
    "three classes": (load_iris, "log_loss", 3, {"min_samples_leaf": 5}),
    "some features": (load_diabetes, "squared_error", None, {"tried": 0.4, "seed": 5}),
    "lopsided": (load_digits, "squared_error", None, {"level_wise": True}),
}


def case_of(name):
    load, loss, n_classes, settings = CASES[name]
    X, y = load(return_X_y=True)
    if name == "lopsided":  # too uneven for packed words
        X, y = X[:, 20:30], np.where(np.arange(len(y)) == 5, 1e6, y)
    return X, y, loss_of(loss, n_classes), settings


@pytest.mark.parametrize("work", [1.0, 2e4])
@pytest.mark.parametrize("name", CASES)
def test_where_slices_end_does_not_matter(name, work) -> None:
    X, y, loss, settings = case_of(name)
    whole = boosted(X, y, loss, 4, **settings)
    sliced = boosted(X, y, loss, 4, work=work, **settings)
    assert whole.all_losses()[-1] < whole.all_losses()[0]
    assert_same(whole, sliced)
    assert np.array_equal(whole.all_losses(), sliced.all_losses())


@pytest.mark.parametrize("n_threads", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_threads_change_nothing(name, n_threads, monkeypatch) -> None:
    monkeypatch.setattr(local_trees, "_CELLS_TO_SHARE_A_TREE", 1)
    monkeypatch.setattr(gradient_rounds, "available_cores", lambda: n_threads)
    X, y, loss, settings = case_of(name)
    one, other = (boosted(X, y, loss, 4, n_threads=k, **settings) for k in (1, n_threads))
    assert other._grower._buffers[0].n_cores == n_threads
    assert_same(one, other)
    assert np.array_equal(one.all_losses(), other.all_losses())


def test_threads_change_nothing_in_a_large_table(monkeypatch) -> None:
    """There are enough rows for threads to partition and to sum them together."""
    monkeypatch.setattr(gradient_rounds, "available_cores", lambda: 3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 3))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=len(X)) > 0).astype(float)
    weight = rng.random(len(X)) + 0.5
    loss = loss_of("log_loss", 2)
    runs = [boosted(X, y, loss, 3, weight=weight, n_threads=k) for k in (1, 2, 3)]
    assert [own._grower._buffers[0].n_cores for own in runs] == [1, 2, 3]
    for other in runs[1:]:
        assert_same(runs[0], other)
        assert np.array_equal(runs[0].all_losses(), other.all_losses())


def test_small_trees_of_many_classes_grow_side_by_side(monkeypatch) -> None:
    monkeypatch.setattr(gradient_rounds, "available_cores", lambda: 2)
    monkeypatch.setattr(local_trees, "_TREES_AT_ONCE", 3)
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    loss = loss_of("log_loss", 10)
    one, other = (boosted(X, y, loss, 3, n_threads=k, tried=0.5) for k in (1, 2))
    assert len(other._grower._buffers) == 2
    assert_same(one, other)


@pytest.mark.parametrize("name", CASES)
def test_the_order_of_rows_does_not_matter(name) -> None:
    X, y, loss, settings = case_of(name)
    order = np.random.default_rng(0).permutation(len(y))
    weight = np.random.default_rng(1).random(len(y))
    for own in (None, weight):
        one = boosted(X, y, loss, 5, weight=own, **settings)
        mixed = None if own is None else own[order]
        other = boosted(X[order], y[order], loss, 5, weight=mixed, **settings)
        assert np.array_equal(one.raw[:, order], other.raw)


@pytest.mark.parametrize("most", [3, 40])
@pytest.mark.parametrize("name", CASES)
def test_copies_are_rows_repeated(name, most) -> None:
    X, y, loss, settings = case_of(name)
    copies = np.random.default_rng(2).integers(1, most + 1, len(y))
    rows = np.repeat(np.arange(len(y)), copies)
    one = boosted(X, y, loss, 5, copies=copies, **settings)
    other = boosted(X[rows], y[rows], loss, 5, **settings)
    assert np.array_equal(one.raw[:, rows], other.raw)
    assert one.all_losses() == pytest.approx(other.all_losses(), rel=1e-12)


# -- gradients of all sizes ------------------------------------------------------------------------


def test_one_target_far_away() -> None:
    """Packed words could not distinguish the other targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=3000)
    y[0] = 1e7
    process = rounds_of(X, y, loss_of("squared_error"), 40, min_samples_leaf=1, learning_rate=0.5)
    process.advance(1e12)
    assert process._grower._buffers[0].tree.state.is_wide[0] == 1
    while not process.finished:
        process.advance(1e12)
    assert process.all_losses()[-1] < 1e-9 * process.all_losses()[0]
    rest = np.mean((process.raw[0, 1:] - y[1:]) ** 2)
    assert rest < 0.1 * np.var(y[1:])


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e140])
def test_the_unit_of_targets_does_not_matter(unit) -> None:
    X, y = load_diabetes(return_X_y=True)
    power = 2.0 ** np.round(np.log2(unit))
    one, other = (boosted(X, y * k, loss_of("squared_error"), 5) for k in (1.0, power))
    assert np.array_equal(one.raw * power, other.raw)


# -- when to stop ----------------------------------------------------------------------------------


@pytest.mark.nojit
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.integers(1, 6),
       st.sampled_from([0.0, 0.5, 1.0]))  # fmt: skip
def test_the_rule_of_stopping_is_scikit_learns(scores, patience, tol) -> None:
    peer = Peer(n_iter_no_change=patience, tol=tol)
    nothing = np.empty((1, 0))
    for n in range(1, len(scores) + 1):
        own = Monitor(NUMBERS, None, nothing, n_iter_no_change=patience, tol=tol,
                      scores=scores[:n])  # fmt: skip
        assert own.says_stop == peer._should_stop(scores[:n])


def test_scores_of_rows_held_out() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, X_held, y, y_held = X[:300], X[300:], y[:300], y[300:]
    loss = loss_of("squared_error")
    start = loss.start(y, None)
    weight = np.random.default_rng(0).random(len(y_held))
    raw = np.repeat(start[:, None], len(y_held), axis=1)
    monitor = Monitor(NUMBERS, HeldOut(X_held, y_held, weight), raw.copy(), n_iter_no_change=4)
    process = boosted(X, y, loss, 200, monitor=monitor, learning_rate=0.3)
    assert process.stopped_early
    assert process.rounds < 200
    expected = [-loss.value(y_held, raw, weight)]
    for own in process.trees:
        add_trees(own, X_held, NUMBERS, raw[0])
        expected.append(-loss.value(y_held, raw, weight))
    assert monitor.scores == expected
    best = np.argmax(expected)
    assert best < process.rounds - 3
    stops = [Monitor(NUMBERS, None, raw, n_iter_no_change=4, scores=expected[:n]).says_stop
             for n in range(1, len(expected) + 1)]  # fmt: skip
    assert stops.index(True) == len(expected) - 1


def test_scores_of_the_training_set() -> None:
    X, y = load_diabetes(return_X_y=True)
    loss = loss_of("squared_error")
    nothing = np.empty((1, 0))
    monitor = Monitor(NUMBERS, None, nothing, n_iter_no_change=3, tol=20.0)
    process = boosted(X, y, loss, 500, monitor=monitor)
    assert process.stopped_early
    assert np.array_equal(-process.all_losses(), monitor.scores)
    seen = []

    def score(raw):
        seen.append(raw.copy())
        return 1.0

    monitor = Monitor(NUMBERS, None, nothing, score=score, n_iter_no_change=3)
    other = boosted(X, y, loss, 500, monitor=monitor)
    assert other.rounds == 3
    assert np.array_equal(seen[-1], other.raw)
    assert len(other.all_losses()) == 4


def test_going_on_from_what_is_there() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    loss = loss_of("log_loss", 2)
    first = boosted(X, y, loss, 7)
    start = loss.start(y.astype(float), None)
    so_far = SoFar(first.trees, start, (), (), 1.0)
    kind = kind_of(np.zeros(X.shape[1], np.int64))
    assert np.array_equal(so_far.raw_of(X, kind), first.raw)


def test_figures() -> None:
    X, y = load_diabetes(return_X_y=True)
    loss = loss_of("squared_error")
    process = rounds_of(X, y, loss, 3)
    assert process.figures() == {}
    assert process.read_steps() == []
    process.advance(1e12)
    assert process.figures() == {"loss": process.losses[0]}
    assert (process.unit, process.total, process.rounds) == ("round", 3, 1)
    monitor = Monitor(NUMBERS, None, np.empty((1, 0)))
    process = boosted(X, y, loss, 3, monitor=monitor)
    assert process.figures() == {
        "loss": process.losses[-1],
        "validation score": -process.losses[-1],
    }
