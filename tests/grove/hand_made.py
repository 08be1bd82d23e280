"""Trees made by hand or by chance, models that hold them, and slow, obviously right walks."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from margrove.grove.serve.tree_arrays import (
    LEAF,
    MULTIWAY,
    OBLIQUE,
    SUBSET,
    THRESHOLD,
    TreeArrays,
)

HOSTILE_NAMES = (
    'quo"ted',
    "it's; DROP TABLE rows; --",
    "two\nlines",
    "<script>alert(1)</script>",
    "back\\slash\\n",
    "\u202eflipped",
    "&lt;b&gt;",
    "\x1b[31mred",
    "'''\"\"\"",
    "{braces} %s",
)


def arrays(nodes, *, n_features, n_values=1):
    """TreeArrays from dicts in preorder: {"kind", "children", ...}; what is absent is made up."""
    n = len(nodes)
    children = [node.get("children", ()) for node in nodes]
    parent = np.full(n, -1, np.int64)
    for node, own in enumerate(children):
        parent[list(own)] = node
    n_children = np.array([len(own) for own in children], np.int32)
    words, branches, coef = [], [], []
    set_start, set_size = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for k, node in enumerate(nodes):
        if node["kind"] == OBLIQUE:
            set_start[k] = len(coef)
            coef.append(node["coef"])
        elif node["kind"] == MULTIWAY:
            set_start[k], set_size[k] = len(branches), len(node["branches"])
            branches.extend(node["branches"])
        elif node["kind"] == SUBSET:
            set_start[k], set_size[k] = len(words), len(node["branches"])
            own = [0] * (len(node["branches"]) // 32 + 1)
            for category, branch in enumerate(node["branches"]):
                own[category // 32] += (branch == 0) * 2 ** (category % 32)
            words.extend(own)
    return TreeArrays(
        kind=np.array([node["kind"] for node in nodes], np.int8),
        feature=np.array([node.get("feature", -1) for node in nodes], np.int32),
        threshold=np.array([node.get("threshold", np.nan) for node in nodes]),
        first_child=np.cumsum(n_children, dtype=np.int64) - n_children,
        n_children=n_children,
        children=np.array([child for own in children for child in own], np.int64),
        parent=parent,
        missing_child=np.array([node.get("missing", 0) for node in nodes], np.int32),
        set_start=set_start,
        set_size=set_size,
        words=np.array(words, np.uint32),
        branches=np.array(branches, np.int32),
        coef=np.array(coef, np.float64).reshape(-1, n_features),
        weight=np.array([node.get("weight", 1.0) for node in nodes], np.float64),
        n_samples=np.array([node.get("samples", 1) for node in nodes], np.int64),
        value=np.array([node.get("value", [0.0] * n_values) for node in nodes], np.float64),
        impurity=np.array([node.get("impurity", 0.5) for node in nodes]),
        decrease=np.array([node.get("decrease", 0.0) for node in nodes]),
    )


class _HandMade(BaseEstimator):
    def __init__(self, criterion="gini"):
        self.criterion = criterion

    def fit(self, X, y):
        raise NotImplementedError

    def _rows(self, X):
        number_of = {
            j: {label: c for c, label in enumerate(np.asarray(labels).tolist())}
            for j, labels in self.categories_.items()
        }
        rows = np.full((len(X), self.n_features_in_), np.nan)
        for i, row in enumerate(X):
            assert len(row) == self.n_features_in_
            for j, cell in enumerate(row):
                if cell is not None:
                    known = number_of.get(j)
                    rows[i, j] = cell if known is None else known.get(cell, np.nan)
        return rows


class HandMadeClassifier(ClassifierMixin, _HandMade):
    pass


class HandMadeRegressor(RegressorMixin, _HandMade):
    pass


def model_of(tree, *, n_features, names=None, categories=None, classes=None, n_outputs=1):
    """A model that holds a tree; `classes`: a list of labels for each output of a classifier."""
    model = HandMadeRegressor() if classes is None else HandMadeClassifier()
    model.arrays_ = tree
    model.n_features_in_ = n_features
    model.n_outputs_ = n_outputs if classes is None else len(classes)
    model.categories_ = {j: as_labels(own) for j, own in (categories or {}).items()}
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    if classes is not None:
        own = [np.array(labels) for labels in classes]
        model.classes_ = own[0] if len(own) == 1 else own
    return model


def as_labels(labels):
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found


# -- trees by chance -----------------------------------------------------------------------------

LABELS = ("sunny", "it's", 'say "rain"', "a, b", "\u202e\n", "", "<i>")


def random_model(seed, *, kinds, shared=False, outputs="classes", n_splits=12, n_features=5):
    """Columns 0, 1 and 2 are numbers, the others categories."""
    rng = np.random.default_rng(seed)
    categories = {j: list(LABELS[: 4 + j % 4]) for j in range(3, n_features)}
    classes = {
        "classes": [["no", "it's", "<yes>"]],
        "two": [["a", "b"], [10, 20, 30]],
        "number": None,
        "numbers": None,
    }[outputs]
    n_outputs = 2 if outputs in ("two", "numbers") else 1
    nodes = _grown(rng, kinds, shared, n_splits, n_features, categories)
    for node in nodes:
        node["value"] = _random_value(rng, classes, n_outputs)
        node["samples"] = int(rng.integers(1, 50))
    _weigh(rng, nodes)
    names = rng.permutation(HOSTILE_NAMES)[:n_features]
    tree = arrays(nodes, n_features=n_features)
    return model_of(tree, n_features=n_features, names=names, categories=categories,
                    classes=classes, n_outputs=n_outputs)  # fmt: skip


def _grown(rng, kinds, shared, n_splits, n_features, categories):
    """Split a leaf drawn by chance, so often; then number the nodes in preorder."""
    below = {0: []}
    asks = {}
    for _ in range(n_splits):
        leaf = int(rng.choice([node for node, own in below.items() if not own]))
        kind = int(rng.choice(kinds))
        asks[leaf] = _random_question(rng, kind, shared, n_features, categories)
        for _ in range(asks[leaf].pop("n_children")):
            below[leaf].append(len(below))
            below[len(below)] = []
    order, waiting = [], [0]
    while waiting:
        order.append(waiting.pop())
        waiting.extend(reversed(below[order[-1]]))
    number = {node: k for k, node in enumerate(order)}
    return [
        {**asks.get(node, {"kind": LEAF}), "children": [number[own] for own in below[node]]}
        for node in order
    ]


def _random_question(rng, kind, shared, n_features, categories):
    n_children = 2 if kind != MULTIWAY else int(rng.integers(1, 4))
    asked = {"kind": kind, "n_children": n_children}
    asked["missing"] = int(rng.integers(-1 if shared else 0, n_children))
    if kind == OBLIQUE:
        coef = rng.integers(-2, 3, size=n_features).astype(float)
        coef[3:] = 0.0
        return asked | {"coef": coef, "threshold": float(rng.integers(-8, 9)) / 2}
    if kind == THRESHOLD:
        threshold = np.inf if rng.random() < 0.1 else float(rng.integers(0, 9)) / 4
        return asked | {"feature": int(rng.integers(0, 3)), "threshold": threshold}
    feature = int(rng.integers(3, n_features))
    size = int(rng.integers(1, len(categories[feature]) + 1))  # of late ones the node knows nothing
    first = -1 if kind == MULTIWAY else 0
    return asked | {
        "feature": feature,
        "branches": rng.integers(first, n_children, size=size).tolist(),
    }


def _random_value(rng, classes, n_outputs):
    if classes is None:
        return rng.normal(size=n_outputs)
    counts = [rng.integers(0, 5, size=len(own)) for own in classes]
    for own in counts:
        own[rng.integers(len(own))] += 1  # none is empty
    return np.concatenate([own / own.sum() for own in counts])


def _weigh(rng, nodes):
    """A node weighs what its children weigh."""
    for node in reversed(nodes):
        own = node["children"]
        node["weight"] = sum(nodes[c]["weight"] for c in own) if own else float(rng.integers(1, 9))


def random_rows(seed, model, n):
    """As people hand them in: labels, None where missing, now and then a label nobody knows."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        row = [float(rng.integers(-1, 10)) / 4 for _ in range(3)]
        for j in range(3, model.n_features_in_):
            row.append([*model.categories_[j].tolist(), "nobody knows me"][
                rng.integers(0, len(model.categories_[j]) + 1)])  # fmt: skip
        rows.append([None if rng.random() < 0.15 else cell for cell in row])
    return rows


# -- slow walks ----------------------------------------------------------------------------------


def branch_of_row(tree, node, row):
    """The branch, or None where the value is missing or a category unknown."""
    kind = tree.kind[node]
    if kind == OBLIQUE:
        total = sum(c * x for c, x in zip(tree.coef[tree.set_start[node]], row, strict=True) if c)
        return None if np.isnan(total) else int(total > tree.threshold[node])
    value = row[tree.feature[node]]
    if np.isnan(value):
        return None
    if kind == THRESHOLD:
        return int(value > tree.threshold[node])
    for branch in range(tree.n_children[node]):
        if int(value) in tree.categories_of(node, branch).tolist():
            return branch
    return None


def shares_of_leaves(tree, row, node=0, share=1.0):
    """{leaf: share of the row}, by recursion."""
    if tree.kind[node] == LEAF:
        return {node: share}
    children = tree.children_of(node)
    branch = branch_of_row(tree, node, row)
    if branch is None:
        branch = tree.missing_child[node]
    if branch >= 0:
        return shares_of_leaves(tree, row, children[branch], share)
    found = {}
    for child in children:
        part = share * tree.weight[child] / tree.weight[node]
        found |= shares_of_leaves(tree, row, child, part)
    return found


def value_of_row(tree, row):
    return sum(share * tree.value[leaf] for leaf, share in shares_of_leaves(tree, row).items())


def prediction_of(model, value):
    """As `predict` has it, of one row."""
    if isinstance(model, HandMadeRegressor):
        return float(value[0]) if len(value) == 1 else tuple(value.tolist())
    classes = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    parts = np.split(value, np.cumsum([len(own) for own in classes])[:-1])
    found = [own[np.argmax(part)].item() for own, part in zip(classes, parts, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def chain(depth, *, n_features=1, left_is_deep=False):
    """x <= 0, else x <= 1, else x <= 2 ...; or the mirror image of it. Two classes in turn."""
    nodes = []
    for level in range(depth):
        down, leaf = 2 * level + 2, 2 * level + 1
        threshold = float(depth - level if left_is_deep else level)
        feature = level % n_features
        nodes.append({"kind": THRESHOLD, "feature": feature, "threshold": threshold,
                      "children": [leaf, down], "value": [0.5, 0.5],
                      "weight": float(depth + 1 - level)})  # fmt: skip
        nodes.append({"kind": LEAF, "value": [1.0, 0.0] if level % 2 else [0.0, 1.0]})
    nodes.append({"kind": LEAF, "value": [0.25, 0.75]})
    if left_is_deep:  # preorder: all questions first, then the leaves from the deepest up
        questions = nodes[:-1:2]
        leaves = [nodes[-1], *nodes[-2::-2]]
        for level, node in enumerate(questions):
            node["children"] = [level + 1, 2 * depth - level]
        nodes = questions + leaves
    tree = arrays(nodes, n_features=n_features)
    return model_of(tree, n_features=n_features, classes=[["a", "b"]])
