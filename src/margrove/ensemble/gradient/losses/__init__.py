"""The losses of gradient boosting, by name; each is a file of this folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from margrove.ensemble.gradient.losses.absolute_error import AbsoluteError
from margrove.ensemble.gradient.losses.exponential import Exponential
from margrove.ensemble.gradient.losses.gamma import Gamma
from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss
from margrove.ensemble.gradient.losses.huber import Huber
from margrove.ensemble.gradient.losses.log_loss import LogLoss, MulticlassLogLoss
from margrove.ensemble.gradient.losses.poisson import Poisson
from margrove.ensemble.gradient.losses.quantile import Quantile
from margrove.ensemble.gradient.losses.squared_error import SquaredError
from margrove.ensemble.gradient.losses.tweedie import Tweedie

__all__ = [
    "GRADIENT_LOSSES",
    "AbsoluteError",
    "Exponential",
    "Gamma",
    "GradientLoss",
    "Huber",
    "LogLoss",
    "MulticlassLogLoss",
    "Poisson",
    "Quantile",
    "SquaredError",
    "Tweedie",
    "gradient_loss_of",
    "loss_names",
    "register_gradient_loss",
]

GRADIENT_LOSSES: dict[str, GradientLoss] = {
    one.name: one
    for one in (
        SquaredError(),
        AbsoluteError(),
        Huber(),
        Quantile(),
        Poisson(),
        Gamma(),
        Tweedie(),
        LogLoss(),
        Exponential(),
    )
}


def loss_names(*, for_classes: bool) -> list[str]:
    """The names that are registered at the moment."""
    return [name for name, one in GRADIENT_LOSSES.items() if one.for_classes == for_classes]


def gradient_loss_of(
    loss: str | GradientLoss, *, n_classes: int | None = None, **parameters: Any
) -> GradientLoss:
    """What `loss` asks for: by name with these parameters, or a loss itself.

    Examples
    --------
    >>> from margrove.ensemble.gradient.losses import gradient_loss_of
    >>> gradient_loss_of("quantile", quantile=0.9)
    Quantile(quantile=0.9)
    >>> gradient_loss_of("log_loss", n_classes=4).n_scores
    4
    """
    if isinstance(loss, GradientLoss):
        found = loss
    elif loss in GRADIENT_LOSSES:
        found = GRADIENT_LOSSES[loss]
    else:
        raise ValueError(
            f"loss must be one of {sorted(GRADIENT_LOSSES)}, or a GradientLoss. Got {loss!r} "
            "instead."
        )
    if parameters:
        found = _with_parameters(found, parameters)
    return found if n_classes is None else found.with_classes(n_classes)


def _with_parameters(loss: Any, parameters: dict[str, Any]) -> GradientLoss:
    unknown = sorted(set(parameters) - {field.name for field in fields(loss)})
    if unknown:
        raise ValueError(
            f"loss={loss.name!r} has no parameter {unknown[0]!r}. Leave it out, or use another "
            "loss."
        )
    changed: GradientLoss = replace(loss, **parameters)
    return changed


def register_gradient_loss(
    name: str,
    value: Callable[[float, float], float],
    gradient: Callable[[float, float], float],
    hessian: Callable[[float, float], float],
    *,
    link_inverse: Callable[[float], float] | None = None,
    start: Callable[[np.ndarray, np.ndarray], float] | None = None,
    leaf_value: Callable[[np.ndarray, np.ndarray], float] | None = None,
    for_classes: bool = False,
) -> GradientLoss:
    """Make `loss=name` mean your own loss.

    Parameters
    ----------
    name : str
        A new name.
    value, gradient, hessian : callable
        Functions of the numbers `(y, raw)`: the loss of a row with the raw score `raw`, and its
        first and second derivative in `raw`, the latter >= 0. They are compiled; those that are
        compiled already are taken as they are.
    link_inverse : callable, optional
        The prediction from a raw score, compiled as well. Without it raw scores are predictions,
        or, with `for_classes`, the logarithms of the odds.
    start : callable, optional
        `start(y, weight)` returns the raw score before the first round, from two arrays. Without
        it the constant at which the gradients of all rows add up to 0 is looked for.
    leaf_value : callable, optional
        `leaf_value(residuals, weights)` returns what a leaf is worth, from the arrays y - raw and
        weights of its rows. Without it that is a Newton step.
    for_classes : bool, default=False
        Whether it is for two classes: y is 0 or 1, and predictions are probabilities of 1.

    Examples
    --------
    >>> import math
    >>> from margrove.ensemble.gradient.losses import GRADIENT_LOSSES, register_gradient_loss
    >>> loss = register_gradient_loss(
    ...     "log_cosh",
    ...     value=lambda y, raw: math.log(math.cosh(raw - y)),
    ...     gradient=lambda y, raw: math.tanh(raw - y),
    ...     hessian=lambda y, raw: 1.0 - math.tanh(raw - y) ** 2,
    ... )
    >>> GRADIENT_LOSSES["log_cosh"] is loss
    True
    >>> del GRADIENT_LOSSES["log_cosh"]
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a string by which the loss is asked for. Got {name!r}.")
    if name in GRADIENT_LOSSES:
        raise ValueError(f"A loss named {name!r} exists already: {sorted(GRADIENT_LOSSES)}.")
    GRADIENT_LOSSES[name] = GradientLoss.of_functions(
        value,
        gradient,
        hessian,
        link_inverse=link_inverse,
        start=start,
        leaf_value=leaf_value,
        for_classes=for_classes,
        name=name,
    )
    return GRADIENT_LOSSES[name]
