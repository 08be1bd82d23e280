"""Built-in data sets as raw tables, some rows of a task, and the doctor's diagnosis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from margrove.select import InvalidRequestError

if TYPE_CHECKING:
    from margrove.workbench.doctor import Diagnosis
    from margrove.workbench.tables import Task
    from margrove.workbench.tables.read import RawTable

__all__ = ["built_in_table", "diagnosis_of", "part_of", "sample_of"]


def built_in_table(name: str) -> RawTable:
    """One of `margrove.datasets.DATASETS` as a raw table.

    The last column, "target", contains the names of the classes if the set has names.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError(
            "Tables on the command line need polars: pip install 'margrove[workbench]'."
        ) from error
    from margrove.datasets import DATASETS
    from margrove.workbench.tables.read import RawTable

    if name not in DATASETS:
        raise InvalidRequestError(
            f"There is no built-in data set {name!r}. There are {', '.join(DATASETS)}."
        )
    bunch = DATASETS[name]()
    n_features = bunch.data.shape[1]
    names = bunch.get("feature_names")
    columns = [f"x{j}" for j in range(n_features)] if names is None else list(names)
    labels = bunch.target
    if bunch.get("target_names") is not None and labels.dtype.kind in "iu":
        labels = bunch.target_names[labels]
    values = {str(column): bunch.data[:, j] for j, column in enumerate(columns)}
    return RawTable(pl.DataFrame(values | {"target": labels}), name, ())


def part_of(task: Task, rows: Any) -> Task:
    """The same task with some of its rows, given by their indices."""
    ids = None if task.ids is None else task.ids[rows]
    return replace(task, X=task.X[rows], y=task.y[rows], ids=ids)


def sample_of(task: Task, n_rows: int, seed: int = 0) -> Task:
    """The same task with at most `n_rows` rows, drawn at random, in the order of the table."""
    import numpy as np

    if task.n_rows <= n_rows:
        return task
    rows = np.sort(np.random.default_rng(seed).permutation(task.n_rows)[:n_rows])
    return part_of(task, rows)


def diagnosis_of(task: Task) -> Diagnosis:
    """The doctor's diagnosis of all columns except texts, which are prepared word by word."""
    from margrove.workbench.doctor import doctor

    others = task.X.drop([column.name for column in task.columns if column.type == "text"])
    X = others if others.width else [[]] * len(task.y)  # frames without columns have no rows
    return doctor(X, task.y, task=task.kind, estimate=False).for_commands()
