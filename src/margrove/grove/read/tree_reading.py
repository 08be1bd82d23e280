"""A fitted tree as value objects: its nodes, its rules, its regions.

Everything here reads `arrays_` and the names of a fitted tree, and loops over node numbers, so a
tree may have any depth. Texts have names as `conditions.shown` writes them; other fields have
names, numbers and labels unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from margrove.grove.read.conditions import (
    Condition,
    TreeNames,
    branch_conditions,
    conditions_of_leaves,
    names_of,
    prediction_text,
    shown,
    tree_of,
)
from margrove.grove.read.reasons import Explanation, Path, Step, explain
from margrove.grove.serve import LEAF, THRESHOLD, TreeArrays

__all__ = [
    "KIND_NAMES",
    "Condition",
    "Explanation",
    "NodeReading",
    "Path",
    "Question",
    "Region",
    "Rule",
    "Step",
    "TreeReading",
    "branch_texts",
    "explain",
    "leaf_probabilities",
    "read_tree",
    "regions",
    "rules",
    "split_text",
]

KIND_NAMES = ("leaf", "threshold", "subset", "multiway", "oblique")  # by the numbers of TreeArrays


# -- nodes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """The split of a node.

    kind         "threshold", "subset", "multiway" or "oblique"
    feature      the name; for an oblique split the weighted sum, as text
    number       the column; None for a weighted sum
    conditions   the condition of each branch
    children     the node that each branch leads to
    """

    kind: str
    feature: str
    number: int | None
    conditions: tuple[Condition, ...]
    children: tuple[int, ...]

    @property
    def text(self) -> str:
        """The condition of the first branch; for a multiway split the feature."""
        return split_text(self.conditions, is_multiway=self.kind == "multiway")


def split_text(
    conditions: Sequence[Condition], *, is_multiway: bool, decimals: int | None = None
) -> str:
    """A split in words: the condition of its first branch; for a multiway split the feature."""
    first = conditions[0]
    return shown(first.feature) if is_multiway else first.in_words(decimals=decimals)


def branch_texts(
    conditions: Sequence[Condition], *, is_multiway: bool, most_labels: int | None = None
) -> list[str]:
    """The texts of the edges below a split: "yes" and "no", or the labels of each branch.

    Of more than `most_labels` labels, the first ones and dots.
    """
    if not is_multiway:
        return ["yes", "no"]
    texts = []
    for condition in conditions:
        labels = [shown(label) for label in condition.categories[:most_labels]]
        rest = [] if len(labels) == len(condition.categories) else ["..."]
        texts.append(", ".join(labels + rest))
    return texts


@dataclass(frozen=True)
class NodeReading:
    """A node of a fitted tree.

    parent       None for the root
    question     its split; None for a leaf
    samples      the number of training samples in the node, and their `weight`
    value        class shares, output after output, or means
    prediction   the label or number that the node would predict; a tuple for several outputs
    """

    number: int
    depth: int
    parent: int | None
    question: Question | None
    samples: int
    weight: float
    impurity: float
    decrease: float
    value: tuple[float, ...]
    prediction: Any
    names: TreeNames = field(repr=False, compare=False)

    @property
    def is_leaf(self) -> bool:
        return self.question is None

    @property
    def shares(self) -> Any:
        """{class: share}; a tuple of them for several outputs, None for a regressor."""
        return self.names.shares(self.value)


@dataclass(frozen=True)
class TreeReading:
    """A fitted tree: its nodes in preorder, and the names of features and classes.

    outputs      the classes of each output; () for a regressor
    categories   {feature name: its labels}
    """

    nodes: tuple[NodeReading, ...]
    feature_names: tuple[str, ...]
    categories: dict[str, tuple[Any, ...]]
    outputs: tuple[tuple[Any, ...], ...]
    n_outputs: int
    criterion: str

    @property
    def leaves(self) -> tuple[NodeReading, ...]:
        return tuple(node for node in self.nodes if node.is_leaf)

    @property
    def depth(self) -> int:
        return max(node.depth for node in self.nodes)


def read_tree(model: Any) -> TreeReading:
    """A fitted tree as value objects.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor

    Returns
    -------
    TreeReading

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.grove.read.tree_reading import read_tree
    >>> model = DecisionTreeClassifier().fit([[1.0], [2.0], [4.0]], ["low", "low", "high"])
    >>> root, *leaves = read_tree(model).nodes
    >>> root.question.text, [leaf.prediction for leaf in leaves]
    ('x0 <= 3', ['low', 'high'])
    """
    tree, names = tree_of(model), names_of(model)
    depth = tree.depth.tolist()
    nodes = tuple(_node(tree, names, number, depth[number]) for number in range(len(tree)))
    return TreeReading(
        nodes=nodes,
        feature_names=names.features,
        categories={names.features[j]: labels for j, labels in names.categories.items()},
        outputs=names.classes,
        n_outputs=names.n_outputs,
        criterion=str(model.criterion),
    )


def _node(tree: TreeArrays, names: TreeNames, number: int, depth: int) -> NodeReading:
    value = tuple(tree.value[number].tolist())
    return NodeReading(
        number=number,
        depth=depth,
        parent=None if number == 0 else int(tree.parent[number]),
        question=None if tree.kind[number] == LEAF else _question(tree, names, number),
        samples=int(tree.n_samples[number]),
        weight=float(tree.weight[number]),
        impurity=float(tree.impurity[number]),
        decrease=float(tree.decrease[number]),
        value=value,
        prediction=names.prediction(value),
        names=names,
    )


def _question(tree: TreeArrays, names: TreeNames, number: int) -> Question:
    conditions = branch_conditions(tree, names, number)
    return Question(
        kind=KIND_NAMES[tree.kind[number]],
        feature=conditions[0].feature,
        number=conditions[0].number,
        conditions=conditions,
        children=tuple(tree.children_of(number).tolist()),
    )


def leaf_probabilities(model: Any) -> dict[int, Any]:
    """The shares of the classes in each leaf of a classifier.

    Returns
    -------
    dict
        {leaf number: {class: share}}; with several outputs, a tuple of such shares for each leaf.
    """
    tree, names = tree_of(model), names_of(model)
    if not names.is_classifier:
        raise TypeError(
            "leaf_probabilities takes a classifier. Got a regressor, whose leaves have values: use "
            "[leaf.value for leaf in read_tree(model).leaves]."
        )
    leaves = np.flatnonzero(tree.kind == LEAF)
    values = tree.value[leaves].tolist()
    return {leaf: names.shares(value) for leaf, value in zip(leaves.tolist(), values, strict=True)}


# -- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A leaf as a rule: if all conditions are met, then the prediction.

    share        of the predicted class among the rows of the leaf; None for a regressor
    samples      training rows in the leaf
    coverage     share of the leaf in the weight of all training rows
    """

    leaf: int
    conditions: tuple[Condition, ...]
    prediction: Any
    share: Any
    samples: int
    coverage: float

    @property
    def text(self) -> str:
        conditions = " and ".join(condition.text for condition in self.conditions)
        return f"{conditions or 'always'}: {prediction_text(self.prediction)}"


def rules(model: Any) -> list[Rule]:
    """The leaves of a fitted tree as rules, from left to right.

    Conditions on the same feature are merged: x <= 5 and x <= 3 become x <= 3.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor

    Returns
    -------
    list of Rule
        Every row meets the conditions of exactly one rule, unless rows with missing values take all
        branches of a node (C4.5): then it meets several, each with a share.

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> from margrove.grove.read.tree_reading import rules
    >>> model = DecisionTreeRegressor().fit([[1.0], [2.0], [4.0]], [0.0, 3.0, 5.0])
    >>> [rule.text for rule in rules(model)]
    ['x0 <= 1.5: 0', '1.5 < x0 <= 3: 3', 'x0 > 3: 5']
    """
    tree, names = tree_of(model), names_of(model)
    return [
        _rule(tree, names, leaf, conditions)
        for leaf, conditions in conditions_of_leaves(tree, names)
    ]


def _rule(tree: TreeArrays, names: TreeNames, leaf: int, conditions: tuple[Condition, ...]) -> Rule:
    value = tree.value[leaf].tolist()
    total = float(tree.weight[0])
    return Rule(
        leaf=leaf,
        conditions=conditions,
        prediction=names.prediction(value),
        share=names.share(value),
        samples=int(tree.n_samples[leaf]),
        coverage=float(tree.weight[leaf]) / total if total > 0.0 else 0.0,
    )


# -- regions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Region:
    """The box of a leaf: low[j] < x[j] <= high[j] for each feature j."""

    leaf: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    value: tuple[float, ...]
    prediction: Any


def regions(model: Any) -> list[Region]:
    """The boxes into which a tree of thresholds divides space: rectangles if it has two features.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
        All its splits must be thresholds.

    Returns
    -------
    list of Region
        They do not overlap and fill the whole space. A leaf that only missing values reach has
        none.

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> from margrove.grove.read.tree_reading import regions
    >>> model = DecisionTreeRegressor().fit([[1.0, 0.0], [3.0, 0.0]], [0.0, 5.0])
    >>> [(region.low, region.high, region.prediction) for region in regions(model)]
    [((-inf, -inf), (2.0, inf), 0.0), ((2.0, -inf), (inf, inf), 5.0)]
    """
    tree, names = tree_of(model), names_of(model)
    others = set(np.unique(tree.kind).tolist()) - {LEAF, THRESHOLD}
    if others:
        raise ValueError(
            "regions takes trees whose splits are all thresholds; this one has "
            f"{', '.join(KIND_NAMES[kind] for kind in sorted(others))} splits. Use rules(model)."
        )
    found = []
    for leaf, conditions in conditions_of_leaves(tree, names):
        low, high = np.full(len(names.features), -np.inf), np.full(len(names.features), np.inf)
        for condition in conditions:
            low[condition.number], high[condition.number] = condition.low, condition.high
        if np.all(low < high):
            value = tuple(tree.value[leaf].tolist())
            box = tuple(low.tolist()), tuple(high.tolist())
            found.append(Region(leaf, *box, value, names.prediction(value)))
    return found
