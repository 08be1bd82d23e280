"""A fitted tree as Python source that needs no library.

The source is a table of nodes and a loop over it. Nested ifs would read better for small trees, but
Python allows a hundred levels of them, and trees may be deeper. Every name and label is written as
an ASCII literal, so none can be executed as code.
"""

from __future__ import annotations

import keyword
import math
from typing import Any

import numpy as np

from margrove.grove.read import (
    TreeNames,
    branch_conditions,
    has_shared_rows,
    names_of,
    total_weight,
    tree_of,
)
from margrove.grove.serve import LEAF, OBLIQUE, THRESHOLD, TreeArrays

__all__ = ["export_python"]

_HEAD = '''\
"""A decision tree. {name}(row) takes a mapping from the names of features to values, or the values
in the order of {name}_FEATURES; None and NaN are missing."""

{name}_FEATURES = {features}
{name}_CATEGORIES = {categories}

# ("leaf", {leaf})
# ("number", feature, threshold, children, missing): value <= threshold is the first child
# ("label", feature, {{label: child}}, missing)
# ("sum", coefficients, threshold, children, missing): of all features, categories by their number
# missing is the child of missing and unknown values{shared}.
{name}_NODES = (
{nodes}
)


def {name}_child(node, values):
    """Where a row goes from a node; see above for missing values."""
    kind, by, answers = node[:3]
    if kind == "label":
        return answers.get(values[by], node[-1])
    if kind == "number":
        number = {name}_number(by, values)
    else:
        number = 0.0
        for feature, coefficient in enumerate(by):
            if coefficient:
                number += coefficient * {name}_number(feature, values)
    if number <= answers:
        return node[3][0]
    return node[3][1] if number == number else node[-1]


def {name}_values(row):
    if hasattr(row, "keys"):
        return [row[feature] for feature in {name}_FEATURES]
    if len(row) != len({name}_FEATURES):
        raise ValueError("a row has %d values, not %d" % (len({name}_FEATURES), len(row)))
    return row


def {name}_number(feature, values):
    value = values[feature]
    if feature in {name}_CATEGORIES:
        return {name}_CATEGORIES[feature].get(value, float("nan"))
    is_missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    return float("nan") if is_missing else float(value)

'''

_ONE_WAY = '''
def {name}(row):
    """The prediction for a row."""
    values = {name}_values(row)
    node = {name}_NODES[0]
    while node[0] != "leaf":
        node = {name}_NODES[{name}_child(node, values)]
    return node[1]
'''

_SHARED_WAYS = '''
def {name}(row):
    """The prediction for a row."""
    values = {name}_values(row)
    total = [0.0] * {n_values}
    waiting = [(0, 1.0)]
    while waiting:
        place, share = waiting.pop()
        node = {name}_NODES[place]
        if node[0] == "leaf":
            total = [before + share * value for before, value in zip(total, node[1])]
            continue
        found = {name}_child(node, values)
        if isinstance(found, tuple):
            waiting.extend((child, share * weight / of_all) for child, weight, of_all in found)
        else:
            waiting.append((found, share))
    return {answer}
'''


def export_python(model: Any, function_name: str = "predict") -> str:
    """The source of a Python function that predicts as a fitted tree does, and needs no library.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
        Labels and categories must be strings, bytes, numbers or booleans.
    function_name : str, default="predict"
        Other names in the source begin with it.

    Returns
    -------
    str
        ASCII. The function takes one row, by name or by position, and returns the label or number;
        of several outputs a tuple.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.grove.export.exports import export_python
    >>> model = DecisionTreeClassifier().fit([[1.0], [2.0], [4.0]], ["low", "low", "high"])
    >>> namespace = {}
    >>> exec(export_python(model), namespace)
    >>> namespace["predict"]({"x0": 3.5})
    'high'
    """
    is_name = isinstance(function_name, str) and function_name.isidentifier()
    if not is_name or not function_name.isascii() or keyword.iskeyword(function_name):
        raise ValueError(
            f"function_name must be a Python identifier in ASCII. Got {function_name!r}."
        )
    tree, names = tree_of(model), names_of(model)
    is_shared = has_shared_rows(tree)
    nodes = [_node(tree, names, node, is_shared) for node in range(len(tree))]
    head = _HEAD.format(
        name=function_name,
        features=_literal(names.features),
        categories=_literal(_numbers_of_categories(tree, names)),
        leaf="its values" if is_shared else "its prediction",
        shared=", or ((child, weight, weight of all), ...)" if is_shared else "",
        nodes="\n".join(f"    {node}," for node in nodes),
    )
    loop = _SHARED_WAYS if is_shared else _ONE_WAY
    n_values = tree.value.shape[1]
    return head + loop.format(name=function_name, n_values=n_values, answer=_answer(names))


def _node(tree: TreeArrays, names: TreeNames, node: int, is_shared: bool) -> str:
    kind = tree.kind[node]
    if kind == LEAF:
        value = tree.value[node].tolist()
        return _literal(("leaf", tuple(value) if is_shared else names.prediction(value)))
    children = tree.children_of(node).tolist()
    missing: Any
    if tree.missing_child[node] < 0:
        weights = tree.weight[children].tolist()
        if not any(weights):
            weights = [1.0] * len(weights)
        total = total_weight(weights)
        missing = tuple((child, w, total) for child, w in zip(children, weights, strict=True))
    else:
        missing = children[tree.missing_child[node]]
    threshold = float(tree.threshold[node])
    if kind == THRESHOLD:
        feature = int(tree.feature[node])
        return _literal(("number", feature, threshold, tuple(children), missing))
    if kind == OBLIQUE:
        coef = tuple(tree.coef[tree.set_start[node]].tolist())
        return _literal(("sum", coef, threshold, tuple(children), missing))
    child_of = {
        label: child
        for child, condition in zip(children, branch_conditions(tree, names, node), strict=True)
        for label in condition.categories
    }
    return _literal(("label", int(tree.feature[node]), child_of, missing))


def _numbers_of_categories(tree: TreeArrays, names: TreeNames) -> dict[int, dict[Any, int]]:
    """{feature: {label: number}} if the tree has oblique splits, else empty."""
    if not np.any(tree.kind == OBLIQUE):
        return {}
    return {
        j: {label: k for k, label in enumerate(labels)} for j, labels in names.categories.items()
    }


def _answer(names: TreeNames) -> str:
    """The expression, of the list `total`, that the function returns."""
    if not names.is_classifier:
        return "total[0]" if names.n_outputs == 1 else "tuple(total)"
    outputs, start = [], 0
    for labels in names.classes:
        stop = start + len(labels)
        best = f"max(range({start}, {stop}), key=total.__getitem__)"
        outputs.append(f"{_literal(labels)}[{best}{f' - {start}' if start else ''}]")
        start = stop
    return outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"


def _literal(value: Any) -> str:
    """A value as a Python literal; a TypeError if it has none."""
    if isinstance(value, tuple):
        inside = ", ".join(map(_literal, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or type(value) in (bool, int, float, str, bytes):
        return ascii(value)
    raise TypeError(
        f"The label {str(value)!a} is a {type(value).__name__}, which Python source cannot hold. "
        "Fit the tree to strings or numbers."
    )
