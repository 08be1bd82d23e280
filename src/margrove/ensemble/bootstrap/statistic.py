"""The bootstrap: how a statistic varies, estimated by computing it on resamples of the data.

    1. resamples B_1 .. B_B: n rows drawn from the n rows of the data, with replacement
    2. S_b = S(B_b)
    3. mean = 1/B sum S_b,   variance = 1/B sum (S_b - mean)^2

`draws` makes the resamples, `evaluation` computes the statistic, `intervals` makes the intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import seed_of
from margrove._runtime import (
    RANDOM_STATE,
    RUN_CONTROL,
    drive,
    processes_wanted,
    resolve_n_jobs,
    unwatched,
    workers_wanted,
)
from margrove.ensemble.bootstrap.arguments import check_arguments, check_sample
from margrove.ensemble.bootstrap.draws import plan_resampling
from margrove.ensemble.bootstrap.evaluation import Bootstrap, Evaluation, SpreadBootstrap
from margrove.ensemble.bootstrap.intervals import (
    METHODS,
    Method,
    Moments,
    acceleration_of,
    interval_of,
    moments_of,
    warn,
)

__all__ = ["BootstrapResult", "ConfidenceInterval", "bootstrap"]

_ARGUMENTS: dict[str, list[Any]] = {
    "statistic": [callable],
    "n_resamples": [Interval(Integral, 2, None, closed="left")],
    "n_draws": [Interval(Integral, 1, None, closed="left"), None],
    "method": [StrOptions(set(METHODS))],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    "resampling": [StrOptions({"ordinary", "balanced", "bayesian"})],
    "block_length": [Interval(Integral, 1, None, closed="left"), None],
    "vectorized": ["boolean"],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


class ConfidenceInterval(NamedTuple):
    """Both ends: numbers, or arrays in the shape of the statistic."""

    low: Any
    high: Any


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapResult:
    """Standard error, bias and confidence interval of a statistic.

    Numbers are floats if the statistic is one number, and otherwise arrays of its shape.

    Attributes
    ----------
    estimate : float or ndarray
        The statistic of the data.
    resamples : ndarray of shape (n_resamples, ...)
        The statistic of each resample.
    mean, variance : float or ndarray
        Of the resamples; the variance is the mean of the squared deviations, with 1 / n_resamples.
    standard_error : float or ndarray
        The square root of the variance.
    bias : float or ndarray
        mean - estimate.
    low, high : float or ndarray
        The confidence interval.
    confidence_level : float
    method : {"percentile", "basic", "bca"}
        How the interval was computed.
    acceleration : float, ndarray or None
        Computed by method="bca", which leaves out one row at a time.
    """

    estimate: Any
    resamples: np.ndarray
    mean: Any
    variance: Any
    standard_error: Any
    bias: Any
    low: Any
    high: Any
    confidence_level: float
    method: Method
    acceleration: Any = None

    def interval(
        self, method: Method | None = None, confidence_level: float | None = None
    ) -> ConfidenceInterval:
        """Another interval from the same resamples.

        Parameters
        ----------
        method : {"percentile", "basic", "bca"}, optional
            Default: the method of this result. "bca" needs a result of method="bca".
        confidence_level : float, optional
            Default: the level of this result.

        Returns
        -------
        ConfidenceInterval
            A named tuple of `low` and `high`.

        Examples
        --------
        >>> import numpy as np
        >>> from margrove.ensemble.bootstrap.statistic import bootstrap
        >>> result = bootstrap([23, 31, 27, 45, 38, 29, 33], np.mean, random_state=0)
        >>> wide, narrow = result.interval(confidence_level=0.99), result.interval("basic", 0.5)
        >>> wide.low < narrow.low < narrow.high < wide.high
        True
        """
        method = self.method if method is None else method
        level = self.confidence_level if confidence_level is None else confidence_level
        asked = {"method": method, "confidence_level": level}
        check_arguments({name: _ARGUMENTS[name] for name in asked}, asked, "interval")
        if method == "bca" and self.acceleration is None:
            raise ValueError(
                "method='bca' needs the acceleration, which was not computed. Call bootstrap(..., "
                "method='bca'); its result can also give the other intervals."
            )
        flat = interval_of(
            method,
            level,
            self.resamples.reshape(len(self.resamples), -1),
            np.ravel(self.estimate),
            None if self.acceleration is None else np.ravel(self.acceleration),
        )
        low, high = (_shaped(end, np.shape(self.estimate)) for end in flat)
        return ConfidenceInterval(low, high)

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{name}={_text(getattr(self, name))}"
            for name in ("estimate", "standard_error", "bias", "low", "high")
        )
        return (
            f"BootstrapResult({figures}, confidence_level={self.confidence_level:g}, "
            f"method={self.method!r}, n_resamples={len(self.resamples)})"
        )

    def __str__(self) -> str:
        lines = {
            "estimate": _text(self.estimate),
            "standard error": _text(self.standard_error),
            "bias": _text(self.bias),
            f"{100 * self.confidence_level:g} % interval": (
                f"{_text(self.low)} to {_text(self.high)} ({self.method})"
            ),
            "resamples": str(len(self.resamples)),
        }
        return "\n".join(f"{name:<15} {text}" for name, text in lines.items())


def bootstrap(
    data: Any,
    statistic: Callable[..., Any],
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
) -> BootstrapResult:
    """Standard error, bias and confidence interval of a statistic, by resampling the data.

    Parameters
    ----------
    data : array-like, frame, sparse matrix, or tuple of these
        The entries of a tuple have the same number of rows and are resampled together, as X and y
        are. Frames stay frames.
    statistic : callable
        Gets the rows of a resample, ``statistic(rows)``, or ``statistic(x, y, ...)`` if `data` is a
        tuple, and returns a number or an array of numbers, always of the same shape. If `n_jobs`
        is not 1, several threads call it at the same time.
    n_resamples : int, default=1000
    n_draws : int, optional
        Number of rows in a resample (with `groups`, of groups); by default, and at most, as many
        as the data have.
    method : {"percentile", "basic", "bca"}, default="bca"
        How the interval is computed from the resamples. "bca", bias-corrected and accelerated, also
        evaluates the statistic without each row in turn; with `groups` without each group, with
        `block_length` without each of the consecutive blocks.
    confidence_level : float, default=0.95
    resampling : {"ordinary", "balanced", "bayesian"}, default="ordinary"
        "ordinary"
            Each row of a resample is drawn independently from all rows of the data.
        "balanced"
            Over all resamples each row is drawn equally often, which makes the bias less noisy.
        "bayesian"
            No rows are drawn; all rows get random weights of sum 1, uniform among such weights.
            The statistic is called with ``weights=...``, one for each row, like `numpy.average`.
    stratify : array-like of shape (n_rows,), optional
        Labels of strata. Rows are drawn within their stratum, which keeps its size.
    groups : array-like of shape (n_rows,), optional
        Labels of groups, which are drawn as a whole: for rows that depend on each other.
    block_length : int, optional
        For series: resamples consist of blocks of this many consecutive rows. A block may start
        at any row, and the end of the series is joined to its start.
    vectorized : bool, default=False
        Whether the statistic takes a batch of resamples at once. It is called as
        ``statistic(*arrays, axis=-1)``, as in `scipy.stats.bootstrap`: resamples are the first
        axis, their rows the last, so an array of shape (n, d) becomes (k, d, n). It returns k
        values, of shape (k, ...).
    n_jobs : int, optional
        Number of threads, which does not change the result. None is 1, -1 is all cores. With a
        `joblib.parallel_config` of a process backend, worker processes evaluate the resamples.
    random_state : int, RandomState, Generator or None, default=None
        Resample b depends only on it and on b (with "balanced", also on n_resamples).
    max_time : float, optional
        Seconds after which to stop, with a warning, and to use the resamples done so far.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the resamples done so far with a warning.
    verbose : int, default=0
        Above 0, a progress bar.

    Returns
    -------
    BootstrapResult

    Warns
    -----
    DataWarning
        If resamples gave NaN or infinity, if all of them gave the same value, or if method="bca"
        was not possible. NaN is left out of everything that is computed from the resamples.

    Notes
    -----
    The variance is that of the resamples, with 1 / n_resamples; `scipy.stats.bootstrap` divides by
    n_resamples - 1. If the run ends before "bca" has left out each row, the result has the
    percentile interval, with a warning.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap. Davison and Hinkley (1997),
    Bootstrap Methods and Their Application. Rubin (1981), The Bayesian Bootstrap.

    Examples
    --------
    The variance of a median:

    >>> import numpy as np
    >>> from margrove.ensemble.bootstrap.statistic import bootstrap
    >>> waiting = [3.0, 4.5, 2.0, 9.5, 5.0, 3.5, 6.0, 2.5, 4.0, 7.5]
    >>> result = bootstrap(waiting, np.median, random_state=0)
    >>> result.estimate, bool(np.isclose(result.variance, np.var(result.resamples)))
    (4.25, True)
    >>> result.low <= result.estimate <= result.high
    True

    The correlation of two columns, whose rows are resampled together:

    >>> x, y = np.arange(10.0), np.array(waiting)
    >>> def correlation(x, y):
    ...     return np.corrcoef(x, y)[0, 1]
    >>> bootstrap((x, y), correlation, n_resamples=200, random_state=0).resamples.shape
    (200,)
    """
    check_arguments(_ARGUMENTS, locals(), "bootstrap")
    n_threads = resolve_n_jobs(n_jobs)
    sample = check_sample(data, as_arrays=vectorized)
    plan = plan_resampling(
        sample.n_rows, n_resamples=int(n_resamples), seed=seed_of(random_state), scheme=resampling,
        stratify=stratify, groups=groups, n_draws=n_draws, block_length=block_length,
    )  # fmt: skip
    evaluation = Evaluation(statistic, sample, vectorized)
    if resampling == "bayesian":
        evaluation.require_weights()
    with unwatched():
        estimate = evaluation.of([plan.all_rows()], "the data")[0]
    problem = evaluation, plan, estimate, method == "bca"
    process = (
        SpreadBootstrap(*problem, 1, n_workers=workers_wanted(n_jobs))
        if processes_wanted()
        else Bootstrap(*problem, n_threads)
    )
    drive(process, process, max_time=max_time, on_interrupt=on_interrupt, verbose=verbose)

    resamples = process.resamples
    if not len(resamples):  # interrupted before the first resample: there is nothing to keep
        raise KeyboardInterrupt
    flat = resamples.reshape(len(resamples), -1)
    moments = moments_of(flat)
    _warn_of_odd_values(flat, estimate, moments)
    acceleration = None
    if method == "bca" and (jackknife := process.jackknife()) is not None:
        acceleration = acceleration_of(jackknife, process.strata)
        _warn_of_jackknife(jackknife, acceleration, moments)
        acceleration = np.nan_to_num(acceleration, nan=0.0)
    elif method == "bca":
        method = "percentile"
        warn(
            "The run ended before method='bca' had left out each row, group or block, so this is "
            "the percentile interval. Raise max_time, or use method='percentile'.",
            stacklevel=3,
        )
    interval = interval_of(method, float(confidence_level), flat, estimate.ravel(), acceleration)
    figures = (*moments, moments.mean - estimate.ravel(), *interval)
    mean, variance, standard_error, bias, low, high = (
        _shaped(figure, estimate.shape) for figure in figures
    )
    return BootstrapResult(
        _shaped(estimate, estimate.shape), resamples, mean, variance, standard_error, bias, low,
        high, float(confidence_level), method,
        None if acceleration is None else _shaped(acceleration, estimate.shape),
    )  # fmt: skip


def _warn_of_odd_values(resamples: np.ndarray, estimate: np.ndarray, moments: Moments) -> None:
    for is_odd, name, meaning in (
        (np.isnan, "NaN", "they are left out, so the result describes only the others"),
        (np.isinf, "infinity", "the variance is infinite"),
    ):
        odd = is_odd(resamples).any(axis=1)
        if odd.any():
            warn(
                f"The statistic of {np.count_nonzero(odd)} of the {len(odd)} resamples is {name} "
                f"(first: resample {int(np.argmax(odd))}); {meaning}."
            )
    if np.isnan(estimate).any():
        warn("The statistic of the data is NaN, and so are bias and interval.")
    if np.isinf(moments.variance).any() and not np.isinf(resamples).any():
        warn("The variance overflows; its square root, standard_error, does not.")


def _warn_of_jackknife(values: np.ndarray, found: np.ndarray, moments: Moments) -> None:
    n_odd = np.count_nonzero(~np.isfinite(values).all(axis=1))
    if n_odd:
        warn(
            f"For {n_odd} of the {len(values)} rows, groups or blocks that method='bca' leaves out "
            "in turn, the statistic of the others is NaN or infinite; it ignores these."
        )
    if np.any(np.isnan(found) & (moments.variance > 0)):
        warn(
            "Leaving out a single row, group or block never changes the statistic, so "
            "method='bca' uses an acceleration of 0."
        )


def _shaped(flat: np.ndarray, shape: tuple[int, ...]) -> Any:
    return flat.reshape(shape) if shape else float(flat.reshape(())[()])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return np.array2string(value, precision=4, threshold=6, separator=", ")
