"""The members of a bagged ensemble: how one is made and fitted, and several in parallel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_method_params

from margrove._runtime import (
    Estimator,
    JointFits,
    processes_wanted,
    run_calls,
    spread,
    unwatched,
    whole_number,
)
from margrove.ensemble.bagging.estimator_states import fitted_values, refitted, require_keepable
from margrove.ensemble.bagging.samples import RowSample, RowSamples, draw_columns, seed_of_member
from margrove.exceptions import InvalidDataError

__all__ = ["BaggingPlan", "Member", "MemberFitting", "columns_of"]

_BATCH_SECONDS = 0.25
_JOINT_PER_THREAD = 4  # members fitted together, whose rows are all in memory
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class BaggingPlan:
    """What a member is made from, except for the data and its number.

    ensemble        the class name of the ensemble, for messages
    prototype       the estimator that is cloned for each member
    n_chosen        the number of columns of a member
    takes_weights   whether its fit has sample_weight; if not, rows are repeated
    takes_all_rows  whether it also gets the rows that were not drawn, with a weight of zero
    classes         the labels of the codes that members are fitted to; None for regression
    fit_params      further arguments of its fit
    """

    ensemble: str
    prototype: Any
    samples: RowSamples
    n_features: int
    n_chosen: int
    bootstrap_features: bool
    takes_weights: bool
    takes_all_rows: bool
    classes: np.ndarray | None
    fit_params: dict[str, Any]

    @cached_property
    def plain_copy(self) -> Any:
        """A copy of the prototype whose attributes can be copied again; None if some cannot.

        A clone of an estimator takes as long as the Python part of a small fit.
        """
        copied = clone(self.prototype)
        is_ours = type(copied).__module__.startswith("margrove.")
        values = copied.get_params(deep=False).values()
        return copied if is_ours and all(isinstance(value, _PLAIN) for value in values) else None

    def columns(self, number: int) -> np.ndarray:
        """The columns of member `number`, int64 (n_chosen,)."""
        return draw_columns(
            self.samples.seed,
            number,
            self.n_features,
            self.n_chosen,
            with_replacement=self.bootstrap_features,
        )


@dataclass(frozen=True)
class Member:
    """A fitted estimator and the columns that it was fitted on."""

    estimator: Any
    columns: np.ndarray


@dataclass(frozen=True)
class _MemberTask:
    """Member `number` before its fit: a copy of the prototype, and what it is fitted to."""

    plan: BaggingPlan
    X: Any
    y: np.ndarray
    number: int
    estimator: Any
    columns: np.ndarray
    sample: RowSample

    @classmethod
    def of(cls, plan: BaggingPlan, X: Any, y: np.ndarray, number: int) -> _MemberTask:
        estimator, columns = _copy_for_member(plan, number), plan.columns(number)
        return cls(plan, X, y, number, estimator, columns, plan.samples.sample(number))

    def fit_by(self, fit: Callable[..., Any]) -> Any:
        """fit(X, y, ...) with the sample of this member."""
        plan = self.plan
        rows, weight = _rows_and_weights(plan, self.sample, len(self.y))
        params: dict[str, Any] = {}
        if plan.fit_params:
            params = _check_method_params(self.X, plan.fit_params, indices=rows)
        if weight is not None:
            params["sample_weight"] = weight
        with self.explained():
            return fit(columns_of(self.X[rows], self.columns), self.y[rows], **params)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors inside say which member failed."""
        try:
            with unwatched():
                yield
        except Exception as error:
            _explain(error, self.plan, self.number, self.y[self.sample.rows])
            raise


def fit_member(plan: BaggingPlan, X: Any, y: np.ndarray, number: int) -> Member:
    """Member `number`, fitted on its sample."""
    task = _MemberTask.of(plan, X, y, number)
    task.fit_by(task.estimator.fit)
    return Member(task.estimator, task.columns)


def fit_members_jointly(
    joint: JointFits, plan: BaggingPlan, X: Any, y: np.ndarray, numbers: range, n_threads: int
) -> tuple[list[Member], bool]:
    """The same members as `fit_member`, and whether it was good to fit them together."""

    def finish(task: _MemberTask, begun: Any) -> None:
        with task.explained():
            joint.finish(begun)

    tasks = [_MemberTask.of(plan, X, y, number) for number in numbers]
    begun = [task.fit_by(partial(joint.begin, task.estimator)) for task in tasks]
    solved = joint.solve(begun, n_threads)
    fits = list(zip(tasks, begun, strict=True))
    slow = [fit for fit, is_solved in zip(fits, solved, strict=True) if not is_solved]
    run_calls(finish, slow, n_threads)
    for fit, is_solved in zip(fits, solved, strict=True):
        if is_solved:
            finish(*fit)
    return [Member(task.estimator, task.columns) for task in tasks], 2 * len(slow) <= len(fits)


def _rows_and_weights(
    plan: BaggingPlan, sample: RowSample, n_rows: int
) -> tuple[np.ndarray | slice, np.ndarray | None]:
    if plan.takes_all_rows:
        return slice(None), np.bincount(sample.rows, sample.counts, minlength=n_rows)
    if plan.takes_weights:
        return sample.rows, sample.counts.astype(np.float64)
    return np.repeat(sample.rows, sample.counts), None


def columns_of(X: Any, columns: np.ndarray) -> Any:
    """Some columns of X; X itself if they are all columns in order."""
    if len(columns) == X.shape[1] and np.array_equal(columns, np.arange(len(columns))):
        return X
    return X[:, columns]


def _copy_for_member(plan: BaggingPlan, number: int) -> Any:
    """A copy of the prototype, with the random states of the member and class weights by code."""
    random = np.random.RandomState(seed_of_member(plan.samples.seed, number))
    if plan.plain_copy is not None:
        estimator = object.__new__(type(plan.plain_copy))
        vars(estimator).update(vars(plan.plain_copy))
        if hasattr(estimator, "random_state"):
            estimator.random_state = int(random.randint(np.iinfo(np.int32).max))
        return estimator
    estimator = clone(plan.prototype)
    params = estimator.get_params(deep=True)
    settings: dict[str, Any] = {}
    for name in sorted(params):
        if name == "random_state" or name.endswith("__random_state"):
            settings[name] = int(random.randint(np.iinfo(np.int32).max))
        elif name == "class_weight" or name.endswith("__class_weight"):
            settings[name] = _by_code(params[name], plan.classes)
    return estimator.set_params(**settings) if settings else estimator


def _by_code(class_weight: Any, classes: np.ndarray | None) -> Any:
    """Class weights by code instead of by label: members are fitted to codes."""
    if classes is None or not isinstance(class_weight, dict):
        return class_weight
    code = {label: k for k, label in enumerate(classes.tolist())}
    if not all(label in code for label in class_weight):
        return class_weight
    return {code[label]: weight for label, weight in class_weight.items()}


def _explain(error: Exception, plan: BaggingPlan, number: int, y: np.ndarray) -> None:
    """Add to an error which member failed; raise a clearer one if its sample has one class."""
    kind = type(plan.prototype).__name__
    if plan.classes is not None and len(plan.classes) > 1 and len(np.unique(y)) == 1:
        only = plan.classes.tolist()[y[0]]
        raise InvalidDataError(
            f"{kind} could not be fitted as estimator {number} of {plan.ensemble}: its sample of "
            f"{plan.samples.n_draws} draws contains the class {only!r} only. Use a larger "
            "max_samples, another random_state, or an estimator that accepts a single class. "
            f"Message of the estimator: {error}"
        ) from error
    error.add_note(f"This was estimator {number} of {plan.ensemble}, fitted on a sample of rows.")


def _fit_in_worker(shared: tuple[Any, ...], number: int) -> Member:
    """`fit_member` in a worker process."""
    plan, X, y = shared
    return fit_member(plan, X, y, number)


class MemberFitting:
    """The process that fits members `first` to `total` - 1, one in each round.

    Several members are fitted in parallel and then handed over one by one: by threads, or by
    processes if a joblib setting asks for them.
    """

    unit = "estimator"
    limit = "n_estimators"

    def __init__(
        self, plan: BaggingPlan, X: Any, y: np.ndarray, first: int, total: int, n_jobs: int
    ) -> None:
        self.total: int | None = total
        self._fitted: list[Member] = []
        self._values: list[dict[str, Any]] = []  # the members in earlier calls of `state`
        self._n_handed_over = 0
        self._plan, self._X, self._y = plan, X, y
        self._first, self._last, self._n_jobs = first, total, n_jobs
        self._batch = n_jobs
        self._uses_processes = n_jobs > 1 and processes_wanted()
        self._results: Iterator[Member] | None = None
        self._joint = self._joint_fits()

    def _joint_fits(self) -> JointFits | None:
        """What fits several members together; None to fit each by itself."""
        prototype, plan = self._plan.prototype, self._plan
        if self._n_jobs == 1 or self._uses_processes or not isinstance(prototype, Estimator):
            return None
        n_rows = len(plan.samples.sample(self._first).rows)
        return prototype._joint_fits(self._X, n_rows)

    @property
    def members(self) -> list[Member]:
        return self._fitted[: self._n_handed_over]

    @property
    def rounds(self) -> int:
        return self._first + self._n_handed_over

    @property
    def finished(self) -> bool:
        return self.rounds >= self._last

    def advance(self, work: float) -> float:
        """Hand over the next member, after fitting a batch if there is none."""
        if self._n_handed_over == len(self._fitted):
            if self._uses_processes:
                self._fitted.append(self._next_of_processes())
            else:
                self._fit_on_threads()
        self._n_handed_over += 1
        return work

    def _next_of_processes(self) -> Member:
        if self._results is None:
            shared = self._plan, self._X, self._y
            calls = [(number,) for number in range(self.rounds, self._last)]
            self._results = spread(_fit_in_worker, shared, calls, self._n_jobs)
        return next(self._results)

    def _fit_on_threads(self) -> None:
        numbers = range(self.rounds, min(self.rounds + self._batch, self._last))
        start = time.monotonic()
        given, most = (self._plan, self._X, self._y), 4 * self._batch
        if self._joint is not None:
            members, is_good = fit_members_jointly(self._joint, *given, numbers, self._n_jobs)
            most = min(most, _JOINT_PER_THREAD * self._n_jobs)
            self._joint = self._joint if is_good else None
        else:
            members = run_calls(fit_member, [(*given, number) for number in numbers], self._n_jobs)
        self._fitted += members
        if self._n_jobs > 1:
            seconds_each = max(time.monotonic() - start, 1e-6) / len(numbers)
            self._batch = max(self._n_jobs, min(most, int(_BATCH_SECONDS / seconds_each)))

    def state(self) -> dict[str, Any]:
        require_keepable(_copy_for_member(self._plan, self._first))
        new = self._fitted[len(self._values) :]
        self._values = [*self._values, *(fitted_values(member.estimator) for member in new)]
        return {
            "first": self._first,
            "seed": int(self._plan.samples.seed),
            "n_handed_over": self._n_handed_over,
            "members": self._values,
        }

    def restore(self, state: dict[str, Any]) -> None:
        members = [
            self._restored(self._first + k, values) for k, values in enumerate(state["members"])
        ]
        most = min(len(members), self._last - self._first)
        self._n_handed_over = whole_number(state["n_handed_over"], "n_handed_over", most=most)
        self._fitted = members[: self._last - self._first]

    def _restored(self, number: int, values: Any) -> Member:
        columns = self._plan.columns(number)
        return Member(refitted(_copy_for_member(self._plan, number), values, len(columns)), columns)

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        return {"draws each": float(self._plan.samples.n_draws)}

    def closing_figures(self) -> dict[str, float]:
        """Called when the process ends early: also keeps members not yet handed over."""
        self._n_handed_over = len(self._fitted)
        return self.figures()
