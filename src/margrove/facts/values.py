"""Facts as frozen dataclasses: those that all estimators have, and those of a tree.

Outline                          any fitted estimator
  Facts                          a margin machine; see `machine_values`
  FactsWithoutSupport            trees and ensembles
    TreeFacts                    a decision tree: size, splits, leaves, importances
    ForestFacts, BaggingFacts    many members; see `models.forests`
SupportKind                      training rows that are support vectors of one kind

`outline` makes an Outline; `estimator_fields` are the fields that `describe` starts from.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from margrove.facts.plain_values import Plain, frozen, in_words

if TYPE_CHECKING:
    from margrove.grove.read import NodeReading, TreeReading

__all__ = [
    "FactsWithoutSupport",
    "Given",
    "Outline",
    "SupportKind",
    "TreeFacts",
    "estimator_fields",
    "outline",
]

Given = tuple[Any, Any, Any]  # X, y and sample_weight of `fit`

_TASKS = {
    "classifier": "classification",
    "regressor": "regression",
    "outlier_detector": "outlier detection",
}


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


def outline(model: Any) -> Outline:
    """Task, classes and features of any fitted estimator under scikit-learn's API.

    Parameters
    ----------
    model : fitted estimator

    Returns
    -------
    Outline

    Examples
    --------
    >>> from margrove import SVR, facts
    >>> facts.outline(SVR().fit([[0.0], [1.0]], [0.0, 1.0])).task
    'regression'
    """
    check_is_fitted(model)
    return Outline(**_outline_fields(model, getattr(model, "classes_", None)))


def _outline_fields(model: Any, classes: Any) -> dict[str, Any]:
    tags = get_tags(model)
    names = getattr(model, "feature_names_in_", None)
    return {
        "estimator": type(model).__name__,
        "task": _TASKS.get(tags.estimator_type, ""),
        "classes": frozen(classes),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else tuple(str(name) for name in names),
        "is_pairwise": bool(tags.input_tags.pairwise),
        "needs_positive": bool(tags.input_tags.positive_only),
    }


def estimator_fields(model: Any) -> dict[str, Any]:
    """The fields of `Outline`, and the parameters as given."""
    classes = getattr(model, "classes_", None)
    if isinstance(classes, list):  # several outputs, each with an array of another length
        of_outputs, classes = classes, np.empty(len(classes), dtype=object)
        classes[:] = [frozen(labels) for labels in of_outputs]
    parameters = model.get_params(deep=False)
    return _outline_fields(model, classes) | {
        "parameters": {name: in_words(value) for name, value in parameters.items()}
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportKind(Plain):
    """Support vectors of one kind: its name, how many there are, and their rows."""

    name: str
    count: int
    rows: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class FactsWithoutSupport(Outline):
    """Facts about models without support vectors; pictures of any facts read these class variables.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; values that are not numbers or strings as text.
    """

    kinds: ClassVar[tuple[SupportKind, ...]] = ()
    support_vectors: ClassVar[None] = None
    n_support: ClassVar[int] = 0
    margin_level: ClassVar[None] = None
    proof: ClassVar[None] = None

    parameters: dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeFacts(FactsWithoutSupport):
    """Facts about DecisionTreeClassifier and DecisionTreeRegressor.

    Attributes
    ----------
    parameters : dict
        As given to the estimator; values that are not numbers or strings as text.
    criterion : str
    split : "binary" or "multiway"
    n_outputs : int
    n_nodes, n_leaves, depth : int
        `depth` is the number of splits on the longest path.
    n_samples : int
        Training samples; a row with a whole weight counts as so many samples.
    root_question : str
        The split of the root in words; "" if the root is a leaf.
    importances : ndarray of shape (n_features,)
        The decrease of the impurity by the splits of each feature, as shares of 1.
    features_used : tuple of str
        The features of splits, the most important first; if tied, the first column.
    leaves : ndarray of int
        The numbers of the leaves, from left to right.
    leaf_samples : ndarray of int
    leaf_values : ndarray of shape (n_leaves, n_values)
        Class shares of each leaf, output after output, or means.
    training_error : float or None
        Computed from the nodes: the share of the training weight whose class is not that of its
        leaf; for a regressor, the criterion of the leaves. A row with missing values that reached
        several leaves counts in each, with its share. None with monotonic constraints, where values
        of leaves are not those of their rows.
    training_error_name : str
        What it is, in words.
    tree : TreeReading
        Node by node; see `margrove.grove.read.tree_reading`.
    """

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
        """All fields as types that JSON has; the tree as a flat list of its nodes."""
        nodes: Any = [_node_as_dict(node) for node in self.tree.nodes]
        return Plain.as_dict(dataclasses.replace(self, tree=nodes))


def _node_as_dict(node: NodeReading) -> dict[str, Any]:
    split = node.question
    return {
        "number": node.number,
        "depth": node.depth,
        "parent": node.parent,
        "question": None if split is None else split.text,
        "kind": "leaf" if split is None else split.kind,
        "feature": None if split is None else split.feature,
        "children": () if split is None else split.children,
        "answers": () if split is None else [condition.text for condition in split.conditions],
        "samples": node.samples,
        "weight": node.weight,
        "impurity": node.impurity,
        "decrease": node.decrease,
        "value": node.value,
        "prediction": node.prediction,
    }
