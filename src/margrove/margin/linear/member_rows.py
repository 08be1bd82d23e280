"""Linear machines whose rows are on several members: the part of the fit that each member runs.

All members call `solve_rows` with their own rows and the facts about all rows. They take the same
steps (see `solvers.linear.newton`), so each has the same result in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from margrove._data import Rows, given_order, kernel_rows
from margrove._runtime import Collective, single_threaded_blas
from margrove.margin.linear.certificates import is_at_bound, row_losses, worst_violation
from margrove.margin.linear.linear_machine import LinearTraining
from margrove.margin.linear.problems import LinearProblem, OneVsRest
from margrove.margin.linear.row_facts import LinearFacts
from margrove.margin.solvers.linear import JointMachines, Kind, LinearResult, Tile, TiledProblem

__all__ = ["MOST_ROWS", "MemberResult", "RowsOfMember", "StepReport", "solve_rows"]

MOST_ROWS = 4_000_000  # times machines, up to which values of single rows are returned

# Rows on disk that are read at a time. Vectors of this length are allocated from memory of the
# process. With Dask's settings of malloc, longer ones are requested from the system each time,
# which takes about twice as long.
_TILE_ROWS = 16_000
_TILE_BYTES = 32_000_000


class RowsOfMember(Protocol):
    """Consecutive rows of the table, the first of which is row `start`; see `dask.members`."""

    @property
    def start(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def y(self) -> Any: ...
    @property
    def weight(self) -> Any: ...
    @property
    def is_on_disk(self) -> bool: ...
    def X(self, first: int = 0, last: int | None = None) -> Any: ...  # noqa: N802


@dataclass(frozen=True)
class StepReport:
    """The progress of a fit: `news` are machines, and their results so far."""

    rounds: int
    total: int | None
    is_over: bool
    figures: dict[str, float]
    news: list[tuple[range, LinearResult]]


@dataclass(frozen=True)
class MemberResult:
    """The joint result, without dual variables.

    rows   for each machine, arrays for the certificate about the rows of this member: rows, alpha,
           decision, errors, is_bounded, in the units of the solver, and violation and worst row.
           None if there are too many rows.
    """

    result: LinearResult
    rows: list[dict[str, Any]] | None


def solve_rows(
    collective: Collective,
    model: Any,
    kind: Kind,
    facts: LinearFacts,
    blocks: Sequence[RowsOfMember],
    *,
    start: LinearResult | None = None,
    n_threads: int = 1,
    most_together: int = 8,
    by_gradients: bool = False,
    keeps_rows: bool = True,
    report: Callable[[StepReport], None] = lambda report: None,
) -> MemberResult:
    """Solve all machines of `model`, an estimator that need not be fitted, with the other members.

    most_together   how many machines of one-vs-rest have room for the values of their rows here
    by_gradients    whether Newton steps are found by conjugate gradients
    keeps_rows      whether the result has values of single rows
    report          is called after each step
    """
    pieces = [piece for block in blocks for piece in _pieces(model, kind, facts, block)]
    most_together = min(collective.gather(most_together))
    problem = _problem(model, kind, facts, pieces)
    problem = replace(
        problem, most_together=most_together, by_gradients=by_gradients, keeps_beta=keeps_rows
    )
    with single_threaded_blas():
        process = JointMachines(
            problem, model._demand(), is_l1=kind == "l1", start=start, n_threads=n_threads,
            collective=collective,
        )  # fmt: skip
        report(_report(process))
        while not process.finished:
            process.advance(0.0)
            report(_report(process))
        result = process.result()
        rows = _rows_of_machines(problem, pieces, result) if keeps_rows else None
    return MemberResult(replace(result, beta=np.empty((0, len(result.coef)))), rows)


def _report(process: JointMachines) -> StepReport:
    return StepReport(
        process.rounds, process.total, process.finished, process.figures(), process.news()
    )


# -- rows as a problem --


def _problem(model: Any, kind: Kind, facts: LinearFacts, pieces: Sequence[_Piece]) -> TiledProblem:
    classes = facts.classes
    return TiledProblem(
        tiles=[piece.tile() for piece in pieces if len(piece)],
        n_features=facts.n_features,
        bias_price=model._bias_price(facts.scale, 1 if kind == "l1" else 2),
        n_machines=1 if classes is None or len(classes) == 2 else len(classes),
        is_smooth=model.loss.startswith("squared"),
        of_classes=classes is not None,
        has_codes=classes is not None,
    )


class _Piece:
    """Some rows of a block, from which problems of rows of positive weight are made."""

    def __init__(
        self, model: Any, kind: Kind, facts: LinearFacts, block: RowsOfMember, first: int, last: int
    ) -> None:
        self._model, self._kind, self._facts, self._block = model, kind, facts, block
        self._first, self._last = first, last
        self._targets = facts.targets_of(block.y[first:last])
        self._n_used = int(np.count_nonzero(self._weights() > 0))

    def __len__(self) -> int:
        return self._n_used

    def tile(self) -> Any:
        """The problem of these rows, or these rows themselves if they are stored."""
        if self._block.is_on_disk:
            return self
        problem = self.problem()
        return replace(problem, X=self.read()[0])

    def problem(self) -> LinearProblem | OneVsRest:
        """The problem without X."""
        form, facts = given_order(self._weights()), self._facts
        training = LinearTraining(None, facts.n_features, form, np.empty(0), facts.scale)
        found: LinearProblem | OneVsRest = self._model._problem_of_rows(
            training, self._targets, facts, self._kind
        )
        return found

    def read(self) -> tuple[Rows, np.ndarray]:
        X = self._block.X(self._first, self._last)
        if self._facts.scale != 1.0:
            X = X.astype(np.float64, copy=False) * self._facts.scale
        return kernel_rows(X), self._used()

    def numbers(self) -> np.ndarray:
        """The numbers of the rows in the table."""
        return self._used() + (self._block.start + self._first)

    def _used(self) -> np.ndarray:
        return np.flatnonzero(self._weights() > 0)

    def _weights(self) -> np.ndarray:
        weight, n_rows = self._block.weight, self._last - self._first
        given = None if weight is None else weight[self._first : self._last]
        return self._facts.weights_of(given, n_rows)


def _pieces(model: Any, kind: Kind, facts: LinearFacts, block: RowsOfMember) -> Iterator[_Piece]:
    """The rows of a block: all together, or as many as are read at a time."""
    count = 1
    if block.is_on_disk:
        most = min(_TILE_ROWS, _TILE_BYTES // (8 * facts.n_features))
        count = -(-block.n_rows // max(1, most))
    edges = np.linspace(0, block.n_rows, count + 1).astype(int).tolist()
    for first, last in pairwise(edges):
        yield _Piece(model, kind, facts, block, first, last)


# -- values of single rows --


def _rows_of_machines(
    problem: TiledProblem, pieces: Sequence[_Piece], result: LinearResult
) -> list[dict[str, Any]]:
    """See `MemberResult`."""
    parts: list[list[dict[str, Any]]] = [[] for _ in result.coef]
    begin = 0
    for piece in pieces:
        if not len(piece):
            continue
        tile = Tile(piece.tile(), problem.n_features, len(parts), 1, 1)
        tile.groups().products(result.coef, result.intercept, np.arange(len(parts)), tile.values)
        found, rows = piece.problem(), piece.numbers()
        for k, part in enumerate(parts):
            machine = found.machine(k) if isinstance(found, OneVsRest) else found
            values = np.empty(len(piece))
            values[tile.order] = tile.values[k]
            beta = result.beta[begin : begin + len(piece), k]
            part.append(_of_rows(machine, beta, values, rows))
        begin += len(piece)
    return [_together(part) for part in parts]


def _of_rows(
    machine: LinearProblem, beta: np.ndarray, values: np.ndarray, rows: np.ndarray
) -> dict[str, Any]:
    loss = machine.loss
    violation, worst = worst_violation(loss, beta, loss.target - values)
    return {
        "rows": rows,
        "alpha": beta,
        "decision": values,
        "errors": row_losses(loss, loss.target - values)[0],
        "is_bounded": is_at_bound(loss, beta),
        "worst": (violation, int(rows[worst])),
    }


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The values of several pieces as one."""
    empty = {name: np.empty(0) for name in ("alpha", "decision", "errors")}
    none = empty | {"rows": np.empty(0, np.int64), "is_bounded": np.empty(0, bool)}
    names = [*none]
    found = {name: np.concatenate([none[name], *(p[name] for p in parts)]) for name in names}
    worst = max((part["worst"] for part in parts), default=(0.0, -1))
    return {name: found[name].astype(none[name].dtype) for name in names} | {"worst": worst}
