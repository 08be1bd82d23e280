"""Tasks for other processes, on this machine or on a cluster, by the active joblib backend.

    with joblib.parallel_config(backend="dask"):
        margrove.compare(models, X, y)

Without such a block, work is done on threads of this process (`threads`), with the same result.
Warnings of tasks are raised again in this process.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from margrove._runtime.slices import is_checkpointed, step_capacity
from margrove._runtime.threads import is_nested

__all__ = [
    "Carried",
    "even_runs",
    "processes_wanted",
    "spread",
    "tasks_wanted",
    "workers_wanted",
]


def processes_wanted() -> bool:
    """Whether a `joblib.parallel_config` asks for other processes.

    Backends that cannot return results one by one do not count: threads are used instead.
    """
    backend, _ = get_active_backend(prefer="threads")
    shares_memory = getattr(backend, "supports_sharedmem", False)
    return bool(
        not shares_memory
        and getattr(backend, "supports_return_generator", False)
        and not is_nested(backend)
    )


def tasks_wanted(estimator: Any) -> bool:
    """Whether the members of an estimator are to be fitted as tasks of other processes.

    Not with `n_jobs=1`, and not if a fit must be watched while it runs, which is possible in this
    process only: listeners of single steps, checkpoints, callbacks, `max_time`, and
    `on_interrupt="keep"`.
    """
    return (
        getattr(estimator, "n_jobs", None) != 1
        and getattr(estimator, "max_time", None) is None
        and getattr(estimator, "on_interrupt", "raise") == "raise"
        and not getattr(estimator, "_skl_callbacks", None)
        and not step_capacity()
        and not is_checkpointed()
        and processes_wanted()
    )


def workers_wanted(n_jobs: int | None) -> int:
    """How many tasks `n_jobs` asks the active backend to run at a time."""
    backend, configured = get_active_backend(prefer="threads")
    wanted = n_jobs if n_jobs is not None else configured
    return max(1, int(backend.effective_n_jobs(-1 if wanted is None else wanted)))


def even_runs(costs: Iterable[float], n_runs: int) -> list[range]:
    """Divide the items 0, 1, ... into at most `n_runs` nonempty ranges of about equal cost."""
    before = np.concatenate([[0.0], np.cumsum(np.fromiter(costs, dtype=np.float64))])
    ends = np.searchsorted(before, np.linspace(0.0, before[-1], n_runs + 1))
    ends[-1] = len(before) - 1
    ends = np.unique(ends)
    return [range(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


class Carried:
    """Data that many tasks need and that should be sent to the cluster once.

    joblib sends each argument of a Dask task with the task, except large objects that support weak
    references: these are scattered to the cluster first. joblib asks Python for the size of the
    object, which does not include its contents, so `__sizeof__` returns a large number. Processes
    of this machine share arrays in any case.
    """

    __slots__ = ("__weakref__", "value")

    def __init__(self, value: Any) -> None:
        self.value = value

    def __sizeof__(self) -> int:
        return 1 << 20

    def __reduce__(self) -> tuple[Any, ...]:
        return Carried, (self.value,)


def spread(
    function: Callable[..., Any], shared: Any, calls: Iterable[tuple[Any, ...]], n_workers: int
) -> Iterator[Any]:
    """Yield function(shared, *call) for all calls, in their order, as results arrive.

    Tasks must not change `shared`. Its arrays may be memory maps, which are still writable (in a
    private copy), because kernels are compiled for writable arrays.
    """
    carried = Carried((shared, sklearn.get_config(), _filters()))
    # Not scikit-learn's Parallel: it changes warning filters, which is not thread-safe.
    parallel = Parallel(n_jobs=n_workers, return_as="generator", mmap_mode="c")
    return _warn_again(parallel(delayed(_run_task)(function, carried, *call) for call in calls))


def _warn_again(outcomes: Any) -> Iterator[Any]:
    registry: dict[Any, Any] = {}  # shared by all tasks, so that a warning is shown once
    try:
        for result, recorded in outcomes:
            for message, filename, line in recorded:
                warnings.warn_explicit(message, type(message), filename, line, registry=registry)
            yield result
    finally:
        with warnings.catch_warnings():  # joblib warns of cancelled tasks
            warnings.simplefilter("ignore")
            outcomes.close()


def _run_task(
    function: Callable[..., Any], carried: Carried, *call: Any
) -> tuple[Any, list[_Recorded]]:
    shared, config, filters = carried.value
    with sklearn.config_context(**config), _RECORDER.recording(filters) as recorded:
        result = function(shared, *call)
    return result, recorded


# -- warnings of tasks --

_Recorded = tuple[Warning, str, int]  # the warning, and the file and line that it is about


def _filters() -> list[Any]:
    current = getattr(warnings, "_get_filters", None)  # in versions that have filters by context
    return list(warnings.filters if current is None else current())


class _WarningRecorder:
    """Records the warnings of tasks that run in this process.

    Filters are global to a process, and a worker of Dask may have several threads. So tasks that
    overlap share one record: a warning may be returned with the result of another of these tasks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._catching: Any = None
        self._record: list[Any] = []

    @contextmanager
    def recording(self, filters: list[Any]) -> Iterator[list[_Recorded]]:
        recorded: list[_Recorded] = []
        with self._lock:
            if self._depth == 0:
                self._catching = warnings.catch_warnings(record=True)
                self._record = self._catching.__enter__()
                _set_filters(filters)
            self._depth += 1
        try:
            yield recorded
        finally:
            with self._lock:
                caught, self._record[:] = list(self._record), []
                recorded += [(_instance(each), each.filename, each.lineno) for each in caught]
                self._depth -= 1
                if self._depth == 0:
                    self._catching.__exit__(None, None, None)


_RECORDER = _WarningRecorder()


def _instance(caught: Any) -> Warning:
    message = caught.message
    return message if isinstance(message, Warning) else caught.category(message)


def _set_filters(filters: list[Any]) -> None:
    """Set the filters of the process that sent the task; an "error" there is an error here."""
    warnings.resetwarnings()
    for action, message, category, module, line in reversed(filters):
        pattern, module_pattern = _pattern(message), _pattern(module)
        if pattern or module_pattern:
            warnings.filterwarnings(action, pattern, category, module_pattern, line)
        else:
            warnings.simplefilter(action, category, line)


def _pattern(expression: Any) -> str:
    return "" if expression is None else str(getattr(expression, "pattern", expression))
