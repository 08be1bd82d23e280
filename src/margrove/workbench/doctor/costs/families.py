"""How the cost of each family of learners grows, and the learners that are estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from margrove._runtime import resolve_n_jobs
from margrove.margin.kernels import LARGEST_TILE
from margrove.select.learners import Learner, estimator_named, learners_at
from margrove.workbench.doctor.examined_data import final_step
from margrove.workbench.doctor.examined_target import Task

__all__ = [
    "Family",
    "buffer_bytes",
    "family_of",
    "kernel_machine_bytes",
    "learners_for",
    "pairs_bytes",
    "settle_early_stopping",
    "with_rounds",
]

_ONE_CLASS = "OneClassSVM"  # a kernel machine that is not in the registry of learners
_MEMBERS = ("Forest", "ExtraTrees", "Bagging")  # in the names of other libraries' estimators
KERNEL_EXPONENT = 1.6
_FEW_ROUNDS, _MORE_ROUNDS = 2, 10
_FAST_ROUNDS = 1, 4
_EARLY_STOPPING_ROWS = 10_000  # above this, early_stopping="auto" of histogram boosting is on


@dataclass(frozen=True)
class Family:
    """How the cost of a learner grows.

    exponent       of the number of rows
    rounds_name    the parameter that counts rounds, None if there is none
    rounds         number of rounds of a full fit
    touches_part   whether it allocates more memory than it writes to
    n_parallel     number of rounds that run at the same time, on threads
    is_chain       whether a round builds on those before
    table_form     the form of the table: "codes" (labels as categories, with missing values),
                   "filled" (no missing values) or "scaled" (indicators and standardised numbers)
    is_fast        whether probes use fewer rounds
    """

    exponent: float = 1.0
    rounds_name: str | None = None
    rounds: int = 1
    touches_part: bool = False
    n_parallel: int = 1
    is_chain: bool = False
    table_form: str = "scaled"
    is_fast: bool = False

    @property
    def probed_rounds(self) -> tuple[int, int]:
        """Two numbers of rounds; the cost of a round is found from the difference."""
        if self.rounds_name is None:
            return 1, 1
        few, more = _FAST_ROUNDS if self.is_fast else (_FEW_ROUNDS, _MORE_ROUNDS)
        few, more = max(few, self.n_parallel), max(more, 4 * self.n_parallel)
        return min(few, self.rounds), min(more, self.rounds)

    def with_fewer_rounds(self) -> Family:
        """The same family, with fewer rounds in probes."""
        return replace(self, is_fast=True)


def family_of(estimator: Any) -> Family:
    """The family of an estimator, or of the last step of a pipeline."""
    final = final_step(estimator)
    name = type(final).__name__
    is_ours = type(final).__module__.startswith("margrove.")
    inner = getattr(final, "estimator", None)
    exponent, touches_part = 1.0, False
    if _is_kernel_machine(name):
        exponent, touches_part = KERNEL_EXPONENT, is_ours
    elif inner is not None and hasattr(inner, "fit"):
        exponent = family_of(inner).exponent
    rounds_name = _rounds_name(final)
    rounds = 1 if rounds_name is None else int(getattr(final, rounds_name))
    return Family(
        exponent=exponent,
        rounds_name=rounds_name,
        rounds=max(1, rounds),
        touches_part=touches_part,
        n_parallel=_n_parallel(final, name),
        is_chain=rounds_name is not None and not _has_independent_members(name),
        table_form=_table_form(final, name),
    )


def _learner_of(name: str) -> Learner | None:
    """The learner of a class name; estimators of scikit-learn are assumed to cost the same."""
    found = estimator_named(name)
    return None if found is None else found[0]


def _is_kernel_machine(name: str) -> bool:
    learner = _learner_of(name)
    return name == _ONE_CLASS or (learner is not None and learner.cost == "kernel")


def _has_independent_members(name: str) -> bool:
    learner = _learner_of(name)
    if learner is not None:
        return learner.cost == "members"
    return any(word in name for word in _MEMBERS)


def _n_parallel(final: Any, name: str) -> int:
    if not _has_independent_members(name):
        return 1
    unset: Literal["one", "all"] = (
        "all" if type(final).__module__.startswith("margrove.") else "one"
    )
    return resolve_n_jobs(getattr(final, "n_jobs", 1), unset=unset)


def _rounds_name(final: Any) -> str | None:
    if type(final).__name__.startswith("HistGradientBoosting"):
        name = "max_iter"
    else:
        name = "n_estimators"
    rounds = getattr(final, name, None)
    return name if isinstance(rounds, (int, np.integer)) else None


def _table_form(final: Any, name: str) -> str:
    if hasattr(final, "categorical_features"):
        return "codes"
    learner = _learner_of(name)
    if name == _ONE_CLASS or (learner is not None and learner.family == "margin"):
        return "scaled"
    return "filled"


def with_rounds(estimator: Any, rounds_name: str, rounds: int) -> Any:
    """A clone with this number of rounds."""
    from sklearn.base import clone

    copy = clone(estimator)
    final_step(copy).set_params(**{rounds_name: rounds})
    return copy


def settle_early_stopping(final: Any, n_rows: int) -> None:
    """Set early_stopping="auto" to its value for a fit to all rows, so that probes do the same."""
    if getattr(final, "early_stopping", None) == "auto":
        final.set_params(early_stopping=n_rows > _EARLY_STOPPING_ROWS)


def learners_for(task: Task) -> list[Any]:
    """The learners whose costs are estimated, with their defaults, fast families first."""
    learners = learners_at("estimates", task)
    learners.sort(key=lambda learner: learner.family == "margin")
    entries = [learner.for_task(task) for learner in learners]
    return [entry.estimator_class() for entry in entries if entry is not None]


# Measured with machines of pairs of classes: tiles of K live until the garbage collector runs.
_TILES_ALIVE = 50
_TILE_OVERHEAD = 1.25
_WORKING_BYTES = 45e6
_BYTES_OF_EARLIER_PAIRS = 100e6
_FULL_MATRIX_ROWS = 2048  # up to this number of rows, all of K is in memory

_PERCEPTRON_BUFFER = 8.0 * 2**20
_BYTES_PER_PAIR_OF_ROWS = 0.6  # about one row of K in seven is kept


def kernel_machine_bytes(n_rows: int) -> float:
    """The memory of a kernel machine of two classes or of a regression, if it was not measured."""
    return _WORKING_BYTES + _BYTES_PER_PAIR_OF_ROWS * float(n_rows) ** 2


def buffer_bytes(name: str, n_rows: int, n_columns: int) -> float:
    """The size of a buffer with a maximum, which small fits do not reach."""
    return min(_PERCEPTRON_BUFFER, 8.0 * n_rows * n_columns) if name == "Perceptron" else 0.0


def pairs_bytes(class_counts: np.ndarray) -> float:
    """The memory of the machines of all pairs of several classes.

    Pairs of few rows have their part of K as a tile, and the block of each class with itself is
    kept. Larger pairs are solved one after the other, each as a machine of two classes.
    """
    counts = np.sort(np.asarray(class_counts, float))
    counts = counts[counts > 0]
    largest = float(counts[-2:].sum())
    if counts.sum() <= _FULL_MATRIX_ROWS:
        return _WORKING_BYTES / 4 + 8.0 * float(counts.sum()) ** 2
    if largest > LARGEST_TILE:
        return _BYTES_OF_EARLIER_PAIRS + kernel_machine_bytes(int(largest))
    pairs = counts[:, None] + counts[None, :]
    squares = float(np.triu(pairs**2, 1).sum())
    alive = min(1.0, _TILES_ALIVE / math.comb(len(counts), 2))
    within_classes = float((counts**2).sum())
    return _WORKING_BYTES + 4.0 * (within_classes + _TILE_OVERHEAD * alive * squares)
