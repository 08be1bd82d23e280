"""Tasks for other processes, here or on a cluster: whatever joblib backend is in effect.

    with joblib.parallel_config(backend="dask"):
        margrove.compare(models, X, y)

Without such a block work is done on threads of this process (`_threads`), with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from margrove._threads import is_nested

__all__ = ["Carried", "processes_wanted", "spread", "workers_wanted"]


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


def workers_wanted(n_jobs: int | None) -> int:
    """How many tasks at a time `n_jobs` asks the backend in effect for; a cluster has its own."""
    backend, configured = get_active_backend(prefer="threads")
    wanted = n_jobs if n_jobs is not None else configured
    return max(1, int(backend.effective_n_jobs(-1 if wanted is None else wanted)))


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
    """Results of function(shared, *call) for all calls, in their order, as they come."""
    carried = Carried(shared)
    team = Parallel(n_jobs=n_workers, return_as="generator")
    return iter(team(delayed(_called)(function, carried, *call) for call in calls))


def _called(function: Callable[..., Any], carried: Carried, *call: Any) -> Any:
    return function(carried.value, *call)
