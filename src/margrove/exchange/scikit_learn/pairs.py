"""How one class of estimators is converted, and the parameters that both libraries have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

from margrove.exchange.model_file import class_at
from margrove.exchange.scikit_learn.replacements import PUBLIC_HOMES, original

__all__ = ["Pair", "class_of", "columns_of", "no_settings", "parameters_for"]


def no_settings(model: Any) -> dict[str, Any]:
    """No settings, for models whose parameters mean the same in both libraries."""
    return {}


def _nothing_to_compare(theirs: Any, ours: Any) -> None:
    """No comparison, for models that are determined by their attributes."""


@dataclass(frozen=True)
class Pair:
    """A class of scikit-learn and its counterpart in margrove.

    theirs, ours                    where the classes are, "module:name"
    read, write                     the fitted attributes for our class, and for theirs
    read_settings, write_settings   the parameters that are not simply copied
    compare                         raises an error if the predictions of the two models differ
    """

    theirs: str
    ours: str
    read: Callable[[Any], dict[str, Any]]
    write: Callable[[Any], dict[str, Any]]
    read_settings: Callable[[Any], dict[str, Any]] = no_settings
    write_settings: Callable[[Any], dict[str, Any]] = no_settings
    compare: Callable[[Any, Any], None] = _nothing_to_compare


def class_of(home: str) -> Any:
    """The class at "module:name": that of scikit-learn, even while it is patched."""
    name = home.partition(":")[2]
    is_public = home == f"{PUBLIC_HOMES.get(name)}:{name}"
    return original(name) if is_public else class_at(home)


def parameters_for(wanted: Any, model: Any) -> dict[str, Any]:
    """The parameters of a model that the class `wanted` has and allows."""
    known = set(wanted._get_param_names()) & set(wanted._parameter_constraints)
    given = model.get_params(deep=False).items()
    return {name: value for name, value in given if name in known and _allows(wanted, name, value)}


def _allows(wanted: Any, name: str, value: Any) -> bool:
    constraint = {name: wanted._parameter_constraints[name]}
    try:
        validate_parameter_constraints(constraint, {name: value}, wanted.__name__)
    except InvalidParameterError:
        return False
    return True


def columns_of(model: Any) -> dict[str, Any]:
    """The attributes of an estimator about the columns of X."""
    known = {"n_features_in_": int(model.n_features_in_)}
    if hasattr(model, "feature_names_in_"):
        known["feature_names_in_"] = model.feature_names_in_
    return known
