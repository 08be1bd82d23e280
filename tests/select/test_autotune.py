"""autotune chooses what a brute-force search over the same settings and folds chooses."""

from __future__ import annotations

import pickle
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.oracles.tuning import brute_force, jackknife, simplest_within

from margrove import (
    SVC,
    SVR,
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    KernelPerceptron,
    LinearSVC,
    LinearSVR,
    NuSVC,
    OneClassSVM,
    Perceptron,
    RandomForestClassifier,
    RandomForestRegressor,
)
from margrove.plot.models.tuning import tuning_curve
from margrove.select.autotune.automatic import autotune
from margrove.select.autotune.scores import Scoring
from margrove.select.learners import LEARNERS

mpl.use("Agg")

EPS = np.finfo(float).eps
RNG = np.random.default_rng(0)
X = RNG.standard_normal((150, 4))
NUMBERS = X[:, 0] + X[:, 1] ** 2 - 1 + 0.5 * RNG.standard_normal(150)
WORDS = np.where(NUMBERS > 0, "yes", "no")
OF_CLASSES = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, WORDS))
OF_NUMBERS = list(KFold(3, shuffle=True, random_state=0).split(X))


def data_for(estimator):
    return (WORDS, OF_CLASSES) if is_classifier(estimator) else (NUMBERS, OF_NUMBERS)


def same_answers(one, other):
    """Bit for bit."""
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(one, method):
            assert np.array_equal(getattr(one, method)(X), getattr(other, method)(X))


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


# -- brute force ---------------------------------------------------------------------------------

SEARCHES = [
    (DecisionTreeClassifier(random_state=0), {}, "accuracy", True),
    (DecisionTreeClassifier(random_state=0), {"rule": "best"}, "accuracy", False),
    (DecisionTreeClassifier(random_state=0), {"scoring": "neg_log_loss"}, "neg_log_loss", True),
    (DecisionTreeRegressor(min_samples_leaf=9), {}, "neg_mean_squared_error", True),
    (DecisionTreeRegressor(min_samples_leaf=9), {"scoring": "r2"}, "r2", True),
    (
        DecisionTreeRegressor(min_samples_leaf=9, criterion="absolute_error"), {},
        "neg_mean_absolute_error", True,
    ),
    (HistGradientBoostingClassifier(), {"max_estimators": 12}, "neg_log_loss", False),
    (
        HistGradientBoostingClassifier(max_leaf_nodes=4, learning_rate=0.7),
        {"max_estimators": 20, "scoring": "roc_auc", "rule": "one_standard_error"}, "roc_auc", True,
    ),
    (HistGradientBoostingRegressor(), {"max_estimators": 12}, "neg_mean_squared_error", False),
    (
        HistGradientBoostingRegressor(loss="absolute_error"), {"max_estimators": 8},
        "neg_mean_absolute_error", False,
    ),
    (
        GradientBoostingClassifier(random_state=0, subsample=0.7, learning_rate=0.5),
        {"max_estimators": 15}, "neg_log_loss", False,
    ),
    (
        GradientBoostingRegressor(random_state=0), {"max_estimators": 8}, "neg_mean_squared_error",
        False,
    ),
    (AdaBoostClassifier(random_state=0), {"max_estimators": 15}, "accuracy", False),
    (AdaBoostRegressor(random_state=0), {"max_estimators": 8}, "neg_mean_squared_error", False),
    (LinearSVC(tol=1e-8, max_iter=100_000), {}, "accuracy", False),
    (LinearSVR(loss="squared_epsilon_insensitive", tol=1e-8), {}, "neg_mean_squared_error", False),
    (Perceptron(), {}, "accuracy", False),
    (KernelPerceptron(), {}, "accuracy", False),
    (SVC(tol=1e-7), {}, "accuracy", False),
    (SVC(kernel="linear", tol=1e-7), {"max_time": 60.0}, "accuracy", False),
    (SVR(tol=1e-8, epsilon=0.3), {"scoring": "r2", "also": {"degree": [2]}}, "r2", False),
    (SVR(), {"max_time": 1e-9}, "neg_mean_squared_error", False),
    (NuSVC(), {}, "accuracy", False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "settings", "scoring", "one_standard_error"),
    SEARCHES,
    ids=[f"{type(case[0]).__name__}-{k}" for k, case in enumerate(SEARCHES)],
)
@pytest.mark.sampled(10)
@pytest.mark.sampled(4)
def test_curve_and_choice_are_those_of_brute_force(
    estimator, settings, scoring, one_standard_error
) -> None:
    y, folds = data_for(estimator)
    parameters = estimator.get_params()
    tuned = autotune(estimator, X, y, cv=folds, random_state=7, **settings)
    found = tuned.tuning_
    # the twin stops by itself no earlier, and draws the same
    settings = {
        name: value for name, value in found.parameters.items() if name not in found.candidates[0]
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of perceptrons that go on for ever
        scores, errors, by_fold = brute_force(
            clone(estimator).set_params(**settings), X, y, found.candidates, folds, scoring
        )
    assert found.scoring == scoring
    assert np.allclose(found.scores, scores, rtol=1e-5, atol=1e-9)
    assert np.allclose(found.standard_errors, errors, rtol=1e-4, atol=1e-9)
    if found.by_fold is not None:
        assert np.allclose(found.by_fold, by_fold, rtol=1e-5, atol=1e-9)
    if not isinstance(estimator, (Perceptron, SVC, NuSVC, SVR)):  # these have several lines
        assert found.chosen == simplest_within(
            scores, errors, one_standard_error=one_standard_error
        )
    elif settings.get("rule", "best") == "best":
        assert scores[found.chosen] == pytest.approx(scores.max())
    assert found.score == found.scores[found.chosen]
    # the argument is as it was, and the result as if fitted by hand
    assert estimator.get_params() == parameters
    assert not hasattr(estimator, "n_features_in_")
    same_answers(tuned, clone(estimator).set_params(**found.parameters).fit(X, y))


def test_every_kind_of_estimator_is_tuned() -> None:
    for cls in (
        entry.estimator_class for learner in LEARNERS.values() for entry in learner.estimators
    ):
        y, folds = data_for(cls())
        tuned = autotune(cls(), X[:, :2], y, cv=folds, max_estimators=4, max_time=1e-9)
        assert type(tuned) is cls
        assert len(tuned.tuning_.explanation) >= 3
        assert tuned.predict(X[:, :2]).shape == (150,)


# -- forests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(), RandomForestClassifier(voting="hard"),
        ExtraTreesClassifier(bootstrap=True), BaggingClassifier(),
    ],
    ids=["soft", "hard", "extra", "bagging"],
)  # fmt: skip
def test_scores_of_forests_are_their_own_out_of_bag_scores(estimator) -> None:
    most = 60 if isinstance(estimator, BaggingClassifier) else 100
    tuned = autotune(estimator, X, WORDS, random_state=3, max_estimators=most)
    found = tuned.tuning_
    assert found.measured_by == "out-of-bag rows"
    assert found.by_fold is None
    for candidate, score in zip(found.candidates, found.scores, strict=True):
        twin = clone(estimator).set_params(random_state=3, oob_score=True, **candidate)
        assert twin.fit(X, WORDS).oob_score_ == pytest.approx(score, rel=1e-12)
    same_answers(tuned, clone(estimator).set_params(**found.parameters).fit(X, WORDS))
    assert estimator.random_state is None
    assert tuned.random_state == 3


def test_trees_are_added_until_a_step_is_noise() -> None:
    seed = 0
    found = autotune(
        RandomForestRegressor(max_features=2), X, NUMBERS, random_state=seed, also={}
    ).tuning_
    sizes = [candidate["n_estimators"] for candidate in found.candidates]
    assert sizes == [50 * 2**k for k in range(len(sizes))]
    assert found.chosen == len(sizes) - 1
    groups = np.random.default_rng(seed).permutation(150) % 20
    said = {
        n: RandomForestRegressor(n, max_features=2, random_state=seed, oob_score=True)
        .fit(X, NUMBERS)
        .oob_prediction_
        for n in sizes
    }

    def score(n, rows):
        return -mean_squared_error(NUMBERS[rows], said[n][rows])

    everybody = np.ones(150, bool)
    for k, n in enumerate(sizes):
        assert found.scores[k] == pytest.approx(score(n, everybody), rel=1e-10)
        spread = jackknife(lambda rows, n=n: score(n, rows), groups)
        assert found.standard_errors[k] == pytest.approx(spread, rel=1e-8)
    for k in range(1, len(sizes)):

        def gain(rows, few=sizes[k - 1], many=sizes[k]):
            return score(many, rows) - score(few, rows)

        has_levelled_off = gain(everybody) <= jackknife(gain, groups)
        assert has_levelled_off == (k == len(sizes) - 1)


def test_other_scores_and_settings_of_forests() -> None:
    found = autotune(
        RandomForestClassifier(random_state=0), X, WORDS, scoring="neg_log_loss", rule="best",
        also={"min_samples_leaf": [3, 10]}, max_estimators=50,
    ).tuning_  # fmt: skip
    assert [tried.get("min_samples_leaf") for tried in found.candidates] == [None, 3, 10]
    assert found.chosen == int(np.argmax(found.scores))
    forest = RandomForestClassifier(50, random_state=0, oob_score=True, min_samples_leaf=3)
    given = forest.fit(X, WORDS).oob_decision_function_
    of_truth = given[np.arange(150), (WORDS == "yes").astype(int)]
    assert found.scores[1] == pytest.approx(np.log(np.maximum(of_truth, EPS)).mean(), rel=1e-10)
    usual = autotune(RandomForestClassifier(), X, WORDS, max_estimators=50, random_state=0).tuning_
    assert [tried.get("max_features") for tried in usual.candidates] == [None, 1, 4]


def test_without_bags_forests_are_cross_validated() -> None:
    forest = RandomForestClassifier(random_state=0)
    for estimator, prefix in (
        (ExtraTreesClassifier(random_state=0), ""),
        (make_pipeline(StandardScaler(), forest), "randomforestclassifier__"),
    ):
        found = autotune(estimator, X, WORDS, cv=OF_CLASSES, max_estimators=100).tuning_
        assert found.measured_by == "cross-validation"
        named = [{f"{prefix}{name}": v for name, v in tried.items()} for tried in found.candidates]
        scores, errors, _ = brute_force(estimator, X, WORDS, named, OF_CLASSES, "accuracy")
        assert np.allclose(found.scores, scores)
        assert np.allclose(found.standard_errors, errors)
    groups = np.arange(150) // 3
    by_groups = autotune(RandomForestClassifier(), X, WORDS, groups=groups, cv=3, max_estimators=50)
    assert by_groups.tuning_.measured_by == "cross-validation"


# -- pipelines -----------------------------------------------------------------------------------


class Leaky(TransformerMixin, BaseEstimator):
    """Adds the target's value at the nearest row it was fitted to: harmless only within folds."""

    def fit(self, X, y):
        self.X_, self.y_ = np.asarray(X), np.asarray(y)
        return self

    def transform(self, X):
        nearest = ((np.asarray(X)[:, None] - self.X_) ** 2).sum(axis=2).argmin(axis=1)
        return np.column_stack([X, self.y_[nearest] == "yes"])


@pytest.mark.parametrize(
    ("last", "settings"),
    [
        (DecisionTreeClassifier(random_state=0), {}),
        (LinearSVC(tol=1e-8), {}),
        (HistGradientBoostingClassifier(), {"max_estimators": 6, "scoring": "accuracy"}),
        (SVC(), {"max_time": 1e-9}),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_pipelines_are_cross_validated_as_a_whole(last, settings) -> None:
    pipeline = make_pipeline(Leaky(), make_pipeline(StandardScaler(), last))
    tuned = autotune(pipeline, X, WORDS, cv=OF_CLASSES, random_state=0, **settings)
    found = tuned.tuning_
    prefix = f"pipeline__{type(last).__name__.lower()}__"
    assert all(name.startswith(prefix) for name in found.parameters)
    settings = {
        name: v
        for name, v in found.parameters.items()
        if name[len(prefix) :] not in found.candidates[0]
    }
    named = [{f"{prefix}{name}": v for name, v in c.items()} for c in found.candidates]
    twin = clone(pipeline).set_params(**settings)
    scores, *_ = brute_force(twin, X, WORDS, named, OF_CLASSES, "accuracy")
    assert np.allclose(found.scores, scores, atol=1e-9)
    assert not hasattr(pipeline.steps[0][1], "X_")
    same_answers(tuned, clone(pipeline).set_params(**found.parameters).fit(X, WORDS))


# -- weights, groups, labels, tables -------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (DecisionTreeClassifier(random_state=0), {}),
        (DecisionTreeClassifier(random_state=0), {"scoring": "neg_log_loss"}),
        (GradientBoostingRegressor(random_state=0), {"max_estimators": 6}),
        (LinearSVC(tol=1e-9, max_iter=100_000), {}),
    ],
    ids=["tree", "tree by log loss", "boosting", "linear"],
)
def test_weights_are_repetitions(estimator, settings) -> None:
    y, folds = data_for(estimator)
    times = np.random.default_rng(1).integers(0, 4, 150)
    repeated = np.repeat(np.arange(150), times)
    repeated_folds = [
        (np.flatnonzero(np.isin(repeated, train)), np.flatnonzero(np.isin(repeated, test)))
        for train, test in folds
    ]
    weighted = autotune(estimator, X, y, cv=folds, sample_weight=times, random_state=0, **settings)
    twin = autotune(
        estimator, X[repeated], y[repeated], cv=repeated_folds, random_state=0, **settings
    )
    one, other = weighted.tuning_, twin.tuning_
    assert np.allclose(one.scores, other.scores, rtol=1e-6)
    assert np.allclose(one.standard_errors, other.standard_errors, rtol=1e-5, atol=1e-12)
    assert one.chosen == other.chosen
    assert not np.allclose(
        one.scores[one.chosen],
        autotune(estimator, X, y, cv=folds, random_state=0, **settings).tuning_.score,
    )


def test_weights_of_bags_count_in_scores() -> None:
    weight = np.where(WORDS == "yes", 5.0, 1.0)
    found = autotune(
        RandomForestClassifier(random_state=0),
        X,
        WORDS,
        sample_weight=weight,
        also={},
        max_estimators=50,
    ).tuning_
    forest = RandomForestClassifier(50, random_state=0, oob_score=True)
    forest.fit(X, WORDS, sample_weight=weight)
    assert found.score == pytest.approx(forest.oob_score_, rel=1e-12)
    assert found.score == pytest.approx(1 - forest.oob_curve_[-1], rel=1e-12)


def test_groups_stay_together() -> None:
    groups = np.repeat(np.arange(30), 5)
    splitter = GroupKFold(3)
    one = autotune(LinearSVC(), X, WORDS, cv=splitter, groups=groups, random_state=0)
    two = autotune(LinearSVC(), X, WORDS, cv=list(splitter.split(X, WORDS, groups)), random_state=0)
    assert np.array_equal(one.tuning_.by_fold, two.tuning_.by_fold)
    copies = np.tile(X[:15], (10, 1))  # each row ten times: without groups, known by heart
    y = np.tile(RNG.permutation(np.repeat([0, 1], 8)[:15]), 10)
    tree = DecisionTreeClassifier(random_state=0)
    naive = autotune(tree, copies, y, cv=3, random_state=0).tuning_.score
    honest = autotune(tree, copies, y, cv=3, random_state=0, groups=np.tile(np.arange(15), 10))
    assert naive > 0.95
    assert honest.tuning_.score < 0.8


def test_tables_of_all_kinds() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    plain = autotune(LinearSVC(), X, WORDS, cv=OF_CLASSES, random_state=0)
    names = list("abcd")
    table = pd.DataFrame(X, columns=names, index=range(7, 157))
    framed = autotune(LinearSVC(), table, pd.Series(WORDS), cv=OF_CLASSES, random_state=0)
    lazily = autotune(
        LinearSVC(),
        pl.DataFrame(X, schema=names).lazy(),
        pl.Series(WORDS),
        cv=OF_CLASSES,
        random_state=0,
    )
    sparsely = autotune(LinearSVC(), sp.coo_array(X), WORDS.tolist(), cv=OF_CLASSES, random_state=0)
    for other in (framed, lazily, sparsely):
        assert np.allclose(other.tuning_.scores, plain.tuning_.scores, atol=0.02)
        assert other.classes_.tolist() == ["no", "yes"]
    assert framed.feature_names_in_.tolist() == names
    gram = autotune(SVC(kernel="precomputed"), X @ X.T, WORDS, cv=OF_CLASSES)
    line = autotune(SVC(kernel="linear"), X, WORDS, cv=OF_CLASSES)
    assert np.allclose(gram.tuning_.scores, line.tuning_.scores, atol=0.02)


def test_several_outputs_of_trees_and_forests() -> None:
    both = np.column_stack([NUMBERS, -X[:, 0]])
    tree = autotune(DecisionTreeRegressor(min_samples_leaf=9), X, both, cv=OF_NUMBERS)
    assert tree.predict(X).shape == (150, 2)
    forest = autotune(RandomForestRegressor(random_state=0), X, both, max_estimators=50, also={})
    assert forest.tuning_.score < 0


# -- how it is asked -----------------------------------------------------------------------------


def test_one_split_is_enough() -> None:
    found = autotune(LinearSVC(), X, WORDS, cv=[(np.arange(60), np.arange(60, 90))]).tuning_
    assert found.by_fold.shape == (13, 1)
    assert np.array_equal(found.scores, found.by_fold[:, 0])
    assert not found.standard_errors.any()


def test_a_number_of_folds_shuffles_by_the_seed() -> None:
    runs = [
        autotune(LinearSVC(), X, WORDS, random_state=seed).tuning_.by_fold for seed in (0, 0, 1)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    by_hand = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, WORDS))
    same = autotune(LinearSVC(), X, WORDS, cv=by_hand, random_state=0).tuning_.by_fold
    assert np.array_equal(runs[0], same)


@pytest.mark.parametrize(
    "estimator",
    [ExtraTreesClassifier(), HistGradientBoostingClassifier(), LinearSVC(), Perceptron()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_threads_change_nothing(estimator) -> None:
    one, two = (
        autotune(estimator, X, WORDS, cv=3, random_state=0, n_jobs=n, max_estimators=50).tuning_
        for n in (None, 2)
    )
    assert np.array_equal(one.by_fold, two.by_fold)
    assert one.parameters == two.parameters


def test_other_parameters_are_chosen_along() -> None:
    also = {"learning_rate": [0.03, 0.3], "max_leaf_nodes": [3, 8]}
    tuned = autotune(
        HistGradientBoostingClassifier(), X, WORDS, cv=OF_CLASSES, also=also, max_estimators=10,
        random_state=0,
    )  # fmt: skip
    found = tuned.tuning_
    assert len(found.scores) == 40
    assert found.chosen == int(np.argmax(found.scores))
    assert tuned.learning_rate == found.candidates[found.chosen]["learning_rate"]
    one = HistGradientBoostingClassifier(learning_rate=0.3, max_leaf_nodes=3)
    alone = autotune(one, X, WORDS, cv=OF_CLASSES, max_estimators=10, random_state=0)
    part = [
        k
        for k, c in enumerate(found.candidates)
        if (c["learning_rate"], c["max_leaf_nodes"]) == (0.3, 3)
    ]
    assert np.array_equal(found.scores[part], alone.tuning_.scores)


def test_rounds_go_on_until_the_second_half_brings_nothing() -> None:
    slow = HistGradientBoostingRegressor(learning_rate=0.03)
    found = autotune(slow, X, NUMBERS, cv=OF_NUMBERS, random_state=0).tuning_
    assert len(found.scores) in (100, 200, 400, 800)
    assert 2 * (found.chosen + 1) <= len(found.scores) <= 4 * (found.chosen + 1)
    assert "in the first half" in found.explanation[1]
    short = autotune(slow, X, NUMBERS, cv=OF_NUMBERS, random_state=0, max_estimators=30).tuning_
    assert np.array_equal(short.scores, found.scores[:30])
    assert "max_estimators=30" in short.explanation[1]


def test_time_that_is_up_ends_the_search_and_is_told() -> None:
    found = autotune(Perceptron(), X, WORDS, max_time=1e-9).tuning_
    assert len(found.scores) == 1
    assert "the time was up" in str(found)
    found = autotune(HistGradientBoostingRegressor(learning_rate=0.01), X, NUMBERS, max_time=1e-9)
    assert found.tuning_.candidates[-1] == {"max_iter": 100}
    assert "the time was up" in str(found.tuning_)
    found = autotune(RandomForestClassifier(), X, WORDS, max_time=1e-9)
    assert [tried["n_estimators"] for tried in found.tuning_.candidates] == [50]
    assert "because the time was up" in str(found.tuning_)


def test_early_stopping_of_the_estimator_is_off() -> None:
    tuned = autotune(
        HistGradientBoostingClassifier(early_stopping=True),
        X,
        WORDS,
        max_estimators=5,
        random_state=0,
    )
    assert tuned.early_stopping is False
    assert tuned.n_iter_ == tuned.max_iter
    classic = autotune(GradientBoostingRegressor(n_iter_no_change=2), X, NUMBERS, max_estimators=5)
    assert classic.n_iter_no_change is None


def test_a_function_of_the_same_name_is_the_users() -> None:
    def accuracy(model, X, y):
        return -float(model.tree_.n_leaves if hasattr(model, "tree_") else 1)

    for estimator in (DecisionTreeClassifier(random_state=0), SVC()):
        found = autotune(estimator, X, WORDS, cv=OF_CLASSES, scoring=accuracy).tuning_
        assert found.scoring == "accuracy"
        assert found.score == -1.0


def test_the_loss_that_boosting_makes_small_is_what_is_scored() -> None:
    for estimator, name in (
        (GradientBoostingRegressor(loss="quantile", alpha=0.8), "mean_pinball_loss"),
        (HistGradientBoostingRegressor(loss="quantile", quantile=0.3), "mean_pinball_loss"),
        (HistGradientBoostingRegressor(loss="poisson"), "neg_mean_poisson_deviance"),
        (GradientBoostingRegressor(loss="huber"), "neg_mean_absolute_error"),
    ):
        y = np.abs(NUMBERS) + 0.1
        found = autotune(estimator, X, y, max_estimators=3, cv=3).tuning_
        assert found.scoring == name
        assert found.score < 0


def test_a_nu_that_is_not_feasible_never_wins() -> None:
    rare = np.where(NUMBERS > 1.5, "rare", "usual")
    assert 8 < np.count_nonzero(rare == "rare") < 30
    tuned = autotune(NuSVC(), X, rare, cv=3, random_state=0)
    assert np.isnan(tuned.tuning_.scores).any()
    assert np.isfinite(tuned.tuning_.score)


def test_a_price_at_the_end_of_the_path_is_told() -> None:
    found = autotune(LinearSVC(), X, WORDS, scoring=lambda model, X, y: model.C).tuning_
    assert found.score == 1000
    assert "at the end of the range" in str(found)


def test_the_grid_grows_where_the_best_is_at_its_end() -> None:
    thinned = np.where(X > 1, X, 0)
    found = autotune(
        SVC(), sp.csr_array(thinned), WORDS, cv=OF_CLASSES,
        scoring=lambda model, X, y: -model.C * model.gamma,
    ).tuning_  # fmt: skip
    assert {tried["C"] for tried in found.candidates} == {0.001, 0.01, 0.1, 1, 10, 100}
    assert found.chosen == 0
    assert found.candidates[0]["C"] == 0.001
    usual = 1 / (4 * thinned.var())
    assert max(tried["gamma"] for tried in found.candidates) == pytest.approx(10 * usual, rel=1e-3)


def test_what_was_done_is_told(capsys) -> None:
    tuned = autotune(LinearSVC(), X, WORDS, cv=OF_CLASSES, random_state=0, verbose=1)
    found = tuned.tuning_
    assert capsys.readouterr().out == f"{found}\n"
    assert "for each of 3 folds" in found.explanation[0]
    assert f"C={tuned.C:.6g}, with accuracy {found.score:.6g}" in found.explanation[1]
    assert "somewhat too good for new rows" in found.explanation[-1]
    assert f"* {found.score:24.6g}" in str(found)
    assert "and 1 more" in str(found)
    assert f"C={tuned.C:.6g}; accuracy" in repr(found)
    assert found.seconds > 0
    again = pickle.loads(pickle.dumps(tuned))
    assert np.array_equal(again.tuning_.scores, found.scores)
    assert not hasattr(clone(tuned), "tuning_")
    autotune(LinearSVC(), X, WORDS, cv=OF_CLASSES)
    assert not capsys.readouterr().out


def test_frames_hold_all_that_was_tried() -> None:
    found = autotune(Perceptron(), X, WORDS, cv=OF_CLASSES).tuning_
    frame = found.frame()
    assert frame.columns.tolist() == [
        "average", "max_iter", "score", "standard_error", "fold 0", "fold 1", "fold 2", "chosen",
    ]  # fmt: skip
    assert np.array_equal(frame["score"], found.scores)
    assert np.flatnonzero(frame["chosen"]).tolist() == [found.chosen]


def test_pictures_hold_the_numbers() -> None:
    tuned = autotune(Perceptron(), X, WORDS, cv=OF_CLASSES)
    found = tuned.tuning_
    ax = found.plot(ax=Figure().subplots())
    lines = [line for line in ax.lines if line.get_gid() == "curve"]
    assert [line.get_xdata().tolist() for line in lines] == [[1, 2, 5, 10, 20, 50, 100]] * 2
    assert np.array_equal(np.concatenate([line.get_ydata() for line in lines]), found.scores)
    (mark,) = [line for line in ax.lines if line.get_gid() == "chosen"]
    assert mark.get_ydata() == [found.score]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("max_iter", "accuracy", "log")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[:2] == ["average=False", "average=True"]
    assert names[2].startswith("chosen: average=")
    assert tuning_curve(tuned).get_xlabel() == "max_iter"
    tree = autotune(DecisionTreeRegressor(), X, NUMBERS, cv=OF_NUMBERS)
    assert tree.tuning_.candidates[-1] == {"ccp_alpha": 0.0}
    assert tuning_curve(tree).get_xscale() == "symlog"
    few = autotune(RandomForestClassifier(), X, WORDS, also={}, max_estimators=60)
    assert tuning_curve(few).get_xscale() == "linear"
    with pytest.raises(TypeError, match="Got Perceptron"):
        tuning_curve(Perceptron())


@pytest.mark.parametrize("name", ["accuracy", "neg_log_loss", "neg_mean_squared_error"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_quick_scores_are_those_of_scikit_learn(name, is_weighted) -> None:
    y = NUMBERS if "squared" in name else WORDS
    cls = DecisionTreeRegressor if "squared" in name else DecisionTreeClassifier
    model = cls(max_depth=2).fit(X, y)
    weight = np.random.default_rng(0).random(150) if is_weighted else None
    expected = get_scorer(name)(model, X, y, sample_weight=weight)
    assert Scoring(name)(model, X, y, weight) == pytest.approx(expected, rel=1e-12)


# -- what makes no sense -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"scoring": "goodness"}, ValueError, "one of scikit-learn's names"),
        ({"scoring": 3}, TypeError, "Got int"),
        ({"scoring": lambda model, X, y: "good"}, ValueError, "must return a number. Got 'good'"),
        ({"scoring": lambda model, X, y: np.nan}, ValueError, "No setting could be scored"),
        (
            {"scoring": lambda model, X, y: 1.0, "sample_weight": np.ones(150)}, ValueError,
            "does not take it",
        ),
        ({"scoring": "neg_log_loss"}, ValueError, "needs probabilities, and LinearSVC has none"),
        ({"cv": 1}, ValueError, "cv must be a number of folds from 2"),
        ({"cv": "5"}, ValueError, "cv must be"),
        ({"cv": [(np.arange(0), np.arange(9))]}, ValueError, "no rows to train on"),
        (
            {"sample_weight": np.repeat([0, 1], 75), "cv": [(np.arange(75, 150), np.arange(75))]},
            ValueError, "holds out no row of positive weight",
        ),
        ({"rule": "least"}, ValueError, "rule"),
        ({"also": {"depth": [1]}}, ValueError, "'depth', which is not a parameter of LinearSVC"),
        ({"also": {"loss": "hinge"}}, ValueError, "must be a list of values. Got 'hinge'"),
        ({"also": {"loss": []}}, ValueError, "is empty"),
        ({"also": {"C": [1]}}, ValueError, "also has 'C', which autotune chooses itself"),
        ({"also": ["loss"]}, ValueError, "also"),
        ({"max_estimators": 0}, ValueError, "max_estimators"),
        ({"max_estimators": True}, ValueError, "max_estimators"),
        ({"max_time": -1}, ValueError, "max_time"),
        ({"sample_weight": np.zeros(150)}, ValueError, "zero for all rows"),
        ({"groups": np.zeros(150)}, ValueError, "need as many groups"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(settings, error, message) -> None:
    with pytest.raises(error, match=message):
        autotune(LinearSVC(), X, WORDS, **settings)


def test_estimators_that_are_not_known_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Got LogisticRegression: .*GridSearchCV"):
        autotune(LogisticRegression(), X, WORDS)
    with pytest.raises(TypeError, match="Got OneClassSVM"):
        autotune(OneClassSVM(), X, WORDS)
    with pytest.raises(TypeError, match="Got LogisticRegression"):
        autotune(make_pipeline(StandardScaler(), LogisticRegression()), X, WORDS)
    with pytest.raises(TypeError, match="Got passthrough"):
        autotune(make_pipeline(StandardScaler(), "passthrough"), X, WORDS)
    with pytest.raises(TypeError, match=r"such as SVC\(\)"):
        autotune(SVC, X, WORDS)
    with pytest.raises(TypeError, match="Got str"):
        autotune("SVC", X, WORDS)
    with pytest.raises(ValueError, match="y must be a number for each of the 150 rows"):
        autotune(LinearSVR(), X, NUMBERS[:9])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        autotune(LinearSVC(), X, WORDS[:9])
    weight = np.ones(150)
    with pytest.raises(ValueError, match="scoring=neg_max_error does not take it"):
        autotune(LinearSVR(), X, NUMBERS, scoring="neg_max_error", sample_weight=weight)
    with pytest.raises(ValueError, match="too few out-of-bag rows"):
        autotune(RandomForestRegressor(max_samples=1.0), X[:2], NUMBERS[:2], max_estimators=1)
