"""What is said about decision trees is true: sizes, leaves, sketches, gains, errors of pruning."""

from __future__ import annotations

import dataclasses
import json
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier as Stranger
from tests.grove.hand_made import chain, random_model, random_rows, shares_of_leaves
from tests.interrupts import lines_until_interrupt

import margrove
from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.datasets import load_iris, load_play_tennis, make_moons
from margrove.exceptions import InvalidDataError, NotFittedError
from margrove.facts import (
    TreeFacts,
    describe,
    gain_curves,
    is_described,
    outline,
    pruning_errors,
    sketch_tree,
    tree_regions,
)
from margrove.grove.criteria import (
    CRITERIA,
    class_criteria,
    number_criteria,
    register_criterion,
)
from margrove.grove.read.tree_reading import TreeReading, read_tree
from margrove.grove.serve.tree_arrays import LEAF, MULTIWAY, OBLIQUE, SUBSET, THRESHOLD

IRIS, SPECIES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
MOONS, SIDES = make_moons(120, noise=0.3, random_state=1, return_X_y=True)
TARGETS = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]
DAYS, PLAYED = load_play_tennis(return_X_y=True, as_frame=True)
WITH_GAPS = np.where(np.random.default_rng(0).random(MOONS.shape) < 0.2, np.nan, MOONS)

TREES = {
    "classes": (DecisionTreeClassifier(max_depth=3), IRIS, SPECIES),
    "grown": (DecisionTreeClassifier(criterion="entropy"), MOONS, SIDES),
    "numbers": (DecisionTreeRegressor(max_depth=3), MOONS, TARGETS),
    "medians": (DecisionTreeRegressor(criterion="absolute_error", max_depth=3), MOONS, TARGETS),
    "tennis": (DecisionTreeClassifier(split="multiway", criterion="entropy"), DAYS, PLAYED),
    "subsets": (DecisionTreeClassifier(), DAYS, PLAYED),
    "gaps": (DecisionTreeClassifier(max_depth=4), WITH_GAPS, SIDES),
    "one leaf": (DecisionTreeClassifier(), MOONS, np.zeros(len(MOONS), int)),
    "two targets": (
        DecisionTreeRegressor(max_depth=3), MOONS, np.column_stack([TARGETS, MOONS[:, 0]])
    ),
    "two labels": (
        DecisionTreeClassifier(max_depth=3),
        IRIS,
        np.column_stack([np.unique(SPECIES, return_inverse=True)[1], IRIS[:, 0] > 5.8]),
    ),
}  # fmt: skip
all_trees = pytest.mark.parametrize("name", TREES)


@cache
def fitted(name):
    model, X, y = TREES[name]
    return model.fit(X, y)


# -- describe ------------------------------------------------------------------------------------


@all_trees
def test_sizes_are_those_of_the_estimator(name) -> None:
    model = fitted(name)
    facts = describe(model)
    assert isinstance(facts, TreeFacts)
    assert is_described(model)
    assert facts.n_leaves == model.get_n_leaves() == len(facts.leaves)
    assert facts.depth == model.get_depth()
    assert facts.n_nodes == len(model.arrays_) == len(facts.tree.nodes)
    assert facts.n_samples == len(TREES[name][1])
    assert facts.criterion == model.criterion
    assert facts.split == model.split
    assert facts.parameters["max_depth"] == model.max_depth
    assert isinstance(facts.tree, TreeReading)
    assert facts.tree == read_tree(model)


@all_trees
def test_leaves_hold_the_rows_that_come_to_them(name) -> None:
    model = fitted(name)
    _, X, y = TREES[name]
    facts = describe(model)
    at = model.apply(X)
    for k, leaf in enumerate(facts.leaves):
        assert facts.leaf_samples[k] == np.count_nonzero(at == leaf)
    if name in ("classes", "tennis", "subsets", "gaps"):
        labels = np.asarray(y)
        for k, leaf in enumerate(facts.leaves):
            counted = [np.mean(labels[at == leaf] == label) for label in model.classes_]
            assert facts.leaf_values[k] == pytest.approx(counted)


@all_trees
def test_the_training_error_is_that_of_the_predictions(name) -> None:
    model = fitted(name)
    _, X, y = TREES[name]
    predicted, y = model.predict(X), np.asarray(y)
    facts = describe(model)
    if hasattr(model, "classes_"):
        expected, words = np.mean(predicted != y), "share misclassified"
    elif model.criterion == "absolute_error":
        expected, words = np.mean(np.abs(predicted - y)), "mean absolute error"
    else:
        expected, words = np.mean((predicted - y) ** 2), "mean squared error"
    assert facts.training_error == pytest.approx(expected, abs=1e-12)
    assert facts.training_error_name == words


def test_deviances_are_training_errors_too() -> None:
    y = np.exp(TARGETS)
    poisson = describe(DecisionTreeRegressor(criterion="poisson", max_depth=2).fit(MOONS, y))
    predicted = DecisionTreeRegressor(criterion="poisson", max_depth=2).fit(MOONS, y).predict(MOONS)
    deviance = np.mean(y * np.log(y / predicted) - y + predicted)
    assert poisson.training_error == pytest.approx(deviance)
    assert "Poisson" in poisson.training_error_name


def test_weights_count_in_the_training_error() -> None:
    weight = np.where(SIDES == 1, 5.0, 1.0)
    model = DecisionTreeClassifier(max_depth=2).fit(MOONS, SIDES, sample_weight=weight)
    wrong = model.predict(MOONS) != SIDES
    assert describe(model).training_error == pytest.approx(weight[wrong].sum() / weight.sum())


@pytest.mark.parametrize("constraints", [[1, 0], {"a": 1}])
def test_constraints_leave_no_training_error(constraints) -> None:
    frame = pd.DataFrame(MOONS, columns=["a", "b"])
    model = DecisionTreeRegressor(monotonic_cst=constraints, max_depth=3).fit(frame, TARGETS)
    assert describe(model).training_error is None
    free = DecisionTreeRegressor(monotonic_cst=[0, 0], max_depth=3).fit(frame, TARGETS)
    assert describe(free).training_error is not None


def test_the_first_question_and_the_features_asked() -> None:
    facts = describe(fitted("tennis"))
    assert facts.root_question == "outlook"
    importances = dict(zip(DAYS.columns, facts.importances, strict=True))
    assert np.array_equal(facts.importances, fitted("tennis").feature_importances_)
    assert set(facts.features_used) == {"outlook", "humidity", "wind"}  # never the temperature
    order = [importances[name] for name in facts.features_used]
    assert order == sorted(order, reverse=True)
    assert describe(fitted("classes")).root_question == "x2 <= 2.45"
    alone = describe(fitted("one leaf"))
    assert (alone.root_question, alone.features_used, alone.depth) == ("", (), 0)


@all_trees
def test_facts_go_through_json_and_contain_the_outline(name) -> None:
    model = fitted(name)
    facts = describe(model)
    back = json.loads(json.dumps(facts.as_dict(), allow_nan=False))
    assert back == facts.as_dict()
    assert set(back) == {field.name for field in dataclasses.fields(facts)}
    assert [node["number"] for node in back["tree"]] == list(range(facts.n_nodes))
    assert back["tree"][0]["question"] == (facts.root_question or None)
    assert back["leaf_values"] == facts.leaf_values.tolist()
    with pytest.raises(ValueError, match="read-only"):
        facts.leaf_values[...] = 0
    if name != "two labels":
        told = outline(model)
        for field in dataclasses.fields(told):
            assert np.array_equal(getattr(facts, field.name), getattr(told, field.name))


def test_classes_of_several_outputs_are_told_apart() -> None:
    facts = describe(fitted("two labels"))
    assert [own.tolist() for own in facts.classes] == [[0, 1, 2], [0, 1]]
    assert facts.n_outputs == 2
    assert facts.leaf_values.shape == (facts.n_leaves, 5)


def test_what_is_no_fitted_tree_is_refused() -> None:
    with pytest.raises(NotFittedError):
        describe(DecisionTreeClassifier())
    with pytest.raises(TypeError, match=r"describe takes .* DecisionTreeClassifier, .* SVR"):
        describe(Stranger().fit(IRIS, SPECIES))


def test_other_pictures_of_trees_still_work() -> None:
    from matplotlib.figure import Figure

    ax = margrove.plot.decision_boundary(fitted("grown"), MOONS, SIDES, ax=Figure().subplots())
    assert {part.get_gid() for part in ax.collections} >= {"regions", "data"}
    assert "support" not in {part.get_gid() for part in ax.collections}


# -- sketches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", ["classes", "two", "number", "numbers"])
@pytest.mark.parametrize("seed", range(4))
def test_a_sketch_tells_every_node(seed, outputs) -> None:
    model = random_model(
        seed, kinds=(THRESHOLD, SUBSET, MULTIWAY, OBLIQUE), shared=True, outputs=outputs
    )
    tree, read = model.arrays_, read_tree(model)
    sketch = sketch_tree(model, max_depth=100)
    assert (sketch.cut_at, sketch.n_nodes, sketch.depth) == (None, len(tree), read.depth)
    assert [node.number for node in sketch.nodes] == list(range(len(tree)))
    for node, told in zip(sketch.nodes, read.nodes, strict=True):
        assert node.parent == told.parent
        assert (node.depth, node.samples, node.hidden) == (told.depth, told.samples, 0)
        assert node.coverage == told.weight / tree.weight[0]
        assert bool(node.question) == (not told.is_leaf)
        assert [*node.means, *(share for own in node.shares for share in own)] == [*told.value]
        if node.parent is None:
            assert node.branch == ""
        elif tree.kind[told.parent] != MULTIWAY:
            is_first = tree.children_of(told.parent)[0] == node.number
            assert node.branch == ("yes" if is_first else "no")
    json.dumps(sketch.as_dict(), allow_nan=False)


@pytest.mark.parametrize("max_depth", [0, 1, 2, 3])
def test_a_cut_sketch_counts_what_it_hides(max_depth) -> None:
    model = random_model(3, kinds=(THRESHOLD, MULTIWAY), n_splits=30)
    tree = model.arrays_
    depth, ends = tree.depth, tree.ends
    sketch = sketch_tree(model, max_depth=max_depth)
    assert sketch.cut_at == max_depth < sketch.depth
    assert [node.number for node in sketch.nodes] == np.flatnonzero(depth <= max_depth).tolist()
    for place, node in enumerate(sketch.nodes):
        is_cut = node.depth == max_depth and tree.kind[node.number] != LEAF
        assert node.hidden == (ends[node.number] - node.number - 1 if is_cut else 0)
        assert bool(node.question) == (tree.kind[node.number] != LEAF)
        if node.parent is not None:
            assert sketch.nodes[node.parent].number == tree.parent[node.number]
            assert node.parent < place
    assert len(sketch.nodes) + sum(node.hidden for node in sketch.nodes) == len(tree)


def test_branches_have_the_names_of_their_answers() -> None:
    sketch = sketch_tree(fitted("tennis"))
    assert [(node.branch, node.question or node.prediction) for node in sketch.nodes] == [
        ("", "outlook"),
        ("overcast", "yes"),
        ("rain", "wind"),
        ("strong", "no"),
        ("weak", "yes"),
        ("sunny", "humidity"),
        ("high", "no"),
        ("normal", "yes"),
    ]
    assert {node.branch for node in sketch_tree(fitted("subsets")).nodes} == {"", "yes", "no"}
    assert sketch_tree(fitted("classes"), decimals=1).nodes[0].question == "x2 <= 2.5"


@pytest.mark.parametrize("seed", range(6))
def test_the_way_of_a_row_is_that_of_a_slow_walk(seed) -> None:
    model = random_model(seed, kinds=(THRESHOLD, SUBSET, MULTIWAY), shared=True)
    tree = model.arrays_
    for row in random_rows(seed, model, 5):
        shares = {node.number: node.path_share for node in sketch_tree(model, row=row).nodes}
        leaves = shares_of_leaves(tree, model._rows([row])[0])
        for node, share in shares.items():
            below = [part for leaf, part in leaves.items() if node <= leaf < tree.ends[node]]
            assert share == pytest.approx(sum(below))


def test_histograms_hold_the_rows_of_their_node() -> None:
    model = fitted("gaps")
    sketch = sketch_tree(model, X=WITH_GAPS, y=SIDES)
    asked = [node for node in sketch.nodes if node.question]
    assert asked
    passes = model.decision_path(WITH_GAPS).toarray().astype(bool)
    for node in asked:
        column = int(model.arrays_.feature[node.number])
        there = passes[:, node.number] & ~np.isnan(WITH_GAPS[:, column])
        bars = node.histogram
        threshold = model.arrays_.threshold[node.number]
        assert bars.threshold == (threshold if np.isfinite(threshold) else None)
        for code in (0, 1):
            own = WITH_GAPS[there & (SIDES == code), column]  # noqa: SIM300
            assert bars.counts[code].sum() == len(own)
            assert np.array_equal(bars.counts[code], np.histogram(own, bins=bars.edges)[0])
    assert all(node.histogram is None for node in sketch.nodes if not node.question)
    json.dumps(sketch.as_dict(), allow_nan=False)


def test_histograms_of_categories_and_of_targets() -> None:
    root = sketch_tree(fitted("tennis"), X=DAYS, y=PLAYED).nodes[0].histogram
    assert root.labels == ("overcast", "rain", "sunny")
    assert root.counts.tolist() == [[0, 2, 3], [4, 3, 2]]
    assert root.threshold is None
    model = fitted("numbers")
    bars = sketch_tree(model, X=MOONS, y=TARGETS).nodes[0].histogram
    column = MOONS[:, model.arrays_.feature[0]]
    for k, (low, high) in enumerate(pairwise(bars.edges)):
        own = TARGETS[(column >= low) & ((column < high) | (k == len(bars.means) - 1))]
        if bars.counts[0, k] == len(own) > 0:
            assert bars.means[k] == pytest.approx(own.mean())
    assert bars.counts.sum() == len(MOONS)
    assert sketch_tree(model, X=MOONS).nodes[0].histogram.means is None


def test_histograms_of_awkward_columns() -> None:
    X = np.array([[-1e308, 0.0], [1e308, 0.0], [0.0, 0.0]])
    model = DecisionTreeClassifier().fit(X, [0, 1, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bars = sketch_tree(model, X=X, y=[0, 1, 0]).nodes[0].histogram
    assert bars.counts.sum() == 3
    same = sketch_tree(model, X=[[1.0, 2.0], [1.0, 2.0]]).nodes[0].histogram
    assert same.counts.tolist() == [[2]]
    empty = sketch_tree(model, X=[[np.nan, 2.0]]).nodes[0].histogram
    assert empty.counts.sum() == 0
    many = pd.DataFrame({"c": [f"label {k % 30}" for k in range(90)]})
    labelled = DecisionTreeClassifier().fit(many, np.arange(90) % 2)
    assert sketch_tree(labelled, X=many).nodes[0].histogram is None  # too many bars


def test_labels_that_the_model_does_not_know_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="y has rose, which is not among the classes"):
        sketch_tree(fitted("classes"), X=IRIS[:2], y=["rose", "setosa"])


@pytest.mark.parametrize("max_depth", [-1, 1.5, True, "2"])
def test_a_depth_is_a_whole_number(max_depth) -> None:
    with pytest.raises(ValueError, match="max_depth must be a whole number"):
        sketch_tree(fitted("classes"), max_depth=max_depth)


def test_large_trees_are_cut_by_themselves() -> None:
    rng = np.random.default_rng(0)
    model = DecisionTreeClassifier().fit(rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000))
    sketch = sketch_tree(model)
    counts = np.bincount(model.arrays_.depth)
    assert len(sketch.nodes) <= 200 < len(sketch.nodes) + counts[sketch.cut_at + 1]
    wide = pd.DataFrame({"c": [f"{k:03}" for k in range(300)]})
    wide = DecisionTreeClassifier(split="multiway").fit(wide, np.arange(300) % 7)
    assert len(sketch_tree(wide).nodes) == 301  # the root alone would tell nothing


def test_a_deep_chain_is_sketched_in_linear_time() -> None:
    sketch_tree(chain(3), row=[1.0])  # imports
    files = {str(path) for path in Path(margrove.__file__).parent.rglob("*.py")}
    lines = [
        len(lines_until_interrupt(sketch_tree, chain(n), max_depth=4, row=[2.0 * n], files=files))
        for n in (100, 200, 400)
    ]
    assert lines[2] - lines[1] == 2 * (lines[1] - lines[0])
    sketch = sketch_tree(chain(5000), max_depth=4, row=[10_000.0])
    assert [node.depth for node in sketch.nodes] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert sketch.nodes[-1].hidden == 2 * (5000 - 4)
    assert [node.number for node in sketch.nodes if node.path_share] == [0, 2, 4, 6, 8]


# -- regions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grown", "numbers"])
def test_regions_say_what_the_tree_predicts(name) -> None:
    model = fitted(name)
    found = tree_regions(model)
    assert found.features == (0, 1)
    assert sorted(found.leaves.tolist()) == describe(model).leaves.tolist()
    inside = (MOONS[:, None] > found.low) & (MOONS[:, None] <= found.high)
    place = inside.all(axis=2)
    assert np.array_equal(place.sum(axis=1), np.ones(len(MOONS)))
    told = found.values[place.argmax(axis=1)]
    assert np.array_equal(told, model.predict(MOONS))


def test_intervals_ascend_and_unasked_features_do_not_count() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.zeros((60, 3)), rng.uniform(size=60)])
    model = DecisionTreeRegressor(max_depth=3).fit(X, np.sin(6 * X[:, 3]))
    found = tree_regions(model)
    assert found.features == (3,)
    assert found.names == ("x3",)
    assert found.low[0] == -np.inf
    assert found.high[-1] == np.inf
    assert np.array_equal(found.low[1:], found.high[:-1])


def test_trees_without_few_features_have_no_regions() -> None:
    with pytest.raises(ValueError, match=r"splits by 3 of 4 features.*decision_boundary"):
        tree_regions(DecisionTreeClassifier().fit(IRIS, SPECIES))
    with pytest.raises(ValueError, match=r"one output\. Got 2"):
        tree_regions(fitted("two targets"))
    with pytest.raises(ValueError, match="subset splits"):
        tree_regions(DecisionTreeClassifier().fit(DAYS.iloc[:, :2], PLAYED))


# -- gains ---------------------------------------------------------------------------------------

CLASS_CRITERIA = tuple(class_criteria())
NUMBER_CRITERIA = tuple(number_criteria(distinct=True))


def slow_impurity(criterion, y):
    """From the definitions, of one group of rows."""
    if criterion in CLASS_CRITERIA:
        p = np.unique(y, return_counts=True)[1] / len(y)
        if criterion == "gini":
            return 1 - np.sum(p**2)
        return 1 - p.max() if criterion == "error" else -np.sum(p * np.log2(p))
    mean = y.mean()
    if criterion == "absolute_error":
        return np.mean(np.abs(y - np.median(y)))
    if criterion == "poisson":
        logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mean), 0.0)
        return np.mean(logs - y + mean)
    if criterion == "gamma":
        return np.mean(-np.log(y / mean) + (y - mean) / mean)
    return np.mean((y - mean) ** 2)


def slow_decrease(criterion, y, is_left):
    parts = [y[is_left], y[~is_left]]
    return slow_impurity(criterion, y) - sum(
        len(own) / len(y) * slow_impurity(criterion, own) for own in parts
    )


def targets_for(criterion, n=60):
    rng = np.random.default_rng(7)
    if criterion in CLASS_CRITERIA:
        return rng.integers(0, 3, n)
    return rng.gamma(2.0, size=n) if criterion != "poisson" else rng.poisson(2.0, n) + 1.0


@pytest.mark.parametrize("criterion", CLASS_CRITERIA + NUMBER_CRITERIA)
def test_gains_are_those_of_the_definition(criterion) -> None:
    y = targets_for(criterion)
    X = np.random.default_rng(1).integers(0, 12, (60, 2)).astype(float)
    found = gain_curves(X, y, criterion=criterion)
    assert found.impurity == pytest.approx(slow_impurity(criterion, y))
    for column, curve in enumerate(found.curves):
        assert curve.index == column
        values = np.unique(X[:, column])
        assert curve.thresholds.tolist() == ((values[:-1] + values[1:]) / 2).tolist()
        for threshold, decrease in zip(curve.thresholds, curve.decreases, strict=True):
            expected = slow_decrease(criterion, y, X[:, column] <= threshold)
            assert decrease == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("criterion", [*CLASS_CRITERIA, *NUMBER_CRITERIA])
def test_missing_values_are_where_they_help_more(criterion) -> None:
    y = targets_for(criterion)
    x = np.random.default_rng(2).integers(0, 8, 60).astype(float)
    x[::7] = np.nan
    (curve,) = gain_curves(x[:, None], y, criterion=criterion).curves
    for threshold, decrease in zip(curve.thresholds, curve.decreases, strict=True):
        sides = [(x <= threshold) | np.isnan(x), x <= threshold]
        expected = max(slow_decrease(criterion, y, side) for side in sides)
        assert decrease == pytest.approx(expected, abs=1e-12)
    assert curve.decrease_of_missing == pytest.approx(slow_decrease(criterion, y, np.isnan(x)))


@pytest.mark.parametrize("criterion", [*CLASS_CRITERIA, *NUMBER_CRITERIA])
def test_the_highest_point_is_the_split_of_a_stump(criterion) -> None:
    kind = DecisionTreeClassifier if criterion in CLASS_CRITERIA else DecisionTreeRegressor
    y = targets_for(criterion)
    X = np.random.default_rng(3).normal(size=(60, 4))
    stump = kind(criterion=criterion, max_depth=1).fit(X, y).arrays_
    curves = gain_curves(X, y, criterion=criterion)
    own = curves.curves[stump.feature[0]]
    assert own.thresholds[own.best] == stump.threshold[0]
    assert own.decreases[own.best] == pytest.approx(stump.decrease[0] / stump.weight[0])
    if criterion != "gain_ratio":  # whose feature need not be that with the largest gain
        assert curves.best is own


def root_of_gini(sums, weight):
    return np.sqrt(1.0 - np.sum((sums / weight) ** 2))


def variance(sums, weight):
    return sums[1] / weight - (sums[0] / weight) ** 2


@pytest.mark.parametrize("function", [root_of_gini, variance])
def test_own_criteria_have_curves_too(function) -> None:
    is_class = function is root_of_gini
    register_criterion("own", function, for_classes=is_class)
    try:
        y = targets_for("gini" if is_class else "squared_error")
        X = np.random.default_rng(3).normal(size=(60, 2))
        kind = DecisionTreeClassifier if is_class else DecisionTreeRegressor
        stump = kind(criterion="own", max_depth=1).fit(X, y).arrays_
        best = gain_curves(X, y, criterion="own").best
    finally:
        del CRITERIA["own"]
    assert best.index == stump.feature[0]
    assert best.thresholds[best.best] == stump.threshold[0]
    assert best.decreases[best.best] == pytest.approx(stump.decrease[0] / stump.weight[0])


def test_equal_gains_go_to_the_first() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    curves = gain_curves(np.column_stack([x, x]), [0, 1, 0, 1])
    assert curves.best.index == 0
    assert curves.best.best == 0  # 1 against 3 at either end
    assert curves.best.decreases[0] == pytest.approx(curves.best.decreases[2])


def test_columns_without_thresholds() -> None:
    constant = gain_curves(np.ones((4, 1)), [0, 1, 0, 1])
    assert (constant.best, constant.curves[0].best) == (None, None)
    frame = DAYS.assign(degrees=np.arange(14.0))
    (curve,) = gain_curves(frame, PLAYED).curves
    assert (curve.feature, curve.index) == ("degrees", 4)
    with pytest.raises(ValueError, match="outlook has categories"):
        gain_curves(frame, PLAYED, feature="outlook")
    with pytest.raises(ValueError, match="All columns of X are categories"):
        gain_curves(DAYS, PLAYED)


def test_columns_are_picked_by_number_or_name() -> None:
    frame = pd.DataFrame(IRIS, columns=list("wxyz"))
    assert [c.feature for c in gain_curves(frame, SPECIES, feature=["y", 0]).curves] == ["y", "w"]
    assert [c.index for c in gain_curves(frame, SPECIES, feature=np.int64(3)).curves] == [3]
    for feature in ("a", 4, -1, True, 1.5):
        with pytest.raises(ValueError, match=r"feature must be numbers from 0 to 3 .* w, x, y, z"):
            gain_curves(frame, SPECIES, feature=feature)
    sparse = gain_curves(sp.csr_matrix(IRIS), SPECIES, feature=1).curves[0]
    dense = gain_curves(IRIS, SPECIES, feature=1).curves[0]
    assert np.array_equal(sparse.decreases, dense.decreases)


def test_what_has_no_curve_is_refused() -> None:
    with pytest.raises(ValueError, match="criterion must be one of 'gini', 'entropy'"):
        gain_curves(IRIS, SPECIES, criterion="beauty")
    with pytest.raises(ValueError, match="y must be one column"):
        gain_curves(IRIS, np.column_stack([IRIS[:, 0] > 5, IRIS[:, 1] > 3]).astype(int))
    with pytest.raises(InvalidDataError, match="infinity"):
        gain_curves([[np.inf], [1.0]], [0, 1])
    zeros = gain_curves([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], criterion="poisson").curves[0]
    assert np.isnan(zeros.decreases[0])  # a branch of zeros only
    assert zeros.best == 1


# -- errors along pruning ------------------------------------------------------------------------


@pytest.mark.parametrize("is_class", [True, False])
def test_errors_of_pruning_are_those_of_pruned_fits(is_class) -> None:
    tree = DecisionTreeClassifier() if is_class else DecisionTreeRegressor()
    y = SIDES if is_class else TARGETS
    rows, others = (MOONS[::2], y[::2]), (MOONS[1::2], y[1::2])
    found = pruning_errors(tree, *rows, *others)
    assert not hasattr(tree, "arrays_")  # a copy was fitted
    assert np.all(np.diff(found.n_leaves) < 0)
    assert found.n_leaves[-1] == 1
    for k, alpha in enumerate(found.ccp_alphas):
        model = type(tree)(ccp_alpha=float(alpha)).fit(*rows)
        assert model.get_n_leaves() == found.n_leaves[k]
        for (X, targets), errors in ((rows, found.training_errors), (others, found.test_errors)):
            wrong = model.predict(X) != targets
            loss = wrong if is_class else (model.predict(X) - targets) ** 2
            assert errors[k] == pytest.approx(np.mean(loss), abs=1e-12)
    assert found.test_errors[found.best] == found.test_errors.min()
    assert np.all(found.test_errors[found.best + 1 :] > found.test_errors.min())
    assert found.error_name == ("share misclassified" if is_class else "mean squared error")


def test_a_fitted_tree_is_pruned_as_it_is() -> None:
    model = DecisionTreeClassifier(max_leaf_nodes=6).fit(MOONS, SIDES)
    found = pruning_errors(model, MOONS, SIDES, MOONS, SIDES)
    assert found.n_leaves[0] == 6
    assert np.array_equal(found.training_errors, found.test_errors)
    assert found.training_errors[0] == pytest.approx(1 - model.score(MOONS, SIDES))
    pruned = DecisionTreeClassifier(ccp_alpha=0.5)  # without its price, the copy is grown
    assert pruning_errors(pruned, MOONS, SIDES, MOONS, SIDES).n_leaves[0] > 1


@pytest.mark.parametrize("model", [SVC(), DecisionTreeClassifier, "tree"])
def test_only_trees_are_pruned(model) -> None:
    with pytest.raises(TypeError, match="model must be a decision tree of margrove"):
        pruning_errors(model, MOONS, SIDES, MOONS, SIDES)
