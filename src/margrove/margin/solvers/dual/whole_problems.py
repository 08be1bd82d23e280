"""Problems of few variables: a round over all of them is one compiled call.

A problem whose variables all fit into one tile needs no blocks, and hardly ever a second round.
Many such problems, as those of all pairs of classes, are solved by one call, on several threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from margrove._runtime import fields_of, kernel, record_type, records, region
from margrove.margin.kernels import TileView, add_rows
from margrove.margin.solvers.dual.optimality import (
    SmoRule,
    Variables,
    measure,
    offsets_of,
    violation_of,
)
from margrove.margin.solvers.dual.pair_steps import FLOAT64_ETA, PairRecord, solve_tile
from margrove.margin.solvers.dual.result import SolverResult, TracePoint
from margrove.margin.svm import DualProblem

__all__ = [
    "INNER_TOLERANCE",
    "ROUNDING",
    "SHARPENING_STEPS",
    "FirstRound",
    "WholeProblems",
    "joined",
    "most_steps",
    "sharper_tolerance",
    "solve_at_once",
    "solve_problem",
    "solve_whole",
    "split_by_sign",
    "sum_of_tile",
]

INNER_TOLERANCE = 0.9  # of the tolerance, to which pair steps go on
SHARPENING_STEPS = 100
_TINY = 512  # variables, all in one float64 tile, whose pair steps take almost no time
_SHARPER = 1e-4  # of the tolerance, to which tiny problems are solved
_STEPS_PER_VARIABLE, _MORE_STEPS = 10, 10_000
# The rounding error of a value in float64, however it is computed, relative to the largest entry of
# K times the length of the coefficients.
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)

_STATEMENT = record_type(
    [
        ("places", np.int64, (3,)),  # first, middle and second of a `TileView`
        ("first_variable", np.int64),
        ("end_variable", np.int64),
        ("first_point", np.int64),
        ("end_point", np.int64),  # of its values
        ("keeps_sum", np.bool_),
        ("tol", np.float64),
        ("sharper_tol", np.float64),
        ("budget", np.int64),
    ]
)
_ANSWER = record_type(
    [
        ("steps", np.int64),
        ("objective_before", np.float64),
        ("violation_before", np.float64),
        ("objective", np.float64),
        ("violation", np.float64),
        ("noise", np.float64),
        ("rho", np.float64),
        ("r", np.float64),
    ]
)


@dataclass(frozen=True)
class FirstRound:
    """A problem that its first round has not solved: alpha, the values (K c)_i, and the steps."""

    alpha: np.ndarray
    values: np.ndarray
    steps: int


def split_by_sign(problem: DualProblem, n_points: int, tile: TileView) -> TileView:
    """The same tile, split by the sign of y if pairs must have equal signs.

    A regression has two variables for each point.
    """
    if len(problem) > n_points:
        return TileView(tile.K, 0, n_points, 0)
    if not problem.keeps_sum or tile.middle < len(problem):
        return tile
    middle = int(np.count_nonzero(problem.y == problem.y[0]))
    return TileView(tile.K, tile.first, middle, tile.first + middle)


def most_steps(n_variables: int) -> int:
    """Pair steps of a round: a limit after which other steps may be better."""
    return _STEPS_PER_VARIABLE * n_variables + _MORE_STEPS


def sharper_tolerance(problem: DualProblem, tol: float) -> float:
    """The tolerance to which a tiny problem is solved once `tol` is reached; else 0.

    So the solution of a tiny problem depends neither on the order of its rows nor on whether its
    kernel is built in, a function, or a given matrix. Not for nu, whose solution is divided by its
    margin.
    """
    is_tiny = len(problem) <= _TINY and not problem.keeps_sum
    return INNER_TOLERANCE * _SHARPER * tol if is_tiny else 0.0


@kernel
def solve_whole(tile, diagonal, variables, keeps_sum, tols, eta, budget, alpha, values, f, record):
    """A round over all variables; changes alpha and values, and returns the number of steps.

    tols: where pair steps end, and where they end if they are continued, or 0. The values (K c)_i
    and f must be those of alpha; f stays as it is.
    """
    rows, y, u, _ = variables
    tol, sharper_tol = tols
    before = alpha.copy()
    diagonals = diagonal[rows]
    most = min(budget, _STEPS_PER_VARIABLE * len(alpha) + _MORE_STEPS)
    steps = solve_tile(tile, diagonals, y, u, alpha, f, keeps_sum, tol, eta, most, record)
    if 0 < steps < most and sharper_tol > 0.0:
        changes = sum_of_tile(tile, variables, alpha - before, len(values))
        most = min(budget - steps, steps + SHARPENING_STEPS)
        rest = record
        if len(record.first) > 0:
            rest = PairRecord(record.first[steps:], record.second[steps:], record.length[steps:])
        steps += solve_tile(
            tile, diagonals, y, u, alpha, f + changes[rows], keeps_sum, sharper_tol, eta, most, rest
        )  # fmt: skip
    values += sum_of_tile(tile, variables, alpha - before, len(values))
    return steps


@kernel
def sum_of_tile(tile, variables, change, n_points):
    """K times the coefficients of a change of alpha."""
    K, first, middle, second = tile.K, tile.first, tile.middle, tile.second
    weights = coefficients_of(variables, change, n_points)
    moved = np.flatnonzero(weights)
    places = np.where(moved < middle, first + moved, second + (moved - middle))
    total = np.zeros(n_points)
    add_rows(K, places, weights[moved], first, total[:middle])
    add_rows(K, places, weights[moved], second, total[middle:])
    return total


@kernel
def coefficients_of(variables, alpha, n_points):
    """The same as `DualProblem.coefficients`."""
    rows, y = variables.rows, variables.y
    weights = np.zeros(n_points)
    for i in range(len(alpha)):
        weights[rows[i]] += alpha[i] * y[i]
    if len(alpha) > n_points:
        rounding = 0.0
        for i in range(len(alpha)):
            rounding = max(rounding, 1e-15 * alpha[i])
        for i in range(n_points):
            if abs(weights[i]) <= rounding:
                weights[i] = 0.0
    return weights


@dataclass(frozen=True)
class WholeProblems:
    """Problems as the arrays that compiled code reads, and the places of their answers.

    Every problem has a range of the variables and of the points; see `_STATEMENT`.
    """

    problems: Sequence[DualProblem]
    rules: Sequence[SmoRule]
    statements: np.recarray
    variables: Variables
    alpha: np.ndarray
    values: np.ndarray
    answers: np.recarray

    @classmethod
    def of(
        cls,
        problems: Sequence[DualProblem],
        rules: Sequence[SmoRule],
        tiles: Sequence[TileView],
        n_points: Sequence[int],
    ) -> WholeProblems:
        statements = _statements(problems, rules, tiles, n_points)
        y = joined([problem.y for problem in problems])
        variables = Variables(
            rows=joined([problem.rows for problem in problems]),
            y=y,
            u=joined([problem.u for problem in problems]),
            yp=y * joined([problem.p for problem in problems]),
        )
        alpha = np.concatenate([problem.start for problem in problems])
        values = np.empty(int(fields_of(statements)["end_point"][-1]))
        answers = records(len(problems), _ANSWER)
        return cls(problems, rules, statements, variables, alpha, values, answers)

    def outcomes(self) -> list[SolverResult | FirstRound]:
        of = fields_of(self.statements)
        bounds = [of[name].tolist() for name in ("first_variable", "end_variable")]
        points = [of[name].tolist() for name in ("first_point", "end_point")]
        answers = fields_of(self.answers).tolist()
        each = zip(self.problems, self.rules, answers, *bounds, *points, strict=True)
        return [
            _outcome(problem, rule, answer, self.alpha[a:b], self.values[c:d])
            for problem, rule, answer, a, b, c, d in each
        ]


def joined(arrays: list[np.ndarray]) -> np.ndarray:
    """The arrays one after the other; one alone is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def solve_at_once(
    problems: Sequence[DualProblem],
    rules: Sequence[SmoRule],
    tiles: Sequence[TileView],
    n_points: Sequence[int],
    diagonal: np.ndarray,
    *,
    n_threads: int,
) -> list[SolverResult | FirstRound]:
    """One round for each problem, in one compiled call; nearly always that is the solution.

    The Gram matrices are tiles of one float64 matrix with this diagonal.
    """
    stated = WholeProblems.of(problems, rules, tiles, n_points)
    _solve_problem(
        len(problems), n_threads, stated.statements, tiles[0].K, diagonal, stated.variables,
        stated.alpha, stated.values, stated.answers,
    )  # fmt: skip
    return stated.outcomes()


def _statements(
    problems: Sequence[DualProblem],
    rules: Sequence[SmoRule],
    tiles: Sequence[TileView],
    n_points: Sequence[int],
) -> np.recarray:
    statements = records(len(problems), _STATEMENT)
    of = fields_of(statements)
    of["end_variable"] = list(accumulate(map(len, problems)))
    of["end_point"] = list(accumulate(n_points))
    of["first_variable"][1:], of["first_point"][1:] = of["end_variable"][:-1], of["end_point"][:-1]
    each = zip(problems, n_points, tiles, strict=True)
    of["places"] = [split_by_sign(*given)[1:] for given in each]
    of["keeps_sum"] = [problem.keeps_sum for problem in problems]
    of["tol"] = [rule.tol for rule in rules]
    both = list(zip(problems, rules, strict=True))
    of["budget"] = [rule.budget(len(problem)) for problem, rule in both]
    of["sharper_tol"] = [sharper_tolerance(problem, rule.tol) for problem, rule in both]
    return statements


def _outcome(
    problem: DualProblem,
    rule: SmoRule,
    answer: tuple[float, ...],
    alpha: np.ndarray,
    values: np.ndarray,
) -> SolverResult | FirstRound:
    """The result, if it is below the tolerance and the tolerance above the rounding error."""
    steps, objective_before, violation_before, objective, violation, noise, rho, r = answer
    # Copies, because these are parts of the arrays of all problems.
    if not violation < rule.tol or rule.tol < noise:
        return FirstRound(alpha.copy(), values.copy(), int(steps))
    trace = [TracePoint(0, objective_before, violation_before)]
    if steps > 0:
        trace.append(TracePoint(int(steps), objective, violation))
    return SolverResult(
        alpha=alpha.copy(),
        rho=rho if problem.has_bias else 0.0,
        r=r if problem.has_bias else 0.0,
        objective=objective,
        violation=violation,
        iterations=int(steps),
        converged=True,
        trace=trace,
    )


@region
def _solve_problem(
    number, statements, K, diagonal, variables, alphas, all_values, answers
):  # fmt: skip
    """Solve one problem from its start; write the final alpha, its values and its answer."""
    statement, answer = statements[number], answers[number]
    a, b = statement.first_variable, statement.end_variable
    of_problem = Variables(
        variables.rows[a:b], variables.y[a:b], variables.u[a:b], variables.yp[a:b]
    )
    places = statement.places
    tile = TileView(K, places[0], places[1], places[2])
    alpha, keeps_sum, tol = alphas[a:b], statement.keeps_sum, statement.tol
    values = all_values[statement.first_point : statement.end_point]
    values[:] = sum_of_tile(tile, of_problem, alpha, len(values))
    diagonals = np.empty(len(values))
    diagonals[: tile.middle] = diagonal[tile.first : tile.first + tile.middle]
    diagonals[tile.middle :] = diagonal[tile.second : tile.second + len(values) - tile.middle]
    f, found = np.empty(b - a), np.empty((1, 5))
    measure(0, values, of_problem, alpha, keeps_sum, f, found)
    answer.objective_before = 0.5 * found[0, 4]
    answer.violation_before = violation_of(found[0, 0], found[0, 1], found[0, 2], found[0, 3])
    answer.steps = 0
    if answer.violation_before >= tol:
        none = np.empty(0, np.int64)
        answer.steps = solve_whole(
            tile, diagonals, of_problem, keeps_sum,
            (INNER_TOLERANCE * tol, statement.sharper_tol), FLOAT64_ETA, statement.budget,
            alpha, values, f, PairRecord(none, none, np.empty(0)),
        )  # fmt: skip
        measure(0, values, of_problem, alpha, keeps_sum, f, found)
    answer.objective = 0.5 * found[0, 4]
    answer.violation = violation_of(found[0, 0], found[0, 1], found[0, 2], found[0, 3])
    coefficients = coefficients_of(of_problem, alpha, len(values))
    length = np.sqrt(np.sum(coefficients * coefficients))
    answer.noise = ROUNDING * np.abs(diagonals).max() * length
    answer.rho, answer.r = offsets_of(of_problem, alpha, f, keeps_sum)


solve_problem = _solve_problem.body
