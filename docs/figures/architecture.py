"""Draw the pictures of the architecture: docs/_static/folders.svg and path_of_a_fit.svg.

The first is read off the contract in pyproject.toml that says which folder may import which.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "docs" / "_static"

PURPOSE = {
    "cli": "commands: parse, call, show",
    "studio": "the browser: ask, compute, draw",
    "dask": "learners on a cluster",
    "workbench": "raw table to trusted model: tables, doctor, workflow, report",
    "exchange": "model files, scikit-learn",
    "teaching": "values and pictures of the lectures",
    "plot": "pictures, drawn from facts",
    "facts": "fitted models as plain values",
    "select": "tune, compare, calibrate",
    "datasets": "small data sets and generators",
    "ensemble": "bootstrap, bagging, forests, AdaBoost, gradient boosting",
    "grove": "decision trees: table, grow, serve, prune, read, explain, export",
    "margin": "perceptrons, kernels, support vector machines, linear machines, solvers",
    "_data": "the boundary: checks, labels, weights, canonical form",
    "_runtime": "compiled code, threads, slices, checkpoints",
    "_files": "archives, and files written in one step",
}
FIT = (
    ("X, y, weights", "what a user has"),
    ("_data", "checks; canonical form"),
    ("problem", "mathematics as arrays"),
    ("process", "advanced in slices"),
    ("result", "a dataclass with its proof"),
    ("attributes", "all replaced in one step"),
)
STYLE = (
    "<style>text{font:14px sans-serif;fill:#1b2a38}.small{font-size:12px;fill:#52616f}"
    "rect{fill:#eef3f8;stroke:#8aa0b5}path{stroke:#8aa0b5;fill:none}"
    "@media (prefers-color-scheme:dark){text{fill:#e8eef4}.small{fill:#a9b8c6}"
    "rect{fill:#22303d;stroke:#5b7186}}</style>"
)


def layers() -> list[list[str]]:
    """Folders from the top to the bottom; a door of another folder is no layer of its own."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(entry for entry in tool["contracts"] if entry["type"] == "layers")
    rows = [[name.strip() for name in row.split("|")] for row in contract["layers"]]
    rows = [[name for name in row if name in PURPOSE] for row in rows]
    return [row for row in rows if row]


def box(x: float, y: float, width: float, title: str, words: str, height: float = 30) -> str:
    """A rectangle with a name and what it is for; one above the other where it is narrow."""
    frame = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>'
    if height > 30:
        middle = x + width / 2
        return (
            f'{frame}<text x="{middle}" y="{y + 20}" text-anchor="middle">{escape(title)}</text>'
            f'<text class="small" x="{middle}" y="{y + 38}" text-anchor="middle">'
            f"{escape(words)}</text>"
        )
    return (
        f'{frame}<text x="{x + 10}" y="{y + 20}">{escape(title)}</text>'
        f'<text class="small" x="{x + 95}" y="{y + 20}">{escape(words)}</text>'
    )


def picture(width: float, height: float, *shapes: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
    return head + STYLE + "".join(shapes) + "</svg>\n"


def folders() -> str:
    shapes, width, y = [], 640.0, 10.0
    for row in layers():
        each = (width - 10 * (len(row) - 1)) / len(row)
        shapes += [
            box(10 + i * (each + 10), y, each, name, PURPOSE[name]) for i, name in enumerate(row)
        ]
        y += 38
    return picture(width + 20, y, *shapes)


def path_of_a_fit() -> str:
    shapes, width = [], 180.0
    for i, (title, words) in enumerate(FIT):
        x, y = 10 + (i % 3) * (width + 40), 10 + (i // 3) * 80
        shapes.append(box(x, y, width, title, words, height=50))
        if i % 3 < 2:
            shapes.append(f'<path d="M{x + width} {y + 25} h36 m-8 -5 l8 5 l-8 5"/>')
    turn = f'<path d="M{10 + 2.5 * width + 80} 60 v14 H{10 + width / 2} v12 m-5 -8 l5 8 l5 -8"/>'
    return picture(3 * width + 100, 160, *shapes, turn)


if __name__ == "__main__":
    (STATIC / "folders.svg").write_text(folders())
    (STATIC / "path_of_a_fit.svg").write_text(path_of_a_fit())
