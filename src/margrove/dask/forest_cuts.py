"""What the codes in finished trees stand for, when nobody knows what all codes stand for.

A column of many values has as many codes; its values lie on the worker that has merged them. The
client asks for those that its trees have split at, and for the codes that thresholds lie at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from margrove.grove.grow.nodes import CODE, FEATURE, LEFT, NEXT_CODE, SUBSET, Nodes
from margrove.grove.serve.packed_trees import _FEATURE_BITS, FEATURE_AT, SET_AT, Cuts, PackedTree
from margrove.grove.table.binning import BinnedDataset

__all__ = ["CodedColumns", "Dictionary", "cuts_of_trees", "with_codes_as_thresholds"]

_SHIFT = 32


class Dictionary(Protocol):
    """Who knows what codes stand for."""

    def values_at(
        self, features: np.ndarray, codes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def codes_at(self, features: np.ndarray, values: np.ndarray) -> np.ndarray: ...


def cuts_of_trees(
    trees: list[tuple[Nodes, int]], data: BinnedDataset, merged: np.ndarray, words: Dictionary
) -> Cuts:
    """The values that trees need to be packed; their codes become places among these.

    data has the categories of categorical columns.
    """
    n_codes = data.n_codes
    parts = [np.empty(0, np.int64)]
    for nodes, n in trees:
        feature, code, following = _splits(nodes, n)[1:]
        upper = np.where(merged[feature], code + 1, following)
        is_there = upper < n_codes[feature]
        parts += [_keys(feature, code), _keys(feature[is_there], upper[is_there])]
    numbers = np.unique(np.concatenate(parts))
    for j in np.flatnonzero(data.categorical):
        parts.append(_keys(np.full(n_codes[j], j), np.arange(n_codes[j])))
    keys = np.unique(np.concatenate(parts))
    features, codes = keys >> _SHIFT, keys & 0xFFFFFFFF
    lows = np.empty(len(keys))
    highs = np.empty(len(keys))
    is_number = np.isin(keys, numbers, assume_unique=True)
    lows[is_number], highs[is_number] = words.values_at(features[is_number], codes[is_number])
    first = np.searchsorted(features, np.arange(len(n_codes) + 1)).astype(np.int64)
    for j in np.flatnonzero(data.categorical):
        lows[first[j] : first[j + 1]] = highs[first[j] : first[j + 1]] = data.lows[j]
    for nodes, n in trees:
        which, feature, code, following = _splits(nodes, n)
        nodes.whole[which, CODE] = np.searchsorted(keys, _keys(feature, code)) - first[feature]
        place = np.searchsorted(keys, _keys(feature, following)) - first[feature]
        nodes.whole[which, NEXT_CODE] = np.where(
            following < n_codes[feature], place, first[feature + 1] - first[feature]
        )
    return Cuts(lows, highs, first, merged)


def _keys(feature: np.ndarray, code: np.ndarray) -> np.ndarray:
    return (feature.astype(np.int64) << _SHIFT) | code


def _splits(nodes: Nodes, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes that split at a number: which, their features, codes and next codes."""
    whole = nodes.whole[:n]
    which = np.flatnonzero((whole[:, LEFT] >= 0) & (whole[:, SUBSET] < 0))
    own = whole[which]
    return which, own[:, FEATURE], own[:, CODE], own[:, NEXT_CODE]


def with_codes_as_thresholds(tree: PackedTree, words: Dictionary) -> PackedTree:
    """The tree for rows that are codes: `CodedColumns`."""
    link = tree.nodes[1::2]
    which = np.flatnonzero(~tree.is_leaf & ((link >> SET_AT) & 1 == 0))
    features = (link[which] >> FEATURE_AT) & _FEATURE_BITS
    nodes = tree.nodes.copy()
    values = nodes.view(np.float64)
    codes = words.codes_at(features, values[2 * which])
    values[2 * which] = codes + 0.5
    return replace(tree, nodes=nodes)


class CodedColumns:
    """Codes that look like rows of numbers; categories are what they are, NaN is missing."""

    def __init__(self, data: BinnedDataset) -> None:
        self._data = data
        self.shape = (data.n_rows, data.n_features)

    def __getitem__(self, places: np.ndarray) -> Any:
        data = self._data
        found = np.empty((len(places), self.shape[1]))
        for j in range(data.n_features):
            codes = data.column(j)[places]
            if data.categorical[j]:
                found[:, j] = np.append(data.lows[j], np.nan)[codes]
            else:
                found[:, j] = np.where(codes == data.n_codes[j], np.nan, codes)
        return found
