"""Texts that a spreadsheet would run are guarded, numbers are not, and it can be undone."""

from __future__ import annotations

import io

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from margrove.cli.output_files import guarded, write_table
from margrove.cli.screen import visible

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\0x", "'x", "plain", "", "a=b"]


def test_formulas_get_an_apostrophe() -> None:
    frame = pl.DataFrame({"text": FORMULAS, "number": list(range(-5, 6)), "=name": FORMULAS})
    found = guarded(frame)
    expected = [f"'{t}" if t[:1] in tuple("=+-@\t\r\0'") else t for t in FORMULAS]
    assert found["text"].to_list() == expected
    assert found["number"].to_list() == list(range(-5, 6))
    assert found.columns == ["text", "number", "'=name"]


@given(st.lists(st.text(max_size=8), min_size=1, max_size=8))
def test_it_can_be_undone(texts) -> None:
    found = guarded(pl.DataFrame({"t": texts}))["t"].to_list()
    assert [text[1:] if text.startswith("'") else text for text in found] == texts
    assert not any(text[:1] in tuple("=+-@\t\r\0") for text in found if text)


def test_missing_values_stay_missing() -> None:
    assert guarded(pl.DataFrame({"t": [None, "=x"]}))["t"].to_list() == [None, "'=x"]


def test_raw_tables_are_written_as_they_are(tmp_path) -> None:
    frame = pl.DataFrame({"t": ["=x", "y,z"]})
    write_table(frame, tmp_path / "t.csv", "csv", safe=False)
    assert (tmp_path / "t.csv").read_bytes() == b't\n=x\n"y,z"\n'
    write_table(frame, tmp_path / "t.csv", "csv")
    assert pl.read_csv(io.BytesIO((tmp_path / "t.csv").read_bytes()))["t"].to_list() == [
        "'=x",
        "y,z",
    ]


def test_what_cannot_be_seen_is_spelt_out() -> None:
    assert visible("a\x1b[31mb\u202ec\u2066d\n\ne\x00") == "a\\x1b[31mb\\u202ec\\u2066d e\\x00"
    assert visible("naïve 日本 ½") == "naïve 日本 ½"
