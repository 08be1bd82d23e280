"""The error of a learner on rows it has not seen, estimated by refitting it on bootstrap samples.

Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method:

    err    training error: the mean loss of the learner fitted to all rows, on these rows
    Err1   leave-one-out bootstrap error: 1/n sum_i of the mean loss on row i of the learners whose
           samples do not contain row i
    .632   0.368 err + 0.632 Err1
    gamma  no-information error: the mean loss over all pairs of a target and a prediction
    R      (Err1' - err) / (gamma - err), where Err1' = min(Err1, gamma), if both are above err,
           else 0
    .632+  .632 + (Err1' - err) 0.368 0.632 R / (1 - 0.368 R)
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier, is_regressor
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
from margrove.ensemble.bagging import seeded_clone
from margrove.ensemble.bootstrap.arguments import Sample, check_arguments, check_sample
from margrove.ensemble.bootstrap.fits import (
    BootstrapFits,
    LossTotals,
    SpreadFits,
    StratifiedDraws,
    predictions_of,
)
from margrove.ensemble.bootstrap.intervals import warn
from margrove.ensemble.bootstrap.losses import (
    Loss,
    loss_of,
    no_information_error,
    row_losses,
)
from margrove.ensemble.bootstrap.resampling import stream

__all__ = ["BootstrapError", "bootstrap_error"]

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
        it. It tends to be too high, because each learner has seen only 63 % of the rows.
    no_information : float
        gamma, the mean loss if targets were independent of predictions.
    overfitting_rate : float
        R, from 0 (no overfitting) to 1 (the fit is useless for new rows).
    e632 : float
        0.368 training + 0.632 out_of_bag.
    e632_plus : float
        The .632+ estimate. The more the learner overfits, the closer it is to `out_of_bag`.
    e632_plus_weight : float
        The weight of `out_of_bag` in it, from 0.632 to 1; `training` has the rest. (If `out_of_bag`
        is above `no_information`, some of its weight is given to the latter.)
    never_out_of_bag : int
        Number of rows that were in every sample; `out_of_bag` is the mean over the others.
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
        Any scikit-learn estimator. It is not changed: clones are fitted, once to all rows and once
        to each sample. If its `random_state` is None, clones get one that depends on the
        `random_state` given here and on the number of their sample.
    X : array-like, frame or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,) or, for regressors, (n_rows, n_outputs)
    n_resamples : int, default=100
    scoring : "error" or callable, optional
        The loss. By default, and with "error": for classifiers 1 for a wrong class, else 0;
        for regressors the squared error, averaged over the outputs. A callable
        ``loss(y_true, y_pred)`` returns a loss for each row.
    stratify : bool, default=False
        Whether each class keeps its size in all samples.
    n_jobs : int, optional
        Number of threads, which does not change the result. None is 1, -1 is all cores.
    random_state : int, RandomState, Generator or None, default=None
        Sample b depends only on it and on b.
    verbose : int, default=0
        Above 0, a progress bar.
    max_time : float, optional
        Seconds after which to stop, with a warning, and to use the samples done so far.
    on_interrupt : {"raise", "keep"}, default="raise"
        Whether Ctrl-C raises, or keeps the samples done so far with a warning.

    Returns
    -------
    BootstrapError

    Warns
    -----
    DataWarning
        If rows were in every sample, and if samples with a single class could not be fitted: such
        a sample predicts its class.

    Notes
    -----
    The no-information error is exact for "error". With a callable it is exact up to 33 million
    pairs of targets and predictions; for more pairs, it uses an evenly spaced subset of the
    predictions.

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
    >>> error.training  # a full tree fits the training rows exactly
    0.0
    >>> error.training < error.e632 < error.e632_plus < error.out_of_bag < 0.1
    True
    """
    check_arguments(_ARGUMENTS, locals(), "bootstrap_error")
    _check_estimator(estimator, scoring)
    n_threads = resolve_n_jobs(n_jobs)
    sample = _check_rows(X, y, is_classifier(estimator))
    target = np.asarray(sample.parts[1])
    draws = StratifiedDraws.of(target, seed_of(random_state), stratify, estimator)
    loss = loss_of(estimator, scoring)

    with unwatched():
        learner = seeded_clone(estimator, int(stream(draws.seed, 0))).fit(*sample.parts)
        prediction = predictions_of(learner, sample.parts[0], target)
    losses = row_losses(loss, target, prediction, "the rows of the fit to all rows")
    problem = estimator, sample, target, loss, draws, int(n_resamples)
    process = (
        SpreadFits(*problem, 2, n_workers=workers_wanted(n_jobs))
        if processes_wanted()
        else BootstrapFits(*problem, n_threads)
    )
    drive(process, process, max_time=max_time, on_interrupt=on_interrupt, verbose=verbose)
    if not process.rounds:  # interrupted before the first sample: there is nothing to keep
        raise KeyboardInterrupt
    process.warn_of_single_classes()
    return _summary(
        float(losses.mean()), process.totals, no_information_error(loss, target, prediction)
    )


def _summary(training: float, totals: LossTotals, no_information: float) -> BootstrapError:
    was_out = totals.times > 0
    never = int(np.count_nonzero(~was_out))
    if never == len(was_out):
        raise ValueError(
            f"No row was out of bag in any of {len(totals.by_resample)} resamples, so the error "
            "cannot be estimated. Raise n_resamples."
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
    missing = [name for name in ("fit", "predict", "get_params") if not hasattr(estimator, name)]
    if missing or isinstance(estimator, type):
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
        raise ValueError("y is None. Pass the targets: they are needed to compute errors.")
    features = check_sample(X, as_arrays=False, name="X")
    targets = check_sample(y, as_arrays=True, name="y")
    if features.n_rows != targets.n_rows:
        raise ValueError(f"X has {features.n_rows} rows, but y has {targets.n_rows}.")
    target = targets.parts[0]
    if target.dtype == object:  # nullable columns hold numbers as objects
        numbers = np.asarray(target.tolist())
        target = numbers if numbers.dtype.kind in "biuf" else target
    if target.ndim > (1 if has_classes else 2):
        raise ValueError(
            f"y has shape {target.shape}. One label for each of the {len(target)} rows is needed."
        )
    return Sample((features.parts[0], target), features.n_rows)
