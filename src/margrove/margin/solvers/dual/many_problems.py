"""Several problems as one process: small ones side by side, large ones one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from margrove._runtime import (
    SLICE_SECONDS,
    MisfitError,
    Process,
    numbers_of,
    run_tiles,
    step_capacity,
    whole_number,
)
from margrove.margin.solvers.dual.result import SolverResult

__all__ = ["ManyProblems", "Solver"]

_IN_TURN = 8  # problems that a thread may begin in one slice


class Solver(Process, Protocol):
    """A process that ends in a `SolverResult`, or a `LinearResult`."""

    def result(self) -> Any: ...


class ManyProblems:
    """Runs makers of solvers, `side_by_side` of them at a time; a round is a solved problem.

    A solver is made when its turn comes and replaced by its result when it is done, so that only
    those at work take memory. Each runs as if it were alone: results depend neither on the
    number of threads nor on where slices end. `sizes` are the numbers of variables.
    """

    def __init__(
        self,
        makers: Sequence[Callable[[], Solver]],
        *,
        side_by_side: int = 1,
        unit: str = "problem",
        figure: str = "violation",
        gap_of: Callable[[int, Any], float] | None = None,
        sizes: Sequence[int] = (),
    ) -> None:
        self._gap_of = gap_of
        self._n_variables = list(sizes)
        self._figure = figure
        self._reached: list[float] = []
        self.unit = unit
        self.total: int | None = len(makers)
        self._makers = list(makers)
        self._side_by_side = side_by_side
        self._at_work: dict[int, Solver] = {}
        self._next = 0
        self._results: list[Any] = [None] * len(makers)
        self._steps: list[Any] = []

    @property
    def rounds(self) -> int:
        return sum(result is not None for result in self._results)

    @property
    def finished(self) -> bool:
        return self.rounds == len(self._makers)

    def figures(self) -> dict[str, float]:
        at_work = [solver.figures()[self._figure] for solver in list(self._at_work.values())]
        return {self._figure: max(at_work + self._reached, default=np.inf)}

    def closing_figures(self) -> dict[str, float]:
        """How it stands at an early end: the worst machine's violation and duality gap."""
        results = self.results()
        violations = [float(np.max(result.violation)) for result in results]
        worst = int(np.argmax(violations))
        figures = {"violation": violations[worst]}
        if self._gap_of is not None:
            figures["duality gap"] = self._gap_of(worst, results[worst])
        return figures

    def read_steps(self) -> list[Any]:
        steps, self._steps = self._steps, []
        return steps

    def advance(self, work: float) -> float:
        """Give every solver at work a slice; those that finish make room for the next."""
        # A listener hears of one problem after the other.
        places = 1 if step_capacity() else self._side_by_side
        waiting = list(range(self._next, min(len(self._makers), self._next + _IN_TURN * places)))
        batch = list(self._at_work) + waiting[: max(0, _IN_TURN * places - len(self._at_work))]
        self._next = max([self._next, *(number + 1 for number in batch)])
        deadline = time.monotonic() + SLICE_SECONDS

        def run(place: int) -> None:
            number = batch[place]
            solver = self._at_work.get(number)
            if solver is None:
                solver = self._at_work[number] = self._makers[number]()
            while not solver.finished:
                solver.advance(work)
                if time.monotonic() > deadline:
                    return
            last_steps[number] = solver.read_steps()
            self._reached.append(solver.figures()[self._figure])
            self._results[number] = solver.result()
            del self._at_work[number]  # its memory is the next one's

        last_steps: dict[int, list[Any]] = {}
        run_tiles(run, len(batch), places)
        for number in sorted(batch):
            solver = self._at_work.get(number)
            self._steps += last_steps.get(number, []) if solver is None else solver.read_steps()
        return work

    def state(self) -> dict[str, Any]:
        """Results, and the states of solvers at work that have one: others begin again."""
        at_work = sorted(self._at_work.items())
        return {
            "results": [None if own is None else own.values() for own in self._results],
            "reached": [float(own) for own in self._reached],
            "at_work": [
                {"number": number, "state": solver.state()}
                for number, solver in at_work
                if hasattr(solver, "state")
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        if len(state["results"]) != len(self._makers):
            raise MisfitError("there are not as many problems")
        results = [
            None if own is None else self._result_of(number, own)
            for number, own in enumerate(state["results"])
        ]
        self._reached = numbers_of(state["reached"], "reached")
        for own in state["at_work"]:
            number = whole_number(own["number"], "number", most=len(self._makers) - 1)
            solver = self._makers[number]()
            solver.restore(own["state"])  # type: ignore[attr-defined]
            self._at_work[number] = solver
        self._results = results
        begun = [k for k, own in enumerate(results) if own is not None or k in self._at_work]
        self._next = max(begun, default=-1) + 1
        for number in set(range(self._next)) - set(begun):
            self._at_work[number] = self._makers[number]()

    def _result_of(self, number: int, values: Any) -> Any:
        return SolverResult.of_values(values, self._n_variables[number])

    def results(self) -> list[Any]:
        """Of every problem: unfinished ones as they stand, the others at their start."""
        return [result or self._unfinished(k) for k, result in enumerate(self._results)]

    def _unfinished(self, number: int) -> Any:
        solver = self._at_work.get(number) or self._makers[number]()
        return solver.result()
