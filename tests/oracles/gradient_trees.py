"""Trees of histogram boosting, split by split, as slowly and plainly as it gets.

Gains are fractions of whole numbers: nothing is rounded. Under monotonic constraints, where values
are held between bounds, they are floating point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from margrove.ensemble.gradient.hist.binning.tables import COLUMNS_OF_A_BLOCK

BEST_FIRST, LEVEL_BY_LEVEL = "best first", "level by level"
_SMOOTH = 10.0  # hessian by which the mean gradients of categories are drawn to 0
_BARELY = 1.0 + 1e-12


# -- tables --


def codes_of(table) -> np.ndarray:
    """The codes of a `GradientTable`, (rows, features), from its columns."""
    codes = np.empty((table.n_rows, len(table.features)), np.int64)
    for place, feature in enumerate(table.features):
        column = table.columns[place]
        if column >= 0:
            own = table.by_columns[column].astype(np.int64) - table.bytes_at[place]
            is_there = (own >= 0) & (own <= table.n_codes[place])
            codes[:, feature] = np.where(is_there, own, table.omitted[place])
            continue
        k = place - int(table.places_at[-1])
        entries = slice(table.list_starts[k], table.list_starts[k + 1])
        codes[:, feature] = table.omitted[place]
        codes[table.list_rows[entries], feature] = table.list_codes[entries]
    return codes


def codes_by_rows(table) -> np.ndarray:
    """The same, from its rows."""
    meaning = meaning_of_cells(table)
    codes = np.empty((table.n_rows, len(table.features)), np.int64)
    codes[:, table.features] = table.omitted
    blocks = np.arange(table.by_rows.shape[1])
    blocks -= blocks % COLUMNS_OF_A_BLOCK
    for row in range(table.n_rows):
        cells = (table.cells_at[blocks] + table.by_rows[row]).tolist()
        if len(table.list_starts) > 1:
            cells += table.entries[table.starts[row] : table.starts[row + 1]].tolist()
        for cell in cells:
            if cell in meaning:
                feature, code = meaning[cell]
                codes[row, feature] = code
    return codes


def meaning_of_cells(table) -> dict[int, tuple[int, int]]:
    """Feature and code of each cell that has some."""
    return {
        int(table.first[place]) + code: (int(feature), code)
        for place, feature in enumerate(table.features)
        for code in range(int(table.n_codes[place]) + 1)
    }


# -- trees --


@dataclass(frozen=True)
class Rules:
    """min_worth: samples of a node whose share of its hessian a child must have; signs are by
    feature."""

    l2: float = 0.0
    min_samples: int = 1
    min_hessian: float = 0.0
    min_worth: float = 0.0
    max_depth: int = 2**31
    max_leaves: int = 2**31
    order: str = BEST_FIRST
    signs: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Problem:
    """Codes (n, d) of which n_codes[j] is "missing"; whole numbers g and h of one sample of each
    row, which stands for `times`; and what 1 of these is worth."""

    codes: np.ndarray
    n_codes: np.ndarray
    is_category: np.ndarray
    g: list[int]
    h: list[int]
    times: list[int]
    units: tuple[float, float]
    rules: Rules


@dataclass(frozen=True)
class Split:
    """`at` is the last code that goes left, or the set of all that do."""

    feature: int
    at: int | frozenset[int]
    missing_left: bool
    left: tuple[int, ...]


@dataclass
class Node:
    rows: list[int]
    depth: int
    low: float = -math.inf
    high: float = math.inf
    split: Split | None = None
    gain: float = 0.0
    children: list[int] = field(default_factory=list)


def whole_numbers(values, bits) -> tuple[list[int], float]:
    """Numbers of at most so many bits, and what 1 is worth: a power of two."""
    largest = max(abs(float(own)) for own in values)
    power = 0 if largest == 0.0 else min(bits - math.frexp(largest)[1], 1000)
    return [round(float(own) * 2.0**power) for own in values], 2.0**-power


def grow(problem: Problem) -> list[Node]:
    """All nodes, numbered as they come into being."""
    rules = problem.rules
    nodes = [Node(list(range(len(problem.g))), 0)]
    _find_split(problem, nodes[0])
    n_leaves = 1
    while n_leaves < rules.max_leaves:
        waiting = [k for k, node in enumerate(nodes) if node.split and not node.children]
        if not waiting:
            break
        if rules.order == BEST_FIRST:
            number = max(waiting, key=lambda k: (nodes[k].gain, -k))
        else:
            number = min(waiting)
        _part(problem, nodes, nodes[number])
        n_leaves += 1
    return nodes


def value_of(problem: Problem, rows, low, high) -> float:
    """The Newton step of a node, from its whole numbers."""
    g, h = _sums(problem, rows)[:2]
    total = h * problem.units[1] + problem.rules.l2
    return min(max(-(g * problem.units[0]) / total if total > 0.0 else 0.0, low), high)


def _part(problem: Problem, nodes: list[Node], node: Node) -> None:
    is_left = set(node.split.left)
    sides = (
        [own for own in node.rows if own in is_left],
        [own for own in node.rows if own not in is_left],
    )
    children = [Node(rows, node.depth + 1, node.low, node.high) for rows in sides]
    signs = problem.rules.signs
    sign = 0 if signs is None else signs[node.split.feature]
    if sign:
        values = [value_of(problem, own.rows, node.low, node.high) for own in children]
        lower, higher = children if sign > 0 else children[::-1]
        lower.high = higher.low = 0.5 * values[0] + 0.5 * values[1]
    for child in children:
        _find_split(problem, child)
        node.children.append(len(nodes))
        nodes.append(child)


def _find_split(problem: Problem, node: Node) -> None:
    """Of equals the first: by the lowest feature, what is missing going right, at the lowest."""
    if node.depth >= problem.rules.max_depth:
        return
    base = _worth(problem, node.rows, node.low, node.high)
    most = base * (Fraction(_BARELY) if isinstance(base, Fraction) else _BARELY)
    for split in splits_of(problem, node.rows):
        worth = _worth_of_split(problem, node, split)
        if worth is not None and worth > most:
            most, node.split = worth, split
            node.gain = float(worth - base)


def splits_of(problem: Problem, rows) -> Iterator[Split]:
    for feature in range(problem.codes.shape[1]):
        if problem.is_category[feature]:
            yield from _splits_of_categories(problem, rows, feature)
            continue
        own = problem.codes[:, feature]
        missing = int(problem.n_codes[feature])
        lacks = {row for row in rows if own[row] == missing}
        for missing_left in (False, True) if lacks else (False,):
            for code in range(missing):
                left = tuple(r for r in rows if own[r] <= code or (missing_left and r in lacks))
                goes_left = missing_left if lacks else _is_most(problem, left, rows)
                yield Split(feature, code, goes_left, left)


def _splits_of_categories(problem: Problem, rows, feature: int) -> Iterator[Split]:
    """The first ones by mean gradient go left; what is missing is a category."""
    own = problem.codes[:, feature]
    missing = int(problem.n_codes[feature])
    means = {}
    for code in sorted({int(own[row]) for row in rows}):
        g, h, _ = _sums(problem, [row for row in rows if own[row] == code])
        means[code] = g / (h + _SMOOTH / problem.units[1])
    order = sorted(means, key=means.__getitem__)
    for last in range(1, len(order)):
        chosen = frozenset(order[:last])
        left = tuple(row for row in rows if int(own[row]) in chosen)
        is_unseen = missing not in means
        goes_left = _is_most(problem, left, rows) if is_unseen else missing in chosen
        yield Split(feature, chosen, goes_left, left)


def _is_most(problem: Problem, left, rows) -> bool:
    return 2 * _sums(problem, left)[2] > _sums(problem, rows)[2]


def _sums(problem: Problem, rows) -> tuple[int, int, int]:
    times = problem.times
    return (sum(times[row] * problem.g[row] for row in rows),
            sum(times[row] * problem.h[row] for row in rows),
            sum(times[row] for row in rows))  # fmt: skip


def _worth_of_split(problem: Problem, node: Node, split: Split) -> Fraction | float | None:
    """None if it is not allowed."""
    rules = problem.rules
    is_left = set(split.left)
    right = [row for row in node.rows if row not in is_left]
    _, all_h, samples = _sums(problem, node.rows)
    least = max(rules.min_hessian / problem.units[1], rules.min_worth * all_h / samples)
    for side in (split.left, right):
        _, h, count = _sums(problem, side)
        if count < rules.min_samples or h < least or h <= 0:
            return None
    if rules.signs is not None:
        sign = rules.signs[split.feature]
        values = [value_of(problem, own, node.low, node.high) for own in (split.left, right)]
        if sign * (values[1] - values[0]) < 0.0:
            return None
    return _worth(problem, split.left, node.low, node.high) + _worth(
        problem, right, node.low, node.high
    )


def _worth(problem: Problem, rows, low, high) -> Fraction | float:
    """Twice what the loss falls by when a node takes its value."""
    g, h, _ = _sums(problem, rows)
    l2 = problem.rules.l2
    if problem.rules.signs is None:
        total = h + Fraction(l2) / Fraction(problem.units[1])
        return Fraction(g * g) / total if total > 0 else Fraction(0)
    value = value_of(problem, rows, low, high)
    return -value * (2.0 * g * problem.units[0] + (h * problem.units[1] + l2) * value)
