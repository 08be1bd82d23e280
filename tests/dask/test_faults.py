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
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from tests.dask import programs
from tests.dask.conftest import local_client
from tests.dask.killing import KillLater, kill
from tests.interrupts import PATIENCE, wait_until

from margrove.dask.cluster import WorkerLost, waiting
from margrove.dask.cluster.client import client_of
from margrove.dask.cluster.retries import with_retries
from margrove.dask.cluster.waiting import gathered
from margrove.dask.cluster.workers import available_workers, workers_of
from margrove.dask.members import Members
from margrove.dask.partitions.table import partitions_of
from margrove.exceptions import ClusterError

X = np.arange(300).reshape(100, 3)


def made_partitions(client):
    return partitions_of(da.from_array(X, chunks=(7, 3), name=False), client=client)


def kill_worker(client, worker):
    kill(client.run(os.getpid, workers=[worker])[worker])


def summed(client, partitions, disturb=lambda done, members: None, rounds=5, seconds=0.0):
    """Rounds that go on after the last one if a worker is lost: what a learner does."""
    kept = []

    def attempt(workers):
        left = rounds - len(kept)
        with Members(partitions, workers, programs.sums_of_columns, [left, seconds]) as members:
            while len(kept) < rounds:
                disturb(len(kept), members)
                kept.extend(members.reports(0.05))
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
    with Members(partitions, workers_of(client3), programs.goes_on) as members:
        victim = members.addresses[1]
        kill_worker(client3, victim)
        with pytest.raises(WorkerLost, match=f"Worker {victim} was lost") as caught:
            members.results()
        assert caught.value.worker == victim
    np.testing.assert_array_equal(np.concatenate(gathered(client3, partitions.X)), X)  # rebuilt
    killed = []

    def disturb(done, members):
        if done == 3 and not killed:
            killed.append(members.addresses[0])
            kill_worker(client3, members.addresses[0])

    found = summed(client3, partitions, disturb, rounds=10, seconds=0.2)
    np.testing.assert_array_equal(found, 10 * X.sum(axis=0))
    assert killed
    assert not {victim, *killed} & set(available_workers(client3))


@pytest.mark.nightly
def test_a_worker_that_joins_takes_part_in_the_next_attempt(client3):
    partitions = made_partitions(client3)
    client3.cluster.scale(4)
    client3.wait_for_workers(4, timeout=60)
    seen = []
    summed(client3, partitions, lambda done, members: seen.append(len(members.addresses)))
    assert set(seen) == {4}


def _die() -> None:
    os._exit(1)


def test_a_task_that_kills_its_workers_is_named(client3):
    deadly = da.from_delayed(dask.delayed(_die)(), (5, 2), dtype=float)
    with pytest.raises(ClusterError, match=r"2 workers died.*partition 0 of X.*GiB.*smaller"):
        partitions_of(deadly, client=client3)


@pytest.mark.nightly
def test_results_that_are_lost_before_they_are_fetched(client3, monkeypatch):
    """Tasks that prefer a worker are done by others, should it die with their results."""
    victim = workers_of(client3)[0]
    there = {"workers": [victim], "allow_other_workers": True}
    futures = [client3.submit(pow, k, 2, pure=False, **there) for k in range(3)]
    usual = waiting.wait_for_results

    def wait_and_kill(client, results, **settings):
        usual(client, results, **settings)
        kill_worker(client, victim)
        while victim in client.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.05)

    monkeypatch.setattr(waiting, "wait_for_results", wait_and_kill)
    assert gathered(client3, futures) == [0, 1, 4]


def test_without_workers_a_fit_ends_in_a_named_error(client3, monkeypatch):
    monkeypatch.setattr(waiting, "SECONDS_WITHOUT_WORKERS", 1.0)
    client, partitions = client3, made_partitions(client3)
    # Workers that leave one after the other are not the fault of the tasks they had.
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 10)
    client.cluster.scale(0)
    while available_workers(client):
        time.sleep(0.1)
    with pytest.raises(ClusterError, match=r"All workers of the cluster at .* are lost"):
        summed(client, partitions)
    with pytest.raises(ClusterError, match=r"All workers of the cluster at .* are lost"):
        gathered(client, partitions.X)
    with pytest.raises(ClusterError, match=r"has no workers\. Start some"):
        workers_of(client)


def _slow_block(block):
    time.sleep(0.2)
    return block


def _lose_all_workers(client):
    client.cluster.scale(0)
    while available_workers(client):
        time.sleep(0.05)
    client.cluster.scale(3)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["array", "dataframe"])
def test_partitions_are_made_again_when_all_workers_are_lost(new_cluster, kind):
    """Also of tasks that became ready when there was no worker, which Dask itself forgets."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 20}):
        client = new_cluster(3)
    if kind == "array":
        table = da.from_array(X, chunks=(10, 3)).map_blocks(_slow_block, dtype=int)
    else:
        table = dd.from_pandas(pd.DataFrame(X), npartitions=10).map_partitions(_slow_block)
    losing = threading.Timer(0.5, _lose_all_workers, [client])
    losing.start()
    partitions = partitions_of(table, client=client)
    losing.join()
    np.testing.assert_array_equal(np.concatenate(gathered(client, partitions.X)), X)
    _lose_all_workers(client)
    sums = client.submit(sum, partitions.map(np.sum), pure=False)
    assert gathered(client, [sums]) == [X.sum()]


def test_tasks_of_lost_workers_end_a_wait(client3):
    worker = workers_of(client3)[0]
    pid = client3.run(os.getpid, workers=[worker])[worker]
    future = client3.submit(time.sleep, PATIENCE, workers=[worker], pure=False)
    KillLater(pid, 0.5)
    with pytest.raises(WorkerLost, match=f"{worker} are lost") as caught:
        gathered(client3, [future], workers=[worker])
    assert caught.value.worker == worker


def test_a_wait_ends_if_nothing_runs(client3, monkeypatch):
    monkeypatch.setattr(waiting, "IDLE_SECONDS", 1.0)
    future = client3.submit(pow, 2, 2, resources={"none has it": 1}, pure=False)
    with pytest.raises(WorkerLost, match="has computed anything for 1 seconds"):
        gathered(client3, [future])


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
    monkeypatch.setattr("margrove.dask.cluster.workers.ANSWER_SECONDS", 3.0)

    def kill_scheduler(done, members):
        scheduler.kill()
        scheduler.wait()

    with pytest.raises(ClusterError, match="scheduler"):
        summed(client, partitions, kill_scheduler, seconds=0.2)
    with pytest.raises(ClusterError, match="scheduler"):
        gathered(client, partitions.X)


def test_a_client_that_is_gone_leaves_nothing_behind(cluster4):
    with Client(cluster4.scheduler.address, set_as_default=False) as client, client.as_current():
        members = Members(made_partitions(client), workers_of(client), programs.goes_on)
        members.__enter__()
        assert members.next_report() is not None
    wait_until(lambda: not any(cluster4.processing().values()))


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
        found = summed(client3, partitions, rounds=30, seconds=0.02)
        timer.join()
        np.testing.assert_array_equal(found, 30 * X.sum(axis=0))
