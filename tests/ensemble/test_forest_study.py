"""Measurements of forests against plain Python."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
import sklearn.ensemble
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.oracles import forests as oracle

from margrove import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    oob_importances,
    oob_impurity_importances,
    proximities,
    tree_correlation,
)
from margrove._runtime import memory as _memory
from margrove.datasets import load_iris
from margrove.ensemble.bootstrap import resampling
from margrove.ensemble.forest.evaluation_data import TrainingRows
from margrove.ensemble.forest.importances import _centre as centre_of
from margrove.ensemble.forest.importances import _gains as gains_of
from margrove.exceptions import DataWarning, InvalidDataError

IRIS, SPECIES = load_iris(return_X_y=True)
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(90, 5))
LINE = NOISE @ [2.0, -1.0, 0.5, 0.0, 0.0] + 0.5 * RNG.normal(size=90) + 10.0
COLOURS = RNG.choice(["red", "green", "blue", "grey"], size=90)


def fitted(cls, X, y, weight=None, **settings):
    """Uses one thread: without the compiler, NumPy scalars warn about overflow in other threads."""
    settings = {"n_estimators": 8, "bootstrap": True, "random_state": 3, "n_jobs": 1} | settings
    return cls(**settings).fit(X, y, weight)


def _problem(name):
    """(forest, X, y, the rows as numbers, targets as lists, classes of each output)."""
    gaps = np.where(RNG_GAPS < 0.15, np.nan, np.round(NOISE, 1))
    if name == "classes":
        X, y = IRIS[::2], SPECIES[::2]
        return fitted(RandomForestClassifier, X, y), X, y, X, y[:, None], (3,)
    if name == "words":
        y = np.where(LINE > 10, "yes", "no")
        forest = fitted(RandomForestClassifier, NOISE, y, class_weight="balanced", max_depth=4)
        return forest, NOISE, y, NOISE, (y == "yes")[:, None] * 1, (2,)
    if name == "numbers":
        return fitted(RandomForestRegressor, NOISE, LINE), NOISE, LINE, NOISE, LINE[:, None], ()
    if name == "gaps and labels":
        X = pd.DataFrame(gaps, columns=list("abcde")).assign(colour=COLOURS)
        y = LINE + 3.0 * (COLOURS == "red")
        codes = np.searchsorted(["blue", "green", "grey", "red"], COLOURS)
        forest = fitted(ExtraTreesRegressor, X, y, max_depth=6)
        return forest, X, y, np.column_stack([gaps, codes]), y[:, None], ()
    if name == "two outputs of classes":
        y = np.column_stack([NOISE[:, 0] > 0, np.digitize(LINE, [9, 11])]).astype(int)
        forest = fitted(RandomForestClassifier, NOISE, y, max_depth=5)
        return forest, NOISE, y, NOISE, y, (2, 3)
    if name == "two outputs of numbers":
        y = np.column_stack([LINE, NOISE[:, 1] ** 2])
        return fitted(RandomForestRegressor, NOISE, y, max_depth=5), NOISE, y, NOISE, y, ()
    y = np.abs(LINE)
    forest = fitted(RandomForestRegressor, NOISE, y, criterion="absolute_error", max_depth=4)
    return forest, NOISE, y, NOISE, y[:, None], ()


RNG_GAPS = np.random.default_rng(1).random((90, 5))
NAMES = ("classes", "words", "numbers", "gaps and labels", "two outputs of classes",
         "two outputs of numbers", "medians")  # fmt: skip
PLAIN = ("classes", "numbers")  # small enough for the fast subset without the compiler
MARKED = [pytest.param(name, marks=[pytest.mark.nojit] * (name in PLAIN)) for name in NAMES]


class Problems:
    """Problems by name, each created when a test first uses it."""

    __getitem__ = staticmethod(functools.cache(_problem))


@pytest.fixture
def problems():
    return Problems()


def left_out(forest, k):
    """Rows that a tree has not seen, in the order of the forest; all rows differ."""
    seen = set(forest.estimators_samples_[k].tolist())
    return [row for row in forest.sampled_.rows.tolist() if row not in seen]


# -- permutations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MARKED)
def test_rises_are_those_of_plain_python(problems, name) -> None:
    forest, X, y, rows, targets, n_classes = problems[name]
    found = oob_importances(forest, X, y, n_repeats=2, random_state=11, n_jobs=1)
    rows, targets = rows.tolist(), targets.tolist()
    for k in range(3):
        arrays, out = forest[k].arrays_, left_out(forest, k)
        own, truth = [rows[i] for i in out], [targets[i] for i in out]
        expected = [
            oracle.mean(
                [
                    oracle.rise(
                        arrays, own, truth, None, j,
                        oracle.permutation(11, k, j, repeat, len(out)), n_classes,
                    )
                    for repeat in range(2)
                ]
            )
            for j in range(len(rows[0]))
        ]  # fmt: skip
        assert found.by_tree[k] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        losses = [oracle.loss(arrays, r, t, n_classes) for r, t in zip(own, truth, strict=True)]
        assert found.tree_errors[k] == pytest.approx(oracle.mean(losses), rel=1e-12)


def test_many_permutations_come_to_the_mean_over_all_there_are(problems) -> None:
    forest, X, y, rows, targets, n_classes = problems["classes"]
    found = oob_importances(forest, X, y, n_repeats=4000, random_state=0)
    out = left_out(forest, 0)
    own, truth = [rows[i].tolist() for i in out], [targets[i].tolist() for i in out]
    for j in range(4):
        expected = oracle.expected_rise(forest[0].arrays_, own, truth, j, n_classes)
        assert found.by_tree[0, j] == pytest.approx(expected, abs=0.004)


def test_features_that_no_split_asks_for_are_worth_exactly_nothing() -> None:
    X = np.column_stack([NOISE, np.ones(90)])
    forest = fitted(RandomForestRegressor, X, LINE, max_depth=2, n_estimators=20)
    for found in (
        oob_importances(forest, X, LINE, random_state=0),
        oob_impurity_importances(forest, X, LINE),
    ):
        assert found.mean[5] == found.standard_error[5] == found.low[5] == found.high[5] == 0.0
        for k, tree in enumerate(forest):
            asked = set(tree.arrays_.feature.tolist())
            assert all(found.by_tree[k, j] == 0.0 for j in range(6) if j not in asked)


def test_the_interval_is_students() -> None:
    forest = fitted(RandomForestRegressor, NOISE, LINE, n_estimators=12)
    found = oob_importances(forest, NOISE, LINE, confidence_level=0.8, random_state=0)
    own = found.by_tree[:, 0]
    interval = scipy.stats.ttest_1samp(own, 0.0).confidence_interval(0.8)
    assert found.mean[0] == pytest.approx(own.mean())
    assert (found.low[0], found.high[0]) == pytest.approx((interval.low, interval.high))
    assert found.standard_error[0] == pytest.approx(scipy.stats.sem(own))
    assert found.ranking[0] == "x0"


def test_important_features_stand_out() -> None:
    forest = fitted(RandomForestRegressor, NOISE, LINE, n_estimators=100)
    found = oob_importances(forest, NOISE, LINE, random_state=0)
    assert found.ranking[:2] == ["x0", "x1"]
    assert found.low[0] > 0.0
    assert np.all(found.mean[3:] < 0.05 * found.mean[0])


@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_show(problems, name) -> None:
    forest, X, y, *_ = problems[name]
    for study in (
        lambda jobs: oob_importances(forest, X, y, random_state=5, n_jobs=jobs).by_tree,
        lambda jobs: oob_impurity_importances(forest, X, y, n_jobs=jobs).by_tree,
    ):
        assert np.array_equal(study(1), study(3))


def test_pairs_and_correlations_do_not_depend_on_threads() -> None:
    X = np.random.default_rng(2).normal(size=(5000, 3))
    y = X[:, 0] > X[:, 1]
    forest = fitted(RandomForestClassifier, X[:300], y[:300])
    one, many = forest.set_params(n_jobs=1), pickle.loads(pickle.dumps(forest))
    many.set_params(n_jobs=3)
    assert tree_correlation(one, X, y) == tree_correlation(many, X, y)
    assert np.array_equal(proximities(one, X, X[:40]), proximities(many, X, X[:40]))


def test_neither_order_nor_repetition_matters() -> None:
    """A weight of k is the same as k copies, and the order of the rows does not matter."""
    times = np.random.default_rng(4).integers(1, 4, 90)
    rows = np.random.default_rng(5).permutation(np.repeat(np.arange(90), times))
    weighted = fitted(RandomForestRegressor, NOISE, LINE, times.astype(float))
    repeated = fitted(RandomForestRegressor, NOISE[rows], LINE[rows])
    for study in (oob_importances, oob_impurity_importances):
        options = {"random_state": 1} if study is oob_importances else {}
        one = study(weighted, NOISE, LINE, **options)
        other = study(repeated, NOISE[rows], LINE[rows], **options)
        assert np.array_equal(one.by_tree, other.by_tree)
        same = study(weighted, NOISE, LINE, sample_weight=times, **options)
        assert np.array_equal(one.by_tree, same.by_tree)


def test_rows_without_weight_are_no_rows() -> None:
    weight = np.where(np.arange(90) % 3 == 0, 0.0, 1.0)
    kept = weight > 0
    one = fitted(RandomForestRegressor, NOISE, LINE, weight)
    other = fitted(RandomForestRegressor, NOISE[kept], LINE[kept])
    found = oob_importances(one, NOISE, LINE, random_state=0)
    expected = oob_importances(other, NOISE[kept], LINE[kept], random_state=0)
    assert np.array_equal(found.by_tree, expected.by_tree)


@pytest.mark.parametrize("whole", [False, True])
def test_weights_that_are_not_counted_weigh_the_errors(monkeypatch, whole) -> None:
    """Weights that are not whole, or too large, are factors on errors."""
    weight = np.random.default_rng(6).uniform(0.5, 2.0, 90)
    if whole:
        weight = np.ceil(4 * weight)
        monkeypatch.setattr(resampling, "_MOST_UNITS", 10)
    forest = fitted(RandomForestRegressor, NOISE, LINE, weight)
    found = oob_importances(forest, NOISE, LINE, random_state=2)
    out = left_out(forest, 0)
    rows, targets = NOISE[out].tolist(), LINE[out][:, None].tolist()
    for j in range(5):
        order = oracle.permutation(2, 0, j, 0, len(out))
        own = oracle.rise(forest[0].arrays_, rows, targets, weight[out].tolist(), j, order, ())
        assert found.by_tree[0, j] == pytest.approx(own, rel=1e-9, abs=1e-12)


def test_other_weights_than_those_of_the_training() -> None:
    forest = fitted(RandomForestRegressor, NOISE, LINE)
    weight = np.zeros(90)
    only = left_out(forest, 0)[0]
    weight[only] = 7.0
    found = oob_importances(forest, NOISE, LINE, sample_weight=weight, random_state=2)
    error = (forest[0].predict(NOISE[[only]])[0] - LINE[only]) ** 2
    assert found.tree_errors[0] == pytest.approx(error)
    for k in range(8):  # trees that have seen this row do not predict it
        is_out = only in left_out(forest, k)
        assert np.isnan(found.by_tree[k]).all() != is_out
    assert np.isfinite(found.mean).all()


def test_sparse_tables_are_as_good_as_dense_ones() -> None:
    X = np.where(np.abs(NOISE) < 0.8, 0.0, NOISE)
    sparse = sp.csr_array(X)
    forest = fitted(RandomForestRegressor, sparse, LINE)
    for study in (oob_importances, oob_impurity_importances):
        options = {"random_state": 1} if study is oob_importances else {}
        one, other = study(forest, X, LINE, **options), study(forest, sparse, LINE, **options)
        assert np.array_equal(one.by_tree, other.by_tree)
    assert np.array_equal(proximities(forest, X), proximities(forest, sparse))
    assert tree_correlation(forest, X, LINE) == tree_correlation(forest, sparse, LINE)


# -- impurity --------------------------------------------------------------------------------------


def one_hot(targets, n_classes):
    if not n_classes:
        return np.asarray(targets, dtype=float)
    return np.concatenate([np.eye(size)[targets[:, o]] for o, size in enumerate(n_classes)], axis=1)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("name", MARKED)
def test_gains_are_those_of_plain_python(problems, name, centred) -> None:
    forest, X, y, rows, targets, n_classes = problems[name]
    found = oob_impurity_importances(forest, X, y, centred=centred, n_jobs=1)
    vectors = one_hot(targets, n_classes)
    vectors = vectors - vectors.mean(axis=0) if centred else vectors
    for k in range(3):
        out = left_out(forest, k)
        expected = oracle.impurity_gains(
            forest[k].arrays_, rows[out].tolist(), vectors[out].tolist(), None, rows.shape[1],
            targets.shape[1],
        )  # fmt: skip
        assert found.by_tree[k] == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("name", ["classes", "numbers", "two outputs of numbers"])
@pytest.mark.parametrize("centred", [True, False])
def test_over_the_rows_of_the_training_gains_are_decreases_of_impurity(
    problems, name, centred
) -> None:
    """Li et al. 2019, proposition 1."""
    forest, X, y, *_ = problems[name]
    training = TrainingRows(forest, X, y, None, "test")
    centre = centre_of(forest, training) if centred else np.zeros(forest.kind_.n_values)
    for k, tree in enumerate(forest.trees_):
        gains = np.zeros(forest.n_features_in_)
        drawn = forest.sampled_.multiplicities(k)
        gains_of(forest, training, tree, drawn, centre, gains)
        arrays = forest[k].arrays_
        expected = np.zeros_like(gains)
        inner = arrays.feature >= 0
        np.add.at(expected, arrays.feature[inner], arrays.decrease[inner] / arrays.weight[0])
        assert gains == pytest.approx(expected, rel=1e-9, abs=1e-10)


def test_noise_of_many_values_gains_nothing_out_of_bag() -> None:
    """By the impurity of the training rows, noise would be the most important feature."""
    found, usual = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, 2, 250), rng.normal(size=(250, 2))])
        y = np.where(rng.uniform(size=250) < 0.75, X[:, 0], 1 - X[:, 0]).astype(int)
        forest = fitted(RandomForestClassifier, X, y, n_estimators=40, max_features=None)
        found.append(oob_impurity_importances(forest, X, y).mean)
        usual.append(forest.feature_importances_)
    found, usual = np.array(found), np.array(usual)
    assert usual[:, 1:].mean() > 0.3  # each of the two noise features, of a total of 1
    noise = found[:, 1:].sum(axis=1)
    assert found[:, 0].mean() > 0.1
    assert abs(noise.mean()) < 3 * noise.std(ddof=1) / np.sqrt(12) + 0.003
    assert abs(noise.mean()) < 0.1 * found[:, 0].mean()


def test_the_zero_of_the_targets_does_not_matter() -> None:
    """If targets are far from zero, the published formula gives only noise."""
    y = np.round(LINE * 64) + 2.0**30
    forest = fitted(RandomForestRegressor, NOISE, y, n_estimators=30)
    found = oob_impurity_importances(forest, NOISE, y)
    out, near = left_out(forest, 0), np.round(LINE * 64)
    arrays = forest[0].arrays_
    arrays = dataclasses.replace(arrays, value=arrays.value - 2.0**30)
    vectors = (near - near.mean())[out][:, None].tolist()
    expected = oracle.impurity_gains(arrays, NOISE[out].tolist(), vectors, None, 5, 1)
    assert found.by_tree[0] == pytest.approx(expected, rel=1e-5, abs=1e-2)
    assert found.low[0] > 0.0
    published = oob_impurity_importances(forest, NOISE, y, centred=False)
    assert published.standard_error[0] > 1000 * found.standard_error[0]


# -- proximities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["classes", "gaps and labels"])
def test_proximities_are_those_of_plain_python(problems, name) -> None:
    forest, X, *_ = problems[name]
    leaves = forest.apply(X).tolist()
    found = proximities(forest, X)
    assert found.tolist() == oracle.proximities(leaves, leaves)
    assert np.array_equal(found, found.T)
    assert np.all(np.diag(found) == 1.0)
    some = proximities(forest, X[:7], X[3:50])
    assert some.tolist() == oracle.proximities(leaves[:7], leaves[3:50])


@pytest.mark.nojit
def test_proximities_out_of_bag(problems) -> None:
    forest, X, *_ = problems["classes"]
    samples = [set(own.tolist()) for own in forest.estimators_samples_]
    places = forest.sampled_.places  # equal rows are merged
    drawn = [{places[row] for row in own} for own in samples]
    seen = [[places[i] in own for own in drawn] for i in range(len(X))]
    expected = oracle.proximities(forest.apply(X).tolist(), forest.apply(X).tolist(), seen)
    found = proximities(forest, X, oob=True)
    assert np.array_equal(found, np.array(expected), equal_nan=True)
    assert np.isnan(found).any()  # with eight trees there is not always one


def test_proximities_of_many_rows_are_made_block_by_block(problems) -> None:
    forest, *_ = problems["numbers"]
    X = np.random.default_rng(0).normal(size=(2500, 5))
    found = proximities(forest, X, X[:9])
    leaves = forest.apply(X)
    assert np.array_equal(found, (leaves[:, None, :] == leaves[None, :9, :]).mean(axis=2))


def test_proximities_ask_for_memory_first(problems, monkeypatch) -> None:
    forest, X, *_ = problems["numbers"]
    monkeypatch.setattr(_memory, "available_memory", lambda: 10_000_000)
    X = np.zeros((4000, 5))
    with pytest.raises(MemoryError, match=r"proximities of 4000 rows.*fewer rows at a time"):
        proximities(forest, X)


# -- correlation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_correlation_of_residuals_is_that_of_plain_python(weighted) -> None:
    forest = fitted(RandomForestRegressor, NOISE[:60], LINE[:60], max_features=2)
    X, y = NOISE[60:], LINE[60:]
    weight = RNG_GAPS[:30, 0] if weighted else None
    found = tree_correlation(forest, X, y, sample_weight=weight)
    weights = [1.0] * 30 if weight is None else weight.tolist()
    residuals = [(tree.predict(X) - y).tolist() for tree in forest]
    rho, variance, of_mean = oracle.correlation(residuals, weights)
    assert found.correlation == pytest.approx(rho, rel=1e-9)
    assert found.tree_variance == pytest.approx(variance, rel=1e-12)
    assert found.forest_variance == pytest.approx(of_mean, rel=1e-12)
    squares = [oracle.mean([e * e for e in own], weights) for own in residuals]
    assert found.tree_error == pytest.approx(oracle.mean(squares), rel=1e-12)
    error = oracle.mean(((forest.predict(X) - y) ** 2).tolist(), weights)
    assert found.forest_error == pytest.approx(error, rel=1e-12)
    assert found.strength is None
    assert found.bound is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cls", [RandomForestRegressor, ExtraTreesRegressor])
def test_what_a_forest_gains_is_what_its_trees_differ(cls, seed) -> None:
    """Mean error of a tree = error of the forest + ambiguity; error = bias^2 + variance."""
    rng = np.random.default_rng(seed)
    X, offset = rng.normal(size=(120, 3)), 10.0 ** rng.integers(-3, 4)
    y = X[:, 0] * X[:, 1] + rng.normal(size=120) + offset
    forest = fitted(cls, X[:80], y[:80], random_state=seed, n_estimators=int(rng.integers(2, 30)))
    found = tree_correlation(forest, X[80:], y[80:] + rng.normal())
    assert found.tree_error == pytest.approx(found.forest_error + found.ambiguity, rel=1e-12)
    assert found.forest_error == pytest.approx(found.bias**2 + found.forest_variance, rel=1e-12)
    assert found.variance_with(found.n_trees) == pytest.approx(found.forest_variance, rel=1e-9)
    assert found.variance_with(1) == pytest.approx(found.tree_variance, rel=1e-12)
    assert found.variance_with(np.inf) == found.correlation * found.tree_variance


@pytest.mark.nojit
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_correlation_of_raw_margins_is_that_of_plain_python(voting) -> None:
    rows = np.arange(150) % 2 == 0
    X, y = IRIS[:, :2], SPECIES
    forest = fitted(RandomForestClassifier, X[rows], y[rows], voting=voting, n_estimators=15)
    found = tree_correlation(forest, X[~rows], y[~rows])
    votes = [tree.predict(X[~rows]).tolist() for tree in forest]
    margins = oracle.raw_margins(votes, y[~rows].tolist(), [0, 1, 2])
    rho, variance, of_mean = oracle.correlation(margins, [1.0] * 75)
    assert found.correlation == pytest.approx(rho, rel=1e-9)
    assert found.tree_variance == pytest.approx(variance, rel=1e-12)
    assert found.forest_variance == pytest.approx(of_mean, rel=1e-12)
    strength = oracle.mean([oracle.mean(own) for own in margins])
    assert found.strength == pytest.approx(strength, rel=1e-12)
    assert found.bound == pytest.approx(rho * (1 - strength**2) / strength**2, rel=1e-8)
    assert found.forest_error == pytest.approx(1 - forest.score(X[~rows], y[~rows]), abs=1e-12)
    errors = [np.mean(own != y[~rows]) for own in np.array(votes)]
    assert found.tree_error == pytest.approx(np.mean(errors), rel=1e-12)
    assert found.ambiguity is None
    # Breiman's bound uses Chebyshev's inequality, which holds on these rows
    lost = np.mean(np.array(margins).mean(axis=0) <= 0)
    assert lost <= found.forest_variance / strength**2
    assert found.tree_variance <= 1 - strength**2 + 1e-12


def test_fewer_features_make_trees_less_alike() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 10))
    y = X[:, 0] + 0.5 * X[:, 1:].sum(axis=1) + 0.3 * rng.normal(size=800)
    few, all_of_them = (
        tree_correlation(
            fitted(RandomForestRegressor, X[:400], y[:400], max_features=m, n_estimators=60),
            X[400:],
            y[400:],
        )
        for m in (3, None)
    )
    assert few.correlation < all_of_them.correlation
    assert few.tree_error > all_of_them.tree_error
    assert few.ambiguity > all_of_them.ambiguity


def test_correlation_where_there_is_none_to_speak_of() -> None:
    single = tree_correlation(
        fitted(RandomForestRegressor, NOISE, LINE, n_estimators=1), NOISE, LINE
    )
    assert np.isnan(single.correlation)
    assert single.tree_error == single.forest_error
    assert single.ambiguity == 0.0
    constant = fitted(RandomForestRegressor, NOISE, np.ones(90))
    assert np.isnan(tree_correlation(constant, NOISE, np.ones(90)).correlation)
    one_class = fitted(RandomForestClassifier, NOISE, np.zeros(90, dtype=int))
    found = tree_correlation(one_class, NOISE, np.zeros(90, dtype=int))
    assert (found.strength, found.forest_error) == (1.0, 0.0)


def test_classes_that_training_has_not_seen_are_always_wrong(problems) -> None:
    forest, X, *_ = problems["classes"]
    found = tree_correlation(forest, X, np.full(len(X), 9))
    assert (found.tree_error, found.forest_error) == (1.0, 1.0)
    assert found.strength < 0.0
    assert found.bound == np.inf


# -- odd things ------------------------------------------------------------------------------------

STUDIES = (oob_importances, oob_impurity_importances)


@pytest.mark.parametrize("study", STUDIES)
def test_only_fitted_forests_are_studied(study) -> None:
    with pytest.raises(NotFittedError):
        study(RandomForestRegressor(), NOISE, LINE)
    stranger = sklearn.ensemble.RandomForestRegressor(n_estimators=2).fit(NOISE, LINE)
    with pytest.raises(TypeError, match=r"forest .* of margrove\. Got RandomForestRegressor"):
        study(stranger, NOISE, LINE)
    line = make_pipeline(StandardScaler(), RandomForestRegressor(2)).fit(NOISE, LINE)
    with pytest.raises(TypeError, match="last step"):
        study(line, NOISE, LINE)


def test_pairs_and_correlations_need_a_fitted_forest() -> None:
    with pytest.raises(NotFittedError):
        proximities(RandomForestRegressor(), NOISE)
    with pytest.raises(NotFittedError):
        tree_correlation(RandomForestRegressor(), NOISE, LINE)
    with pytest.raises(TypeError, match="Got dict"):
        proximities({}, NOISE)


@pytest.mark.parametrize("study", STUDIES)
def test_other_tables_than_that_of_the_training_are_refused(problems, study) -> None:
    forest, X, y, *_ = problems["numbers"]
    with pytest.raises(InvalidDataError, match=r"which has 90 rows\. X has 89"):
        study(forest, X[1:], y[1:])
    with pytest.raises(ValueError, match="features"):
        study(forest, X[:, 1:], y)
    with pytest.raises(InvalidDataError, match="inconsistent"):
        study(forest, X, y[1:])
    with pytest.raises(InvalidDataError, match="not the training data"):
        study(forest, X[::-1], y[::-1])
    with pytest.raises(InvalidDataError, match="not the training data"):
        study(forest, X, y[::-1])
    with pytest.raises(InvalidDataError, match=r"y has 2 column"):
        study(forest, X, np.column_stack([y, y]))
    with pytest.raises(InvalidDataError, match="infinity"):
        study(forest, np.where(X > 2, np.inf, X), y)
    with pytest.raises(InvalidDataError, match="zero for all rows"):
        study(forest, X, y, sample_weight=np.zeros(90))
    labels = problems["classes"]
    with pytest.raises(InvalidDataError, match=r"at row \d+ that the forest was not trained on"):
        study(labels[0], labels[1], np.full(len(labels[2]), 7))
    with pytest.raises(InvalidDataError, match="not the training data"):
        study(labels[0], labels[1], labels[2][::-1])


@pytest.mark.parametrize("study", STUDIES)
def test_without_out_of_bag_rows_there_is_nothing_to_measure(study) -> None:
    whole = ExtraTreesRegressor(3, random_state=0).fit(NOISE, LINE)
    with pytest.raises(ValueError, match="needs out-of-bag rows"):
        study(whole, NOISE, LINE)
    parts = fitted(RandomForestRegressor, NOISE, LINE)
    for made in (parts[2:5], parts[::2], parts + parts):
        with pytest.raises(ValueError, match=r"slicing or adding.*original fitted forests"):
            study(made, NOISE, LINE)
    alone = fitted(RandomForestRegressor, NOISE[:1], LINE[:1])
    with pytest.raises(ValueError, match="Each of the 8 trees has seen all rows"):
        study(alone, NOISE[:1], LINE[:1])


def test_a_forest_grown_on_two_tables_has_no_training_table() -> None:
    forest = fitted(RandomForestRegressor, NOISE, LINE, warm_start=True)
    forest.set_params(n_estimators=12).fit(NOISE + 1.0, LINE)
    with pytest.raises(InvalidDataError, match="warm_start"):
        oob_importances(forest, NOISE + 1.0, LINE)


def test_a_forest_that_went_on_growing_is_one_forest() -> None:
    forest = fitted(RandomForestRegressor, NOISE, LINE, warm_start=True)
    forest.set_params(n_estimators=12).fit(NOISE, LINE)
    at_once = fitted(RandomForestRegressor, NOISE, LINE, n_estimators=12)
    one = oob_importances(forest, NOISE, LINE, random_state=0)
    assert np.array_equal(
        one.by_tree, oob_importances(at_once, NOISE, LINE, random_state=0).by_tree
    )


def test_the_first_trees_of_a_forest_are_a_forest() -> None:
    forest = fitted(RandomForestRegressor, NOISE, LINE)
    found = oob_importances(forest[:3], NOISE, LINE, random_state=0)
    expected = oob_importances(forest, NOISE, LINE, random_state=0)
    assert np.array_equal(found.by_tree, expected.by_tree[:3])


def test_trees_that_have_seen_all_rows_are_left_out() -> None:
    X, y = np.arange(4.0)[:, None], np.array([0.0, 0.0, 1.0, 1.0])
    forest = fitted(RandomForestRegressor, X, y, n_estimators=60)
    for found in (
        oob_importances(forest, X, y, random_state=0),
        oob_impurity_importances(forest, X, y),
    ):
        missing = np.isnan(found.tree_errors)
        assert 0 < missing.sum() < 30
        assert np.isnan(found.by_tree[missing]).all()
        assert found.mean[0] == pytest.approx(found.by_tree[~missing].mean())


def test_proximities_out_of_bag_are_of_the_training_table(problems) -> None:
    forest, X, *_ = problems["numbers"]
    with pytest.raises(ValueError, match="Leave out Y"):
        proximities(forest, X, X, oob=True)
    with pytest.raises(InvalidDataError, match=r"has 90 rows\. X has 10"):
        proximities(forest, X[:10], oob=True)
    with pytest.raises(InvalidDataError, match="not the training data"):
        proximities(forest, X[::-1], oob=True)
    with pytest.raises(ValueError, match="needs out-of-bag rows"):
        proximities(ExtraTreesRegressor(2).fit(X, LINE), X, oob=True)
    with pytest.raises(ValueError, match="slicing"):
        proximities(forest[2:], X, oob=True)
    with pytest.raises(ValueError, match="True or False"):
        proximities(forest, X, oob="yes")
    assert proximities(forest[:2], X).shape == (90, 90)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_repeats": 0},
        {"n_repeats": 1.5},
        {"n_repeats": True},
        {"confidence_level": 1.0},
        {"confidence_level": "high"},
        {"random_state": -1},
        {"n_jobs": 0},
        {"n_jobs": "all"},
    ],
)
def test_arguments_that_make_no_sense(problems, wrong) -> None:
    forest, X, y, *_ = problems["numbers"]
    with pytest.raises(ValueError, match=next(iter(wrong))):
        oob_importances(forest, X, y, **wrong)


def test_correlation_is_for_one_output(problems) -> None:
    for name in ("two outputs of classes", "two outputs of numbers"):
        forest, X, y, *_ = problems[name]
        with pytest.raises(ValueError, match="one output only"):
            tree_correlation(forest, X, y)


@pytest.mark.parametrize("power", [900, -450])
def test_targets_at_the_edge_of_floating_point(power) -> None:
    """Squares of large targets overflow, and are reported as the largest float."""
    y = LINE / np.abs(LINE).max()
    far = np.ldexp(y, power)
    forest = fitted(RandomForestRegressor, NOISE, far)
    found = oob_importances(forest, NOISE, far, random_state=0)
    out, arrays = left_out(forest, 0), forest[0].arrays_
    arrays = dataclasses.replace(arrays, value=np.ldexp(arrays.value, -power))
    rows, targets = NOISE[out].tolist(), y[out][:, None].tolist()
    rises = [
        oracle.rise(
            arrays, rows, targets, None, j, oracle.permutation(0, 0, j, 0, len(out)), ()
        )
        for j in range(5)
    ]  # fmt: skip
    limit = np.finfo(float).max
    with np.errstate(over="ignore"):
        expected = np.clip(np.ldexp(rises, 2 * power), -limit, limit)
    assert found.by_tree[0] == pytest.approx(expected, rel=1e-6)
    gains = oob_impurity_importances(forest, NOISE, far)
    for own in (found, gains):
        assert np.isfinite([own.mean, own.standard_error, own.low, own.high]).all()
        assert own.ranking[0] == "x0"
    alike = tree_correlation(forest, NOISE, far)
    residuals = [(np.ldexp(tree.predict(NOISE), -power) - y).tolist() for tree in forest]
    assert alike.correlation == pytest.approx(oracle.correlation(residuals, [1.0] * 90)[0])
    assert np.isfinite(tree_correlation(forest, NOISE, np.zeros(90)).tree_error)


def test_labels_that_are_new_are_missing(problems) -> None:
    forest, X, *_ = problems["gaps and labels"]
    strange = X.assign(colour="violet")
    with pytest.warns(DataWarning, match="violet"):
        found = proximities(forest, strange)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leaves = forest.apply(strange)
    assert np.array_equal(found, (leaves[:, None] == leaves[None]).mean(axis=2))


def test_huge_weights_take_no_more_memory() -> None:
    weight = np.full(90, 2.0**22)
    weight[0] += 1.0  # copies could be counted in units of 1 only
    heavy = fitted(RandomForestRegressor, NOISE, LINE, weight, max_samples=200)
    even = fitted(RandomForestRegressor, NOISE, LINE, max_samples=200)
    found, known = (oob_importances(forest, NOISE, LINE) for forest in (heavy, even))
    assert found.feature_names == known.feature_names
    assert [len(rows) for rows in heavy.estimators_samples_] == [200] * len(heavy)


def test_results_are_values_that_can_be_read(problems) -> None:
    forest, X, y, *_ = problems["gaps and labels"]
    found = oob_importances(forest, X, y, random_state=0)
    assert found.feature_names == [*"abcde", "colour"]
    assert repr(found).startswith("OobImportances(permutation, 8 trees: ")
    table = str(found).splitlines()
    assert len(table) == 7
    assert "95 % interval" in table[0]
    assert table[1].split()[0] == found.ranking[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.mean = 0
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.by_tree, found.by_tree)
    alike = tree_correlation(forest, X, y)
    assert "correlation=" in repr(alike)
    assert "strength" not in repr(alike)
    assert pickle.loads(pickle.dumps(alike)) == alike
    wide = fitted(RandomForestRegressor, np.tile(NOISE, 3), LINE, n_estimators=2)
    assert "and 5 more" in repr(oob_impurity_importances(wide, np.tile(NOISE, 3), LINE))


@pytest.mark.parametrize("cls", [RandomForestClassifier, ExtraTreesClassifier])
@pytest.mark.parametrize(
    "settings",
    [
        {"class_weight": "balanced_subsample"},
        {"class_weight": {0: 0.01, 1: 30.0, 2: 1.0}},
        {"ccp_alpha": 0.02},
        {"max_leaf_nodes": 4},
        {"max_samples": 0.3},
        {"max_bins": 5},
        {"criterion": "entropy", "voting": "hard"},
        {"categorical_features": [3]},
    ],
    ids=str,
)
def test_every_kind_of_forest_knows_its_training_table(cls, settings) -> None:
    forest = fitted(cls, IRIS, SPECIES, **settings)
    assert np.isfinite(oob_importances(forest, IRIS, SPECIES).mean).all()
    assert np.isfinite(oob_impurity_importances(forest, IRIS, SPECIES).mean).all()
    assert np.isfinite(proximities(forest, IRIS)).all()


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson", "gamma"])
def test_every_criterion_of_numbers_knows_its_training_table(criterion) -> None:
    forest = fitted(RandomForestRegressor, NOISE, np.abs(LINE) + 1e6, criterion=criterion)
    assert np.isfinite(oob_importances(forest, NOISE, np.abs(LINE) + 1e6).mean).all()


def test_monotone_forests_know_their_training_table() -> None:
    forest = fitted(RandomForestRegressor, NOISE, LINE, monotonic_cst=[-1, 0, 0, 0, 0])
    assert np.isfinite(oob_importances(forest, NOISE, LINE).mean).all()
