"""`from_sklearn` and `to_sklearn`: a closed table of pairs of classes, looked up by exact type.

The pairs are in the files of their families; a new one is a new entry there. Derived classes are
refused, because their code cannot be converted.
"""

from __future__ import annotations

import functools
from typing import Any

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from margrove.exceptions import ConversionError
from margrove.exchange.scikit_learn.pairs import Pair, class_of, parameters_for

__all__ = ["from_sklearn", "to_sklearn", "unfitted_from_sklearn", "unfitted_to_sklearn"]


@functools.cache
def _pairs() -> tuple[Pair, ...]:
    from margrove.exchange.scikit_learn.adaboost import ADABOOST
    from margrove.exchange.scikit_learn.forests import FORESTS
    from margrove.exchange.scikit_learn.gradient_boosting import GRADIENT_BOOSTING
    from margrove.exchange.scikit_learn.hist_gradient_boosting import HIST_GRADIENT_BOOSTING
    from margrove.exchange.scikit_learn.linear import LINEAR_MACHINES
    from margrove.exchange.scikit_learn.machines import KERNEL_MACHINES
    from margrove.exchange.scikit_learn.trees import TREES

    return (
        *KERNEL_MACHINES, *LINEAR_MACHINES, *TREES, *FORESTS, *ADABOOST, *GRADIENT_BOOSTING,
        *HIST_GRADIENT_BOOSTING,
    )  # fmt: skip


def from_sklearn(fitted: Any) -> Any:
    """Convert a fitted estimator of scikit-learn to one of margrove.

    It predicts the same: equal labels, and values, decisions and probabilities up to rounding.
    scikit-learn's trees compare X rounded to float32; thresholds are moved so that every float64
    value takes the branch of its rounded value. Parameters that margrove has, too, are copied, so
    that another fit solves the same problem.

    Parameters
    ----------
    fitted : estimator of scikit-learn
        SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, Perceptron, and the classifiers
        and regressors DecisionTree, ExtraTree, RandomForest, ExtraTrees, AdaBoost,
        GradientBoosting and HistGradientBoosting.

    Returns
    -------
    estimator of margrove
        Of the same name; an ExtraTree becomes a decision tree. Values that need the training data,
        such as the losses of each round, are NaN.

    Raises
    ------
    ConversionError
        If the model has something that margrove does not have. The error says what, and what to do
        instead.

    Examples
    --------
    >>> import margrove
    >>> from sklearn.svm import SVC
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> theirs = SVC(C=10).fit(X, y)
    >>> ours = margrove.from_sklearn(theirs)
    >>> bool((ours.predict(X) == theirs.predict(X)).all())
    True
    >>> margrove.certificate(ours, X, y).relative_gap < 0.01
    True
    """
    pair = _pair_with(theirs=fitted)
    if pair is None:
        raise ConversionError(type(fitted).__name__, *_why_not_from(fitted))
    check_is_fitted(fitted)
    ours = unfitted_from_sklearn(fitted)
    ours._commit(pair.read(fitted))
    pair.compare(fitted, ours)
    return ours


def to_sklearn(model: Any) -> Any:
    """Convert a fitted estimator of margrove to scikit-learn; see `Estimator.to_sklearn`."""
    model = model.to_local() if hasattr(type(model), "to_local") else model
    pair = _pair_with(ours=model)
    if pair is None:
        raise ConversionError(type(model).__name__, *_why_not_to(model))
    check_is_fitted(model)
    theirs = unfitted_to_sklearn(model)
    vars(theirs).update(pair.write(model))
    return theirs


def unfitted_from_sklearn(theirs: Any) -> Any:
    """An estimator of margrove with the same parameters; a clone if there is no counterpart."""
    pair = _pair_with(theirs=theirs)
    if pair is None:
        return clone(theirs)
    ours: Any = class_of(pair.ours)
    return ours(**parameters_for(ours, theirs) | pair.read_settings(theirs))


def unfitted_to_sklearn(ours: Any) -> Any:
    """An estimator of scikit-learn with the same parameters; a clone if there is none."""
    pair = _pair_with(ours=ours)
    if pair is None:
        return clone(ours)
    theirs: Any = class_of(pair.theirs)
    return theirs(**parameters_for(theirs, ours) | pair.write_settings(ours))


def _pair_with(theirs: Any = None, ours: Any = None) -> Pair | None:
    """The pair with the class of an estimator; only classes of the same name are imported."""
    kind = getattr(type(ours), "_ours", type(ours)) if theirs is None else type(theirs)
    for pair in _pairs():
        home = pair.ours if theirs is None else pair.theirs
        if home.endswith(f":{kind.__name__}") and class_of(home) is kind:
            return pair
    return None


def _names() -> str:
    return ", ".join(dict.fromkeys(pair.theirs.split(":")[1] for pair in _pairs()))


def _why_not_from(given: Any) -> tuple[str, str]:
    if isinstance(given, type):
        return "it is a class", f"Give a fitted instance: from_sklearn({given.__name__}().fit(...))"
    if type(given).__module__.startswith("margrove."):
        return "it is an estimator of margrove already", "Use it as it is"
    if hasattr(given, "steps"):
        return (
            "it is a pipeline",
            "Convert its last step, from_sklearn(model[-1]), and put it after the other steps",
        )
    if hasattr(given, "best_estimator_"):
        return "it is a search", "Convert its result: from_sklearn(model.best_estimator_)"
    return "margrove has no such class", (
        f"from_sklearn takes {_names()}, and no classes derived from them"
    )


def _why_not_to(model: Any) -> tuple[str, str]:
    if hasattr(model, "best_estimator_"):
        return "it is a search", "Convert its result: model.best_estimator_.to_sklearn()"
    return "scikit-learn has no such class", (
        "Use the model as it is: it has scikit-learn's methods, and works in its pipelines and "
        f"searches. Models that can be converted are {_names()}"
    )
