"""Calls of Python functions on the threads of the pool, such as fits of any estimator.

Threads inherit neither scikit-learn's settings nor context variables. Here every call has those of
the caller, and what it fits in turn has one core, because the other cores are in use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import joblib
from joblib.parallel import SequentialBackend
from sklearn import config_context, get_config
from threadpoolctl import ThreadpoolController

from margrove._runtime.pool import run_tiles

__all__ = ["run_calls"]


def run_calls(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], n_threads: int
) -> list[Any]:
    """function(*call) for all calls, in their order, on up to `n_threads` threads.

    The first error is raised here when the calls that have begun are done.
    """
    if min(n_threads, len(calls)) <= 1:
        return [function(*call) for call in calls]
    context, settings = copy_context(), get_config()
    openmp = ThreadpoolController().select(user_api="openmp")
    one_core = SequentialBackend(nesting_level=1)
    results: list[Any] = [None] * len(calls)

    def run(number: int) -> None:
        with (
            config_context(**settings),
            joblib.parallel_config(backend=one_core),
            openmp.limit(limits=1),
        ):
            results[number] = function(*calls[number])

    run_tiles(lambda number: context.copy().run(run, number), len(calls), n_threads)
    return results
