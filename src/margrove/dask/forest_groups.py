"""Sums of the rows of a node by the codes of one feature: made by members, searched by the client.

A search sees sums only, so it finds in the sums of all members what it would have found in all the
rows: the searches are those of `grove.grow.node_search`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove.grove.grow.node_search import (
    Basic,
    Scratch,
    new_basic,
    new_scratch,
    search_feature,
    search_in_orders,
)
from margrove.grove.grow.nodes import Nodes
from margrove.grove.grow.split_search import Rules
from margrove.grove.grow.tree_builder import _ALL_BITS, _HALF_WORD, _group_rows
from margrove.grove.table.binning import sorted_by_digits
from margrove.grove.table.columns import Columns
from margrove.grove.table.targets import Targets

__all__ = [
    "Groups",
    "codes_of_column",
    "dense_as_groups",
    "group_of_codes",
    "search_in_groups",
    "sum_of_groups",
]


@dataclass(frozen=True)
class Groups:
    """Codes that there are, ascending, and for each the weight, the samples and the statistics of
    its rows, int64 (k, 2 + n_stats)."""

    codes: np.ndarray
    sums: np.ndarray

    def __len__(self) -> int:
        return len(self.codes)


def group_of_codes(
    columns: Columns, feature: int, rows: np.ndarray, span: tuple[int, int], targets: Targets
) -> Groups:
    """The groups of rows[start:end]: by a table of all codes, or sorted, whichever is less."""
    n_rows, n_codes = span[1] - span[0], int(columns.n_codes[feature]) + 1
    if n_codes > 2 * n_rows + 1024:
        return _sorted_groups(columns, feature, rows[span[0] : span[1]], targets)
    n_stats = int(targets.starts[-1])
    scratch = new_scratch(new_basic(1, n_stats), 0, n_codes, 0)
    n = int(_group_rows(columns, feature, rows, span[0], span[1], targets, scratch))
    sums = np.column_stack(
        [scratch.group_weight[:n], scratch.group_samples[:n], scratch.group_stats[:n]]
    )
    return Groups(scratch.group_code[:n].copy(), sums)


def _sorted_groups(columns: Columns, feature: int, rows: np.ndarray, targets: Targets) -> Groups:
    n_stats, n_outputs = int(targets.starts[-1]), len(targets.starts) - 1
    sums = np.zeros((len(rows), 2 + n_stats), np.int64)
    weight = targets.weight[rows]
    sums[:, 0], sums[:, 1] = weight, targets.samples[rows]
    if len(targets.labels):
        for own in targets.labels.reshape(-1, n_outputs)[rows].T:
            sums[np.arange(len(rows)), 2 + own] += weight
    elif len(targets.numbers):
        sums[:, 2:] = targets.numbers.reshape(-1, n_outputs)[rows]
    return _added_up(codes_of_column(columns, feature)[rows], sums)


def codes_of_column(columns: Columns, feature: int) -> np.ndarray:
    arrays = (columns.narrow, columns.medium, columns.wide)
    column: np.ndarray = arrays[columns.width[feature]][columns.place[feature]]
    return column


def _added_up(codes: np.ndarray, sums: np.ndarray) -> Groups:
    """Codes in any order, some of them several times."""
    if not len(codes):
        return Groups(np.empty(0, np.int64), sums)
    order = sorted_by_digits(codes.astype(np.uint64))
    codes = codes[order].astype(np.int64)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    return Groups(codes[starts], np.add.reduceat(sums[order], starts, axis=0))


def dense_as_groups(sums: np.ndarray) -> Groups:
    """Of sums for every code, those of codes that are there."""
    codes = np.flatnonzero(sums[:, 1] > 0)
    return Groups(codes, sums[codes])


def sum_of_groups(parts: list[Groups]) -> Groups:
    """The groups of all members together."""
    return _added_up(
        np.concatenate([own.codes for own in parts]), np.concatenate([own.sums for own in parts])
    )


def search_in_groups(
    groups: Groups,
    feature: int,
    columns: Columns,
    targets: Targets,
    rules: Rules,
    nodes: Nodes,
    node: int,
    basic: Basic,
) -> Scratch:
    """Search one feature of a node; in what is returned, and in `basic`, the best split so far.

    `targets` say what kind of targets there are; their rows are not looked at.
    """
    scratch = new_scratch(basic, 0, len(groups), rules.criterion)
    scratch.group_code[:] = groups.codes
    if rules.random and not columns.categorical[feature] and len(targets.starts) == 2:
        _search_drawn(groups, feature, columns, targets, rules, nodes, node, scratch)
        return scratch
    scratch.group_weight[:], scratch.group_samples[:] = groups.sums[:, 0], groups.sums[:, 1]
    scratch.group_stats[:] = groups.sums[:, 2:]
    search_in_orders(len(groups), feature, columns, targets, rules, nodes, node, scratch)
    return scratch


def _search_drawn(
    groups: Groups,
    feature: int,
    columns: Columns,
    targets: Targets,
    rules: Rules,
    nodes: Nodes,
    node: int,
    scratch: Scratch,
) -> None:
    """A threshold is drawn: groups, or their parts of one class, stand for rows."""
    stats = groups.sums[:, 2:]
    if len(targets.labels):
        is_there = stats != 0
        is_there[~is_there.any(axis=1), 0] = True  # a group without rows marks a place
        group, label = np.nonzero(is_there)
        weight = stats[group, label]
        is_first = np.append(True, group[1:] != group[:-1])
        samples = np.where(is_first, groups.sums[group, 1], 0)
        own = targets._replace(labels=label.astype(np.int32), weight=weight, samples=samples)
    else:
        group = np.arange(len(groups))
        own = targets._replace(
            numbers=np.ascontiguousarray(stats[:, 0]),
            weight=np.ascontiguousarray(groups.sums[:, 0]),
            samples=np.ascontiguousarray(groups.sums[:, 1]),
        )
    rows = np.arange(len(group))
    alone = columns._replace(
        wide=groups.codes[group].astype(np.uint32)[None, :],
        width=np.full_like(columns.width, 2),
        place=np.zeros_like(columns.place),
    )
    entries = (group.astype(np.uint64) << _HALF_WORD) | rows.astype(np.uint64)
    search_feature(entries, 0, len(rows), _HALF_WORD, _ALL_BITS, feature, alone, rows, own, rules,
                   nodes, node, scratch)  # fmt: skip
