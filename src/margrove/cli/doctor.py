"""margrove doctor"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

if TYPE_CHECKING:
    from margrove.health.doctor import Diagnosis

__all__ = ["command"]

_COLOURS = {"critical": "red", "warning": "yellow", "notice": "cyan"}


@click.command("doctor")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--data", help="Built-in data set, when there is no FILE. [default: breast_cancer]")
@click.option("--target", help="Name of the target column. [default: the last one]")
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="What to learn. [default: by what the target holds]",
)
@click.option("--folds", default=5, type=click.IntRange(2, 100), show_default=True)
@click.option(
    "--estimate/--no-estimate",
    default=True,
    show_default=True,
    help="Whether to probe what a fit would take.",
)
@click.option(
    "--probe-seconds",
    default=5.0,
    type=click.FloatRange(min=0, max=3600, min_open=True),
    show_default=True,
    help="About how long the probes may take in all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
def command(
    file: Path | None,
    data: str | None,
    target: str | None,
    task: str | None,
    folds: int,
    estimate: bool,
    probe_seconds: float,
    as_json: bool,
) -> None:
    """Look a table over before learning from it: what is wrong, and what a fit will cost.

    FILE is a CSV, TSV or Parquet file; without one, a built-in data set is looked at. Findings are
    no failure: the exit code is 0 whatever they are.
    """
    from margrove.health.doctor import doctor

    if file is not None and data is not None:
        raise click.UsageError("Give either a FILE or --data, not both.")
    if file is None and target is not None:
        raise click.UsageError("--target is for a FILE; built-in data sets know their target.")
    title, X, y = _from_file(file, target) if file else _built_in(data or "breast_cancer")
    diagnosis = doctor(
        X,
        y,
        task=cast(Literal["classification", "regression"] | None, task),
        folds=folds,
        estimate=estimate,
        probe_seconds=probe_seconds,
    )
    if as_json:
        click.echo(json.dumps(diagnosis.as_dict(), indent=2))
    else:
        _show(title, diagnosis)


def _from_file(path: Path, target: str | None) -> tuple[str, Any, Any]:
    from margrove.cli.tables import _read
    from margrove.exceptions import InvalidDataError

    frame = _read(path)
    if frame.width == 0:
        raise InvalidDataError(f"{path} has no columns.")
    if target is None:
        target = str(frame.columns[-1])
    if target not in frame.columns:
        raise InvalidDataError(
            f"{path} has no column {target!r}. Its columns are {', '.join(frame.columns[:20])}."
        )
    others = frame.drop(target)
    X = others if others.width else [[]] * frame.height  # frames without columns have no rows
    return f"{path.name}, target {target!r}", X, frame[target]


def _built_in(name: str) -> tuple[str, Any, Any]:
    from margrove.datasets import DATASETS
    from margrove.exceptions import InvalidDataError

    if name not in DATASETS:
        raise InvalidDataError(
            f"There is no built-in data set {name!r}. There are {', '.join(DATASETS)}."
        )
    bunch = DATASETS[name]()
    names = bunch.get("feature_names")
    if names is None:
        return name, bunch.data, bunch.target
    return name, {str(own): bunch.data[:, j] for j, own in enumerate(names)}, bunch.target


def _show(title: str, diagnosis: Diagnosis) -> None:
    visible = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in title)
    click.secho(visible, bold=True)
    for line in str(diagnosis).split("\n"):
        click.secho(line, fg=_COLOURS.get(line.partition(" (")[0]))
