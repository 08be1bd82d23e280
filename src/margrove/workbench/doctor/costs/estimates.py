"""From what a few small fits cost to what a large one will: pure arithmetic, no clocks.

The cost of n rows is taken as a + b n^e, where e belongs to the family of the learner: 1 for what
reads rows in turn, 1.6 for kernel machines, between the number of rows and that of their pairs.
Learners that add one tree after the other cost s(n) + rounds * r(n), both of that form.
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

_MEASURED_SPREAD = 1.3  # between one run and the next
_LEAST_OF_ROUNDS = 0.02  # of the time of a probe
_DOUBT = {True: 0.12, False: 0.25}  # exponent of the ratio of rows; of linear growth, and of other


@dataclass(frozen=True)
class Probe:
    """A small fit.

    rows, rounds   of how many
    seconds
    n_bytes        the most at a time, None if nobody looked; of these the model keeps `kept_bytes`
    """

    rows: int
    rounds: int
    seconds: float
    n_bytes: float | None = None
    kept_bytes: float = 0.0


@dataclass(frozen=True)
class CostEstimate:
    """What a fit of all rows is expected to take.

    Attributes
    ----------
    estimator : str
        Its name.
    seconds, seconds_low, seconds_high : float
        Time, and the range it will probably be in.
    megabytes, megabytes_low, megabytes_high : float
        The most memory in use at a time, beyond what was in use before.
    basis : str
        What the estimate was made from.
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
        """All fields, as what JSON can hold."""
        return asdict(self)


def extrapolated(
    sizes: Sequence[float], costs: Sequence[float], n: float, exponent: float
) -> float:
    """The cost of n rows from those of fewer, as a + b n^exponent with a, b >= 0.

    Costs are weighed by their relative errors: a timer is as wrong about a short time as about a
    long one, in per cent.
    """
    rows, cost = np.asarray(sizes, float), np.maximum(np.asarray(costs, float), 1e-12)
    if len(rows) == 1:
        return float(cost[0] * (n / rows[0]) ** exponent)
    unit, price = rows.max(), cost.max()
    forms = np.column_stack([np.ones(len(rows)), (rows / unit) ** exponent])
    found, _ = nnls(forms * (price / cost)[:, None], np.ones(len(rows)))
    return float(price * (found[0] + found[1] * (n / unit) ** exponent))


def setup_and_round(few: Probe, many: Probe) -> tuple[float, float]:
    """Seconds before the first round, and of a round, from two fits of the same rows."""
    if many.rounds == few.rounds:
        return 0.0, many.seconds / many.rounds
    all_of_it = many.seconds / many.rounds
    a_round = (many.seconds - few.seconds) / (many.rounds - few.rounds)
    # Never more than if there were nothing but rounds, nor free, whatever a noisy clock says.
    a_round = float(np.clip(a_round, _LEAST_OF_ROUNDS * all_of_it, all_of_it))
    return many.seconds - many.rounds * a_round, a_round


def total_seconds(
    pairs: Sequence[tuple[Probe, Probe]], n: int, rounds: int, exponent: float
) -> float:
    """Of n rows and so many rounds, from pairs of probes of few rounds and of more.

    A learner without rounds has pairs of one and the same probe, and one round.
    """
    parts = [setup_and_round(few, many) for few, many in pairs]
    return _summed([many.rows for _, many in pairs], parts, n, rounds, exponent)


def total_bytes(
    pairs: Sequence[tuple[Probe, Probe]], n: int, rounds: int, exponent: float
) -> float:
    """Of n rows and so many rounds: what a round adds, and what is used again by the next."""
    known = [pair for pair in pairs if pair[1].n_bytes is not None]
    parts = [_bytes_of_setup_and_round(few, many) for few, many in known]
    return _summed([many.rows for _, many in known], parts, n, rounds, exponent)


def _bytes_of_setup_and_round(few: Probe, many: Probe) -> tuple[float, float]:
    """A round adds what the model keeps of it, or by how much more rounds took more."""
    peak = many.n_bytes or 0.0
    a_round = many.kept_bytes / many.rounds
    if few.n_bytes is not None and many.rounds > few.rounds:
        a_round = max(a_round, (peak - few.n_bytes) / (many.rounds - few.rounds))
    a_round = min(a_round, peak / many.rounds)
    return peak - many.rounds * a_round, a_round


def _summed(
    sizes: Sequence[int],
    parts: Sequence[tuple[float, float]],
    n: int,
    rounds: int,
    exponent: float,
) -> float:
    setup = extrapolated(sizes, [part[0] for part in parts], n, exponent)
    return setup + rounds * extrapolated(sizes, [part[1] for part in parts], n, exponent)


def spread_of(largest: int, n: int, exponent: float) -> float:
    """By what factor an estimate may be off: more, the further it is from what was measured."""
    ratio = max(1.0, n / max(1, largest))
    return _MEASURED_SPREAD * ratio ** _DOUBT[exponent <= 1.0]


class _HasEstimates(Protocol):
    @property
    def estimates(self) -> tuple[CostEstimate, ...]: ...


def cost_table(diagnosis: _HasEstimates) -> list[str]:
    """Lines of text, one an estimator."""
    head = ("", "time", "", "memory", "")
    rows = [head]
    for own in diagnosis.estimates:
        seconds = readable_seconds(own.seconds_low), readable_seconds(own.seconds_high)
        sizes = readable_bytes(1e6 * own.megabytes_low), readable_bytes(1e6 * own.megabytes_high)
        rows.append(
            (
                own.estimator,
                readable_seconds(own.seconds),
                f"({' .. '.join(seconds)})",
                readable_bytes(1e6 * own.megabytes),
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
    """In the unit that needs the fewest digits."""
    if seconds < 0.9995:
        return f"{max(1000 * seconds, 0.1):.2g} ms" if seconds < 0.01 else f"{seconds:.2g} s"
    for unit, size in (("s", 60.0), ("min", 60.0), ("h", 48.0)):
        if seconds < size:
            return f"{seconds:.3g} {unit}" if seconds >= 10 else f"{seconds:.2g} {unit}"
        seconds /= size if unit != "h" else 24.0
    return f"{seconds:.3g} days"


def readable_bytes(n_bytes: float) -> str:
    """Two digits and a unit."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.2g} {unit}" if n_bytes < 99.5 else f"{n_bytes:.0f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.2g} GB" if n_bytes < 99.5 else f"{n_bytes:.0f} GB"
