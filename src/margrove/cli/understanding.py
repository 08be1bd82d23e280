"""How a table was understood, for people to check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from margrove.cli.screen import shown, visible

if TYPE_CHECKING:
    from margrove.cli.screen import Screen
    from margrove.tables import Task
    from margrove.workbench.doctor.doctor import Diagnosis

__all__ = ["columns_as_dicts", "diagnosis_of", "show_columns"]

_MOST_COLUMNS = 30


def show_columns(task: Task, screen: Screen) -> None:
    """The columns and what they were taken for, on standard error."""
    if screen.quiet:
        return
    from rich.console import Console
    from rich.table import Table

    view = Table(title=f"{shown(task.name)}, to predict {shown(task.target)}", box=None)
    for head in ("column", "read as", "missing", "values", "such as"):
        view.add_column(head, style="dim" if head == "such as" else None)
    for column in task.columns[:_MOST_COLUMNS]:
        examples = ", ".join(visible(example) for example in column.examples)
        view.add_row(
            shown(column.name, 40),
            shown(f"{column.type} ({column.reason})" if _is_worth(column) else column.type),
            f"{column.n_missing:,}" if column.n_missing else "",
            f"{column.n_values:,}",
            shown(examples, 40),
        )
    console = Console(stderr=True, highlight=False)
    console.print(view)
    if len(task.columns) > _MOST_COLUMNS:
        console.print(f"and {len(task.columns) - _MOST_COLUMNS} columns more", style="dim")


def _is_worth(column: Any) -> bool:
    return column.type not in ("number", "category")


def columns_as_dicts(task: Task) -> list[dict[str, Any]]:
    return [
        {"name": column.name, "type": column.type, "missing": column.n_missing}
        for column in task.columns
    ]


def diagnosis_of(task: Task) -> Diagnosis:
    """What the doctor says of all columns but texts, which are prepared word by word."""
    from margrove.workbench.doctor.doctor import doctor

    others = task.X.drop([own.name for own in task.columns if own.type == "text"])
    X = others if others.width else [[]] * len(task.y)  # frames without columns have no rows
    return doctor(X, task.y, task=task.kind, estimate=False).for_commands()
