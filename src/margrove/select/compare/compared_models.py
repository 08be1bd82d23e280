"""The models of a comparison with their names, the task, and the score."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from margrove.select.compare.examples import Examples, Task
from margrove.select.compare.row_scores import RowScorer, row_scorer_of
from margrove.select.learners import learners_at

__all__ = [
    "Scoring",
    "check_scorer",
    "default_models",
    "named_models",
    "task_of",
    "task_of_numbers",
    "task_of_targets",
]

_FEW_VALUES = 20  # numbers with more values than this, and than a tenth of the rows: regression

# The bounds of scores, by the beginning of their names.
_BOUNDS = {
    "neg_": (-np.inf, 0.0),
    "r2": (-np.inf, 1.0),
    "explained_variance": (-np.inf, 1.0),
    "d2_": (-np.inf, 1.0),
    "matthews_corrcoef": (-1.0, 1.0),
    **dict.fromkeys(
        (
            "accuracy", "balanced_accuracy", "top_k_accuracy", "average_precision", "f1",
            "precision", "recall", "jaccard", "roc_auc",
        ),
        (0.0, 1.0),
    ),
}  # fmt: skip


def named_models(models: Any) -> dict[str, Any]:
    """Models by name; those of a list get the names of their classes."""
    if isinstance(models, Mapping):
        named = dict(models)
    elif hasattr(models, "fit"):
        named = {_class_name(models): models}
    elif isinstance(models, (list, tuple)):
        pairs = [entry for entry in models if isinstance(entry, tuple) and len(entry) == 2]
        named = dict(pairs) if len(pairs) == len(models) else _numbered(models)
        if len(named) < len(models):
            raise ValueError(f"models has names more than once: {[name for name, _ in pairs]}.")
    else:
        raise TypeError(
            "models must be a dict of names and estimators, a list of estimators, or None for "
            f"learners of margrove. Got {models!r} instead."
        )
    if not named:
        raise ValueError("models is empty. Pass estimators, or None for learners of margrove.")
    for name, model in named.items():
        _check_model(name, model)
    return named


def _check_model(name: Any, model: Any) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"models must have strings for names. Got {name!r} instead.")
    if isinstance(model, type):
        raise TypeError(f"models[{name!r}] is a class. Pass an instance of it: {model.__name__}().")
    if not all(hasattr(model, method) for method in ("fit", "get_params", "set_params")):
        raise TypeError(
            f"models[{name!r}] must be an estimator with scikit-learn's API: fit, get_params "
            f"and set_params. Got {model!r} instead."
        )


def _numbered(models: Any) -> dict[str, Any]:
    names = [_class_name(model) for model in models]
    counts = Counter(names)
    numbers: Counter[str] = Counter()
    named = {}
    for name, model in zip(names, models, strict=True):
        numbers[name] += 1
        named[f"{name} {numbers[name]}" if counts[name] > 1 else name] = model
    return named


def _class_name(model: Any) -> str:
    """The name of the class; of a pipeline, that of its last step."""
    if isinstance(model, Pipeline):
        return _class_name(model.steps[-1][1])
    return type(model).__name__


def task_of(models: Mapping[str, Any] | None, y: Any) -> Task:
    """The task of the models; without models, the task that the targets suggest."""
    classifiers = [name for name, model in (models or {}).items() if is_classifier(model)]
    regressors = [name for name, model in (models or {}).items() if is_regressor(model)]
    if classifiers and regressors:
        raise ValueError(
            f"models must be classifiers or regressors, not both: {classifiers[0]} is a classifier "
            f"and {regressors[0]} a regressor."
        )
    if classifiers or regressors:
        return "classification" if classifiers else "regression"
    return task_of_targets(y)


def task_of_targets(y: Any) -> Task:
    """The task for these targets: classification of labels and of few whole numbers."""
    array = np.asarray(y)
    if array.dtype == object:  # nullable columns hold numbers as objects
        array = np.asarray(array.tolist())
    if array.dtype.kind not in "iuf":
        return "classification"
    if array.ndim == 2 and array.shape[1] > 1:
        return "regression"
    return task_of_numbers(array, len(np.unique(array)))


def task_of_numbers(numbers: np.ndarray, n_values: int) -> Task:
    """The task for numbers with `n_values` different values: few whole numbers are classes."""
    is_whole = numbers.dtype.kind in "iu" or not np.any(numbers % 1)
    is_of_classes = is_whole and n_values <= max(_FEW_VALUES, numbers.size / 10)
    return "classification" if is_of_classes else "regression"


def default_models(task: Task, X: Any) -> dict[str, Any]:
    """The learners of the registry for comparisons; margin machines get scaled features."""
    models = []
    for learner in learners_at("comparisons", task):
        entry = learner.for_task(task)
        assert entry is not None
        model = entry.estimator_class(**learner.settings)
        is_scaled = learner.family == "margin"
        models.append(make_pipeline(_preparation(X), model) if is_scaled else model)
    return named_models(models)


def _preparation(X: Any) -> Any:
    """Scales numbers and fills missing ones; texts in a pandas DataFrame become indicators."""
    if sp.issparse(X):
        return MaxAbsScaler()
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    if type(X).__module__.partition(".")[0] != "pandas":
        return numbers
    texts = OneHotEncoder(
        max_categories=100, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
    )


@dataclass(frozen=True)
class Scoring:
    """A scorer, its name, and the bounds of its values."""

    name: str
    scorer: Any
    low: float = -np.inf
    high: float = np.inf

    @property
    def is_share(self) -> bool:
        """Whether differences are shown as percentage points."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def by_rows(self) -> RowScorer | None:
        return row_scorer_of(self.scorer)

    def of_model(self, model: Any, examples: Examples) -> float:
        weights = {} if examples.weight is None else {"sample_weight": examples.weight}
        score = float(self.scorer(model, examples.X, examples.y, **weights))
        if not np.isfinite(score):
            raise ValueError(f"The score {self.name} is {score}.")
        return score


def check_scorer(scoring: Any, task: Task, model: Any, *, has_weights: bool) -> Scoring:
    """The scorer for `scoring`: a name, a callable, or None for the default of the task."""
    if scoring is None:
        scoring = "accuracy" if task == "classification" else "r2"
    if not isinstance(scoring, str) and not callable(scoring):
        raise TypeError(
            "scoring must be the name of one of scikit-learn's scorers or a callable "
            f"scorer(model, X, y): models are compared by one score. Got {scoring!r} instead."
        )
    scorer = check_scoring(model, scoring=scoring)
    if has_weights and not _takes_weights(scorer):
        raise ValueError(
            "sample_weight cannot be used with this scoring, which does not take it. Use another "
            "scoring, or leave out sample_weight."
        )
    name = scoring if isinstance(scoring, str) else _name_of(scorer)
    known = [bounds for start, bounds in _BOUNDS.items() if name.startswith(start)]
    return Scoring(name, scorer, *(known[0] if isinstance(scoring, str) and known else ()))


def _takes_weights(scorer: Any) -> bool:
    metric = getattr(scorer, "_score_func", scorer)
    parameters = inspect.signature(metric).parameters.values()
    return any(
        parameter.name == "sample_weight" or parameter.kind is parameter.VAR_KEYWORD
        for parameter in parameters
    )


def _name_of(scorer: Any) -> str:
    metric = getattr(scorer, "_score_func", scorer)
    name = str(getattr(metric, "__name__", type(metric).__name__))
    return f"negative {name}" if getattr(scorer, "_sign", 1) < 0 else name
