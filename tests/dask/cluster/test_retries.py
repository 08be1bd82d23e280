"""Another attempt, and when there is none."""

from __future__ import annotations

import pytest

from margrove.dask.cluster import retries
from margrove.dask.cluster.errors import WorkerLost
from margrove.dask.cluster.retries import with_retries
from margrove.dask.cluster.workers import workers_of
from margrove.exceptions import ClusterError


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    monkeypatch.setattr(retries, "_REMOVAL_SECONDS", 0.0)


def test_an_attempt_gets_the_workers_and_its_result_is_returned(cluster4):
    assert with_retries(list, cluster4) == workers_of(cluster4)


def test_lost_workers_mean_another_attempt(cluster4):
    calls = []

    def attempt(workers):
        calls.append(workers)
        if len(calls) < 3:
            raise WorkerLost("Worker w is lost.", "w")
        return len(calls)

    assert with_retries(attempt, cluster4) == 3


def test_attempts_are_bounded_and_the_error_names_what_was_lost(cluster4):
    calls = []

    def attempt(workers):
        calls.append(1)
        raise WorkerLost("Worker w, which held rows 0 to 9, is lost: killed.", "w")

    with pytest.raises(ClusterError, match=r"4 times.*rows 0 to 9.*memory") as caught:
        with_retries(attempt, cluster4, attempts=4)
    assert not isinstance(caught.value, WorkerLost)
    assert len(calls) == 4


def test_progress_counts_attempts_anew(cluster4):
    calls = []

    def attempt(workers):
        calls.append(1)
        if len(calls) < 12:
            raise WorkerLost("lost")
        return "done"

    assert with_retries(attempt, cluster4, attempts=2, progress=lambda: len(calls)) == "done"
    calls.clear()
    with pytest.raises(ClusterError, match="3 times"):
        with_retries(attempt, cluster4, attempts=3, progress=lambda: len(calls) // 100)


@pytest.mark.parametrize("error", [ValueError("bad data"), KeyboardInterrupt()])
def test_other_errors_are_not_tried_again(cluster4, error):
    calls = []

    def attempt(workers):
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        with_retries(attempt, cluster4)
    assert len(calls) == 1
