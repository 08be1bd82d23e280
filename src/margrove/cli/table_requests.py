"""The table that a user names, and how to read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrove.cli.screen import Screen
    from margrove.tables import Task

__all__ = ["EXAMPLE", "TableRequest"]

EXAMPLE = "breast_cancer"


@dataclass(frozen=True)
class TableRequest:
    """A file or a built-in data set, and how to read it."""

    file: Path | None = None
    data: str | None = None
    target: str | None = None
    task: str | None = None
    id_column: str | None = None
    ignore: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)

    @property
    def is_given(self) -> bool:
        return self.file is not None or self.data is not None

    @property
    def name(self) -> str:
        """The name for titles, and for output files that are named after the table."""
        if self.file is None:
            return self.data or EXAMPLE
        return "stdin" if str(self.file) == "-" else self.file.name

    @property
    def stem(self) -> str:
        return self.name.split(".")[0] or "table"

    def raw(
        self,
        screen: Screen,
        types: dict[str, str] | None = None,
        others: str | None = None,
    ) -> Any:
        """The table of the file or built-in set, a `RawTable`.

        `types` are the types of a fitted model, `others` is the type of all other columns.
        """
        from margrove.tables import read_table
        from margrove.workbench.workflow import built_in_table

        if self.file is None:
            return built_in_table(self.data or EXAMPLE)
        source = str(self.file) if str(self.file) == "-" else self.file
        given = dict.fromkeys(self.ignore, "ignored") | (types or {}) | self.types
        table = read_table(source, types=given, others=others)
        for remark in table.notes:
            screen.note(f"{table.name}: {remark}")
        return table

    def read(self, screen: Screen) -> Task:
        """The features and the target of the table."""
        from margrove.tables import task_of_table

        task = task_of_table(
            self.raw(screen),
            self.target,
            task=self.task,
            types=self.types,
            ignore=self.ignore,
            id_column=self.id_column,
        )
        for remark in task.notes:
            screen.note(remark)
        return task
