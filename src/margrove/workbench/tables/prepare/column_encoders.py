"""The learnt values of a column of each type, and how they are applied to other rows.

A part has two outputs, for the two families of models:

    block         float64 (n, k), dense or CSR, for margin machines
    tree_columns  numbers with NaN, and labels, for trees

Fields are plain values (names, numbers, lists of labels and words), which model files store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import Cells, LabelCells, NumberCells, date_part
from margrove.exceptions import InvalidDataError
from margrove.workbench.tables.prepare.cell_changes import as_dates, as_labels, as_numbers
from margrove.workbench.tables.prepare.word_counts import count_words
from margrove.workbench.tables.read import shown

__all__ = [
    "CategoryPart",
    "ColumnPart",
    "DatePart",
    "NumberPart",
    "TextPart",
    "TreeColumn",
    "Unknown",
    "finite_values",
]

TreeColumn = NumberCells | LabelCells
Unknown = list[str]  # descriptions of labels that training has not seen, for one warning

_MISSING = "is missing"


@dataclass(frozen=True)
class NumberPart:
    """A column of numbers: (x - center) / scale, with `fill` for missing values."""

    name: str
    fill: float
    center: float
    scale: float
    has_indicator: bool

    def outputs(self) -> list[str]:
        return [self.name, f"{self.name} {_MISSING}"][: 1 + self.has_indicator]

    def tree_outputs(self) -> list[str]:
        return [self.name]

    def block(self, cells: Cells, unknown: Unknown) -> np.ndarray:
        values = finite_values(as_numbers(cells, _THEN_NUMBER), self.name)
        return _scaled(values, self.fill, self.center, self.scale, self.has_indicator)

    def tree_columns(self, cells: Cells, unknown: Unknown) -> Iterator[TreeColumn]:
        values = finite_values(as_numbers(cells, _THEN_NUMBER), self.name)
        yield NumberCells(self.name, values)

    def entries_a_row(self) -> float:
        return 1.0


_THEN_NUMBER = "was a number in training"
_THEN_DATE = "was a date in training"


def finite_values(cells: NumberCells, name: str) -> np.ndarray:
    """The numbers of a column, or an error that names the first infinite one."""
    infinite = np.isinf(cells.values)
    if infinite.any():
        raise InvalidDataError(
            f"Input X contains infinity or a value too large for dtype('float64'): row "
            f"{int(np.argmax(infinite))}, column {shown(name)}. Replace it by a large number, or "
            "make it missing."
        )
    return cells.values


def _scaled(
    values: np.ndarray, fill: float, center: float, scale: float, has_indicator: bool
) -> np.ndarray:
    block = np.empty((len(values), 1 + has_indicator))
    missing = np.isnan(values)
    filled = np.where(missing, fill, values)
    with np.errstate(over="ignore"):
        np.subtract(filled, center, out=block[:, 0])
        block[:, 0] /= scale
        beyond = ~np.isfinite(block[:, 0])
        if beyond.any():  # the difference of two huge numbers can overflow
            block[beyond, 0] = filled[beyond] / scale - center / scale
    if has_indicator:
        block[:, 1] = missing
    return block


@dataclass(frozen=True)
class DatePart:
    """A column of dates: each part that is not constant (year, month, ...) becomes a number.

    `day_first` is the order of dates such as 3/4/2024, None if there were none.
    """

    name: str
    parts: tuple[str, ...]
    fill: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    has_indicator: bool
    day_first: bool | None

    def outputs(self) -> list[str]:
        more = [f"{self.name} {_MISSING}"] if self.has_indicator else []
        return [*self.tree_outputs(), *more]

    def tree_outputs(self) -> list[str]:
        return [f"{self.name}.{part}" for part in self.parts]

    def block(self, cells: Cells, unknown: Unknown) -> np.ndarray:
        dates = as_dates(cells, self.day_first, _THEN_DATE)
        columns = [
            _scaled(date_part(dates.values, part), fill, center, scale, False)
            for part, fill, center, scale in zip(
                self.parts, self.fill.tolist(), self.center.tolist(), self.scale.tolist(),
                strict=True,
            )
        ]  # fmt: skip
        if self.has_indicator:
            columns.append(dates.is_missing.astype(np.float64)[:, None])
        return np.hstack(columns) if columns else np.empty((len(cells), 0))

    def tree_columns(self, cells: Cells, unknown: Unknown) -> Iterator[TreeColumn]:
        dates = as_dates(cells, self.day_first, _THEN_DATE)
        for name, part in zip(self.tree_outputs(), self.parts, strict=True):
            yield NumberCells(name, date_part(dates.values, part))

    def entries_a_row(self) -> float:
        return float(len(self.parts))


@dataclass(frozen=True)
class CategoryPart:
    """A column of labels.

    labels          the frequent labels, sorted
    other           the name for all other labels; "" if training has seen no others
    has_indicator   whether there is a column that marks missing values

    Without others, an unknown label is missing.
    """

    name: str
    labels: np.ndarray
    other: str
    has_indicator: bool

    @cached_property
    def _number(self) -> dict[str, int]:
        return {label: k for k, label in enumerate(self.labels.tolist())}

    @property
    def shown_labels(self) -> list[str]:
        return [*self.labels.tolist(), *([self.other] if self.other else [])]

    def outputs(self) -> list[str]:
        more = [f"{self.name} {_MISSING}"] if self.has_indicator else []
        return [*(f"{self.name}={label}" for label in self.shown_labels), *more]

    def tree_outputs(self) -> list[str]:
        return [self.name]

    def codes(self, cells: Cells, unknown: Unknown) -> np.ndarray:
        """int64 (n,): the index of each row's label in `shown_labels`, -1 for missing."""
        given = as_labels(cells)
        for_others = len(self.labels) if self.other else -1
        places = [self._number.get(label, for_others) for label in given.labels]
        if not self.other:
            unknown.extend(
                f"{shown(label)} in column {shown(self.name)}"
                for label, place in zip(given.labels, places, strict=True)
                if place < 0
            )
        return np.array([*places, -1], dtype=np.int64)[given.codes]

    def block(self, cells: Cells, unknown: Unknown) -> Any:
        codes = self.codes(cells, unknown)
        n_labels = len(self.shown_labels)
        width = n_labels + self.has_indicator
        if self.has_indicator:
            codes = np.where(codes < 0, n_labels, codes)
        present = codes >= 0
        ends = np.concatenate([[0], np.cumsum(present)])
        return sp.csr_array(
            (np.ones(int(ends[-1])), codes[present], ends), shape=(len(codes), width)
        )

    def tree_columns(self, cells: Cells, unknown: Unknown) -> Iterator[TreeColumn]:
        yield LabelCells(self.name, self.codes(cells, unknown), self.shown_labels)

    def entries_a_row(self) -> float:
        return 1.0


@dataclass(frozen=True)
class TextPart:
    """A column of texts: words, and a weight for each, which is larger for rare words.

    Margin machines get the count of each word times its weight, scaled to a norm of 1; trees get
    the counts.
    """

    name: str
    words: np.ndarray
    weights: np.ndarray
    words_a_row: float

    def outputs(self) -> list[str]:
        return [f"{self.name}: {word}" for word in self.words.tolist()]

    def tree_outputs(self) -> list[str]:
        return self.outputs()

    def _counts(self, cells: Cells) -> tuple[Any, np.ndarray]:
        """Word counts of each different text and of "", and the index of each row's text."""
        texts = as_labels(cells)
        counts = count_words([*texts.labels, ""], self.words.tolist())
        return counts, np.where(texts.codes < 0, len(texts.labels), texts.codes)

    def block(self, cells: Cells, unknown: Unknown) -> Any:
        counts, rows = self._counts(cells)
        counts.data *= self.weights[counts.indices]
        lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
        lengths[lengths == 0.0] = 1.0
        counts.data /= np.repeat(lengths, np.diff(counts.indptr))
        return counts[rows]

    def tree_columns(self, cells: Cells, unknown: Unknown) -> Iterator[TreeColumn]:
        counts, rows = self._counts(cells)
        dense = counts.toarray(order="F")
        for j, name in enumerate(self.outputs()):
            yield NumberCells(name, dense[rows, j])

    def entries_a_row(self) -> float:
        return self.words_a_row


ColumnPart = NumberPart | CategoryPart | DatePart | TextPart
