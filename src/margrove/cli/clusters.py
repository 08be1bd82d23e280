"""margrove fit --cluster: the workers of a Dask cluster read files and fit a model."""

from __future__ import annotations

import glob
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from margrove.select.learners import LEARNERS, learner_named
from margrove.workbench.workflow import (
    FittedModel,
    HeldOutRows,
    HeldOutScore,
    held_out,
    make_learner,
    provenance,
    remarks_of,
    score_predictions,
    stopped_early,
)

if TYPE_CHECKING:
    from margrove.cli.screen import Screen
    from margrove.cli.table_requests import TableRequest

__all__ = [
    "ClusterTask",
    "WorkFailed",
    "fit_on_cluster",
    "fitted_on_cluster_as_dict",
    "read_on_cluster",
    "running_cluster",
]

_FORMATS = {".parquet": "read_parquet", ".csv": "read_csv"}
_NUMBERS_ONLY = ("perceptron", "linear-svm")
_CONNECT_SECONDS = 30


class WorkFailed(click.ClickException):
    """The input was right, but the cluster failed."""

    failure_code = 1


@dataclass(frozen=True)
class ClusterTask:
    """The features and the target of a table on a cluster.

    X           a Dask dataframe of the features
    y           the targets, on this machine
    lengths     number of rows of each partition
    types       types of the columns by name: "number" or "category"
    n_left_out  number of rows without a target, which were left out
    """

    X: Any
    y: Any
    lengths: Any
    types: dict[str, str]
    name: str
    kind: Any
    target: str
    id_column: str | None
    n_left_out: int

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def some(self, rows: Any) -> tuple[Any, Any]:
        """Features and targets of some rows, in the order of the table."""
        import numpy as np

        mask = np.zeros(self.n_rows, dtype=bool)
        mask[rows] = True
        return _kept(self.X, mask, self.lengths), self.y[mask]


# -- clusters --


@contextmanager
def running_cluster(where: str, screen: Screen) -> Iterator[Any]:
    """A client of a local cluster ("local", "local:WORKERS") or of a scheduler's address."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("--cluster needs Dask: pip install 'margrove[dask]'.") from error
    from margrove.exceptions import ClusterError

    try:
        if match := re.fullmatch(r"local(?::([1-9]\d{0,3}))?", where):
            with (
                _local_cluster(int(match[1]) if match[1] else None) as cluster,
                distributed.Client(cluster) as client,
            ):
                screen.note(f"A cluster on this machine: {_size_of(client)}.")
                yield client
        elif re.fullmatch(r"(tcp|tls|ucx|ws|wss)://\S+", where):
            with _connected(where) as client:
                screen.note(f"The cluster at {where}: {_size_of(client)}.")
                yield client
        else:
            raise click.UsageError(
                "--cluster takes local, local:WORKERS (such as local:4), or the address of a "
                f"scheduler (such as tcp://10.0.0.1:8786). Got {where!r}."
            )
    except ClusterError as error:
        raise WorkFailed(str(error)) from error


def _local_cluster(n_workers: int | None) -> Any:
    import logging

    import distributed

    size = {} if n_workers is None else {"n_workers": n_workers}
    return distributed.LocalCluster(
        **size, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
    )


def _connected(address: str) -> Any:
    import distributed

    try:
        return distributed.Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise click.UsageError(
            f"There is no scheduler at {address} ({error}). `dask scheduler` starts one and prints "
            "its address."
        ) from None


def _size_of(client: Any) -> str:
    threads = client.nthreads()
    return f"{len(threads)} workers, {sum(threads.values())} threads"


# -- tables --


def read_on_cluster(request: TableRequest, screen: Screen) -> ClusterTask:
    """Read files as a Dask dataframe; only the target comes to this machine."""
    import numpy as np
    import polars as pl

    from margrove.workbench.tables import target_values

    table, name = _files(request)
    table = table.drop(columns=_known(table, request.ignore, name))
    target = request.target or [name for name in table.columns if name != request.id_column][-1]
    _known(table, [target, *([request.id_column] if request.id_column else [])], name)
    if request.types.get(target) not in (None, "number", "category"):
        raise click.UsageError(f"The target {target!r} must be a number or a category.")
    with_target = table.dropna(subset=[target])
    screen.note(f"Reading {name} on the cluster …")
    partitions = _computed_partitions(with_target[target])
    values = pl.DataFrame({target: pl.Series(np.concatenate(partitions).tolist())})
    kind, y = target_values(values, target, request.task, name)
    X = with_target.drop(columns=[column for column in (target, request.id_column) if column])
    types, X = _types(X, request.types)
    has_gaps = table.dtypes[target].kind not in "biu"
    n_all = int(table.map_partitions(len).compute().sum()) if has_gaps else len(y)
    task = ClusterTask(
        X, y, [len(values) for values in partitions], types, name, kind, target, request.id_column,
        n_all - len(y),
    )  # fmt: skip
    if task.n_left_out:
        screen.note(f"{task.n_left_out} rows without {target} were left out")
    categories = sum(type_ == "category" for type_ in types.values())
    screen.note(
        f"{task.n_rows:,} rows in {X.npartitions} partitions, {len(types)} columns, {categories} "
        f"of them categories; {kind} of {target}."
    )
    return task


def _files(request: TableRequest) -> tuple[Any, str]:
    import dask.dataframe as dd

    if request.file is None:
        raise click.UsageError("--cluster needs FILE: a Parquet or CSV file, or a pattern.")
    pattern = str(request.file)
    files = sorted(glob.glob(pattern))
    if not files:
        raise click.UsageError(f"No file matches {pattern!r}. Quote patterns: 'big/*.parquet'.")
    endings = {file[file.rfind(".") :].lower() for file in files}
    if len(endings) > 1 or not endings <= set(_FORMATS):
        raise click.UsageError(
            f"With --cluster, files are all .parquet or all .csv. Got {', '.join(sorted(endings))}."
        )
    options = {"assume_missing": True} if ".csv" in endings else {}
    table = getattr(dd, _FORMATS[endings.pop()])(files, **options)
    return table, request.name


def _known(table: Any, columns: Any, name: str) -> list[str]:
    """The columns, or an error if the table does not have one of them."""
    present = list(table.columns)
    for column in columns:
        if column not in present:
            raise click.UsageError(
                f"{name} has no column {column!r}. Its columns are {', '.join(present[:20])}"
                f"{' and more' if len(present) > 20 else ''}."
            )
    return list(columns)


def _computed_partitions(column: Any) -> list[Any]:
    import numpy as np
    from dask.base import compute

    (found,) = compute(column.to_delayed(optimize_graph=False))
    return [np.asarray(series.to_numpy(dtype=object, na_value=None)) for series in found]


def _types(X: Any, given: dict[str, str]) -> tuple[dict[str, str], Any]:
    """The type of each column, and X without ignored columns; an error names other types."""
    from pandas.api import types as kinds  # type: ignore[import-untyped]

    for column, wanted in given.items():
        if wanted in ("date", "text"):
            raise click.UsageError(
                f"--type {column}={wanted} is not for clusters: columns are numbers or categories "
                "there. Prepare dates and texts beforehand, or leave them out with --ignore."
            )
    dropped = [column for column, wanted in given.items() if wanted == "ignored"]
    X = X.drop(columns=[column for column in dropped if column in X.columns])
    found: dict[str, str] = {}
    for column, dtype in X.dtypes.items():
        if kinds.is_bool_dtype(dtype) or kinds.is_numeric_dtype(dtype):
            found[column] = given.get(column, "number")
        elif kinds.is_string_dtype(dtype) or isinstance(dtype, _categorical()):
            if given.get(column) == "number":
                raise click.UsageError(
                    f"Column {column!r} holds text, which a cluster does not turn into numbers. "
                    "Write it as numbers, or leave it out with --ignore."
                )
            found[column] = "category"
        else:
            raise click.UsageError(
                f"Column {column!r} has type {dtype}, which is neither a number nor a category. "
                f"Leave it out: --ignore {column}."
            )
    if not found:
        raise click.UsageError("There is no column left to learn from.")
    return found, X


def _categorical() -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    return pd.CategoricalDtype


def _kept(X: Any, mask: Any, lengths: Any) -> Any:
    """The rows of a Dask dataframe for which a mask is true."""
    import dask.dataframe as dd
    import numpy as np
    from dask.delayed import delayed

    masks = np.split(mask, np.cumsum(lengths)[:-1])
    partitions = X.to_delayed(optimize_graph=False)  # optimising could merge some
    kept = [delayed(_rows_of)(part, keep) for part, keep in zip(partitions, masks, strict=True)]
    return dd.from_delayed(kept, meta=X._meta, verify_meta=False)


def _rows_of(frame: Any, keep: Any) -> Any:
    return frame.loc[keep]


# -- learning --


def fit_on_cluster(
    task: ClusterTask,
    learner: str,
    screen: Screen,
    client: Any,
    *,
    parameters: dict[str, Any],
    test_size: float,
    seed: int,
    max_time: float | None,
) -> FittedModel:
    """Fit to the training rows, test with the others, fit to all rows, like `fit_learner`."""
    _require_numbers(task, learner)
    start = time.perf_counter()
    estimator = _on_cluster(learner, task, parameters, seed, max_time)
    rows = held_out(task, test_size, seed)
    tested = score = None
    with warnings.catch_warnings(record=True) as caught, screen.progress(f"Learning {learner}"):
        warnings.simplefilter("always")
        if rows.has_test:
            tested = estimator.fit(*task.some(rows.train), client=client).to_local()
            score = _score(tested, task, rows)
        final = estimator.fit(task.X, task.y, client=client).to_local()
    return FittedModel(
        final, learner, tested, rows, score, None, time.perf_counter() - start,
        stopped_early(caught), remarks_of(caught),
    )  # fmt: skip


def fitted_on_cluster_as_dict(
    fitted: FittedModel, task: ClusterTask, path: Path, seed: int
) -> dict[str, Any]:
    """The result for --json."""
    return provenance(fitted, task, seed) | {
        "file": str(path),
        "seconds": fitted.seconds,
        "columns": [{"name": name, "type": kind} for name, kind in task.types.items()],
        "partitions": len(task.lengths),
    }


def _on_cluster(
    learner: str, task: ClusterTask, parameters: dict[str, Any], seed: int, max_time: float | None
) -> Any:
    import margrove.dask

    name = learner_named(learner).estimator_name(task.kind)
    if name is not None and name not in margrove.dask.__all__:
        names = [
            other.name
            for other in LEARNERS.values()
            if other.estimator_name(task.kind) in margrove.dask.__all__
        ]
        raise click.UsageError(f"There is no {learner} on a cluster. There are {', '.join(names)}.")
    local = make_learner(learner, task.kind, seed=seed, max_time=max_time, parameters=parameters)
    settings = local.get_params(deep=False)
    labelled = _labelled(task)
    if labelled and "categorical_features" in settings.keys() - parameters.keys():
        settings["categorical_features"] = labelled
    return getattr(margrove.dask, str(name))(**settings)


def _labelled(task: ClusterTask) -> list[str]:
    return [column for column, type_ in task.types.items() if type_ == "category"]


def _require_numbers(task: ClusterTask, learner: str) -> None:
    labelled = _labelled(task)
    if learner in _NUMBERS_ONLY and labelled:
        raise click.UsageError(
            f"On a cluster, {learner} takes numbers only, and {labelled[0]!r} holds categories. "
            f"Use --learner boosting or forest, or leave it out: --ignore {labelled[0]}."
        )


def _score(model: Any, task: ClusterTask, rows: HeldOutRows) -> HeldOutScore:
    """The score on the test rows; only predictions come to this machine."""
    from margrove.dask import predict

    tested, y = task.some(rows.test)
    return score_predictions(task.kind, y, predict(model, tested).compute(), task.y[rows.train])
