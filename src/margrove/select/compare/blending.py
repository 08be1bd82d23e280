"""Blends of models: votes, votes with selected weights, and stacking.

Selection and stacking need predictions of the members for rows that they have not seen. So the
rows are divided into folds, and each fold is predicted by members fitted to the others. The blend
itself uses members that are fitted to all rows.

    voting      VotingClassifier or VotingRegressor, all members with the same weight
    selection   the same, with weights from greedy selection with replacement (Caruana,
                Niculescu-Mizil, Crew and Ksikes 2004, Ensemble selection from libraries of models)
    stacking    StackingClassifier or StackingRegressor: another learner combines the predictions

These are scikit-learn's own classes. Members are fitted once for all three, to codes of classes as
scikit-learn's classes do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import get_scorer
from sklearn.utils import Bunch
from sklearn.utils.metaestimators import available_if

from margrove.ensemble.bagging import seeded_clone
from margrove.ensemble.bootstrap import stream
from margrove.exceptions import FitCancelled
from margrove.select.compare.examples import Examples, Task, fit, folds_of_examples
from margrove.select.compare.greedy_selection import Score, select
from margrove.select.compare.row_scores import row_scorer_of
from margrove.select.held_out import Fold, fold_splitter

__all__ = ["BLENDS", "Blend", "BlendSettings", "Score", "check_member_names", "fit_blends"]

BLENDS = ("voting", "selection", "stacking")

_STACK_METHODS = ("predict_proba", "decision_function", "predict")  # scikit-learn's order

_RESERVED = {
    name
    for kind in (VotingClassifier, VotingRegressor, StackingClassifier, StackingRegressor)
    for name in kind([]).get_params(deep=False)
}


@dataclass(frozen=True)
class BlendSettings:
    """How members are selected.

    n_folds    folds of the training rows, in which members predict held-out rows
    n_rounds   the most members that are added, repetitions included
    n_bags     0: select among all members. Otherwise select so many times among a random half of
               them and add up the counts, which guards against selection by chance
    """

    n_folds: int = 5
    n_rounds: int = 30
    n_bags: int = 0


class Blend(NamedTuple):
    """A fitted blend, the seconds that it took, and the weights of its members, if any."""

    model: Any
    seconds: float
    weights: dict[str, float]


def check_member_names(names: list[str]) -> None:
    """Raise if scikit-learn cannot use a name as the name of a member."""
    for name in names:
        if name in BLENDS:
            raise ValueError(
                f"models has one named {name!r}, which with blend=True is the name of a blend. "
                "Rename it."
            )
        if "__" in name or name in _RESERVED:
            raise ValueError(
                f"models has one named {name!r}, which scikit-learn does not accept as the name of "
                "a member: it must not contain two underscores or be a parameter of voting or "
                "stacking. Rename it, or use blend=False."
            )


# -- fitting all blends ---------------------------------------------------------------------------


class _Answer(NamedTuple):
    """Predictions of a member for rows that it has not seen.

    method     the method whose results are stacked
    stacked    the results of that method, as stacking uses them
    vote       probabilities, or 1 for the predicted class, (n, n_classes); or numbers (n,)
    """

    method: str
    stacked: np.ndarray
    vote: np.ndarray


def fit_blends(
    members: Mapping[str, Any],
    examples: Examples,
    task: Task,
    scorer: Any,
    key: int,
    settings: BlendSettings,
    *,
    one_thread: bool = False,
) -> dict[str, Blend]:
    """Fit all blends of the members to these rows only.

    `scorer` compares selections; all random numbers depend on `key`.
    """
    members = dict(sorted(members.items()))  # the result does not depend on their order
    classes, codes = None, examples.y
    if task == "classification":
        classes, codes = np.unique(examples.y, return_inverse=True)
    coded = examples.with_targets(codes)
    soft = all(hasattr(member, "predict_proba") for member in members.values())
    folds = _Folds.of(coded, task, settings.n_folds, key)

    start = time.perf_counter()
    fitted, answers = {}, []
    for name, member in members.items():
        with _naming(name):
            fitted[name] = fit(seeded_clone(member, key, one_thread=one_thread), coded)
    fitting = time.perf_counter() - start
    for name, member in members.items():
        with _naming(name):
            answer = _held_out_answer(member, coded, folds.splits, key, soft, classes, one_thread)
            answers.append(answer)
    counts = select(
        np.stack([answer.vote for answer in answers]),
        _vote_score(scorer, examples, task, classes, soft),
        n_rounds=settings.n_rounds,
        n_bags=settings.n_bags,
        seed=int(stream(key, 0)),
    )
    shares = {
        name: int(count) / int(counts.sum())
        for name, count in zip(members, counts, strict=True)
        if count
    }
    selecting = time.perf_counter() - start
    stacking = _stacking(members, fitted, answers, examples, task, classes, folds.splitter)
    stacked = time.perf_counter() - start
    voting = _voting(members, fitted, examples, task, soft, None)
    selection = _voting(members, fitted, examples, task, soft, shares)
    return {
        "voting": Blend(voting, fitting, dict.fromkeys(members, 1.0 / len(members))),
        "selection": Blend(selection, selecting, shares),
        "stacking": Blend(stacking, stacked, {}),
    }


def _has(method: str) -> Callable[[Any], bool]:
    return lambda recorded: method in recorded.answers


class _Recorded(BaseEstimator):
    """Stands in for a fitted member whose predictions are known; it ignores X."""

    def __init__(self, task: Task, answers: dict[str, np.ndarray], classes: Any = None) -> None:
        self.task, self.answers, self.classes = task, answers, classes
        if classes is not None:
            self.classes_ = classes

    @available_if(_has("predict"))
    def predict(self, X: Any) -> np.ndarray:
        return self.answers["predict"]

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        return self.answers["predict_proba"]

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        return self.answers["decision_function"]

    def fit(self, X: Any, y: Any) -> _Recorded:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self.task == "classification" else "regressor"
        return tags


@contextmanager
def _naming(member: str) -> Iterator[None]:
    """Add the name of the member to errors raised inside."""
    try:
        yield
    except FitCancelled:
        raise
    except Exception as error:
        raise RuntimeError(f"member {member}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class _Folds:
    """The folds for held-out predictions; `splitter` makes the same ones in scikit-learn."""

    splits: list[Fold]
    splitter: Any

    @classmethod
    def of(cls, examples: Examples, task: Task, n_folds: int, key: int) -> _Folds:
        n_units = len(examples) if examples.groups is None else len(np.unique(examples.groups))
        if n_units < 2:
            raise ValueError(
                "A blend needs at least two groups of rows, to make folds for its members."
            )
        n_folds = min(n_folds, n_units)
        seed = int(stream(key, 0)) >> 33
        splits = [
            split for split in folds_of_examples(examples, task, n_folds, seed) if len(split.test)
        ]
        splitter: Any = n_folds
        if examples.groups is None:
            splitter = fold_splitter(
                n_folds, stratified=task == "classification", grouped=False, seed=seed
            )
        if task == "classification":
            splits = [_with_all_classes(split, examples.y) for split in splits]
        return cls(splits, splitter)


def _with_all_classes(split: Fold, codes: np.ndarray) -> Fold:
    """The fold with all classes in its training rows: rows of a missing class are added."""
    missing = np.setdiff1d(codes, codes[split.train])
    if not len(missing):
        return split
    return Fold(np.union1d(split.train, np.flatnonzero(np.isin(codes, missing))), split.test)


def _held_out_answer(
    member: Any,
    examples: Examples,
    splits: list[Fold],
    key: int,
    soft: bool,
    classes: np.ndarray | None,
    one_thread: bool,
) -> _Answer:
    method = "predict" if classes is None else _stack_method(member)
    stacked: np.ndarray | None = None
    predicted = np.empty(len(examples))
    for number, (train, test) in enumerate(splits, 1):
        learner = seeded_clone(member, int(stream(key, number)), one_thread=one_thread)
        fit(learner, examples.take(train))
        tested = examples.take(test).X
        answer = np.asarray(getattr(learner, method)(tested))
        if stacked is None:
            stacked = np.empty((len(examples), *answer.shape[1:]), answer.dtype)
        stacked[test] = answer
        if classes is not None and not soft:
            predicted[test] = learner.predict(tested)
    assert stacked is not None
    if classes is None or soft:
        return _Answer(method, stacked, stacked.astype(np.float64, copy=False))
    return _Answer(method, stacked, np.eye(len(classes))[predicted.astype(np.int64)])


def _stack_method(member: Any) -> str:
    return next(method for method in _STACK_METHODS if hasattr(member, method))


def _vote_score(
    scorer: Any, examples: Examples, task: Task, classes: np.ndarray | None, soft: bool
) -> Score:
    """A function that scores averages of held-out predictions."""
    has_votes_only = classes is not None and not soft
    if has_votes_only and getattr(scorer, "_response_method", "predict") != "predict":
        scorer = get_scorer("accuracy")  # hard votes have no probabilities
    weight = np.ones(len(examples)) if examples.weight is None else examples.weight
    by_row = row_scorer_of(scorer)

    def recorded(average: np.ndarray) -> _Recorded:
        if classes is None:
            return _Recorded(task, {"predict": average})
        answers = {"predict": classes[np.argmax(average, axis=1)]}
        if soft:
            answers["predict_proba"] = average
        return _Recorded(task, answers, classes)

    def score(average: np.ndarray) -> float:
        model = recorded(average)
        if by_row is not None:  # much faster than scikit-learn's metrics, which check their input
            values = by_row.of_model(model, None, examples.y, weight)
            return float(np.average(values, weights=weight))
        weights = {} if examples.weight is None else {"sample_weight": examples.weight}
        return float(scorer(model, examples.X, examples.y, **weights))

    return score


def _voting(
    members: Mapping[str, Any],
    fitted: Mapping[str, Any],
    examples: Examples,
    task: Task,
    soft: bool,
    shares: dict[str, float] | None,
) -> Any:
    chosen = list(members if shares is None else shares)
    weights = None if shares is None else list(shares.values())
    frozen = [(name, FrozenEstimator(fitted[name])) for name in chosen]
    if task == "classification":
        model = VotingClassifier(frozen, voting="soft" if soft else "hard", weights=weights)
    else:
        model = VotingRegressor(frozen, weights=weights)
    model.fit(examples.X, examples.y)  # learns the classes; frozen members do not change
    return _thawed(model, chosen, members, fitted)


def _stacking(
    members: Mapping[str, Any],
    fitted: Mapping[str, Any],
    answers: list[_Answer],
    examples: Examples,
    task: Task,
    classes: np.ndarray | None,
    splitter: Any,
) -> Any:
    known = None if classes is None else np.arange(len(classes))
    recorded = [
        (name, _Recorded(task, {answer.method: answer.stacked}, known))
        for name, answer in zip(members, answers, strict=True)
    ]
    if task == "classification":
        model = StackingClassifier(recorded, LogisticRegression(max_iter=1000), cv="prefit")
    else:
        model = StackingRegressor(recorded, RidgeCV(), cv="prefit")
    weights = {} if examples.weight is None else {"sample_weight": examples.weight}
    model.fit(examples.X, examples.y, **weights)
    return _thawed(model, list(members), members, fitted).set_params(cv=splitter)


def _thawed(
    model: Any, chosen: list[str], members: Mapping[str, Any], fitted: Mapping[str, Any]
) -> Any:
    """The blend with its fitted members, and with unfitted ones as the parameter `estimators`."""
    model.set_params(estimators=[(name, clone(members[name])) for name in chosen])
    model.estimators_ = [fitted[name] for name in chosen]
    model.named_estimators_ = Bunch(**{name: fitted[name] for name in chosen})
    names = [getattr(member, "feature_names_in_", None) for member in model.estimators_]
    known = next((found for found in names if found is not None), None)
    if known is not None:
        model.feature_names_in_ = known
    return model
