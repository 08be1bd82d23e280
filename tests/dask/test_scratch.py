"""Parts on disk: the same rows, files that go, and fits that do not notice."""

from __future__ import annotations

import os
import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from margrove.dask import scratch
from margrove.dask.parts import parts_of
from margrove.dask.waiting import gathered


@pytest.fixture
def everything_on_disk(cluster4):
    """Workers whose parts are all too large for them."""
    usual = scratch._SHARE

    def set_share(share):
        scratch._SHARE = share

    cluster4.run(set_share, 0.0)
    yield cluster4
    cluster4.run(set_share, usual)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_folder", lambda: str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_come_back(folder, dtype):
    X = np.random.default_rng(0).standard_normal((50, 3)).astype(dtype)
    part = scratch.PartOnDisk(X)
    assert part.shape == (50, 3)
    np.testing.assert_array_equal(scratch.loaded(part), X)
    np.testing.assert_array_equal(scratch.rows_of_part(part, 7, 20), X[7:20])
    assert scratch.loaded(part).flags.writeable


def test_frames_come_back(folder):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", None]})
    part = scratch.PartOnDisk(frame)
    pd.testing.assert_frame_equal(part.rows(), frame)
    pd.testing.assert_frame_equal(part.rows(1, 3), frame.iloc[1:3])


def test_no_rows(folder):
    assert scratch.PartOnDisk(np.empty((0, 4))).rows().shape == (0, 4)


def test_a_file_goes_with_its_part_and_a_copy_has_its_own(folder):
    part = scratch.PartOnDisk(np.eye(3))
    copy = pickle.loads(pickle.dumps(part))
    assert len(os.listdir(folder)) == 2
    del part
    assert len(os.listdir(folder)) == 1
    np.testing.assert_array_equal(copy.rows(), np.eye(3))
    del copy
    assert os.listdir(folder) == []


def test_a_file_that_was_cut_is_an_error(folder):
    part = scratch.PartOnDisk(np.eye(3))
    os.truncate(part._path, 10)
    with pytest.raises(EOFError, match="shorter than it was"):
        part.rows()


def test_small_tables_stay_in_memory(cluster4):
    X = da.from_array(np.eye(40), chunks=(10, 40))
    assert not parts_of(X, client=cluster4).on_disk


def test_parts_of_large_tables_are_files_where_they_were_made(everything_on_disk):
    X = np.random.default_rng(0).standard_normal((40, 3))
    parts = parts_of(da.from_array(X, chunks=(10, 3)), X[:, 0], client=everything_on_disk)
    assert parts.on_disk
    before = parts.where()
    found = gathered(everything_on_disk, parts.map(np.sum))
    np.testing.assert_allclose(found, [X[k : k + 10].sum() for k in range(0, 40, 10)])
    assert parts.where() == before


def test_frames_become_numbers_on_disk(everything_on_disk):
    from margrove.dask.encoding import encoded

    frame = pd.DataFrame({"a": np.arange(12.0), "b": list("xyz") * 4})
    parts = parts_of(
        dd.from_pandas(frame, npartitions=3), client=everything_on_disk, keep_frames=True
    )
    made = encoded(parts, None, "from_dtype").parts
    assert made.on_disk
    kinds = gathered(everything_on_disk, [_kind_of(everything_on_disk, part) for part in made.X])
    assert kinds == ["PartOnDisk"] * 3
    whole = np.concatenate(gathered(everything_on_disk, made.map(np.asarray)))
    np.testing.assert_array_equal(whole, np.column_stack([np.arange(12.0), [0.0, 1.0, 2.0] * 4]))


def _kind_of(client, part):
    return client.submit(lambda own: type(own).__name__, part, pure=False)
