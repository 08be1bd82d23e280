"""A summary of the columns of a table: type, missing cells, values, and a small histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import CodedTable, code_table
from margrove.workbench.doctor import figures_of
from margrove.workbench.report.charts import spark_bars
from margrove.workbench.report.markup import Markup
from margrove.workbench.report.texts import count, number, percent, visible
from margrove.workbench.tables.read import are_texts

__all__ = ["ColumnProfile", "TableProfile", "table_profile"]

_MAX_COLUMNS = 60  # in the table of a report
_BINS = 14
_MAX_BARS = 10  # labels with a bar
_TYPES = {
    "number": "number",
    "label": "category",
    "date": "date",
    "mixed": "mixed",
    "unusable": "not usable",
}


@dataclass(frozen=True)
class ColumnProfile:
    """One column; `values` describes its values in words."""

    name: str
    type: str
    n_missing: int
    n_distinct: int
    values: str
    chart: Markup


@dataclass(frozen=True)
class TableProfile:
    """The size of a table, and its first columns."""

    n_rows: int
    n_columns: int
    n_missing: int
    counts_of_types: dict[str, int]
    columns: tuple[ColumnProfile, ...]


def table_profile(X: Any) -> TableProfile:
    """Read any table and summarise its columns."""
    table = code_table(X)
    figures = figures_of(table)
    types = [_type(table, j) for j in range(table.n_columns)]
    shown = [_column(table, figures, j) for j in range(min(table.n_columns, _MAX_COLUMNS))]
    return TableProfile(
        n_rows=table.n_rows,
        n_columns=table.n_columns,
        n_missing=int(figures.missing.sum()),
        counts_of_types={type_: types.count(type_) for type_ in dict.fromkeys(types)},
        columns=tuple(shown),
    )


def _column(table: CodedTable, figures: Any, j: int) -> ColumnProfile:
    values = table.column(j)
    finite = values[np.isfinite(values)]
    name = table.names[j]
    name = f"x{name}" if isinstance(name, int) else name
    label = f"Distribution of {visible(name)}"
    if j in table.labels:
        words, chart = _labels(table.labels[j], finite, label)
    elif len(finite) and table.kinds[j] != "unusable":
        words, chart = _numbers(finite, label, is_date=table.kinds[j] == "date")
        if figures.infinite[j]:
            words += f"; {count(figures.infinite[j])} infinite"
    else:
        words, chart = table.notes.get(j, "no values"), Markup("")
    return ColumnProfile(
        name=name,
        type=_type(table, j),
        n_missing=int(figures.missing[j]),
        n_distinct=int(figures.distinct[j]),
        values=words,
        chart=chart,
    )


def _type(table: CodedTable, j: int) -> str:
    labels = [str(label) for label in table.labels.get(j, ())]
    n_cells = int(np.isfinite(table.column(j)).sum()) if labels else 0
    return "text" if are_texts(labels, len(labels), n_cells) else _TYPES[table.kinds[j]]


def _labels(labels: tuple[Any, ...], codes: np.ndarray, label: str) -> tuple[str, Markup]:
    counts = np.bincount(codes.astype(np.int64), minlength=len(labels))
    order = np.argsort(-counts, kind="stable")[:_MAX_BARS]
    total = max(int(counts.sum()), 1)
    words = [f"{visible(labels[k], 24)} {percent(counts[k] / total, 0)}" for k in order[:3]]
    rest = len(labels) - len(words)
    titles = [f"{visible(labels[k])}: {count(counts[k])}" for k in order]
    text = ", ".join(words) + (f", {count(rest)} more" if rest > 0 else "")
    return text, spark_bars(counts[order], titles, label)


def _numbers(values: np.ndarray, label: str, *, is_date: bool) -> tuple[str, Markup]:
    low, high = float(values.min()), float(values.max())
    share = np.linspace(0.0, 1.0, _BINS + 1 if low < high else 2)
    edges = (1.0 - share) * low + share * high  # high - low can overflow
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(places, minlength=len(edges) - 1)
    if is_date:
        titles = [count(n) for n in counts]
        return "dates", spark_bars(counts, titles, label)
    titles = [
        f"{number(edges[k])} to {number(edges[k + 1])}: {count(n)}" for k, n in enumerate(counts)
    ]
    with np.errstate(over="ignore"):
        median = float(np.median(values))
    words = f"{number(low)} to {number(high)}, median {number(median)}"
    return words, spark_bars(counts, titles, label)
