"""Exact line searches of several machines at once.

With all rows here, a search is one compiled call. With rows elsewhere, or in files, each trial is a
pass over these rows and a sum over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from margrove._runtime import kernel, share_tiles
from margrove.margin.solvers.linear.row_losses import part_of

__all__ = [
    "LENGTH",
    "Line",
    "add_pulls",
    "begin_line",
    "begin_search",
    "is_search_over",
    "look_at_all",
    "search_line",
    "search_lines",
]

_SLOPE_LEFT = 0.05  # share of the initial slope at which a line search ends
_MOST_TRIALS = 60
_GROWTH = 8.0  # the largest growth of a step from one trial to the next

# The places of the state of a search.
_ENOUGH, _LINEAR, _QUADRATIC, _LOW, _HIGH, LENGTH, _TRIALS, _IS_OVER = range(8)
_N_NUMBERS = 8


class Line(NamedTuple):
    """The slope at the beginning, and the slope of the penalties: linear + length * quadratic."""

    slope: float
    linear: float
    quadratic: float


def begin_search(lines: Sequence[Line]) -> np.ndarray:
    """The state of searches along these lines."""
    state = np.empty((len(lines), _N_NUMBERS))
    for place, line in zip(state, lines, strict=True):
        begin_line(place, *line)
    return state


@kernel(bare=True)
def begin_line(state, slope, linear, quadratic):
    """The state of a search along a `Line`."""
    state[_ENOUGH], state[_LINEAR], state[_QUADRATIC] = -_SLOPE_LEFT * slope, linear, quadratic
    state[_LOW], state[_HIGH], state[LENGTH] = 0.0, np.inf, 1.0
    state[_TRIALS], state[_IS_OVER] = 0.0, 0.0


@kernel(inner=True)
def search_line(state, losses, own, values, moves, centre, width):
    """The search of one machine, over all rows at a time."""
    while state[_IS_OVER] == 0.0:
        pull, curvature = _pulls(
            losses, own, 0, len(values), values, moves, state[LENGTH], centre, width
        )
        _look(state, pull, curvature)


@kernel
def search_lines(
    words, n_groups, n_threads, most_passes, state, size, losses, own, machines, widths, values,
    moves, betas, centres, partial,
):  # fmt: skip
    """Look for the lengths at which slopes (rising, piecewise linear) are nearly zero.

    False if some searches are not over after `most_passes` passes over the rows.
    """
    for _ in range(most_passes):
        share_tiles(
            words, n_groups, n_threads, _add_pulls,
            (size, losses, own, machines, state, widths, values, moves, betas, centres, partial),
        )  # fmt: skip
        n_open = 0
        for a in range(len(state)):
            if state[a, _IS_OVER] == 0.0:
                pull, curvature = 0.0, 0.0
                for group in range(n_groups):
                    pull += partial[group, a, 0]
                    curvature += partial[group, a, 1]
                _look(state[a], pull, curvature)
                n_open += state[a, _IS_OVER] == 0.0
        if n_open == 0:
            return True
    return False


def is_search_over(state: np.ndarray) -> bool:
    return bool(state[:, _IS_OVER].all())


@kernel
def add_pulls(
    words, n_groups, n_threads, state, size, losses, own, machines, widths, values, moves, betas,
    centres, partial,
):  # fmt: skip
    """One pass of `search_lines` over some of the rows: their sums, by groups, to partial."""
    share_tiles(
        words, n_groups, n_threads, _add_pulls,
        (size, losses, own, machines, state, widths, values, moves, betas, centres, partial),
    )  # fmt: skip


@kernel
def look_at_all(state, pulls):
    """The next trial of the searches that are not over, from the sums over all rows."""
    for a in range(len(state)):
        if state[a, _IS_OVER] == 0.0:
            _look(state[a], pulls[a, 0], pulls[a, 1])


@kernel(inner=True)
def _look(state, pull, curvature):
    """Look at the sums of beta times move and of curvature times move^2 at the current length."""
    length = state[LENGTH]
    at_length = state[_LINEAR] + length * state[_QUADRATIC] - pull
    state[_TRIALS] += 1.0
    if abs(at_length) <= state[_ENOUGH]:
        state[_IS_OVER] = 1.0
        return
    if at_length < 0.0:
        state[_LOW] = length
    else:
        state[_HIGH] = length
    curvature += state[_QUADRATIC]
    guess = length - at_length / curvature if curvature > 0.0 else np.inf
    if np.isinf(state[_HIGH]):
        guess = min(guess, _GROWTH * length)
    if not state[_LOW] < guess < state[_HIGH]:
        guess = 0.5 * (state[_LOW] + state[_HIGH])
    state[_IS_OVER] = guess == length or state[_TRIALS] == _MOST_TRIALS
    state[LENGTH] = guess


@kernel(inner=True, fast_sums=True)
def _pulls(losses, own, begin, stop, values, moves, length, centre, width):
    """The sums of beta times move and of curvature times move^2, without a branch in the loop."""
    first, second, tube = 0.0, 0.0, losses.tube
    is_smooth = width == 0.0
    scale = 1.0 if is_smooth else 1.0 / width
    codes, target, low, high, _, factor = part_of(losses, begin, stop)
    values, moves, centre = values[begin:stop], moves[begin:stop], centre[begin:stop]
    for i in range(len(values)):
        side = 1.0 if codes[i] == own else -1.0
        residual = target[i] - side * (values[i] + length * moves[i])
        curvature = factor[i] * scale
        if not is_smooth:
            residual += side * centre[i] / curvature
        excess = max(residual - tube, 0.0) + min(residual + tube, 0.0)
        dual = min(max(excess * curvature, low[i]), high[i])
        first += dual * side * moves[i]
        is_curved = (dual != 0.0) & (low[i] < dual) & (dual < high[i])
        second += curvature * moves[i] * moves[i] if is_curved else 0.0
    return first, second


@kernel(inner=True, fast_sums=True)
def _add_pulls(
    group, size, losses, own, machines, state, widths, values, moves, betas, centres, partial
):  # fmt: skip
    """The sums of a group of rows for the machines whose search is not over."""
    begin, stop = group * size, min((group + 1) * size, values.shape[1])
    for a in range(len(machines)):
        if state[a, _IS_OVER] != 0.0:
            continue
        k = machines[a]
        partial[group, a, 0], partial[group, a, 1] = _pulls(
            losses, own[k], begin, stop, values[k], moves[k], state[a, LENGTH],
            betas[centres[a], k], widths[a],
        )  # fmt: skip
