"""Workers that are killed, stopped or added, schedulers and clients that vanish."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from tests.dask.conftest import local_client
from tests.dask.killing import kill, stopped
from tests.interrupts import PATIENCE, wait_until

from margrove.dask.cluster import waiting
from margrove.dask.cluster.client import client_of
from margrove.dask.cluster.retries import with_retries
from margrove.dask.cluster.waiting import gathered
from margrove.dask.cluster.workers import available_workers, workers_of
from margrove.dask.collective.worker_group import WorkerGroup, WorkerLost
from margrove.dask.partitions.shards import plan_shards
from margrove.dask.partitions.table import partitions_of
from margrove.exceptions import ClusterError

X = np.arange(300).reshape(100, 3)
PROGRAM = "tests.dask.collective.programs:Sums"


def made_partitions(client):
    return partitions_of(da.from_array(X, chunks=(7, 3), name=False), client=client)


def new_group(client, partitions, workers=None, **settings):
    shards = plan_shards(partitions.lengths, workers or workers_of(client), partitions.holders())
    return WorkerGroup(client, shards, partitions, PROGRAM, **settings)


def kill_worker(client, worker):
    kill(client.run(os.getpid, workers=[worker])[worker])


def summed(client, partitions, disturb=lambda done, group: None, rounds=5):
    """Rounds with a checkpoint: what a learner does."""
    kept = []

    def attempt(workers):
        with new_group(client, partitions, workers) as group:
            while len(kept) < rounds:
                disturb(len(kept), group)
                kept.append(group.call("whole_sum"))
        return np.sum(kept, axis=0)

    return with_retries(attempt, client, progress=lambda: len(kept))


@pytest.fixture(scope="module")
def _three():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        ExitStack() as stack,
    ):
        yield local_client(3, stack)


@pytest.fixture
def client3(_three):
    """To be killed, a worker at a time; the nannies make new ones."""
    _three.cluster.scale(3)
    _three.wait_for_workers(3, timeout=60)
    with _three.as_current():
        yield _three


@pytest.mark.nightly
def test_a_killed_worker_is_named_and_the_result_is_the_same(client3):
    partitions = made_partitions(client3)
    with new_group(client3, partitions) as group:
        victim = group.workers[1]
        start = group.call("rows_held", reduce="list")[1][0]
        with pytest.raises(WorkerLost, match=f"Worker {victim}, which held rows") as caught:
            group.call("die_at", start)
        assert caught.value.worker == victim
    np.testing.assert_array_equal(np.concatenate(gathered(client3, partitions.X)), X)  # rebuilt
    killed = []

    def disturb(done, group):
        if done == 3 and not killed:
            killed.append(group.workers[0])
            kill_worker(client3, group.workers[0])

    np.testing.assert_array_equal(summed(client3, partitions, disturb), 5 * X.sum(axis=0))
    assert killed
    assert not {victim, *killed} & set(available_workers(client3))


@pytest.mark.nightly
def test_a_worker_that_is_stopped_counts_as_lost(client3):
    partitions = made_partitions(client3)
    with new_group(client3, partitions, heartbeat_timeout=1.0) as group:
        worker = group.workers[2]
        pid = client3.run(os.getpid, workers=[worker])[worker]
        lost = pytest.raises(WorkerLost, match=f"{worker}.* nothing was received from it")
        with stopped(pid), lost:
            group.call("whole_sum")


@pytest.mark.nightly
def test_a_worker_that_joins_takes_part_in_the_next_attempt(client3):
    partitions = made_partitions(client3)
    client3.cluster.scale(4)
    with new_group(client3, partitions) as group:
        client3.wait_for_workers(4, timeout=60)
        np.testing.assert_array_equal(group.call("whole_sum"), X.sum(axis=0))
    assert len(workers_of(client3)) == 4
    np.testing.assert_array_equal(summed(client3, partitions), 5 * X.sum(axis=0))


def _die() -> None:
    os._exit(1)


def test_a_task_that_kills_its_workers_is_named(client3):
    deadly = da.from_delayed(dask.delayed(_die)(), (5, 2), dtype=float)
    with pytest.raises(ClusterError, match=r"2 workers died.*partition 0 of X.*GiB.*smaller"):
        partitions_of(deadly, client=client3)


@pytest.mark.nightly
def test_results_that_are_lost_before_they_are_fetched(client3, monkeypatch):
    """Tasks meant for one worker are done by others, should it die with their results."""
    victim = workers_of(client3)[0]
    futures = [client3.submit(pow, k, 2, workers=[victim], pure=False) for k in range(3)]
    usual = waiting.wait_for_results

    def wait_and_kill(client, results):
        usual(client, results)
        kill_worker(client, victim)
        while victim in client.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.05)

    monkeypatch.setattr(waiting, "wait_for_results", wait_and_kill)
    assert gathered(client3, futures) == [0, 1, 4]


def test_without_workers_a_fit_ends_in_a_named_error(client3, monkeypatch):
    monkeypatch.setattr(waiting, "SECONDS_WITHOUT_WORKERS", 1.0)
    client, partitions = client3, made_partitions(client3)
    client.cluster.scale(0)
    while available_workers(client):
        time.sleep(0.1)
    with pytest.raises(ClusterError, match=r"All workers of the cluster at .* are lost"):
        summed(client, partitions)
    with pytest.raises(ClusterError, match=r"All workers of the cluster at .* are lost"):
        gathered(client, partitions.X)
    with pytest.raises(ClusterError, match=r"has no workers\. Start some"):
        workers_of(client)


@contextlib.contextmanager
def program(*arguments):
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "dask", *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def killable(tmp_path):
    """A scheduler and a worker in processes of their own."""
    file = tmp_path / "scheduler.json"
    with (
        program(
            "scheduler", "--no-dashboard", "--port", "0", "--scheduler-file", file
        ) as scheduler,
        program(
            "worker", "--no-dashboard", "--no-nanny", "--nthreads", "1", "--scheduler-file", file
        ),
        Client(scheduler_file=file, set_as_default=False, timeout=60) as client,
    ):
        client.wait_for_workers(1, timeout=60)
        yield client, scheduler


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_lost_scheduler_is_a_named_error(killable, monkeypatch):
    client, scheduler = killable
    partitions = made_partitions(client)
    with new_group(client, partitions):
        monkeypatch.setattr("margrove.dask.cluster.workers.ANSWER_SECONDS", 3.0)
        scheduler.kill()
        scheduler.wait()
        with pytest.raises(ClusterError, match="scheduler"):
            summed(client, partitions)
    with pytest.raises(ClusterError, match="scheduler"):
        gathered(client, partitions.X)


def test_a_client_that_is_gone_leaves_nothing_behind(cluster4):
    partitions = made_partitions(cluster4)
    group = new_group(cluster4, partitions)
    group.__enter__()
    for channel in group._channels.values():
        channel.close()  # as the kernel does for a process that is killed
    wait_until(lambda: {task.status for task in group._tasks} == {"finished"})
    group.close()


def test_two_fits_at_once_on_one_client(cluster4):
    found = {}

    def fit(name):
        with cluster4.as_current():
            found[name] = summed(cluster4, made_partitions(cluster4))

    threads = [threading.Thread(target=fit, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert all(np.array_equal(model, 5 * X.sum(axis=0)) for model in found.values())
    assert len(found) == 2


def _fit_in_a_task():
    client = client_of()
    return summed(client, made_partitions(client))


def test_fits_inside_tasks_do_not_wait_for_their_own_threads(cluster4):
    futures = [cluster4.submit(_fit_in_a_task, pure=False) for _ in range(5)]
    for model in gathered(cluster4, futures):
        np.testing.assert_array_equal(model, 5 * X.sum(axis=0))


def _have_workers(client):
    """A nanny whose worker is killed while it starts may give up."""
    try:
        client.wait_for_workers(2, timeout=20)
    except TimeoutError:
        client.cluster.scale(0)
        client.cluster.scale(3)
        client.wait_for_workers(3, timeout=60)


@pytest.mark.nightly
def test_kills_at_random_moments_change_nothing(new_cluster):
    client3 = new_cluster(3)
    rng = np.random.default_rng(0)
    for _ in range(50):
        _have_workers(client3)
        partitions = made_partitions(client3)
        timer = threading.Timer(
            rng.uniform(0, 1.0), lambda: kill_worker(client3, rng.choice(list(client3.nthreads())))
        )
        timer.start()
        found = summed(
            client3, partitions, lambda done, group: group.call("sleep", 0.02), rounds=30
        )
        timer.join()
        np.testing.assert_array_equal(found, 30 * X.sum(axis=0))
