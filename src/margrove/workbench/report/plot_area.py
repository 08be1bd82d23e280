"""Charts with two axes as SVG.

Colours are classes (`c0`, `c1`, ...) of the style sheet, so that charts follow the theme of the
page. Marks have a title with their value, for tooltips and for screen readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove.workbench.report.markup import Markup, joined, tag
from margrove.workbench.report.scales import Scale, scale_of
from margrove.workbench.report.texts import number, percent

__all__ = ["HEIGHT", "N_SERIES", "WIDTH", "PlotArea", "series_class"]

WIDTH, HEIGHT = 440.0, 270.0
N_SERIES = 7  # colours of the palette
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 20.0, 10.0, 44.0
_TITLE, _LETTER = 26.0, 6.6  # widths of the title of the vertical axis, and of a letter
_NEAR = 0.6  # nearer points of a line cannot be distinguished
_MAX_HITS = 60  # points of a line with a tooltip


def series_class(code: int) -> str:
    """The CSS class of a colour."""
    return f"c{code % N_SERIES}"


class PlotArea:
    """Axes with titles, and lines, bands, dots and bars on them."""

    def __init__(
        self,
        x: dict[str, Any],
        y: dict[str, Any],
        *,
        x_title: str,
        y_title: str,
        label: str,
        width: float = WIDTH,
        height: float = HEIGHT,
        left: float = _LEFT,
    ) -> None:
        """x and y are arguments of `scale_of`; `label` describes the chart for screen readers."""
        self.width, self.height = width, height
        self.y: Scale = scale_of(start=height - _BOTTOM, end=_TOP, **y)
        longest = max(len(text) for _, text in self.y.ticks())
        self.left = max(left, _TITLE + _LETTER * longest)
        self.x: Scale = scale_of(start=self.left, end=width - _RIGHT, **x)
        self.x_title, self.y_title, self.label = x_title, y_title, label
        self._marks: list[Markup] = []

    # -- marks --

    def line(
        self,
        xs: Any,
        ys: Any,
        series: int = 0,
        *,
        name: str = "",
        kind: str = "",
        hits: bool = True,
    ) -> None:
        """A line through points, with gaps where a value is not finite; `kind` is a CSS class."""
        points = self._points(xs, ys)
        classes = f"line {series_class(series)} {kind}".strip()
        for run in _runs(points):
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in _thinned(run))
            self._marks.append(tag("path", class_=classes, d=Markup(path)))
        if hits:
            self._hits(xs, ys, points, series, name)

    def _hits(self, xs: Any, ys: Any, points: np.ndarray, series: int, name: str) -> None:
        n = len(points)
        if not n:
            return
        for k in np.unique(np.linspace(0, n - 1, min(n, _MAX_HITS)).round().astype(int)).tolist():
            if np.isfinite(points[k]).all():
                tooltip = f"{self.x_title} {_shown(self.x, xs[k])}: {_shown(self.y, ys[k])}"
                self._dot(points[k], f"hit {series_class(series)}", 5.0, _named(name, tooltip))

    def band(self, xs: Any, low: Any, high: Any, series: int = 0) -> None:
        """The area between two lines."""
        upper, lower = self._points(xs, high), self._points(xs, low)
        is_finite = np.isfinite(upper).all(axis=1) & np.isfinite(lower).all(axis=1)
        corners = np.concatenate([upper[is_finite], lower[is_finite][::-1]])
        if len(corners):
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z"
            self._marks.append(tag("path", class_=f"band {series_class(series)}", d=Markup(path)))

    def dots(
        self,
        xs: Any,
        ys: Any,
        series: int | Sequence[int] = 0,
        *,
        titles: Sequence[str] | None = None,
        radius: float | Sequence[float] = 3.0,
        kind: str = "dot",
    ) -> None:
        """A dot for each pair of finite values."""
        for k, point in enumerate(self._points(xs, ys)):
            if np.isfinite(point).all():
                code = series if isinstance(series, int) else int(series[k])
                size = radius if isinstance(radius, float) else float(radius[k])
                tooltip = None if titles is None else titles[k]
                self._dot(point, f"{kind} {series_class(code)}", size, tooltip)

    def _dot(self, point: Any, classes: str, radius: float, title: str | None) -> None:
        tooltip = None if title is None else tag("title", title)
        self._marks.append(
            tag("circle", tooltip, class_=classes, cx=float(point[0]), cy=float(point[1]), r=radius)
        )

    def bars(
        self, edges: Any, heights: Any, series: int | Sequence[int], titles: Sequence[str]
    ) -> None:
        """Bars side by side from 0 up, between these edges."""
        floor = self.y.at(0.0)
        for k, height in enumerate(heights):
            start, end = self.x.at(float(edges[k])), self.x.at(float(edges[k + 1]))
            top = self.y.at(float(height))
            code = series if isinstance(series, int) else series[k]
            self._marks.append(
                tag("rect", tag("title", titles[k]), class_=f"bar {series_class(code)}", x=start,
                    y=top, width=max(end - start - 0.6, 0.4), height=max(floor - top, 0.0))
            )  # fmt: skip

    def spans(self, xs: Any, low: Any, high: Any, series: int = 0) -> None:
        """Vertical intervals."""
        for x, bottom, top in zip(xs, low, high, strict=True):
            if np.isfinite([x, bottom, top]).all():
                at = self.x.at(float(x))
                self._marks.append(
                    tag("line", class_=f"span {series_class(series)}", x1=at, x2=at,
                        y1=self.y.at(float(bottom)), y2=self.y.at(float(top)))
                )  # fmt: skip

    def straight(self, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
        """A line between two points, such as a diagonal; values beyond the axes are clipped."""
        (x1, y1), (x2, y2) = start, end
        self._marks.append(
            tag("line", class_=kind, x1=self.x.at(x1), y1=self.y.at(y1), x2=self.x.at(x2),
                y2=self.y.at(y2))
        )  # fmt: skip

    def upright(self, x: float, kind: str = "guide", title: str | None = None) -> None:
        """A line from top to bottom."""
        if self.x.low <= x <= self.x.high:
            tooltip = None if title is None else tag("title", title)
            at = self.x.at(x)
            self._marks.append(
                tag("line", tooltip, class_=kind, x1=at, x2=at, y1=self.y.start, y2=self.y.end)
            )

    def level(self, y: float, kind: str = "guide", title: str | None = None) -> None:
        """A line from left to right."""
        if self.y.low <= y <= self.y.high:
            tooltip = None if title is None else tag("title", title)
            at = self.y.at(y)
            self._marks.append(
                tag("line", tooltip, class_=kind, x1=self.x.start, x2=self.x.end, y1=at, y2=at)
            )

    def _points(self, xs: Any, ys: Any) -> np.ndarray:
        """Positions in the chart, (n, 2); NaN where either value is not finite."""
        xs, ys = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
        points = np.full((len(xs), 2), np.nan)
        is_finite = np.isfinite(xs) & np.isfinite(ys)
        for k in np.flatnonzero(is_finite).tolist():
            points[k] = self.x.at(float(xs[k])), self.y.at(float(ys[k]))
        return points

    # -- the chart --

    def svg(self) -> Markup:
        """The chart as an SVG element."""
        return tag(
            "svg",
            joined([*self._grid(), *self._marks, *self._titles()]),
            class_="chart",
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="img",
            aria_label=self.label,
        )

    def _grid(self) -> list[Markup]:
        parts = []
        for value, text in self.y.ticks():
            at = self.y.at(value)
            parts.append(tag("line", class_="grid", x1=self.x.start, x2=self.x.end, y1=at, y2=at))
            parts.append(
                tag("text", text, class_="tick", x=self.left - 6.0, y=at + 3.5, text_anchor="end")
            )
        floor = self.y.start
        parts.append(tag("line", class_="axis", x1=self.x.start, x2=self.x.end, y1=floor, y2=floor))
        for value, text in self.x.ticks():
            at = self.x.at(value)
            parts.append(tag("line", class_="axis", x1=at, x2=at, y1=floor, y2=floor + 4.0))
            parts.append(
                tag("text", text, class_="tick", x=at, y=floor + 17.0, text_anchor="middle")
            )
        return parts

    def _titles(self) -> list[Markup]:
        middle = 0.5 * (self.x.start + self.x.end)
        height = 0.5 * (self.y.start + self.y.end)
        return [
            tag("text", self.x_title, class_="axis-title", x=middle, y=self.height - 6.0,
                text_anchor="middle"),
            tag("text", self.y_title, class_="axis-title", text_anchor="middle",
                transform=f"translate(12 {height:.1f}) rotate(-90)"),
        ]  # fmt: skip


def _shown(scale: Scale, value: Any) -> str:
    return percent(float(value), 2) if scale.is_share else number(float(value))


def _named(name: str, tooltip: str) -> str:
    return f"{name}: {tooltip}" if name else tooltip


def _runs(points: np.ndarray) -> list[np.ndarray]:
    """The runs of finite points of a line."""
    is_finite = np.isfinite(points).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_finite.astype(np.int8), [0]])))
    return [points[start:stop] for start, stop in zip(edges[::2], edges[1::2], strict=True)]


def _thinned(points: np.ndarray) -> np.ndarray:
    """The points without those that look equal to the one before; the last one is kept."""
    kept = [0]
    for k in range(1, len(points)):
        if np.abs(points[k] - points[kept[-1]]).max() >= _NEAR:
            kept.append(k)
    if kept[-1] != len(points) - 1:
        kept.append(len(points) - 1)
    return points[kept]
