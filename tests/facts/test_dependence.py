"""Partial dependence of any model, against scikit-learn's and against what it must be."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from margrove.facts.dependence import partial_dependence_facts

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def numbers():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(80, 4))
    return X, X @ [3.0, 0.0, -1.0, 0.5]


@pytest.fixture(scope="module")
def mixed():
    colours = ["red", "green", "blue", "green"] * 20
    sizes = np.linspace(0.0, 10.0, 80)
    y = np.where((sizes > 5) ^ (np.array(colours) == "red"), "big", "small")
    return {"colour": colours, "size": sizes}, y


def _pipeline(y, table):
    encode = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]))
    return make_pipeline(encode, LogisticRegression()).fit(table, y)


def test_averages_are_those_of_scikit_learn(numbers):
    X, y = numbers
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y > 0)
    told = partial_dependence_facts(model, X, [2])
    (curve,) = told.curves
    found = partial_dependence(
        model, X, [2], custom_values={2: curve.grid}, response_method="predict_proba"
    )
    np.testing.assert_allclose(curve.average[0], found["average"][0])
    assert told.response == "probability"
    assert told.outputs == ("True",)
    assert np.isin(curve.grid, X[:, 2]).all()
    assert np.all(np.diff(curve.grid) > 0)
    assert len(curve.grid) <= 20


def test_a_linear_model_is_a_line_and_the_strongest_column_comes_first(numbers):
    X, y = numbers
    model = LinearRegression().fit(X, y)
    told = partial_dependence_facts(model, X, n_features=3)
    assert [curve.column for curve in told.curves] == [0, 2, 3]
    curve = told.curves[0]
    slopes = np.diff(curve.average[0]) / np.diff(curve.grid)
    np.testing.assert_allclose(slopes, 3.0)
    assert np.all(curve.low <= curve.average)
    assert np.all(curve.average <= curve.high)
    assert curve.name == "x0"
    assert told.outputs == ("prediction",)


def test_a_column_that_is_not_used_is_not_told_of_by_itself(numbers):
    X, _ = numbers
    model = LinearRegression().fit(X, X[:, 1])
    model.coef_ = np.array([0.0, 1.0, 0.0, 0.0])
    assert [own.column for own in partial_dependence_facts(model, X).curves] == [1]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_labels_of_frames_are_asked_in_their_own_terms(mixed, library):
    columns, y = mixed
    table = pd.DataFrame(columns)
    model = _pipeline(y, table)
    if library == "polars":
        model.steps.insert(0, ("pandas", _ToPandas()))
        table = pl.DataFrame(columns)
    told = partial_dependence_facts(model, table, ["colour", "size"])
    colour, size = told.curves
    assert colour.kind == "label"
    assert colour.grid.tolist() == ["green", "red", "blue"]
    reference = pd.DataFrame(columns)
    for label, average in zip(colour.grid, colour.average[0], strict=True):
        expected = _last(model).predict_proba(reference.assign(colour=label))[:, 1].mean()
        assert average == pytest.approx(expected)
    assert size.kind == "number"
    assert told.frame()["column"].tolist().count("colour") == 3


class _ToPandas:
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X.to_pandas() if hasattr(X, "to_pandas") else X

    def __sklearn_is_fitted__(self):
        return True


def _last(model):
    return make_pipeline(*(step for _, step in model.steps if not isinstance(step, _ToPandas)))


def test_the_index_of_a_frame_does_not_matter(mixed):
    columns, y = mixed
    table = pd.DataFrame(columns)
    model = _pipeline(y, table)
    first = partial_dependence_facts(model, table, ["size"]).curves[0]
    second = partial_dependence_facts(model, table.set_index(np.arange(80)[::-1]), ["size"])
    np.testing.assert_array_equal(first.average, second.curves[0].average)


def test_sparse_rows_and_many_classes(numbers):
    X, y = numbers
    classes = np.digitize(y, [-2.0, 0.0, 2.0])
    model = RidgeClassifier().fit(X, classes)
    dense = partial_dependence_facts(model, X, [0, 3])
    sparse = partial_dependence_facts(model, sp.csr_array(X), [0, 3])
    assert dense.response == "score"
    assert dense.outputs == ("0", "1", "2", "3")
    for one, other in zip(dense.curves, sparse.curves, strict=True):
        np.testing.assert_allclose(one.average, other.average)


def test_dates_are_told_in_their_order():
    table = pd.DataFrame({"day": [dt.datetime(2024, 1, 1 + k % 28) for k in range(60)]})

    class Days:
        def predict(self, X):
            return X["day"].dt.day.to_numpy().astype(float)

    (curve,) = partial_dependence_facts(Days(), table, ["day"]).curves
    assert curve.kind == "label"
    assert len(curve.grid) == 12
    assert np.all(np.diff(curve.average[0]) > 0)
    assert curve.grid[0].startswith("2024-01-01")
    assert curve.n_left_out == 16


def test_few_rows_stand_for_many(numbers):
    X, y = numbers
    model = LinearRegression().fit(X, y)
    told = partial_dependence_facts(model, np.tile(X, (20, 1)), [0], max_rows=50)
    assert told.n_rows == 50


def test_missing_cells_are_not_asked_about(numbers):
    X, _ = numbers
    holed = X.copy()
    holed[::3, 0] = np.nan

    class Filling:
        def predict(self, X):
            return np.nan_to_num(X[:, 0])

    (curve,) = partial_dependence_facts(Filling(), holed, [0]).curves
    assert np.isfinite(curve.grid).all()
    np.testing.assert_allclose(curve.average[0], curve.grid)


def test_refusals_say_what_to_do(numbers):
    X, y = numbers
    model = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="features contains 9, but X has 4 columns"):
        partial_dependence_facts(model, X, [9])
    with pytest.raises(ValueError, match="n_grid must be"):
        partial_dependence_facts(model, X, [0], n_grid=1)
    with pytest.raises(ValueError, match="has no rows"):
        partial_dependence_facts(model, X[:0], [0])
    wide = np.zeros((3, 500))
    with pytest.raises(ValueError, match="Name some in features"):
        partial_dependence_facts(LinearRegression().fit(wide, [1.0, 2.0, 3.0]), wide)


def test_it_is_plain(numbers):
    X, y = numbers
    told = partial_dependence_facts(LinearRegression().fit(X, y), X)
    json.dumps(told.as_dict(), allow_nan=False)
    assert set(told.frame().columns) == {"column", "output", "value", "average", "low", "high"}
