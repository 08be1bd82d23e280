"""Statistics that consist of sums and of quantiles: those that need no rows in one place.

    mean, sum       from   sum_i c_i x_i
    var, std        from   sum_i c_i x_i  and  sum_i c_i x_i^2
    quantiles       from   how many rows, counted c_i times, lie below a value

where c_i says how often row i was drawn. x is taken less the mean of the data, so that nothing is
lost to rounding. Without each row in turn, as method="bca" wants it, all of them have closed forms:
the influence of row i is, up to a factor that does not matter,

    mean, sum       x_i - mean
    var             (x_i - mean)^2 - variance
    std             the difference of roots (see `_std_without`)
    quantiles       one of three values, according to the rank of row i
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

__all__ = ["Statistic", "interpolated", "known_statistic", "local_statistic"]

Kind = Literal["mean", "sum", "var", "std", "median", "quantile"]

_NAMES: dict[str, Any] = {
    "mean": np.mean,
    "sum": np.sum,
    "var": np.var,
    "std": np.std,
    "median": np.median,
    "quantile": np.quantile,
}
_KINDS: dict[Any, Kind] = {
    np.mean: "mean",
    np.average: "mean",
    np.sum: "sum",
    np.var: "var",
    np.std: "std",
    np.median: "median",
    np.quantile: "quantile",
}


@dataclass(frozen=True)
class Statistic:
    """One that is known: its kind, and what NumPy's function of this name would be given."""

    kind: Kind
    ddof: int = 0
    levels: np.ndarray | None = None  # of quantiles, of any shape

    @property
    def is_of_ranks(self) -> bool:
        return self.kind in ("median", "quantile")

    @property
    def shares(self) -> np.ndarray:
        """The levels of a statistic of ranks, one after the other."""
        return np.array([0.5]) if self.levels is None else np.ravel(self.levels)


def local_statistic(statistic: Any) -> Callable[..., Any]:
    """A callable: names become NumPy's functions, of each column."""
    if not isinstance(statistic, str):
        return statistic
    name, _, level = statistic.partition(":")
    if name not in _NAMES or (name == "quantile") != bool(level):
        raise ValueError(
            f"statistic must be callable, or one of 'mean', 'sum', 'var', 'std', 'median' and "
            f"'quantile:0.9' (of any level). Got {statistic!r} instead."
        )
    if name == "mean":
        return _mean
    if name == "quantile":
        return partial(np.quantile, q=float(level), axis=0)
    return partial(_NAMES[name], axis=0)


def _mean(rows: Any, weights: Any = None) -> Any:
    """Of each column."""
    return np.average(rows, axis=0, weights=weights)


def known_statistic(statistic: Any, n_dimensions: int) -> Statistic | None:
    """What a callable is among those that are known; None if it is another.

    n_dimensions  of the rows that it gets. Of tables, only statistics of each column are known.
    """
    if statistic is _mean:
        return Statistic("mean")
    settings: dict[str, Any] = {}
    if isinstance(statistic, partial) and not statistic.args:
        statistic, settings = statistic.func, dict(statistic.keywords)
    try:
        kind = _KINDS.get(statistic)
    except TypeError:  # not hashable
        return None
    axis = settings.pop("axis", None)
    if kind is None or not (axis == 0 or (axis is None and n_dimensions == 1)):
        return None
    ddof = settings.pop("ddof", 0) if kind in ("var", "std") else 0
    levels = settings.pop("q", None) if kind == "quantile" else None
    if settings or not isinstance(ddof, int) or (kind == "quantile") != (levels is not None):
        return None
    if levels is None:
        return Statistic(kind, ddof)
    levels = np.asarray(levels, dtype=np.float64)
    if not np.all((levels >= 0.0) & (levels <= 1.0)):
        return None  # NumPy says what is wrong with them
    return Statistic(kind, ddof, levels)


def interpolated(kind: Kind, level: float, count: int) -> tuple[int, int, float]:
    """Between which of `count` sorted values a quantile lies, and how far on the way."""
    if kind == "median":
        return (count - 1) // 2, count // 2, 0.5
    position = level * (count - 1)
    below = int(np.floor(position))
    return below, min(below + 1, count - 1), position - below


def between(kind: Kind, low: Any, high: Any, part: float) -> Any:
    """The value there, rounded as NumPy rounds it."""
    if kind == "median":
        return np.where(low == high, low, (low + high) / 2.0)
    difference = high - low
    return np.where(part >= 0.5, high - difference * (1.0 - part), low + difference * part)
