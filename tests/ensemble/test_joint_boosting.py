"""Boosting whose rows are with several members of a collective: byte for byte the local models."""

from __future__ import annotations

import copy
import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.members import run_members

from margrove.ensemble.gradient import (
    HeldOut,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    PiecedRows,
    PieceOfRows,
    RowDraws,
)
from margrove.ensemble.gradient.losses import CustomLoss
from margrove.exceptions import ConvergenceWarning, DataWarning
from margrove.grove.table import TreeTable


def jointly(model: Any, borders: list[int], n_threads: int = 1) -> Any:
    """The same model, whose fit runs on members that have the rows between two borders each."""

    class Joint(type(model)):  # type: ignore[misc]
        def _process(
            self, given: Any, held_out: Any, so_far: Any, seed: int, stops_early: bool
        ) -> Any:
            if self.subsample < 1.0:
                given = replace(given, places=RowDraws(given, seed).places)
            usual = super()._process
            edges = [0, *(min(border, given.n_rows) for border in borders), given.n_rows]
            owns = [
                (_rows_of(given, start, stop), _held_out_of(held_out, k, len(edges) - 1))
                for k, (start, stop) in enumerate(itertools.pairwise(edges))
            ]
            self.n_jobs = n_threads

            def run(collective: Any, own: Any, own_held_out: Any) -> Any:
                process = usual(own, own_held_out, so_far, seed, stops_early, collective)
                while not process.finished:
                    process.advance(np.inf)
                process.losses = process.all_losses().tolist()
                return process

            processes = run_members(run, owns)
            for other in processes[1:]:
                assert _content(other.trees) == _content(processes[0].trees)
                assert other.losses == processes[0].losses
            return processes[0]

    found = Joint(**model.get_params())
    vars(found).update(copy.copy(vars(model)))
    return found


def _rows_of(given: Any, start: int, stop: int) -> Any:
    """The rows of a member, in two pieces."""
    X, middle = given.X, (start + stop + 1) // 2
    pieces = [
        PieceOfRows(lambda first, last, low=low: X[low + first : low + last], high - low)
        for low, high in ((start, middle), (middle, stop))
    ]
    return replace(
        given,
        table=TreeTable(
            PiecedRows(pieces, X.shape[1]), given.table.feature_names, given.table.categories
        ),
        y=given.y[start:stop],
        weight=None if given.weight is None else given.weight[start:stop],
        copies=None if given.copies is None else given.copies[start:stop],
        origin=np.arange(start, stop),
        places=None if given.places is None else given.places[start:stop],
    )


def _held_out_of(rows: Any, rank: int, size: int) -> Any:
    """Every size-th row, from this one on."""
    if rows is None:
        return None
    numbers = np.arange(rank, len(rows.y), size)
    weight = None if rows.weight is None else rows.weight[numbers]
    return HeldOut(rows.X[numbers], rows.y[numbers], weight, numbers)


def _content(rounds: Any) -> list[tuple[bytes, ...]]:
    return [
        tuple(np.ascontiguousarray(part).tobytes() for part in (tree.nodes, tree.decrease))
        for trees in rounds
        for tree in trees
    ]


def _same(model: Any, borders: list[int], *data: Any, n_threads: int = 1, **others: Any) -> None:
    joint = jointly(model, borders, n_threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        model.fit(*data, **others)
        joint.fit(*data, **others)
    assert _content(joint._rounds) == _content(model._rounds)
    assert np.array_equal(joint.history_.training_loss, model.history_.training_loss)
    assert np.array_equal(
        joint.history_.validation_score, model.history_.validation_score, equal_nan=True
    )
    assert joint.history_.outcome == model.history_.outcome
    assert np.array_equal(joint._scores.start, model._scores.start)


def _table(seed: int = 0, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)).round(2)
    X[:, 1] = rng.integers(0, 3, n)
    X[rng.random((n, 6)) < 0.1] = np.nan
    return X, np.nan_to_num(X[:, 0]) + (np.nan_to_num(X[:, 1]) == 1) + 0.3 * rng.random(n)


X, Y = _table()
MEMBERS = [[], [450], [200, 500, 700], [1, 1, 899]]


@pytest.mark.parametrize("borders", MEMBERS)
def test_regression(borders: list[int]) -> None:
    _same(HistGradientBoostingRegressor(max_iter=5), borders, X, Y)


@pytest.mark.parametrize("borders", MEMBERS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes(borders: list[int], n_classes: int) -> None:
    y = np.digitize(Y, np.quantile(Y, np.arange(1, n_classes) / n_classes))
    _same(HistGradientBoostingClassifier(max_iter=5), borders, X, y)


@pytest.mark.parametrize(
    ("loss", "others"),
    [
        ("absolute_error", {}),
        ("huber", {}),
        ("quantile", {"quantile": 0.3}),
        ("poisson", {}),
        ("gamma", {}),
        ("tweedie", {}),
    ],
)
@pytest.mark.parametrize("has_weight", [False, True])
def test_losses(loss: str, others: dict[str, Any], has_weight: bool) -> None:
    weight = np.random.default_rng(1).random(len(Y)) if has_weight else None
    model = HistGradientBoostingRegressor(loss=loss, max_iter=4, **others)
    _same(model, [200, 500], X, np.abs(Y) + 0.1, weight)


def _value(y: float, raw: float) -> float:
    return (y - raw) ** 4


def _gradient(y: float, raw: float) -> float:
    return -4.0 * (y - raw) ** 3


def _hessian(y: float, raw: float) -> float:
    return 12.0 * (y - raw) ** 2 + 0.1


def _middle(residuals: np.ndarray, weights: np.ndarray) -> float:
    return 0.5 * (residuals.min() + residuals.max())


@pytest.mark.parametrize("leaf_value", [None, _middle])
def test_loss_of_a_user(leaf_value: Any) -> None:
    loss = CustomLoss("fourth", _value, _gradient, _hessian, leaf_value_of=leaf_value)
    _same(HistGradientBoostingRegressor(loss=loss, max_iter=3), [300], X, Y)


@pytest.mark.parametrize(
    "settings_",
    [
        {"max_leaf_nodes": None, "max_depth": 4},
        {"growth": "level"},
        {"max_features": 0.5},
        {"monotonic_cst": [1, 0, 0, -1, 0, 0]},
        {"interaction_cst": [(0, 1), (2, 3)]},
        {"subsample": 0.5},
        {"early_stopping": True},
        {"early_stopping": True, "scoring": "r2"},
        {"early_stopping": True, "scoring": "r2", "validation_fraction": None},
        {"early_stopping": True, "validation_fraction": None, "n_iter_no_change": 2},
        {"early_stopping": True, "subsample": 0.7},
        {"categorical_features": [1]},
        {"max_bins": 16},
        {"l2_regularization": 1.0, "min_samples_leaf": 3},
        {"max_leaf_nodes": 200, "min_samples_leaf": 1},
    ],
)
def test_settings(settings_: dict[str, Any]) -> None:
    model = HistGradientBoostingRegressor(max_iter=6, random_state=3, **settings_)
    _same(model, [200, 500], X, Y)


@pytest.mark.parametrize("kind", ["whole", "real", "zero"])
def test_weights(kind: str) -> None:
    rng = np.random.default_rng(2)
    weight = rng.integers(0, 4, len(Y)) * 1.0
    if kind == "real":
        weight = rng.random(len(Y)) * 10
    if kind == "zero":
        weight = (rng.random(len(Y)) < 0.5) * rng.random(len(Y))
    for settings_ in ({}, {"subsample": 0.5}, {"early_stopping": True}):
        model = HistGradientBoostingRegressor(max_iter=4, random_state=0, **settings_)
        _same(model, [200, 500], X, Y, weight)
        model = HistGradientBoostingClassifier(max_iter=4, random_state=0, **settings_)
        _same(model, [200, 500], X, Y > 0.5, weight)


def test_sparse_columns() -> None:
    rng = np.random.default_rng(4)
    dense = rng.standard_normal((900, 3)).round(1)
    labels = np.eye(30)[rng.integers(0, 30, 900)]
    lone = (rng.random((900, 5)) < 0.05) * rng.random((900, 5))
    for table in (sp.csr_array(np.c_[dense, labels, lone]), np.c_[dense, labels, lone], lone):
        y = dense[:, 0] + labels @ np.arange(30.0) + lone.sum(axis=1)
        _same(HistGradientBoostingRegressor(max_iter=4), [200, 500], table, y)


def test_several_threads() -> None:
    many, y = _table(5, 60_000)
    for kind, targets in (
        (HistGradientBoostingRegressor, y),
        (HistGradientBoostingClassifier, y > 0),
    ):
        model = kind(max_iter=3, random_state=0)
        _same(model, [25_000], many, targets, n_threads=2)


def test_warm_start() -> None:
    model = HistGradientBoostingRegressor(max_iter=3, warm_start=True).fit(X, Y)
    model.max_iter = 6
    _same(model, [200, 500], X, Y)


def test_validation_rows_that_are_given() -> None:
    rows, y = _table(7, 300)
    for scoring in ("loss", "neg_mean_absolute_error"):
        model = HistGradientBoostingRegressor(max_iter=20, early_stopping=True, scoring=scoring)
        _same(model, [200, 500], X, Y, X_val=rows, y_val=y)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_table(data: Any) -> None:
    seed, n = data.draw(st.integers(0, 999)), data.draw(st.integers(30, 400))
    rows, y = _table(seed, n)
    borders = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    rng = np.random.default_rng(seed)
    rows[:, 2] = rng.integers(0, 2, n) * 1e300 * rng.choice([-1, 1], n)
    rows[:, 3] = data.draw(st.sampled_from([0.0, np.nan, 1.0]))
    weight = data.draw(st.sampled_from([None, rng.integers(0, 3, n) + 0.0, rng.random(n)]))
    parameters = {
        "max_iter": 3,
        "min_samples_leaf": data.draw(st.sampled_from([1, 5, 20])),
        "max_bins": data.draw(st.sampled_from([3, 255])),
        "subsample": data.draw(st.sampled_from([1.0, 0.4])),
        "categorical_features": data.draw(st.sampled_from([None, [1]])),
        "early_stopping": data.draw(st.booleans()),
        "random_state": 0,
    }
    if data.draw(st.booleans()):
        _same(HistGradientBoostingRegressor(**parameters), borders, rows, y, weight)
    else:
        labels = np.arange(n) % 3 if n % 2 else np.arange(n) % 2
        _same(HistGradientBoostingClassifier(**parameters), borders, rows, labels, weight)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("has_copies", [False, True])
def test_columns_that_cannot_be_split(is_sparse: bool, has_copies: bool) -> None:
    rng = np.random.default_rng(3)
    words = (rng.random((600, 50)) < np.linspace(0.0, 0.1, 50)) * rng.integers(1, 4, (600, 50))
    counts = words.astype(float)
    table: Any = sp.csr_matrix(counts) if is_sparse else counts
    weight = rng.integers(1, 3, 600) if has_copies else None
    y = counts.sum(axis=1) + rng.random(600)
    _same(HistGradientBoostingRegressor(max_iter=4), [200, 500], table, y, weight)
