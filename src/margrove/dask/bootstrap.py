"""The bootstrap of Dask collections."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from margrove._data.seeds import seed_of
from margrove._runtime.slices import drive
from margrove.dask.bootstrap_process import RanksOnShards, Rows, SumsOnShards, rows_on_workers
from margrove.dask.bootstrap_shards import Draws
from margrove.dask.bootstrap_statistics import Statistic, known_statistic, local_statistic
from margrove.dask.bootstrap_tasks import WholeOnWorkers
from margrove.dask.cluster import client_of, named_errors, workers_of
from margrove.dask.parts import is_collection, parts_of
from margrove.ensemble.bootstrap import statistic as local
from margrove.ensemble.bootstrap.arguments import check_arguments
from margrove.ensemble.bootstrap.draws import _refuse_contradictions, plan_resampling
from margrove.ensemble.bootstrap.intervals import (
    Method,
    acceleration_of,
    interval_of,
    moments_of,
    warn,
)
from margrove.ensemble.bootstrap.statistic import BootstrapResult

__all__ = ["bootstrap"]

_WITH_WEIGHTS = ("mean",)


def bootstrap(
    data: Any,
    statistic: Any,
    *,
    n_resamples: int = 1000,
    n_draws: int | None = None,
    method: Method = "bca",
    confidence_level: float = 0.95,
    resampling: Literal["ordinary", "balanced", "bayesian"] = "ordinary",
    stratify: Any = None,
    groups: Any = None,
    block_length: int | None = None,
    vectorized: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
    max_time: float | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
    verbose: int = 0,
    client: Any = None,
) -> BootstrapResult:
    """`margrove.bootstrap` for data on a Dask cluster, with the same resamples.

    Statistics that are made of sums and quantiles are computed where the rows are: no row travels,
    and the rows need not fit any one worker. Any other statistic gets whole resamples, so that the
    data are brought together on each worker, which they have to fit; resamples are spread over the
    workers.

    Parameters
    ----------
    data : Dask array, dataframe or series, or tuple of these
        Anything else is left to `margrove.bootstrap`.
    statistic : str or callable
        "mean", "sum", "var", "std", "median" or "quantile:0.9" (any level) of each column. Or a
        callable as `margrove.bootstrap` takes it. Of these, NumPy's functions of the same names
        are recognised, with ``functools.partial`` for ``axis=0``, ``ddof`` and ``q``.
    n_resamples, n_draws, method, confidence_level, resampling, stratify, groups, block_length
        As in `margrove.bootstrap`. With `stratify`, `groups` or `block_length` the data are
        brought together.
    vectorized, random_state, max_time, on_interrupt, verbose
        As in `margrove.bootstrap`.
    n_jobs : int, optional
        Not used: workers have their threads.
    client : distributed.Client, optional
        By default the current one.

    Returns
    -------
    BootstrapResult
        That of `margrove.bootstrap` with the same `random_state`: values of counts and quantiles
        are the same, sums of floats up to the rounding of sums in another order.

    Notes
    -----
    Every worker makes all draws of a resample and counts those that fall on its rows, some ten
    nanoseconds a draw; more workers share the sums and the memory, not the draws. Table entries
    are taken as float64.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from margrove.dask import bootstrap
    >>> client = Client(n_workers=2)  # doctest: +SKIP
    >>> waiting = da.random.default_rng(0).exponential(size=10_000_000, chunks=1_000_000)
    >>> bootstrap(waiting, "median", n_resamples=100, random_state=0)  # doctest: +SKIP
    """
    statistic = local_statistic(statistic)
    settings = {name: value for name, value in locals().items() if name in local._ARGUMENTS}
    if not any(map(is_collection, data if isinstance(data, tuple) else (data,))):
        others = {"stratify": stratify, "groups": groups}
        return local.bootstrap(data, **settings, **others)
    check_arguments(local._ARGUMENTS, settings, "bootstrap")
    client = client_of(client)
    with client.as_current(), named_errors(client):
        process = _process(data, statistic, settings, stratify, groups, client)
        estimate = process.estimate()
        drive(process, process, max_time=max_time, on_interrupt=on_interrupt, verbose=verbose)
        resamples = process.resamples
        if not len(resamples):  # interrupted at once: there is nothing to keep
            raise KeyboardInterrupt
        flat = resamples.reshape(len(resamples), -1)
        moments = moments_of(flat)
        local._warn_of_odd_values(flat, estimate, moments)
        acceleration = None
        if method == "bca" and isinstance(process, WholeOnWorkers):
            jackknife = process.jackknife()
            if jackknife is not None:
                acceleration = acceleration_of(jackknife, process.strata)
                local._warn_of_jackknife(jackknife, acceleration, moments)
        elif method == "bca" and process.finished:
            acceleration = process.acceleration()
            local._warn_of_jackknife(flat[:0], acceleration, moments)
    if acceleration is not None:
        acceleration = np.nan_to_num(acceleration, nan=0.0)
    elif method == "bca":
        method = "percentile"
        warn(
            "The run ended before method='bca' had left out each part of the data, so the interval "
            "is the percentile one. Raise max_time, or use method='percentile'.",
            stacklevel=3,
        )
    interval = interval_of(method, float(confidence_level), flat, estimate.ravel(), acceleration)
    parts = (*moments, moments.mean - estimate.ravel(), *interval)
    mean, variance, standard_error, bias, low, high = (
        local._shaped(part, estimate.shape) for part in parts
    )
    return BootstrapResult(
        local._shaped(estimate, estimate.shape), resamples, mean, variance, standard_error, bias,
        low, high, float(confidence_level), method,
        None if acceleration is None else local._shaped(acceleration, estimate.shape),
    )  # fmt: skip


def _process(
    data: Any, statistic: Any, settings: dict[str, Any], stratify: Any, groups: Any, client: Any
) -> Any:
    """Where the rows are, if the statistic is known; else on data brought together."""
    scheme, block_length = settings["resampling"], settings["block_length"]
    n_draws = settings["n_draws"]
    _refuse_contradictions(scheme, stratify, groups, n_draws, block_length)
    seed = seed_of(settings["random_state"])
    has_no_parts = stratify is None and groups is None and block_length is None
    if has_no_parts and not isinstance(data, tuple) and not settings["vectorized"]:
        known = known_statistic(statistic, getattr(data, "ndim", 2))
        if known is not None and (scheme != "bayesian" or known.kind in _WITH_WEIGHTS):
            rows = rows_on_workers(parts_of(_as_table(data), client=client), workers_of(client))
            if rows.is_finite:
                return _on_shards(rows, known, data, seed, settings)
    return WholeOnWorkers(client, data, statistic, settings, stratify, groups, seed)


def _as_table(data: Any) -> Any:
    if hasattr(data, "to_frame") and not hasattr(data, "columns"):
        return data.to_frame()
    return data[:, None] if data.ndim == 1 else data


def _on_shards(
    rows: Rows, known: Statistic, data: Any, seed: int, settings: dict[str, Any]
) -> SumsOnShards | RanksOnShards:
    n_draws, n_resamples = settings["n_draws"], int(settings["n_resamples"])
    if n_draws is not None or rows.n_rows < 2:  # raises where they do not go together
        plan_resampling(
            rows.n_rows, n_resamples=n_resamples, seed=seed, scheme=settings["resampling"],
            n_draws=n_draws,
        )  # fmt: skip
    scheme = settings["resampling"]
    draws = Draws(rows.n_rows, n_resamples, seed, scheme, int(n_draws or rows.n_rows))
    of_columns = () if data.ndim == 1 else (len(rows.centre),)
    of_levels = () if known.levels is None else known.levels.shape
    kind = RanksOnShards if known.is_of_ranks else SumsOnShards
    return kind(rows, draws, known, (*of_levels, *of_columns))
