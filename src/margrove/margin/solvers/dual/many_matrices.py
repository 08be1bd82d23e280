"""Problems of several small Gram matrices, as those of many small fits, in one compiled call.

A thread computes a matrix in memory of its own, and solves the problems of this matrix. So nothing
but the call itself needs Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np

from margrove._data import read_only
from margrove._runtime import (
    atomic_add,
    available_memory,
    fields_of,
    on_large_pages,
    record_type,
    records,
    region,
    single_threaded_blas,
)
from margrove.margin.kernels import Formula, TilePoints, TileView, fill_alone
from margrove.margin.solvers.dual.optimality import SmoRule
from margrove.margin.solvers.dual.result import SolverResult
from margrove.margin.solvers.dual.whole_problems import WholeProblems, joined, solve_problem
from margrove.margin.svm import DualProblem

__all__ = ["MatrixBuffers", "MatrixProblems", "solve_with_matrices"]

_SHARE_OF_MEMORY = 0.4  # of what is free, for the matrices of all threads
_STEP = 128  # points, so that memory fits matrices that are a little larger, too

_MATRIX = record_type(
    [
        ("first_point", np.int64),
        ("end_point", np.int64),
        ("first_problem", np.int64),
        ("end_problem", np.int64),
        ("code", np.int64),  # the four fields of a `Formula`
        ("gamma", np.float64),
        ("coef0", np.float64),
        ("degree", np.int64),
    ]
)


@dataclass(frozen=True)
class MatrixProblems:
    """Problems whose Gram matrices are tiles of one float64 matrix, which is not computed yet.

    points     the points of the matrix
    diagonal   float64 (n,)
    tiles      of the problems; without the matrix
    n_points   of the problems
    """

    points: TilePoints
    diagonal: np.ndarray
    problems: Sequence[DualProblem]
    rules: Sequence[SmoRule]
    tiles: Sequence[TileView]
    n_points: Sequence[int]


class MatrixBuffers:
    """Memory for a Gram matrix of each thread, kept for the next call."""

    def __init__(self) -> None:
        self._buffers = np.empty((0, 0))
        self._n_wanted = 0

    def of_threads(self, n_threads: int, n_points: int) -> np.ndarray:
        """float64 (k, n_points^2 or more), one for each thread, or fewer if memory is scarce."""
        if self._n_wanted < n_threads or self._buffers.shape[1] < n_points**2:
            self._buffers, self._n_wanted = np.empty((0, 0)), n_threads
            n_entries = (-(-n_points // _STEP) * _STEP) ** 2
            free = available_memory()
            if free is not None:
                n_threads = min(n_threads, int(_SHARE_OF_MEMORY * free / (8.0 * n_entries)))
            self._buffers = on_large_pages((max(1, n_threads), n_entries), np.float64)
        return self._buffers


def solve_with_matrices(
    matrices: Sequence[MatrixProblems], buffers: MatrixBuffers | None = None, *, n_threads: int
) -> list[list[SolverResult] | None]:
    """`solve_at_once` for the problems of each matrix, which has the bits of `symmetric_gram`.

    None for a matrix if one of its problems is not solved by its first round. Without `buffers` the
    memory of the matrices is not kept.
    """
    stated = WholeProblems.of(
        *(
            list(chain.from_iterable(getattr(each, name) for each in matrices))
            for name in ("problems", "rules", "tiles", "n_points")
        )
    )
    ranges = _ranges(matrices)
    largest, n_places = max(len(each.diagonal) for each in matrices), min(n_threads, len(matrices))
    if buffers is None:
        places = np.empty((n_places, largest**2))
    else:
        places = buffers.of_threads(n_places, largest)
    X = read_only(joined([each.points.X for each in matrices]))
    norms = read_only(joined([each.points.norms for each in matrices]))
    diagonals = joined([each.diagonal for each in matrices])
    with single_threaded_blas():
        _solve_matrices(
            len(places), n_threads, places, np.zeros(1, np.int64), ranges, X, norms, diagonals,
            stated.statements, stated.variables, stated.alpha, stated.values, stated.answers,
        )  # fmt: skip
    found, outcomes = [], stated.outcomes()
    bounds = [fields_of(ranges)[name].tolist() for name in ("first_problem", "end_problem")]
    for first, end in zip(*bounds, strict=True):
        solved = [each for each in outcomes[first:end] if isinstance(each, SolverResult)]
        found.append(solved if len(solved) == end - first else None)
    return found


def _ranges(matrices: Sequence[MatrixProblems]) -> np.recarray:
    ranges = records(len(matrices), _MATRIX)
    of = fields_of(ranges)
    of["end_point"] = list(accumulate(len(each.diagonal) for each in matrices))
    of["end_problem"] = list(accumulate(len(each.problems) for each in matrices))
    of["first_point"][1:], of["first_problem"][1:] = of["end_point"][:-1], of["end_problem"][:-1]
    for k, name in enumerate(Formula._fields):
        of[name] = [each.points.formula[k] for each in matrices]
    return ranges


@region
def _solve_matrices(
    place, places, next_matrix, ranges, X, norms, diagonals, statements, variables, alphas,
    all_values, answers,
):  # fmt: skip
    """Take matrices until none is left; the memory of the matrix is that of this tile."""
    while True:
        number = atomic_add(next_matrix, 0, 1)
        if number >= len(ranges):
            return
        own = ranges[number]
        a, b = own.first_point, own.end_point
        formula = Formula(own.code, own.gamma, own.coef0, own.degree)
        K = places[place, : (b - a) * (b - a)].reshape(b - a, b - a)
        fill_alone(TilePoints(formula, X[a:b], norms[a:b]), K)
        for problem in range(own.first_problem, own.end_problem):
            solve_problem(
                problem, statements, K, diagonals[a:b], variables, alphas, all_values, answers
            )
