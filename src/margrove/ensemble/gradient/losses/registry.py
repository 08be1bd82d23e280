"""The registry of losses: the possible values of the parameter `loss`.

A loss is one file. It defines its name, its parameters (fields of a frozen dataclass), values and
derivatives, the link, its task, a line for menus and the documentation, and the score by which it
is tuned. All estimators, the command line, the studio, model files, tuning, the documentation and
the tests read the registry. A model file contains the name and the parameters of a loss, never its
code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from margrove.ensemble.gradient.losses.custom import CustomLoss
from margrove.ensemble.gradient.losses.gradient_loss import GradientLoss

__all__ = [
    "GRADIENT_LOSSES",
    "LOSS_CLASSES",
    "class_loss_of",
    "gradient_loss_of",
    "is_registered",
    "loss_names",
    "loss_table",
    "parameters_of",
    "register_gradient_loss",
    "registered_loss",
    "regression_loss_of",
]

GRADIENT_LOSSES: dict[str, GradientLoss] = {}
LOSS_CLASSES: list[type[GradientLoss]] = []  # including variants for more than two classes

Class = TypeVar("Class", bound=type[GradientLoss])


def registered_loss(loss: Class) -> Class:
    """Register a class of losses: `loss=name` means an instance with default parameters.

    A second class of the same name in the same module is the variant that `with_classes` returns.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from margrove.ensemble.gradient.losses import (
    ...     GRADIENT_LOSSES, SquaredError, gradient_loss_of, registered_loss)
    >>> @registered_loss
    ... @dataclass(frozen=True)
    ... class Scaled(SquaredError):
    ...     factor: float = 2.0
    ...     name = "scaled"
    ...     summary = "numbers; predicts means"
    >>> gradient_loss_of("scaled", factor=3.0)
    Scaled(factor=3.0)
    >>> del GRADIENT_LOSSES["scaled"]
    """
    if not dataclasses.is_dataclass(loss):
        raise TypeError(
            f"{loss.__name__} must be a frozen dataclass, whose fields are the parameters."
        )
    known = GRADIENT_LOSSES.get(_checked_name(loss.name))
    if known is None:
        GRADIENT_LOSSES[loss.name] = loss()
    elif type(known).__module__ != loss.__module__:
        raise _name_is_taken(loss.name)
    LOSS_CLASSES.append(loss)
    return loss


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be a string that is not empty. Got {name!r}.")
    return name


def _name_is_taken(name: str) -> ValueError:
    return ValueError(f"A loss named {name!r} exists already: {sorted(GRADIENT_LOSSES)}.")


def is_registered(loss: GradientLoss) -> bool:
    """Whether a loss can be made again from its name and parameters."""
    known = GRADIENT_LOSSES.get(loss.name)
    return type(known) is type(loss) and gradient_loss_of(loss.name, **parameters_of(loss)) == loss


def parameters_of(loss: GradientLoss) -> dict[str, Any]:
    """The parameters of a loss, by name; a loss made of functions has none."""
    fields: Any = dataclasses.fields(loss)  # type: ignore[arg-type]
    if any(field.name == "name" for field in fields):
        return {}
    return {field.name: getattr(loss, field.name) for field in fields}


def loss_table() -> str:
    """The losses that are registered, as a table in Markdown, for the documentation."""
    rows = ["| `loss=` | parameters | what it is for |", "|---|---|---|"]
    for name, loss in GRADIENT_LOSSES.items():
        default = " (default)" if loss.is_usual else ""
        parameters = ", ".join(f"`{parameter}`" for parameter in parameters_of(loss))
        rows.append(f'| `"{name}"`{default} | {parameters} | {loss.summary} |')
    return "\n".join(rows)


def loss_names(*, for_classes: bool) -> list[str]:
    """The names of the registered losses for a task."""
    return [name for name, loss in GRADIENT_LOSSES.items() if loss.for_classes == for_classes]


def gradient_loss_of(
    loss: str | GradientLoss, *, n_classes: int | None = None, **parameters: Any
) -> GradientLoss:
    """The loss of a name with these parameters, or the given loss.

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
    unknown = sorted(set(parameters) - {field.name for field in dataclasses.fields(loss)})
    if unknown:
        raise ValueError(
            f"loss={loss.name!r} has no parameter {unknown[0]!r}. Leave it out, or use another "
            "loss."
        )
    changed: GradientLoss = dataclasses.replace(loss, **parameters)
    return changed


def regression_loss_of(loss: str | GradientLoss) -> GradientLoss:
    """The loss for the parameter `loss` of a regressor; raises if it is for classification."""
    usable = _usable(gradient_loss_of(loss))
    if usable.for_classes:
        names = loss_names(for_classes=False)
        raise ValueError(f"loss={usable.name!r} is for classification. Use one of {names}.")
    return usable


def class_loss_of(loss: str | GradientLoss, n_classes: int) -> GradientLoss:
    """The loss for the parameter `loss` of a classifier; raises if it is for regression."""
    usable = _usable(gradient_loss_of(loss))
    if not usable.for_classes:
        names = loss_names(for_classes=True)
        raise ValueError(f"loss={usable.name!r} is for regression. Use one of {names}.")
    return usable.with_classes(n_classes)


def _usable(loss: GradientLoss) -> GradientLoss:
    if isinstance(loss, CustomLoss):
        loss.require_numbers()
    return loss


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
    summary: str = "",
) -> GradientLoss:
    """Register your own loss, which can then be used as `loss=name`.

    A model file contains its name only: register it before you load the model in another process.

    Parameters
    ----------
    name : str
        A new name.
    value, gradient, hessian : callable
        Functions of two numbers `(y, raw)`: the loss of a row with the raw score `raw`, and its
        first and second derivative with respect to `raw`; the latter must be >= 0. They are
        compiled with Numba, unless they already are.
    link_inverse : callable, optional
        The prediction for a raw score; it is compiled as well. By default raw scores are
        predictions or, with `for_classes`, logarithms of odds.
    start : callable, optional
        `start(y, weight)` returns the raw score before the first round, from two arrays. By default
        it is the constant at which the sum of the gradients is 0.
    leaf_value : callable, optional
        `leaf_value(residuals, weights)` returns the value of a leaf from the arrays y - raw and
        weights of its rows. By default it is a Newton step.
    for_classes : bool, default=False
        Whether it is for two classes: y is 0 or 1, and predictions are probabilities of 1.
    summary : str, optional
        A line for menus that describes the loss.

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
    if _checked_name(name) in GRADIENT_LOSSES:
        raise _name_is_taken(name)
    GRADIENT_LOSSES[name] = GradientLoss.of_functions(
        value,
        gradient,
        hessian,
        link_inverse=link_inverse,
        start=start,
        leaf_value=leaf_value,
        for_classes=for_classes,
        name=name,
        summary=summary,
    )
    return GRADIENT_LOSSES[name]
