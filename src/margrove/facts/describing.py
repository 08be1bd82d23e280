"""`describe`: everything that is known about a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.validation import check_is_fitted

from margrove.ensemble.adaboost import AdaBoostClassifier
from margrove.ensemble.bagging import BaggingClassifier, BaggingRegressor
from margrove.ensemble.forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from margrove.ensemble.gradient import GradientBoosted
from margrove.facts.models import (
    bagging_facts,
    boosting_facts,
    classifier_facts,
    forest_facts,
    gradient_facts,
    kernel_perceptron_facts,
    linear_classifier_facts,
    linear_regressor_facts,
    one_class_facts,
    perceptron_facts,
    regressor_facts,
    tree_facts,
)
from margrove.facts.values import Given, Outline
from margrove.grove import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.margin.linear import LinearSVC, LinearSVR
from margrove.margin.perceptron import KernelPerceptron, Perceptron
from margrove.margin.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

__all__ = ["describe", "is_described"]

Describer = Callable[[Any, Given], Outline]

_DESCRIBERS: dict[type, Describer] = {
    SVC: classifier_facts,
    NuSVC: classifier_facts,
    SVR: regressor_facts,
    NuSVR: regressor_facts,
    OneClassSVM: one_class_facts,
    LinearSVC: linear_classifier_facts,
    LinearSVR: linear_regressor_facts,
    Perceptron: perceptron_facts,
    KernelPerceptron: kernel_perceptron_facts,
    DecisionTreeClassifier: tree_facts,
    DecisionTreeRegressor: tree_facts,
    RandomForestClassifier: forest_facts,
    RandomForestRegressor: forest_facts,
    ExtraTreesClassifier: forest_facts,
    ExtraTreesRegressor: forest_facts,
    BaggingClassifier: bagging_facts,
    BaggingRegressor: bagging_facts,
    AdaBoostClassifier: boosting_facts,
    GradientBoosted: gradient_facts,
}


def describe(model: Any, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
    """Describe a fitted model with plain values.

    Parameters
    ----------
    model : fitted estimator
        One of SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, Perceptron,
        KernelPerceptron, DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier,
        RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor, BaggingClassifier,
        BaggingRegressor, AdaBoostClassifier, HistGradientBoostingClassifier and
        HistGradientBoostingRegressor.
    X, y, sample_weight : optional
        The training data. A support vector machine keeps them, but not when it is pickled. Without
        them, a support vector machine has no proof and no kinds of support vectors, a linear
        machine no support vectors, a forest or bagging no training error, AdaBoost no margins.
        Perceptrons and trees do not need them. For gradient boosting they may be any rows, of which
        the loss is computed.

    Returns
    -------
    ClassifierFacts, RegressorFacts, OneClassFacts, LinearFacts, PerceptronFacts, TreeFacts,
    ForestFacts, BaggingFacts, BoostingFacts or GradientFacts

    Examples
    --------
    >>> from margrove import SVC
    >>> from margrove.facts import describe
    >>> model = SVC(kernel="linear", C=10).fit([[0, 0], [0, 2], [2, 0], [2, 2]], list("aabb"))
    >>> facts = describe(model)
    >>> facts.kernel.formula, facts.machines[0].name
    ('x.z', "'b' against 'a'")
    >>> round(facts.machines[0].margin_width, 3)
    2.0
    >>> sorted(facts.machines[0].as_dict()["proof"])
    ['dual', 'gap', 'place', 'primal', 'relative_gap', 'violation']
    """
    describer = _describer_of(model)
    if describer is None:
        known = ", ".join(sorted(cls.__name__ for cls in _DESCRIBERS))
        raise TypeError(f"describe takes {known} of margrove. Got {_class_name(model)}.")
    check_is_fitted(model)
    return describer(model, (X, y, sample_weight))


def is_described(model: Any) -> bool:
    """Whether `describe` takes this kind of estimator.

    Examples
    --------
    >>> from margrove import SVC, facts
    >>> facts.is_described(SVC()), facts.is_described("SVC")
    (True, False)
    """
    return _describer_of(model) is not None


def _describer_of(model: Any) -> Describer | None:
    return next((_DESCRIBERS[cls] for cls in type(model).__mro__ if cls in _DESCRIBERS), None)


def _class_name(model: Any) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
