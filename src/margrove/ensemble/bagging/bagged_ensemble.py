"""Base class of the two bagging estimators: drawing, fitting, predicting, out-of-bag scores."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils._tags import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from margrove._data import seed_of
from margrove._runtime import RANDOM_STATE, RUN_CONTROL, Estimator, drive, resolve_n_jobs, run_calls
from margrove.ensemble.bagging.members import BaggingPlan, Member, MemberFitting
from margrove.ensemble.bagging.mixed_tables import MixedTable, read_mixed, read_mixed_like_fitted
from margrove.ensemble.bagging.predictions import (
    RunningMean,
    mean_of_trees,
    predict_out_of_bag,
    prediction_of,
    warn_of_rows_in_every_bag,
)
from margrove.ensemble.bagging.samples import RowSamples, plan_samples
from margrove.exceptions import DataWarning

__all__ = ["BAGGING_PARAMETERS", "Bagging", "BaggingTargets", "has_method"]

_COUNT = Interval(Integral, 1, None, closed="left")
_SHARE = Interval(RealNotInt, 0, 1, closed="right")
_FEW_ROWS = 4096  # that one thread predicts
_VALUES_AT_ONCE = 8_000_000  # most predicted values in memory before they are summed

BAGGING_PARAMETERS: dict[str, list[Any]] = {
    "estimator": [HasMethods(["fit", "predict"]), None],
    "n_estimators": [_COUNT],
    "max_samples": [_COUNT, _SHARE, None],
    "max_features": [_COUNT, _SHARE],
    "bootstrap": ["boolean"],
    "bootstrap_features": ["boolean"],
    "oob_score": ["boolean", callable],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


@dataclass(frozen=True)
class BaggingTargets:
    """The checked targets and weights.

    values    int64 class codes (n,), or float64 (n,) or (n, n_outputs)
    weight    float64 (n,), >= 0
    classes   the labels of the codes; None for regression
    """

    values: np.ndarray
    weight: np.ndarray
    classes: np.ndarray | None


@dataclass(frozen=True)
class _FittedMembers:
    """Fitted members, and for each the `RowSamples` that its sample comes from."""

    members: list[Member]
    samples: list[RowSamples]


def has_method(method: str) -> Callable[[Any], bool]:
    """A check for `available_if`: whether the members (before fit: the base estimator) have it."""

    def check(self: Any) -> bool:
        getattr(self.estimators_[0] if hasattr(self, "estimators_") else self._base(), method)
        return True

    return check


class Bagging(Estimator):
    """Base of `BaggingClassifier` and `BaggingRegressor`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = BAGGING_PARAMETERS

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit each estimator on its own sample.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Any X that the estimator accepts; the estimator gets arrays.
        y : array-like of shape (n_samples,) or, for numbers, (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            Rows are drawn in proportion to their weights. A weight of 0 removes a row, a weight of
            2 is the same as two copies of the row.
        **fit_params : dict
            Passed to the estimators if metadata routing is enabled; arrays with an entry for each
            row are sampled like X.

        Returns
        -------
        self
        """
        _raise_for_params(fit_params, self, "fit")
        self._check_parameters()
        self._check_combinations()
        table = read_mixed(X, self, self._base())
        targets = self._targets(y, sample_weight, table.X.shape[0])
        earlier = self._earlier(table, targets)
        plan = self._plan(table, targets, earlier, self._routed("fit", fit_params).fit)
        if len(earlier.members) == self.n_estimators and not self.oob_score:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                UserWarning,
                stacklevel=2,
            )
            return self
        grown, attributes = self._grow(plan, table, targets, earlier, (X, y, sample_weight))
        if self.oob_score:
            attributes |= self._out_of_bag(grown, table.X, targets)
        self._commit(attributes)
        return self

    def _check_combinations(self) -> None:
        if isinstance(self.estimator, type):
            raise TypeError(
                f"The 'estimator' parameter of {type(self).__name__} must be an instance. Got the "
                f"class {self.estimator.__name__} instead: write {self.estimator.__name__}()."
            )
        if self.oob_score and not self.bootstrap:
            raise ValueError(
                "Out of bag estimation only available if bootstrap=True: otherwise rows are not "
                "left out at random. Use oob_score=False."
            )

    def _earlier(self, table: MixedTable, targets: BaggingTargets) -> _FittedMembers:
        """The members that a warm start keeps."""
        if not self.warm_start or not hasattr(self, "estimators_"):
            return _FittedMembers([], [])
        name = type(self).__name__
        if len(self.estimators_) > self.n_estimators:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(self.estimators_)} when warm_start==True. Use "
                "warm_start=False to start again."
            )
        if table.X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {table.X.shape[1]} features, but the {len(self.estimators_)} estimators "
                f"that {name} keeps (warm_start=True) have {self.n_features_in_}. Use "
                "warm_start=False to start again."
            )
        if targets.classes is not None and not np.array_equal(targets.classes, self.classes_):
            raise ValueError(
                f"y has the classes {targets.classes.tolist()}, but the estimators that {name} "
                f"keeps (warm_start=True) have {self.classes_.tolist()}. Use "
                "warm_start=False to start again."
            )
        members = [
            Member(estimator, columns)
            for estimator, columns in zip(self.estimators_, self.estimators_features_, strict=True)
        ]
        return _FittedMembers(members, list(self._samples))

    def _plan(
        self,
        table: MixedTable,
        targets: BaggingTargets,
        earlier: _FittedMembers,
        fit_params: dict[str, Any],
    ) -> BaggingPlan:
        base, d = self._base(), table.X.shape[1]
        is_pairwise = get_tags(base).input_tags.pairwise
        takes_weights = _takes_weights(base)
        # as in scikit-learn; estimators of this library drop rows of weight zero
        takes_all_rows = is_pairwise or (takes_weights and not isinstance(base, Estimator))
        n_chosen = _number_of_columns(self.max_features, d)
        if is_pairwise and (not takes_weights or self.bootstrap_features or n_chosen < d):
            raise ValueError(
                f"{type(base).__name__} takes a pairwise matrix as X, so no rows or columns can be "
                "left out: it must support sample_weight, with max_features=1.0 and "
                "bootstrap_features=False."
            )
        if earlier.samples and not isinstance(self.random_state, Integral):
            seed = earlier.samples[-1].seed
        else:
            seed = seed_of(self.random_state)
        samples = plan_samples(
            table.numbers(targets.weight),
            targets.values,
            targets.weight,
            seed=seed,
            max_samples=self.max_samples,
            with_replacement=self.bootstrap,
            merge_copies=not (fit_params or takes_all_rows),
        )
        if samples.ignores_weights:
            warnings.warn(
                f"When fitting {type(self).__name__} with sample_weight it is recommended to use "
                "bootstrap=True, got False: each sample contains every row once, so weights that "
                "are not whole numbers have no effect. Or use a smaller max_samples.",
                DataWarning,
                stacklevel=3,
            )
        if earlier.samples and samples.equals(earlier.samples[-1]):
            samples = earlier.samples[-1]
        return BaggingPlan(
            ensemble=type(self).__name__,
            prototype=base,
            samples=samples,
            n_features=d,
            n_chosen=n_chosen,
            bootstrap_features=self.bootstrap_features,
            takes_weights=takes_weights,
            takes_all_rows=takes_all_rows,
            classes=targets.classes,
            fit_params=fit_params,
        )

    def _grow(
        self,
        plan: BaggingPlan,
        table: MixedTable,
        targets: BaggingTargets,
        earlier: _FittedMembers,
        given: tuple[Any, Any, Any],
    ) -> tuple[_FittedMembers, dict[str, Any]]:
        """Fit the members that are missing; returns all members and the fitted attributes."""
        X, y, sample_weight = given
        first = len(earlier.members)
        n_jobs = resolve_n_jobs(self.n_jobs)
        fitting = MemberFitting(
            plan, table.for_members, targets.values, first, self.n_estimators, n_jobs
        )

        def all_members() -> _FittedMembers:
            new = fitting.members
            samples = earlier.samples + [plan.samples] * len(new)
            return _FittedMembers(earlier.members + new, samples)

        def fitted() -> dict[str, Any]:
            current = all_members()
            return table.attributes | self._learnt(targets) | {
                "estimator_": plan.prototype,
                "estimators_": [member.estimator for member in current.members],
                "estimators_features_": [member.columns for member in current.members],
                "_samples": current.samples,
            }  # fmt: skip

        drive(
            fitting,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=self.verbose,
            X=X,
            y=y,
            fitted=fitted,
            given={"sample_weight": sample_weight, **plan.fit_params},
        )
        if not all_members().members:  # interrupted before there was anything to keep
            raise KeyboardInterrupt
        return all_members(), fitted()

    def _out_of_bag(
        self, fitted: _FittedMembers, X: Any, targets: BaggingTargets
    ) -> dict[str, Any]:
        """Out-of-bag predictions: each row by the members that have not seen it; and the score."""
        name = type(self).__name__
        if any(samples is not fitted.samples[0] for samples in fitted.samples):
            raise ValueError(
                "oob_score needs samples of the same rows for all estimators, but the estimators "
                f"that {name} kept (warm_start=True) were fitted on other rows. Use "
                "warm_start=False, or oob_score=False."
            )
        n_rows, n_members = X.shape[0], len(fitted.members)
        method = self._method(fitted.members[0].estimator)
        n_classes = None if targets.classes is None else len(targets.classes)
        tasks = [
            (member, X, samples, number, method, n_classes)
            for number, (member, samples) in enumerate(
                zip(fitted.members, fitted.samples, strict=True)
            )
        ]
        mean = RunningMean(n_rows)
        for prediction in self._in_order(predict_out_of_bag, tasks, n_rows):
            if prediction is not None:
                mean.add(prediction[1], prediction[0])
        counted = targets.weight > 0
        warn_of_rows_in_every_bag(mean.counts[counted], name, n_members)
        means = mean.mean()
        if mean.sums is None:
            means = np.full((n_rows, n_classes) if n_classes else targets.values.shape, np.nan)
        return self._oob_attributes(means, targets, np.flatnonzero(counted & (mean.counts > 0)))

    def _oob_score_of(
        self,
        truth: np.ndarray,
        predicted: np.ndarray,
        weight: np.ndarray,
        default: Callable[..., float],
    ) -> float:
        """The score by `oob_score`, if it is a callable, or by the default metric."""
        if not len(truth):
            return float("nan")
        metric = self.oob_score if callable(self.oob_score) else default
        if (weight == weight[0]).all() or "sample_weight" not in _arguments(metric):
            return float(metric(truth, predicted))
        return float(metric(truth, predicted, sample_weight=weight))

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """The rows that each estimator was fitted on, each as often as it was drawn.

        They are not stored: each access draws them again from the seed.
        """
        check_is_fitted(self, "estimators_")
        return [samples.indices(k) for k, samples in enumerate(self._samples)]

    def __len__(self) -> int:
        """The number of estimators."""
        return len(self.estimators_)

    def __getitem__(self, index: int) -> Any:
        """One of the estimators."""
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        """The estimators, one after the other."""
        return iter(self.estimators_)

    # -- what the subclasses define --

    @abstractmethod
    def _base(self) -> Any:
        """The estimator that is cloned for each member."""

    @abstractmethod
    def _targets(self, y: Any, sample_weight: Any, n_rows: int) -> BaggingTargets: ...

    @abstractmethod
    def _learnt(self, targets: BaggingTargets) -> dict[str, Any]:
        """Fitted attributes that depend on the targets, such as `classes_`."""

    @abstractmethod
    def _method(self, member: Any) -> str:
        """The name of the method by which members predict."""

    @abstractmethod
    def _oob_attributes(
        self, predictions: np.ndarray, targets: BaggingTargets, scored: np.ndarray
    ) -> dict[str, Any]:
        """Fitted attributes from out-of-bag predictions; `scored` are the rows that have one."""

    # -- predicting --

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "estimators_")
        return read_mixed_like_fitted(X, self)

    def _in_order(self, task: Callable[..., Any], tasks: list[Any], n_rows: int) -> Iterator[Any]:
        """Results of the tasks in their order, computed in batches that fit into memory."""
        n_jobs = resolve_n_jobs(self.n_jobs)
        n_values = n_rows * int(getattr(self, "n_classes_", 1))
        size = 1 if n_jobs == 1 else max(n_jobs, _VALUES_AT_ONCE // max(n_values, 1))
        for start in range(0, len(tasks), size):
            yield from run_calls(task, tasks[start : start + size], n_jobs)

    def _predictions(self, X: Any, method: str, params: dict[str, Any]) -> Iterator[Any]:
        """The predictions of the members for X, one member after the other."""
        tasks = [
            (estimator, columns, X, method, params)
            for estimator, columns in zip(self.estimators_, self.estimators_features_, strict=True)
        ]
        return self._in_order(prediction_of, tasks, X.shape[0])

    def _mean_of_trees(self, X: Any, n_classes: int | None) -> np.ndarray | None:
        """The mean of the predictions where members are trees; see `mean_of_trees`."""
        n_threads = resolve_n_jobs(self.n_jobs, unset="all") if X.shape[0] > _FEW_ROWS else 1
        columns = self.estimators_features_
        return mean_of_trees(self.estimators_, columns, X, n_classes, n_threads)

    def _routed(self, caller: str, params: dict[str, Any]) -> Any:
        """Routed arguments for each method of the members."""
        if _routing_enabled():
            return process_routing(self, caller, **params).estimator
        return Bunch(**{name: {} for name in _METHODS})

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata routing: `sample_weight` of fit is used here, all else goes to the members.

        Returns
        -------
        routing : MetadataRouter
        """
        base = self._base()
        is_soft = hasattr(base, "predict_proba") and getattr(self, "voting", "hard") == "soft"
        shares = "predict_proba" if is_soft else "predict"
        has_logarithms = is_soft and hasattr(base, "predict_log_proba")
        mapping = MethodMapping()
        for caller, callee in (
            ("fit", "fit"),
            ("decision_function", "decision_function"),
            ("predict", shares),
            ("predict_proba", shares),
            ("predict_log_proba", "predict_log_proba" if has_logarithms else shares),
        ):
            mapping.add(caller=caller, callee=callee)
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=base, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base())
        for name in ("sparse", "allow_nan", "pairwise", "string", "categorical", "positive_only"):
            setattr(tags.input_tags, name, getattr(base.input_tags, name))
        return tags


_METHODS = ("fit", "predict", "predict_proba", "predict_log_proba", "decision_function")


def _takes_weights(base: Any) -> bool:
    if _routing_enabled():
        return bool(get_routing_for_object(base).consumes("fit", ("sample_weight",)))
    return bool(has_fit_parameter(base, "sample_weight"))


def _number_of_columns(max_features: float, d: int) -> int:
    n_chosen = max_features if isinstance(max_features, Integral) else int(max_features * d)
    if n_chosen > d:
        raise ValueError(
            f"max_features must be <= n_features. Got max_features={max_features} for an X with "
            f"{d} features."
        )
    return max(1, int(n_chosen))


def _arguments(metric: Callable[..., float]) -> set[str]:
    try:
        return set(inspect.signature(metric).parameters)
    except (TypeError, ValueError):  # callables written in C may have no signature
        return set()
