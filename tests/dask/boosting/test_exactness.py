"""Boosting by workers that hold shards of the rows: the model of all rows, bit for bit.

Workers are in this process here, so that many settings can be tried; `test_boosting` has clusters.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import make_scorer, r2_score

pytest.importorskip("distributed")

from tests.dask.boosting.in_one_process import BoostingTableInProcess

import margrove
from margrove.dask import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from margrove.dask.boosting import cluster_table
from margrove.dask.boosting.bins import bundles_of, find_conflicts
from margrove.ensemble.gradient.hist import bin_refinement as gradient_cells
from margrove.ensemble.gradient.hist.columns import code_column
from margrove.ensemble.gradient.hist.tables import find_bundles
from margrove.grove.table.encoding import read_table

N = 70_000  # three tiles of losses
NO_VALIDATION = [None, None, None]
LOCAL = {
    HistGradientBoostingClassifier: margrove.HistGradientBoostingClassifier,
    HistGradientBoostingRegressor: margrove.HistGradientBoostingRegressor,
}
CLASSES, NUMBERS = HistGradientBoostingClassifier, HistGradientBoostingRegressor


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


def fitted_in_shards(kind, X, y, weight=None, *, n_workers=3, n_threads=1, breaks=(), **settings):
    """A model, and the groups that it took."""
    n = X.shape[0]
    cluster_table = BoostingTableInProcess(X, [n // 3, 0, n - n // 3], n_workers, n_threads)
    cluster_table.breaks_at = list(breaks)
    model = kind(**settings)
    model._fit_with(cluster_table, X, y, weight, None, {}, NO_VALIDATION)
    return model.to_local(), cluster_table.groups


def require_same(folder, kind, X, y, weight=None, *, n_workers=3, **settings):
    settings = {"max_iter": 3, "early_stopping": False, "random_state": 1} | settings
    model, _ = fitted_in_shards(kind, X, y, weight, n_workers=n_workers, **settings)
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
    model, _ = fitted_in_shards(NUMBERS, X, y, **settings)
    wanted = LOCAL[NUMBERS](**settings).fit(X, y)
    assert np.array_equal(model.validation_score_, wanted.validation_score_)


def test_scoring_functions_cannot_have_all_rows(data):
    settings = {"early_stopping": True, "validation_fraction": None, "scoring": _score_of_rows}
    with pytest.raises(ValueError, match="which are on the workers"):
        fitted_in_shards(NUMBERS, *data, **settings)


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
    model, _ = fitted_in_shards(NUMBERS, X, y, **settings)
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
    table = read_table(X, wanted, [2, 3])
    model = NUMBERS(**settings)
    cluster_table = BoostingTableInProcess(table.X, [N // 2, N - N // 2], 2)
    model._fit_with(cluster_table, X, y, weight, None, table.categories, NO_VALIDATION)
    assert saved(model, tmp_path) == saved(wanted, tmp_path)


@pytest.mark.parametrize("weighted", [None, "whole", "real"])
def test_bins_by_refinement(data, weights, tmp_path, monkeypatch, weighted):
    monkeypatch.setattr(cluster_table, "_MANY_ROWS", 0)
    monkeypatch.setattr(gradient_cells, "N_SPLITTERS", 300)
    require_same(tmp_path, NUMBERS, *data, weights[weighted], max_bins=30)


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


@pytest.mark.parametrize("n_workers", [1, 2])
def test_threads_of_a_worker(data, tmp_path, n_workers):
    X, y = data
    settings = {"max_iter": 3, "early_stopping": True, "random_state": 1}
    model, _ = fitted_in_shards(NUMBERS, X, y, n_workers=n_workers, n_threads=3, **settings)
    assert saved(model, tmp_path) == saved(LOCAL[NUMBERS](**settings).fit(X, y), tmp_path)


def test_warm_start(data, tmp_path):
    X, y = data
    models = (
        NUMBERS(max_iter=2, warm_start=True, random_state=1),
        LOCAL[NUMBERS](max_iter=2, warm_start=True, random_state=1),
    )
    for max_iter in (2, 5):
        models[0].set_params(max_iter=max_iter)
        cluster_table = BoostingTableInProcess(X, [N], 2)
        models[0]._fit_with(cluster_table, X, y, None, None, {}, NO_VALIDATION)
        models[1].set_params(max_iter=max_iter).fit(X, y)
    assert saved(models[0], tmp_path) == saved(models[1], tmp_path)


def test_rows_of_the_users_to_see_when_to_stop(data, tmp_path):
    X, y = data
    apart = [X[60_000:], y[60_000:], None]
    model = NUMBERS(max_iter=3, random_state=1)
    cluster_table = BoostingTableInProcess(X[:60_000], [60_000], 2)
    model._fit_with(cluster_table, X, y[:60_000], None, None, {}, apart)
    wanted = LOCAL[NUMBERS](max_iter=3, random_state=1)
    wanted.fit(X[:60_000], y[:60_000], X_val=apart[0], y_val=apart[1])
    assert saved(model, tmp_path) == saved(wanted, tmp_path)


def test_checkpoints(data, tmp_path):
    X, y = data
    settings = {"max_iter": 4, "random_state": 1, "early_stopping": True}

    def stop(progress):
        return progress.done >= 2

    with margrove.checkpoint(tmp_path / "file"), margrove.watch(on_progress=stop):
        begun, _ = fitted_in_shards(NUMBERS, X, y, **settings)
    with margrove.checkpoint(tmp_path / "file", resume=True):
        model, groups = fitted_in_shards(NUMBERS, X, y, n_workers=2, **settings)
    assert (len(begun), len(groups)) == (2, 2)
    assert saved(model, tmp_path) == saved(LOCAL[NUMBERS](**settings).fit(X, y), tmp_path)
    changed = pytest.raises(margrove.exceptions.CheckpointError, match="X has changed")
    with margrove.checkpoint(tmp_path / "file", resume=True), changed:
        fitted_in_shards(NUMBERS, X + 1.0, y, **settings)


BREAKS = {
    "while a tree is grown": [("expand", 20), ("start_roots", 5), ("expand", 9)],
    "while it is added": [("add", 8), ("add", 8)],
    "at the start": [("begin", 0)],
    "at the end": [("raw", 30)],
}


@pytest.mark.parametrize("when", BREAKS)
@pytest.mark.parametrize(
    "settings", [{"early_stopping": True}, {"subsample": 0.5}, {"loss": "huber"}], ids=str
)
def test_a_group_that_is_lost(data, tmp_path, when, settings):
    X, y = data
    settings = {"max_iter": 3, "random_state": 1, "early_stopping": False} | settings
    model, groups = fitted_in_shards(NUMBERS, X, y, breaks=BREAKS[when], **settings)
    assert len(groups) > 1
    assert saved(model, tmp_path) == saved(LOCAL[NUMBERS](**settings).fit(X, y), tmp_path)


def test_groups_that_are_always_lost(data):
    X, y = data
    with pytest.raises(
        margrove.exceptions.ClusterError, match="lost workers 10 times in one round"
    ):
        fitted_in_shards(NUMBERS, X, y, breaks=[("expand", 0)] * 100, max_iter=3)


def test_bundles_are_those_of_one_table():
    rng = np.random.default_rng(5)
    X = np.where(rng.random((2000, 12)) < 0.04, rng.integers(1, 5, (2000, 12)), 0.0)
    columns = [code_column(values, 0, 255, None) for values in np.ascontiguousarray(X.T)]
    conflicts = find_conflicts(columns, len(X))
    known = [_Known(column) for column in columns]
    assert bundles_of(known, conflicts, len(X)) == find_bundles(columns, list(range(12)), len(X))


class _Known:
    """A column as `bundles_of` wants it."""

    def __init__(self, column):
        self.omitted, self.n_entries = column.omitted, len(column.codes)
        self.size = len(column.lows) + 1
