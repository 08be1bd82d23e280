"""Losses of gradient boosting in model files: names in the registry of losses, and parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

from margrove.ensemble.gradient.losses import (
    GRADIENT_LOSSES,
    LOSS_CLASSES,
    GradientLoss,
    gradient_loss_of,
    is_registered,
    parameters_of,
)
from margrove.exceptions import ModelFileError
from margrove.exchange.model_file.checks import (
    Check,
    Sizes,
    mapping,
    plain,
    real,
    refuse_unless,
    text,
    whole,
)
from margrove.exchange.model_file.kinds import Part

__all__ = ["LOSS_PARTS", "REGISTERED_LOSS", "is_loss"]

REGISTERED_LOSS = "registered loss"


def is_loss(value: Any, where: str, sizes: Sizes) -> None:
    """A check: the value is a loss."""
    refuse_unless(isinstance(value, GradientLoss), f"{where} is a {type(value).__name__}")


def _check_of(field: dataclasses.Field[Any]) -> Check:
    return whole(field.metadata.get("least", 0)) if isinstance(field.default, int) else real()


def _part_of_class(loss: Any) -> Part:
    return Part(
        f"{loss.__module__}:{loss.__qualname__}",
        {field.name: _check_of(field) for field in dataclasses.fields(loss)},
    )


def _take(loss: GradientLoss) -> dict[str, Any]:
    return {"name": loss.name, "parameters": parameters_of(loss)}


def _make(values: dict[str, Any]) -> GradientLoss:
    name, parameters = values["name"], values["parameters"]
    if name not in GRADIENT_LOSSES:
        raise ModelFileError(
            f"The model was fitted with the loss {name!r}, which is not registered here: a model "
            "file contains its name, not its code. Register it "
            f"(margrove.register_gradient_loss({name!r}, ...)) before loading."
        )
    try:
        found = gradient_loss_of(name, **parameters)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"Another loss {name!r} is registered here: {error}") from error
    refuse_unless(is_registered(found), f"the loss {name!r} is not registered by its name")
    return found


# Losses of margrove are named by their classes, all others by their names in the registry.
LOSS_PARTS: dict[str, Part] = {
    f"loss {loss.__name__}": _part_of_class(loss)
    for loss in LOSS_CLASSES
    if loss.__module__.startswith("margrove.")
} | {
    REGISTERED_LOSS: Part(
        "margrove.ensemble.gradient.losses:GradientLoss",
        {"name": text(), "parameters": mapping(plain)},
        take=_take,
        make=_make,
    )
}
