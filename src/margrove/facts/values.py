"""Facts as frozen dataclasses: what all estimators have, and what a tree has.

Outline                        any fitted estimator
  Facts                        a margin machine; see `machine_values`
  TreeFacts                    a decision tree: size, questions, leaves, importances
  ForestFacts, BaggingFacts    many members; see `models.forests`
SupportKind                    training rows that support a model in the same way
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from margrove.facts.plain_values import Plain

if TYPE_CHECKING:
    from margrove.grove.read import NodeReading, TreeReading

__all__ = ["Outline", "SupportKind", "TreeFacts"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Outline(Plain):
    """Facts about any fitted estimator, of this library or another.

    Attributes
    ----------
    estimator : str
        The name of its class.
    task : str
        "classification", "regression", "outlier detection", or "" for anything else.
    classes : ndarray or None
    n_features : int
    feature_names : tuple of str or None
    is_pairwise : bool
        Whether X is a Gram matrix rather than features.
    needs_positive : bool
        Whether negative features are refused.
    """

    estimator: str
    task: str
    classes: np.ndarray | None
    n_features: int
    feature_names: tuple[str, ...] | None
    is_pairwise: bool
    needs_positive: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportKind(Plain):
    """Support vectors of one kind: its name, how many there are, and their rows."""

    name: str
    count: int
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeFacts(Outline):
    """Facts about DecisionTreeClassifier and DecisionTreeRegressor.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; anything but numbers and strings in words.
    criterion : str
    split : "binary" or "multiway"
    n_outputs : int
    n_nodes, n_leaves, depth : int
        `depth` is the number of questions on the longest way.
    n_samples : int
        Training rows of positive weight; a whole weight counts as so many rows.
    root_question : str
        What is asked first, in words; "" where the root is a leaf.
    importances : ndarray of shape (n_features,)
        What each feature's questions did to lower the impurity, as shares of 1.
    features_used : tuple of str
        Those that are asked, the most important first; of equals, the first column.
    leaves : ndarray of int
        The numbers of the leaves, from left to right.
    leaf_samples : ndarray of int
    leaf_values : ndarray of shape (n_leaves, n_values)
        Shares of the classes in each leaf, output after output, or means.
    training_error : float or None
        From what the nodes remember: the share of the training weight whose class is not that of
        its leaf; of a regressor, the criterion of the leaves. A row with missing values that went
        to several leaves counts in each, with its share. None under monotonic constraints, where
        leaves do not say what their rows are like.
    training_error_name : str
        What it is, in words.
    tree : TreeReading
        Node by node; see `margrove.grove.read.tree_reading`.
    """

    # What pictures ask of any facts, and a tree has none of.
    kinds: ClassVar[tuple[SupportKind, ...]] = ()
    support_vectors: ClassVar[None] = None
    n_support: ClassVar[int] = 0
    margin_level: ClassVar[None] = None
    proof: ClassVar[None] = None

    parameters: dict[str, Any]
    criterion: str
    split: str
    n_outputs: int
    n_nodes: int
    n_leaves: int
    depth: int
    n_samples: int
    root_question: str
    importances: np.ndarray
    features_used: tuple[str, ...]
    leaves: np.ndarray
    leaf_samples: np.ndarray
    leaf_values: np.ndarray
    training_error: float | None
    training_error_name: str
    tree: TreeReading

    def as_dict(self) -> dict[str, Any]:
        """All fields as what JSON can hold; the tree as a flat list of its nodes."""
        nodes: Any = [_node_as_dict(node) for node in self.tree.nodes]
        return Plain.as_dict(dataclasses.replace(self, tree=nodes))


def _node_as_dict(node: NodeReading) -> dict[str, Any]:
    asked = node.question
    return {
        "number": node.number,
        "depth": node.depth,
        "parent": node.parent,
        "question": None if asked is None else asked.text,
        "kind": "leaf" if asked is None else asked.kind,
        "feature": None if asked is None else asked.feature,
        "children": () if asked is None else asked.children,
        "answers": () if asked is None else [condition.text for condition in asked.conditions],
        "samples": node.samples,
        "weight": node.weight,
        "impurity": node.impurity,
        "decrease": node.decrease,
        "value": node.value,
        "prediction": node.prediction,
    }
