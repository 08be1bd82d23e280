"""Boosted stumps as rules, in words."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from margrove.ensemble.adaboost import StumpMembers, VotingRule
from margrove.facts.models import feature_names_of, require_boosting
from margrove.facts.plain_values import Plain, require_whole
from margrove.grove.read import Condition, branch_conditions, names_of, shown
from margrove.grove.serve import TreeArrays

__all__ = ["StumpRule", "stump_rules"]

_HALF = 0.5  # separates words that occur from those that do not, in counts
_CANCELLED = 1e-12  # relative weight that rounding leaves if rules cancel each other


@dataclass(frozen=True, kw_only=True, eq=False)
class StumpRule(Plain):
    """The sum of all rounds with the same split.

    Attributes
    ----------
    feature : str
        The name; "" for a rule without a split.
    index : int or None
        The column.
    threshold : float or None
        None for a split by labels, or without a split.
    left, right : label
        The classes on both sides: up to the threshold or for the labels of the split, and beyond.
    weight : float
        The sum of the betas of the rounds, minus those that predict the opposite. With more than
        two classes, `left` and `right` are the classes that each side raises most, and the weight
        is half of the sum of both raises. Without a split: the label's lead over the next.
    n_rounds : int
        The number of rounds with this split.
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
    """The stump of a round.

    condition     of the left side; None if both sides predict the same
    left, right   class codes
    """

    condition: Condition | None
    left: int
    right: int
    beta: float


def stump_rules(
    model: Any, n: int = 10, feature_names: Any = None, *, X: Any = None
) -> list[StumpRule]:
    """The rules of boosted stumps, the strongest first.

    Rounds with the same split are added up. Rounds that predict one class for all rows are one rule
    without a split.

    Parameters
    ----------
    model : fitted AdaBoostClassifier
        With algorithm "samme", "m1" or "discrete", and stumps of margrove.
    n : int, default=10
        Largest number of rules.
    feature_names : sequence of str, optional
        A name for each feature, such as `CountVectorizer().get_feature_names_out()`. By default
        those of the training data, or else "x0", "x1" and so on.
    X : sparse matrix or array-like, optional
        The training rows: if a threshold separates zeros from all larger values, the text says that
        a word occurs. Without X, it says so for thresholds of 0.5, as counts have, if
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
    n = require_whole("n", n, 1, " of rules")
    if not isinstance(model._rule(), VotingRule):
        raise TypeError(
            "stump_rules takes stumps that vote for classes, and those of "
            f"algorithm={model.algorithm!r} add numbers. Fit with algorithm='samme'."
        )
    given = feature_names_of(model, model.n_features_in_, feature_names)
    columns = _columns_of(model, X)
    by_split: dict[Condition, tuple[np.ndarray, int]] = {}
    constant, n_constant = np.zeros(model.n_classes_), 0
    for stump in _stumps_of(model, given):
        if stump.condition is None:
            constant[stump.left] += stump.beta
            n_constant += 1
            continue
        gained, count = by_split.get(stump.condition, (np.zeros(model.n_classes_), 0))
        gained[stump.right] += stump.beta
        gained[stump.left] -= stump.beta
        by_split[stump.condition] = gained, count + 1
    classes = model.classes_.tolist()
    least = _CANCELLED * float(np.abs(model.estimator_weights_).sum())
    rules = [
        _rule(condition, gained, count, classes, feature_names is not None, columns)
        for condition, (gained, count) in by_split.items()
    ]
    if n_constant:
        rules.append(_rule_without_split(constant, n_constant, classes))
    rules = [rule for rule in rules if rule.weight > least]
    return sorted(rules, key=lambda rule: -rule.weight)[:n]


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
    """The stump of a member, which is a tree of three nodes or of one."""
    tree = getattr(member, "arrays_", None)
    if not isinstance(tree, TreeArrays) or len(tree) > 3:
        size = "" if tree is None else f" of {len(tree)} nodes"
        raise TypeError(
            "stump_rules takes stumps of margrove, such as DecisionTreeClassifier(max_depth=1). "
            f"The members of this model are {type(member).__name__}s{size}."
        )
    names = names_of(member)
    if given is not None:
        names = dataclasses.replace(names, features=tuple(str(name) for name in given))
    codes = [classes.index(names.prediction(value)) for value in tree.value.tolist()]
    if len(codes) < 3 or codes[1] == codes[2]:
        return _Stump(None, codes[-1], codes[-1], beta)
    condition = dataclasses.replace(branch_conditions(tree, names, 0)[0], missing=0.0)
    return _Stump(condition, codes[1], codes[2], beta)


def _columns_of(model: Any, X: Any) -> Any:
    """X as a CSC array; None if X was not given, or has labels."""
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
    """gained is by how much the right side raises each class more than the left side does."""
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


def _rule_without_split(votes: np.ndarray, n_rounds: int, classes: list[Any]) -> StumpRule:
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
