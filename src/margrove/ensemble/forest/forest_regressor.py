"""Forests for regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_targets, check_weights, moderate
from margrove._runtime import resolve_n_jobs
from margrove.ensemble.forest.forest import FOREST_PARAMETERS, Forest
from margrove.ensemble.forest.intervals import Residuals, jackknife_variance
from margrove.ensemble.forest.out_of_bag import OutOfBag
from margrove.ensemble.forest.rows import LocalRows
from margrove.ensemble.forest.training_data import ForestTraining, weights_of_rows
from margrove.grove import CRITERIA, CriterionNames, DecisionTree, DecisionTreeRegressor
from margrove.grove.serve import Kind
from margrove.grove.table import (
    MEDIAN_WEIGHT_BITS,
    number_targets,
    power_of_two_near,
    samples_of,
    which_count,
)

__all__ = ["ForestRegressor"]


class ForestRegressor(RegressorMixin, Forest):
    """Base class of the forests for regression."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = FOREST_PARAMETERS | {
        "criterion": [CriterionNames(for_classes=False)],
        "keep_samples": ["boolean"],
    }

    def _training(
        self, rows: LocalRows, y: Any, sample_weight: Any, seed: int
    ) -> tuple[ForestTraining, dict[str, Any]]:
        n = rows.table.X.shape[0]
        given = check_targets(y, n, multi_output=True)
        numbers = given[:, None] if given.ndim == 1 else given
        weight = moderate(check_weights(sample_weight, n))
        kept = which_count(weight)
        rows, numbers, weight = rows.of_rows(kept), numbers[kept], weight[kept]
        CRITERIA[self.criterion].check_targets(numbers)
        scale = power_of_two_near(numbers)
        target = numbers[:, 0] if numbers.shape[1] == 1 else numbers
        order, merged, places = rows.ordered(target, weight)
        data = rows.coded(order, weight)
        is_median = CRITERIA[self.criterion].has_medians
        targets = number_targets(
            numbers[order] / scale,
            merged,
            samples_of(merged, sample_weight),
            **({"bits": MEDIAN_WEIGHT_BITS} if is_median else {}),
        )
        training = ForestTraining(
            rows.table,
            order,
            data,
            targets,
            self._sampled(seed, order, merged, kept, places, n),
            None,
            False,
            scale,
        )
        return training, {"n_outputs_": numbers.shape[1]}

    def _tree_class(self) -> type[DecisionTree]:
        return DecisionTreeRegressor

    def _scored_out_of_bag(
        self, predictions: np.ndarray, training: ForestTraining, learnt: dict[str, Any], y: Any
    ) -> dict[str, Any]:
        known = ~np.isnan(predictions[:, 0])
        single = learnt["n_outputs_"] == 1
        attributes: dict[str, Any] = {
            "oob_prediction_": predictions[:, 0] if single else predictions
        }
        if not self.oob_score or known.sum() < 2:
            return attributes
        truth = np.asarray(y, dtype=np.float64).reshape(len(predictions), -1)[known]
        predicted = predictions[known]
        if callable(self.oob_score):
            arguments = (truth[:, 0], predicted[:, 0]) if single else (truth, predicted)
            attributes["oob_score_"] = self.oob_score(*arguments)
        else:
            weight, scale = weights_of_rows(training)[known], training.scale
            attributes["oob_score_"] = float(
                r2_score(truth / scale, predicted / scale, sample_weight=weight)
            )
        return attributes

    def _residuals(self, out_of_bag: OutOfBag, training: ForestTraining) -> dict[str, Any]:
        if len(training.targets.starts) > 2:
            return {}
        known = out_of_bag.counts > 0
        errors = training.targets.raw * training.scale - out_of_bag.predictions()[:, 0]
        times = training.targets.samples[known]  # a row of weight 2 has two residuals
        spreads = out_of_bag.spreads()[:, 0]
        return {
            "residuals_": Residuals.of(
                np.repeat(errors[known], times), np.repeat(spreads[known], times)
            )
        }

    def _keeps_samples(self, kind: Kind) -> bool:
        if self.keep_samples and kind.n_outputs > 1:
            raise ValueError(
                "keep_samples=True supports one output only. Fit one forest for each output."
            )
        return bool(self.keep_samples)

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the predictions of the trees."""
        means = self._means(X)
        return means[:, 0] if self.n_outputs_ == 1 else means

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of y for each row, from the training targets in its leaves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        quantiles : float or array-like of them, default=(0.05, 0.5, 0.95)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles), or (n_samples,) for one quantile
        """
        check_is_fitted(self, "trees_")
        wanted = np.asarray(quantiles, dtype=np.float64)
        if wanted.ndim > 1 or not np.all((wanted >= 0.0) & (wanted <= 1.0)):
            raise ValueError(f"quantiles must be between 0 and 1. Got {quantiles!r}.")
        if not hasattr(self, "leaf_samples_"):
            raise ValueError(
                "predict_quantiles needs the training rows of each leaf. Fit with "
                "keep_samples=True."
            )
        found = self.leaf_samples_.quantiles(self._leaves(X), np.atleast_1d(wanted))
        return found[:, 0] if wanted.ndim == 0 else found

    def predict_variance(self, X: Any) -> np.ndarray:
        """The variance of the prediction of each row over random training sets.

        This is the infinitesimal jackknife, corrected for the finite number of trees. It is not
        the variance of y: see `predict_interval` for that.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "trees_")
        sampled = getattr(self, "sampled_", None)
        if sampled is None or sampled.n_draws is None:
            raise ValueError(
                "predict_variance needs the bootstrap samples of the trees. Fit with "
                "bootstrap=True, and use the fitted forest, not a slice or a sum of forests."
            )
        if self.n_outputs_ > 1:
            raise ValueError(
                "predict_variance supports one output only. Fit one forest for each output."
            )
        values = self._values_of_trees(X)[:, :, 0]
        n_threads = resolve_n_jobs(self.n_jobs, unset="all")
        return jackknife_variance(sampled, len(self.trees_), values, n_threads)

    def predict_interval(
        self, X: Any, confidence: float = 0.9, *, method: Literal["conformal", "local"] = "local"
    ) -> np.ndarray:
        """Intervals that contain the y of a new row with the given confidence.

        Conformal intervals from out-of-bag residuals: "conformal" intervals have the same width
        everywhere, "local" ones a width proportional to the standard deviation of the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        confidence : float, default=0.9
        method : {"conformal", "local"}, default="local"

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        check_is_fitted(self, "trees_")
        if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must be between 0 and 1. Got {confidence!r}.")
        if method not in ("conformal", "local"):
            raise ValueError(f"method must be 'conformal' or 'local'. Got {method!r}.")
        if not hasattr(self, "residuals_"):
            raise ValueError(
                "predict_interval needs out-of-bag residuals of one output. Fit with "
                "oob_score=True and bootstrap=True."
            )
        low, high = self.residuals_.bounds(float(confidence), local=method == "local")
        bounds = np.array([low, high])
        if method == "conformal":
            return np.asarray(self.predict(X)[:, None] + bounds)
        values = self._values_of_trees(X)[:, :, 0]
        spread = np.maximum(values.std(axis=1), self.residuals_.least_spread)
        return np.asarray(values.mean(axis=1)[:, None] + spread[:, None] * bounds)
