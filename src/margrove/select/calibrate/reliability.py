"""Reliability of probabilities: of the rows with probability 0.7, are 70 % of the class?

Rows are put into bins by their probability p_i. With y_i = 1 where it came true and weights w_i,
bin b has

    predicted_b   mean of p_i
    observed_b    share of y_i
    share_b       its weight as a share of all

    expected error   sum_b share_b |observed_b - predicted_b|    (Naeini et al. 2015, ECE)
    maximum error    max_b |observed_b - predicted_b|            (MCE)
    adaptive error   the expected error over bins of equal weight

    Brier score      mean (p_i - y_i)^2  =  calibration - resolution + uncertainty + within bins
    calibration      sum_b share_b (observed_b - predicted_b)^2
    resolution       sum_b share_b (observed_b - mean y)^2
    uncertainty      mean y (1 - mean y)
    within bins      mean (p_i - predicted_b)^2 - 2 mean (p_i - predicted_b)(y_i - observed_b),
                     0 where all p_i of a bin are the same

The first three terms are Murphy's (1973), the last makes the equation exact for bins (Stephenson,
Coelho and Jolliffe 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_labels, check_weights, data_frame
from margrove.ensemble.bootstrap import check_arguments
from margrove.select.calibrate.reliability_figures import (
    BrierDecomposition,
    ProbabilityBins,
    ReliabilityCurve,
    reliability_curve,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from margrove.plot.drawing import Picture

__all__ = ["Reliability", "reliability", "reliability_of"]

_EPS = float(np.finfo(np.float64).eps)

_SUMS_TO_ONE = 1e-3

_ARGUMENTS: dict[str, list[Any]] = {
    "n_bins": [Interval(Integral, 1, None, closed="left")],
    "strategy": [StrOptions({"uniform", "quantile"})],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
}


@dataclass(frozen=True, eq=False, repr=False)
class Reliability:
    """How far the probabilities of a classifier can be trusted.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    by_class : tuple of ReliabilityCurve
        For each class, its observed share against its predicted probability.
    top_label : ReliabilityCurve
        For the most probable class, how often it was right against its predicted probability.
    brier : BrierDecomposition
    log_loss : float
        The mean of -log(probability of the true class); probabilities are at least 2.2e-16 here.
    n_rows : int
        Rows of positive weight.
    n_bins : int
    strategy : {"uniform", "quantile"}
    confidence_level : float
        Of the intervals of the curves.
    """

    classes: np.ndarray
    by_class: tuple[ReliabilityCurve, ...]
    top_label: ReliabilityCurve
    brier: BrierDecomposition
    log_loss: float
    n_rows: int
    n_bins: int
    strategy: Literal["uniform", "quantile"]
    confidence_level: float

    @property
    def curve(self) -> ReliabilityCurve:
        """The curve of the second of two classes; with more classes, that of the top label."""
        return self.by_class[1] if len(self.classes) == 2 else self.top_label

    @property
    def expected_error(self) -> float:
        """The expected calibration error (ECE) of `curve`."""
        return self.curve.expected_error

    @property
    def maximum_error(self) -> float:
        """The maximum calibration error (MCE) of `curve`."""
        return self.curve.maximum_error

    @property
    def adaptive_error(self) -> float:
        """The expected calibration error of `curve` over bins of equal weight."""
        return self.curve.adaptive_error

    @property
    def classwise_error(self) -> float:
        """The mean over the classes of their expected errors (Kull et al. 2019)."""
        return float(np.mean([curve.expected_error for curve in self.by_class]))

    def frame(self) -> Any:
        """All curves as a pandas DataFrame, a row for each bin of each curve.

        Returns
        -------
        pandas.DataFrame
        """
        curves = self.by_class if len(self.classes) == 2 else (self.top_label, *self.by_class)
        columns: dict[str, Any] = {
            "curve": [curve.name for curve in curves for _ in range(len(curve.weight))]
        }
        for name in ("lower", "upper", "predicted", "observed", "low", "high", "weight"):
            columns[name] = np.concatenate([getattr(curve, name) for curve in curves])
        return data_frame(columns)

    def plot(self, *, ax: Axes | None = None, **settings: Any) -> Picture:
        """Draw the curve: see `margrove.plot.reliability_diagram`.

        Returns
        -------
        Picture
        """
        from margrove.plot.predictions import reliability_diagram

        return reliability_diagram(self, ax=ax, **settings)

    def __repr__(self) -> str:
        return (
            f"Reliability({len(self.classes)} classes, {self.n_rows} rows, "
            f"expected_error={self.expected_error:.4g}, brier={self.brier.score:.4g}, "
            f"log_loss={self.log_loss:.4g})"
        )

    def __str__(self) -> str:
        brier = self.brier
        figures = [
            ("expected error", self.expected_error),
            ("  by chance alone", self.curve.chance_error),
            ("maximum error", self.maximum_error),
            ("adaptive error", self.adaptive_error),
            ("Brier score", brier.score),
            ("  calibration", brier.calibration),
            ("  resolution", brier.resolution),
            ("  uncertainty", brier.uncertainty),
            ("log loss", self.log_loss),
        ]
        heading = f"reliability of {self._subject()}, {self.n_rows} rows in {self.n_bins} bins"
        bins = [f"{'predicted':>10} {'observed':>10}  {'weight':>8}"]
        for predicted, observed, weight in zip(
            self.curve.predicted, self.curve.observed, self.curve.weight, strict=True
        ):
            bins.append(f"{predicted:10.3f} {observed:10.3f}  {weight:8.6g}")
        return "\n".join([heading, *(f"{name:18} {value:.6g}" for name, value in figures), *bins])

    def _subject(self) -> str:
        return f"class {self.curve.name}" if len(self.classes) == 2 else "the top label"


# -- functions -----------------------------------------------------------------------------------


def reliability(
    model: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile"] = "uniform",
    confidence_level: float = 0.95,
) -> Reliability:
    """Compare the probabilities of a fitted classifier with the observed classes.

    Parameters
    ----------
    model : fitted classifier with predict_proba
        Of margrove, or any other with scikit-learn's API.
    X, y : rows and their classes
        Rows that the model has not seen: on its training rows it is overconfident.
    sample_weight : array of shape (n,), optional
        A weight k counts as k copies of the row, except in the intervals: these use the effective
        number of rows (sum w)^2 / sum w^2, because a weight is no new evidence.
    n_bins : int, default=10
        The most bins; bins without rows are left out.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of about equal weight. Equal probabilities stay in one bin.
    confidence_level : float, default=0.95
        Of the intervals.

    Returns
    -------
    Reliability

    See Also
    --------
    margrove.calibrate : Fit a classifier with better probabilities.

    Examples
    --------
    >>> import margrove
    >>> from margrove.select.calibrate.reliability import reliability
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> forest = margrove.RandomForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> found = reliability(forest, X[1::2], y[1::2], n_bins=5)
    >>> found.curve.name, found.expected_error < 0.1
    ('top label', True)
    >>> b = found.brier
    >>> abs(b.calibration - b.resolution + b.uncertainty + b.within_bins - b.score) < 1e-12
    True
    """
    return reliability_of(
        probabilities_by(model, X),
        y,
        classes=model.classes_,
        sample_weight=sample_weight,
        n_bins=n_bins,
        strategy=strategy,
        confidence_level=confidence_level,
    )


def reliability_of(
    probabilities: Any,
    y: Any,
    *,
    classes: Any = None,
    sample_weight: Any = None,
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile"] = "uniform",
    confidence_level: float = 0.95,
) -> Reliability:
    """Compare given probabilities with the observed classes.

    Parameters
    ----------
    probabilities : array-like of shape (n, n_classes), or (n,)
        A column for each class; or the probability of the second of two classes.
    y : array-like of shape (n,)
        The observed classes.
    classes : array-like of shape (n_classes,), optional
        The class of each column; by default those of y, sorted.
    sample_weight, n_bins, strategy, confidence_level
        As for `reliability`.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> from margrove.select.calibrate.reliability import reliability_of
    >>> found = reliability_of([0.1, 0.1, 0.1, 0.6, 0.6], [0, 0, 1, 1, 1])
    >>> found.curve.observed.round(3).tolist(), round(found.expected_error, 3)
    ([0.333, 1.0], 0.3)
    """
    check_arguments(_ARGUMENTS, locals(), "reliability")
    given = _checked_probabilities(probabilities)
    labels = check_labels(y, len(given))
    known = labels.classes if classes is None else np.asarray(classes)
    if given.shape[1] != len(known):
        raise ValueError(
            f"probabilities has {given.shape[1]} columns, but there are {len(known)} classes: "
            f"{known.tolist()}. Pass classes=, one for each column."
        )
    codes = labels.codes_among(known)
    if (codes < 0).any():
        unknown = labels.classes.tolist()[labels.codes[int(np.argmax(codes < 0))]]
        raise ValueError(
            f"y has the class {unknown!r}, which is not among the classes {known.tolist()}."
        )
    weight = check_weights(sample_weight, len(given))
    return _compared(given, codes, known, weight, int(n_bins), strategy, confidence_level)


def _compared(
    given: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    weight: np.ndarray,
    n_bins: int,
    strategy: Literal["uniform", "quantile"],
    confidence_level: float,
) -> Reliability:
    counted = weight > 0
    given, codes, weight = given[counted], codes[counted], weight[counted]
    curves, brier_terms = [], []
    for k, name in enumerate(np.asarray(classes).tolist()):
        came_true = (codes == k).astype(np.float64)
        bins = ProbabilityBins.of(given[:, k], came_true, weight, n_bins, strategy)
        curves.append(reliability_curve(str(name), bins, n_bins, confidence_level))
        brier_terms.append(bins.brier())
    top = given.argmax(axis=1)
    top_bins = ProbabilityBins.of(
        given[np.arange(len(top)), top], (top == codes).astype(np.float64), weight, n_bins, strategy
    )
    # Two classes have the same score: like scikit-learn, count it once.
    counted_terms = brier_terms[1:] if len(brier_terms) == 2 else brier_terms
    truth = np.maximum(given[np.arange(len(codes)), codes], _EPS)
    return Reliability(
        classes=np.asarray(classes),
        by_class=tuple(curves),
        top_label=reliability_curve("top label", top_bins, n_bins, confidence_level),
        brier=BrierDecomposition(*(float(total) for total in np.sum(counted_terms, axis=0))),
        log_loss=float(np.average(-np.log(truth), weights=weight)),
        n_rows=len(weight),
        n_bins=n_bins,
        strategy=strategy,
        confidence_level=confidence_level,
    )


def probabilities_by(model: Any, X: Any) -> np.ndarray:
    """The result of `predict_proba`, or an error that says how to get probabilities."""
    name = type(model).__name__
    if isinstance(model, type):
        raise TypeError(f"model must be a fitted classifier. Got the class {model.__name__}.")
    if not hasattr(model, "predict_proba"):
        check_is_fitted(model)
        how = "or fit it with probability=True" if hasattr(model, "probability") else ""
        raise TypeError(
            f"model has no predict_proba: {name}. Use margrove.calibrate to get probabilities"
            f"{', ' if how else ''}{how}."
        )
    check_is_fitted(model)
    if not hasattr(model, "classes_"):
        raise TypeError(f"model has no classes_, which reliability needs: {name}.")
    found = model.predict_proba(X)
    if isinstance(found, list):
        raise ValueError(
            f"This {name} predicts {len(found)} outputs at once. Fit a model for each of them, or "
            "use reliability_of for each output's probabilities."
        )
    return np.asarray(found, dtype=np.float64)


def _checked_probabilities(probabilities: Any) -> np.ndarray:
    given = np.asarray(probabilities)
    if given.dtype.kind not in "biuf" or given.ndim not in (1, 2) or not given.size:
        raise ValueError(
            "probabilities must be numbers of shape (n, n_classes), or (n,) for the second of two "
            f"classes. Got shape {given.shape} of {given.dtype}."
        )
    given = given.astype(np.float64)
    if not np.isfinite(given).all() or given.min() < -_EPS or given.max() > 1.0 + 1e-5:
        raise ValueError(
            "probabilities must be from 0 to 1. Got "
            f"{given.min():g} to {given.max():g}: for scores of a decision_function, use "
            "margrove.calibrate first."
        )
    given = np.clip(given, 0.0, 1.0)
    if given.ndim == 1:
        return np.column_stack([1.0 - given, given])
    off = np.abs(given.sum(axis=1) - 1.0)
    if given.shape[1] > 1 and off.max() > _SUMS_TO_ONE:
        raise ValueError(
            "The probabilities of a row must add up to 1. Those of row "
            f"{int(off.argmax())} add up to {given[off.argmax()].sum():g}."
        )
    return given
