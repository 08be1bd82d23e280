"""Partitions on disk: the same rows, files that go, and fits that do not notice."""

from __future__ import annotations

import os
import pickle
import shutil
from types import SimpleNamespace

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from tests.dask.killing import kill
from tests.interrupts import wait_until

import margrove
import margrove.dask
from margrove.dask.cluster.waiting import gathered
from margrove.dask.partitions import disk_storage
from margrove.dask.partitions.table import partitions_of
from margrove.exceptions import ClusterError


@pytest.fixture
def everything_on_disk(cluster4):
    """Workers whose partitions are all too large for them."""
    usual = disk_storage._SHARE
    cluster4.run(_set_share, 0.0)
    yield cluster4
    cluster4.run(_set_share, usual)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_storage, "_folder", lambda: str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_come_back(folder, dtype):
    X = np.random.default_rng(0).standard_normal((50, 3)).astype(dtype)
    partition = disk_storage.PartitionOnDisk(X)
    assert partition.shape == (50, 3)
    np.testing.assert_array_equal(disk_storage.loaded(partition), X)
    np.testing.assert_array_equal(disk_storage.rows_of_partition(partition, 7, 20), X[7:20])
    assert disk_storage.loaded(partition).flags.writeable


def test_frames_come_back(folder):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", None]})
    partition = disk_storage.PartitionOnDisk(frame)
    pd.testing.assert_frame_equal(partition.rows(), frame)
    pd.testing.assert_frame_equal(partition.rows(1, 3), frame.iloc[1:3])


def test_no_rows(folder):
    assert disk_storage.PartitionOnDisk(np.empty((0, 4))).rows().shape == (0, 4)


def test_a_file_goes_with_its_part_and_a_copy_has_its_own(folder):
    partition = disk_storage.PartitionOnDisk(np.eye(3))
    copy = pickle.loads(pickle.dumps(partition))
    assert len(os.listdir(folder)) == 2
    del partition
    assert len(os.listdir(folder)) == 1
    np.testing.assert_array_equal(copy.rows(), np.eye(3))
    del copy
    assert os.listdir(folder) == []


def test_a_file_that_was_cut_is_an_error(folder):
    partition = disk_storage.PartitionOnDisk(np.eye(3))
    os.truncate(partition._path, 10)
    with pytest.raises(EOFError, match="shorter than it was"):
        partition.rows()


def test_small_tables_stay_in_memory(cluster4):
    X = da.from_array(np.eye(40), chunks=(10, 40))
    assert not partitions_of(X, client=cluster4).on_disk


def test_partitions_of_large_tables_are_files_where_they_were_made(everything_on_disk):
    X = np.random.default_rng(0).standard_normal((40, 3))
    partitions = partitions_of(da.from_array(X, chunks=(10, 3)), X[:, 0], client=everything_on_disk)
    assert partitions.on_disk
    before = partitions.holders()
    found = gathered(everything_on_disk, partitions.map(np.sum))
    np.testing.assert_allclose(found, [X[k : k + 10].sum() for k in range(0, 40, 10)])
    assert partitions.holders() == before


def _shrink_disk(free):
    if free is None:
        disk_storage.shutil.disk_usage = disk_storage.usual_disk_usage
        return
    disk_storage.usual_disk_usage = shutil.disk_usage
    disk_storage.shutil.disk_usage = lambda folder: SimpleNamespace(free=free)


def test_a_disk_that_is_too_small_is_an_error_before_it_is_full(everything_on_disk):
    X = da.from_array(np.ones((40, 3)), chunks=(10, 3))
    everything_on_disk.run(_shrink_disk, 100)
    try:
        with pytest.raises(ClusterError, match=r"takes about 240 B in .*--local-directory"):
            partitions_of(X, client=everything_on_disk)
    finally:
        everything_on_disk.run(_shrink_disk, None)


def test_frames_become_numbers_on_disk(everything_on_disk):
    from margrove.dask.partitions.encoding import encoded

    frame = pd.DataFrame({"a": np.arange(12.0), "b": list("xyz") * 4})
    partitions = partitions_of(
        dd.from_pandas(frame, npartitions=3), client=everything_on_disk, keep_frames=True
    )
    made = encoded(partitions, None, "from_dtype").partitions
    assert made.on_disk
    kinds = gathered(
        everything_on_disk, [_kind_of(everything_on_disk, partition) for partition in made.X]
    )
    assert kinds == ["PartitionOnDisk"] * 3
    whole = np.concatenate(gathered(everything_on_disk, made.map(np.asarray)))
    np.testing.assert_array_equal(whole, np.column_stack([np.arange(12.0), [0.0, 1.0, 2.0] * 4]))


def _kind_of(client, partition):
    return client.submit(lambda value: type(value).__name__, partition, pure=False)


def saved(model, folder):
    margrove.save(model, folder / "model")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize(
    "name", ["HistGradientBoostingClassifier", "RandomForestClassifier", "AdaBoostClassifier"]
)
def test_models_of_partitions_on_disk_are_those_of_one_machine(everything_on_disk, tmp_path, name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 4)).round(2)
    X[rng.random(X.shape) < 0.05 * (name != "AdaBoostClassifier")] = np.nan
    y = (np.nan_to_num(X[:, 0]) + rng.standard_normal(len(X)) > 0).astype(int)
    settings = {"random_state": 0}
    settings |= {"max_iter": 5} if name.startswith("Hist") else {"n_estimators": 5}
    partitions = da.from_array(X, chunks=(3000, 4)), da.from_array(y, chunks=3000)
    model = getattr(margrove.dask, name)(**settings).fit(*partitions)
    wanted = getattr(margrove, name)(**settings).fit(X, y)
    assert saved(model.to_local(), tmp_path) == saved(wanted, tmp_path)


@pytest.mark.nightly
def test_partitions_on_disk_are_made_again_when_all_workers_are_lost(new_cluster, tmp_path):
    client = new_cluster(2)
    client.run(_set_share, 0.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4))
    y = X[:, 0] + rng.standard_normal(len(X))
    settings = {"max_iter": 300, "early_stopping": False, "random_state": 0}
    wanted = margrove.HistGradientBoostingRegressor(**settings).fit(X, y)
    workers = list(client.run(os.getpid).values())

    def kill_all(progress):
        if not killed and progress.done >= 50:
            killed.extend(workers)
            for process in workers:
                kill(process)

    killed = []
    partitions = da.from_array(X, chunks=(2500, 4)), da.from_array(y, chunks=2500)
    with margrove.watch(on_progress=kill_all):
        model = margrove.dask.HistGradientBoostingRegressor(**settings).fit(*partitions)
    assert killed
    assert set(client.run(os.getpid).values()).isdisjoint(workers)
    assert saved(model.to_local(), tmp_path) == saved(wanted, tmp_path)


def _set_share(share):
    disk_storage._SHARE = share


def _spill(dask_worker=None):
    """Put everything out of memory that Dask can put out."""
    while dask_worker.data.fast:
        dask_worker.data.evict()
    return len(dask_worker.data.slow)


def _files(dask_worker=None):
    return [
        name for name in os.listdir(dask_worker.local_directory) if name.startswith("margrove-")
    ]


@pytest.mark.nightly
def test_dask_does_not_read_what_it_puts_out_of_memory(new_cluster, monkeypatch):
    client = new_cluster(2, memory_limit="4 GB")
    client.run(_set_share, 0.0)
    X = np.random.default_rng(0).standard_normal((40, 3))
    partitions = partitions_of(da.from_array(X, chunks=(10, 3)), client=client)
    assert sum(client.run(_spill).values()) >= 4
    assert sum(map(len, client.run(_files).values())) == 4  # no copies
    np.testing.assert_array_equal(np.concatenate([p.rows() for p in _fetched(partitions)]), X)
    del partitions
    wait_until(lambda: not any(client.run(lambda dask_worker: len(dask_worker.data)).values()))
    client.run(_remember_no_longer_than, 0.0)
    other = partitions_of(da.from_array(X[:20], chunks=(10, 3)), client=client)
    assert sum(map(len, client.run(_files).values())) == 2
    assert other.on_disk


def _fetched(partitions):
    return gathered(partitions.client, partitions.X)


def _remember_no_longer_than(seconds):
    disk_storage._SECONDS_TO_SPILL = seconds


def test_a_message_contains_the_rows(folder):
    from distributed.protocol import deserialize, serialize

    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    for rows in (np.arange(6.0).reshape(2, 3), frame):
        sent = serialize(disk_storage.PartitionOnDisk(rows), context={"recipient": "another"})
        found = deserialize(*sent).rows()
        (pd.testing.assert_frame_equal if rows is frame else np.testing.assert_array_equal)(
            found, rows
        )
