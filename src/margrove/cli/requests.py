"""What a user asked for, and the files that belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from margrove.cli.screen import Screen
    from margrove.tables import Task

__all__ = ["EXAMPLE", "TableRequest", "check_output"]

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
        """For titles and for files that are named after it."""
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
        """The table as it is in the file, a `RawTable`.

        `types` are those that a model learnt, `others` is the type of all other columns.
        """
        from margrove.tables import read_table

        if self.file is None:
            return built_in(self.data or EXAMPLE)
        source = str(self.file) if str(self.file) == "-" else self.file
        given = dict.fromkeys(self.ignore, "ignored") | (types or {}) | self.types
        table = read_table(source, types=given, others=others)
        for remark in table.notes:
            screen.note(f"{table.name}: {remark}")
        return table

    def read(self, screen: Screen) -> Task:
        """The table as something to learn from."""
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


def built_in(name: str) -> Any:
    """One of `margrove.datasets.DATASETS`, as if it had been read from a file."""
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError(
            "Tables on the command line need polars: pip install 'margrove[workbench]'."
        ) from error
    from margrove.datasets import DATASETS
    from margrove.tables import RawTable

    if name not in DATASETS:
        raise click.UsageError(
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


def check_output(path: Path, *, force: bool, inputs: tuple[Path | None, ...] = ()) -> None:
    """Refuse before any work is done what could not be written at its end."""
    if path.is_dir():
        raise click.UsageError(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise click.UsageError(f"There is no folder {path.parent}. Make it first.")
    if any(given is not None and _is_same(given, path) for given in inputs):
        raise click.UsageError(f"{path} is what is read from. Name another file to write to.")
    if path.exists() and not force:
        raise click.UsageError(f"{path} is there already. Use --force to replace it.")


def _is_same(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)
