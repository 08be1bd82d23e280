"""Boosting by workers that have some of the rows each: the model of all rows, bit for bit.

The workers are in this process, so that many settings can be tried; see also `test_estimators`.
"""

from __future__ import annotations

import warnings

import hypothesis
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck
from hypothesis import strategies as st
from sklearn.metrics import make_scorer, r2_score

pytest.importorskip("distributed")

import dask
import dask.array as da
import distributed

import margrove
from margrove.dask import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from margrove.dask.boosting import rounds
from margrove.dask.cluster import WorkerLost

pytestmark = pytest.mark.filterwarnings("ignore:Sending large graph")

N = 70_000  # several tiles of losses
LOCAL = {
    HistGradientBoostingClassifier: margrove.HistGradientBoostingClassifier,
    HistGradientBoostingRegressor: margrove.HistGradientBoostingRegressor,
}
CLASSES, NUMBERS = HistGradientBoostingClassifier, HistGradientBoostingRegressor


@pytest.fixture(scope="module")
def workers():
    """Four workers in this process."""
    cluster = distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(autouse=True)
def client(workers):
    with workers.as_current():
        yield workers


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 5)).round(2)
    X[:, 3] = rng.integers(0, 4, N)
    X[:, 4] = (rng.random(N) < 0.05) * rng.integers(1, 4, N)  # a sparse column
    X[rng.random(X.shape) < 0.03] = np.nan
    known = np.nan_to_num(X)
    y = known[:, 0] + known[:, 1] * known[:, 3] + rng.standard_normal(N)
    return X, y


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(1)
    return {
        "whole": rng.integers(0, 4, N).astype(float),
        "many": 40.0 * rng.integers(0, 4, N),
        "real": rng.random(N),
        None: None,
    }


def saved(model, folder):
    margrove.save(model, folder / "model")
    return (folder / "model").read_bytes()


def in_parts(values):
    """Two parts of unequal length, and an empty one between them."""
    if values is None:
        return None
    third = values.shape[0] // 3
    parts = [values[:third], values[:0], values[third:]]
    return [dask.delayed(part) for part in parts]


def fitted(model, X, y, weight=None, *, n_workers=3):
    """The model, fitted by so many workers."""
    with dask.config.set({"margrove.workers": n_workers}):
        return model.fit(in_parts(X), in_parts(y), in_parts(weight))


def require_same(folder, kind, X, y, weight=None, *, n_workers=3, **settings):
    settings = {"max_iter": 3, "early_stopping": False, "random_state": 1} | settings
    model = fitted(kind(**settings), X, y, weight, n_workers=n_workers)
    wanted = LOCAL[kind](**settings).fit(X, y, weight)
    assert saved(model, folder) == saved(wanted, folder)
    return model


@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_classes(data, tmp_path, n_workers, n_classes):
    X, y = data
    borders = [0.0] if n_classes == 2 else [-1.0, 0.0, 1.0, 2.0]
    require_same(tmp_path, CLASSES, X, np.digitize(y, borders), n_workers=n_workers)


SETTINGS = {
    "early stopping": {"early_stopping": True, "max_iter": 6},
    "early stopping by the training set": {"early_stopping": True, "validation_fraction": None},
    "a score": {"early_stopping": True, "scoring": "r2"},
    "a score of the training set": {
        "early_stopping": True,
        "scoring": "r2",
        "validation_fraction": None,
    },
    "subsample": {"subsample": 0.5},
    "both": {"subsample": 0.5, "early_stopping": True},
    "some features": {"max_features": 0.5},
    "monotonic": {"monotonic_cst": [1, 1, 0, -1, 0]},
    "interactions": {"interaction_cst": [(0, 1), (2, 3)]},
    "levels": {"growth": "level"},
    "stumps": {"max_leaf_nodes": 2},
    "any leaves": {"max_leaf_nodes": None, "max_depth": 5},
    "any depth": {"max_leaf_nodes": None},
    "any leaves by some features": {"max_leaf_nodes": None, "max_depth": 4, "max_features": 0.5},
    "many leaves": {"max_leaf_nodes": 400, "min_samples_leaf": 5},
    "few bins": {"max_bins": 7},
    "regularized": {"l2_regularization": 3.0, "learning_rate": 0.5},
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", SETTINGS)
def test_settings(data, tmp_path, name):
    X, y = data
    require_same(tmp_path, NUMBERS, X, y, **SETTINGS[name])


def _score_of_rows(model, X, y):
    """By predictions, and by the rows themselves."""
    return r2_score(y, model.predict(X)) + float(np.nanmean(X[:, 0]))


@pytest.mark.parametrize("scoring", [make_scorer(r2_score), _score_of_rows], ids=["scorer", "own"])
def test_scoring_functions(data, scoring):
    X, y = data
    settings = {"max_iter": 3, "early_stopping": True, "random_state": 1, "scoring": scoring}
    model = fitted(NUMBERS(**settings), X, y)
    wanted = LOCAL[NUMBERS](**settings).fit(X, y)
    assert np.array_equal(model.validation_score_, wanted.validation_score_)


def test_scoring_functions_cannot_have_all_rows(data):
    settings = {"early_stopping": True, "validation_fraction": None, "scoring": _score_of_rows}
    with pytest.raises(ValueError, match="which are on the workers"):
        fitted(NUMBERS(**settings), *data)


LOSSES = ("absolute_error", "huber", "poisson", "gamma", "tweedie")


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(data, tmp_path, loss):
    X, y = data
    require_same(tmp_path, NUMBERS, X, np.abs(y) + 0.1, loss=loss)


@pytest.mark.nightly
@pytest.mark.parametrize("settings", [{"subsample": 0.7}, {"early_stopping": True}])
@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_with_weights(data, weights, tmp_path, loss, kind, settings):
    X, y = data
    target = np.abs(y) + 0.1
    require_same(tmp_path, NUMBERS, X, target, weights[kind], loss=loss, **settings)


def test_quantiles_that_rise_or_fall(data, tmp_path):
    X, y = data
    settings = {"loss": "quantile", "quantile": 0.8, "monotonic_cst": [1, 1, 0, -1, 0]}
    require_same(tmp_path, NUMBERS, X, y, **settings)


def _own_value(y, raw):
    return 0.5 * (y - raw) ** 2


def _own_gradient(y, raw):
    return raw - y


def _own_hessian(y, raw):
    return 1.0


def _own_leaf(residuals, weights):
    """By the order of the rows, which is therefore that of one table, too."""
    return float(np.mean(residuals[:100]))


def test_a_loss_of_the_users(data):
    X, y = data
    loss = margrove.GradientLoss.of_functions(
        _own_value, _own_gradient, _own_hessian, leaf_value=_own_leaf
    )
    settings = {"max_iter": 3, "early_stopping": False, "random_state": 1, "loss": loss}
    model = fitted(NUMBERS(**settings), X, y)
    wanted = LOCAL[NUMBERS](**settings).fit(X, y)
    assert np.array_equal(model.predict(X[:1000]), wanted.predict(X[:1000]))


@pytest.mark.parametrize("kind", ["whole", "many", "real"])
@pytest.mark.parametrize("settings", [{}, {"early_stopping": True, "subsample": 0.5}], ids=str)
def test_weights(data, weights, tmp_path, kind, settings):
    X, y = data
    require_same(tmp_path, NUMBERS, X, y, weights[kind], **settings)


@pytest.mark.parametrize("kind", [None, "whole", "real"])
def test_weights_of_classes(data, weights, tmp_path, kind):
    X, y = data
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-1.0, 2.0])]
    require_same(tmp_path, CLASSES, X, labels, weights[kind], class_weight="balanced")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", [{}, {"early_stopping": True, "subsample": 0.5}], ids=str)
@pytest.mark.filterwarnings("ignore:Column 2 of X has:margrove.exceptions.DataWarning")
def test_categories(data, tmp_path, weighted, settings):
    """Also those that only rows of weight 0 have."""
    X, y = data
    rng = np.random.default_rng(2)
    X = X.copy()
    X[:, 2] = rng.integers(0, 400, N)
    weight = rng.integers(0, 3, N).astype(float) * (X[:, 2] != 17) if weighted else None
    settings = {"max_iter": 3, "random_state": 1, "categorical_features": [2, 3]} | settings
    wanted = LOCAL[NUMBERS](**settings).fit(X, y, weight)
    model = fitted(NUMBERS(**settings), X, y, weight)
    assert saved(model, tmp_path) == saved(wanted, tmp_path)


def test_few_rows(data, tmp_path):
    X, y = data
    require_same(tmp_path, NUMBERS, X[:500], y[:500], n_workers=4)
    require_same(tmp_path, NUMBERS, X[:500], y[:500], n_workers=4, early_stopping=True)


def test_targets_of_any_size(data, tmp_path):
    X, y = data
    require_same(tmp_path, NUMBERS, X, 1e150 * y)
    require_same(tmp_path, NUMBERS, X, np.exp(8.0 * y))  # too lopsided for packed gradients


def test_rows_that_are_there_many_times(data, tmp_path):
    X, y = data
    draws = {"early_stopping": True, "subsample": 0.5}
    require_same(
        tmp_path, NUMBERS, np.repeat(X[:5000], 14, axis=0), np.repeat(y[:5000], 14), **draws
    )
    require_same(tmp_path, CLASSES, np.round(X[:, :2]), y > 0, **draws)


def test_infinity_and_single_precision(data, tmp_path):
    X, y = data
    far = X.copy()
    far[5, 0], far[7, 1] = np.inf, -np.inf
    require_same(tmp_path, NUMBERS, far, y, early_stopping=True)
    require_same(tmp_path, NUMBERS, X.astype(np.float32), y, early_stopping=True)


def test_one_hot_columns(tmp_path):
    """Which share bytes, or are in lists."""
    rng = np.random.default_rng(3)
    hot = np.zeros((N, 60))
    hot[np.arange(N), rng.integers(0, 30, N)] = 1.0
    hot[np.arange(N), 30 + rng.integers(0, 30, N)] = 1.0
    y = hot[:, 3] + 2.0 * hot[:, 40] + rng.standard_normal(N)
    require_same(tmp_path, NUMBERS, hot, y)
    require_same(tmp_path, NUMBERS, hot * rng.random(hot.shape).round(2), y)


def test_sparse_matrices(tmp_path):
    rng = np.random.default_rng(4)
    X = sp.random(40_000, 50, density=0.03, random_state=0, format="csr")
    X.data = X.data.round(2)
    y = np.asarray(X[:, :5].sum(axis=1)).ravel() + 0.1 * rng.standard_normal(40_000)
    require_same(tmp_path, NUMBERS, X, y, early_stopping=True, subsample=0.5)


def test_warm_start(data, tmp_path):
    X, y = data
    models = (
        NUMBERS(max_iter=2, warm_start=True, random_state=1),
        LOCAL[NUMBERS](max_iter=2, warm_start=True, random_state=1),
    )
    for max_iter in (2, 5):
        models[0].set_params(max_iter=max_iter)
        fitted(models[0], X, y)
        models[1].set_params(max_iter=max_iter).fit(X, y)
    assert saved(models[0], tmp_path) == saved(models[1], tmp_path)


def test_rows_of_the_users_to_see_when_to_stop(data, tmp_path):
    X, y = data
    rows, others = (X[:60_000], y[:60_000]), {"X_val": X[60_000:], "y_val": y[60_000:]}
    wanted = LOCAL[NUMBERS](max_iter=3, random_state=1).fit(*rows, **others)
    parts = [da.from_array(values, chunks=(20_000, *values.shape[1:])) for values in rows]
    far = {name: da.from_array(values) for name, values in others.items()}
    for validation in (others, far):
        model = NUMBERS(max_iter=3, random_state=1).fit(*parts, **validation)
        assert saved(model, tmp_path) == saved(wanted, tmp_path)


def test_checkpoints(data, tmp_path):
    X, y = data
    settings = {"max_iter": 4, "random_state": 1, "early_stopping": True}

    def stop(progress):
        return progress.done >= 2

    with margrove.checkpoint(tmp_path / "file"), margrove.watch(on_progress=stop):
        begun = fitted(NUMBERS(**settings), X, y)
    with margrove.checkpoint(tmp_path / "file", resume=True):
        model = fitted(NUMBERS(**settings), X, y, n_workers=2)
    assert len(begun) == 2
    assert saved(model, tmp_path) == saved(LOCAL[NUMBERS](**settings).fit(X, y), tmp_path)
    changed = pytest.raises(margrove.exceptions.CheckpointError, match="X has changed")
    with margrove.checkpoint(tmp_path / "file", resume=True), changed:
        fitted(NUMBERS(**settings), X + 1.0, y)


class Losses:
    """Reports of the rounds, with losses of workers after some of them."""

    def __init__(self, monkeypatch, losses):
        usual, self.n_reports, self.left = rounds.Members.reports, 0, list(losses)

        def reports(members, seconds):
            if self.left and self.n_reports >= self.left[0]:
                self.left.pop(0)
                raise WorkerLost("A worker is lost.", "tcp://nobody:1")
            found = usual(members, seconds)
            if self.left:  # several may come at once; those after the loss are lost, too
                found = found[: self.left[0] - self.n_reports]
            self.n_reports += len(found)
            return found

        monkeypatch.setattr(rounds.Members, "reports", reports)


@pytest.mark.parametrize("losses", [[0, 0], [1], [2, 3], [4]])
@pytest.mark.parametrize(
    "settings",
    [{"early_stopping": True}, {"subsample": 0.5}, {"loss": "huber"}, {"scale": 1e-120}],
    ids=str,
)
def test_workers_that_are_lost(data, tmp_path, monkeypatch, losses, settings):
    X, y = data
    settings = {"max_iter": 5, "random_state": 1, "early_stopping": False} | settings
    y = y * settings.pop("scale", 1.0)
    breaks = Losses(monkeypatch, losses)
    model = fitted(NUMBERS(**settings), X, y)
    assert not breaks.left
    assert saved(model, tmp_path) == saved(LOCAL[NUMBERS](**settings).fit(X, y), tmp_path)


def test_workers_that_are_always_lost(data, monkeypatch):
    Losses(monkeypatch, [0] * 100)
    with pytest.raises(
        margrove.exceptions.ClusterError, match="lost workers 10 times in one round"
    ):
        fitted(NUMBERS(max_iter=3), *data)


@hypothesis.settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@hypothesis.given(data=st.data())
def test_any_table_partitions_and_workers(client, tmp_path, data):
    n, seed = data.draw(st.integers(60, 1500)), data.draw(st.integers(0, 999))
    n_workers = data.draw(st.sampled_from([1, 2, 4]))
    cuts = data.draw(st.lists(st.integers(0, n), min_size=0, max_size=39))
    chunks = tuple(np.diff([0, *sorted(cuts), n]).tolist())
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5)).round(1)
    X[:, 1] = rng.integers(0, 6, n)
    X[:, 2] = (rng.random(n) < 0.03) * rng.integers(0, 4, n)
    X[rng.random(X.shape) < data.draw(st.sampled_from([0.0, 0.2]))] = np.nan
    y = np.nan_to_num(X[:, 0]) * (np.nan_to_num(X[:, 1]) > 2) + 0.1 * rng.random(n)
    weight = data.draw(st.sampled_from([None, rng.integers(0, 3, n) + 0.0, rng.random(n)]))
    settings = {
        "max_iter": 3,
        "random_state": 0,
        "min_samples_leaf": data.draw(st.sampled_from([1, 20])),
        "categorical_features": data.draw(st.sampled_from([None, [1]])),
        "subsample": data.draw(st.sampled_from([1.0, 0.5])),
        "early_stopping": data.draw(st.booleans()),
    }
    kind, targets = (NUMBERS, y) if data.draw(st.booleans()) else (CLASSES, (y > 0) + (y > 1.0))
    parts = [
        None if values is None else da.from_array(values, (chunks, *values.shape[1:]))
        for values in (X, targets, weight)
    ]
    with dask.config.set({"margrove.workers": n_workers}), warnings.catch_warnings():
        warnings.simplefilter("ignore", margrove.exceptions.DataWarning)
        model = kind(**settings).fit(*parts)
        wanted = LOCAL[kind](**settings).fit(X, targets, weight)
    assert saved(model, tmp_path) == saved(wanted, tmp_path)


def test_rows_that_fit_no_worker_are_an_error_in_advance(data, monkeypatch):
    monkeypatch.setattr("margrove.dask.boosting.estimators._BYTES_A_ROW", 10**12)
    model = NUMBERS(max_iter=3)
    small = pytest.raises(
        margrove.exceptions.ClusterError, match=r"70000 rows on 2 workers need .* more memory"
    )
    with small:
        fitted(model, *data, n_workers=2)
    assert not hasattr(model, "n_iter_")
