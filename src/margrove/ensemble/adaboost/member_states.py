"""Members of boosted models as plain values for checkpoints, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import MisfitError, array_of
from margrove.ensemble.adaboost.members import TreeMembers
from margrove.ensemble.adaboost.stump_kernels import Stumps
from margrove.ensemble.bagging import fitted_values, refitted, require_keepable
from margrove.grove.serve import TreeForm

__all__ = ["members_like", "stumps_like", "values_of_members"]


def values_of_members(members: Any, learner: Any) -> list[Any]:
    """The members as plain values: a list for each round."""
    if isinstance(members, TreeMembers):
        return [[TreeForm.values(tree) for tree in trees] for trees in members.trees]
    require_keepable(learner._prototype)
    return [[fitted_values(model) for model in models] for models in members.fitted]


def members_like(members: Any, values: Any, learner: Any, n_features: int) -> Any:
    """Members of the same kind as `members` from their values; raises `MisfitError`."""
    if not isinstance(values, list):
        raise MisfitError("the members are not a list")
    if isinstance(members, TreeMembers):
        form = TreeForm(members.kind, n_features)
        trees = tuple(form.trees(trees_of_round) for trees_of_round in values)
        sizes = {len(trees_of_round) for trees_of_round in trees}
        if len(sizes) > 1 or 0 in sizes:
            raise MisfitError("rounds have different numbers of members, or none")
        return replace(members, trees=trees)
    prototype = learner._prototype
    fitted = tuple(
        [refitted(prototype, model, n_features) for model in models] for models in values
    )
    return replace(members, fitted=fitted)


def stumps_like(values: Any, n_values: list[int], n_classes: int) -> Stumps:
    """Stumps from their arrays; raises `MisfitError` if they are not valid.

    n_values is the number of different values of each feature.
    """
    if not isinstance(values, dict) or set(values) != set(Stumps._fields):
        raise MisfitError("an array of the stumps is missing")
    n = len(values["feature"])
    stumps = Stumps(
        array_of(values["feature"], np.int32, (n,), "feature"),
        array_of(values["code"], np.int64, (n,), "code"),
        array_of(values["classes"], np.int32, (n, 2), "classes"),
        array_of(values["shares"], np.float64, (n, 2, n_classes), "shares"),
        array_of(values["n_left"], np.int64, (n,), "n_left"),
        array_of(values["error"], np.float64, (n,), "error"),
        array_of(values["weight"], np.float64, (n,), "weight"),
        array_of(values["training_error"], np.float64, (n,), "training_error"),
    )
    is_split = stumps.feature >= 0
    last_code = np.array(n_values, np.int64)[np.clip(stumps.feature, 0, len(n_values) - 1)] - 1
    is_valid = (
        np.all((stumps.feature >= -1) & (stumps.feature < len(n_values)))
        and np.all(~is_split | ((stumps.code >= 0) & (stumps.code < last_code)))
        and np.all((stumps.classes >= 0) & (stumps.classes < n_classes))
        and np.all((stumps.error >= 0.0) & (stumps.error <= 1.0))
        and np.isfinite(stumps.weight).all()
    )
    if not is_valid:
        raise MisfitError("a stump has a feature, value or class that does not exist")
    return stumps
