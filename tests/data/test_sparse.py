"""Sparse input: any format is accepted, any malformed structure is an error and never a crash."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from margrove import Perceptron
from margrove._data import check_table, kernel_rows
from margrove._data.sparse import canonical_csr
from margrove.exceptions import InvalidDataError, MalformedSparseError

pytestmark = pytest.mark.nojit

DENSE = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 0.0]])
ME = Perceptron()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_every_format(form, kind, index) -> None:
    X = getattr(sp, f"{form}_{kind}")(DENSE)
    for name in ("indices", "indptr"):
        if hasattr(X, name):
            setattr(X, name, getattr(X, name).astype(index))
    got = check_table(X, ME).X
    assert got.format == "csr"
    view = kernel_rows(got)
    assert view.indices.dtype == np.int32
    assert view.indptr.dtype == np.int64
    assert np.array_equal(got.toarray(), DENSE)


def test_unsorted_duplicate_and_explicit_zero_entries_equal_dense() -> None:
    indptr, indices, data = [0, 3, 4], [2, 0, 2, 1], [1.0, 5.0, 2.0, 0.0]
    X = sp.csr_array((data, indices, indptr), shape=(2, 3))
    got = check_table(X, ME).X
    assert np.array_equal(got.toarray(), [[5.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    assert got.indices.tolist()[:2] == [0, 2]
    assert X.indices.tolist() == indices  # the user's matrix is as it was
    assert X.data.tolist() == data


def test_room_left_at_the_end_is_ignored() -> None:
    X = sp.csr_array(DENSE)
    X.data = np.append(X.data, 99.0)
    X.indices = np.append(X.indices, 2).astype(np.int32)
    assert np.array_equal(check_table(X, ME).X.toarray(), DENSE)


def corrupt(name, position, value, form="csr"):
    X = sp.csr_array(DENSE) if form == "csr" else sp.csc_array(DENSE)
    getattr(X, name)[position] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (corrupt("indices", 0, 3), "column index 3 is outside 0..2"),
        (corrupt("indices", 0, 2**31 - 1), "outside"),
        (corrupt("indices", 1, -1), "column index -1"),
        (corrupt("indices", 1, 4, "csc"), "row index 4 is outside 0..3"),
        (corrupt("indptr", 1, 100), "decreases from 100"),
        (corrupt("indptr", -1, 100), "ends with 100"),
        (corrupt("indptr", 0, 1), "starts with 1"),
        (corrupt("indptr", 2, -5), "decreases"),
    ],
)
def test_malformed_structures(X, message) -> None:
    with pytest.raises(MalformedSparseError, match=message):
        check_table(X, ME)
    with pytest.raises(MalformedSparseError, match=r"coo_array"):  # the way out
        Perceptron().fit(X, [0, 1, 0, 1])


def test_malformed_lengths_types_and_coordinates() -> None:
    X = sp.csr_array(DENSE)
    X.indptr = X.indptr[:-1]
    with pytest.raises(MalformedSparseError, match="4 entries, not 5"):
        check_table(X, ME)
    X = sp.csr_array(DENSE)
    X.indices = X.indices.astype(float)
    with pytest.raises(MalformedSparseError, match="not integers"):
        check_table(X, ME)
    X = sp.csr_array(DENSE)
    X.indices = X.indices.reshape(1, -1)
    with pytest.raises(MalformedSparseError, match="one-dimensional"):
        check_table(X, ME)
    X = sp.coo_array(DENSE)
    X.coords = (X.coords[0], X.coords[1] + 7)
    with pytest.raises(MalformedSparseError, match="column index"):
        check_table(X, ME)
    X = sp.coo_array(DENSE)
    X.data = X.data[:-1]
    with pytest.raises(MalformedSparseError, match="indices for"):
        check_table(X, ME)
    X = sp.dia_array(DENSE)
    X.offsets = X.offsets[:-1]
    with pytest.raises(MalformedSparseError, match="diagonals"):
        check_table(X, ME)


@pytest.mark.parametrize("column", [10**9, -1, 3])
def test_malformed_lists(column) -> None:
    X = sp.lil_array(DENSE)
    X.rows[1] = [column, 0]
    with pytest.raises(MalformedSparseError, match="outside"):
        check_table(X, ME)
    X = sp.lil_array(DENSE)
    X.data[1] = [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(MalformedSparseError, match="different lengths"):
        check_table(X, ME)


def test_one_dimensional_sparse_arrays_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="2D"):
        check_table(sp.coo_array(np.ones(3)), ME)


def test_more_columns_than_int32_are_refused() -> None:
    X = sp.coo_array(([1.0], ([0], [2**33])), shape=(1, 2**34)).tocsr()
    with pytest.raises(InvalidDataError, match="FeatureHasher"):
        check_table(X, ME)


@given(
    seed=st.integers(0, 2**32 - 1),
    array=st.sampled_from(["indptr", "indices"]),
    position=st.integers(0, 100),
    value=st.integers(-(2**31), 2**31 - 1),
)
def test_any_corruption_is_an_error_or_harmless(seed, array, position, value) -> None:
    """Whatever is written into the index arrays: an error, or a matrix that means something."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((6, 5), density=0.5, rng=rng, format="csr")
    X.data = X.data + 0.1
    numbers = getattr(X, array)
    if len(numbers) == 0:
        return
    numbers[position % len(numbers)] = value
    try:
        got = check_table(X, ME).X
    except MalformedSparseError:
        return
    assert got.shape == (6, 5)
    assert np.isfinite(got.toarray()).all()
    assert np.all(np.diff(got.indptr) >= 0)
    assert ((got.indices >= 0) & (got.indices < 5)).all()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_whose_indices_do_not_ascend_are_found(kind: type) -> None:
    """Among many rows, some of them empty: at the start, in the middle and at the end of blocks."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        lengths = rng.integers(0, 4, rng.integers(1, 200))
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
        parts = [np.sort(rng.choice(20, length, replace=False)) for length in lengths]
        indices = np.concatenate(parts).astype(kind)
        if len(indices) and rng.random() < 0.6:
            indices[rng.integers(len(indices))] = rng.integers(20)
        data = rng.random(len(indices))
        X = sp.csr_array((data, indices, indptr), shape=(len(lengths), 20))
        expected = all((np.diff(indices[a:b]) > 0).all() for a, b in pairwise(indptr))
        found = canonical_csr(X)
        assert np.allclose(found.toarray(), X.toarray())
        assert (found.data is X.data or np.shares_memory(found.data, data)) == (
            expected and len(data) > 0
        )
