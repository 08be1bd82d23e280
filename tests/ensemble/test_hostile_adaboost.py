"""Odd things that users, programs and operating systems do to boosting.

Four outcomes are allowed: the right answer; the right answer and a named warning; an error that
names what was wrong, raised before anything fitted has changed; or an interrupt that leaves the
old model, or keeps the rounds so far where that was asked for.
"""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm, tree
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.interrupts import lines_until_interrupt, steady_clock

import margrove
from margrove import AdaBoostClassifier, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.ensemble.adaboost import members, stumps, weak_learners
from margrove.ensemble.adaboost import rounds as boosting_rounds
from margrove.exceptions import ConvergenceWarning, InterruptedFitWarning, InvalidDataError

X, LABELS = load_iris(return_X_y=True)
TWO = LABELS == 1
ALGORITHMS = ("samme", "m1", "real", "gentle", "logit")
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


class Says(ClassifierMixin, BaseEstimator):
    """Always predicts the first class."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.classes_[0])


class Breaks(Says):
    def fit(self, X, y, sample_weight=None):
        raise ArithmeticError("broken on purpose")


def stump(**settings):
    return DecisionTreeClassifier(**({"max_depth": 1} | settings))


def quick(estimator=None, **settings):
    return AdaBoostClassifier(estimator, **({"n_estimators": 5, "random_state": 0} | settings))


def state(model):
    return pickle.dumps({k: v for k, v in vars(model).items() if k.endswith("_") or k[0] == "_"})


# -- parameters ------------------------------------------------------------------------------------

REFUSED = {
    "estimator": ["stump", 3, object()],
    "n_estimators": [0, -1, 1.5, "many", None],
    "learning_rate": [0, -1.0, np.nan, "slow", None],
    "algorithm": ["nonsense", None, 1],
    "resample": ["yes", None],
    "early_stopping": ["yes", None],
    "validation_fraction": [0.0, 1.0, -1, np.nan],
    "n_iter_no_change": [0, 1.5],
    "warm_start": ["yes", None],
    "n_jobs": [0, 1.5, "all"],
    "random_state": [-1, "seed"],
    "max_time": [0, -1.0, "soon"],
    "on_interrupt": ["ignore", None],
    "verbose": [-1, "a"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_nonsense_is_refused_and_changes_nothing(name) -> None:
    model = quick().fit(X, TWO)
    before = state(model)
    for value in REFUSED[name]:
        with pytest.raises((ValueError, TypeError), match=name):
            clone(model).set_params(**{name: value}).fit(X, TWO)
        with pytest.raises((ValueError, TypeError)):
            model.set_params(**{name: value}).fit(X, TWO)
        assert state(model) == before


@pytest.mark.parametrize("settings", [
    {"max_depth": 0}, {"min_samples_leaf": 0}, {"max_bins": 1}, {"min_samples_split": 0},
    {"criterion": "nonsense"},
])  # fmt: skip
def test_nonsense_in_the_tree_is_refused_too(settings) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        quick(stump(**settings)).fit(X, TWO)


def test_monotonic_constraints_may_be_an_array() -> None:
    one, other = (
        quick(stump(monotonic_cst=kind([1, 0, 0, 0]))).fit(X, TWO) for kind in (list, np.array)
    )
    assert np.array_equal(one.predict(X), other.predict(X))


def test_what_does_not_go_together() -> None:
    for settings, y, named in (
        ({"algorithm": "gentle", "estimator": stump()}, TWO, "classifier"),
        ({"estimator": DecisionTreeRegressor()}, TWO, "regressor"),
        ({"algorithm": "real", "estimator": svm.SVC()}, TWO, "predict_proba"),
        ({"algorithm": "discrete"}, LABELS, "two classes"),
        ({"estimator": LogisticRegression}, TWO, "instance"),
    ):
        with pytest.raises((ValueError, TypeError), match=named):
            AdaBoostClassifier(**settings).fit(X, y)
    with pytest.raises(ValueError, match="belong together"):
        quick().fit(X, TWO, X_val=X)
    with pytest.raises(NotFittedError):
        quick().predict(X)


@pytest.mark.parametrize(("algorithm", "rate"), [
    (a, r) for a in ALGORITHMS for r in (1e-300, 1e300, 1e308)
])  # fmt: skip
def test_learning_rates_of_any_size(algorithm, rate) -> None:
    model = quick(algorithm=algorithm, learning_rate=rate, n_estimators=10).fit(X, TWO)
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.estimator_weights_).all()


@every_algorithm
def test_other_parameters_after_the_fit_change_no_prediction(algorithm) -> None:
    model = quick(algorithm=algorithm).fit(X, TWO)
    before = model.decision_function(X)
    model.set_params(learning_rate=0.1, n_estimators=99, random_state=7, algorithm="samme")
    assert np.array_equal(model.decision_function(X), before)


# -- data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["discrete", *ALGORITHMS])
def test_one_class(algorithm) -> None:
    model = quick(algorithm=algorithm).fit(X, np.full(150, "only"))
    assert set(model.predict(X)) == {"only"}
    assert np.array_equal(model.predict_proba(X), np.ones((150, 1)))


@every_algorithm
def test_two_rows(algorithm) -> None:
    model = quick(algorithm=algorithm).fit([[0.0], [1.0]], ["a", "b"])
    assert model.predict([[0.2], [0.7]]).tolist() == ["a", "b"]
    assert np.isfinite(model.predict_proba([[0.2], [0.7]])).all()


@pytest.mark.parametrize("base", [None, GaussianNB(), stump(max_depth=2)])
def test_labels_of_all_kinds(base) -> None:
    expected = quick(base).fit(X, TWO).predict(X)
    for pair in (["a", "bb"], np.array(["x", "yy"], object), [-1, 1], [0.0, 1.0], [0, 2**40]):
        y = np.asarray(pair)[TWO.astype(int)]
        model = quick(base).fit(X, y)
        assert np.array_equal(model.predict(X), np.asarray(pair)[expected.astype(int)])
        assert quick(base, early_stopping="cv", cv=3).fit(X, y).score(X, y) > 0.7


def tables():
    polars = pytest.importorskip("polars")
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    frame = pd.DataFrame(X, columns=list("abcd"))
    return {"list": X.tolist(), "columns first": np.asfortranarray(X), "frame": frame,
            "polars": polars.DataFrame(X, schema=list("abcd")), "64-bit indices": wide,
            "csc": sp.csc_array(X), "coo": sp.coo_array(X),
            "integers": (X * 10).astype(int), "float32": X.astype(np.float32)}  # fmt: skip


@pytest.mark.parametrize("base", [None, stump(max_depth=2), GaussianNB()])
def test_tables_of_all_kinds(base) -> None:
    expected = quick(base).fit(X, LABELS).predict(X)
    for name, table in tables().items():
        if sp.issparse(table) and isinstance(base, GaussianNB):
            continue
        for early in (False, True):
            model = quick(base, early_stopping=early).fit(table, LABELS)
            assert model.score(table, LABELS) > 0.9, name
            if not early and name != "float32":
                assert np.array_equal(model.predict(table), expected), name


def test_cross_validation_takes_what_fit_takes() -> None:
    sparse = quick(early_stopping="cv", cv=3).fit(sp.coo_array(X), LABELS)
    dense = quick(early_stopping="cv", cv=3).fit(X, LABELS)
    assert np.array_equal(sparse.cv_errors_, dense.cv_errors_)
    assert len(sparse) == len(dense) == np.argmin(dense.cv_errors_) + 1


def test_missing_values_and_categories() -> None:
    holes = X.copy()
    holes[::7, 0] = np.nan
    mixed = pd.DataFrame({"c": pd.Categorical(np.array(list("abc"))[LABELS]), "x": X[:, 0]})
    for table in (holes, mixed):
        for early in (False, True, "cv"):
            assert quick(early_stopping=early).fit(table, LABELS).score(table, LABELS) > 0.9


@pytest.mark.parametrize("base", [None, stump(max_depth=2), stump(max_leaf_nodes=2), GaussianNB()])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_infinity_is_refused_and_changes_nothing(base, kind) -> None:
    if kind is sp.csr_array and isinstance(base, GaussianNB):
        pytest.skip("takes no sparse tables")
    model = quick(base).fit(X, LABELS)
    before = state(model)
    for value in (np.inf, -np.inf):
        wrong = X.copy()
        wrong[3, 1] = value
        with pytest.raises(ValueError, match="infinity"):
            model.fit(kind(wrong), LABELS)
        with pytest.raises(ValueError, match="infinity"):
            model.predict(kind(wrong))
        assert state(model) == before


def test_infinity_is_refused_in_rows_to_validate_on() -> None:
    wrong = X.copy()
    wrong[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        quick().fit(X, LABELS, X_val=wrong, y_val=LABELS)


def test_rows_to_validate_on_after_a_fit_with_names() -> None:
    model = quick().fit(pd.DataFrame(X, columns=list("abcd")), LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, LABELS, X_val=X, y_val=LABELS)
    assert not hasattr(model, "feature_names_in_")
    assert np.allclose(model.history_.validation_error, model.history_.training_error)


# -- learners --------------------------------------------------------------------------------------

LEARNERS = {
    "logistic": LogisticRegression(), "their SVC": svm.SVC(), "bayes": GaussianNB(),
    "neighbours": KNeighborsClassifier(3),
    "pipeline": make_pipeline(StandardScaler(), GaussianNB()),
    "our SVC": margrove.SVC(), "perceptron": margrove.Perceptron(), "linear": margrove.LinearSVC(),
}  # fmt: skip


@pytest.mark.parametrize("name", LEARNERS)
def test_any_learner(name) -> None:
    """Pickled, cloned and continued models are equal."""
    model = quick(LEARNERS[name], n_estimators=4).fit(X, LABELS)
    expected = model.decision_function(X)
    assert model.score(X, LABELS) > 0.6
    assert np.isfinite(expected).all()
    others = (
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(X, LABELS),
        clone(model).set_params(n_estimators=2, warm_start=True).fit(X, LABELS)
        .set_params(n_estimators=4).fit(X, LABELS),
    )  # fmt: skip
    for other in others:
        assert np.array_equal(other.decision_function(X), expected)


def test_learners_that_are_of_no_use() -> None:
    model = quick().fit(X, LABELS)
    before = state(model)
    with pytest.raises(ArithmeticError, match="on purpose"):
        model.set_params(estimator=Breaks()).fit(X, LABELS)
    with pytest.raises(InvalidDataError, match="Says is no better than chance"):
        model.set_params(estimator=Says()).fit(X, LABELS)
    assert state(model) == before


def test_samples_drawn_by_the_weights() -> None:
    models = [quick(stump(), resample=True, random_state=s).fit(X, LABELS) for s in (0, 0, 1)]
    first, same, other = (m.decision_function(X) for m in models)
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    numbers = quick(LinearRegression(), algorithm="gentle", resample=True).fit(X, LABELS)
    assert numbers.score(X, LABELS) > 0.9


def test_samples_of_one_class() -> None:
    for seed in range(6):
        model = quick(LogisticRegression(), resample=True, random_state=seed)
        model.fit([[0.0], [1.0]], [0, 1])
        assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]


class Records(Says):
    """Stores the arguments of fit, and returns None."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y)
        self.given_ = X


def test_members_have_random_states_of_their_own() -> None:
    trees = DecisionTreeClassifier(max_depth=3, max_features=1)
    for base in (None, trees, LogisticRegression(), make_pipeline(trees)):
        model = quick(base).fit(X, LABELS)
        names = [name for name in model[0].get_params() if name.endswith("random_state")]
        states = [member.get_params()[names[0]] for member in model.estimators_]
        assert len(set(states)) == len(model) > 1
        assert states == [member.get_params()[names[0]] for member in model.estimators_]
    model = quick(trees).fit(X, LABELS)
    again = [clone(model[t]).random_state for t in range(len(model))]
    assert again == [member.random_state for member in quick(trees).fit(X, LABELS)]


@pytest.mark.parametrize("form", [sp.csc_array, sp.csc_matrix, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("resample", [False, True])
def test_sparse_containers_stay_what_they_are(form, resample) -> None:
    two = np.arange(90) < 60  # Says is wrong about most of them
    model = quick(Records(), resample=resample, n_estimators=1)
    with pytest.raises(InvalidDataError, match="worse than random"):
        model.fit(form(X[:90]), two)
    model.fit(form(X[:90]), ~two)
    assert type(model[0].given_) is form


def test_rows_of_any_shape_are_for_estimators_of_others() -> None:
    cubes, two = np.random.default_rng(0).standard_normal((51, 3, 2)), np.arange(51) % 3 > 0
    for model, y in (
        (quick(Records(), resample=True), ~two),
        (quick(Records()), ~two),
        (margrove.AdaBoostRegressor(DummyRegressor(), random_state=0), two + 0.5),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(cubes, y)
        assert len(model.predict(cubes)) == 51
        assert pickle.loads(pickle.dumps(model)).predict(cubes[:4]).shape == (4,)
        with pytest.raises(ValueError, match=r"rows of shape \(2, 3\)"):
            model.predict(cubes.transpose(0, 2, 1))
        with pytest.raises(ValueError, match="rows of shape"):
            model.predict(X)
    for base in (None, DecisionTreeClassifier(), margrove.SVC()):
        with pytest.raises(ValueError, match="dim 3"):
            quick(base).fit(cubes, two)


def test_a_sample_of_numbers_has_two_of_them() -> None:
    points, numbers = np.arange(4.0)[:, None], [0.0, 0.0, 1.0, 1.0]
    for base in (None, tree.DecisionTreeRegressor(max_depth=1)):
        for seed in range(60):  # otherwise one sample in eight would be constant
            model = margrove.AdaBoostRegressor(base, n_estimators=1, random_state=seed)
            model.fit(points, numbers)
            assert np.ptp(model.predict(points)) > 0.5


# -- going on --------------------------------------------------------------------------------------


def test_a_warm_start_elsewhere_is_refused() -> None:
    model = quick(warm_start=True).fit(X, TWO)
    for table, y in ((X[:, :2], TWO), (X, LABELS), (2 * X, TWO)):
        with pytest.raises(ValueError, match="warm_start"):
            model.set_params(n_estimators=9).fit(table, y)
    with pytest.raises(ValueError, match="n_estimators"):
        model.set_params(n_estimators=2).fit(X, TWO)


@pytest.mark.parametrize(
    ("what", "depth"),
    [
        ("y", 1),
        ("y", 2),
        ("weights", 1),
        ("weights", 2),
        ("X", 1),
        ("X", 2),
    ],
)
def test_a_warm_start_with_other_data_is_refused(what, depth) -> None:
    model = quick(stump(max_depth=depth), warm_start=True).fit(X, TWO)
    model.set_params(n_estimators=9)
    given = {
        "y": (X, LABELS == 2, None),
        "weights": (X, TWO, 1 + np.arange(150) % 2),
        "X": (np.r_[X[:1] + 0.05, X[1:]], TWO, None),
    }[what]
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(*given)


@pytest.mark.parametrize("pair", [(stump(), stump(max_depth=2)), (GaussianNB(), stump())])
def test_a_warm_start_with_another_learner(pair) -> None:
    model = quick(pair[0], warm_start=True).fit(X, TWO)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(n_estimators=9, estimator=pair[1]).fit(X, TWO)
    assert np.array_equal(model.decision_function(X), before)


# -- time and interrupts ---------------------------------------------------------------------------

FILES = tuple(module.__file__ for module in (boosting_rounds, stumps, weak_learners, members))


def fit_interrupted(model, moment, **more):
    run = lines_until_interrupt(model.fit, X, LABELS, files=FILES, moment=moment, **more)
    return len(run)


INTERRUPTED = [
    ("stumps", None, False), ("trees", stump(max_depth=2), False), ("bayes", GaussianNB(), False),
    ("stumps", None, True),
    ("trees", stump(max_depth=2), True),
    ("gentle", "gentle", False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "base", "validates"), INTERRUPTED)
@pytest.mark.sampled(2)
def test_an_interrupt_at_any_line(name, base, validates) -> None:
    """The old model stays, or the new one has the first rounds of an uninterrupted fit."""
    more = {"X_val": X[::2], "y_val": LABELS[::2]} if validates else {}
    model = quick(base, n_estimators=4, n_jobs=1, on_interrupt="keep")
    if name == "gentle":
        model.set_params(estimator=None, algorithm="gentle")
    old, whole = clone(model).fit(X[:120], LABELS[:120]), clone(model)
    n_lines = fit_interrupted(whole, -1, **more)
    stages = list(whole.staged_decision_function(X))
    kept = set()
    for moment in range(0, n_lines, max(3, n_lines // 80)):
        other = copy.copy(old)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InterruptedFitWarning)
            fit_interrupted(other, moment, **more)
        if other._members is old._members:
            continue
        n, history = len(other), other.history_
        kept.add(n)
        assert len(history) == len(other.estimator_weights_) == n
        assert np.array_equal(history.error, whole.history_.error[:n])
        assert np.array_equal(list(other.staged_decision_function(X))[-1], stages[n - 1])
        if validates:
            assert np.array_equal(history.validation_error, whole.history_.validation_error[:n])
    assert kept


def test_an_interrupt_leaves_the_old_model_unless_told_otherwise() -> None:
    model = quick(stump(max_depth=2), n_jobs=1).fit(X, TWO)
    before = state(model)
    fit_interrupted(model, 60)
    assert state(model) == before


def test_a_time_limit_and_listeners() -> None:
    rng = np.random.default_rng(0)
    data, y = rng.standard_normal((500, 5)), rng.integers(0, 2, 500)
    model = quick(n_estimators=10**8, max_time=0.2)
    with steady_clock(), pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(data, y)
    assert 1 <= len(model) == len(model.history_)
    assert model.history_.outcome == "interrupted"
    with margrove.watch(on_progress=lambda progress: progress.done >= 1):
        stopped = quick(stump(max_depth=2), n_estimators=50).fit(data, y)
    assert len(stopped) == 1


def test_progress_is_shown_on_standard_error(capsys) -> None:
    quick(verbose=1).fit(X, TWO)
    shown = capsys.readouterr()
    assert "AdaBoostClassifier" in shown.err
    assert not shown.out
