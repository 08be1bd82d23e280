"""Any statistic on a cluster: the data come together on each worker, resamples are tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._runtime.slices import unwatched
from margrove._runtime.threads import single_threaded_blas
from margrove.dask.parts import is_collection
from margrove.dask.waiting import gathered
from margrove.ensemble.bootstrap.arguments import check_sample
from margrove.ensemble.bootstrap.draws import ResamplingPlan, plan_resampling
from margrove.ensemble.bootstrap.evaluation import Bootstrap, Evaluation

__all__ = ["WholeOnWorkers"]

_TASKS_OF_A_WORKER = 8  # fewer, and the last one is waited for; more, and the scheduler is


class WholeOnWorkers:
    """The process of evaluating resamples as tasks; see `margrove._runtime.slices.Process`.

    Evaluations are numbered as in `margrove.ensemble.bootstrap.evaluation.Bootstrap`: resamples
    first, then the data without each part in turn.
    """

    unit = "evaluation"

    def __init__(
        self,
        client: Any,
        data: Any,
        statistic: Any,
        settings: dict[str, Any],
        stratify: Any,
        groups: Any,
        seed: int,
    ) -> None:
        self._client, self._statistic, self._settings = client, statistic, settings
        is_several = isinstance(data, tuple)
        together = client.submit(
            _together, _futures(client, data if is_several else (data,)), is_several, pure=False
        )
        self._data = together
        n_rows = int(gathered(client, [client.submit(_count, together, self._vectorized)])[0])
        self._plan: ResamplingPlan = plan_resampling(
            n_rows,
            n_resamples=int(settings["n_resamples"]),
            seed=seed,
            scheme=settings["resampling"],
            stratify=_here(stratify),
            groups=_here(groups),
            n_draws=settings["n_draws"],
            block_length=settings["block_length"],
        )
        if settings["resampling"] == "bayesian":
            Evaluation(statistic, check_sample([0, 0], as_arrays=False), False).require_weights()
        self._where = client.submit(_itself, self._plan, pure=False)
        self._deletions = self._plan.deletions() if settings["method"] == "bca" else None
        n_parts = 0 if self._deletions is None else len(self._deletions.parts)
        self.total: int | None = self._plan.n_resamples + n_parts
        self._values: list[np.ndarray] = []
        self._tasks: list[Any] | None = None

    @property
    def _vectorized(self) -> bool:
        return bool(self._settings["vectorized"])

    def estimate(self) -> np.ndarray:
        """Of the data."""
        task = self._submit(_estimate)
        found: np.ndarray = gathered(self._client, [task])[0]
        self._shape = found.shape
        return found

    @property
    def resamples(self) -> np.ndarray:
        if not self._values:
            return np.empty((0, *self._shape))
        return np.concatenate(self._values)[: self._plan.n_resamples]

    def jackknife(self) -> np.ndarray | None:
        """The values without each part, (m, k); None if not asked for, or not complete."""
        if self._deletions is None or not self.finished:
            return None
        without = np.concatenate(self._values)[self._plan.n_resamples :]
        return without.reshape(len(without), int(np.prod(without.shape[1:])))

    @property
    def strata(self) -> np.ndarray:
        return np.empty(0, np.int64) if self._deletions is None else self._deletions.strata

    @property
    def rounds(self) -> int:
        return sum(map(len, self._values))

    @property
    def finished(self) -> bool:
        return self.rounds == self.total

    def advance(self, work: float) -> float:
        """Wait for the next task."""
        if self._tasks is None:
            self._tasks = self._started()
        values = gathered(self._client, [self._tasks.pop(0)])[0]
        if values.shape[1:] != self._shape:
            raise ValueError(
                "The statistic must always return the same shape. For the data it was "
                f"{self._shape}, for a resample {values.shape[1:]}."
            )
        self._values.append(values)
        return work

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        return {}

    def closing_figures(self) -> dict[str, float]:
        return {"resamples": len(self.resamples)}

    def _started(self) -> list[Any]:
        n_workers = max(1, len(self._client.nthreads()))
        tasks = []
        for begin, end in ((0, self._plan.n_resamples), (self._plan.n_resamples, self.total or 0)):
            size = max(1, -(-(end - begin) // (_TASKS_OF_A_WORKER * n_workers)))
            for first in range(begin, end, size):
                tasks.append(self._submit(_evaluate, self._shape, first, min(first + size, end)))
        return tasks

    def _submit(self, function: Any, *arguments: Any) -> Any:
        wants_jackknife = self._deletions is not None
        return self._client.submit(
            function, self._data, self._where, self._statistic, self._vectorized, wants_jackknife,
            *arguments, pure=False,
        )  # fmt: skip


def _futures(client: Any, data: tuple[Any, ...]) -> list[Any]:
    return [client.compute(part) if is_collection(part) else part for part in data]


def _here(labels: Any) -> Any:
    return labels.compute() if is_collection(labels) else labels


# -- on the workers --


def _itself(thing: Any) -> Any:
    return thing


def _together(parts: list[Any], is_several: bool) -> Any:
    return tuple(parts) if is_several else parts[0]


def _count(data: Any, vectorized: bool) -> int:
    return check_sample(data, as_arrays=vectorized).n_rows


def _estimate(
    data: Any, plan: ResamplingPlan, statistic: Any, vectorized: bool, wants_jackknife: bool
) -> np.ndarray:
    evaluation = Evaluation(statistic, check_sample(data, as_arrays=vectorized), vectorized)
    return evaluation.of([plan.whole()], "the data")[0]


def _evaluate(
    data: Any,
    plan: ResamplingPlan,
    statistic: Any,
    vectorized: bool,
    wants_jackknife: bool,
    shape: tuple[int, ...],
    first: int,
    last: int,
) -> np.ndarray:
    """Evaluations first .. last - 1 of the bootstrap, with one thread."""
    evaluation = Evaluation(statistic, check_sample(data, as_arrays=vectorized), vectorized)
    own = Bootstrap(evaluation, plan, np.empty(shape), wants_jackknife, 1)
    with unwatched(), single_threaded_blas():
        own._evaluate(first, last)
        return own._values[first:last]
