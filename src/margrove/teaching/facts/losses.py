"""Losses as functions of a margin z = y f(x), or of a residual r = y - f(x)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import data_frame
from margrove.facts import Plain, frozen, require_whole
from margrove.margin import LOSSES
from margrove.teaching.facts.planes import require_number

__all__ = ["LossCurves", "loss_curves"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LossCurves(Plain):
    """Losses at the same places.

    Attributes
    ----------
    argument : {"margin", "residual"}
        What losses are functions of.
    places : ndarray
    names : tuple of str
        As in `margrove.losses.LOSSES`.
    values : ndarray of shape (n_losses, n_places)
    """

    argument: str
    places: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray

    def frame(self) -> Any:
        """A pandas DataFrame, a column for each loss."""
        curves = dict(zip(self.names, self.values, strict=True))
        return data_frame({self.argument: self.places} | curves)


def loss_curves(
    names: Sequence[str] | None = None, *, low: float = -2.0, high: float = 3.0, n_places: int = 501
) -> LossCurves:
    """The values of losses on a grid from `low` to `high`.

    Parameters
    ----------
    names : sequence of str, optional
        Of `margrove.losses.LOSSES`, all of margins or all of residuals. By default all of margins.
    low, high : float, default=-2 and 3
    n_places : int, default=501

    Returns
    -------
    LossCurves

    Examples
    --------
    >>> from margrove.teaching.facts.losses import loss_curves
    >>> loss_curves(["perceptron", "hinge"], low=-1, high=1, n_places=3).values.tolist()
    [[1.0, 0.0, 0.0], [2.0, 1.0, 0.0]]
    """
    chosen = _chosen(names)
    arguments = {LOSSES[name].argument for name in chosen}
    if len(arguments) > 1:
        raise ValueError(
            f"names must be losses of margins, or losses of residuals. Got both: {chosen}."
        )
    start, end = require_number("low", low), require_number("high", high)
    if not start < end:
        raise ValueError(f"low must be less than high. Got {low!r} and {high!r}.")
    places = np.linspace(start, end, require_whole("n_places", n_places, 2))
    return LossCurves(
        argument=arguments.pop(),
        places=frozen(places),
        names=tuple(chosen),
        # + 0.0 turns -0.0 into 0.0
        values=frozen(np.stack([LOSSES[name]().value(places) for name in chosen]) + 0.0),
    )


def _chosen(names: Any) -> list[str]:
    if names is None:
        return [name for name, loss in LOSSES.items() if loss.argument == "margin"]
    if isinstance(names, str) or not hasattr(names, "__iter__") or not list(names):
        raise ValueError(f"names must be a list of losses, such as ['hinge']. Got {names!r}.")
    chosen = list(names)
    for name in chosen:
        if name not in LOSSES:
            raise ValueError(f"names has {name!r}, which is not one of {', '.join(LOSSES)}.")
    return chosen
