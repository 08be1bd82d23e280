"""Where the nodes of a drawn tree are from left to right: tidily, and close together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["tidy_positions"]


def tidy_positions(parent: Sequence[int | None], widths: Sequence[float], gap: float) -> np.ndarray:
    """Where the centres of nodes are from left to right; the root is at 0.

    Nodes are in preorder. Those of the same depth do not overlap and are `gap` apart at least, a
    parent is in the middle between its first and its last child, and the mirrored tree has the
    mirrored positions.

    As in Reingold and Tilford (1981): children's subtrees are pushed together until their contours
    touch. Subtrees between two large ones would all lean to one side, so that is done once from
    the left and once from the right. The mean of both is as tidy: all of the above is linear.
    """
    children: list[list[int]] = [[] for _ in parent]
    for node, above in enumerate(parent):
        if above is not None:
            children[above].append(node)
    mirrored = [below[::-1] for below in children]
    from_left = _pushed_together(parent, children, widths, gap)
    from_right = _pushed_together(parent, mirrored, widths, gap)
    return 0.5 * (from_left - from_right)


@dataclass
class _Contour:
    """How far a subtree reaches to one side, the lowest level first, less a common shift.

    Lowest first, because levels are added on top; the shift, because a subtree moves as a whole.
    So merging two contours takes no longer than the shorter one is.
    """

    reach: list[float]
    shift: float = 0.0

    def covered_by(self, other: _Contour) -> _Contour:
        """The contour of both subtrees, where `other` is on the outside and hides this one."""
        n_common = len(other.reach)
        if n_common >= len(self.reach):
            return other
        for level in range(1, n_common + 1):
            self.reach[-level] = other.reach[-level] + other.shift - self.shift
        return self


def _pushed_together(
    parent: Sequence[int | None],
    children: Sequence[Sequence[int]],
    widths: Sequence[float],
    gap: float,
) -> np.ndarray:
    """Each subtree as far to the left as those before it permit."""
    n = len(parent)
    offset = np.zeros(n)  # from the parent
    left: list[_Contour | None] = [None] * n
    right: list[_Contour | None] = [None] * n
    for node in range(n - 1, -1, -1):
        outer_left, outer_right = _Contour([]), _Contour([])
        centre = 0.0
        for child in children[node]:
            own_left, own_right = left[child], right[child]
            left[child] = right[child] = None
            assert own_left is not None
            assert own_right is not None
            push = _least_distance(outer_right, own_left, gap)
            own_left.shift += push
            own_right.shift += push
            outer_left = own_left.covered_by(outer_left)
            outer_right = outer_right.covered_by(own_right)
            offset[child] = push
        if children[node]:
            centre = 0.5 * (offset[children[node][0]] + offset[children[node][-1]])
        for child in children[node]:
            offset[child] -= centre
        half = 0.5 * widths[node]
        for contour, reach in ((outer_left, -half), (outer_right, half)):
            contour.shift -= centre
            contour.reach.append(reach - contour.shift)
        left[node], right[node] = outer_left, outer_right
    for node in range(1, n):
        offset[node] += offset[parent[node]]
    return offset


def _least_distance(right: _Contour, left: _Contour, gap: float) -> float:
    n_common = min(len(right.reach), len(left.reach))
    if not n_common:
        return 0.0
    apart = max(right.reach[-k] - left.reach[-k] for k in range(1, n_common + 1))
    return apart + right.shift - left.shift + gap
