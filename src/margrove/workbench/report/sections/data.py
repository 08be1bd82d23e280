"""The data: columns, the target, and the findings of the doctor."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.workbench.report import charts
from margrove.workbench.report.blocks import (
    Block,
    Cell,
    Figure,
    Heading,
    Remark,
    Remarks,
    Section,
    Table,
    Words,
)
from margrove.workbench.report.profile import TableProfile
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import (
    count,
    counted,
    duration,
    listed,
    number,
    percent,
    visible,
)

__all__ = ["data_section", "findings_blocks"]

_MAX_CLASSES = 20  # with a bar
_BINS = 30


def data_section(
    subject: Subject, profile: TableProfile, diagnosis: Any, has_times: bool = False
) -> Section:
    """The section about the data; `has_times`: the leaderboard has measured times of fits."""
    types = [f"{count(n)} of type {name}" for name, n in profile.counts_of_types.items()]
    cells = max(profile.n_rows * profile.n_columns, 1)
    gaps = (
        f"{percent(profile.n_missing / cells)} of the cells are empty."
        if profile.n_missing
        else "No cell is empty."
    )
    start = "The table has" if subject.is_of_other_rows else "The model was trained on"
    blocks: list[Block] = [
        Words(
            f"{start} {counted(profile.n_rows, 'row')} of "
            f"{counted(profile.n_columns, 'column')}: {listed(types)}. {gaps}"
        )
    ]
    if subject.y is not None:
        blocks += _target_blocks(subject)
    blocks += findings_blocks(diagnosis)
    blocks.append(_column_table(profile))
    if diagnosis is not None and not has_times:
        blocks += _estimate_blocks(diagnosis)
    return Section("data", "Data", blocks)


def _column_table(profile: TableProfile) -> Table:
    rows = tuple(
        (
            Cell(visible(column.name)),
            Cell(column.type),
            Cell(
                percent(column.n_missing / max(profile.n_rows, 1)) if column.n_missing else "none",
                column.n_missing,
                is_number=True,
            ),
            Cell(count(column.n_distinct), column.n_distinct, is_number=True),
            Cell(column.values),
            Cell(chart=column.chart),
        )
        for column in profile.columns
    )
    left_out = profile.n_columns - len(rows)
    note = (
        f"The first {count(len(rows))} of {counted(profile.n_columns, 'column')} are shown; "
        f"{count(left_out)} are left out."
        if left_out
        else ""
    )
    titles = (("column", False), ("type", False), ("missing", True), ("distinct", True),
              ("values", False), ("distribution", False))  # fmt: skip
    return Table("Columns of the training rows", titles, rows, note, style="columns")


def _target_blocks(subject: Subject) -> list[Block]:
    name = f"“{visible(subject.target)}”" if subject.target else "the target"
    targets = np.asarray(subject.y)
    if targets.ndim > 1 and targets.shape[1] > 1:
        return [Words(f"There are {count(targets.shape[1])} targets.")]
    if subject.task == "classification":
        labels, counts = np.unique([str(label) for label in targets.ravel().tolist()],
                                   return_counts=True)  # fmt: skip
        order = np.argsort(-counts, kind="stable")
        shown = order[:_MAX_CLASSES]
        left_out = len(order) - len(shown)
        caption = (
            f"The {len(shown)} largest of {counted(len(order), 'class')} are shown."
            if (left_out)
            else ""
        )
        chart = charts.ranked_bars(
            [str(labels[k]) for k in shown],
            counts[shown],
            title="rows",
            label="Rows of each class",
        )
        return [Figure(f"Classes of {name}", chart, caption)]
    if subject.task != "regression":
        return []
    numbers = targets.astype(np.float64).ravel()
    counts, edges = np.histogram(numbers, _BINS)
    chart = charts.histogram(
        edges, counts, x_title=visible(subject.target, 30) if subject.target else "target",
        label="Distribution of the target",
    )  # fmt: skip
    caption = (
        f"From {number(numbers.min())} to {number(numbers.max())}, mean {number(numbers.mean())}, "
        f"standard deviation {number(numbers.std())}."
    )
    return [Figure(f"Distribution of {name}", chart, caption)]


def findings_blocks(diagnosis: Any) -> list[Block]:
    """The findings of the doctor, the most severe first."""
    if diagnosis is None:
        return []
    blocks: list[Block] = [Heading("What the doctor found")]
    if diagnosis.findings:
        blocks.append(
            Remarks(
                tuple(
                    Remark(
                        finding.severity,
                        visible(finding.message, 600),
                        visible(finding.way_out, 600),
                    )
                    for finding in diagnosis.findings[:40]
                )
            )
        )
        if len(diagnosis.findings) > 40:
            blocks.append(
                Words(f"{count(len(diagnosis.findings) - 40)} more are left out.", "faint")
            )
    else:
        blocks.append(Remarks((Remark("good", "No problems were found."),)))
    blocks += [Words(visible(note, 600), "faint") for note in diagnosis.notes[:10]]
    return blocks


def _estimate_blocks(diagnosis: Any) -> list[Block]:
    if not diagnosis.estimates:
        return []
    rows = tuple(
        (
            Cell(visible(cost.estimator)),
            Cell(duration(cost.seconds), cost.seconds, is_number=True),
            Cell(f"{duration(cost.seconds_low)} to {duration(cost.seconds_high)}"),
        )
        for cost in diagnosis.estimates[:30]
    )
    titles = (("estimator", False), ("time", True), ("probably within", False))
    return [Table("Expected times of fits to all rows", titles, rows)]
