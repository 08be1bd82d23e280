"""Base classes of the gradient boosting estimators: running a fit, predictions, importances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from margrove._data import seed_of
from margrove._runtime import ALONE, Collective, Ending, Estimator, drive, resolve_n_jobs
from margrove.ensemble.gradient.early_stopping import SoFar
from margrove.ensemble.gradient.hist import LARGEST_VALUE, every_row
from margrove.ensemble.gradient.history import GradientHistory, history_of, progress_of
from margrove.ensemble.gradient.losses import GradientLoss
from margrove.ensemble.gradient.training_data import GradientData, RowDraws
from margrove.grove.grow import preorder
from margrove.grove.grow.search import SQUARED
from margrove.grove.read import shown
from margrove.grove.serve import (
    FEATURE_AT,
    Kind,
    PackedTree,
    TreeArrays,
    TreeScores,
    TreeSum,
    rescaled,
    tree_sum,
    unfolded,
)
from margrove.grove.table import read_table_like_fitted

__all__ = ["BoostedClassifier", "BoostedRegressor", "GradientBoosted", "kind_of",
           "require_constant_start", "require_same_classes", "starts_from_model"]  # fmt: skip

_FEATURE_BITS = np.int64(0xFFFFFFF)
_WORK_AT_ONCE = 1e9


class GradientBoosted(Estimator):
    """Base class of the gradient boosting estimators."""

    learning_rate: float
    subsample: float
    random_state: Any
    warm_start: bool
    n_jobs: int | None
    max_time: float | None
    on_interrupt: Literal["raise", "keep"]
    verbose: int
    n_features_in_: int
    history_: GradientHistory
    _loss: GradientLoss
    _scores: TreeScores
    _rounds: list[list[PackedTree]]
    _kind: Kind
    _seed_of_fit: int
    _progress: tuple[tuple[float, ...], tuple[float, ...]]

    # -- training --

    def _continues(self) -> bool:
        """Whether this is a warm start from an earlier fit."""
        return self.warm_start and hasattr(self, "_rounds")

    def _seed(self) -> int:
        return int(self._seed_of_fit) if self._continues() else seed_of(self.random_state)

    def _threads(self) -> int:
        return resolve_n_jobs(self.n_jobs, unset="all")

    def _rate(self) -> float:
        return min(float(self.learning_rate), LARGEST_VALUE)

    def _draws(
        self, data: GradientData, seed: int, collective: Collective = ALONE
    ) -> Callable[[int], np.ndarray | None]:
        """A function that gives the rows of a round, int32; None for all rows."""
        if self.subsample == 1.0:
            return every_row
        n = np.array([data.n_rows])
        collective.sum(n)
        draws = self._row_draws(data, seed, collective)
        size = max(1, int(self.subsample * int(n[0])))
        return lambda number: draws.subsample(number, size)

    def _row_draws(self, data: GradientData, seed: int, collective: Collective = ALONE) -> RowDraws:
        return RowDraws(data, seed, n_threads=self._threads(), collective=collective)

    def _run(
        self,
        process: Any,
        X: Any,
        y: Any,
        fitted: Callable[[], dict[str, Any]],
        given: dict[str, Any],
        *,
        with_bar: bool = True,
    ) -> Ending:
        """Boost until the end, an interrupt or the time limit; at least one round."""
        ending = drive(
            process,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=self.verbose if with_bar else 0,
            X=X,
            y=y,
            fitted=fitted,
            given=given,
        )
        if ending == "interrupt" and not process.rounds:
            raise KeyboardInterrupt  # there is no new round to keep
        while not process.rounds and not process.finished:
            process.advance(_WORK_AT_ONCE)
        return ending

    def _common_attributes(
        self, process: Any, data: GradientData, so_far: SoFar, seed: int, outcome: str
    ) -> dict[str, Any]:
        """The fitted attributes that all gradient boosting estimators have."""
        rounds = so_far.rounds + [
            [tree if data.scale == 1.0 else rescaled(tree, data.scale, 0) for tree in trees]
            for trees in process.trees
        ]
        kind = kind_of(data.table.n_categories)
        attributes = data.table.attributes | {
            "_loss": process.loss,
            "_rounds": rounds,
            "_kind": kind,
            "_scores": TreeScores(rounds, kind.n_categories, so_far.start * data.scale),
            "_seed_of_fit": seed,
            "_progress": progress_of(process, len(rounds)),
            "history_": history_of(process, rounds, outcome, data.scale),
        }
        return attributes if data.classes is None else attributes | {"classes_": data.classes}

    def _after_last_fit(self, data: GradientData, loss: GradientLoss) -> SoFar:
        """The state at the end of the last fit, for a warm start."""
        self._require_sound()
        if self._loss != loss:
            raise ValueError(
                f"warm_start=True needs the loss of the last fit, {self._loss!r}. Use "
                "warm_start=False to start again."
            )
        losses, scores = self._progress
        return SoFar(self._rounds, self._scores.start / data.scale, losses, scores, data.scale)

    # -- prediction --

    @property
    def n_iter_(self) -> int:
        """The number of rounds."""
        check_is_fitted(self, "_rounds")
        return len(self._rounds)

    @property
    def n_trees_per_iteration_(self) -> int:
        """The number of trees in a round."""
        check_is_fitted(self, "_rounds")
        return int(self._loss.n_scores)

    def _read(self, X: Any) -> Any:
        self._require_sound()
        return read_table_like_fitted(X, self)

    def _require_sound(self) -> None:
        """Raise if fitted attributes were changed, because compiled code does not check them."""
        check_is_fitted(self, "_rounds")
        scores, rounds = self._scores, self._rounds
        is_sound = (
            isinstance(scores, TreeScores)
            and isinstance(rounds, list)
            and scores.n_rounds == len(rounds)
            and scores.n_features == self.n_features_in_
            and scores.n_scores == self._loss.n_scores
        )
        if not is_sound:
            raise ValueError(
                f"The state of this {type(self).__name__} was changed after the fit. Fit it again."
            )

    def _raw(self, X: Any) -> np.ndarray:
        """Raw scores, float64 (n_scores, n)."""
        rows = self._read(X)
        raw = self._raw_before(rows)
        shares = self._scores.is_worth_sharing(rows.shape[0])
        self._scores.add(rows, raw, n_threads=self._threads() if shares else 1)
        return raw

    def _raw_before(self, rows: Any) -> np.ndarray:
        """Raw scores before the first round, float64 (n_scores, n)."""
        return np.repeat(self._scores.start[:, None], rows.shape[0], axis=1)

    def _staged_raw(self, X: Any) -> Iterator[np.ndarray]:
        rows = self._read(X)
        raw = self._raw_before(rows)
        for number in range(self.n_iter_):
            self._scores.add(rows, raw, number, number + 1)
            yield raw

    def apply(self, X: Any) -> np.ndarray:
        """The leaf of each row in each tree.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_rounds), or (n_samples, n_rounds, n_classes)
            Numbers of nodes, as in `tree`.
        """
        rows = self._read(X)
        leaves = self._scores.leaves(rows)
        for t, tree in enumerate(self._sound_trees()):
            leaves[:, t] = _preorder_numbers(tree)[leaves[:, t]]
        k = self.n_trees_per_iteration_
        return leaves if k == 1 else leaves.reshape(len(leaves), -1, k)

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of each feature in the gain of all splits."""
        return self.importances("gain")

    def importances(self, kind: Literal["gain", "split"] = "gain") -> np.ndarray:
        """The importance of each feature; the sum is 1, or 0 if there is no split.

        Parameters
        ----------
        kind : {"gain", "split"}, default="gain"
            "gain" is the decrease of the loss by the splits of a feature, "split" their number. See
            `sklearn.inspection.permutation_importance` for the loss with shuffled columns.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        check_is_fitted(self, "_rounds")
        if kind not in ("gain", "split"):
            raise ValueError(f"kind must be 'gain' or 'split'. Got {kind!r} instead.")
        self._require_sound()
        total = np.zeros(self.n_features_in_)
        largest = self._largest_gain()
        for tree in self._sound_trees():
            inner = ~tree.is_leaf
            features = (tree.nodes[1::2] >> FEATURE_AT) & _FEATURE_BITS
            gain = np.ones(len(tree)) if kind == "split" else np.asarray(tree.decrease) / largest
            np.add.at(total, features[inner], gain[inner])
        sum_of_all = total.sum()
        return total / sum_of_all if sum_of_all > 0.0 else total

    def _trees(self) -> Iterator[PackedTree]:
        return (tree for trees in self._rounds for tree in trees)

    def _sound_trees(self) -> Iterator[PackedTree]:
        for tree in self._trees():
            tree.require_sound(self._kind, self.n_features_in_)
            yield tree

    def _largest_gain(self) -> float:
        """The divisor of all gains, so that their sum does not overflow."""
        gains = (float(np.asarray(tree.decrease).max(initial=0.0)) for tree in self._trees())
        return max(gains, default=0.0) or 1.0

    def tree(self, number: int, score: int = 0) -> TreeArrays:
        """The tree of a round, and of a class if there are more than two.

        Its leaf values are added to the raw score.
        """
        self._require_sound()
        tree = self._rounds[number][score]
        tree.require_sound(self._kind, self.n_features_in_)
        return unfolded(tree, self._kind)

    def _tree_sum(self, function: str) -> TreeSum:
        """The raw scores as a sum of trees, a tree for each score in turn; see `TreeSum`."""
        check_is_fitted(self, "_rounds")
        require_constant_start(self, function)
        return tree_sum(
            self,
            (unfolded(tree, self._kind) for tree in self._sound_trees()),
            function,
            is_single=self.n_trees_per_iteration_ == 1,
            answer=lambda X: self._raw(X).T,
            start=self._scores.start,
            rows=self._read,
        )

    def __len__(self) -> int:
        """The number of rounds."""
        return self.n_iter_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


class BoostedRegressor(RegressorMixin, GradientBoosted):
    """Predictions of the regressors."""

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        raw = self._raw(X)
        return self._loss.link_inverse(raw)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict` after each round."""
        for raw in self._staged_raw(X):
            yield self._loss.link_inverse(raw)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """R^2 after each round."""
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))


class BoostedClassifier(ClassifierMixin, GradientBoosted):
    """Predictions of the classifiers."""

    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """Raw scores: the higher, the more likely is the class.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) for one or two classes, (n_samples, n_classes) for more
        """
        return _scores_of_classes(self._raw(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(self._raw(X))

    def _probabilities(self, raw: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 1:
            return np.ones((raw.shape[1], 1))
        return self._loss.link_inverse(raw)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._labels(self._raw(X))

    def _labels(self, raw: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 1:
            codes = np.zeros(raw.shape[1], np.int64)
        elif len(raw) == 1:
            codes = (raw[0] > 0.0).astype(np.int64)
        else:
            codes = np.argmax(raw, axis=0)
        labels: np.ndarray = self.classes_[codes]
        return labels

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """`decision_function` after each round."""
        for raw in self._staged_raw(X):
            yield _scores_of_classes(raw).copy()

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """`predict_proba` after each round."""
        for raw in self._staged_raw(X):
            yield self._probabilities(raw)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict` after each round."""
        for raw in self._staged_raw(X):
            yield self._labels(raw)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """The accuracy after each round."""
        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))


def _scores_of_classes(raw: np.ndarray) -> np.ndarray:
    return raw[0] if len(raw) == 1 else np.ascontiguousarray(raw.T)


def _preorder_numbers(tree: PackedTree) -> np.ndarray:
    """The number of each node of a packed tree in preorder, int32 (n_nodes,)."""
    order, _ = preorder(np.where(tree.is_leaf, -1, tree.left))
    numbers = np.empty(len(tree), np.int32)
    numbers[order] = np.arange(len(tree))
    return numbers


def require_constant_start(model: Any, function: str) -> None:
    """Raise for gradient boosting that starts from another model, which is not a tree."""
    if starts_from_model(model):
        raise ValueError(
            f"{function} takes gradient boosting that starts from a constant, but this "
            f"{type(model).__name__} starts from {shown(type(model.init).__name__)}. Use init=None."
        )


def starts_from_model(model: Any) -> bool:
    """Whether the start value is the prediction of a model, so that it differs between rows."""
    init = getattr(model, "init", None)
    return init is not None and not isinstance(init, str)


def kind_of(n_categories: np.ndarray) -> Kind:
    """The kind of trees whose leaf values are single numbers."""
    return Kind(SQUARED, (), 1, n_categories)


def require_same_classes(classes: np.ndarray, data: GradientData) -> None:
    """Raise if a warm start has other classes than the last fit."""
    if classes.tolist() != data.labels.tolist():
        raise ValueError(
            f"warm_start=True needs the classes of the last fit, {classes.tolist()}. Use "
            "warm_start=False to start again."
        )
