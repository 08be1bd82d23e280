"""Trees for the tree viewer: all nodes of a tree as a list, and the path of a row through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrove.ensemble.gradient import GradientBoosted
from margrove.facts.models import sketch_nodes, tree_of_round
from margrove.grove import DecisionTree
from margrove.grove.read import TreeNames, explain, names_of, number_text
from margrove.grove.serve import TreeArrays
from margrove.studio.content.scenes import Scene, StudioError, scene_from
from margrove.studio.pictures import fitted

__all__ = ["answer_follow", "answer_tree", "follow_of", "member_of", "tree_of"]

_MOST_NODES = 20_000
_DECIMALS = 3
_ROUNDING = 1e-12  # of the largest value of a tree: what is less is 0 but for rounding
_WITH_TREES = (
    "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier",
    "ExtraTreesRegressor", "BaggingClassifier", "BaggingRegressor", "AdaBoostClassifier",
    "AdaBoostRegressor",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Source:
    """A fitted model, and the names and rows that go with it."""

    model: Any
    features: tuple[str, ...]
    classes: tuple[str, ...]
    rows: np.ndarray
    table: dict[str, Any] | None


# -- answers ---------------------------------------------------------------------------------------


def answer_tree(source: Any, member: Any) -> dict[str, Any]:
    """A `Tree` of the protocol, of a scene or of a table of the lectures."""
    found = _source(source)
    return tree_of(
        found.model, member, features=found.features, classes=found.classes, table=found.table
    )


def answer_follow(source: Any, member: Any, row: Any) -> dict[str, Any]:
    """`Followed` of the protocol."""
    found = _source(source)
    if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < len(found.rows):
        raise StudioError(f"row must be a number from 0 to {len(found.rows) - 1}.")
    return {"nodes": follow_of(found.model, member, found.rows[row])}


def _source(given: Any) -> _Source:
    if not isinstance(given, dict):
        raise StudioError("A tree is of a scene, or of a table of the lectures.")
    if "scene" in given:
        scene = scene_from(given["scene"])
        model = fitted(scene).model
        return _Source(model, _features(scene), scene.classes, scene.x, None)
    if "lecture" not in given:
        raise StudioError("A tree is of a scene, or of a table of the lectures.")
    from margrove.studio.content.lectures import lecture_table

    lecture = lecture_table(given["lecture"])
    try:
        model = lecture.fitted(given.get("parameters"))
    except StudioError:
        raise
    except ValueError as error:
        raise StudioError(str(error)) from error
    return _Source(model, lecture.columns, (), lecture.rows, lecture.as_dict())


def _features(scene: Scene) -> tuple[str, ...]:
    return scene.features if scene.task == "classification" else scene.features[:1]


# -- trees -----------------------------------------------------------------------------------------


def tree_of(
    model: Any,
    member: Any = 0,
    *,
    features: Sequence[str] | None = None,
    classes: Sequence[str] = (),
    table: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A fitted tree, or one of the trees of an ensemble, node by node.

    Parameters
    ----------
    model : fitted tree, forest, bag or boosted trees
    member : int, default=0
        Which of its trees.
    features : sequence of str, optional
        Names of the columns, where the model does not know them.
    classes : sequence of str
        Names of the classes that a model of a scene calls 0, 1, ...; () for its own names.
    table : dict, optional
        Handed through.

    Returns
    -------
    dict
        A `Tree` of the protocol: nodes in preorder.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.studio.content.tree_views import tree_of
    >>> tree = DecisionTreeClassifier().fit([[1.0], [3.0]], [0, 1])
    >>> [(node["branch"], node["question"] or node["answer"])
    ...  for node in tree_of(tree, features=["age"], classes=["young", "old"])["nodes"]]
    [('', 'age <= 2.000'), ('yes', 'young'), ('no', 'old')]
    """
    tree, n_members = member_of(model, member)
    arrays: TreeArrays = tree.arrays_
    if len(arrays) > _MOST_NODES:
        raise StudioError(
            f"This tree has {len(arrays):,} nodes, and at most {_MOST_NODES:,} can be drawn. Limit "
            "its depth, or ask for more points in a leaf."
        )
    names = names_of(tree)
    if features is not None:
        names = replace(names, features=tuple(features))
    labels = _class_names(model, tree, classes)
    return {
        "members": n_members,
        "member": int(member),
        "classes": labels,
        "nodes": _nodes(arrays, names, labels, has_impurity=not isinstance(model, GradientBoosted)),
        "table": table,
    }


def member_of(model: Any, member: Any) -> tuple[DecisionTree, int]:
    """One tree of a model, and how many it has."""
    if isinstance(model, DecisionTree):
        _check_member(member, 1)
        return model, 1
    if isinstance(model, GradientBoosted):
        each = int(model.n_trees_per_iteration_)
        n = len(model) * each
        _check_member(member, n)
        return tree_of_round(model, member // each + 1, member % each), n
    if type(model).__name__ in _WITH_TREES:
        n = len(model.estimators_)
        _check_member(member, n)
        found = model.estimators_[member]
        if isinstance(found, DecisionTree):
            return found, n
        if isinstance(found, (list, tuple)):
            raise StudioError(
                "With more than two classes, a round of this algorithm has a tree for each class. "
                "Choose two classes, or the algorithm samme."
            )
    raise StudioError(
        f"{type(model).__name__} has no trees to look at. Choose a tree, a forest, bagging or "
        "boosting."
    )


def _check_member(member: Any, n: int) -> None:
    if isinstance(member, bool) or not isinstance(member, int) or not 0 <= member < n:
        raise StudioError(f"member must be a number from 0 to {n - 1}.")


def _class_names(model: Any, tree: Any, classes: Sequence[str]) -> list[str]:
    """In the order of the tree's shares; [] where it predicts numbers."""
    tree_classes = getattr(tree, "classes_", None)
    if tree_classes is None:
        return []
    labels = np.asarray(tree_classes).tolist()
    known = np.asarray(model.classes_).tolist()
    if not set(labels) <= set(known):  # a member that was taught numbers of the classes
        labels = [known[int(label)] for label in labels]
    return [classes[int(label)] if classes else str(label) for label in labels]


def _number(value: float, rounding: float) -> str:
    return number_text(0.0 if abs(value) <= rounding else value, _DECIMALS)


def _nodes(
    arrays: TreeArrays, names: TreeNames, labels: list[str], *, has_impurity: bool
) -> list[dict[str, Any]]:
    """All nodes of a tree as `TreeNode` of the protocol, in preorder."""
    rounding = _ROUNDING * float(np.abs(arrays.value).max(initial=0.0))
    found = []
    for node in sketch_nodes(arrays, names, np.arange(len(arrays)), decimals=_DECIMALS):
        value = list(node.shares[0] if labels else node.means)
        found.append(
            {
                "id": node.number,
                "parent": -1 if node.parent is None else node.parent,
                "branch": node.branch,
                "question": node.question,
                "answer": labels[_largest(value)] if labels else _number(value[0], rounding),
                "rows": node.samples,
                "impurity": node.impurity if has_impurity else None,
                "shares": value if labels else [],
            }
        )
    return found


def _largest(value: list[float]) -> int:
    return max(range(len(value)), key=value.__getitem__)


def follow_of(model: Any, member: Any, row: Any) -> list[int]:
    """The nodes that a row visits, from the root to its leaf."""
    tree, _ = member_of(model, member)
    names = getattr(tree, "feature_names_in_", None)
    cells = row if names is None else dict(zip(names, row, strict=True))
    return [0, *(step.child for step in explain(tree, cells).steps)]
