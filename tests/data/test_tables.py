"""X at the boundary: what is accepted, converted, refused, and in which words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from margrove import Perceptron
from margrove._data import check_table, like_fitted
from margrove.exceptions import DataWarning, InvalidDataError

pytestmark = pytest.mark.nojit

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
ME = Perceptron()


def layouts():
    big = np.arange(24, dtype=float).reshape(6, 4)
    unaligned = (
        np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(3, 2)
    )
    return {
        "fortran": np.asfortranarray(X),
        "reversed": np.ascontiguousarray(X[::-1])[::-1],
        "slice": np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
        "byte-swapped": X.astype(">f8"),
        "unaligned": unaligned,
        "integers": X.astype(np.int8),
        "half": X.astype(np.float16),
        "long": X.astype(np.longdouble),
        "objects": X.astype(object),
        "list": X.tolist(),
        "broadcast": np.broadcast_to(X, (1, 3, 2))[0],
        "big slice": np.pad(X, ((0, big.shape[0] - 3), (0, 2)))[:3, :2],
    }


@pytest.mark.parametrize("name", list(layouts()))
def test_any_layout_and_type_gives_equal_bits(name) -> None:
    array = check_table(layouts()[name], ME).X
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    assert np.array_equal(array, X)


def test_float32_stays_float32() -> None:
    assert check_table(X.astype(np.float32), ME).X.dtype == np.float32


def test_read_only_memory_maps_are_used_as_they_are(tmp_path) -> None:
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    array = check_table(mapped, ME).X
    assert np.shares_memory(array, mapped)


def frames():
    columns = {"a": [1.0, 3.0, 5.0], "b": [2, 4, 6]}
    return {
        "pandas": pd.DataFrame(columns),
        "pandas nullable": pd.DataFrame(columns).convert_dtypes(),
        "pandas arrow": pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
        "pandas objects": pd.DataFrame(columns).astype(object),
        "polars": pl.DataFrame(columns),
        "polars lazy": pl.LazyFrame(columns),
        "arrow": pa.table(columns),
        "arrow batch": pa.RecordBatch.from_pydict(columns),
        "pandas sparse": pd.DataFrame(columns).astype(pd.SparseDtype("float64", 0.0)),
    }


@pytest.mark.parametrize("name", list(frames()))
def test_dataframes_of_any_library(name) -> None:
    table = check_table(frames()[name], ME)
    assert np.array_equal(table.X, X)
    assert table.X.flags.c_contiguous
    assert list(table.feature_names) == ["a", "b"]
    assert list(table.attributes) == ["n_features_in_", "feature_names_in_"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [1.0, 2.0]}),
        pl.DataFrame({"a": [1, None], "b": [1.0, 2.0]}),
        pa.table({"a": [1, None], "b": [1.0, 2.0]}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_missing_values_of_frames_become_nan(frame) -> None:
    table = check_table(frame, ME, allow_nan=True)
    assert np.array_equal(table.X, [[1.0, 1.0], [np.nan, 2.0]], equal_nan=True)
    with pytest.raises(InvalidDataError, match=r"NaN \(first at row 1, column 'a'"):
        check_table(frame, ME)


def test_float32_frames_stay_float32() -> None:
    frame = pl.DataFrame({"a": [1.0]}, schema={"a": pl.Float32})
    assert check_table(frame, ME).X.dtype == np.float32


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(["x", "y"]), "str|String"),
        (pd.Series(["x", "y"], dtype="category"), "Categorical"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])), "Datetime"),
    ],
)
def test_columns_that_are_not_numbers_are_named(column, kind) -> None:
    with pytest.raises(InvalidDataError, match=f"Column 'city' of X has type .*({kind}).*Encode"):
        check_table(pd.DataFrame({"n": [1, 2], "city": column}), ME)


def test_duplicate_columns_are_named() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
    with pytest.raises(InvalidDataError, match="more than one column named 'a'"):
        check_table(frame, ME)


def test_columns_are_matched_by_name_at_predict() -> None:
    model = Perceptron().fit(frames()["pandas"], [0, 1, 1])
    for wrong in (frames()["pandas"][["b", "a"]], frames()["pandas"][["a"]]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    assert np.array_equal(model.predict(frames()["polars"]), model.predict(frames()["arrow"]))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ma.masked_array(X, mask=X > 2), "masked array"),
        (X.astype("datetime64[s]"), "datetime64"),
        (X.astype("timedelta64[s]"), "timedelta64"),
        (np.zeros(3, dtype=[("a", "f8"), ("b", "f8")]), "not a number"),
        (X.astype(str), "strings: X.0, 0. = '1.0'"),
        (X + 1j, "[Cc]omplex"),
        (X[:, 0], "(?s)1D array.*Reshape"),
        (np.zeros((2, 2, 2)), "dim"),
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((2, 0)), "0 feature"),
        ("data.csv", "2D array"),
        ({1.0, 2.0}, "2D array"),
        ({"a": [1.0]}, "2D array"),
        ((row for row in X), "2D array"),
        (None, "2D array|None"),
        ([[10**400]], "too large for float64"),
        (np.array([[1.0, np.nan]]), "NaN .first at row 0, column 1"),
        (np.array([[1.0, 2.0], [-np.inf, 1.0]]), "infinity .first at row 1, column 0"),
        (sp.csr_array([[0.0, np.inf]]), "infinity .first at row 0, column 1"),
    ],
)
def test_refusals(bad, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        check_table(bad, ME)


def test_numpy_matrix_is_refused() -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(X)
    with pytest.raises(TypeError, match=r"np\.matrix"):
        check_table(matrix, ME)


def test_huge_finite_values_are_not_mistaken_for_infinity() -> None:
    huge = X * (1e308 / 6)
    assert np.array_equal(check_table(huge, ME).X, huge)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1])
def test_integers_that_float64_cannot_hold_warn(value) -> None:
    with pytest.warns(DataWarning, match=r"2\*\*53"):
        check_table(np.array([[value]], dtype=np.int64), ME)


def test_long_doubles_that_lose_bits_warn() -> None:
    fine = np.array([[np.longdouble(1) + np.finfo(np.longdouble).eps]])
    if fine[0, 0] == np.float64(fine[0, 0]):
        pytest.skip("long double is double on this platform")
    with pytest.warns(DataWarning, match="rounded"):
        check_table(fine, ME)


def test_nothing_is_written_to_the_estimator() -> None:
    fresh = Perceptron()
    check_table(frames()["pandas"], fresh)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_predict_checks_the_number_of_features() -> None:
    model = Perceptron().fit(X, [0, 1, 1])
    with pytest.raises(ValueError, match="2 features"):
        like_fitted(np.ones((1, 3)), model)
