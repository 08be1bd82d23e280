"""How the cost of each family of learners grows, and the learners that are offered for a task."""

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

_ONE_CLASS = "OneClassSVM"  # a kernel machine, but no learner of tables
_MEMBERS = ("Forest", "ExtraTrees", "Bagging")  # in the names of other libraries' estimators
KERNEL_EXPONENT = 1.6
_FEW_ROUNDS, _MORE_ROUNDS = 2, 10
_HASTY_ROUNDS = 1, 4
_ROWS_THAT_STOP_EARLY = 10_000  # of histogram boosting, with early_stopping="auto"


@dataclass(frozen=True)
class Family:
    """How a learner's cost grows.

    exponent       of the number of rows
    rounds_name    the parameter that counts rounds, None where there are none
    rounds         how many there will be
    touches_part   whether it asks for more memory than it writes to
    abreast        rounds that run side by side, on threads
    is_chain       whether a round builds on those before
    wants          what it is given: "codes" (labels as categories, gaps as they are), "filled"
                   (no gaps) or "scaled" (indicators and standardised numbers)
    is_hasty       whether a few rounds must do
    """

    exponent: float = 1.0
    rounds_name: str | None = None
    rounds: int = 1
    touches_part: bool = False
    abreast: int = 1
    is_chain: bool = False
    wants: str = "scaled"
    is_hasty: bool = False

    @property
    def probed_rounds(self) -> tuple[int, int]:
        """Few and more rounds, whose difference is what rounds cost."""
        if self.rounds_name is None:
            return 1, 1
        few, more = _HASTY_ROUNDS if self.is_hasty else (_FEW_ROUNDS, _MORE_ROUNDS)
        few, more = max(few, self.abreast), max(more, 4 * self.abreast)
        return min(few, self.rounds), min(more, self.rounds)

    def in_haste(self) -> Family:
        """The same, with fewer rounds to be probed."""
        return replace(self, is_hasty=True)


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
        abreast=_abreast(final, name),
        is_chain=rounds_name is not None and not _grows_apart(name),
        wants=_wants(final, name),
    )


def _learner_of(name: str) -> Learner | None:
    """By the name of the class: estimators of scikit-learn cost what ours of that name do."""
    found = estimator_named(name)
    return None if found is None else found[0]


def _is_kernel_machine(name: str) -> bool:
    learner = _learner_of(name)
    return name == _ONE_CLASS or (learner is not None and learner.cost == "kernel")


def _grows_apart(name: str) -> bool:
    learner = _learner_of(name)
    if learner is not None:
        return learner.cost == "members"
    return any(word in name for word in _MEMBERS)


def _abreast(final: Any, name: str) -> int:
    if not _grows_apart(name):
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


def _wants(final: Any, name: str) -> str:
    if hasattr(final, "categorical_features"):
        return "codes"
    learner = _learner_of(name)
    if name == _ONE_CLASS or (learner is not None and learner.family == "margin"):
        return "scaled"
    return "filled"


def with_rounds(estimator: Any, rounds_name: str, rounds: int) -> Any:
    """A clone that stops after so many rounds."""
    from sklearn.base import clone

    own = clone(estimator)
    final_step(own).set_params(**{rounds_name: rounds})
    return own


def settle_early_stopping(final: Any, n_rows: int) -> None:
    """Let a probe of few rows do what a fit of all of them will: hold some back, or not."""
    if getattr(final, "early_stopping", None) == "auto":
        final.set_params(early_stopping=n_rows > _ROWS_THAT_STOP_EARLY)


def learners_for(task: Task) -> list[Any]:
    """The learners whose costs are estimated, with their defaults, those first that are quick."""
    learners = learners_at("estimates", task)
    learners.sort(key=lambda own: own.family == "margin")
    entries = [own.for_task(task) for own in learners]
    return [entry.estimator_class() for entry in entries if entry is not None]


# What was seen of pairs of classes: their tiles of K live until the garbage collector comes.
_TILES_ALIVE = 50
_MORE_THAN_TILES = 1.25
_WORKING_BYTES = 45e6
_LEFT_BEHIND = 100e6  # by pairs that were solved before
_AS_A_WHOLE = 2048  # rows up to which K is there as a whole


_PERCEPTRON_BUFFER = 8.0 * 2**20
_BYTES_A_PAIR = 0.6  # of rows: of the rows of K about one in seven is kept


def kernel_machine_bytes(n_rows: int) -> float:
    """Memory of a kernel machine of two classes, or of numbers, where nothing was measured."""
    return _WORKING_BYTES + _BYTES_A_PAIR * float(n_rows) ** 2


def buffer_bytes(name: str, n_rows: int, n_columns: int) -> float:
    """Of a buffer that stops growing: small fits show how it grows, and not that it ends."""
    return min(_PERCEPTRON_BUFFER, 8.0 * n_rows * n_columns) if name == "Perceptron" else 0.0


def pairs_bytes(class_counts: np.ndarray) -> float:
    """Memory of a machine for each pair of several classes.

    Pairs of few rows have their part of K as a tile, and what each class has with itself is kept;
    larger ones are solved one after the other, each as a machine of two classes.
    """
    counts = np.sort(np.asarray(class_counts, float))
    counts = counts[counts > 0]
    largest = float(counts[-2:].sum())
    if counts.sum() <= _AS_A_WHOLE:
        return _WORKING_BYTES / 4 + 8.0 * float(counts.sum()) ** 2
    if largest > LARGEST_TILE:
        return _LEFT_BEHIND + kernel_machine_bytes(int(largest))
    pairs = counts[:, None] + counts[None, :]
    squares = float(np.triu(pairs**2, 1).sum())
    alive = min(1.0, _TILES_ALIVE / math.comb(len(counts), 2))
    own = float((counts**2).sum())
    return _WORKING_BYTES + 4.0 * (own + _MORE_THAN_TILES * alive * squares)
