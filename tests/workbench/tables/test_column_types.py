"""Columns get the types that a person would give them."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from margrove._data import DATE_PARTS, date_part
from margrove.exceptions import InvalidDataError
from margrove.tables import describe_columns, read_table
from margrove.workbench.tables.read.cell_texts import read_dates

N = 40
SENTENCES = [f"please book flight number {k} to Rome" for k in range(N)]
COLUMNS: dict[str, tuple[list[Any], str]] = {
    "float": ([k / 7 for k in range(N)], "number"),
    "few whole numbers": ([k % 3 for k in range(N)], "number"),
    "truth": ([k % 2 == 0 for k in range(N)], "number"),
    "labels": (["red", "green"] * (N // 2), "category"),
    "numbers in writing": ([str(k % 7) for k in range(N)], "number"),
    "codes": ([f"{k % 7:03d}" for k in range(N)], "category"),
    "day": ([dt.date(2024, 1, 1 + k % 28) for k in range(N)], "date"),
    "day in writing": ([f"2024-01-{1 + k % 28:02d}" for k in range(N)], "date"),
    "day first": ([f"{1 + k % 28}/1/2024" for k in range(N)], "date"),
    "either first": ([f"{1 + k % 12}/1/2024" for k in range(N)], "category"),
    "sentences": (SENTENCES, "text"),
    "few sentences": (SENTENCES[:4] * (N // 4), "category"),
    "names": ([f"name{k}" for k in range(N)], "ignored"),
    "customer_id": (list(range(100, 100 + N)), "ignored"),
    "PassengerId": (list(range(1, 1 + N)), "ignored"),
    "paid": (list(range(N)), "number"),
    "position": (list(range(N)), "number"),
    "all alike": (["x"] * N, "constant"),
    "one and missing": (["x", None] * (N // 2), "category"),
    "nothing": ([None] * N, "constant"),
}


def frames(name: str, cells: list[Any]) -> dict[str, Any]:
    return {
        "polars": pl.DataFrame({name: cells}),
        "pandas": pd.DataFrame({name: cells}),
        "arrow": pa.table({name: cells}),
        "lazy": pl.LazyFrame({name: cells}),
    }


@pytest.mark.parametrize("name", COLUMNS)
def test_types_of_columns(name) -> None:
    cells, expected = COLUMNS[name]
    for library, frame in frames(name, cells).items():
        (column,) = describe_columns(frame)
        assert column.type == expected, (library, column)
        assert column.reason
        assert column.n_missing == sum(cell is None for cell in cells)
        assert column.n_values == len({cell for cell in cells if cell is not None})
        assert len(column.examples) == min(3, column.n_values)


def test_types_of_categories_and_object_columns() -> None:
    frame = pd.DataFrame(
        {
            "declared": pd.Categorical(["b", None, "a", "b"] * 5),
            "numbers": pd.Categorical([1, 2, 1, 2] * 5),
            "objects": pd.Series([1, 2.5, None, True] * 5, dtype=object),
            "mixed": pd.Series(["a", 1, None, "b"] * 5, dtype=object),
            "dates": pd.Series([dt.date(2024, 1, 1), None, dt.date(2023, 1, 1), None] * 5),
            "stamps": pd.to_datetime(["2024-01-01 10:00", None, "2024-01-02 11:00", None] * 5),
            "zoned": pd.to_datetime(["2024-01-01 10:00", "2024-07-01 10:00"] * 10).tz_localize(
                "Europe/Rome"
            ),
        }
    )
    assert [column.type for column in describe_columns(frame)] == [
        "category", "category", "number", "category", "date", "date", "date",
    ]  # fmt: skip


def test_given_types() -> None:
    frame = pl.DataFrame({"a": [1, 2, 1], "b": ["x y z", "u", "x y z"], "c": ["1", "02", "3"]})
    given = {"a": "category", "b": "text", "c": "number"}
    found = describe_columns(frame, given)
    assert [(column.type, column.reason) for column in found] == [
        (type_, "as it was given") for type_ in given.values()
    ]
    assert found[0].examples == ("1", "2")
    assert describe_columns(frame, {"a": "ignored"})[0].type == "ignored"
    with pytest.raises(InvalidDataError, match="'z', but X has no such column"):
        describe_columns(frame, {"z": "text"})
    with pytest.raises(InvalidDataError, match=r"'b' of X contains 'x y z' .*row 0.*is a number"):
        describe_columns(frame, {"b": "number"})
    with pytest.raises(InvalidDataError, match="'a' of X contains numbers, but is a date"):
        describe_columns(frame, {"a": "date"})
    with pytest.raises(InvalidDataError, match="day and month are ambiguous"):
        describe_columns(pl.DataFrame({"a": ["1/2/2024", "3/4/2024"]}), {"a": "date"})


def test_a_few_cells_that_are_no_numbers() -> None:
    cells = [str(k / 8) for k in range(30)] + ["none of them"]
    with pytest.raises(InvalidDataError, match=r"'none of them' \(first in row 30\)"):
        describe_columns(pl.DataFrame({"a": cells}))
    assert describe_columns(pl.DataFrame({"a": cells}), {"a": "category"})[0].type == "category"


def test_what_holds_no_values() -> None:
    with pytest.raises(InvalidDataError, match="Column 'a' of X contains"):
        describe_columns(pl.DataFrame({"a": [[1], [2]]}))
    with pytest.raises(TypeError, match="column 'a' of X contains a dict"):
        describe_columns(pd.DataFrame({"a": [{}, {}]}))
    with pytest.raises(InvalidDataError, match="the table is empty"):
        describe_columns(pl.DataFrame({"a": []}))
    with pytest.raises(InvalidDataError, match="more than one column named 'a'"):
        describe_columns(pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-02-29", "2024-03-01T12:30"], ["2024-02-29T00:00", "2024-03-01T12:30"]),
        (["2024/2/9"], ["2024-02-09"]),
        (["1.2.2024 08:15:30.5"], ["2024-02-01T08:15:30.5"]),
        (["13/2/2024", "1/2/2024"], ["2024-02-13", "2024-02-01"]),
        (["2/13/2024", "1/2/2024"], ["2024-02-13", "2024-01-02"]),
        (["2024-01-01 00:00:00+02:00", "2024-01-01T00:00:00Z"], ["2023-12-31T22", "2024-01-01"]),
        (["2024-02-30"], None),
        (["2024-01-01", "soon"], None),
        (["now"], None),
        (["2024"], None),
        (["2024-01-01", "2024-01-01T00:00Z"], None),
        (["13/13/2024"], None),
        (["1/2/2024", "1-2-2024"], None),
        (["٢٠٢٤-01-01"], None),
    ],
)
def test_dates_in_writing(texts, expected) -> None:
    found = read_dates(texts)
    if expected is None:
        assert found is None or found.values is None
    else:
        assert found.values.tolist() == np.array(expected, "datetime64[us]").tolist()


def test_day_or_month_first() -> None:
    assert read_dates(["1/2/2024"]).is_ambiguous
    for day_first, month in ((True, 2), (False, 1)):
        found = read_dates(["1/2/2024"], day_first)
        assert found.values.astype("datetime64[M]").astype(int)[0] % 12 + 1 == month


def test_parts_of_dates() -> None:
    days = np.arange("1899-12-25", "2101-01-10", 37, dtype="datetime64[D]")
    stamps = days.astype("datetime64[us]") + np.arange(len(days)) * 61_234_567
    for stamp, *parts in zip(
        stamps.tolist(), *(date_part(stamps, part).tolist() for part in DATE_PARTS), strict=True
    ):
        since = (stamp - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1)
        assert parts[0] == pytest.approx(since, rel=1e-12)
        assert parts[1:] == [
            stamp.year, stamp.month, stamp.day, stamp.weekday(), stamp.hour, stamp.minute,
        ]  # fmt: skip
    assert np.isnan(date_part(np.array(["NaT"], "datetime64[us]"), "year")).all()
    with pytest.raises(ValueError, match="no part 'second'"):
        date_part(stamps, "second")


# -- real tables --

EXPECTED = {
    "titanic": {
        "number": "pclass age sibsp parch fare target",
        "category": "sex ticket cabin embarked",
    },
    "adult": {
        "number": "age fnlwgt education_num capital_gain capital_loss hours_per_week",
        "category": "workclass education marital_status occupation relationship race sex "
        "native_country target",
    },
    "bank_marketing": {
        "number": "age balance day duration campaign pdays previous",
        "category": "job marital education default housing loan contact month poutcome target",
    },
    "car": {"category": "buying maint doors persons lug_boot safety target"},
    "diamonds": {
        "number": "carat depth table x y z target",
        "category": "cut color clarity",
    },
}


def data_file(name: str) -> Path:
    folder = os.environ.get("MARGROVE_DATA", "")
    path = Path(folder, name)
    if not folder or not path.exists():
        pytest.skip("needs MARGROVE_DATA")
    return path


@pytest.mark.real_data
@pytest.mark.parametrize("name", EXPECTED)
def test_types_of_real_tables(name) -> None:
    table = read_table(data_file(f"{name}.csv.gz"))
    found: dict[str, list[str]] = {}
    for column in describe_columns(table.frame):
        found.setdefault(column.type, []).append(column.name)
    assert {kind: " ".join(names) for kind, names in found.items()} == EXPECTED[name]


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["clinc150", "sms_spam"])
def test_types_of_real_texts(name) -> None:
    table = read_table(data_file(f"{name}.jsonl.gz"))
    assert [column.type for column in describe_columns(table.frame)] == ["category", "text"]
