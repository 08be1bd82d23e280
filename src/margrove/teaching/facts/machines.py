"""Support vector machines in the plane: the effects of C, gamma, and squares of the features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import data_frame
from margrove.exceptions import DataWarning
from margrove.facts import Plain, describe, frozen
from margrove.margin.svm import SVC
from margrove.teaching.facts.planes import PlaneRows, plane_rows

__all__ = [
    "LECTURE_SETTINGS",
    "MachineEffects",
    "SquaredCircle",
    "machine_effects",
    "squared_circle",
]

Setting = tuple[float, float | None]

# C and gamma of the lectures; if gamma is None, the kernel is linear.
LECTURE_SETTINGS: dict[str, tuple[Setting, ...]] = {
    "gamma": ((1.0, 0.01), (1.0, 1.0), (1.0, 10.0), (1.0, 500.0)),
    "C": ((2.0, 1.0), (10_000.0, 1.0)),
    "pairs": ((1.0, 0.01), (10.0, 100.0), (10.0, 10_000.0)),
    "linear": ((0.01, None), (1.0, None), (10_000.0, None), (100_000.0, None)),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class MachineEffects(Plain):
    """Machines that differ in C and gamma, fitted to the same rows.

    Attributes
    ----------
    rows : PlaneRows
    models : tuple of SVC
        Fitted.
    settings : tuple of (C, gamma)
        gamma is None if the kernel is linear.
    n_support, n_bounded : ndarray of int
        Support vectors, and those of them at their bound.
    margins : ndarray
        1 / ||w|| in feature space.
    errors : ndarray
        Shares of these rows that are misclassified.
    """

    rows: PlaneRows
    models: tuple[SVC, ...]
    settings: tuple[Setting, ...]
    n_support: np.ndarray
    n_bounded: np.ndarray
    margins: np.ndarray
    errors: np.ndarray

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each machine."""
        gammas = [np.nan if gamma is None else gamma for _, gamma in self.settings]
        return data_frame(
            {
                "C": [C for C, _ in self.settings],
                "gamma": gammas,
                "kernel": [str(model.kernel) for model in self.models],
                "n_support": self.n_support,
                "n_bounded": self.n_bounded,
                "margin": self.margins,
                "error": self.errors,
            }
        )


def machine_effects(X: Any, y: Any, settings: Any = "all") -> MachineEffects:
    """Fit machines with several C and gamma to the same rows of two features.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes.
    settings : str or sequence of (C, gamma), default="all"
        "gamma", "C", "pairs" and "linear" are settings of the lectures; "all" are the first three.
        A gamma of None is the linear kernel.

    Returns
    -------
    MachineEffects

    Examples
    --------
    >>> from margrove.datasets import make_moons
    >>> from margrove.teaching.facts.machines import machine_effects
    >>> X, y = make_moons(40, random_state=0, return_X_y=True)
    >>> machine_effects(X, y, [(1.0, 0.1), (1.0, 10_000.0)]).n_support.tolist()
    [29, 40]
    """
    rows = plane_rows(X, y, "effect_of_c_and_gamma")
    chosen = _settings(settings)
    models = []
    for C, gamma in chosen:
        kernel: dict[str, Any] = {"kernel": "rbf", "gamma": gamma}
        if gamma is None:
            kernel = {"kernel": "linear"}
        with warnings.catch_warnings():  # the picture shows the effect of too large a gamma
            warnings.simplefilter("ignore", DataWarning)
            models.append(SVC(C=C, **kernel).fit(rows.points, rows.codes))
    machines = [describe(model, rows.points, rows.codes).machines[0] for model in models]
    return MachineEffects(
        rows=rows,
        models=tuple(models),
        settings=chosen,
        n_support=frozen(np.array([machine.n_support for machine in machines])),
        n_bounded=frozen(np.array([machine.n_bounded for machine in machines])),
        margins=frozen(np.array([machine.margin_width for machine in machines]) / 2.0),
        errors=frozen(np.array([1.0 - model.score(rows.points, rows.codes) for model in models])),
    )


def _settings(given: Any) -> tuple[Setting, ...]:
    if isinstance(given, str):
        named = {"all": _all_settings(), **LECTURE_SETTINGS}
        if given not in named:
            raise ValueError(
                f"settings must be one of {', '.join(map(repr, named))}, or a list of (C, gamma). "
                f"Got {given!r}."
            )
        return named[given]
    if not isinstance(given, Sequence) or not given:
        raise ValueError(f"settings must be a list of (C, gamma), or a name. Got {given!r}.")
    for pair in given:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(
                "settings must be pairs (C, gamma), such as (1.0, 0.5), or (1.0, None) for a "
                f"linear kernel. Got {pair!r}."
            )
    return tuple((pair[0], pair[1]) for pair in given)


def _all_settings() -> tuple[Setting, ...]:
    return tuple(
        dict.fromkeys(
            setting for name in ("gamma", "C", "pairs") for setting in LECTURE_SETTINGS[name]
        )
    )


# -- squares -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class SquaredCircle(Plain):
    """Rows before and after x -> (x1^2, x2^2), and the line that separates them there.

    Attributes
    ----------
    rows : PlaneRows
        Before.
    squares : ndarray of shape (n_samples, 2)
    weights : ndarray of shape (2,)
    intercept : float
        weights . (x1^2, x2^2) + intercept = 0 is a line in the squares, and an ellipse in the
        features if the weights have the same sign.
    n_wrong : int
        The number of rows on the wrong side.
    """

    rows: PlaneRows
    squares: np.ndarray
    weights: np.ndarray
    intercept: float
    n_wrong: int

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each row."""
        classes = np.array(self.rows.classes, dtype=object)
        return data_frame(
            {
                "class": classes[self.rows.codes],
                "x1": self.rows.points[:, 0],
                "x2": self.rows.points[:, 1],
                "x1_squared": self.squares[:, 0],
                "x2_squared": self.squares[:, 1],
                "f": self.squares @ self.weights + self.intercept,
            }
        )


def squared_circle(X: Any, y: Any, *, C: float = 100.0) -> SquaredCircle:
    """A linear machine over the squares of two features.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2)
    y : array-like of shape (n_samples,)
        Two classes.
    C : float, default=100
        Of the machine.

    Returns
    -------
    SquaredCircle

    Examples
    --------
    >>> from margrove.datasets import make_circles
    >>> from margrove.teaching.facts.machines import squared_circle
    >>> squared_circle(*make_circles(100, return_X_y=True)).n_wrong
    0
    """
    rows = plane_rows(X, y, "circle_to_line")
    squares = rows.points**2
    machine = SVC(kernel="linear", C=C).fit(squares, rows.codes)
    return SquaredCircle(
        rows=rows,
        squares=frozen(squares),
        weights=frozen(machine.coef_[0]),
        intercept=float(machine.intercept_[0]),
        n_wrong=int(np.count_nonzero(machine.predict(squares) != rows.codes)),
    )
