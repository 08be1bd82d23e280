"""Bins of columns whose distinct values are too many to be brought together: found by refinement.

    splitters   a sample of the rows divides each column into cells: the values of the sample, each
                by itself, and what lies between two of them
    cells       the parts count what is in each cell, and sum up to what the table has there
    opening     where a bin begins inside of a cell, or a value in it may be heavy enough for a bin
                of its own, the parts say which values it holds; all other cells are as good as one
                value each

Bins are exactly those of all distinct values (`gradient_tables._few_numbers`), whatever the sample:
a bad one costs more values to be brought together, not precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.dask.boosting_bins import ColumnCodes, codes_of_column, distinct_values
from margrove.dask.boosting_rows import PartRows, new_numbers

__all__ = ["Cells", "cells_to_open", "refined_columns"]

_N_SPLITTERS = 8192
_COLUMNS_AT_ONCE = 4  # of which workers hold what all parts say
_KNOWN = -1  # the number of a cell that is one value


@dataclass(frozen=True)
class Cells:
    """Stretches of the values of one column, ascending.

    numbers       int64: 2 k + 1 is the splitter k itself, 2 k what lies before it; or _KNOWN
    lows, highs   float64, the smallest and the largest value
    rows, weight  float64, whole numbers
    n_missing     rows without a value
    """

    numbers: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    n_missing: int

    @property
    def are_open(self) -> np.ndarray:
        """Those which hold several values."""
        return self.lows < self.highs


# -- on the workers --


def sample_part(
    part: Any, rows: PartRows, step: int, renumbered: dict[int, np.ndarray]
) -> np.ndarray:
    """Every so many rows."""
    own = rows.of(part)[::step]
    X = np.array(own.toarray() if hasattr(own, "toarray") else own, dtype=np.float64)
    for column, numbers in renumbered.items():
        X[:, column] = new_numbers(X[:, column], numbers)
    return X


def cells_of_part(
    part: Any,
    rows: PartRows,
    weight: np.ndarray | None,
    renumbered: dict[int, np.ndarray],
    first: int,
    last: int,
    splitters: list[np.ndarray],
) -> list[Cells]:
    """What a part has in the cells of columns first .. last - 1."""
    found = distinct_values(part, rows, weight, renumbered, first, last)
    return [
        _cells(own.values, own.rows, own.rows if own.weight is None else own.weight, own.n_missing,
               splitters[first + k])
        for k, own in enumerate(found or [])
    ]  # fmt: skip


def _cells(
    values: np.ndarray, rows: np.ndarray, weight: np.ndarray, n_missing: int, splitters: np.ndarray
) -> Cells:
    numbers = _numbers_of(values, splitters)
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)])
    ends = np.append(starts[1:], len(values))[: len(starts)] - 1
    return Cells(
        numbers[starts],
        values[starts],
        values[ends],
        _summed(rows, starts),
        _summed(weight, starts),
        n_missing,
    )


def _numbers_of(values: np.ndarray, splitters: np.ndarray) -> np.ndarray:
    """The numbers of the cells of sorted values."""
    at = np.searchsorted(splitters, values)
    found = 2 * at
    inside = at < len(splitters)
    found[inside] += splitters[at[inside]] == values[inside]
    return found


def _summed(counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    if not len(starts):
        return np.empty(0)
    return np.add.reduceat(counts.astype(np.float64), starts)


def values_of_part(
    part: Any,
    rows: PartRows,
    weight: np.ndarray | None,
    renumbered: dict[int, np.ndarray],
    first: int,
    last: int,
    splitters: list[np.ndarray],
    opened: list[np.ndarray],
) -> list[Cells]:
    """The values that a part has in some cells, as cells of one value each."""
    found = []
    parts = distinct_values(part, rows, weight, renumbered, first, last) or []
    for k, own in enumerate(parts):
        chosen = np.isin(_numbers_of(own.values, splitters[first + k]), opened[first + k])
        values, counts = own.values[chosen], own.rows[chosen].astype(np.float64)
        heavy = counts if own.weight is None else own.weight[chosen]
        known = np.full(len(values), _KNOWN)
        found.append(Cells(known, values, values, counts, heavy, 0))
    return found


def merged_cells(pieces: Sequence[list[Cells]]) -> list[Cells]:
    """The cells of all parts, column by column."""
    filled = [piece for piece in pieces if piece]
    return [_merged([piece[k] for piece in filled]) for k in range(len(filled[0]))]


def _merged(pieces: Sequence[Cells]) -> Cells:
    """Cells of one number become one; of known values those that are the same value."""
    together = {
        name: np.concatenate([getattr(own, name) for own in pieces])
        for name in ("numbers", "lows", "highs", "rows", "weight")
    }
    numbers, lows = together["numbers"], together["lows"]
    order = np.lexsort((lows, numbers))
    numbers, lows = numbers[order], lows[order]
    is_new = (numbers[1:] != numbers[:-1]) | ((numbers[1:] == _KNOWN) & (lows[1:] != lows[:-1]))
    starts = np.flatnonzero(np.append(True, is_new)[: len(numbers)])
    return Cells(
        numbers[starts],
        lows[starts],
        np.maximum.reduceat(together["highs"][order], starts) if len(starts) else lows[starts],
        _summed(together["rows"][order], starts),
        _summed(together["weight"][order], starts),
        sum(own.n_missing for own in pieces),
    )


# -- on the client --


def cells_to_open(cells: Cells, max_bins: int) -> np.ndarray:
    """bool: the cells whose values have to be known.

    See `gradient_tables._begins_of_bins`: values of at least `limit` have a bin each, and others
    share the rest evenly. What is heavy lowers the limit, never raises it; so a value that is not
    known yet and heavy in the end is in a cell of at least the limit that is found without it.
    """
    are_open = cells.are_open
    if len(cells.lows) <= max_bins:
        return are_open
    is_heavy, limit = _heavy_and_limit(cells.weight, ~are_open, max_bins)
    light = np.where(is_heavy, 0.0, cells.weight)
    until = np.cumsum(light)
    is_cut = np.floor((until - light) / limit) != np.floor(until / limit)
    return are_open & (is_cut | (cells.weight >= limit))


def _heavy_and_limit(
    counts: np.ndarray, may_be_heavy: np.ndarray, max_bins: int
) -> tuple[np.ndarray, float]:
    is_heavy = np.zeros(len(counts), np.bool_)
    rest, bins_left = float(counts.sum()), max_bins
    while bins_left > 1:
        heavy = np.flatnonzero(may_be_heavy & ~is_heavy & (counts >= rest / bins_left))
        heavy = heavy[: bins_left - 1]
        if not len(heavy):
            break
        is_heavy[heavy] = True
        rest -= float(counts[heavy].sum())
        bins_left -= len(heavy)
    return is_heavy, max(rest / bins_left, 1e-300)


def _with_values(cells: Cells, opened: np.ndarray, values: Cells) -> Cells:
    """The same, with values in the place of cells that were opened."""
    names = ("numbers", "lows", "highs", "rows", "weight")
    together = {
        name: np.concatenate([getattr(cells, name)[~opened], getattr(values, name)])
        for name in names
    }
    order = np.argsort(together["lows"], kind="stable")
    numbers, lows, highs, rows, weight = (together[name][order] for name in names)
    return Cells(numbers, lows, highs, rows, weight, cells.n_missing)


def refined_columns(
    map_each: Callable[..., list[Any]],
    submit: Callable[..., Any],
    results: Callable[[list[Any]], list[Any]],
    rows: Sequence[PartRows],
    n_rows: int,
    weights: Sequence[np.ndarray | None],
    renumbered: dict[int, np.ndarray],
    n_categories: np.ndarray,
    max_bins: int,
) -> list[ColumnCodes]:
    """What the codes of all columns stand for; see `columns_of_parts` for the functions."""
    step = -(-n_rows // _N_SPLITTERS)
    sample = np.concatenate(
        results(map_each(sample_part, [(own, step, renumbered) for own in rows]))
    )
    splitters = [_splitters(sample[:, j], int(n)) for j, n in enumerate(n_categories)]
    sent = submit(_same, splitters)
    own_rows = [submit(_same, own) for own in rows]
    own_weights = [None if own is None else submit(_same, own) for own in weights]
    ends = range(0, len(n_categories), _COLUMNS_AT_ONCE)
    blocks = [(first, min(first + _COLUMNS_AT_ONCE, len(n_categories))) for first in ends]

    def ask(function: Callable[..., Any], *more: Any) -> list[Cells]:
        """Some columns after the others: what parts say of one takes memory on the workers."""
        found: list[Cells] = []
        for first, last in blocks:
            own = zip(own_rows, own_weights, strict=True)
            told = [(*pair, renumbered, first, last, sent, *more) for pair in own]
            found += results([submit(merged_cells, map_each(function, told))])[0]
        return found

    cells = ask(cells_of_part)
    while True:
        opened = [cells_to_open(own, max_bins) for own in cells]
        if not any(own.any() for own in opened):
            break
        numbers = [own.numbers[chosen] for own, chosen in zip(cells, opened, strict=True)]
        values = ask(values_of_part, submit(_same, numbers))
        triples = zip(cells, opened, values, strict=True)
        cells = [_with_values(*triple) for triple in triples]
    return [
        codes_of_column(own.lows, own.highs, own.rows, own.weight, own.n_missing, int(n), max_bins)
        for own, n in zip(cells, n_categories, strict=True)
    ]


def _same(thing: Any) -> Any:
    """What many tasks need travels once, and is made again when it is lost."""
    return thing


def _splitters(sample: np.ndarray, n_categories: int) -> np.ndarray:
    if n_categories:
        return np.arange(float(n_categories))
    return np.unique(sample[~np.isnan(sample)])
