"""The conditions of the branches of a tree, with the names of columns and labels.

Names come from users and may be anything. In texts they are written by `shown`, which leaves
harmless names as they are and turns all others into literals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from margrove.grove.serve import LEAF, MULTIWAY, OBLIQUE, THRESHOLD, TreeArrays

__all__ = [
    "Condition",
    "TreeNames",
    "branch_conditions",
    "branch_shares",
    "branches_of_categories",
    "conditions_of_leaves",
    "has_shared_rows",
    "names_of",
    "number_text",
    "prediction_text",
    "shown",
    "total_weight",
    "tree_of",
]

_LONGEST_NAME = 80  # characters
_MOST_CATEGORIES = 12  # in a text
_MOST_TERMS = 6
_SYNTAX = frozenset("{}<>=,'\"`\\")  # of the texts below; names that contain these are quoted


# -- names ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeNames:
    """What the numbers of a tree stand for.

    features     a name for each column
    categories   {column: its labels}, for columns that have some
    classes      the labels of each output of a classifier; () for a regressor
    n_outputs    how many targets there are
    """

    features: tuple[str, ...]
    categories: dict[int, tuple[Any, ...]]
    classes: tuple[tuple[Any, ...], ...]
    n_outputs: int

    @property
    def is_classifier(self) -> bool:
        return bool(self.classes)

    def prediction(self, value: Sequence[float]) -> Any:
        """The label (if tied, the first) or the number; a tuple for several outputs."""
        if not self.is_classifier:
            return _one_or_all([float(number) for number in value])
        best = [max(zip(shares, labels, strict=True), key=lambda pair: pair[0])[1]
                for shares, labels in self.by_output(value)]  # fmt: skip
        return _one_or_all(best)

    def share(self, value: Sequence[float]) -> Any:
        """The share of the predicted class; a tuple for several outputs, None for a regressor."""
        if not self.is_classifier:
            return None
        return _one_or_all([float(max(shares)) for shares, _ in self.by_output(value)])

    def shares(self, value: Sequence[float]) -> Any:
        """{label: share}; a tuple of them for several outputs, None for a regressor."""
        if not self.is_classifier:
            return None
        return _one_or_all(
            [
                {label: float(share) for share, label in zip(shares, labels, strict=True)}
                for shares, labels in self.by_output(value)
            ]
        )

    def by_output(self, value: Sequence[float]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """The shares and the labels of each output of a classifier."""
        start = 0
        for labels in self.classes:
            yield value[start : start + len(labels)], labels
            start += len(labels)


def _one_or_all(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)


def tree_of(model: Any) -> TreeArrays:
    """The arrays of a fitted tree."""
    tree = getattr(model, "arrays_", None)
    if isinstance(tree, TreeArrays):
        return tree
    if hasattr(model, "fit"):
        check_is_fitted(model)
    raise TypeError(f"A fitted decision tree of margrove is needed. Got {type(model).__name__}.")


def names_of(model: Any) -> TreeNames:
    """The names that a fitted tree knows; columns without one are x0, x1 and so on."""
    d = int(model.n_features_in_)
    given = getattr(model, "feature_names_in_", None)
    classes: tuple[tuple[Any, ...], ...] = ()
    if is_classifier(model):
        found = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
        classes = tuple(map(_plain_labels, found))
    return TreeNames(
        features=tuple(f"x{j}" for j in range(d)) if given is None else tuple(map(str, given)),
        categories={int(j): _plain_labels(labels) for j, labels in model.categories_.items()},
        classes=classes,
        n_outputs=int(model.n_outputs_),
    )


def _plain_labels(labels: Any) -> tuple[Any, ...]:
    """Labels as Python's own types, also those in arrays of objects."""
    cells = np.asarray(labels).tolist()
    return tuple(cell.item() if isinstance(cell, np.generic) else cell for cell in cells)


def shown(name: Any) -> str:
    """A name for texts: unchanged if it is harmless, else as a literal; cut if it is long."""
    text = str(name)
    rest = "..." if len(text) > _LONGEST_NAME else ""
    text = text[:_LONGEST_NAME]
    is_harmless = text and text.isprintable() and text == text.strip() and not _SYNTAX & set(text)
    return (text if is_harmless else repr(text)) + rest


def number_text(number: float, decimals: int | None = None) -> str:
    """A number with so many decimals, or with 12 digits; small numbers are never shown as zero."""
    if decimals is None:
        return f"{number:.12g}"
    if number and not 10.0**-decimals <= abs(number) < 1e15:
        return f"{number:.{max(decimals, 1)}g}"
    return f"{number:.{decimals}f}"


def prediction_text(prediction: Any, decimals: int | None = None) -> str:
    """A label or number, or a list of them, as text."""
    if isinstance(prediction, tuple):
        return f"[{', '.join(prediction_text(one, decimals) for one in prediction)}]"
    is_number = isinstance(prediction, float)
    return number_text(prediction, decimals) if is_number else shown(prediction)


# -- conditions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """The condition of a branch, or of several branches of a path that split by the same feature.

    feature        its name; for a weighted sum, the sum as text
    number         its column; None for a weighted sum
    kind           "range"        low < value <= high
                   "sum"          the same for a weighted sum of features
                   "categories"   value is one of `categories`
                   "missing"      value is missing (in the explanation of a row)
                   "unknown"      value is a category without training rows in the node (likewise)
    categories     labels that meet the condition
    seen           all labels with training rows in the node
    coefficients   of a weighted sum: one for each feature
    missing        the share of a row that meets the condition if its value is missing, or a label
                   that is not in `seen`: 0, 1, or the share of the branch if such rows take all
                   branches (C4.5)
    """

    feature: str
    number: int | None
    kind: str
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[Any, ...] = ()
    seen: tuple[Any, ...] = ()
    missing: float = 0.0
    coefficients: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """The condition in words, without missing values."""
        return self.in_words()

    def in_words(self, *, decimals: int | None = None, show_missing: bool = False) -> str:
        """Like `text`, with so many decimals, and on request with missing values."""
        name = self.feature if self.number is None else shown(self.feature)
        if self.kind in ("missing", "unknown"):
            return f"{name} is {self.kind}"
        takes_values = bool(self.categories) if self.kind == "categories" else self.low < self.high
        if self.missing > 0.0 and not takes_values:
            return f"{name} is missing"
        words = self._categories_text(name) if self.kind == "categories" else ""
        words = words or self._range_text(name, decimals)
        if not show_missing or self.missing == 0.0:
            return words
        share = "" if self.missing == 1.0 else f" (share {self.missing:.3g})"
        return f"{words} or missing{share}"

    def _range_text(self, name: str, decimals: int | None) -> str:
        low, high = number_text(self.low, decimals), number_text(self.high, decimals)
        if self.low == -math.inf and self.high == math.inf:
            return f"{name} is known"
        if self.low == -math.inf:
            return f"{name} <= {high}"
        return f"{name} > {low}" if self.high == math.inf else f"{low} < {name} <= {high}"

    def _categories_text(self, name: str) -> str:
        labels = [shown(label) for label in self.categories[:_MOST_CATEGORIES]]
        if len(self.categories) == 1:
            return f"{name} = {labels[0]}"
        more = len(self.categories) - len(labels)
        return f"{name} in {{{', '.join(labels)}{f', and {more} more' if more else ''}}}"


def branch_conditions(tree: TreeArrays, names: TreeNames, node: int) -> tuple[Condition, ...]:
    """The condition of each branch of a node, in the order of its children."""
    missing = _missing_of_branches(tree, node)
    kind, number = int(tree.kind[node]), int(tree.feature[node])
    if kind in (THRESHOLD, OBLIQUE):
        first = Condition(names.features[number], number, "range")
        if kind == OBLIQUE:
            coef = tree.coef[tree.set_start[node]]
            first = Condition(
                _sum_text(coef, names), None, "sum", coefficients=tuple(coef.tolist())
            )
        threshold = float(tree.threshold[node])
        return (
            replace(first, high=threshold, missing=missing[0]),
            replace(first, low=threshold, missing=missing[1]),
        )
    labels = _labels_of_branches(tree, names, node)
    seen = tuple(chain.from_iterable(labels))  # shared by all branches, which may be many
    return tuple(
        Condition(names.features[number], number, "categories",
                  categories=of_branch, seen=seen, missing=share)
        for of_branch, share in zip(labels, missing, strict=True)
    )  # fmt: skip


def branch_shares(tree: TreeArrays, node: int, of_row: float = 1.0) -> list[float]:
    """The share of each branch of a node, if a share `of_row` of a row takes all branches.

    With the arithmetic of `tree_walk.values_of`, so that ties stay ties.
    """
    weights = tree.weight[tree.children_of(node)].tolist()
    total = total_weight(weights)
    if not total > 0.0:
        return [of_row / len(weights)] * len(weights)
    return [of_row * weight / total for weight in weights]


def total_weight(weights: list[float]) -> float:
    """The sum, added one by one; `sum` of Python 3.12 and later rounds differently."""
    total = 0.0
    for weight in weights:
        total += weight
    return total


def has_shared_rows(tree: TreeArrays) -> bool:
    """Whether rows with missing values take all branches of some node."""
    return bool(np.any((tree.kind != LEAF) & (tree.missing_child < 0)))


def _missing_of_branches(tree: TreeArrays, node: int) -> list[float]:
    taken = int(tree.missing_child[node])
    if taken < 0:
        return branch_shares(tree, node)
    return [1.0 if branch == taken else 0.0 for branch in range(int(tree.n_children[node]))]


def _labels_of_branches(tree: TreeArrays, names: TreeNames, node: int) -> list[tuple[Any, ...]]:
    """The labels of the categories that take each branch."""
    labels = names.categories.get(int(tree.feature[node]))
    found: list[list[Any]] = [[] for _ in range(int(tree.n_children[node]))]
    for category, branch in enumerate(branches_of_categories(tree, node)):
        if branch >= 0 and (labels is None or category < len(labels)):
            found[branch].append(category if labels is None else labels[category])
    return [tuple(of_branch) for of_branch in found]


def branches_of_categories(tree: TreeArrays, node: int) -> list[int]:
    """The branch of each category; -1 for one without training rows in a multiway node."""
    start, size = int(tree.set_start[node]), int(tree.set_size[node])
    found: list[int]
    if tree.kind[node] == MULTIWAY:
        found = tree.branches[start : start + size].tolist()
        return found
    numbers = np.arange(size)
    bits = (tree.words[start + numbers // 32] >> (numbers % 32).astype(np.uint32)) & 1
    found = (1 - bits.astype(np.int64)).tolist()
    return found


def _sum_text(coef: np.ndarray, names: TreeNames) -> str:
    terms = np.flatnonzero(coef)
    text = ""
    for j in terms[:_MOST_TERMS]:
        sign = "-" if coef[j] < 0.0 else "+" if text else ""
        text += f" {sign} " if text else sign
        text += f"{number_text(abs(coef[j]), 3)} {shown(names.features[j])}"
    more = len(terms) - _MOST_TERMS
    return (text or "0") + (f" + {more} more" if more > 0 else "")


# -- conditions of leaves ------------------------------------------------------------------------


def conditions_of_leaves(
    tree: TreeArrays, names: TreeNames
) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """Each leaf with its conditions: one for each feature of the path, in the order of the path.

    Nodes are visited in preorder, and `held` has the conditions of the current path: what a node
    changed is undone when its subtree is left.
    """
    held: dict[Any, tuple[Condition, ...]] = {}
    entered: list[tuple[int, Any, tuple[Condition, ...]]] = []
    of_child: dict[int, tuple[Any, Condition]] = {}
    for node in range(len(tree)):
        if node:
            while entered and entered[-1][0] != tree.parent[node]:
                _, key, before = entered.pop()
                _restore(held, key, before)
            key, condition = of_child.pop(node)
            before = held.get(key, ())
            entered.append((node, key, before))
            held[key] = _with(before, condition)
        if tree.kind[node] == LEAF:
            yield node, tuple(chain.from_iterable(held.values()))
            continue
        key = ("sum", node) if tree.kind[node] == OBLIQUE else int(tree.feature[node])
        children = tree.children_of(node).tolist()
        for child, condition in zip(children, branch_conditions(tree, names, node), strict=True):
            of_child[child] = key, condition


def _restore(held: dict[Any, Any], key: Any, before: tuple[Condition, ...]) -> None:
    if before:
        held[key] = before
    else:
        del held[key]


def _with(before: tuple[Condition, ...], condition: Condition) -> tuple[Condition, ...]:
    if not before:
        return (condition,)
    merged = _merged(before[-1], condition)
    return (*before, condition) if merged is None else (*before[:-1], merged)


def _merged(first: Condition, second: Condition) -> Condition | None:
    """Both as one condition; None if one condition cannot express them."""
    missing = first.missing * second.missing
    if first.kind != second.kind:  # a column split as a number and as categories
        return None
    if first.kind == "range":
        low, high = max(first.low, second.low), min(first.high, second.high)
        return replace(first, low=low, high=high, missing=missing)
    both = (first, second)
    seen = [set(one.seen) for one in both]
    if seen[0] != seen[1] and not {first.missing, second.missing} <= {0.0, 1.0}:
        return None  # a share of the rows with labels that only one has seen meets both
    passing = [set(one.categories) for one in both]
    labels = tuple(dict.fromkeys((*first.seen, *second.seen)))
    shared = tuple(
        label
        for label in labels
        if all(
            label in passing[k] or (label not in seen[k] and one.missing > 0.0)
            for k, one in enumerate(both)
        )
    )
    return replace(first, categories=shared, seen=labels, missing=missing)
