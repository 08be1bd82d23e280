"""Probes: small fits to some rows of a table, whose time and memory are measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from margrove._data import CodedTable
from margrove._runtime import available_memory
from margrove.workbench.doctor.costs.estimates import (
    CostEstimate,
    Probe,
    readable_bytes,
    spread_of,
    total_bytes,
    total_seconds,
)
from margrove.workbench.doctor.costs.families import (
    Family,
    buffer_bytes,
    family_of,
    kernel_machine_bytes,
    learners_for,
    pairs_bytes,
    settle_early_stopping,
    with_rounds,
)
from margrove.workbench.doctor.costs.memory import allocated_bytes, touched_bytes
from margrove.workbench.doctor.costs.probe_rows import GivenRows, PreparedRows, RowSource
from margrove.workbench.doctor.examined_data import final_step
from margrove.workbench.doctor.examined_target import ExaminedTarget

__all__ = ["estimates_for"]

_TINY_SIZE = 250
_FIRST_SIZE = 1000
_FIRST_KERNEL_SIZE = 2500  # more than 2048, up to which other code runs
_LARGEST_SIZE = 25_000
_MIN_ROWS = 20
_MIN_STEP = 3.0  # ratio of the two sizes
_FITS_PER_PROBE = 3.0  # two for the time, and one for the memory
_MAX_OVERRUN = 2.0
_MIN_SHARE = 0.5  # of its time that a learner gets even if others took too long
_FAST = 0.25  # seconds: faster fits run twice, because the first one loads compiled code
_SHARES = {"LinearSVC": 2.0, "LinearSVR": 2.0, "SVC": 4.0, "SVR": 4.0}

_clock = time.perf_counter


def estimates_for(
    X: Any,
    y: Any,
    table: CodedTable,
    target: ExaminedTarget,
    estimator: Any,
    seconds: float,
    *,
    is_blocked: bool,
) -> tuple[tuple[CostEstimate, ...], list[str]]:
    """Estimates for an estimator or for the learners of the task, and notes about missing ones."""
    usable = np.flatnonzero(target.is_known)
    if len(usable) < _MIN_ROWS or not table.n_columns:
        return (), [f"No estimates of cost: fewer than {_MIN_ROWS} rows have a target."]
    if len(np.unique(target.codes[usable])) < 2:
        return (), ["No estimates of cost: the target is the same in all rows."]
    rows = np.random.default_rng(0).permutation(usable)
    if estimator is not None:
        if is_blocked:
            return (), ["No estimate of cost until the critical findings are resolved."]
        learners = [estimator]
        source: RowSource = GivenRows(X, y, rows)
    else:
        learners = learners_for(target.task)
        source = PreparedRows(table, target, rows)
    estimates, notes = [], []
    left, shares = float(seconds), [_SHARES.get(type(each).__name__, 1.0) for each in learners]
    for k, learner in enumerate(learners):
        least = _MIN_SHARE * seconds * shares[k] / sum(shares)
        probing = _Probing(learner, source, max(least, left * shares[k] / sum(shares[k:])))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a probe need not converge
                probing.run()
        except Exception as error:  # becomes a note, whatever the fit raises
            reason = " ".join(str(error).split())[:200]
            notes.append(f"No estimate for {probing.name}: {type(error).__name__}: {reason}")
            continue
        left = max(0.0, left - probing.spent)
        estimates.append(probing.estimate(len(usable), target.class_counts))
    estimates.sort(key=lambda cost: cost.seconds)
    return tuple(estimates), notes + _beyond_memory(estimates)


def _beyond_memory(estimates: list[CostEstimate]) -> list[str]:
    available = available_memory()
    if available is None:
        return []
    return [
        f"{cost.estimator} may need {readable_bytes(1e6 * cost.megabytes)} of memory, and "
        f"{readable_bytes(available)} is available."
        for cost in estimates
        if 1e6 * cost.megabytes > available
    ]


class _Probing:
    """Fits of one learner to increasing numbers of rows, within its time limit."""

    def __init__(self, learner: Any, source: RowSource, seconds: float) -> None:
        from sklearn.base import clone

        self._learner = clone(learner)
        settle_early_stopping(final_step(self._learner), source.n_rows)
        self._source = source
        self._seconds = seconds
        self._family = family_of(learner)
        self._pairs: list[tuple[Probe, Probe]] = []
        self.name = type(final_step(learner)).__name__
        self.spent = 0.0
        self._n_columns = 0

    def run(self) -> None:
        """Probe one small size and one that is as large as the time allows."""
        n, exponent = min(self._source.n_rows, _LARGEST_SIZE), self._family.exponent
        tiny = min(_TINY_SIZE, n)
        self._fit_few_rounds(tiny)  # compiles the kernels
        self.spent = 0.0
        brief = self._fit_few_rounds(tiny)
        small = min(_FIRST_SIZE if exponent == 1.0 else _FIRST_KERNEL_SIZE, n)
        if brief * small / tiny > _MAX_OVERRUN * self._seconds:
            small = tiny
        brief = self._fit_few_rounds(small)
        # Most learners grow more slowly than this, so the second size stays within the limit.
        step = (self._seconds / max(brief, 1e-6)) ** (1.0 / exponent)
        large = min(n, int(small * max(step, _MIN_STEP)))
        self._family = self._family_for(large, brief * (large / small) ** exponent)
        for size in dict.fromkeys((small, large)):
            self._probe(size)

    def _family_for(self, size: int, at_most: float) -> Family:
        """The family, with fewer rounds in probes if the usual number would take too long."""
        few, more = self._family.probed_rounds
        fits = _FITS_PER_PROBE * (1.0 + more / few)
        if more == few or fits * at_most < _MAX_OVERRUN * self._seconds:
            return self._family
        self._fit_few_rounds(size)  # loads compiled code that only many rows need
        too_long = fits * self._fit_few_rounds(size) > _MAX_OVERRUN * self._seconds
        return self._family.with_fewer_rounds() if too_long else self._family

    def _fit_few_rounds(self, size: int) -> float:
        """The seconds of a fit with few rounds."""
        X, y, learner = self._source.sample(size, self._family, self._learner)
        seconds = _seconds_of(self._fit_of(learner, self._family.probed_rounds[0], X, y))
        self.spent += seconds
        return seconds

    def _probe(self, size: int) -> None:
        X, y, learner = self._source.sample(size, self._family, self._learner)
        self._n_columns = np.shape(X)[1]
        probes = []
        for rounds in dict.fromkeys(self._family.probed_rounds):
            fit = self._fit_of(learner, rounds, X, y)
            if self._family.touches_part:
                probes.append(self._with_time_and_memory(size, rounds, fit))
            else:
                probe = Probe(size, rounds, self._timed(fit))
                is_last = rounds == self._family.probed_rounds[-1]
                needs_memory = is_last or self._family.is_chain
                probes.append(self._with_memory(probe, fit) if needs_memory else probe)
        self._pairs.append((probes[0], probes[-1]))

    def _fit_of(self, learner: Any, rounds: int, X: Any, y: Any) -> Callable[[], Any]:
        from sklearn.base import clone

        name = self._family.rounds_name

        def fit() -> Any:
            model = clone(learner) if name is None else with_rounds(learner, name, rounds)
            return model.fit(X, y)

        return fit

    def _timed(self, fit: Callable[[], Any]) -> float:
        """The seconds of a fit; of a fast one, the smaller of two (the first may load code)."""
        seconds = _seconds_of(fit)
        if seconds > _FAST:
            self.spent += seconds
            return seconds
        seconds = min(seconds, _seconds_of(fit))
        self.spent += 2.0 * seconds
        return seconds

    def _with_memory(self, probe: Probe, fit: Callable[[], Any]) -> Probe:
        start = _clock()
        peak, kept = allocated_bytes(fit)
        self.spent += _clock() - start
        return replace(probe, n_bytes=peak, kept_bytes=kept)

    def _with_time_and_memory(self, size: int, rounds: int, fit: Callable[[], Any]) -> Probe:
        """A probe whose memory the operating system measures, which takes no extra time."""
        taken: list[float] = []
        n_bytes = touched_bytes(lambda: taken.append(_seconds_of(fit)))
        if min(taken) < _FAST:
            taken.append(_seconds_of(fit))
        self.spent += len(taken) * min(taken)
        return Probe(size, rounds, min(taken), n_bytes)

    def estimate(self, n: int, class_counts: np.ndarray) -> CostEstimate:
        """The estimate for n rows."""
        family, largest = self._family, self._pairs[-1][1].rows
        seconds = total_seconds(self._pairs, n, family.rounds, family.exponent)
        n_bytes, measured = self._bytes(n, class_counts)
        off, off_bytes = (spread_of(size, n, family.exponent) for size in (largest, measured))
        may_stop_early = bool(getattr(final_step(self._learner), "early_stopping", False))
        return CostEstimate(
            estimator=self.name,
            seconds=seconds,
            seconds_low=seconds / off / (3.0 if may_stop_early else 1.0),
            seconds_high=seconds * off,
            megabytes=n_bytes / 1e6,
            megabytes_low=n_bytes / 1e6 / off_bytes,
            megabytes_high=n_bytes / 1e6 * off_bytes,
            basis=self._basis(n),
        )

    def _bytes(self, n: int, class_counts: np.ndarray) -> tuple[float, int]:
        """The bytes of n rows, and the number of rows of the measurement they come from."""
        family = self._family
        known = [pair for pair in self._pairs if pair[1].n_bytes is not None]
        largest = self._pairs[-1][1].rows
        if family.touches_part and largest < n:
            if self.name in ("SVC", "NuSVC") and np.count_nonzero(class_counts) > 2:
                return pairs_bytes(class_counts), largest
            if not known:  # the operating system gives no figures
                return kernel_machine_bytes(n), 1
        exponent = 2.0 if family.touches_part else family.exponent
        pairs = [(self._without_buffer(few), self._without_buffer(many)) for few, many in known]
        n_bytes = total_bytes(pairs, n, family.rounds, exponent)
        return n_bytes + buffer_bytes(self.name, n, self._n_columns), known[-1][1].rows

    def _without_buffer(self, probe: Probe) -> Probe:
        if probe.n_bytes is None:
            return probe
        n_bytes = probe.n_bytes - buffer_bytes(self.name, probe.rows, self._n_columns)
        return replace(probe, n_bytes=max(0.0, n_bytes))

    def _basis(self, n: int) -> str:
        sizes = [f"{many.rows:,}" for _, many in self._pairs]
        listed = ", ".join(sizes[:-1]) + (" and " if len(sizes) > 1 else "") + sizes[-1]
        few, many = self._family.probed_rounds
        rounds = f", {few} and {many} of {self._family.rounds} rounds" if many > few else ""
        return f"fits of {listed} of {n:,} rows{rounds}"


def _seconds_of(fit: Callable[[], Any]) -> float:
    start = _clock()
    fit()
    return _clock() - start
