"""The workers of a cluster, and whether their software and processors are the same.

margrove reads these settings of Dask's configuration:

    margrove.workers            the largest number of workers of a fit, or their addresses
    margrove.mixed-processors   True allows workers with different processors (see `workers_of`)
    margrove.plain-sockets      True allows unencrypted sockets where those of Dask are encrypted
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

from margrove.dask.cluster.errors import ClusterError, WorkerLost, scheduler_lost_message

__all__ = ["available_workers", "is_wanted", "run_on_workers", "threads_of_worker", "workers_of"]

ANSWER_SECONDS = 45.0  # after which a silent scheduler counts as lost
_WORKER_SECONDS = 60.0  # the same for a worker, which may have to import margrove first
_TRIES = 3

_COMPARED: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def available_workers(client: distributed.Client) -> dict[str, int]:
    """The current workers, and the number of threads of each.

    Paused workers, which are short of memory, start no tasks and are left out.
    """
    try:
        found = client.sync(
            client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_SECONDS
        )
    except (OSError, TimeoutError, RuntimeError) as error:
        raise ClusterError(scheduler_lost_message(client)) from error
    return {
        address: int(facts["nthreads"])
        for address, facts in sorted(found["workers"].items())
        if facts.get("status", "running") == "running"
    }


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
    _require_alike({worker: answer for worker, answer in answers.items() if worker not in silent})
    known.update(set(new) - silent)
    return silent


def _require_alike(answers: dict[str, Any]) -> None:
    expected = _software() | _processor()
    by_difference: dict[str, list[str]] = defaultdict(list)
    is_processor_only = True
    for worker, answer in answers.items():
        if not isinstance(answer, dict):
            raise ClusterError(
                f"Worker {worker} cannot run margrove: {type(answer).__name__}: {answer}. Install "
                f"margrove {expected['margrove']} there."
            )
        for name, value in expected.items():
            there = answer.get(name, "")
            if value != there:
                if name == "processor" and dask.config.get("margrove.mixed-processors", False):
                    continue
                is_processor_only &= name == "processor"
                by_difference[f"{name} {there} instead of {value}"].append(worker)
    if by_difference:
        raise ClusterError(_differences(by_difference, is_processor_only))


def _differences(by_difference: dict[str, list[str]], is_processor_only: bool) -> str:
    lines = [
        f"  {what}: {', '.join(workers[:5])}"
        + (f" and {len(workers) - 5} more" * (len(workers) > 5))
        for what, workers in sorted(by_difference.items())
    ]
    way_out = (
        "Their machine code rounds differently. Set NUMBA_CPU_NAME (for example to x86-64-v3) and "
        "an empty NUMBA_CPU_FEATURES for this process and all workers. Or allow that the last "
        'digits of a model depend on the workers: dask.config.set({"margrove.mixed-processors": '
        "True})."
        if is_processor_only
        else "Install the same versions everywhere: otherwise models would depend on the workers."
    )
    return "\n".join(["Workers differ from this process:", *lines, way_out])


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
