"""Blends equal scikit-learn's own classes on the same folds, and selection follows the paper.

All our classifiers and regressors can be members, whatever the labels and the table.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.validation import check_is_fitted
from tests.oracles import comparing as oracle

import margrove
from margrove.datasets import load_iris
from margrove.select.compare.blending import BLENDS, BlendSettings, fit_blends
from margrove.select.compare.comparison import compare
from margrove.select.compare.examples import check_examples
from margrove.select.compare.greedy_selection import select

RNG = np.random.default_rng(11)
IRIS, SPECIES = load_iris(return_X_y=True)
SOME = RNG.permutation(150)[:60]
FLOWERS, NAMES = IRIS[SOME], np.array(["setosa", "versicolor", "virginica"])[SPECIES[SOME]]
AREA = FLOWERS[:, 2] * FLOWERS[:, 3]
ACCURACY, R2 = get_scorer("accuracy"), get_scorer("r2")
BRIEFLY = BlendSettings(n_folds=3, n_rounds=10)


def examples(X, y, task="classification", **more):
    return check_examples(X, y, more.get("sample_weight"), more.get("groups"), task)


def blends_of(members, X, y, task="classification", scorer=ACCURACY, settings=BRIEFLY, **more):
    return fit_blends(members, examples(X, y, task, **more), task, scorer, 7, settings)


# -- greedy selection ----------------------------------------------------------------------------


def random_problem(seed, n_members=4, n_rows=12):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_rows)
    answers = truth + rng.normal(size=(n_members, n_rows)) * rng.uniform(0.3, 2, (n_members, 1))
    return answers, lambda average: -float(np.mean((average - truth) ** 2))


def score_of(counts, answers, score):
    return score(np.tensordot(counts, answers, axes=1) / counts.sum())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_rounds", [1, 3, 8])
def test_selection_is_the_one_of_the_paper(seed, n_rounds) -> None:
    answers, score = random_problem(seed)
    found = select(answers, score, n_rounds=n_rounds)
    if n_rounds >= len(answers):  # a shorter list ends the sorted start early
        assert found.tolist() == oracle.greedy_selection(answers, score, n_rounds)
    assert 1 <= found.sum() <= n_rounds
    assert score_of(found, answers, score) >= max(map(score, answers))


@pytest.mark.nojit
def test_selection_comes_close_to_the_best_of_all() -> None:
    regrets = []
    for seed in range(12):
        answers, score = random_problem(seed)
        best = oracle.best_multiset(answers, score, 6)
        found = score_of(select(answers, score, n_rounds=6), answers, score)
        assert found <= best + 1e-12
        single = max(map(score, answers))
        regrets.append((best - found) / (best - single) if best > single else 0.0)
    assert np.mean(regrets) < 0.05
    assert np.count_nonzero(np.array(regrets) < 1e-9) >= 6


@pytest.mark.nojit
def test_votes_of_classes_are_selected_like_averages() -> None:
    truth = RNG.integers(3, size=40)
    answers = np.stack([np.eye(3)[np.where(RNG.random(40) < 0.6, truth, 0)] for _ in range(5)])

    def score(average):
        return float(np.mean(average.argmax(axis=1) == truth))

    assert select(answers, score, n_rounds=12).tolist() == oracle.greedy_selection(
        list(answers), score, 12
    )


@pytest.mark.nojit
def test_a_perfect_member_is_all_there_is() -> None:
    answers = np.concatenate([random_problem(0)[0], np.full((1, 12), 5.0)])
    found = select(answers, lambda average: -float(np.mean((average - 5.0) ** 2)))
    assert found.tolist() == [0, 0, 0, 0, 1]


def test_bags_select_among_halves_and_depend_on_their_seed_only() -> None:
    answers, score = random_problem(3, n_members=6)
    found = select(answers, score, n_rounds=5, n_bags=20, seed=1)
    assert found.sum() > 20
    assert np.count_nonzero(found) > np.count_nonzero(select(answers, score, n_rounds=5))
    assert np.array_equal(found, select(answers, score, n_rounds=5, n_bags=20, seed=1))
    assert not np.array_equal(found, select(answers, score, n_rounds=5, n_bags=20, seed=2))


# -- blends are scikit-learn's own ---------------------------------------------------------------

CLASSIFIERS = {
    "bayes": GaussianNB(),
    "neighbours": KNeighborsClassifier(3),
    "prior": DummyClassifier(),
}
REGRESSORS = {"flat": Ridge(1e3), "line": LinearRegression(), "neighbours": KNeighborsRegressor(3)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_fitted_blends_are_what_their_clones_become(task, weighted) -> None:
    """The fit of a clone is scikit-learn's, with the same folds."""
    if task == "classification":
        members = CLASSIFIERS | {"neighbours": margrove.DecisionTreeClassifier(max_depth=2)}
        y, kinds, scorer = NAMES, (VotingClassifier, StackingClassifier), ACCURACY
    else:
        members = REGRESSORS | {"neighbours": margrove.DecisionTreeRegressor(max_depth=2)}
        y, kinds, scorer = AREA, (VotingRegressor, StackingRegressor), R2
    weights = {"sample_weight": RNG.uniform(0.5, 2.0, size=60)} if weighted else {}
    blends = blends_of(members, FLOWERS, y, task, scorer, **weights)
    assert tuple(blends) == BLENDS
    for name, blend in blends.items():
        assert type(blend.model) is (kinds[1] if name == "stacking" else kinds[0])
        again = clone(blend.model).fit(FLOWERS, y, **weights)
        for method in ("predict", "predict_proba", "transform"):
            if hasattr(again, method):
                found, wanted = getattr(blend.model, method)(IRIS), getattr(again, method)(IRIS)
                if found.dtype.kind in "US":
                    assert np.array_equal(found, wanted)
                else:
                    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-9)
        for fitted, estimator in zip(blend.model.estimators_, blend.model.estimators, strict=True):
            check_is_fitted(fitted)
            assert type(fitted) is type(estimator[1])
            assert blend.model.named_estimators_[estimator[0]] is fitted
            with pytest.raises(margrove.exceptions.NotFittedError):
                check_is_fitted(estimator[1])


def test_selected_votes_hold_the_selected_members_only() -> None:
    members = {"bayes": GaussianNB(), "prior": DummyClassifier(), "prior too": DummyClassifier()}
    blend = blends_of(members, FLOWERS, NAMES)["selection"]
    assert blend.weights == {"bayes": 1.0}
    assert [name for name, _ in blend.model.estimators] == ["bayes"]
    plain = GaussianNB().fit(FLOWERS, NAMES)
    assert np.array_equal(blend.model.predict(IRIS), plain.predict(IRIS))


def test_members_without_probabilities_vote_by_hand() -> None:
    members = {"machine": margrove.SVC(), "bayes": GaussianNB(), "prior": DummyClassifier()}
    blends = blends_of(members, FLOWERS, NAMES)
    assert blends["voting"].model.voting == "hard"
    fitted = [clone(member).fit(FLOWERS, NAMES).predict(IRIS) for member in members.values()]
    classes = np.unique(NAMES)
    votes = sum((answer[:, None] == classes).astype(int) for answer in fitted)
    assert np.array_equal(blends["voting"].model.predict(IRIS), classes[votes.argmax(axis=1)])
    assert blends["stacking"].model.stack_method_ == [
        "predict_proba", "decision_function", "predict_proba",
    ]  # fmt: skip
    assert np.mean(blends["stacking"].model.predict(IRIS) == np.unique(NAMES)[SPECIES]) > 0.9


def test_selection_heeds_the_score_that_is_asked_for() -> None:
    """The confident model wins by accuracy, the cautious one by likelihood."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)

    class Sure(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.eye(2)[(X[:, 0] > 0).astype(int)]

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    members = {"sure": Sure(), "modest": DummyClassifier()}
    by_accuracy = blends_of(members, X, y)["selection"]
    assert by_accuracy.weights == {"sure": 1.0}
    by_likelihood = blends_of(members, X, y, scorer=get_scorer("neg_log_loss"))["selection"]
    assert by_likelihood.weights["modest"] > 0.3
    by_area = blends_of(members, X, y, scorer=get_scorer("roc_auc"))["selection"]
    assert by_area.weights["sure"] >= 0.5  # the modest one says the same of all rows of a fold


def test_the_order_of_members_does_not_matter() -> None:
    there = blends_of(CLASSIFIERS, FLOWERS, NAMES)
    back = blends_of(dict(reversed(CLASSIFIERS.items())), FLOWERS, NAMES)
    for name in BLENDS:
        assert there[name].weights == back[name].weights
        assert np.array_equal(
            there[name].model.predict_proba(IRIS), back[name].model.predict_proba(IRIS)
        )


@pytest.mark.parametrize("grouped", [False, True])
def test_a_class_that_cannot_be_held_out_stays_in_training(grouped) -> None:
    X = np.vstack([FLOWERS, [[9.0, 9.0, 9.0, 9.0]] * 2])
    y = np.append(NAMES, ["triffid", "triffid"] if grouped else ["triffid", NAMES[0]])
    more = {"groups": np.append(np.arange(60), [99, 99])} if grouped else {}
    members = {"bayes": GaussianNB(), "neighbours": KNeighborsClassifier(1)}
    blends = blends_of(members, X, y, **more)
    for name in BLENDS:
        model = blends[name].model
        assert model.classes_.tolist() == ["setosa", "triffid", "versicolor", "virginica"]
        assert model.predict_proba(X).shape == (62, 4)
        assert np.mean(model.predict(FLOWERS) == NAMES) > 0.9


def test_groups_are_kept_together_inside() -> None:
    """Rows of a group are copies: in different folds, a nearest neighbour would know them."""
    groups = np.repeat(np.arange(30), 3)
    X = np.random.default_rng(0).normal(size=(30, 2))[groups]
    y = np.random.default_rng(1).integers(2, size=30)[groups]
    members = {"cheat": KNeighborsClassifier(1), "prior": DummyClassifier()}
    parted = blends_of(members, X, y)["selection"].weights
    whole = blends_of(members, X, y, groups=groups)["stacking"].model
    assert parted == {"cheat": 1.0}
    cheat = blends_of(members, X, y)["stacking"].model
    assert np.abs(whole.final_estimator_.coef_[0, 0]) < 0.5 * cheat.final_estimator_.coef_[0, 0]


# -- honest scores -------------------------------------------------------------------------------


class Seen(ClassifierMixin, BaseEstimator):
    """Records which rows it was fitted to; the first column has their numbers."""

    log: list[frozenset[int]] = []  # noqa: RUF012, shared by clones

    def fit(self, X, y):
        self.log.append(frozenset(X[:, 0].astype(int).tolist()))
        self.classes_, counts = np.unique(y, return_counts=True)
        self.largest_ = self.classes_[counts.argmax()]
        return self

    def predict(self, X):
        return np.full(len(X), self.largest_)


def test_blends_of_a_fold_see_its_training_part_only() -> None:
    Seen.log.clear()
    X = np.arange(40.0)[:, None]
    y = np.arange(40) % 2
    fold_of = np.arange(40) // 8
    splits = [(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(5)]
    found = compare([Seen(), Seen()], X, y, cv=splits, blend={"n_folds": 4}, random_state=0)
    assert set(BLENDS) <= set(found.ranking)
    assert len(Seen.log) == 5 * 2 + 5 * 2 * (1 + 4)
    training = [frozenset(train.tolist()) for train, _ in splits]
    singles, blended = Seen.log[:10], Seen.log[10:]
    assert sorted(map(sorted, singles)) == sorted(map(sorted, training * 2))
    for k, part in enumerate(training):
        of_part = blended[10 * k : 10 * (k + 1)]
        assert all(seen <= part for seen in of_part)
        assert sum(seen == part for seen in of_part) == 2


class Coin(ClassifierMixin, BaseEstimator):
    """Predicts at random, always the same for the same row."""

    def __init__(self, number=0):
        self.number = number

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        sure = np.random.default_rng(self.number).random(1000)[X[:, 0].astype(int)]
        return np.column_stack([1.0 - sure, sure])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_luck_in_selecting_is_not_counted_as_skill() -> None:
    """Forty random models: the selected ones look good only on the rows of the selection."""
    X = np.arange(120.0)[:, None]
    y = np.random.default_rng(0).integers(2, size=120)
    coins = {f"coin {k}": Coin(k) for k in range(40)}
    answers = np.stack([coin.fit(X, y).predict_proba(X) for coin in coins.values()])

    def accuracy(average):
        return float(np.mean(average.argmax(axis=1) == y))

    assert score_of(select(answers, accuracy), answers, accuracy) > 0.65
    found = compare(coins, X, y, blend={"n_folds": 2, "n_rounds": 10}, repeats=1, random_state=0)
    assert abs(found["selection"].score - 0.5) < 0.1


# -- all our learners ----------------------------------------------------------------------------

LEARNERS = [
    getattr(margrove, name)
    for name in margrove.__all__
    if isinstance(getattr(margrove, name), type)
]
LEARNERS = [kind for kind in LEARNERS if issubclass(kind, BaseEstimator)]
OUR_CLASSIFIERS = [kind for kind in LEARNERS if is_classifier(kind())]
OUR_REGRESSORS = [kind for kind in LEARNERS if is_regressor(kind())]


def briefly(kind):
    settings = kind().get_params()
    if kind.__name__.startswith("Hist"):
        return kind(max_iter=5, min_samples_leaf=2)
    if "n_estimators" in settings:
        return kind(n_estimators=5)
    return kind(nu=0.2) if kind.__name__ == "NuSVC" else kind()


def test_the_search_finds_them() -> None:
    assert len(OUR_CLASSIFIERS) >= 12
    assert len(OUR_REGRESSORS) >= 9


TABLES = [
    "array",
    pytest.param("frame", marks=pytest.mark.nightly),
    pytest.param("sparse", marks=pytest.mark.nightly),
]


def takes_sparse(model):
    return model.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", OUR_CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_our_classifiers_vote_and_stack(kind, table) -> None:
    _vote_and_stack(
        briefly(kind), DummyClassifier(), table, NAMES, "classification", VotingClassifier,
        StackingClassifier,
    )  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", OUR_REGRESSORS, ids=lambda kind: kind.__name__)
def test_our_regressors_vote_and_stack(kind, table) -> None:
    _vote_and_stack(
        briefly(kind), LinearRegression(), table, AREA, "regression", VotingRegressor,
        StackingRegressor,
    )  # fmt: skip


def _vote_and_stack(ours, other, table, y, task, voting, stacking) -> None:
    if table == "sparse" and not takes_sparse(ours):
        pytest.skip("takes no sparse tables")
    X = {
        "array": lambda: FLOWERS,
        "frame": lambda: pd.DataFrame(FLOWERS, columns=list("abcd")),
        "sparse": lambda: sp.csr_array(FLOWERS),
    }[table]()
    members = {"ours": ours, "other": other}
    scorer = ACCURACY if task == "classification" else R2
    settings = BlendSettings(n_folds=2, n_rounds=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", margrove.exceptions.ConvergenceWarning)
        fitted = [
            voting(list(members.items())).fit(X, y),
            stacking(list(members.items()), cv=2).fit(X, y),
        ]
        if table == "array":
            fitted += [
                blend.model for blend in blends_of(members, X, y, task, scorer, settings).values()
            ]
    for model in fitted:
        answer = model.predict(X)
        assert answer.shape == y.shape
        if task == "classification":
            assert set(answer) <= set(y)
            assert np.mean(answer == y) > 0.3
        else:
            assert np.isfinite(answer).all()
        if table == "frame":
            assert list(model.feature_names_in_) == list("abcd")
        assert type(model.named_estimators_.get("ours", ours)) is type(ours)
