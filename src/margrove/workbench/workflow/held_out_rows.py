"""Training rows and test rows, and the number of folds that the training rows allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from margrove.select import InvalidRequestError

if TYPE_CHECKING:
    import numpy as np

    from margrove.workbench.workflow.observer import Observer

__all__ = ["HeldOutRows", "TargetColumn", "held_out", "tuning_folds", "usable_folds"]

_MIN_TEST_ROWS = 2
_FOLDS = 5


class TargetColumn(Protocol):
    """The target of a task: what tables in memory and tables on a cluster have in common."""

    @property
    def name(self) -> str: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def kind(self) -> Any: ...
    @property
    def target(self) -> str: ...
    @property
    def id_column(self) -> str | None: ...
    @property
    def y(self) -> Any: ...


@dataclass(frozen=True)
class HeldOutRows:
    """Indices of the training rows and of the test rows."""

    train: np.ndarray
    test: np.ndarray

    @property
    def has_test(self) -> bool:
        return len(self.test) > 0


def held_out(task: TargetColumn, test_size: float, seed: int) -> HeldOutRows:
    """Hold out a share of the rows, stratified by class; 0 holds out none."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    rows, alone = np.arange(task.n_rows), np.arange(0)
    if not test_size:
        return HeldOutRows(rows, np.arange(0, dtype=np.int64))
    by_class = None
    if task.kind == "classification":
        codes, counts = np.unique(task.y, return_inverse=True, return_counts=True)[1:]
        alone = rows[counts[codes] == 1]  # a class of one row goes to the training rows
        rows = rows[counts[codes] > 1]
        by_class = codes[rows]
    share = f"A test set of {test_size:.0%}"
    try:
        train, test = train_test_split(
            rows, test_size=test_size, random_state=seed, stratify=by_class
        )
    except ValueError as error:
        raise InvalidRequestError(
            f"{share} cannot be taken from {task.n_rows} rows: {error}"
        ) from None
    if len(test) < _MIN_TEST_ROWS:
        what = f"{share} of {task.n_rows} rows is one row, which is too few for a test."
        raise InvalidRequestError(
            f"{what} Use a larger test_size, or give more rows.",
            f"{what} Use a larger --test-size, or give more rows.",
        )
    return HeldOutRows(np.concatenate([train, alone]), test)


def usable_folds(task: TargetColumn, folds: int, observer: Observer) -> int:
    """The number of folds, or fewer if no two classes have a row for each fold."""
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
            f"The class {str(rare)!r} of {task.target!r} has one row only, so it cannot be in both "
            "the training and the test rows."
        )
        raise InvalidRequestError(
            f"{what} Drop it or choose another target.",
            f"{what} Drop it or choose another target with --target.",
        )
    if most < folds:
        observer.note(
            f"Only {most} folds instead of {folds}: all classes except one have few rows."
        )
    n_rare = int((counts < min(folds, most)).sum())
    if n_rare:
        observer.note(
            f"{n_rare} of {len(classes)} classes have fewer rows than there are folds, such as "
            f"{str(rare)!r} with {counts.min()}: some folds have no rows of them."
        )
    return min(folds, most)


def tuning_folds(task: TargetColumn, train: Any) -> int:
    """Five folds, or as many as the smallest class has training rows; below 2 means none."""
    import numpy as np

    if task.kind == "regression":
        return min(_FOLDS, len(task.y[train]) // 2)
    return min(_FOLDS, int(np.unique(task.y[train], return_counts=True)[1].min()))
