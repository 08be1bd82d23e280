"""Scores of fitted models on held-out rows, also after each round of boosting."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer, get_scorer_names

from margrove.select.held_out import known_answers

__all__ = ["Scoring", "stages_of"]

_EPS = float(np.finfo(np.float64).eps)


# scikit-learn's scorers check their input thoroughly. For a curve with a score for each round that
# would take longer than the boosting itself.


def _accuracy(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.average(model.predict(X) == y, weights=weight))


def _neg_log_loss(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"scoring='neg_log_loss' needs probabilities, and {type(model).__name__} has none. Use "
            "another scoring, such as 'accuracy', or margrove.calibrate after tuning."
        )
    given = model.predict_proba(X)
    of_truth = given[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(np.average(np.log(np.maximum(of_truth, _EPS)), weights=weight))


def _neg_mean_squared_error(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
    return -float(np.average((model.predict(X) - y) ** 2, weights=weight))


Score = Callable[[Any, Any, np.ndarray, "np.ndarray | None"], float]

_QUICK: dict[str, Score] = {
    "accuracy": _accuracy,
    "neg_log_loss": _neg_log_loss,
    "neg_mean_squared_error": _neg_mean_squared_error,
}


class Scoring:
    """A score by name, or a callable scorer(model, X, y): the greater, the better.

    `name` is for texts; `known_as` is scikit-learn's name of the score, or None.
    """

    def __init__(self, scoring: Any) -> None:
        self.known_as = scoring if isinstance(scoring, str) else None
        self.name = scoring if isinstance(scoring, str) else _name_of(scoring)
        self._quick = _QUICK.get(scoring) if isinstance(scoring, str) else None
        if isinstance(scoring, str) and scoring not in get_scorer_names():
            raise ValueError(
                f"scoring must be one of scikit-learn's names, such as 'accuracy' or 'r2', or a "
                f"callable(model, X, y). Got {scoring!r}."
            )
        if not isinstance(scoring, str) and not callable(scoring):
            raise TypeError(
                "scoring must be a name, such as 'accuracy', or a callable(model, X, y). Got "
                f"{type(scoring).__name__}."
            )
        self._scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring

    def __call__(self, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
        if self._quick is not None and y.ndim == 1:
            return self._quick(model, X, y, weight)
        if weight is None:
            found = self._scorer(model, X, y)
        elif self._takes_weights():
            found = self._scorer(model, X, y, sample_weight=weight)
        else:
            raise ValueError(
                f"sample_weight was given, but scoring={self.name} does not take it. Use "
                "scorer(model, X, y, sample_weight), or another score."
            )
        if not isinstance(found, Real):
            raise ValueError(f"{self.name} must return a number. Got {found!r}.")
        return float(found)

    def _takes_weights(self) -> bool:
        metric = getattr(self._scorer, "_score_func", self._scorer)
        parameters = inspect.signature(metric).parameters.values()
        return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


def _name_of(scorer: Any) -> str:
    metric = getattr(scorer, "_score_func", scorer)
    return str(getattr(metric, "__name__", type(scorer).__name__))


# -- models after each round of boosting ---------------------------------------------------------


class _Stages:
    """The predictions of a boosted model after each round, each computed once."""

    def __init__(self, model: Any, X: Any) -> None:
        self._model, self._X = model, X
        self._running: dict[str, Iterator[np.ndarray]] = {}
        self._reached: dict[str, int] = {}
        self._latest: dict[str, np.ndarray] = {}

    def at(self, stage: int, method: str) -> np.ndarray:
        """The result of `method` after `stage` rounds, or after the last one if there are fewer."""
        if method not in self._running:
            self._running[method] = getattr(self._model, f"staged_{method}")(self._X)
            self._reached[method] = 0
        while self._reached[method] < stage:
            self._reached[method] += 1
            found = next(self._running[method], None)
            if found is not None:
                self._latest[method] = found
        return self._latest[method]


def stages_of(model: Any, X: Any, first: int, last: int) -> Iterator[Any]:
    """Stand-ins for the boosted model after rounds first .. last; they predict for X only."""
    stages = _Stages(model, X)
    classes = model.classes_ if is_classifier(model) else None
    for stage in range(first, last + 1):
        yield known_answers(partial(stages.at, stage), classes)
