"""Threads: n_jobs as in scikit-learn, tiles, BLAS limits, nesting."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_info

from margrove import KernelPerceptron, Perceptron
from margrove._data import scan_rows
from margrove._runtime.matrix_tiles import row_products
from margrove._runtime.threads import (
    available_cores,
    resolve_n_jobs,
    single_threaded_blas,
)
from margrove.datasets import load_iris


def blas_threads() -> set[int]:
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def test_n_jobs_means_what_it_means_in_scikit_learn() -> None:
    cores = available_cores()
    assert resolve_n_jobs(3) == 3
    assert resolve_n_jobs(None) == 1
    assert resolve_n_jobs(None, unset="all") == cores
    assert resolve_n_jobs(-1) == cores
    assert resolve_n_jobs(-cores) == 1
    assert resolve_n_jobs(-100) == 1
    with pytest.raises(ValueError, match="'n_jobs' parameter must not be 0"):
        resolve_n_jobs(0)
    with joblib.parallel_config(n_jobs=2):
        assert resolve_n_jobs(None) == 2
        assert resolve_n_jobs(None, unset="all") == 2
    with joblib.parallel_config(n_jobs=1):
        assert resolve_n_jobs(None, unset="all") == 1


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_fit_inside_a_joblib_worker_gets_one_thread(backend) -> None:
    jobs = joblib.Parallel(n_jobs=2, backend=backend)
    found = jobs(joblib.delayed(resolve_n_jobs)(n, unset="all") for n in (None, -1, 4))
    assert found == [1, 1, 1]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity of Linux")
def test_affinity_is_respected() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {0})\n"
        "from margrove._runtime.threads import resolve_n_jobs; print(resolve_n_jobs(-1))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "1"


def test_blas_is_limited_inside_and_restored_after() -> None:
    before = blas_threads()
    with single_threaded_blas():
        assert blas_threads() == {1}
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError), single_threaded_blas():
        1 / 0  # noqa: B018
    assert blas_threads() == before


def test_overlapping_sections_of_two_threads_restore_once() -> None:
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with single_threaded_blas():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with single_threaded_blas():
        thread.start()
        inside.wait()
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


@pytest.mark.parametrize("n_columns", [1, 2, 4, 7, 9])
@pytest.mark.parametrize("n_features", [1, 3, 37])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array])
def test_row_products_depend_on_their_own_row_only(
    form: Any, n_features: int, n_columns: int
) -> None:
    rng = np.random.default_rng(0)
    X = form(rng.standard_normal((1000, n_features)))
    W = rng.standard_normal((n_features, n_columns))
    shift = rng.standard_normal(n_columns)
    whole = row_products(X, W, shift)
    assert np.allclose(whole, X @ W + shift)
    assert np.array_equal(whole, row_products(X, W, shift, n_threads=3))
    assert np.array_equal(whole[700:703], row_products(X[700:703], W, shift))
    order = rng.permutation(1000)
    assert np.array_equal(whole[order], row_products(X[order], W, shift))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_columns", [1, 5])
def test_row_products_of_a_cell_that_is_not_finite(n_columns: int, bad: float) -> None:
    X = np.ones((20, 3))
    X[7, 1] = bad
    values = row_products(X, np.zeros((3, n_columns)))
    assert np.array_equal(np.isfinite(values).all(axis=1), np.arange(20) != 7)
    assert not np.isfinite(values[7]).any()


def test_scans_do_not_depend_on_threads() -> None:
    X = np.random.default_rng(0).standard_normal((40_000, 3))
    one, three = scan_rows(X), scan_rows(X, n_threads=3)
    assert np.array_equal(one.hashes, three.hashes)
    assert np.array_equal(one.squared_norms, three.squared_norms)


def test_search_over_our_estimators_nests_without_oversubscription() -> None:
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        KernelPerceptron(n_jobs=-1, max_iter=3, tol=None), {"gamma": [0.1, 1.0]}, n_jobs=2
    )
    before = blas_threads()
    search.fit(X, y)
    assert search.best_score_ > 0.5
    assert blas_threads() == before


@pytest.mark.parametrize("cls", [Perceptron, KernelPerceptron])
def test_eight_threads_fit_and_predict_at_once(cls) -> None:
    X, y = load_iris(return_X_y=True)
    expected = cls(max_iter=20, tol=None).fit(X, y).decision_function(X)
    shared = cls(max_iter=20, tol=None, n_jobs=2).fit(X, y)
    results = [None] * 8

    def work(k):
        own = cls(max_iter=20, tol=None, n_jobs=2).fit(X, y)
        results[k] = (own.decision_function(X), shared.decision_function(X), shared.fit(X, y).coef_
                      if cls is Perceptron else None)  # fmt: skip

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own, together, _ in results:
        assert np.array_equal(own, expected)
        assert np.array_equal(together, expected)


def test_sixty_four_threads_predict_with_one_model() -> None:
    X, y = load_iris(return_X_y=True)
    model = KernelPerceptron(max_iter=5, tol=None, n_jobs=2).fit(X, y)
    expected = model.predict(X)
    answers = joblib.Parallel(n_jobs=64, backend="threading")(
        joblib.delayed(model.predict)(X) for _ in range(64)
    )
    assert all(np.array_equal(answer, expected) for answer in answers)


def _fit_in_child(queue):
    X, y = load_iris(return_X_y=True)
    queue.put(Perceptron(n_jobs=2, max_iter=5, tol=None).fit(X, y).coef_)


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_works_after_a_parallel_fit() -> None:
    X, y = load_iris(return_X_y=True)
    ours = Perceptron(n_jobs=2, max_iter=5, tol=None).fit(X, y).coef_
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_fit_in_child, args=(queue,))
    child.start()
    assert np.array_equal(queue.get(timeout=60), ours)
    child.join()
    assert child.exitcode == 0
