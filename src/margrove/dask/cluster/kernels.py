"""Compiled kernels on the workers: each machine compiles them once, before a fit uses them."""

from __future__ import annotations

import os
import socket
import weakref
from collections import defaultdict
from typing import Any

import distributed

from margrove.dask.cluster.waiting import gathered
from margrove.dask.cluster.workers import run_on_workers

__all__ = ["machines_of", "warm_kernels"]

_WARMED: weakref.WeakKeyDictionary[Any, set[tuple[str, str]]] = weakref.WeakKeyDictionary()


def machines_of(client: distributed.Client, workers: list[str]) -> dict[str, list[str]]:
    """Workers grouped by machine and cache of compiled kernels."""
    machines = run_on_workers(client, workers, _machine)
    groups: dict[str, list[str]] = defaultdict(list)
    for worker in workers:
        if isinstance(machines[worker], str):  # otherwise it has been lost
            groups[machines[worker]].append(worker)
    return dict(groups)


def _machine() -> str:
    from margrove._runtime import cache_directory

    return f"{socket.gethostname()} {cache_directory() or os.getpid()}"


def warm_kernels(client: distributed.Client, workers: list[str], *names: str) -> None:
    """Compile some entries of `margrove._runtime.warmup.PARTS`, once on each machine.

    Otherwise all workers of a machine would compile the same kernels at the same time.
    """
    done = _WARMED.setdefault(client, set())
    if all((worker, name) in done for worker in workers for name in names):
        return
    first = [group[0] for group in machines_of(client, workers).values()]
    tasks = [
        client.submit(_compile, list(names), workers=[one], allow_other_workers=True, pure=False)
        for one in first
    ]
    gathered(client, tasks, workers=first)
    done.update((worker, name) for worker in workers for name in names)


def _compile(names: list[str]) -> None:
    from margrove._runtime import run_parts

    run_parts(names)
