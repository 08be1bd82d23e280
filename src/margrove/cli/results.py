"""Results of the workflow as tables and sentences, and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from margrove.cli.screen import duration, shown, visible

if TYPE_CHECKING:
    from margrove.cli.clusters import ClusterTask
    from margrove.cli.screen import Screen
    from margrove.tables import Task
    from margrove.workbench.workflow import FittedModel, TableComparison

__all__ = [
    "fitted_as_dict",
    "save_fitted",
    "show_columns",
    "show_comparison",
    "show_fitted",
]

_MAX_COLUMNS = 30


def show_columns(task: Task, screen: Screen) -> None:
    """Print the columns and their types on standard error."""
    if screen.quiet:
        return
    from rich.console import Console
    from rich.table import Table

    view = Table(title=f"{shown(task.name)}, to predict {shown(task.target)}", box=None)
    for head in ("column", "read as", "missing", "values", "such as"):
        view.add_column(head, style="dim" if head == "such as" else None)
    for column in task.columns[:_MAX_COLUMNS]:
        examples = ", ".join(visible(example) for example in column.examples)
        is_explained = column.type not in ("number", "category")
        view.add_row(
            shown(column.name, 40),
            shown(f"{column.type} ({column.reason})" if is_explained else column.type),
            f"{column.n_missing:,}" if column.n_missing else "",
            f"{column.n_values:,}",
            shown(examples, 40),
        )
    console = Console(stderr=True, highlight=False)
    console.print(view)
    if len(task.columns) > _MAX_COLUMNS:
        console.print(f"and {len(task.columns) - _MAX_COLUMNS} more columns", style="dim")


def show_comparison(found: TableComparison, screen: Screen) -> None:
    """Print the table of learners and its meaning."""
    from margrove.workbench.report import meaning_of_intervals
    from margrove.workbench.workflow import percent_or_number

    comparison = found.comparison
    is_share = comparison.in_points
    rows = [
        (
            f"{model.name} *" if model.stopped_early else model.name,
            percent_or_number(model.score, is_share=is_share),
            " .. ".join(
                percent_or_number(bound, is_share=is_share)
                for bound in (model.interval.low, model.interval.high)
            ),
            duration(model.fit_seconds),
            duration(model.predict_seconds),
        )
        for model in comparison.models
    ]
    percent = f"{comparison.confidence_level:.0%} interval"
    screen.table(
        f"{found.task.name}: {found.task.summary}",
        ("learner", comparison.scoring, percent, "fit time", "predict time"),
        rows,
        caption=f"{found.method}{'; * stopped early' if found.stopped_early else ''}",
        best=0,
    )
    for failure in comparison.failed:
        screen.say(f"{failure}.")
    screen.say(comparison.sentence)
    screen.note(meaning_of_intervals(comparison))
    for remark in found.remarks:
        screen.note(remark)


def show_fitted(fitted: FittedModel, path: Path | None, screen: Screen, seed: int) -> None:
    """Print the tuning, the score and the file of a model."""
    for remark in fitted.remarks:
        screen.note(remark)
    if fitted.tuning is not None:
        for sentence in fitted.tuning.explanation:
            screen.say(sentence)
    if fitted.score is not None:
        screen.say(fitted.score.sentence)
    where = "not saved (see --output)" if path is None else f"written to {path}"
    screen.say(
        f"{fitted.learner} after {duration(fitted.seconds)}, seed {seed}: {where}.", style="bold"
    )
    if path is not None:
        screen.note(f"Next: margrove predict {path} NEW_FILE, or margrove explain {path}")


def save_fitted(fitted: FittedModel, task: Task | ClusterTask, path: Path, seed: int) -> None:
    """Write the model and its origin to a file."""
    from margrove.exchange.model_file import save
    from margrove.workbench.workflow import provenance

    save(fitted.model, path, about=provenance(fitted, task, seed))


def fitted_as_dict(fitted: FittedModel, task: Task, path: Path | None, seed: int) -> dict[str, Any]:
    """The result for --json."""
    from margrove.workbench.workflow import provenance

    tuning = fitted.tuning
    return provenance(fitted, task, seed) | {
        "file": None if path is None else str(path),
        "seconds": fitted.seconds,
        "stopped_early": fitted.stopped_early,
        "columns": [
            {"name": column.name, "type": column.type, "missing": column.n_missing}
            for column in task.columns
        ],
        "tuned": None if tuning is None else {k: repr(v) for k, v in tuning.parameters.items()},
    }
