"""Clusters for tests: one of four processes for all that only use it, others to be broken."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


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
