"""The parameters that limit growth mean the same to trees and to forests."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from margrove import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from margrove.grove.criteria import CRITERIA
from margrove.grove.grow.search.scores import ENTROPY
from margrove.grove.growth_limits import (
    GrowthLimits,
    TrainingSize,
    number_of_features,
    number_of_leaves,
    unscaled,
)
from margrove.grove.table.encoding import TreeTable
from margrove.grove.table.targets import class_targets, number_targets

TABLE = TreeTable(np.zeros((100, 9)), None, {})
ONES = np.ones(100)
LABELS = class_targets(np.arange(100)[:, None] % 2, [2], ONES, ONES.astype(np.int64))
NUMBERS = number_targets(np.arange(100.0)[:, None], ONES, ONES.astype(np.int64))
SIZE = TrainingSize(
    n_features=9, n_outputs=1, n_samples=100, whole_weight=100, real_weight=100.0, unit=1.0,
    counted=True,
)  # fmt: skip


def limits(model, targets=LABELS):
    return GrowthLimits.of(model, TABLE, targets, splitter="best")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, 9), ("sqrt", 3), ("log2", 3), (4, 4), (40, 9), (1.0, 9), (0.5, 4), (0.01, 1)],
)
def test_numbers_of_features(given, expected) -> None:
    assert number_of_features(given, 9) == expected
    assert limits(DecisionTreeClassifier(max_features=given)).is_random(9) == (expected < 9)


def test_numbers_of_leaves() -> None:
    assert number_of_leaves(None, 100) == 0
    assert number_of_leaves(7, 100) == 7
    assert number_of_leaves(7, 5) == 5
    assert number_of_leaves(7, 1) == 2


@pytest.mark.parametrize(
    ("tree", "forest", "targets", "options"),
    [
        (DecisionTreeClassifier, RandomForestClassifier, LABELS,
         {"criterion": "entropy", "min_samples_leaf": 0.1, "monotonic_cst": [1] + [0] * 8}),
        (DecisionTreeRegressor, RandomForestRegressor, NUMBERS,
         {"criterion": "poisson", "min_samples_split": 0.3, "max_depth": 4,
          "min_weight_fraction_leaf": 0.05, "min_impurity_decrease": 0.5}),
    ],
)  # fmt: skip
def test_trees_and_forests_agree(tree, forest, targets, options) -> None:
    one, other = (limits(cls(max_features="sqrt", **options), targets) for cls in (tree, forest))
    for own in fields(one):
        assert np.array_equal(getattr(one, own.name), getattr(other, own.name)), own.name
    found, theirs = one.rules(SIZE), other.rules(SIZE)
    assert all(np.array_equal(a, b) for a, b in zip(found, theirs, strict=True))


def test_shares_are_counted_of_what_a_tree_has() -> None:
    model = DecisionTreeClassifier(
        criterion="entropy", min_samples_leaf=0.0625, min_samples_split=0.25,
        min_weight_fraction_leaf=0.1, min_impurity_decrease=0.01,
    )  # fmt: skip
    rules = limits(model).rules(SIZE, seed=5)
    assert (rules.min_samples_leaf, rules.min_samples_split) == (7, 25)
    assert (rules.min_weight, rules.min_decrease, rules.seed) == (10, 1.0, 5)
    assert rules.criterion == ENTROPY
    assert len(rules.table) == 101


@pytest.mark.parametrize("name", [name for name, one in CRITERIA.items() if not one.for_classes])
def test_impurities_have_the_powers_of_their_scale(name) -> None:
    entry = CRITERIA[name]
    assert unscaled(1.0, 4.0, entry.code) == 0.25**entry.scale_powers
    model = DecisionTreeRegressor(max_depth=3)
    model.criterion = name  # the name that is deprecated, too
    y = np.arange(1.0, 41.0) % 7.0 + 0.5
    once, larger = (model.fit(np.arange(40.0)[:, None], y * k).arrays_.impurity[0] for k in (1, 8))
    assert larger == pytest.approx(once * 8.0**entry.scale_powers)


def test_constraints_of_several_classes_or_medians_are_refused() -> None:
    three = class_targets(np.arange(100)[:, None] % 3, [3], ONES, ONES.astype(np.int64))
    signs = {"monotonic_cst": [1] * 9}
    with pytest.raises(ValueError, match="multiclass"):
        limits(RandomForestClassifier(**signs), three)
    with pytest.raises(ValueError, match="not supported by absolute_error"):
        limits(RandomForestRegressor(criterion="absolute_error", **signs), NUMBERS)
