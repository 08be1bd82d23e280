"""The features and the target of a table."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

from margrove.exceptions import InvalidDataError
from margrove.tables import RawTable, task_of_table

N = 60


def table(**more) -> RawTable:
    columns = {
        "key": [f"k{k}" for k in range(N)],
        "x": [k % 9 / 2 for k in range(N)],
        "colour": ["red", "blue", None] * (N // 3),
        "y": ["no", "yes"] * (N // 2),
    }
    return RawTable(pl.DataFrame(columns | more), "fruit.csv", ("the delimiter is ';'",))


def test_classes() -> None:
    task = task_of_table(table(), "y", id_column="key")
    assert (task.name, task.kind, task.target) == ("fruit.csv", "classification", "y")
    assert task.X.columns == ["x", "colour"]
    assert task.y.tolist() == ["no", "yes"] * (N // 2)
    assert task.classes == ("no", "yes")
    assert task.ids.tolist() == [f"k{k}" for k in range(N)]
    assert [column.type for column in task.columns] == ["number", "category"]
    assert task.types == {"x": "number", "colour": "category"}
    assert task.notes == ()
    assert task.n_rows == N
    assert task.summary == "60 rows; features: 1 number, 1 category; y is 2 classes"


def test_the_last_column_is_the_target() -> None:
    task = task_of_table(table())
    assert task.target == "y"
    assert "the target is 'y', the last column" in task.notes
    assert "the column 'key' is ignored: every row has a different label" in task.notes


@pytest.mark.parametrize(
    ("cells", "kind", "y"),
    [
        ([k % 3 for k in range(N)], "classification", np.int64),
        ([float(k % 3) for k in range(N)], "classification", np.int64),
        ([k % 2 == 0 for k in range(N)], "classification", np.bool_),
        ([k * 1.0 for k in range(N)], "regression", np.float64),
        ([k % 3 + 0.5 for k in range(N)], "regression", np.float64),
        (list(range(N)), "regression", np.float64),
    ],
)
def test_kinds_of_numbers(cells, kind, y) -> None:
    task = task_of_table(table(y=cells), "y", ignore=["key"])
    assert task.kind == kind
    assert task.y.dtype == y
    assert task.y.tolist() == cells


def test_the_kind_may_be_given() -> None:
    whole = table(y=[k % 3 for k in range(N)])
    assert task_of_table(whole, "y", task="regression").y.dtype == np.float64
    assert task_of_table(whole, "y", types={"y": "number"}).kind == "regression"
    parts = task_of_table(table(y=[k % 3 / 2 for k in range(N)]), "y", task="classification")
    assert parts.classes == ("0.0", "0.5", "1.0")
    with pytest.raises(InvalidDataError, match=r"'y' of X contains 'no' .* predicted as a number"):
        task_of_table(table(), "y", task="regression")
    with pytest.raises(ValueError, match="task must be"):
        task_of_table(table(), "y", task="ranking")


def test_rows_without_a_target_are_left_out() -> None:
    cells = [None if k % 4 == 0 else "ab"[k % 2] for k in range(N)]
    task = task_of_table(table(y=cells), "y", id_column="key")
    assert task.n_rows == task.X.height == len(task.ids) == N * 3 // 4
    assert task.notes == ("15 rows without 'y' were left out",)
    numbers = [float("nan") if k == 3 else k * 1.0 for k in range(N)]
    assert task_of_table(table(y=numbers), "y").n_rows == N - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "z"}, "fruit.csv has no column 'z'. Its columns are 'key', 'x'"),
        ({"target": "y", "id_column": "z"}, "no column 'z'"),
        ({"target": "y", "ignore": ["z"]}, "no column 'z'"),
        ({"target": "y", "types": {"z": "text"}}, "no column 'z'"),
        ({"target": "y", "id_column": "y"}, "both the target and left out"),
        ({"target": "key"}, "a different text in most rows"),
        ({"target": "same"}, "is '1' in all rows"),
        ({"target": "none"}, "missing in all rows"),
        ({"target": "day"}, "contains dates"),
        ({"target": "infinite"}, "infinite in row 0"),
    ],
)
def test_targets_that_cannot_be(arguments, message) -> None:
    more = table(
        same=[1] * N,
        none=pl.Series([None] * N, dtype=pl.Float64),
        day=[dt.date(2024, 1, 1 + k % 20) for k in range(N)],
        infinite=[float("inf"), *range(1, N)],
    )
    with pytest.raises(InvalidDataError, match=message):
        task_of_table(more, **arguments)
    with pytest.raises(InvalidDataError, match="no column except the target"):
        task_of_table(table(), "y", ignore=["key", "x", "colour"])


def test_copies_of_the_target_are_noted() -> None:
    codes = [1, 2] * (N // 2)
    notes = task_of_table(table(copy=codes), "y", ignore="key").notes
    assert any("'copy' determines the target" in note for note in notes)
    numbers = [k * 1.5 for k in range(N)]
    notes = task_of_table(table(copy=numbers, y=numbers), "y", ignore=["key"]).notes
    assert any("'copy' determines the target" in note for note in notes)
    notes = task_of_table(table(other=numbers[::-1], y=numbers), "y", ignore=["key"]).notes
    assert notes == ()


def test_ids_that_are_there_twice_and_classes_that_are_rare() -> None:
    task = task_of_table(
        table(key=["a", "b"] * (N // 2), y=["rare"] + ["no", "yes", "no"] * 19 + ["no", "yes"]),
        "y",
        id_column="key",
    )
    assert any("'key' has 58 repeated values" in note for note in task.notes)
    assert any("1 of 3 classes of 'y' have one row only, such as 'rare'" in n for n in task.notes)


def test_frames_of_other_libraries() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, None], "y": ["a", "b", "a", "b"]})
    task = task_of_table(frame, "y")
    assert isinstance(task.X, pl.DataFrame)
    assert task.X["x"].to_list() == [1.0, 2.0, 3.0, None]
    assert task.y.tolist() == ["a", "b", "a", "b"]
