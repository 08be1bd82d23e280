"""Tables that users of other libraries on Dask have: each gives the local forest."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrove

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from margrove import dask as on_cluster  # noqa: E402

N = 600
BORDERS = list(itertools.pairwise([0, 150, 150, 400, 600]))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4)).round(2)
LETTERS = np.array(list("abcdef"))[RNG.integers(0, 6, N)]
Y = np.where(X[:, 0] + (LETTERS == "c") > 0.3, "yes", "no")
WEIGHT = RNG.integers(0, 3, N).astype(float)


def frame() -> Any:
    table = pd.DataFrame(X, columns=list("pqrs"))
    table["letter"] = LETTERS
    return table


def collection(parts: list[Any], meta: Any) -> Any:
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=meta, verify_meta=False)


def pieces(table: Any) -> list[Any]:
    return [table.iloc[first:last] for first, last in BORDERS]


def strings(kind: str) -> tuple[Any, Any]:
    dtype = object if kind == "object" else "string[pyarrow]"
    with dask.config.set({"dataframe.convert-string": False}):
        table = frame().astype({"letter": dtype})
        return table, collection(pieces(table), table.iloc[:0])


def categories(kind: str) -> tuple[Any, Any]:
    """Categories are those of all partitions, or those that a partition has itself."""
    table = frame().astype({"letter": "category"})
    parts = pieces(table)
    if kind == "own":
        parts = [
            part.assign(letter=part["letter"].cat.remove_unused_categories()) for part in parts
        ]
        parts[2] = parts[2].assign(letter=parts[2]["letter"].cat.reorder_categories(list("fedcba")))
    return table, collection(parts, parts[0].iloc[:0])


def one_label_here() -> tuple[Any, Any]:
    """A label that only one partition, and so only one worker, has seen."""
    table = frame()
    table["letter"] = np.where(np.arange(N) >= 590, "z", "a")
    return table, collection(pieces(table), table.iloc[:0])


def unknown_sizes() -> tuple[Any, Any]:
    lazy = da.from_array(X, (170, 4))
    return X[X[:, 3] < 9], lazy[lazy[:, 3] < 9]


def parts_of_arrays() -> tuple[Any, Any]:
    return X, [dask.delayed(X[first:last]) for first, last in BORDERS]


def parts_of_frames() -> tuple[Any, Any]:
    return frame(), [dask.delayed(part) for part in pieces(frame())]


TABLES = {
    "Python strings": lambda: strings("object"),
    "pyarrow strings": lambda: strings("pyarrow"),
    "categories of all": lambda: categories("joint"),
    "categories of each partition": lambda: categories("own"),
    "a label of one worker": one_label_here,
    "parts that are arrays": parts_of_arrays,
    "parts that are dataframes": parts_of_frames,
}


def saved(model: Any, folder: Path) -> bytes:
    margrove.save(model, folder / "model")
    return (folder / "model").read_bytes()


def beside(values: np.ndarray, table: Any) -> Any:
    """Targets or weights as a collection, in the partitions of the table."""
    if isinstance(table, list):
        return [dask.delayed(values[first:last]) for first, last in BORDERS]
    chunks = tuple(last - first for first, last in BORDERS)
    return da.from_array(values, (chunks,))


@pytest.mark.parametrize("name", TABLES)
def test_every_table_gives_the_local_forest(cluster4: Any, tmp_path: Path, name: str) -> None:
    local_table, table = TABLES[name]()
    local = margrove.RandomForestClassifier(5, random_state=0).fit(local_table, Y, WEIGHT)
    model = on_cluster.DaskRandomForestClassifier(5, random_state=0)
    model.fit(table, beside(Y, table), sample_weight=beside(WEIGHT, table))
    assert type(model.to_local()) is margrove.RandomForestClassifier
    assert saved(model.to_local(), tmp_path) == saved(local, tmp_path)
    if not isinstance(table, list):
        answer = model.predict(table)
        assert dask.is_dask_collection(answer)
        np.testing.assert_array_equal(np.asarray(answer.compute()), local.predict(local_table))


def test_chunks_of_unknown_sizes(cluster4: Any, tmp_path: Path) -> None:
    table, lazy = unknown_sizes()
    local = margrove.ExtraTreesRegressor(5, random_state=0).fit(
        table, table[:, 0], table[:, 1] ** 2
    )
    model = on_cluster.DaskExtraTreesRegressor(5, random_state=0)
    model.fit(lazy, lazy[:, 0], sample_weight=lazy[:, 1] ** 2)
    assert saved(model.to_local(), tmp_path) == saved(local, tmp_path)
    answer = model.predict(lazy)
    assert np.isnan(answer.chunks[0]).all()
    np.testing.assert_array_equal(answer.compute(), local.predict(table))


def test_a_class_that_one_worker_has_seen(cluster4: Any, tmp_path: Path) -> None:
    y = np.where(np.arange(N) == N - 1, "rare", Y)
    local = margrove.RandomForestClassifier(5, random_state=0).fit(X, y)
    model = on_cluster.RandomForestClassifier(5, random_state=0)
    model.fit(da.from_array(X, (100, 4)), da.from_array(y, 100))
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    assert saved(model.to_local(), tmp_path) == saved(local, tmp_path)


def test_a_column_of_another_type_is_named(cluster4: Any) -> None:
    table = frame()
    parts = pieces(table)
    parts[3] = parts[3].assign(letter=1.5)
    lazy = collection(parts, table.iloc[:0])
    with pytest.raises(margrove.exceptions.InvalidDataError, match=r"Partition 3 of X.*'letter'"):
        on_cluster.RandomForestClassifier(2).fit(lazy, beside(Y, lazy))
