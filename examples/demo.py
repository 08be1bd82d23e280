"""A perceptron and its theorem, a support vector machine and its proof, a tree and its reasons."""

from __future__ import annotations

import logging
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sklearn.svm
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import margrove
from margrove import SVC, DecisionTreeClassifier, KernelPerceptron, Perceptron
from margrove.cli import main as command_line
from margrove.datasets import (
    load_digits,
    load_play_tennis,
    make_moons,
    make_separable_clouds,
)

WIDTH, HEIGHT = 60, 20
BUILD = Path("build")
console = Console(width=100)


def picture(X, y, decision, title, support=()) -> Panel:
    """The plane as text: one side dotted and blue, points as o and +, mistakes as X.

    Support vectors are #.
    """
    (left, bottom), (right, top) = X.min(axis=0) - 0.6, X.max(axis=0) + 0.6
    columns, rows = np.linspace(left, right, WIDTH), np.linspace(top, bottom, HEIGHT)
    grid = np.array([[x1, x2] for x2 in rows for x1 in columns])
    region = (decision(grid) > 0).reshape(HEIGHT, WIDTH)
    cells = [["." if inside else " " for inside in line] for line in region]
    wrong = (decision(X) > 0) != (y > 0)
    marks = np.where(wrong, "X", np.where(y > 0, "+", "o"))
    marks[list(support)] = "#"
    for (x1, x2), mark in zip(X, marks, strict=True):
        j = round((x1 - left) / (right - left) * (WIDTH - 1))
        i = round((top - x2) / (top - bottom) * (HEIGHT - 1))
        cells[i][j] = str(mark)
    text = Text()
    for i in range(HEIGHT):
        for j in range(WIDTH):
            shade = "black on sky_blue1" if region[i, j] else "black on light_goldenrod1"
            styles = {"X": "bold white on red", "#": "bold white on black"}
            text.append(cells[i][j], style=styles.get(cells[i][j], shade))
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


def a_support_vector_machine_proves_its_answer() -> None:
    clouds = make_separable_clouds(120)
    X, y = clouds.data, clouds.target
    model = SVC(kernel="linear", C=np.inf, tol=1e-6).fit(X, y)
    console.rule("A support vector machine finds the widest margin, and proves it")
    title = f"{len(model.support_)} of {len(X)} points, marked #, hold the plane"
    console.print(picture(X, y, model.decision_function, title, model.support_))
    console.print(str(model.certificate_), highlight=False)
    console.print(
        f"\nThe margin on each side is {model.certificate_.margin_width / 2:.6f}. No plane does "
        f"better: the dual objective says so, and of these clouds {clouds.margin} is known.\n"
    )


def two_libraries_read_digits() -> None:
    images, y = load_digits(return_X_y=True)
    is_test = np.arange(len(y)) % 4 == 0
    X, labels = images[~is_test], y[~is_test]
    table = Table("rows", "library", title="Handwritten digits, 10 classes")
    for column in ("fit", "predict", "errors", "support vectors", "duality gap"):
        table.add_column(column, justify="right")
    compare_on(table, X, labels, images[is_test], y[is_test])
    compare_on(table, nudged(X), np.tile(labels, 5), images[is_test], y[is_test])
    console.rule("The same machine, from two libraries, on few rows and on more")
    console.print(table)
    console.print("The larger set has each digit also nudged by one pixel to all four sides.\n")


def compare_on(table, X, y, X_test, y_test) -> None:
    """Two rows of the table: scikit-learn's SVC and ours."""
    predictions = []
    for name, model in (("scikit-learn", sklearn.svm.SVC()), ("margrove", SVC())):
        fit_seconds = min(seconds_of(model.fit, X, y) for _ in range(3))
        predict_seconds = min(seconds_of(model.predict, X_test) for _ in range(3))
        predictions.append(model.predict(X_test))
        table.add_row(
            "" if len(predictions) > 1 else str(len(X)),
            name,
            f"{1000 * fit_seconds:.0f} ms",
            f"{1000 * predict_seconds:.0f} ms",
            f"{np.count_nonzero(predictions[-1] != y_test)} of {len(y_test)}",
            str(len(model.support_)),
            f"{margrove.certificate(model, X, y).relative_gap:.3%}",
        )
    differ = np.count_nonzero(predictions[0] != predictions[1])
    table.add_row("", f"{differ} predictions differ", end_section=True)


def nudged(images):
    """The images of 8 x 8 pixels, and each moved by one to all four sides."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    corners = ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
    moved = [padded[:, i : i + 8, j : j + 8].reshape(len(images), 64) for i, j in corners]
    return np.vstack(moved)


def seconds_of(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def a_tree_reads_words_and_says_why() -> None:
    """The lectures' example: no encoding, branches with names, and an answer with reasons."""
    tennis = load_play_tennis()
    model = DecisionTreeClassifier(criterion="entropy", split="multiway")
    model.fit(tennis.data, tennis.target)
    names = np.array(tennis.feature_names, dtype=object)
    model.feature_names_in_ = names  # which a dataframe would have told
    console.rule("A decision tree reads words as they are, and says why")
    gain = model.arrays_.decrease[0] / model.arrays_.weight[0]
    asked = names[model.arrays_.feature[0]]
    console.print(f"First it asks for {asked}: {gain:.3f} bits are gained.")
    console.print(margrove.export_text(model), highlight=False, markup=False)
    BUILD.mkdir(exist_ok=True)
    picture_file = BUILD / "tennis_tree.svg"
    picture_file.write_text(margrove.plot.tree_svg(model), encoding="utf-8")
    console.print(f"The same as a picture: {picture_file}\n")


def a_boundary_is_drawn() -> None:
    if find_spec("matplotlib") is None:
        console.print("With matplotlib installed, there would be a picture of a boundary here.\n")
        return
    from matplotlib.figure import Figure

    X, y = make_moons(200, noise=0.25, return_X_y=True)
    figure = Figure(figsize=(7, 5), layout="constrained")
    margrove.plot.decision_boundary(SVC(C=10).fit(X, y), X, y, ax=figure.subplots())
    BUILD.mkdir(exist_ok=True)
    figure.savefig(BUILD / "decision_boundary.png", dpi=150)
    console.print(
        "Margins and the three kinds of support vectors of overlapping moons: "
        f"{BUILD / 'decision_boundary.png'}\n"
    )


def main() -> None:
    logging.basicConfig(format="%(message)s")
    logging.getLogger("margrove").setLevel(logging.INFO)
    start = time.perf_counter()
    a_perceptron_learns()
    a_kernel_bends_the_plane()
    a_support_vector_machine_proves_its_answer()
    two_libraries_read_digits()
    a_tree_reads_words_and_says_why()
    a_boundary_is_drawn()
    console.rule("margrove compare")
    try:
        command_line(["compare", "--data", "breast_cancer"])
    except SystemExit as ended:
        console.print(f"That was the demo, in {time.perf_counter() - start:.0f} s.")
        sys.exit(ended.code)


if __name__ == "__main__":
    main()
