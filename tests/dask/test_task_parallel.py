"""What is made of many independent fits runs on any joblib backend, with the same result."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove
from margrove._runtime.process_tasks import (
    Carried,
    _run_task,
    even_runs,
    processes_wanted,
    spread,
    workers_wanted,
)
from margrove._runtime.threads import resolve_n_jobs
from margrove.exceptions import ConvergenceWarning
from margrove.tune import GridSearchCV

pytest.importorskip("distributed")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(240, 5))
Y = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=240), [-0.5, 0.5])


def spread_of(x: np.ndarray) -> float:
    return float(np.ptp(x))


def bagged() -> Any:
    model = margrove.BaggingClassifier(margrove.SVC(), n_estimators=4, n_jobs=2, random_state=0)
    return model.fit(X, Y).predict_proba(X)


def forest() -> Any:
    model = margrove.RandomForestClassifier(n_estimators=8, n_jobs=2, random_state=0)
    return model.fit(X, Y).predict_proba(X)


def compared() -> Any:
    models = {"machine": margrove.SVC(), "tree": margrove.DecisionTreeClassifier(random_state=0)}
    found = margrove.compare(models, X, Y, cv=3, n_jobs=2, random_state=0)
    return np.concatenate([model.fold_scores for model in found.models])


def blended() -> Any:
    models = {"machine": margrove.LinearSVC(), "tree": margrove.DecisionTreeClassifier()}
    found = margrove.compare(
        models, X, Y, cv=2, n_jobs=2, random_state=0, blend={"n_folds": 2, "n_rounds": 3}
    )
    return np.concatenate([model.fold_scores for model in found.models])


def resampled() -> Any:
    found = margrove.bootstrap(X[:60, 0], spread_of, n_resamples=30, n_jobs=2, random_state=0)
    return np.append(found.resamples, [found.low, found.high])


def error_resampled() -> Any:
    learner = margrove.LinearSVC()
    found = margrove.bootstrap_error(learner, X, Y, n_resamples=25, n_jobs=2, random_state=0)
    return np.array([found.out_of_bag, found.e632_plus])


LEAVE = [bagged, forest, compared, blended, resampled, error_resampled]


@pytest.fixture(scope="module")
def local() -> dict[str, Any]:
    return {run.__name__: run() for run in LEAVE}


@pytest.fixture
def counted_tasks(cluster4: Any) -> Callable[[], int]:
    """How many tasks the cluster has been given since."""
    seen = cluster4.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)

    def count() -> int:
        now = cluster4.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
        return int(now - seen)

    return count


@pytest.mark.sampled(3)
@pytest.mark.parametrize("run", LEAVE, ids=lambda run: run.__name__)
def test_a_cluster_gives_the_same_and_gets_the_work(
    run: Callable[[], Any], local: dict[str, Any], counted_tasks: Callable[[], int]
) -> None:
    with joblib.parallel_config(backend="dask"):
        found = run()
    assert np.array_equal(found, local[run.__name__])
    assert counted_tasks() > 0


@pytest.mark.nightly
@pytest.mark.parametrize("run", LEAVE, ids=lambda run: run.__name__)
def test_processes_of_this_machine_give_the_same(
    run: Callable[[], Any], local: dict[str, Any]
) -> None:
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert np.array_equal(run(), local[run.__name__])


def _cores_in_a_task(shared: Any, number: int) -> tuple[int, int, bool]:
    return resolve_n_jobs(-1), resolve_n_jobs(None, unset="all"), processes_wanted()


def test_tasks_have_one_core_and_start_no_tasks(cluster4: Any) -> None:
    with joblib.parallel_config(backend="dask"):
        told = list(spread(_cores_in_a_task, None, [(k,) for k in range(4)], 4))
    assert told == [(1, 1, False)] * 4


class _Counted:
    """Counts on the client how often it is sent."""

    n_sent = 0

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        type(self).n_sent += 1
        return np.asarray, (self.array,)


def _length(shared: Any, number: int) -> int:
    return len(shared) + number


def test_what_tasks_share_travels_once(cluster4: Any) -> None:
    _Counted.n_sent = 0
    with joblib.parallel_config(backend="dask"):
        told = list(spread(_length, _Counted(np.zeros(10)), [(k,) for k in range(20)], 4))
    assert told == [10 + k for k in range(20)]
    assert _Counted.n_sent <= 2  # not once for each of twenty tasks


def test_a_cluster_says_itself_how_many_tasks_it_takes(cluster4: Any) -> None:
    with joblib.parallel_config(backend="dask"):
        assert workers_wanted(None) == 4
    assert Carried(None).__sizeof__() > 1000


# -- the machines of one fit --

WIDE = RNG.normal(size=(2200, 70))  # more than joblib maps, and more than one tile of values
WIDE_Y = (WIDE[:, :4] + 0.5 * RNG.normal(size=(2200, 4))).argmax(axis=1)
MACHINES = {
    "one_vs_one": (margrove.SVC(C=3.0), X, Y),
    "one_vs_one_of_many_rows": (margrove.SVC(), WIDE, WIDE_Y),
    "one_vs_rest": (margrove.SVC(multi_class="ovr", class_weight="balanced"), X, Y),
    "nu": (margrove.NuSVC(nu=0.2), X, Y),
    "nu_one_vs_rest": (margrove.NuSVC(nu=0.2, multi_class="ovr"), X, Y),
    "probabilities": (margrove.SVC(probability=True), X[:120], Y[:120]),
    "hard_margin": (margrove.SVC(C=np.inf, kernel="rbf", gamma=5.0), X[:90], Y[:90]),
    "hull": (margrove.SVC(solver="hull"), X[:90], Y[:90]),
    "function": (margrove.SVC(kernel=lambda A, B: A @ B.T), X[:90], Y[:90]),
}


def saved(model: Any, folder: Path) -> bytes:
    margrove.save(model, folder / "model.margrove")
    return (folder / "model.margrove").read_bytes()


def state_of(model: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(model).items()
        if isinstance(value, np.ndarray | int | float)
    }


def assert_same_machine(found: Any, expected: Any, folder: Path) -> None:
    for name, value in state_of(expected).items():
        assert np.array_equal(vars(found)[name], value), name
    traces = [model._record.traces for model in (found, expected)]
    assert traces[0] == traces[1]
    if not callable(expected.kernel) and isinstance(expected.random_state, int):
        assert saved(found, folder) == saved(expected, folder)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MACHINES)
def test_machines_of_a_cluster_are_the_local_ones(
    name: str, tmp_path: Path, counted_tasks: Callable[[], int]
) -> None:
    model, rows, labels = MACHINES[name]
    expected = clone(model).fit(rows, labels)
    before = counted_tasks()
    with joblib.parallel_config(backend="dask"):
        found = clone(model).fit(rows, labels)
    assert counted_tasks() > before
    assert_same_machine(found, expected, tmp_path)


def test_machines_of_processes_here_are_the_local_ones(tmp_path: Path) -> None:
    for name in ("one_vs_one", "one_vs_one_of_many_rows", "nu_one_vs_rest"):
        model, rows, labels = MACHINES[name]
        with joblib.parallel_config(backend="loky", n_jobs=2):
            found = clone(model).fit(rows, labels)
        assert_same_machine(found, clone(model).fit(rows, labels), tmp_path)


STAYING = {
    "one_job": {"n_jobs": 1},
    "limited": {"max_time": 100.0},
    "kept": {"on_interrupt": "keep"},
    "drawn": {"solver": "cd", "fit_intercept": False, "random_state": np.random.RandomState(0)},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", STAYING)
def test_machines_that_need_one_process_stay(
    name: str, counted_tasks: Callable[[], int], tmp_path: Path
) -> None:
    model = margrove.SVC(**STAYING[name])
    expected = clone(model).fit(X[:90], Y[:90])
    before = counted_tasks()
    with joblib.parallel_config(backend="dask"):
        found = clone(model).fit(X[:90], Y[:90])
    assert counted_tasks() == before
    assert_same_machine(found, expected, tmp_path)


def test_a_checkpoint_has_the_machines_here(
    counted_tasks: Callable[[], int], tmp_path: Path
) -> None:
    with joblib.parallel_config(backend="dask"), margrove.checkpoint(tmp_path / "machines"):
        margrove.SVC().fit(X[:60], Y[:60])
    assert counted_tasks() == 0


def test_whoever_follows_steps_gets_them(cluster4: Any) -> None:
    here: list[Any] = []
    there: list[Any] = []
    with margrove.watch(on_step=here.append):
        margrove.SVC().fit(X[:60], Y[:60])
    with joblib.parallel_config(backend="dask"), margrove.watch(on_step=there.append):
        margrove.SVC().fit(X[:60], Y[:60])
    assert len(here) == len(there) > 0


def test_a_fit_of_tasks_can_be_ended_and_interrupted(cluster4: Any) -> None:
    def interrupt(progress: Any) -> bool:
        raise KeyboardInterrupt

    model = margrove.SVC()
    with joblib.parallel_config(backend="dask"):
        with margrove.watch(on_progress=lambda progress: True):
            ended = margrove.SVC().fit(X, Y)
        with margrove.watch(on_progress=interrupt), pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        assert not hasattr(model, "support_")
        again = model.fit(X, Y)
    whole = margrove.SVC().fit(X, Y)
    assert np.array_equal(again.dual_coef_, whole.dual_coef_)
    assert ended.n_iter_[0] == whole.n_iter_[0]  # the first task was waited for
    assert ended.n_iter_[-1] == 0


# -- searches --

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}
IN_PIPELINE = {f"svc__{name}": values for name, values in GRID.items()}
SEARCHES = {
    "classes": (margrove.SVCCV(Cs=4, gammas=9, cv=3), X, Y),
    "few_gammas": (margrove.SVCCV(Cs=4, gammas=2, cv=3, multi_class="ovr"), X, Y),
    "scorer": (margrove.SVCCV(Cs=3, gammas=1, cv=3, scoring="f1_macro"), X, Y),
    "values": (margrove.SVRCV(Cs=3, gammas=2, cv=3), X, X[:, 0] + X[:, 1] ** 2),
    "linear": (margrove.LinearSVCCV(Cs=4, cv=3, random_state=0), X, Y),
    "grid": (GridSearchCV(margrove.SVC(), GRID, cv=3), X, Y),
    "linear_grid": (GridSearchCV(margrove.LinearSVC(random_state=0), {"C": [1, 2]}, cv=3), X, Y),
    "pipeline": (
        GridSearchCV(make_pipeline(StandardScaler(), margrove.SVC()), IN_PIPELINE, cv=4),
        X,
        Y,
    ),
    "pipeline_of_few_folds": (
        GridSearchCV(make_pipeline(StandardScaler(), margrove.SVC()), IN_PIPELINE, cv=2),
        X,
        Y,
    ),
}


def assert_same_search(found: Any, expected: Any, folder: Path) -> None:
    for column, values in expected.cv_results_.items():
        if not column.endswith("_time"):
            assert np.array_equal(found.cv_results_[column], values), column
    assert found.best_params_ == expected.best_params_
    machines = [search.best_estimator_ for search in (found, expected)]
    assert saved(machines[0], folder) == saved(machines[1], folder)
    for path, other in zip(_paths(found), _paths(expected), strict=True):
        assert (path.alphas != other.alphas).nnz == 0
        for name in ("rhos", "violations", "objectives", "steps", "endings"):
            assert np.array_equal(getattr(path, name), getattr(other, name)), name
        assert np.array_equal(path.machine.rows, other.machine.rows)


def _paths(search: Any) -> list[Any]:
    return [path for folds in getattr(search, "paths_", []) for fold in folds for path in fold]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_on_a_cluster_are_the_local_ones(
    name: str, tmp_path: Path, counted_tasks: Callable[[], int]
) -> None:
    search, rows, target = SEARCHES[name]
    expected = clone(search).fit(rows, target)
    before = counted_tasks()
    with joblib.parallel_config(backend="dask"):
        found = clone(search).fit(rows, target)
    assert counted_tasks() > before
    assert_same_search(found, expected, tmp_path)


@pytest.mark.nightly
def test_searches_of_processes_here_are_the_local_ones(tmp_path: Path) -> None:
    for name in ("classes", "linear", "pipeline"):
        search, rows, target = SEARCHES[name]
        with joblib.parallel_config(backend="loky", n_jobs=2):
            found = clone(search).fit(rows, target)
        assert_same_search(found, clone(search).fit(rows, target), tmp_path)


def process_number(model: Any, rows: Any, labels: Any) -> float:
    return float(os.getpid())


def test_cells_are_computed_elsewhere() -> None:
    search = margrove.SVCCV(Cs=2, gammas=4, cv=2, scoring=process_number, refit=False)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        where = search.fit(X, Y).scores_
    assert os.getpid() not in where
    assert np.all(where == where[:1, :, :1])  # a task has all C and folds of a gamma


def unhappy(model: Any, rows: Any, labels: Any) -> float:
    raise ZeroDivisionError("there is nothing to divide by")


def test_errors_of_tasks_are_errors_here(cluster4: Any) -> None:
    search = margrove.SVCCV(Cs=2, gammas=2, cv=2, scoring=unhappy)
    with (
        joblib.parallel_config(backend="dask"),
        pytest.raises(ZeroDivisionError, match="nothing to divide by"),
    ):
        search.fit(X, Y)
    assert not hasattr(search, "cells_")


def told_by(fit: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert all(warning.category is ConvergenceWarning for warning in caught)
    return sorted(str(warning.message) for warning in caught)


HASTY = {
    "machines": margrove.SVC(max_iter=3),
    "cells": margrove.SVCCV(Cs=3, gammas=2, cv=2, max_iter=3, refit=False),
    "folds": margrove.LinearSVCCV(Cs=2, cv=2, max_iter=1, solver="cd", tol=1e-9, random_state=0),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", HASTY)
def test_warnings_of_tasks_are_warnings_here(name: str, cluster4: Any) -> None:
    expected = told_by(lambda: clone(HASTY[name]).fit(X, Y))
    with joblib.parallel_config(backend="dask"):
        assert told_by(lambda: clone(HASTY[name]).fit(X, Y)) == expected
        with pytest.raises(ConvergenceWarning):  # as filters of tests have it
            clone(HASTY[name]).fit(X, Y)
    assert expected


def _warn(shared: Any, number: int) -> int:
    warnings.warn("what all tasks say", UserWarning, stacklevel=1)
    return number


def test_filters_here_hold_for_tasks(cluster4: Any) -> None:
    def answers(action: Any) -> tuple[list[int], int]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.resetwarnings()
            warnings.filterwarnings(action, "what all")
            return list(spread(_warn, None, [(k,) for k in range(6)], 4)), len(caught)

    with joblib.parallel_config(backend="dask"):
        assert answers("ignore") == (list(range(6)), 0)
        assert answers("always") == (list(range(6)), 6)
        assert answers("default") == (list(range(6)), 1)


def test_tasks_that_overlap_in_a_process_leave_warnings_as_they_were() -> None:
    both_there = threading.Barrier(2)
    heard: list[int] = []

    def work(number: int) -> None:
        carried = Carried((both_there, {}, [("always", None, Warning, None, 0)]))
        heard.append(len(_run_task(_warn_together, carried, number)[1]))

    filters, shown = list(warnings.filters), warnings.showwarning
    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(heard) == 2
    assert (list(warnings.filters), warnings.showwarning) == (filters, shown)


def _warn_together(both_there: threading.Barrier, number: int) -> int:
    both_there.wait()
    warnings.warn(f"task {number}", UserWarning, stacklevel=1)
    both_there.wait()
    return number


def test_runs_are_even() -> None:
    assert even_runs([1.0, 1.0, 1.0, 1.0], 2) == [range(2), range(2, 4)]
    assert even_runs([9.0, 1.0, 1.0], 2) == [range(1), range(1, 3)]
    assert even_runs([1.0, 1.0], 8) == [range(1), range(1, 2)]
    for n_runs in range(1, 9):
        runs = even_runs(RNG.exponential(size=7), n_runs)
        assert [k for run in runs for k in run] == list(range(7))
        assert len(runs) <= n_runs
        assert all(runs)
