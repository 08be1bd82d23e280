"""bootstrap on a cluster: the resamples of the local function, row for row."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import margrove
from margrove.dask import bootstrap
from margrove.dask.bootstrap_process import RanksOnShards
from margrove.dask.bootstrap_shards import Draws
from margrove.dask.bootstrap_statistics import known_statistic, local_statistic
from margrove.ensemble.bootstrap.draws import plan_resampling

dask = pytest.importorskip("dask")

RNG = np.random.default_rng(2)
N = 403
TIMES = RNG.exponential(size=N)
TABLE = RNG.normal(size=(N, 2)) * [1.0, 1e-2] + [3.0, 100.0]
GRADES = RNG.integers(0, 5, N).astype(np.float64)


def pieces(array: np.ndarray, size: Any = 90) -> Any:
    return da.from_array(array, chunks=(size, -1) if array.ndim == 2 else size)


def both(data: Any, parts: Any, statistic: Any, **settings: Any) -> tuple[Any, Any]:
    settings = {"n_resamples": 40, "random_state": 4, **settings}
    local = margrove.bootstrap(data, local_statistic(statistic), **settings)
    return local, bootstrap(parts, statistic, **settings)


def agree(local: Any, ours: Any, tolerance: float) -> None:
    for name in ("estimate", "resamples", "mean", "low", "high"):
        expected, got = np.asarray(getattr(local, name)), np.asarray(getattr(ours, name))
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=tolerance, err_msg=name)
    assert ours.method == local.method
    if local.acceleration is not None:
        np.testing.assert_allclose(ours.acceleration, local.acceleration, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("scheme", ["ordinary", "balanced"])
@pytest.mark.parametrize("n_draws", [None, 130])
def test_a_part_of_the_rows_is_drawn_as_in_the_whole(scheme: Any, n_draws: int | None) -> None:
    plan = plan_resampling(260, n_resamples=4, seed=9, scheme=scheme, n_draws=n_draws)
    draws = Draws(260, 4, 9, scheme, n_draws or 260)
    for number in range(4):
        expected = np.bincount(plan.resample(number).rows, minlength=260)
        own = [draws.counts(number, a, b) for a, b in ((0, 1), (1, 200), (200, 260))]
        assert np.array_equal(np.concatenate(own), expected)


def test_blocks_of_draws_and_shares_join_without_a_seam(monkeypatch: Any) -> None:
    monkeypatch.setattr("margrove.dask.bootstrap_shards._BLOCK", 7)
    plan = plan_resampling(100, n_resamples=2, seed=1, scheme="ordinary")
    counts = Draws(100, 2, 1, "ordinary", 100).counts(1, 0, 100)
    assert np.array_equal(counts, np.bincount(plan.resample(1).rows, minlength=100))
    weights = plan_resampling(100, n_resamples=2, seed=1, scheme="bayesian").resample(1).weights
    draws = Draws(100, 2, 1, "bayesian", 100)
    shares = np.concatenate([draws.counts(1, 0, 33), draws.counts(1, 33, 100)])
    np.testing.assert_allclose(shares / shares.sum(), weights, rtol=1e-14)


@pytest.mark.parametrize("statistic", ["mean", "sum", "var", "std"])
def test_sums_agree_to_the_rounding_of_sums(cluster4: Any, statistic: str) -> None:
    with dask.config.set({"margrove.workers": 3}):
        agree(*both(TIMES, pieces(TIMES), statistic), 1e-12)


@pytest.mark.parametrize("statistic", ["median", "quantile:0.9", "quantile:0"])
def test_ranks_agree_exactly(cluster4: Any, statistic: str) -> None:
    local, ours = both(TIMES, pieces(TIMES), statistic)
    assert np.array_equal(ours.resamples, local.resamples)
    assert ours.estimate == local.estimate
    agree(local, ours, 1e-12)


def test_columns_levels_and_degrees_of_freedom(cluster4: Any) -> None:
    levels = partial(np.quantile, q=[0.1, 0.5], axis=0)
    local, ours = both(TABLE, pieces(TABLE), levels)
    assert np.array_equal(ours.resamples, local.resamples)
    assert ours.estimate.shape == (2, 2)
    agree(*both(TABLE, pieces(TABLE), partial(np.var, axis=0, ddof=1)), 1e-9)


def test_ties_are_counted(cluster4: Any) -> None:
    local, ours = both(GRADES, pieces(GRADES), partial(np.quantile, q=0.37), method="percentile")
    assert np.array_equal(ours.resamples, local.resamples)


def test_a_window_that_is_too_narrow_is_widened(cluster4: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("margrove.dask.bootstrap_process._DEVIATIONS", 0.05)
    looks: list[float] = []
    look = RanksOnShards._look

    def counted(self: Any) -> None:
        looks.append(self._deviations)
        look(self)

    monkeypatch.setattr(RanksOnShards, "_look", counted)
    local, ours = both(TIMES, pieces(TIMES), "median", method="percentile")
    assert len(looks) > 1
    assert np.array_equal(ours.resamples, local.resamples)


@pytest.mark.parametrize(
    "settings",
    [{"resampling": "balanced"}, {"resampling": "bayesian"}, {"n_draws": 50}],
    ids=["balanced", "bayesian", "few draws"],
)
def test_other_ways_to_resample(cluster4: Any, settings: dict[str, Any]) -> None:
    agree(*both(TIMES, pieces(TIMES), "mean", **settings), 1e-11)


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _ratio(frame: pd.DataFrame) -> float:
    return float(frame["a"].sum() / frame["b"].sum())


def test_any_statistic_of_data_brought_together(cluster4: Any) -> None:
    small, parts = TABLE[:80], pieces(TABLE[:80], 30)
    settings = {"n_resamples": 12}
    columns = (small[:, 0], small[:, 1])
    local, ours = both(columns, (parts[:, 0], parts[:, 1]), _correlation, **settings)
    assert np.array_equal(ours.resamples, local.resamples)
    assert (ours.low, ours.high) == (local.low, local.high)
    frame = pd.DataFrame(small, columns=["a", "b"])
    local, ours = both(frame, dd.from_pandas(frame, npartitions=2), _ratio, **settings)
    assert np.array_equal(ours.resamples, local.resamples)
    for extra in ({"block_length": 7}, {"stratify": GRADES[:80]}, {"groups": np.arange(80) // 4}):
        local, ours = both(small[:, 0], parts[:, 0], "mean", **settings, **extra)
        assert np.array_equal(ours.resamples, local.resamples)
        assert ours.low == local.low


def test_missing_values_are_left_to_the_statistic(cluster4: Any) -> None:
    holed = TIMES[:60].copy()
    holed[3] = np.nan
    local, ours = both(holed, pieces(holed, 25), partial(np.nanmean, axis=0), n_resamples=8)
    assert np.array_equal(ours.resamples, local.resamples)


def test_local_data_stay_local() -> None:
    ours = bootstrap(TIMES, "median", n_resamples=30, random_state=0)
    local = margrove.bootstrap(TIMES, np.median, n_resamples=30, random_state=0)
    assert np.array_equal(ours.resamples, local.resamples)


def test_what_is_known() -> None:
    assert known_statistic(np.mean, 1) is not None
    assert known_statistic(np.mean, 2) is None  # of all cells, not of each column
    assert known_statistic(partial(np.mean, axis=0), 2) is not None
    assert known_statistic(partial(np.quantile, q=0.5, method="lower"), 1) is None
    assert known_statistic(lambda rows: rows.mean(), 1) is None
    with pytest.raises(ValueError, match=r"'quantile:0\.9'"):
        local_statistic("quantile")
    with pytest.raises(ValueError, match="must be callable"):
        local_statistic("mode")


def test_arguments_are_checked_as_ever(cluster4: Any) -> None:
    with pytest.raises(ValueError, match="n_draws must be at most"):
        bootstrap(pieces(TIMES), "mean", n_draws=N + 1)
    with pytest.raises(ValueError, match="n_resamples"):
        bootstrap(pieces(TIMES), "mean", n_resamples=1)
    with pytest.raises(TypeError, match="weights"):
        bootstrap(pieces(TIMES), "median", resampling="bayesian")
