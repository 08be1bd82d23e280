"""margrove doctor"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import click

from margrove.cli.options import shows_results, takes_table
from margrove.cli.screen import Screen, visible
from margrove.cli.table_requests import TableRequest

if TYPE_CHECKING:
    from margrove.workbench.doctor import Diagnosis

__all__ = ["command"]

_MAX_VALUES = 1000  # labels of a target; probes with more take too long
_COLOURS = {"critical": "red", "warning": "yellow", "notice": "cyan"}


@click.command("doctor")
@takes_table
@click.option("--folds", default=5, type=click.IntRange(2, 100), show_default=True)
@click.option(
    "--estimate/--no-estimate",
    default=True,
    show_default=True,
    help="Whether to estimate the time and memory of fits.",
)
@click.option(
    "--probe-seconds",
    default=5.0,
    type=click.FloatRange(min=0, max=3600, min_open=True),
    show_default=True,
    help="Approximate time limit of the estimates.",
)
@click.option(
    "--system",
    is_flag=True,
    help="Show versions, the processor, and where compiled kernels come from; no table is checked.",
)
@shows_results
def command(
    request: TableRequest,
    screen: Screen,
    folds: int,
    estimate: bool,
    probe_seconds: float,
    system: bool,
) -> None:
    """Check a table before learning from it: what is wrong, and what a fit will cost.

    FILE is a table as for `margrove compare`; without one, a built-in data set is checked.
    The exit code is 0 whatever is found.
    """
    from margrove.exceptions import InvalidDataError
    from margrove.workbench.doctor import doctor, system_facts

    if system:
        facts = system_facts()
        screen.json(facts.as_dict())
        if not screen.as_json:
            click.echo(str(facts))
        return
    raw = request.raw(screen)
    frame = raw.frame
    if frame.width == 0:
        raise InvalidDataError(f"{raw.name} has no columns.")
    left_out = {name for name in (*request.ignore, request.id_column) if name is not None}
    kept = [name for name in frame.columns if name not in left_out]
    target = (kept or frame.columns)[-1] if request.target is None else request.target
    for name in (target, *sorted(left_out)):
        if name not in frame.columns:
            raise InvalidDataError(
                f"{raw.name} has no column {name!r}. Its columns are "
                f"{', '.join(frame.columns[:20])}."
            )
    if target in left_out:
        raise InvalidDataError(f"{target!r} cannot be both the target and left out.")
    others = _without_texts(frame[kept].drop(target), screen)
    if estimate and frame[target].n_unique() > _MAX_VALUES and not frame[target].dtype.is_numeric():
        screen.note(f"No estimates: {target} has {frame[target].n_unique():,} different labels.")
        estimate = False
    X = others if others.width else [[]] * frame.height  # frames without columns have no rows
    diagnosis = doctor(
        X,
        frame[target],
        task=cast(Literal["classification", "regression"] | None, request.task),
        folds=folds,
        estimate=estimate,
        probe_seconds=probe_seconds,
    ).for_commands()
    screen.json(diagnosis.as_dict())
    if not screen.as_json:
        _show(f"{raw.name}, target {target!r}", diagnosis)


def _without_texts(frame: Any, screen: Screen) -> Any:
    """The table without columns of text, which the doctor does not check."""
    from margrove.tables import describe_columns

    if not frame.width:
        return frame
    texts = [column.name for column in describe_columns(frame) if column.type == "text"]
    if texts:
        screen.note(f"Columns of text are not checked: {', '.join(texts)}.")
    return frame.drop(texts)


def _show(title: str, diagnosis: Diagnosis) -> None:
    click.secho(visible(title), bold=True)
    for line in str(diagnosis).split("\n"):
        click.secho(line, fg=_COLOURS.get(line.partition(" (")[0]))
