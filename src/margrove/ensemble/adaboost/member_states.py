"""Members of boosted models as plain values, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import MisfitError, array_of
from margrove.ensemble.adaboost.stumps import Stumps
from margrove.ensemble.adaboost.weak_learners import TreeMembers
from margrove.ensemble.bagging import fitted_values, refitted, require_keepable
from margrove.grove.serve import TreeForm

__all__ = ["members_like", "stumps_like", "values_of_members"]


def values_of_members(members: Any, learner: Any) -> list[Any]:
    """A list for each round."""
    if isinstance(members, TreeMembers):
        return [[TreeForm.values(tree) for tree in own] for own in members.trees]
    require_keepable(learner._prototype)
    return [[fitted_values(model) for model in own] for own in members.fitted]


def members_like(members: Any, values: Any, learner: Any, n_features: int) -> Any:
    """Members of the kind of others, as a learner makes them of so many features."""
    if not isinstance(values, list):
        raise MisfitError("the members are no list")
    if isinstance(members, TreeMembers):
        form = TreeForm(members.kind, n_features)
        trees = tuple(form.trees(own) for own in values)
        if len({len(own) for own in trees}) > 1 or any(not own for own in trees):
            raise MisfitError("a round has more members than another, or none")
        return replace(members, trees=trees)
    prototype = learner._prototype
    fitted = tuple([refitted(prototype, model, n_features) for model in own] for own in values)
    return replace(members, fitted=fitted)


def stumps_like(values: Any, n_values: list[int], n_classes: int) -> Stumps:
    """Stumps that part features of so many values, for so many classes."""
    if not isinstance(values, dict) or set(values) != set(Stumps._fields):
        raise MisfitError("the stumps lack an array")
    n = len(values["feature"])
    found = Stumps(
        array_of(values["feature"], np.int32, (n,), "feature"),
        array_of(values["code"], np.int64, (n,), "code"),
        array_of(values["classes"], np.int32, (n, 2), "classes"),
        array_of(values["shares"], np.float64, (n, 2, n_classes), "shares"),
        array_of(values["n_left"], np.int64, (n,), "n_left"),
        array_of(values["error"], np.float64, (n,), "error"),
        array_of(values["weight"], np.float64, (n,), "weight"),
        array_of(values["training_error"], np.float64, (n,), "training_error"),
    )
    is_split = found.feature >= 0
    last_code = np.array(n_values, np.int64)[np.clip(found.feature, 0, len(n_values) - 1)] - 1
    is_sound = (
        np.all((found.feature >= -1) & (found.feature < len(n_values)))
        and np.all(~is_split | ((found.code >= 0) & (found.code < last_code)))
        and np.all((found.classes >= 0) & (found.classes < n_classes))
        and np.all((found.error >= 0.0) & (found.error <= 1.0))
        and np.isfinite(found.weight).all()
    )
    if not is_sound:
        raise MisfitError("a stump asks for what is not there")
    return found
