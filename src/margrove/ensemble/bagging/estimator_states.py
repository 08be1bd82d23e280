"""Fitted members of ensembles as plain values, as in model files, and back: for checkpoints."""

from __future__ import annotations

from typing import Any

from margrove._runtime import MisfitError, NotCheckpointable
from margrove.exceptions import UnsavableModelError

__all__ = ["fitted_values", "refitted", "require_keepable"]


def require_keepable(prototype: Any) -> None:
    """Raise `NotCheckpointable` if fitted copies of an estimator cannot be saved."""
    fitted_values(prototype)


def fitted_values(model: Any) -> dict[str, Any]:
    """A model, fitted or not, as plain values; raises `NotCheckpointable` if it cannot be."""
    from margrove.exchange.model_file import values_of

    try:
        values: dict[str, Any] = values_of(model)
    except UnsavableModelError as reason:
        raise NotCheckpointable(f"in its members, {reason.where} is {reason.what}") from None
    return values


def refitted(prototype: Any, values: Any, n_features: int) -> Any:
    """The fitted copy of a prototype from its values; raises `MisfitError` if they do not fit."""
    from margrove.exchange.model_file import LEFT_OUT, model_of

    model = model_of(values)
    if type(model) is not type(prototype) or getattr(model, "n_features_in_", -1) != n_features:
        raise MisfitError("a member has another class or other features")
    params = prototype.get_params(deep=True)
    left_out = {k: value for k, value in params.items() if k.rpartition("__")[2] in LEFT_OUT}
    return model.set_params(**left_out)
