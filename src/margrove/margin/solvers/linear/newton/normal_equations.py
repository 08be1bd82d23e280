"""The matrices X'DX of Newton's method, over the rows of some tiles.

X'DX is bordered by the sums of D and of D x. D is a factor of each row for all machines, and a flag
of each row and machine. The matrix of a machine changes only by the rows whose flag changes, which
soon are few: the last matrix is kept, and these rows are added or subtracted. Reading stored rows
takes longer than that: their matrices are summed afresh whenever they are read anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margrove._runtime import kernel, region
from margrove.margin.solvers.linear.newton.row_tiles import Tile
from margrove.margin.solvers.linear.row_groups import RowGroups, load_rows

__all__ = ["BorderedSquares", "bordered_squares"]

_LAST, _ZERO, _ALL = 0, 1, 2  # the matrix from which a new one is computed
_ALL_ROWS = -1  # in place of a machine
_ROWS_AT_ONCE = 256
_COLUMNS_AT_ONCE = 256
_SECTION_BYTES = 64_000_000
_MOST_SECTIONS = 64
_PANEL = 16  # rows of a matrix in a tile
_DRIFT = 1e-8  # a matrix is summed afresh if its diagonal falls below this share of the largest


class BorderedSquares:
    """The matrices (d + 1, d + 1) of K machines over the rows of some tiles.

    The matrix of machine k belongs to the flags of the tiles at known[k]; the others may be changed
    before `update`. The curvature of a row that counts is its `factor`.
    """

    def __init__(self, tiles: Sequence[Tile], n_features: int, n_machines: int) -> None:
        self._tiles = tiles
        self._n_rows = sum(map(len, tiles))
        self.is_ahead = any(tile.is_stored for tile in tiles)
        self._is_small = not self.is_ahead and len(tiles) == 1 and tiles[0].groups().count == 1
        size = n_features + 1
        self.known = np.zeros(n_machines, np.int64)
        self._has_last = np.zeros(n_machines, np.bool_)
        self._largest = np.zeros((n_machines, size))
        self._totals = np.zeros((n_machines, size, size))
        self._of_all: np.ndarray | None = None

    def begin(self, machines: np.ndarray) -> None:
        """Before a pass over all tiles, which calls `add` if rows are stored."""
        if self.is_ahead:
            self._totals[machines] = 0.0

    def add(self, tile: Tile, groups: RowGroups, factor: np.ndarray, machines: np.ndarray) -> None:
        """Add the rows of a tile with new flags, while they are in memory."""
        start = np.full(len(machines), _ZERO)
        n_changes = float(len(groups)) * len(machines)
        self._add(tile, groups, factor, machines, start, n_changes)

    def update(
        self, machines: np.ndarray, counted: np.ndarray, changed: np.ndarray, ridge: np.ndarray
    ) -> np.ndarray:
        """The matrices of the new flags, for machines (a,).

        counted, changed   how many rows count, and how many flags have changed
        ridge              what will be added to the diagonal, the last entry aside
        """
        if self.is_ahead:
            self.known[machines] = 1 - self.known[machines]
            return self._totals[machines]
        start = self._starts(machines, counted, changed)
        if self._is_small:
            self._sum(machines, start, float(counted.sum()))
        else:
            apart = np.choose(start, [changed, counted, self._n_rows - counted])
            self._sum(machines, start, float(apart.sum()))
            drifted = self._have_drifted(machines, start, ridge)
            if drifted.any():
                again = machines[drifted]
                self._sum(again, np.full(len(again), _ZERO), float(counted[drifted].sum()))
                self._largest[again] = self._diagonals(again)
            self._has_last[machines] = True
        self.known[machines] = 1 - self.known[machines]
        return self._totals[machines]

    def _sum(self, machines: np.ndarray, start: np.ndarray, n_changes: float) -> None:
        for machine, origin in zip(machines.tolist(), start.tolist(), strict=True):
            if origin != _LAST:
                self._totals[machine] = self._all_rows() if origin == _ALL else 0.0
        for tile in self._tiles:
            share = n_changes * len(tile) / self._n_rows
            self._add(tile, tile.groups(), tile.losses().factor, machines, start, share)

    def _add(
        self,
        tile: Tile,
        groups: RowGroups,
        factor: np.ndarray,
        machines: np.ndarray,
        start: np.ndarray,
        n_changes: float,
    ) -> None:
        n_sections = _n_sections(groups, len(self.known))
        _add_rows(
            groups, factor, machines, start, tile.flags, self.known, n_sections, machines,
            self._totals, n_changes,
        )  # fmt: skip

    def _have_drifted(
        self, machines: np.ndarray, start: np.ndarray, ridge: np.ndarray
    ) -> np.ndarray:
        """Whether rounding can be seen, because what was subtracted is much more than what is left.

        This keeps the largest diagonals since the matrices were last summed afresh.
        """
        diagonals, largest = self._diagonals(machines), self._largest[machines]
        largest[start == _ZERO] = 0.0
        largest[start == _ALL] = np.diagonal(self._all_rows()) if (start == _ALL).any() else 0.0
        self._largest[machines] = np.maximum(diagonals, largest)
        diagonals[:, :-1] += ridge[:, None]
        return np.asarray((diagonals < _DRIFT * largest).any(axis=1))

    def _diagonals(self, machines: np.ndarray) -> np.ndarray:
        return np.diagonal(self._totals[machines], axis1=1, axis2=2).copy()

    def forget(self, machine: int) -> None:
        """Sum the next matrix of this machine afresh, without the rounding of many changes."""
        self._has_last[machine] = False

    def _starts(self, machines: np.ndarray, counted: np.ndarray, changed: np.ndarray) -> np.ndarray:
        """The matrix from which each machine starts: the one that differs by the fewest rows."""
        if self._is_small:
            return np.full(len(machines), _ZERO)
        from_last = np.where(self._has_last[machines], changed, np.inf)
        from_all = self._n_rows - counted
        least = np.minimum(counted, from_last)
        saved = float(np.maximum(least - from_all, 0.0).sum())
        # The matrix of all rows is computed once, for all machines.
        is_worth_it = saved > (0 if self._of_all is not None else self._n_rows)
        start = np.where(from_last <= counted, _LAST, _ZERO)
        return np.where(is_worth_it & (from_all < least), _ALL, start)

    def _all_rows(self) -> np.ndarray:
        if self._of_all is None:
            size = self._totals.shape[1]
            self._of_all = np.zeros((size, size))
            for tile in self._tiles:
                self._of_all += bordered_squares(tile.groups(), tile.losses().factor)
        return self._of_all


def bordered_squares(groups: RowGroups, factor: np.ndarray) -> np.ndarray:
    """The matrix (d + 1, d + 1) of all rows, with a factor of each."""
    size = groups.n_features + 1
    total = np.zeros((1, size, size))
    machines, places = np.full(1, _ALL_ROWS), np.zeros(1, np.int64)
    no_flags = np.zeros((2, 1, 1), np.uint8)
    _add_rows(
        groups, factor, machines, places, no_flags, places, _n_sections(groups, 1), places, total,
        float(len(groups)),
    )  # fmt: skip
    return np.asarray(total[0])


def _n_sections(groups: RowGroups, n_machines: int) -> int:
    """In how many sections the rows of a machine are summed."""
    most = _SECTION_BYTES // (8 * (groups.n_features + 1) ** 2 * n_machines)
    return int(max(1, min(_MOST_SECTIONS, most, groups.count)))


def _add_rows(
    groups: RowGroups,
    factor: np.ndarray,
    machines: np.ndarray,
    start: np.ndarray,
    flags: np.ndarray,
    known: np.ndarray,
    n_sections: int,
    places: np.ndarray,
    totals: np.ndarray,
    n_changes: float,
) -> None:
    """Change the matrices at `places` of totals by the rows whose flags have changed."""
    size = totals.shape[1]
    n_blocks = -(-size // _COLUMNS_AT_ONCE) if groups.by_blas else 1
    n_pairs = n_blocks * (n_blocks + 1) // 2
    partial = np.empty((len(machines) * n_sections, size, size))
    n_tiles = len(machines) * n_sections * n_pairs
    groups.run_tiles(
        _add_squares, n_tiles, groups.cells**2 * n_changes / n_tiles, n_sections, n_pairs,
        groups.by_blas, groups.X, groups.rows, factor, machines, start, flags, known, partial,
    )  # fmt: skip
    n_panels = -(-size // _PANEL)
    groups.run_tiles(
        _add_sections, len(machines) * n_panels, _PANEL * size * n_sections, n_sections,
        n_panels, places, partial, totals,
    )  # fmt: skip


@region
def _add_squares(
    tile, first, n_sections, n_pairs, by_blas, X, rows, factor, machines, start, flags, known,
    partial,
):  # fmt: skip
    """A tile is a section of the rows of a machine, and a pair of blocks of columns."""
    size = partial.shape[1]
    place, pair = (first + tile) // n_pairs, (first + tile) % n_pairs
    a, section = place // n_sections, place % n_sections
    begin = section * len(rows) // n_sections
    stop = (section + 1) * len(rows) // n_sections
    machine = machines[a]
    which = max(machine, 0)
    new, old = flags[1 - known[which], which], flags[known[which], which]
    total = partial[place]
    if not by_blas:
        total[:] = 0.0
        for i in range(begin, stop):
            value = _sign(machine, start[a], old, new, i) * factor[i]
            if value != 0.0:
                _add_row(X, rows[i], value, total)
        return
    upper = 0
    while (upper + 1) * (upper + 2) // 2 <= pair:
        upper += 1
    left = pair - upper * (upper + 1) // 2
    top, low = upper * _COLUMNS_AT_ONCE, left * _COLUMNS_AT_ONCE
    high, wide = min(size - top, _COLUMNS_AT_ONCE), min(size - low, _COLUMNS_AT_ONCE)
    total[top : top + high, low : low + wide] = 0.0
    A, B = np.empty((_ROWS_AT_ONCE, high)), np.empty((_ROWS_AT_ONCE, wide))
    chosen, signs = np.empty(_ROWS_AT_ONCE, np.int64), np.empty(_ROWS_AT_ONCE)
    product = np.empty((high, wide))
    count = 0
    for i in range(begin, stop):
        value = _sign(machine, start[a], old, new, i) * factor[i]
        chosen[count], signs[count] = rows[i], value
        count += value != 0.0
        if count == _ROWS_AT_ONCE or (i == stop - 1 and count > 0):
            _add_product(X, chosen, signs, count, A, B, product, top, low, total)
            count = 0


@kernel(inner=True)
def _sign(machine, start, old, new, i):
    """1 for a row that is to be added, -1 for one that is to be subtracted."""
    if machine == _ALL_ROWS:
        return 1.0
    if start == _LAST:
        return float(new[i]) - float(old[i])
    return float(new[i]) if start == _ZERO else float(new[i]) - 1.0


@kernel(hidden=True)
def _add_product(X, chosen, signs, count, A, B, product, top, low, total):
    """Add A'B to a part of total: rows of X, and the same rows times signs."""
    left, right = A[:count], B[:count]
    load_rows(X, chosen, 0, top, left)
    if low == top:
        for i in range(count):
            for j in range(right.shape[1]):
                right[i, j] = left[i, j] * signs[i]
    else:
        load_rows(X, chosen, 0, low, right)
        for i in range(count):
            for j in range(right.shape[1]):
                right[i, j] *= signs[i]
    np.dot(left.T, right, product)
    for j in range(product.shape[0]):
        for k in range(product.shape[1]):
            total[top + j, low + k] += product[j, k]


@kernel(inner=True)
def _add_row(X, row, factor, total):
    """Add the lower half of factor times the square of a row."""
    d = total.shape[0] - 1
    total[d, d] += factor
    if X.is_dense:
        for a in range(d):
            value = factor * X.dense[row, a]
            total[d, a] += value
            if value != 0.0:
                for b in range(a + 1):
                    total[a, b] += value * X.dense[row, b]
    else:
        begin, end = X.indptr[row], X.indptr[row + 1]
        for p in range(begin, end):
            a, value = X.indices[p], factor * X.data[p]
            total[d, a] += value
            for q in range(begin, p + 1):  # columns ascend
                total[a, X.indices[q]] += value * X.data[q]


@region(bare=True)
def _add_sections(tile, first, n_sections, n_panels, places, partial, totals):
    """Add the lower halves of the sections of a machine, in their order; a tile is some rows."""
    a, panel = (first + tile) // n_panels, (first + tile) % n_panels
    total = totals[places[a]]
    size = total.shape[0]
    for j in range(panel * _PANEL, min((panel + 1) * _PANEL, size)):
        for section in range(a * n_sections, (a + 1) * n_sections):
            for k in range(j + 1):
                total[j, k] += partial[section, j, k]
        for k in range(j):
            total[k, j] = total[j, k]
