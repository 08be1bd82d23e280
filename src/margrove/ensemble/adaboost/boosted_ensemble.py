"""Base class of the AdaBoost estimators: parameters, checks, and the members as a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, overload

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils._tags import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from margrove._data import seed_of
from margrove._runtime import RANDOM_STATE, RUN_CONTROL, Estimator, drive, resolve_n_jobs
from margrove.ensemble.adaboost.members import EstimatorMembers, Members
from margrove.ensemble.adaboost.training_data import (
    BoostingRows,
    has_infinity,
    read_rows_like_fitted,
)
from margrove.ensemble.bagging import seed_of_member
from margrove.grove import DecisionTree, number_of_features
from margrove.grove.table import refuse_infinity

__all__ = ["BOOSTING_PARAMETERS", "Boosted", "MembersOfBoosting"]

_FEW_CELLS = 20_000
_WORK_AT_ONCE = 1e6  # for a first round that continues after the time limit

BOOSTING_PARAMETERS: dict[str, list[Any]] = {
    "estimator": [HasMethods(["fit", "predict"]), None],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "resample": ["boolean"],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


class MembersOfBoosting(Sequence[Any]):
    """The members of a boosted model as estimators, each created on access.

    If a round has a member for each class, an entry is the list of these. Trees get the random
    states that they were grown with, which follow from the seed.
    """

    def __init__(self, members: Members, seed: int) -> None:
        self._members, self._seed = members, seed

    def __len__(self) -> int:
        return len(self._members)

    @overload
    def __getitem__(self, which: int) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> list[Any]: ...
    def __getitem__(self, which: int | slice) -> Any:
        if isinstance(which, slice):
            return [self[t] for t in range(*which.indices(len(self)))]
        t = range(len(self))[which]
        estimators = self._members.estimators(t)
        if not isinstance(self._members, EstimatorMembers):  # these have their random states
            for k, tree in enumerate(estimators):
                tree.random_state = seed_of_member(self._seed, t * len(estimators) + k)
        return estimators[0] if len(estimators) == 1 else estimators

    def __repr__(self) -> str:
        return f"<{len(self)} members of a boosted model>"


class Boosted(Estimator):
    """Base class of `AdaBoostClassifier` and `AdaBoostRegressor`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = BOOSTING_PARAMETERS

    estimator: Any
    n_estimators: int
    random_state: Any
    resample: bool
    warm_start: bool
    n_jobs: int | None
    max_time: float | None
    on_interrupt: Literal["raise", "keep"]
    verbose: int
    n_features_in_: int
    estimator_weights_: np.ndarray
    _members: Any
    _seed_of_fit: int

    # -- training --

    def _base(self) -> Any:
        """The weak learner: `estimator`, or a default."""
        raise NotImplementedError

    def _check_base(self, base: Any) -> None:
        if isinstance(base, type):
            raise TypeError(
                f"The 'estimator' parameter of {type(self).__name__} must be an instance. Got the "
                f"class {base.__name__} instead: write {base.__name__}()."
            )
        if isinstance(base, DecisionTree):
            base._check_parameters()

    def _resamples(self, base: Any) -> bool:
        return self.resample or not has_fit_parameter(base, "sample_weight")

    def _seed(self) -> int:
        continues = self.warm_start and hasattr(self, "_members")
        return int(self._seed_of_fit) if continues else seed_of(self.random_state)

    def _threads(self, X: Any) -> int:
        """The number of threads; one for a small table."""
        n_threads = resolve_n_jobs(self.n_jobs, unset="all")
        return 1 if X.shape[0] * X.shape[1] < _FEW_CELLS else n_threads

    def _threads_to_predict(self, X: Any) -> int:
        """The same; for few rows joblib is not asked, which takes longer than the prediction."""
        return 1 if X.shape[0] * X.shape[1] < _FEW_CELLS else self._threads(X)

    def _members_so_far(self) -> Any:
        """The members that a warm start continues from; None without a warm start."""
        if not self.warm_start or not hasattr(self, "_members"):
            return None
        if self.n_estimators < len(self._members):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(self._members)} when warm_start==True. Use "
                "warm_start=False to start again."
            )
        return self._members

    def _attributes_of_trees(self, base: Any, rows: BoostingRows) -> dict[str, Any]:
        """The fitted attributes of a member that is a tree."""
        max_features = number_of_features(base.max_features, rows.X.shape[1])
        return rows.attributes | {"n_outputs_": 1, "max_features_": max_features}

    def _refuse_infinity(self, extremes: list[Any], table: Any) -> None:
        if any(len(low) and np.isinf([low[0], high[-1]]).any() for low, high in extremes):
            refuse_infinity(table.X, self, table.feature_names)

    def _run(
        self,
        process: Any,
        X: Any,
        y: Any,
        fitted: Callable[[], dict[str, Any]],
        given: dict[str, Any],
    ) -> None:
        """Boost until the end, an interrupt or the time limit; at least one round."""
        drive(
            process,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=self.verbose,
            X=X,
            y=y,
            fitted=fitted,
            given=given,
        )
        while not process.rounds and process.outcome is None:
            process.advance(_WORK_AT_ONCE)

    # -- members --

    @property
    def estimators_(self) -> Sequence[Any]:
        """The members as estimators."""
        check_is_fitted(self, "estimator_weights_")
        return MembersOfBoosting(self._members, self._seed_of_fit)

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
        """The weighted mean of the feature importances of the members."""
        check_is_fitted(self, "estimator_weights_")
        weights = self.estimator_weights_
        total = np.zeros(self.n_features_in_)
        for t, weight in enumerate(weights if weights.any() else np.ones(len(weights))):
            for member in self._members.estimators(t):
                if not hasattr(member, "feature_importances_"):
                    raise AttributeError(
                        "Unable to compute feature importances since estimator does not have a "
                        "feature_importances_ attribute"
                    )
                total += weight * member.feature_importances_
        sum_of_all = total.sum()
        return total / sum_of_all if sum_of_all > 0 else total

    # -- prediction --

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_weights_")
        rows = read_rows_like_fitted(X, self)
        if hasattr(self, "categories_") and has_infinity(rows, self._threads_to_predict(rows)):
            refuse_infinity(rows, self)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self._base()).input_tags
        for name in ("sparse", "allow_nan", "string", "categorical", "positive_only"):
            setattr(tags.input_tags, name, getattr(base, name))
        return tags
