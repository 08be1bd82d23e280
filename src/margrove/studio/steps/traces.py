"""The trace of a fit: a description of each step, and the state of the model after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from margrove.studio.content import Scene, StudioError

__all__ = [
    "MOST_STEPS",
    "Figures",
    "FirstAndLast",
    "GridShape",
    "Trace",
    "curve_over_steps",
    "error_name",
    "point_number",
    "require_few_points",
    "require_two_classes",
    "shown_numbers",
    "state_of",
    "step_record",
]

MOST_STEPS = 500  # that are shown of a fit

Figures = dict[str, float | int | str | None]
GridShape = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Trace:
    """The steps of one fit.

    Attributes
    ----------
    steps : list of dict
        Text and figures of each step that is shown; see `step_record`.
    total : int
        How many steps the fit took.
    curves : list of dict
        See `curve_over_steps`.
    state : callable
        ``state(number, grid)`` returns the protocol's Step after `number` of the shown steps.
    scale : "linear" or "log"
        Of the curves.
    """

    steps: list[dict[str, Any]]
    total: int
    curves: list[dict[str, Any]]
    state: Callable[[int, GridShape], dict[str, Any]]
    scale: Literal["linear", "log"] = "linear"

    def as_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "total": self.total,
            "curves": self.curves,
            "scale": self.scale,
        }


def shown_numbers(total: int) -> list[int]:
    """The numbers of the steps that are shown, from 0: all, or the first ones and the last one.

    The last step then includes all those that were left out.
    """
    if total <= MOST_STEPS:
        return list(range(total + 1))
    return [*range(MOST_STEPS), total]


class FirstAndLast:
    """A callback that keeps the shown steps of a fit, which may have millions of steps."""

    def __init__(self) -> None:
        self.total = 0
        self._first: list[Any] = []
        self._last: Any = None

    def __call__(self, step: Any) -> None:
        self.total += 1
        self._last = step
        if len(self._first) < MOST_STEPS:
            self._first.append(step)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the shown steps, from 0."""
        return shown_numbers(self.total)

    def at(self, position: int) -> Any:
        """The record of a shown step, by its position from 1."""
        is_last = position == len(self.numbers) - 1
        return self._last if is_last else self._first[position - 1]


def step_record(text: str, **figures: Any) -> dict[str, Any]:
    """The sentence and the figures of a step; underscores in names of figures become spaces."""
    return {
        "text": text,
        "figures": {name.replace("_", " "): _plain(value) for name, value in figures.items()},
    }


def _plain(value: Any) -> float | int | str | None:
    """A value for JSON: a number that is not finite becomes None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    raise TypeError(f"A figure has to be a number or a text. Got {type(value).__name__}.")


def curve_over_steps(name: str, values: Sequence[float] | np.ndarray) -> dict[str, Any]:
    """A curve with a value for the start and for each step that is shown."""
    return {"name": name, "values": np.asarray(values, dtype=np.float32)}


def error_name(scene: Scene) -> str:
    """The name of the error: the share of mistakes, or the root of the mean squared error."""
    return "error" if scene.task == "classification" else "root mean squared error"


def state_of(number: int, **fields: Any) -> dict[str, Any]:
    """A `Step` of the protocol; fields that are not given are empty."""
    empty: dict[str, Any] = {
        "plane": None,
        "curve": None,
        "highlighted": [],
        "lines": [],
        "box": None,
        "gains": None,
        "tree": None,
    }
    unknown = set(fields) - set(empty)
    if unknown:
        raise TypeError(f"A step has no {', '.join(sorted(unknown))}.")
    return {"number": number} | empty | fields


def point_number(scene: Scene, row: int) -> int:
    """The number in the scene of the point of a training row."""
    return int(scene.training_rows[row])


def require_two_classes(scene: Scene, what: str) -> None:
    n_classes = len(np.unique(scene.training()[1]))
    if n_classes != 2:
        raise StudioError(
            f"{what} is shown for two classes, and there are {n_classes}. Choose points of two "
            "classes, or look at the final picture."
        )


def require_few_points(scene: Scene, what: str, most: int) -> None:
    n = len(scene.training_rows)
    if n > most:
        raise StudioError(
            f"{what} is shown for at most {most:,} points, and there are {n:,}. Use fewer points."
        )
