"""Files become tables, or errors that name the place and the way out."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from margrove.exceptions import InvalidDataError
from margrove.tables import ReadLimits, read_table
from margrove.workbench.tables.read.cell_texts import MISSING, is_code, number_in
from margrove.workbench.tables.read.csv_shape import checked_shape


def read(text: str | bytes, **settings: Any) -> Any:
    data = text.encode() if isinstance(text, str) else text
    return read_table(io.BytesIO(data), **settings)


def frame_of(text: str | bytes, **settings: Any) -> pl.DataFrame:
    frame: pl.DataFrame = read(text, **settings).frame
    return frame


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    return packed


def parquet(frame: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame, out)
    return out.getvalue()


TABLE = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"], "c": [0.5, 1.5, None]})
CSV = b"a,b,c\n1,x,0.5\n2,,1.5\n3,z,\n"
JSON = b'{"a":1,"b":"x","c":0.5}\n{"a":2,"b":null,"c":1.5}\n{"a":3,"b":"z"}\n'
CONTENTS = {
    ".csv": CSV,
    ".tsv": CSV.replace(b",", b"\t"),
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".parquet": parquet(TABLE),
}


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("ending", CONTENTS)
def test_every_format(ending, packed, tmp_path) -> None:
    data = CONTENTS[ending]
    data = {"": lambda content: content, ".gz": gzip.compress, ".zst": zstd}[packed](data)
    path = tmp_path / f"table{ending}{packed}"
    path.write_bytes(data)
    table = read_table(path)
    assert table.frame.equals(TABLE)
    assert table.name == path.name
    assert (table.n_rows, table.n_columns) == (3, 3)
    assert read_table(str(path)).frame.equals(TABLE)
    if ending != ".tsv":
        assert read_table(io.BytesIO(data)).frame.equals(TABLE)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_standard_input(ending, monkeypatch) -> None:
    data = CONTENTS[ending.removesuffix(".gz")]
    data = gzip.compress(data) if ending.endswith(".gz") else data
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    table = read_table("-")
    assert table.name == "standard input"
    assert table.frame.equals(TABLE)


# -- how CSV is written --


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter) -> None:
    table = read("a,b c,d\n1,x,2.5\n2,y,3\n".replace(",", delimiter))
    assert table.frame.columns == ["a", "b c", "d"]
    assert table.frame["d"].to_list() == [2.5, 3.0]
    assert any("delimiter" in note for note in table.notes) == (delimiter != ",")


def test_a_delimiter_in_quotes_is_none() -> None:
    frame = frame_of('name;n\n"a,b,c,d";1\n"e,f,g,h";2\n')
    assert frame["name"].to_list() == ["a,b,c,d", "e,f,g,h"]


def test_quotes() -> None:
    frame = frame_of('a,b\n"one ""two""",1\n"line\nbreak",2\n"",3\nplain,4\n')
    assert frame["a"].to_list() == ['one "two"', "line\nbreak", None, "plain"]
    assert frame["b"].to_list() == [1, 2, 3, 4]


def test_decimal_commas() -> None:
    table = read("a;b;c\n1,5;2;x\n-0,25;3;y\n")
    assert table.frame["a"].to_list() == [1.5, -0.25]
    assert table.frame["b"].dtype == pl.Int64
    assert "a comma is the decimal point in 'a'" in table.notes
    assert frame_of('a,b\n"1,5",2\n"2,5",3\n')["a"].to_list() == [1.5, 2.5]
    with pytest.raises(InvalidDataError, match=r"line 2, column 'a', is '1,234'.*thousands"):
        read("a;b\n1,234;2\n5,678;3\n")


def test_marks_line_ends_and_empty_lines_at_the_end() -> None:
    for text in (b"\xef\xbb\xbf" + CSV, CSV.replace(b"\n", b"\r\n"), CSV + b"\n\n", CSV[:-1]):
        assert frame_of(text).equals(TABLE)
    assert read(b"\xef\xbb\xbf" + CSV).notes == ("a byte order mark was removed",)
    with pytest.raises(InvalidDataError, match="carriage return only"):
        read(b"a,b\r1,2\r")


def test_a_blank_after_each_delimiter() -> None:
    table = read("a, b, c\n1, 2, x\n3, ?, y\n")
    assert table.frame.columns == ["a", "b", "c"]
    assert table.frame["b"].to_list() == [2, None]
    assert table.frame["c"].to_list() == ["x", "y"]
    assert "spaces before the cells were removed in 'b', 'c'" in table.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "line 3 has 1 cells, and the line of names has 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells"),
        ("a,b\n1,2\n\n3,4\n", "line 3 is empty"),
        ('a,b\n1,"2\n3,4\n', "quote that opens in line 2 is never closed"),
        ('a,b\n1,x"y"\n', "line 2 has a quote in the middle"),
        ('a,b\n1,"x"y\n', "line 2 has a quote in the middle"),
        ('a,b\n"1\n1",2\n3,4,5\n', "line 4 has 3 cells"),
        ("a,a\n1,2\n", "more than one column named 'a'"),
        ("a, a \n1,2\n", "more than one column named 'a'"),
        ("a,\n1,2\n", "column 2 has no name"),
        ("a,  \n1,2\n", "column 2 has no name"),
        ("", "is empty"),
        ("\n\n", "only empty lines"),
        ("a,b\n", "a line of names but no rows"),
    ],
)
def test_tables_that_are_none(text, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read(text)


@given(
    st.lists(
        st.lists(st.text('ab",\n; é0', max_size=4), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=100, deadline=None)
def test_what_a_writer_quotes_is_read_back(rows) -> None:
    import csv

    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["x", "y", "z"])
    writer.writerows(rows)
    types = dict.fromkeys("xyz", "text")
    frame = frame_of(out.getvalue(), types=types)
    expected = [[None if cell in MISSING else cell for cell in row] for row in rows]
    found = [list(row) for row in frame.rows()]
    for column in range(3):  # a blank before all cells of a column is taken away
        cells = [row[column] for row in expected if row[column] is not None]
        if cells and all(cell.startswith(" ") for cell in cells):
            for row in expected:
                bare = None if row[column] is None else row[column].strip(" ")
                row[column] = None if bare in MISSING else bare
    assert found == expected


def test_blocks_of_a_large_file_are_joined(monkeypatch) -> None:
    monkeypatch.setattr("margrove.workbench.tables.read.csv_shape._BLOCK", 7)
    text = 'a,b\n"x,""y\n",1\nlonger than a block,2\n"",3\n'
    shape = checked_shape(text.encode(), ",", "it")
    assert (shape.n_rows, shape.n_columns, shape.one_line_per_row) == (3, 2, False)
    with pytest.raises(InvalidDataError, match="line 5 has 3 cells"):
        checked_shape((text + "1,2,3\n").replace('"",3\n', "").encode(), ",", "it")


# -- encodings --


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a,b\n1,é\n".encode("utf-16"), "UTF-16 .byte 0"),
        ("a,b\n1,x\n".encode("utf-16-le"), "NUL at byte 1"),
        ("a,b\n1,é\n".encode("utf-32"), "UTF-32"),
        ("a,b\n1,é\n".encode("latin-1"), "byte 6, in line 2, is 0xE9"),
        (b"a,b\n1,\xc0\xaf\n", "byte 6, in line 2, is 0xC0"),
        (b"a,b\n1,\xc3\xa9\n2,\xe9\n", "byte 11, in line 3"),
        (b"a,b\n1,x\0y\n", "NUL at byte 7"),
        (b"a,b\n1,\xed\xa0\x80\n", "byte 6"),
    ],
)
def test_other_encodings_are_refused_at_their_byte(data, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read(data)


def test_the_byte_is_right_at_the_seam_of_two_pieces(monkeypatch) -> None:
    monkeypatch.setattr("margrove.workbench.tables.read.encodings._PIECE", 4)
    for shift in range(6):
        data = b"x" * shift + "é".encode() + b"ab" + b"\xe9"
        with pytest.raises(InvalidDataError, match=f"byte {shift + 4},"):
            read(data)


# -- cells --


@pytest.mark.parametrize("token", [token for token in MISSING if token])
def test_missing_cells(token) -> None:
    frame = frame_of(f"a,b\n1.5,x\n{token},{token}\n3,y\n")
    assert frame["a"].to_list() == [1.5, None, 3.0]
    assert frame["b"].to_list() == ["x", None, "y"]


@pytest.mark.parametrize(
    "cell",
    ["inf", "-Infinity", "1e999", "0x1F", "1_000", " 1 ", "1 ", "\u0661",
     "50%", "2024-01-01", "-", "n.a.",
     "1.2.3", "$5", "1e", "--1", "NAN", "\uff11"],
)  # fmt: skip
def test_cells_that_are_no_numbers_are_named(cell) -> None:
    with pytest.raises(InvalidDataError, match="line 4, column 'a'") as caught:
        read(f"a,b\n1.5,x\n2,y\n{cell},z\n4,x\n")
    assert "types={'a': 'category'}" in str(caught.value)
    kept = frame_of(f"a,b\n1.5,x\n2,y\n{cell},z\n4,x\n", types={"a": "category"})
    assert kept["a"].to_list() == ["1.5", "2", cell, "4"]


def test_the_row_is_named_where_cells_have_line_breaks() -> None:
    with pytest.raises(InvalidDataError, match="row 3, column 'b', is 'x'"):
        read('a,b\n"1\n1",1\n"2\n2",2\n3,x\n4,4\n')


def test_a_column_of_labels_may_have_numbers_in_it() -> None:
    doors = ["2", "3", "4", "5more"] * 10
    assert frame_of("a\n" + "\n".join(doors) + "\n")["a"].to_list() == doors
    tickets = [f"A {k}" if k % 3 else str(k) for k in range(1, 40)]
    assert (
        frame_of("a,b\n" + "".join(f"{ticket},1\n" for ticket in tickets))["a"].to_list() == tickets
    )


def test_codes_keep_their_zeros() -> None:
    frame = frame_of("zip,n,x\n01234,0,0.5\n98765,10,-0.25\n")
    assert frame["zip"].to_list() == ["01234", "98765"]
    assert frame["n"].to_list() == [0, 10]
    assert frame["x"].to_list() == [0.5, -0.25]
    assert frame_of("zip,n\n01234,0\n", types={"zip": "number"})["zip"].to_list() == [1234]


@given(st.lists(st.text("0123456789.eE+-,infa_x", min_size=1, max_size=6), min_size=1, max_size=6))
@example(["1E310"])
@example(["1,5", "1E310"])
@settings(max_examples=150, deadline=None)
def test_the_reader_agrees_with_the_rule_for_numbers(cells) -> None:
    text = "a,b\n" + "".join(f'"{cell}",1\n' for cell in cells)
    try:
        frame = frame_of(text)
    except InvalidDataError:
        return
    present = [cell for cell in cells if cell not in MISSING]
    numbers = [number_in(cell) for cell in present]
    if present and None not in numbers and not any(map(is_code, present)):
        assert frame["a"].drop_nulls().cast(pl.Float64).to_list() == numbers
    elif frame["a"].dtype.is_numeric():
        assert all("," in cell or number_in(cell) is not None for cell in present)


def test_integers_beyond_64_bits_are_floats() -> None:
    frame = frame_of("a,b\n123456789012345678901234567890,1\n2,2\n")
    assert frame["a"].to_list() == [1.2345678901234568e29, 2.0]


def test_dates() -> None:
    frame = frame_of(
        "day,time,dotted,utc,slash\n"
        "2024-02-29,2024-02-29 12:30:15,29.2.2024,2024-02-29T00:30:00+01:00,29/02/2024\n"
        "2023-01-01,2023-01-01 00:00:00,1.1.2023,2023-01-01T00:00:00Z,01/02/2023\n"
    )
    assert frame["day"].to_list() == [dt.date(2024, 2, 29), dt.date(2023, 1, 1)]
    assert frame["time"][0] == dt.datetime(2024, 2, 29, 12, 30, 15)
    assert frame["utc"][0] == dt.datetime(2024, 2, 28, 23, 30)
    assert frame["slash"].dtype == pl.String  # which is the day is remembered by the preparation
    assert frame_of("a,b\n2024-02-30,1\n2024-02-01,2\n")["a"].dtype == pl.String
    with pytest.raises(InvalidDataError, match=r"line 3, column 'a', is 'x'.*as a date"):
        read("a,b\n2024-02-01,1\nx,2\n", types={"a": "date"})


def test_types_are_checked() -> None:
    with pytest.raises(ValueError, match=r"types\['a'\] must be one of"):
        read(CSV, types={"a": "float"})
    with pytest.raises(TypeError, match="types must be a dict"):
        read(CSV, types=["a"])
    with pytest.raises(InvalidDataError, match="no column 'z', which is needed"):
        read(CSV, types={"z": "number"})
    with pytest.raises(InvalidDataError, match="line 2, column 'b', is 'x'"):
        read(CSV, types={"b": "number"})


def test_nothing_depends_on_the_place() -> None:
    code = (
        "import io\nfrom margrove.tables import read_table\n"
        "data = 'a,b,é\\n1.5,2024-03-31T02:30:00,x\\n2,2024-01-01T00:00:00,y\\n'.encode()\n"
        "frame = read_table(io.BytesIO(data)).frame\nfound = ascii((frame.schema, frame.rows()))\n"
    )
    here: dict[str, Any] = {}
    exec(code, here)
    elsewhere = subprocess.run(
        [sys.executable, "-c", code + "print(found)"],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"LC_ALL": "de_DE.UTF-8", "TZ": "America/New_York"},
    )
    assert elsewhere.stdout.strip() == here["found"]


# -- JSON lines --


def test_json_lines_of_lists() -> None:
    table = read('["ham", "how are you", 1]\n["spam", "win", 2.5]\n')
    assert table.frame.columns == ["column_1", "column_2", "column_3"]
    assert table.frame["column_3"].to_list() == [1.0, 2.5]


def test_json_types() -> None:
    frame = frame_of('{"a": true, "b": 1, "c": "x"}\n\n{"b": 2.5, "a": null, "d": 1}\n')
    assert frame["a"].to_list() == [True, None]
    assert frame["b"].to_list() == [1.0, 2.5]
    assert frame["d"].to_list() == [None, 1]
    mixed = frame_of('{"a": 1}\n{"a": "x"}\n')
    assert mixed["a"].to_list() == ["1", "x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ('{"a": 1}\n[1]\n', "line 2 is not an object"),
        ('{"a": {"b": 1}}\n', "column 'a' contains"),
        ('{"a": [1]}\n', "column 'a' contains"),
        ("[1, 2]\n[1]\n", "line 2 is not a list of 2 cells"),
        ('{"a": NaN}\n', "line 1 is not JSON"),
        ("[" * 100_000 + "\n", "line 1 is not JSON"),
        ('{"a":' * 50_000 + "\n", "line 1 is not JSON"),
    ],
)
def test_json_that_is_no_table(text, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read(text)


# -- Parquet --


def test_parquet_types() -> None:
    import decimal

    frame = pl.DataFrame(
        {
            "when": [dt.date(2024, 1, 1), None],
            "sure": [True, None],
            "money": [decimal.Decimal("1.50"), None],
            "label": pl.Series(["a", None], dtype=pl.Categorical),
        }
    )
    assert frame_of(parquet(frame)).height == 2


@pytest.mark.parametrize(
    "column",
    [[[1], [2]], [{"b": 1}, {"b": 2}], [b"x", b"y"]],
    ids=["list", "struct", "binary"],
)
def test_nested_columns_are_refused_by_name(column) -> None:
    data = parquet(pa.table({"a": [1, 2], "deep": column}))
    with pytest.raises(InvalidDataError, match="column 'deep' contains"):
        read(data)


def test_damaged_parquet() -> None:
    data = CONTENTS[".parquet"]
    for size in (4, 5, 11, 12, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(InvalidDataError):
            read(data[:size])
    with pytest.raises(InvalidDataError, match=r"footer of 4\.29 GB"):
        read(data[:-8] + b"\xff\xff\xff\xff" + b"PAR1")
    with pytest.raises(InvalidDataError, match="encrypted"):
        read(data[:-4] + b"PARE")
    for place in range(4, len(data) - 4, 7):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        with contextlib.suppress(InvalidDataError):
            frame_of(bytes(damaged))


def test_the_size_of_parquet_is_asked_before_it_is_read() -> None:
    zeros = parquet(pa.table({"a": pa.array([0] * 100_000, pa.int64())}))
    assert len(zeros) < 10_000
    with pytest.raises(InvalidDataError, match=r"100000 rows and 1 columns, which take 1.6 MB"):
        read(zeros, limits=ReadLimits(max_bytes=1_000_000))
    with pytest.raises(InvalidDataError, match="100000 rows, and at most 10"):
        read(zeros, limits=ReadLimits(max_rows=10))


# -- sources and limits --


def test_places_that_are_no_files(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path, message in {
        tmp_path / "nowhere.csv": "does not exist",
        tmp_path: "is a directory",
        tmp_path / "pipe.csv": "is a pipe",
        Path("/dev/zero"): "is a device",
        "a\0b": "cannot be read",
        tmp_path / ("x" * 300): "cannot be read",
    }.items():
        with pytest.raises(InvalidDataError, match=message):
            read_table(path)
    odd = tmp_path / "table.xlsx"
    odd.write_bytes(CSV)
    with pytest.raises(InvalidDataError, match=r"ends in '\.xlsx'"):
        read_table(odd)
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    with pytest.raises(InvalidDataError, match="empty"):
        read_table(empty)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_must_not_be_read(tmp_path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(CSV)
    path.chmod(0)
    with pytest.raises(InvalidDataError, match="permission denied"):
        read_table(path)


def test_what_is_no_source() -> None:
    for wrong in (3, None, b"a.csv", io.StringIO("a")):
        with pytest.raises(TypeError, match="source"):
            read_table(wrong)


def test_a_name_without_an_ending_is_known_by_its_contents(tmp_path) -> None:
    for number, data in enumerate((CSV, JSON, CONTENTS[".parquet"], gzip.compress(CSV))):
        path = tmp_path / f"table{number}"
        path.write_bytes(data)
        assert read_table(path).frame.equals(TABLE)


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_what_grows_without_end_is_stopped_at_the_limit(pack) -> None:
    rows = b"a,b\n" + b"1,2\n" * 3_000_000
    packed = pack(rows)
    assert len(packed) < 100_000
    with pytest.raises(InvalidDataError, match="more than 1 MB when decompressed"):
        read(packed, limits=ReadLimits(max_bytes=1_000_000))
    with pytest.raises(InvalidDataError, match="NUL at byte 0"):
        read(pack(bytes(50_000_000)))


def test_endless_input_is_stopped() -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b"1,2\n" * (size // 4)

    with pytest.raises(InvalidDataError, match="more than 1 MB"):
        read_table(Endless(), limits=ReadLimits(max_bytes=1_000_000))
    with Path("/dev/zero").open("rb") as zero, pytest.raises(InvalidDataError, match="at byte 0"):
        read_table(zero)


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_damaged_compression(pack) -> None:
    packed = pack(b"a,b\n" + bytes(range(48, 58)) * 200 + b",2\n")
    with pytest.raises(InvalidDataError, match=r"cut off|damaged"):
        read(packed[:-20])
    broken = bytearray(packed)
    broken[len(packed) // 2 : len(packed) // 2 + 8] = b"\xff" * 8
    with pytest.raises(InvalidDataError):
        read(bytes(broken))


@pytest.mark.parametrize(
    ("text", "limits", "message"),
    [
        (CSV, {"max_rows": 2}, "3 rows, and at most 2"),
        (CSV, {"max_columns": 2}, "3 columns, and at most 2"),
        (JSON, {"max_columns": 2}, "3 columns, and at most 2"),
        (CSV, {"max_bytes": 10}, "more than 10 bytes"),
        (CSV, {"max_file_bytes": 10}, "more than 10 bytes"),
        (b"a" * 50 + b",b\n1,2\n", {"max_name_length": 40}, "column 1 has 50 characters"),
        (
            b"a,b\n1,2\n" + b"x" * 50 + b",2\n",
            {"max_cell_length": 40},
            "line 3, column 'a', has 50",
        ),
        (JSON, {"max_rows": 2}, "at most 2"),
    ],
)
def test_limits(text, limits, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read(text, limits=ReadLimits(**limits))


def test_limits_are_checked() -> None:
    for wrong in (0, -1, 1.5, True, None):
        with pytest.raises(ValueError, match="max_rows must be"):
            ReadLimits(max_rows=wrong)
    assert ReadLimits().content_bytes > 0


def test_names_that_would_move_a_terminal_are_shown_in_escapes() -> None:
    with pytest.raises(InvalidDataError) as caught:
        read("a\x1b[31m,a\x1b[31m\n1,2\n")
    assert "\x1b" not in str(caught.value)


def test_without_polars(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'margrove\[data\]'"):
        read(CSV)
