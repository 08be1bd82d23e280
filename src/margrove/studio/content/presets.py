"""Presets: sets of points to start from, generated or taken from the lectures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from margrove import datasets
from margrove.studio.content.checks import (
    LARGEST_SEED,
    StudioError,
    brief,
    checked_number,
    checked_whole,
)
from margrove.studio.content.scenes import MAX_POINTS, View

__all__ = ["PRESETS", "Points", "Preset", "points_of", "view_of"]

_MARGIN = 0.12  # beside the points, as a share of their range
_MOST_NOISE = 5.0


@dataclass(frozen=True, eq=False)
class Points:
    """X, y and their names; `classes` is empty for regression."""

    x: np.ndarray
    y: np.ndarray
    features: tuple[str, str] = ("x1", "x2")
    target: str = "class"
    classes: tuple[str, ...] = ("A", "B")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A named set of points; `draw(size, noise, seed)` returns them."""

    name: str
    title: str
    summary: str
    task: Literal["classification", "regression"] = "classification"
    is_drawn: bool = True
    size: int = 200
    noise: float = 0.0
    draw: Callable[[int, float, int], Points]

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "task": self.task,
            "isDrawn": self.is_drawn,
            "size": self.size,
            "noise": self.noise,
        }


def points_of(preset: Any, *, size: Any, noise: Any, seed: Any) -> dict[str, Any]:
    """The points of a preset: `Points` of the protocol.

    Parameters
    ----------
    preset : str
        A key of PRESETS.
    size : int
        Points to draw, at most 20,000.
    noise : float
        0 to 5, in the units of the preset.
    seed : int

    Examples
    --------
    >>> from margrove.studio.content.presets import points_of
    >>> found = points_of("xor", size=4, noise=0, seed=0)
    >>> found["x"], found["y"]
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0])
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise StudioError(
            f"There is no set of points {brief(preset)}. There are {', '.join(PRESETS)}."
        )
    chosen = PRESETS[preset]
    arguments = (
        checked_whole(size, "size", 1, MAX_POINTS),
        checked_number(noise, "noise", 0.0, _MOST_NOISE),
        checked_whole(seed, "seed", 0, LARGEST_SEED),
    )
    try:
        points = chosen.draw(*arguments)
    except ValueError as error:
        raise StudioError(str(error)) from None
    return {
        "task": chosen.task,
        "x": points.x.tolist(),
        "y": points.y.tolist(),
        "view": view_of(points.x, points.y if chosen.task == "regression" else None).as_dict(),
        "features": list(points.features),
        "target": points.target,
        "classes": list(points.classes),
    }


def view_of(x: np.ndarray, y: np.ndarray | None = None) -> View:
    """A view with a margin around the points; `y` is the target of a single feature."""
    second = x[:, 1] if y is None else y
    return View(_range(x[:, 0]), _range(second))


def _range(values: np.ndarray) -> tuple[float, float]:
    if not len(values):
        return -1.0, 1.0
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low)
    if margin <= 1e-9 * max(abs(low), abs(high)):
        margin = 0.5 * abs(low) or 1.0
    return low - margin, high + margin


# -- two classes and more --------------------------------------------------------------------------


def _moons(n: int, noise: float, seed: int) -> Points:
    x, y = datasets.make_moons(max(n, 2), noise=noise, random_state=seed, return_X_y=True)
    return Points(x, y)


def _circles(n: int, noise: float, seed: int) -> Points:
    x, y = datasets.make_circles(max(n, 2), noise=noise, random_state=seed, return_X_y=True)
    return Points(x, y)


def _xor(n: int, noise: float, seed: int) -> Points:
    return Points(*datasets.make_xor(n, noise=noise, random_state=seed, return_X_y=True))


def _separable(n: int, noise: float, seed: int) -> Points:
    x, y = datasets.make_separable_clouds(max(n, 8), random_state=seed, return_X_y=True)
    rng = np.random.default_rng(seed)
    return Points(x + noise * rng.standard_normal(x.shape), (y > 0).astype(np.int64))


def _gaussians(n: int, noise: float, seed: int) -> Points:
    """Two normal distributions; noise is their standard deviation."""
    shape = np.eye(2) * max(noise, 1e-3) ** 2
    found = datasets.make_gaussians(
        max(n, 2), means=((-1.0, -0.5), (1.0, 0.5)), covariances=(shape, shape), random_state=seed
    )
    return Points(found.data, found.target)


def _unequal(n: int, noise: float, seed: int) -> Points:
    """A narrow cloud in a wide one, as in Breiman's ringnorm but with two features."""
    wide, narrow = (
        np.eye(2) * (2.0 * max(noise, 1e-3)) ** 2,
        np.eye(2) * (0.5 * max(noise, 1e-3)) ** 2,
    )
    found = datasets.make_gaussians(
        max(n, 2), means=((0.0, 0.0), (0.7, 0.7)), covariances=(wide, narrow), random_state=seed
    )
    return Points(found.data, found.target)


def _four_clouds(n: int, noise: float, seed: int) -> Points:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    centres = np.array([[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]])
    return Points(centres[y] + noise * rng.standard_normal((n, 2)), y, classes=("A", "B", "C", "D"))


def _spirals(n: int, noise: float, seed: int) -> Points:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    turn = np.sqrt(rng.uniform(0.02, 1.0, n)) * 3.0 * np.pi
    angle = turn + np.pi * y
    x = (turn / np.pi)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return Points(x + noise * rng.standard_normal((n, 2)), y)


def _boosting_points(n: int, noise: float, seed: int) -> Points:
    x, y = datasets.load_boosting_points(return_X_y=True)
    return Points(x, (y > 0).astype(np.int64), classes=("-", "+"))


def _iris_ratios(n: int, noise: float, seed: int) -> Points:
    return _iris_like(datasets.load_iris_ratios())


def _iris_like(found: Any, columns: tuple[int, int] = (0, 1)) -> Points:
    first, second = (str(found.feature_names[column]) for column in columns)
    return Points(
        np.asarray(found.data, dtype=np.float64)[:, columns],
        np.asarray(found.target),
        features=(first, second),
        target="species",
        classes=tuple(str(name) for name in found.target_names),
    )


def _petals(n: int, noise: float, seed: int) -> Points:
    return _iris_like(datasets.load_iris(), (2, 3))


# -- regression with one feature -------------------------------------------------------------------


def _numbers(x: np.ndarray, y: np.ndarray, noise: float, rng: np.random.Generator) -> Points:
    return Points(
        x[:, None], y + noise * rng.standard_normal(len(x)), ("x", "y"), target="y", classes=()
    )


def _sine(n: int, noise: float, seed: int) -> Points:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 2.0 * np.pi, n))
    return _numbers(x, np.sin(x), noise, rng)


def _staircase(n: int, noise: float, seed: int) -> Points:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 4.0, n))
    heights = np.array([0.0, 1.5, 0.5, 2.0])
    return _numbers(x, heights[np.minimum(x.astype(np.int64), 3)], noise, rng)


def _outliers(n: int, noise: float, seed: int) -> Points:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-2.0, 2.0, n))
    y = 0.8 * x + 0.3
    far = rng.permutation(n)[: max(1, n // 12)]
    y[far] += rng.uniform(2.0, 4.0, len(far))
    return _numbers(x, y, noise, rng)


def _widening(n: int, noise: float, seed: int) -> Points:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 4.0, n))
    y = 0.5 * x + (0.1 + x / 2.0) * noise * rng.standard_normal(n)
    return _numbers(x, y, 0.0, rng)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="separable_clouds", title="Two clouds", size=40, draw=_separable,
            summary="A line separates them. Without noise the widest margin is 3.",
        ),
        Preset(
            name="gaussians", title="Overlapping clouds", size=200, noise=0.8, draw=_gaussians,
            summary="Two normal distributions. Noise is their spread.",
        ),
        Preset(
            name="moons", title="Moons", noise=0.2, draw=_moons,
            summary="Two interleaving half circles.",
        ),
        Preset(
            name="circles", title="Circles", noise=0.1, draw=_circles,
            summary="One class around the other: no line separates them, a circle does.",
        ),
        Preset(
            name="xor", title="Exclusive or", noise=0.15, draw=_xor,
            summary="Four clouds, equal classes on the diagonals.",
        ),
        Preset(
            name="spirals", title="Spirals", size=300, noise=0.05, draw=_spirals,
            summary="Two classes wound around each other: for a narrow kernel, or many trees.",
        ),
        Preset(
            name="narrow_in_wide", title="Narrow in wide", size=300, noise=0.8, draw=_unequal,
            summary="Two normal distributions of unequal spread: the best boundary is a circle.",
        ),
        Preset(
            name="four_clouds", title="Four classes", noise=0.4, draw=_four_clouds,
            summary="A cloud in each corner.",
        ),
        Preset(
            name="boosting_points", title="Ten points of the lecture", size=10, is_drawn=False,
            draw=_boosting_points, summary="Three stumps of AdaBoost together make no mistake.",
        ),
        Preset(
            name="iris_ratios", title="Irises by ratios", size=150, is_drawn=False,
            draw=_iris_ratios, summary="Length to width of sepals and petals, three species.",
        ),
        Preset(
            name="iris_petals", title="Irises by petals", size=150, is_drawn=False, draw=_petals,
            summary="Length and width of petals in cm, three species.",
        ),
        Preset(
            name="sine", title="A noisy sine", task="regression", size=60, noise=0.2, draw=_sine,
            summary="One period.",
        ),
        Preset(
            name="staircase", title="Steps", task="regression", size=80, noise=0.15,
            draw=_staircase, summary="Four levels: made for trees.",
        ),
        Preset(
            name="outliers", title="A line with outliers", task="regression", size=60, noise=0.15,
            draw=_outliers, summary="Some points are far above the line.",
        ),
        Preset(
            name="widening", title="A widening line", task="regression", size=120, noise=0.4,
            draw=_widening, summary="The noise grows with x: quantiles and intervals show it.",
        ),
    )
}  # fmt: skip
