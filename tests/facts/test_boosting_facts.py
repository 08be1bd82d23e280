"""What is said about boosted models is true: rounds, bounds, sizes, and rules in words."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier

from margrove import AdaBoostClassifier, DecisionTreeClassifier, RandomForestClassifier
from margrove.datasets import load_boosting_points, load_iris
from margrove.exceptions import NotFittedError
from margrove.facts import BoostingFacts, describe, is_described, margin_distributions, stump_rules

POINTS, SIGNS = load_boosting_points(return_X_y=True)
IRIS, CODES = load_iris(return_X_y=True)
STUMP = DecisionTreeClassifier(max_depth=1, criterion="error")
WORDS = ["card", "collect", "please"]
COUNTS = sp.csr_array(np.array([[2, 0, 0], [1, 0, 3], [0, 1, 0], [0, 2, 1], [0, 0, 1], [0, 0, 0]]))
KINDS = ["CallingCard"] * 2 + ["Collect"] * 2 + ["Other"] * 2


@pytest.fixture(scope="module")
def three():
    return AdaBoostClassifier(STUMP, n_estimators=3).fit(POINTS, SIGNS)


# -- describe ------------------------------------------------------------------------------------


def test_ten_points(three) -> None:
    facts = describe(three, POINTS, SIGNS)
    assert isinstance(facts, BoostingFacts)
    assert (facts.n_rounds, facts.n_rounds_run, facts.n_members) == (3, 3, 3)
    assert facts.outcome == "complete"
    assert facts.outcome_in_words == "all rounds were made"
    assert (facts.algorithm, facts.learner) == ("samme", "DecisionTreeClassifier")
    assert facts.learner_parameters["criterion"] == "error"
    assert facts.betas.round(2).tolist() == [0.42, 0.65, 0.92]
    assert facts.training_error == 0.0
    assert facts.bound == three.history_.bound[-1] < facts.edge_bound
    assert facts.validation_error is None
    assert facts.n_nodes == 9
    assert facts.importances.sum() == pytest.approx(1.0)
    assert [feature.name for feature in facts.strongest] == ["x0", "x1"]
    margins = three.margins(POINTS, SIGNS)
    assert (facts.least_margin, facts.median_margin) == (margins.min(), np.median(margins))
    assert describe(three).least_margin is None


@pytest.mark.parametrize(
    ("model", "n_members", "n_nodes", "has_bound"),
    [
        (AdaBoostClassifier(n_estimators=5), 5, 15, False),
        (AdaBoostClassifier(n_estimators=4, algorithm="logit"), 12, 36, False),
        (AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4), 4, None, False),
        (
            AdaBoostClassifier(
                DecisionTreeClassifier(max_depth=2), n_estimators=3, algorithm="m1", resample=True,
                random_state=0,
            ),
            3, None, True,
        ),
    ],
)  # fmt: skip
def test_sizes_of_all_kinds_of_members(model, n_members, n_nodes, has_bound) -> None:
    facts = describe(model.fit(IRIS, CODES))
    trees = [tree for own in model for tree in (own if isinstance(own, list) else [own])]
    assert facts.n_members == len(trees) == n_members
    assert facts.n_nodes == sum(len(tree.arrays_) for tree in trees)
    assert n_nodes in (None, facts.n_nodes)
    assert (facts.bound is not None) == has_bound
    assert json.loads(json.dumps(facts.as_dict()))["n_nodes"] == facts.n_nodes


def test_strangers_have_neither_nodes_nor_importances() -> None:
    model = AdaBoostClassifier(KNeighborsClassifier(9), n_estimators=3, random_state=0)
    facts = describe(model.fit(IRIS[:, :2], CODES == 1))
    assert (facts.n_nodes, facts.importances, facts.strongest) == (None, None, ())
    assert facts.learner == "KNeighborsClassifier"


def test_figures_are_those_of_the_rounds_that_are_kept() -> None:
    model = AdaBoostClassifier(
        n_estimators=300, early_stopping=True, n_iter_no_change=5, random_state=0
    ).fit(IRIS[:, :2], CODES)
    facts = describe(model)
    assert facts.outcome == "early stopping"
    assert facts.n_rounds == len(model) == len(facts.errors) < facts.n_rounds_run
    last = len(model) - 1
    assert facts.validation_error == model.history_.validation_error[last]
    assert facts.validation_error == model.history_.validation_error.min()
    assert facts.training_error == model.history_.training_error[last]


def test_only_fitted_models_are_described() -> None:
    assert is_described(AdaBoostClassifier())
    with pytest.raises(NotFittedError):
        describe(AdaBoostClassifier())
    with pytest.raises(NotFittedError):
        stump_rules(AdaBoostClassifier())


def test_margins_in_their_order(three) -> None:
    (found,) = margin_distributions(three, POINTS, SIGNS)
    assert (found.n_rounds, found.is_bounded) == (3, True)
    assert np.array_equal(found.margins, np.sort(three.margins(POINTS, SIGNS)))
    assert found.shares[[0, -1]].tolist() == [0.1, 1.0]


# -- rules ---------------------------------------------------------------------------------------


def test_rules_of_ten_points(three) -> None:
    found = stump_rules(three, feature_names=["width", "height"])
    assert [rule.text for rule in found] == [
        "if height <= 6, say -1, else 1",
        "if width <= 7.5, say 1, else -1",
        "if width <= 2.5, say 1, else -1",
    ]
    assert [rule.weight for rule in found] == pytest.approx(three.history_.beta[::-1])
    first = found[0]
    assert (first.feature, first.index, first.threshold) == ("height", 1, 6.0)
    assert (first.left, first.right, first.n_rounds) == (-1, 1, 1)
    assert len(stump_rules(three, n=1)) == 1


@pytest.mark.parametrize("criterion", ["gini", "error"])
def test_two_classes_are_decided_by_the_rules_alone(criterion) -> None:
    """Rounds put together say what they said one by one."""
    stump = DecisionTreeClassifier(max_depth=1, criterion=criterion)
    y = CODES == 1
    model = AdaBoostClassifier(stump, n_estimators=80).fit(IRIS, y)
    found = stump_rules(model, n=1000)
    assert sum(rule.n_rounds for rule in found) <= 80
    assert len(found) < 80
    score = np.zeros(150)
    for rule in found:
        column = 0.0 if rule.index is None else IRIS[:, rule.index]
        threshold = 0.0 if rule.threshold is None else rule.threshold
        said = np.where(column <= threshold, rule.left, rule.right)
        score += rule.weight * np.where(said, 1.0, -1.0)
    betas = model.history_.beta.sum()
    assert np.allclose(score, betas * model.decision_function(IRIS) / 2.0)
    weights = [rule.weight for rule in found]
    assert weights == sorted(weights, reverse=True)


def test_words_occur() -> None:
    model = AdaBoostClassifier(n_estimators=6).fit(COUNTS, KINDS)
    texts = {rule.text for rule in stump_rules(model, feature_names=WORDS, X=COUNTS)}
    assert {"if 'card' occurs, say CallingCard", "if 'collect' occurs, say Collect"} <= texts
    assert texts == {rule.text for rule in stump_rules(model, feature_names=WORDS)}
    plain = stump_rules(model)[0]  # without names, a threshold is a number
    assert plain.text.startswith(f"if {plain.feature} <= 0.5, say ")


def test_weighted_counts_occur_where_the_rows_show_it() -> None:
    weighted = COUNTS * 0.3
    model = AdaBoostClassifier(n_estimators=1).fit(weighted, KINDS)
    rule = stump_rules(model, feature_names=WORDS)[0]
    assert rule.text.startswith(f"if {rule.feature} <= 0.15, say ")
    assert " occurs, say " in stump_rules(model, feature_names=WORDS, X=weighted)[0].text
    shifted = weighted.toarray() + 0.1  # nothing is zero any more
    model = AdaBoostClassifier(n_estimators=1).fit(shifted, KINDS)
    assert " occurs" not in stump_rules(model, feature_names=WORDS, X=shifted)[0].text


def test_labels_and_missing_values() -> None:
    table = pd.DataFrame({"colour": list("rgb") * 6, "size": [1.0, 2.0, np.nan] * 6})
    model = AdaBoostClassifier(n_estimators=3).fit(table, ["no", "yes", "no"] * 6)
    rule = stump_rules(model)[0]
    assert (rule.feature, rule.threshold) == ("colour", None)
    assert rule.text.startswith("if colour ")
    assert {rule.left, rule.right} == {"no", "yes"}


def test_a_rule_without_a_question() -> None:
    model = AdaBoostClassifier(n_estimators=1).fit(np.zeros((5, 1)), [1, 1, 1, 0, 0])
    (rule,) = stump_rules(model)
    assert (rule.text, rule.feature, rule.index) == ("always say 1", "", None)
    assert rule.weight == pytest.approx(model.history_.beta.sum())


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (AdaBoostClassifier(algorithm="gentle", n_estimators=2), "add numbers"),
        (AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=2), "of 7 nodes"),
        (
            AdaBoostClassifier(KNeighborsClassifier(), n_estimators=2, random_state=0),
            "KNeighborsClassifiers",
        ),
        (RandomForestClassifier(2), "takes an AdaBoostClassifier"),
    ],
)
def test_rules_want_stumps(model, match) -> None:
    y = (IRIS[:, 0] > 5.8) ^ (IRIS[:, 1] > 3)
    with pytest.raises(TypeError, match=match):
        stump_rules(model.fit(IRIS[:, :2], y))


@pytest.mark.parametrize("n", [0, 1.5, True])
def test_a_number_of_rules(three, n) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        stump_rules(three, n)
