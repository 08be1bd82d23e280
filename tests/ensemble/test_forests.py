"""Random forests and extremely randomised trees: predictions, samples, attributes, slicing."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn.ensemble
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score
from sklearn.model_selection import cross_val_score
from tests.interrupts import steady_clock

from margrove import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    watch,
)
from margrove._runtime import processes_wanted
from margrove.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from margrove.ensemble.forest.out_of_bag import is_flat
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
)
from margrove.grove.serve import forest_tables

OF_CLASSES = (RandomForestClassifier, ExtraTreesClassifier)
OF_NUMBERS = (RandomForestRegressor, ExtraTreesRegressor)
FORESTS = OF_CLASSES + OF_NUMBERS
NAMES = [cls.__name__ for cls in FORESTS]
every_forest = pytest.mark.parametrize("cls", FORESTS, ids=NAMES)

X = np.random.default_rng(0).standard_normal((160, 5))
_SIGNAL = X @ [1.0, -2.0, 0.5, 0.0, 1.0] + np.random.default_rng(1).standard_normal(160)
LABELS = np.digitize(_SIGNAL, [-1.0, 1.0])
NEW = np.random.default_rng(2).standard_normal((300, 5))


def target_for(cls):
    return LABELS if cls in OF_CLASSES else _SIGNAL


def grown(cls, n_estimators=12, data=X, y=None, weight=None, **settings):
    settings = {"random_state": 0} | settings
    y = target_for(cls) if y is None else y
    return cls(n_estimators, **settings).fit(data, y, weight)


def answers(model, data):
    """Predicted numbers, or class probabilities."""
    return getattr(model, "predict_proba", model.predict)(data)


def bits_of(model):
    return [pickle.dumps(tree) for tree in model.trees_]


def differ(model, other):
    return bits_of(model) != bits_of(other)


# -- predictions -----------------------------------------------------------------------------------


@every_forest
def test_predictions_are_means_of_the_trees(cls) -> None:
    for settings in ({}, {"max_depth": 3}, {"max_leaf_nodes": 9}, {"min_samples_leaf": 7}):
        forest = grown(cls, **settings)
        each = np.stack([answers(tree, NEW) for tree in forest.estimators_])
        assert answers(forest, NEW) == pytest.approx(each.mean(axis=0), rel=1e-12, abs=1e-15)
        assert np.ptp(each, axis=0).max() > 0.1
    if cls in OF_CLASSES:
        shares = forest.predict_proba(NEW)
        assert np.array_equal(forest.predict(NEW), forest.classes_[shares.argmax(axis=1)])
        assert shares.sum(axis=1) == pytest.approx(1.0)
        with np.errstate(divide="ignore"):
            assert np.array_equal(forest.predict_log_proba(NEW), np.log(shares))


@pytest.mark.parametrize("cls", OF_CLASSES)
def test_votes(cls) -> None:
    forest = grown(cls, voting="hard", max_depth=3)
    said = np.stack([tree.predict(NEW) for tree in forest.estimators_])
    votes = np.stack([(said == label).mean(axis=0) for label in forest.classes_], axis=1)
    assert forest.predict_proba(NEW) == pytest.approx(votes, abs=1e-15)
    assert np.array_equal(forest.predict(NEW), forest.classes_[votes.argmax(axis=1)])
    soft = grown(cls, max_depth=3)
    assert not differ(forest, soft)
    assert np.abs(soft.predict_proba(NEW) - votes).max() > 0.05


@every_forest
@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_tables_of_bits_give_what_walks_give(cls, has_gaps, n_outputs, monkeypatch) -> None:
    """Many rows find their leaves with `leaf_bits`: the same bits as by walking."""
    rng = np.random.default_rng(4)
    data, new = X.copy(), rng.standard_normal((3000, 5))
    settings = {}
    if has_gaps:
        data[:, 4], new[:, 4] = rng.integers(0, 6, len(X)), rng.integers(0, 6, len(new))
        data[rng.random(X.shape) < 0.1], new[rng.random(new.shape) < 0.1] = np.nan, np.nan
        settings = {"categorical_features": [4]}
    y = np.stack([target_for(cls), rng.permutation(target_for(cls))], axis=1)[:, :n_outputs]
    forest = grown(cls, 30, data, y.ravel() if n_outputs == 1 else y, **settings)
    votes = [True, False] if cls in OF_CLASSES else [False]
    given = forest._rows(new)

    def found():
        tables = forest_tables.ForestTables(forest.trees_, forest.kind_, 2)
        means = [tables.means(given, hard=hard) for hard in votes]
        return [*means, tables.values_of_trees(given)]

    used = []
    usual = forest_tables.leaf_bits_of
    monkeypatch.setattr(forest_tables, "leaf_bits_of", lambda *a: used.append(1) or usual(*a))
    monkeypatch.setattr(forest_tables, "_LEAST_FOR_TABLES", 0)
    monkeypatch.setattr(forest_tables, "_ROWS_OF_A_NODE", 0)
    with_tables = found()
    assert used
    monkeypatch.setattr(forest_tables, "_LEAST_FOR_TABLES", 10**12)
    for table, walked in zip(with_tables, found(), strict=True):
        assert np.array_equal(table, walked)
        assert table.std() > 0.05
    new[17, 2] = np.inf
    monkeypatch.setattr(forest_tables, "_LEAST_FOR_TABLES", 0)
    with pytest.raises(ValueError, match="infinity"):
        forest.predict(new)


@every_forest
def test_more_rows_than_one_piece_takes(cls) -> None:
    forest = grown(cls, 5)
    many = np.random.default_rng(3).standard_normal((5000, 5))
    whole = answers(forest, many)
    for n_jobs in (1, 2, 3):
        assert np.array_equal(answers(forest.set_params(n_jobs=n_jobs), many), whole)
    assert np.array_equal(answers(forest, many[4000:4100]), whole[4000:4100])
    assert np.array_equal(answers(forest, sp.csr_array(many)), whole)


@every_forest
def test_leaves_and_paths_are_those_of_the_trees(cls) -> None:
    forest = grown(cls, 6, max_depth=5)
    leaves = forest.apply(NEW)
    assert leaves.shape == (300, 6)
    paths, begins = forest.decision_path(NEW)
    assert begins.tolist() == np.cumsum([0, *map(len, forest.trees_)]).tolist()
    assert paths.shape == (300, begins[-1])
    for k, tree in enumerate(forest.estimators_):
        assert np.array_equal(leaves[:, k], tree.apply(NEW))
        own = paths[:, begins[k] : begins[k + 1]]
        assert (own != tree.decision_path(NEW)).nnz == 0
        assert (np.asarray(own[np.arange(300), leaves[:, k]]) == 1).all()
    twice = forest + forest
    assert np.array_equal(twice.apply(NEW), np.hstack([leaves, leaves]))
    assert answers(twice, NEW) == pytest.approx(answers(forest, NEW), rel=1e-12, abs=1e-15)


@every_forest
def test_importances_are_the_mean_over_the_trees(cls) -> None:
    forest = grown(cls, 10)
    found = forest.feature_importances_
    assert found.sum() == pytest.approx(1.0)
    assert found == pytest.approx(
        np.mean([tree.feature_importances_ for tree in forest], axis=0), rel=1e-9
    )
    assert found.argmax() == 1
    stumps = grown(cls, 4, y=np.zeros(160, dtype=int) if cls in OF_CLASSES else np.zeros(160))
    assert np.array_equal(stumps.feature_importances_, np.zeros(5))


# -- samples ---------------------------------------------------------------------------------------


@every_forest
@pytest.mark.parametrize("max_samples", [None, 0.4, 30, 1, 1.5, 400])
def test_trees_are_grown_of_their_samples(cls, max_samples) -> None:
    """A root has as many samples as were drawn, and a leaf has those of its rows."""
    forest = grown(cls, 8, bootstrap=True, max_samples=max_samples, max_depth=4)
    n_draws = {None: 160, 0.4: 64, 1.5: 240}.get(max_samples, max_samples)
    for rows, tree in zip(forest.estimators_samples_, forest.estimators_, strict=True):
        assert len(rows) == n_draws
        assert rows.min() >= 0
        assert rows.max() < 160
        arrays = tree.arrays_
        passed = np.asarray(tree.decision_path(X[rows]).sum(axis=0)).ravel()
        assert np.array_equal(passed, arrays.n_samples)
        y = target_for(cls)[rows]
        root = np.bincount(y, minlength=3) / n_draws if cls in OF_CLASSES else [y.mean()]
        assert arrays.value[0] == pytest.approx(root, rel=1e-9)
    samples = [rows.tolist() for rows in forest.estimators_samples_]
    assert max_samples == 1 or len({tuple(rows) for rows in samples}) == 8


@every_forest
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_tree_can_be_grown_again_from_its_sample(cls, bootstrap, n_outputs) -> None:
    y = target_for(cls) if n_outputs == 1 else np.column_stack([target_for(cls), X[:, 0] > 0])
    forest = grown(cls, 4, y=y, bootstrap=bootstrap, max_features=2, max_depth=6)
    for rows, tree in zip(forest[:3].estimators_samples_, forest, strict=False):
        again = clone(tree).fit(X[rows], y[rows]).arrays_
        assert np.array_equal(tree.arrays_.feature, again.feature)
        assert np.array_equal(tree.arrays_.threshold, again.threshold, equal_nan=True)
        assert np.array_equal(tree.arrays_.n_samples, again.n_samples)
        assert tree.arrays_.value == pytest.approx(again.value, rel=1e-9, abs=1e-12)
    assert len({tree.random_state for tree in forest}) == 4


@every_forest
def test_without_bootstrap_trees_have_all_rows(cls) -> None:
    forest = grown(cls, 4, bootstrap=False)
    assert all(sorted(rows) == list(range(160)) for rows in forest.estimators_samples_)
    assert all(tree.arrays_.n_samples[0] == 160 for tree in forest)
    assert forest.score(X, target_for(cls)) == 1.0
    one = grown(RandomForestRegressor, 3, bootstrap=False)
    alone = DecisionTreeRegressor().fit(X, _SIGNAL)
    for tree in one:
        assert np.array_equal(tree.predict(NEW), alone.predict(NEW))


def test_a_sample_without_a_class_keeps_the_order_of_classes() -> None:
    y = np.array(["b"] * 60 + ["a"] + ["c"] * 99)
    forest = grown(RandomForestClassifier, 30, y=y)
    assert forest.classes_.tolist() == ["a", "b", "c"]
    lacks = [60 not in rows for rows in forest.estimators_samples_]
    assert 0 < sum(lacks) < 30
    for tree, lacking in zip(forest, lacks, strict=True):
        assert tree.classes_.tolist() == ["a", "b", "c"]
        assert tree.predict_proba(X).shape == (160, 3)
        assert (tree.predict_proba(X)[:, 0].max() == 0.0) == lacking


# -- out of bag ------------------------------------------------------------------------------------


def out_of_bag_twin(forest, y, vote=None):
    """For each row the mean of the trees that have not seen it; and the error after each tree."""
    sums, counts, curve = None, np.zeros(len(y)), []
    for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        unseen = ~np.isin(np.arange(len(y)), rows)
        said = answers(tree, X)
        if vote:
            said = np.eye(said.shape[1])[said.argmax(axis=1)]
        said = said.reshape(len(y), -1)
        sums = np.zeros_like(said) if sums is None else sums
        sums[unseen] += said[unseen]
        counts += unseen
        known = counts > 0
        means = sums[known] / counts[known, None]
        if hasattr(forest, "classes_"):
            curve.append(np.mean(forest.classes_[means.argmax(axis=1)] != y[known]))
        else:
            curve.append(np.mean((means[:, 0] - y[known]) ** 2))
    with np.errstate(invalid="ignore"):
        return sums / counts[:, None], curve


@every_forest
@pytest.mark.parametrize("max_samples", [None, 0.3])
def test_out_of_bag_figures_against_a_plain_twin(cls, max_samples) -> None:
    forest = grown(cls, 40, bootstrap=True, oob_score=True, max_samples=max_samples)
    y = target_for(cls)
    means, curve = out_of_bag_twin(forest, y)
    assert forest.oob_curve_ == pytest.approx(curve, rel=1e-12)
    if cls in OF_CLASSES:
        assert forest.oob_decision_function_ == pytest.approx(means, rel=1e-12)
        winners = forest.classes_[means.argmax(axis=1)]
        assert forest.oob_score_ == pytest.approx(accuracy_score(y, winners))
        assert forest.oob_curve_[-1] == pytest.approx(1.0 - forest.oob_score_)
    else:
        assert forest.oob_prediction_ == pytest.approx(means[:, 0], rel=1e-12)
        assert forest.oob_score_ == pytest.approx(r2_score(y, means[:, 0]))
    assert 0.3 < forest.oob_score_ < 0.95


def test_out_of_bag_votes() -> None:
    forest = grown(RandomForestClassifier, 40, oob_score=True, voting="hard", max_depth=2)
    means, curve = out_of_bag_twin(forest, LABELS, vote=True)
    assert forest.oob_decision_function_ == pytest.approx(means, rel=1e-12)
    assert forest.oob_curve_ == pytest.approx(curve)


def test_out_of_bag_figures_of_ones_own() -> None:
    heard = []

    def score(truth, found):
        heard.append((truth, found))
        return 42.0

    forest = grown(RandomForestClassifier, 60, oob_score=score)
    assert forest.oob_score_ == 42.0
    truth, found = heard[-1]
    assert np.array_equal(truth, LABELS)
    assert np.array_equal(found, forest.oob_decision_function_.argmax(axis=1))
    numbers = grown(RandomForestRegressor, 60, oob_score=mean_absolute_error)
    assert numbers.oob_score_ == pytest.approx(np.abs(numbers.oob_prediction_ - _SIGNAL).mean())


@pytest.mark.parametrize("cls", [RandomForestClassifier, RandomForestRegressor])
def test_rows_that_all_trees_have_seen_are_said_and_left_out(cls) -> None:
    with pytest.warns(DataWarning, match=r"of 160 rows are in the sample of every.*n_estimators=3"):
        forest = grown(cls, 3, oob_score=True)
    values = getattr(forest, "oob_decision_function_", None)
    values = forest.oob_prediction_[:, None] if values is None else values
    unseen = np.ones(160, dtype=bool)
    for rows in forest.estimators_samples_:
        unseen &= np.isin(np.arange(160), rows)
    assert 10 < unseen.sum() < 100
    assert np.array_equal(np.isnan(values).any(axis=1), unseen)
    assert np.isfinite(forest.oob_score_)


def test_out_of_bag_figures_do_not_outlive_their_fit() -> None:
    forest = grown(RandomForestClassifier, 40, oob_score=True)
    forest.set_params(oob_score=False).fit(X, LABELS)
    assert not any(hasattr(forest, name) for name in ("oob_score_", "oob_decision_function_"))


@every_forest
def test_a_warm_start_without_new_trees_changes_nothing(cls) -> None:
    forest = grown(cls, 3, warm_start=True)
    before = dict(vars(forest))
    with pytest.warns(UserWarning, match="does not fit new trees"):
        forest.fit(X[:, :2], np.column_stack([target_for(cls)] * 2))
    assert vars(forest) == before
    forest.set_params(n_estimators=4)
    with pytest.raises(ValueError, match="needs the data of the last fit"):
        forest.fit(X[:, :2], target_for(cls))


@every_forest
def test_the_tree_that_all_are_made_of(cls) -> None:
    tree = cls(max_depth=3).estimator
    assert isinstance(tree, DecisionTreeClassifier | DecisionTreeRegressor)
    assert tree.max_depth == 3
    assert tree.splitter == ("random" if "Extra" in cls.__name__ else "best")
    assert "estimator" not in cls().get_params()


@every_forest
def test_sparse_targets_are_refused(cls) -> None:
    with pytest.raises(ValueError, match=r"sparse multilabel-indicator.*not supported.*toarray"):
        cls().fit(X, sp.csr_array(np.eye(160)))


# -- one seed, one forest --------------------------------------------------------------------------


@every_forest
@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 6}, {"max_features": 1}], ids=str)
def test_a_warm_start_is_the_same_as_all_at_once(cls, settings) -> None:
    whole = grown(cls, 30, bootstrap=True, oob_score=True, **settings)
    steps = cls(3, random_state=0, warm_start=True, bootstrap=True, oob_score=True, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DataWarning
        )  # some rows are in the samples of all of a few trees
        for n in (3, 4, 30):
            steps.set_params(n_estimators=n).fit(X, target_for(cls))
            assert len(steps) == n
    assert not differ(steps, whole)
    assert steps.oob_score_ == whole.oob_score_
    assert np.array_equal(steps.oob_curve_, whole.oob_curve_)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        steps.fit(X, target_for(cls))
    assert not differ(steps, whole)
    assert steps.oob_score_ == whole.oob_score_
    for a, b in zip(steps.estimators_samples_, whole.estimators_samples_, strict=True):
        assert np.array_equal(a, b)


@every_forest
@pytest.mark.parametrize(
    "settings",
    [{}, {"bootstrap": True, "oob_score": True}, {"max_leaf_nodes": 8}, {"ccp_alpha": 0.01}],
    ids=str,
)
def test_neither_threads_nor_watching_change_a_bit(cls, settings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        one = grown(cls, 13, n_jobs=1, **settings)
        for n_jobs in (2, 3, 20, None):
            other = grown(cls, 13, n_jobs=n_jobs, **settings)
            assert not differ(one, other)
            assert getattr(one, "oob_score_", 0) == getattr(other, "oob_score_", 0)
        with watch(on_progress=lambda progress: None):
            assert not differ(one, grown(cls, 13, **settings))
    assert differ(one, grown(cls, 13, random_state=1, bootstrap=True, max_features=2))


@every_forest
def test_a_tree_depends_on_the_seed_and_its_number_only(cls) -> None:
    few, many = grown(cls, 3), grown(cls, 9)
    assert bits_of(many)[:3] == bits_of(few)
    generator = [grown(cls, 3, random_state=np.random.RandomState(5)) for _ in range(2)]
    assert not differ(*generator)
    drawn = np.random.default_rng(5)
    assert differ(grown(cls, 3, random_state=drawn), grown(cls, 3, random_state=drawn))


@every_forest
@pytest.mark.parametrize("bootstrap", [False, True])
def test_the_order_of_the_rows_does_not_matter(cls, bootstrap) -> None:
    y = target_for(cls)
    order = np.random.default_rng(0).permutation(160)
    settings = {"bootstrap": bootstrap, "oob_score": bootstrap, "max_features": 2}
    one = grown(cls, 30, **settings)
    other = grown(cls, 30, X[order], y[order], **settings)
    assert np.array_equal(answers(one, NEW), answers(other, NEW))
    assert not differ(one, other)
    if bootstrap:
        assert other.oob_score_ == pytest.approx(one.oob_score_, rel=1e-12)
        for a, b in zip(one.estimators_samples_, other.estimators_samples_, strict=True):
            assert np.array_equal(np.sort(a), np.sort(order[b]))


@every_forest
@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("settings", [{}, {"min_samples_leaf": 5}, {"max_leaf_nodes": 7}], ids=str)
def test_a_weight_is_so_many_copies_and_zero_none(cls, bootstrap, settings) -> None:
    y = target_for(cls)
    times = np.random.default_rng(0).integers(0, 4, 160)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(160), times))
    settings = settings | {"bootstrap": bootstrap, "oob_score": bootstrap}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # all trees may have seen 3 copies
        weighted = grown(cls, 15, weight=times.astype(float), **settings)
        copied = grown(cls, 15, X[rows], y[rows], **settings)
    assert np.array_equal(answers(weighted, NEW), answers(copied, NEW))
    for a, b in zip(weighted, copied, strict=True):
        assert a.arrays_.n_samples.tolist() == b.arrays_.n_samples.tolist()
    if bootstrap:
        assert weighted.oob_score_ == pytest.approx(copied.oob_score_, rel=1e-9)
        assert np.array_equal(weighted.oob_curve_, copied.oob_curve_)
    assert all((times[own] > 0).all() for own in weighted.estimators_samples_)


@every_forest
def test_weights_that_are_not_whole(cls) -> None:
    weight = np.random.default_rng(0).uniform(0.0, 2.0, 160)
    weight[:30] = 0.0
    forest = grown(cls, 200, weight=weight, bootstrap=True, max_depth=2)
    drawn = np.bincount(np.concatenate(forest.estimators_samples_), minlength=160)
    assert drawn[:30].sum() == 0
    assert drawn.sum() == 200 * 130
    expected = weight / weight.sum() * drawn.sum()
    scores = (drawn - expected)[30:] / np.sqrt(expected[30:])
    assert np.abs(scores).max() < 5.0
    halves = grown(cls, 10, weight=np.full(160, 0.5), bootstrap=False)
    assert np.array_equal(answers(halves, NEW), answers(grown(cls, 10, bootstrap=False), NEW))


@every_forest
@pytest.mark.parametrize("scale", [0.5, 2.0, 100.0, 2.0**-700])
def test_the_scale_of_weights_does_not_matter(cls, scale) -> None:
    times = np.random.default_rng(0).integers(0, 4, 160)
    settings = {"bootstrap": True, "oob_score": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # all trees may have seen 3 copies
        forest = grown(cls, 15, weight=times.astype(float), **settings)
        scaled = grown(cls, 15, weight=scale * times, **settings)
    assert np.array_equal(answers(scaled, NEW), answers(forest, NEW))
    assert scaled.oob_score_ == pytest.approx(forest.oob_score_, rel=1e-9)
    for own, other in zip(forest.estimators_samples_, scaled.estimators_samples_, strict=True):
        assert np.array_equal(own, other)


@every_forest
def test_large_whole_weights_are_no_copies(cls) -> None:
    """As in surveys, where a row represents thousands: samples are as large as the table."""
    weight = np.random.default_rng(0).integers(10_000, 500_000, 160).astype(float)
    forest = grown(cls, 5, weight=weight, bootstrap=True)
    assert [len(own) for own in forest.estimators_samples_] == [160] * 5


# -- classes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", OF_CLASSES)
@pytest.mark.parametrize("bootstrap", [False, True])
def test_class_weights(cls, bootstrap) -> None:
    """Roots have the class weights; samples are drawn and counted without them."""
    for wish in ({0: 2, 1: 3, 2: 1}, {0: 0.5, 2: 7.25}, "balanced", "balanced_subsample"):
        forest = grown(cls, 6, class_weight=wish, bootstrap=bootstrap, min_samples_leaf=4)
        for rows, tree in zip(forest.estimators_samples_, forest.estimators_, strict=True):
            counts = np.bincount(LABELS[rows], minlength=3).astype(float)
            if isinstance(wish, dict):
                factors = np.array([wish.get(label, 1.0) for label in range(3)])
            elif wish == "balanced_subsample" and bootstrap:
                factors = 1.0 / counts
            else:
                factors = 1.0 / np.bincount(LABELS)
            expected = counts * factors
            arrays = tree.arrays_
            assert arrays.value[0] == pytest.approx(expected / expected.sum(), rel=1e-9)
            assert arrays.n_samples[0] == 160
            assert arrays.n_samples.min() >= 4
        assert answers(forest, NEW).sum(axis=1) == pytest.approx(1.0)
    plain = grown(cls, 6, bootstrap=bootstrap)
    same = grown(cls, 6, bootstrap=bootstrap, class_weight={0: 4.0, 1: 4.0, 2: 4.0})
    assert np.array_equal(plain.predict_proba(NEW), same.predict_proba(NEW))
    for a, b in zip(plain.estimators_samples_, same.estimators_samples_, strict=True):
        assert np.array_equal(a, b)


def test_rare_classes_are_found_when_balanced() -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((600, 3))
    y = (data[:, 0] + 0.7 * rng.standard_normal(600) > 1.9).astype(int)
    assert 20 < y.sum() < 60
    found = {}
    for wish in (None, "balanced", "balanced_subsample"):
        forest = grown(RandomForestClassifier, 60, data, y, class_weight=wish, max_depth=3)
        found[wish] = forest.predict(data)[y == 1].mean()
    assert found[None] < 0.7
    assert min(found["balanced"], found["balanced_subsample"]) > 0.8


@pytest.mark.parametrize("cls", OF_CLASSES)
@pytest.mark.parametrize(
    "labels",
    [np.array(["maybe", "no", "yes"]), np.array([-1.0, 0.0, 3.0]), np.array([7, -2, 10**12])],
    ids=["words", "floats", "integers"],
)
def test_labels_of_any_kind(cls, labels) -> None:
    forest = grown(cls, 8, y=labels[LABELS])
    assert np.array_equal(forest.classes_, np.unique(labels))
    assert np.isin(forest.predict(NEW), labels).all()
    assert forest.predict(NEW).dtype == labels.dtype
    order = np.argsort(labels)
    plain = grown(cls, 8, y=np.argsort(order)[LABELS])
    assert np.array_equal(forest.predict_proba(NEW), plain.predict_proba(NEW))
    as_list = grown(cls, 8, y=labels[LABELS].tolist())
    assert np.array_equal(as_list.predict(NEW), forest.predict(NEW))


# -- several outputs -------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", OF_CLASSES)
def test_several_outputs_of_classes(cls) -> None:
    y = np.column_stack([LABELS, X[:, 0] > 0])
    with pytest.raises(ValueError, match=r"OOB estimates.*multiclass-multioutput.*a function"):
        grown(cls, 60, y=y, bootstrap=True, oob_score=True)
    forest = grown(cls, 60, y=y, bootstrap=True, oob_score=lambda a, b: (a == b).mean())
    assert [own.tolist() for own in forest.classes_] == [[0, 1, 2], [0, 1]]
    assert forest.n_classes_ == [3, 2]
    assert forest.n_outputs_ == 2
    shares = forest.predict_proba(NEW)
    assert [own.shape for own in shares] == [(300, 3), (300, 2)]
    for o in range(2):
        mean = np.mean([tree.predict_proba(NEW)[o] for tree in forest], axis=0)
        assert shares[o] == pytest.approx(mean, rel=1e-12, abs=1e-15)
        assert np.array_equal(forest.predict(NEW)[:, o], shares[o].argmax(axis=1))
        logs = forest.predict_log_proba(NEW)[o]
        assert np.exp(logs) == pytest.approx(shares[o])
    assert forest.oob_decision_function_.shape == (160, 3, 2)
    assert (forest.oob_decision_function_[:, 2, 1] == 0.0).all()
    winners = forest.oob_decision_function_.argmax(axis=1)
    assert forest.oob_score_ == pytest.approx((winners == y).mean())
    two = np.column_stack([LABELS > 0, X[:, 0] > 0]).astype(int)
    peer = sklearn.ensemble.RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, two)
    same = grown(cls, 60, y=two, bootstrap=True, oob_score=True)
    assert same.oob_decision_function_.shape == peer.oob_decision_function_.shape
    winners = same.oob_decision_function_.argmax(axis=1)
    assert same.oob_score_ == accuracy_score(two, winners)  # all labels of a row must be right
    assert same.oob_score_ < (winners == two).mean()
    words = np.column_stack([np.array(["u", "v", "w"])[LABELS], np.where(X[:, 0] > 0, "p", "q")])
    assert set(grown(cls, 3, y=words).predict(NEW)[:, 1]) == {"p", "q"}
    weighted = grown(cls, 3, y=y, class_weight=[{0: 5}, {1: 0.5}])
    assert weighted.predict(NEW).shape == (300, 2)


@pytest.mark.parametrize("cls", OF_NUMBERS)
@pytest.mark.parametrize("criterion", ["squared_error", "poisson", "absolute_error"])
def test_several_outputs_of_numbers(cls, criterion) -> None:
    y = np.exp(np.column_stack([_SIGNAL, -2.0 * _SIGNAL, X[:, 3]]) / 4)
    forest = grown(cls, 60, y=y, bootstrap=True, oob_score=True, criterion=criterion)
    mean = np.mean([tree.predict(NEW) for tree in forest], axis=0)
    assert forest.predict(NEW) == pytest.approx(mean, rel=1e-12)
    assert forest.predict(NEW).shape == (300, 3)
    assert forest.oob_prediction_.shape == (160, 3)
    assert forest.oob_score_ == pytest.approx(r2_score(y, forest.oob_prediction_))
    scaled = grown(cls, 5, y=y * 1e200, criterion=criterion)
    assert scaled.predict(NEW) == pytest.approx(
        1e200 * grown(cls, 5, y=y, criterion=criterion).predict(NEW), rel=1e-9
    )


@pytest.mark.parametrize("ccp_alpha", [0.0, 0.05])
def test_medians_of_several_outputs(ccp_alpha) -> None:
    """In all nodes, also of pruned trees, which are packed again."""
    y = np.column_stack([_SIGNAL, X[:, 3]])
    forest = grown(RandomForestRegressor, 5, y=y, criterion="absolute_error", ccp_alpha=ccp_alpha)
    for rows, tree in zip(forest.estimators_samples_, forest, strict=True):
        passed = tree.decision_path(X[rows]).toarray() == 1
        medians = [np.median(y[rows[own]], axis=0) for own in passed.T]
        assert tree.arrays_.value == pytest.approx(np.array(medians), rel=1e-12)
        errors = [np.abs(y[rows[own]] - np.median(y[rows[own]], axis=0)).mean() for own in passed.T]
        assert tree.arrays_.impurity == pytest.approx(np.array(errors), abs=1e-12)
        assert tree.get_n_leaves() > 5


def test_thresholds_of_several_outputs_are_drawn() -> None:
    twice = np.column_stack([_SIGNAL, _SIGNAL])
    for one, two in zip(
        grown(ExtraTreesRegressor), grown(ExtraTreesRegressor, y=twice), strict=True
    ):
        assert np.array_equal(one.arrays_.threshold, two.arrays_.threshold, equal_nan=True)


# -- tables ----------------------------------------------------------------------------------------


def mixed_table():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue", "grey"], 160)
    size = np.where(rng.random(160) < 0.2, np.nan, X[:, 0])
    return pd.DataFrame({"colour": pd.Categorical(colour), "size": size, "age": X[:, 1]})


@every_forest
def test_frames_with_categories_and_missing_values(cls) -> None:
    frame = mixed_table()
    y = np.nan_to_num(frame["size"].to_numpy()) + 2.0 * frame["colour"].isin(["red", "grey"])
    y = np.asarray(y + 0.1 * X[:, 2])
    y = (y > 1.0).astype(int) if cls in OF_CLASSES else y
    forest = grown(cls, 10, frame, y, bootstrap=False)
    assert forest.score(frame, y) == 1.0
    assert forest.feature_names_in_.tolist() == ["colour", "size", "age"]
    assert forest.estimators_[0].feature_names_in_.tolist() == ["colour", "size", "age"]
    with pytest.raises(ValueError, match="feature names should match"):
        forest.predict(frame[["age", "colour", "size"]])
    polars = pl.from_pandas(frame)
    assert np.array_equal(answers(grown(cls, 10, polars, y, bootstrap=False), polars),
                          answers(forest, frame))  # fmt: skip
    plain = frame.assign(colour=frame["colour"].cat.codes.astype(float)).to_numpy()
    coded = grown(cls, 10, plain, y, bootstrap=False, categorical_features=[0])
    assert np.array_equal(answers(coded, plain), answers(forest, frame))
    missing = pd.DataFrame({"colour": pd.Categorical([None]), "size": [np.nan], "age": [np.nan]})
    assert np.isfinite(answers(forest, missing)).all()
    each = np.stack([answers(tree, missing) for tree in forest])
    assert answers(forest, missing) == pytest.approx(each.mean(axis=0), rel=1e-12)
    leaves = np.stack([tree.apply(frame) for tree in forest], axis=1)
    assert np.array_equal(forest.apply(frame), leaves)


@every_forest
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_tables(cls, kind, index) -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((160, 8)) < 0.8, 0.0, np.round(rng.standard_normal((160, 8)), 1))
    y = (dense.sum(axis=1) > 0).astype(int) if cls in OF_CLASSES else dense.sum(axis=1)
    sparse = kind(dense)
    for name in ("indices", "indptr", "row", "col"):
        if isinstance(getattr(sparse, name, None), np.ndarray):
            setattr(sparse, name, getattr(sparse, name).astype(index))
    for settings in ({"bootstrap": True, "oob_score": True}, {"bootstrap": False}):
        one, other = (grown(cls, 30, data, y, **settings) for data in (dense, sparse))
        assert not differ(one, other)
        assert np.array_equal(answers(one, dense), answers(other, sparse))
        assert np.array_equal(one.apply(dense), other.apply(sparse))
        assert getattr(one, "oob_score_", 0) == getattr(other, "oob_score_", 0)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_tables_of_other_numbers(dtype) -> None:
    data = (10 * np.abs(X)).astype(dtype)
    forest = grown(RandomForestClassifier, 5, data)
    same = grown(RandomForestClassifier, 5, data.astype(float))
    assert np.array_equal(forest.predict_proba(data), same.predict_proba(data.astype(float)))
    listed = grown(RandomForestClassifier, 5, data.tolist())
    assert not differ(forest, listed)
    assert not differ(forest, grown(RandomForestClassifier, 5, np.asfortranarray(data)))


@every_forest
def test_equal_rows_with_and_without_equal_targets(cls) -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 3, (200, 2)).astype(float)
    y = rng.integers(0, 3, 200) if cls in OF_CLASSES else rng.integers(0, 3, 200) / 2
    forest = grown(cls, 60, data, y, bootstrap=True, oob_score=True)
    assert all(len(rows) == 200 for rows in forest.estimators_samples_)
    for rows, tree in zip(forest.estimators_samples_, forest.estimators_, strict=True):
        own = y[rows]
        root = np.bincount(own, minlength=3) / 200 if cls in OF_CLASSES else [own.mean()]
        assert tree.arrays_.value[0] == pytest.approx(root)
    assert len({tuple(row) for row in answers(forest, data).reshape(200, -1).round(9)}) <= 9
    assert forest.oob_score_ < 0.6  # there is nothing to learn


# -- trees within rules ----------------------------------------------------------------------------


@every_forest
def test_rules_hold_in_all_trees(cls) -> None:
    least = 0.01 * 160 * (1 - 1e-9)
    for settings, holds in (
        ({"max_depth": 2}, lambda a: a.depth.max() <= 2),
        ({"max_leaf_nodes": 5}, lambda a: a.n_leaves == 5),
        ({"min_samples_leaf": 9}, lambda a: a.n_samples.min() >= 9),
        ({"min_samples_leaf": 0.1}, lambda a: a.n_samples.min() >= 16),
        ({"min_samples_split": 50}, lambda a: a.n_samples[a.kind != 0].min() >= 50),
        ({"min_weight_fraction_leaf": 0.2}, lambda a: a.weight.min() >= 32),
        ({"min_impurity_decrease": 0.01}, lambda a: (a.decrease[a.kind != 0] >= least).all()),
    ):
        forest = grown(cls, 6, **settings)
        assert all(holds(tree.arrays_) for tree in forest), settings
        assert sum(len(tree.arrays_) > 1 for tree in forest) >= 2, settings


@every_forest
def test_pruned_trees(cls) -> None:
    whole, pruned = (grown(cls, 8, ccp_alpha=alpha) for alpha in (0.0, 0.01))
    for before, after, rows in zip(whole, pruned, pruned.estimators_samples_, strict=True):
        assert 1 < len(after.arrays_) < len(before.arrays_)
        assert after.arrays_.value[0] == pytest.approx(before.arrays_.value[0], rel=1e-9)
        passed = np.asarray(after.decision_path(X[rows]).sum(axis=0)).ravel()
        assert np.array_equal(passed, after.arrays_.n_samples)
    each = np.stack([answers(tree, NEW) for tree in pruned])
    assert answers(pruned, NEW) == pytest.approx(each.mean(axis=0), rel=1e-12, abs=1e-15)
    assert len(grown(cls, 2, ccp_alpha=1e9).trees_[0]) == 1


@pytest.mark.parametrize("cls", OF_NUMBERS)
def test_monotone_forests(cls) -> None:
    forest = grown(cls, 20, monotonic_cst=[1, -1, 0, 0, 0])
    grid = np.tile(NEW[:40, None, :], (1, 15, 1))
    for feature, sign in ((0, 1), (1, -1)):
        rows = grid.copy()
        rows[:, :, feature] = np.linspace(-3, 3, 15)
        steps = np.diff(forest.predict(rows.reshape(-1, 5)).reshape(40, 15), axis=1)
        assert (sign * steps >= -1e-12).all()
        assert np.abs(steps).max() > 0.1
    classes = grown(RandomForestClassifier, 20, y=(_SIGNAL > 0).astype(int),
                    monotonic_cst=[1, 0, 0, 0, 0])  # fmt: skip
    rows = grid.copy()
    rows[:, :, 0] = np.linspace(-3, 3, 15)
    rising = classes.predict_proba(rows.reshape(-1, 5))[:, 1].reshape(40, 15)
    assert (np.diff(rising, axis=1) >= -1e-12).all()


@pytest.mark.parametrize("cls", OF_NUMBERS)
@pytest.mark.parametrize("power", [2.0**664, 2.0**-664, 2.0**990, 2.0**-990])
def test_targets_beyond_squares(cls, power) -> None:
    """Targets times a power of two change nothing but the values of the trees."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for settings in ({}, {"max_depth": 4}, {"max_features": 2}):
            plain = grown(cls, 9, bootstrap=False, **settings)
            large = grown(cls, 9, y=_SIGNAL * power, bootstrap=False, **settings)
            assert np.array_equal(large.predict(NEW), plain.predict(NEW) * power)
            assert np.array_equal(large.apply(NEW), plain.apply(NEW))
            if "max_depth" not in settings:
                assert large.feature_importances_ == pytest.approx(plain.feature_importances_)
            for tree in large:
                assert np.isfinite(tree.arrays_.impurity).all()
                assert np.isfinite(tree.arrays_.decrease).all()


@pytest.mark.parametrize("cls", OF_NUMBERS)
@pytest.mark.parametrize("offset", [1e9, -1e12])
def test_an_offset_of_the_targets_changes_no_split(cls, offset) -> None:
    y = np.round(_SIGNAL * 1024) / 1024
    plain, moved = (grown(cls, 5, y=own, bootstrap=False) for own in (y, y + offset))
    assert np.array_equal(plain.apply(NEW), moved.apply(NEW))
    assert moved.predict(NEW) - offset == pytest.approx(plain.predict(NEW), abs=1e-3)


# -- enough trees ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [RandomForestClassifier, RandomForestRegressor])
def test_trees_until_the_error_is_flat(cls) -> None:
    forest = grown(cls, "auto")
    n = len(forest)
    assert 100 <= n < 3000
    assert n % 25 == 0
    assert len(forest.oob_curve_) == n
    assert not hasattr(forest, "oob_score_")
    curve = forest.oob_curve_
    width = n // 10
    now, before = curve[-width:].mean(), curve[n // 2 - width : n // 2].mean()
    assert before - now <= max(0.01 * now, 0.5 / 160 * (cls is RandomForestClassifier))
    assert not differ(forest, grown(cls, n))
    assert not differ(forest, grown(cls, "auto", n_jobs=3))
    further = grown(cls, n, warm_start=True, oob_score=True).set_params(n_estimators=2 * n)
    error = further.fit(X, target_for(cls)).oob_curve_[-1]
    assert error > 0.85 * curve[-1]


def test_when_a_curve_is_flat() -> None:
    class Heard:
        is_for_classes = False
        counts = np.zeros(1000)

        def __init__(self, curve):
            self.curve = [float(error) for error in curve]

    steps = np.arange(1, 2001)
    falling, flat = 1.0 / steps, np.full(2000, 0.3)
    assert not any(is_flat(Heard(falling[:n])) for n in range(0, 2001, 25))
    assert [n for n in range(200) if is_flat(Heard(flat[:n]))] == [100, 125, 150, 175]
    mostly = 0.3 + 1.0 / steps
    first = next(n for n in range(2001) if is_flat(Heard(mostly[:n])))
    assert 200 < first < 800


# -- budgets, interrupts, listeners ----------------------------------------------------------------


MANY = np.random.default_rng(5).standard_normal((4000, 8))
MANY_LABELS = (MANY[:, 0] + np.random.default_rng(6).standard_normal(4000) > 0).astype(int)


def test_progress_counts_trees() -> None:
    heard = []
    with watch(on_progress=heard.append):
        forest = RandomForestClassifier(40, random_state=0, oob_score=True).fit(MANY, MANY_LABELS)
    done = [progress.done for progress in heard]
    assert done == sorted(done)
    assert sorted(set(done) - {0}) == list(range(1, 41))
    assert {(p.learner, p.unit, p.total) for p in heard} == {("RandomForestClassifier", "tree", 40)}
    assert heard[-1].figures["nodes"] == sum(len(tree) for tree in forest.trees_)
    assert heard[-1].figures["out-of-bag error"] == forest.oob_curve_[-1]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_listener_ends_the_forest_with_the_trees_so_far(n_jobs) -> None:
    whole = RandomForestClassifier(40, random_state=0).fit(MANY, MANY_LABELS)
    part = RandomForestClassifier(500, random_state=0, n_jobs=n_jobs, oob_score=True)
    with watch(on_progress=lambda progress: progress.done >= 40):
        part.fit(MANY, MANY_LABELS)
    assert len(part) == 40
    assert not differ(part, whole)
    assert len(part.oob_curve_) == 40


def test_a_budget_of_time() -> None:
    forest = RandomForestClassifier(10_000, random_state=0, max_time=0.4)
    told = pytest.warns(ConvergenceWarning, match=r"max_time=0.4 s after \d+ of 10000 trees")
    with steady_clock(), told:
        forest.fit(MANY, MANY_LABELS)
    n = len(forest)
    assert 1 <= n < 10_000
    few = RandomForestClassifier(min(n, 5), random_state=0).fit(MANY, MANY_LABELS)
    assert bits_of(forest)[:5] == bits_of(few)[:5]
    forest.set_params(warm_start=True, max_time=None, n_estimators=n + 2).fit(MANY, MANY_LABELS)
    assert len(forest) == n + 2


def test_interrupts_leave_the_old_forest_or_keep_the_trees_so_far() -> None:
    forest = RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    before, state = forest.trees_, dict(vars(forest))
    forest.set_params(n_estimators=400)

    def press(progress):
        if progress.done >= 3:
            raise KeyboardInterrupt

    with watch(on_progress=press):
        with pytest.raises(KeyboardInterrupt):
            forest.fit(MANY, MANY_LABELS)
        assert forest.trees_ is before
        assert dict(vars(forest)) == state | {"n_estimators": 400}
        with pytest.warns(InterruptedFitWarning, match=r"interrupted after \d+ trees"):
            forest.set_params(on_interrupt="keep").fit(MANY, MANY_LABELS)
    assert 3 <= len(forest) < 400
    same = RandomForestClassifier(len(forest), random_state=0).fit(MANY, MANY_LABELS)
    assert not differ(forest, same)
    assert forest.n_features_in_ == 8


def test_cancelling_and_fitting_again_from_a_listener() -> None:
    forest = RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    before, stop = forest.trees_, threading.Event()
    stop.set()
    with watch(cancel=stop), pytest.raises(FitCancelled, match="as it was before"):
        forest.fit(MANY, MANY_LABELS)
    again = watch(on_progress=lambda progress: forest.fit(MANY, MANY_LABELS))
    with again, pytest.raises(RuntimeError, match="clone"):
        forest.fit(MANY, MANY_LABELS)

    def fail(progress):
        raise OSError("disk full")

    with watch(on_progress=fail), pytest.raises(OSError, match="disk full"):
        forest.fit(MANY, MANY_LABELS)
    assert forest.trees_ is before


@every_forest
def test_callbacks_of_scikit_learn(cls) -> None:
    from sklearn import callback

    monitor = callback.ScoringMonitor(scoring="r2" if cls in OF_NUMBERS else "accuracy")
    forest = cls(7, random_state=0).set_callbacks(monitor)
    forest.fit(X, target_for(cls))
    assert len(forest) == 7
    assert not differ(forest, grown(cls, 7))


# -- forests as values -----------------------------------------------------------------------------


@every_forest
def test_forests_are_sequences_of_trees(cls) -> None:
    forest = grown(cls, 9)
    assert len(forest) == len(forest.trees_) == len(forest.estimators_) == 9
    trees = list(forest)
    kind = DecisionTreeClassifier if cls in OF_CLASSES else DecisionTreeRegressor
    assert all(isinstance(tree, kind) for tree in trees)
    assert np.array_equal(forest[-1].predict(NEW), trees[8].predict(NEW))
    assert np.array_equal(forest[np.int64(3)].predict(NEW), trees[3].predict(NEW))
    assert [len(tree.arrays_) for tree in forest.estimators_[2:5]] == [
        len(tree.arrays_) for tree in trees[2:5]
    ]
    with pytest.raises(IndexError):
        forest[9]
    with pytest.raises(ValueError, match="No trees"):
        forest[4:4]
    for which in (slice(3), slice(2, 7), slice(None, None, -2), slice(-1, None)):
        part = forest[which]
        assert bits_of(part) == bits_of(forest)[which]
        assert part.n_estimators == len(part)
        each = np.mean([answers(tree, NEW) for tree in trees[which]], axis=0)
        assert answers(part, NEW) == pytest.approx(each, rel=1e-12, abs=1e-15)
    assert len(forest) == 9


@every_forest
def test_sums_of_forests(cls) -> None:
    one, other = grown(cls, 5), grown(cls, 7, random_state=1)
    both = one + other
    assert len(both) == 12
    assert bits_of(both) == bits_of(one) + bits_of(other)
    assert (len(one), len(other)) == (5, 7)
    mean = (5 * answers(one, NEW) + 7 * answers(other, NEW)) / 12
    assert answers(both, NEW) == pytest.approx(mean, rel=1e-12, abs=1e-15)
    whole = grown(cls, 12, random_state=3)
    assert not differ(whole[:4] + whole[4:], whole)
    total = sum((whole[k : k + 1] for k in range(1, 12)), whole[:1])
    assert np.array_equal(answers(total, NEW), answers(whole, NEW))
    mixed = one + grown(ExtraTreesClassifier if cls in OF_CLASSES else ExtraTreesRegressor, 2)
    assert len(mixed) == 7


def test_forests_that_do_not_go_together() -> None:
    forest = grown(RandomForestClassifier, 2)
    for other in (
        grown(RandomForestClassifier, 2, X[:, :4]),
        grown(RandomForestClassifier, 2, y=LABELS + 1),
        grown(RandomForestClassifier, 2, pd.DataFrame(X, columns=list("abcde"))),
        grown(RandomForestClassifier, 2, y=np.column_stack([LABELS, LABELS])),
    ):
        with pytest.raises(ValueError, match="cannot be added"):
            forest + other
    tree = DecisionTreeClassifier().fit(X, LABELS)
    for other in (grown(RandomForestRegressor, 2), 3, None, tree):
        with pytest.raises(TypeError):
            forest + other


@every_forest
def test_figures_of_training_are_not_those_of_parts_and_sums(cls) -> None:
    forest = grown(cls, 40, bootstrap=True, oob_score=True)
    for other in (forest[:10], forest[3:], forest + forest):
        assert not any(name.startswith("oob_") and name.endswith("_") for name in vars(other))
    assert hasattr(forest, "oob_score_")
    assert len(forest[:10].estimators_samples_) == 10
    for unknown in (forest[3:], forest + forest):
        with pytest.raises(AttributeError, match="slice or a sum"):
            unknown.estimators_samples_  # noqa: B018
        with pytest.raises(ValueError, match="warm_start"):
            unknown.set_params(warm_start=True, n_estimators=100).fit(X, target_for(cls))


@every_forest
def test_copies_and_pickles(cls) -> None:
    forest = grown(cls, 40, bootstrap=True, oob_score=True)
    for twin in (pickle.loads(pickle.dumps(forest)), copy.deepcopy(forest), copy.copy(forest)):
        assert np.array_equal(answers(twin, NEW), answers(forest, NEW))
        assert not differ(twin, forest)
        assert twin.oob_score_ == forest.oob_score_
        assert np.array_equal(twin.estimators_samples_[7], forest.estimators_samples_[7])
        more = twin.set_params(warm_start=True, n_estimators=43).fit(X, target_for(cls))
        assert not differ(more, grown(cls, 43, bootstrap=True))
    assert len(forest) == 40
    blank = clone(forest)
    assert blank.get_params() == forest.get_params()
    assert not hasattr(blank, "trees_")
    assert len(pickle.dumps(forest)) < 60 * sum(len(tree) for tree in forest.trees_) + 50_000


@every_forest
def test_trees_are_estimators_of_their_own(cls) -> None:
    forest = grown(cls, 3)
    tree = forest.estimators_[1]
    assert tree.n_features_in_ == 5
    assert tree.get_depth() > 2
    assert tree.arrays_.require_sound() is None
    assert tree.tree_.n_node_samples[0] == 160
    twin = pickle.loads(pickle.dumps(tree))
    assert np.array_equal(twin.predict(NEW), tree.predict(NEW))
    assert forest.estimator_.get_params()["max_features"] == forest.max_features
    assert not hasattr(forest.estimator_, "arrays_")
    assert "3 trees" in repr(forest.estimators_)


# -- beside scikit-learn ---------------------------------------------------------------------------


@every_forest
def test_parameters_and_attributes_are_those_of_scikit_learn(cls) -> None:
    theirs = getattr(sklearn.ensemble, cls.__name__)
    defaults = theirs().get_params()
    ours = cls().get_params()
    assert set(defaults) <= set(ours)
    assert {name: ours[name] for name in defaults} == defaults
    frame = pd.DataFrame(X, columns=list("abcde"))
    settings = {"bootstrap": True, "oob_score": True, "random_state": 0}
    peer = theirs(40, **settings).fit(frame, target_for(cls))
    forest = cls(40, **settings).fit(frame, target_for(cls))
    for name in dir(peer):
        if name.endswith("_") and not name.startswith("_"):
            known = getattr(forest, name)
            theirs_too = getattr(peer, name)
            if isinstance(theirs_too, np.ndarray):
                assert known.shape == theirs_too.shape, name
    for name in ("apply", "decision_path", "predict", "score", "fit", "get_params"):
        assert callable(getattr(forest, name))
    assert is_classifier(forest) == (cls in OF_CLASSES)
    assert is_regressor(forest) == (cls in OF_NUMBERS)
    assert forest.apply(frame).shape == peer.apply(frame).shape
    assert len(forest.estimators_samples_) == len(peer.estimators_samples_)
    assert forest.estimator_.__class__.__name__.startswith("DecisionTree")


def distance_in_errors(ours, theirs):
    """How far apart two lists of scores are, in standard errors of the difference."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    spread = np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
    return abs(ours.mean() - theirs.mean()) / max(spread, 1e-3)


CONTESTS = {
    "iris": (load_iris, "Classifier"),
    "wine": (load_wine, "Classifier"),
    "breast cancer": (load_breast_cancer, "Classifier"),
    "digits": (load_digits, "Classifier"),
    "diabetes": (load_diabetes, "Regressor"),
}


@pytest.mark.parametrize("kind", ["RandomForest", "ExtraTrees"])
@pytest.mark.parametrize("name", CONTESTS)
@pytest.mark.sampled(4)
def test_as_good_as_scikit_learn(name, kind) -> None:
    """Over many seeds, test scores differ only by chance."""
    load, task = CONTESTS[name]
    data, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:700]
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    scores = []
    for module in (globals(), vars(sklearn.ensemble)):
        cls = module[kind + task]
        scores.append(
            [
                cls(30, random_state=seed).fit(data[train], y[train]).score(data[test], y[test])
                for seed in range(8)
            ]
        )
    assert distance_in_errors(*scores) < 4.5, scores
    assert np.mean(scores[0]) > (0.35 if task == "Regressor" else 0.85)


def test_in_cross_validation() -> None:
    data, y = load_wine(return_X_y=True)
    with joblib.parallel_config("threading", n_jobs=2):
        scores = cross_val_score(RandomForestClassifier(30, random_state=0), data, y, cv=4)
    assert scores.mean() > 0.93
    alone = cross_val_score(RandomForestClassifier(30, random_state=0), data, y, cv=4)
    assert np.array_equal(scores, alone)


def test_processes_grow_the_same_forest_as_threads() -> None:
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(20, oob_score=True, random_state=0)
    here = clone(model).fit(X, y)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert processes_wanted()
        elsewhere = clone(model).fit(X, y)
    assert not processes_wanted()
    assert len(here) == len(elsewhere) == 20
    for one, other in zip(here.trees_, elsewhere.trees_, strict=True):
        for name in ("nodes", "weight", "values", "words"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
            assert getattr(one, name).dtype == getattr(other, name).dtype
    assert np.array_equal(here.oob_curve_, elsewhere.oob_curve_)
