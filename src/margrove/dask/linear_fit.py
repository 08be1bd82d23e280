"""The fit of a linear machine on a cluster: the local solver on every worker.

Tasks describe the partitions, from which the client knows what the problem of any rows is. Then
each worker runs `margin.linear.solve_rows` with its own rows; the members exchange sums. After each
step the first one reports, and the client decides whether the fit goes on. If a worker is lost, the
fit starts again on the remaining workers, from the weights that were last reported.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import distributed
import numpy as np

from margrove._runtime import SLICE_SECONDS, Ending, drive, using_checkpoints
from margrove.dask.cluster import gathered, wait_for_results, with_retries
from margrove.dask.members import Member, Members
from margrove.dask.partitions import Partitions
from margrove.exceptions import InvalidDataError
from margrove.margin.linear import (
    MOST_ROWS,
    LinearFacts,
    LinearRecord,
    MemberResult,
    RowFacts,
    StepReport,
    certificate_of_members,
    require_memory_of_systems,
    solve_rows,
)
from margrove.margin.solvers.linear import MOST_FEATURES, Kind, LinearResult
from margrove.margin.svm import sampling_step

__all__ = ["fit_on_cluster"]

_METHODS = {"l2": "NewtonProcess", "l1": "L1NewtonProcess"}
_BYTES_OF_A_ROW = 48  # of a machine, if rows are on disk
_FEWER = (
    "Hash the features to fewer, for example with sklearn.feature_extraction.FeatureHasher, or fit "
    "X.compute() if it fits into memory."
)
_SHARE = 0.3  # of a worker's memory for these, unless there is only one machine


def fit_on_cluster(model: Any, kind: Kind, partitions: Partitions) -> dict[str, Any]:
    """The fitted attributes of a linear machine."""
    by_gradients = _uses_gradients(model, kind, partitions.n_features)
    facts = _facts_of(model, partitions)
    fit = _Fit(model, kind, partitions, facts, by_gradients=by_gradients)
    wait_for_results(partitions.client, partitions.futures)
    ending, found = with_retries(
        fit.attempt, partitions.client, progress=lambda: fit.state.steps_of_all
    )
    result = fit.state.result if found is None else found[0].result
    model._warn_unless_converged(ending, result, _METHODS[kind])
    return fit.attributes(result, found)


def _uses_gradients(model: Any, kind: Kind, n_features: int) -> bool:
    """Whether systems of Newton steps are too large to be formed."""
    if model.solver == "newton" or n_features <= MOST_FEATURES:
        way_out = "Use solver='auto', which solves large systems by conjugate gradients."
        require_memory_of_systems(n_features, way_out if kind == "l2" else _FEWER)
        return False
    if kind == "l1":
        raise InvalidDataError(
            "penalty='l1' on a cluster takes Newton steps, whose systems are as large as the "
            f"square of the number of features. X has {n_features} features, and the limit is "
            f"{MOST_FEATURES}. {_FEWER} Or set solver='newton', if each worker has "
            f"{4 * 8 * (n_features + 1) ** 2 / 1e9:.1f} GB of memory for them."
        )
    return True


def _facts_of(model: Any, partitions: Partitions) -> LinearFacts:
    step, is_classifier = sampling_step(partitions.n_rows), hasattr(model, "class_weight")
    nothing = [None] * len(partitions.X)
    beside = zip(
        partitions.y or nothing, partitions.weight or nothing, partitions.offsets[:-1].tolist(),
        strict=True,
    )  # fmt: skip
    tasks = partitions.map_each(
        _row_facts, [(y, weight, start, step, is_classifier) for y, weight, start in beside]
    )
    parts = gathered(partitions.client, tasks)
    return LinearFacts.of(parts, model, partitions.feature_names)


def _row_facts(X: Any, y: Any, weight: Any, start: int, step: int, of_classes: bool) -> RowFacts:
    return RowFacts.of(X, y, weight, start, step, of_classes=of_classes)


# -- on the workers --


def _solve(
    member: Member,
    model: Any,
    kind: Kind,
    facts: LinearFacts,
    start: LinearResult | None,
    by_gradients: bool,
    keeps_rows: bool,
) -> MemberResult:
    """The program of each worker."""
    n_threads = member.n_threads
    if model.n_jobs is not None and model.n_jobs > 0:
        n_threads = min(n_threads, model.n_jobs)
    return solve_rows(
        member.collective, model, kind, facts, member.blocks, start=start, n_threads=n_threads,
        most_together=_most_together(member), by_gradients=by_gradients, keeps_rows=keeps_rows,
        report=member.report,
    )  # fmt: skip


def _most_together(member: Member) -> int:
    """How many machines there is memory for, if rows are on disk because it is short."""
    limit = distributed.get_worker().memory_manager.memory_limit
    if not limit or not any(block.is_on_disk for block in member.blocks):
        return 8
    n_rows = sum(block.n_rows for block in member.blocks)
    return max(1, min(8, int(_SHARE * limit / (_BYTES_OF_A_ROW * n_rows))))


# -- on the client --


@dataclass
class _State:
    """What the members have reported: the result so far, and the number of steps.

    steps_before   steps of attempts that lost a worker
    """

    result: LinearResult
    steps: int = 0
    steps_before: int = 0
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def at_zero(cls, n_machines: int, n_features: int) -> _State:
        none = np.full(n_machines, np.inf)
        return cls(
            LinearResult(
                coef=np.zeros((n_machines, n_features)),
                intercept=np.zeros(n_machines),
                primal=none,
                dual=-none,
                violation=np.full(n_machines, np.nan),
                beta=np.empty((0, n_machines)),
                epochs=0,
                converged=np.zeros(n_machines, bool),
            )
        )

    @property
    def steps_of_all(self) -> int:
        return self.steps_before + self.steps

    def take(self, report: StepReport) -> None:
        self.steps = report.rounds
        for machines, news in report.news:
            self.result = self.result.with_machines(machines, news)


class _Fit:
    """A fit; `attempt` runs it on some workers."""

    def __init__(
        self,
        model: Any,
        kind: Kind,
        partitions: Partitions,
        facts: LinearFacts,
        *,
        by_gradients: bool,
    ) -> None:
        self._model, self._kind, self._partitions, self._facts = model, kind, partitions, facts
        self._by_gradients = by_gradients
        n_classes = 0 if facts.classes is None else len(facts.classes)
        self._n_machines = n_classes if n_classes > 2 else 1
        self.state = _State.at_zero(self._n_machines, facts.n_features)
        self._start = self._earlier_result()

    def attempt(self, workers: list[str]) -> tuple[Ending, list[MemberResult] | None]:
        """How the fit ended, and what the members return; None if it was stopped."""
        if self.state.steps_of_all:
            self._start = self.state.result
            self.state.steps_before, self.state.steps = self.state.steps_of_all, 0
        keeps_rows = self._partitions.n_rows * self._n_machines <= MOST_ROWS
        sent = type(self._model).local_class()(**self._model.get_params(deep=False))
        sent.set_params(random_state=None, verbose=0)
        arguments = sent, self._kind, self._facts, self._start, self._by_gradients, keeps_rows
        with Members(self._partitions, workers, _solve, arguments) as members:
            total = int(self._model.max_iter) if self._n_machines == 1 else None
            ending = self._driven(_Steps(members, self.state, total))
            return ending, members.results() if ending == "finished" else None

    def _driven(self, steps: _Steps) -> Ending:
        model, left = self._model, self._model.max_time
        if left is not None:
            left = max(left - (time.monotonic() - self.state.began), 1e-3)
        with using_checkpoints(None):
            return drive(
                steps,
                model,
                max_time=left,
                on_interrupt=model.on_interrupt,
                verbose=int(model.verbose),
                fitted=lambda: self._learnt(self.state.result),
            )

    def attributes(self, result: LinearResult, found: list[MemberResult] | None) -> dict[str, Any]:
        """The fitted attributes, with the certificate."""
        model, facts, nothing = self._model, self._facts, None
        parameters = {name: getattr(model, name) for name in model._parameter_constraints}
        units = (facts.scale,) * (1 if self._kind == "l1" else 2)
        record = LinearRecord(
            None, None, None, parameters, nothing, self._kind, nothing, result, units,  # type: ignore[arg-type]
            facts.target_scale,
        )  # fmt: skip
        rows = [member.rows for member in found or () if member.rows is not None]
        record.certificate = certificate_of_members(record, facts.classes, rows)
        return self._learnt(result) | {"_record": record}

    def _learnt(self, result: LinearResult) -> dict[str, Any]:
        learnt: dict[str, Any] = self._model._learnt_on_cluster(self._facts, result)
        return self._partitions.attributes | learnt

    def _earlier_result(self) -> LinearResult | None:
        """The solution from which `warm_start` starts; None if the machines were others."""
        model = self._model
        if not model.warm_start or "_record" not in vars(model):
            return None
        last: LinearResult = model._record.result
        if last.coef.shape != (self._n_machines, self._facts.n_features):
            return None
        return replace(last, beta=np.empty((0, self._n_machines)))  # which is large, and not used


class _Steps:
    """The steps of the members, as the client sees them; see `slices.Process`."""

    unit = "step"

    def __init__(self, members: Members, state: _State, total: int | None) -> None:
        self._members, self._state = members, state
        self.total = total
        self.finished = False
        self._figures: dict[str, float] = {}
        self._reports: list[StepReport] = []

    @property
    def rounds(self) -> int:
        return self._state.steps_of_all

    def figures(self) -> dict[str, float]:
        return self._figures

    def read_steps(self) -> list[Any]:
        return []

    def advance(self, work: float) -> float:
        """Take the report of the next step, or wait a moment for it; wait for the first one."""
        while True:
            if not self._reports:
                self._reports = self._members.reports(SLICE_SECONDS)
            if self._reports:
                self._take(self._reports.pop(0))
            if self.rounds or self.finished:
                return work

    def _take(self, report: StepReport) -> None:
        self._state.take(report)
        self.total, self.finished, self._figures = report.total, report.is_over, report.figures
