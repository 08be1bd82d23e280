"""Histogram boosting on clusters: the model of one machine, whoever computes it and is lost."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask
import dask.array as da
from sklearn.base import clone
from tests.dask.killing import kill, require_same_after_kills

import margrove
from margrove.dask import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from margrove.exceptions import FitCancelled, InterruptedFitWarning

N = 140_000  # more than four tiles of losses: four workers have rows
BRIEF = {"max_iter": 3, "random_state": 1}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4)).round(2)
    X[rng.random(X.shape) < 0.03] = np.nan
    known = np.nan_to_num(X)
    y = known[:, 0] + known[:, 1] * known[:, 2] + rng.standard_normal(N)
    return X, y, rng.integers(0, 3, N).astype(float)


def saved(model, folder):
    margrove.save(model, folder / "model")
    return (folder / "model").read_bytes()


@pytest.fixture(scope="module")
def wanted(data, tmp_path_factory):
    X, y, weight = data
    model = margrove.HistGradientBoostingRegressor(**BRIEF).fit(X, y, weight)
    return saved(model, tmp_path_factory.mktemp("wanted"))


def in_chunks(chunks, *arrays):
    return [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in arrays]


PARTITIONS = {"three": 50_000, "many": 10_001, "uneven": (100_000, 3, 0, 39_997)}


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_any_workers_and_partitions(cluster4, data, wanted, tmp_path, n_workers, partitions):
    with dask.config.set({"margrove.workers": n_workers}):
        model = HistGradientBoostingRegressor(**BRIEF)
        model.fit(*in_chunks(PARTITIONS[partitions], *data))
    assert saved(model, tmp_path) == wanted


def test_classes_and_predictions(cluster4, data, tmp_path):
    X, y, _ = data
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1.0, 1.0])]
    rows, targets = in_chunks(50_000, X, labels)
    model = HistGradientBoostingClassifier(**BRIEF).fit(rows, targets)
    local = margrove.HistGradientBoostingClassifier(**BRIEF).fit(X, labels)
    assert saved(model, tmp_path) == saved(local, tmp_path)
    assert type(model.to_local()) is margrove.HistGradientBoostingClassifier
    found = model.predict_proba(rows)
    assert np.array_equal(found.compute(), local.predict_proba(X))


def test_frames_with_labels(cluster4, data, tmp_path):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, _ = data
    frame = pd.DataFrame(X[:20_000], columns=["a", "b", "c", "d"])
    frame["e"] = np.array(["x", "y", "z", None], dtype=object)[np.arange(20_000) % 4]
    frame["e"] = frame["e"].astype("category")
    target = pd.Series(y[:20_000] + (np.arange(20_000) % 4 == 1))
    local = margrove.HistGradientBoostingRegressor(**BRIEF).fit(frame, target)
    model = HistGradientBoostingRegressor(**BRIEF)
    model.fit(dd.from_pandas(frame, npartitions=5), dd.from_pandas(target, npartitions=5))
    assert saved(model, tmp_path) == saved(local, tmp_path)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d", "e"]


def test_local_data_is_fitted_here(data, tmp_path):
    X, y, _ = data
    model = HistGradientBoostingRegressor(**BRIEF).fit(X[:1000], y[:1000])
    local = margrove.HistGradientBoostingRegressor(**BRIEF).fit(X[:1000], y[:1000])
    assert saved(model, tmp_path) == saved(local, tmp_path)


def test_rounds_can_be_watched_and_ended(cluster4, data):
    X, y, _ = data
    seen = []

    def listen(progress):
        seen.append(progress.done)
        return progress.done >= 2

    model = HistGradientBoostingRegressor(max_iter=50, early_stopping=False)
    with margrove.watch(on_progress=listen):
        model.fit(*in_chunks(50_000, X, y))
    assert (len(model), model.history_.outcome) == (2, "callback")
    assert set(seen) >= {0, 1, 2}


def test_what_was_learnt_before_an_interrupt_is_kept(cluster4, data, tmp_path):
    X, y, _ = data

    def interrupt(progress):
        if progress.done == 2:
            raise KeyboardInterrupt

    model = HistGradientBoostingRegressor(
        max_iter=50, early_stopping=False, on_interrupt="keep", random_state=1
    )
    kept = pytest.warns(InterruptedFitWarning, match="after 2 rounds")
    with margrove.watch(on_progress=interrupt), kept:
        model.fit(*in_chunks(50_000, X, y))
    local = margrove.HistGradientBoostingRegressor(max_iter=2, early_stopping=False).fit(X, y)
    assert np.array_equal(model.predict(X[:1000]), local.predict(X[:1000]))
    assert np.array_equal(model.history_.training_loss, local.history_.training_loss)


def test_a_fit_that_is_cancelled_leaves_the_model_as_it_was(cluster4, data):
    X, y, _ = data
    model = HistGradientBoostingRegressor(max_iter=2).fit(X[:1000], y[:1000])
    before = dict(vars(model))
    cancel = threading.Event()
    cancel.set()
    with margrove.watch(cancel=cancel), pytest.raises(FitCancelled):
        model.fit(*in_chunks(50_000, X, y))
    assert vars(model) == before
    assert clone(model).get_params() == model.get_params()


def test_errors_are_those_of_the_local_class(cluster4, data):
    X, y, _ = data
    rows, targets = in_chunks(50_000, X, y)
    with pytest.raises(ValueError, match="learning_rate"):
        HistGradientBoostingRegressor(learning_rate=-1.0).fit(rows, targets)
    with pytest.raises(margrove.exceptions.InvalidDataError, match="requires non-negative y"):
        HistGradientBoostingRegressor(loss="poisson").fit(rows, targets)
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        HistGradientBoostingRegressor().fit(rows, targets, weights=targets)


def test_a_worker_that_is_killed(new_cluster, data, wanted, tmp_path):
    X, y, weight = data
    client = new_cluster(3)
    pids = client.run(os.getpid)
    victims = [pids[address] for address in sorted(pids)][:1]
    seen = []

    def kill_at_14(progress):
        seen.append(progress)
        if len(seen) == 14:
            kill(victims[0])

    model = HistGradientBoostingRegressor(**BRIEF)
    with margrove.watch(on_progress=kill_at_14):
        model.fit(*in_chunks(30_000, X, y, weight))
    assert saved(model, tmp_path) == wanted


@pytest.mark.nightly
def test_workers_that_are_killed_at_any_moment(new_cluster, data, wanted, tmp_path):
    chunks = in_chunks(30_000, *data)

    def fitted(client):
        return saved(HistGradientBoostingRegressor(**BRIEF).fit(*chunks, client=client), tmp_path)

    require_same_after_kills(new_cluster, fitted, wanted, 50)
