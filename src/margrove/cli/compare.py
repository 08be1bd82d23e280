"""margrove compare"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from margrove.cli.tables import LoadedTable

__all__ = ["command"]


@dataclass(frozen=True)
class Result:
    """One learner's cross-validated accuracy with its 95 % interval, and seconds a fit."""

    learner: str
    accuracy: float
    low: float
    high: float
    fit_seconds: float


@click.command("compare")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--data", help="Built-in data set, when there is no FILE. [default: breast_cancer]")
@click.option("--target", help="Name of the target column. [default: the last one]")
@click.option("--folds", default=5, type=click.IntRange(2, 100), show_default=True)
@click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), show_default=True)
@click.option(
    "--max-time",
    default=5.0,
    type=click.FloatRange(min=0, min_open=True),
    show_default=True,
    help="Seconds that one fit of an iterative learner may take.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def command(
    file: Path | None,
    data: str | None,
    target: str | None,
    folds: int,
    seed: int,
    max_time: float,
    as_json: bool,
) -> None:
    """Cross-validate the learners on a table and show who wins.

    FILE is a CSV, TSV or Parquet file; without one, a built-in data set is used. Text columns
    become indicators, numbers are scaled, missing values are filled, all inside each fold.
    """
    from margrove.cli.tables import builtin_table, read_table

    if file is not None and data is not None:
        raise click.UsageError("Give either a FILE or --data, not both.")
    if file is None and target is not None:
        raise click.UsageError("--target is for a FILE; built-in data sets know their target.")
    table = read_table(file, target) if file else builtin_table(data or "breast_cancer")
    folds = _usable_folds(table, folds)
    results: list[Result] = []
    try:
        for result in _results(table, folds, seed, max_time, quiet=as_json):
            results.append(result)
    finally:  # an interrupt still shows what is known by then
        results.sort(key=lambda result: -result.accuracy)
        if as_json:
            click.echo(json.dumps([asdict(result) for result in results], indent=2))
        elif results:
            _show(table, results, folds, seed, max_time)


def _learners() -> dict[str, Callable[[], Any]]:
    from sklearn.dummy import DummyClassifier

    from margrove import SVC, KernelPerceptron, Perceptron

    return {
        "always the largest class": lambda: DummyClassifier(strategy="most_frequent"),
        "Perceptron": Perceptron,
        "Perceptron, averaged": lambda: Perceptron(average=True),
        "Perceptron, margin 1": lambda: Perceptron(margin=1.0),
        "KernelPerceptron, rbf": KernelPerceptron,
        "KernelPerceptron, poly 2": lambda: KernelPerceptron(kernel="poly", degree=2, coef0=1.0),
        "SVC, linear": lambda: SVC(kernel="linear"),
        "SVC, rbf": SVC,
    }


def _usable_folds(table: LoadedTable, folds: int) -> int:
    import numpy as np
    from sklearn.utils.multiclass import type_of_target

    n_values, n_rows = len(np.unique(table.labels)), len(table.labels)
    is_number = table.labels.dtype.kind in "if"
    too_many = is_number and n_values > max(20, n_rows / 10)
    if too_many or type_of_target(table.labels) == "continuous":
        raise ValueError(
            f"The target {table.target!r} of {table.name} is a quantity ({n_values} values in "
            f"{n_rows} rows), and the learners so far predict classes. Choose another target with "
            "--target, or store the classes as text."
        )
    classes, counts = np.unique(table.labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"The target {table.target!r} of {table.name} has one class only, {str(classes[0])!r}."
        )
    if counts.min() < 2:
        rare = classes[int(np.argmin(counts))]
        raise ValueError(
            f"The class {str(rare)!r} of {table.target!r} has one row only, so it cannot be both "
            "learnt and tested. Drop it or choose another target with --target."
        )
    if counts.min() < folds:
        rare = classes[int(np.argmin(counts))]
        click.echo(
            f"Only {counts.min()} folds instead of {folds}: the class {str(rare)!r} has no more "
            "rows.",
            err=True,
        )
    return min(folds, int(counts.min()))


def _results(
    table: LoadedTable, folds: int, seed: int, max_time: float, *, quiet: bool
) -> Iterator[Result]:
    import numpy as np
    from rich.console import Console
    from rich.progress import track
    from sklearn.model_selection import StratifiedKFold

    X = np.column_stack([table.numbers.astype(object), table.texts])
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, table.labels))
    learners = _learners()
    steps = track(
        learners.items(), "Comparing", console=Console(stderr=True), transient=True, disable=quiet
    )
    for name, make in steps:
        right, seconds = 0, []
        for train, test in splits:
            learner = make()
            if "max_time" in learner.get_params():
                learner.set_params(max_time=max_time)
            model = _with_preparation(learner, table)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a perceptron rarely converges on real data
                start = time.perf_counter()
                model.fit(X[train], table.labels[train])
                seconds.append(time.perf_counter() - start)
                right += int((model.predict(X[test]) == table.labels[test]).sum())
        low, high = _wilson_interval(right, len(X))
        yield Result(name, right / len(X), low, high, float(np.median(seconds)))


def _with_preparation(learner: Any, table: LoadedTable) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    n_numbers, n_texts = table.numbers.shape[1], table.texts.shape[1]
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    texts = OneHotEncoder(
        max_categories=100, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    prepare = ColumnTransformer(
        [
            ("numbers", numbers, list(range(n_numbers))),
            ("texts", texts, list(range(n_numbers, n_numbers + n_texts))),
        ]
    )
    return make_pipeline(prepare, learner)


def _wilson_interval(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a proportion: sensible near 0 and 1, and for small samples."""
    z = 1.959963984540054
    p = right / total
    centre = (p + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * (p * (1 - p) / total + z**2 / (4 * total**2)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def _show(
    table: LoadedTable, results: list[Result], folds: int, seed: int, max_time: float
) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    title = f"{escape(table.name)}: {table.summary}"
    caption = f"{folds}-fold cross-validation, seed {seed}, at most {max_time:g} s a fit"
    view = Table(title=title, caption=caption)
    view.add_column("learner")
    view.add_column("accuracy", justify="right")
    view.add_column("95 % interval", justify="center")
    view.add_column("seconds a fit", justify="right")
    for place, result in enumerate(results):
        view.add_row(
            result.learner,
            f"{result.accuracy:.1%}",
            f"{result.low:.1%} .. {result.high:.1%}",
            f"{result.fit_seconds:.3f}",
            style="bold" if place == 0 else None,
        )
    Console().print(view)
