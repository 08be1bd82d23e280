"""The error of a learner on rows it has not seen, estimated by refitting it on bootstrap samples.

Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method:

    err    training error: the mean loss of the learner fitted to all rows, on these rows
    Err1   leave-one-out bootstrap error: 1/n sum_i of the mean loss on row i of the learners whose
           samples do not hold row i
    .632   0.368 err + 0.632 Err1
    gamma  no-information error: the mean loss over all pairs of a target and a prediction
    R      (Err1' - err) / (gamma - err), where Err1' = min(Err1, gamma), if both are above err,
           else 0
    .632+  .632 + (Err1' - err) 0.368 0.632 R / (1 - 0.368 R)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import joblib
import numpy as np
from sklearn import config_context, get_config
from sklearn.base import is_classifier, is_regressor
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data.seeds import seed_of
from margrove._runtime.estimator import RANDOM_STATE, RUN_CONTROL
from margrove._runtime.process_tasks import processes_wanted, spread, workers_wanted
from margrove._runtime.slices import drive, unwatched
from margrove._runtime.threads import resolve_n_jobs, run_tiles
from margrove.ensemble.bagging.seeded_clones import seeded_clone
from margrove.ensemble.bootstrap.arguments import Sample, check_arguments, check_sample
from margrove.ensemble.bootstrap.draws import label_codes
from margrove.ensemble.bootstrap.intervals import warn
from margrove.ensemble.bootstrap.losses import (
    Loss,
    RowLoss,
    loss_of,
    no_information_error,
    row_losses,
)
from margrove.ensemble.bootstrap.resampling import Line, multiplicities, stream

__all__ = ["BootstrapError", "bootstrap_error"]

_WORK_OF_A_FIT = 1e6  # what a fit costs is seen when it runs: start with two
_ARGUMENTS: dict[str, list[Any]] = {
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "scoring": [StrOptions({"error"}), callable, None],
    "stratify": ["boolean"],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapError:
    """Estimates of the error on new rows.

    Attributes
    ----------
    training : float
        The mean loss on the rows the learner was fitted to: too low.
    out_of_bag : float
        The leave-one-out bootstrap error: each row is predicted by the learners that have not seen
        it. Rather too high, as each has seen only 63 % of the rows.
    no_information : float
        gamma, the mean loss if targets had nothing to do with predictions.
    overfitting_rate : float
        R, from 0 (no overfitting) to 1 (what was learnt is of no use for new rows).
    e632 : float
        0.368 training + 0.632 out_of_bag.
    e632_plus : float
        The .632+ estimate, which leans on `out_of_bag` the more, the more the learner overfits.
    e632_plus_weight : float
        What `out_of_bag` weighs in it, from 0.632 to 1; `training` weighs the rest. (Where
        `out_of_bag` is above `no_information`, part of its weight is given to the latter.)
    never_out_of_bag : int
        Rows that were in every sample; `out_of_bag` is the mean over the others.
    by_resample : ndarray of shape (n_resamples,)
        The mean loss of each learner on the rows it has not seen; NaN if it has seen all.
    """

    training: float
    out_of_bag: float
    no_information: float
    overfitting_rate: float
    e632: float
    e632_plus: float
    e632_plus_weight: float
    never_out_of_bag: int
    by_resample: np.ndarray

    def __repr__(self) -> str:
        names = ("training", "out_of_bag", "no_information", "overfitting_rate", "e632")
        figures = ", ".join(f"{name}={getattr(self, name):.6g}" for name in (*names, "e632_plus"))
        return f"BootstrapError({figures}, n_resamples={len(self.by_resample)})"

    def __str__(self) -> str:
        return "\n".join(
            [
                f"training error        {self.training:.6g}",
                f"out-of-bag error      {self.out_of_bag:.6g}",
                f".632 error            {self.e632:.6g}",
                f".632+ error           {self.e632_plus:.6g}",
                f"no-information error  {self.no_information:.6g}",
                f"overfitting rate      {self.overfitting_rate:.6g}",
                f"resamples             {len(self.by_resample)}",
            ]
        )


def bootstrap_error(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_resamples: int = 100,
    scoring: Literal["error"] | Loss | None = None,
    stratify: bool = False,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    max_time: float | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
) -> BootstrapError:
    """The error of an estimator on new rows: out-of-bag, .632 and .632+.

    Parameters
    ----------
    estimator : classifier or regressor
        Any of scikit-learn's kind. It stays as it is: clones are fitted, once to all rows and once
        to each sample. Where it has a `random_state` of None, clones get one that depends on the
        `random_state` given here and on the number of their sample.
    X : array-like, frame or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or, for regressors, (n_rows, n_outputs)
    n_resamples : int, default=100
    scoring : "error" or callable, optional
        The loss. By default, and with "error", 1 for each wrong class and 0 for each right one;
        for regressors the squared error, averaged over the outputs. A callable
        ``loss(y_true, y_pred)`` returns a loss for each row.
    stratify : bool, default=False
        Whether each class keeps its size in all samples.
    n_jobs : int, optional
        Threads; they do not change the result. None is 1, -1 is all cores.
    random_state : int, RandomState, Generator or None, default=None
        Sample b depends on it and on b only.
    verbose : int, default=0
        Above 0, a progress bar.
    max_time : float, optional
        Seconds after which to stop, with a warning, and to make do with the samples done so far.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the samples done so far with a warning.

    Returns
    -------
    BootstrapError

    Warns
    -----
    DataWarning
        If rows were in every sample, and if samples of one class only could not be fitted: such a
        sample predicts its class.

    Notes
    -----
    The no-information error is exact for "error". With a callable it is, too, up to 33 million
    pairs of targets and predictions; beyond, predictions are thinned out evenly.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method,
    Journal of the American Statistical Association 92.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.datasets import load_iris
    >>> from margrove.ensemble.bootstrap.error import bootstrap_error
    >>> X, y = load_iris(return_X_y=True)
    >>> error = bootstrap_error(DecisionTreeClassifier(), X, y, n_resamples=20, random_state=0)
    >>> error.training  # a tree knows the rows it has seen by heart
    0.0
    >>> error.training < error.e632 < error.e632_plus < error.out_of_bag < 0.1
    True
    """
    check_arguments(_ARGUMENTS, locals(), "bootstrap_error")
    _check_estimator(estimator, scoring)
    n_threads = resolve_n_jobs(n_jobs)
    sample = _check_rows(X, y, is_classifier(estimator))
    target = np.asarray(sample.parts[1])
    draws = _Draws.of(target, seed_of(random_state), stratify, estimator)
    loss = loss_of(estimator, scoring)

    with unwatched():
        learner = seeded_clone(estimator, int(stream(draws.seed, 0))).fit(*sample.parts)
        prediction = _predict(learner, sample.parts[0], target)
    losses = row_losses(loss, target, prediction, "the rows that all were fitted to")
    parts = estimator, sample, target, loss, draws, int(n_resamples)
    process = (
        SpreadFits(*parts, 2, n_workers=workers_wanted(n_jobs))
        if processes_wanted()
        else BootstrapFits(*parts, n_threads)
    )
    drive(process, process, max_time=max_time, on_interrupt=on_interrupt, verbose=verbose)
    if not process.rounds:  # interrupted at once: there is nothing to keep
        raise KeyboardInterrupt
    process.warn_of_single_classes()
    return _summary(
        float(losses.mean()), process.totals, no_information_error(loss, target, prediction)
    )


@dataclass(frozen=True)
class _Draws:
    """Bootstrap samples of the rows, of each stratum by itself."""

    seed: int
    strata: tuple[np.ndarray, ...]
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, target: np.ndarray, seed: int, stratify: bool, estimator: Any) -> _Draws:
        strata = [np.arange(len(target))]
        if stratify:
            if not is_classifier(estimator):
                raise ValueError(
                    f"stratify=True keeps the sizes of classes, but {type(estimator).__name__} is "
                    "no classifier. Use stratify=False."
                )
            codes = label_codes(target, len(target), "y")
            strata = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
        lines = tuple(Line(np.ones(len(rows))) for rows in strata)
        return cls(seed, tuple(strata), lines)

    def counts(self, number: int) -> np.ndarray:
        """How often each row is in sample `number`."""
        if len(self.strata) == 1:
            return multiplicities(self.lines[0], self.seed, number)
        counts = np.empty(sum(map(len, self.strata)), np.int32)
        for stratum, (rows, line) in enumerate(zip(self.strata, self.lines, strict=True)):
            counts[rows] = multiplicities(line, int(stream(self.seed, stratum)), number)
        return counts


class _Totals(NamedTuple):
    """Sums over samples: losses float64 (n,) and times out of bag int64 (n,) of each row.

    `pending` holds the losses of samples that are done but not yet added, by number.
    """

    losses: np.ndarray
    times: np.ndarray
    by_resample: tuple[float, ...]
    pending: dict[int, tuple[np.ndarray, np.ndarray]]

    def added_up(self) -> _Totals:
        """With what was pending, in the order of the samples: threads do not show."""
        losses, times, by_resample = self.losses.copy(), self.times.copy(), list(self.by_resample)
        for _, (rows, own) in sorted(self.pending.items()):
            losses[rows] += own
            times[rows] += 1
            by_resample.append(float(own.mean()) if len(own) else np.nan)
        return _Totals(losses, times, tuple(by_resample), {})


class BootstrapFits:
    """The process that fits the samples and predicts what they leave out.

    Its name is read by people who use up their time or interrupt it.
    """

    unit = "resample"

    def __init__(
        self,
        estimator: Any,
        sample: Sample,
        target: np.ndarray,
        loss: RowLoss,
        draws: _Draws,
        n_resamples: int,
        n_threads: int,
    ) -> None:
        self.total: int | None = n_resamples
        self._estimator, self._sample, self._target = estimator, sample, target
        self._loss, self._draws, self._n_threads = loss, draws, n_threads
        self._next = 0
        self._end = n_resamples
        n_rows = len(target)
        self._totals = _Totals(np.zeros(n_rows), np.zeros(n_rows, np.int64), (), {})
        self._single_classes: list[int] = []
        self._settings = get_config()
        with unwatched():  # these fits are parts of one
            self._context = copy_context()

    @property
    def totals(self) -> _Totals:
        return self._totals.added_up()

    @property
    def rounds(self) -> int:
        return len(self._totals.by_resample) + len(self._totals.pending)

    @property
    def finished(self) -> bool:
        return self._next == self._end

    def advance(self, work: float) -> float:
        first = self._next
        count = min(self._end - first, max(self._n_threads, int(work / _WORK_OF_A_FIT)))

        def fit(tile: int) -> None:
            self._context.copy().run(self._fit, first + tile)

        run_tiles(fit, count, self._n_threads)
        self._totals = self._totals.added_up()
        self._next = first + count
        return count * _WORK_OF_A_FIT

    def losses_of(self, number: int) -> tuple[tuple[np.ndarray, np.ndarray], bool]:
        """What sample `number` leaves out and its losses; whether it held one class only."""
        self._fit(number)
        return self._totals.pending.pop(number), bool(self._single_classes)

    def _fit(self, number: int) -> None:
        # threads know neither scikit-learn's settings nor that the cores are spoken for
        one_core = joblib.parallel_config(n_jobs=1) if self._n_threads > 1 else nullcontext()
        with config_context(**self._settings), one_core:
            try:
                self._totals.pending[number] = self._out_of_bag_losses(number)
            except Exception as error:
                error.add_note(f"Resample {number} of bootstrap_error was being fitted.")
                raise

    def _out_of_bag_losses(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that the sample leaves out, and their losses."""
        counts = self._draws.counts(number)
        outside = np.flatnonzero(counts == 0)
        if not len(outside):
            return outside, np.empty(0)
        X, y = self._sample.take(np.repeat(np.arange(len(counts)), counts))
        unseen = self._sample.take(outside)[0]
        target = self._target[outside]
        learner = seeded_clone(self._estimator, int(stream(self._draws.seed, number + 1)))
        try:
            prediction = _predict(learner.fit(X, y), unseen, target)
        except ValueError:
            label = np.asarray(y)[0]
            if not is_classifier(learner) or np.any(np.asarray(y) != label):
                raise
            self._single_classes.append(number)
            prediction = np.full(len(outside), label)
        return outside, row_losses(self._loss, target, prediction, f"resample {number}")

    def warn_of_single_classes(self) -> None:
        if self._single_classes:
            warn(
                f"{len(self._single_classes)} of {self.rounds} resamples held one class only, to "
                f"which {type(self._estimator).__name__} cannot be fitted; they predict this "
                "class. stratify=True keeps all classes in all resamples."
            )

    def read_steps(self) -> list[Any]:
        return []

    def figures(self) -> dict[str, float]:
        by_resample = [error for error in self.totals.by_resample if not np.isnan(error)]
        return {"error": float(np.mean(by_resample))} if by_resample else {}


def _summary(training: float, totals: _Totals, no_information: float) -> BootstrapError:
    was_out = totals.times > 0
    never = int(np.count_nonzero(~was_out))
    if never == len(was_out):
        raise ValueError(
            f"No row was ever out of bag in {len(totals.by_resample)} resamples, so there is no "
            "error to tell. Raise n_resamples."
        )
    if never:
        warn(
            f"{never} of {len(was_out)} rows were in every resample and are left out of "
            "out_of_bag. Raise n_resamples for an error over all rows."
        )
    out_of_bag = float(np.mean(totals.losses[was_out] / totals.times[was_out]))
    bounded = min(out_of_bag, no_information)
    rate = (bounded - training) / (no_information - training) if bounded > training else 0.0
    e632 = 0.368 * training + 0.632 * out_of_bag
    e632_plus = e632 + (bounded - training) * 0.368 * 0.632 * rate / (1.0 - 0.368 * rate)
    return BootstrapError(
        training, out_of_bag, no_information, rate, e632, e632_plus,
        0.632 / (1.0 - 0.368 * rate), never, np.array(totals.by_resample),
    )  # fmt: skip


def _check_estimator(estimator: Any, scoring: Any) -> None:
    lacking = [name for name in ("fit", "predict", "get_params") if not hasattr(estimator, name)]
    if lacking or isinstance(estimator, type):
        raise TypeError(
            "estimator must be an instance of a classifier or a regressor, with fit, predict and "
            f"get_params. Got {estimator!r} instead."
        )
    if not callable(scoring) and not is_classifier(estimator) and not is_regressor(estimator):
        raise ValueError(
            f"{type(estimator).__name__} is neither a classifier nor a regressor, so scoring must "
            "be a callable loss(y_true, y_pred) that returns a loss for each row."
        )


def _check_rows(X: Any, y: Any, has_classes: bool) -> Sample:
    if y is None:
        raise ValueError("y is None. Pass the targets: errors are about them.")
    x_part = check_sample(X, as_arrays=False, name="X")
    y_part = check_sample(y, as_arrays=True, name="y")
    if x_part.n_rows != y_part.n_rows:
        raise ValueError(f"X has {x_part.n_rows} rows, but y has {y_part.n_rows}.")
    target = y_part.parts[0]
    if target.dtype == object:  # nullable columns hold numbers as objects
        plain = np.asarray(target.tolist())
        target = plain if plain.dtype.kind in "biuf" else target
    if target.ndim > (1 if has_classes else 2):
        raise ValueError(
            f"y has shape {target.shape}. One label for each of the {len(target)} rows is needed."
        )
    return Sample((x_part.parts[0], target), x_part.n_rows)


class SpreadFits(BootstrapFits):
    """The same, samples fitted by the workers of the joblib backend in effect."""

    def __init__(self, *given: Any, n_workers: int) -> None:
        super().__init__(*given)
        self._given, self._n_workers = given, n_workers
        self._coming: Iterator[tuple[tuple[np.ndarray, np.ndarray], bool]] | None = None

    def advance(self, work: float) -> float:
        if self._coming is None:
            calls = [(number, self._settings) for number in range(self._end)]
            self._coming = spread(_fitted, self._given, calls, self._n_workers)
        self._totals.pending[self._next], held_one_class = next(self._coming)
        if held_one_class:
            self._single_classes.append(self._next)
        self._totals = self._totals.added_up()
        self._next += 1
        return work


def _fitted(
    given: tuple[Any, ...], number: int, settings: dict[str, Any]
) -> tuple[tuple[np.ndarray, np.ndarray], bool]:
    """What a worker does."""
    own = BootstrapFits(*given)
    own._settings = settings
    with unwatched():
        return own.losses_of(number)


def _predict(learner: Any, X: Any, target: np.ndarray) -> np.ndarray:
    prediction = np.asarray(learner.predict(X))
    if prediction.shape != target.shape and prediction.size == target.size:
        return prediction.reshape(target.shape)  # a column of one output
    return prediction
