"""Facts about predictions: confusion, curves, margins, residuals, mistakes.

ConfusionMatrix        how often each class was predicted as each
RocCurve(s), PrecisionRecallCurve(s)    one class against the others, threshold by threshold
MarginFacts            how far rows are on the right side of the decision
ResidualFacts          errors of a regressor
Mistake, WorstMistakes    the rows with the largest errors
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove._data import data_frame
from margrove.facts.plain_values import Plain

__all__ = [
    "ConfusionMatrix",
    "MarginFacts",
    "Mistake",
    "PrecisionRecallCurve",
    "PrecisionRecallCurves",
    "ResidualFacts",
    "RocCurve",
    "RocCurves",
    "WorstMistakes",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfusionMatrix(Plain):
    """How often each true class was predicted as each class.

    Attributes
    ----------
    classes : tuple of str
        Those of the model in its order, then others that are in y.
    counts : ndarray of shape (n_classes, n_classes)
        The number (or weight) of samples, by true class (rows) and predicted class (columns).
    """

    classes: tuple[str, ...]
    counts: np.ndarray

    @property
    def total(self) -> float:
        """The number of samples, or their weight."""
        return float(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """The share of samples that are predicted correctly."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def support(self) -> np.ndarray:
        """The number (or weight) of samples of each class."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def shares(self) -> np.ndarray:
        """Each row as shares of its sum; NaN for a class without samples."""
        return _ratio(self.counts, self.support[:, None])

    @property
    def recall(self) -> np.ndarray:
        """The share of the samples of each class that is found; NaN without samples."""
        return _ratio(np.diag(self.counts), self.support)

    @property
    def precision(self) -> np.ndarray:
        """The share of the predictions of each class that is right; NaN without predictions."""
        return _ratio(np.diag(self.counts), self.counts.sum(axis=0))

    @property
    def f1(self) -> np.ndarray:
        """The harmonic mean of both: 2 right / (samples of the class + predictions of it)."""
        return _ratio(2.0 * np.diag(self.counts), self.support + self.counts.sum(axis=0))

    def confused(self, n: int = 10) -> tuple[tuple[str, str, float], ...]:
        """The n most frequent mistakes: (true class, predicted class, number of samples)."""
        wrong = self.counts * (1 - np.eye(len(self.classes), dtype=self.counts.dtype))
        order = np.argsort(-wrong, axis=None, kind="stable")[:n]
        true, predicted = np.unravel_index(order, wrong.shape)
        return tuple(
            (self.classes[i], self.classes[j], float(wrong[i, j]))
            for i, j in zip(true.tolist(), predicted.tolist(), strict=True)
            if wrong[i, j] > 0
        )

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each pair of classes."""
        k = len(self.classes)
        return data_frame(
            {
                "true": np.repeat(np.array(self.classes, dtype=object), k),
                "predicted": np.tile(np.array(self.classes, dtype=object), k),
                "rows": self.counts.ravel(),
            }
        )


def _ratio(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(totals > 0, counts / totals, np.nan), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class RocCurve(Plain):
    """One class against the others: true positive rate against false positive rate.

    Attributes
    ----------
    name : str
        The positive class.
    false_positive_rate, true_positive_rate, thresholds : ndarray
        From (0, 0) on, as in scikit-learn; the first threshold is infinite.
    area : float
        Under the curve: the probability that a row of the class has a higher score than another.
    share : float
        Of the rows (or their weight) that are of the class.
    """

    name: str
    false_positive_rate: np.ndarray
    true_positive_rate: np.ndarray
    thresholds: np.ndarray
    area: float
    share: float


@dataclass(frozen=True, kw_only=True, eq=False)
class RocCurves(Plain):
    """ROC curves of some classes.

    Attributes
    ----------
    curves : tuple of RocCurve
        For two classes only that of the second, which determines the other.
    undefined : tuple of str
        Classes that have no curve, because no row or every row is of the class.
    score : {"predict_proba", "decision_function"}
        The method whose values thresholds are compared with.
    """

    curves: tuple[RocCurve, ...]
    undefined: tuple[str, ...]
    score: str

    @property
    def area(self) -> float:
        """The mean over the curves; NaN if there are none."""
        areas = [curve.area for curve in self.curves]
        return float(np.mean(areas)) if areas else float("nan")

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each point of each curve."""
        names = ("false_positive_rate", "true_positive_rate", "thresholds")
        return _frame_of_curves(self.curves, names)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionRecallCurve(Plain):
    """One class against the others: precision against recall.

    Attributes
    ----------
    name : str
    recall, precision, thresholds : ndarray
        As in scikit-learn, recall falls; the last point, (0, 1), has threshold infinity.
    average_precision : float
        The mean of the precisions, weighted by the increase of the recall.
    share : float
        Of the rows that are of the class: the precision if the class is always predicted.
    """

    name: str
    recall: np.ndarray
    precision: np.ndarray
    thresholds: np.ndarray
    average_precision: float
    share: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionRecallCurves(Plain):
    """Curves of classes, with the attributes of `RocCurves`."""

    curves: tuple[PrecisionRecallCurve, ...]
    undefined: tuple[str, ...]
    score: str

    @property
    def average_precision(self) -> float:
        """The mean over the curves; NaN if there are none."""
        found = [curve.average_precision for curve in self.curves]
        return float(np.mean(found)) if found else float("nan")

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each point of each curve."""
        return _frame_of_curves(self.curves, ("recall", "precision", "thresholds"))


def _frame_of_curves(curves: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    columns: dict[str, Any] = {
        "class": [curve.name for curve in curves for _ in range(len(curve.thresholds))]
    }
    for name in names:
        points = [getattr(curve, name) for curve in curves]
        columns[name.removesuffix("s")] = np.concatenate(points) if points else np.empty(0)
    return data_frame(columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginFacts(Plain):
    """Margins of rows: how far they are on the right side of the decision.

    Attributes
    ----------
    margins : ndarray of shape (n_samples,)
        Row by row, negative for rows on the wrong side.
    codes : ndarray of int
        The class of each row, by its place in `classes`.
    classes : tuple of str
    measure : str
        What a margin is, in words.
    level : float or None
        The margin from which on rows have no loss: 1 for a support vector machine.
    """

    margins: np.ndarray
    codes: np.ndarray
    classes: tuple[str, ...]
    measure: str
    level: float | None

    @property
    def n_wrong(self) -> int:
        """The number of rows on the wrong side."""
        return int(np.count_nonzero(self.margins < 0))

    @property
    def n_inside(self) -> int | None:
        """The number of rows on the right side, but inside the margin; None without a level."""
        if self.level is None:
            return None
        return int(np.count_nonzero((self.margins >= 0) & (self.margins < self.level)))

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each row."""
        classes = np.array(self.classes, dtype=object)
        return data_frame({"class": classes[self.codes], "margin": self.margins})


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualFacts(Plain):
    """Errors of a regressor: prediction minus truth.

    Attributes
    ----------
    truth, predictions, residuals : ndarray of shape (n_samples,)
    r2 : float or None
        The share of the variance that is explained; None for a single row.
    mean_absolute_error, root_mean_squared_error, median_absolute_error : float
    bias : float
        The mean residual: positive if predictions are too high.
    constant_error : float
        The root mean squared error of predicting the mean of these rows for all of them.
    """

    truth: np.ndarray
    predictions: np.ndarray
    residuals: np.ndarray
    r2: float | None
    mean_absolute_error: float
    root_mean_squared_error: float
    median_absolute_error: float
    bias: float
    constant_error: float

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each row."""
        return data_frame(
            {"truth": self.truth, "prediction": self.predictions, "residual": self.residuals}
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Mistake(Plain):
    """A row that a model predicts wrongly.

    Attributes
    ----------
    row : int
    truth, prediction : str or float
        A class in words, or a number.
    size : float
        See `WorstMistakes.measure`; NaN if the model predicts labels only.
    """

    row: int
    truth: str | float
    prediction: str | float
    size: float


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstMistakes(Plain):
    """The rows with the largest errors, the largest first; if tied, the first row.

    Attributes
    ----------
    mistakes : tuple of Mistake
    measure : str
        What their size is, in words.
    n_wrong : int
        Rows that are misclassified, or whose error is not zero.
    n_rows : int
    """

    mistakes: tuple[Mistake, ...]
    measure: str
    n_wrong: int
    n_rows: int

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each mistake."""
        names = ("row", "truth", "prediction", "size")
        return data_frame({name: [getattr(one, name) for one in self.mistakes] for name in names})
