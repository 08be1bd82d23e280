"""The client, workers that agree, and errors with a way out."""

from __future__ import annotations

import os
import time

import dask
import numpy as np
import pytest
from distributed import Client, Future

from margrove.dask.cluster import workers as workers_module
from margrove.dask.cluster.client import client_of
from margrove.dask.cluster.errors import ClusterError
from margrove.dask.cluster.kernels import machines_of
from margrove.dask.cluster.waiting import gathered
from margrove.dask.cluster.workers import threads_of_worker, workers_of


def test_the_given_client_is_used(cluster4):
    assert client_of(cluster4) is cluster4
    assert client_of() is cluster4


def test_without_a_client_the_error_says_how_to_make_one():
    with pytest.raises(ClusterError, match=r"distributed\.Client\(\).*X\.compute\(\)"):
        client_of()


def test_an_address_is_no_client():
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client. Got str"):
        client_of("tcp://10.0.0.1:8786")


def test_a_closed_client_is_refused(cluster4):
    client = Client(cluster4.scheduler.address, set_as_default=False)
    client.close()
    with pytest.raises(ClusterError, match="is closed"):
        client_of(client)


def _client_in_a_task() -> tuple[str, bool]:
    from distributed.threadpoolexecutor import thread_state

    client = client_of()
    client_of()  # seceding twice would be an error
    return client.scheduler.address, not thread_state.proceed


def test_inside_a_task_the_workers_client_is_used_and_its_thread_left_to_others(cluster4):
    address, has_seceded = cluster4.submit(_client_in_a_task, pure=False).result()
    assert address == cluster4.scheduler.address
    assert has_seceded


def test_workers_are_sorted_and_can_be_restricted(cluster4):
    workers = workers_of(cluster4)
    assert workers == sorted(workers)
    assert len(workers) == 4
    with dask.config.set({"margrove.workers": 2}):
        assert workers_of(cluster4) == workers[:2]
    with dask.config.set({"margrove.workers": workers[3]}):
        assert workers_of(cluster4) == workers[3:]
    with (
        dask.config.set({"margrove.workers": ["tcp://10.0.0.1:1"]}),
        pytest.raises(ClusterError, match=r"None of the workers in the setting margrove\.workers"),
    ):
        workers_of(cluster4)


def test_workers_of_another_version_are_listed(cluster4, monkeypatch):
    monkeypatch.setattr(workers_module, "_COMPARED", {})
    monkeypatch.setattr(workers_module, "_software", lambda: {"margrove": "9.9", "numba": "0.1"})
    with pytest.raises(ClusterError, match="Workers differ") as caught:
        workers_of(cluster4)
    said = str(caught.value)
    assert all(worker in said for worker in cluster4.nthreads())
    assert "instead of 9.9" in said
    assert "numba" in said
    assert "Install the same versions" in said


def test_another_processor_is_an_error_unless_it_is_allowed(cluster4, monkeypatch):
    monkeypatch.setattr(workers_module, "_COMPARED", {})
    monkeypatch.setattr(workers_module, "_processor", lambda: {"processor": "z80"})
    with pytest.raises(ClusterError, match="instead of z80") as caught:
        workers_of(cluster4)
    assert "NUMBA_CPU_NAME" in str(caught.value)
    with dask.config.set({"margrove.mixed-processors": True}):
        assert len(workers_of(cluster4)) == 4


def test_a_worker_without_margrove_is_named(cluster4, monkeypatch):
    monkeypatch.setattr(workers_module, "_COMPARED", {})
    monkeypatch.setattr(workers_module, "_software_and_processor", _import_nothing)
    with pytest.raises(ClusterError, match="cannot run margrove: ModuleNotFoundError"):
        workers_of(cluster4)


def _import_nothing() -> None:
    import no_such_module_anywhere  # noqa: F401


def test_threads_are_those_of_the_worker(cluster4):
    assert cluster4.submit(threads_of_worker, pure=False).result() == 1
    assert threads_of_worker() == 1


def test_workers_of_one_machine_are_one_group(cluster4):
    workers = workers_of(cluster4)
    assert list(machines_of(cluster4, workers).values()) == [workers]


def test_gathered_keeps_the_order_and_raises_what_a_task_raised(cluster4):
    futures = cluster4.map(np.square, range(5), pure=False)
    assert gathered(cluster4, futures) == [0, 1, 4, 9, 16]
    with pytest.raises(ZeroDivisionError):
        gathered(cluster4, [cluster4.submit(_divide, 0, pure=False)])


def _divide(x: int) -> float:
    return 1 / x


def test_cancelled_work_is_a_named_error(cluster4):
    future: Future = cluster4.submit(time.sleep, 0.3, pure=False)
    cluster4.cancel([future])
    with pytest.raises(ClusterError, match="has cancelled tasks of this fit"):
        gathered(cluster4, [future])


def test_nothing_is_written_to_the_directory_of_a_worker(cluster4):
    before = cluster4.run(_files_here)
    workers_of(cluster4)
    assert cluster4.run(_files_here) == before


def _files_here() -> list[str]:
    return sorted(os.listdir("."))
