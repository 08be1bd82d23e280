"""The workers of a cluster, and whether their software and processors are the same.

margrove reads these settings of Dask's configuration:

    margrove.workers            the largest number of workers of a fit, or their addresses
    margrove.mixed-processors   True allows workers with different processors (see `workers_of`)
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import os
import platform
import weakref
from collections import defaultdict
from typing import Any

import dask
import distributed

from margrove.dask.cluster.errors import (
    ClusterError,
    WorkerLost,
    client_closed_message,
    scheduler_lost_message,
)

__all__ = [
    "available_workers",
    "is_wanted",
    "known_workers",
    "require_same_software",
    "run_on_workers",
    "software_of_this_process",
    "threads_of_worker",
    "workers_of",
]

ANSWER_SECONDS = 45.0  # after which a silent scheduler counts as lost
_WORKER_SECONDS = 60.0  # the same for a worker, which may have to import margrove first
_TRIES = 3

_COMPARED: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def available_workers(client: distributed.Client) -> dict[str, int]:
    """The current workers, and the number of threads of each.

    Paused workers, which are short of memory, start no tasks and are left out.
    """
    return {
        address: int(facts["nthreads"])
        for address, facts in known_workers(client).items()
        if facts.get("status", "running") == "running"
    }


def known_workers(client: distributed.Client) -> dict[str, dict[str, Any]]:
    """What the scheduler knows about each of its workers, by address."""
    if client.status != "running":
        raise ClusterError(client_closed_message(client))
    try:
        found = client.sync(
            client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_SECONDS
        )
    except (OSError, TimeoutError, RuntimeError) as error:
        raise ClusterError(scheduler_lost_message(client)) from error
    return dict(sorted(found["workers"].items()))


def workers_of(client: distributed.Client) -> list[str]:
    """Addresses of the workers that a fit may use, sorted.

    They are compared with this process. Models are independent of which worker computed what only
    if all have the same versions, and machine code for the same kind of processor. Differences
    are an error that lists the workers.
    """
    for _ in range(_TRIES):
        chosen = _chosen(_some_workers(client))
        silent = _compare(client, chosen)
        if len(silent) < len(chosen):
            return [worker for worker in chosen if worker not in silent]
    raise WorkerLost(f"No worker of the cluster at {client.scheduler.address} responds.")


def _some_workers(client: distributed.Client) -> list[str]:
    available = list(available_workers(client))
    if not available:
        raise WorkerLost(
            f"The cluster at {client.scheduler.address} has no workers. Start some, for example "
            f"with `dask worker {client.scheduler.address}`, or cluster.scale(4)."
        )
    return available


def run_on_workers(
    client: distributed.Client,
    workers: list[str],
    function: Any,
    *arguments: Any,
    seconds: float = _WORKER_SECONDS,
) -> dict[str, Any]:
    """Run a function on workers at once, beside their tasks: the result or exception of each.

    For a worker that does not respond within `seconds`, or is lost, that is an OSError.
    """

    async def one(worker: str) -> Any:
        running = client.run(function, *arguments, workers=[worker], on_error="return")
        try:
            found = await asyncio.wait_for(running, seconds)
        except (OSError, TimeoutError) as error:
            return OSError(str(error) or f"no answer in {seconds:.0f} seconds")
        return found.get(worker, OSError("it is lost"))

    async def all_of_them() -> list[Any]:
        return list(await asyncio.gather(*map(one, workers)))

    return dict(zip(workers, client.sync(all_of_them), strict=True))


def _chosen(workers: list[str]) -> list[str]:
    wanted = dask.config.get("margrove.workers", None)
    if wanted is None:
        return workers
    if isinstance(wanted, int):
        return workers[: max(1, wanted)]
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    chosen = [address for address in workers if address in names]
    if not chosen:
        raise ClusterError(
            f"None of the workers in the setting margrove.workers is available: {sorted(names)}. "
            f"Available are {workers}."
        )
    return chosen


def _compare(client: distributed.Client, workers: list[str]) -> set[str]:
    """The workers that do not respond; an error if others differ from this process.

    Each worker is compared once.
    """
    known = _COMPARED.setdefault(client, set())
    new = [worker for worker in workers if worker not in known]
    if not new:
        return set()
    answers = run_on_workers(client, new, _software_and_processor)
    silent = {worker for worker in new if isinstance(answers[worker], OSError)}
    spoken = {worker: answer for worker, answer in answers.items() if worker not in silent}
    _require_alike(spoken, software_of_this_process())
    known.update(set(new) - silent)
    return silent


def _require_alike(answers: dict[str, Any], expected: dict[str, str]) -> None:
    by_difference: dict[str, list[str]] = defaultdict(list)
    for worker, answer in answers.items():
        if not isinstance(answer, dict):
            raise ClusterError(
                f"Worker {worker} cannot run margrove: {type(answer).__name__}: {answer}. Install "
                f"margrove {expected['margrove']} there."
            )
        for name, value in expected.items():
            there = answer.get(name, "")
            if value != there:
                by_difference[f"{name} {there} instead of {value}"].append(worker)
    if by_difference:
        raise ClusterError(_differences(by_difference))


def software_of_this_process() -> dict[str, str]:
    """What workers are compared by: versions, and the processor unless it may be another."""
    is_mixed = dask.config.get("margrove.mixed-processors", False)
    return _software() if is_mixed else _software() | _processor()


def require_same_software(expected: dict[str, str]) -> None:
    """On a worker: ClusterError if it differs from the client; for workers that come later."""
    here = _software_and_processor()
    if any(here[name] != value for name, value in expected.items()):
        _require_alike({distributed.get_worker().address: here}, expected)


def _differences(by_difference: dict[str, list[str]]) -> str:
    lines = [
        f"  {what}: {', '.join(workers[:5])}"
        + (f" and {len(workers) - 5} more" * (len(workers) > 5))
        for what, workers in sorted(by_difference.items())
    ]
    way_out = (
        "Their machine code rounds differently. Set NUMBA_CPU_NAME (for example to x86-64-v3) and "
        "an empty NUMBA_CPU_FEATURES for the client and all workers. Or allow that the last "
        'digits of a model depend on the workers: dask.config.set({"margrove.mixed-processors": '
        "True})."
        if all(what.startswith("processor ") for what in by_difference)
        else "Install the same versions everywhere: otherwise models would depend on the workers."
    )
    return "\n".join(["Workers differ from the process of the client:", *lines, way_out])


def _software_and_processor() -> dict[str, str]:
    return _software() | _processor()


def _software() -> dict[str, str]:
    from margrove._runtime import digest_of_sources
    from margrove._version import __version__

    versions = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "llvmlite")}
    return {
        "margrove": __version__,
        "sources": digest_of_sources(),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **versions,
    }


def _processor() -> dict[str, str]:
    """The processor for which Numba compiles."""
    import llvmlite.binding as llvm

    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        there = llvm.get_host_cpu_features()
        features = ",".join(sorted(feature for feature, has in there.items() if has))
    digest = hashlib.sha256(features.encode()).hexdigest()[:8]
    return {"processor": f"{name} (features {digest})"}


def threads_of_worker() -> int:
    """The number of threads of the worker that runs this, which margrove may use there."""
    try:
        return max(1, int(distributed.get_worker().state.nthreads))
    except ValueError:
        return 1


def is_wanted() -> bool:
    """Whether the calling task has not been cancelled."""
    from dask.context import thread_state
    from distributed import get_worker

    try:
        task = get_worker().state.tasks.get(thread_state.key)
    except (ValueError, AttributeError):  # not in a task
        return True
    return task is not None and task.state != "cancelled"
