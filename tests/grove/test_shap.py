"""SHAP values are what the definition says, for every kind of tree and sum of trees."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils._param_validation import InvalidParameterError
from tests.grove.hand_made import arrays, chain
from tests.oracles import shap as oracle

import margrove
from margrove import (
    SVC,
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    shap_values,
)
from margrove.exceptions import DataWarning, InexactExplanationError, InvalidDataError
from margrove.grove.criteria import class_criteria, number_criteria
from margrove.grove.serve.tree_arrays import LEAF, THRESHOLD
from margrove.grove.serve.tree_sums import tree_sum_of

CLASS_CRITERIA = tuple(class_criteria(distinct=True))
NUMBER_CRITERIA = tuple(number_criteria(distinct=True))


def table(n=60, d=4, *, gaps=0.0, seed=0):
    """Few distinct values, so that features come again on a path; and numbers that depend on it."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (n, d)).astype(float)
    y = 0.5 + X[:, 0] * (X[:, 1] > 2) + 0.3 * X[:, 2] + rng.random(n)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


def agrees(model, X, background=None):
    """Whether values and base are those of the oracle, and their sums the model's answers."""
    summed = tree_sum_of(model, "the test")
    found = shap_values(model, X, background=background, n_jobs=1)
    others = None if background is None else summed.rows(background).tolist()
    rows = summed.rows(X)
    rows = rows.toarray().tolist() if sp.issparse(rows) else rows.tolist()
    values = found.values.reshape(len(rows), len(rows[0]), -1)
    for own, row in zip(values, rows, strict=True):
        wanted = np.concatenate(
            [
                oracle.shap_values(summed.trees[k :: summed.trees_per_round], row, others)
                for k in range(summed.trees_per_round)
            ],
            axis=1,
        )
        np.testing.assert_allclose(own, wanted, rtol=0, atol=1e-12 * max(1.0, summed.scale))
    np.testing.assert_allclose(
        found.base + values.sum(axis=1),
        summed.answers(X),
        rtol=0,
        atol=1e-12 * summed.scale + 1e-12,
    )
    return found


# -- trees --


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_shares_of_a_classifier(criterion) -> None:
    X, y = table(gaps=0.1)
    labels = np.digitize(y, [2.0, 3.5])
    model = DecisionTreeClassifier(criterion=criterion, max_leaf_nodes=12).fit(X, labels)
    found = agrees(model, X[:3])
    assert found.values.shape == (3, 4, 3)
    assert found.base.shape == (3,)
    assert np.allclose(found.values.sum(axis=2), 0.0)
    agrees(model, X[:2], X[20:25])


@pytest.mark.parametrize("criterion", NUMBER_CRITERIA)
def test_numbers_of_a_regressor(criterion) -> None:
    X, y = table()
    model = DecisionTreeRegressor(criterion=criterion, max_leaf_nodes=12).fit(X, y)
    assert agrees(model, X[:3]).values.shape == (3, 4)
    agrees(model, X[:2], X[20:25])


def test_several_outputs() -> None:
    X, y = table()
    numbers = DecisionTreeRegressor(max_depth=3).fit(X, np.column_stack([y, -y, X[:, 3]]))
    assert agrees(numbers, X[:2]).values.shape == (2, 4, 3)
    classes = np.column_stack([y > 2, np.digitize(y, [1.0, 3.0])])
    model = DecisionTreeClassifier(max_depth=3).fit(X, classes)
    assert agrees(model, X[:2]).values.shape == (2, 4, 5)
    agrees(model, X[:2], X[30:33])


@settings(max_examples=40)
@given(st.data())
def test_any_tree(data) -> None:
    """Missing values, categories, weights, depths; values of features that come again."""
    d, n = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 25))
    cells = st.one_of(st.integers(0, 4).map(float), st.just(np.nan))
    X = np.array(
        data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n))
    )
    y = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weight = data.draw(st.lists(st.sampled_from([1.0, 2.0, 0.3]), min_size=n, max_size=n))
    categorical = [j for j in range(d) if data.draw(st.booleans()) and not np.isnan(X[:, j]).all()]
    kind = data.draw(st.sampled_from([DecisionTreeClassifier, DecisionTreeRegressor]))
    model = kind(
        max_depth=data.draw(st.sampled_from([None, 1, 2, 5])),
        categorical_features=categorical or None,
        splitter=data.draw(st.sampled_from(["best", "random"])),
        random_state=0,
    ).fit(X, y, sample_weight=weight)
    agrees(model, X[:2])
    agrees(model, X[:2], X[-3:])


def test_labels_and_unknown_ones() -> None:
    frame = pd.DataFrame({"colour": list("rgbrgbrgb"), "size": [1, 2, 3, 1, 2, 3, 3, 2, 1]})
    y = [1.0, 5.0, 2.0, 1.5, 6.0, 2.0, 1.0, 5.5, 3.0]
    model = DecisionTreeRegressor(categorical_features="from_dtype").fit(frame, y)
    found = agrees(model, frame[:4])
    assert found.feature_names == ("colour", "size")
    assert shap_values(model, frame[:0]).values.shape == (0, 2)
    with pytest.raises(InvalidDataError, match="background of shap_values has no rows"):
        shap_values(model, frame, background=frame[:0])
    strange = frame[:2].assign(colour=["x", "r"])
    with pytest.warns(DataWarning, match="has not seen 'x'") as caught:
        found = shap_values(model, strange)
    assert len(caught) == 1
    assert np.isfinite(found.values).all()


def test_a_branch_for_each_value() -> None:
    X, y = table(600)  # so that no branch misses a value
    model = DecisionTreeClassifier(
        split="multiway", criterion="entropy", categorical_features=[0, 2], max_depth=2
    ).fit(X, y > 2)
    assert (model.arrays_.n_children > 2).any()
    agrees(model, X[:4])
    agrees(model, X[:2], X[5:9])


def test_rows_that_go_several_ways_are_refused() -> None:
    X, y = table(gaps=0.2)
    model = DecisionTreeClassifier(split="multiway", categorical_features=[0]).fit(X, y > 2)
    whole = X[~np.isnan(X).any(axis=1)]
    agrees(model, whole[:2])
    with pytest.raises(InvalidDataError, match=r"Row 1 of X has a missing value.*split='binary'"):
        shap_values(model, np.vstack([whole[:1], np.full((1, 4), np.nan)]))
    with pytest.raises(InvalidDataError, match="Row 2 of the background"):
        shap_values(model, whole[:1], background=np.vstack([whole[:2], np.full((1, 4), np.nan)]))


def test_a_single_leaf() -> None:
    model = DecisionTreeRegressor().fit([[1.0, 2.0], [3.0, 4.0]], [7.0, 7.0])
    for background in (None, [[0.0, 0.0]]):
        found = shap_values(model, [[1.0, 2.0], [0.0, 0.0]], background=background)
        assert found.values.tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert found.base.tolist() == [7.0]


def test_one_feature_asked_again_and_again() -> None:
    """As deep as there are rows; all of the answer is due to the one feature."""
    X = np.arange(300.0)[:, None]
    model = DecisionTreeRegressor().fit(X, 2.0 ** -np.arange(300))
    found = shap_values(model, X)
    np.testing.assert_allclose(found.base + found.values[:, 0], model.predict(X), atol=1e-15)


def test_many_features_on_a_path() -> None:
    """Sixty on one: Shapley's values of a product are known."""
    d = 60
    nodes = []
    for j in range(d):
        at = 2 * j
        nodes.append({"kind": THRESHOLD, "feature": j, "threshold": 0.5, "weight": 2.0 ** (d - j),
                      "children": [at + 1, at + 2], "value": [0.0]})  # fmt: skip
        nodes.append({"kind": LEAF, "weight": 2.0 ** (d - j - 1), "value": [0.0]})
    nodes.append({"kind": LEAF, "weight": 1.0, "value": [1.0]})
    model = DecisionTreeRegressor().fit(np.eye(d), np.arange(d))
    model = model._with_arrays(arrays(nodes, n_features=d))
    found = shap_values(model, np.ones((1, d)))
    np.testing.assert_allclose(found.values, (1.0 - 2.0**-d) / d, rtol=1e-12)
    found = shap_values(model, np.ones((1, d)), background=np.zeros((1, d)))
    np.testing.assert_allclose(found.values, 1.0 / d, rtol=1e-12)


def test_very_deep_trees() -> None:
    model = DecisionTreeClassifier().fit([[0.0, 1.0], [2.0, 3.0]], ["a", "b"])
    deep = model._with_arrays(chain(2000, n_features=2).arrays_)
    X = np.random.default_rng(0).normal(size=(3, 2)) * 1000
    for background in (None, X):
        found = shap_values(deep, X, background=background)
        total = found.base + found.values.sum(axis=1)
        assert np.allclose(total, deep.predict_proba(X), atol=1e-9)


# -- sums of trees --


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(4, max_depth=3, random_state=0),
        RandomForestClassifier(4, max_depth=3, voting="hard", random_state=0),
        ExtraTreesClassifier(4, max_depth=3, random_state=0, categorical_features=[1]),
        RandomForestRegressor(4, max_depth=3, random_state=0, criterion="absolute_error"),
        ExtraTreesRegressor(4, max_depth=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_forests(model) -> None:
    X, y = table(gaps=0.05)
    model.fit(X, np.digitize(y, [2.0, 3.5]) if hasattr(model, "voting") else y)
    agrees(model, X[:2])
    agrees(model, X[:2], X[5:8])


@pytest.mark.parametrize("algorithm", ["samme", "real", "gentle", "logit"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_depth", [1, 3])
def test_boosting(algorithm, n_classes, max_depth) -> None:
    X, y = table()
    kind = DecisionTreeClassifier if algorithm in ("samme", "real") else DecisionTreeRegressor
    model = AdaBoostClassifier(
        kind(max_depth=max_depth), algorithm=algorithm, n_estimators=4, learning_rate=0.7
    ).fit(X, np.digitize(y, [2.5, 3.5][: n_classes - 1]))
    found = agrees(model, X[:2])
    assert found.values.shape == ((2, 4) if n_classes == 2 else (2, 4, 3))
    agrees(model, X[:1], X[5:8])


def test_votes_of_a_forest_with_several_outputs() -> None:
    X, y = table()
    targets = np.column_stack([y > 2, np.digitize(y, [1.0, 3.0])])
    forest = RandomForestClassifier(3, max_depth=2, voting="hard", random_state=0)
    assert agrees(forest.fit(X, targets), X[:2]).values.shape == (2, 4, 5)


# -- gradient boosting --


def boosted(kind, **settings):
    return kind(max_iter=4, max_leaf_nodes=8, min_samples_leaf=3, **settings)


def has_base_of_means(model, found):
    """Whether the base is the start and what the trees say of their training rows on average."""
    for score, base in enumerate(found.base):
        means = [model.tree(t, score).value[0, 0] for t in range(len(model))]
        assert base == pytest.approx(model._scores.start[score] + sum(means), abs=1e-12)


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "poisson", "gamma", "tweedie"]
)
def test_raw_scores_of_boosted_numbers(loss) -> None:
    X, y = table(gaps=0.1)
    model = boosted(HistGradientBoostingRegressor, loss=loss).fit(X, y)
    found = agrees(model, X[:3])
    assert found.values.shape == (3, 4)
    has_base_of_means(model, found)
    raw = found.base + found.values.sum(axis=1)
    is_of_logarithms = loss in ("poisson", "gamma", "tweedie")
    np.testing.assert_allclose(np.exp(raw) if is_of_logarithms else raw, model.predict(X[:3]))
    against = agrees(model, X[:2], X[20:25])
    assert against.base == pytest.approx(model._raw(X[20:25]).mean())


@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_decision_function_of_two_boosted_classes(loss) -> None:
    X, y = table()
    model = boosted(HistGradientBoostingClassifier, loss=loss).fit(X, np.where(y > 2, "b", "a"))
    found = agrees(model, X[:3])
    assert found.values.shape == (3, 4)
    has_base_of_means(model, found)
    np.testing.assert_allclose(
        found.base + found.values.sum(axis=1), model.decision_function(X[:3]), rtol=0, atol=1e-12
    )
    agrees(model, X[:2], X[20:25])


def test_a_score_for_each_of_several_boosted_classes() -> None:
    X, y = table(gaps=0.05)
    model = boosted(HistGradientBoostingClassifier).fit(X, np.digitize(y, [1.5, 2.5, 3.5]))
    found = agrees(model, X[:3])
    assert found.values.shape == (3, 4, 4)
    has_base_of_means(model, found)
    np.testing.assert_allclose(
        found.base + found.values.sum(axis=1), model.decision_function(X[:3]), rtol=0, atol=1e-12
    )
    agrees(model, X[:2], X[20:25])


def test_boosted_labels_gaps_and_weights() -> None:
    rng = np.random.default_rng(0)
    colour = rng.choice(["r", "g", "b", None], 80)
    frame = pd.DataFrame({"colour": colour, "size": rng.integers(0, 5, 80) * 1.0})
    frame.loc[::7, "size"] = np.nan
    y = frame["size"].fillna(3) + 2.0 * (frame["colour"] == "g") + rng.random(80)
    model = boosted(HistGradientBoostingRegressor, subsample=0.7, random_state=0)
    model.fit(frame, y, sample_weight=rng.integers(0, 3, 80))
    found = agrees(model, frame[:9])
    assert found.feature_names == ("colour", "size")
    agrees(model, frame[:4], frame[30:34])
    with pytest.warns(DataWarning, match="has not seen 'x'"):
        strange = shap_values(model, frame[:1].assign(colour="x"))
    missing = shap_values(model, frame[:1].assign(colour=None))
    assert np.array_equal(strange.values, missing.values)


def test_boosting_takes_infinity_as_it_is() -> None:
    X, y = table()
    X[:5, 0], X[5:9, 1] = np.inf, -np.inf
    model = boosted(HistGradientBoostingRegressor).fit(X, y)
    agrees(model, X[:9:2])
    agrees(model, X[:2], X[6:9])


def test_boosting_of_sparse_rows_and_any_number_of_threads() -> None:
    X, y = table(600, 12)
    X[X < 4] = 0.0
    model = HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=15)
    model.fit(sp.csr_array(X), np.digitize(y, [1.5, 3.0]))
    for background in (None, X[:5]):
        one = shap_values(model, X, background=background, n_jobs=1)
        two = shap_values(model, sp.csr_array(X), background=background, n_jobs=2)
        assert np.array_equal(one.values, two.values)
        assert np.array_equal(one.base, two.base)


@pytest.mark.parametrize("settings", [{}, {"init": "zero"}, {"subsample": 0.5}])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_classic_boosting(n_classes, settings) -> None:
    X, y = table()
    kind = GradientBoostingRegressor if n_classes == 1 else GradientBoostingClassifier
    model = kind(n_estimators=4, random_state=0, **settings)
    model.fit(X, y if n_classes == 1 else np.digitize(y, [1.5, 3.0][: n_classes - 1]))
    found = agrees(model, X[:2])
    has_base_of_means(model, found)
    assert found.values.shape == ((2, 4) if n_classes < 3 else (2, 4, 3))
    agrees(model, X[:2], X[20:25])


def test_boosting_that_starts_from_another_model_is_refused() -> None:
    X, y = table()
    model = GradientBoostingRegressor(n_estimators=2, init=LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match=r"starts from LinearRegression\. Use init=None"):
        shap_values(model, X)


def test_boosting_without_a_split() -> None:
    with pytest.warns(DataWarning, match="has found no split"):
        model = HistGradientBoostingClassifier(max_iter=2).fit(np.zeros((30, 2)), [0, 1, 2] * 10)
    for background in (None, [[1.0, 2.0]]):
        found = shap_values(model, [[0.0, 5.0]], background=background)
        assert not found.values.any()
        assert found.base == pytest.approx(model.decision_function([[0.0, 5.0]])[0])


@settings(max_examples=25)
@given(st.data())
def test_any_boosting(data) -> None:
    d, n = data.draw(st.integers(1, 4)), data.draw(st.integers(4, 25))
    cells = st.one_of(st.integers(0, 4).map(float), st.just(np.nan))
    X = np.array(
        data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n))
    )
    n_classes = data.draw(st.integers(1, 3))
    y = np.arange(n) % n_classes if n_classes > 1 else np.round(np.sin(np.arange(n)), 2)
    categorical = [j for j in range(d) if data.draw(st.booleans()) and not np.isnan(X[:, j]).all()]
    kind = HistGradientBoostingClassifier if n_classes > 1 else HistGradientBoostingRegressor
    model = kind(
        max_iter=data.draw(st.integers(1, 3)),
        learning_rate=data.draw(st.sampled_from([0.1, 1.0])),
        min_samples_leaf=data.draw(st.integers(1, 3)),
        max_depth=data.draw(st.sampled_from([None, 1, 2])),
        categorical_features=categorical or None,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some have nothing to tell, or too long a step
        model.fit(X, y)
    agrees(model, X[:2])
    agrees(model, X[:2], X[-3:])


# -- how it is run --


def test_sparse_rows_are_like_dense_ones() -> None:
    X, y = table(200, 10)
    X[X < 4] = 0.0
    for model in (DecisionTreeRegressor(max_depth=5), RandomForestRegressor(5, random_state=0)):
        model.fit(X, y)
        for background in (None, X[:10]):
            dense = shap_values(model, X, background=background)
            thin = None if background is None else sp.csr_array(background)
            sparse = shap_values(model, sp.csr_array(X), background=thin)
            assert np.array_equal(dense.values, sparse.values)


def test_the_number_of_threads_and_of_rows_changes_nothing() -> None:
    X, y = table(700, 6)
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    for background in (None, X[:7]):
        one = shap_values(forest, X, background=background, n_jobs=1)
        two = shap_values(forest, X, background=background, n_jobs=2)
        alone = [shap_values(forest, X[i : i + 1], background=background) for i in (0, 300, 699)]
        assert np.array_equal(one.values, two.values)
        assert np.array_equal(np.concatenate([a.values for a in alone]), one.values[[0, 300, 699]])


def test_float32_rows_are_walked_as_they_are() -> None:
    X, y = table()
    X = (X / 7).astype(np.float32)
    model = DecisionTreeRegressor(max_depth=4).fit(X, y)
    agrees(model, X[:3])


def test_large_and_small_targets() -> None:
    X, y = table()
    plain = shap_values(DecisionTreeRegressor(max_depth=4).fit(X, y), X)
    for scale in (2.0**900, 2.0**-900):
        found = shap_values(DecisionTreeRegressor(max_depth=4).fit(X, y * scale), X)
        np.testing.assert_allclose(found.values / scale, plain.values, rtol=1e-12, atol=1e-14)


def test_sums_that_are_off_are_noticed(monkeypatch) -> None:
    X, y = table()
    model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    monkeypatch.setattr(DecisionTreeRegressor, "predict", lambda self, X: np.full(len(X), 3.0))
    with pytest.raises(InexactExplanationError, match="DecisionTreeRegressor do not add up"):
        shap_values(model, X)
    assert shap_values(model, X, check=False).values.shape == X.shape


def test_an_interrupt_comes_through() -> None:
    X, y = table(2000, 4)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    summed = tree_sum_of(forest, "the test")
    import margrove.grove.explain.shap as module

    calls = []

    def interrupted(*given):
        calls.append(1)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "add_path_values", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shap_values(forest, X, n_jobs=2)
    assert len(calls) <= 2 * len(summed.trees)


def test_names_and_sizes_are_shown() -> None:
    X, y = table(d=12)
    found = margrove.shap_values(RandomForestRegressor(3, random_state=0).fit(X, y), X)
    assert found.feature_names[:2] == ("x0", "x1")
    assert found.importances.shape == (12,)
    assert repr(found).startswith("ShapValues(60 rows, mean sizes: x")
    assert repr(found).endswith("and 2 more)")


# -- what is refused --


def test_other_models_are_refused() -> None:
    X, y = table()
    with pytest.raises(NotFittedError):
        shap_values(DecisionTreeRegressor(), X)
    with pytest.raises(NotFittedError):
        shap_values(RandomForestRegressor(), X)
    with pytest.raises(NotFittedError):
        shap_values(HistGradientBoostingRegressor(), X)
    with pytest.raises(TypeError, match="Got SVC instead"):
        shap_values(SVC(), X)
    with pytest.raises(TypeError, match="Got AdaBoostRegressor instead"):
        shap_values(AdaBoostRegressor(n_estimators=2).fit(X, y), X)
    oblique = DecisionTreeClassifier(splitter="oblique", max_depth=2).fit(X, X[:, 0] > X[:, 1])
    with pytest.raises(ValueError, match=r"splitter='oblique'.*Use splitter='best'"):
        shap_values(oblique, X)
    boosted = AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(X, y > 2)
    with pytest.raises(ValueError, match="members of type LogisticRegression"):
        shap_values(boosted, X)


def test_other_rows_are_refused() -> None:
    X, y = table()
    model = DecisionTreeRegressor().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        shap_values(model, X[:, :2])
    with pytest.raises(InvalidDataError, match="infinity"):
        shap_values(model, np.full((1, 4), np.inf))
    with pytest.raises(ValueError, match="0 sample"):
        shap_values(model, X, background=X[:0])
    with pytest.raises(InvalidParameterError, match="check"):
        shap_values(model, X, check="yes")
    with pytest.raises(InvalidParameterError, match="n_jobs"):
        shap_values(model, X, n_jobs=1.5)
