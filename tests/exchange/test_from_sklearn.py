"""Fitted models of scikit-learn's, converted: they answer the same, and work with everything."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.ensemble
import sklearn.svm
import sklearn.tree
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.exchange.sklearn_models import CODED, LABELS, MODELS, PLACED, linear_kernel

import margrove
from margrove import facts, from_sklearn
from margrove.exceptions import ConversionError, DataWarning, UnsavableModelError
from margrove.exchange.scikit_learn.trees import float64_thresholds

IRIS, SPECIES = load_iris(return_X_y=True)
DIABETES, PROGRESSION = load_diabetes(return_X_y=True)
METHODS = ("predict", "decision_function", "predict_proba", "score_samples", "staged_predict")
BY_NAME = {specimen.name: specimen for specimen in MODELS}
MACHINES = [s for s in MODELS if "SV" in type(s.model).__name__]
every_model = pytest.mark.parametrize("specimen", MODELS, ids=lambda specimen: specimen.name)


def answers(model, X):
    """By method, as lists of arrays: one for each output or round."""
    found = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # of theirs
        warnings.filterwarnings("ignore", ".* has not seen", DataWarning)
        for method in METHODS:
            if hasattr(model, method):
                given = getattr(model, method)(X)
                found[method] = [given] if isinstance(given, np.ndarray) else list(given)
    return found


def assert_same_answers(theirs, ours, X) -> None:
    expected, found = answers(theirs, X), answers(ours, X)
    for method, outputs in expected.items():
        for one, other in zip(outputs, found[method], strict=True):
            assert one.shape == other.shape
            if one.dtype.kind == "f":
                scale = np.abs(one).max()
                np.testing.assert_allclose(other, one, rtol=0.0, atol=1e-12 * scale)
            else:
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(other, one)


@every_model
def test_answers_are_the_same(specimen) -> None:
    theirs = specimen.fitted
    ours = from_sklearn(theirs)
    assert type(ours).__module__.startswith("margrove.")
    assert_same_answers(theirs, ours, specimen.rows)


@every_model
def test_what_is_known_of_columns_and_classes_is_taken_over(specimen) -> None:
    theirs = specimen.fitted
    ours = from_sklearn(theirs)
    if hasattr(theirs, "n_features_in_"):
        assert ours.n_features_in_ == theirs.n_features_in_
    assert hasattr(ours, "feature_names_in_") == hasattr(theirs, "feature_names_in_")
    if hasattr(theirs, "classes_") and isinstance(theirs.classes_, np.ndarray):
        np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    if hasattr(theirs, "feature_importances_") and "hist" not in specimen.name:
        np.testing.assert_allclose(
            ours.feature_importances_, theirs.feature_importances_, atol=1e-3
        )


@every_model
def test_a_converted_model_is_saved_loaded_and_converted_back(specimen) -> None:
    ours = from_sklearn(specimen.fitted)
    file = io.BytesIO()
    if specimen.name.endswith(("linear_kernel", "foreign")):
        with pytest.raises(UnsavableModelError):
            margrove.save(ours, file)
    else:
        margrove.save(ours, file)
        file.seek(0)
        assert_same_answers(ours, margrove.load(file), specimen.rows)
    if getattr(ours, "categories_", None):
        with pytest.raises(ConversionError, match="categories"):
            ours.to_sklearn()
    else:
        assert_same_answers(specimen.fitted, ours.to_sklearn(), specimen.rows)


@every_model
def test_a_converted_model_can_be_fitted_again(specimen) -> None:
    """Parameters are valid, and mean what they did."""
    ours = from_sklearn(specimen.fitted)
    ours._check_parameters()
    given = specimen.model.get_params(deep=False)
    for name, value in ours.get_params(deep=False).items():
        if name in given and name not in ("estimator", "probability"):
            if (type(ours).__name__, name) == ("NuSVC", "class_weight"):
                continue  # which LIBSVM does not look at
            assert value is given[name] or value == given[name], name
    clone(ours)


# -- thresholds --


def neighbours(values: np.ndarray) -> np.ndarray:
    """float64 numbers one and two steps around these, in float32 and in float64."""
    with np.errstate(over="ignore"):
        near = [values.astype(np.float32)]
        for step in (-np.inf, np.inf):
            near += [np.nextafter(near[0], np.float32(step))]
            near += [np.nextafter(near[-1], np.float32(step))]
    as_doubles = np.concatenate([values, *(own.astype(np.float64) for own in near)])
    with np.errstate(over="ignore", invalid="ignore"):
        halves = 0.5 * (as_doubles[:, None] + as_doubles[None])
    points = np.concatenate([as_doubles, halves.ravel()])
    points = points[np.isfinite(points)]
    around = [points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf)]
    return np.unique(np.concatenate(around))


def test_thresholds_part_float64_numbers_as_their_float32_images() -> None:
    largest, least = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
    smallest = float(np.finfo(np.float32).smallest_subnormal)
    thresholds = np.array(
        [0.0, -0.0, 0.1, -0.1, 1.0, 2.45, 1e-3, 1.0 + 2.0**-24, 1.0 + 3 * 2.0**-24, 16777217.0,
         smallest, smallest / 2, -smallest, -smallest / 3, least, largest, -largest, 1e300, -1e300]
    )  # fmt: skip
    moved = float64_thresholds(thresholds)
    x = neighbours(np.concatenate([thresholds, moved]))
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float32).astype(np.float64)
    for threshold, own in zip(thresholds, moved, strict=True):
        np.testing.assert_array_equal(x <= own, rounded <= threshold)


def test_random_thresholds_part_float64_numbers_as_their_float32_images() -> None:
    random = np.random.default_rng(0)
    thresholds = random.normal(size=2000) * 10.0 ** random.integers(-44, 38, 2000)
    moved = float64_thresholds(thresholds)
    for x in (moved, np.nextafter(moved, np.inf), np.nextafter(moved, -np.inf), thresholds):
        np.testing.assert_array_equal(x <= moved, x.astype(np.float32) <= thresholds)


@pytest.mark.parametrize(
    "name", ["tree best first", "regression tree", "forest", "adaboost trees", "boosting two"]
)
def test_values_one_step_from_each_threshold_take_the_same_branch(name) -> None:
    specimen = BY_NAME[name]
    theirs = specimen.fitted
    ours = from_sklearn(theirs)
    trees = [theirs] if hasattr(theirs, "tree_") else np.ravel(theirs.estimators_)[:4]
    rows = []
    X = np.asarray(specimen.X)
    for tree in trees:
        nodes = tree.tree_
        for node in np.flatnonzero(nodes.children_left >= 0)[:30]:
            values = neighbours(nodes.threshold[node : node + 1])
            near = X[np.arange(len(values)) % len(X)].copy()
            near[:, nodes.feature[node]] = values
            rows.append(near)
    near = np.concatenate(rows)
    if hasattr(theirs, "feature_names_in_"):
        import pandas as pd

        near = pd.DataFrame(near, columns=theirs.feature_names_in_)
    assert_same_answers(theirs, ours, near)
    single = near.astype(np.float32)
    assert_same_answers(theirs, ours, single)


def test_leaves_are_those_of_the_original() -> None:
    for name in ("tree", "tree best first", "tree gaps"):
        specimen = BY_NAME[name]
        theirs, ours = specimen.fitted, from_sklearn(specimen.fitted)
        pairs = set(
            zip(theirs.apply(specimen.X).tolist(), ours.apply(specimen.X).tolist(), strict=True)
        )
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
        assert ours.get_depth() == theirs.get_depth()
        assert ours.get_n_leaves() == theirs.get_n_leaves()


# -- categories and missing values --


def test_unknown_and_missing_labels_go_where_they_went() -> None:
    import pandas as pd

    specimen = BY_NAME["hist labels"]
    ours = from_sklearn(specimen.fitted)
    rows = LABELS.iloc[:40].copy()
    rows["colour"] = pd.Categorical(["violet", None, "red", "grey"] * 10)
    rows["place"] = pd.Categorical([1.0, 99.0, np.nan, 59.0, -3.0] * 8)
    rows.loc[::3, "size"] = np.nan
    with pytest.warns(DataWarning, match="has not seen"):
        found = ours.predict_proba(rows)
    np.testing.assert_allclose(found, specimen.fitted.predict_proba(rows), rtol=0, atol=1e-12)


def test_labels_as_numbers_and_columns_in_any_order() -> None:
    theirs = sklearn.ensemble.HistGradientBoostingRegressor(
        categorical_features=[2], max_iter=10, min_samples_leaf=3
    ).fit(CODED[:, [1, 2, 0]], PLACED)
    ours = from_sklearn(theirs)
    assert list(ours.categories_) == [2]
    assert_same_answers(theirs, ours, CODED[:, [1, 2, 0]])


# -- with everything else --


@pytest.mark.parametrize("specimen", MACHINES, ids=lambda specimen: specimen.name)
def test_machines_are_certified(specimen) -> None:
    ours = from_sklearn(specimen.fitted)
    found = margrove.certificate(ours, specimen.X, specimen.y, specimen.weight)
    if type(ours).__name__ != "NuSVC":  # of which LIBSVM does not look at class_weight
        expected = margrove.certificate(specimen.fitted, specimen.X, specimen.y, specimen.weight)
        assert found.primal == pytest.approx(expected.primal, rel=1e-6)
    if "sigmoid" not in specimen.name and "Linear" not in type(ours).__name__:
        assert found.relative_gap < 0.05
    if "sigmoid" not in specimen.name:
        assert facts.describe(ours, specimen.X, specimen.y, specimen.weight).proof is not None


@every_model
def test_models_are_described(specimen) -> None:
    if type(specimen.model).__name__ == "AdaBoostRegressor":
        pytest.skip("there are no facts of it")
    assert facts.describe(from_sklearn(specimen.fitted)).n_features > 0


@pytest.mark.parametrize(
    "name",
    ["tree", "tree outputs", "forest", "forest balanced", "extra trees", "adaboost", "boosting",
     "boosting squared_error", "hist", "hist labels", "hist poisson"],
)  # fmt: skip
def test_shap_values_add_up(name) -> None:
    specimen = BY_NAME[name]
    some = specimen.X.iloc[:5] if hasattr(specimen.X, "iloc") else specimen.X[:5]
    margrove.shap_values(from_sklearn(specimen.fitted), some, check=True)


@pytest.mark.parametrize("name", ["tree", "tree gaps", "tree frame", "regression tree gaps"])
def test_trees_are_read_and_exported(name) -> None:
    specimen = BY_NAME[name]
    ours = from_sklearn(specimen.fitted)
    assert len(margrove.rules(ours)) == specimen.fitted.get_n_leaves()
    for export in (
        margrove.export_text, margrove.export_sql, margrove.export_json, margrove.export_dot
    ):  # fmt: skip
        assert export(ours)
    made: dict = {}
    exec(margrove.export_python(ours), made)
    assert margrove.regions(ours)


@pytest.mark.parametrize("name", ["SVC two classes", "tree", "forest", "adaboost two", "hist two"])
def test_reports_are_made_of_converted_models(name) -> None:
    specimen = BY_NAME[name]
    page = margrove.report(from_sklearn(specimen.fitted), specimen.X, specimen.y)
    assert "nan" not in page.html


def test_streams_and_warm_starts_go_on() -> None:
    perceptron = from_sklearn(BY_NAME["Perceptron"].fitted)
    perceptron.partial_fit(IRIS, BY_NAME["Perceptron"].y)
    machine = from_sklearn(BY_NAME["SVC rbf"].fitted).set_params(warm_start=True)
    machine.fit(IRIS, BY_NAME["SVC rbf"].y)
    boosting = from_sklearn(BY_NAME["boosting squared_error"].fitted)
    before = boosting.predict(DIABETES)
    boosting.set_params(warm_start=True, n_estimators=16).fit(DIABETES, PROGRESSION)
    assert boosting.n_estimators_ == 16
    assert 0 < np.abs(boosting.predict(DIABETES) - before).max() < 50
    given = BY_NAME["adaboost trees"]
    ada = from_sklearn(given.fitted).set_params(warm_start=True, n_estimators=17)
    assert len(ada.fit(given.X, given.y)) == 17


def test_the_same_problem_is_solved_again() -> None:
    theirs = sklearn.svm.LinearSVC(tol=1e-8, max_iter=100_000).fit(IRIS, SPECIES > 1)
    again = clone(from_sklearn(theirs)).fit(IRIS, SPECIES > 1)
    assert again.intercept_scaling == 1
    np.testing.assert_allclose(again.coef_, theirs.coef_, atol=1e-3)


# -- what cannot be converted --


@pytest.mark.parametrize(
    ("model", "pattern"),
    [
        (LogisticRegression(), r"This LogisticRegression.*no such class.*SVC"),
        (make_pipeline(StandardScaler(), sklearn.svm.SVC()), r"Pipeline.*model\[-1\]"),
        (margrove.SVC(), r"already"),
        (sklearn.svm.SVC, r"class.*SVC\(\)\.fit"),
    ],
)
def test_what_is_not_known_is_named(model, pattern) -> None:
    with pytest.raises(ConversionError, match=pattern):
        from_sklearn(model)


def test_searches_and_derived_classes_are_refused() -> None:
    search = GridSearchCV(sklearn.svm.SVC(), {"C": [1.0, 2.0]}, cv=2).fit(IRIS, SPECIES)
    with pytest.raises(ConversionError, match="best_estimator_"):
        from_sklearn(search)
    from_sklearn(search.best_estimator_)

    class Own(sklearn.svm.SVC):
        pass

    with pytest.raises(ConversionError, match=r"Own.*derived"):
        from_sklearn(Own().fit(IRIS, SPECIES))


def test_models_that_were_not_fitted_are_refused() -> None:
    with pytest.raises(NotFittedError, match="SVC instance is not fitted"):
        from_sklearn(sklearn.svm.SVC())


@pytest.mark.parametrize("cls", [sklearn.svm.SVC, sklearn.svm.NuSVC])
def test_probabilities_of_libsvm_are_refused_and_can_be_left_out(cls) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = cls(probability=True).fit(IRIS, SPECIES)
    with pytest.raises(ConversionError, match=r"probability=True.*set_params\(probability=False"):
        from_sklearn(theirs)
    ours = from_sklearn(theirs.set_params(probability=False))
    assert not hasattr(ours, "predict_proba")
    np.testing.assert_allclose(
        ours.decision_function(IRIS), theirs.decision_function(IRIS), atol=1e-12
    )


def test_kernels_that_look_at_other_rows_are_refused() -> None:
    def centred(A, B):
        return (A - A.mean(axis=0)) @ (B - B.mean(axis=0)).T

    theirs = sklearn.svm.SVC(kernel=centred).fit(IRIS, SPECIES)
    with pytest.raises(ConversionError, match=r"kernel.*depend on the rows beside.*precomputed"):
        from_sklearn(theirs)


def test_kernels_of_texts() -> None:
    def of_texts(A, B):
        return np.array([[float(a[:1] == b[:1]) for b in B] for a in A])

    texts = ["ab", "ac", "bc", "bd"]
    for cls in (sklearn.svm.SVC, sklearn.svm.SVR):
        theirs = cls(kernel=of_texts).fit(texts, [0, 0, 1, 1])
        ours = from_sklearn(theirs)
        again = ours.to_sklearn()
        for words in (texts, ["a", "x"]):
            expected = theirs.predict(words)
            assert np.array_equal(ours.predict(words), expected)
            assert np.array_equal(again.predict(words), expected)


def test_boosting_from_a_model_is_refused() -> None:
    theirs = sklearn.ensemble.GradientBoostingRegressor(init=LinearRegression(), n_estimators=3)
    theirs.fit(DIABETES, PROGRESSION)
    with pytest.raises(ConversionError, match=r"init=LinearRegression.*float32"):
        from_sklearn(theirs)


def test_members_without_counterpart_are_held_as_they_are() -> None:
    ours = from_sklearn(BY_NAME["adaboost foreign"].fitted)
    assert type(ours.estimators_[0]) is LogisticRegression
    assert type(from_sklearn(BY_NAME["adaboost machines"].fitted).estimators_[0]) is margrove.SVC


def test_the_original_is_left_as_it_was() -> None:
    theirs = sklearn.svm.SVC(kernel=linear_kernel).fit(IRIS, SPECIES)
    before = {name: np.copy(value) for name, value in vars(theirs).items()}
    ours = from_sklearn(theirs)
    ours.dual_coef_ *= 2.0
    for name, value in vars(theirs).items():
        np.testing.assert_array_equal(value, before[name])


def test_sparse_models_take_dense_rows() -> None:
    ours = from_sklearn(BY_NAME["SVC sparse"].fitted)
    assert sp.issparse(ours.support_vectors_)
    rows = BY_NAME["SVC sparse"].X[:20]
    np.testing.assert_array_equal(ours.predict(rows.toarray()), ours.predict(rows))
