"""Charts of a report as SVG, from plain numbers.

ranked_bars      names with bars, and intervals if there are any
interval_rows    names with a dot and an interval, and small dots for the folds
histogram        counts between edges
heat_map         a number for each pair of values of two axes
class_map        a confusion matrix of many classes, as a small file
spark_bars       a histogram of the size of a word
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove.workbench.report.markup import Markup, joined, tag
from margrove.workbench.report.plot_area import WIDTH, PlotArea, series_class
from margrove.workbench.report.scales import scale_of
from margrove.workbench.report.texts import count, number, visible

__all__ = [
    "class_map",
    "heat_map",
    "histogram",
    "interval_rows",
    "ranked_bars",
    "spark_bars",
]

_ROW, _AXIS = 22.0, 40.0  # heights
_LETTER = 6.5  # width
_MAX_NAME = 24
_SHADES = 10  # of the cells of a map


def ranked_bars(
    names: Sequence[str],
    values: Any,
    *,
    low: Any = None,
    high: Any = None,
    title: str,
    label: str,
    series: int = 0,
) -> Markup:
    """A bar for each name, the first on top; bars of negative values go to the left of 0."""
    values = np.asarray(values, dtype=np.float64)
    ends = [values] if low is None else [values, low, high]
    left = _names_width(names)
    x = scale_of(np.concatenate(ends), left, WIDTH - 60.0, from_zero=True)
    floor = len(names) * _ROW + 6.0
    parts = _vertical_grid(x, floor, title)
    zero = x.at(0.0)
    for k, (name, value) in enumerate(zip(names, values.tolist(), strict=True)):
        middle = (k + 0.5) * _ROW + 4.0
        tooltip = f"{visible(name)}: {number(value)}"
        at = x.at(value) if np.isfinite(value) else zero
        end = at
        if low is not None and np.isfinite([low[k], high[k]]).all():
            tooltip += f" ({number(low[k])} to {number(high[k])})"
            end = max(at, x.at(float(high[k])))
        parts += [
            _row_name(name, left, middle),
            tag("rect", tag("title", tooltip), class_=f"bar {series_class(series)}",
                x=min(zero, at), y=middle - 6.5, width=max(abs(at - zero), 0.5), height=13.0),
        ]  # fmt: skip
        if low is not None and np.isfinite([low[k], high[k]]).all():
            parts.append(_whisker(x.at(float(low[k])), x.at(float(high[k])), middle))
        parts.append(tag("text", number(value, 3), class_="value", x=end + 6.0, y=middle + 3.5))
    return _svg(parts, floor + _AXIS, label)


def interval_rows(
    names: Sequence[str],
    values: Any,
    low: Any,
    high: Any,
    *,
    folds: Sequence[Any] = (),
    series: Sequence[int],
    title: str,
    label: str,
    guide: float | None = None,
    floor: float | None = None,
) -> Markup:
    """A row for each name: a dot with its interval, and the folds as small dots.

    If a value is below `floor`, the axis begins there, and an arrow replaces the dot.
    """
    left = _names_width(names)
    everything = np.concatenate(
        [np.asarray(part, np.float64).ravel() for part in (values, low, high, *folds)]
        + ([] if guide is None else [np.array([guide])])
    )
    bottom = -np.inf if floor is None else floor
    drawn = np.maximum(everything[np.isfinite(everything)], bottom)
    x = scale_of(drawn, left + 8.0, WIDTH - 12.0)
    height = len(names) * _ROW + 6.0
    parts = _vertical_grid(x, height, title)
    if guide is not None:
        at = x.at(guide)
        parts.append(tag("line", class_="guide", x1=at, x2=at, y1=4.0, y2=height))
    for k, name in enumerate(names):
        middle = (k + 0.5) * _ROW + 4.0
        parts.append(_row_name(name, left, middle))
        for score in np.asarray(folds[k], np.float64).tolist() if len(folds) else ():
            if np.isfinite(score) and score >= bottom:
                tooltip = tag("title", f"{visible(name)}, a fold: {number(score)}")
                parts.append(
                    tag("circle", tooltip, class_="fold", cx=x.at(score), cy=middle, r=2.2)
                )
        if np.isfinite([low[k], high[k]]).all() and high[k] >= bottom:
            ends = x.at(float(low[k])), x.at(float(high[k]))
            parts.append(
                tag("line", class_=f"span {series_class(series[k])}", x1=ends[0], x2=ends[1],
                    y1=middle, y2=middle)
            )  # fmt: skip
        if np.isfinite(values[k]):
            tooltip = tag(
                "title",
                f"{visible(name)}: {number(values[k])} ({number(low[k])} to {number(high[k])})",
            )
            dot = f"dot {series_class(series[k])}"
            at = x.at(float(values[k]))
            if values[k] >= bottom:
                parts.append(tag("circle", tooltip, class_=dot, cx=at, cy=middle, r=4.5))
            else:
                parts += [
                    tag("path", tooltip, class_=dot,
                        d=Markup(f"M{at:.1f} {middle:.1f}l8 -5v10z")),
                    tag("text", number(values[k], 3), class_="value", x=at + 14.0, y=middle + 3.5),
                ]  # fmt: skip
    return _svg(parts, height + _AXIS, label)


def histogram(
    edges: Any,
    counts: Any,
    *,
    x_title: str,
    y_title: str = "rows",
    label: str,
    series: int | Sequence[int] = 0,
    guides: Sequence[tuple[float, str]] = (),
) -> Markup:
    """Bars between edges; guides are vertical lines with a title."""
    edges, counts = np.asarray(edges, np.float64), np.asarray(counts)
    area = PlotArea(
        {"values": edges, "room": 0.01},
        {"values": counts, "from_zero": True, "is_whole": True},
        x_title=x_title,
        y_title=y_title,
        label=label,
    )
    titles = [
        f"{number(edges[k])} to {number(edges[k + 1])}: {count(counts[k])} {y_title}"
        for k in range(len(counts))
    ]
    area.bars(edges, counts, series, titles)
    for value, tooltip in guides:
        area.upright(value, title=tooltip)
    return area.svg()


def heat_map(
    columns: Sequence[str],
    rows: Sequence[str],
    values: Any,
    *,
    x_title: str,
    y_title: str,
    label: str,
    chosen: tuple[int, int] | None = None,
) -> Markup:
    """A cell for each row and column, darker for higher values; values (n_rows, n_columns).

    The first row is at the bottom, like the smallest value of an axis.
    """
    values = np.asarray(values, dtype=np.float64)
    left = max(_names_width(rows), 40.0) + 14.0
    width = (WIDTH - left - 10.0) / len(columns)
    height = min(max(200.0 / len(rows), 14.0), 30.0)
    floor = height * len(rows) + 8.0
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    parts = []
    for i, row in enumerate(rows):
        y = floor - (i + 1) * height
        if i % max(1, -(-len(rows) // 12)) == 0:
            parts.append(
                tag("text", row, class_="tick", x=left - 6.0, y=y + 0.5 * height + 3.5,
                    text_anchor="end")
            )  # fmt: skip
        for j, column in enumerate(columns):
            value = float(values[i, j])
            tooltip = f"{x_title} {visible(column)}, {y_title} {visible(row)}: {number(value)}"
            parts.append(
                tag("rect", tag("title", tooltip), class_="heat", x=left + j * width, y=y,
                    width=width - 0.8, height=height - 0.8,
                    fill_opacity=_opacity(value, low, high))
            )  # fmt: skip
    step = max(1, -(-len(columns) // 8))
    for j in range(0, len(columns), step):
        at = left + (j + 0.5) * width
        parts.append(
            tag("text", columns[j], class_="tick", x=at, y=floor + 14.0, text_anchor="middle")
        )
    if chosen is not None:
        i, j = chosen
        parts.append(
            tag("rect", tag("title", "chosen"), class_="chosen", x=left + j * width,
                y=floor - (i + 1) * height, width=width - 0.8, height=height - 0.8)
        )  # fmt: skip
    middle = 0.5 * (left + WIDTH - 10.0)
    parts += [
        tag("text", x_title, class_="axis-title", x=middle, y=floor + 32.0, text_anchor="middle"),
        tag("text", y_title, class_="axis-title", text_anchor="middle",
            transform=f"translate(12 {0.5 * floor:.1f}) rotate(-90)"),
    ]  # fmt: skip
    return _svg(parts, floor + _AXIS, label)


def class_map(shares: Any, *, label: str) -> Markup:
    """Rows are true classes, columns are predicted classes, from the top left; shares (k, k).

    Cells of the same shade are one path, so that a map of hundreds of classes stays small.
    """
    shares = np.nan_to_num(np.asarray(shares, dtype=np.float64))
    k = len(shares)
    size = (WIDTH - 30.0) / k
    shade = np.ceil(shares * _SHADES).astype(int)
    parts = [tag("rect", class_="plate", x=26.0, y=4.0, width=size * k, height=size * k)]
    for level in range(1, _SHADES + 1):
        lines, columns = np.nonzero(shade == level)
        path = "".join(
            f"M{26.0 + j * size:.1f} {4.0 + i * size:.1f}h{size:.2f}v{size:.2f}h-{size:.2f}z"
            for i, j in zip(lines.tolist(), columns.tolist(), strict=True)
        )
        if path:
            parts.append(tag("path", class_="heat", d=Markup(path), fill_opacity=level / _SHADES))
    middle = 0.5 * size * k
    parts += [
        tag("text", "predicted class", class_="axis-title", x=26.0 + middle, y=size * k + 20.0,
            text_anchor="middle"),
        tag("text", "true class", class_="axis-title", text_anchor="middle",
            transform=f"translate(14 {middle:.1f}) rotate(-90)"),
    ]  # fmt: skip
    return _svg(parts, size * k + 28.0, label)


def spark_bars(counts: Any, titles: Sequence[str], label: str) -> Markup:
    """A histogram of the size of a word."""
    counts = np.asarray(counts, dtype=np.float64)
    width, height = 110.0, 26.0
    step = width / max(len(counts), 1)
    most = max(float(counts.max(initial=0.0)), 1.0)
    bars = []
    for k, amount in enumerate(counts.tolist()):
        tall = max(height * amount / most, 1.0 if amount else 0.0)
        bars.append(
            tag("rect", tag("title", titles[k]), class_="bar c0", x=k * step, y=height - tall,
                width=max(step - 1.0, 0.6), height=tall)
        )  # fmt: skip
    return tag(
        "svg", joined(bars), class_="spark", viewBox=f"0 0 {width:g} {height:g}", role="img",
        aria_label=label,
    )  # fmt: skip


# -- parts ---------------------------------------------------------------------------------------


def _names_width(names: Sequence[str]) -> float:
    longest = max((len(visible(name, _MAX_NAME)) for name in names), default=0)
    return 14.0 + _LETTER * longest


def _row_name(name: str, left: float, middle: float) -> Markup:
    tooltip = tag("title", visible(name)) if len(name) > _MAX_NAME else None
    text = visible(name, _MAX_NAME)
    return tag(
        "text", tooltip, text, class_="name", x=left - 6.0, y=middle + 3.5, text_anchor="end"
    )


def _whisker(start: float, end: float, middle: float) -> Markup:
    return tag("line", class_="whisker", x1=start, x2=end, y1=middle, y2=middle)


def _vertical_grid(x: Any, floor: float, title: str) -> list[Markup]:
    parts = []
    for value, text in x.ticks(5):
        at = x.at(value)
        parts.append(tag("line", class_="grid", x1=at, x2=at, y1=4.0, y2=floor))
        parts.append(tag("text", text, class_="tick", x=at, y=floor + 14.0, text_anchor="middle"))
    middle = 0.5 * (x.start + x.end)
    parts.append(
        tag("text", title, class_="axis-title", x=middle, y=floor + 32.0, text_anchor="middle")
    )
    return parts


def _opacity(value: float, low: float, high: float) -> float:
    if not np.isfinite(value):
        return 0.0
    half = 0.5 * high - 0.5 * low
    place = (0.5 * value - 0.5 * low) / half if half > 0.0 else 1.0
    return 0.06 + 0.94 * place


def _svg(parts: list[Markup], height: float, label: str) -> Markup:
    return tag(
        "svg", joined(parts), class_="chart", viewBox=f"0 0 {WIDTH:g} {height:.0f}", role="img",
        aria_label=label,
    )  # fmt: skip
