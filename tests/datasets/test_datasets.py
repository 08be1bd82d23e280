"""What is known about the data sets is true of them."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.spatial import ConvexHull

from margrove import datasets
from margrove.datasets import DATASETS, make_gaussians, make_separable_clouds, make_xor

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize("name", list(DATASETS))
def test_bunch_pair_and_frames_agree(name) -> None:
    bunch = DATASETS[name]()
    X, y = DATASETS[name](return_X_y=True)
    assert np.array_equal(bunch.data, X)
    assert np.array_equal(bunch.target, y)
    assert len(bunch.feature_names) == X.shape[1]
    assert bunch.DESCR
    for backend, kind in (
        ("pandas", pd.DataFrame),
        ("polars", pl.DataFrame),
        ("pyarrow", pa.Table),
    ):
        framed = DATASETS[name](as_frame=backend)
        assert isinstance(framed.data, kind)
        assert np.array_equal(np.asarray(framed.data), X)
        assert np.array_equal(np.asarray(framed.target), y)
    assert DATASETS[name](as_frame=True).frame.shape == (len(y), X.shape[1] + 1)


def test_every_loader_is_registered_documented_and_repeatable() -> None:
    functions = {n: f for n, f in vars(datasets).items() if n.startswith(("load_", "make_"))}
    assert set(functions.values()) == set(DATASETS.values())
    for function in functions.values():
        assert inspect.getdoc(function)
        if "random_state" in inspect.signature(function).parameters:
            assert np.array_equal(function(random_state=3).data, function(random_state=3).data)
            assert not np.array_equal(function(random_state=3).data, function(random_state=4).data)


def test_unknown_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="as_frame must be"):
        datasets.load_iris(as_frame="excel")


def test_hulls_nearest_points_and_margin_of_the_clouds() -> None:
    clouds = make_separable_clouds(200)
    assert len(clouds.data) == 200
    values = clouds.target * (clouds.data @ clouds.normal - clouds.offset)
    assert np.linalg.norm(clouds.normal) == pytest.approx(1.0)
    assert values.min() == pytest.approx(clouds.margin)
    left, right = clouds.nearest_points
    assert np.linalg.norm(right - left) == pytest.approx(2 * clouds.margin)
    assert ((left + right) / 2) @ clouds.normal == pytest.approx(clouds.offset)
    for sign, hull in zip((-1, 1), clouds.hulls, strict=True):
        points = clouds.data[clouds.target == sign]
        corners = points[ConvexHull(points).vertices]
        assert {tuple(np.round(c, 9)) for c in corners} == {tuple(np.round(c, 9)) for c in hull}


@pytest.mark.parametrize("n_samples", [0, -5, 2.5, "9"])
def test_impossible_sizes_are_refused(n_samples) -> None:
    for make in (make_xor, make_separable_clouds, make_gaussians, datasets.make_moons):
        with pytest.raises(ValueError, match="n_samples must be a whole number"):
            make(n_samples)
    with pytest.raises(ValueError, match="noise"):
        make_xor(9, noise=np.nan)
    with pytest.raises(ValueError, match="two points"):
        make_gaussians(means=[[0.0], [1.0], [2.0]])


def test_exclusive_or_is_the_table_without_noise() -> None:
    xor = make_xor(4, noise=0.0)
    assert xor.data.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert xor.target.tolist() == [0, 1, 1, 0]


def test_the_bayes_classifier_of_the_gaussians() -> None:
    gaussians = make_gaussians(20_000)
    wrong = (gaussians.bayes_decision(gaussians.data) > 0) != gaussians.target
    assert wrong.mean() == pytest.approx(gaussians.bayes_error, abs=0.006)
    grid = np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 5.0]])
    assert np.allclose(gaussians.bayes_decision(grid), 0.0)
    bent = make_gaussians(50, covariances=[np.eye(2), 4 * np.eye(2)])
    assert bent.bayes_error is None
    far = np.array([[-30.0, 0.0], [30.0, 0.0]])
    assert (bent.bayes_decision(far) > 0).all()  # the wide class surrounds the narrow one
