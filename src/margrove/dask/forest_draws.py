"""Thresholds that are drawn: what is on either side of them, instead of sums for all codes.

Two round trips: the range of the codes, in which a threshold is drawn as `node_search` draws it;
then the sums of what lies below it, above it and nowhere. Few numbers travel, however many codes
there are.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from margrove.dask.forest_ground import Ground
from margrove.dask.forest_groups import Groups, codes_of_column
from margrove.grove.table.columns import Columns
from margrove.grove.table.targets import Targets

__all__ = ["Draw", "drawn_groups", "range_of_codes", "sums_of_sides"]

_BITS = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_OF_FEATURES = 0xD1342543DE82EF95

Job = tuple[int, int, int]
Draw = tuple[int, int, int, int]  # a tree, a node of it, a feature, the last code below


def drawn_groups(
    ground: Ground, jobs: list[Job], keys: list[int]
) -> Generator[None, None, list[Groups]]:
    """Groups that a search finds the same in as in those of all codes; keys are the nodes'."""
    parts = ground.gang.ask("code_ranges", jobs, combine="list")
    yield
    least = np.min([own[:, 0] for own in parts], axis=0).tolist()
    most = np.max([own[:, 1] for own in parts], axis=0).tolist()
    draws = [
        (*job, _last_code_below(ground.columns, job[2], key, low, high))
        for job, key, low, high in zip(jobs, keys, least, most, strict=True)
    ]
    told = ground.gang.ask("drawn_sums", draws, combine="list")
    yield
    sums = np.sum([own[0] for own in told], axis=0)
    last = np.max([own[1] for own in told], axis=0)
    following = np.min([own[2] for own in told], axis=0)
    return [
        _as_groups(sums[k], least[k], int(last[k]), int(following[k]), most[k],
                   int(ground.columns.n_codes[job[2]]))
        for k, job in enumerate(jobs)
    ]  # fmt: skip


def _last_code_below(columns: Columns, feature: int, key: int, least: int, most: int) -> int:
    """See `node_search._draw`."""
    if least >= most:
        return most
    begin, end = columns.first[feature], columns.first[feature + 1]
    values = columns.values[begin:end]
    low, high = float(values[least]), float(values[most])
    state = (((key & _BITS) ^ ((feature + 1) * _OF_FEATURES & _BITS)) + _STEP) & _BITS
    bits = (state ^ (state >> 30)) * _FIRST & _BITS
    bits = (bits ^ (bits >> 27)) * _SECOND & _BITS
    bits ^= bits >> 31
    share = float((bits >> 11) % (1 << 52)) / float(1 << 52)
    drawn = low * (1.0 - share) + high * share
    if not low <= drawn < high:
        drawn = low
    return int(np.searchsorted(values, drawn, side="right")) - 1


def _as_groups(
    sides: np.ndarray, least: int, last: int, following: int, most: int, missing: int
) -> Groups:
    """Both sides, between the extremes, which have no rows of their own; and what is missing."""
    nothing = np.zeros_like(sides[0])
    codes, sums = [], []
    if least == most:
        codes, sums = [least], [sides[0]]
    elif least < most:
        codes, sums = [least, last, following, most], [nothing, sides[0], sides[1], nothing]
    if sides[2, 1] > 0:
        codes, sums = [*codes, missing], [*sums, sides[2]]
    return Groups(np.array(codes, dtype=np.int64), np.array(sums).reshape(len(codes), -1))


# -- of a member --


def range_of_codes(columns: Columns, feature: int, rows: np.ndarray) -> tuple[int, int]:
    """The lowest and the highest code of rows, those of missing values left out."""
    codes, missing = codes_of_column(columns, feature)[rows], int(columns.n_codes[feature])
    if columns.has_missing[feature]:
        codes = codes[codes < missing]
    return (int(codes.min()), int(codes.max())) if len(codes) else (missing, -1)


def sums_of_sides(
    columns: Columns, feature: int, last: int, rows: np.ndarray, targets: Targets
) -> tuple[np.ndarray, int, int]:
    """Weight, samples and statistics of rows up to a code, above it, and without one; the highest
    code of the first, and the lowest of the second."""
    codes = codes_of_column(columns, feature)[rows].astype(np.int64)
    missing = int(columns.n_codes[feature])
    side = np.where(codes == missing, 2, codes > last)
    n_outputs, n_stats = len(targets.starts) - 1, int(targets.starts[-1])
    sums = np.zeros((3, 2 + n_stats), np.int64)
    for k in range(3):
        own = rows[side == k]
        weight = targets.weight[own]
        sums[k, 0], sums[k, 1] = weight.sum(), targets.samples[own].sum()
        if len(targets.labels):
            labels = targets.labels.reshape(-1, n_outputs)[own].ravel()
            each = np.repeat(weight, n_outputs)  # sums are below 2^53
            sums[k, 2:] = np.bincount(labels, weights=each, minlength=n_stats)
        elif len(targets.numbers):
            sums[k, 2:] = targets.numbers.reshape(-1, n_outputs)[own].sum(axis=0)
    below = int(codes[side == 0].max(initial=-1))
    return sums, below, int(codes[side == 1].min(initial=missing))
