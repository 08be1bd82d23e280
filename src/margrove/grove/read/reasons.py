"""Why a fitted tree predicts what it does for a row: what was asked, and what each answer changed.

The value of a node is what the tree would say there. A step from a node to a child changes it, and
the changes on the way sum up to the value of the leaf less that of the root. Where a row with a
missing value takes all branches of a node (C4.5), each step counts with its share of the row.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.grove.read.conditions import (
    Condition,
    TreeNames,
    branch_conditions,
    branch_shares,
    names_of,
    prediction_text,
    shown,
    tree_of,
)
from margrove.grove.serve import LEAF, TreeArrays, branch_of, questions_of

__all__ = ["Explanation", "Path", "Step", "explain"]


@dataclass(frozen=True)
class Step:
    """From a node to a child.

    condition      what the row met
    share          how much of the row went this way: 1 unless its missing values were shared out
    contribution   share times (value of the child - value of the node)
    """

    node: int
    child: int
    condition: Condition
    share: float
    contribution: tuple[float, ...]


@dataclass(frozen=True)
class Path:
    """A way from the root to a leaf, and how much of the row went there."""

    steps: tuple[Step, ...]
    leaf: int
    share: float

    @property
    def text(self) -> str:
        return " and ".join(step.condition.text for step in self.steps) or "always"


@dataclass(frozen=True)
class Explanation:
    """Why a row got its prediction.

    base            value of the root: what the tree says of nobody in particular
    value           shares of the classes, output after output, or means, for this row
    steps           all steps, those of a subtree together
    contributions   {feature: how much its questions changed the value}; they sum up to
                    value - base, within rounding
    """

    base: tuple[float, ...]
    value: tuple[float, ...]
    prediction: Any
    steps: tuple[Step, ...]
    contributions: dict[str, tuple[float, ...]]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The way to each leaf: one, unless missing values took all branches of a node (C4.5)."""
        return tuple(_paths(self.steps))

    @property
    def text(self) -> str:
        """A line for each step."""
        lines = [f"{prediction_text(self.prediction)}"]
        for path in self.paths:
            lines.append("because" if path.share == 1.0 else f"with share {path.share:.3g} because")
            lines += [f"  {step.condition.text}" for step in path.steps] or ["  of all rows"]
        return "\n".join(lines)


def _paths(steps: tuple[Step, ...]) -> Iterator[Path]:
    """Steps are in preorder: one that does not begin where the last ended leaves its subtree."""
    if not steps:
        yield Path((), 0, 1.0)
    walked: list[Step] = []
    for place, step in enumerate(steps):
        while walked and walked[-1].child != step.node:
            walked.pop()
        walked.append(step)
        is_last = place + 1 == len(steps) or steps[place + 1].node != step.child
        if is_last:
            yield Path(tuple(walked), step.child, step.share)


def explain(model: Any, x: Any) -> Explanation:
    """Why a fitted tree predicts what it does for a row.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
    x : array-like of shape (n_features,), mapping from feature names to values, or one row
        A row of an array, a dict, a row of a dataframe, or a table that has one row.

    Returns
    -------
    Explanation
        What the row was asked on its way, and what each answer changed.

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> from margrove.grove.read.tree_reading import explain
    >>> model = DecisionTreeRegressor().fit([[1.0, 7.0], [2.0, 8.0], [4.0, 9.0]], [0.0, 3.0, 6.0])
    >>> told = explain(model, [2.0, 8.0])
    >>> told.prediction, [step.condition.text for step in told.steps]
    (3.0, ['x0 > 1.5', 'x0 <= 3'])
    >>> told.base, told.contributions
    ((3.0,), {'x0': (0.0,)})
    """
    tree, names = tree_of(model), names_of(model)
    row = _one_row(model, x, names)
    steps: list[Step] = []
    leaves: list[tuple[int, float]] = []
    waiting: list[tuple[int, Step | None]] = [(0, None)]
    while waiting:
        node, step = waiting.pop()
        share = 1.0 if step is None else step.share
        if step is not None:
            steps.append(step)
        if tree.kind[node] == LEAF:
            leaves.append((node, share))
        else:
            onward = _steps_from(tree, names, node, row, share)
            waiting.extend((own.child, own) for own in reversed(onward))
    value = np.zeros(tree.value.shape[1])
    for leaf, share in reversed(leaves):  # in the order of `tree_walk.values_of`
        value += share * tree.value[leaf]
    return Explanation(
        base=tuple(tree.value[0].tolist()),
        value=tuple(value.tolist()),
        prediction=names.prediction(value.tolist()),
        steps=tuple(steps),
        contributions=_contributions(steps),
    )


def _steps_from(
    tree: TreeArrays, names: TreeNames, node: int, row: np.ndarray, share: float
) -> list[Step]:
    """The step that a row takes from a node, or one for each branch among which it is shared."""
    conditions = branch_conditions(tree, names, node)
    children = tree.children_of(node).tolist()
    branch = int(branch_of(row, node, questions_of(tree)))
    parts = {branch: share}
    if branch < 0:
        taken = int(tree.missing_child[node])
        shares = branch_shares(tree, node, share)
        parts = dict(enumerate(shares)) if taken < 0 else {taken: share}
    steps = []
    for b, part in parts.items():
        change = part * (tree.value[children[b]] - tree.value[node])
        met = conditions[b] if branch >= 0 else _without_value(conditions[b], row)
        steps.append(Step(node, children[b], met, part, tuple(change.tolist())))
    return steps


def _without_value(condition: Condition, row: np.ndarray) -> Condition:
    is_there = condition.number is not None and not np.isnan(row[condition.number])
    kind = "unknown" if is_there else "missing"
    return Condition(condition.feature, condition.number, kind, missing=condition.missing)


def _contributions(steps: list[Step]) -> dict[str, tuple[float, ...]]:
    """Steps are added up by feature, the first to be asked first."""
    found: dict[str, np.ndarray] = {}
    for step in steps:
        change = np.asarray(step.contribution)
        if step.condition.feature in found:
            found[step.condition.feature] += change
        else:
            found[step.condition.feature] = change
    return {feature: tuple(change.tolist()) for feature, change in found.items()}


def _one_row(model: Any, x: Any, names: TreeNames) -> np.ndarray:
    """The row in the form in which trees walk: float64 (d,)."""
    if _is_table(x):
        rows = model._rows(x)
    elif hasattr(x, "keys"):
        absent = [name for name in names.features if name not in x]
        if absent:
            raise ValueError(f"x has no value for {shown(absent[0])}; use None if it is missing.")
        with warnings.catch_warnings():  # columns were matched by name just now
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            rows = model._rows([[x[name] for name in names.features]])
    else:
        rows = model._rows([list(x)])
    if len(rows) != 1:
        raise ValueError(f"x must be one row. Got {len(rows)}; of a table pass one, such as X[:1].")
    row: np.ndarray = rows[0]
    if np.isinf(row).any():
        name = shown(names.features[int(np.argmax(np.isinf(row)))])
        raise ValueError(f"x is infinite at {name}; use None if it is missing, or a large number.")
    return row


def _is_table(x: Any) -> bool:
    if hasattr(x, "shape"):
        return len(x.shape) > 1
    return isinstance(x, (list, tuple)) and bool(x) and isinstance(x[0], (list, tuple, np.ndarray))
