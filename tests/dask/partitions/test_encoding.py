"""One numbering of categories for all partitions: that of the table as a whole."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from margrove import RandomForestClassifier
from margrove.dask.cluster.waiting import gathered
from margrove.dask.partitions.encoding import encoded
from margrove.dask.partitions.table import partitions_of
from margrove.exceptions import InvalidDataError
from margrove.grove.table.encoding import read_table

N = 120
FOREST = RandomForestClassifier()


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "number": np.where(rng.random(N) < 0.1, np.nan, rng.random(N)),
            "text": rng.choice(["x", "yy", "z", None], N),
            "category": pd.Categorical(rng.choice([3, 1, 7], N), categories=[7, 5, 3, 1]),
            "whole": rng.integers(0, 5, N),
            "truth": rng.random(N) < 0.5,
            "objects": np.array([1, 2.5, None, 4], dtype=object)[rng.integers(0, 4, N)],
            "rare": ["only in the first"] + [None] * (N - 2) + ["only in the last"],
        }
    )
    return table


def assert_like_local(partitions, local, categorical_features):
    found = encoded(partitions, FOREST, categorical_features)
    X = np.concatenate(gathered(partitions.client, found.partitions.X))
    np.testing.assert_array_equal(X, local.X)
    assert X.dtype == local.X.dtype
    assert list(found.categories) == list(local.categories)
    for j, labels in local.categories.items():
        assert found.categories[j].dtype == labels.dtype
        assert found.categories[j].tolist() == labels.tolist()
    assert list(found.attributes) == list(local.attributes)
    np.testing.assert_array_equal(found.is_categorical, local.is_categorical)
    np.testing.assert_array_equal(found.n_categories, local.n_categories)


@pytest.mark.parametrize("n", [1, 4, 11])
@pytest.mark.parametrize("which", ["from_dtype", "all", ["whole"], [0, 3]])
def test_a_dataframe_is_numbered_as_a_whole(cluster4, frame, n, which):
    pieces = np.array_split(np.arange(N), n)
    with dask.config.set({"dataframe.convert-string": False}):  # which makes texts of objects
        lazy = dd.from_delayed(
            [dask.delayed(frame.iloc[rows]) for rows in (*pieces, [])], meta=frame[:0]
        )
    assert_like_local(
        partitions_of(lazy, keep_frames=True), read_table(frame, FOREST, which), which
    )


@pytest.mark.parametrize("which", [None, "all", [1], [True, False, True]])
def test_an_array_of_numbers(cluster4, which):
    X = np.random.default_rng(0).integers(0, 4, (40, 3)) + np.array([0, 0, 0.5])
    X[3, 1] = np.nan
    partitions = partitions_of(da.from_array(X, chunks=(9, 2)), keep_frames=True)
    assert_like_local(partitions, read_table(X, FOREST, which), which)


def test_an_array_of_texts(cluster4):
    X = np.random.default_rng(0).choice(["b", "a", "cc"], (30, 2))
    for kind in (X, X.astype(object)):
        partitions = partitions_of(da.from_array(kind, chunks=(7, 2)), keep_frames=True)
        assert_like_local(partitions, read_table(kind, FOREST, "from_dtype"), "from_dtype")


def test_sparse_numbers_pass_and_sparse_categories_do_not(cluster4):
    X = sp.random_array((10, 3), density=0.5, format="csr", rng=0)
    lazy = da.from_delayed(dask.delayed(X), X.shape, dtype=float, meta=sp.csr_array((0, 0)))
    partitions = partitions_of(lazy, keep_frames=True)
    assert encoded(partitions, FOREST, "from_dtype").partitions is partitions
    with pytest.raises(InvalidDataError, match="categorical_features needs a dense X"):
        encoded(partitions, FOREST, [0])


def test_labels_without_permission_are_an_error(cluster4, frame):
    partitions = partitions_of(dd.from_pandas(frame, npartitions=2), keep_frames=True)
    with pytest.raises(InvalidDataError, match="Column 'text' of X holds labels"):
        encoded(partitions, FOREST, None)


def test_numbers_in_one_partition_and_labels_in_another_are_named(cluster4):
    pieces = [pd.DataFrame({"a": values}) for values in (["x", "y"], [np.nan] * 2, [1.0, 2.0])]
    lazy = dd.from_delayed(
        [dask.delayed(piece) for piece in pieces], meta=pieces[0][:0], verify_meta=False
    )
    with pytest.raises(
        InvalidDataError, match=r"Partition 2 of X: column 'a' holds numbers.*partition 0.*'x'"
    ):
        encoded(partitions_of(lazy, keep_frames=True), FOREST, "from_dtype")
    some = encoded(partitions_of(lazy.partitions[:2], keep_frames=True), FOREST, "from_dtype")
    assert some.categories[0].tolist() == ["x", "y"]


def test_infinity_is_no_category(cluster4):
    X = np.ones((6, 2))
    X[4, 1] = np.inf
    partitions = partitions_of(da.from_array(X, chunks=(3, 2)), keep_frames=True)
    with pytest.raises(InvalidDataError, match="infinity"):
        encoded(partitions, FOREST, [1])


def test_dates_are_refused(cluster4):
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=6)})
    partitions = partitions_of(dd.from_pandas(frame, npartitions=2), keep_frames=True)
    with pytest.raises(InvalidDataError, match="neither a number nor a label"):
        encoded(partitions, FOREST, "from_dtype")
