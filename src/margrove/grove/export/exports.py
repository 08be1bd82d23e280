"""A fitted tree as text and as Graphviz source.

Python, SQL and JSON have a file each, and are imported here.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from margrove.grove.export.python_source import export_python
from margrove.grove.export.sql import export_sql
from margrove.grove.export.tree_json import export_json, tree_as_dict, tree_from_json
from margrove.grove.read import (
    Condition,
    TreeNames,
    branch_conditions,
    branch_texts,
    names_of,
    number_text,
    prediction_text,
    shown,
    split_text,
    tree_of,
)
from margrove.grove.serve import LEAF, MULTIWAY, TreeArrays

__all__ = [
    "export_dot",
    "export_json",
    "export_python",
    "export_sql",
    "export_text",
    "tree_as_dict",
    "tree_from_json",
]

_MOST_LABELS = 5  # of the categories of a branch
_MOST_BARS = 40  # deeper lines begin with their depth: indented, a chain takes quadratic space


def export_text(
    model: Any, *, decimals: int = 3, max_depth: int | None = None, show_missing: bool = False
) -> str:
    """A fitted tree as indented text.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    decimals : int, default=3
        Digits after the point; numbers that would read as zero get as many significant digits.
    max_depth : int, optional
        Deeper branches are left out, and a line says so. By default all are shown.
    show_missing : bool, default=False
        Whether to show which branch missing values take.

    Returns
    -------
    str
        A line for each branch and each leaf. Below depth 40 lines are not indented further but
        begin with their depth.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.grove.export.exports import export_text
    >>> model = DecisionTreeClassifier().fit([[1.0], [2.0], [4.0]], ["low", "low", "high"])
    >>> print(export_text(model, decimals=1), end="")
    |--- x0 <= 3.0
    |   |--- class: low, share 1.0, 2 samples
    |--- x0 > 3.0
    |   |--- class: high, share 1.0, 1 samples
    """
    _check_whole("decimals", decimals)
    tree, names = tree_of(model), names_of(model)
    lines = []
    for node, depth, condition, hidden in _walk(tree, names, max_depth):
        if condition is not None:
            words = condition.in_words(decimals=decimals, show_missing=show_missing)
            lines.append(_indent(depth - 1) + words)
        if tree.kind[node] == LEAF:
            lines.append(_indent(depth) + _leaf_text(tree, names, node, decimals))
        elif hidden:
            lines.append(f"{_indent(depth)}truncated branch of depth {hidden}")
    return "\n".join(lines) + "\n"


def _indent(depth: int) -> str:
    label = f"[{depth}] " if depth > _MOST_BARS else ""
    return "|   " * min(depth, _MOST_BARS) + label + "|--- "


def _leaf_text(tree: TreeArrays, names: TreeNames, node: int, decimals: int) -> str:
    value = tree.value[node].tolist()
    samples = f"{int(tree.n_samples[node])} samples"
    predicted = prediction_text(names.prediction(value), decimals)
    if not names.is_classifier:
        return f"value: {predicted}, {samples}"
    share = prediction_text(names.share(value), decimals)
    return f"class: {predicted}, share {share}, {samples}"


def export_dot(model: Any, *, decimals: int = 3, max_depth: int | None = None) -> str:
    """A fitted tree in the language of Graphviz.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    decimals : int, default=3
        As for `export_text`.
    max_depth : int, optional
        Deeper branches are left out and shown as three dots. By default all are shown.

    Returns
    -------
    str
        Source for `dot -Tsvg`.

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> from margrove.grove.export.exports import export_dot
    >>> model = DecisionTreeRegressor().fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 5.0])
    >>> print(export_dot(model).splitlines()[-2])
    0 -> 2 [label="no"];
    """
    _check_whole("decimals", decimals)
    tree, names = tree_of(model), names_of(model)
    criterion = str(model.criterion)
    lines = ["digraph tree {", 'node [shape=box, fontname="sans-serif"];',
             'edge [fontname="sans-serif"];']  # fmt: skip
    for node, _, condition, hidden in _walk(tree, names, max_depth):
        words = _node_lines(tree, names, node, criterion, decimals)
        lines.append(f"{node} [label={_dot_text(words)}];")
        if condition is not None:
            parent = int(tree.parent[node])
            label = _branch_label(tree, node, condition)
            lines.append(f"{parent} -> {node} [label={_dot_text([label])}];")
        if hidden:
            lines.append(f'hidden{node} [label="...", shape=plaintext];')
            lines.append(f"{node} -> hidden{node};")
    return "\n".join([*lines, "}"]) + "\n"


def _node_lines(
    tree: TreeArrays, names: TreeNames, node: int, criterion: str, decimals: int
) -> list[str]:
    lines = []
    if tree.kind[node] != LEAF:
        conditions = branch_conditions(tree, names, node)
        is_multiway = tree.kind[node] == MULTIWAY
        lines.append(split_text(conditions, is_multiway=is_multiway, decimals=decimals))
    lines.append(f"{shown(criterion)} = {number_text(float(tree.impurity[node]), decimals)}")
    lines.append(f"{int(tree.n_samples[node])} samples")
    prediction = names.prediction(tree.value[node].tolist())
    return [*lines, prediction_text(prediction, decimals)]


def _branch_label(tree: TreeArrays, child: int, condition: Condition) -> str:
    """The text beside an edge: yes or no, or the categories."""
    parent = int(tree.parent[child])
    if tree.kind[parent] != MULTIWAY:
        return "yes" if tree.children_of(parent)[0] == child else "no"
    return branch_texts([condition], is_multiway=True, most_labels=_MOST_LABELS)[0]


def _dot_text(lines: list[str]) -> str:
    """A quoted string of DOT, with its special characters escaped."""
    escaped = [
        line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines
    ]
    return '"' + "\\n".join(escaped) + '"'


# -- nodes in preorder ---------------------------------------------------------------------------


def _walk(
    tree: TreeArrays, names: TreeNames, max_depth: int | None
) -> Iterator[tuple[int, int, Condition | None, int]]:
    """Nodes in preorder: number, depth, the condition of the branch that leads to the node (None
    for the root), and how many levels below it are left out."""
    if max_depth is not None:
        _check_whole("max_depth", max_depth)
    depth, ends = tree.depth, tree.ends
    conditions: dict[int, Condition] = {}
    node = 0
    while node < len(tree):
        is_cut = max_depth is not None and depth[node] >= max_depth and tree.kind[node] != LEAF
        hidden = int(np.max(depth[node : ends[node]]) - depth[node]) if is_cut else 0
        yield node, int(depth[node]), conditions.pop(node, None), hidden
        if is_cut:
            node = int(ends[node])
            continue
        if tree.kind[node] != LEAF:
            children = tree.children_of(node).tolist()
            conditions.update(zip(children, branch_conditions(tree, names, node), strict=True))
        node += 1


def _check_whole(name: str, number: Any) -> None:
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{name} must be a whole number, at least 0. Got {number!r}.")
