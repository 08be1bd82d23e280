"""What estimators on a cluster share with the local ones: parameters, methods, files."""

from __future__ import annotations

import io
import itertools
import pickle

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

import margrove
from margrove import SVC, DecisionTreeClassifier
from margrove.dask.cluster_estimator import ClusterEstimator
from margrove.dask.partitions import collection_of
from margrove.dask.partitions.table import partitions_of
from margrove.exceptions import ClusterError

RNG = np.random.default_rng(0)
X = RNG.random((40, 3))
Y = np.where(X[:, 0] > 0.5, "yes", "no")


class Tree(ClusterEstimator, DecisionTreeClassifier):
    """Gathers all and fits here: enough to see what the mixin does."""

    def _fit_on_cluster(self, X, y, sample_weight, client, **others):
        partitions = partitions_of(X, y, sample_weight, client, self)
        table = np.concatenate(client.gather(partitions.X))
        local = self.local_class()(**self.get_params())
        local.fit(table, partitions.gather_y(), partitions.gather_weight(), **others)
        self._commit({name: vars(local)[name] for name in local._committed})


class Machine(ClusterEstimator, SVC):
    pass


@pytest.fixture
def lazy(cluster4):
    return da.from_array(X, chunks=(11, 3)), da.from_array(Y, chunks=11)


def saved(model):
    file = io.BytesIO()
    margrove.save(model, file)
    return file.getvalue()


def test_a_fit_on_collections_is_saved_as_the_local_one(lazy):
    model = Tree(max_depth=2).fit(*lazy)
    local = DecisionTreeClassifier(max_depth=2).fit(X, Y)
    assert type(model.to_local()) is DecisionTreeClassifier
    assert saved(model) == saved(model.to_local()) == saved(local)
    assert saved(Tree()) == saved(DecisionTreeClassifier())


def test_models_inside_pipelines_are_saved_as_local_ones():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), Tree()).fit(X, Y)
    local = make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, Y)
    model.steps[1] = ("decisiontreeclassifier", model.steps[1][1])
    assert saved(model) == saved(local)


def test_weights_and_a_client_are_passed_on(lazy, cluster4):
    weight = np.arange(40) % 3
    model = Tree(max_depth=2).fit(*lazy, da.from_array(weight, chunks=11), client=cluster4)
    assert saved(model) == saved(DecisionTreeClassifier(max_depth=2).fit(X, Y, weight))


@pytest.mark.parametrize("kind", ["arrays", "dataframes", "sparse"])
def test_lists_of_delayed_parts_are_tables(cluster4, kind):
    form = {"arrays": np.asarray, "dataframes": pd.DataFrame, "sparse": sp.csr_array}[kind]
    borders = [0, 7, 7, 29, 40]
    parts = [dask.delayed(form)(X[a:b]) for a, b in itertools.pairwise(borders)]
    targets = [dask.delayed(Y[a:b]) for a, b in itertools.pairwise(borders)]
    local = DecisionTreeClassifier(max_depth=2).fit(
        form(X).toarray() if kind == "sparse" else form(X), Y
    )
    if kind != "sparse":
        assert saved(Tree(max_depth=2).fit(parts, targets)) == saved(local)
    found = partitions_of(collection_of(parts, cluster4), collection_of(targets, cluster4))
    assert found.lengths.tolist() == [7, 0, 22, 11]
    np.testing.assert_array_equal(found.gather_y(), Y)
    rows = [
        np.asarray(part.todense() if sp.issparse(part) else part)
        for part in cluster4.gather(found.X)
    ]
    np.testing.assert_array_equal(np.concatenate(rows), X)


def test_names_with_a_prefix_are_the_same_classes():
    import margrove.dask as on_cluster

    assert on_cluster.DaskLinearSVC is on_cluster.LinearSVC
    assert {"DaskRandomForestClassifier", "DaskPerceptron"} < set(on_cluster.__all__)
    assert "Daskpredict" not in on_cluster.__all__
    with pytest.raises(AttributeError, match="Daskpredict"):
        on_cluster.Daskpredict  # noqa: B018


def test_collections_without_a_cluster_are_an_error_that_says_how():
    with pytest.raises(ClusterError, match="Make a client first"):
        Tree().fit(da.from_array(X), da.from_array(Y))


def test_local_tables_are_fitted_locally():
    model = Tree(max_depth=2).fit(X, Y, np.ones(40))
    assert saved(model) == saved(DecisionTreeClassifier(max_depth=2).fit(X, Y))
    assert model.predict(X[:3]).tolist() == Y[:3].tolist()


def test_parameters_and_tags_are_those_of_the_local_class():
    model = Tree(max_depth=3)
    assert model.get_params() == DecisionTreeClassifier(max_depth=3).get_params()
    copy = clone(model)
    assert type(copy) is Tree
    assert copy.max_depth == 3
    assert is_classifier(model)
    assert repr(model).startswith("Tree(")


def test_methods_take_collections_lazily_and_arrays_at_once(lazy):
    model = Tree(max_depth=2).fit(*lazy)
    for method in ("predict", "predict_proba", "apply"):
        at_once = getattr(model, method)(X)
        lazily = getattr(model, method)(lazy[0])
        assert isinstance(lazily, da.Array)
        np.testing.assert_array_equal(lazily.compute(), at_once)
    assert model.score(*lazy) == model.score(X, Y)


def test_methods_that_the_local_one_lacks_are_lacking():
    assert not hasattr(Tree(), "decision_function")
    assert not hasattr(Tree(), "transform")
    assert not hasattr(Machine(), "predict_proba")
    assert hasattr(Machine(probability=True), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        Machine().predict_proba  # noqa: B018


def test_a_failed_fit_changes_nothing(lazy):
    model = Tree(max_depth=2).fit(*lazy)
    before = saved(model)
    with pytest.raises(ValueError, match="rows"):
        model.fit(lazy[0], Y[:-1])
    assert saved(model) == before


def test_pickles_are_of_the_same_class():
    model = pickle.loads(pickle.dumps(Tree().fit(X, Y)))
    assert type(model) is Tree
    assert model.predict(X[:2]).tolist() == Y[:2].tolist()


def test_public_names_are_found_when_they_are_used():
    import margrove.dask

    assert margrove.dask.predict.__module__ == "margrove.dask.predictions"
    assert "LinearSVC" in dir(margrove.dask)
    with pytest.raises(AttributeError, match="no attribute 'SVM'"):
        margrove.dask.SVM  # noqa: B018


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    import margrove.dask

    monkeypatch.setattr(margrove.dask, "find_spec", lambda name: None)
    monkeypatch.delitem(vars(margrove.dask), "predict", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'margrove\[dask\]'"):
        margrove.dask.predict  # noqa: B018
