"""The shapes of a drawn tree: boxes, lines and texts, which every renderer draws.

`layout.drawing_of` makes them from the sketch of a tree. Renderers are `tree_picture` (matplotlib),
`svg` (SVG and HTML) and the report, which has themes. All lengths are in points, from the top left
corner downwards. The roles of shapes are documented, see `plot.tree`.
"""

from __future__ import annotations

from dataclasses import dataclass

from margrove.plot.drawing import class_style

__all__ = [
    "EDGES",
    "FONT",
    "INK",
    "NEUTRAL",
    "PAPER",
    "Box",
    "Drawing",
    "Group",
    "Line",
    "Shape",
    "Text",
]

EDGES = ("edge", "path")  # roles of the lines between nodes, which are drawn first
FONT = 10.0
INK, NEUTRAL, PAPER = "#222222", "#999999", "#ffffff"


@dataclass(frozen=True)
class Box:
    """A rectangle; x and y are its top left corner.

    Its colour is that of a class, `class_code`, or neutral if that is None, mixed with the colour
    of the paper: `strength` 1 is the full colour, 0 is paper. Renderers with themes have their own
    colours for these two; `fill` is the colour on white paper.
    """

    role: str
    x: float
    y: float
    width: float
    height: float
    class_code: int | None
    strength: float = 1.0
    edge: str | None = None
    line_width: float = 0.0

    @property
    def fill(self) -> str:
        full = NEUTRAL if self.class_code is None else str(class_style(self.class_code)["color"])
        if self.strength == 1.0:
            return full
        rgb = (int(full[k : k + 2], 16) for k in (1, 3, 5))
        return "#" + "".join(f"{round(255 - self.strength * (255 - c)):02x}" for c in rgb)


@dataclass(frozen=True)
class Line:
    """A straight line."""

    role: str
    start: tuple[float, float]
    end: tuple[float, float]
    colour: str
    line_width: float


@dataclass(frozen=True)
class Text:
    """A line of text; y is its middle, x its middle too, or where it starts."""

    role: str
    x: float
    y: float
    text: str
    is_bold: bool = False
    is_centred: bool = True


Shape = Box | Line | Text


@dataclass(frozen=True)
class Group:
    """The shapes of a node and its description; `number` is None for the legend."""

    number: int | None
    description: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Drawing:
    """All shapes of a tree; groups are in preorder, the legend first."""

    width: float
    height: float
    groups: tuple[Group, ...]
