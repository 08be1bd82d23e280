"""The fit of AdaBoostClassifier: data, early stopping, learners, and fitted attributes."""

from __future__ import annotations

import copy
import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils._tags import get_tags

from margrove._data import check_labels, check_training_labels, check_weights, collected, count_rows
from margrove.ensemble.adaboost.algorithms import Rule, VotingRule, rule_of
from margrove.ensemble.adaboost.boosted_ensemble import Boosted
from margrove.ensemble.adaboost.deep_trees import MOST_ROWS, DeepTreeLearner
from margrove.ensemble.adaboost.level_trees import DEEPEST, LevelLearner, rows_of_a_bin
from margrove.ensemble.adaboost.members import (
    EstimatorMembers,
    Members,
    StumpMembers,
    TreeMembers,
)
from margrove.ensemble.adaboost.rounds import Boosting, StumpBoosting, ValidationErrors
from margrove.ensemble.adaboost.stump_kernels import Stumps
from margrove.ensemble.adaboost.stump_tables import StumpTable, read_stump_table
from margrove.ensemble.adaboost.stumps import StumpBooster
from margrove.ensemble.adaboost.training_data import (
    BoostingRows,
    is_plain_tree,
    is_simple_tree,
    is_small_tree,
    read_rows,
    read_rows_like_fitted,
)
from margrove.ensemble.adaboost.weak_learners import AnyLearner, TreeLearner
from margrove.ensemble.bagging import plan_samples
from margrove.exceptions import ConvergenceWarning, InvalidDataError
from margrove.grove import CRITERIA, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.table import TreeTable, refuse_infinity, samples_of, which_count, whole_weights

__all__ = ["OTHER_NAMES", "ClassifierTraining"]

_MOST_COUNTS = 2**24  # largest sum of weights that are treated as counts
OTHER_NAMES = {"SAMME": "samme", "SAMME.R": "real"}  # names in scikit-learn


@dataclass(frozen=True)
class _TrainingData:
    """A checked training set without rows of weight zero.

    labels    int64 (n,)  codes of the classes
    samples   int64 (n,)  the number of samples that each row represents
    """

    rows: BoostingRows
    labels: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    samples: np.ndarray

    def of_rows(self, which: np.ndarray) -> _TrainingData:
        return replace(
            self,
            rows=self.rows.of_rows(which),
            labels=self.labels[which],
            weight=self.weight[which],
            samples=self.samples[which],
        )


class ClassifierTraining(Boosted):
    """Base class of `AdaBoostClassifier` with all that `fit` does."""

    algorithm: str
    learning_rate: float
    early_stopping: bool | Literal["cv"]
    validation_fraction: float
    n_iter_no_change: int
    cv: Any
    _circumstances: dict[str, Any]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Fit the members, round by round.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Any X that the estimator accepts.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the first round. A weight of 0 removes a row, a weight of 2 is the same
            as two copies of the row.
        X_val, y_val, sample_weight_val : optional
            Validation rows: their error is recorded in each round and used for early stopping.

        Returns
        -------
        self
        """
        self._check_parameters()
        base = self._base()
        self._check_combination(base, X_val, y_val)
        n_rounds, found = self.n_estimators, {}
        if self.early_stopping == "cv":
            found["cv_errors_"] = self._errors_by_cross_validation(X, y, sample_weight)
            n_rounds = int(np.argmin(found["cv_errors_"])) + 1
        training = self._read(X, y, sample_weight, base)
        seed = self._seed()
        held_out: _TrainingData | None = None
        if X_val is not None:
            held_out = self._read_validation(X_val, y_val, sample_weight_val, training)
        elif self.early_stopping is True:
            training, held_out = self._split_off_validation(training, seed)
        rule = rule_of(self._algorithm, training.labels, len(training.classes), self.learning_rate)
        validation = None
        if held_out is not None:
            validation = ValidationErrors(rule, held_out.rows.X, held_out.labels, held_out.weight)
        process = self._process(rule, base, training, validation, n_rounds, seed)

        def fitted() -> dict[str, Any]:
            return found | self._attributes(process, base, training, seed)

        others = {"sample_weight": sample_weight, "X_val": X_val, "y_val": y_val,
                  "sample_weight_val": sample_weight_val}  # fmt: skip
        self._run(process, X, y, fitted, others)
        self._warn_of(process, base)
        self._commit(fitted())
        return self

    @property
    def _algorithm(self) -> str:
        return OTHER_NAMES.get(self.algorithm, self.algorithm)

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        if self._algorithm in ("gentle", "logit"):
            return DecisionTreeRegressor(max_depth=1)
        return DecisionTreeClassifier(max_depth=1)

    def _check_combination(self, base: Any, X_val: Any, y_val: Any) -> None:
        self._check_base(base)
        algorithm, name = self._algorithm, type(base).__name__
        kind = get_tags(base).estimator_type
        if algorithm in ("gentle", "logit") and kind == "classifier":
            raise ValueError(
                f"algorithm={algorithm!r} fits numbers, but estimator={name} is a classifier. Use "
                "a regressor, such as DecisionTreeRegressor(max_depth=1)."
            )
        if algorithm not in ("gentle", "logit") and kind == "regressor":
            raise ValueError(
                f"algorithm={algorithm!r} needs a classifier, but estimator={name} is a regressor. "
                "Use algorithm='gentle' or 'logit', or another estimator."
            )
        if algorithm == "real" and not hasattr(base, "predict_proba"):
            raise ValueError(
                f"algorithm='real' needs probabilities, but estimator={name} has no predict_proba. "
                "Use algorithm='samme'."
            )
        if kind == "regressor" and _wants_positive(base):
            raise ValueError(
                f"algorithm={algorithm!r} fits negative numbers, which criterion="
                f"{base.criterion!r} does not support. Use criterion='squared_error'."
            )
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: pass both or neither of them.")

    def _read(self, X: Any, y: Any, sample_weight: Any, base: Any) -> _TrainingData:
        as_table = is_plain_tree(base) and not self._resamples(base)
        rows = read_rows(X, self, base, as_table=as_table)
        found = check_training_labels(y, sample_weight, None, rows.X.shape[0], min_classes=1)
        if self._algorithm == "discrete" and len(found.classes) > 2:
            raise ValueError(
                f"algorithm='discrete' is for two classes, but y has {len(found.classes)}. Use "
                "algorithm='samme' or 'm1'."
            )
        kept = which_count(found.weight)
        return _TrainingData(
            rows.of_rows(kept),
            found.codes[kept],
            found.classes,
            found.weight[kept],
            samples_of(found.weight[kept], sample_weight),
        )

    def _read_validation(
        self, X_val: Any, y_val: Any, sample_weight: Any, training: _TrainingData
    ) -> _TrainingData:
        """Checked validation rows, with the columns and classes of the training data."""
        fitted = copy.copy(self)
        fitted.__dict__ = self.get_params(deep=False) | training.rows.attributes
        X = read_rows_like_fitted(X_val, fitted)
        if training.rows.table is not None and np.isinf(X.data if sp.issparse(X) else X).any():
            refuse_infinity(X, self, training.rows.table.feature_names)
        labels = check_labels(y_val, X.shape[0]).codes_among(
            training.classes
        )  # unknown: never right
        weight = check_weights(sample_weight, X.shape[0])
        return replace(
            training, rows=replace(training.rows, X=X, table=None), labels=labels, weight=weight
        )

    def _split_off_validation(
        self, training: _TrainingData, seed: int
    ) -> tuple[_TrainingData, _TrainingData]:
        """(training rows, validation rows) for early stopping, a random split by classes."""
        from sklearn.model_selection import train_test_split

        n = len(training.labels)
        counts = np.bincount(training.labels)
        size = int(np.ceil(self.validation_fraction * n))
        n_classes = len(training.classes)
        may_stratify = counts.min() >= 2 and size >= n_classes and n - size >= n_classes
        if n - size < 1:
            raise ValueError(
                f"early_stopping=True uses {size} of {n} rows for validation (validation_fraction="
                f"{self.validation_fraction}), which leaves none. Use early_stopping=False."
            )
        train, held_out = train_test_split(
            np.arange(n),
            test_size=size,
            random_state=seed % 2**32,
            stratify=training.labels if may_stratify else None,
        )
        return training.of_rows(np.sort(train)), training.of_rows(np.sort(held_out))

    def _errors_by_cross_validation(self, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
        """The mean error on the test folds after each round."""
        from sklearn.model_selection import check_cv
        from sklearn.utils import _safe_indexing

        X = X.tocsr() if sp.issparse(X) else collected(X)
        n = count_rows(X)
        labels = check_labels(y, n).codes
        weight = check_weights(sample_weight, n)
        folds = list(check_cv(self.cv, labels, classifier=True).split(labels, labels))
        model = clone(self).set_params(early_stopping=False, warm_start=False, verbose=0)
        if self.max_time is not None:  # one more fit follows, to all rows
            model.set_params(max_time=self.max_time / (len(folds) + 1))
        curves = []
        for train, test in folds:
            model.fit(
                _safe_indexing(X, train),
                _safe_indexing(y, train),
                weight[train],
                X_val=_safe_indexing(X, test),
                y_val=_safe_indexing(y, test),
                sample_weight_val=weight[test],
            )
            curves.append(model.history_.validation_error)
        longest = max(map(len, curves))
        padded = [np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves]
        mean: np.ndarray = np.mean(padded, axis=0)
        return mean

    def _process(
        self,
        rule: Rule,
        base: Any,
        training: _TrainingData,
        validation: ValidationErrors | None,
        n_rounds: int,
        seed: int,
    ) -> Boosting | StumpBoosting:
        """The process of the rounds: compiled for voting stumps, otherwise with a learner."""
        earlier = self._earlier(training, base)
        n_iter_no_change = self.n_iter_no_change if self.early_stopping is True else None
        n_threads = self._threads(training.rows.X)
        if isinstance(rule, VotingRule) and is_small_tree(base, training.rows, 1, n_threads):
            return self._stump_process(
                rule, base, training, validation, n_iter_no_change, n_rounds, earlier, n_threads
            )
        learner, members = self._learner(rule, base, training, seed, n_threads)
        if earlier is not None:
            _require_kind(earlier, type(members))
            members = earlier
        return Boosting(
            rule, learner, members, training.weight, training.rows.X, n_rounds,
            validation=validation, n_iter_no_change=n_iter_no_change,
        )  # fmt: skip

    def _learner(
        self, rule: Rule, base: Any, training: _TrainingData, seed: int, n_threads: int
    ) -> tuple[Any, Members]:
        X = training.rows.X
        if training.rows.table is not None:
            learner = self._tree_learner(rule, base, training, training.rows.table, seed, n_threads)
            known = self._known_to_trees(base, training, rule.answers != "numbers")
            return learner, TreeMembers(rule.answers, learner.kind, clone(base), known)
        resamples = self._resamples(base)
        order, n_draws = np.arange(len(training.labels)), len(training.labels)
        if resamples:
            is_text = not sp.issparse(X) and X.dtype == object
            numbers = (
                np.zeros((len(X), 1)) if is_text else training.rows.mixed.numbers(training.weight)
            )
            samples = plan_samples(
                numbers, training.labels.astype(np.int64), training.weight,
                seed=seed, max_samples=None, with_replacement=True,
            )  # fmt: skip
            order, n_draws = samples.rows, samples.n_draws
        any_learner = AnyLearner(
            base,
            training.rows.mixed.for_members,
            training.classes[training.labels],
            rule.answers,
            training.classes,
            resample=resamples,
            order=order,
            n_draws=n_draws,
            samples=training.samples,
            seed=seed,
        )
        return any_learner, EstimatorMembers(rule.answers, training.classes)

    def _tree_learner(
        self,
        rule: Rule,
        base: Any,
        training: _TrainingData,
        table: TreeTable,
        seed: int,
        n_threads: int,
    ) -> LevelLearner | DeepTreeLearner | TreeLearner:
        """Small classification trees grow by levels, larger ones as in forests, others as single
        trees."""
        labels, n_classes, answers = training.labels, len(training.classes), rule.answers
        learner: LevelLearner | DeepTreeLearner | TreeLearner
        if answers != "numbers" and is_small_tree(base, training.rows, DEEPEST, n_threads):
            fewest = rows_of_a_bin(n_classes, base.max_depth)
            learner = LevelLearner(
                read_stump_table(table.X, n_threads, rows_of_a_bin=fewest), labels, n_classes,
                training.samples, answers,
                criterion=base.criterion, max_depth=base.max_depth, n_threads=n_threads,
            )  # fmt: skip
        elif (
            answers != "numbers"
            and is_simple_tree(base, training.rows, n_threads)
            and base.criterion != "error"
            and len(labels) <= MOST_ROWS
            and (training.samples == 1).all()
        ):
            learner = DeepTreeLearner(base, table, labels, n_classes, answers, n_threads=n_threads)
        else:
            learner = TreeLearner(
                base, table, None if answers == "numbers" else labels, n_classes, training.samples,
                answers, seed=seed, n_threads=n_threads,
            )  # fmt: skip
        self._refuse_infinity(list(learner.extremes), table)
        return learner

    def _stump_process(
        self,
        rule: VotingRule,
        base: Any,
        training: _TrainingData,
        validation: ValidationErrors | None,
        n_iter_no_change: int | None,
        n_rounds: int,
        earlier: Any,
        n_threads: int,
    ) -> StumpBoosting:
        table = read_stump_table(training.rows.X, n_threads)
        self._refuse_infinity([(values, values) for values in table.values], training.rows.table)
        booster = StumpBooster(
            table,
            training.labels,
            len(training.classes),
            *_counts_and_logs(training.weight),
            training.samples,
            criterion=base.criterion,
            bonus=rule.bonus,
            chance=rule.chance,
            learning_rate=self.learning_rate,
            n_threads=n_threads,
        )
        if earlier is not None:
            _require_kind(earlier, StumpMembers)
            _check_stumps(earlier, table)
            booster.resume(earlier.found, len(earlier))
        known, template = self._known_to_trees(base, training, True), clone(base)
        n_samples = int(training.samples.sum())

        def make(found: Stumps) -> StumpMembers:
            return StumpMembers.of(found, table, n_samples, template, known)

        return StumpBoosting(
            rule, booster, make, n_rounds, [len(values) for values in table.values],
            one_by_one=bool(getattr(self, "_skl_callbacks", None)), validation=validation,
            n_iter_no_change=n_iter_no_change,
        )  # fmt: skip

    def _earlier(self, training: _TrainingData, base: Any) -> Any:
        """The members that a warm start continues from; raises if data or parameters differ."""
        members = self._members_so_far()
        if members is None:
            return None
        before, now = self._circumstances, self._circumstances_of(training, base)
        for name, value in now.items():
            if value != before.get(name, value):
                raise ValueError(
                    f"warm_start=True needs the data and parameters of the last fit, but {name} "
                    f"was {before[name]} and is {value}. Use warm_start=False to start again."
                )
        return members

    def _circumstances_of(self, training: _TrainingData, base: Any) -> dict[str, Any]:
        """What must be equal in a warm start."""
        X = training.rows.X
        cells = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        of_rows = {
            "the checksum of y and sample_weight": _checksum([training.labels, training.weight])
        }
        if self.warm_start:
            of_rows["the checksum of X"] = _checksum(cells)
        return of_rows | {
            "the number of features": training.rows.X.shape[1],
            "the set of classes": training.classes.tolist(),
            "algorithm": self._algorithm,
            "learning_rate": float(self.learning_rate),
            "estimator": type(base).__name__
            + ("" if training.rows.table is None else ", on a table"),
        }

    def _known_to_trees(self, base: Any, training: _TrainingData, is_class: bool) -> dict[str, Any]:
        """The fitted attributes of a member that is a tree."""
        known = self._attributes_of_trees(base, training.rows)
        if is_class:
            known |= {"classes_": training.classes, "n_classes_": np.intp(len(training.classes))}
        return known

    def _attributes(
        self, process: Boosting | StumpBoosting, base: Any, training: _TrainingData, seed: int
    ) -> dict[str, Any]:
        history, members, weights = process.history(), process.members, process.weights
        if process.outcome == "early stopping" and process.validation is not None:
            members = members.first(process.validation.best)
        return training.rows.attributes | {
            "estimator_": base,
            "_members": members,
            "estimator_weights_": weights[: len(members)],
            "estimator_errors_": history.error[: len(members)],
            "history_": history,
            "classes_": training.classes,
            "n_classes_": len(training.classes),
            "_seed_of_fit": seed,
            "_circumstances": self._circumstances_of(training, base),
        }

    def _warn_of(self, process: Boosting | StumpBoosting, base: Any) -> None:
        if process.outcome != "no better than chance":
            return
        name = type(base).__name__
        if not process.rounds:
            raise InvalidDataError(
                "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble can "
                f"not be fit: the base learner {name} is no better than chance. Its weighted error "
                f"in the first round is not below {process.rule.chance:.3g}. Use a stronger "
                "estimator, or check whether X is informative about y."
            )
        warnings.warn(
            f"AdaBoostClassifier stopped after {process.rounds} rounds: the next {name} was no "
            f"better than chance (weighted error not below {process.rule.chance:.3g}) and was "
            "left out.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _wants_positive(base: Any) -> bool:
    """Whether it is a tree with a criterion that does not support all numbers as targets."""
    criterion = getattr(base, "criterion", None)
    known = CRITERIA.get(criterion) if isinstance(criterion, str) else None
    return known is not None and known.targets != "all"


def _counts_and_logs(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(counts, logarithms of weights): weights are counts if they are small whole numbers."""
    units, _, counted = whole_weights(weight)
    counts = units // np.gcd.reduce(units)
    if counted and counts.sum() < _MOST_COUNTS:
        return counts, np.zeros(len(counts))
    return np.ones(len(weight), np.int64), np.log(weight)


def _checksum(arrays: list[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        is_object = array.dtype == object
        content = repr(array.tolist()).encode() if is_object else np.ascontiguousarray(array).data
        digest.update(content)
    return digest.hexdigest()[:16]


def _require_kind(members: Members, kind: type) -> None:
    if type(members) is not kind:
        raise ValueError(
            "warm_start=True needs the estimator of the last fit, but with the current parameters "
            "members are stored differently. Use warm_start=False to start again."
        )


def _check_stumps(members: StumpMembers, table: StumpTable) -> None:
    """Raise if the thresholds of earlier stumps are not those of this table."""
    for feature, code, threshold in zip(
        members.found.feature, members.found.code, members.thresholds, strict=True
    ):
        if feature >= 0 and (
            code + 1 >= len(table.values[feature])
            or table.threshold(int(feature), int(code)) != threshold
        ):
            raise ValueError(
                "warm_start=True needs the data of the last fit, but the values of X have changed. "
                "Use warm_start=False to start again."
            )
