"""Fitted models of margrove, as scikit-learn's: they answer the same, or an error says why not."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.utils.validation
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from tests.exchange.sklearn_models import LABELS, PLACED, linear_kernel
from tests.exchange.test_from_sklearn import assert_same_answers

import margrove
from margrove import kernels
from margrove.exceptions import ConversionError

IRIS, SPECIES = load_iris(return_X_y=True)
IRIS32 = IRIS.astype(np.float32)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
TWO = np.where(SPECIES == 1, "yes", "no")
DIGITS, DIGIT = (part[:300] for part in load_digits(return_X_y=True))
SPARSE = sp.csr_array(DIGITS)
DIABETES, PROGRESSION = load_diabetes(return_X_y=True)
DIABETES32 = DIABETES.astype(np.float32)
GAPS = np.where(np.random.default_rng(0).random(IRIS.shape) < 0.1, np.nan, IRIS32)
SEVERAL = np.column_stack([SPECIES, SPECIES == 1])
GRAM = IRIS @ IRIS.T
FEW = {"n_estimators": 10, "random_state": 0}

MODELS = {
    "SVC": (margrove.SVC(), IRIS, NAMES),
    "SVC two": (margrove.SVC(kernel="poly", coef0=1.0), IRIS, TWO),
    "SVC pairs": (margrove.SVC(decision_function_shape="ovo"), DIGITS, DIGIT),
    "SVC object": (margrove.SVC(kernel=kernels.RBF(sigma=2.0)), IRIS, NAMES),
    "SVC laplacian": (margrove.SVC(kernel="laplacian", gamma=0.3), IRIS, NAMES),
    "SVC chi2": (margrove.SVC(kernel=kernels.ChiSquare(gamma=0.1)), IRIS, TWO),
    "SVC function": (margrove.SVC(kernel=linear_kernel), IRIS, NAMES),
    "SVC precomputed": (margrove.SVC(kernel="precomputed"), GRAM, NAMES),
    "SVC sparse": (margrove.SVC(kernel="linear"), SPARSE, DIGIT),
    "SVC sparse two": (margrove.SVC(), SPARSE, DIGIT > 4),
    "SVC no bias": (margrove.SVC(fit_intercept=False), IRIS, NAMES),
    "SVC tiny": (margrove.SVC(), IRIS * 1e-12, NAMES),
    "SVC tiny linear": (margrove.SVC(kernel="linear", C=1e20), IRIS * 1e-12, NAMES),
    "SVC ovr of two": (margrove.SVC(multi_class="ovr"), IRIS, TWO),
    "NuSVC": (margrove.NuSVC(nu=0.2), IRIS, NAMES),
    "SVR": (margrove.SVR(), DIABETES, PROGRESSION),
    "SVR sparse": (margrove.SVR(C=5.0), SPARSE, DIGIT),
    "SVR no support": (margrove.SVR(epsilon=1e3, kernel="rbf"), IRIS, IRIS[:, 0]),
    "NuSVR": (margrove.NuSVR(kernel="sigmoid", gamma=0.01), DIABETES, PROGRESSION),
    "OneClassSVM": (margrove.OneClassSVM(nu=0.2), IRIS, None),
    "LinearSVC": (margrove.LinearSVC(), IRIS, NAMES),
    "LinearSVC two": (margrove.LinearSVC(multi_class="crammer_singer"), IRIS, TWO),
    "LinearSVR": (margrove.LinearSVR(C=10.0), DIABETES, PROGRESSION),
    "Perceptron": (margrove.Perceptron(average=True), IRIS, NAMES),
    "tree": (margrove.DecisionTreeClassifier(), IRIS32, NAMES),
    "tree error": (margrove.DecisionTreeClassifier(criterion="error", max_depth=4), GAPS, NAMES),
    "tree outputs": (margrove.DecisionTreeClassifier(max_depth=3), IRIS32, SEVERAL),
    "tree of numbers": (margrove.DecisionTreeRegressor(max_depth=6), DIABETES32, PROGRESSION),
    "forest": (margrove.RandomForestClassifier(**FEW), IRIS32, NAMES),
    "forest gaps": (margrove.RandomForestClassifier(**FEW), GAPS, NAMES),
    "forest outputs": (margrove.RandomForestClassifier(max_depth=3, **FEW), IRIS32, SEVERAL),
    "forest of numbers": (margrove.RandomForestRegressor(**FEW), DIABETES32, PROGRESSION),
    "extra trees": (margrove.ExtraTreesClassifier(**FEW), IRIS32, NAMES),
    "extra trees of numbers": (margrove.ExtraTreesRegressor(**FEW), DIABETES32, PROGRESSION),
    "stumps": (margrove.AdaBoostClassifier(**FEW), IRIS32, NAMES),
    "m1": (margrove.AdaBoostClassifier(
        margrove.DecisionTreeClassifier(max_depth=2), algorithm="m1", **FEW), IRIS32, NAMES),
    "adaboost of machines": (margrove.AdaBoostClassifier(margrove.SVC(), n_estimators=3), IRIS,
                             TWO),
    "adaboost of kernel perceptrons": (margrove.AdaBoostClassifier(
        margrove.KernelPerceptron(), n_estimators=3, random_state=0), IRIS, TWO),
    "adaboost of numbers": (margrove.AdaBoostRegressor(**FEW), DIABETES32, PROGRESSION),
    "boosting": (margrove.GradientBoostingClassifier(**FEW), IRIS32, NAMES),
    "boosting two": (margrove.GradientBoostingClassifier(loss="exponential", **FEW), IRIS32, TWO),
    "boosting zero": (margrove.GradientBoostingClassifier(init="zero", **FEW), IRIS32, TWO),
    "boosting huber": (margrove.GradientBoostingRegressor(loss="huber", **FEW), DIABETES32,
                       PROGRESSION),
    "boosting quantile": (margrove.GradientBoostingRegressor(loss="quantile", alpha=0.3, **FEW),
                          DIABETES32, PROGRESSION),
    "hist": (margrove.HistGradientBoostingClassifier(max_iter=10), IRIS, NAMES),
    "hist gaps": (margrove.HistGradientBoostingClassifier(max_iter=10), GAPS, TWO),
    "hist gamma": (margrove.HistGradientBoostingRegressor(loss="gamma", max_iter=10), DIABETES,
                   PROGRESSION),
    "hist quantile": (margrove.HistGradientBoostingRegressor(
        loss="quantile", quantile=0.8, max_iter=10), DIABETES, PROGRESSION),
}  # fmt: skip


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_the_same(name) -> None:
    model, X, y = MODELS[name]
    ours = fitted(model, X, y)
    theirs = ours.to_sklearn()
    assert type(theirs).__module__.startswith("sklearn.")
    assert type(theirs).__name__ == type(ours).__name__
    sklearn.utils.validation.check_is_fitted(theirs)
    if "kernel perceptrons" not in name:
        theirs._validate_params()
    assert_same_answers(ours, theirs, X)
    assert_same_answers(ours, pickle.loads(pickle.dumps(theirs)), X)


@pytest.mark.parametrize("name", MODELS)
def test_what_comes_back_is_converted_again(name) -> None:
    model, X, y = MODELS[name]
    ours = fitted(model, X, y)
    assert_same_answers(ours, margrove.from_sklearn(ours.to_sklearn()), X)


@pytest.mark.parametrize("name", ["tree", "forest of numbers", "stumps", "boosting"])
def test_float32_rows_one_step_from_each_threshold_take_the_same_branch(name) -> None:
    model, X, y = MODELS[name]
    ours = fitted(model, X, y)
    theirs = ours.to_sklearn()
    trees = [ours] if hasattr(ours, "arrays_") else np.ravel(list(ours.estimators_))[:3]
    rows = []
    for tree in trees:
        nodes = tree.arrays_
        for node in np.flatnonzero(nodes.kind)[:30]:
            value = np.float32(nodes.threshold[node])
            steps = [value, *(np.nextafter(value, np.float32(to)) for to in (-np.inf, np.inf))]
            near = np.repeat(X[node % len(X)][None], 3, axis=0)
            near[:, nodes.feature[node]] = steps
            rows.append(near)
    assert_same_answers(ours, theirs, np.concatenate(rows))


def test_float64_rows_closer_than_float32_are_the_documented_limit() -> None:
    X = np.array([[1.0], [1.0 + 1e-12]])
    ours = margrove.DecisionTreeClassifier().fit(X, [0, 1])
    assert ours.predict(X).tolist() == [0, 1]
    assert ours.to_sklearn().predict(X).tolist() == [0, 0]


def test_named_columns_are_taken_over() -> None:
    import pandas as pd

    frame = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"]).astype(np.float32)
    for name in ("SVC", "LinearSVC", "tree", "forest", "stumps", "boosting", "hist"):
        ours = fitted(MODELS[name][0], frame, NAMES)
        theirs = ours.to_sklearn()
        assert theirs.feature_names_in_.tolist() == ["a", "b", "c", "d"]
        np.testing.assert_array_equal(theirs.predict(frame), ours.predict(frame))


def test_tools_of_scikit_learn_work_on_what_comes_back() -> None:
    for name in ("tree of numbers", "forest of numbers", "boosting huber", "hist gamma"):
        model, X, y = MODELS[name]
        theirs = fitted(model, X, y).to_sklearn()
        found = partial_dependence(theirs, X, [0, 2], method="recursion", grid_resolution=5)
        assert found["average"].shape == (1, 5, 5)
    perceptron = fitted(*MODELS["Perceptron"]).to_sklearn()
    perceptron.partial_fit(IRIS, NAMES)


# -- what cannot be converted --

REFUSED = {
    "multi_class='ovr'": (margrove.SVC(multi_class="ovr"), IRIS, NAMES),
    "probability": (margrove.SVC(probability=True), IRIS, TWO),
    "voting='hard'": (margrove.RandomForestClassifier(voting="hard", **FEW), IRIS, NAMES),
    "categories": (margrove.DecisionTreeRegressor(max_depth=3), LABELS, PLACED),
    "several features": (margrove.DecisionTreeClassifier(splitter="oblique"), IRIS, NAMES),
    "several branches": (margrove.DecisionTreeClassifier(
        split="multiway", criterion="entropy", categorical_features=[0]), IRIS.round(), NAMES),
    "algorithm='real'": (margrove.AdaBoostClassifier(algorithm="real", **FEW), IRIS, NAMES),
    "algorithm='gentle'": (margrove.AdaBoostClassifier(algorithm="gentle", **FEW), IRIS, TWO),
    "init=LinearSVR": (margrove.GradientBoostingRegressor(init=margrove.LinearSVR(), **FEW), IRIS,
                       IRIS[:, 0]),
    "loss 'poisson'": (margrove.GradientBoostingRegressor(loss="poisson", **FEW), IRIS,
                       IRIS[:, 0]),
    "loss 'tweedie'": (margrove.HistGradientBoostingRegressor(loss="tweedie", max_iter=3), IRIS,
                       IRIS[:, 0]),
    "splits by categories": (margrove.HistGradientBoostingRegressor(max_iter=3), LABELS, PLACED),
    "no such class": (margrove.KernelPerceptron(), IRIS, NAMES),
    "scaled by": (margrove.SVC(kernel="laplacian"), IRIS * 1e-12, NAMES),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_scikit_learn_cannot_hold_is_refused_with_the_reason(reason) -> None:
    ours = fitted(*REFUSED[reason])
    with pytest.raises(ConversionError, match=reason) as caught:
        ours.to_sklearn()
    assert type(ours).__name__ in str(caught.value)


def test_models_that_were_not_fitted_are_refused() -> None:
    with pytest.raises(NotFittedError, match="SVC instance is not fitted"):
        margrove.SVC().to_sklearn()


def test_searches_name_what_to_convert() -> None:
    search = margrove.SVCCV(Cs=2, gammas=2).fit(IRIS, TWO)
    with pytest.raises(ConversionError, match="SVCCV"):
        search.to_sklearn()
