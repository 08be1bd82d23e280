"""Packed trees as plain values, and back: what comes back is looked at before it is used."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from margrove._runtime import MisfitError
from margrove.grove.serve.packed_trees import Kind, PackedTree

__all__ = ["TreeForm"]

_WHOLE = (np.int32, np.int64)
_COUNTS = (*_WHOLE, np.float64)
# What each array may hold, and whether it has an entry for each node; the last four may be missing.
_ARRAYS: dict[str, tuple[tuple[Any, ...], bool]] = {
    "nodes": ((np.int64,), False),
    "weight": (_COUNTS, True),
    "values": (_COUNTS, False),
    "words": ((np.uint32,), False),
    "samples": (_WHOLE, True),
    "impurity": ((np.float64,), True),
    "decrease": ((np.float64,), True),
    "medians": ((np.float64,), True),
}
_OPTIONAL = ("samples", "impurity", "decrease", "medians")


class TreeForm(NamedTuple):
    """What is common to the trees of a model: their kind, and the number of features."""

    kind: Kind
    n_features: int

    @staticmethod
    def values(tree: PackedTree) -> dict[str, Any]:
        """The arrays, which nobody may write to, as they are."""
        return {name: getattr(tree, name) for name in _ARRAYS}

    def tree(self, values: Any) -> PackedTree:
        """A tree that compiled code can walk through."""
        if not isinstance(values, dict) or set(values) != set(_ARRAYS):
            raise MisfitError("a tree lacks an array")
        for name, (kinds, by_node) in _ARRAYS.items():
            own = values[name]
            if own is None and name in _OPTIONAL:
                continue
            is_right = (
                isinstance(own, np.ndarray)
                and own.dtype in kinds
                and own.ndim == (2 if name == "values" else 1)
                and (not by_node or own.shape == np.shape(values["weight"]))
            )
            if not is_right:
                raise MisfitError(f"{name} of a tree is of another type or length")
        arrays: dict[str, Any] = {name: _own(values[name]) for name in _ARRAYS}
        tree = PackedTree(**arrays)
        tree.require_sound(self.kind, self.n_features)
        return tree

    def trees(self, values: Any) -> list[PackedTree]:
        """Many of them."""
        if not isinstance(values, list):
            raise MisfitError("trees are no list")
        return [self.tree(own) for own in values]


def _own(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else np.ascontiguousarray(array)
