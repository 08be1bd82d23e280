"""Processes of this machine, for fits that hold Python's lock for much of their time.

Threads of one process cannot run Python side by side, so some fits gain little from threads. How
much is measured: the processor time of the fits in a batch against the time that passed. Where
processes would be faster they are started in the background, which takes some seconds, and threads
go on with the work. As soon as the processes are ready, they take over. joblib keeps them for later
fits of this program, until they have been idle for some minutes.

Results do not depend on who computes them.
"""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import get_active_backend

from margrove._runtime import available_cores, spread

__all__ = ["FitCosts", "processes_allowed", "run_in_processes", "workers_for"]

_LEAST_GAIN = 0.1  # seconds of a fit's members, for which processes are started
_SHARE_OF_GAIN = 1.3  # how many times faster processes must be
_SECONDS_OF_A_CALL = 0.02  # to hand work to processes that wait
_SECONDS_OF_A_RESULT = 0.005  # of a machine of 3,000 rows, on 16 cores
_MOST_IDLE = 240.0  # seconds; joblib ends processes after 300
_BYTES_BY_FILE = 50_000  # larger arrays are written to a file once, which processes map
_MOST_REMEMBERED = 256


def processes_allowed() -> bool:
    """Whether no joblib setting asks for threads, and this is not a worker itself."""
    backend, _ = get_active_backend()
    return not (
        getattr(backend, "supports_sharedmem", False)
        or getattr(backend, "nesting_level", 0)
        or not getattr(backend, "supports_return_generator", False)
        or multiprocessing.current_process().daemon
    )


def workers_for(n_jobs: int) -> int:
    """How many processes work at the same time."""
    return min(n_jobs, available_cores())


class FitCosts:
    """What fits of one kind cost, by a key such as the class of the estimator and the shape of X.

    busy    processor seconds of a fit
    passed  seconds that pass for each fit while threads do them
    """

    _known: dict[Any, tuple[float, float]] = {}  # noqa: RUF012  (for the whole process)

    def __init__(self, key: Any) -> None:
        self._key = key

    def record(self, busy: float, passed: float) -> None:
        """The costs in the last batch of threads."""
        while len(self._known) >= _MOST_REMEMBERED:
            self._known.pop(next(iter(self._known)), None)
        self._known[self._key] = (busy, passed)

    def gain(self, n_fits: int, n_workers: int) -> float:
        """The seconds that processes save for so many fits; 0 if that is little or not known."""
        busy, passed = self._known.get(self._key, (0.0, 0.0))
        in_processes = n_fits * (busy / n_workers + _SECONDS_OF_A_RESULT) + _SECONDS_OF_A_CALL
        in_threads = n_fits * passed
        return in_threads - in_processes if in_threads > _SHARE_OF_GAIN * in_processes else 0.0


class _Processes:
    """Whether the processes of joblib have been started, and have run such work before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._starter: threading.Thread | None = None
        self._n_ready = 0
        self._last_used = 0.0

    def are_ready(self, n_workers: int) -> bool:
        return self._n_ready == n_workers and time.monotonic() - self._last_used < _MOST_IDLE

    def start(
        self, function: Callable[..., Any], shared: Any, call: tuple[Any, ...], n_workers: int
    ) -> None:
        """Start processes in the background; each runs a call, to load what that needs."""
        with self._lock:
            if self._starter is not None and self._starter.is_alive():
                return
            given = function, shared, [call] * n_workers, n_workers
            self._starter = threading.Thread(target=self._start, args=given, daemon=True)
            self._starter.start()

    def _start(
        self, function: Callable[..., Any], shared: Any, calls: list[Any], n_workers: int
    ) -> None:
        self._n_ready = 0
        try:
            arriving = _spread(_without_result, (function, shared), calls, n_workers)
            _at_end_of_program(self._stop_starting)
            for _ in arriving:
                pass
        except Exception:  # cannot be pickled, or no processes here: threads do the work
            return
        self.used(n_workers)

    def _stop_starting(self) -> None:
        """End processes that have not been used yet, so that the program need not wait for them."""
        if self._starter is not None and self._starter.is_alive():
            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)

    def used(self, n_workers: int) -> None:
        self._n_ready, self._last_used = n_workers, time.monotonic()

    def failed(self) -> None:
        self._n_ready = 0


def _at_end_of_program(function: Callable[[], None]) -> None:
    """Call a function before joblib waits for its processes, where Python allows that."""
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        with suppress(RuntimeError):  # the program is ending
            register(function)


_PROCESSES = _Processes()


def run_in_processes(
    function: Callable[..., Any],
    shared: Any,
    calls: list[tuple[Any, ...]],
    n_workers: int,
    gain: float,
) -> Iterator[Any] | None:
    """Results of function(shared, *call), in order; None if processes gain nothing, or not yet.

    After an error the iterator ends early: who does the remaining calls here gets the error with
    its traceback.
    """
    if gain <= 0.0:
        return None
    if _PROCESSES.are_ready(n_workers):
        return _results(function, shared, calls, n_workers)
    if gain >= _LEAST_GAIN:
        _PROCESSES.start(function, shared, calls[0], n_workers)
    return None


def _results(
    function: Callable[..., Any], shared: Any, calls: list[tuple[Any, ...]], n_workers: int
) -> Iterator[Any]:
    parcels = [(part,) for part in _parcels(calls, n_workers)]
    _PROCESSES.failed()  # until all results are here; who stops before ends the processes
    try:
        arriving = _spread(_run_calls, (function, shared), parcels, n_workers)
        for _ in parcels[1:]:
            yield from next(arriving)
        [last] = arriving  # to its end, so that joblib keeps the processes
    except Exception:
        return
    _PROCESSES.used(n_workers)
    yield from last


def _parcels(calls: list[tuple[Any, ...]], n_workers: int) -> list[list[tuple[Any, ...]]]:
    """Calls that are sent together: one parcel for each process, or up to four of many calls."""
    n_parcels = min(len(calls), n_workers * max(1, min(4, len(calls) // (4 * n_workers))))
    ends = [k * len(calls) // n_parcels for k in range(n_parcels + 1)]
    return [calls[a:b] for a, b in itertools.pairwise(ends)]


def _spread(function: Callable[..., Any], shared: Any, calls: list[Any], n_workers: int) -> Any:
    with joblib.parallel_config(backend="loky", n_jobs=n_workers, max_nbytes=_BYTES_BY_FILE):
        return spread(function, shared, calls, n_workers)


def _run_calls(given: tuple[Callable[..., Any], Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    function, shared = given
    return [function(shared, *call) for call in calls]


def _without_result(given: tuple[Callable[..., Any], Any], *call: Any) -> None:
    function, shared = given
    function(shared, *call)
