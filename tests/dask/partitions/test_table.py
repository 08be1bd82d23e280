"""Collections as aligned partitions: every shape in, one form out, or an error with a place."""

from __future__ import annotations

import itertools

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from margrove import LinearSVC
from margrove.dask.cluster.waiting import gathered
from margrove.dask.partitions import table as table_module
from margrove.dask.partitions.blocks import is_collection
from margrove.dask.partitions.table import partitions_of
from margrove.exceptions import InvalidDataError

N = 50


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": rng.random(N), "b": rng.integers(0, 9, N), "c": rng.random(N) < 0.5}
    ), rng.choice(["u", "v"], N)


def whole(partitions):
    return np.concatenate(gathered(partitions.client, partitions.X))


@pytest.mark.parametrize("n", [1, 3, 7])
def test_a_dataframe_is_what_the_local_boundary_makes_of_it(cluster4, table, n):
    frame, y = table
    ddf = dd.from_pandas(frame.assign(y=y), npartitions=n)
    partitions = partitions_of(ddf[["a", "b", "c"]], ddf["y"], ddf["b"])
    X = whole(partitions)
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    np.testing.assert_array_equal(X, frame.to_numpy(dtype=np.float64))
    assert partitions.gather_y().tolist() == y.tolist()
    np.testing.assert_array_equal(partitions.gather_weight(), frame["b"].to_numpy(dtype=float))
    assert partitions.feature_names.tolist() == ["a", "b", "c"]
    assert partitions.n_features == 3
    assert partitions.n_rows == N
    assert partitions.offsets[-1] == N
    assert len(partitions.lengths) == len(partitions.X) == ddf.npartitions
    assert all(holders for holders in partitions.holders())


def test_columns_of_small_files_stay_matched(cluster4, table, tmp_path):
    """Reading one column of many, Dask would put files together."""
    frame, y = table
    wide = frame.assign(y=y, **{f"x{j}": frame["a"] for j in range(20)})
    for k, piece in enumerate(np.array_split(np.arange(N), 4)):
        wide.iloc[piece].to_parquet(tmp_path / f"{k}.parquet")
    ddf = dd.read_parquet(str(tmp_path))
    partitions = partitions_of(ddf.drop(columns="y"), ddf["y"], ddf["b"])
    assert partitions.gather_y().tolist() == y.tolist()
    assert partitions.gather_weight().tolist() == frame["b"].tolist()
    np.testing.assert_array_equal(whole(partitions)[:, 0], frame["a"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_an_array_in_chunks_of_columns_and_unknown_sizes(cluster4, dtype):
    X = (np.arange(60).reshape(20, 3) % 7).astype(dtype)
    lazy = da.from_array(X, chunks=(6, 2))
    partitions = partitions_of(lazy, da.from_array(X[:, 0], chunks=20))
    found = whole(partitions)
    assert found.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(partitions.gather_y(), X[:, 0])
    kept = lazy[:, 0] > 1
    some = partitions_of(lazy[kept], lazy[:, 1][kept])
    np.testing.assert_array_equal(whole(some), X[X[:, 0] > 1])
    np.testing.assert_array_equal(some.gather_y(), X[X[:, 0] > 1, 1])
    assert some.feature_names is None


def test_targets_on_this_machine_are_cut_to_the_partitions(cluster4, table):
    frame, y = table
    ddf = dd.from_pandas(frame, npartitions=3)
    partitions = partitions_of(ddf, y, list(range(N)))
    assert [
        len(targets) for targets in gathered(cluster4, partitions.y)
    ] == partitions.lengths.tolist()
    assert partitions.gather_y().tolist() == y.tolist()
    assert partitions.gather_weight().tolist() == list(range(N))
    with pytest.raises(InvalidDataError, match="X has 50 rows, y has 49"):
        partitions_of(ddf, y[1:])


def test_empty_partitions_and_single_rows_are_fine(cluster4, table):
    frame, _ = table
    pieces = [frame[:0], frame[:1], frame[1:1], frame[1:], frame[:0]]
    ddf = dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=frame[:0])
    partitions = partitions_of(ddf, ddf["b"])
    assert partitions.lengths.tolist() == [0, 1, 0, 49, 0]
    np.testing.assert_array_equal(whole(partitions), frame.to_numpy(dtype=np.float64))
    assert partitions.gather_y().dtype == np.int64


def test_no_rows_at_all_is_an_error(cluster4, table):
    ddf = dd.from_pandas(table[0], npartitions=2)
    with pytest.raises(InvalidDataError, match=r"0 sample\(s\).*all partitions of X are empty"):
        partitions_of(ddf[ddf["a"] > 5])


def test_columns_in_another_order_are_put_in_order(cluster4, table):
    frame, _ = table
    pieces = [dask.delayed(frame[:20]), dask.delayed(frame[20:][["c", "a", "b"]])]
    ddf = dd.from_delayed(pieces, meta=frame[:0], verify_meta=False)
    np.testing.assert_array_equal(whole(partitions_of(ddf)), frame.to_numpy(dtype=np.float64))


def test_a_partition_without_a_column_is_named(cluster4, table):
    frame, _ = table
    pieces = [dask.delayed(frame[:20]), dask.delayed(frame[20:].rename(columns={"b": "B"}))]
    ddf = dd.from_delayed(pieces, meta=frame[:0], verify_meta=False)
    with pytest.raises(InvalidDataError, match=r"Partition 1 of X: it lacks.*\['b'\].*\['B'\]"):
        partitions_of(ddf)


def test_a_partition_of_another_width_is_named(cluster4):
    blocks = [da.from_delayed(dask.delayed(np.ones((4, d))), (4, 3), dtype=float) for d in (3, 2)]
    with pytest.raises(InvalidDataError, match="Partition 1 of X has 2 columns"):
        partitions_of(da.concatenate(blocks))


def test_partitions_that_do_not_match_are_named(cluster4, table):
    frame, y = table
    ddf = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(InvalidDataError, match="X has 3 partitions and y has 2"):
        partitions_of(ddf, dd.from_pandas(pd.Series(y), npartitions=2))
    wrong = da.from_array(np.arange(N), chunks=((20, 20, 10),))
    with pytest.raises(InvalidDataError, match="Partition 0 of X: it has 17 rows, but y has 20"):
        partitions_of(ddf, wrong)


def test_an_array_beside_known_chunks_is_rechunked(cluster4):
    X = da.from_array(np.ones((10, 2)), chunks=(4, 2))
    partitions = partitions_of(X, da.arange(10, chunks=3), da.arange(10, chunks=10))
    assert [len(targets) for targets in gathered(cluster4, partitions.y)] == [4, 4, 2]
    assert partitions.gather_y().tolist() == partitions.gather_weight().tolist() == list(range(10))


def test_partitions_of_two_precisions_are_float64_as_one_array_would_be(cluster4):
    blocks = [
        da.from_delayed(dask.delayed(np.full((2, 1), 0.1, dtype)), (2, 1), dtype=np.float32)
        for dtype in (np.float32, np.float64)
    ]
    partitions = partitions_of(da.concatenate(blocks))
    assert {rows.dtype for rows in gathered(cluster4, partitions.X)} == {np.dtype(np.float64)}


def test_sparse_blocks_stay_sparse(cluster4):
    X = sp.random_array((20, 6), density=0.3, format="csr", rng=0)
    blocks = [
        da.from_delayed(dask.delayed(X[k : k + 5]), (5, 6), dtype=float, meta=sp.csr_array((0, 0)))
        for k in range(0, 20, 5)
    ]
    partitions = partitions_of(da.concatenate(blocks))
    assert partitions.form == "csr"
    found = sp.vstack(gathered(cluster4, partitions.X))
    np.testing.assert_array_equal(found.toarray(), X.toarray())


def test_labels_are_an_error_or_kept(cluster4, table):
    frame, y = table
    ddf = dd.from_pandas(frame.assign(label=y), npartitions=2)
    with pytest.raises(InvalidDataError, match="Partition 0 of X: Column 'label' of X has type"):
        partitions_of(ddf)
    partitions = partitions_of(ddf, keep_frames=True)
    assert partitions.form == "frame"
    kept = pd.concat(gathered(cluster4, partitions.X))
    assert kept["label"].tolist() == y.tolist()


def test_nan_is_an_error_where_it_is_not_allowed(cluster4):
    X = np.ones((10, 2))
    X[7, 1] = np.nan
    lazy = da.from_array(X, chunks=(5, 2))
    assert np.isnan(whole(partitions_of(lazy))).sum() == 1
    with pytest.raises(InvalidDataError, match=r"Partition 1 of X: .*row 2, column 1.*LinearSVC"):
        partitions_of(lazy, estimator=LinearSVC(), allow_nan=False)


def test_many_partitions_are_put_together(cluster4, monkeypatch):
    monkeypatch.setattr(table_module, "_MAX_PARTITIONS", 4)
    X = np.arange(60.0).reshape(30, 2)
    partitions = partitions_of(da.from_array(X, chunks=(2, 2)), da.arange(30, chunks=2))
    assert len(partitions.X) == 4
    np.testing.assert_array_equal(whole(partitions), X)
    assert partitions.gather_y().tolist() == list(range(30))


def _threads(partition, extra):
    from margrove._runtime.threads import resolve_n_jobs

    return len(partition) + extra, resolve_n_jobs(None, unset="all")


def test_functions_of_partitions_run_on_one_thread_each(cluster4):
    partitions = partitions_of(da.ones((10, 2), chunks=(4, 2)))
    assert gathered(cluster4, partitions.map(_threads, 5)) == [(9, 1), (9, 1), (7, 1)]


def test_what_is_no_table_is_refused(cluster4):
    with pytest.raises(InvalidDataError, match="X must be a Dask array or dataframe"):
        partitions_of(np.ones((2, 2)), da.ones(2))
    with pytest.raises(InvalidDataError, match="Expected 2D array, got 1D"):
        partitions_of(da.ones(4))
    with pytest.raises(InvalidDataError, match="sample_weight must be a Dask array or series"):
        partitions_of(da.ones((4, 1)), sample_weight=dask.delayed(np.ones(4)))
    assert is_collection(da.ones(3))
    assert not is_collection(np.ones(3))


def test_no_function_runs_on_the_scheduler(cluster4, monkeypatch):
    """A scheduler may refuse functions of clients."""

    def refuse(*given, **options):
        raise ValueError("not allowed")

    monkeypatch.setattr(cluster4, "run_on_scheduler", refuse)
    X = np.arange(40.0).reshape(20, 2)
    partitions = partitions_of(da.from_array(X, chunks=(5, 2)), client=cluster4)
    np.testing.assert_array_equal(np.concatenate(gathered(cluster4, partitions.X)), X)


def test_neighbours_are_on_one_worker(cluster4):
    X = da.from_array(np.arange(240.0).reshape(120, 2), chunks=(5, 2))
    holders = partitions_of(X, client=cluster4).holders()
    workers = [first for (first, *_) in holders]
    assert len(set(workers)) == 4
    assert sum(a != b for a, b in itertools.pairwise(workers)) == 3
