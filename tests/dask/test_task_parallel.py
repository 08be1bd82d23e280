"""What is made of many independent fits runs on any joblib backend, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest

import margrove
from margrove._spread import Carried, processes_wanted, workers_wanted
from margrove._threads import resolve_n_jobs

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


def one_against_one() -> Any:
    return margrove.SVC(n_jobs=2).fit(X, Y).decision_function(X)


def searched() -> Any:
    return margrove.SVCCV(cv=3, n_jobs=2, random_state=0).fit(X, Y).decision_function(X)


def compared() -> Any:
    models = {"machine": margrove.SVC(), "tree": margrove.DecisionTreeClassifier(random_state=0)}
    found = margrove.compare(models, X, Y, cv=3, n_jobs=2, random_state=0)
    return np.concatenate([own.fold_scores for own in found.models])


def blended() -> Any:
    models = {"machine": margrove.LinearSVC(), "tree": margrove.DecisionTreeClassifier()}
    found = margrove.compare(
        models, X, Y, cv=2, n_jobs=2, random_state=0, blend={"n_folds": 2, "n_rounds": 3}
    )
    return np.concatenate([own.fold_scores for own in found.models])


def resampled() -> Any:
    found = margrove.bootstrap(X[:60, 0], spread_of, n_resamples=30, n_jobs=2, random_state=0)
    return np.append(found.resamples, [found.low, found.high])


def error_resampled() -> Any:
    learner = margrove.LinearSVC()
    found = margrove.bootstrap_error(learner, X, Y, n_resamples=25, n_jobs=2, random_state=0)
    return np.array([found.out_of_bag, found.e632_plus])


LEAVE = [bagged, forest, compared, blended, resampled, error_resampled]
STAY = [one_against_one, searched]  # their parts share kernel values, on threads


@pytest.fixture(scope="module")
def local() -> dict[str, Any]:
    return {run.__name__: run() for run in [*LEAVE, *STAY]}


@pytest.fixture
def counted_tasks(cluster4: Any) -> Callable[[], int]:
    """How many tasks the cluster has been given since."""
    seen = cluster4.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)

    def count() -> int:
        now = cluster4.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
        return int(now - seen)

    return count


@pytest.mark.parametrize("run", LEAVE, ids=lambda run: run.__name__)
def test_a_cluster_gives_the_same_and_gets_the_work(
    run: Callable[[], Any], local: dict[str, Any], counted_tasks: Callable[[], int]
) -> None:
    with joblib.parallel_config(backend="dask"):
        found = run()
    assert np.array_equal(found, local[run.__name__])
    assert counted_tasks() > 0


@pytest.mark.parametrize("run", STAY, ids=lambda run: run.__name__)
def test_what_shares_memory_stays_in_its_process(
    run: Callable[[], Any], local: dict[str, Any], cluster4: Any
) -> None:
    with joblib.parallel_config(backend="dask"):
        found = run()
    assert np.array_equal(found, local[run.__name__])


@pytest.mark.nightly
@pytest.mark.parametrize("run", [*LEAVE, *STAY], ids=lambda run: run.__name__)
def test_processes_of_this_machine_give_the_same(
    run: Callable[[], Any], local: dict[str, Any]
) -> None:
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert np.array_equal(run(), local[run.__name__])


def _cores_in_a_task(shared: Any, number: int) -> tuple[int, int, bool]:
    return resolve_n_jobs(-1), resolve_n_jobs(None, unset="all"), processes_wanted()


def test_tasks_have_one_core_and_start_no_tasks(cluster4: Any) -> None:
    from margrove._spread import spread

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
    from margrove._spread import spread

    _Counted.n_sent = 0
    with joblib.parallel_config(backend="dask"):
        told = list(spread(_length, _Counted(np.zeros(10)), [(k,) for k in range(20)], 4))
    assert told == [10 + k for k in range(20)]
    assert _Counted.n_sent <= 2  # not once for each of twenty tasks


def test_a_cluster_says_itself_how_many_tasks_it_takes(cluster4: Any) -> None:
    with joblib.parallel_config(backend="dask"):
        assert workers_wanted(None) == 4
    assert Carried(None).__sizeof__() > 1000
