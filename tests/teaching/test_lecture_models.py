"""Machines in the plane, members of bags, bootstrapped statistics and splits of the lectures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.tree import DecisionTreeClassifier as SklearnTree

import margrove
from margrove import BaggingClassifier, RandomForestClassifier
from margrove.datasets import (
    load_iris_ratios,
    load_play_tennis,
    load_restaurant,
    make_circles,
    make_gaussians,
    make_moons,
)
from margrove.exceptions import InvalidDataError
from margrove.teaching.facts.bagging import bagged_boundaries, bootstrap_histogram, member_votes
from margrove.teaching.facts.bayes import GaussianMixtures, svm_beside_bayes
from margrove.teaching.facts.machines import LECTURE_SETTINGS, machine_effects, squared_circle
from margrove.teaching.facts.splits import split_children, tree_growth

MOONS, SIDES = make_moons(80, noise=0.25, random_state=1, return_X_y=True)
NAMES = np.array(["left", "right"])[SIDES]


# -- machines ------------------------------------------------------------------------------------


def test_effects_are_those_of_the_machines_themselves() -> None:
    told = machine_effects(MOONS, NAMES, [(1.0, 0.5), (100.0, None)])
    frame = told.frame()
    for row, model in zip(frame.itertuples(), told.models, strict=True):
        assert row.n_support == len(model.support_)
        assert row.error == pytest.approx(1 - model.score(MOONS, SIDES))
        assert row.margin == pytest.approx(model.certificate_.machines[0].margin_width / 2)
    assert frame["kernel"].tolist() == ["rbf", "linear"]


def test_the_values_of_the_lectures() -> None:
    told = machine_effects(MOONS, NAMES)
    assert told.settings == (
        (1.0, 0.01), (1.0, 1.0), (1.0, 10.0), (1.0, 500.0), (2.0, 1.0), (10_000.0, 1.0),
        (10.0, 100.0), (10.0, 10_000.0),
    )  # fmt: skip
    by_setting = dict(zip(told.settings, told.n_support.tolist(), strict=True))
    assert by_setting[10.0, 10_000.0] == len(MOONS)  # large gamma: every row is a support vector
    errors = dict(zip(told.settings, told.errors.tolist(), strict=True))
    assert errors[10_000.0, 1.0] <= errors[2.0, 1.0]  # large C: little slack
    assert all(gamma is None for _, gamma in LECTURE_SETTINGS["linear"])


@pytest.mark.parametrize("settings", ["nonsense", [], 3, [1.0], [(1.0, 2.0, 3.0)]])
def test_settings_that_are_none(settings) -> None:
    with pytest.raises(ValueError, match="settings must"):
        machine_effects(MOONS, NAMES, settings)


def test_squares_turn_a_circle_into_a_line() -> None:
    X, y = make_circles(120, noise=0.05, return_X_y=True)
    told = squared_circle(X, y)
    assert told.n_wrong == 0
    assert np.array_equal(told.squares, X**2)
    frame = told.frame()
    assert ((frame["f"] > 0) == (y == 1)).all()
    assert np.sign(told.weights[0]) == np.sign(told.weights[1])  # an ellipse
    ratio = told.weights[0] / told.weights[1]
    assert 0.7 < ratio < 1.4  # nearly a circle
    radius = np.sqrt(-told.intercept / told.weights.mean())
    assert 0.5 < radius < 1.0  # between the circles


# -- the best classifier -------------------------------------------------------------------------


def test_log_odds_are_those_of_the_densities() -> None:
    mixtures = GaussianMixtures.of_the_lectures(4)
    X, _ = mixtures.sample(50, 0)
    densities = [
        sum(multivariate_normal(c, 0.2 * np.eye(2)).pdf(X) for c in own) for own in mixtures.centres
    ]
    assert mixtures.log_odds(X) == pytest.approx(np.log(densities[1] / densities[0]))


def test_nothing_beats_the_bayes_classifier() -> None:
    told = svm_beside_bayes(resolution=40, random_state=1)
    assert told.bayes_error < told.test_error
    assert 0.8 < told.agreement < 1.0
    frame = told.frame()
    assert frame["machine"].to_numpy() == pytest.approx(
        told.model.decision_function(frame[["x", "y"]].to_numpy())
    )


def test_given_densities_are_asked() -> None:
    gaussians = make_gaussians(300, random_state=0)
    told = svm_beside_bayes(
        gaussians.data, gaussians.target, gaussians.bayes_decision, resolution=30
    )
    frame = told.frame()
    assert frame["bayes"].to_numpy() == pytest.approx(2 * frame["x"])  # equal round Gaussians
    assert told.bayes_error is None
    assert gaussians.bayes_error == pytest.approx(norm.cdf(-1.0))


def test_densities_that_are_none() -> None:
    with pytest.raises(ValueError, match="belong together"):
        svm_beside_bayes(MOONS, NAMES)
    with pytest.raises(TypeError, match="callable"):
        svm_beside_bayes(MOONS, NAMES, 3)
    with pytest.raises(InvalidDataError, match="a number for each row"):
        svm_beside_bayes(MOONS, NAMES, lambda rows: rows)
    with pytest.raises(TypeError, match="decision_function"):
        svm_beside_bayes(estimator=SklearnTree())
    with pytest.raises(ValueError, match="resolution must be"):
        svm_beside_bayes(resolution=1)


# -- members -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bag():
    return BaggingClassifier(n_estimators=15, random_state=0).fit(MOONS, NAMES)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(15, max_depth=3, random_state=0).fit(MOONS, NAMES)


def test_members_and_vote_are_those_of_the_bag(bag) -> None:
    told = bagged_boundaries(bag, MOONS, NAMES, n_members=4, resolution=25)
    grid = np.column_stack([np.tile(told.x, 25), np.repeat(told.y, 25)])
    assert told.members.shape == (4, 25, 25)
    for member, columns, said in zip(
        bag.estimators_, bag.estimators_features_, told.members, strict=False
    ):
        assert np.array_equal(member.predict(grid[:, columns]), said.ravel())
    assert np.array_equal(bag.classes_[told.vote.ravel()], bag.predict(grid))
    assert told.frame()["vote"].tolist() == bag.predict(grid).tolist()
    assert told.agreement.min() >= 0.0
    assert told.n_members == 15


def test_members_of_a_forest_and_of_three_classes(forest) -> None:
    told = bagged_boundaries(forest, MOONS, NAMES, n_members=50, resolution=10)
    assert len(told.members) == 15
    X, y = load_iris_ratios(return_X_y=True)
    three = RandomForestClassifier(5, random_state=0).fit(X, y)
    assert set(np.unique(bagged_boundaries(three, X, y, resolution=30).vote)) == {0, 1, 2}


def test_average_and_vote_of_a_row(forest) -> None:
    told = member_votes(forest, MOONS[3], label="right")
    assert told.average == pytest.approx(forest.predict_proba(MOONS[3:4])[0, 1])
    each = [tree.predict_proba(MOONS[3:4])[0, 1] for tree in forest.estimators_]
    assert told.probabilities == pytest.approx(each)
    assert told.share == pytest.approx(np.mean(np.array(each) > 0.5), abs=0.2)
    assert member_votes(forest, MOONS[3]).label == forest.predict(MOONS[3:4])[0]


def test_members_that_are_none(forest) -> None:
    tree = margrove.DecisionTreeClassifier().fit(MOONS, NAMES)
    with pytest.raises(TypeError, match="bagging or a forest"):
        bagged_boundaries(tree, MOONS, NAMES)
    with pytest.raises(InvalidDataError, match="was fitted to"):
        bagged_boundaries(forest, MOONS, SIDES)
    with pytest.raises(ValueError, match="n_members"):
        bagged_boundaries(forest, MOONS, NAMES, n_members=0)
    with pytest.raises(ValueError, match="label must be"):
        member_votes(forest, MOONS[0], label="middle")
    with pytest.raises(InvalidDataError, match="2 values"):
        member_votes(forest, [1.0, 2.0, 3.0])


# -- the bootstrap -------------------------------------------------------------------------------


def test_bars_count_the_medians_of_resamples() -> None:
    sample = np.random.default_rng(0).exponential(size=60)
    result = margrove.bootstrap(sample, np.median, n_resamples=400, random_state=1)
    told = bootstrap_histogram(result, bins=12)
    assert told.counts.sum() == told.n_resamples == 400
    counts, edges = np.histogram(result.resamples, bins=12)
    assert np.array_equal(told.counts, counts)
    assert np.array_equal(told.edges, edges)
    assert told.mean == pytest.approx(result.resamples.mean())
    assert told.standard_error == pytest.approx(result.resamples.std())
    assert told.estimate == np.median(sample)


def test_statistics_that_are_no_number() -> None:
    result = margrove.bootstrap(
        np.arange(20.0), lambda rows: [rows.mean(), rows.std()], n_resamples=20, method="percentile"
    )
    with pytest.raises(InvalidDataError, match="one number"):
        bootstrap_histogram(result)
    with pytest.raises(TypeError, match=r"margrove\.bootstrap"):
        bootstrap_histogram([1, 2])


# -- splits --------------------------------------------------------------------------------------


def test_gains_of_tennis() -> None:
    X, y = load_play_tennis(return_X_y=True, as_frame=True)
    gains = {own.feature: own.gain for own in split_children(X, y)}
    assert gains == pytest.approx(
        {"outlook": 0.246, "temperature": 0.029, "humidity": 0.151, "wind": 0.048}, abs=1e-3
    )
    assert split_children(X, y)[0].before == pytest.approx(0.94, abs=1e-3)


def test_patrons_or_type() -> None:
    X, y = load_restaurant(return_X_y=True)
    patrons, kind = split_children(X, y, [4, 8])
    assert patrons.after == pytest.approx(0.45, abs=0.01)
    assert kind.after == pytest.approx(1.0)
    assert kind.gain == pytest.approx(0.0, abs=1e-12)
    assert dict(zip(patrons.values, patrons.counts.tolist(), strict=True)) == {
        "Full": [4, 2],
        "None": [2, 0],
        "Some": [0, 4],
    }


def test_splits_that_are_none() -> None:
    X, y = load_play_tennis(return_X_y=True, as_frame=True)
    with pytest.raises(ValueError, match="the columns are"):
        split_children(X, y, ["weather"])
    with pytest.raises(ValueError, match="criterion must be"):
        split_children(X, y, criterion="squared_error")
    with pytest.raises(ValueError, match="Got none"):
        split_children(X, y, [])
    with pytest.raises(InvalidDataError, match="too many for a branch each"):
        split_children(MOONS, NAMES)


def test_a_tree_grows_leaf_by_leaf() -> None:
    X, y = load_iris_ratios(return_X_y=True)
    told = tree_growth(X, y, [2, 3, 4])
    assert [len(own.leaves) for own in told.regions] == [2, 3, 4]
    assert (np.diff(told.errors) <= 0).all()
    frame = told.frame()
    assert frame.groupby("leaves").size().tolist() == [2, 3, 4]
    for leaves in ([], 3, [1], ["2"]):
        with pytest.raises(ValueError, match="leaves must"):
            tree_growth(X, y, leaves)
