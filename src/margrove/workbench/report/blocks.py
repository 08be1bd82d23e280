"""The contents of a page: sections with words, cards, tables, figures and code.

Everything is plain values. Texts are not escaped here: templates escape them. Only charts are
markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from margrove.workbench.report.markup import Markup

__all__ = [
    "Block",
    "Card",
    "Cards",
    "Cell",
    "Code",
    "Figure",
    "Figures",
    "Heading",
    "Legend",
    "Pairs",
    "Remark",
    "Remarks",
    "Section",
    "Table",
    "TreeFigure",
    "Words",
]


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str
    tone: str = ""  # "lead" for the first paragraph of a page, "faint" for remarks
    kind: str = field(default="words", init=False)


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str
    kind: str = field(default="heading", init=False)


@dataclass(frozen=True)
class Card:
    """A key figure."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Cards:
    cards: tuple[Card, ...]
    kind: str = field(default="cards", init=False)


@dataclass(frozen=True)
class Remark:
    """A remark of severity "critical", "warning", "notice" or "good"."""

    tone: str
    text: str
    way_out: str = ""
    label: str = ""  # instead of the severity


@dataclass(frozen=True)
class Remarks:
    remarks: tuple[Remark, ...]
    kind: str = field(default="remarks", init=False)


@dataclass(frozen=True)
class Cell:
    """A cell of a table. Rows are sorted by `order`; a shade from 0 to 10 colours the cell."""

    text: str = ""
    order: float | None = None
    is_number: bool = False
    chart: Markup | None = None
    shade: int | None = None
    is_strong: bool = False


@dataclass(frozen=True)
class Table:
    """Columns are (title, whether numbers); the first cell of each row is its heading.

    With `folded`, the text to click on, the table is shown on demand.
    """

    caption: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    is_sortable: bool = True
    style: str = ""
    folded: str = ""
    kind: str = field(default="table", init=False)


@dataclass(frozen=True)
class Pairs:
    """Names and values, such as parameters."""

    title: str
    pairs: tuple[tuple[str, str], ...]
    note: str = ""
    kind: str = field(default="pairs", init=False)


@dataclass(frozen=True)
class Legend:
    """The name of a colour; `mark` is "line", "dashed", "dot" or "bar"."""

    series: int
    name: str
    mark: str = "line"


@dataclass(frozen=True)
class Figure:
    """A chart with its title, caption and legend."""

    title: str
    chart: Markup
    caption: str = ""
    legend: tuple[Legend, ...] = ()
    kind: str = field(default="figure", init=False)


@dataclass(frozen=True)
class Figures:
    """Charts side by side, if the page is wide enough."""

    figures: tuple[Figure, ...]
    kind: str = field(default="figures", init=False)


@dataclass(frozen=True)
class TreeFigure:
    """A drawing of a tree; the script of the page finds its nodes under `key`."""

    key: str
    title: str
    chart: Markup
    width: float
    caption: str
    nodes: tuple[dict[str, Any], ...]
    kind: str = field(default="tree", init=False)


@dataclass(frozen=True)
class Code:
    """Text to copy."""

    label: str
    text: str
    kind: str = field(default="code", init=False)


Block = Words | Heading | Cards | Pairs | Remarks | Table | Figure | Figures | TreeFigure | Code


@dataclass(frozen=True)
class Section:
    """A section of a page; `name` is the target of links."""

    name: str
    title: str
    blocks: Sequence[Block]
    short_title: str = ""  # for the table of contents
