"""Nodes, rules, regions and explanations say what the tree does."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from tests.grove.hand_made import (
    HOSTILE_NAMES,
    HandMadeClassifier,
    HandMadeRegressor,
    arrays,
    chain,
    model_of,
    prediction_of,
    random_model,
    random_rows,
    shares_of_leaves,
    value_of_row,
)

from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.datasets import load_iris
from margrove.exceptions import DataWarning
from margrove.grove.read.conditions import Condition, number_text, shown
from margrove.grove.read.tree_reading import explain, leaf_probabilities, read_tree, regions, rules
from margrove.grove.serve.tree_arrays import LEAF, MULTIWAY, OBLIQUE, SUBSET, THRESHOLD

DEPTH = 20_000
ALL_KINDS = (THRESHOLD, SUBSET, MULTIWAY, OBLIQUE)


def weather():
    """Quinlan's: play tennis? A row whose outlook is missing goes all ways."""
    nodes = [
        {"kind": MULTIWAY, "feature": 0, "branches": [0, 1, 2], "children": [1, 4, 5],
         "missing": -1, "weight": 14.0, "samples": 14, "value": [5 / 14, 9 / 14]},
        {"kind": THRESHOLD, "feature": 1, "threshold": 77.5, "children": [2, 3], "missing": 1,
         "weight": 5.0, "samples": 5, "value": [0.6, 0.4]},
        {"kind": LEAF, "weight": 2.0, "samples": 2, "value": [0.0, 1.0]},
        {"kind": LEAF, "weight": 3.0, "samples": 3, "value": [1.0, 0.0]},
        {"kind": LEAF, "weight": 4.0, "samples": 4, "value": [0.0, 1.0]},
        {"kind": SUBSET, "feature": 2, "branches": [0, 1, 1], "children": [6, 7], "missing": 0,
         "weight": 5.0, "samples": 5, "value": [0.4, 0.6]},
        {"kind": LEAF, "weight": 3.0, "samples": 3, "value": [0.0, 1.0]},
        {"kind": LEAF, "weight": 2.0, "samples": 2, "value": [1.0, 0.0]},
    ]  # fmt: skip
    return model_of(
        arrays(nodes, n_features=3),
        n_features=3,
        names=["outlook", "humidity", "wind"],
        categories={0: ["sunny", "overcast", "rain"], 2: ["none", "some", "strong"]},
        classes=[["no", "yes"]],
    )


def squares():
    """Four numbers in the plane, one of them where only missing values go."""
    nodes = [
        {"kind": THRESHOLD, "feature": 0, "threshold": 5.0, "children": [1, 4], "value": [0.0]},
        {"kind": THRESHOLD, "feature": 0, "threshold": 3.0, "children": [2, 3], "value": [1.0]},
        {"kind": LEAF, "value": [2.0]},
        {"kind": LEAF, "value": [4.0]},
        {"kind": THRESHOLD, "feature": 1, "threshold": math.inf, "missing": 1, "children": [5, 6],
         "value": [-1.0]},
        {"kind": LEAF, "value": [8.0]},
        {"kind": LEAF, "value": [16.0]},
    ]  # fmt: skip
    return model_of(arrays(nodes, n_features=2), n_features=2)


# -- nodes ---------------------------------------------------------------------------------------


def test_nodes_are_read_with_their_names() -> None:
    tree = read_tree(weather())
    assert tree.feature_names == ("outlook", "humidity", "wind")
    assert tree.categories == {
        "outlook": ("sunny", "overcast", "rain"),
        "wind": ("none", "some", "strong"),
    }
    assert tree.outputs == (("no", "yes"),)
    assert (tree.n_outputs, tree.criterion, tree.depth) == (1, "gini", 2)
    root, humid = tree.nodes[:2]
    assert (root.parent, root.depth, root.samples, root.weight) == (None, 0, 14, 14.0)
    assert root.question.text == "outlook"
    assert root.question.kind == "multiway"
    assert root.question.children == (1, 4, 5)
    assert [branch.text for branch in root.question.conditions] == [
        "outlook = sunny",
        "outlook = overcast",
        "outlook = rain",
    ]
    assert root.shares == {"no": 5 / 14, "yes": 9 / 14}
    assert root.prediction == "yes"
    assert (humid.parent, humid.depth, humid.question.text) == (0, 1, "humidity <= 77.5")
    assert [leaf.number for leaf in tree.leaves] == [2, 3, 4, 6, 7]
    assert all(leaf.question is None for leaf in tree.leaves)


def test_conditions_say_where_missing_values_go() -> None:
    tree = read_tree(weather())
    shares = [branch.missing for branch in tree.nodes[0].question.conditions]
    assert shares == [5 / 14, 4 / 14, 5 / 14]
    assert [c.in_words(show_missing=True) for c in tree.nodes[1].question.conditions] == [
        "humidity <= 77.5",
        "humidity > 77.5 or missing",
    ]
    first = tree.nodes[0].question.conditions[0]
    assert first.in_words(show_missing=True) == "outlook = sunny or missing (share 0.357)"


def test_columns_without_names_are_numbered_and_regressors_have_numbers() -> None:
    tree = read_tree(squares())
    assert tree.feature_names == ("x0", "x1")
    assert tree.outputs == ()
    assert tree.nodes[2].prediction == 2.0
    assert tree.nodes[2].shares is None
    known, missing = tree.nodes[4].question.conditions
    assert (known.text, missing.text) == ("x1 is known", "x1 is missing")


def test_several_outputs_are_tuples() -> None:
    model = random_model(1, kinds=ALL_KINDS, outputs="two")
    value = model.arrays_.value
    for node in read_tree(model).nodes:
        assert node.prediction == prediction_of(model, value[node.number])
        first, second = node.shares
        assert list(first.values()) + list(second.values()) == value[node.number].tolist()
        assert (set(first), set(second)) == ({"a", "b"}, {10, 20, 30})


def test_of_equal_shares_the_first_class_wins() -> None:
    tree = arrays([{"kind": LEAF, "value": [0.25, 0.375, 0.375]}], n_features=1)
    model = model_of(tree, n_features=1, classes=[["a", "b", "c"]])
    assert read_tree(model).nodes[0].prediction == "b"
    (only,) = rules(model)
    assert (only.text, only.share, only.coverage) == ("always: b", 0.375, 1.0)


def test_a_weighted_sum_is_a_question() -> None:
    coef = [0.5, 0.0, -2.0]
    nodes = [
        {"kind": OBLIQUE, "coef": coef, "threshold": 1.25, "children": [1, 2]},
        {"kind": LEAF},
        {"kind": LEAF},
    ]
    model = model_of(arrays(nodes, n_features=3), n_features=3)
    question = read_tree(model).nodes[0].question
    assert question.text == "0.500 x0 - 2.000 x2 <= 1.25"
    assert question.number is None
    assert question.conditions[1].coefficients == (0.5, 0.0, -2.0)
    assert [rule.conditions[0].text for rule in rules(model)] == [
        "0.500 x0 - 2.000 x2 <= 1.25",
        "0.500 x0 - 2.000 x2 > 1.25",
    ]


def test_leaf_probabilities() -> None:
    assert leaf_probabilities(weather()) == {
        2: {"no": 0.0, "yes": 1.0},
        3: {"no": 1.0, "yes": 0.0},
        4: {"no": 0.0, "yes": 1.0},
        6: {"no": 0.0, "yes": 1.0},
        7: {"no": 1.0, "yes": 0.0},
    }
    with pytest.raises(TypeError, match="leaf_probabilities takes a classifier"):
        leaf_probabilities(squares())


def test_only_fitted_trees_can_be_read() -> None:
    with pytest.raises(NotFittedError):
        read_tree(HandMadeClassifier())
    with pytest.raises(NotFittedError):
        read_tree(HandMadeRegressor())
    with pytest.raises(TypeError, match="decision tree of margrove is needed"):
        read_tree(SVC().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(TypeError, match="Got dict"):
        rules({})


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_become_literals(name) -> None:
    text = shown(name)
    assert text.isprintable()
    assert text == name or eval(text) == name


def test_harmless_names_stay_as_they_are_and_long_ones_are_cut() -> None:
    for name in ("petal length (cm)", "größe", "x0", "Ω-3"):
        assert shown(name) == name
    assert shown("") == "''"
    assert shown(" padded") == "' padded'"
    assert shown(3) == "3"
    assert len(shown("a" * 1_000_000)) < 100
    assert len(shown("\n" * 1_000_000)) < 400


def test_small_numbers_do_not_read_as_zero() -> None:
    assert number_text(2.3499999999999996) == "2.35"
    assert number_text(1e9 + 0.5) == "1000000000.5"
    assert number_text(2.0, 3) == "2.000"
    assert number_text(0.0, 2) == "0.00"
    assert number_text(-1.25e-7, 3) == "-1.25e-07"
    assert number_text(1e300, 3) == "1e+300"
    assert number_text(0.3, 0) == "0.3"


def test_texts_of_many_categories_are_cut_but_the_labels_are_kept() -> None:
    labels = tuple(f"c{k}" for k in range(100))
    condition = Condition("x", 0, "categories", categories=labels, seen=labels)
    assert condition.text.startswith("x in {c0, c1, ")
    assert condition.text.endswith(", and 88 more}")
    assert len(condition.categories) == 100


# -- rules ---------------------------------------------------------------------------------------


def test_rules_of_the_weather() -> None:
    assert [rule.text for rule in rules(weather())] == [
        "outlook = sunny and humidity <= 77.5: yes",
        "outlook = sunny and humidity > 77.5: no",
        "outlook = overcast: yes",
        "outlook = rain and wind = none: yes",
        "outlook = rain and wind in {some, strong}: no",
    ]
    first = rules(weather())[0]
    assert (first.leaf, first.samples, first.share, first.coverage) == (2, 2, 1.0, 2 / 14)


def test_conditions_on_a_feature_are_merged() -> None:
    assert [rule.text for rule in rules(squares())] == [
        "x0 <= 3: 2",
        "3 < x0 <= 5: 4",
        "x0 > 5 and x1 is known: 8",
        "x0 > 5 and x1 is missing: 16",
    ]
    assert [rule.conditions[0].missing for rule in rules(squares())] == [1.0, 0.0, 0.0, 0.0]


def test_sets_on_a_feature_are_merged() -> None:
    nodes = [
        {"kind": SUBSET, "feature": 0, "branches": [0, 0, 0, 1], "children": [1, 4], "missing": 0},
        {"kind": SUBSET, "feature": 0, "branches": [0, 1], "children": [2, 3], "missing": 1},
        {"kind": LEAF},
        {"kind": LEAF},
        {"kind": LEAF},
    ]
    model = model_of(arrays(nodes, n_features=1), n_features=1, categories={0: list("abcd")})
    assert [rule.conditions[0].categories for rule in rules(model)] == [
        ("a",),
        ("b", "c"),  # the second node has not seen c
        ("d",),
    ]


def share_of(condition, model, row):
    """How much of a row passes a condition of a rule."""
    if condition.kind == "sum":
        value = sum(c * x for c, x in zip(condition.coefficients, row, strict=True) if c)
    else:
        value = row[condition.number]
    if np.isnan(value):
        return condition.missing
    if condition.kind != "categories":
        return float(condition.low < value <= condition.high)
    label = model.categories_[condition.number][int(value)]
    if label not in condition.seen:
        return condition.missing
    return float(label in condition.categories)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_rules_are_where_rows_go(seed, shared) -> None:
    model = random_model(seed, kinds=ALL_KINDS, shared=shared, n_splits=20)
    found = rules(model)
    for row in model._rows(random_rows(seed, model, 40)):
        expected = shares_of_leaves(model.arrays_, row)
        passes = {
            rule.leaf: math.prod(share_of(condition, model, row) for condition in rule.conditions)
            for rule in found
        }
        assert {leaf for leaf, share in passes.items() if share} == set(expected)
        for leaf, share in expected.items():
            assert passes[leaf] == pytest.approx(share, rel=1e-12)
        assert shared or len(expected) == 1


def test_a_feature_is_asked_once_in_a_rule() -> None:
    for seed in range(5):
        model = random_model(seed, kinds=(THRESHOLD, SUBSET), n_splits=40)
        for rule in rules(model):
            asked = [condition.number for condition in rule.conditions]
            assert len(set(asked)) == len(asked)


# -- regions -------------------------------------------------------------------------------------


def test_regions_are_rectangles() -> None:
    found = regions(squares())
    inf = math.inf
    assert [(r.leaf, r.low, r.high, r.prediction) for r in found] == [
        (2, (-inf, -inf), (3.0, inf), 2.0),
        (3, (3.0, -inf), (5.0, inf), 4.0),
        (5, (5.0, -inf), (inf, inf), 8.0),  # node 6 is for missing values only
    ]


@pytest.mark.parametrize("seed", range(10))
def test_every_point_lies_in_the_region_of_its_leaf(seed) -> None:
    model = random_model(seed, kinds=[THRESHOLD], n_features=3, n_splits=15)
    found = regions(model)
    points = np.random.default_rng(seed).integers(-1, 10, size=(60, 3)) / 4
    for point in points:
        around = [
            region
            for region in found
            if all(a < x <= b for a, x, b in zip(region.low, point, region.high, strict=True))
        ]
        assert [region.leaf for region in around] == list(shares_of_leaves(model.arrays_, point))
        assert around[0].value == tuple(model.arrays_.value[around[0].leaf])


def test_trees_of_categories_have_no_regions() -> None:
    with pytest.raises(ValueError, match="subset, multiway splits"):
        regions(weather())


# -- explanations --------------------------------------------------------------------------------


def test_an_explanation_of_the_weather() -> None:
    told = explain(weather(), ["sunny", 90.0, "none"])
    assert told.prediction == "no"
    assert [step.condition.text for step in told.steps] == ["outlook = sunny", "humidity > 77.5"]
    assert [(step.node, step.child, step.share) for step in told.steps] == [
        (0, 1, 1.0),
        (1, 3, 1.0),
    ]
    assert told.base == (5 / 14, 9 / 14)
    assert told.value == (1.0, 0.0)
    assert told.contributions == {
        "outlook": pytest.approx((0.6 - 5 / 14, 0.4 - 9 / 14)),
        "humidity": pytest.approx((0.4, -0.4)),
    }
    (path,) = told.paths
    assert (path.leaf, path.share, path.steps) == (3, 1.0, told.steps)
    assert told.text == "no\nbecause\n  outlook = sunny\n  humidity > 77.5"


def test_a_missing_value_goes_all_ways() -> None:
    told = explain(weather(), [None, 90.0, None])
    assert [(path.leaf, path.share) for path in told.paths] == [
        (3, pytest.approx(5 / 14)),
        (4, pytest.approx(4 / 14)),
        (6, pytest.approx(5 / 14)),
    ]
    assert told.paths[2].text == "outlook is missing and wind is missing"
    assert told.value == pytest.approx((5 / 14, 9 / 14))
    assert told.prediction == "yes"
    assert "with share 0.286 because\n  outlook is missing" in told.text


def test_a_category_that_a_node_has_not_seen_is_unknown() -> None:
    nodes = [
        {"kind": MULTIWAY, "feature": 0, "branches": [0, -1, 1], "children": [1, 2], "missing": 1},
        {"kind": LEAF, "value": [1.0]},
        {"kind": LEAF, "value": [2.0]},
    ]
    model = model_of(arrays(nodes, n_features=1), n_features=1, categories={0: list("abc")})
    assert explain(model, ["b"]).steps[0].condition.text == "x0 is unknown"
    assert explain(model, [None]).steps[0].condition.text == "x0 is missing"
    assert explain(model, ["b"]).value == (2.0,)


@pytest.mark.parametrize("outputs", ["classes", "two", "number", "numbers"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_contributions_sum_up(seed, shared, outputs) -> None:
    model = random_model(seed, kinds=ALL_KINDS, shared=shared, outputs=outputs)
    tree = model.arrays_
    rows = random_rows(seed, model, 15)
    for row, numbers in zip(rows, model._rows(rows), strict=True):
        told = explain(model, row)
        expected = value_of_row(tree, numbers)
        assert told.value == pytest.approx(expected, abs=1e-12)
        assert told.base == tuple(tree.value[0])
        total = np.sum([*told.contributions.values(), told.base], axis=0)
        assert total == pytest.approx(expected, abs=1e-12)
        shares = {path.leaf: path.share for path in told.paths}
        assert shares == pytest.approx(shares_of_leaves(tree, numbers), rel=1e-12)
        for path in told.paths:
            nodes = [0, *(step.child for step in path.steps)]
            assert [step.node for step in path.steps] == nodes[:-1]
            assert nodes[-1] == path.leaf
        if len(told.paths) == 1:
            assert told.prediction == prediction_of(model, expected)


def test_a_row_may_be_a_mapping_or_a_table_of_one_row() -> None:
    row = {"wind": "none", "outlook": "sunny", "humidity": 90.0, "play": "no"}
    by_name = explain(weather(), row)
    assert by_name == explain(weather(), ["sunny", 90.0, "none"])
    assert by_name == explain(weather(), [["sunny", 90.0, "none"]])
    assert by_name == explain(weather(), np.array([["sunny", 90.0, "none"]], dtype=object))
    with pytest.raises(ValueError, match="x has no value for wind"):
        explain(weather(), {"outlook": "sunny", "humidity": 1.0})
    with pytest.raises(ValueError, match="x must be one row"):
        explain(weather(), [["sunny", 90.0, "none"]] * 2)
    with pytest.raises(ValueError, match="x is infinite at humidity"):
        explain(weather(), ["sunny", math.inf, "none"])


def test_a_tree_of_one_leaf_explains_itself() -> None:
    tree = arrays([{"kind": LEAF, "value": [3.5]}], n_features=1)
    told = explain(model_of(tree, n_features=1), [0.0])
    assert (told.value, told.base, told.contributions) == ((3.5,), (3.5,), {})
    assert [(path.leaf, path.share) for path in told.paths] == [(0, 1.0)]
    assert told.text == "3.5\nbecause\n  of all rows"


# -- depth ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("left_is_deep", [False, True])
def test_a_chain_is_read_to_its_end(left_is_deep) -> None:
    model = chain(DEPTH, n_features=2, left_is_deep=left_is_deep)
    tree = read_tree(model)
    assert tree.depth == DEPTH
    assert len(tree.leaves) == DEPTH + 1
    found = rules(model)
    assert len(found) == DEPTH + 1
    assert all(len(rule.conditions) <= 2 for rule in found)
    deepest = found[0] if left_is_deep else found[-1]
    assert deepest.text == (
        "x0 <= 2 and x1 <= 1: b" if left_is_deep else "x0 > 19998 and x1 > 19999: b"
    )
    told = explain(model, [-1.0, -1.0] if left_is_deep else [1e9, 1e9])
    assert len(told.steps) == DEPTH
    assert told.value == (0.25, 0.75)
    total = np.sum([*told.contributions.values(), told.base], axis=0)
    assert total == pytest.approx(told.value)
    assert len(leaf_probabilities(model)) == DEPTH + 1


def test_a_chain_has_its_regions() -> None:
    found = regions(chain(DEPTH))
    assert len(found) == DEPTH + 1
    assert found[1].low == (0.0,)
    assert found[1].high == (1.0,)


# -- fitted trees --------------------------------------------------------------------------------


def table(seed):
    """Labels and numbers with gaps, and what depends on them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "outlook": rng.choice(["sunny", "rain", "overcast"], 120),
            "humidity": rng.normal(size=120).round(2),
            "wind": rng.choice(["it's", "none"], 120),
        }
    )
    is_dry = (frame["outlook"] == "sunny") ^ (frame["humidity"] > 0.3)
    y = np.where(is_dry, "dry", np.where(rng.random(120) < 0.3, "dry", "wet"))
    for column in ("outlook", "humidity"):
        frame.loc[rng.random(120) < 0.15, column] = None
    return frame, y


@pytest.mark.parametrize("split", ["binary", "multiway"])
@pytest.mark.parametrize("seed", range(3))
def test_a_fitted_tree_is_explained_as_it_predicts(seed, split) -> None:
    frame, y = table(seed)
    model = DecisionTreeClassifier(categorical_features="from_dtype", split=split).fit(frame, y)
    probabilities, labels = model.predict_proba(frame), model.predict(frame)
    for i in range(len(frame)):
        told = explain(model, frame.iloc[i])
        assert told == explain(model, frame.iloc[[i]])
        assert told.value == tuple(probabilities[i])
        assert told.prediction == labels[i]
        total = np.sum([*told.contributions.values(), told.base], axis=0)
        assert total == pytest.approx(told.value, abs=1e-12)
    assert [rule.leaf for rule in rules(model)] == list(leaf_probabilities(model))


def test_an_unknown_label_is_missing_and_says_so() -> None:
    frame, y = table(0)
    model = DecisionTreeClassifier(categorical_features="from_dtype").fit(frame, y)
    row = {"outlook": "hail", "humidity": 0.0, "wind": "none"}
    with pytest.warns(DataWarning, match="hail"):
        told = explain(model, row)
    assert told == explain(model, row | {"outlook": None})


def test_numbers_without_names_are_explained() -> None:
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=4).fit(X, y)
    for row, prediction in zip(X[::10], model.predict(X[::10]), strict=True):
        assert explain(model, row).prediction == prediction
        assert explain(model, row.tolist()).prediction == prediction


def test_the_weights_of_rules_cover_all_rows() -> None:
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_leaf_nodes=6).fit(X[:, 2:], y)
    found = rules(model)
    assert math.fsum(rule.coverage for rule in found) == pytest.approx(1.0)
    assert sum(rule.samples for rule in found) == len(X)
    leaves = model.apply(X[:, 2:])
    for region in regions(model):
        inside = np.all((X[:, 2:] > region.low) & (X[:, 2:] <= region.high), axis=1)
        assert np.array_equal(inside, leaves == region.leaf)
