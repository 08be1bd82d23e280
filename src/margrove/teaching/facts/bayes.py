"""A support vector machine beside the best possible classifier, for known densities."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from margrove._data import data_frame, seed_of
from margrove.exceptions import InvalidDataError
from margrove.facts import Plain, frozen, require_whole
from margrove.margin.svm import SVC
from margrove.teaching.facts.planes import PlaneRows, grid_over, plane_rows

__all__ = ["BayesComparison", "GaussianMixtures", "svm_beside_bayes"]

_FRESH_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class GaussianMixtures:
    """Two equally likely classes, each a mixture of equally likely round Gaussians.

    Attributes
    ----------
    centres : ndarray of shape (2, n_components, n_features)
    variance : float
        Of each Gaussian, in every direction.
    """

    centres: np.ndarray
    variance: float

    @classmethod
    def of_the_lectures(cls, random_state: Any = 0) -> GaussianMixtures:
        """The mixtures of Hastie, Tibshirani and Friedman: ten centres a class, variance 1/5.

        The centres of the first class are drawn around (1, 0), those of the second around (0, 1).
        """
        rng = np.random.default_rng(seed_of(random_state))
        around = np.array([[1.0, 0.0], [0.0, 1.0]])
        return cls(around[:, None, :] + rng.standard_normal((2, 10, 2)), 0.2)

    def sample(self, n_samples: int, random_state: Any = 0) -> tuple[np.ndarray, np.ndarray]:
        """Rows and their classes, which alternate between 0 and 1."""
        rng = np.random.default_rng(seed_of(random_state))
        codes = np.arange(n_samples) % 2
        centres = self.centres[codes, rng.integers(self.centres.shape[1], size=n_samples)]
        return centres + np.sqrt(self.variance) * rng.standard_normal(centres.shape), codes

    def log_odds(self, X: Any) -> np.ndarray:
        """The log-odds of the second class: positive where it is more likely."""
        rows = np.asarray(X, dtype=np.float64)
        squared = ((rows[:, None, None, :] - self.centres) ** 2).sum(axis=-1)
        densities = logsumexp(-squared / (2.0 * self.variance), axis=-1)  # up to a constant
        return np.asarray(densities[:, 1] - densities[:, 0])


@dataclass(frozen=True, kw_only=True, eq=False)
class BayesComparison(Plain):
    """Decisions of a machine and of the Bayes classifier over a grid.

    Attributes
    ----------
    rows : PlaneRows
        The training data of the machine.
    model : fitted classifier
    x, y : ndarray
        Coordinates of the grid.
    machine, bayes : ndarray of shape (len(y), len(x))
        Decision values; both boundaries are where they are 0.
    training_error : float
    agreement : float
        The share of the grid on which both decide the same.
    test_error, bayes_error : float or None
        On new rows; None unless rows are drawn from the mixtures.
    """

    rows: PlaneRows
    model: Any
    x: np.ndarray
    y: np.ndarray
    machine: np.ndarray
    bayes: np.ndarray
    training_error: float
    agreement: float
    test_error: float | None
    bayes_error: float | None

    def frame(self) -> Any:
        """A pandas DataFrame, a row for each point of the grid."""
        return data_frame(
            {
                "x": np.tile(self.x, len(self.y)),
                "y": np.repeat(self.y, len(self.x)),
                "machine": self.machine.ravel(),
                "bayes": self.bayes.ravel(),
            }
        )


def svm_beside_bayes(
    X: Any = None,
    y: Any = None,
    bayes_decision: Callable[[np.ndarray], Any] | None = None,
    *,
    estimator: Any = None,
    resolution: int = 200,
    random_state: Any = 0,
) -> BayesComparison:
    """Fit a machine to rows of two classes whose densities are known.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, 2), optional
        By default 200 rows of `GaussianMixtures.of_the_lectures`.
    y : array-like of shape (n_samples,), optional
        Two classes.
    bayes_decision : callable, optional
        A function from rows to the log-odds of the second class, as in `datasets.make_gaussians`.
    estimator : classifier with decision_function, optional
        A copy is fitted. By default ``SVC(C=1, gamma=1)``.
    resolution : int, default=200
        Points of the grid along each axis.
    random_state : int, default=0
        Of the mixtures.

    Returns
    -------
    BayesComparison

    Examples
    --------
    >>> from margrove.teaching.facts.bayes import svm_beside_bayes
    >>> found = svm_beside_bayes(resolution=20)
    >>> found.bayes_error < found.test_error < found.bayes_error + 0.05
    True
    """
    given = (X is not None, y is not None, bayes_decision is not None)
    if any(given) and not all(given):
        raise ValueError(
            "X, y and bayes_decision belong together. Pass all three, such as data, target and "
            "bayes_decision of datasets.make_gaussians(), or none for the mixtures of the lectures."
        )
    require_whole("resolution", resolution, 2)
    mixtures = None
    if bayes_decision is None:
        mixtures = GaussianMixtures.of_the_lectures(random_state)
        X, y = mixtures.sample(200, random_state)
        bayes_decision = mixtures.log_odds
    rows = plane_rows(X, y, "svm_and_bayes")
    model = SVC(C=1.0, gamma=1.0) if estimator is None else clone(estimator)
    if not hasattr(model, "decision_function"):
        raise TypeError(f"estimator must have decision_function. Got {type(model).__name__}.")
    model.fit(rows.points, rows.codes)
    x, y_, grid = grid_over(rows.points, resolution)
    machine = np.asarray(model.decision_function(grid), dtype=np.float64)
    bayes = _decided(bayes_decision, grid)
    test_error = bayes_error = None
    if mixtures is not None:
        fresh, truth = mixtures.sample(_FRESH_ROWS, seed_of(random_state) + 1)
        test_error = float(np.mean(model.predict(fresh) != truth))
        bayes_error = float(np.mean((mixtures.log_odds(fresh) > 0) != truth))
    shape = (len(y_), len(x))
    return BayesComparison(
        rows=rows,
        model=model,
        x=frozen(x),
        y=frozen(y_),
        machine=frozen(machine.reshape(shape)),
        bayes=frozen(bayes.reshape(shape)),
        training_error=float(np.mean(model.predict(rows.points) != rows.codes)),
        agreement=float(np.mean((machine > 0) == (bayes > 0))),
        test_error=test_error,
        bayes_error=bayes_error,
    )


def _decided(bayes_decision: Any, grid: np.ndarray) -> np.ndarray:
    if not callable(bayes_decision):
        raise TypeError(f"bayes_decision must be callable. Got {type(bayes_decision).__name__}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # densities underflow far away
        values = np.asarray(bayes_decision(grid), dtype=np.float64)
    if values.shape != (len(grid),) or np.isnan(values).any():
        raise InvalidDataError(
            "bayes_decision must return a number for each row. Got shape "
            f"{values.shape} for {len(grid)} rows."
        )
    return values
