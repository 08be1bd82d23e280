"""Rounds of gradient boosting: losses fall, threads change nothing, and peers agree."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from margrove.ensemble import gradient_rounds
from margrove.ensemble.gradient_losses import gradient_loss_of
from margrove.ensemble.gradient_rounds import GradientRounds, GradientSettings
from margrove.grove.binning import bin_columns
from margrove.grove.packed import Kind
from margrove.grove.scores import SQUARED
from margrove.grove.walk import add_values, leaves_of_rows


def boosted(X, y, loss, rounds=20, *, weight=None, n_threads=1, **settings):
    X, y = np.asarray(X, float), np.asarray(y, float)
    data = bin_columns(X, max_bins=255)
    nobody = np.zeros(X.shape[1], np.int64)
    process = GradientRounds(
        data, nobody, y, weight, loss, GradientSettings(**settings), rounds, n_threads=n_threads
    )
    while not process.finished:
        process.advance(1.0)
    return process


REGRESSIONS = ("squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma",
               "tweedie")  # fmt: skip


@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_loss_of_numbers_falls(name) -> None:
    X, y = load_diabetes(return_X_y=True)
    process = boosted(X, y, gradient_loss_of(name))
    if name != "huber":  # whose bend moves from round to round
        assert (np.diff(process.losses) < 0).all()
    found = process._loss.link_inverse(process.raw)
    if name != "quantile":
        assert np.abs(y - found).mean() < 0.75 * np.abs(y - np.median(y)).mean()
    else:
        assert (y <= found).mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(("load", "n_classes"), [(load_breast_cancer, 2), (load_iris, 3)])
def test_the_loss_of_classes_falls(load, n_classes) -> None:
    X, y = load(return_X_y=True)
    process = boosted(X, y, gradient_loss_of("log_loss", n_classes=n_classes), 30)
    assert (np.diff(process.losses) < 0).all()
    assert process.losses[-1] < 0.2 * process.losses[0]
    shares = process._loss.link_inverse(process.raw)
    assert (np.argmax(shares, axis=1) == y).mean() > 0.97
    assert [len(own) for own in process.trees] == [1 if n_classes == 2 else 3] * 30


def test_scikit_learn_comes_to_the_same_loss() -> None:
    X, y = load_diabetes(return_X_y=True)
    ours = boosted(X, y, gradient_loss_of("squared_error"), 50)
    peer = HistGradientBoostingRegressor(max_iter=50, early_stopping=False).fit(X, y)
    loss = 0.5 * np.mean((peer.predict(X) - y) ** 2)
    assert ours.losses[-1] == pytest.approx(loss, rel=0.02)
    X, y = load_breast_cancer(return_X_y=True)
    own = boosted(X, y, gradient_loss_of("log_loss", n_classes=2), 20)
    other = HistGradientBoostingClassifier(max_iter=20, early_stopping=False).fit(X, y)
    loss = -np.mean(np.log(other.predict_proba(X)[np.arange(len(y)), y]))
    assert own.losses[-1] == pytest.approx(loss, rel=0.02)


def test_trees_give_the_scores_of_the_training() -> None:
    X, y = load_iris(return_X_y=True)
    process = boosted(X, y, gradient_loss_of("log_loss", n_classes=3), 5)
    kind = Kind(SQUARED, (), 1, np.zeros(4, np.int64))
    for score in range(3):
        found = np.full((len(y), 1), process.start[score])
        for own in process.trees:
            own[score].require_sound(kind, 4)
            leaves = np.empty(len(y), np.int32)
            leaves_of_rows(own[score], X, kind, leaves, has_nan=False)
            add_values(own[score], leaves, kind, None, found)
        assert np.allclose(found[:, 0], process.raw[score], rtol=1e-12)


def test_threads_change_nothing(monkeypatch) -> None:
    monkeypatch.setattr(gradient_rounds, "_CELLS_OF_A_CORE", 1)
    X, y = load_breast_cancer(return_X_y=True)
    for loss, target in (
        (gradient_loss_of("log_loss", n_classes=2), y),
        (gradient_loss_of("log_loss", n_classes=3), y + (X[:, 0] > 15)),
    ):
        one, two = (boosted(X, target, loss, 8, n_threads=k) for k in (1, 2))
        assert np.array_equal(one.raw, two.raw)


def test_the_order_of_rows_does_not_matter() -> None:
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    one = boosted(X, y, gradient_loss_of("squared_error"), 10)
    other = boosted(X[order], y[order], gradient_loss_of("squared_error"), 10)
    assert np.array_equal(one.raw[0, order], other.raw[0])


def test_gradients_of_very_different_sizes() -> None:
    X, y = load_diabetes(return_X_y=True)
    y = y.copy()
    y[0] = 1e7  # packed words would not tell the others apart
    plain = boosted(np.delete(X, 0, axis=0), np.delete(y, 0), gradient_loss_of("squared_error"), 30)
    outlier = boosted(X, y, gradient_loss_of("squared_error"), 30, min_samples_leaf=1)
    rest = 0.5 * np.mean((outlier.raw[0, 1:] - y[1:]) ** 2)
    assert np.isfinite(rest)
    assert outlier.losses[-1] < 0.1 * outlier.losses[0]
    assert plain.losses[-1] < plain.losses[0]
