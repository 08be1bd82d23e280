"""Partial dependence is what asking the model for every row and point would give."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import inspection
from sklearn.utils._param_validation import InvalidParameterError
from tests.oracles import shap as oracle

from margrove import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    partial_dependence,
)
from margrove.exceptions import InvalidDataError
from margrove.grove.serve.tree_sums import tree_sum_of

TAKES_GAPS = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)


def table(n=80, d=4, *, gaps=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 2)
    y = X[:, 0] * (X[:, 1] > 0) + 0.3 * X[:, 2] ** 2 + 0.1 * rng.random(n)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


def brute(model, X, columns, grids, answer):
    """f of all rows at all points, (n, points, outputs)."""
    points = np.array(np.meshgrid(*grids, indexing="ij")).reshape(len(grids), -1).T
    found = []
    for point in points:
        changed = X.copy()
        changed[:, columns] = point
        found.append(np.asarray(answer(changed)).reshape(len(X), -1))
    return np.stack(found, axis=1)


# -- against scikit-learn and by hand --


@pytest.mark.parametrize("features", [[0], [2], [0, 1]])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(),
        DecisionTreeClassifier(max_depth=4),
        RandomForestRegressor(5, random_state=0),
        RandomForestClassifier(5, random_state=0),
        ExtraTreesRegressor(5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_averages_are_those_of_scikit_learn(model, features) -> None:
    X, y = table()
    is_class = hasattr(model, "predict_proba")
    model.fit(X, np.digitize(y, [0.0, 0.5]) if is_class else y)
    peer = inspection.partial_dependence(
        model, X, features, method="brute", grid_resolution=12, kind="both"
    )
    found = partial_dependence(model, X, features, n_grid=12, kind="both")
    for own, theirs in zip(found.grid, peer["grid_values"], strict=True):
        np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-12)
    average = np.moveaxis(found.average, -1, 0) if is_class else found.average[None]
    np.testing.assert_allclose(average, peer["average"], rtol=0, atol=1e-9)
    single = np.moveaxis(found.individual, -1, 0) if is_class else found.individual[None]
    np.testing.assert_allclose(single, peer["individual"], rtol=0, atol=1e-9)


def test_recursion_is_that_of_scikit_learn() -> None:
    """On the same tree, in scikit-learn's clothes."""
    X, y = table()
    model = DecisionTreeRegressor(max_depth=5).fit(X, y)
    peer = inspection.partial_dependence(
        model.to_sklearn(), X, [0, 1], method="recursion", grid_resolution=9
    )
    found = partial_dependence(model, X, [0, 1], n_grid=9, method="recursion")
    np.testing.assert_allclose(found.average, peer["average"][0], rtol=0, atol=1e-6)  # float32


@settings(max_examples=30)
@given(st.data())
def test_any_tree(data) -> None:
    d, n = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 20))
    cells = st.one_of(st.integers(0, 4).map(float), st.just(np.nan))
    X = np.array(
        data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n))
    )
    y = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weight = data.draw(st.lists(st.sampled_from([1.0, 2.0, 0.3]), min_size=n, max_size=n))
    categorical = [j for j in range(d) if data.draw(st.booleans()) and not np.isnan(X[:, j]).all()]
    kind = data.draw(st.sampled_from([DecisionTreeClassifier, DecisionTreeRegressor]))
    model = kind(
        max_depth=data.draw(st.sampled_from([None, 1, 3])), categorical_features=categorical or None
    ).fit(X, y, sample_weight=weight)
    features = data.draw(st.lists(st.integers(0, d - 1), min_size=1, max_size=2, unique=True))
    summed = tree_sum_of(model, "the test")
    grids = [
        [*model.categories_[j].tolist(), np.nan] if j in categorical else [-1.0, 1.5, 3.0, np.nan]
        for j in features
    ]
    numbers = [np.append(np.arange(len(g) - 1.0), np.nan) if j in categorical else np.array(g)
               for j, g in zip(features, grids, strict=True)]  # fmt: skip
    grid = grids[0] if len(features) == 1 else grids
    found = partial_dependence(model, X, features, grid=grid, kind="both")
    expected = partial_dependence(model, X, features, grid=grid, method="recursion")
    shape = tuple(len(own) for own in numbers)
    average = found.average.reshape(*shape, -1)
    np.testing.assert_allclose(
        found.individual.mean(axis=0).reshape(average.shape), average, atol=1e-12
    )
    rows = summed.rows(X).tolist()
    for place in np.ndindex(*shape):
        point = [own[k] for own, k in zip(numbers, place, strict=True)]
        wanted = oracle.partial_dependence(summed.trees, rows, features, point)
        np.testing.assert_allclose(average[place], wanted, rtol=0, atol=1e-12)
        wanted = oracle.recursion(summed.trees, d, features, point)
        own = expected.average.reshape(average.shape)[place]
        np.testing.assert_allclose(own, wanted, rtol=0, atol=1e-12)


def test_rows_that_go_several_ways() -> None:
    """C4.5: at nodes about other features, and about the one that is missing in the grid."""
    X, y = table(gaps=0.2)
    X[:, 0] = np.round(X[:, 0])
    X[:, 3] = np.round(X[:, 3])
    model = DecisionTreeClassifier(
        split="multiway", categorical_features=[0, 3], min_samples_leaf=3
    ).fit(X, y > 0)
    assert (model.arrays_.missing_child[model.arrays_.n_children > 0] < 0).any()
    for column in range(4):
        labels = model.categories_.get(column, np.linspace(-1, 1, 5))
        grid = [*labels.tolist(), np.nan]
        found = partial_dependence(model, X, column, grid=grid, kind="both")
        wanted = brute(model, X, [column], [grid], model.predict_proba)
        np.testing.assert_allclose(found.individual, wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.average, wanted.mean(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("base", [None, DecisionTreeClassifier(max_depth=3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosting(base, n_classes) -> None:
    X, y = table()
    model = AdaBoostClassifier(base, n_estimators=6)
    model.fit(X, np.digitize(y, [0.0, 0.5][: n_classes - 1]))
    found = partial_dependence(model, X, [1, 0], n_grid=5, kind="both")
    wanted = brute(model, X, [1, 0], found.grid, model.decision_function)
    np.testing.assert_allclose(found.individual.reshape(wanted.shape), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        found.average.reshape(wanted.shape[1:]), wanted.mean(axis=0), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("features", [[0], [1, 2]])
@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=5),
        HistGradientBoostingRegressor("poisson", max_iter=5),
        HistGradientBoostingClassifier(max_iter=5),
        GradientBoostingClassifier(n_estimators=5),
    ],
    ids=["numbers", "counts", "classes", "classic"],
)
def test_raw_scores_of_gradient_boosting(model, features) -> None:
    X, y = table(300, gaps=0.05 * isinstance(model, TAKES_GAPS))
    is_class = hasattr(model, "predict_proba")
    for n_classes in (2, 4) if is_class else (1,):
        targets = np.digitize(y, [0.0, 0.3, 0.6][: n_classes - 1]) if is_class else y - y.min()
        model.fit(X, targets)
        found = partial_dependence(model, X[:70], features, n_grid=6, kind="both")
        wanted = brute(model, X[:70], features, found.grid, lambda own: model._raw(own).T)
        outputs = () if n_classes <= 2 else (n_classes,)
        shape = tuple(len(grid) for grid in found.grid) + outputs
        assert found.individual.shape == (70, *shape)
        assert found.average.shape == shape
        average = wanted.mean(axis=0).reshape(shape)
        np.testing.assert_allclose(found.individual, wanted.reshape(70, *shape), atol=1e-12)
        np.testing.assert_allclose(found.average, average, atol=1e-12)


def test_gradient_boosting_is_as_scikit_learn_asks_for_it() -> None:
    X, y = table(300)
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, y > 0)
    peer = inspection.partial_dependence(
        model, X, [0], method="brute", response_method="decision_function", grid_resolution=12
    )
    found = partial_dependence(model, X, 0, n_grid=12)
    np.testing.assert_allclose(found.average, peer["average"][0], rtol=0, atol=1e-12)


def test_recursion_of_gradient_boosting() -> None:
    X, y = table(200, gaps=0.1)
    X[:, 3] = np.round(X[:, 3])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[3], max_leaf_nodes=9)
    model.fit(X, np.digitize(y, [0.0, 0.4]))
    summed = tree_sum_of(model, "the test")
    numbers = np.append(np.arange(len(model.categories_[3]) * 1.0), np.nan)
    grid = [*model.categories_[3].tolist(), np.nan]
    found = partial_dependence(model, X, [3, 0], grid=[grid, [-0.5, 0.5]], method="recursion")
    for place, score in np.ndindex(len(grid), 3):
        trees = summed.trees[score::3]
        wanted = [oracle.recursion(trees, 4, [3, 0], [numbers[place], x])[0] for x in (-0.5, 0.5)]
        own = found.average[place, :, score]
        np.testing.assert_allclose(own, summed.start[score] + wanted, rtol=0, atol=1e-12)


def test_grids_of_columns_with_infinity() -> None:
    X, y = table(200)
    X[:30, 0] = np.inf
    X[:, 3] = np.where(np.arange(200) % 2, np.inf, 1.0)
    model = HistGradientBoostingRegressor(max_iter=3).fit(X, y)
    grid = partial_dependence(model, X, 0).grid[0]
    assert len(grid) == 100
    assert np.isfinite(grid).all()
    found = partial_dependence(model, X, 3, kind="individual")
    assert found.grid[0].tolist() == [1.0]
    wanted = brute(model, X, [3], found.grid, model.predict)
    np.testing.assert_allclose(found.individual, wanted[..., 0], rtol=0, atol=1e-12)


def test_several_outputs() -> None:
    X, y = table()
    model = RandomForestClassifier(3, voting="hard", random_state=0)
    model.fit(X, np.column_stack([y > 0, np.digitize(y, [0.0, 0.5])]))
    found = partial_dependence(model, X, 0, n_grid=5)
    wanted = brute(
        model, X, [0], found.grid, lambda own: np.concatenate(model.predict_proba(own), axis=1)
    )
    np.testing.assert_allclose(found.average, wanted.mean(axis=0), rtol=0, atol=1e-12)


# -- features and grids --


def test_names_and_labels() -> None:
    frame = pd.DataFrame({"colour": list("rgbrgbrgb"), "size": [1, 2, 3, 1, 2, 3, 3, 2, 1]})
    y = [1.0, 5.0, 2.0, 1.5, 6.0, 2.0, 1.0, 5.5, 3.0]
    model = DecisionTreeRegressor(categorical_features="from_dtype").fit(frame, y)
    found = partial_dependence(model, frame, "colour")
    assert found.feature_names == ("colour",)
    assert found.grid[0].tolist() == ["b", "g", "r"]
    for label, own in zip(found.grid[0], found.average, strict=True):
        assert own == pytest.approx(model.predict(frame.assign(colour=label)).mean())
    both = partial_dependence(model, frame, ["size", "colour"], grid=[[1, 2], ["r", None]])
    assert both.average.shape == (2, 2)
    assert both.grid[1].tolist() == ["r", None]
    with pytest.raises(InvalidDataError, match="X of partial_dependence has no rows"):
        partial_dependence(model, frame[:0], "size")
    with pytest.raises(InvalidDataError, match="'x', which is not a label of colour"):
        partial_dependence(model, frame, "colour", grid=["x"])


def test_grids_lie_where_the_rows_do() -> None:
    X, y = table(200)
    X[:, 3] = 5.0
    X[:20, 3] = 6.0
    X[:, 2] = np.nan
    model = DecisionTreeRegressor().fit(X, y)
    assert partial_dependence(model, X, 3).grid[0].tolist() == [5.0, 6.0]
    assert np.isnan(partial_dependence(model, X, 2).grid[0]).tolist() == [True]
    grid = partial_dependence(model, X, 0).grid[0]
    assert len(grid) == 100
    assert X[:, 0].min() < grid[0] < grid[-1] < X[:, 0].max()
    X[:, 3] = np.where(np.arange(200) < 195, 5.0, np.arange(200))
    grid = partial_dependence(model, X, 3, n_grid=4).grid[0]  # its quantiles are all the same
    assert (grid[0], grid[-1]) == (5.0, 199.0)


def test_a_single_leaf() -> None:
    model = DecisionTreeRegressor().fit([[1.0, 2.0], [3.0, 4.0]], [7.0, 7.0])
    found = partial_dependence(model, [[1.0, 2.0]], [0, 1], grid=[[0.0], [1.0, 2.0]], kind="both")
    assert found.average.tolist() == [[7.0, 7.0]]
    assert found.individual.tolist() == [[[7.0, 7.0]]]


# -- how it is run --


def test_sparse_rows_and_threads_change_nothing() -> None:
    X, y = table(9000)
    X[np.abs(X) < 1] = 0.0
    forest = RandomForestRegressor(4, max_leaf_nodes=50, random_state=0).fit(X, y)
    one = partial_dependence(forest, X, 0, n_grid=7, kind="both", n_jobs=1)
    two = partial_dependence(forest, sp.csr_array(X), 0, n_grid=7, kind="both", n_jobs=2)
    assert np.array_equal(one.average, two.average)
    assert np.array_equal(one.individual, two.individual)
    assert one.individual.shape == (9000, 7)


# -- what is refused --


def test_what_is_refused() -> None:
    X, y = table()
    model = DecisionTreeRegressor().fit(X, y)
    for features in (4, -1, True, "x9", [0, 1, 2], [], [1, 1], None):
        with pytest.raises(InvalidParameterError, match="features of partial_dependence"):
            partial_dependence(model, X, features)
    for name, value in (("kind", "all"), ("n_grid", 1), ("method", "brute"), ("n_jobs", "two")):
        with pytest.raises(InvalidParameterError, match=name):
            partial_dependence(model, X, 0, **{name: value})
    with pytest.raises(ValueError, match="needs method='exact'"):
        partial_dependence(model, X, 0, kind="both", method="recursion")
    for grid in ([], [[1.0, 2.0], [3.0, 4.0]], [np.inf], ["a"]):
        with pytest.raises(InvalidDataError, match="grid of partial_dependence"):
            partial_dependence(model, X, 0, grid=grid)
    with pytest.raises(InvalidParameterError, match="for each of 2 features"):
        partial_dependence(model, X, [0, 1], grid=[[1.0, 2.0]])
    with pytest.raises(ValueError, match="0 sample"):
        partial_dependence(model, X[:0], 0)
    oblique = DecisionTreeClassifier(splitter="oblique", max_depth=2).fit(X, X[:, 0] > X[:, 1])
    with pytest.raises(ValueError, match="partial_dependence does not take trees with splitter"):
        partial_dependence(oblique, X, 0)
