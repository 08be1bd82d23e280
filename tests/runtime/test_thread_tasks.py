"""Calls on the threads of the pool: settings, nested fits, errors, interrupts."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import joblib
import numpy as np
import pytest
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_info

from margrove._runtime import resolve_n_jobs, run_calls

PLACE = ContextVar("place", default="outside")


def meeting(n_threads: int) -> threading.Barrier:
    """Calls that wait for each other run at the same time."""
    return threading.Barrier(n_threads, timeout=30)


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_results_come_in_the_order_of_the_calls(n_threads) -> None:
    calls = [(k, 10 * k) for k in range(23)]
    assert run_calls(lambda a, b: a + b, calls, n_threads) == [11 * k for k in range(23)]


def test_calls_run_at_the_same_time() -> None:
    barrier = meeting(3)
    names = run_calls(lambda: (barrier.wait(), threading.get_ident())[1], [()] * 3, 3)
    assert len(set(names)) == 3


def test_threads_have_the_settings_and_the_context_of_the_caller() -> None:
    barrier = meeting(2)

    def see() -> tuple[bool, str, str]:
        barrier.wait()
        return get_config()["enable_metadata_routing"], PLACE.get(), np.geterr()["divide"]

    PLACE.set("inside")
    with config_context(enable_metadata_routing=True), np.errstate(divide="raise"):
        assert run_calls(see, [(), ()], 2) == [(True, "inside", "raise")] * 2
    barrier.reset()
    assert [seen[0] for seen in run_calls(see, [(), ()], 2)] == [False, False]


def test_what_is_fitted_in_a_call_has_one_core() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    forest = RandomForestClassifier(3, n_jobs=-1).fit(X, X[:, 0] > 0)  # loads OpenMP, too

    def see() -> set[int]:
        clone(forest).fit(X, X[:, 0] > 0)
        limits = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "openmp"]
        mine = resolve_n_jobs(-1), resolve_n_jobs(None, unset="all")
        return {*limits, *mine, joblib.effective_n_jobs(-1)}

    assert run_calls(see, [()] * 4, 2) == [{1}] * 4
    assert joblib.effective_n_jobs(-1) == joblib.cpu_count()


def test_after_an_error_no_further_call_begins() -> None:
    begun: list[int] = []

    def task(number: int) -> None:
        begun.append(number)
        if number == 2:
            raise ValueError("the third")

    with pytest.raises(ValueError, match="the third"):
        run_calls(task, [(k,) for k in range(100)], 1)
    assert begun == [0, 1, 2]


def test_an_error_is_raised_when_all_that_has_begun_is_done() -> None:
    barrier, done = meeting(3), []

    def task(number: int) -> None:
        barrier.wait()
        if number == 2:
            raise ValueError("the third")
        threading.Event().wait(0.1)
        done.append(number)

    with pytest.raises(ValueError, match="the third"):
        run_calls(task, [(k,) for k in range(3)], 3)
    assert sorted(done) == [0, 1]


def test_no_call_outlives_an_interrupt() -> None:
    """A thread in compiled code at the end of the interpreter takes the process down."""
    other_runs, finished = threading.Event(), []

    def task(number: int) -> None:
        if number == 0:
            other_runs.wait(30)
            raise KeyboardInterrupt
        other_runs.set()
        threading.Event().wait(0.2)
        finished.append(number)

    with pytest.raises(KeyboardInterrupt):
        run_calls(task, [(0,), (1,)], 2)
    assert finished == [1]
