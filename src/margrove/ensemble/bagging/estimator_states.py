"""Fitted members of ensembles as plain values, and back, as model files have them."""

from __future__ import annotations

from typing import Any

from margrove._runtime import MisfitError, Unkeepable
from margrove.exceptions import UnsavableModelError

__all__ = ["fitted_values", "refitted", "require_keepable"]


def require_keepable(prototype: Any) -> None:
    """Raise unless copies of an estimator can be kept once they are fitted."""
    fitted_values(prototype)


def fitted_values(model: Any) -> dict[str, Any]:
    """A model, fitted or not."""
    from margrove.exchange.model_file import values_of

    try:
        values: dict[str, Any] = values_of(model)
    except UnsavableModelError as reason:
        raise Unkeepable(f"of its members, {reason.where} is {reason.what}") from None
    return values


def refitted(prototype: Any, values: Any, n_features: int) -> Any:
    """A copy of the prototype that was fitted to so many features, from its values."""
    from margrove.exchange.model_file import LEFT_OUT, model_of

    model = model_of(values)
    if type(model) is not type(prototype) or getattr(model, "n_features_in_", -1) != n_features:
        raise MisfitError("a member is of another kind, or of other features")
    given = prototype.get_params(deep=True)
    left_out = {name: own for name, own in given.items() if name.rpartition("__")[2] in LEFT_OUT}
    return model.set_params(**left_out)
