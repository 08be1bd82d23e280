"""Why a fitted tree predicts what it does for a row: its path, and what each split contributed.

The value of a node is what the tree would predict there. A step from a node to a child changes it,
and the changes on a path sum to the value of the leaf minus that of the root. If a row with a
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
    """A step of a row from a node to a child.

    condition      the condition of the branch, which the row meets
    share          the share of the row that takes this branch: 1 unless a missing value takes all
    contribution   share times (value of the child - value of the node)
    """

    node: int
    child: int
    condition: Condition
    share: float
    contribution: tuple[float, ...]


@dataclass(frozen=True)
class Path:
    """The path from the root to a leaf, and the share of the row that takes it."""

    steps: tuple[Step, ...]
    leaf: int
    share: float

    @property
    def text(self) -> str:
        return " and ".join(step.condition.text for step in self.steps) or "always"


@dataclass(frozen=True)
class Explanation:
    """Why a row got its prediction.

    base            value of the root: the prediction if nothing is known
    value           class shares, output after output, or means, for this row
    steps           all steps, in preorder
    contributions   {feature: how much the splits by it changed the value}; they sum to
                    value - base, up to rounding
    """

    base: tuple[float, ...]
    value: tuple[float, ...]
    prediction: Any
    steps: tuple[Step, ...]
    contributions: dict[str, tuple[float, ...]]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The path to each leaf: one, unless missing values took all branches of a node (C4.5)."""
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
    """The paths of steps in preorder: a step that does not start where the last one ended starts
    another path, from a node above."""
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
        The path of the row, and what each step changed.

    Examples
    --------
    >>> from margrove import DecisionTreeRegressor
    >>> from margrove.grove.read.tree_reading import explain
    >>> model = DecisionTreeRegressor().fit([[1.0, 7.0], [2.0, 8.0], [4.0, 9.0]], [0.0, 3.0, 6.0])
    >>> found = explain(model, [2.0, 8.0])
    >>> found.prediction, [step.condition.text for step in found.steps]
    (3.0, ['x0 > 1.5', 'x0 <= 3'])
    >>> found.base, found.contributions
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
            following = _steps_from(tree, names, node, row, share)
            waiting.extend((step.child, step) for step in reversed(following))
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
    """The step that a row takes from a node; several if it takes all branches."""
    conditions = branch_conditions(tree, names, node)
    children = tree.children_of(node).tolist()
    branch = int(branch_of(row, node, questions_of(tree)))
    shares = {branch: share}
    if branch < 0:
        taken = int(tree.missing_child[node])
        of_branches = branch_shares(tree, node, share)
        shares = dict(enumerate(of_branches)) if taken < 0 else {taken: share}
    steps = []
    for b, of_row in shares.items():
        change = of_row * (tree.value[children[b]] - tree.value[node])
        met = conditions[b] if branch >= 0 else _without_value(conditions[b], row)
        steps.append(Step(node, children[b], met, of_row, tuple(change.tolist())))
    return steps


def _without_value(condition: Condition, row: np.ndarray) -> Condition:
    is_there = condition.number is not None and not np.isnan(row[condition.number])
    kind = "unknown" if is_there else "missing"
    return Condition(condition.feature, condition.number, kind, missing=condition.missing)


def _contributions(steps: list[Step]) -> dict[str, tuple[float, ...]]:
    """The sums of the steps' contributions by feature, in the order of the path."""
    found: dict[str, np.ndarray] = {}
    for step in steps:
        change = np.asarray(step.contribution)
        if step.condition.feature in found:
            found[step.condition.feature] += change
        else:
            found[step.condition.feature] = change
    return {feature: tuple(change.tolist()) for feature, change in found.items()}


def _one_row(model: Any, x: Any, names: TreeNames) -> np.ndarray:
    """The row as trees read it: float64 (d,)."""
    if _is_table(x):
        rows = model._rows(x)
    elif hasattr(x, "keys"):
        absent = [name for name in names.features if name not in x]
        if absent:
            raise ValueError(f"x has no value for {shown(absent[0])}; use None if it is missing.")
        with warnings.catch_warnings():  # the names were matched above
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            rows = model._rows([[x[name] for name in names.features]])
    else:
        rows = model._rows([list(x)])
    if len(rows) != 1:
        raise ValueError(f"x must be one row. Got {len(rows)} rows. Pass one of them, as in X[:1].")
    row: np.ndarray = rows[0]
    if np.isinf(row).any():
        name = shown(names.features[int(np.argmax(np.isinf(row)))])
        raise ValueError(f"x is infinite at {name}; use None if it is missing, or a large number.")
    return row


def _is_table(x: Any) -> bool:
    if hasattr(x, "shape"):
        return len(x.shape) > 1
    return isinstance(x, (list, tuple)) and bool(x) and isinstance(x[0], (list, tuple, np.ndarray))
