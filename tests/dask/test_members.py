"""Programs that run on several workers at once, and the sums between them."""

from __future__ import annotations

import logging
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
import distributed
from tests.dask import programs
from tests.interrupts import wait_until

import margrove
from margrove.dask import HistGradientBoostingRegressor, exchanges, host_memory, mailboxes
from margrove.dask.cluster import WorkerLost
from margrove.dask.members import Members
from margrove.dask.partitions import partitions_of


@pytest.fixture(scope="module")
def five():
    """Five workers in this process."""
    cluster = distributed.LocalCluster(
        n_workers=5, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def table(client, n=100, chunks=9):
    X = np.arange(2.0 * n).reshape(n, 2)
    return partitions_of(
        da.from_array(X, (chunks, 2)), da.from_array(X[:, 0], chunks), client=client
    )


def workers_of(client, n=None):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])[:n]


def results(client, program, *arguments, n_workers=None, **others):
    with Members(
        table(client, **others), workers_of(client, n_workers), program, arguments
    ) as members:
        return members.results()


@pytest.mark.parametrize("n_workers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("chunks", [7, 100])
def test_each_row_is_with_one_member(five, n_workers, chunks) -> None:
    found = results(five, programs.rows_of, n_workers=n_workers, chunks=chunks)
    assert [rank for rank, _ in found] == list(range(n_workers))
    rows, targets = {}, {}
    for _, blocks in found:
        for start, X, y in blocks:
            rows |= dict(enumerate(X, start))
            targets |= dict(enumerate(y, start))
    assert [rows[i] for i in range(100)] == [[2.0 * i, 2.0 * i + 1.0] for i in range(100)]
    assert [targets[i] for i in range(100)] == [2.0 * i for i in range(100)]


def test_workers_without_rows_are_left_out(five) -> None:
    assert len(results(five, programs.rows_of, n=3, chunks=1)) == 3


HOSTS = {
    "one machine": [0, 0, 0, 0, 0],
    "two machines": [0, 1, 0, 1, 1],
    "five machines": [0, 1, 2, 3, 4],
}


@pytest.mark.parametrize("hosts", HOSTS)
@pytest.mark.parametrize("n_workers", [1, 2, 3, 4, 5])
def test_sums_maxima_and_values(five, monkeypatch, n_workers, hosts) -> None:
    numbers = dict(zip(workers_of(five), HOSTS[hosts], strict=True))
    there = {address: f"machine {number}" for address, number in numbers.items()}
    monkeypatch.setattr(exchanges, "host_name", lambda: there[distributed.get_worker().address])
    monkeypatch.setattr(host_memory, "_BYTES_OF_A_SLOT", 100_096)  # arrays come in pieces
    for seed in range(3):
        found = results(five, programs.combinations, seed, 40, n_workers=n_workers)
        assert found == [list(range(n_workers))] * n_workers


def test_sums_without_memory_that_members_share(five, monkeypatch) -> None:
    """Of a machine with a full disk, or of two that have the same name: the file is not there."""
    monkeypatch.setattr(host_memory.HostMemory, "joined", lambda *offer: None)
    assert results(five, programs.combinations, 0, 40) == [list(range(5))] * 5

    def full(**settings):
        raise OSError("No space left on device")

    monkeypatch.setattr(host_memory.tempfile, "mkstemp", full)
    assert results(five, programs.combinations, 0, 40) == [list(range(5))] * 5


def test_memory_that_members_share_leaves_no_files(five, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(host_memory, "_folder", lambda: str(tmp_path))
    found = results(five, programs.combinations, 0, 10)
    assert found == [list(range(5))] * 5
    assert list(tmp_path.iterdir()) == []


def test_sums_between_processes(cluster4) -> None:
    for n_workers in (2, 3, 4):
        found = results(cluster4, programs.combinations, n_workers, 60, n_workers=n_workers)
        assert found == [list(range(n_workers))] * n_workers


def test_reports_arrive_once_and_in_order(five) -> None:
    with Members(table(five), workers_of(five), programs.numbered_reports, [50]) as members:
        seen = []
        while (report := members.next_report()) is not None:
            seen.append(report)
    assert seen == list(range(50))
    with Members(table(five), workers_of(five), programs.numbered_reports, [50]) as members:
        seen = []
        while len(seen) < 50:
            seen += members.reports(0.05)
        assert members.reports(0.05) == []
    assert seen == list(range(50))


@pytest.mark.parametrize("rank", [0, 3])
def test_the_error_of_one_member_is_that_of_the_program(five, rank) -> None:
    with pytest.raises(ValueError, match=f"Member {rank} has a problem"):
        results(five, programs.fails, rank)


def test_a_program_ends_when_nobody_wants_it(five) -> None:
    with Members(table(five), workers_of(five), programs.goes_on) as members:
        assert members.next_report() is not None
    wait_until(lambda: not any(five.processing().values()))
    assert not any(boxes._open for boxes in mailboxes._OF_WORKERS.values())


def test_members_wait_for_one_that_computes(five, monkeypatch) -> None:
    monkeypatch.setattr(exchanges, "_SECONDS_OF_A_LOOK", 0.1)
    monkeypatch.setattr(exchanges, "_SECONDS_TO_ASK", 0.2)
    assert results(five, programs.computes_for_long, 2, 1.5) == [5] * 5


def test_a_worker_that_dies(new_cluster) -> None:
    client = new_cluster(3)
    for rank in (0, 1):
        with pytest.raises(WorkerLost):
            results(client, programs.kills_its_worker, rank, 5)
        client.wait_for_workers(3, timeout=60)


def _wait_no_longer_than(seconds):
    exchanges._SECONDS_TO_ANSWER = exchanges._SECONDS_TO_ASK = seconds


def test_a_worker_that_stands_still(new_cluster) -> None:
    client = new_cluster(2)
    assert results(client, programs.stops_its_worker, 1, 2.0) == [2, 2]
    client.run(_wait_no_longer_than, 1.0)
    with pytest.raises(WorkerLost):
        results(client, programs.stops_its_worker, 1, 8.0)


@pytest.fixture(scope="module")
def security(tmp_path_factory):
    """A certificate of this machine for all, which must be used."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    folder = tmp_path_factory.mktemp("certificates")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key,
         "-out", certificate, "-subj", "/CN=localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    names = ("client", "scheduler", "worker")
    return distributed.Security(
        require_encryption=True,
        tls_ca_file=certificate,
        **{f"tls_{name}_cert": certificate for name in names},
        **{f"tls_{name}_key": key for name in names},
    )


@pytest.fixture(scope="module")
def secured(security):
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        protocol="tls",
        security=security,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    with cluster, distributed.Client(cluster, security=security, set_as_default=False) as client:
        yield client


def test_a_cluster_with_encryption(secured, tmp_path) -> None:
    assert all(address.startswith("tls://") for address in workers_of(secured))
    assert results(secured, programs.combinations, 0, 30) == [[0, 1]] * 2
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    model = HistGradientBoostingRegressor(max_iter=5, subsample=0.5, random_state=0)
    model.fit(da.from_array(X, (1000, 4)), da.from_array(y, 1000), client=secured)
    local = margrove.HistGradientBoostingRegressor(max_iter=5, subsample=0.5, random_state=0)
    margrove.save(model, tmp_path / "far")
    margrove.save(local.fit(X, y), tmp_path / "near")
    assert (tmp_path / "far").read_bytes() == (tmp_path / "near").read_bytes()
