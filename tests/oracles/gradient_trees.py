"""A tree of gradient boosting, leaf by leaf, as slowly and plainly as it gets."""

from __future__ import annotations

import numpy as np


def gain(g, h, l2):
    return g * g / (h + l2)


def splits_of(codes, missing, g, h, rows, *, min_samples, l2):
    """All allowed splits of a node: (gain, feature, code, missing_left, rows that go left)."""
    for feature in range(codes.shape[1]):
        own = codes[rows, feature]
        is_missing = own == missing[feature]
        for missing_left in (False, True) if is_missing.any() else (False,):
            for code in np.unique(own[~is_missing]):
                left = (own <= code) & ~is_missing | (is_missing & missing_left)
                if min(left.sum(), (~left).sum()) < max(min_samples, 1):
                    continue
                a, b = rows[left], rows[~left]
                found = gain(g[a].sum(), h[a].sum(), l2) + gain(g[b].sum(), h[b].sum(), l2)
                yield found, feature, int(code), missing_left, left


def grow(codes, missing, g, h, *, max_leaves, min_samples, l2):
    """The leaves (rows of each) and the gains of the splits, in their order."""
    leaves, gains = [np.arange(len(g))], []
    while len(leaves) < max_leaves:
        best = None
        for number, rows in enumerate(leaves):
            parent = gain(g[rows].sum(), h[rows].sum(), l2)
            for found, *_, left in splits_of(
                codes, missing, g, h, rows, min_samples=min_samples, l2=l2
            ):
                if found - parent > 1e-9 and (best is None or found - parent > best[0] + 1e-9):
                    best = (found - parent, number, left)
        if best is None:
            break
        more, number, left = best
        rows = leaves[number]
        leaves[number : number + 1] = [rows[left], rows[~left]]
        gains.append(more)
    return leaves, gains
