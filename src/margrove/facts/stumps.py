"""Boosted stumps as rules of thumb, in words."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove.ensemble.adaboost import StumpMembers, VotingRule
from margrove.facts.models import feature_names_of, require_boosting
from margrove.facts.plain_values import Plain
from margrove.grove.read import Condition, branch_conditions, names_of, shown
from margrove.grove.serve import TreeArrays

__all__ = ["StumpRule", "stump_rules"]

_HALF = 0.5  # parts words that occur from those that do not, in counts
_CANCELLED = 1e-12  # of the weights: what rounding leaves of rules that took each other back


@dataclass(frozen=True, kw_only=True, eq=False)
class StumpRule(Plain):
    """All rounds that ask the same question, added up.

    Attributes
    ----------
    feature : str
        The name; "" for a rule that asks nothing.
    index : int or None
        The column.
    threshold : float or None
        None where labels are asked for, or nothing.
    left, right : label
        What is said of values up to the threshold, or of the labels asked for, and of the others.
    weight : float
        The sum of the betas of the rounds, less those that say the opposite. With more than two
        classes, `left` and `right` are those that an answer raises most, and this is half of what
        it raises them by, of both together. Without a question: the label's lead over the next.
    n_rounds : int
        How many rounds ask this.
    text : str
    """

    feature: str
    index: int | None
    threshold: float | None
    left: Any
    right: Any
    weight: float
    n_rounds: int
    text: str


class _Stump(NamedTuple):
    """condition: of the left side, None if both sides say the same; classes by their codes."""

    condition: Condition | None
    left: int
    right: int
    beta: float


def stump_rules(
    model: Any, n: int = 10, feature_names: Any = None, *, X: Any = None
) -> list[StumpRule]:
    """The rules of thumb that boosted stumps vote with, the strongest first.

    Rounds that ask the same question are put together; those that say the same of all rows are one
    rule without a question.

    Parameters
    ----------
    model : fitted AdaBoostClassifier
        With algorithm "samme", "m1" or "discrete", and stumps of margrove.
    n : int, default=10
        How many rules, at most.
    feature_names : sequence of str, optional
        A name for each feature, such as `CountVectorizer().get_feature_names_out()`. By default
        those that the model was fitted to, or else "x0", "x1" and so on.
    X : sparse matrix or array-like, optional
        The rows of the fit: where a threshold parts zeros from all larger values, the text says
        that a word occurs. Without X it says so of thresholds of 0.5, as counts have, if
        `feature_names` are given.

    Returns
    -------
    list of StumpRule

    Examples
    --------
    >>> from margrove import AdaBoostClassifier
    >>> from margrove.facts import stump_rules
    >>> model = AdaBoostClassifier(n_estimators=1).fit([[1.0], [2.0], [3.0]], ["a", "a", "b"])
    >>> stump_rules(model)[0].text
    'if x0 <= 2.5, say a, else b'
    >>> counts = [[0, 1], [2, 1], [0, 0]]
    >>> model = AdaBoostClassifier(n_estimators=1).fit(counts, ["Collect", "Card", "Collect"])
    >>> stump_rules(model, feature_names=["card", "please"], X=counts)[0].text
    "if 'card' occurs, say Card"
    """
    require_boosting(model, "stump_rules")
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n must be a whole number of rules, at least 1. Got {n!r}.")
    if not isinstance(model._rule(), VotingRule):
        raise TypeError(
            f"Rules are of stumps that vote, and algorithm={model.algorithm!r} adds numbers. Fit "
            "with algorithm='samme'."
        )
    given = feature_names_of(model, model.n_features_in_, feature_names)
    columns = _columns_of(model, X)
    asked: dict[Condition, tuple[np.ndarray, int]] = {}
    constant, n_constant = np.zeros(model.n_classes_), 0
    for stump in _stumps_of(model, given):
        if stump.condition is None:
            constant[stump.left] += stump.beta
            n_constant += 1
            continue
        gained, count = asked.get(stump.condition, (np.zeros(model.n_classes_), 0))
        gained[stump.right] += stump.beta
        gained[stump.left] -= stump.beta
        asked[stump.condition] = gained, count + 1
    classes = model.classes_.tolist()
    least = _CANCELLED * float(np.abs(model.estimator_weights_).sum())
    rules = [
        _rule(condition, gained, count, classes, feature_names is not None, columns)
        for condition, (gained, count) in asked.items()
    ]
    if n_constant:
        rules.append(_rule_without_question(constant, n_constant, classes))
    rules = [rule for rule in rules if rule.weight > least]
    return sorted(rules, key=lambda rule: -rule.weight)[: int(n)]


def _stumps_of(model: Any, given: Any) -> Iterator[_Stump]:
    members, betas = model._members, 0.5 * model.estimator_weights_
    if not isinstance(members, StumpMembers):
        for t, beta in enumerate(betas.tolist()):
            yield _read(members.estimators(t)[0], given, model.classes_.tolist(), beta)
        return
    found = members.found
    for feature, threshold, (left, right), beta in zip(
        found.feature.tolist(), members.thresholds.tolist(), found.classes.tolist(), betas.tolist(),
        strict=True,
    ):  # fmt: skip
        condition = None
        if feature >= 0 and left != right:
            name = f"x{feature}" if given is None else str(given[feature])
            condition = Condition(name, feature, "range", high=threshold)
        yield _Stump(condition, left, right, beta)


def _read(member: Any, given: Any, classes: list[Any], beta: float) -> _Stump:
    """A stump that is a tree of three nodes, or of one."""
    tree = getattr(member, "arrays_", None)
    if not isinstance(tree, TreeArrays) or len(tree) > 3:
        size = "" if tree is None else f" of {len(tree)} nodes"
        raise TypeError(
            "Rules are read from stumps of margrove, such as DecisionTreeClassifier(max_depth=1). "
            f"The members of this model are {type(member).__name__}s{size}."
        )
    names = names_of(member)
    if given is not None:
        names = dataclasses.replace(names, features=tuple(str(name) for name in given))
    said = [classes.index(names.prediction(value)) for value in tree.value.tolist()]
    if len(said) < 3 or said[1] == said[2]:
        return _Stump(None, said[-1], said[-1], beta)
    condition = dataclasses.replace(branch_conditions(tree, names, 0)[0], missing=0.0)
    return _Stump(condition, said[1], said[2], beta)


def _columns_of(model: Any, X: Any) -> Any:
    """The nonzero entries, column by column; None if X was not given."""
    if X is None:
        return None
    rows = model._rows(X)
    return None if rows.dtype == object else sp.csc_array(rows)


def _rule(
    condition: Condition,
    gained: np.ndarray,
    n_rounds: int,
    classes: list[Any],
    is_named: bool,
    columns: Any,
) -> StumpRule:
    """gained: by how much more the right side is for each class than the left."""
    left, right = classes[int(np.argmin(gained))], classes[int(np.argmax(gained))]
    index, threshold = condition.number, condition.high
    has_threshold = condition.kind in ("range", "sum") and math.isfinite(threshold)
    text = f"if {condition.text}, say {shown(left)}, else {shown(right)}"
    if (
        has_threshold
        and index is not None
        and _is_about_a_word(index, threshold, is_named, columns)
    ):
        text = f"if {condition.feature!r} occurs, say {shown(right)}"
    return StumpRule(
        feature=condition.feature,
        index=index,
        threshold=threshold if has_threshold else None,
        left=left,
        right=right,
        weight=float(gained.max() - gained.min()) / 2.0,
        n_rounds=n_rounds,
        text=text,
    )


def _is_about_a_word(index: int, threshold: float, is_named: bool, columns: Any) -> bool:
    """Whether the threshold separates zero from larger values."""
    if columns is None:
        return is_named and threshold == _HALF
    values = columns.data[columns.indptr[index] : columns.indptr[index + 1]]
    return threshold > 0.0 and not np.any((values != 0.0) & (values <= threshold))


def _rule_without_question(votes: np.ndarray, n_rounds: int, classes: list[Any]) -> StumpRule:
    best = int(np.argmax(votes))
    label, others = classes[best], np.delete(votes, best)
    return StumpRule(
        feature="",
        index=None,
        threshold=None,
        left=label,
        right=label,
        weight=float(votes[best] - others.max(initial=0.0)),
        n_rounds=n_rounds,
        text=f"always say {shown(label)}",
    )
