"""Several problems as one process: small ones in parallel, large ones one after the other."""

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

_PER_THREAD = 8  # problems that a thread may begin in one slice
_EASY_WORK = 1e7  # squared numbers of variables that a thread may try to solve in one slice


class Solver(Process, Protocol):
    """A process that ends in a `SolverResult`, or a `LinearResult`."""

    def result(self) -> Any: ...


class ManyProblems:
    """Runs solvers, `side_by_side` of them at a time; a round is a solved problem.

    `makers` are functions that make the solvers. A solver is made when it starts and replaced by
    its result when it is done, so that only running solvers take memory. Results depend neither on
    the number of threads nor on where slices end. `sizes` are the numbers of variables.

    `solve_easy` is a function (numbers, n_threads) that tries to solve problems without solvers. It
    returns their results, and for problems that need more than that a solver that goes on.
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
        solve_easy: Callable[[list[int], int], list[Any]] | None = None,
    ) -> None:
        self._gap_of = gap_of
        self._n_variables = list(sizes)
        self._figure = figure
        self._reached: list[float] = []
        self.unit = unit
        self.total: int | None = len(makers)
        self._makers = list(makers)
        self._side_by_side = side_by_side
        self._running: dict[int, Solver] = {}
        self._waiting = list(range(len(makers)))
        self._solve_easy = solve_easy
        self._untried = self._waiting if solve_easy is not None else []
        self._results: list[Any] = [None] * len(makers)
        self._steps: list[Any] = []

    @property
    def rounds(self) -> int:
        return sum(result is not None for result in self._results)

    @property
    def finished(self) -> bool:
        return self.rounds == len(self._makers)

    def figures(self) -> dict[str, float]:
        running = [solver.figures()[self._figure] for solver in list(self._running.values())]
        return {self._figure: max(running + self._reached, default=np.inf)}

    def closing_figures(self) -> dict[str, float]:
        """Figures for an early end: violation and duality gap of the worst machine."""
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
        """Run a slice of every running solver, and start new ones when some finish."""
        # A listener gets the steps of one problem after the other.
        places = 1 if step_capacity() else self._side_by_side
        if self._untried and not step_capacity():
            self._try_easy(places)
            return work
        n_new = max(0, _PER_THREAD * places - len(self._running))
        batch = list(self._running) + self._waiting[:n_new]
        self._waiting = self._waiting[n_new:]
        deadline = time.monotonic() + SLICE_SECONDS

        def run(place: int) -> None:
            number = batch[place]
            solver = self._running.get(number)
            if solver is None:
                solver = self._running[number] = self._makers[number]()
            while not solver.finished:
                solver.advance(work)
                if time.monotonic() > deadline:
                    return
            last_steps[number] = solver.read_steps()
            self._reached.append(solver.figures()[self._figure])
            self._results[number] = solver.result()
            del self._running[number]  # free its memory

        last_steps: dict[int, list[Any]] = {}
        run_tiles(run, len(batch), places)
        for number in sorted(batch):
            solver = self._running.get(number)
            self._steps += last_steps.get(number, []) if solver is None else solver.read_steps()
        return work

    def _try_easy(self, n_threads: int) -> None:
        """Try the next problems without solvers, a slice of them."""
        assert self._solve_easy is not None
        work = np.cumsum(np.square(np.array(self._n_variables, float)[self._untried]))
        count = max(1, int(np.searchsorted(work, _EASY_WORK * n_threads)))
        batch, untried = self._untried[:count], self._untried[count:]
        for number, result in zip(batch, self._solve_easy(batch, n_threads), strict=True):
            if isinstance(result, SolverResult):
                self._results[number] = result
                self._reached.append(result.violation)
            else:
                self._running[number] = result
        self._untried, self._waiting = untried, self._not_begun()

    def _not_begun(self) -> list[int]:
        pairs = enumerate(self._results)
        return [k for k, result in pairs if result is None and k not in self._running]

    def state(self) -> dict[str, Any]:
        """Results, and the states of running solvers; solvers without a state start again."""
        running = sorted(self._running.items())
        return {
            "results": [None if result is None else result.values() for result in self._results],
            "reached": [float(figure) for figure in self._reached],
            "at_work": [
                {"number": number, "state": solver.state()}
                for number, solver in running
                if hasattr(solver, "state")
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        if len(state["results"]) != len(self._makers):
            raise MisfitError("the number of problems differs")
        results = [
            None if values is None else self._result_of(number, values)
            for number, values in enumerate(state["results"])
        ]
        self._reached = numbers_of(state["reached"], "reached")
        for entry in state["at_work"]:
            number = whole_number(entry["number"], "number", most=len(self._makers) - 1)
            solver = self._makers[number]()
            solver.restore(entry["state"])  # type: ignore[attr-defined]
            self._running[number] = solver
        self._results = results
        self._waiting = self._not_begun()
        self._untried = self._waiting if self._solve_easy is not None else []

    def _result_of(self, number: int, values: Any) -> Any:
        return SolverResult.of_values(values, self._n_variables[number])

    def results(self) -> list[Any]:
        """The results of all problems: finished, current, or at the starting point."""
        return [result or self._unfinished(k) for k, result in enumerate(self._results)]

    def _unfinished(self, number: int) -> Any:
        solver = self._running.get(number) or self._makers[number]()
        return solver.result()
