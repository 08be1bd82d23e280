"""Estimator: AdaBoostClassifier."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from margrove._data import check_labels, check_training_labels, check_weights, seed_of
from margrove._estimator import RANDOM_STATE, RUN_CONTROL, Estimator
from margrove._slices import drive
from margrove._threads import resolve_n_jobs
from margrove.ensemble.boosting_rounds import Boosting, StumpBoosting, Watched
from margrove.ensemble.boosting_rules import ALGORITHMS, Rule, VotingRule, rule_of
from margrove.ensemble.boosting_training import (
    BoostingRows,
    is_plain_stump,
    is_plain_tree,
    read_rows,
    read_rows_like_fitted,
)
from margrove.ensemble.samples import lay_out
from margrove.ensemble.stump_tables import StumpTable, read_stump_table
from margrove.ensemble.stumps import StumpBooster, Stumps
from margrove.ensemble.weak_learners import (
    AnyLearner,
    EstimatorMembers,
    Members,
    StumpMembers,
    TreeLearner,
    TreeMembers,
    rows_at_once,
)
from margrove.exceptions import ConvergenceWarning, InvalidDataError
from margrove.grove.encoding import refuse_infinity
from margrove.grove.given_targets import samples_of, which_count
from margrove.grove.targets import whole_weights
from margrove.grove.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["BOOSTING_PARAMETERS", "AdaBoostClassifier", "MembersOfBoosting"]

_COUNT = Interval(Integral, 1, None, closed="left")
_OTHER_NAMES = {"SAMME": "samme", "SAMME.R": "real"}  # of scikit-learn
_FEW_CELLS = 20_000

BOOSTING_PARAMETERS: dict[str, list[Any]] = {
    "estimator": [HasMethods(["fit", "predict"]), None],
    "n_estimators": [_COUNT],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "resample": ["boolean"],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


class MembersOfBoosting(Sequence[Any]):
    """The members of a boosted model as estimators of their own, each made when it is asked for.

    Where a round has a member for each class, an entry is the list of them.
    """

    def __init__(self, members: Members) -> None:
        self._members = members

    def __len__(self) -> int:
        return len(self._members)

    @overload
    def __getitem__(self, which: int) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> list[Any]: ...
    def __getitem__(self, which: int | slice) -> Any:
        if isinstance(which, slice):
            return [self[t] for t in range(*which.indices(len(self)))]
        found = self._members.estimators(range(len(self))[which])
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        return f"<{len(self)} members of a boosted model>"


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


class AdaBoostClassifier(ClassifierMixin, Estimator):
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
        more than two; see `margrove.ensemble.boosting_rules`.
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

        drive(
            process,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=self.verbose,
            X=X,
            y=y,
            fitted=fitted,
        )
        while not process.rounds and process.outcome is None:  # no budget is too small for one
            process.advance(0.0)
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
        if isinstance(base, type):
            raise TypeError(
                f"The 'estimator' parameter of AdaBoostClassifier must be an instance. Got the "
                f"class {base.__name__} instead: write {base.__name__}()."
            )
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

    def _resamples(self, base: Any) -> bool:
        return self.resample or not has_fit_parameter(base, "sample_weight")

    def _seed(self) -> int:
        is_going_on = self.warm_start and hasattr(self, "_members")
        return int(self._seed_of_fit) if is_going_on else seed_of(self.random_state)

    def _read_validation(self, X_val: Any, y_val: Any, sample_weight: Any, given: _Given) -> _Given:
        """Rows to look at, as the training has columns and classes."""
        fitted = copy.copy(self)
        fitted.__dict__ = dict(vars(self)) | given.rows.attributes
        if given.rows.table is None:
            fitted.__dict__.pop("categories_", None)
        X = read_rows_like_fitted(X_val, fitted)
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

        n = X.shape[0] if hasattr(X, "shape") else len(X)
        labels = check_labels(y, n).codes
        weight = check_weights(sample_weight, n)
        model = clone(self).set_params(early_stopping=False, warm_start=False, verbose=0)
        curves = np.zeros(self.n_estimators)
        folds = list(check_cv(self.cv, labels, classifier=True).split(labels, labels))
        for train, test in folds:
            model.fit(
                _safe_indexing(X, train),
                _safe_indexing(y, train),
                weight[train],
                X_val=_safe_indexing(X, test),
                y_val=_safe_indexing(y, test),
                sample_weight_val=weight[test],
            )
            errors = model.history_.validation_error
            curves[: len(errors)] += errors
            curves[len(errors) :] += errors[-1]  # of a training that has stopped
        return curves / len(folds)

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
        earlier = self._earlier(given)
        patience = self.n_iter_no_change if self.early_stopping is True else None
        n_threads = resolve_n_jobs(self.n_jobs, unset="all")
        if given.rows.X.shape[0] * given.rows.X.shape[1] < _FEW_CELLS:
            n_threads = 1
        if isinstance(rule, VotingRule) and is_plain_stump(base, given.rows):
            return self._stump_process(
                rule, base, given, watched, patience, n_rounds, earlier, n_threads
            )
        learner, members = self._learner(rule, base, given, seed, n_threads)
        if earlier is not None:
            members = earlier
        return Boosting(
            rule, learner, members, given.weight, given.rows.X, n_rounds,
            watched=watched, patience=patience,
        )  # fmt: skip

    def _learner(
        self, rule: Rule, base: Any, given: _Given, seed: int, n_threads: int
    ) -> tuple[Any, Members]:
        X, table = given.rows.X, given.rows.table
        labels = None if rule.answers == "numbers" else given.labels
        if table is not None:
            learner = TreeLearner(
                base, table, labels, len(given.classes), given.samples, rule.answers,
                seed=seed, n_threads=n_threads,
            )  # fmt: skip
            self._refuse_infinity(list(learner.extremes), table)
            known = self._known_to_trees(base, given, labels is not None)
            return learner, TreeMembers(rule.answers, learner.kind, clone(base), known)
        resamples = self._resamples(base)
        order, n_draws = np.arange(len(given.labels)), len(given.labels)
        if resamples:
            numbers = X if sp.issparse(X) or X.dtype != object else np.zeros((len(X), 1))
            laid_out = lay_out(
                numbers, given.labels.astype(np.int64), given.weight,
                seed=seed, max_samples=None, with_replacement=True,
            )  # fmt: skip
            order, n_draws = laid_out.rows, laid_out.n_draws
        any_learner = AnyLearner(
            base,
            X,
            given.classes[given.labels],
            rule.answers,
            given.classes,
            resample=resamples,
            order=order,
            n_draws=n_draws,
            seed=seed,
        )
        return any_learner, EstimatorMembers(rule.answers, given.classes)

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
        whole, _, counted = whole_weights(given.weight)
        booster = StumpBooster(
            table,
            given.labels,
            len(given.classes),
            whole if counted else np.ones(len(whole), np.int64),
            np.zeros(len(whole)) if counted else np.log(given.weight),
            given.samples,
            criterion=base.criterion,
            bonus=rule.bonus,
            chance=rule.chance,
            learning_rate=self.learning_rate,
            n_threads=n_threads,
        )
        if earlier is not None:
            _check_stumps(earlier, table)
            booster.resume(earlier.found, len(earlier))
        known, template = self._known_to_trees(base, given, True), clone(base)
        n_samples = int(given.samples.sum())

        def make(found: Stumps) -> StumpMembers:
            return StumpMembers.of(found, table, n_samples, template, known)

        return StumpBoosting(
            rule, booster, make, n_rounds,
            one_by_one=bool(getattr(self, "_skl_callbacks", None)), watched=watched,
            patience=patience,
        )  # fmt: skip

    def _earlier(self, given: _Given) -> Any:
        """The members that a warm start goes on from."""
        if not self.warm_start or not hasattr(self, "_members"):
            return None
        if self.n_estimators < len(self._members):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(self._members)} when warm_start==True. Use "
                "warm_start=False to start anew."
            )
        before = (self.n_features_in_, self.classes_.tolist(), self._fitted_algorithm)
        now = (given.rows.X.shape[1], given.classes.tolist(), self._algorithm)
        if before != now:
            raise ValueError(
                "warm_start=True goes on with the data and the algorithm of the last fit, which "
                f"had {before[0]} features, the classes {before[1]} and "
                f"algorithm={before[2]!r}. Use warm_start=False to start anew."
            )
        return self._members

    def _known_to_trees(self, base: Any, given: _Given, is_class: bool) -> dict[str, Any]:
        """Attributes of a member that is a tree."""
        known = given.rows.attributes | {
            "n_outputs_": 1,
            "max_features_": given.rows.X.shape[1],
        }
        if is_class:
            known |= {"classes_": given.classes, "n_classes_": np.intp(len(given.classes))}
        return known

    def _refuse_infinity(self, extremes: list[Any], table: Any) -> None:
        if any(len(low) and np.isinf([low[0], high[-1]]).any() for low, high in extremes):
            refuse_infinity(table.X, self, table.feature_names)

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
            "_fitted_algorithm": self._algorithm,
        }

    def _warn_of(self, process: Boosting | StumpBoosting, base: Any) -> None:
        if process.outcome != "no better than chance":
            return
        name = type(base).__name__
        if not process.rounds:
            raise InvalidDataError(
                f"The base learner {name} is no better than chance: its weighted error in the "
                f"first round is not below {process.rule.chance:.3g}. Use a stronger estimator, "
                "or look whether X says anything about y."
            )
        warnings.warn(
            f"AdaBoostClassifier stopped after {process.rounds} rounds: the next {name} was no "
            f"better than chance (weighted error not below {process.rule.chance:.3g}) and was "
            "left out.",
            ConvergenceWarning,
            stacklevel=3,
        )

    # -- members --

    @property
    def estimators_(self) -> Sequence[Any]:
        """The members as estimators of their own."""
        check_is_fitted(self, "estimator_weights_")
        return MembersOfBoosting(self._members)

    def __len__(self) -> int:
        """The number of members."""
        check_is_fitted(self, "estimator_weights_")
        return len(self._members)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def __getitem__(self, which: int) -> Any:
        """One of the members."""
        return self.estimators_[which]

    @property
    def feature_importances_(self) -> np.ndarray:
        """The weighted mean of those of the members."""
        check_is_fitted(self, "estimator_weights_")
        total = np.zeros(self.n_features_in_)
        for t, weight in enumerate(self.estimator_weights_):
            for member in self._members.estimators(t):
                if not hasattr(member, "feature_importances_"):
                    raise AttributeError(
                        "Unable to compute feature importances since estimator does not have a "
                        "feature_importances_ attribute"
                    )
                total += weight * member.feature_importances_
        sum_of_all = total.sum()
        return total / sum_of_all if sum_of_all > 0 else total

    # -- asking --

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_weights_")
        rows = read_rows_like_fitted(X, self)
        if hasattr(self, "categories_"):
            values = rows.data if sp.issparse(rows) else rows
            if np.isinf(values).any():
                refuse_infinity(rows, self)
        return rows

    def _rule(self) -> Rule:
        nobody = np.empty(0, np.int64)
        return rule_of(self._fitted_algorithm, nobody, self.n_classes_, self.learning_rate)

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
        codes = check_labels(y, len(scores)).codes_among(self.classes_)
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
        codes = check_labels(y, rows.shape[0]).codes_among(self.classes_)
        weight = check_weights(sample_weight, rows.shape[0])
        rule = rule_of(self._fitted_algorithm, codes, self.n_classes_, self.learning_rate)
        logs = rule.start(weight)
        for t in range(len(self)):
            task = rule.task(logs)
            yield task.weights[0] if len(task.weights) == 1 else task.weights.T
            gains = rule.hear(self._members.answers(rows, t), task).gains
            logs = logs + gains.reshape(logs.shape)
        task = rule.task(logs)
        yield task.weights[0] if len(task.weights) == 1 else task.weights.T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base()).input_tags
        for name in ("sparse", "allow_nan", "string", "categorical", "positive_only"):
            setattr(tags.input_tags, name, getattr(base, name))
        return tags


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
