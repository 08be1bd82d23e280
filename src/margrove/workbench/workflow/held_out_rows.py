"""Rows to learn from and rows to test with, and how many folds the former can be cut into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from margrove.select import InvalidRequestError

if TYPE_CHECKING:
    import numpy as np

    from margrove.workbench.workflow.observer import Observer

__all__ = ["HeldOutRows", "held_out", "tuning_folds", "usable_folds"]

_FEWEST_TESTED = 2
_FOLDS = 5


class _Targets(Protocol):
    """What a task has of its targets; a table on a cluster has no more."""

    @property
    def y(self) -> Any: ...
    @property
    def kind(self) -> Any: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def target(self) -> str: ...


@dataclass(frozen=True)
class HeldOutRows:
    """Numbers of the rows to learn from, and of those to test with."""

    train: np.ndarray
    test: np.ndarray

    @property
    def has_test(self) -> bool:
        return len(self.test) > 0


def held_out(task: _Targets, test_size: float, seed: int) -> HeldOutRows:
    """Hold out a share of the rows, the same share of each class; 0 holds out none."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    rows, alone = np.arange(task.n_rows), np.arange(0)
    if not test_size:
        return HeldOutRows(rows, np.arange(0, dtype=np.int64))
    by_class = None
    if task.kind == "classification":
        codes, counts = np.unique(task.y, return_inverse=True, return_counts=True)[1:]
        alone = rows[counts[codes] == 1]  # classes of one row can only be learnt
        rows = rows[counts[codes] > 1]
        by_class = codes[rows]
    share = f"A test part of {test_size:.0%}"
    try:
        train, test = train_test_split(
            rows, test_size=test_size, random_state=seed, stratify=by_class
        )
    except ValueError as error:
        raise InvalidRequestError(
            f"{share} cannot be taken from {task.n_rows} rows: {error}"
        ) from None
    if len(test) < _FEWEST_TESTED:
        what = f"{share} of {task.n_rows} rows is one row, which tells nothing about others."
        raise InvalidRequestError(
            f"{what} Choose a greater test_size, or give more rows.",
            f"{what} Choose a greater --test-size, or give more rows.",
        )
    return HeldOutRows(np.concatenate([train, alone]), test)


def usable_folds(task: _Targets, folds: int, observer: Observer) -> int:
    """As many folds as asked for, if at least two classes have a row for each."""
    import numpy as np

    if task.kind == "regression":
        if task.n_rows < 4:
            raise InvalidRequestError(
                f"{task.name} has {task.n_rows} rows with a target; cross-validation needs four."
            )
        return min(folds, task.n_rows // 2)
    classes, counts = np.unique(task.y, return_counts=True)
    rare, most = classes[int(np.argmin(counts))], int(np.sort(counts)[-2])
    if most < 2:
        what = (
            f"The class {str(rare)!r} of {task.target!r} has one row only, so it cannot be both "
            "learnt and tested."
        )
        raise InvalidRequestError(
            f"{what} Drop it or choose another target.",
            f"{what} Drop it or choose another target with --target.",
        )
    if most < folds:
        observer.note(f"Only {most} folds instead of {folds}: all classes but one have few rows.")
    n_rare = int((counts < min(folds, most)).sum())
    if n_rare:
        observer.note(
            f"{n_rare} of {len(classes)} classes have fewer rows than there are folds, such as "
            f"{str(rare)!r} with {counts.min()}: some folds are learnt or tested without them."
        )
    return min(folds, most)


def tuning_folds(task: _Targets, train: Any) -> int:
    """Five folds, or as many as each class has rows to learn from; below two, none can be made."""
    import numpy as np

    if task.kind == "regression":
        return min(_FOLDS, len(task.y[train]) // 2)
    return min(_FOLDS, int(np.unique(task.y[train], return_counts=True)[1].min()))
