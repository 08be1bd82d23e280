"""Predictions of any model under scikit-learn's API compared with the truth.

confusion                  how often each class was predicted as each
roc_curves                 true against false positive rate of each class
precision_recall_curves    precision against recall of each class
margins_of                 how far rows are on the right side of the decision
residual_facts             errors of a regressor
worst_mistakes             the rows with the largest errors

Classes are scored by `predict_proba`, or by `decision_function` if there are no probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import metrics

from margrove._data import check_weights
from margrove.exceptions import InvalidDataError
from margrove.facts.classification_scores import (
    ClassScores,
    classes_of,
    codes_of,
    last_step,
    predicted_codes,
    required_scores,
)
from margrove.facts.mistakes import residual_facts, worst_mistakes
from margrove.facts.plain_values import frozen
from margrove.facts.prediction_values import (
    ConfusionMatrix,
    MarginFacts,
    PrecisionRecallCurve,
    PrecisionRecallCurves,
    RocCurve,
    RocCurves,
)

__all__ = [
    "confusion",
    "margins_of",
    "precision_recall_curves",
    "residual_facts",
    "roc_curves",
    "worst_mistakes",
]

_WITH_MARGINS = ("SVC", "LinearSVC", "SVCCV", "LinearSVCCV")  # of margrove and of scikit-learn


def confusion(model: Any, X: Any, y: Any, sample_weight: Any = None) -> ConfusionMatrix:
    """How often a classifier predicted each class for rows of each true class.

    Parameters
    ----------
    model : fitted classifier
        Any under scikit-learn's API, or a pipeline that ends in one.
    X, y : rows and their classes
        Use rows that the model has not seen.
    sample_weight : array of shape (n,), optional

    Returns
    -------
    ConfusionMatrix

    Examples
    --------
    >>> import margrove
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> tree = margrove.DecisionTreeClassifier(max_depth=1).fit(X, y)
    >>> margrove.facts.confusion(tree, X, y).counts.tolist()
    [[50, 0, 0], [0, 50, 0], [0, 50, 0]]
    """
    classes = classes_of(model)
    predicted = predicted_codes(model, X, classes)
    codes, names = codes_of(y, classes, len(predicted))
    cells, k = codes * len(names) + predicted, len(names)
    if sample_weight is None:
        counts = np.bincount(cells, minlength=k * k)
    else:
        counts = np.bincount(cells, check_weights(sample_weight, len(cells)), minlength=k * k)
    return ConfusionMatrix(classes=names, counts=frozen(counts.reshape(k, k)))


def roc_curves(model: Any, X: Any, y: Any, sample_weight: Any = None) -> RocCurves:
    """ROC curves: true against false positive rate of each class, threshold by threshold.

    Parameters
    ----------
    model : fitted classifier with predict_proba or decision_function
    X, y : rows and their classes
    sample_weight : array of shape (n,), optional

    Returns
    -------
    RocCurves
        For two classes, one curve: that of the second class.

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> (curve,) = margrove.facts.roc_curves(margrove.SVC(kernel="linear").fit(X, y), X, y).curves
    >>> curve.name, curve.area
    ('yes', 1.0)
    """
    scores, judged, undefined, weight = _one_against_the_others(model, X, y, sample_weight)
    curves = []
    for name, values, is_true, share in judged:
        false, true, thresholds = metrics.roc_curve(is_true, values, sample_weight=weight)
        curves.append(
            RocCurve(
                name=name,
                false_positive_rate=frozen(false),
                true_positive_rate=frozen(true),
                thresholds=frozen(thresholds),
                area=float(metrics.auc(false, true)),
                share=share,
            )
        )
    return RocCurves(curves=tuple(curves), undefined=undefined, score=scores.method)


def precision_recall_curves(
    model: Any, X: Any, y: Any, sample_weight: Any = None
) -> PrecisionRecallCurves:
    """Precision-recall curves of each class, threshold by threshold.

    Parameters
    ----------
    model : fitted classifier with predict_proba or decision_function
    X, y : rows and their classes
    sample_weight : array of shape (n,), optional

    Returns
    -------
    PrecisionRecallCurves
        For two classes, one curve: that of the second class.

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "no", "yes"]
    >>> model = margrove.SVC(kernel="linear", C=10).fit(X, y)
    >>> (curve,) = margrove.facts.precision_recall_curves(model, X, y).curves
    >>> curve.average_precision, curve.share
    (1.0, 0.25)
    """
    scores, judged, undefined, weight = _one_against_the_others(model, X, y, sample_weight)
    curves = []
    for name, values, is_true, share in judged:
        precision, recall, thresholds = metrics.precision_recall_curve(
            is_true, values, sample_weight=weight
        )
        curves.append(
            PrecisionRecallCurve(
                name=name,
                recall=frozen(recall),
                precision=frozen(precision),
                thresholds=frozen(np.append(thresholds, np.inf)),
                average_precision=float(
                    metrics.average_precision_score(is_true, values, sample_weight=weight)
                ),
                share=share,
            )
        )
    return PrecisionRecallCurves(curves=tuple(curves), undefined=undefined, score=scores.method)


_Judged = list[tuple[str, np.ndarray, np.ndarray, float]]


def _one_against_the_others(
    model: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[ClassScores, _Judged, tuple[str, ...], np.ndarray]:
    """(name, scores, is true, share) of each class that some, but not all, rows have.

    Rows of weight 0 do not count: a class that only they have is undefined.
    """
    scores = required_scores(model, X)
    codes, names = codes_of(y, scores.classes, len(scores.values))
    weight = check_weights(sample_weight, len(codes))
    k = len(scores.classes)
    judged: _Judged = []
    undefined = []
    for code in [1] if k == len(names) == 2 else range(k):
        is_true = codes == code
        share = float(weight[is_true].sum() / weight.sum())
        if 0.0 < share < 1.0:
            judged.append((names[code], scores.values[:, code], is_true, share))
        else:
            undefined.append(names[code])
    return scores, judged, tuple(undefined), weight


def margins_of(model: Any, X: Any, y: Any) -> MarginFacts:
    """Margins of rows: how far they are on the right side of the decision.

    For two classes the margin is y f(x), with y = 1 for the second class and -1 for the first. For
    more classes it is the score of the true class minus the highest of the others. Scores are those
    of `decision_function`; without one, probabilities.

    Parameters
    ----------
    model : fitted classifier with decision_function or predict_proba
    X, y : rows and their classes

    Returns
    -------
    MarginFacts

    Examples
    --------
    >>> import margrove
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [-1, -1, 1, 1]
    >>> found = margrove.facts.margins_of(margrove.SVC(kernel="linear", C=10).fit(X, y), X, y)
    >>> found.margins.round(3).tolist(), found.n_wrong, found.measure
    ([2.0, 1.0, 1.0, 2.0], 0, 'y f(x)')
    """
    has_machine = hasattr(model, "decision_function")
    scores = required_scores(_WithoutProbabilities(model) if has_machine else model, X)
    codes, names = codes_of(y, scores.classes, len(scores.values))
    if len(names) > len(scores.classes):
        unknown = names[len(scores.classes)]
        raise InvalidDataError(
            f"y has the class {unknown!r}, which the model does not know. Leave out its rows."
        )
    rows = np.arange(len(codes))
    of_truth = scores.values[rows, codes]
    if has_machine and len(names) == 2:
        return _margin_facts(of_truth, codes, names, "y f(x)", 1.0 if _has_level(model) else None)
    others = scores.values.copy()
    others[rows, codes] = -np.inf
    what = "score" if has_machine else "probability"
    measure = f"{what} of the true class minus the highest of the others"
    return _margin_facts(of_truth - others.max(axis=1), codes, names, measure, None)


class _WithoutProbabilities:
    """A classifier without its `predict_proba`."""

    def __init__(self, model: Any) -> None:
        self.classes_ = classes_of(model)
        self.decision_function = model.decision_function
        shape = getattr(last_step(model), "decision_function_shape", None)
        self.decision_function_shape = shape


def _has_level(model: Any) -> bool:
    """Whether |f| = 1 are the edges of the margin, as for support vector machines."""
    return any(cls.__name__ in _WITH_MARGINS for cls in type(last_step(model)).__mro__)


def _margin_facts(
    margins: np.ndarray,
    codes: np.ndarray,
    names: tuple[str, ...],
    measure: str,
    level: float | None,
) -> MarginFacts:
    return MarginFacts(
        margins=frozen(margins), codes=frozen(codes), classes=names, measure=measure, level=level
    )
