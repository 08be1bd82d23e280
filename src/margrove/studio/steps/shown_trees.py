"""Trees for step modes, in the format of the tree viewer."""

from __future__ import annotations

from typing import Any

from margrove.studio.content import LectureTable, Scene, member_of, tree_of

__all__ = ["rule_of", "tree_of_scene", "tree_of_table"]

_MOST_NODES = 2_000  # the picture changes with every step


def tree_of_scene(model: Any, scene: Scene, member: int = 0) -> dict[str, Any] | None:
    """A tree that was grown on points, or a member of an ensemble; None if it is too large."""
    if len(member_of(model, member)[0].arrays_) > _MOST_NODES:
        return None
    features = scene.features if scene.task == "classification" else scene.features[:1]
    return tree_of(model, member, features=features, classes=scene.classes)


def tree_of_table(model: Any, table: LectureTable) -> dict[str, Any]:
    """A tree that was grown on a table of the lectures."""
    return tree_of(model, features=table.columns, table=table.as_dict())


def rule_of(tree: dict[str, Any] | None) -> str:
    """A stump as a sentence; for a larger tree, its size."""
    if tree is None:
        return "a large tree"
    nodes = tree["nodes"]
    if len(nodes) == 3 and nodes[0]["question"]:
        return f"{nodes[0]['question']}: {nodes[1]['answer']}, else {nodes[2]['answer']}"
    if len(nodes) == 1:
        return f"always {nodes[0]['answer']}"
    return f"a tree of {sum(not node['question'] for node in nodes)} leaves"
