"""The shares of the classes in the nodes of a tree, output by output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margrove.grove.serve.tree_arrays import TreeArrays

__all__ = ["by_output", "predicted_classes"]


def by_output(shares: np.ndarray, n_classes: Sequence[int]) -> list[np.ndarray]:
    """The columns of each output, where `n_classes` tells how many classes each has."""
    return np.split(shares, np.cumsum(n_classes)[:-1], axis=1)


def predicted_classes(tree: TreeArrays, n_classes: Sequence[int] | None) -> np.ndarray:
    """int64 (N, outputs): the most frequent class of each output, the first of several."""
    sizes = [tree.value.shape[1]] if n_classes is None else [int(n) for n in n_classes]
    if sum(sizes) != tree.value.shape[1] or min(sizes) < 1:
        raise ValueError(
            f"n_classes must have the number of classes of each output, {tree.value.shape[1]} in "
            f"all. Got {sizes}."
        )
    return np.stack([own.argmax(axis=1) for own in by_output(tree.value, sizes)], axis=1)
