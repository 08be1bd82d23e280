"""Perceptron on a cluster: the weights travel, bit for bit as if the partitions came one by one."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import margrove
from margrove.dask import Perceptron
from margrove.exceptions import ConvergenceWarning, InvalidDataError

dask = pytest.importorskip("dask")

RNG = np.random.default_rng(3)
N = 700
X = RNG.normal(size=(N, 5))
SCORES = X @ RNG.normal(size=5)
TWO = np.where(SCORES > 0.2, "yes", "no")
THREE = np.digitize(SCORES, [-1.0, 1.0])
WEIGHT = RNG.integers(0, 3, N).astype(np.float64)
CUTS = [(0, 100), (100, 101), (101, 101), (101, 500), (500, 700)]
SIZES = tuple(stop - start for start, stop in CUTS)


def pieces(array: Any) -> Any:
    return da.from_array(array, chunks=(SIZES, -1) if array.ndim == 2 else (SIZES,))


def chunk_by_chunk(model: Any, y: np.ndarray, weight: Any, epochs: int) -> Any:
    for _ in range(epochs):
        for start, stop in CUTS:
            rows = slice(start, stop)
            chunk_weight = None if weight is None else weight[rows]
            model.partial_fit(X[rows], y[rows], classes=np.unique(y), sample_weight=chunk_weight)
    return model


@pytest.mark.parametrize(
    ("settings", "y", "weight"),
    [
        ({}, TWO, None),
        ({"average": True}, THREE, WEIGHT),
        ({"penalty": "elasticnet", "shuffle": False}, THREE, None),
        ({"class_weight": {"yes": 2.0, "no": 1.0}, "margin": 0.5}, TWO, WEIGHT),
    ],
    ids=["plain", "average", "penalty", "margin"],
)
def test_an_epoch_is_partial_fit_chunk_by_chunk(
    cluster4: Any, settings: dict[str, Any], y: np.ndarray, weight: Any, tmp_path: Any
) -> None:
    model = Perceptron(random_state=7, **settings)
    model.partial_fit(
        pieces(X), pieces(y), sample_weight=None if weight is None else pieces(weight)
    )
    local = chunk_by_chunk(margrove.Perceptron(random_state=7, **settings), y, weight, 1)
    margrove.save(model.to_local(), tmp_path / "ours")
    margrove.save(local, tmp_path / "local")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "local").read_bytes()


def test_fit_makes_epochs_and_measures_the_margin(cluster4: Any) -> None:
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(max_iter=2, tol=1e-3).fit(pieces(X), pieces(THREE), pieces(WEIGHT))
    local = chunk_by_chunk(margrove.Perceptron(max_iter=2), THREE, WEIGHT, 2)
    assert np.array_equal(model.coef_, local.coef_)
    assert np.array_equal(model.intercept_, local.intercept_)
    assert model.mistakes_ == local.mistakes_
    assert model.n_iter_ == 2
    rows = WEIGHT > 0
    signs = np.where(THREE[rows][:, None] == np.arange(3), 1.0, -1.0)
    values = signs * (X[rows] @ model.coef_.T + model.intercept_)
    lengths = np.sqrt((model.coef_**2).sum(axis=1) + model.intercept_**2)
    assert model.class_margins_ == pytest.approx((values / lengths).min(axis=0))
    assert not model.separated_


def test_separable_rows_end_it_and_obey_novikoff(cluster4: Any) -> None:
    far = np.abs(SCORES - 0.2) > 0.5
    kept = da.from_array(X[far], chunks=(150, -1))
    model = Perceptron().fit(kept, da.from_array(TWO[far], chunks=150))
    assert model.separated_
    assert model.mistakes_ <= model.novikoff_bound_ < np.inf
    assert model.score(X[far], TWO[far]) == 1.0


def test_frames_sparse_rows_and_names(cluster4: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    partitions = dd.from_pandas(frame, npartitions=3)
    y = dd.from_pandas(pd.Series(TWO), npartitions=3)
    model = Perceptron(max_iter=3, tol=None).fit(partitions, y)
    assert list(model.feature_names_in_) == list("abcde")
    assert model.partial_fit(partitions, y).t_ == 1.0 + 4 * N
    with pytest.raises(InvalidDataError, match="not those of the earlier"):
        model.partial_fit(pieces(X), pieces(TWO))
    rows = pieces(X).map_blocks(sp.csr_array, dtype=np.float64, meta=sp.csr_array((0, 0)))
    dense = Perceptron(max_iter=2, tol=None).fit(pieces(X), pieces(TWO))
    assert np.allclose(Perceptron(max_iter=2, tol=None).fit(rows, pieces(TWO)).coef_, dense.coef_)


def test_balanced_classes_and_a_start(cluster4: Any) -> None:
    counts = {label: N / (2.0 * np.sum(label == TWO)) for label in ("no", "yes")}
    first = Perceptron(class_weight="balanced", max_iter=2, tol=None).fit(pieces(X), pieces(TWO))
    second = Perceptron(class_weight=counts, max_iter=2, tol=None).fit(pieces(X), pieces(TWO))
    assert np.array_equal(first.coef_, second.coef_)
    started = Perceptron(max_iter=1, tol=None).fit(
        pieces(X), pieces(TWO), coef_init=np.ones((1, 5)), intercept_init=[0.5]
    )
    plain = Perceptron(max_iter=1, tol=None).fit(pieces(X), pieces(TWO))
    assert not np.array_equal(started.coef_, plain.coef_)
    assert started.novikoff_bound_ == np.inf


def test_errors_name_the_partition(cluster4: Any) -> None:
    bad = X.copy()
    bad[550, 2] = np.inf
    with pytest.raises(InvalidDataError, match="Partition 4 of X"):
        Perceptron().fit(pieces(bad), pieces(TWO))
    with pytest.raises(ValueError, match="early_stopping=False"):
        Perceptron(early_stopping=True).fit(pieces(X), pieces(TWO))
