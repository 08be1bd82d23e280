"""What is said about forests and bags is true: sizes, out-of-bag figures, importances, errors."""

from __future__ import annotations

import dataclasses
import json
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier as Stranger
from sklearn.metrics import balanced_accuracy_score

import margrove
from margrove import (
    SVC,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from margrove.datasets import load_iris
from margrove.exceptions import InvalidDataError, NotFittedError
from margrove.facts import (
    BaggingFacts,
    ForestFacts,
    describe,
    interval_coverage,
    is_described,
    out_of_bag_curve,
    outline,
    proximity_plane,
    ranked_importances,
)

IRIS, CODES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[CODES]
WIDTHS = IRIS[:, 3] + 0.1 * np.random.default_rng(0).standard_normal(150)
TWO_LABELS = np.column_stack([CODES, IRIS[:, 0] > 5.8])
TWO_TARGETS = np.column_stack([WIDTHS, IRIS[:, 2]])
TABLE = pd.DataFrame(IRIS[:, :3], columns=["length", "width", "petal"]).assign(kind=list("ab") * 75)

FORESTS = {
    "classes": (RandomForestClassifier(20, oob_score=True, random_state=0), IRIS, SPECIES),
    "hard": (RandomForestClassifier(5, voting="hard", max_depth=2, random_state=0), IRIS, SPECIES),
    "numbers": (
        RandomForestRegressor(20, oob_score=True, max_samples=0.5, random_state=0),
        IRIS[:, :3], WIDTHS,
    ),
    "labels": (RandomForestClassifier(5, random_state=0), TABLE, SPECIES),
    "extra": (ExtraTreesClassifier(5, max_features=None, random_state=0), IRIS, SPECIES),
    "extra numbers": (ExtraTreesRegressor(5, random_state=0), IRIS[:, :3], WIDTHS),
    "two labels": (RandomForestClassifier(5, random_state=0), IRIS, TWO_LABELS),
    "two targets": (
        RandomForestRegressor(30, oob_score=True, random_state=0), IRIS[:, :2], TWO_TARGETS
    ),
    "one leaf": (RandomForestClassifier(3, random_state=0), IRIS, np.zeros(150, int)),
}  # fmt: skip
BAGS = {
    "trees": (BaggingClassifier(n_estimators=20, oob_score=True, random_state=0), IRIS, SPECIES),
    "machines": (BaggingClassifier(SVC(), 3, max_samples=0.5, random_state=0), IRIS, SPECIES),
    "numbers": (BaggingRegressor(n_estimators=4, random_state=0), IRIS[:, :3], WIDTHS),
    "columns": (
        BaggingClassifier(
            n_estimators=4, max_features=3, bootstrap_features=True, voting="hard", random_state=0
        ),
        IRIS, SPECIES,
    ),
    "two targets": (BaggingRegressor(n_estimators=4, random_state=0), IRIS[:, :2], TWO_TARGETS),
}  # fmt: skip
all_forests = pytest.mark.parametrize("name", FORESTS)
all_bags = pytest.mark.parametrize("name", BAGS)


@cache
def forest_of(name):
    model, X, y = FORESTS[name]
    return model.fit(X, y)


@cache
def bag_of(name):
    model, X, y = BAGS[name]
    return model.fit(X, y)


# -- describe ------------------------------------------------------------------------------------


@all_forests
def test_sizes_are_those_of_the_trees(name) -> None:
    forest = forest_of(name)
    facts = describe(forest)
    assert isinstance(facts, ForestFacts)
    assert is_described(forest)
    assert facts.n_members == len(forest) == facts.parameters["n_estimators"]
    for told, sizes in (
        (facts.depth, [tree.get_depth() for tree in forest]),
        (facts.leaves, [tree.get_n_leaves() for tree in forest]),
        (facts.nodes, [len(tree.arrays_) for tree in forest]),
    ):
        assert told.by_member.tolist() == sizes
        assert (told.least, told.most) == (min(sizes), max(sizes))
        assert told.mean == pytest.approx(np.mean(sizes))
    assert facts.n_bytes >= 20 * sum(facts.nodes.by_member)


def test_a_forest_of_classes_takes_twenty_bytes_a_node() -> None:
    facts = describe(forest_of("classes"))
    pure = [tree for tree in forest_of("classes").trees_ if not len(tree.values)]
    assert facts.n_bytes == sum(tree.nbytes for tree in forest_of("classes").trees_)
    assert all(tree.nbytes == 20 * len(tree) for tree in pure)


def test_what_the_forest_was_asked_for() -> None:
    facts = describe(forest_of("classes"))
    assert (facts.criterion, facts.thresholds, facts.max_features) == ("gini", "best", 2)
    assert (facts.bootstrap, facts.n_samples, facts.n_draws) == (True, 150, 150)
    assert facts.parameters["oob_score"] is True
    half = describe(forest_of("numbers"))
    assert (half.criterion, half.max_features, half.n_draws) == ("squared_error", 3, 75)
    extra = describe(forest_of("extra"))
    assert (extra.thresholds, extra.max_features) == ("drawn", 4)
    assert (extra.bootstrap, extra.n_samples, extra.n_draws) == (False, 150, None)
    assert describe(forest_of("two targets")).n_outputs == 2


def test_how_members_are_heard() -> None:
    assert describe(forest_of("classes")).voting == "soft"
    assert describe(forest_of("hard")).voting == "hard"
    assert describe(forest_of("hard")).answer == "the class with the most votes of the trees"
    assert describe(forest_of("numbers")).voting == "mean"
    assert describe(forest_of("numbers")).answer == "the mean of the trees"
    assert describe(bag_of("trees")).voting == "soft"
    assert describe(bag_of("machines")).voting == "hard"  # as asked, "soft", cannot be done
    assert describe(bag_of("numbers")).answer == "the mean of the estimators"


def test_rows_without_weight_are_no_samples() -> None:
    weight = np.r_[np.zeros(10), np.full(140, 2.0)]
    forest = RandomForestClassifier(3, random_state=0).fit(IRIS, SPECIES, weight)
    facts = describe(forest, IRIS, SPECIES, weight)
    assert (facts.n_samples, facts.n_draws) == (140, 140)  # the scale of weights does not matter
    bag = BaggingClassifier(n_estimators=3, random_state=0).fit(IRIS, SPECIES, weight)
    assert (describe(bag).n_samples, describe(bag).n_draws) == (140, 280)


def test_figures_out_of_bag() -> None:
    forest = forest_of("classes")
    told = describe(forest).out_of_bag
    assert (told.score, told.score_name) == (forest.oob_score_, "accuracy")
    assert np.array_equal(told.curve, forest.oob_curve_)
    assert told.error == forest.oob_curve_[-1] == pytest.approx(1.0 - told.score)
    assert (told.error_name, told.n_unscored) == ("share misclassified", 0)
    numbers = describe(forest_of("numbers")).out_of_bag
    assert (numbers.score_name, numbers.error_name) == ("R²", "mean squared error")
    assert describe(forest_of("hard")).out_of_bag is None
    assert (
        describe(forest_of("two targets")).out_of_bag.score == forest_of("two targets").oob_score_
    )
    bag = describe(bag_of("trees")).out_of_bag
    assert bag.score == bag_of("trees").oob_score_
    assert (bag.curve, bag.error) == (None, None)


def test_rows_that_every_tree_has_seen_are_counted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forest = RandomForestRegressor(2, oob_score=True, random_state=0).fit(IRIS[:, :3], WIDTHS)
    unscored = np.isnan(forest.oob_prediction_).sum()
    assert describe(forest).out_of_bag.n_unscored == unscored > 0


def test_a_score_of_ones_own_has_its_name() -> None:
    model = RandomForestClassifier(20, oob_score=balanced_accuracy_score, random_state=0)
    told = describe(model.fit(IRIS, SPECIES)).out_of_bag
    assert (told.score_name, told.score) == ("balanced_accuracy_score", model.oob_score_)
    with_auto = RandomForestClassifier("auto", max_depth=1, random_state=0).fit(IRIS, SPECIES)
    told = describe(with_auto).out_of_bag
    assert told.score is None
    assert len(told.curve) == len(with_auto)


@all_forests
def test_importances_are_those_of_the_forest(name) -> None:
    forest = forest_of(name)
    facts = describe(forest)
    assert np.array_equal(facts.importances, forest.feature_importances_)
    weights = [feature.weight for feature in facts.strongest]
    assert weights == sorted(facts.importances[facts.importances > 0], reverse=True)
    columns = [feature.index for feature in facts.strongest]
    assert np.array_equal(facts.importances[columns], weights)
    if name == "labels":
        assert facts.strongest[0].name == "petal"


def test_importances_of_a_bag_are_the_mean_of_its_members() -> None:
    bag = bag_of("trees")
    mean = np.mean([tree.feature_importances_ for tree in bag], axis=0)
    assert describe(bag).importances == pytest.approx(mean)
    drawn = bag_of("columns")
    total = np.zeros(4)
    for tree, columns in zip(drawn.estimators_, drawn.estimators_features_, strict=True):
        for column, importance in zip(columns, tree.feature_importances_, strict=True):
            total[column] += importance
    assert describe(drawn).importances == pytest.approx(total / total.sum())
    facts = describe(bag_of("machines"))
    assert (facts.importances, facts.strongest) == (None, ())


@pytest.mark.parametrize(
    ("models", "given", "name"),
    [(forest_of, FORESTS, name) for name in FORESTS] + [(bag_of, BAGS, name) for name in BAGS],
)
def test_the_training_error_is_that_of_the_predictions(models, given, name) -> None:
    model = models(name)
    _, X, y = given[name]
    weight = np.linspace(0.0, 1.0, 150)
    predicted = model.predict(X)
    if hasattr(model, "classes_"):
        losses, words = predicted != y, "share misclassified"
    else:
        losses, words = (predicted - y) ** 2, "mean squared error"
    losses = np.asarray(losses, dtype=float).reshape(150, -1).mean(axis=1)
    facts = describe(model, X, y)
    assert facts.training_error == pytest.approx(losses.mean())
    assert facts.training_error_name == words
    weighted = describe(model, X, y, weight).training_error
    assert weighted == pytest.approx(np.average(losses, weights=weight))
    assert describe(model).training_error is None


def test_other_targets_than_those_of_the_training_are_refused() -> None:
    with pytest.raises(InvalidDataError, match=r"2 column\(s\), but this RandomForestClassifier"):
        describe(forest_of("classes"), IRIS, TWO_LABELS)
    with pytest.raises(InvalidDataError, match=r"shape \(150, 2\)"):
        describe(forest_of("numbers"), IRIS[:, :3], TWO_TARGETS)
    unknown = np.where(SPECIES == "setosa", "rose", SPECIES)
    assert describe(forest_of("classes"), IRIS, unknown).training_error > 0.3


@all_bags
def test_bags_tell_of_their_members(name) -> None:
    bag = bag_of(name)
    facts = describe(bag)
    assert isinstance(facts, BaggingFacts)
    assert facts.n_members == len(bag)
    assert facts.member == type(bag.estimators_[0]).__name__
    assert facts.n_columns == len(bag.estimators_features_[0])
    if name == "machines":
        assert (facts.depth, facts.n_bytes, facts.n_draws) == (None, None, 75)
        assert facts.member_parameters["kernel"] == "rbf"
    else:
        assert facts.depth.by_member.tolist() == [tree.get_depth() for tree in bag]
        assert facts.leaves.by_member.tolist() == [tree.get_n_leaves() for tree in bag]
        assert facts.nodes.most == max(len(tree.arrays_) for tree in bag)
        assert facts.n_bytes > 20 * facts.nodes.by_member.sum()


@pytest.mark.parametrize(
    ("models", "name"),
    [(forest_of, name) for name in FORESTS] + [(bag_of, name) for name in BAGS],
)
def test_facts_go_through_json_and_contain_the_outline(models, name) -> None:
    model = models(name)
    facts = describe(model)
    back = json.loads(json.dumps(facts.as_dict(), allow_nan=False))
    assert back == facts.as_dict()
    assert set(back) == {field.name for field in dataclasses.fields(facts)}
    if facts.importances is not None:
        with pytest.raises(ValueError, match="read-only"):
            facts.importances[...] = 0
    if name == "two labels":
        assert [own.tolist() for own in facts.classes] == [[0, 1, 2], [0, 1]]
        return
    told = outline(model)
    for field in dataclasses.fields(told):
        assert np.array_equal(getattr(facts, field.name), getattr(told, field.name))


def test_parts_and_sums_of_forests_know_less() -> None:
    forest = forest_of("classes")
    both = describe(forest[:5] + forest[10:])
    assert (both.n_members, both.n_samples, both.n_draws, both.out_of_bag) == (15, None, None, None)
    part = describe(forest[3:8])
    assert np.array_equal(part.nodes.by_member, describe(forest).nodes.by_member[3:8])


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(NotFittedError):
        describe(RandomForestClassifier())
    with pytest.raises(NotFittedError):
        describe(BaggingRegressor())
    with pytest.raises(TypeError, match=r"describe takes .*BaggingClassifier, .* of margrove"):
        describe(Stranger(2).fit(IRIS, SPECIES))


def test_other_pictures_of_forests_still_work() -> None:
    from matplotlib.figure import Figure

    forest = RandomForestClassifier(5, random_state=0).fit(IRIS[:, :2], SPECIES)
    ax = margrove.plot.decision_boundary(
        forest, IRIS[:, :2], SPECIES, resolution=20, ax=Figure().subplots()
    )
    assert {part.get_gid() for part in ax.collections} >= {"regions", "data"}
    assert "support" not in {part.get_gid() for part in ax.collections}


# -- the error as a forest grows -----------------------------------------------------------------


def test_the_curve_has_an_error_for_each_number_of_trees() -> None:
    forest = forest_of("numbers")
    curve = out_of_bag_curve(forest)
    assert curve.n_trees.tolist() == list(range(1, 21))
    assert np.array_equal(curve.errors, forest.oob_curve_)
    assert curve.error_name == "mean squared error"


def test_without_a_curve_one_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match="Fit it with oob_score=True"):
        out_of_bag_curve(forest_of("hard"))
    with pytest.raises(ValueError, match="Fit it with bootstrap=True and oob_score=True"):
        out_of_bag_curve(forest_of("extra"))
    with pytest.raises(ValueError, match="Slices and sums of forests have no curve"):
        out_of_bag_curve(forest_of("classes")[:5])
    with pytest.raises(TypeError, match="random forest with max_features=None"):
        out_of_bag_curve(bag_of("trees"))
    with pytest.raises(TypeError, match="Got SVC"):
        out_of_bag_curve(SVC())
    with pytest.raises(NotFittedError):
        out_of_bag_curve(RandomForestClassifier())


# -- features by importance ----------------------------------------------------------------------


def test_importances_are_ranked() -> None:
    forest = forest_of("classes")
    found = ranked_importances(forest, n=3)
    order = np.argsort(-forest.feature_importances_)[:3]
    assert found.columns.tolist() == order.tolist()
    assert found.names == tuple(f"x{j}" for j in order)
    assert np.array_equal(found.values, forest.feature_importances_[order])
    assert (found.low, found.high, found.interval, found.n_features) == (None, None, "", 4)
    assert ranked_importances(forest_of("labels")).names[0] == "petal"
    assert ranked_importances(bag_of("trees")).n_features == 4
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS, SPECIES)
    assert ranked_importances(tree, feature_names=["a", "b", "c", "d"]).names[0] == "c"


def test_studies_bring_intervals() -> None:
    forest = forest_of("classes")
    study = margrove.oob_importances(forest, IRIS, SPECIES, confidence_level=0.8, random_state=0)
    found = ranked_importances(study)
    assert list(found.names) == study.ranking
    for told, own in ((found.values, study.mean), (found.low, study.low), (found.high, study.high)):
        assert np.array_equal(told, own[found.columns])
    assert (found.interval, found.measure[:4]) == ("80 % intervals", "rise")
    other = ranked_importances(margrove.oob_impurity_importances(forest, IRIS, SPECIES))
    assert other.measure == "out-of-bag decrease of the impurity"
    drops = margrove.permutation_importances(forest, IRIS, SPECIES, n_repeats=2)
    shuffled = ranked_importances(drops)
    assert shuffled.high - shuffled.low == pytest.approx(2 * drops.spread[shuffled.columns])


def test_of_equals_the_first_column_comes_first_and_losses_come_last() -> None:
    found = ranked_importances([0.1, -0.3, 0.5, 0.1])
    assert found.columns.tolist() == [2, 0, 3, 1]
    assert (found.measure, found.names[0]) == ("importance", "x2")


@pytest.mark.parametrize("n", [0, 2.5, True])
def test_numbers_of_features_are_whole(n) -> None:
    with pytest.raises(ValueError, match="whole number of features"):
        ranked_importances([1.0], n)


def test_what_has_no_importances_is_refused() -> None:
    with pytest.raises(TypeError, match=r"permutation_importances\(model, X, y\)"):
        ranked_importances(bag_of("machines"))
    with pytest.raises(NotFittedError):
        ranked_importances(RandomForestClassifier())
    with pytest.raises(TypeError, match="Got str"):
        ranked_importances("petal")
    for wrong in ([[1.0]], [], [1.0, np.nan]):
        with pytest.raises(InvalidDataError, match="one finite number for each feature"):
            ranked_importances(wrong)
    with pytest.raises(InvalidDataError, match="one name for each of the 4 features"):
        ranked_importances(forest_of("classes"), feature_names=["a"])


# -- rows in a plane -----------------------------------------------------------------------------


def test_points_show_the_proximities_as_well_as_a_plane_can() -> None:
    forest = forest_of("classes")
    plane = proximity_plane(forest, IRIS, SPECIES)
    alike = margrove.proximities(forest, IRIS)
    centre = np.eye(150) - 1.0 / 150
    lengths, axes = np.linalg.eigh(centre @ alike @ centre)
    best = (axes[:, -2:] * lengths[-2:]) @ axes[:, -2:].T
    assert plane.points @ plane.points.T == pytest.approx(best, abs=1e-10)
    assert plane.shares == pytest.approx(lengths[[-1, -2]] / lengths.sum())
    assert plane.points.sum(axis=0) == pytest.approx([0.0, 0.0], abs=1e-10)
    assert np.all(plane.points.max(axis=0) >= -plane.points.min(axis=0) - 1e-12)
    assert np.array_equal(np.array(plane.classes)[plane.codes], SPECIES)
    assert plane.targets is None


def test_distances_of_few_leaves_are_exact() -> None:
    """Three leaves are three points, whose distances a plane holds."""
    forest = RandomForestClassifier(1, bootstrap=False, max_leaf_nodes=3, random_state=0)
    forest.fit(IRIS, SPECIES)
    plane = proximity_plane(forest, IRIS)
    squares = np.sum((plane.points[:, None] - plane.points[None]) ** 2, axis=2)
    assert squares == pytest.approx(2.0 * (1.0 - margrove.proximities(forest, IRIS)), abs=1e-9)
    assert sum(plane.shares) == pytest.approx(1.0)
    assert plane.codes is None


def test_one_row_and_equal_rows_have_a_place() -> None:
    for rows in (IRIS[:1], np.repeat(IRIS[:1], 5, axis=0)):
        plane = proximity_plane(forest_of("classes"), rows)
        assert np.array_equal(plane.points, np.zeros((len(rows), 2)))
        assert plane.shares == (0.0, 0.0)


def test_targets_and_limits_of_planes() -> None:
    plane = proximity_plane(forest_of("numbers"), IRIS[:, :3], WIDTHS)
    assert np.array_equal(plane.targets, WIDTHS)
    assert (plane.codes, plane.classes) == (None, ())
    with pytest.raises(ValueError, match=r"the limit is 5000. Use some of them: X\[::2\]"):
        proximity_plane(forest_of("classes"), np.zeros((5001, 4)))
    with pytest.raises(InvalidDataError, match="not among the classes"):
        proximity_plane(forest_of("classes"), IRIS[:1], ["rose"])
    with pytest.raises(TypeError, match="Got DecisionTreeClassifier"):
        proximity_plane(DecisionTreeClassifier(), IRIS)


# -- prediction intervals ------------------------------------------------------------------------


def test_intervals_are_those_of_the_forest_in_order() -> None:
    forest, X = forest_of("numbers"), IRIS[:, :3]
    told = interval_coverage(forest, X, WIDTHS, coverage=0.7, method="conformal")
    bounds = forest.predict_interval(X, 0.7, method="conformal")
    assert sorted(told.rows.tolist()) == list(range(150))
    assert np.all(np.diff(told.predictions) >= 0)
    assert np.array_equal(told.predictions, forest.predict(X)[told.rows])
    assert np.array_equal(np.column_stack([told.low, told.high]), bounds[told.rows])
    assert np.array_equal(told.truth, WIDTHS[told.rows])
    inside = (bounds[:, 0] <= WIDTHS) & (bounds[:, 1] >= WIDTHS)
    assert np.array_equal(told.is_inside, inside[told.rows])
    assert (told.found, told.asked) == (inside.mean(), 0.7)
    alone = interval_coverage(forest, X)
    assert (alone.truth, alone.is_inside, alone.found, alone.asked) == (None, None, None, 0.9)


def test_intervals_that_cannot_be_are_refused() -> None:
    with pytest.raises(TypeError, match="predicts classes"):
        interval_coverage(forest_of("classes"), IRIS)
    with pytest.raises(ValueError, match=r"Fit with oob_score=True"):
        interval_coverage(forest_of("extra numbers"), IRIS[:, :3])
    for wrong in (0, 1.0, "most"):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            interval_coverage(forest_of("numbers"), IRIS[:, :3], coverage=wrong)
    with pytest.raises(ValueError, match="method must be"):
        interval_coverage(forest_of("numbers"), IRIS[:, :3], method="guess")
    with pytest.raises(InvalidDataError, match="y"):
        interval_coverage(forest_of("numbers"), IRIS[:, :3], WIDTHS[:5])
