"""What is learnt from the cells of a column: medians, scales, labels, words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import DATE_PARTS, Cells, DateCells, LabelCells, NumberCells, date_part
from margrove.workbench.tables.prepare.cell_changes import as_labels
from margrove.workbench.tables.prepare.column_encoders import (
    CategoryPart,
    ColumnPart,
    DatePart,
    NumberPart,
    TextPart,
    finite_values,
)
from margrove.workbench.tables.prepare.column_types import TypedColumn
from margrove.workbench.tables.prepare.word_counts import common_words, count_words

__all__ = ["Settings", "learn_part"]

_MANY_ROWS = 20
_MAX_RANKED_WORDS = 20_000
_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Settings:
    """Parameters of a `TablePreparation`, with defaults filled in."""

    form: str
    max_categories: int
    max_words: int
    with_indicators: bool


def learn_part(typed: TypedColumn, y: np.ndarray | None, settings: Settings) -> ColumnPart:
    """Learn the part of a column of type number, date, text or category."""
    kind, cells = typed.column.type, typed.cells
    has_indicator = settings.with_indicators and typed.column.n_missing > 0
    if kind == "number":
        assert isinstance(cells, NumberCells)
        return _number_part(cells, has_indicator)
    if kind == "date":
        assert isinstance(cells, DateCells)
        return _date_part(cells, has_indicator)
    if kind == "text":
        return _text_part(as_labels(cells), y, settings)
    return _category_part(cells, settings.max_categories, has_indicator)


def _number_part(cells: NumberCells, has_indicator: bool) -> NumberPart:
    values = finite_values(cells, cells.name)
    return NumberPart(cells.name, *_typical(values), has_indicator)


def _typical(values: np.ndarray) -> tuple[float, float, float]:
    """The median, and the mean and spread with missing values replaced by the median."""
    missing = np.isnan(values)
    has_gaps = bool(missing.any())
    present = values[~missing] if has_gaps else values
    largest = max(float(present.max()), -float(present.min()))
    unit = largest if largest > 1e100 else 1.0  # squares of large numbers overflow
    if unit != 1.0:
        present, values = present / unit, values / unit
    fill = _median(present)
    filled = np.where(missing, fill, values) if has_gaps else values
    spread = float(filled.std())
    if not spread > 0.0 or spread * unit == 0.0:
        spread = 1.0 / unit
    return fill * unit, float(filled.mean()) * unit, min(spread * unit, _LARGEST)


def _median(values: np.ndarray) -> float:
    """The median by sorting; selection takes ten times as long if most values are equal."""
    ascending, middle = np.sort(values), len(values) // 2
    if len(values) % 2:
        return float(ascending[middle])
    return float(ascending[middle - 1] / 2.0 + ascending[middle] / 2.0)


def _date_part(cells: DateCells, has_indicator: bool) -> DatePart:
    kept, figures = [], []
    for part in DATE_PARTS:
        values = date_part(cells.values, part)
        present = values[~np.isnan(values)]
        if present.min() < present.max():
            kept.append(part)
            figures.append(_typical(values))
    fill, center, scale = np.array(figures, dtype=np.float64).reshape(-1, 3).T.copy()
    return DatePart(cells.name, tuple(kept), fill, center, scale, has_indicator, cells.day_first)


def _category_part(cells: Cells, most: int, has_indicator: bool) -> CategoryPart:
    given = as_labels(cells)
    counts = np.bincount(given.codes[given.codes >= 0], minlength=len(given.labels)).tolist()
    ranked = sorted(zip(counts, given.labels, strict=True), key=lambda pair: (-pair[0], pair[1]))
    kept = sorted(label for _, label in ranked[:most])
    other = ""
    if len(ranked) > most:
        other = "(other)"
        while other in kept:
            other = f"({other})"
    return CategoryPart(cells.name, _objects(kept), other, has_indicator)


def _objects(texts: list[str]) -> np.ndarray:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def _text_part(cells: LabelCells, y: np.ndarray | None, settings: Settings) -> TextPart:
    n_rows = np.bincount(cells.codes[cells.codes >= 0], minlength=len(cells.labels))
    at_least = 2 if len(cells) >= _MANY_ROWS else 1
    most = settings.max_words
    n_ranked = max(most, _MAX_RANKED_WORDS) if settings.form == "categories" else most
    words, n_with = common_words(cells.labels, n_rows, n_ranked, at_least)
    if len(words) > most:
        kept = _most_informative(cells, words, n_with, y, most)
        words, n_with = [words[j] for j in kept], n_with[kept]
    weights = np.log((1.0 + len(cells)) / (1.0 + n_with)) + 1.0
    return TextPart(cells.name, _objects(words), weights, float(n_with.sum()) / len(cells))


def _most_informative(
    cells: LabelCells, words: list[str], n_with: np.ndarray, y: np.ndarray | None, most: int
) -> np.ndarray:
    """Indices of the words that depend most on y; without y, of the most frequent ones."""
    scores = n_with if y is None else _dependence(cells, words, y)
    ranked = np.lexsort([np.arange(len(words)), -n_with, -scores])
    return np.sort(ranked[:most])


def _dependence(cells: LabelCells, words: list[str], y: np.ndarray) -> np.ndarray:
    """chi² of words and classes, or |correlation| of words and numbers."""
    from sklearn.feature_selection import chi2, r_regression
    from sklearn.utils.multiclass import type_of_target

    counts: Any = count_words([*cells.labels, ""], words)
    rows = counts[np.where(cells.codes < 0, len(cells.labels), cells.codes)]
    kind = type_of_target(y)
    if kind in ("binary", "multiclass"):
        scores = chi2(rows, y)[0]
    elif kind == "continuous":
        scores = np.abs(r_regression(rows, y))
    else:
        return np.zeros(len(words))
    return np.nan_to_num(np.asarray(scores), nan=0.0)
