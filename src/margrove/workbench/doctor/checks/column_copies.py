"""Columns with the same content: equal, equal up to units, or equal up to the names of labels.

Comparing all pairs of many columns takes too long. Columns are standardised, which makes copies
equal, and projected on the same random vector. Copies have the same projection, so only columns
with neighbouring projections are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from margrove._data import CodedTable
from margrove.workbench.doctor.column_figures import ColumnFigures
from margrove.workbench.doctor.examined_data import ExaminedData
from margrove.workbench.doctor.findings import Finding, Severity, named

__all__ = ["COPY_CHECKS", "copies_of", "relabellings_of"]

_CLOSE = 1e-9
_MAX_LABELS = 256
_MAX_GROUPS = 3  # that get a finding each
_MIN_ENTRIES = 10  # of a sparse column: many have one or two
_MIN_ROWS = 10  # in fewer rows, columns of few values are often equal by chance


def _copies(data: ExaminedData) -> Iterator[Finding]:
    if data.table.n_rows < _MIN_ROWS:
        return
    equal, affine = copies_of(data.table, data.figures)
    reported = {column for group in equal + affine for column in group[1:]}
    relabelled = [
        group
        for group in relabellings_of(data.table, data.figures)
        if not reported.issuperset(group[1:])
    ]
    keep_one = "Keep one of them"
    why = ": copies count double in margin machines and share their importance in trees."
    yield from _findings_of(data, equal, "duplicated_columns", "warning", "equal", keep_one + why)
    for groups, how in ((affine, "units or sign"), (relabelled, "the names of their values")):
        what = f"equal up to {how}"
        yield from _findings_of(data, groups, "equivalent_columns", "notice", what, keep_one + ".")


def _findings_of(
    data: ExaminedData,
    groups: list[list[int]],
    kind: str,
    severity: Severity,
    what: str,
    way_out: str,
) -> Iterator[Finding]:
    """A finding for each group, or one for all if there are many."""
    where = f"{what} in all {data.table.n_rows:,} rows"
    if len(groups) <= _MAX_GROUPS:
        for group in groups:
            names = data.names(group)
            yield Finding(kind, severity, f"{named(names)} are {where}.", way_out, names)
        return
    example = named(data.names(groups[0])).replace("C", "c", 1)
    yield Finding(
        kind,
        severity,
        f"There are {len(groups):,} groups of columns that are {where}, such as {example}.",
        way_out,
        data.names([column for group in groups for column in group]),
    )


def copies_of(table: CodedTable, figures: ColumnFigures) -> tuple[list[list[int]], list[list[int]]]:
    """Groups of equal columns, and groups of columns that are equal up to a x + b."""
    entries = table.n_rows - figures.commonest
    least = _MIN_ENTRIES if table.is_sparse else 1
    usable = np.flatnonzero(
        (figures.distinct > 1)
        & (entries >= least) & (figures.infinite == 0) & np.isfinite(figures.std)
        & (figures.std > 0) & table.of_kind("number", "label", "mixed", "date")
    )  # fmt: skip
    if len(usable) < 2:
        return [], []
    projections = np.abs(_projections(table, figures))[usable]
    order = np.argsort(projections, kind="stable")
    width = _CLOSE * np.sqrt(table.n_rows)
    breaks = np.flatnonzero(np.diff(projections[order]) > width) + 1
    equal: dict[int, list[int]] = {}
    affine: dict[int, list[int]] = {}
    for run in np.split(usable[order], breaks):
        if len(run) > 1:
            _compare_run(table, figures, sorted(run.tolist()), equal, affine)
    return _groups(equal), _groups(affine)


def _groups(found: dict[int, list[int]]) -> list[list[int]]:
    return [[first, *others] for first, others in sorted(found.items())]


def _compare_run(
    table: CodedTable,
    figures: ColumnFigures,
    run: list[int],
    equal: dict[int, list[int]],
    affine: dict[int, list[int]],
) -> None:
    """Compare each column of a run with those before it that differ from each other."""
    leaders: list[tuple[int, np.ndarray, np.ndarray]] = []
    for j in run:
        values = table.column(j)
        standard = (values - figures.mean[j]) / figures.std[j]
        for leader, its_values, its_standard in leaders:
            if table.labels.get(j) == table.labels.get(leader) and np.array_equal(
                values, its_values, equal_nan=True
            ):
                equal.setdefault(leader, []).append(j)
                break
            if table.kinds[j] == table.kinds[leader] == "number" and (
                _is_close(standard, its_standard) or _is_close(standard, -its_standard)
            ):
                affine.setdefault(leader, []).append(j)
                break
        else:
            leaders.append((j, values, standard))


def _is_close(a: np.ndarray, b: np.ndarray) -> bool:
    gaps = np.isnan(a)
    if not np.array_equal(gaps, np.isnan(b)):
        return False
    return bool(np.all(np.abs(a - b)[~gaps] <= 1e-8 * (1.0 + np.abs(a[~gaps]))))


def _projections(table: CodedTable, figures: ColumnFigures) -> np.ndarray:
    """(d,): the product of each standardised column with the same random vector."""
    weights = np.random.default_rng(0).standard_normal(table.n_rows)
    with np.errstate(all="ignore"):
        if table.is_sparse:
            if np.isnan(table.X.data).any():  # missing cells count as the mean, which is not zero
                return np.array(
                    [
                        np.nan_to_num((table.column(j) - mean) / std) @ weights
                        for j, (mean, std) in enumerate(zip(figures.mean, figures.std, strict=True))
                    ]
                )
            sums = table.X.T @ weights
            return np.asarray((sums - figures.mean * weights.sum()) / figures.std)
        projections = []
        for first, block in table.blocks():
            columns = slice(first, first + len(block))
            standard = (block - figures.mean[columns, None]) / figures.std[columns, None]
            projections.append(np.nan_to_num(standard, nan=0.0, posinf=0.0, neginf=0.0) @ weights)
    return np.concatenate(projections)


def relabellings_of(table: CodedTable, figures: ColumnFigures) -> list[list[int]]:
    """Groups of columns with few values that correspond one to one."""
    if table.is_sparse:
        return []
    candidates: dict[tuple[int, ...], list[int]] = defaultdict(list)
    few = (figures.distinct > 2) & (figures.distinct <= _MAX_LABELS) & (figures.infinite == 0)
    few &= 2 * figures.distinct <= table.n_rows  # columns of unique values always correspond
    for j in np.flatnonzero(few).tolist():
        key = (figures.distinct[j], figures.commonest[j], figures.missing[j])
        candidates[tuple(map(int, key))].append(j)
    groups = []
    for columns in candidates.values():
        if len(columns) > 1:
            alike: dict[bytes, list[int]] = defaultdict(list)
            for j in columns:
                alike[_by_first_appearance(table.column(j)).tobytes()].append(j)
            groups += [group for group in alike.values() if len(group) > 1]
    return sorted(groups)


def _by_first_appearance(values: np.ndarray) -> np.ndarray:
    """int16 (n,): each value as the number of different values before its first occurrence."""
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int16)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[codes]


COPY_CHECKS = (_copies,)
