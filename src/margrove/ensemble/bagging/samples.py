"""The rows and columns that each member of an ensemble is fitted on.

Every draw is a function of the seed, the number of the member and the content of the data. So
samples can be drawn in any order, on any machine, and again later. Rows are in canonical order with
equal rows next to each other, so a row of weight k is drawn as often as k copies of it together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import canonical_form, scramble
from margrove._runtime import require_memory
from margrove.ensemble.bootstrap import (
    CumulativeWeights,
    multiplicities,
    number_of_draws,
    stream,
)
from margrove.exceptions import InvalidDataError

__all__ = [
    "RowSample",
    "RowSamples",
    "draw_columns",
    "plan_samples",
    "seed_of_member",
    "with_nan_as_number",
]

_COLUMNS, _SEEDS, _ROWS = 1, 2, 3  # purposes of random keys, other than bootstrap samples
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MOST_DRAWS = 2**31 - 1


@dataclass(frozen=True)
class RowSample:
    """Different rows int64 (g,) and how often each was drawn, int64 (g,), > 0."""

    rows: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class RowSamples:
    """The samples of all members, as a recipe: draws are computed when they are needed.

    rows        int64 (m,)  rows of weight > 0 in canonical order, equal rows next to each other
    starts      int64 (g,)  where in `rows` each group of equal rows begins
    line        the cumulative weights of `rows`
    n_draws     the size of each sample
    """

    rows: np.ndarray
    starts: np.ndarray
    line: CumulativeWeights
    seed: int
    n_draws: int
    with_replacement: bool

    @property
    def ignores_weights(self) -> bool:
        """Whether every row is drawn exactly once although weights are not whole numbers."""
        draws_all = not self.with_replacement and self.n_draws == self.line.n_draws
        return draws_all and not self.line.is_whole

    def multiplicities(self, number: int) -> np.ndarray:
        """How often each of `rows` is in the sample of a member, integers (m,)."""
        if self.with_replacement:
            return multiplicities(self.line, self.seed, number, self.n_draws)
        return _without_replacement(self.line, _key(self.seed, number, _ROWS), self.n_draws)

    def sample(self, number: int) -> RowSample:
        """The sample of a member; equal rows are merged."""
        drawn = self.multiplicities(number).astype(np.int64)
        rows = self.rows
        if len(self.starts) < len(rows):
            drawn, rows = np.add.reduceat(drawn, self.starts), rows[self.starts]
        present = drawn > 0
        return RowSample(rows[present], drawn[present])

    def indices(self, number: int) -> np.ndarray:
        """The sample of a member as row numbers, each as often as it was drawn."""
        return np.repeat(self.rows, self.multiplicities(number))

    def out_of_bag(self, number: int, n_rows: int) -> np.ndarray:
        """Rows that are not in the sample of a member."""
        left_out = np.ones(n_rows, dtype=bool)
        left_out[self.rows[self.multiplicities(number) > 0]] = False
        return np.flatnonzero(left_out)

    def equals(self, other: RowSamples) -> bool:
        """Whether both draw the same rows."""
        return (
            (self.seed, self.n_draws, self.with_replacement)
            == (other.seed, other.n_draws, other.with_replacement)
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.line.ends, other.line.ends)
        )


def plan_samples(
    X: Any,
    target: np.ndarray,
    weight: np.ndarray,
    *,
    seed: int,
    max_samples: float | int | None,
    with_replacement: bool,
    merge_copies: bool = True,
) -> RowSamples:
    """The samples of the members of an ensemble, from checked data.

    X        dense or CSR; NaN is treated as one more value
    target   int64 codes or float64, (n,) or (n, n_outputs)
    weight   float64 (n,), >= 0
    """
    if target.ndim == 2:  # several outputs distinguish rows like further columns
        X = sp.hstack([X, sp.csr_array(target)], "csr") if sp.issparse(X) else np.c_[X, target]
        target = np.zeros(len(target), np.int64)
    form = canonical_form(with_nan_as_number(X), target, weight)
    rows, starts = form.rows, np.arange(len(form.rows))
    kept = np.flatnonzero(form.group_of >= 0)
    if len(kept) > len(rows):
        group = form.group_of[kept]
        order = np.lexsort((weight[kept], group))
        rows, group = kept[order], group[order]
        starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    if not merge_copies:
        starts = np.arange(len(rows))
    cumulative = CumulativeWeights(weight[rows])
    n_draws = _checked_n_draws(cumulative, max_samples, with_replacement)
    return RowSamples(rows, starts, cumulative, seed, n_draws, with_replacement)


def _checked_n_draws(
    weights: CumulativeWeights, max_samples: float | int | None, with_replacement: bool
) -> int:
    n_draws = number_of_draws(weights, max_samples)
    if not with_replacement and n_draws > weights.n_draws:
        raise ValueError(
            f"Effective max_samples={n_draws} must be <= n_samples={weights.n_draws} to be able to "
            "sample without replacement. Use a smaller max_samples, or bootstrap=True."
        )
    if with_replacement and n_draws > _MOST_DRAWS:
        raise InvalidDataError(
            f"sample_weight is whole and sums to {weights.n_draws}, so each sample would have "
            f"{n_draws} draws. Divide the weights by a number, or give max_samples as an int."
        )
    return n_draws


def with_nan_as_number(X: Any) -> Any:
    """X with NaN replaced by a number that does not occur, so rows with NaN can be equal."""
    values = X.data if sp.issparse(X) else X
    missing = np.isnan(values)
    if not missing.any():
        return X
    substitute = np.finfo(values.dtype).min
    while np.any(values == substitute):
        substitute = np.nextafter(substitute, values.dtype.type(0))
    values = np.where(missing, substitute, values)
    if sp.issparse(X):
        return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    return values


def _without_replacement(weights: CumulativeWeights, key: np.uint64, n_draws: int) -> np.ndarray:
    """How often each row is drawn: at most k times for a whole weight k, else at most once."""
    units_of_row = np.diff(weights.ends, prepend=0)
    n_rows = len(units_of_row)
    if n_draws == weights.n_draws:
        return units_of_row.astype(np.int32) if weights.is_whole else np.ones(n_rows, np.int32)
    if not weights.is_whole:
        # Efraimidis and Spirakis (2006): the rows with the smallest exponential variables
        uniform = ((_bits(key, n_rows) >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53
        first = np.argpartition(-np.log(uniform) / units_of_row, n_draws - 1)[:n_draws]
        return np.bincount(first, minlength=n_rows).astype(np.int32)
    require_memory(
        24.0 * weights.n_draws,
        f"Drawing {n_draws} of {weights.n_draws} without replacement",
        "Divide the weights by a number, or use bootstrap=True.",
    )
    units = np.argpartition(_bits(key, weights.n_draws), n_draws - 1)[:n_draws]
    rows = np.searchsorted(weights.ends, units, side="right")
    return np.bincount(rows, minlength=n_rows).astype(np.int32)


def draw_columns(
    seed: int, number: int, n_columns: int, n_chosen: int, *, with_replacement: bool
) -> np.ndarray:
    """The columns of a member, int64 (n_chosen,), ascending."""
    if not with_replacement and n_chosen == n_columns:
        return np.arange(n_columns)
    key = _key(seed, number, _COLUMNS)
    if with_replacement:
        bits = _bits(key, n_chosen) >> np.uint64(32)
        return np.sort((bits * np.uint64(n_columns) >> np.uint64(32)).astype(np.int64))
    return np.sort(np.argsort(_bits(key, n_columns), kind="stable")[:n_chosen])


def seed_of_member(seed: int, number: int) -> int:
    """The seed of the random states of a member, 31 bits."""
    return int(_key(seed, number, _SEEDS) >> np.uint64(33))


def _key(seed: int, number: int, purpose: int) -> np.uint64:
    return stream(int(stream(seed, number)), purpose)


def _bits(key: np.uint64, size: int) -> np.ndarray:
    """64 random bits for each entry, uint64 (size,)."""
    return scramble(np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN + key)
