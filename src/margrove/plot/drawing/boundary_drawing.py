"""What `decision_boundary` draws: regions, lines, rows and support vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from margrove.facts import Facts
from margrove.plot.drawing.canvas import SUPPORT_MARKERS, class_style, explain_handles, tint
from margrove.plot.drawing.plane import Plane

__all__ = ["BoundaryDrawing", "RowsToDraw", "Surface"]

_COLOUR_STEPS = 12


@dataclass(frozen=True)
class RowsToDraw:
    """The classes of the rows to draw, as codes of `names`, or their targets, or neither."""

    codes: np.ndarray | None = None
    names: tuple[str, ...] = ()
    targets: np.ndarray | None = None


@dataclass(frozen=True)
class Surface:
    """Predictions of the model on the grid.

    kind    "signed": f, with its boundary at 0; "classes": codes; "values": of a regression
    x, y    the coordinates of the grid
    values  (len(y), len(x))
    names   of the regions, if there are any
    """

    kind: Literal["signed", "classes", "values"]
    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    names: tuple[str, ...] = ()

    def within(self, *levels: float) -> list[float]:
        """The levels that have contours; matplotlib would warn of the others."""
        low, high = float(self.values.min()), float(self.values.max())
        return [level for level in levels if low < level < high]


@dataclass(frozen=True)
class BoundaryDrawing:
    """Axes, and the artists that the legend explains."""

    axes: Any
    legend_entries: list[Any]

    def draw_signed(self, surface: Surface, margin_level: float | None) -> None:
        """Two regions, the boundary f = 0 between them and, dashed, the margins."""
        f = surface.values
        levels = [min(0.0, 1.1 * f.min()) - 1.0, 0.0, max(0.0, 1.1 * f.max()) + 1.0]
        colours = [tint(0), tint(1)]
        self.axes.contourf(
            surface.x, surface.y, f, levels=levels, colors=colours, zorder=0
        ).set_gid("regions")
        self._draw_lines(surface, [0.0], "boundary", "boundary, f = 0", linewidths=1.5)
        if margin_level is not None:
            label = f"margins, f = ±{margin_level:.3g}"
            levels = [-margin_level, margin_level]
            self._draw_lines(surface, levels, "margins", label, linestyles="dashed")

    def draw_classes(self, surface: Surface) -> None:
        """A region for each class and lines around them."""
        from matplotlib.colors import ListedColormap

        n_classes = len(surface.names)
        self.axes.pcolormesh(
            surface.x,
            surface.y,
            surface.values,
            cmap=ListedColormap([tint(code) for code in range(n_classes)]),
            vmin=-0.5,
            vmax=n_classes - 0.5,
            shading="nearest",
            rasterized=True,
            zorder=0,
        ).set_gid("regions")
        label: str | None = "boundaries"
        for code in np.unique(surface.values)[1:]:  # lines around all but one are all lines
            side = Surface("signed", surface.x, surface.y, (surface.values >= code) - 0.5)
            self._draw_lines(side, [0.0], "boundary", label, linewidths=1.0)
            label = None

    def draw_values(self, surface: Surface, data: RowsToDraw) -> None:
        """Filled contours of a function, with a colour bar."""
        low, high = float(surface.values.min()), float(surface.values.max())
        if data.targets is not None:
            low, high = min(low, data.targets.min()), max(high, data.targets.max())
        if not low < high:
            low, high = low - 0.5, high + 0.5
        levels = np.linspace(low, high, _COLOUR_STEPS + 1)
        filled = self.axes.contourf(
            surface.x, surface.y, surface.values, levels=levels, cmap="cividis", zorder=0
        )
        filled.set_gid("regions")
        self.axes.figure.colorbar(filled, ax=self.axes, label="prediction")

    def explain_regions(self, surface: Surface) -> None:
        """Legend entries for the regions, if there are no markers of the same colours."""
        from matplotlib.patches import Patch

        patches = [Patch(color=tint(k), label=name) for k, name in enumerate(surface.names)]
        self.legend_entries[:0] = patches

    def draw_data(self, points: np.ndarray, data: RowsToDraw) -> None:
        look: dict[str, Any] = {"s": 28, "linewidths": 0.6, "edgecolors": "white", "zorder": 3}
        if data.codes is not None:
            present = [code for code in range(len(data.names)) if (data.codes == code).any()]
            entries = []
            for code in present:
                of_class = points[data.codes == code]
                style = class_style(code)
                drawn = self.axes.scatter(*of_class.T, label=data.names[code], **style, **look)
                drawn.set_gid("data")
                entries.append(drawn)
            self.legend_entries[:0] = entries
            return
        if data.targets is not None:
            regions = next(c for c in self.axes.collections if c.get_gid() == "regions")
            look |= {"c": data.targets, "cmap": regions.get_cmap(), "norm": regions.norm}
        else:
            look |= {"color": "0.25"}
        self.axes.scatter(*points.T, **look).set_gid("data")

    def draw_support(self, positions: np.ndarray, facts: Facts) -> None:
        """Marks around the support vectors, a kind at a time."""
        kinds = [(kind.name, np.isin(facts.support, kind.rows)) for kind in facts.kinds]
        if not kinds:
            kinds = [("support vectors", np.ones(len(facts.support), dtype=bool))]
        for marker, (name, chosen) in zip(SUPPORT_MARKERS, kinds, strict=False):
            if not chosen.any():
                continue
            hollow: dict[str, Any] = {"facecolors": "none", "edgecolors": "black"}
            drawn = self.axes.scatter(
                *positions[chosen].T,
                marker=marker,
                s=110 if marker != "x" else 60,
                linewidths=1.2,
                label=f"{name} ({np.count_nonzero(chosen)})",
                zorder=4,
                **(hollow if marker != "x" else {"color": "black"}),
            )
            drawn.set_gid("support")
            self.legend_entries.append(drawn)

    def label(self, plane: Plane, ranges: list[tuple[float, float]]) -> None:
        self.axes.set_xlim(*ranges[0])
        self.axes.set_ylim(*ranges[1])
        self.axes.set_xlabel(plane.labels[0], parse_math=False)
        self.axes.set_ylabel(plane.labels[1], parse_math=False)
        if plane.note:
            self.axes.set_title(plane.note, fontsize="medium", parse_math=False)

    def draw_legend(self, n_rows: int) -> None:
        if self.legend_entries:
            names = [entry.get_label() for entry in self.legend_entries]
            explain_handles(self.axes, self.legend_entries, names, n_rows)

    def _draw_lines(
        self, surface: Surface, levels: list[float], gid: str, label: str | None, **look: Any
    ) -> None:
        from matplotlib.lines import Line2D

        present = surface.within(*levels)
        if not present:
            return
        look = {"linestyles": "solid", "linewidths": 1.0, **look}
        lines = self.axes.contour(
            surface.x, surface.y, surface.values, levels=present, colors="black", zorder=2, **look
        )
        lines.set_gid(gid)
        if label is not None:
            entry = Line2D([], [], color="black", label=label)
            entry.set_linestyle(look["linestyles"])
            entry.set_linewidth(look["linewidths"])
            self.legend_entries.append(entry)
