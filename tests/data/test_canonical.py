"""The canonical form against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.canonical import naive_groups

from margrove import Perceptron
from margrove._data import (
    canonical,
    canonical_form,
    canonical_form_by_hash,
    check_table,
    given_order,
    scan_rows,
    scramble,
)

pytestmark = pytest.mark.nojit


def random_rows(seed, n=40, d=3, levels=2):
    rng = np.random.default_rng(seed)
    X = rng.integers(-levels, levels + 1, (n, d)).astype(float)
    X[rng.random((n, d)) < 0.2] = -0.0
    return X, rng.integers(0, 2, n), rng.choice([0.0, 1.0, 2.0, 0.1, 0.7], n)


def as_dictionary(form, X, target):
    return {
        (*(np.asarray(X)[row] + 0.0).tolist(), target[row]): weight
        for row, weight in zip(form.rows, form.weight, strict=True)
    }


@given(st.integers(0, 2**32 - 1))
def test_groups_are_those_of_a_dictionary(seed) -> None:
    X, y, w = random_rows(seed)
    if not w.any():
        return
    form = canonical_form(X, y, w)
    assert as_dictionary(form, X, y) == pytest.approx(naive_groups(X, y, w), rel=1e-15)


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_rows_changes_no_bit(seed) -> None:
    X, y, w = random_rows(seed)
    w[0] = 1.0
    shuffled = np.random.default_rng(seed).permutation(len(w))
    form, again = canonical_form(X, y, w), canonical_form(X[shuffled], y[shuffled], w[shuffled])
    assert np.array_equal(X[form.rows], X[shuffled][again.rows])
    assert np.array_equal(form.weight, again.weight)


@given(st.integers(0, 2**32 - 1))
def test_order_repetition_sparsity_and_precision_do_not_matter(seed) -> None:
    X, y, w = random_rows(seed, levels=3)
    w = np.floor(w) + (np.arange(len(w)) == 0)
    form = canonical_form(X, y, w)
    content = [(*(X[r] + 0.0), y[r], v) for r, v in zip(form.rows, form.weight, strict=True)]
    rng = np.random.default_rng(seed)
    copies = rng.permutation(np.repeat(np.arange(len(w)), w.astype(int)))
    for rows in (X[copies], X[copies].astype(np.float32)):
        for data in (rows, check_table(sp.csr_array(rows), Perceptron()).X):
            scan = scan_rows(data, n_threads=2)
            again = canonical_form(data, y[copies], np.ones(len(copies)), scan)
            got = [
                (*(X[copies[r]] + 0.0), y[copies[r]], v)
                for r, v in zip(again.rows, again.weight, strict=True)
            ]
            assert got == content


@given(st.integers(0, 2**32 - 1))
def test_shares_add_up_and_respect_proportional_bounds(seed) -> None:
    X, y, w = random_rows(seed)
    w[0] = 1.0
    form = canonical_form(X, y, w)
    alpha = np.random.default_rng(seed).random(len(form.rows)) * form.weight
    shared = form.share_out(alpha)
    assert np.allclose(np.bincount(form.group_of[w > 0], shared[w > 0]), alpha)
    assert (shared <= w * (1 + 1e-12)).all()
    assert (shared[w == 0] == 0).all()
    two = form.share_out(np.column_stack([alpha, 2 * alpha]))
    assert np.allclose(two[:, 1], 2 * shared)


@given(st.integers(0, 2**32 - 1))
def test_hashes_of_rows_are_enough(seed) -> None:
    X, y, w = random_rows(seed)
    w += 1.0
    form = canonical_form(X, y, w)
    found = canonical_form_by_hash(scan_rows(X).hashes, y, w)
    assert np.array_equal(found.rows, form.rows)
    assert np.array_equal(found.weight, form.weight)
    assert np.array_equal(found.group_of, form.group_of)
    alone = canonical_form_by_hash(scan_rows(X).hashes, y, w, is_unique=np.ones(len(w), bool))
    assert np.array_equal(np.sort(alone.rows), np.arange(len(w)))


def test_given_order_keeps_the_rows() -> None:
    form = given_order(np.array([1.0, 0.0, 2.0]))
    assert form.rows.tolist() == [0, 2]
    assert form.weight.tolist() == [1.0, 2.0]
    assert form.group_of.tolist() == [0, -1, 1]


def test_colliding_hashes_cost_time_but_no_answer(monkeypatch) -> None:
    monkeypatch.setattr(
        canonical, "_pair_hashes", lambda hashes, bits, rows: np.full(len(rows), 7, np.uint64)
    )
    X, y, w = random_rows(5)
    for data in (X, check_table(sp.csr_array(X), Perceptron()).X):
        form = canonical_form(data, y, w)
        assert as_dictionary(form, X, y) == pytest.approx(naive_groups(X, y, w), rel=1e-15)
        backwards = canonical_form(data[::-1], y[::-1].copy(), w[::-1].copy())
        assert np.array_equal(X[form.rows], X[::-1][backwards.rows])


def test_large_tables_sort_as_small_ones_do() -> None:
    """Above 2^16 rows a bucket sort of our own takes over."""
    rng = np.random.default_rng(0)
    rows = np.arange(200_000)
    hashes = rng.integers(0, 2**64, 200_000, dtype=np.uint64)
    hashes[::3] = hashes[1]  # and a bucket that is not small at all
    hashes[::3][::2] += np.uint64(1)
    hashes[5:2000:7] = np.uint64(2**64 - 1)
    got_rows, got = canonical._sorted_by_hash(rows, hashes)
    assert np.array_equal(got, np.sort(hashes))
    assert np.array_equal(hashes[got_rows], got)
    spread = rng.integers(0, 2**64, 100_000, dtype=np.uint64)
    got_rows, got = canonical._sorted_by_hash(rows[:100_000], spread)
    assert np.array_equal(got, np.sort(spread))
    assert np.array_equal(spread[got_rows], got)


def test_small_numbers_hash_apart() -> None:
    """Integers in doubles keep all their bits at the upper end; no two rows of a grid collide."""
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 4), axis=-1).reshape(-1, 4)
    form = canonical_form(grid, np.zeros(len(grid), dtype=np.int64), np.ones(len(grid)))
    assert len(form.rows) == len(grid)
    assert len(np.unique(scan_rows(grid).hashes)) == len(grid)


def test_a_scan_gives_norms_too() -> None:
    X = np.random.default_rng(0).standard_normal((500, 3))
    for data in (X, check_table(sp.csr_array(X), Perceptron()).X):
        scan = scan_rows(data)
        assert np.allclose(scan.squared_norms, (X**2).sum(axis=1), rtol=1e-14)
        assert np.array_equal(scan.hashes, scan_rows(X).hashes)


def test_regression_targets_are_told_apart() -> None:
    X = np.ones((4, 1))
    form = canonical_form(X, np.array([0.5, 0.5, 0.25, -0.0]), np.ones(4))
    assert sorted(form.weight.tolist()) == [1.0, 1.0, 2.0]
    assert len(canonical_form(X, np.array([0.0, -0.0, 0.0, -0.0]), np.ones(4)).rows) == 1


def test_hashes_of_pairs_are_those_of_scrambled_arrays() -> None:
    hashes, bits = np.random.default_rng(0).integers(0, 2**64, (2, 50), dtype=np.uint64)
    expected = scramble(scramble(bits + np.uint64(1)) + hashes)
    rows = np.array([3, 1, 49])
    assert np.array_equal(canonical._pair_hashes(hashes, bits, rows), expected[rows])
