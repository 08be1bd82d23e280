"""Columns that say the same: equal, equal up to units, or equal up to the names of labels.

Comparing all pairs takes too long where there are many columns. Each is brought into a form in
which copies are alike, and projected on the same random vector: copies have the same projection, so
only neighbours in its order need to be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from margrove._data import CodedTable
from margrove.workbench.doctor.column_figures import ColumnFigures
from margrove.workbench.doctor.examined_data import Patient
from margrove.workbench.doctor.findings import Finding, Severity, named

__all__ = ["COPY_CHECKS", "copies_of", "relabellings_of"]

_CLOSE = 1e-9
_MOST_LABELS = 256
_MOST_GROUPS = 3  # that are told one by one
_FEWEST_ENTRIES = 10  # of sparse columns, of which many have one or two
_FEWEST_ROWS = 10  # in fewer, columns of few values are often equal by chance


def _copies(patient: Patient) -> Iterator[Finding]:
    if patient.table.n_rows < _FEWEST_ROWS:
        return
    equal, affine = copies_of(patient.table, patient.figures)
    taken = {column for group in equal + affine for column in group[1:]}
    relabelled = [
        group
        for group in relabellings_of(patient.table, patient.figures)
        if not taken.issuperset(group[1:])
    ]
    keep_one = "Keep one of them"
    weigh = ": copies weigh double in a margin and share importance in trees."
    yield from _told(patient, equal, "duplicated_columns", "warning", "equal", keep_one + weigh)
    for groups, how in ((affine, "units or sign"), (relabelled, "the names of their values")):
        what = f"equal up to {how}"
        yield from _told(patient, groups, "equivalent_columns", "notice", what, keep_one + ".")


def _told(
    patient: Patient,
    groups: list[list[int]],
    kind: str,
    severity: Severity,
    what: str,
    way_out: str,
) -> Iterator[Finding]:
    """A finding for each group, or one for all where they are many."""
    where = f"{what} in all {patient.table.n_rows:,} rows"
    if len(groups) <= _MOST_GROUPS:
        for group in groups:
            names = patient.names(group)
            yield Finding(kind, severity, f"{named(names)} are {where}.", way_out, names)
        return
    example = named(patient.names(groups[0])).replace("C", "c", 1)
    yield Finding(
        kind,
        severity,
        f"There are {len(groups):,} groups of columns that are {where}, such as {example}.",
        way_out,
        patient.names([column for group in groups for column in group]),
    )


def copies_of(table: CodedTable, figures: ColumnFigures) -> tuple[list[list[int]], list[list[int]]]:
    """Groups of columns that are equal, and of those that are so up to a x + b."""
    entries = table.n_rows - figures.commonest
    least = _FEWEST_ENTRIES if table.is_sparse else 1
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
    """Compare each column of a run with the first of those that differ from each other."""
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
    """(d,): each column, with mean 0 and spread 1, times the same random numbers."""
    weights = np.random.default_rng(0).standard_normal(table.n_rows)
    with np.errstate(all="ignore"):
        if table.is_sparse:
            if np.isnan(table.X.data).any():  # gaps count as the mean, which zero is not
                return np.array(
                    [
                        np.nan_to_num((table.column(j) - mean) / std) @ weights
                        for j, (mean, std) in enumerate(zip(figures.mean, figures.std, strict=True))
                    ]
                )
            sums = table.X.T @ weights
            return np.asarray((sums - figures.mean * weights.sum()) / figures.std)
        parts = []
        for first, block in table.blocks():
            own = slice(first, first + len(block))
            standard = (block - figures.mean[own, None]) / figures.std[own, None]
            parts.append(np.nan_to_num(standard, nan=0.0, posinf=0.0, neginf=0.0) @ weights)
    return np.concatenate(parts)


def relabellings_of(table: CodedTable, figures: ColumnFigures) -> list[list[int]]:
    """Groups of columns of a few values which stand for each other, one for one."""
    if table.is_sparse:
        return []
    candidates: dict[tuple[int, ...], list[int]] = defaultdict(list)
    few = (figures.distinct > 2) & (figures.distinct <= _MOST_LABELS) & (figures.infinite == 0)
    few &= 2 * figures.distinct <= table.n_rows  # of many values any two columns are alike
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
    """int16 (n,): each value as the number of others that were there before it."""
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int16)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[codes]


COPY_CHECKS = (_copies,)
