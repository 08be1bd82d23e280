"""What TablePreparation learns, and what it does with other tables."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from margrove.exceptions import DataWarning, InvalidDataError, NotFittedError
from margrove.tables import TablePreparation

TEXTS = [
    "cheap flights to rome", "book the flights now", "rome is nice in may", "cheap cheap hotels",
    "the hotel in rome", "flights and hotels",
] * 5  # fmt: skip
N = len(TEXTS)


def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "age": [None if k % 7 == 0 else k * 1.5 for k in range(N)],
            "colour": [None if k % 5 == 0 else ("red", "green", "blue")[k % 3] for k in range(N)],
            "when": [dt.datetime(2024, 1 + k % 12, 1 + k % 28, k % 24) for k in range(N)],
            "text": [f"{text} {k % 23}" for k, text in enumerate(TEXTS)],
            "same": [1] * N,
            "row_id": list(range(N)),
            "n": [k % 4 for k in range(N)],
        }
    )


TYPES = {"text": "text"}
Y = np.array(["a", "b", "b"] * (N // 3))


def as_library(frame: pl.DataFrame, library: str) -> Any:
    if library == "pandas":
        return frame.to_pandas()
    return {"polars": frame, "pyarrow": frame.to_arrow(), "lazy": frame.lazy()}[library]


@pytest.mark.parametrize("form", ["numbers", "categories"])
def test_all_of_scikit_learns_checks(form) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(TablePreparation(form))


# -- numbers --


def dense(result: Any) -> np.ndarray:
    return result.toarray() if sp.issparse(result) else np.asarray(result)


def test_numbers_are_scaled_and_filled() -> None:
    frame = table()
    preparation = TablePreparation(types=TYPES).fit(frame)
    found = dense(preparation.transform(frame))
    names = preparation.get_feature_names_out().tolist()
    assert found.shape == (N, len(names))
    age = frame["age"].to_numpy()
    filled = np.where(np.isnan(age), np.nanmedian(age), age)
    expected = StandardScaler().fit_transform(filled[:, None])[:, 0]
    assert np.allclose(found[:, names.index("age")], expected, rtol=1e-14, atol=1e-14)
    assert np.array_equal(found[:, names.index("age is missing")], np.isnan(age))
    whole = frame["n"].to_numpy().astype(float)
    assert np.allclose(found[:, names.index("n")], (whole - whole.mean()) / whole.std())
    assert [column.type for column in preparation.columns_] == [
        "number", "category", "date", "text", "constant", "ignored", "number",
    ]  # fmt: skip


def test_labels_are_indicators() -> None:
    frame = table().select("colour")
    preparation = TablePreparation().fit(frame)
    assert preparation.get_feature_names_out().tolist() == [
        "colour=blue", "colour=green", "colour=red", "colour is missing",
    ]  # fmt: skip
    expected = OneHotEncoder(sparse_output=False).fit_transform(frame.to_pandas())
    assert np.array_equal(preparation.transform(frame), expected)


def test_texts_are_weighted_words() -> None:
    frame = table().select("text")
    preparation = TablePreparation(types=TYPES).fit(frame)
    theirs = TfidfVectorizer(min_df=2)
    expected = theirs.fit_transform(frame["text"].to_list())
    names = [f"text: {word}" for word in theirs.get_feature_names_out()]
    assert preparation.get_feature_names_out().tolist() == names
    assert np.allclose(dense(preparation.transform(frame)), expected.toarray(), atol=1e-14)


def test_parts_of_dates_that_differ() -> None:
    preparation = TablePreparation().fit(table().select("when"))
    assert preparation.get_feature_names_out().tolist() == [
        f"when.{part}" for part in ("days", "month", "day", "weekday", "hour")
    ]
    found = preparation.transform(table())
    assert np.allclose(found.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(found.std(axis=0), 1)


def test_wide_tables_are_sparse() -> None:
    frame = pl.DataFrame({"label": [f"l{k % 150}" for k in range(900)], "x": range(900)})
    for most, is_sparse in ((200, True), (20, False)):
        preparation = TablePreparation(max_categories=most).fit(frame)
        found = preparation.transform(frame)
        assert preparation.is_sparse_ == sp.issparse(found) == is_sparse
        assert found.shape[1] == len(preparation.get_feature_names_out())
        assert np.allclose(dense(found).sum(axis=1) - dense(found)[:, -1], 1.0)


def test_rare_labels_are_one() -> None:
    labels = ["a"] * 9 + ["b"] * 8 + ["c"] * 3 + ["d"] * 3 + ["e"]
    frame = pl.DataFrame({"label": labels})
    preparation = TablePreparation(max_categories=3).fit(frame)
    names = preparation.get_feature_names_out().tolist()
    assert names == ["label=a", "label=b", "label=c", "label=(other)"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = preparation.transform(pl.DataFrame({"label": ["a", "d", "e", "new", None]}))
    assert found.argmax(axis=1).tolist()[:4] == [0, 3, 3, 3]
    assert not found[4].any()
    trees = TablePreparation("categories", max_categories=3).fit(frame)
    assert trees.transform(frame)["label"].to_list()[-1] == "(other)"


def test_a_label_may_be_called_other() -> None:
    frame = pl.DataFrame({"label": ["(other)"] * 9 + ["b"] * 8 + ["c"]})
    names = TablePreparation(max_categories=2).fit(frame).get_feature_names_out()
    assert names.tolist() == ["label=(other)", "label=b", "label=((other))"]


def test_names_are_all_different() -> None:
    frame = pl.DataFrame({"a": ["x", "y"] * 5, "a=x": range(10)})
    names = TablePreparation().fit(frame).get_feature_names_out().tolist()
    assert names == ["a=x", "a=y", "a=x (2)"]


def test_extreme_numbers() -> None:
    frame = pl.DataFrame({"huge": [1e308, -1e308, 5e307, 0.0], "tiny": [5e-324, 0.0, 0.0, 1e-320]})
    found = TablePreparation().fit(frame).transform(frame)
    assert np.isfinite(found).all()
    assert found[:, 0].std() == pytest.approx(1.0)
    for cell in (np.inf, -np.inf):
        bad = pl.DataFrame({"huge": [1.0, cell, 2.0, 3.0], "tiny": [1.0, 2.0, 3.0, 4.0]})
        for act in (TablePreparation().fit, TablePreparation().fit(frame).transform):
            with pytest.raises(InvalidDataError, match=r"infinity .* row 1, column 'huge'"):
                act(bad)


# -- categories --


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow", "lazy"])
def test_trees_get_a_frame_of_the_same_library(library) -> None:
    frame = as_library(table(), library)
    preparation = TablePreparation("categories", types=TYPES).fit(frame, Y)
    found = preparation.transform(frame)
    assert type(found).__module__.startswith("polars" if library == "lazy" else library)
    names = preparation.get_feature_names_out().tolist()
    columns = found.column_names if library == "pyarrow" else list(found.columns)
    assert columns == names
    as_polars = (
        pl.DataFrame(found)
        if library == "pandas"
        else pl.from_arrow(pa.table(found))
        if library == "pyarrow"
        else found
    )
    assert as_polars["colour"].cast(pl.String).to_list() == table()["colour"].to_list()
    ages = as_polars["age"].to_numpy()
    assert np.array_equal(ages, table()["age"].to_numpy(), equal_nan=True)
    assert as_polars["text: cheap"].to_list() == [text.count("cheap") for text in TEXTS]


def test_words_that_tell_most_are_kept() -> None:
    texts = [f"{'good' if k % 2 else 'bad'} and thing{k % 9} number{k % 7}" for k in range(90)]
    frame = pl.DataFrame({"text": texts})
    y = np.arange(90) % 2
    names = {}
    for target in (y, y + 0.5, None):
        preparation = TablePreparation("categories", types=TYPES, max_words=2).fit(frame, target)
        names[str(target)[:4]] = preparation.get_feature_names_out().tolist()
    assert list(names.values()) == [["text: bad", "text: good"]] * 2 + [["text: and", "text: bad"]]


def test_arrays() -> None:
    cells = np.array([["a", 1.5], ["b", np.nan], ["a", 2.0], [None, 3.0]], dtype=object)
    numbers = TablePreparation().fit(cells)
    assert numbers.get_feature_names_out().tolist() == [
        "x0=a", "x0=b", "x0 is missing", "x1", "x1 is missing",
    ]  # fmt: skip
    trees = TablePreparation("categories").fit(cells).transform(cells)
    assert trees.dtype == object
    assert trees[:, 0].tolist() == ["a", "b", "a", None]


def test_set_output() -> None:
    frame = table()
    for form in ("numbers", "categories"):
        for wanted, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
            preparation = TablePreparation(form).set_output(transform=wanted)
            found = preparation.fit(frame.drop("text")).transform(frame)
            assert isinstance(found, kind)
            assert list(found.columns) == preparation.get_feature_names_out().tolist()


# -- other tables --


@pytest.mark.parametrize("form", ["numbers", "categories"])
def test_columns_are_matched_by_name(form) -> None:
    frame = table()
    preparation = TablePreparation(form, types=TYPES).fit(frame, Y)
    expected = preparation.transform(frame)
    shuffled = frame.select(reversed(frame.columns)).drop("same", "row_id").with_columns(more=1)
    found = preparation.transform(shuffled)
    if form == "numbers":
        assert np.array_equal(dense(found), dense(expected))
    else:
        assert found.equals(expected)
    for absent in ("age", "colour", "when", "text"):
        with pytest.raises(InvalidDataError, match=f"X lacks the column '{absent}'"):
            preparation.transform(frame.drop(absent))


def test_other_types_that_say_the_same() -> None:
    frame = table()
    preparation = TablePreparation(types=TYPES | {"n": "category"}).fit(frame)
    expected = dense(preparation.transform(frame))
    written = frame.with_columns(
        pl.col("age").cast(pl.String).fill_null("NA"),
        pl.col("when").dt.strftime("%Y-%m-%d %H:%M:%S"),
        pl.col("n").cast(pl.Float64),
        pl.col("colour").cast(pl.Categorical),
    )
    assert np.array_equal(dense(preparation.transform(written)), expected)
    assert np.array_equal(dense(preparation.transform(frame.to_pandas())), expected)
    assert np.array_equal(dense(preparation.transform(frame.to_arrow())), expected)
    assert np.array_equal(dense(preparation.transform(frame[3:4])), expected[3:4])


@pytest.mark.parametrize("form", ["numbers", "categories"])
def test_columns_that_have_become_something_else(form) -> None:
    preparation = TablePreparation(form).fit(table(), Y)
    for column, cells, message in (
        ("age", ["old"] * N, r"'age' of X contains 'old' \(first in row 0\), but was a number"),
        ("when", ["soon"] * N, "'when' of X contains 'soon' .* but was a date"),
        ("when", [1] * N, "'when' of X contains numbers, but was a date"),
        ("age", [dt.date(2024, 1, 1)] * N, "'age' of X contains dates, but was a number"),
    ):
        with pytest.raises(InvalidDataError, match=message):
            preparation.transform(table().with_columns(pl.Series(column, cells)))


@pytest.mark.parametrize("form", ["numbers", "categories"])
def test_labels_that_training_has_not_seen_are_missing(form) -> None:
    preparation = TablePreparation(form).fit(table(), Y)
    others = table().with_columns(colour=pl.lit("mauve"))
    with pytest.warns(DataWarning, match="not seen 'mauve' in column 'colour'"):
        found = preparation.transform(others)
    expected = preparation.transform(table().with_columns(colour=pl.lit(None, pl.String)))
    if form == "numbers":
        assert np.array_equal(dense(found), dense(expected))
    else:
        assert found.equals(expected)


def test_the_day_is_remembered() -> None:
    dates = [f"{1 + k % 28}/{1 + k % 12}/2024" for k in range(N)]
    preparation = TablePreparation("categories").fit(pl.DataFrame({"when": dates}))
    found = preparation.transform(pl.DataFrame({"when": ["3/4/2024", None]}))
    assert found["when.month"].to_list()[0] == 4.0
    assert np.isnan(found["when.month"].to_list()[1])


def test_names_and_none() -> None:
    frame = table().select("age", "n")
    named = TablePreparation().fit(frame)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = named.transform(frame.to_numpy())
    assert np.array_equal(found, named.transform(frame))
    nameless = TablePreparation().fit(frame.to_numpy())
    with pytest.warns(UserWarning, match="fitted without feature names"):
        nameless.transform(frame)
    with pytest.raises(ValueError, match="X has 1 features, but TablePreparation is expecting 2"):
        nameless.transform(frame.to_numpy()[:, :1])


def test_tables_of_which_nothing_can_be_learnt() -> None:
    for frame in (
        pl.DataFrame({"a": [1, 1, 1]}),
        pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String)}),
        pl.DataFrame({"user_id": range(30), "b": ["x"] * 30}),
    ):
        with pytest.raises(InvalidDataError, match="no column distinguishes its rows"):
            TablePreparation().fit(frame)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        TablePreparation().fit(sp.eye_array(3, format="csr"))


def test_parameters_are_checked() -> None:
    for wrong in (
        {"form": "trees"},
        {"max_categories": 0},
        {"max_words": 0},
        {"types": ["a"]},
        {"missing_indicator": 3},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            TablePreparation(**wrong).fit(table())
    with pytest.raises(NotFittedError):
        TablePreparation().transform(table())


def test_a_failed_fit_changes_nothing() -> None:
    preparation = TablePreparation().fit(table())
    before = preparation.transform(table())
    with pytest.raises(InvalidDataError):
        preparation.fit(pl.DataFrame({"a": [1, 1]}))
    preparation.form = "categories"
    assert np.array_equal(dense(preparation.transform(table())), dense(before))


def test_clones_and_pickles() -> None:
    preparation = TablePreparation(types=TYPES).fit(table())
    again = pickle.loads(pickle.dumps(preparation))
    assert np.array_equal(dense(again.transform(table())), dense(preparation.transform(table())))
    assert clone(preparation).get_params() == preparation.get_params()
    assert not hasattr(clone(preparation), "columns_")


def test_no_examples_are_kept() -> None:
    assert all(column.examples == () for column in TablePreparation().fit(table()).columns_)


def test_results_do_not_depend_on_the_order_of_rows() -> None:
    frame, order = table(), np.random.default_rng(0).permutation(N)
    first = TablePreparation(types=TYPES).fit(frame)
    second = TablePreparation(types=TYPES).fit(frame[order])
    assert np.allclose(dense(first.transform(frame)), dense(second.transform(frame)), atol=1e-12)
    assert first.get_feature_names_out().tolist() == second.get_feature_names_out().tolist()
