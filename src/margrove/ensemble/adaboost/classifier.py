"""Estimator: AdaBoostClassifier."""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import check_is_fitted

from margrove._data import check_labels, check_training_labels, check_weights, collected, count_rows
from margrove.ensemble.adaboost.algorithms import ALGORITHMS, Rule, VotingRule, rule_of
from margrove.ensemble.adaboost.boosted_ensemble import BOOSTING_PARAMETERS, Boosted
from margrove.ensemble.adaboost.deep_trees import MOST_ROWS, SaplingLearner
from margrove.ensemble.adaboost.level_trees import DEEPEST, LevelLearner, rows_of_a_bin
from margrove.ensemble.adaboost.rounds import Boosting, StumpBoosting, Watched
from margrove.ensemble.adaboost.stump_tables import StumpTable, read_stump_table
from margrove.ensemble.adaboost.stumps import StumpBooster, Stumps
from margrove.ensemble.adaboost.training_data import (
    BoostingRows,
    is_plain_tree,
    is_simple_tree,
    is_small_tree,
    read_rows,
    read_rows_like_fitted,
)
from margrove.ensemble.adaboost.weak_learners import (
    AnyLearner,
    EstimatorMembers,
    Members,
    StumpMembers,
    TreeLearner,
    TreeMembers,
    rows_at_once,
)
from margrove.ensemble.bagging import lay_out
from margrove.exceptions import ConvergenceWarning, InvalidDataError
from margrove.grove import CRITERIA, DecisionTreeClassifier, DecisionTreeRegressor
from margrove.grove.read import shown
from margrove.grove.serve import TreeArrays, TreeSum, tree_sum
from margrove.grove.table import TreeTable, refuse_infinity, samples_of, which_count, whole_weights

__all__ = ["AdaBoostClassifier"]

_COUNT = Interval(Integral, 1, None, closed="left")
_MOST_COUNTS = 2**24  # of which each still has bits to be told apart by
_OTHER_NAMES = {"SAMME": "samme", "SAMME.R": "real"}  # of scikit-learn


@dataclass(frozen=True)
class _Given:
    """A checked training set, rows of weight zero left out.

    samples   int64 (n,)  how many samples each row stands for
    """

    rows: BoostingRows
    labels: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    samples: np.ndarray

    def of_rows(self, which: np.ndarray) -> _Given:
        return replace(
            self,
            rows=self.rows.of_rows(which),
            labels=self.labels[which],
            weight=self.weight[which],
            samples=self.samples[which],
        )


class AdaBoostClassifier(ClassifierMixin, Boosted):
    """Weak classifiers, one after the other, each trained on what the ones before got wrong.

    A drop-in for `sklearn.ensemble.AdaBoostClassifier`. Stumps and trees of this library are grown
    on one table of codes for all rounds; stumps by histograms of which only the misclassified rows
    are brought up to date. What happened in each round is in `history_`.

    Parameters
    ----------
    estimator : estimator or None, default=None
        The weak learner. None is a decision tree of depth one, a stump. Any scikit-learn estimator
        will do; one that takes no `sample_weight` is given samples drawn by the weights.
        "gentle" and "logit" want a regressor, "real" a classifier with `predict_proba`.
        `DecisionTreeClassifier(max_depth=1, criterion="error")` is the stump of the smallest
        weighted error.
    n_estimators : int, default=50
        The most rounds.
    learning_rate : float, default=1.0
        Factor on the weight of each member.
    algorithm : {"samme", "discrete", "m1", "real", "gentle", "logit"}, default="samme"
        For two classes the first three are the same, AdaBoost as it is in the textbooks.
        "discrete" takes no more than two. For more, "m1" wants members that err in less than half
        of the cases, and "samme" such that are better than guessing. "real" uses the shares of the
        classes that members give, "gentle" and "logit" fit numbers, for each class if there are
        more than two; see `margrove.ensemble.adaboost.algorithms`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the samples that are drawn, and of the members' own random states.
    resample : bool, default=False
        Draw samples by the weights even where the estimator takes weights.
    early_stopping : bool or "cv", default=False
        True: stop when the error on rows held out has not improved for `n_iter_no_change` rounds,
        and keep the rounds up to the best. "cv": find the number of rounds by cross-validation
        first, then train on all rows.
    validation_fraction : float, default=0.1
        Share of the rows that early stopping holds out, unless `fit` is given others.
    n_iter_no_change : int, default=20
        Rounds without improvement after which to stop.
    cv : int, splitter or iterable of splits, default=5
        Folds of the cross-validation of `early_stopping="cv"`.
    warm_start : bool, default=False
        Go on from the members of the last fit, with the same data.
    n_jobs : int or None, default=None
        Threads that stumps and trees of this library are grown with; None means all permitted
        cores.
    max_time : float or None, default=None
        Seconds after which boosting ends with the members it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    estimators_ : sequence of estimators
        The members. Where a round has a member for each class, lists of them.
    estimator_ : estimator
        What the members are copies of.
    estimator_weights_ : ndarray of shape (n_members,)
        As scikit-learn scales them: twice the beta of the textbooks.
    estimator_errors_ : ndarray of shape (n_members,)
        The weighted errors.
    history_ : BoostingHistory
        Round by round: error, beta, normaliser, edge, training error and what bounds it, validation
        error; and why boosting stopped.
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.
    categories_ : dict
        Labels of each categorical column, where trees of this library are grown on one table.
    feature_importances_ : ndarray of shape (n_features,)
        The weighted mean of those of the members, where they have some.
    cv_errors_ : ndarray of shape (n_rounds,)
        With `early_stopping="cv"`: the mean error of the folds after each round.

    Examples
    --------
    >>> from margrove import AdaBoostClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=20).fit(X, y == 1)
    >>> bool(model.history_.training_error[-1] <= model.history_.bound[-1])
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = BOOSTING_PARAMETERS | {
        "algorithm": [StrOptions(set(ALGORITHMS) | set(_OTHER_NAMES))],
        "early_stopping": ["boolean", StrOptions({"cv"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [_COUNT],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        algorithm: str = "samme",
        random_state: Any = None,
        resample: bool = False,
        early_stopping: bool | Literal["cv"] = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        cv: Any = 5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.algorithm = algorithm
        self.random_state = random_state
        self.resample = resample
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.cv = cv
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.verbose = verbose

    # -- training --

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
        """Boost.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Whatever the estimator takes.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            The weights to start from: 0 is a row removed, 2 a row that is there twice.
        X_val, y_val, sample_weight_val : optional
            Rows whose error is recorded round by round, and which early stopping goes by.

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
        given = self._read(X, y, sample_weight, base)
        seed = self._seed()
        held_out: _Given | None = None
        if X_val is not None:
            held_out = self._read_validation(X_val, y_val, sample_weight_val, given)
        elif self.early_stopping is True:
            given, held_out = self._parted(given, seed)
        rule = rule_of(self._algorithm, given.labels, len(given.classes), self.learning_rate)
        watched = None
        if held_out is not None:
            watched = Watched(rule, held_out.rows.X, held_out.labels, held_out.weight)
        process = self._process(rule, base, given, watched, n_rounds, seed)

        def fitted() -> dict[str, Any]:
            return found | self._attributes(process, base, given, seed)

        others = {"sample_weight": sample_weight, "X_val": X_val, "y_val": y_val,
                  "sample_weight_val": sample_weight_val}  # fmt: skip
        self._run(process, X, y, fitted, others)
        self._warn_of(process, base)
        self._commit(fitted())
        return self

    @property
    def _algorithm(self) -> str:
        return _OTHER_NAMES.get(self.algorithm, self.algorithm)

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
                f"algorithm={algorithm!r} fits numbers below zero, which criterion="
                f"{base.criterion!r} does not take. Use criterion='squared_error'."
            )
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both or none of them.")

    def _read(self, X: Any, y: Any, sample_weight: Any, base: Any) -> _Given:
        as_table = is_plain_tree(base) and not self._resamples(base)
        rows = read_rows(X, self, base, as_table=as_table)
        found = check_training_labels(y, sample_weight, None, rows.X.shape[0], min_classes=1)
        if self._algorithm == "discrete" and len(found.classes) > 2:
            raise ValueError(
                f"algorithm='discrete' is for two classes, but y has {len(found.classes)}. Use "
                "algorithm='samme' or 'm1'."
            )
        kept = which_count(found.weight)
        return _Given(
            rows.of_rows(kept),
            found.codes[kept],
            found.classes,
            found.weight[kept],
            samples_of(found.weight[kept], sample_weight),
        )

    def _read_validation(self, X_val: Any, y_val: Any, sample_weight: Any, given: _Given) -> _Given:
        """Rows to look at, as the training has columns and classes."""
        fitted = copy.copy(self)
        fitted.__dict__ = self.get_params(deep=False) | given.rows.attributes
        X = read_rows_like_fitted(X_val, fitted)
        if given.rows.table is not None and np.isinf(X.data if sp.issparse(X) else X).any():
            refuse_infinity(X, self, given.rows.table.feature_names)
        labels = check_labels(y_val, X.shape[0]).codes_among(given.classes)  # unknown: never right
        weight = check_weights(sample_weight, X.shape[0])
        return replace(
            given, rows=replace(given.rows, X=X, table=None), labels=labels, weight=weight
        )

    def _parted(self, given: _Given, seed: int) -> tuple[_Given, _Given]:
        """Rows to train on, and rows to see when to stop."""
        from sklearn.model_selection import train_test_split

        n = len(given.labels)
        counts = np.bincount(given.labels)
        size = int(np.ceil(self.validation_fraction * n))
        n_classes = len(given.classes)
        may_stratify = counts.min() >= 2 and size >= n_classes and n - size >= n_classes
        if n - size < 1:
            raise ValueError(
                f"early_stopping=True sets {size} of {n} rows apart (validation_fraction="
                f"{self.validation_fraction}), which leaves none. Use early_stopping=False."
            )
        train, held_out = train_test_split(
            np.arange(n),
            test_size=size,
            random_state=seed % 2**32,
            stratify=given.labels if may_stratify else None,
        )
        return given.of_rows(np.sort(train)), given.of_rows(np.sort(held_out))

    def _errors_by_cross_validation(self, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
        """The mean error on left out folds, round by round."""
        from sklearn.model_selection import check_cv
        from sklearn.utils import _safe_indexing

        X = X.tocsr() if sp.issparse(X) else collected(X)
        n = count_rows(X)
        labels = check_labels(y, n).codes
        weight = check_weights(sample_weight, n)
        folds = list(check_cv(self.cv, labels, classifier=True).split(labels, labels))
        model = clone(self).set_params(early_stopping=False, warm_start=False, verbose=0)
        if self.max_time is not None:  # the last one is for all rows
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
        longest = max(len(own) for own in curves)
        padded = [np.pad(own, (0, longest - len(own)), mode="edge") for own in curves]
        mean: np.ndarray = np.mean(padded, axis=0)
        return mean

    def _process(
        self,
        rule: Rule,
        base: Any,
        given: _Given,
        watched: Watched | None,
        n_rounds: int,
        seed: int,
    ) -> Boosting | StumpBoosting:
        """How the rounds are run: compiled for stumps, on one table for trees, or one by one."""
        earlier = self._earlier(given, base)
        patience = self.n_iter_no_change if self.early_stopping is True else None
        n_threads = self._threads(given.rows.X)
        if isinstance(rule, VotingRule) and is_small_tree(base, given.rows, 1):
            return self._stump_process(
                rule, base, given, watched, patience, n_rounds, earlier, n_threads
            )
        learner, members = self._learner(rule, base, given, seed, n_threads)
        if earlier is not None:
            _require_kind(earlier, type(members))
            members = earlier
        return Boosting(
            rule, learner, members, given.weight, given.rows.X, n_rounds,
            watched=watched, patience=patience,
        )  # fmt: skip

    def _learner(
        self, rule: Rule, base: Any, given: _Given, seed: int, n_threads: int
    ) -> tuple[Any, Members]:
        X = given.rows.X
        if given.rows.table is not None:
            learner = self._tree_learner(rule, base, given, given.rows.table, seed, n_threads)
            known = self._known_to_trees(base, given, rule.answers != "numbers")
            return learner, TreeMembers(rule.answers, learner.kind, clone(base), known)
        resamples = self._resamples(base)
        order, n_draws = np.arange(len(given.labels)), len(given.labels)
        if resamples:
            is_text = not sp.issparse(X) and X.dtype == object
            numbers = np.zeros((len(X), 1)) if is_text else given.rows.mixed.numbers(given.weight)
            laid_out = lay_out(
                numbers, given.labels.astype(np.int64), given.weight,
                seed=seed, max_samples=None, with_replacement=True,
            )  # fmt: skip
            order, n_draws = laid_out.rows, laid_out.n_draws
        any_learner = AnyLearner(
            base,
            given.rows.mixed.for_members,
            given.classes[given.labels],
            rule.answers,
            given.classes,
            resample=resamples,
            order=order,
            n_draws=n_draws,
            samples=given.samples,
            seed=seed,
        )
        return any_learner, EstimatorMembers(rule.answers, given.classes)

    def _tree_learner(
        self, rule: Rule, base: Any, given: _Given, table: TreeTable, seed: int, n_threads: int
    ) -> LevelLearner | SaplingLearner | TreeLearner:
        """Small trees of classes by levels, larger ones as in forests, others as single trees."""
        labels, n_classes, answers = given.labels, len(given.classes), rule.answers
        learner: LevelLearner | SaplingLearner | TreeLearner
        if answers != "numbers" and is_small_tree(base, given.rows, DEEPEST):
            fewest = rows_of_a_bin(n_classes, base.max_depth)
            learner = LevelLearner(
                read_stump_table(table.X, n_threads, rows_of_a_bin=fewest), labels, n_classes,
                given.samples, answers,
                criterion=base.criterion, max_depth=base.max_depth, n_threads=n_threads,
            )  # fmt: skip
        elif (
            answers != "numbers"
            and is_simple_tree(base, given.rows)
            and base.criterion != "error"
            and len(labels) <= MOST_ROWS
            and (given.samples == 1).all()
        ):
            learner = SaplingLearner(base, table, labels, n_classes, answers, n_threads=n_threads)
        else:
            learner = TreeLearner(
                base, table, None if answers == "numbers" else labels, n_classes, given.samples,
                answers, seed=seed, n_threads=n_threads,
            )  # fmt: skip
        self._refuse_infinity(list(learner.extremes), table)
        return learner

    def _stump_process(
        self,
        rule: VotingRule,
        base: Any,
        given: _Given,
        watched: Watched | None,
        patience: int | None,
        n_rounds: int,
        earlier: Any,
        n_threads: int,
    ) -> StumpBoosting:
        table = read_stump_table(given.rows.X, n_threads)
        self._refuse_infinity([(own, own) for own in table.values], given.rows.table)
        booster = StumpBooster(
            table,
            given.labels,
            len(given.classes),
            *_counts_and_logs(given.weight),
            given.samples,
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
        known, template = self._known_to_trees(base, given, True), clone(base)
        n_samples = int(given.samples.sum())

        def make(found: Stumps) -> StumpMembers:
            return StumpMembers.of(found, table, n_samples, template, known)

        return StumpBoosting(
            rule, booster, make, n_rounds, [len(own) for own in table.values],
            one_by_one=bool(getattr(self, "_skl_callbacks", None)), watched=watched,
            patience=patience,
        )  # fmt: skip

    def _earlier(self, given: _Given, base: Any) -> Any:
        """The members that a warm start goes on from."""
        members = self._members_so_far()
        if members is None:
            return None
        before, now = self._circumstances, self._circumstances_of(given, base)
        for name, own in now.items():
            if own != before.get(name, own):
                raise ValueError(
                    f"warm_start=True goes on with the data and parameters of the last fit, but "
                    f"{name} was {before[name]} and is {own}. Use warm_start=False to start anew."
                )
        return members

    def _circumstances_of(self, given: _Given, base: Any) -> dict[str, Any]:
        """What must be the same where a fit goes on."""
        X = given.rows.X
        cells = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        of_rows = {"the checksum of y and sample_weight": _checksum([given.labels, given.weight])}
        if self.warm_start:
            of_rows["the checksum of X"] = _checksum(cells)
        return of_rows | {
            "the number of features": given.rows.X.shape[1],
            "the set of classes": given.classes.tolist(),
            "algorithm": self._algorithm,
            "learning_rate": float(self.learning_rate),
            "estimator": type(base).__name__ + ("" if given.rows.table is None else ", on a table"),
        }

    def _known_to_trees(self, base: Any, given: _Given, is_class: bool) -> dict[str, Any]:
        """Attributes of a member that is a tree."""
        known = self._attributes_of_trees(base, given.rows)
        if is_class:
            known |= {"classes_": given.classes, "n_classes_": np.intp(len(given.classes))}
        return known

    def _attributes(
        self, process: Boosting | StumpBoosting, base: Any, given: _Given, seed: int
    ) -> dict[str, Any]:
        history, members, weights = process.history(), process.members, process.weights
        if process.outcome == "early stopping" and process.watched is not None:
            members = members.part(process.watched.best)
        return given.rows.attributes | {
            "estimator_": base,
            "_members": members,
            "estimator_weights_": weights[: len(members)],
            "estimator_errors_": history.error[: len(members)],
            "history_": history,
            "classes_": given.classes,
            "n_classes_": len(given.classes),
            "_seed_of_fit": seed,
            "_circumstances": self._circumstances_of(given, base),
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
                "estimator, or look whether X says anything about y."
            )
        warnings.warn(
            f"AdaBoostClassifier stopped after {process.rounds} rounds: the next {name} was no "
            f"better than chance (weighted error not below {process.rule.chance:.3g}) and was "
            "left out.",
            ConvergenceWarning,
            stacklevel=3,
        )

    # -- asking --

    def _rule(self) -> Rule:
        nobody = np.empty(0, np.int64)
        return self._rule_for(nobody)

    def _codes(self, y: Any, n_rows: int) -> np.ndarray:
        labels = check_labels(y, n_rows)
        codes = labels.codes_among(self.classes_)
        if (codes < 0).any():
            unknown = labels.classes[labels.codes[np.argmax(codes < 0)]]
            raise InvalidDataError(
                f"y has {unknown!r}, which is not among the classes of the model, "
                f"{self.classes_.tolist()}."
            )
        return codes

    def _rule_for(self, labels: np.ndarray) -> Rule:
        """That of the fit, whatever parameters have been set since."""
        fitted = self._circumstances
        return rule_of(fitted["algorithm"], labels, self.n_classes_, fitted["learning_rate"])

    def _staged_scores(self, X: Any) -> Iterator[tuple[np.ndarray, float]]:
        """Sums of what members add to each class, and of their weights, after each round."""
        rows, rule, total = self._rows(X), self._rule(), 0.0
        scores = np.zeros((rows.shape[0], self.n_classes_))
        for t, weight in enumerate(self.estimator_weights_):
            scores = scores + rule.scores(self._members.answers(rows, t), float(weight))
            total += float(weight)
            yield scores, total

    def _scores(self, X: Any) -> tuple[np.ndarray, float]:
        """The last of them, at once."""
        rows, rule, weights = self._rows(X), self._rule(), self.estimator_weights_
        total, n = float(weights.sum()), rows.shape[0]
        if isinstance(self._members, StumpMembers):
            votes = self._members.votes(rows, weights, self.n_classes_)
            others = max(self.n_classes_ - 1.0, 1.0)
            return votes - (total - votes) / others, total
        scores = np.zeros((n, self.n_classes_))
        size = rows_at_once(rows.shape[1]) if isinstance(self._members, TreeMembers) else max(n, 1)
        for begin in range(0, n, size):
            part = slice(begin, begin + size)
            for t, weight in enumerate(weights):
                answers = self._members.answers(rows[part], t)
                scores[part] += rule.scores(answers, float(weight))
        return scores, total

    def _decisions(self, scores: np.ndarray, total: float) -> np.ndarray:
        if isinstance(self._rule(), VotingRule):
            scores = scores / total
        elif self.n_classes_ == 2:
            scores = scores / 2.0
        return scores[:, 1] - scores[:, 0] if self.n_classes_ == 2 else scores

    def _tree_sum(self, function: str) -> TreeSum:
        """The decision function as a sum of trees; see `TreeSum`."""
        check_is_fitted(self, "estimator_weights_")
        return tree_sum(
            self,
            self._summands(function),
            function,
            is_single=self.n_classes_ <= 2,
            answer=self.decision_function,
        )

    def _summands(self, function: str) -> Iterator[TreeArrays]:
        """The trees of all rounds, with what their nodes add to the decision function as values."""
        members, rule = self._members, self._rule()
        if isinstance(members, EstimatorMembers):
            raise ValueError(
                f"{function} takes an AdaBoostClassifier of stumps or trees that were grown on one "
                f"table, but this one has members of type {shown(type(self.estimator_).__name__)} "
                "that were fitted one by one. Use resample=False and a decision tree of margrove "
                "without class_weight, early_stopping, split='multiway' or splitter='oblique'; or "
                "pass single members."
            )
        total = float(self.estimator_weights_.sum())
        for t, weight in enumerate(self.estimator_weights_.tolist()):
            trees = [member.arrays_ for member in members.estimators(t)]
            for k, tree in enumerate(trees):
                if rule.answers == "labels":
                    answers = np.argmax(tree.value, axis=1)
                elif rule.answers == "shares":
                    answers = tree.value
                else:
                    answers = np.zeros((len(tree), len(trees)))
                    answers[:, k] = tree.value[:, 0]
                added = self._decisions(rule.scores(answers, weight), total)
                yield replace(tree, value=np.ascontiguousarray(added.reshape(len(tree), -1)))

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.classes_[np.argmax(scores, axis=1)]
        return found

    def decision_function(self, X: Any) -> np.ndarray:
        """How much speaks for each class, or for the second of two.

        Of voting members as scikit-learn scales it, of the others the sum F of what they add.
        """
        return self._decisions(*self._scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class for which most speaks; of equals the first."""
        return self._labels(self._scores(X)[0])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Shares of the classes, (n_samples, n_classes).

        Of voting members the softmax that scikit-learn takes; of the others what their loss
        estimates.
        """
        scores, total = self._scores(X)
        return self._rule().probabilities(scores, total)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of the shares."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """`decision_function` after each round."""
        for scores, total in self._staged_scores(X):
            yield self._decisions(scores, total)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """`predict` after each round."""
        for scores, _ in self._staged_scores(X):
            yield self._labels(scores)

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """`predict_proba` after each round."""
        for scores, total in self._staged_scores(X):
            yield self._rule().probabilities(scores, total)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """The accuracy after each round."""
        for found in self.staged_predict(X):
            yield float(accuracy_score(y, found, sample_weight=sample_weight))

    def margins(self, X: Any, y: Any, n_rounds: int | None = None) -> np.ndarray:
        """How clearly each row is right (> 0) or wrong (< 0), after so many rounds.

        Of voting members the share of the votes for the right class less that of the next best,
        from -1 to 1; of the others half of what speaks for the right class more than for the next.
        """
        if n_rounds is not None and not 1 <= n_rounds <= len(self):
            raise ValueError(f"n_rounds must be in 1 .. {len(self)}. Got {n_rounds} instead.")
        stages = self._staged_scores(X)
        scores, total = next(stages)
        for _ in range(1, n_rounds or len(self)):
            scores, total = next(stages)
        codes = self._codes(y, len(scores))
        every = np.arange(len(scores))
        own = scores[every, codes]
        others = scores.copy()
        others[every, codes] = -np.inf
        ahead = own - others.max(axis=1) if self.n_classes_ > 1 else own
        if not isinstance(self._rule(), VotingRule):
            return 0.5 * ahead
        found: np.ndarray = ahead / total * max(self.n_classes_ - 1.0, 1.0) / self.n_classes_
        return found

    def staged_weights(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[np.ndarray]:
        """The weights D of the training rows before each round, and after the last.

        X, y and sample_weight are those of the fit. Each sums to one; where a round has a member
        for each class, (n_samples, n_classes) of which each column does.
        """
        rows = self._rows(X)
        codes = self._codes(y, rows.shape[0])
        weight = check_weights(sample_weight, rows.shape[0])
        rule = self._rule_for(codes)
        logs = rule.start(weight)
        for t in range(len(self)):
            task = rule.task(logs)
            yield task.weights[0] if len(task.weights) == 1 else task.weights.T
            gains = rule.hear(self._members.answers(rows, t), task).gains
            logs = logs + gains.reshape(logs.shape)
        task = rule.task(logs)
        yield task.weights[0] if len(task.weights) == 1 else task.weights.T


def _wants_positive(base: Any) -> bool:
    """Whether it is a tree that does not take all numbers."""
    criterion = getattr(base, "criterion", None)
    known = CRITERIA.get(criterion) if isinstance(criterion, str) else None
    return known is not None and known.targets != "all"


def _counts_and_logs(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights as counts, where they are a few whole numbers, else as logarithms."""
    whole, _, counted = whole_weights(weight)
    counts = whole // np.gcd.reduce(whole)
    if counted and counts.sum() < _MOST_COUNTS:
        return counts, np.zeros(len(counts))
    return np.ones(len(weight), np.int64), np.log(weight)


def _checksum(arrays: list[Any]) -> str:
    digest = hashlib.sha256()
    for own in arrays:
        is_object = own.dtype == object
        digest.update(repr(own.tolist()).encode() if is_object else own.tobytes())
    return digest.hexdigest()[:16]


def _require_kind(members: Members, kind: type) -> None:
    if type(members) is not kind:
        raise ValueError(
            "warm_start=True goes on with the estimator of the last fit, but its parameters make "
            "another kind of member now. Use warm_start=False to start anew."
        )


def _check_stumps(members: StumpMembers, table: StumpTable) -> None:
    """Whether stumps of an earlier fit part the values of this table where they did."""
    for feature, code, threshold in zip(
        members.found.feature, members.found.code, members.thresholds, strict=True
    ):
        if feature >= 0 and (
            code + 1 >= len(table.values[feature])
            or table.threshold(int(feature), int(code)) != threshold
        ):
            raise ValueError(
                "warm_start=True goes on with the data of the last fit, but the values of X are "
                "others. Use warm_start=False to start anew."
            )
