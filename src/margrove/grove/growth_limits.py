"""What limits the growth of a tree: the parameters that trees and forests share, as one value.

Stopping, the number of features that a split may choose from, and monotonic constraints. `rules`
turns them into what compiled code takes, for a given training set.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from margrove.grove.criteria import CRITERIA, powers_of_scale
from margrove.grove.grow import Rules
from margrove.grove.grow.search import ENTROPY, GAIN_RATIO, CustomSearch, log_table
from margrove.grove.table import Targets, TreeTable, monotonic_signs

__all__ = [
    "GREEDY_DEPTH",
    "GrowthLimits",
    "TrainingSize",
    "custom_search",
    "number_of_features",
    "number_of_leaves",
    "unscaled",
]

GREEDY_DEPTH = 500  # deeper nodes are split into halves


@dataclass(frozen=True)
class TrainingSize:
    """The size of a training set.

    n_samples      the number of samples that the rows stand for
    whole_weight   the weight of all rows, in units of `unit`
    real_weight    the weight of all rows as given
    counted        whether weights are whole numbers with a small sum
    """

    n_features: int
    n_outputs: int
    n_samples: int
    whole_weight: int
    real_weight: float
    unit: float
    counted: bool


@dataclass(frozen=True)
class GrowthLimits:
    """The parameters of an estimator that limit growth, under their names.

    monotone   int8 (d,) or (0,)  `monotonic_cst` as +1, -1 or 0 for each feature
    """

    criterion: str
    splitter: str
    max_depth: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    max_features: Any
    min_impurity_decrease: float
    monotone: np.ndarray

    @classmethod
    def of(
        cls, estimator: Any, table: TreeTable, targets: Targets, *, splitter: str
    ) -> GrowthLimits:
        """The limits of a tree or a forest, which has the parameters as attributes."""
        given = {
            name: getattr(estimator, name)
            for name in (
                "criterion", "max_depth", "min_samples_split", "min_samples_leaf",
                "min_weight_fraction_leaf", "max_features", "min_impurity_decrease",
            )
        }  # fmt: skip
        monotone = _signs_of(estimator, table, targets)
        return cls(**given, splitter=splitter, monotone=monotone)

    def is_random(self, n_features: int) -> bool:
        """Whether thresholds or features are drawn at random."""
        drawn = number_of_features(self.max_features, n_features) < n_features
        return self.splitter == "random" or drawn

    def rules(self, size: TrainingSize, scale: float = 1.0, seed: int = 0) -> Rules:
        """The limits for compiled code; targets were divided by `scale`, and seed is an int64."""
        criterion = CRITERIA[self.criterion]
        table, log_scale = np.zeros(1, np.int64), 1.0
        if criterion.code in (ENTROPY, GAIN_RATIO) and size.counted:
            table, log_scale = log_table(size.whole_weight, size.n_outputs)
        min_leaf = _number_of_samples(self.min_samples_leaf, size.n_samples, 1)
        min_split = _number_of_samples(self.min_samples_split, size.n_samples, 2)
        min_weight = self.min_weight_fraction_leaf * size.real_weight / size.unit
        if not size.counted:  # the sum of the weights is rounded
            min_weight -= 1e-9 * min_weight
        min_decrease = self.min_impurity_decrease * size.real_weight * size.n_outputs
        return Rules(
            criterion=criterion.code,
            counted=size.counted,
            table=table,
            scale=log_scale,
            min_samples_split=max(min_split, 2 * min_leaf),
            min_samples_leaf=min_leaf,
            min_weight=int(np.ceil(min_weight)),
            max_depth=min(self.max_depth or 2**31, 2**31),
            # Splits into halves would violate monotonic constraints.
            greedy_depth=2**31 if len(self.monotone) else GREEDY_DEPTH,
            min_decrease=unscaled(min_decrease, scale, criterion.code),
            max_features=number_of_features(self.max_features, size.n_features),
            random=self.splitter == "random",
            monotone=self.monotone,
            at_zero=criterion.targets != "all",
            seed=seed,
        )


def number_of_features(max_features: Any, n_features: int) -> int:
    """How many features a split may choose from: `max_features` as a number."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(max_features, Integral):
        return int(min(int(max_features), n_features))
    return max(1, int(max_features * n_features))


def number_of_leaves(max_leaf_nodes: int | None, n_rows: int) -> int:
    """`max_leaf_nodes` as a number: 0 for no limit, and never more than the rows."""
    return 0 if max_leaf_nodes is None else int(min(max_leaf_nodes, max(2, n_rows)))


def _number_of_samples(given: float, n_samples: int, least: int) -> int:
    """A number of samples from a count or from a share of all samples."""
    if isinstance(given, Integral):
        return int(min(int(given), n_samples + 1))
    return max(least, int(np.ceil(given * n_samples)))


def unscaled(decrease: float, scale: float, code: int) -> float:
    """An impurity in the units of targets that were divided by `scale`.

    code is that of the criterion's compiled score.
    """
    for _ in range(powers_of_scale(code) if scale != 1.0 else 0):
        decrease /= scale
    return decrease


def _signs_of(estimator: Any, table: TreeTable, targets: Targets) -> np.ndarray:
    """`monotonic_cst` as +1, -1 or 0 for each feature; empty if there is none."""
    if estimator.monotonic_cst is None:
        return np.empty(0, np.int8)
    signs = monotonic_signs(estimator.monotonic_cst, table, estimator)
    if len(targets.starts) > 2:
        raise ValueError("Monotonicity constraints are not supported with multiple output")
    if len(targets.labels) and targets.starts[-1] > 2:
        raise ValueError(
            "Monotonicity constraints are not supported with multiclass classification"
        )
    if len(targets.labels) and targets.starts[-1] < 2:
        raise ValueError("Monotonicity constraints need two classes; y has one.")
    if CRITERIA[estimator.criterion].has_medians:
        raise ValueError(f"Monotonicity constraints are not supported by {estimator.criterion}.")
    return signs if signs.any() else np.empty(0, np.int8)


def custom_search(criterion: str, *, n_outputs: int, constrained: bool) -> CustomSearch | None:
    """The search for a criterion that is a function; None for built-in criteria.

    constrained: whether there are monotonic constraints.
    """
    entry = CRITERIA[criterion]
    if entry.impurity is None:
        return None
    usual = "gini" if entry.for_classes else "squared_error"
    for refused, what, way_out in (
        (n_outputs > 1, f"y of {n_outputs} outputs", "fit a model for each output"),
        (constrained, "monotonic_cst", "leave monotonic_cst out"),
    ):
        if refused:
            raise ValueError(
                f"criterion={criterion!r} is a registered function and cannot have {what}. "
                f"Use criterion={usual!r}, or {way_out}."
            )
    return CustomSearch(entry.impurity, tuple(entry.parameters.values()), entry.for_classes)
