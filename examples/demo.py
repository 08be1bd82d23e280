"""A perceptron learns, one mistake at a time, and a theorem keeps count."""

from __future__ import annotations

import logging
import sys
import time

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

import margrove
from margrove import KernelPerceptron, Perceptron
from margrove.cli import main as command_line
from margrove.datasets import make_moons, make_separable_clouds

WIDTH, HEIGHT = 60, 20
console = Console(width=100)


def picture(X, y, decision, title) -> Panel:
    """The plane as text: one side dotted and blue, points as o and +, mistakes as X."""
    (left, bottom), (right, top) = X.min(axis=0) - 0.6, X.max(axis=0) + 0.6
    columns, rows = np.linspace(left, right, WIDTH), np.linspace(top, bottom, HEIGHT)
    grid = np.array([[x1, x2] for x2 in rows for x1 in columns])
    region = (decision(grid) > 0).reshape(HEIGHT, WIDTH)
    cells = [["." if inside else " " for inside in line] for line in region]
    wrong = (decision(X) > 0) != (y > 0)
    for (x1, x2), label, mistaken in zip(X, y, wrong, strict=True):
        j = round((x1 - left) / (right - left) * (WIDTH - 1))
        i = round((top - x2) / (top - bottom) * (HEIGHT - 1))
        cells[i][j] = "X" if mistaken else "+" if label > 0 else "o"
    text = Text()
    for i in range(HEIGHT):
        for j in range(WIDTH):
            shade = "black on sky_blue1" if region[i, j] else "black on light_goldenrod1"
            text.append(cells[i][j], style="bold white on red" if cells[i][j] == "X" else shade)
        text.append("\n")
    return Panel(text, title=title, expand=False)


def a_perceptron_learns() -> None:
    clouds = make_separable_clouds(120)
    X, y = clouds.data, clouds.target
    updates = []
    with margrove.watch(on_step=updates.append):
        model = Perceptron(max_iter=10_000).fit(X, y)
    w, b = np.zeros(2), 0.0
    shown = {1, 2, len(updates)}
    console.rule("A perceptron learns from its mistakes")
    for count, update in enumerate(updates, start=1):
        w, b = w + y[update.row] * X[update.row], b + y[update.row]
        if count in shown:
            title = f"after mistake {count} (epoch {update.epoch + 1}, row {update.row})"
            console.print(picture(X, y, lambda Z, w=w, b=b: Z @ w + b, title))
    assert np.allclose(w, model.coef_[0]), "the updates add up to the model"
    console.print(
        f"Separated after {model.mistakes_} mistakes in {model.n_iter_} epochs, with margin "
        f"{model.margin_:.3f}. Novikoff's theorem allows (R / margin)^2 = "
        f"({model.radius_:.2f} / {model.margin_:.3f})^2 = {model.novikoff_bound_:.0f} mistakes.\n"
        f"The widest possible margin here is {clouds.margin}: a perceptron stops at the first "
        "plane that works, which is why there are support vector machines.\n"
    )


def a_kernel_bends_the_plane() -> None:
    X, y = make_moons(160, noise=0.12, return_X_y=True)
    y = 2 * y - 1
    model = KernelPerceptron(gamma=3.0).fit(X, y)
    console.rule("The same updates in the space of a kernel")
    title = f"{len(model.support_)} of {len(X)} points were ever mistaken: they are the model"
    console.print(picture(X, y, model.decision_function, title))


def main() -> None:
    logging.basicConfig(format="%(message)s")
    logging.getLogger("margrove").setLevel(logging.INFO)
    start = time.perf_counter()
    a_perceptron_learns()
    a_kernel_bends_the_plane()
    console.rule("margrove compare")
    try:
        command_line(["compare", "--data", "breast_cancer"])
    except SystemExit as ended:
        console.print(f"That was the demo, in {time.perf_counter() - start:.0f} s.")
        sys.exit(ended.code)


if __name__ == "__main__":
    main()
