"""Tasks for other processes, here or on a cluster: whatever joblib backend is in effect.

    with joblib.parallel_config(backend="dask"):
        margrove.compare(models, X, y)

Without such a block work is done on threads of this process (`threads`), with the same result.
What tasks warn of is told here, as if they had run here.
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

from margrove._runtime.slices import is_kept, step_capacity
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

    Backends that cannot hand over results one by one are left out: work is done on threads then.
    """
    backend, _ = get_active_backend(prefer="threads")
    shares_memory = getattr(backend, "supports_sharedmem", False)
    return bool(
        not shares_memory
        and getattr(backend, "supports_return_generator", False)
        and not is_nested(backend)
    )


def tasks_wanted(estimator: Any) -> bool:
    """Whether the parts of an estimator's fit are to be tasks of other processes.

    Not with `n_jobs=1`, nor where somebody has to do with a part while it is computed, which must
    then be in this process: who listens to single steps, who keeps its state in a checkpoint,
    callbacks, a limit of time, and an interrupt after which what there is is kept.
    """
    return (
        getattr(estimator, "n_jobs", None) != 1
        and getattr(estimator, "max_time", None) is None
        and getattr(estimator, "on_interrupt", "raise") == "raise"
        and not getattr(estimator, "_skl_callbacks", None)
        and not step_capacity()
        and not is_kept()
        and processes_wanted()
    )


def workers_wanted(n_jobs: int | None) -> int:
    """How many tasks at a time `n_jobs` asks the backend in effect for; a cluster has its own."""
    backend, configured = get_active_backend(prefer="threads")
    wanted = n_jobs if n_jobs is not None else configured
    return max(1, int(backend.effective_n_jobs(-1 if wanted is None else wanted)))


def even_runs(costs: Iterable[float], n_runs: int) -> list[range]:
    """Numbers 0, 1, ... cut into at most so many runs of about the same cost, none empty."""
    before = np.concatenate([[0.0], np.cumsum(np.fromiter(costs, dtype=np.float64))])
    ends = np.searchsorted(before, np.linspace(0.0, before[-1], n_runs + 1))
    ends[-1] = len(before) - 1
    ends = np.unique(ends)
    return [range(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


class Carried:
    """What many tasks need, and what is to travel once.

    joblib sends each argument of a Dask task along with it, except those that are large and that
    it can remember: these it hands to the cluster first. It asks Python for the size of an object,
    which is none of what is inside. Arrays for processes of this machine it shares in any case.
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
    """Results of function(shared, *call) for all calls, in their order, as they come.

    Tasks must leave what they share as it is. Arrays that are mapped into several processes can be
    written to all the same, each process to its own copy: kernels are compiled for such arrays.
    """
    carried = Carried((shared, sklearn.get_config(), _filters()))
    # Not scikit-learn's: what it does to warnings does not expect several threads of one process.
    team = Parallel(n_jobs=n_workers, return_as="generator", mmap_mode="c")
    return _retold(team(delayed(_called)(function, carried, *call) for call in calls))


def _retold(told: Any) -> Iterator[Any]:
    registry: dict[Any, Any] = {}  # what is to be said once is not said by every task
    try:
        for result, heard in told:
            for message, filename, line in heard:
                warnings.warn_explicit(message, type(message), filename, line, registry=registry)
            yield result
    finally:
        with warnings.catch_warnings():  # whoever ends early knows that tasks are cancelled
            warnings.simplefilter("ignore")
            told.close()


def _called(function: Callable[..., Any], carried: Carried, *call: Any) -> tuple[Any, list[_Heard]]:
    shared, config, filters = carried.value
    with sklearn.config_context(**config), _EARS.listening(filters) as heard:
        result = function(shared, *call)
    return result, heard


# -- warnings of tasks --

_Heard = tuple[Warning, str, int]  # the warning, and the file and line that it is about


def _filters() -> list[Any]:
    current = getattr(warnings, "_get_filters", None)  # where they belong to a context
    return list(warnings.filters if current is None else current())


class _Ears:
    """Hears what tasks of this process warn of.

    Filters are global to a process, and a worker of Dask may have several threads. So tasks that
    overlap share one record: a warning may be told along with the result of another of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._catching: Any = None
        self._record: list[Any] = []

    @contextmanager
    def listening(self, filters: list[Any]) -> Iterator[list[_Heard]]:
        heard: list[_Heard] = []
        with self._lock:
            if self._depth == 0:
                self._catching = warnings.catch_warnings(record=True)
                self._record = self._catching.__enter__()
                _set_filters(filters)
            self._depth += 1
        try:
            yield heard
        finally:
            with self._lock:
                caught, self._record[:] = list(self._record), []
                heard += [(_instance(own), own.filename, own.lineno) for own in caught]
                self._depth -= 1
                if self._depth == 0:
                    self._catching.__exit__(None, None, None)


_EARS = _Ears()


def _instance(caught: Any) -> Warning:
    message = caught.message
    return message if isinstance(message, Warning) else caught.category(message)


def _set_filters(filters: list[Any]) -> None:
    """Those of the process that sent the task; an "error" there is one here."""
    warnings.resetwarnings()
    for action, message, category, module, line in reversed(filters):
        pattern, module_pattern = _pattern(message), _pattern(module)
        if pattern or module_pattern:
            warnings.filterwarnings(action, pattern, category, module_pattern, line)
        else:
            warnings.simplefilter(action, category, line)


def _pattern(expression: Any) -> str:
    return "" if expression is None else str(getattr(expression, "pattern", expression))
