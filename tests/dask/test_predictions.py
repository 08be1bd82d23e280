"""Answers of fitted models to collections: the same, lazily, in the same partitions."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove
from margrove.dask import predictions
from margrove.exceptions import InvalidDataError, NotFittedError

N = 60
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "apply")

MODELS = {
    "SVC": margrove.SVC(),
    "SVC with probabilities": margrove.SVC(probability=True, random_state=0),
    "LinearSVC": margrove.LinearSVC(),
    "Perceptron": margrove.Perceptron(random_state=0),
    "KernelPerceptron": margrove.KernelPerceptron(random_state=0),
    "tree": margrove.DecisionTreeClassifier(),
    "forest": margrove.RandomForestClassifier(3, random_state=0, n_jobs=2),
    "bagging": margrove.BaggingClassifier(n_estimators=3, random_state=0),
    "AdaBoost": margrove.AdaBoostClassifier(n_estimators=3, random_state=0),
    "boosting": margrove.HistGradientBoostingClassifier(max_iter=3),
    "pipeline": make_pipeline(StandardScaler(), margrove.SVC()),
    "SVR": margrove.SVR(),
    "regression forest": margrove.RandomForestRegressor(3, random_state=0),
}


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).random((N, 3))
    return X, np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [0.3, 0.6])]


@pytest.fixture(autouse=True)
def _without_a_cluster():
    with dask.config.set(scheduler="synchronous"):
        yield


def fitted(name, X, y):
    is_number = name in ("SVR", "regression forest")
    return MODELS[name].fit(X, np.asarray(X)[:, 0] if is_number else y)


@pytest.mark.parametrize("name", MODELS)
def test_arrays_give_arrays_in_the_same_chunks(data, name):
    X, y = data
    model = fitted(name, X, y)
    lazy = da.from_array(X, chunks=(17, 2))
    some = lazy[lazy[:, 1] > 0.5]
    for method in METHODS:
        if not hasattr(model, method):
            continue
        wanted = getattr(model, method)(X)
        answer = getattr(predictions, method)(model, lazy)
        assert answer.chunks[0] == (17, 17, 17, 9)
        assert answer.shape == wanted.shape
        assert answer.dtype == wanted.dtype
        found = answer.compute()
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
        unknown = getattr(predictions, method)(model, some)
        assert np.isnan(unknown.chunks[0]).all()
        np.testing.assert_array_equal(unknown.compute(), wanted[X[:, 1] > 0.5])


@pytest.mark.parametrize("name", ["SVC", "forest", "boosting", "pipeline", "SVR"])
def test_dataframes_give_frames_with_the_same_index(data, name):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(N) * 3 + 1)
    model = fitted(name, frame, y)
    lazy = dd.from_pandas(frame, npartitions=4)
    for method in METHODS:
        if not hasattr(model, method):
            continue
        wanted = getattr(model, method)(frame)
        if wanted.ndim > 2:
            with pytest.raises(InvalidDataError, match=r"which a dataframe cannot contain"):
                getattr(predictions, method)(model, lazy)
            continue
        answer = getattr(predictions, method)(model, lazy)
        found = answer.compute()
        assert found.index.equals(frame.index)
        np.testing.assert_array_equal(found.to_numpy(), wanted)
        if wanted.ndim == 1:
            assert answer.dtype == found.dtype
        else:
            assert list(answer.columns) == list(found.columns)
        if method == "predict_proba":
            assert list(answer.columns) == model.classes_.tolist()


def test_the_type_of_labels_is_known_beforehand(data):
    X, y = data
    lazy = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    model = margrove.DecisionTreeClassifier().fit(X, y == "low")
    assert predictions.predict(model, lazy).dtype == bool
    model = margrove.DecisionTreeClassifier().fit(X, np.digitize(X[:, 0], [0.5]).astype(np.int8))
    assert predictions.predict(model, lazy).dtype == np.int8


def test_empty_partitions_give_empty_answers(data):
    X, y = data
    model = margrove.SVC().fit(X, y)
    lazy = da.from_array(X, chunks=(20, 3))
    no_rows_first = lazy[lazy[:, 0] < 0.2]
    no_rows_first = da.concatenate([no_rows_first[no_rows_first[:, 0] > 5], lazy])
    np.testing.assert_array_equal(
        predictions.predict(model, no_rows_first).compute(), model.predict(X)
    )
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    assert len(predictions.predict_proba(MODELS["forest"].fit(X, y), frame[frame[0] > 5])) == 0


def test_sparse_blocks(data):
    X, y = data
    model = margrove.LinearSVC().fit(sp.csr_array(X), y)
    blocks = [
        da.from_delayed(
            dask.delayed(sp.csr_array(X[k : k + 20])), (20, 3), float, meta=sp.csr_array((0, 0))
        )
        for k in (0, 20, 40)
    ]
    answer = predictions.decision_function(model, da.concatenate(blocks)).compute()
    np.testing.assert_array_equal(answer, model.decision_function(sp.csr_array(X)))


def test_raw_tables_with_text_and_a_model_that_prepares_them(data):
    X, y = data
    frame = pd.DataFrame({"x": X[:, 0], "word": np.where(X[:, 1] > 0.5, "much", "little")})
    model = margrove.table_model(margrove.SVC()).fit(frame, y)
    answer = predictions.predict(model, dd.from_pandas(frame, npartitions=3))
    assert answer.compute().tolist() == model.predict(frame).tolist()


def test_categories_are_those_of_the_fit(data):
    X, y = data
    frame = pd.DataFrame({"word": pd.Categorical(y), "x": X[:, 1]})
    model = margrove.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5).fit(frame, y)
    lazy = dd.from_pandas(frame.astype({"word": str}), npartitions=4)
    np.testing.assert_array_equal(
        predictions.predict_proba(model, lazy).compute().to_numpy(), model.predict_proba(frame)
    )


def test_nothing_is_computed_and_the_model_is_in_the_graph_once(data):
    X, y = data
    model = margrove.SVC().fit(X, y)
    touched = []
    lazy = da.from_array(X, chunks=(5, 3)).map_blocks(
        lambda block: touched.append(1) or block, dtype=float, meta=np.empty((0, 0))
    )
    answer = predictions.predict(model, lazy)
    assert not touched
    graph = dict(answer.__dask_graph__())
    holders = [key for key in graph if str(key).startswith("SVC-")]
    assert len(holders) == 1


def test_transformers():
    X = np.random.default_rng(0).random((20, 2))
    model = margrove.PolynomialMap(degree=2).fit(X)
    answer = predictions.transform(model, da.from_array(X, chunks=(6, 2)))
    assert answer.shape == model.transform(X).shape
    np.testing.assert_array_equal(answer.compute(), model.transform(X))


def test_scores_are_those_of_the_local_method(data):
    X, y = data
    weight = np.arange(N) % 3
    lazy, labels = da.from_array(X, chunks=(17, 3)), da.from_array(y, chunks=10)
    model = margrove.DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert predictions.score(model, lazy, labels) == model.score(X, y)
    weights = da.from_array(weight, chunks=30)
    assert predictions.score(model, lazy, labels, weights) == model.score(X, y, weight)
    tree = margrove.DecisionTreeRegressor(max_depth=2).fit(X, X[:, 1])
    assert predictions.score(tree, lazy, lazy[:, 1:2]) == tree.score(X, X[:, 1])


def test_errors_say_what_is_wrong(data):
    X, y = data
    lazy = da.from_array(X, chunks=(17, 3))
    with pytest.raises(InvalidDataError, match=r"X must be a Dask array.*model\.predict\(X\)"):
        predictions.predict(margrove.SVC().fit(X, y), X)
    with pytest.raises(NotFittedError):
        predictions.decision_function(margrove.SVC(), lazy)
    with pytest.raises(AttributeError, match="predict_proba"):
        predictions.predict_proba(margrove.LinearSVC().fit(X, y), lazy)
    with pytest.raises(InvalidDataError, match=r"does not accept rows like those of X.*2 features"):
        predictions.decision_function(margrove.SVC().fit(X, y), lazy[:, :2])
