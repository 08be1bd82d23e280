"""Clusters for tests: one of four processes for all that only use it, others to be broken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


_CLUSTERS = {"_four", "cluster4", "new_cluster"}
_SHARE = 10


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Clusters take their time on two cores: of the tests that need one, every tenth of a file runs
    at each commit, and all of them at night."""
    counts: dict[Path, int] = {}
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if (
            HERE not in item.path.parents
            or not _CLUSTERS & set(fixtures)
            or item.get_closest_marker("nightly")
        ):
            continue
        counts[item.path] = counts.get(item.path, -1) + 1
        if counts[item.path] % _SHARE:
            item.add_marker("nightly")


def local_client(n_workers: int, stack: ExitStack, **settings: Any) -> Any:
    cluster = stack.enter_context(
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            **settings,
        )
    )
    return stack.enter_context(distributed.Client(cluster, set_as_default=False))


@pytest.fixture(scope="session")
def _four() -> Iterator[Any]:
    with ExitStack() as stack:
        yield local_client(4, stack)


@pytest.fixture
def cluster4(_four: Any) -> Iterator[Any]:
    """The client of a cluster of four processes, which all tests share; leave it as it is.

    It is the current client. Fewer workers: `with dask.config.set({"margrove.workers": 2})`.
    """
    with _four.as_current():
        yield _four


@pytest.fixture
def new_cluster() -> Iterator[Callable[..., Any]]:
    """Makes clients of clusters of one's own: `new_cluster(2)`. A process takes seconds."""
    with ExitStack() as stack:

        def make(n_workers: int, **settings: Any) -> Any:
            client = local_client(n_workers, stack, **settings)
            stack.enter_context(client.as_current())
            return client

        yield make
