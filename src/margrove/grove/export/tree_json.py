"""A fitted tree as plain values and as JSON, and back to arrays.

    format, version   what this is
    task              "classification" or "regression"
    features          their names
    categories        {number of a feature: labels}
    outputs           the classes of each output; for a regressor null for each
    nodes             in preorder, a flat list: parsers limit how deep lists may nest

A node has weight, samples, value, impurity and decrease, and its kind:

    "leaf"
    "threshold"   feature, threshold: value <= threshold is the first child; null: every known value
    "subset"      feature, branches: the branch of each category, by its number; two branches
    "multiway"    feature, branches: likewise, -1 for a category without training rows
    "oblique"     coef, threshold: the sum of coef times values <= threshold is the first child

All but leaves have children (numbers of nodes) and missing: the branch of missing and unknown
values, or -1 where they take all branches, each with its share (C4.5). `tree_from_json` checks all
of this.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.grove.read import KIND_NAMES, branches_of_categories, names_of, tree_of
from margrove.grove.serve import LEAF, MULTIWAY, OBLIQUE, SUBSET, THRESHOLD, TreeArrays

__all__ = ["FORMAT", "VERSION", "export_json", "tree_as_dict", "tree_from_json"]

FORMAT = "margrove tree"
VERSION = 1  # goes up when an older reader would misread what is written

_FACTS = ("weight", "samples", "value", "impurity", "decrease")
_FIELDS = {
    LEAF: (),
    THRESHOLD: ("children", "missing", "feature", "threshold"),
    SUBSET: ("children", "missing", "feature", "branches"),
    MULTIWAY: ("children", "missing", "feature", "branches"),
    OBLIQUE: ("children", "missing", "coef", "threshold"),
}


# -- writing -------------------------------------------------------------------------------------


def export_json(model: Any, *, indent: int | None = None) -> str:
    """A fitted tree as JSON, in ASCII; see `tree_as_dict`.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    indent : int, optional
        As for `json.dumps`.

    Returns
    -------
    str
        `tree_from_json` makes the same arrays from it.

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> from margrove.grove.export.exports import export_json, tree_from_json
    >>> model = DecisionTreeRegressor().fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 5.0])
    >>> tree_from_json(export_json(model)).threshold[0]
    np.float64(3.0)
    """
    return json.dumps(tree_as_dict(model), indent=indent, allow_nan=False)


def tree_as_dict(model: Any) -> dict[str, Any]:
    """A fitted tree as lists, dicts, numbers and strings.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor

    Returns
    -------
    dict
        With "format", "version", "task", "features", "categories", "outputs" and "nodes", a flat
        list in preorder.
    """
    tree, names = tree_of(model), names_of(model)
    classes: Any = names.classes or [None] * names.n_outputs
    return {
        "format": FORMAT,
        "version": VERSION,
        "task": "classification" if names.is_classifier else "regression",
        "features": list(names.features),
        "categories": {str(j): _plain(labels) for j, labels in names.categories.items()},
        "outputs": [None if labels is None else _plain(labels) for labels in classes],
        "nodes": [_node_as_dict(tree, node) for node in range(len(tree))],
    }


def _plain(labels: tuple[Any, ...]) -> list[Any]:
    """The labels; those that JSON has no type for become text."""
    return [
        label
        if isinstance(label, (bool, int, str))
        or (isinstance(label, float) and math.isfinite(label))
        else str(label)
        for label in labels
    ]


def _node_as_dict(tree: TreeArrays, node: int) -> dict[str, Any]:
    kind = int(tree.kind[node])
    found: dict[str, Any] = {"kind": KIND_NAMES[kind]}
    if kind != LEAF:
        found["children"] = tree.children_of(node).tolist()
        found["missing"] = int(tree.missing_child[node])
    if kind == OBLIQUE:
        found["coef"] = tree.coef[tree.set_start[node]].tolist()
    elif kind != LEAF:
        found["feature"] = int(tree.feature[node])
    if kind in (THRESHOLD, OBLIQUE):
        threshold = float(tree.threshold[node])
        found["threshold"] = None if threshold == math.inf else threshold
    elif kind != LEAF:
        found["branches"] = branches_of_categories(tree, node)
    return found | {
        "weight": float(tree.weight[node]),
        "samples": int(tree.n_samples[node]),
        "value": tree.value[node].tolist(),
        "impurity": float(tree.impurity[node]),
        "decrease": float(tree.decrease[node]),
    }


# -- reading -------------------------------------------------------------------------------------


def tree_from_json(source: str | bytes | Mapping[str, Any]) -> TreeArrays:
    """The arrays of a tree, from the output of `export_json` or `tree_as_dict`.

    Parameters
    ----------
    source : str, bytes or mapping
        Every part of it is checked; nothing in it is imported or run.

    Returns
    -------
    TreeArrays
        Sets of categories may be stored in another order, which changes no prediction.

    Raises
    ------
    ValueError
        If it is not a tree; the message names the node.
    """
    found = _parsed(source) if isinstance(source, (str, bytes, bytearray)) else source
    head = _checked_head(found)
    nodes = [_checked_node(node, k, head) for k, node in enumerate(found["nodes"])]
    children = [node.get("children", ()) for node in nodes]
    parent = _parents(children)
    return _arrays(nodes, children, parent, head)


def _parsed(source: str | bytes | bytearray) -> Any:
    try:
        return json.loads(source, object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("This JSON is nested too deeply for a tree of margrove.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"This is not JSON: {error}.") from None


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("This JSON has the same key twice in one object.")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"This JSON contains {name}, which is not a number of JSON.")


@dataclass(frozen=True)
class _Head:
    """What the nodes are checked against.

    n_categories   {feature: how many labels it has}
    n_classes      of each output; 1 for each of a regressor
    """

    n_nodes: int
    n_features: int
    n_categories: dict[int, int]
    n_classes: list[int]
    is_classifier: bool


def _checked_head(found: Any) -> _Head:
    _require(isinstance(found, Mapping) and found.get("format") == FORMAT,
             f'This is not a tree of margrove: "format" must be {FORMAT!r}.')  # fmt: skip
    version = found.get("version")
    _require(_is_whole(version, 1), f'"version" must be a whole number. Got {version!a}.')
    _require(
        version <= VERSION,
        f"This tree has format {version}; this margrove reads formats up to {VERSION}. Use a newer "
        "margrove.",
    )
    task = found.get("task")
    is_task = task in ("classification", "regression")
    _require(is_task, '"task" must be "classification" or "regression".')
    features = found.get("features")
    _require(_is_list(features, str), '"features" must be a list of names, at least one.')
    outputs = found.get("outputs")
    of_outputs = list if task == "classification" else type(None)
    _require(
        _is_list(outputs, of_outputs) and all(labels is None or labels for labels in outputs),
        '"outputs" must list the classes of each output, or null for each of a regressor.',
    )
    _require(_is_list(found.get("nodes"), dict), '"nodes" must be a list of objects, at least one.')
    categories = found.get("categories")
    numbers = set(map(str, range(len(features))))
    is_sound = isinstance(categories, Mapping) and all(
        j in numbers and isinstance(labels, list) for j, labels in categories.items()
    )
    _require(is_sound, '"categories" must map numbers of features to lists of labels.')
    return _Head(
        n_nodes=len(found["nodes"]),
        n_features=len(features),
        n_categories={int(j): len(labels) for j, labels in categories.items()},
        n_classes=[1 if labels is None else len(labels) for labels in outputs],
        is_classifier=task == "classification",
    )


def _checked_node(node: dict[str, Any], number: int, head: _Head) -> dict[str, Any]:
    """The node, with its kind as a number."""
    place = f"Node {number}"
    name = node.get("kind")
    _require(name in KIND_NAMES, f'{place}: "kind" must be one of {", ".join(KIND_NAMES)}.')
    kind = KIND_NAMES.index(name)
    wanted = {"kind", *_FACTS, *_FIELDS[kind]}
    _require(set(node) == wanted, f"{place}: a {name} has {', '.join(sorted(wanted))}.")
    _check_facts(node, place, head)
    if kind != LEAF:
        _check_children(node, place, number, kind, head)
        _check_question(node, place, kind, head)
    return {**node, "kind": kind}


def _check_facts(node: dict[str, Any], place: str, head: _Head) -> None:
    for name in ("weight", "impurity", "decrease"):
        _require(_is_number(node[name]), f'{place}: "{name}" must be a finite number.')
    _require(node["weight"] >= 0, f'{place}: "weight" must not be negative.')
    is_count = _is_whole(node["samples"], 0, 2**63 - 1)
    _require(is_count, f'{place}: "samples" must be a whole number.')
    value, n_values = node["value"], sum(head.n_classes)
    is_value = isinstance(value, list) and len(value) == n_values and all(map(_is_number, value))
    _require(is_value, f'{place}: "value" must be a list of {n_values} finite numbers.')
    if not head.is_classifier:
        return
    start = 0
    for n_classes in head.n_classes:
        shares = value[start : start + n_classes]
        is_sound = min(shares) >= 0.0 and abs(math.fsum(shares) - 1.0) < 1e-6
        _require(is_sound, f'{place}: "value" must be shares of classes that sum up to 1.')
        start += n_classes


def _check_children(node: dict[str, Any], place: str, number: int, kind: int, head: _Head) -> None:
    children = node["children"]
    is_sound = _is_list(children, int) and all(
        _is_whole(child, number + 1, head.n_nodes - 1) for child in children
    )
    _require(is_sound, f'{place}: "children" must be numbers of nodes after it.')
    n_wanted = len(children) if kind == MULTIWAY else 2
    _require(len(children) == n_wanted, f"{place}: it must have two children.")
    is_branch = _is_whole(node["missing"], -1, len(children) - 1)
    _require(is_branch, f'{place}: "missing" must be the number of a branch or -1.')


def _check_question(node: dict[str, Any], place: str, kind: int, head: _Head) -> None:
    if kind == OBLIQUE:
        coef = node["coef"]
        is_sound = isinstance(coef, list) and len(coef) == head.n_features
        _require(
            is_sound and all(map(_is_number, coef)),
            f'{place}: "coef" must be a list of {head.n_features} finite numbers.',
        )
    else:
        is_feature = _is_whole(node["feature"], 0, head.n_features - 1)
        _require(is_feature, f'{place}: "feature" must be from 0 to {head.n_features - 1}.')
    if kind in (THRESHOLD, OBLIQUE):
        is_sound = _is_number(node["threshold"]) or (
            kind == THRESHOLD and node["threshold"] is None
        )
        _require(is_sound, f'{place}: "threshold" must be a finite number.')
        return
    branches, first = node["branches"], -1 if kind == MULTIWAY else 0
    last = len(node["children"]) - 1
    is_sound = isinstance(branches, list) and all(_is_whole(b, first, last) for b in branches)
    _require(is_sound, f'{place}: "branches" must be numbers from {first} to {last}.')
    n_known = head.n_categories.get(node["feature"], len(branches))
    is_sound = len(branches) <= n_known
    _require(is_sound, f'{place}: "branches" is longer than the {n_known} labels of its feature.')


def _parents(children: list[Any]) -> np.ndarray:
    """int64 (N,): the parent of each node; raise unless nodes are numbered in preorder.

    The first child of a node follows the node, and every other child the subtree before it.
    """
    n = len(children)
    parent = np.full(n, -1, np.int64)
    for node, below in enumerate(children):
        for child in below:
            _require(parent[child] < 0, f"Node {child} is the child of two nodes.")
            parent[child] = node
    ends = list(range(1, n + 1))
    for node in range(n - 1, -1, -1):
        for child in children[node]:
            is_next = child == ends[node]
            _require(is_next, f"Node {node}: its subtree must be a run of numbers after it.")
            ends[node] = ends[child]
    _require(ends[0] == n, f"Node {ends[0]} is the child of no node.")
    return parent


def _arrays(
    nodes: list[dict[str, Any]], children: list[Any], parent: np.ndarray, head: _Head
) -> TreeArrays:
    n = len(nodes)
    kind = np.array([node["kind"] for node in nodes], np.int8)
    n_children = np.array(list(map(len, children)), np.int32)
    words, branches, coef = [], [], []  # type: ignore[var-annotated]
    set_start, set_size = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for k, node in enumerate(nodes):
        if kind[k] == OBLIQUE:
            set_start[k] = len(coef)
            coef.append(node["coef"])
            continue
        if kind[k] not in (SUBSET, MULTIWAY):
            continue
        set_size[k] = len(node["branches"])
        pool = words if kind[k] == SUBSET else branches
        set_start[k] = len(pool)
        pool.extend(_bits(node["branches"]) if kind[k] == SUBSET else node["branches"])
    thresholds = [node.get("threshold", math.nan) for node in nodes]
    return TreeArrays(
        kind=kind,
        feature=np.array([node.get("feature", -1) for node in nodes], np.int32),
        threshold=np.array([math.inf if t is None else t for t in thresholds], np.float64),
        first_child=np.cumsum(n_children, dtype=np.int64) - n_children,
        n_children=n_children,
        children=np.array([child for below in children for child in below], np.int64),
        parent=parent,
        missing_child=np.array([node.get("missing", 0) for node in nodes], np.int32),
        set_start=set_start,
        set_size=set_size,
        words=np.array(words, np.uint32),
        branches=np.array(branches, np.int32),
        coef=np.array(coef, np.float64).reshape(len(coef), head.n_features),
        weight=np.array([node["weight"] for node in nodes], np.float64),
        n_samples=np.array([node["samples"] for node in nodes], np.int64),
        value=np.array([node["value"] for node in nodes], np.float64),
        impurity=np.array([node["impurity"] for node in nodes], np.float64),
        decrease=np.array([node["decrease"] for node in nodes], np.float64),
    )


def _bits(branches: list[int]) -> list[int]:
    """Words of 32 bits; where bit c % 32 of word c // 32 is set, category c takes branch 0."""
    words = [0] * (len(branches) // 32 + 1)
    for category, branch in enumerate(branches):
        words[category // 32] |= (1 - branch) << (category % 32)
    return words


def _require(is_sound: Any, message: str) -> None:
    if not is_sound:
        raise ValueError(message)


def _is_whole(number: Any, low: int, high: int = 2**31 - 1) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and low <= number <= high


def _is_number(number: Any) -> bool:
    """Whether it is a number that is finite as float64."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return False
    return abs(number) <= 1.7976931348623157e308


def _is_list(found: Any, kind: type) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(one, kind) for one in found)
