"""The cluster: its client, its workers, whether they agree, and what can go wrong with it.

These settings of Dask's configuration are ours:

    margrove.workers            how many workers a fit uses at most, or their addresses
    margrove.mixed-processors   True lets workers differ in their processors (see `workers_of`)
    margrove.plain-sockets      True lets fits use sockets that are not encrypted where Dask's are
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import os
import platform
import socket
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import distributed

from margrove.exceptions import ClusterError

__all__ = [
    "ClusterError",
    "WorkerLost",
    "available_workers",
    "client_of",
    "explained_errors",
    "killed_worker_message",
    "machines_of",
    "run_on_workers",
    "threads_of_worker",
    "warm_kernels",
    "workers_of",
]

ANSWER_SECONDS = 45.0  # after which a scheduler that says nothing counts as lost
_WORKER_SECONDS = 60.0  # the same for a worker, which may have to import margrove first
_TRIES = 3

_COMPARED: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
_WARMED: weakref.WeakKeyDictionary[Any, set[tuple[str, str]]] = weakref.WeakKeyDictionary()


class WorkerLost(ClusterError):  # noqa: N818, it is what happened, and the next attempt may succeed
    """A fit has lost a worker, or what one of them held; `worker` is which, if it is known."""

    def __init__(self, message: str, worker: str = "") -> None:
        super().__init__(message)
        self.worker = worker

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.worker)


def client_of(client: distributed.Client | None = None) -> distributed.Client:
    """The client that was given, or the one of this place in the program.

    Inside a task that is the worker's own. The task then leaves its worker's threads to others:
    it will wait for tasks that may have to run there.
    """
    if client is not None:
        if not isinstance(client, distributed.Client):
            raise TypeError(
                f"client must be a distributed.Client. Got {type(client).__name__} instead."
            )
    elif _is_inside_task():
        client = distributed.get_client()
    else:
        client = _current_client()
    if _is_inside_task():
        _secede_once()
    if client.asynchronous:
        raise ClusterError(
            "The client is asynchronous, and a fit waits. Use a client without asynchronous=True, "
            "or run the fit in a thread: await asyncio.to_thread(model.fit, X, y)."
        )
    if client.status != "running":
        raise ClusterError(
            f"The client is {client.status}: its scheduler is gone, or client.close() was called. "
            "Make a new one: distributed.Client(address)."
        )
    return client


def _current_client() -> distributed.Client:
    try:
        return distributed.Client.current()
    except ValueError:
        raise ClusterError(
            "X is a Dask collection, but there is no cluster to fit on. Make a client first: "
            "client = distributed.Client() for this machine, or distributed.Client(address) for a "
            "scheduler that is running. For a local fit, pass X.compute()."
        ) from None


def _is_inside_task() -> bool:
    try:
        distributed.get_worker()
        return hasattr(_task_state(), "key")
    except ValueError:
        return False


def _task_state() -> Any:
    from dask.context import thread_state

    return thread_state


def _secede_once() -> None:
    from distributed.threadpoolexecutor import thread_state

    if getattr(thread_state, "proceed", False):
        distributed.secede()


# -- workers --


def available_workers(client: distributed.Client) -> dict[str, int]:
    """The workers that there are at the moment, and how many threads each has.

    A paused worker (which is short of memory) starts nothing, so it is not among them.
    """
    try:
        found = client.sync(
            client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER_SECONDS
        )
    except (OSError, TimeoutError, RuntimeError) as error:
        raise ClusterError(_scheduler_lost_message(client)) from error
    return {
        address: int(facts["nthreads"])
        for address, facts in sorted(found["workers"].items())
        if facts.get("status", "running") == "running"
    }


def _scheduler_lost_message(client: distributed.Client) -> str:
    where = getattr(client.scheduler, "address", "?")
    return (
        f"The scheduler at {where} does not answer. What it knew of the data is lost with it: "
        "start a cluster, make a new client, and fit again; a fit inside margrove.checkpoint goes "
        "on where it was."
    )


def workers_of(client: distributed.Client) -> list[str]:
    """Addresses of the workers that a fit may use, sorted.

    They are compared with each other and with this process. Models do not depend on who computed
    what only if everybody computes alike: with the same versions, and with machine code for the
    same kind of processor. Workers that differ are an error that lists them.
    """
    for _ in range(_TRIES):
        chosen = _chosen(_some_workers(client))
        silent = _compare(client, chosen)
        if len(silent) < len(chosen):
            return [worker for worker in chosen if worker not in silent]
    raise WorkerLost(f"No worker of the cluster at {client.scheduler.address} answers.")


def _some_workers(client: distributed.Client) -> list[str]:
    there = list(available_workers(client))
    if not there:
        raise WorkerLost(
            f"The cluster at {client.scheduler.address} has no workers. Start some, for example "
            f"with `dask worker {client.scheduler.address}`, or cluster.scale(4)."
        )
    return there


def run_on_workers(
    client: distributed.Client,
    workers: list[str],
    function: Any,
    *arguments: Any,
    seconds: float = _WORKER_SECONDS,
) -> dict[str, Any]:
    """Run a function on workers, now, beside their tasks: what each returns, or an exception.

    Whoever says nothing for some seconds, or is gone, has an OSError.
    """

    async def one(worker: str) -> Any:
        running = client.run(function, *arguments, workers=[worker], on_error="return")
        try:
            found = await asyncio.wait_for(running, seconds)
        except (OSError, TimeoutError) as error:
            return OSError(str(error) or f"no answer in {seconds:.0f} seconds")
        return found.get(worker, OSError("it is gone"))

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
            f"None of the workers that margrove.workers names is there: {sorted(names)}. There are "
            f"{workers}."
        )
    return chosen


def _compare(client: distributed.Client, workers: list[str]) -> set[str]:
    """Whoever does not answer; an error for those that differ from us. Each is asked once."""
    known = _COMPARED.setdefault(client, set())
    new = [worker for worker in workers if worker not in known]
    if not new:
        return set()
    answers = run_on_workers(client, new, _software_and_processor)
    silent = {worker for worker in new if isinstance(answers[worker], OSError)}
    _require_alike({worker: own for worker, own in answers.items() if worker not in silent})
    known.update(set(new) - silent)
    return silent


def _require_alike(answers: dict[str, Any]) -> None:
    own = _software() | _processor()
    by_difference: dict[str, list[str]] = defaultdict(list)
    is_processor_only = True
    for worker, answer in answers.items():
        if not isinstance(answer, dict):
            raise ClusterError(
                f"Worker {worker} cannot run margrove: {type(answer).__name__}: {answer}. Install "
                f"margrove {own['margrove']} there."
            )
        for name, value in own.items():
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
        "an empty NUMBA_CPU_FEATURES for this process and all workers; or, if the last digits of "
        'a model may depend on who computed what, dask.config.set({"margrove.mixed-processors": '
        "True})."
        if is_processor_only
        else "Install the same versions everywhere: models would depend on who computed what."
    )
    return "\n".join(["Workers differ from this process:", *lines, way_out])


def _software_and_processor() -> dict[str, str]:
    return _software() | _processor()


def _software() -> dict[str, str]:
    from margrove._runtime.jit import digest_of_sources
    from margrove._version import __version__

    versions = {name: importlib.metadata.version(name) for name in ("numpy", "numba", "llvmlite")}
    return {
        "margrove": __version__,
        "sources": digest_of_sources(),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **versions,
    }


def _processor() -> dict[str, str]:
    """What compiled code is made for, as Numba decides it."""
    import llvmlite.binding as llvm

    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        there = llvm.get_host_cpu_features()
        features = ",".join(sorted(feature for feature, has in there.items() if has))
    digest = hashlib.sha256(features.encode()).hexdigest()[:8]
    return {"processor": f"{name} (features {digest})"}


def threads_of_worker() -> int:
    """Threads of the worker that this runs on: what margrove's own may take there."""
    try:
        return max(1, int(distributed.get_worker().state.nthreads))
    except ValueError:
        return 1


# -- compiling --


def machines_of(client: distributed.Client, workers: list[str]) -> dict[str, list[str]]:
    """Workers by the machine (and the cache of compiled loops) that they share."""
    there = run_on_workers(client, workers, _machine)
    groups: dict[str, list[str]] = defaultdict(list)
    for worker in workers:
        if isinstance(there[worker], str):  # else it was lost just now
            groups[there[worker]].append(worker)
    return dict(groups)


def _machine() -> str:
    from margrove._runtime.jit import cache_directory

    return f"{socket.gethostname()} {cache_directory() or os.getpid()}"


def warm_kernels(client: distributed.Client, workers: list[str], *names: str) -> None:
    """Have some entries of `margrove._runtime.warmup.PARTS` compiled, once on each machine.

    Otherwise all workers of a machine would compile the same loops at the same time.
    """
    from margrove.dask.cluster.waiting import gathered

    done = _WARMED.setdefault(client, set())
    if all((worker, name) in done for worker in workers for name in names):
        return
    first = [group[0] for group in machines_of(client, workers).values()]
    tasks = [
        client.submit(_compile, list(names), workers=[one], allow_other_workers=True, pure=False)
        for one in first
    ]
    gathered(client, tasks)
    done.update((worker, name) for worker in workers for name in names)


def _compile(names: list[str]) -> None:
    from margrove._runtime.warmup import run_parts

    run_parts(names)


# -- errors --


@contextmanager
def explained_errors(client: distributed.Client) -> Iterator[None]:
    """What Dask raises when it loses workers or its scheduler, as errors that say what to do."""
    from concurrent.futures import CancelledError

    from distributed.comm.core import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(killed_worker_message(error)) from error
    except CancelledError as error:
        raise ClusterError(
            f"The cluster has dropped work of this fit ({error}): client.restart() or "
            f"client.cancel() was called, or: {_scheduler_lost_message(client)}"
        ) from error
    except CommClosedError as error:
        raise ClusterError(_scheduler_lost_message(client)) from error


def killed_worker_message(error: Any, what: str = "") -> str:
    """What to know about a task that has taken its worker with it again and again."""
    task = what or f"the task {str(error.task)!r}"
    last = getattr(error.last_worker, "address", error.last_worker)
    limit = getattr(error.last_worker, "memory_limit", 0)
    memory = f", which has {limit / 2**30:.1f} GiB of memory" if limit else ""
    return (
        f"{getattr(error, 'allowed_failures', 3) + 1} workers died while they worked on {task}, "
        f"the last of them {last}{memory}. Most likely what it makes does not fit: use "
        "smaller partitions (X.repartition(partition_size='100MB'), X.rechunk), or workers with "
        "more memory. The worker's log says more."
    )
