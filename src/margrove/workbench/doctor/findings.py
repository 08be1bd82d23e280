"""Finding: one problem that the doctor found; KINDS, the list of all kinds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from margrove._data import ColumnName

__all__ = [
    "KINDS",
    "SEVERITIES",
    "Finding",
    "Severity",
    "as_options",
    "by_severity",
    "named",
    "share",
]

Severity = Literal["critical", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "notice")

KINDS: dict[str, str] = {
    # the table
    "no_data": "No rows, or no columns.",
    "few_rows": "Too few rows for the number of columns.",
    "preparation_fails": "The steps before the estimator raise an error.",
    "duplicated_names": "Columns of the same name.",
    # columns
    "empty_column": "A column without any value.",
    "constant_column": "A column with one value only.",
    "nearly_constant_column": "A column with the same value in nearly all rows.",
    "duplicated_columns": "Columns that are equal, value by value.",
    "equivalent_columns": "Columns that are equal up to units, sign or the names of labels.",
    "id_column": "A column that numbers or names the rows.",
    "unscaled_columns": "Columns of very different spread.",
    "missing_values": "Cells without a value.",
    "telling_gaps": "Whether a value is missing depends on the target.",
    "infinite_values": "Cells that are infinite.",
    "huge_values": "Numbers too large to compute with exactly.",
    "text_columns": "Labels, for an estimator that takes numbers.",
    "many_categories": "A column of very many labels.",
    "rare_categories": "A column with many labels that occur in a few rows only.",
    "similar_categories": "Labels that differ only in case or spaces.",
    "gaps_as_text": "Labels that mean a missing value.",
    "numbers_as_text": "Numbers that are stored as text.",
    "dates": "Dates, which are not numbers.",
    "mixed_types": "A column that mixes text with something else.",
    "unusable_column": "A column of lists or other objects.",
    # rows
    "duplicated_rows": "Rows that occur several times with the same target.",
    "contradicting_rows": "Equal rows with different targets.",
    "empty_rows": "Rows without any value.",
    # the target
    "leak": "A column that determines the target.",
    "missing_targets": "Rows without a target.",
    "unusable_target": "A target that no estimator accepts.",
    "single_class": "A target of one class only.",
    "constant_target": "A target that is the same number in all rows.",
    "imbalanced_classes": "A class with far fewer rows than another, or with most of the rows.",
    "small_classes": "Classes with fewer rows than there are folds.",
    "many_classes": "Classes with a few rows each.",
    "heavy_tails": "A few rows have most of the variance of the target.",
    "few_target_values": "Target numbers that look like classes.",
}


@dataclass(frozen=True)
class Finding:
    """One problem that the doctor found.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    severity : {"critical", "warning", "notice"}
        "critical" stops a fit or makes its result meaningless, "warning" probably harms it,
        "notice" is good to know.
    message : str
        The problem, in a sentence with numbers.
    way_out : str
        What to do about it, in Python.
    columns : tuple
        The affected columns, by name or, without names, by number.
    rows : tuple of int
        Some of the affected rows, at most a hundred.
    command_way_out : str
        What to do with the commands of margrove, if that is different.
    is_prepared : bool
        Whether the commands and `margrove.table_model` solve it automatically, so that for them it
        is a notice.
    """

    kind: str
    severity: Severity
    message: str
    way_out: str
    columns: tuple[ColumnName, ...] = ()
    rows: tuple[int, ...] = ()
    command_way_out: str = ""
    is_prepared: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"There is no finding of kind {self.kind!r}. See KINDS.")
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity={self.severity!r} is not one of {', '.join(SEVERITIES)}.")

    def as_dict(self) -> dict[str, Any]:
        """The problem and the way out as values that JSON can hold."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "way_out": self.way_out,
            "columns": list(self.columns),
            "rows": list(self.rows),
        }

    def for_commands(self) -> Finding:
        """The same for users of the command line."""
        return replace(
            self,
            severity="notice" if self.is_prepared else self.severity,
            way_out=self.command_way_out or self.way_out,
        )

    def __str__(self) -> str:
        return f"{self.severity}: {self.message} {self.way_out}"


def by_severity(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sorted, the most severe first; findings of equal severity keep their order."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


_SHOWN = 3
_LONGEST_NAME = 40


def named(columns: Sequence[ColumnName], *, shown: int = _SHOWN) -> str:
    """Columns for a sentence: Column 'age', or Columns 1, 2, 5 and 4 others."""
    texts = [_visible(name) for name in columns[:shown]]
    rest = len(columns) - len(texts)
    if rest:
        tail = f" and {rest:,} other{'s' if rest > 1 else ''}"
        return f"Columns {', '.join(texts)}{tail}"
    if len(texts) == 1:
        return f"Column {texts[0]}"
    return f"Columns {', '.join(texts[:-1])} and {texts[-1]}"


def _visible(name: ColumnName) -> str:
    """A name in quotes, with unprintable characters escaped; a number as it is."""
    if isinstance(name, int):
        return str(name)
    return repr(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")


def verb(columns: object, one: str, many: str) -> str:
    """`one` for a single column, else `many`."""
    return one if len(columns) == 1 else many  # type: ignore[arg-type]


def as_options(option: str, columns: Sequence[ColumnName], value: str = "") -> str:
    """Columns as options of a command, to be copied; a placeholder if a name is long or odd.

    Examples
    --------
    >>> from margrove.workbench.doctor.findings import as_options
    >>> as_options("--ignore", ["age", "last name"]), as_options("--type", ["zip"], "=category")
    ("--ignore age --ignore 'last name'", '--type zip=category')
    """
    names = [str(name) for name in columns[:_SHOWN]]
    if any(len(name) > _LONGEST_NAME or not name.isprintable() for name in names):
        return f"{option} COLUMN{value}"
    more = " ..." if len(columns) > len(names) else ""
    return " ".join(f"{option} {shlex.quote(name + value)}" for name in names) + more


def share(count: float, total: float) -> str:
    """A percentage, with enough digits to differ from 0 % and 100 % unless it is one of them."""
    ratio = count / total if total else 0.0
    for digits in (0, 1, 2, 3):
        text = f"{100 * ratio:.{digits}f}"
        if ratio in (0.0, 1.0) or float(text) not in (0.0, 100.0):
            return f"{text} %"
    return "less than 0.001 %" if ratio < 0.5 else "more than 99.999 %"
