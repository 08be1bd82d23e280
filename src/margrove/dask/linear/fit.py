"""The fit of a linear machine on a cluster: summaries of rows, plan, Newton steps, certificate.

All machines of a fit (one for each class against the rest) are solved in batches. The size of a
batch is limited by the memory for dual variables: that of the rows themselves, or what workers with
rows on disk have. The machines of a batch take steps together, so that each message serves all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._data import seed_of
from margrove._runtime import Ending, drive, require_memory, using_checkpoints
from margrove.dask.linear.certificate import (
    MOST_ROWS,
    MachineOutcome,
    certificate_of_sums,
    machine_names,
)
from margrove.dask.linear.l1_newton import ClusterL1Newton
from margrove.dask.linear.newton import ClusterNewton, System
from margrove.dask.linear.plan import LinearPlan
from margrove.dask.linear.row_summaries import MergedSummary, merged_summary, sampling_step
from margrove.dask.linear.worker_program import worst_of
from margrove.margin.linear import LinearRecord
from margrove.margin.solvers.linear import MOST_FEATURES, Kind, LinearDemand, LinearResult
from margrove.margin.svm import TargetScale

__all__ = ["FitProgress", "Fitted", "TrainingScale", "solve_on_group"]

_WAYS = {"l2": "NewtonProcess", "l1": "L1NewtonProcess"}


@dataclass(frozen=True)
class TrainingScale:
    """The scale, in the form that `LinearMachine` expects of a `LinearTraining`."""

    scale: float


@dataclass
class FitProgress:
    """The progress of a fit, from which an attempt on other workers continues.

    solved   the outcome of each solved machine
    weights  coefficients and intercept of each other machine
    """

    began: float = field(default_factory=time.monotonic)
    steps: int = 0
    solved: dict[int, MachineOutcome] = field(default_factory=dict)
    weights: dict[int, tuple[np.ndarray, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fitted:
    """The result of a fit, from which the estimator makes its attributes."""

    record: LinearRecord
    scale: float
    classes: np.ndarray | None

    @property
    def result(self) -> LinearResult:
        return self.record.result


def solve_on_group(
    group: Any,
    model: Any,
    kind: Kind,
    progress: FitProgress,
    *,
    n_rows: int,
    n_features: int,
    feature_names: np.ndarray | None,
    learnt: Callable[[Fitted], dict[str, Any]],
) -> Fitted:
    """Solve all machines; `learnt` returns the fitted attributes, for callbacks."""
    of_classes = hasattr(model, "class_weight")
    facts = group.call("summarise", of_classes, sampling_step(n_rows), reduce="list")
    merged = merged_summary(
        [summary for replies in facts for summary in replies], model, feature_names
    )
    plan, target_scale = _plan(group, model, kind, merged, n_features)
    count, spread = group.call("set_plan", plan, reduce="sum")
    reach = 2.0 if of_classes else (float(spread / count) or 1.0)
    process = BatchedMachines(group, model, plan, progress, n_rows=int(count), reach=reach)

    def fitted() -> Fitted:
        outcomes = process.outcomes()
        result = LinearResult.stacked([outcome.result for outcome in outcomes])
        power = 1 if kind == "l1" else 2
        parameters = {name: getattr(model, name) for name in model._parameter_constraints}
        nothing: Any = None
        record = LinearRecord(
            None, None, None, parameters, nothing, kind, nothing, result, (plan.scale,) * power,
            target_scale,
        )  # fmt: skip
        names = machine_names(plan.classes, plan.n_machines)
        record.certificate = certificate_of_sums(record, names, outcomes)
        return Fitted(record, plan.scale, plan.classes)

    ending = _driven(process, model, progress, lambda: learnt(fitted()))
    found = fitted()
    model._warn_unless_converged(ending, found.result, _WAYS[kind])
    return found


def _driven(
    process: BatchedMachines,
    model: Any,
    progress: FitProgress,
    attributes: Callable[[], dict[str, Any]],
) -> Ending:
    left = model.max_time
    if left is not None:
        left = max(left - (time.monotonic() - progress.began), 1e-3)
    with using_checkpoints(None):
        return drive(
            process,
            model,
            max_time=left,
            on_interrupt=model.on_interrupt,
            verbose=int(model.verbose),
            fitted=attributes,
        )


def _plan(
    group: Any, model: Any, kind: Kind, merged: MergedSummary, n_features: int
) -> tuple[LinearPlan, TargetScale]:
    scale = _exact_scale(group, merged.longest)
    target_scale = TargetScale(0.0, 1.0)
    if merged.targets is not None:
        is_free = model.fit_intercept and model.intercept_scaling is None
        target_scale = TargetScale.of(merged.targets, centred=is_free)
    plan = LinearPlan(
        model=_bare(model),
        kind=kind,
        scale=scale,
        bias_price=model._bias_price(TrainingScale(scale), 1 if kind == "l1" else 2),
        n_features=n_features,
        n_jobs=model.n_jobs,
        exponents=merged.exponents,
        classes=merged.classes,
        factors=merged.factors,
        centre=target_scale.centre,
        factor=target_scale.factor,
    )
    return plan, target_scale


def _bare(model: Any) -> Any:
    """An unfitted copy, without parameters that cannot or need not be sent."""
    copy = clone(model)
    return copy.set_params(random_state=None, verbose=0)


def _exact_scale(group: Any, longest: float) -> float:
    """The scale of the features as in a local fit: 1 for ordinary sizes, else a power of two."""
    if 1e-9 < longest < 1e9:
        return 1.0
    largest = float(group.call("largest", reduce="max"))
    if largest == 0.0:
        return 1.0
    return float(np.ldexp(1.0, max(-1000, min(1000, -int(np.frexp(largest)[1])))))


class BatchedMachines:
    """The process that solves all machines, batch after batch; see `slices.Process`."""

    unit = "step"

    def __init__(
        self,
        group: Any,
        model: Any,
        plan: LinearPlan,
        progress: FitProgress,
        *,
        n_rows: int,
        reach: float,
    ) -> None:
        self._group, self._plan, self._progress, self._reach = group, plan, progress, reach
        self._gathers = n_rows * plan.n_machines <= MOST_ROWS
        seed = 0 if model.random_state is None else seed_of(model.random_state)
        self._demand = LinearDemand(float(model.tol), int(model.max_iter), seed)
        self._system: System = _system(model, plan)
        self._steps_before = progress.steps
        size = 1
        if plan.kind != "l1" and plan.n_machines > 1:
            size = int(group.call("machines_at_once", reduce="min"))
        left = [k for k in range(plan.n_machines) if k not in progress.solved]
        self._batches = [left[first : first + size] for first in range(0, len(left), size)]
        self.total: int | None = self._demand.epochs if len(self._batches) <= 1 else None
        self._process: Any = None
        if self._batches:
            self._begin()

    @property
    def rounds(self) -> int:
        return self._progress.steps

    @property
    def finished(self) -> bool:
        return not self._batches

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        figures: dict[str, float] = {} if self._process is None else self._process.figures()
        return figures

    def advance(self, work: float) -> float:
        if not self._process.finished:
            before = self._process.rounds
            self._process.advance(work)
            self._progress.steps += self._process.rounds - before
            self._remember()
        if self._process.finished:
            self._close()
            if self._batches:
                self._begin()
        return work

    def outcomes(self) -> list[MachineOutcome]:
        """The outcomes of all machines in their current state."""
        while self._batches:
            if self._process is None:
                self._begin()
            self._close()
        return [self._progress.solved[k] for k in range(self._plan.n_machines)]

    def _begin(self) -> None:
        batch = self._batches[0]
        start = self._start(batch)
        if self._plan.kind == "l1":
            self._process = ClusterL1Newton(
                self._group, self._plan, self._demand, batch[0], start=start
            )
            return
        self._process = ClusterNewton(
            self._group, self._plan, self._demand, batch, self._reach,
            system=self._system, start=start,
        )  # fmt: skip

    def _start(self, batch: list[int]) -> tuple[np.ndarray, np.ndarray] | None:
        known = self._progress.weights
        if not any(k in known for k in batch):
            return None
        nothing = np.zeros(self._plan.n_features), 0.0
        weights = [known.get(k, nothing) for k in batch]
        return np.stack([w for w, _ in weights]), np.array([b for _, b in weights])

    def _remember(self) -> None:
        """Keep the weights, from which to continue if a worker is lost."""
        coef, intercept = self._process.weights()
        for k, w, b in zip(self._batches[0], coef, intercept, strict=True):
            self._progress.weights[k] = w, float(b)

    def _close(self) -> None:
        batch = self._batches.pop(0)
        result = self._process.result()
        worst = worst_of(self._group.call("violations", batch, reduce="list"))
        result = replace(result, violation=worst[:, 0])
        for place, k in enumerate(batch):
            rows = self._rows_of(k) if self._gathers else None
            machine_result = result.of_machines(range(place, place + 1))
            self._progress.solved[k] = MachineOutcome(machine_result, int(worst[place, 1]), rows)
        self._process = None

    def _rows_of(self, k: int) -> dict[str, np.ndarray]:
        replies = self._group.call("rows_of", k, reduce="list")
        found = {name: np.concatenate([reply[name] for reply in replies]) for name in replies[0]}
        if np.all(np.diff(found["rows"]) > 0):
            return found
        order = np.argsort(found["rows"])  # workers may hold rows between those of others
        return {name: values[order] for name, values in found.items()}


def _system(model: Any, plan: LinearPlan) -> System:
    if model.solver != "newton" and plan.n_features > MOST_FEATURES:
        return "gradients"
    require_memory(
        4.0 * 8 * (plan.n_features + 1.0) ** 2,
        f"solver='newton' with {plan.n_features} features",
        "Use solver='auto', which solves large systems by conjugate gradients.",
    )
    return "direct"
