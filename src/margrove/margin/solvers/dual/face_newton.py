"""Newton steps from face to face, compiled, for paths over C (see `c_path`).

A face is the set of points whose bounded variables stay where they are. With s = y a, gradient f
and the inverse M of the tile of the free variables, the step to the minimum of a face is

    d = -M f + c M 1    with the c for which the sum of d is zero.

A step ends at the first bound; that variable leaves the face, by a change of M of rank one. At the
minimum of a face the variables that violate optimality join it, and border M. So a descent is an
active-set method. Its cost is that of one inverse, and of n^2 / 2 operations for each change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.margin.solvers.dual.symmetric_inverse import (
    add_four_rows,
    add_row,
    factorise,
    invert,
    multiply,
)

__all__ = ["LARGEST_FACE", "apply_changes", "descend_on_faces", "measure"]

LARGEST_FACE = 1000  # free variables; larger inverses take too long for a call
_RIDGE, _LARGEST_RIDGE = 1e-13, 1e-6  # relative to the mean of the diagonal
_DEPENDENT = 1e-10  # what is left of a diagonal entry if its variable depends on the others
_MOST_SWEEPS = 50
_JOINING = 0.3  # share of the largest violation from which a variable joins the face


class Face(NamedTuple):
    """The free variables, at most k of them: `members` (k,), and where each is, `place` (m,).

    inverse   float64 (k, k) of their tile, the lower triangle
    ones      float64 (k,) the inverse times ones
    step      float64 (k,) the rest of the way to the minimum of the face
    column    float64 (k,) room
    """

    members: np.ndarray
    place: np.ndarray
    inverse: np.ndarray
    ones: np.ndarray
    step: np.ndarray
    column: np.ndarray


@kernel
def descend_on_faces(K, machine, u, alpha, values, f, tol, most_changes):
    """Go from face to face until the violation is below tol; return how often the face changed.

    alpha (m,) and values (n,) are moved, f (m,) is that of the end. The descent ends early if fewer
    than two variables are free, or if their tile has no inverse, or an inaccurate one.
    """
    rows, y, p, _ = machine
    m = len(alpha)
    n_free = 0
    for v in range(m):
        n_free += is_free(u[v], alpha[v])
    if n_free < 2 or n_free > LARGEST_FACE:
        return 0
    most = min(m, n_free + most_changes)
    face = Face(
        np.empty(most, np.int64), np.full(m, -1, np.int64), np.empty((most, most)),
        np.empty(most), np.empty(most), np.empty(most),
    )  # fmt: skip
    n = _begin(K, rows, u, alpha, face)
    changes = 0
    moved, everything = alpha.copy(), np.arange(m)
    for sweep in range(_MOST_SWEEPS):
        violation = measure(rows, y, p, u, alpha, values, f)
        if n < 2 or violation < tol or changes >= most_changes:
            break
        if sweep > 0:
            n_before = n
            n = _join(K, rows, y, u, alpha, f, tol, face, n)
            changes += n - n_before
            if n == n_before and sweep > 2:
                break
        for a in range(n):
            face.column[a] = -f[face.members[a]]
        multiply(face.inverse, n, face.column, face.step)
        n_after, n_left = _walk(y, u, moved, face, n, most_changes - changes)
        changes += n_left
        n = n_after
        apply_changes(K, rows, y, everything, moved, alpha, values)
    return changes


@kernel(bare=True)
def is_free(u, alpha):
    return alpha > 0.0 and alpha < u


@kernel
def measure(rows, y, p, u, alpha, values, f):
    """Write f of all variables and return the KKT violation."""
    lowest, highest = np.inf, -np.inf
    for v in range(len(alpha)):
        f[v] = values[rows[v]] + y[v] * p[v]
        below, above = alpha[v] < u[v], alpha[v] > 0.0
        if below if y[v] > 0.0 else above:
            lowest = min(lowest, f[v])
        if above if y[v] > 0.0 else below:
            highest = max(highest, f[v])
    return max(0.0, highest - lowest)


@kernel
def apply_changes(K, rows, y, chosen, moved, alpha, values):
    """alpha <- moved for the chosen variables, and update the values of all rows.

    Four rows of K are added at a time: K is large, and four streams use more of the memory's speed.
    """
    place, factors, n = np.empty(4, np.int64), np.empty(4), 0
    for a in range(len(chosen)):
        v = chosen[a]
        if moved[a] != alpha[v]:
            place[n], factors[n] = rows[v], y[v] * (moved[a] - alpha[v])
            alpha[v] = moved[a]
            n += 1
        if n == 4:
            add_four_rows(K[place[0]], K[place[1]], K[place[2]], K[place[3]], factors, values)
            n = 0
    for a in range(n):
        add_row(K[place[a]], factors[a], values)


# -- the face --


@kernel
def _begin(K, rows, u, alpha, face):
    """The face of the free variables; returns their number, 0 if their tile has no inverse."""
    n = 0
    for v in range(len(alpha)):
        if is_free(u[v], alpha[v]):
            face.members[n], face.place[v] = v, n
            n += 1
    ridge = _RIDGE
    while not _factorised(K, rows, face.members[:n], ridge, face.inverse):
        ridge *= 100.0  # free variables are linearly dependent
        if ridge > _LARGEST_RIDGE:
            return 0
    invert(face.inverse, n)
    for a in range(n):
        face.column[a] = 1.0
    multiply(face.inverse, n, face.column, face.ones)
    return n


@kernel
def _join(K, rows, y, u, alpha, f, tol, face, n):
    """Let the worst violators join a face that is at its minimum; returns its new size."""
    level = worst = 0.0
    for a in range(n):
        level += f[face.members[a]] / n
    for v in range(len(alpha)):
        if face.place[v] < 0:
            worst = max(worst, _excess(y[v], u[v], alpha[v], f[v] - level))
    limit = max(_JOINING * worst, 0.25 * tol)
    for v in range(len(alpha)):
        if n == len(face.members):
            break
        if face.place[v] < 0 and _excess(y[v], u[v], alpha[v], f[v] - level) > limit:
            n += _border(K, rows, v, face, n)
    return n


@kernel(bare=True)
def _excess(y, u, alpha, gap):
    """How far f of a bounded variable is on the wrong side of that of the free ones."""
    rises = alpha < u if y > 0.0 else alpha > 0.0
    return -gap if rises else gap


@kernel
def _walk(y, u, moved, face, n, most):
    """Walk to the minimum of the face; variables that reach a bound leave it.

    At most `most` variables leave. Returns the new size and how many have left.
    """
    members, step = face.members, face.step
    for n_left in range(most + 1):
        _balance(step, face.ones, n)
        length, hit = 1.0, -1
        for a in range(n):
            v = members[a]
            change = y[v] * step[a]
            to_bound = np.inf
            if change > 0.0:
                to_bound = (u[v] - moved[v]) / change
            elif change < 0.0:
                to_bound = -moved[v] / change
            if to_bound < length:
                length, hit = to_bound, a
        for a in range(n):
            v = members[a]
            moved[v] = min(u[v], max(0.0, moved[v] + length * y[v] * step[a]))
            if a == hit:  # exactly on the bound
                moved[v] = u[v] if y[v] * step[a] > 0.0 else 0.0
            step[a] *= 1.0 - length
        if hit < 0:
            return n, n_left
        n = _leave(face, n, hit)
        if n < 2:
            return n, n_left + 1
    return n, most + 1


@kernel(bare=True)
def _balance(step, ones, n):
    """Add a multiple of `ones`, so that the sum of the step is zero."""
    total = whole = 0.0
    for a in range(n):
        total += step[a]
        whole += ones[a]
    for a in range(n):
        step[a] -= total / whole * ones[a]


@kernel
def _leave(face, n, hit):
    """Take a member out of the face; the last takes its place. Returns the new size."""
    members, place, M, ones, step, column = face
    for b in range(n):
        column[b] = M[hit, b] if b < hit else M[b, hit]
    share, share_of_ones = step[hit] / column[hit], ones[hit] / column[hit]
    for a in range(n):
        step[a] -= share * column[a]
        ones[a] -= share_of_ones * column[a]
        add_row(column[: a + 1], -column[a] / column[hit], M[a, : a + 1])
    last = n - 1
    place[members[hit]] = -1
    if hit < last:
        members[hit], step[hit], ones[hit] = members[last], step[last], ones[last]
        place[members[hit]] = hit
        for b in range(last):
            if b < hit:
                M[hit, b] = M[last, b]
            else:
                M[b, hit] = M[last, b]
        M[hit, hit] = M[last, last]
    return last


@kernel
def _border(K, rows, v, face, n):
    """Let a variable join the face; False if it depends on the members."""
    members, place, M, ones, new, column = face
    row = K[rows[v]]
    for a in range(n):
        column[a] = row[rows[members[a]]]
    multiply(M, n, column, new)
    rest, one = row[rows[v]], 1.0
    for a in range(n):
        rest -= column[a] * new[a]
        one -= column[a] * ones[a]
    if not rest > _DEPENDENT * row[rows[v]]:
        return False
    for a in range(n):
        add_row(new[: a + 1], new[a] / rest, M[a, : a + 1])
        M[n, a] = -new[a] / rest
        ones[a] -= new[a] * one / rest
    M[n, n], ones[n] = 1.0 / rest, one / rest
    members[n], place[v] = v, n
    return True


@kernel
def _factorised(K, rows, members, ridge, L):
    """L <- Cholesky factor of the tile of the members; False if there is none."""
    trace = 0.0
    for a in range(len(members)):
        row = K[rows[members[a]]]
        for b in range(a + 1):
            L[a, b] = row[rows[members[b]]]
        trace += L[a, a]
    for a in range(len(members)):
        L[a, a] += ridge * trace / len(members)
    return factorise(L, len(members))
