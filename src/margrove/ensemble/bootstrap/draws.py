"""The content of each resample: rows, whole groups, blocks of a series, or weights for all rows.

Every random number is a function of the seed and the number of the resample. So resamples can be
computed in any order, on any thread, and one of them without the others.

Conventions: a *unit* is what is drawn as a whole, a row or a group of rows; units are numbered from
0. `rows` are int64 row numbers in the order of the draws, `weights` float64 (n,) with sum 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from margrove._runtime import kernel
from margrove.ensemble.bootstrap.resampling import mixed_bits, stream

__all__ = ["Resample", "ResamplingPlan", "label_codes", "plan_resampling", "uniforms"]

Scheme = Literal["ordinary", "balanced", "bayesian"]

_FEISTEL_ROUNDS = 6


class Resample(NamedTuple):
    """The rows of one resample, int64, and their weights; None if rows have no weights."""

    rows: np.ndarray
    weights: np.ndarray | None = None


class Deletions(NamedTuple):
    """The jackknife: units (or blocks) to leave out one at a time, and the stratum of each."""

    units: np.ndarray
    strata: np.ndarray


@dataclass(frozen=True)
class ResamplingPlan:
    """How the rows are resampled.

    strata   the units of each stratum, int64; without stratification one stratum of all units
    groups   the rows of each unit; None if units are rows
    n_draws  number of units to draw, or of rows with `block_length`; None: as many as there are
    """

    n_rows: int
    n_resamples: int
    seed: int
    scheme: Scheme
    strata: tuple[np.ndarray, ...]
    groups: tuple[np.ndarray, ...] | None = None
    n_draws: int | None = None
    block_length: int | None = None

    def resample(self, number: int) -> Resample:
        """Resample `number`, which is in 0 .. n_resamples - 1."""
        if self.block_length is not None:
            return Resample(self._blocks(number, self.block_length))
        if self.scheme == "bayesian":
            return Resample(np.arange(self.n_rows), self._weights(number))
        return Resample(self._rows_of(self._units(number)))

    def all_rows(self) -> Resample:
        """The original data as a resample."""
        return self._evenly_weighted(np.arange(self.n_rows))

    def deletions(self) -> Deletions:
        """What the jackknife leaves out: every unit that is not the only one of its stratum.

        (A stratum of one unit is the same in all resamples.) For a series these are the numbers
        of consecutive blocks.
        """
        if self.block_length is not None:
            n_blocks = -(-self.n_rows // self.block_length)
            blocks = np.arange(n_blocks if n_blocks > 1 else 0)
            return Deletions(blocks, np.zeros_like(blocks))
        varying = [units for units in self.strata if len(units) > 1]
        strata = np.repeat(np.arange(len(varying)), [len(units) for units in varying])
        return Deletions(np.concatenate(varying), strata)

    @property
    def deletion_unit(self) -> str:
        """The name of what `deletions` leaves out, for messages."""
        if self.block_length is not None:
            return "block"
        return "row" if self.groups is None else "group"

    def without(self, unit: int) -> Resample:
        """The data without one of the units (or blocks) of `deletions`."""
        if self.block_length is not None:
            start = unit * self.block_length
            rows = np.arange(start, min(start + self.block_length, self.n_rows))
        else:
            rows = self._rows_of(np.array([unit]))
        return self._evenly_weighted(np.delete(np.arange(self.n_rows), rows))

    def _evenly_weighted(self, rows: np.ndarray) -> Resample:
        is_weighted = self.scheme == "bayesian"
        return Resample(rows, np.full(len(rows), 1.0 / len(rows)) if is_weighted else None)

    def _rows_of(self, units: np.ndarray) -> np.ndarray:
        if self.groups is None:
            return units
        return np.concatenate([self.groups[unit] for unit in units])

    def _units(self, number: int) -> np.ndarray:
        """The drawn units. Each takes the position of a unit of the same stratum."""
        draw = self._balanced if self.scheme == "balanced" else self._independent
        if len(self.strata) == 1:
            return draw(number, 0)
        drawn = np.empty(sum(map(len, self.strata)), np.int64)
        for stratum, units in enumerate(self.strata):
            drawn[units] = draw(number, stratum)
        return drawn

    def _independent(self, number: int, stratum: int) -> np.ndarray:
        units = self.strata[stratum]
        n_draws = self.n_draws or len(units)
        return units[_below(len(units), self._key(number, stratum), n_draws)]

    def _balanced(self, number: int, stratum: int) -> np.ndarray:
        """Davison, Hinkley and Schechtman (1986): n_resamples copies of all units, shuffled, cut.

        The permutation is computed for this resample only, so no array has its full length.
        """
        units = self.strata[stratum]
        n_draws = self.n_draws or len(units)
        size = self.n_resamples * n_draws
        shuffled = _permuted(number * n_draws, n_draws, size, stream(self.seed, stratum))
        return units[shuffled % len(units)]

    def _blocks(self, number: int, length: int) -> np.ndarray:
        """Blocks with random starts until the series is full; its end is joined to its start."""
        n_draws = self.n_draws or self.n_rows
        starts = _below(self.n_rows, self._key(number, 0), -(-n_draws // length))
        rows = (starts[:, None] + np.arange(length)) % self.n_rows
        return rows.ravel()[:n_draws]

    def _weights(self, number: int) -> np.ndarray:
        """Rubin (1981): Dirichlet(1, ..., 1) weights, which are exponentials divided by their sum.

        The weight of a stratum is proportional to its number of rows. All rows of a group have the
        same weight.
        """
        weights = np.empty(self.n_rows)
        for stratum, units in enumerate(self.strata):
            share = -np.log(uniforms(self._key(number, stratum), len(units)))
            rows = self._rows_of(units)
            if self.groups is not None:
                share = np.repeat(share, [len(self.groups[unit]) for unit in units])
            weights[rows] = share * (len(rows) / share.sum())
        return weights / weights.sum()

    def _key(self, number: int, stratum: int) -> np.uint64:
        return stream(int(stream(self.seed, number)), stratum)


def uniforms(key: np.uint64, count: int) -> np.ndarray:
    """Random numbers in the open interval (0, 1), float64 (count,)."""
    numbers = np.empty(count)
    _fill_uniforms(key, numbers)
    return numbers


def plan_resampling(
    n_rows: int,
    *,
    n_resamples: int,
    seed: int,
    scheme: Scheme,
    stratify: Any = None,
    groups: Any = None,
    n_draws: int | None = None,
    block_length: int | None = None,
) -> ResamplingPlan:
    """Make the plan for the arguments of `bootstrap`; raise if they contradict each other."""
    _refuse_contradictions(scheme, stratify, groups, n_draws, block_length)
    for name, size in (("n_draws", n_draws), ("block_length", block_length)):
        if size is not None and size > n_rows:
            raise ValueError(
                f"{name} must be at most the number of rows, {n_rows}. Got {size} instead."
            )
    members = None if groups is None else _members(label_codes(groups, n_rows, "groups"))
    n_units = n_rows if members is None else len(members)
    if n_units < 2:
        raise ValueError("groups puts all rows into one group. At least two groups are needed.")
    if n_draws is not None and n_draws > n_units:
        raise ValueError(f"n_draws={n_draws}, but there are only {n_units} groups to draw from.")
    if n_draws is not None and scheme == "balanced" and n_resamples * n_draws % n_units:
        raise ValueError(
            f"resampling='balanced' draws each of {n_units} equally often, but n_resamples="
            f"{n_resamples} times n_draws={n_draws} is not a multiple of {n_units}. Use n_resamples"
            f"={n_units * max(1, round(n_resamples / n_units))}, or leave n_draws out."
        )
    strata: tuple[np.ndarray, ...] = (np.arange(n_units),)
    if stratify is not None:
        strata = _strata_of_units(label_codes(stratify, n_rows, "stratify"), members)
    return ResamplingPlan(n_rows, n_resamples, seed, scheme, strata, members, n_draws, block_length)


def label_codes(labels: Any, n_rows: int, name: str) -> np.ndarray:
    """Labels of strata or groups as codes 0, 1, ..., int64 (n_rows,)."""
    array = np.asarray(labels.to_numpy() if hasattr(labels, "to_numpy") else labels)
    if array.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one label for each of the {n_rows} rows. Got shape {array.shape} "
            "instead."
        )
    missing = [row for row, label in enumerate(array.tolist()) if _is_missing(label)]
    if missing:
        raise ValueError(
            f"{name} has no label in row {missing[0]} ({array[missing[0]]!r}). Drop these rows, or "
            "give them a separate label."
        )
    try:
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    except TypeError as error:
        raise TypeError(
            f"{name} mixes labels that cannot be sorted ({error}). Use labels of one type."
        ) from error


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ == "NAType":
        return True
    return bool(label != label)  # noqa: PLR0124, NaN


def _refuse_contradictions(
    scheme: Scheme, stratify: Any, groups: Any, n_draws: int | None, block_length: int | None
) -> None:
    if block_length is not None and (stratify is not None or groups is not None):
        raise ValueError(
            "block_length is for one ordered series, and cannot be combined with stratify or "
            "groups. For several series, give each a label in groups: a group is drawn as a whole."
        )
    if block_length is not None and scheme != "ordinary":
        raise ValueError(
            f"block_length needs resampling='ordinary'. Got resampling={scheme!r} instead."
        )
    if n_draws is not None and stratify is not None:
        raise ValueError(
            f"n_draws={n_draws} cannot be combined with stratify, because each stratum keeps its "
            "size. Leave one of them out."
        )
    if n_draws is not None and scheme == "bayesian":
        raise ValueError(
            f"n_draws={n_draws} cannot be combined with resampling='bayesian', which gives weights "
            "to all rows and draws none. Leave n_draws out."
        )


def _members(codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """The positions of each code, in order."""
    order = np.argsort(codes, kind="stable")
    return tuple(np.split(order, np.cumsum(np.bincount(codes))[:-1]))


def _strata_of_units(
    codes: np.ndarray, groups: tuple[np.ndarray, ...] | None
) -> tuple[np.ndarray, ...]:
    if groups is not None:
        for rows in groups:
            other = rows[codes[rows] != codes[rows[0]]]
            if len(other):
                raise ValueError(
                    f"stratify splits a group: rows {rows[0]} and {other[0]} have the same label "
                    "in groups, but not in stratify. All rows of a group must be in one stratum."
                )
        codes = codes[[rows[0] for rows in groups]]
    strata = _members(codes)
    if all(len(units) == 1 for units in strata):
        raise ValueError(
            f"stratify has {len(strata)} strata of one unit each, so every resample would be equal "
            "to the data. Merge strata, or leave stratify out."
        )
    return strata


def _below(bound: int, key: np.uint64, count: int) -> np.ndarray:
    """Random integers 0 .. bound - 1, int64 (count,)."""
    drawn = (uniforms(key, count) * bound).astype(np.int64)
    return np.minimum(drawn, bound - 1)  # a product just below the bound may round to it


@kernel
def _fill_uniforms(key: np.uint64, numbers: np.ndarray) -> None:
    for k in range(len(numbers)):
        bits = mixed_bits(key, np.uint64(k)) >> np.uint64(12)
        numbers[k] = (np.float64(bits) + 0.5) * 2.0**-52  # exact, and neither 0 nor 1


def _permuted(first: int, count: int, size: int, key: np.uint64) -> np.ndarray:
    """The images of first, first + 1, ... under a random permutation of 0 .. size - 1: int64."""
    places = np.empty(count, np.int64)
    half = np.uint64(max(1, -(-(size - 1).bit_length() // 2)))
    _fill_permuted(np.uint64(first), np.uint64(size), half, key, places)
    return places


@kernel
def _fill_permuted(
    first: np.uint64, size: np.uint64, half: np.uint64, key: np.uint64, places: np.ndarray
) -> None:
    """A Feistel network permutes all numbers of 2 * half bits, at most four times `size`.

    It is applied again to results outside of 0 .. size - 1 until they are inside. This makes it a
    permutation of that range (cycle walking).
    """
    mask = (np.uint64(1) << half) - np.uint64(1)
    for k in range(len(places)):
        place = first + np.uint64(k)
        while True:
            left, right = place >> half, place & mask
            for step in range(_FEISTEL_ROUNDS):
                mixed = mixed_bits(key + np.uint64(step), right) & mask
                left, right = right, left ^ mixed
            place = (left << half) | right
            if place < size:
                break
        places[k] = np.int64(place)
