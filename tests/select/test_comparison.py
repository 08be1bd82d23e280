"""Comparisons agree with scikit-learn's cross-validation and the tests of the papers.

The order of models and the number of threads do not matter, and models may fail.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import threading
import warnings
from contextlib import redirect_stderr

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, VotingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, fbeta_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from tests.interrupts import steady_clock
from tests.oracles import comparing as oracle

from margrove import SVC, DecisionTreeClassifier, DecisionTreeRegressor, watch
from margrove.datasets import load_iris
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    FitCancelled,
    InterruptedFitWarning,
    InvalidDataError,
)
from margrove.plot.drawing.canvas import class_style
from margrove.select.compare.blending import BLENDS
from margrove.select.compare.compared_models import default_models
from margrove.select.compare.comparison import compare

mpl.use("Agg")

IRIS, SPECIES = load_iris(return_X_y=True)
RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.7 * RNG.normal(size=60) > 0, "yes", "no")
TARGET = X[:, 0] + 0.5 * RNG.normal(size=60)
MODELS = {"bayes": GaussianNB(), "near": KNeighborsClassifier(3), "prior": DummyClassifier()}
NUMBERS = {"line": LinearRegression(), "near": KNeighborsRegressor(3), "mean": DummyRegressor()}


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def comparison():
    return compare(MODELS, X, Y, random_state=0)


def figures(found):
    """All results that do not depend on the clock."""
    return (
        [(m.name, m.score, m.interval, m.fold_scores.tolist()) for m in found.models],
        found.pairs,
        found.blend_weights,
    )


# -- scores and tests ----------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, "roc_auc", "neg_log_loss"])
def test_scores_are_those_of_cross_val_score(scoring) -> None:
    cv = RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=0)
    found = compare(MODELS, X, Y, cv=cv, scoring=scoring)
    for name, model in MODELS.items():
        wanted = cross_val_score(model, X, Y, cv=cv, scoring=scoring)
        assert found[name].fold_scores == pytest.approx(wanted)
        assert found[name].score == pytest.approx(wanted.mean())
    assert found.n_folds == 8
    assert found.scoring == scoring or (scoring is None and found.scoring == "accuracy")


def test_scores_of_regressors() -> None:
    cv = RepeatedKFold(n_splits=5, n_repeats=2, random_state=1)
    found = compare(NUMBERS, X, TARGET, cv=cv)
    for name, model in NUMBERS.items():
        assert found[name].fold_scores == pytest.approx(cross_val_score(model, X, TARGET, cv=cv))
    assert found.scoring == "r2"
    assert found.ranking == ("line", "near", "mean")


def test_pairs_are_tested_as_the_paper_says(comparison) -> None:
    names = comparison.ranking
    assert [(p.first, p.second) for p in comparison.pairs] == [
        (names[0], names[1]), (names[0], names[2]), (names[1], names[2]),
    ]  # fmt: skip
    for pair in comparison.pairs:
        first, second = comparison[pair.first], comparison[pair.second]
        wanted = oracle.corrected_t(first.fold_scores, second.fold_scores, 1 / 4)
        found_values = (pair.difference, *pair.interval, pair.p)
        assert found_values == pytest.approx(wanted)
        assert pair.difference >= 0
        assert pair.differs == (pair.p_adjusted < 0.05)
    adjusted = [pair.p_adjusted for pair in comparison.pairs]
    assert adjusted == pytest.approx(oracle.holm_by_closure([p.p for p in comparison.pairs]))


def test_a_pair_can_be_had_in_both_orders(comparison) -> None:
    there, back = comparison.pair("bayes", "prior"), comparison.pair("prior", "bayes")
    assert there.difference == -back.difference
    assert there.interval == (-back.interval.high, -back.interval.low)
    assert (there.p, there.p_adjusted, there.differs) == (back.p, back.p_adjusted, back.differs)
    with pytest.raises(KeyError, match="no model 'nobody'"):
        comparison.pair("bayes", "nobody")
    with pytest.raises(ValueError, match="twice"):
        comparison.pair("bayes", "bayes")
    with pytest.raises(KeyError, match="no model 'nobody'"):
        comparison["nobody"]


def test_unequal_folds_use_the_mean_ratio() -> None:
    cv = TimeSeriesSplit(n_splits=4)
    found = compare([GaussianNB(), KNeighborsClassifier(1)], X, Y, cv=cv)
    ratio = np.mean([len(test) / len(train) for train, test in cv.split(X)])
    (pair,) = found.pairs
    first, second = found[pair.first].fold_scores, found[pair.second].fold_scores
    wanted = oracle.corrected_t(first, second, ratio)
    assert (pair.difference, *pair.interval, pair.p) == pytest.approx(wanted)


def test_groups_are_never_parted() -> None:
    groups = np.repeat(np.arange(12), 5)
    copies, labels = X[:12][groups], Y[:12][groups]
    cheat = {"near": KNeighborsClassifier(1), "prior": DummyClassifier()}
    assert compare(cheat, copies, labels, cv=3, random_state=0)["near"].score == 1.0
    parted = compare(cheat, copies, labels, cv=3, groups=groups, random_state=0)
    assert parted["near"].score < 1.0
    given = compare(cheat, copies, labels, cv=GroupKFold(3), groups=groups)
    wanted = cross_val_score(cheat["near"], copies, labels, cv=GroupKFold(3), groups=groups)
    assert given["near"].fold_scores == pytest.approx(wanted)
    numbers = compare(NUMBERS, copies, copies[:, 0], cv=3, groups=groups, random_state=0)
    assert numbers.n_folds == 6


def test_weights_reach_fits_and_scores() -> None:
    """Weights of 0 and 2 equal rows that are left out and rows that occur twice."""
    weight = RNG.integers(0, 3, size=60).astype(float)
    splits = [(np.arange(0, 30), np.arange(30, 60)), (np.arange(30, 60), np.arange(0, 30))]
    models = {"bayes": GaussianNB(), "scaled": make_pipeline(StandardScaler(), GaussianNB())}
    found = compare(models, X, Y, cv=splits, sample_weight=weight, scoring="neg_log_loss")
    for k, (train, test) in enumerate(splits):
        times = weight[train].astype(int), weight[test].astype(int)
        rows, tested = np.repeat(train, times[0]), np.repeat(test, times[1])
        model = GaussianNB().fit(X[rows], Y[rows])
        of_truth = model.predict_proba(X[tested])[np.arange(len(tested)), (Y[tested] == "yes") * 1]
        assert found["bayes"].fold_scores[k] == pytest.approx(np.log(of_truth).mean())
    with pytest.warns(FitFailedWarning, match=r"near failed.*KNeighborsClassifier does not take"):
        found = compare(MODELS, X, Y, sample_weight=weight, random_state=0)
    assert found.failed[0].name == "near"


def test_two_identical_models_do_not_differ() -> None:
    for test in ("corrected_t", "bootstrap"):
        found = compare([GaussianNB(), GaussianNB()], X, Y, test=test, random_state=0)
        assert found.ranking == ("GaussianNB 1", "GaussianNB 2")
        (pair,) = found.pairs
        assert (pair.difference, pair.interval, pair.p, pair.p_adjusted) == (0, (0, 0), 1, 1)
        assert found.sentence == (
            "GaussianNB 1 and GaussianNB 2 do not differ at this sample size (difference 0.0 "
            "points, 95 % interval 0.0 to 0.0, p = 1.00)."
        )


def test_forests_without_seeds_get_one_for_each_fold() -> None:
    forests = {"a": RandomForestClassifier(3), "b": RandomForestClassifier(3)}
    found = compare(forests, X, Y, cv=3, repeats=1, random_state=0)
    assert np.array_equal(found["a"].fold_scores, found["b"].fold_scores)
    again = compare(forests, X, Y, cv=3, repeats=1, random_state=0)
    assert figures(found) == figures(again)
    assert forests["a"].random_state is None


def test_seeds_are_those_of_the_fold_or_the_users_own() -> None:
    class Seeded(ClassifierMixin, BaseEstimator):
        seeds: list[int] = []  # noqa: RUF012, shared by clones

        def __init__(self, random_state=None):
            self.random_state = random_state

        def fit(self, X, y):
            self.seeds.append(self.random_state)
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    compare(Seeded(), X, Y, cv=3, random_state=0)
    assert len(set(Seeded.seeds)) == len(Seeded.seeds) == 6
    Seeded.seeds.clear()
    compare(Seeded(3), X, Y, cv=3, random_state=0)
    assert Seeded.seeds == [3] * 6


def test_a_constant_difference_has_no_nan() -> None:
    class Constant(ClassifierMixin, BaseEstimator):
        def __init__(self, score=0.0):
            self.score_ = self.score = score

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

    def a_score(model, X, y):
        return model.score

    found = compare({"a": Constant(0.3), "b": Constant(0.1)}, X, Y, scoring=a_score, random_state=0)
    (pair,) = found.pairs
    assert pair.difference == pytest.approx(0.2)
    assert pair.p == 2.0**-9
    assert found["a"].interval == pytest.approx((0.3, 0.3))
    text = str(
        compare({"a": Constant(0.3)}, X, Y, scoring=a_score, test="bootstrap", random_state=0)
    )
    assert "nan" not in str(found) + text


# -- the bootstrap -------------------------------------------------------------------------------


def test_bootstrap_over_rows_is_paired_and_about_the_same_means() -> None:
    cv = RepeatedStratifiedKFold(n_splits=7, n_repeats=2, random_state=0)  # folds of 8 and 9 rows
    plain = compare(MODELS, X, Y, cv=cv)
    found = compare(MODELS, X, Y, cv=cv, test="bootstrap", random_state=0)
    assert found.test_used == "bootstrap_rows"
    right = {name: np.zeros(60) for name in MODELS}
    for train, test in cv.split(X, Y):
        for name, model in MODELS.items():
            answer = clone(model).fit(X[train], Y[train]).predict(X[test])
            right[name][test] += (answer == Y[test]) / 2
    for name in MODELS:
        assert found[name].score == plain[name].score
        error = right[name].std() / np.sqrt(60)
        low, high = found[name].interval
        assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)
        assert low < found[name].score < high
    for pair in found.pairs:
        assert pair.difference == pytest.approx(plain.pair(pair.first, pair.second).difference)
        error = np.std(right[pair.first] - right[pair.second]) / np.sqrt(60)
        low, high = pair.interval
        assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_small_folds_weigh_as_much_as_large_ones_among_rows() -> None:
    y = np.array(["yes"] * 10 + ["no", "yes"] * 25)
    splits = [(np.arange(10, 60), np.arange(10)), (np.arange(10), np.arange(10, 60))]
    always = {"always": DummyClassifier(strategy="constant", constant="yes")}
    found = compare(always, X, y, cv=splits, test="bootstrap", random_state=0)["always"]
    assert found.score == 0.75  # all of ten rows, half of fifty
    assert found.interval.low < 0.75 < found.interval.high
    assert sum(found.interval) / 2 == pytest.approx(0.75, abs=0.03)


def test_other_scores_are_resampled_by_folds() -> None:
    found = compare(MODELS, X, Y, scoring="roc_auc", test="bootstrap", random_state=0)
    assert found.test_used == "bootstrap_folds"
    assert "bootstrap of the folds" in str(found)
    pair = found.pair("bayes", "prior")
    assert pair.differs
    assert 0 < pair.interval.low < pair.difference < pair.interval.high


def test_r2_is_resampled_by_rows() -> None:
    found = compare(NUMBERS, X, TARGET, test="bootstrap", random_state=0)
    assert found.test_used == "bootstrap_rows"
    assert found.pair("line", "mean").differs
    for model in found.models:
        assert model.interval.low <= model.score <= model.interval.high


def test_one_fold_is_enough_for_rows_and_not_for_folds() -> None:
    once = ShuffleSplit(1, test_size=0.5, random_state=0)
    found = compare(MODELS, X, Y, cv=once, test="bootstrap", random_state=0)
    assert found.n_folds == 1
    assert found["bayes"].interval.low < found["bayes"].score
    for settings in ({}, {"test": "bootstrap", "scoring": "roc_auc"}):
        with pytest.raises(ValueError, match=r"cv must make at least two folds.* Got 1"):
            compare(MODELS, X, Y, cv=once, **settings)


# -- what does not matter ------------------------------------------------------------------------


@pytest.mark.parametrize(("test", "blend"), [("corrected_t", True), ("bootstrap", False)])
def test_threads_and_the_order_of_models_do_not_matter(test, blend) -> None:
    models = MODELS | {"forest": RandomForestClassifier(3, n_jobs=2)}
    settings = {"test": test, "blend": blend, "cv": 2, "repeats": 1, "random_state": 4}
    one = compare(models, X, Y, **settings)
    assert figures(compare(models, X, Y, n_jobs=3, **settings)) == figures(one)
    turned = compare(dict(reversed(models.items())), X, Y, **settings)
    assert figures(turned) == figures(one)


def test_no_model_has_threads_of_its_own_on_several_threads() -> None:
    class Threads(ClassifierMixin, BaseEstimator):
        asked: list[int | None] = []  # noqa: RUF012, shared by clones

        def __init__(self, n_jobs=None):
            self.n_jobs = n_jobs

        def fit(self, X, y):
            self.asked.append(self.n_jobs)
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    models = {"own": Threads(-1), "none": make_pipeline(StandardScaler(), Threads(7))}
    compare(models, X, Y, cv=2, repeats=1, n_jobs=2)
    assert Threads.asked == [1] * 4
    Threads.asked.clear()
    compare(models, X, Y, cv=2, repeats=1)
    assert sorted(Threads.asked) == [-1, -1, 7, 7]


def test_tables_and_labels_of_all_kinds() -> None:
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=0)
    plain = figures(compare(MODELS, X, Y, cv=cv))
    columns = list("abc")
    for table, labels in (
        (pd.DataFrame(X, columns=columns), pd.Series(Y, index=range(60, 0, -1))),
        (pd.DataFrame(X, columns=columns), pd.Categorical(Y)),
        (pl.DataFrame(X, schema=columns), pl.Series(Y)),
        (X.tolist(), Y.tolist()),
        (X, (Y == "yes").astype(int)),
        (X, Y == "yes"),
    ):
        assert figures(compare(MODELS, table, labels, cv=cv)) == plain
    models = {"machine": SVC(kernel="linear"), "prior": DummyClassifier()}
    dense = compare(models, X, Y, cv=cv)
    sparse = compare(models, sp.csr_array(X), Y, cv=cv)
    assert np.array_equal(dense["machine"].fold_scores, sparse["machine"].fold_scores)


def test_texts_can_be_compared() -> None:
    words = ["good fine", "bad awful", "good great", "awful sad"] * 5
    labels = ["+", "-"] * 10
    models = {"bayes": make_pipeline(CountVectorizer(), MultinomialNB()), "p": DummyClassifier()}
    assert compare(models, words, labels, cv=2, random_state=0).best == "bayes"


def test_several_targets_at_once() -> None:
    both = np.column_stack([TARGET, -TARGET])
    found = compare(NUMBERS, X, both, random_state=0, test="bootstrap")
    assert found.ranking == ("line", "near", "mean")
    assert found.test_used == "bootstrap_rows"


# -- who takes part ------------------------------------------------------------------------------


def test_names() -> None:
    near = [KNeighborsClassifier(k) for k in (1, 3)]
    piped = make_pipeline(StandardScaler(), GaussianNB())
    found = compare([*near, piped], X, Y, cv=2, random_state=0)
    assert set(found.ranking) == {"KNeighborsClassifier 1", "KNeighborsClassifier 2", "GaussianNB"}
    pairs = compare([("one", GaussianNB()), ("two", DummyClassifier())], X, Y, cv=2)
    assert set(pairs.ranking) == {"one", "two"}
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, cv=2)
    assert compare(search, X, Y, cv=2, repeats=1).ranking == ("GridSearchCV",)


def test_one_model_is_told_without_rivals() -> None:
    found = compare(GaussianNB(), X, Y, random_state=0)
    assert found.pairs == ()
    assert found.best == "GaussianNB"
    score = found["GaussianNB"].score
    assert found.sentence == (
        f"GaussianNB has accuracy {score:.4f}, and there is no other model to compare it with."
    )
    assert "GaussianNB" in str(found)
    assert len(found.frame()) == 1


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_set_of_ours_takes_part_without_models(task) -> None:
    y = SPECIES if task == "classification" else IRIS[:, 3] * 7.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = compare(None, IRIS[:, :3], y, cv=2, repeats=1, random_state=0)
    assert not found.failed
    assert set(found.ranking) == set(default_models(task, IRIS))
    assert len(found.ranking) >= 6
    assert found.models[-1].score > 0.5
    assert found.scoring == ("accuracy" if task == "classification" else "r2")


def test_a_set_of_ours_takes_mixed_tables_with_gaps() -> None:
    words = np.where(X[:, 1] > 0, "sunny", "grey")
    frame = pd.DataFrame(
        {"word": words, "number": X[:, 0], "gaps": np.where(X[:, 2] > 1, np.nan, 1)}
    )
    found = compare(None, frame, Y, cv=4, repeats=1, random_state=0)
    assert not found.failed
    assert found["SVC"].score > 0.6


def test_what_targets_look_like_decides_without_models() -> None:
    from margrove.select.compare.compared_models import task_of

    for y, task in (
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        (np.arange(10), "classification"),
        (np.arange(100), "regression"),
        (np.arange(100.0) % 3, "classification"),
        ([0.5, 1.5], "regression"),
        (pd.array([1, 2, 3], dtype="Int64"), "classification"),
        (np.zeros((5, 2)), "regression"),
    ):
        assert task_of(None, y) == task
        assert task_of({"m": DummyRegressor()}, y) == "regression"


# -- failures ------------------------------------------------------------------------------------


class Fragile(ClassifierMixin, BaseEstimator):
    """Fails if row 7 is among the training rows."""

    def __init__(self, error=None):
        self.error = error

    def fit(self, X, y):
        if X[7 % len(X), 0] == 7.0:
            raise self.error or ValueError("no sevens")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


NUMBERED = np.column_stack([np.arange(60.0), X])
HALVES = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_model_that_fails_in_one_fold_is_listed_and_the_others_are_compared(n_jobs) -> None:
    models = {"bayes": GaussianNB(), "fragile": Fragile(), "near": KNeighborsClassifier()}
    message = r"fragile failed in fold 1: ValueError: no sevens\. The others are compared"
    with pytest.warns(FitFailedWarning, match=message):
        found = compare(models, NUMBERED, Y, cv=HALVES, n_jobs=n_jobs)
    (failed,) = found.failed
    assert (failed.name, failed.fold, str(failed.error)) == ("fragile", 1, "no sevens")
    assert set(found.ranking) == {"bayes", "near"}
    assert len(found.pairs) == 1
    assert "fragile failed in fold 1: ValueError: no sevens" in str(found)
    frame = found.frame()
    assert frame.loc["fragile", "error"].endswith("no sevens")
    assert np.isnan(frame.loc["fragile", "score"])
    with pytest.raises(KeyError, match="no sevens"):
        found["fragile"]
    assert "failed: fragile" in found.plot(ax=Figure().subplots()).get_title()


def test_blends_are_made_of_those_that_are_left() -> None:
    models = {"bayes": GaussianNB(), "fragile": Fragile(), "near": KNeighborsClassifier()}
    with pytest.warns(FitFailedWarning):
        found = compare(models, NUMBERED, Y, cv=HALVES, blend=True, refit=True)
    assert set(found.ranking) == {"bayes", "near", *BLENDS}
    assert set(found.blends) == set(BLENDS)
    with pytest.warns(FitFailedWarning) as caught:
        found = compare({"a": GaussianNB(), "b": Fragile()}, NUMBERED, Y, cv=HALVES, blend=True)
    assert found.ranking == ("a",)
    assert len(caught) == 2  # of the model, and of all blends at once
    assert "Only one model is left" in str(found)


def test_scores_that_blends_cannot_have_do_not_stop_the_others() -> None:
    models = {"machine": SVC(kernel="linear"), "bayes": GaussianNB()}
    with pytest.warns(FitFailedWarning) as caught:
        found = compare(models, X, Y, cv=2, blend=True, scoring="roc_auc", random_state=0)
    assert {model.name for model in found.failed} <= set(BLENDS)
    assert {model.name for model in found.failed} == {"voting", "selection"}
    assert len(caught) == 1
    assert {"machine", "bayes"} <= set(found.ranking)


class Large(ClassifierMixin, BaseEstimator):
    """Needs forty rows, which the inner folds of blends do not have."""

    def fit(self, X, y):
        if len(X) < 40:
            raise ValueError("too few rows")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_blends_say_which_member_failed() -> None:
    models = {"bayes": GaussianNB(), "large": Large()}
    message = r"voting, selection, stacking failed in fold 0: RuntimeError: member large: ValueErr"
    with pytest.warns(FitFailedWarning, match=message):
        found = compare(models, X, Y, cv=3, repeats=1, blend=True)
    assert set(found.ranking) == {"bayes", "large"}


def test_all_failing_is_an_error_with_its_cause() -> None:
    with pytest.raises(ValueError, match="All models failed; a failed in fold 1") as caught:
        compare({"a": Fragile()}, NUMBERED, Y, cv=HALVES)
    assert str(caught.value.__cause__) == "no sevens"


def test_scores_of_nan_are_failures() -> None:
    def odd(model, X, y):
        return np.nan if isinstance(model, GaussianNB) else 1.0

    with pytest.warns(FitFailedWarning, match="bayes failed in fold 0.*score odd is nan"):
        compare(MODELS, X, Y, scoring=odd)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FitCancelled("enough"), SystemExit(3)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupts_end_the_comparison(error, n_jobs) -> None:
    with pytest.raises(type(error)):
        compare({"a": Fragile(error), "b": GaussianNB()}, NUMBERED, Y, cv=HALVES, n_jobs=n_jobs)


def test_what_was_done_before_an_interrupt_can_be_kept() -> None:
    models = {"a": Fragile(KeyboardInterrupt()), "b": GaussianNB()}
    splits = [HALVES[0], (np.arange(20, 60), np.arange(10)), HALVES[1]]
    with pytest.warns(InterruptedFitWarning, match="Comparing was interrupted after 4 fits"):
        found = compare(models, NUMBERED, Y, cv=splits, on_interrupt="keep")
    assert found.n_folds == 2
    with (
        pytest.warns(InterruptedFitWarning, match="after 2 fits"),
        pytest.raises(KeyboardInterrupt),
    ):
        compare(models, NUMBERED, Y, cv=HALVES, on_interrupt="keep")


def test_a_listener_can_end_a_comparison() -> None:
    with watch(on_progress=lambda progress: progress.done >= 7):
        assert compare(MODELS, X, Y).n_folds == 2  # seven fits of three models
    with (
        watch(on_progress=lambda progress: True),
        pytest.raises(ValueError, match="ended before 2 folds were done"),
    ):
        compare(MODELS, X, Y)


def test_cancelling_and_progress() -> None:
    event = threading.Event()
    seen = []

    def listen(progress):
        seen.append((progress.done, progress.total))
        if progress.done >= 5:
            event.set()

    with watch(on_progress=listen, cancel=event), pytest.raises(FitCancelled):
        compare([SVC(), GaussianNB()], X, Y)
    assert all(total == 20 for _, total in seen)
    assert 5 <= seen[-1][0] < 20


def test_max_time_keeps_whole_folds() -> None:
    models = {"one": GaussianNB(), "other": GaussianNB(var_smoothing=0.1)}
    out_of_time = pytest.warns(ConvergenceWarning, match=r"Comparing used up max_time=0.25 s after")
    with steady_clock(), out_of_time:
        found = compare(models, X, Y, cv=20, max_time=0.25)
    assert found.n_folds == 2  # five fits of two models
    assert len(found["one"].fold_scores) == len(found["other"].fold_scores) == 2
    with (
        steady_clock(),
        pytest.warns(ConvergenceWarning, match="max_time"),
        pytest.raises(ValueError, match=r"ended before 2 folds were done.*max_time"),
    ):
        compare(models, X, Y, max_time=0.15)
    with steady_clock(), pytest.warns((ConvergenceWarning, FitFailedWarning)) as caught:
        found = compare(models, X, Y, cv=2, max_time=0.3, blend={"n_folds": 10})
    assert set(found.ranking) == {"one", "other"}
    assert any("ended before the blends were done" in str(w.message) for w in caught)


def test_verbose_shows_a_bar() -> None:
    written = io.StringIO()
    with redirect_stderr(written):
        compare(MODELS, X, Y, cv=2, repeats=1, verbose=1)
    assert "Comparing, fits" in written.getvalue()
    assert "6/6" in written.getvalue()


# -- rare classes --------------------------------------------------------------------------------


def test_rare_classes_are_spread_and_told() -> None:
    y = Y.astype("U5")
    y[:2], y[2] = "rare", "alone"
    with pytest.warns(DataWarning, match="'alone' of y has 1 row for 5 folds.*no training row"):
        found = compare(MODELS, X, y, repeats=1, random_state=0, blend=True)
    assert not found.failed
    assert set(found.ranking) == {*MODELS, *BLENDS}
    assert found["bayes"].score > 0.4


def test_more_folds_than_any_class_has_rows() -> None:
    y = np.repeat(np.arange(15), 4)
    with pytest.warns(DataWarning, match="has 4 rows for 5 folds"):
        found = compare({"near": KNeighborsClassifier(1)}, np.eye(15)[y], y, random_state=0)
    assert found["near"].score == 1.0


# -- blends and the refitted winner --------------------------------------------------------------


def test_blends_take_part_and_are_fitted() -> None:
    found = compare(MODELS, X, Y, cv=3, blend=True, refit=True, random_state=0)
    assert set(found.ranking) == {*MODELS, *BLENDS}
    assert len(found.pairs) == 15
    assert sum(found.blend_weights.values()) == pytest.approx(1.0)
    assert set(found.blend_weights) <= set(MODELS)
    assert set(found.blends) == set(BLENDS)
    for model in (found.fitted, *found.blends.values()):
        check_is_fitted(model)
        assert set(model.predict(X)) <= {"yes", "no"}
    numbers = compare(NUMBERS, X, TARGET, cv=3, blend=True, refit=True, random_state=0)
    assert isinstance(numbers.blends["selection"], VotingRegressor)
    assert numbers["stacking"].score > 0.5
    plain = compare(MODELS, X, Y, cv=3, blend=True, random_state=0)
    assert plain.fitted is None
    assert plain.blends == {}
    assert figures(plain) == figures(found)


def test_the_winner_is_fitted_to_all_rows() -> None:
    model = KNeighborsClassifier(1)
    found = compare([model, DummyClassifier()], IRIS, SPECIES, refit=True, random_state=0)
    assert found.best == "KNeighborsClassifier"
    assert found.fitted is not model
    assert found.fitted.n_samples_fit_ == 150
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(model)
    blends = {"flat": Ridge(1e9), "tree": DecisionTreeRegressor(max_depth=1)}
    found = compare(blends, X, X[:, 0], cv=3, blend=True, refit=True, random_state=0)
    if found.best in BLENDS:
        assert found.fitted is found.blends[found.best]


# -- words, tables and pictures ------------------------------------------------------------------


class Wild(RegressorMixin, BaseEstimator):
    """Good, unless the first row is held out."""

    def fit(self, X, y):
        self.inner_ = LinearRegression().fit(X, y)
        self.factor_ = 1.0 if 0.0 in X[:, 1] else -20.0
        return self

    def predict(self, X):
        return self.factor_ * self.inner_.predict(X)


def test_a_model_whose_scores_vary_too_much_is_not_called_as_good() -> None:
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=100), np.arange(100.0)])
    y = rows[:, 0] + 0.1 * rng.normal(size=100)
    models = {"line": LinearRegression(), "mean": DummyRegressor(), "wild": Wild()}
    found = compare(models, rows, y, repeats=1, random_state=0)
    assert found["wild"].score < found["mean"].score
    assert not found.pair("line", "wild").differs
    assert found.sentence.endswith(
        "it differs from all others except wild. For wild it is unclear: scores vary too much."
    )


def test_sentences() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2))
    y = (rows[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    models = {"bayes": GaussianNB(), "line": LogisticRegression(), "prior": DummyClassifier()}
    found = compare(models, rows, y, random_state=0)
    best, second, last = found.ranking
    assert last == "prior"
    assert found.sentence == (
        f"{best} has the highest score (accuracy {found[best].score:.4f}). {second} does not "
        "differ from it at this sample size; prior is worse."
    )
    pair = found.pair(best, second)
    assert found.sentences[0] == (
        f"{best} and {second} do not differ at this sample size (difference "
        f"{100 * pair.difference:.1f} points, 95 % interval {100 * pair.interval.low:.1f} to "
        f"{100 * pair.interval.high:.1f}, p = {pair.p:.2f}, adjusted {pair.p_adjusted:.2f})."
    )
    assert found.sentences[1].startswith(f"{best} is better than prior (difference ")
    assert found.sentences[1].endswith("p < 0.001, adjusted < 0.001).")
    assert compare([GaussianNB(), DummyClassifier()], rows, y, random_state=0).sentence.startswith(
        "GaussianNB is better than DummyClassifier (difference "
    )
    ones = {"bayes": GaussianNB(), "a": DummyClassifier(), "b": DummyClassifier()}
    assert compare(ones, rows, y, random_state=0).sentence.endswith("it differs from all others.")
    same = dict.fromkeys("abc", GaussianNB())
    assert compare(same, rows, y, random_state=0).sentence.endswith(
        "at this sample size none of the others differs from it."
    )
    assert " points" not in compare(NUMBERS, X, TARGET, random_state=0).sentences[0]


def test_the_table_can_be_read(comparison) -> None:
    lines = str(comparison).splitlines()
    assert " ".join(lines[0].split()) == (
        "model accuracy 95 % interval fit predict against the best"
    )
    for line, model in zip(lines[1:4], comparison.models, strict=True):
        assert line.startswith(model.name)
        assert f"{model.score:.4f}" in line
        assert f"{model.interval.low:.4f} to {model.interval.high:.4f}" in line
    assert comparison.sentence in lines
    assert lines[-1] == (
        "10 folds of 60 rows; corrected resampled t-test (Nadeau and Bengio 2003); p adjusted by "
        "Holm for 3 pairs."
    )
    assert repr(comparison).startswith(f"Comparison(accuracy: {comparison.best} ")


def test_frame(comparison) -> None:
    frame = comparison.frame()
    assert frame.index.tolist() == list(comparison.ranking)
    assert frame["score"].tolist() == [model.score for model in comparison.models]
    assert frame.loc["prior", "p_adjusted"] == comparison.pair(comparison.best, "prior").p_adjusted
    assert frame["differs"].dtype == bool
    assert (frame["fit_seconds"] > 0).all()
    assert (frame["predict_seconds"] > 0).all()


def test_intervals_stay_where_scores_can_be() -> None:
    found = compare([KNeighborsClassifier(3), SVC()], IRIS, SPECIES, cv=3, random_state=0)
    assert all(0 <= model.interval.low <= model.interval.high <= 1 for model in found.models)
    (pair,) = compare([GaussianNB(), KNeighborsClassifier(1)], X, Y, cv=2, repeats=1).pairs
    assert -1 <= pair.interval.low <= pair.interval.high <= 1
    errors = compare(NUMBERS, X, TARGET, scoring="neg_mean_squared_error", cv=2, repeats=1)
    assert all(model.interval.high <= 0 for model in errors.models)


def test_results_are_frozen_and_can_be_pickled(comparison) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        comparison.models = ()
    again = pickle.loads(pickle.dumps(comparison))
    assert str(again) == str(comparison)


def test_pictures_show_the_numbers(comparison) -> None:
    ax = comparison.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(comparison.ranking)
    dots = [line for line in ax.lines if line.get_gid() == "score"]
    assert [dot.get_xdata()[0] for dot in dots] == [model.score for model in comparison.models]
    spans = [part.get_segments()[0][:, 0] for part in ax.collections]
    assert [tuple(span) for span in spans] == [tuple(m.interval) for m in comparison.models]
    folds = [line for line in ax.lines if line.get_gid() == "folds"]
    for line, model in zip(folds, comparison.models, strict=True):
        assert np.array_equal(line.get_xdata(), model.fold_scores)
    for dot, name in zip(dots, comparison.ranking, strict=True):
        worse = name != comparison.best and comparison.pair(comparison.best, name).differs
        assert to_rgba(dot.get_color()) == to_rgba(class_style(int(worse))["color"])
    low, high = ax.get_ylim()
    assert low > high  # the best on top


def test_pictures_of_differences(comparison) -> None:
    ax = comparison.plot(what="differences", ax=Figure().subplots())
    pairs = [pair for pair in comparison.pairs if pair.first == comparison.best]
    assert [label.get_text() for label in ax.get_yticklabels()] == [pair.second for pair in pairs]
    dots = [line for line in ax.lines if line.get_gid() == "difference"]
    assert [dot.get_xdata()[0] for dot in dots] == [pair.difference for pair in pairs]
    assert [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "zero"] == [0.0]
    with pytest.raises(ValueError, match="what must be"):
        comparison.plot(what="nonsense")
    alone = compare(GaussianNB(), X, Y, cv=2, repeats=1)
    with pytest.raises(ValueError, match="needs two models"):
        alone.plot(what="differences")


# -- bad arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"models": {}}, ValueError, "models is empty"),
        ({"models": []}, ValueError, "models is empty"),
        ({"models": 3}, TypeError, "models must be a dict"),
        ({"models": "SVC"}, TypeError, "models must be a dict"),
        ({"models": [SVC]}, TypeError, r"is a class. Pass an instance of it: SVC\(\)"),
        ({"models": {"a": 3}}, TypeError, r"models\['a'\] must be an estimator"),
        ({"models": {3: SVC()}}, TypeError, "models must have strings"),
        ({"models": [("a", SVC()), ("a", SVC())]}, ValueError, "names more than once"),
        ({"models": [SVC(), LinearRegression()]}, ValueError, "not both: SVC is a classifier"),
        ({"y": None}, ValueError, "y is None"),
        ({"y": Y[:10]}, InvalidDataError, "X has 60 rows, y has 10"),
        ({"y": ["a"] * 60}, ValueError, "one class only, 'a'"),
        ({"X": X[:1], "y": Y[:1]}, ValueError, "X has one row"),
        ({"cv": 1}, ValueError, "cv=1 folds cannot be made of 60 rows"),
        ({"cv": 61}, ValueError, "at most 60"),
        ({"cv": 5, "groups": [0, 1] * 30}, ValueError, "cv=5 folds cannot be made of 2 groups"),
        ({"groups": [1, 2]}, ValueError, "groups must hold one label"),
        ({"cv": "five"}, ValueError, "cv must be a number of folds"),
        ({"cv": True}, ValueError, "cv must be a number of folds"),
        ({"cv": None}, ValueError, "cv must be a number of folds"),
        ({"cv": RepeatedKFold(), "repeats": 3}, ValueError, "repeats=3 needs a number of folds"),
        ({"cv": [([0, 1], [1, 2])]}, ValueError, "cv tests models on rows that they were trained"),
        ({"cv": [([0, 1], [])]}, ValueError, "cv has no rows to test in fold 0"),
        ({"cv": [([0, 1], [60])]}, ValueError, "row indices from 0 to 59"),
        ({"repeats": 0}, ValueError, "'repeats' parameter of compare"),
        ({"scoring": "beauty"}, ValueError, "'scoring' parameter"),
        ({"scoring": ["accuracy", "f1"]}, TypeError, "scoring must be the name"),
        ({"scoring": accuracy_score}, ValueError, "metric function rather than a scorer"),
        ({"test": "wilcoxon"}, ValueError, "'test' parameter of compare"),
        ({"confidence_level": 95}, ValueError, "'confidence_level' parameter of compare"),
        ({"n_resamples": 5}, ValueError, "'n_resamples' parameter of compare"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"random_state": -1}, ValueError, "'random_state' parameter of compare"),
        ({"max_time": 0}, ValueError, "'max_time' parameter of compare"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight"),
        ({"blend": {"n_fold": 3}}, ValueError, "blend has no setting 'n_fold'"),
        ({"blend": {"n_folds": 1}}, ValueError, r"blend\['n_folds'\] must be a whole number"),
        ({"blend": True, "models": [SVC()]}, ValueError, "blend=True needs at least two models"),
        ({"blend": True, "models": {"voting": SVC(), "b": SVC()}}, ValueError, "name of a blend"),
        ({"blend": True, "models": {"a__b": SVC(), "b": SVC()}}, ValueError, "two underscores"),
        ({"blend": True, "models": {"weights": SVC(), "b": SVC()}}, ValueError, "a parameter of"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(settings, error, message) -> None:
    given = {"models": MODELS, "X": X, "y": Y} | settings
    with pytest.raises(error, match=message):
        compare(given.pop("models"), given.pop("X"), given.pop("y"), **given)


def test_weights_need_a_score_that_takes_them() -> None:
    def plain(model, X, y):
        return 1.0

    with pytest.raises(ValueError, match="sample_weight cannot be used with this scoring"):
        compare(MODELS, X, Y, scoring=plain, sample_weight=np.ones(60))
    scorer = make_scorer(fbeta_score, beta=2, pos_label="yes")
    found = compare({"b": GaussianNB()}, X, Y, scoring=scorer, sample_weight=np.ones(60))
    assert found.scoring == "fbeta_score"


def test_trees_of_ours_and_of_others_side_by_side() -> None:
    from sklearn.tree import DecisionTreeClassifier as Other

    models = {"ours": DecisionTreeClassifier(max_depth=2), "theirs": Other(max_depth=2)}
    found = compare(models, IRIS, SPECIES, random_state=0)
    assert not found.pairs[0].differs
