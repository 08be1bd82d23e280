"""Bins and codes of rows that several members have: those of one table with all rows."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from tests.ensemble.odd_columns import KINDS, column
from tests.members import run_members

from margrove.ensemble.gradient import PiecedRows, PieceOfRows
from margrove.ensemble.gradient.hist import bins_and_table, joint_bins_and_table
from margrove.ensemble.gradient.hist.joint import tables as joint_tables


def jointly(
    X: Any, n_categories: np.ndarray, borders: list[int], weight: Any = None, **settings: Any
) -> list[Any]:
    """The bins and the table of each member, which has the rows between two borders."""
    calls = []
    for start, stop in zip([0, *borders], [*borders, X.shape[0]], strict=True):
        own = X[start:stop]
        middle = (stop - start) // 2
        pieces = [
            PieceOfRows(lambda a, b, own=own: own[a:b], middle),
            PieceOfRows(
                lambda a, b, own=own: own[a:b], stop - start, np.arange(middle, stop - start)
            ),
        ]
        own_weight = None if weight is None else weight[start:stop]
        calls.append((PiecedRows(pieces, X.shape[1]), own_weight))

    def run(collective: Any, rows: PiecedRows, own_weight: Any) -> Any:
        return joint_bins_and_table(
            rows, n_categories, weight=own_weight, n_threads=1, collective=collective, **settings
        )

    return run_members(run, calls)


def decoded(table: Any) -> np.ndarray:
    """The codes of all features, int64 (n, d), in the order of the columns of X."""
    found = np.empty((table.n_rows, len(table.features)), np.int64)
    for place, feature in enumerate(table.features):
        found[:, feature] = [_code(table, place, row) for row in range(table.n_rows)]
    return found


def _code(table: Any, place: int, row: int) -> int:
    """The code of a cell. Of the entries of a row, in bytes or in a list, one at most is of a
    feature; without one, the code is the omitted one."""
    cells = table.cells_at + table.by_rows[row]
    if len(table.starts) > 1:
        cells = np.append(cells, table.entries[table.starts[row] : table.starts[row + 1]])
    codes = cells.astype(np.int64) - table.first[place]
    own = codes[(codes >= 0) & (codes <= table.n_codes[place])]
    assert len(own) <= 1
    return int(own[0]) if len(own) else int(table.omitted[place])


def require_same_bins(
    X: Any, n_categories: np.ndarray, borders: list[int], weight: Any = None, max_bins: int = 255
) -> None:
    wanted, _ = bins_and_table(X, n_categories, max_bins=max_bins, weight=weight, n_threads=1)
    members = jointly(X, n_categories, borders, weight, max_bins=max_bins)
    for bins, _ in members:
        for j in range(X.shape[1]):
            np.testing.assert_array_equal(bins.lows[j], wanted.lows[j])
            np.testing.assert_array_equal(bins.highs[j], wanted.highs[j])
            np.testing.assert_array_equal(bins.codes[j], wanted.codes[j])
    first = members[0][1]
    for _, table in members[1:]:
        for name in ("features", "first", "cells_at", "n_codes", "omitted", "is_category"):
            np.testing.assert_array_equal(getattr(table, name), getattr(first, name))


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    seed=st.integers(0, 10_000),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    n=st.integers(1, 600),
    max_bins=st.sampled_from([2, 3, 16, 255]),
    n_splitters=st.sampled_from([1, 2, 10, 100]),
    is_weighted=st.booleans(),
)
def test_any_column(seed, kinds, n, max_bins, n_splitters, is_weighted) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([column(kind, n, rng) for kind in kinds])
    weight = rng.integers(1, 1000, n).astype(float) if is_weighted else None
    none = np.zeros(len(kinds), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_tables, "_MOST_SPLITTERS", n_splitters)
        patch.setattr(joint_tables, "_FEWEST_SPLITTERS", n_splitters)
        require_same_bins(X, none, [n // 3, n // 3, n // 2], weight, max_bins)


def test_a_heavy_value_that_the_sample_has_missed(monkeypatch) -> None:
    X = np.arange(1000.0)[:, None] / 7
    X[1:900:2] = 3.14159  # every second row, where the sample has the others
    monkeypatch.setattr(joint_tables, "_MOST_SPLITTERS", 500)
    monkeypatch.setattr(joint_tables, "_FEWEST_SPLITTERS", 500)
    require_same_bins(X, np.zeros(1, np.int64), [], None, 10)


def test_categories() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 400, 2000), rng.integers(0, 3, 2000)]).astype(float)
    X[::9, 0] = np.nan
    require_same_bins(X, np.array([400, 3]), [500])


@pytest.mark.parametrize("layout", ["dense", "bundles", "lists"])
def test_codes(layout) -> None:
    """Of rows in every layout: those of the bins."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (300, 3)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    if layout == "bundles":
        X = np.c_[X, np.eye(12)[rng.integers(0, 12, 300)]]
    if layout == "lists":
        X = np.c_[X, (rng.random((300, 40)) < 0.08) * rng.integers(1, 4, (300, 40))]
    for table_of_rows in (X, sp.csr_matrix(X)):
        members = jointly(table_of_rows, np.zeros(X.shape[1], np.int64), [100, 100], max_bins=255)
        codes = np.concatenate([decoded(table) for _, table in members])
        lows = members[0][0].lows
        for j in range(X.shape[1]):
            wanted = np.searchsorted(lows[j], X[:, j], side="right") - 1
            wanted[np.isnan(X[:, j])] = len(lows[j])
            np.testing.assert_array_equal(codes[:, j], wanted)


@pytest.mark.parametrize("form", ["lists", "bundles"])
def test_columns_that_cannot_be_split_are_left_out(form) -> None:
    """The same ones as of one table, whichever member has their entries."""
    rng = np.random.default_rng(2)
    X = np.zeros((300, 60))
    for j in range(60):
        rows = np.arange(5 * j, 5 * j + 5) if form == "bundles" else rng.choice(300, j, False)
        X[rows[: j % 6 if form == "bundles" else None], j] = 1.0
    least = 4 if form == "bundles" else 30
    for own in (X, sp.csr_matrix(X)):
        none = np.zeros(60, np.int64)
        _, wanted = bins_and_table(own, none, least_samples=least)
        assert 10 <= len(wanted.features) <= 30
        for _, table in jointly(own, none, [100, 150], max_bins=255, least_samples=least):
            np.testing.assert_array_equal(table.features, wanted.features)
            np.testing.assert_array_equal(table.places, wanted.places)
            assert (len(table.list_starts) > 1) == (form == "lists")
        copies = np.ones(300, np.int64)
        members = jointly(own, none, [100], max_bins=255, least_samples=least, copies=copies)
        assert all(len(table.features) == 60 for _, table in members)
