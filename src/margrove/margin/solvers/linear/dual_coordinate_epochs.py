"""Epochs of dual coordinate descent in one compiled call, which ends when something else is due."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.margin.solvers.linear.dual_coordinate_loops import visit_lanes, visit_one
from margrove.margin.solvers.perceptron import shuffle

__all__ = [
    "CHECK",
    "CHECKED_AT",
    "EPOCH",
    "ESTIMATE",
    "FACE",
    "N_ACTIVE",
    "THRESHOLD",
    "VISITED",
    "Course",
    "Rhythm",
    "epochs_of_lanes",
    "epochs_of_one",
]

# What is due after some epochs: nothing, a step on a face, or to measure the true gap.
_NOTHING, FACE, CHECK = range(3)

# The places of `Course.counts` and `Course.figures`.
N_ACTIVE, _CURSOR, EPOCH, CHECKED_AT, VISITED = range(5)
ESTIMATE, THRESHOLD = range(2)
_ENDED = -1  # the cursor of an epoch that has ended, before the centre of the intercept moves


class Rhythm(NamedTuple):
    """What is due when; `gain` is the change of b for each unit of beta.

    between_faces   epochs from one step on a face to the next; 0 for no such steps
    """

    seed: np.uint64
    n_machines: int
    most_epochs: int
    between_checks: int
    between_faces: int
    is_free: bool
    gain: float


class Course(NamedTuple):
    """Where the epochs of a block are.

    active    int64 (m,)  the rows that are visited come first
    order     int64 (m,)  a buffer
    counts    int64 (5,)  active rows, the next one, epochs, epochs at the last check, visited rows
    figures   float64 (2,)  the estimate of the relative gap, and where the true gap is measured
    """

    active: np.ndarray
    order: np.ndarray
    counts: np.ndarray
    figures: np.ndarray

    @classmethod
    def of_rows(cls, m: int, tol: float) -> Course:
        return cls(
            np.arange(m), np.empty(m, np.int64), np.array([m, 0, 0, 0, 0]), np.array([np.inf, tol])
        )

    @property
    def n_left(self) -> int:
        """The rows that are left in this epoch, or those of the next one."""
        return int(self.counts[N_ACTIVE] - max(self.counts[_CURSOR], 0))

    def visit_all_rows(self) -> None:
        self.active[:] = np.arange(len(self.active))
        self.counts[N_ACTIVE] = len(self.active)


@kernel(bare=True)
def epochs_of_one(X, rows, norms, loss, rhythm, course, state, most_rows):
    """Visit up to most_rows rows, or fewer if something is due, which is returned."""
    while most_rows > 0:
        due = _begin(rhythm, course, state)
        if due != _NOTHING:
            return due
        start, end = _next_rows(course, most_rows)
        visit_one(X, rows, norms, loss, rhythm.gain, course.active, start, end, state)
        most_rows -= end - start
        due = _end(rhythm, course, state)
        if due != _NOTHING:
            return due
    return _NOTHING


@kernel
def epochs_of_lanes(X, rows, norms, targets, rhythm, course, state, most_rows):
    """The same for LANES machines."""
    while most_rows > 0:
        due = _begin(rhythm, course, state)
        if due != _NOTHING:
            return due
        start, end = _next_rows(course, most_rows)
        visit_lanes(X, rows, norms, targets, rhythm.gain, course.active, start, end, state)
        most_rows -= end - start
        due = _end(rhythm, course, state)
        if due != _NOTHING:
            return due
    return _NOTHING


@kernel(inner=True)
def _next_rows(course, most_rows):
    start = course.counts[_CURSOR]
    end = min(course.counts[N_ACTIVE], start + most_rows)
    course.counts[_CURSOR] = end
    course.counts[VISITED] += end - start
    return start, end


@kernel(inner=True)
def _begin(rhythm, course, state):
    """If an epoch has ended, move the centre and look what is due; if none is running, begin it."""
    active, order, counts, figures = course
    if counts[_CURSOR] == _ENDED:
        counts[_CURSOR] = 0
        if rhythm.is_free:  # the centre c of the proximal point method moves to b
            for lane in range(len(state.bias)):
                state.bias[lane] += state.bias.dtype.type(rhythm.gain * state.balance[lane])
        is_last = counts[EPOCH] >= rhythm.most_epochs
        is_due = counts[EPOCH] - counts[CHECKED_AT] >= rhythm.between_checks
        if figures[ESTIMATE] <= figures[THRESHOLD] or counts[N_ACTIVE] == 0 or is_last or is_due:
            return CHECK
    if counts[_CURSOR] == 0:
        order = order[: counts[N_ACTIVE]]
        shuffle(order, rhythm.seed, np.uint64(counts[EPOCH]))
        for t in range(len(order)):
            order[t] = active[order[t]]
        for t in range(len(order)):
            active[t] = order[t]
        for lane in range(len(state.bias)):
            state.sums[0, lane] = state.sums[1, lane] = state.sums[2, lane] = 0.0
            state.next_worst[lane] = 0.0
    return _NOTHING


@kernel(inner=True)
def _end(rhythm, course, state):
    """If all rows are visited: the estimate of the gap, and the rows of the next epoch."""
    active, _, counts, figures = course
    if counts[_CURSOR] < counts[N_ACTIVE]:
        return _NOTHING
    counts[_CURSOR] = _ENDED
    counts[EPOCH] += 1
    figures[ESTIMATE] = 0.0
    for lane in range(len(state.worst)):
        state.worst[lane] = state.next_worst[lane]
        primal = 0.5 * max(state.sums[1, lane], 0.0) + state.sums[0, lane]
        if lane < rhythm.n_machines and primal > 0.0:
            figures[ESTIMATE] = max(figures[ESTIMATE], state.sums[2, lane] / primal)
    n_kept = 0
    for t in range(counts[N_ACTIVE]):
        i = active[t]
        active[n_kept] = i
        n_kept += state.kept[i]
    counts[N_ACTIVE] = n_kept
    if rhythm.between_faces > 0 and counts[EPOCH] % rhythm.between_faces == 0:
        return FACE if figures[ESTIMATE] > figures[THRESHOLD] else _NOTHING
    return _NOTHING
