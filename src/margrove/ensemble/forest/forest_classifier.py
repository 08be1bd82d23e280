"""Forests for classification."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_training_labels, moderate
from margrove.ensemble.forest.forest import FOREST_PARAMETERS, Forest
from margrove.ensemble.forest.rows import LocalRows
from margrove.ensemble.forest.training_data import ForestTraining, weights_of_rows
from margrove.grove import CriterionNames, DecisionTree, DecisionTreeClassifier
from margrove.grove.serve import by_output
from margrove.grove.table import (
    class_targets,
    class_weights_of_outputs,
    columns_of_labels,
    samples_of,
    which_count,
)

__all__ = ["ForestClassifier"]


class ForestClassifier(ClassifierMixin, Forest):
    """Base class of the forests for classification."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = FOREST_PARAMETERS | {
        "criterion": [CriterionNames(for_classes=True)],
        "class_weight": [StrOptions({"balanced", "balanced_subsample"}), dict, list, None],
        "voting": [StrOptions({"soft", "hard"})],
    }

    def _training(
        self, rows: LocalRows, y: Any, sample_weight: Any, seed: int
    ) -> tuple[ForestTraining, dict[str, Any]]:
        n = rows.table.X.shape[0]
        outputs = columns_of_labels(y)
        self._check_scored(outputs)
        by_tree = self.class_weight == "balanced_subsample" and self.bootstrap
        wanted = "balanced" if self.class_weight == "balanced_subsample" else self.class_weight
        class_weights = class_weights_of_outputs(None if by_tree else wanted, len(outputs))
        found = [
            check_training_labels(output, sample_weight, weights, n, min_classes=1)
            for output, weights in zip(outputs, class_weights, strict=True)
        ]
        given = found[0].weight
        kept = which_count(given)
        rows, weight = rows.of_rows(kept), given[kept]
        codes = np.stack([labels.codes for labels in found], axis=1)[kept]
        factors = np.ones(len(weight))
        for labels, codes_of_output in zip(found, codes.T, strict=True):
            factors = moderate(factors * labels.factors[codes_of_output])
        target = codes[:, 0] if len(outputs) == 1 else codes
        order, merged, places = rows.ordered(target, weight)
        data = rows.coded(order, weight)
        classes = [labels.classes for labels in found]
        counts = [len(labels) for labels in classes]
        samples = samples_of(merged, sample_weight)
        targets = class_targets(codes[order], counts, moderate(merged * factors[order]), samples)
        single = len(classes) == 1
        training = ForestTraining(
            rows.table,
            order,
            data,
            targets,
            self._sampled(seed, order, merged, kept, places, n),
            None if np.all(factors == 1.0) else factors[order],
            by_tree,
        )
        return training, {
            "classes_": classes[0] if single else classes,
            "n_classes_": counts[0] if single else counts,
            "n_outputs_": len(classes),
        }

    def _check_scored(self, outputs: list[Any]) -> None:
        """Raise if the accuracy for `oob_score` is not defined for these outputs."""
        if not self.oob_score or callable(self.oob_score) or len(outputs) == 1:
            return
        kind = type_of_target(np.stack(outputs, axis=1))
        if kind != "multilabel-indicator":
            raise ValueError(
                f"The type of target cannot be used to compute OOB estimates. Got {kind} while "
                "only binary, multiclass and multilabel-indicator have an accuracy. Give "
                "oob_score a function of y and the predictions."
            )

    def _tree_class(self) -> type[DecisionTree]:
        return DecisionTreeClassifier

    def _is_hard(self) -> bool:
        return bool(self.voting == "hard")

    def _is_for_classes(self) -> bool:
        return True

    def _signature(self) -> dict[str, Any]:
        classes = [self.classes_] if self.n_outputs_ == 1 else self.classes_
        return super()._signature() | {"classes_": [list(labels) for labels in classes]}

    def _scored_out_of_bag(
        self, predictions: np.ndarray, training: ForestTraining, learnt: dict[str, Any], y: Any
    ) -> dict[str, Any]:
        shares = _by_output(predictions, learnt)
        single = learnt["n_outputs_"] == 1
        classes = [learnt["classes_"]] if single else learnt["classes_"]
        known = ~np.isnan(predictions[:, 0])
        winners = np.stack(
            [
                labels[np.argmax(np.nan_to_num(share), axis=1)]
                for labels, share in zip(classes, shares, strict=True)
            ],
            axis=1,
        )[known]
        attributes: dict[str, Any] = {
            "oob_decision_function_": shares[0] if single else np.stack(_padded(shares), axis=2)
        }
        if not self.oob_score or not known.any():
            return attributes
        columns = [np.asarray(column).ravel() for column in columns_of_labels(y)]
        truth = np.stack(columns, axis=1)[known]
        if callable(self.oob_score):
            arguments = (truth[:, 0], winners[:, 0]) if single else (truth, winners)
            attributes["oob_score_"] = self.oob_score(*arguments)
        else:
            is_right = (truth == winners).all(axis=1)  # the same accuracy as in `score`
            weight = weights_of_rows(training)[known]
            attributes["oob_score_"] = float(np.average(is_right, weights=weight))
        return attributes

    def predict_proba(self, X: Any) -> Any:
        """The mean of the trees' class probabilities, or with voting="hard" the share of votes."""
        shares = self._means(X)
        return shares if self.n_outputs_ == 1 else _by_output(shares, dict(vars(self)))

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of `predict_proba`."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(shares) if self.n_outputs_ == 1 else [np.log(share) for share in shares]

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest probability; the first of several equal ones."""
        check_is_fitted(self, "trees_")
        if self.n_outputs_ == 1:
            predicted: np.ndarray = self.classes_[self._winners(X)]
            return predicted
        shares = self.predict_proba(X)
        pairs = zip(self.classes_, shares, strict=True)
        return np.stack([labels[np.argmax(share, axis=1)] for labels, share in pairs], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _by_output(shares: np.ndarray, learnt: dict[str, Any]) -> list[np.ndarray]:
    sizes = [learnt["n_classes_"]] if learnt["n_outputs_"] == 1 else learnt["n_classes_"]
    return by_output(shares, sizes)


def _padded(shares: list[np.ndarray]) -> list[np.ndarray]:
    """Shares (n, n_classes) of each output, padded with zeros to the same number of columns."""
    most = max(share.shape[1] for share in shares)
    return [np.pad(share, ((0, 0), (0, most - share.shape[1]))) for share in shares]
