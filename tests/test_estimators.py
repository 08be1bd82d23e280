"""Every public estimator is found here by itself and passes all of scikit-learn's checks."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import margrove
from margrove.datasets import load_iris
from margrove.ensemble.adaboost.boosted_ensemble import Boosted
from margrove.ensemble.bagging.bagged_ensemble import Bagging
from margrove.ensemble.forest.forest import Forest
from margrove.ensemble.gradient.classic_estimators import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from margrove.ensemble.gradient.hist_estimators import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from margrove.grove.decision_tree import DecisionTree
from margrove.margin.linear.linear_machine import LinearMachine
from margrove.margin.svm.kernel_machine import KernelMachine
from margrove.margin.svm.support_vector_machine import SupportVectorMachine
from margrove.select.machines.linear_cv import LinearSVCCV
from margrove.select.machines.svm_cv import SupportVectorSearch

HIST = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
CLASSIC = (GradientBoostingClassifier, GradientBoostingRegressor)
ENSEMBLES = (Bagging, Forest, Boosted, *CLASSIC)
SEARCHES = (SupportVectorSearch, LinearSVCCV)


def public_estimators() -> list[type[BaseEstimator]]:
    classes = [getattr(margrove, name) for name in margrove.__all__]
    return [c for c in classes if inspect.isclass(c) and issubclass(c, BaseEstimator)]


def small(cls):
    """The estimator as it is, ensembles with fewer members."""
    if issubclass(cls, HIST):
        return cls(max_iter=5, random_state=0)
    if issubclass(cls, SEARCHES):
        return briefly(cls)
    return cls(n_estimators=5, random_state=0) if issubclass(cls, ENSEMBLES) else cls()


def briefly(cls, **settings):
    """An estimator that stops early; mistakes of bookkeeping show all the same."""
    if issubclass(cls, HIST):
        return cls(max_iter=5, random_state=0, min_samples_leaf=2, **settings)
    if issubclass(cls, ENSEMBLES):
        return cls(n_estimators=5, random_state=0, **settings)
    if issubclass(cls, SupportVectorSearch):
        return cls(**({"Cs": 2, "gammas": 2} | settings))
    if issubclass(cls, LinearSVCCV):
        return cls(Cs=2, **settings)
    if issubclass(cls, (LinearMachine, DecisionTree)):
        return cls(**settings)
    if issubclass(cls, SupportVectorMachine):
        return cls(**({"nu": 0.3} if "nu" in cls().get_params() else {}), **settings)
    return cls(max_iter=5, tol=None, **settings)


def values_of(model, X):
    """What a classifier knows of each row, as numbers."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)


ESTIMATORS = public_estimators()
CLASSIFIERS = [cls for cls in ESTIMATORS if is_classifier(cls())]


def test_the_search_finds_the_estimators() -> None:
    assert {"Perceptron", "KernelPerceptron", "PolynomialMap", "RBFTaylorMap"} <= {
        cls.__name__ for cls in ESTIMATORS
    }


@parametrize_with_checks([small(cls) for cls in ESTIMATORS])
@pytest.mark.sampled(600)
def test_scikit_learn_checks(estimator, check) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings on purpose
        check(estimator)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_documented_and_constrained(cls) -> None:
    parameters = set(cls().get_params())
    assert parameters == set(cls._parameter_constraints)
    documented = inspect.getdoc(cls).partition("Attributes\n")[0]
    missing = [name for name in parameters if f"{name} :" not in documented]
    assert not missing


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_fitted_attribute_is_documented(cls) -> None:
    X, y = load_iris(return_X_y=True)
    model = small(cls).fit(X, y)
    documented = inspect.getdoc(cls).partition("Attributes\n")[2]
    fitted = [n for n in vars(model) if n.endswith("_") and not n.startswith("_")]
    assert fitted
    assert not [name for name in fitted if name not in documented]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_pickle_and_clone(cls) -> None:
    X, y = load_iris(return_X_y=True)
    model = small(cls).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    use = "predict" if hasattr(model, "predict") else "transform"
    assert np.array_equal(getattr(model, use)(X), getattr(again, use)(X))
    assert not hasattr(clone(model), "n_features_in_")


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_pickles_of_another_version_warn(cls, monkeypatch) -> None:
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr("margrove._runtime.estimator.__version__", "0.0.1")
    data = pickle.dumps(small(cls).fit(X, y))
    monkeypatch.undo()
    with pytest.warns(InconsistentVersionWarning, match=r"margrove 0\.0\.1"):
        pickle.loads(data)


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.sampled(12)
def test_results_do_not_depend_on_n_jobs(cls, kind) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 30)) * (rng.random((700, 30)) < 0.5)
    y = rng.integers(0, 19, 700)
    X = sp.csr_array(X) if kind == "csr" else X
    models = [briefly(cls, n_jobs=n).fit(X, y) for n in (1, 2, 5)]
    values = [values_of(model, X) for model in models]
    assert np.array_equal(values[0], values[1])
    assert np.array_equal(values[0], values[2])


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_rows_answer_does_not_depend_on_its_neighbours(cls) -> None:
    X, y = load_iris(return_X_y=True)
    model = briefly(cls).fit(X, y)
    together = values_of(model, X)
    alone = np.vstack([values_of(model, X[i : i + 1]) for i in range(len(X))])
    assert np.array_equal(together, alone)


@pytest.mark.parametrize(
    "cls",
    [
        cls
        for cls in CLASSIFIERS
        if "class_weight" in cls().get_params() and not issubclass(cls, SEARCHES)  # of folds
    ],
)
@pytest.mark.parametrize("weighting", ["balanced", None, {0: 1.0, 1: 2.5, 2: 0.7}])
def test_the_law_of_weights(cls, weighting) -> None:
    """Weight k is k copies, weight 0 none, and the order of the rows does not matter."""
    rng = np.random.default_rng(1)
    X, y = load_iris(return_X_y=True)
    weight = rng.integers(0, 4, len(y))
    repeated = rng.permutation(np.repeat(np.arange(len(y)), weight))
    model = briefly(cls, class_weight=weighting)
    weighted = values_of(clone(model).fit(X, y, sample_weight=weight), X)
    copied = values_of(clone(model).fit(X[repeated], y[repeated]), X)
    if issubclass(cls, SupportVectorMachine):  # copies are support vectors too, and sums round
        assert np.abs(weighted - copied).max() <= 1e-12 * np.abs(weighted).max()
    else:
        assert np.array_equal(weighted, copied)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_dense_and_sparse_agree(cls) -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(-3, 4, (80, 6)) * (rng.random((80, 6)) < 0.4)
    y = rng.integers(0, 3, 80)
    settings = {}
    if issubclass(cls, KernelMachine):
        settings = {"kernel": "poly", "degree": 2, "gamma": 1.0}
    elif issubclass(cls, SupportVectorSearch):
        settings = {"kernel": "poly", "degree": 2, "gammas": [1.0]}
    dense = briefly(cls, **settings).fit(X, y)
    for form in (
        sp.csr_matrix,
        sp.csr_array,
        sp.csc_array,
        sp.coo_array,
        sp.lil_array,
        sp.bsr_array,
    ):
        sparse = briefly(cls, **settings).fit(form(X), y)
        expected, found = values_of(dense, X), values_of(sparse, form(X))
        if issubclass(cls, (LinearMachine, LinearSVCCV)):  # sums leave out zeros, and round
            assert np.abs(expected - found).max() <= 1e-9
        else:
            assert np.array_equal(expected, found)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_failed_refit_leaves_the_model_as_it_was(cls) -> None:
    X, y = load_iris(return_X_y=True)
    model = small(cls).fit(X, y)
    before = model.predict(X)
    if issubclass(cls, HIST):  # which take infinity for a number
        with pytest.raises(ValueError, match="inconsistent"):
            model.fit(X[:, :2], y[:-1])
    else:
        with pytest.raises(ValueError, match="infinity"):
            model.fit(np.where(X > 5, np.inf, X)[:, :2], y)
    assert np.array_equal(model.predict(X), before)
    model.set_params(verbose=-7)
    assert np.array_equal(model.predict(X), before)
