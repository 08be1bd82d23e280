"""Probabilities for any classifier, from scores of rows that it has not seen.

    scores     s_i of row i, by the estimator fitted without its fold: values of
               decision_function, or of predict_proba where there is none
    map        a sigmoid, p = 1 / (1 + exp(-(A s + B))) (Platt 1999), or a rising step function
               (isotonic regression; Zadrozny and Elkan 2002), fitted to the s_i of all rows
    model      the estimator fitted to all rows, and the map after it

With three or more classes each has its own map, and the results are divided by their sum.
scikit-learn's CalibratedClassifierCV(ensemble=False) fits the model. This module adds the choice of
the map, and a fair estimate of the probabilities on rows that neither estimator nor map has seen.

For that estimate, pairs of folds are left out. A map for fold k needs scores that do not depend on
k: fold j is scored by the estimator fitted without j and k. The same estimator scores k for the map
of j, so K folds take K (K - 1) / 2 fits. The rows of fold k are scored by the estimator fitted
without k.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils._param_validation import Interval, StrOptions

from margrove._data import data_frame
from margrove._runtime import RANDOM_STATE
from margrove.ensemble.bootstrap import check_arguments
from margrove.select.calibrate.reliability import Reliability, reliability_of
from margrove.select.calibrate.score_maps import (
    HeldOutScores,
    best_method,
    calibrated_fold,
    cross_fitted,
    fold_scores,
    join_scores,
    losses_of_methods,
    pair_scores,
)
from margrove.select.held_out import (
    Folds,
    LearningRows,
    require_estimator,
    weight_arguments,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from margrove.plot.drawing import Picture

__all__ = ["Calibrated", "calibrate"]

_EPS = float(np.finfo(np.float64).eps)

_ARGUMENTS: dict[str, list[Any]] = {
    "method": [StrOptions({"sigmoid", "isotonic", "auto"})],
    "scoring": [StrOptions({"log_loss", "brier"})],
    "nested": ["boolean"],
    "n_bins": [Interval(Integral, 1, None, closed="left")],
    "strategy": [StrOptions({"uniform", "quantile"})],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
}


@dataclass(frozen=True, eq=False, repr=False)
class Calibrated:
    """A calibrated classifier, and its reliability before and after.

    Attributes
    ----------
    model : fitted classifier
        With predict_proba. It predicts the class that is most probable after calibration, which
        can differ from the prediction of the estimator.
    method : {"sigmoid", "isotonic", "none"}
        "none" if method="auto" found that the estimator's own probabilities are best; `model` is
        then the fitted estimator.
    before : Reliability or None
        Of the estimator's own probabilities on held-out rows; None if it has none.
    after : Reliability
        Of the calibrated probabilities, on rows that neither estimator nor map has seen.
    losses : dict
        The cross-validated loss of each method; "auto" chooses the smallest.
    scoring : {"log_loss", "brier"}
        The name of the losses.
    """

    model: Any
    method: str
    before: Reliability | None
    after: Reliability
    losses: dict[str, float]
    scoring: Literal["log_loss", "brier"]

    def frame(self) -> Any:
        """Figures before and after, as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
        """
        stages = [(name, _figures(found)) for name, found in self._stages()]
        names = list(stages[0][1])
        return data_frame(
            {"figure": names}
            | {name: [figures[figure] for figure in names] for name, figures in stages}
        )

    def plot(self, *, ax: Axes | None = None, **settings: Any) -> Picture:
        """Draw the curves before and after: see `margrove.plot.reliability_diagram`.

        Returns
        -------
        Picture
        """
        from margrove.plot.predictions import reliability_diagram

        return reliability_diagram(self, ax=ax, **settings)

    def __repr__(self) -> str:
        stages = ", ".join(
            f"{name}: expected_error={found.expected_error:.4g}, log_loss={found.log_loss:.4g}"
            for name, found in self._stages()
        )
        return f"Calibrated({self.method!r}, {stages})"

    def __str__(self) -> str:
        stages = self._stages()
        tables = [_figures(found) for _, found in stages]
        lines = [f"method: {self.method}"]
        if len(self.losses) > 1:
            tried = ", ".join(f"{name} {loss:.6g}" for name, loss in self.losses.items())
            lines.append(f"cross-validated {self.scoring.replace('_', ' ')}: {tried}")
        lines.append(" " * 16 + "".join(f"{name:>12}" for name, _ in stages))
        for figure in tables[0]:
            lines.append(f"{figure:16}" + "".join(f"{table[figure]:12.6g}" for table in tables))
        if self.before is None:
            lines.append("The estimator has no probabilities of its own to compare with.")
        return "\n".join(lines)

    def _stages(self) -> list[tuple[str, Reliability]]:
        known = [("before", self.before), ("after", self.after)]
        return [(name, found) for name, found in known if found is not None]


def _figures(found: Reliability) -> dict[str, float]:
    return {
        "expected error": found.expected_error,
        "maximum error": found.maximum_error,
        "adaptive error": found.adaptive_error,
        "Brier score": found.brier.score,
        "log loss": found.log_loss,
    }


def calibrate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    method: Literal["sigmoid", "isotonic", "auto"] = "auto",
    cv: Any = 5,
    sample_weight: Any = None,
    groups: Any = None,
    scoring: Literal["log_loss", "brier"] = "log_loss",
    nested: bool = True,
    n_bins: int = 10,
    strategy: Literal["uniform", "quantile"] = "uniform",
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Calibrated:
    """Fit a classifier with calibrated probabilities.

    Parameters
    ----------
    estimator : classifier
        Any with decision_function or predict_proba, pipelines too. It is not changed: clones are
        fitted. To keep a fitted one, wrap it in sklearn.frozen.FrozenEstimator; X and y must then
        be rows that it has not seen.
    X, y : training data
    method : {"sigmoid", "isotonic", "auto"}, default="auto"
        "sigmoid" has two parameters for each class, and suits scores that are distances from the
        boundary. "isotonic" only assumes that probabilities rise with scores, and needs about a
        thousand rows. "auto" takes the method with the least cross-validated loss, which can be to
        keep the estimator's own probabilities.
    cv : int, splitter or iterable of (train, test), default=5
        Each row must be held out once. A number of folds: shuffled and stratified by class.
    sample_weight : array of shape (n,), optional
        For the estimator, the map and all figures.
    groups : array of shape (n,), optional
        Rows of a group are held out together.
    scoring : {"log_loss", "brier"}, default="log_loss"
        The loss that "auto" minimises. The log loss is very large if a true class has probability
        0, which isotonic maps can give.
    nested : bool, default=True
        How `after` is computed. By default each fold is judged by a map that does not depend on
        its rows, which takes K (K - 1) / 2 more fits for K folds. If False, by a map fitted to the
        scores of the other folds, whose estimators have seen the fold: usually much the same, and
        without more fits.
    n_bins, strategy
        Of the reliability curves: see `reliability`.
    random_state : int, RandomState, Generator or None, default=None
        For the shuffled folds. The estimator has its own.
    n_jobs : int, optional
        Number of fits that run at the same time, in threads.

    Returns
    -------
    Calibrated

    See Also
    --------
    margrove.reliability : The same curves for any fitted model.
    margrove.SVC : With probability=True, its probabilities always agree with its predict.

    Examples
    --------
    >>> import margrove
    >>> from margrove.select.calibrate.calibration import calibrate
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> found = calibrate(margrove.LinearSVC(), X, y, method="sigmoid", random_state=0)
    >>> found.model.predict_proba(X).shape
    (150, 3)
    >>> found.before is None, found.after.log_loss < 0.4
    (True, True)
    """
    check_arguments(_ARGUMENTS, locals(), "calibrate")
    _require_classifier(estimator)
    rows = LearningRows.of(estimator, X, y, sample_weight)
    if rows.classes is None or len(rows.classes) < 2:
        raise ValueError("y has one class only. Probabilities need at least two classes.")
    folds = rows.folds(cv, groups, random_state)
    _require_partition(folds, len(rows), nested)

    by_fold = fold_scores(estimator, rows, folds, n_jobs)
    scores = join_scores(by_fold)
    methods = _methods(method, scores)
    losses = losses_of_methods(scores, methods, scoring)
    chosen = best_method(losses)
    if nested:
        pairs = pair_scores(estimator, rows, folds, n_jobs)
        calibrated = np.concatenate(
            [calibrated_fold(by_fold[k], pairs[k], methods, scoring) for k in range(len(folds))]
        )
    else:
        calibrated = cross_fitted(scores, chosen)

    classes = rows.classes

    def judged(probabilities: np.ndarray) -> Reliability:
        return reliability_of(
            probabilities, classes[scores.codes], classes=classes,
            sample_weight=scores.weight, n_bins=n_bins, strategy=strategy,
        )  # fmt: skip

    before = None if scores.probabilities is None else judged(scores.probabilities)
    return Calibrated(
        model=_final_model(estimator, rows, folds, chosen, n_jobs),
        method=chosen,
        before=before,
        after=judged(calibrated),
        losses=losses,
        scoring=scoring,
    )


def _require_classifier(estimator: Any) -> None:
    require_estimator(estimator, "calibrate")
    if not is_classifier(estimator):
        raise TypeError(f"calibrate needs a classifier. Got {type(estimator).__name__}.")
    if not hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"calibrate needs an estimator with decision_function or predict_proba. Got "
            f"{type(estimator).__name__}, which has neither."
        )


def _require_partition(folds: Folds, n_rows: int, nested: bool) -> None:
    times = np.bincount(np.concatenate([test for _, test in folds]), minlength=n_rows)
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise ValueError(
            f"cv must hold out each row exactly once. Row {row} is held out {times[row]} times: "
            "use a number of folds, or a splitter such as StratifiedKFold."
        )
    if nested and len(folds) < 3:
        raise ValueError(
            f"nested=True leaves out two folds at once, and cv has {len(folds)}. Use cv=3 or more, "
            "or nested=False."
        )


def _methods(method: str, scores: HeldOutScores) -> list[str]:
    """The methods to choose from, the simplest first: it is chosen if losses are equal."""
    if method != "auto":
        return [method]
    maps = ["sigmoid", "isotonic"]
    return maps if scores.probabilities is None else ["none", *maps]


# -- the model -----------------------------------------------------------------------------------


class _GivenFolds:
    """A scikit-learn splitter that returns given folds, with a short repr."""

    def __init__(self, folds: Folds) -> None:
        self._folds = folds

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Folds:
        return self._folds

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return len(self._folds)

    def __repr__(self) -> str:
        return f"<{len(self._folds)} given folds>"


def _final_model(
    estimator: Any, rows: LearningRows, folds: Folds, method: str, n_jobs: int | None
) -> Any:
    if method == "none":
        return rows.fitted(estimator)
    with warnings.catch_warnings():
        # The weights do reach the last step; scikit-learn only checks the pipeline itself.
        warnings.filterwarnings("ignore", message="Since .* does not appear to accept")
        arguments = weight_arguments(estimator, rows.weight)
        arguments["sample_weight"] = rows.weight
        model = CalibratedClassifierCV(
            clone(estimator), method=method, cv=_GivenFolds(folds), n_jobs=n_jobs, ensemble=False
        )
        with joblib.parallel_config(prefer="threads"):
            return model.fit(rows.X, rows.y, **arguments)
