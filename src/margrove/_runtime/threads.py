"""Work on several cores: kernels without Python's lock, and single-threaded BLAS, on threads.

Results never depend on the number of threads: work is cut into tiles whose shapes depend on the
problem only, one thread computes a tile from start to end, and reductions over tiles run in the
order of the tiles.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any, Literal

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import OpenBLASController, ThreadpoolController

__all__ = [
    "available_cores",
    "blas_limit_of_helper",
    "is_nested",
    "resolve_n_jobs",
    "single_threaded_blas",
]


def available_cores() -> int:
    """Cores that this process may use, by affinity, container limits and LOKY_MAX_CPU_COUNT."""
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return _counted_cores(frozenset(affinity), os.environ.get("LOKY_MAX_CPU_COUNT"))


@lru_cache(maxsize=4)
def _counted_cores(affinity: frozenset[int], limit: str | None) -> int:
    """joblib's count, which reads files of the container: a tenth of a small fit."""
    return int(joblib.cpu_count())


def resolve_n_jobs(n_jobs: int | None, *, unset: Literal["one", "all"] = "one") -> int:
    """The number of threads that scikit-learn's `n_jobs` asks for.

    If scikit-learn's estimator has `n_jobs`, None means one unless a `joblib.parallel_config`
    says otherwise. If it has no `n_jobs`, `unset="all"` makes None mean all available cores. In
    both cases a fit inside a joblib worker gets one thread, because the other cores are in use.
    """
    if n_jobs == 0:
        raise ValueError("The 'n_jobs' parameter must not be 0. Use 1 for one core, -1 for all.")
    backend, configured = get_active_backend()
    if is_nested(backend):
        return 1
    if n_jobs is None and configured is None and unset == "all":
        n_jobs = -1
    if n_jobs is None:
        n_jobs = configured or 1
    if n_jobs < 0:
        n_jobs = max(1, available_cores() + 1 + n_jobs)
    return int(n_jobs)


def is_nested(backend: Any) -> bool:
    """Whether this code runs inside a task of a joblib backend, which has one core.

    The backend of Dask does not set `nesting_level`; the thread that runs the task is asked.
    """
    if getattr(backend, "nesting_level", 0):
        return True
    worker = sys.modules.get("distributed.worker")
    return (
        worker is not None
        and type(backend).__name__ == "DaskDistributedBackend"
        and hasattr(worker.thread_state, "key")
    )


class _BlasLimit:
    """Limits BLAS to one thread. The limit is global, so overlapping sections share it.

    If BLAS uses OpenMP, each thread has its own limit, which `of_helper` sets.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._libraries: list[Any] | None = None
        self._before: list[int] = []

    def enter(self) -> None:
        with self._lock:
            if self._depth == 0:
                if self._libraries is None:
                    controller = ThreadpoolController().select(user_api="blas")
                    self._libraries = controller.lib_controllers
                self._before = _limits_of(self._libraries)
                self._set([1] * len(self._before))
            self._depth += 1

    def leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._set(self._before)

    @contextmanager
    def of_helper(self) -> Iterator[None]:
        own = [each for each in self._libraries or () if _has_limit_of_each_thread(each)]
        before = _limits_of(own)
        _set_limits(own, [1] * len(own))
        try:
            yield
        finally:
            _set_limits(own, before)

    def _set(self, limits: list[int]) -> None:
        _let_any_thread_set_limits()
        _set_limits(self._libraries or [], limits)
        _let_any_thread_set_limits()


def _has_limit_of_each_thread(library: Any) -> bool:
    return getattr(library, "threading_layer", None) == "openmp"


def _limits_of(libraries: list[Any]) -> list[int]:
    return [library.num_threads or 1 for library in libraries]


def _set_limits(libraries: list[Any], limits: list[int]) -> None:
    for library, limit in zip(libraries, limits, strict=True):
        library.set_num_threads(limit)


def _let_any_thread_set_limits() -> None:
    """threadpoolctl lets only the thread that set a limit change it; ours may be another one."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_BLAS_LIMIT = _BlasLimit()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS uses one thread inside; blocks may be nested, and may overlap on several threads.

    A generator, because it also ends if an interrupt comes between the block and its end.
    """
    _BLAS_LIMIT.enter()
    try:
        yield
    finally:
        _BLAS_LIMIT.leave()


def blas_limit_of_helper() -> AbstractContextManager[None]:
    """The limit of a thread that helps inside a block of `single_threaded_blas`."""
    return _BLAS_LIMIT.of_helper()
