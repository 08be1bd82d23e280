"""Columns of any table: the same column in every library is read to the same cells."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from margrove._data import (
    Cells,
    DateCells,
    LabelCells,
    NumberCells,
    UnreadableCells,
    code_table,
    collected,
    column_names,
    columns_of,
    frame_to_objects,
    has_numbers_only,
    is_frame,
    library_of,
    replace_cells,
    select_columns,
    take_rows,
)

COLUMNS: dict[str, list[Any]] = {
    "whole": [3, None, 1],
    "float": [0.5, None, -1.0],
    "bool": [True, False, True],
    "text": ["b", None, "a"],
    "date": [dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)],
    "empty": [None, None, None],
}
TYPES = pa.schema(
    {
        "whole": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "text": pa.string(),
        "date": pa.date32(),
        "empty": pa.string(),
    }
)

FRAMES = {
    "polars": lambda: pl.DataFrame(COLUMNS, schema_overrides={"empty": pl.String}),
    "lazy": lambda: pl.DataFrame(COLUMNS, schema_overrides={"empty": pl.String}).lazy(),
    "pandas": lambda: pd.DataFrame(
        {name: pd.Series(cells, dtype=object) for name, cells in COLUMNS.items()}
    ),
    "pandas with types": lambda: pd.DataFrame(
        {
            "whole": pd.array(COLUMNS["whole"], dtype="Int64"),
            "float": pd.array(COLUMNS["float"], dtype="Float64"),
            "bool": np.array(COLUMNS["bool"]),
            "text": pd.array(COLUMNS["text"], dtype="string"),
            "date": pd.to_datetime(pd.Series(COLUMNS["date"])),
            "empty": pd.array(COLUMNS["empty"], dtype="string"),
        }
    ),
    "pyarrow": lambda: pa.table(COLUMNS, schema=TYPES),
    "batch": lambda: pa.RecordBatch.from_pydict(COLUMNS, schema=TYPES),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_library_gives_the_same_cells(make: Any) -> None:
    X = collected(make())
    assert is_frame(X)
    assert column_names(X) == list(COLUMNS)
    by_name = {cells.name: cells for cells in columns_of(X)}
    whole, real, switch = (by_name[name] for name in ("whole", "float", "bool"))
    assert isinstance(whole, NumberCells)
    assert isinstance(real, NumberCells)
    assert isinstance(switch, NumberCells)
    assert whole.is_whole
    assert not real.is_whole
    np.testing.assert_array_equal(whole.values, [3.0, np.nan, 1.0])
    np.testing.assert_array_equal(real.values, [0.5, np.nan, -1.0])
    np.testing.assert_array_equal(switch.values, [1.0, 0.0, 1.0])
    text, date, empty = (by_name[name] for name in ("text", "date", "empty"))
    assert isinstance(text, LabelCells)
    assert (text.codes.tolist(), text.labels, text.is_category) == ([0, -1, 1], ["b", "a"], False)
    assert isinstance(date, DateCells)
    np.testing.assert_array_equal(
        date.values, np.array(["2024-02-29", "NaT", "1969-12-31"], dtype="datetime64[us]")
    )
    assert not isinstance(empty, UnreadableCells)
    assert empty.is_missing.all()


CATEGORIES = {
    "polars": lambda: pl.DataFrame({"c": pl.Series(["b", None, "a", "b"], dtype=pl.Categorical)}),
    "enum": lambda: pl.DataFrame(
        {"c": pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["a", "unused", "b"]))}
    ),
    "pandas": lambda: pd.DataFrame(
        {"c": pd.Categorical(["b", None, "a", "b"], categories=["a", "unused", "b"])}
    ),
    "pyarrow": lambda: pa.table(
        {
            "c": pa.DictionaryArray.from_arrays(
                pa.array([2, None, 0, 2], pa.int32()), pa.array(["a", "unused", "b"])
            )
        }
    ),
}


@pytest.mark.parametrize("make", CATEGORIES.values(), ids=CATEGORIES)
def test_only_categories_that_occur_in_the_order_of_their_rows(make: Any) -> None:
    (cells,) = columns_of(make())
    assert isinstance(cells, LabelCells)
    assert cells.is_category
    assert cells.labels == ["b", "a"]
    assert cells.codes.tolist() == [0, -1, 1, 0]
    assert cells.row_of(1) == 2


@pytest.mark.parametrize("rows", [0, 3])
def test_columns_without_rows_or_labels(rows: int) -> None:
    for frame in (pl.DataFrame({"a": pl.Series([None] * rows, dtype=pl.String)}),
                  pa.table({"a": pa.array([None] * rows, pa.string())}),
                  pd.DataFrame({"a": pd.Series([None] * rows, dtype="string")})):  # fmt: skip
        (cells,) = columns_of(frame)
        assert isinstance(cells, LabelCells)
        assert cells.labels == []
        assert cells.codes.tolist() == [-1] * rows


def _read(cells: list[Any]) -> Cells | UnreadableCells:
    return columns_of(np.array([[cell] for cell in cells], dtype=object))[0]


def test_python_objects() -> None:
    numbers = _read([1, decimal.Decimal("0.5"), None, float("nan"), np.float32(2), 10**400])
    assert isinstance(numbers, NumberCells)
    np.testing.assert_array_equal(numbers.values, [1.0, 0.5, np.nan, np.nan, 2.0, np.inf])
    assert not numbers.is_whole
    spans = _read([dt.timedelta(minutes=1), dt.time(0, 0, 2), np.timedelta64(3, "s"), pd.NaT])
    assert isinstance(spans, NumberCells)
    assert spans.is_duration
    np.testing.assert_array_equal(spans.values, [60.0, 2.0, 3.0, np.nan])
    berlin = dt.timezone(dt.timedelta(hours=2))
    dates = _read([dt.datetime(2024, 1, 1, 12, tzinfo=berlin), np.datetime64("2024-01-02"), None])
    assert isinstance(dates, DateCells)  # by the clocks of their own time zone
    assert dates.values[0] == np.datetime64("2024-01-01T12:00")
    assert dates.is_missing.tolist() == [False, False, True]
    mixed = _read(["a", 1, None, "a", dt.date(2024, 1, 1)])
    assert isinstance(mixed, LabelCells)
    assert mixed.types == {"text", "number", "date"}
    assert mixed.codes.tolist() == [0, 1, -1, 0, 2]
    lists = _read([[1], "a"])
    assert isinstance(lists, UnreadableCells)
    assert (lists.type_name, lists.by_column, len(lists)) == ("list", False, 2)


def test_long_integers() -> None:
    long, short = columns_of(pl.DataFrame({"long": [2**60, None], "short": [2**50, 1]}))
    assert isinstance(long, NumberCells)
    assert isinstance(short, NumberCells)
    assert long.has_long_integers
    assert not short.has_long_integers


def test_nested_columns_name_their_type() -> None:
    (cells,) = columns_of(pl.DataFrame({"a": [[1], [2]]}))
    assert isinstance(cells, UnreadableCells)
    assert cells.by_column
    assert "List" in cells.type_name


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_rows_and_columns_of_frames(library: str) -> None:
    made = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.table}[library]
    X = made({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    assert library_of(X) == library
    assert not has_numbers_only(X)
    assert has_numbers_only(select_columns(X, ["a"]))
    assert frame_to_objects(take_rows(X, np.array([2, 0]))).tolist() == [[3, "z"], [1, "x"]]
    changed = replace_cells(X, 1, np.array([0, 0]), np.array([1, 2]))
    assert library_of(changed) == library
    assert frame_to_objects(changed).tolist() == [[1, "y"], [1, "z"]]


def test_a_category_of_numbers_is_coded_by_its_numbers() -> None:
    table = code_table(pd.DataFrame({"a": pd.Categorical([20, None, 10])}))
    assert table.kinds == ("number",)
    np.testing.assert_array_equal(table.column(0), [20.0, np.nan, 10.0])


def test_names_that_occur_twice_are_columns_of_their_own() -> None:
    table = code_table(pd.DataFrame([[1, "x"], [2, "y"]], columns=["a", "a"]))
    assert table.names == ("a", "a")
    assert table.kinds == ("number", "label")
