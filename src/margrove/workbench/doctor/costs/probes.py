"""Small fits of parts of a table, timed and weighed: what estimates of costs are made from."""

from __future__ import annotations

import ctypes
import gc
import re
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

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
from margrove.workbench.doctor.examined_data import final_step
from margrove.workbench.doctor.examined_target import ExaminedTarget

__all__ = ["estimates_for"]

_GAUGE_SIZE = 250
_FIRST_SIZE = 1000
_FIRST_OF_KERNELS = 2500  # more than 2048, below which other code runs
_LARGEST_SIZE = 25_000
_FEWEST_ROWS = 20
_LEAST_LEAP = 3.0  # from one size to the next
_FITS_A_PROBE = 3.0  # two that are timed, and one that is weighed
_OVERDRAFT = 2.0
_LEAST_SHARE = 0.5  # of its time that a learner has even if others took too long
_QUICK = 0.25  # seconds: a fit that may be done twice, since the first one loads compiled code
_MOST_LABELS = 100  # of a column, that get an indicator each
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
    """Estimates for an estimator, or for one of each family; and why there are none of some."""
    usable = np.flatnonzero(target.is_there)
    if len(usable) < _FEWEST_ROWS or not table.n_columns:
        return (), [f"No estimates of cost: fewer than {_FEWEST_ROWS} rows have a target."]
    if len(np.unique(target.codes[usable])) < 2:
        return (), ["No estimates of cost: the target is the same in all rows."]
    rows = np.random.default_rng(0).permutation(usable)
    if estimator is not None:
        if is_blocked:
            return (), ["No estimate of cost before the critical findings are dealt with."]
        learners = [estimator]
        source: _Source = _Given(X, y, rows)
    else:
        learners = learners_for(target.task)
        source = _Prepared(table, target, rows)
    estimates, notes = [], []
    left, shares = float(seconds), [_SHARES.get(type(own).__name__, 1.0) for own in learners]
    for k, learner in enumerate(learners):
        least = _LEAST_SHARE * seconds * shares[k] / sum(shares)
        probing = _Probing(learner, source, max(least, left * shares[k] / sum(shares[k:])))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a probe rarely converges, and need not
                probing.run()
        except Exception as error:  # whatever a fit of a stranger's table raises
            words = " ".join(str(error).split())[:200]
            notes.append(f"No estimate for {probing.name}: {type(error).__name__}: {words}")
            continue
        left = max(0.0, left - probing.spent)
        estimates.append(probing.estimate(len(usable), target.class_counts))
    estimates.sort(key=lambda own: own.seconds)
    return tuple(estimates), notes + _beyond_memory(estimates)


def _beyond_memory(estimates: list[CostEstimate]) -> list[str]:
    available = available_memory()
    if available is None:
        return []
    return [
        f"{own.estimator} may need {readable_bytes(1e6 * own.megabytes)} of memory, and "
        f"{readable_bytes(available)} is available."
        for own in estimates
        if 1e6 * own.megabytes > available
    ]


@dataclass(frozen=True)
class _Source:
    """Where the rows of probes come from; `rows` are in random order."""

    def part(self, size: int, family: Family, learner: Any) -> tuple[Any, Any, Any]:
        """Of the first `size` rows: X, y, and the learner, told which columns are labels."""
        raise NotImplementedError

    @property
    def n_rows(self) -> int:
        raise NotImplementedError


@dataclass(frozen=True)
class _Given(_Source):
    """The table as it was given, for an estimator that was given."""

    X: Any
    y: Any
    rows: np.ndarray

    def part(self, size: int, family: Family, learner: Any) -> tuple[Any, Any, Any]:
        from sklearn.utils import _safe_indexing

        rows = np.sort(self.rows[:size])
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), learner

    @property
    def n_rows(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class _Prepared(_Source):
    """The table as each family would get it after the usual preparation."""

    table: CodedTable
    target: ExaminedTarget
    rows: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def part(self, size: int, family: Family, learner: Any) -> tuple[Any, Any, Any]:
        rows = np.sort(self.rows[:size])
        own = self.table.of_rows(rows)
        is_regression = self.target.task == "regression"
        y = self.target.values[rows] if is_regression else self.target.codes[rows]
        if own.is_sparse:
            return _finite_sparse(own.X, family), y, learner
        X = np.array(own.X, dtype=np.float64)
        X[np.isinf(X)] = np.nan
        if family.wants == "codes":
            labels = np.flatnonzero(self.table.of_kind("label", "mixed")).tolist()
            if labels:
                learner = final_step(learner).set_params(categorical_features=labels)
            return X, y, learner
        filled = _filled(X)
        if family.wants == "filled":
            return filled, y, learner
        return _scaled(filled, own), y, learner


def _filled(X: np.ndarray) -> np.ndarray:
    gaps = np.isnan(X)
    if not gaps.any():
        return X
    counts = np.maximum((~gaps).sum(axis=0), 1)
    return np.where(gaps, np.where(gaps, 0.0, X).sum(axis=0) / counts, X)


def _finite_sparse(X: Any, family: Family) -> Any:
    data = np.where(np.isfinite(X.data), X.data, 0.0)
    X = sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
    if family.wants != "scaled":
        return X
    largest = np.asarray(abs(X).max(axis=0).todense()).ravel()
    return (X @ sp.diags_array(1.0 / np.where(largest > 0, largest, 1.0))).tocsr()


def _scaled(X: np.ndarray, table: CodedTable) -> np.ndarray:
    """Numbers with mean 0 and spread 1, labels as indicators."""
    is_label = table.of_kind("label", "mixed")
    with np.errstate(all="ignore"):
        numbers = X[:, ~is_label]
        spread = numbers.std(axis=0)
        good = np.isfinite(spread) & (spread > 0)
        numbers = (numbers - numbers.mean(axis=0)) / np.where(good, spread, 1.0)
        parts = [np.where(good, numbers, 0.0)]
    for j in np.flatnonzero(is_label).tolist():
        n_labels = min(len(table.labels.get(j, ())), _MOST_LABELS)
        parts.append((X[:, [j]] == np.arange(n_labels)).astype(np.float64))
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


class _Probing:
    """Fits of one learner to more and more rows, as long as its time allows."""

    def __init__(self, learner: Any, source: _Source, seconds: float) -> None:
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
        tiny = min(_GAUGE_SIZE, n)
        self._fit_briefly(tiny)  # compiles
        self.spent = 0.0
        brief = self._fit_briefly(tiny)
        small = min(_FIRST_SIZE if exponent == 1.0 else _FIRST_OF_KERNELS, n)
        if brief * small / tiny > _OVERDRAFT * self._seconds:
            small = tiny
        brief = self._fit_briefly(small)
        # Most learners grow more slowly than this: their second size is affordable, too.
        leap = (self._seconds / max(brief, 1e-6)) ** (1.0 / exponent)
        large = min(n, int(small * max(leap, _LEAST_LEAP)))
        self._family = self._hasty_if_slow(large, brief * (large / small) ** exponent)
        for size in dict.fromkeys((small, large)):
            self._probe(size)

    def _hasty_if_slow(self, size: int, at_most: float) -> Family:
        """Fewer rounds, if a probe of the usual number takes too long."""
        few, more = self._family.probed_rounds
        fits = _FITS_A_PROBE * (1.0 + more / few)
        if more == few or fits * at_most < _OVERDRAFT * self._seconds:
            return self._family
        self._fit_briefly(size)  # loads what only many rows need
        too_long = fits * self._fit_briefly(size) > _OVERDRAFT * self._seconds
        return self._family.in_haste() if too_long else self._family

    def _fit_briefly(self, size: int) -> float:
        """Seconds of a fit of few rounds."""
        X, y, learner = self._source.part(size, self._family, self._learner)
        seconds = _seconds_of(self._fit_of(learner, self._family.probed_rounds[0], X, y))
        self.spent += seconds
        return seconds

    def _probe(self, size: int) -> None:
        X, y, learner = self._source.part(size, self._family, self._learner)
        self._n_columns = np.shape(X)[1]
        probes = []
        for rounds in dict.fromkeys(self._family.probed_rounds):
            fit = self._fit_of(learner, rounds, X, y)
            if self._family.touches_part:
                probes.append(self._timed_and_weighed(size, rounds, fit))
            else:
                probe = Probe(size, rounds, self._timed(fit))
                is_last = rounds == self._family.probed_rounds[-1]
                wanted = is_last or self._family.is_chain
                probes.append(self._weighed(probe, fit) if wanted else probe)
        self._pairs.append((probes[0], probes[-1]))

    def _fit_of(self, learner: Any, rounds: int, X: Any, y: Any) -> Callable[[], Any]:
        from sklearn.base import clone

        name = self._family.rounds_name

        def fit() -> Any:
            own = clone(learner) if name is None else with_rounds(learner, name, rounds)
            return own.fit(X, y)

        return fit

    def _timed(self, fit: Callable[[], Any]) -> float:
        """The better of two, if it is quick: the first one may still load compiled code."""
        seconds = _seconds_of(fit)
        if seconds > _QUICK:
            self.spent += seconds
            return seconds
        seconds = min(seconds, _seconds_of(fit))
        self.spent += 2.0 * seconds
        return seconds

    def _weighed(self, probe: Probe, fit: Callable[[], Any]) -> Probe:
        start = _clock()
        peak, kept = _allocated_bytes(fit)
        self.spent += _clock() - start
        return replace(probe, n_bytes=peak, kept_bytes=kept)

    def _timed_and_weighed(self, size: int, rounds: int, fit: Callable[[], Any]) -> Probe:
        """Of machines whose memory the system has to tell, which costs no time."""
        taken: list[float] = []
        n_bytes = _touched_bytes(lambda: taken.append(_seconds_of(fit)))
        if min(taken) < _QUICK:
            taken.append(_seconds_of(fit))
        self.spent += len(taken) * min(taken)
        return Probe(size, rounds, min(taken), n_bytes)

    def estimate(self, n: int, class_counts: np.ndarray) -> CostEstimate:
        """What all n rows will take."""
        family, largest = self._family, self._pairs[-1][1].rows
        seconds = total_seconds(self._pairs, n, family.rounds, family.exponent)
        n_bytes, weighed = self._bytes(n, class_counts)
        off, off_bytes = (spread_of(size, n, family.exponent) for size in (largest, weighed))
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
        """Bytes of n rows, and of how many rows they were measured."""
        family = self._family
        known = [pair for pair in self._pairs if pair[1].n_bytes is not None]
        largest = self._pairs[-1][1].rows
        if family.touches_part and largest < n:
            if self.name in ("SVC", "NuSVC") and np.count_nonzero(class_counts) > 2:
                return pairs_bytes(class_counts), largest
            if not known:  # no figures from the system: what was seen elsewhere
                return kernel_machine_bytes(n), 1
        exponent = 2.0 if family.touches_part else family.exponent
        grown = [(self._without_buffer(few), self._without_buffer(many)) for few, many in known]
        n_bytes = total_bytes(grown, n, family.rounds, exponent)
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


def _allocated_bytes(fit: Callable[[], Any]) -> tuple[float, float]:
    """The most that arrays and objects of Python took at a time, and what the model keeps."""
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        model = fit()
        now, peak = tracemalloc.get_traced_memory()
        del model
        return float(max(0, peak - before)), float(max(0, now - before))
    finally:
        if not was_tracing:
            tracemalloc.stop()


_STATUS = Path("/proc/self/status")
_FORGET_PEAK = Path("/proc/self/clear_refs")


def _touched_bytes(fit: Callable[[], Any]) -> float | None:
    """The most memory that was written to; None where the system does not tell."""
    gc.collect()
    _give_back_freed_memory()
    try:
        _FORGET_PEAK.write_text("5")
        before = _figure("VmRSS")
        fit()
        return max(0.0, _figure("VmHWM") - before)
    except (OSError, AttributeError):
        return None


def _give_back_freed_memory() -> None:
    """Memory that is free but still ours would be taken again unseen."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):  # another C library
        return


def _figure(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", _STATUS.read_text())
    if found is None:
        raise OSError(f"no figure {name}")
    return 1024.0 * float(found.group(1))
