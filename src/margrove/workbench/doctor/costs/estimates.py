"""The arithmetic of estimates: from the costs of a few small fits to that of a large one.

The cost of n rows is a + b n^e, where e depends on the family of the learner: 1 for learners whose
time is proportional to the rows, 1.6 for kernel machines. Learners that add one tree after the
other cost s(n) + rounds * r(n), with both terms of that form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from scipy.optimize import nnls

__all__ = [
    "CostEstimate",
    "Probe",
    "cost_table",
    "extrapolated",
    "readable_bytes",
    "readable_seconds",
    "setup_and_round",
    "spread_of",
    "total_bytes",
    "total_seconds",
]

_MEASURED_SPREAD = 1.3  # factor between two runs of the same fit
_MIN_ROUND_SHARE = 0.02  # of the time of a probe
_DOUBT = {True: 0.12, False: 0.25}  # exponent of the ratio of rows, if growth is linear or not


@dataclass(frozen=True)
class Probe:
    """A small fit.

    rows, rounds   number of rows and rounds
    seconds        duration
    n_bytes        peak memory, None if it was not measured
    kept_bytes     memory of the fitted model, a part of n_bytes
    """

    rows: int
    rounds: int
    seconds: float
    n_bytes: float | None = None
    kept_bytes: float = 0.0


@dataclass(frozen=True)
class CostEstimate:
    """Expected time and memory of a fit to all rows.

    Attributes
    ----------
    estimator : str
        Name of the estimator.
    seconds, seconds_low, seconds_high : float
        Time, and its probable range.
    megabytes, megabytes_low, megabytes_high : float
        Peak memory beyond what was in use before, and its probable range.
    basis : str
        The fits that the estimate is based on.
    """

    estimator: str
    seconds: float
    seconds_low: float
    seconds_high: float
    megabytes: float
    megabytes_low: float
    megabytes_high: float
    basis: str

    def as_dict(self) -> dict[str, Any]:
        """All fields as values that JSON can hold."""
        return asdict(self)


def extrapolated(
    sizes: Sequence[float], costs: Sequence[float], n: float, exponent: float
) -> float:
    """The cost of n rows from those of fewer, as a + b n^exponent with a, b >= 0.

    The fit minimises relative errors, because the error of a measured time is about the same
    percentage for short and long times.
    """
    rows, cost = np.asarray(sizes, float), np.maximum(np.asarray(costs, float), 1e-12)
    if len(rows) == 1:
        return float(cost[0] * (n / rows[0]) ** exponent)
    unit, highest = rows.max(), cost.max()
    forms = np.column_stack([np.ones(len(rows)), (rows / unit) ** exponent])
    found, _ = nnls(forms * (highest / cost)[:, None], np.ones(len(rows)))
    return float(highest * (found[0] + found[1] * (n / unit) ** exponent))


def setup_and_round(few: Probe, many: Probe) -> tuple[float, float]:
    """The seconds before the first round, and per round, from two fits to the same rows."""
    if many.rounds == few.rounds:
        return 0.0, many.seconds / many.rounds
    highest = many.seconds / many.rounds
    a_round = (many.seconds - few.seconds) / (many.rounds - few.rounds)
    # At most as if there were no setup, and never zero, however noisy the measured times are.
    a_round = float(np.clip(a_round, _MIN_ROUND_SHARE * highest, highest))
    return many.seconds - many.rounds * a_round, a_round


def total_seconds(
    pairs: Sequence[tuple[Probe, Probe]], n: int, rounds: int, exponent: float
) -> float:
    """The seconds of n rows and so many rounds, from pairs of probes of few and of more rounds.

    For a learner without rounds, both probes of a pair are the same, with one round.
    """
    costs = [setup_and_round(few, many) for few, many in pairs]
    return _total([many.rows for _, many in pairs], costs, n, rounds, exponent)


def total_bytes(
    pairs: Sequence[tuple[Probe, Probe]], n: int, rounds: int, exponent: float
) -> float:
    """The peak memory of n rows and so many rounds, in bytes."""
    known = [pair for pair in pairs if pair[1].n_bytes is not None]
    costs = [_bytes_of_setup_and_round(few, many) for few, many in known]
    return _total([many.rows for _, many in known], costs, n, rounds, exponent)


def _bytes_of_setup_and_round(few: Probe, many: Probe) -> tuple[float, float]:
    """A round adds its part of the model, or the difference of the two peaks if that is more."""
    peak = many.n_bytes or 0.0
    a_round = many.kept_bytes / many.rounds
    if few.n_bytes is not None and many.rounds > few.rounds:
        a_round = max(a_round, (peak - few.n_bytes) / (many.rounds - few.rounds))
    a_round = min(a_round, peak / many.rounds)
    return peak - many.rounds * a_round, a_round


def _total(
    sizes: Sequence[int],
    costs: Sequence[tuple[float, float]],
    n: int,
    rounds: int,
    exponent: float,
) -> float:
    setup = extrapolated(sizes, [setup for setup, _ in costs], n, exponent)
    return setup + rounds * extrapolated(sizes, [a_round for _, a_round in costs], n, exponent)


def spread_of(largest: int, n: int, exponent: float) -> float:
    """The factor by which an estimate may be off; it grows with n / largest measured size."""
    ratio = max(1.0, n / max(1, largest))
    return _MEASURED_SPREAD * ratio ** _DOUBT[exponent <= 1.0]


class _HasEstimates(Protocol):
    @property
    def estimates(self) -> tuple[CostEstimate, ...]: ...


def cost_table(diagnosis: _HasEstimates) -> list[str]:
    """A text table, one line for each estimator."""
    head = ("", "time", "", "memory", "")
    rows = [head]
    for cost in diagnosis.estimates:
        seconds = readable_seconds(cost.seconds_low), readable_seconds(cost.seconds_high)
        sizes = readable_bytes(1e6 * cost.megabytes_low), readable_bytes(1e6 * cost.megabytes_high)
        rows.append(
            (
                cost.estimator,
                readable_seconds(cost.seconds),
                f"({' .. '.join(seconds)})",
                readable_bytes(1e6 * cost.megabytes),
                f"({' .. '.join(sizes)})",
            )
        )
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [
            cell.rjust(width) if k % 2 == 0 else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row[1:], widths[1:], strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def readable_seconds(seconds: float) -> str:
    """A duration in the unit that needs the fewest digits."""
    if seconds < 0.9995:
        return f"{max(1000 * seconds, 0.1):.2g} ms" if seconds < 0.01 else f"{seconds:.2g} s"
    for unit, size in (("s", 60.0), ("min", 60.0), ("h", 48.0)):
        if seconds < size:
            return f"{seconds:.3g} {unit}" if seconds >= 10 else f"{seconds:.2g} {unit}"
        seconds /= size if unit != "h" else 24.0
    return f"{seconds:.3g} days"


def readable_bytes(n_bytes: float) -> str:
    """A size with two digits and a unit."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.2g} {unit}" if n_bytes < 99.5 else f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.2g} GB" if n_bytes < 99.5 else f"{n_bytes:.0f} GB"
