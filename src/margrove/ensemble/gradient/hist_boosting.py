"""Base class of the histogram gradient boosting estimators: data, constraints, early stopping."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from margrove._data import check_weights, moderate
from margrove._runtime import ALONE, RANDOM_STATE, RUN_CONTROL, Collective, is_unattended
from margrove.ensemble.gradient.boosted_trees import (
    GradientBoosted,
    kind_of,
)
from margrove.ensemble.gradient.early_stopping import HeldOut, Monitor, SoFar
from margrove.ensemble.gradient.hist import (
    GradientRounds,
    GradientSettings,
    bins_and_table,
    joint_bins_and_table,
)
from margrove.ensemble.gradient.history import warn_of_failure
from margrove.ensemble.gradient.losses import (
    GradientLoss,
)
from margrove.ensemble.gradient.pieced_rows import PiecedRows
from margrove.ensemble.gradient.scoring import scorer_of
from margrove.ensemble.gradient.training_data import GradientData
from margrove.exceptions import DataWarning
from margrove.grove.serve import TreeForm
from margrove.grove.table import TreeTable, monotonic_signs, read_table, read_table_like_fitted

__all__ = ["HIST_PARAMETERS", "HistBoosting"]

_ROWS_FOR_EARLY_STOPPING = 10_000  # with more rows, "auto" stops early
_MOST = 2**31

HIST_PARAMETERS: dict[str, list[Any]] = {
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    "l2_regularization": [Interval(Real, 0, None, closed="left")],
    "max_features": [Interval(Real, 0, 1, closed="right")],
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "categorical_features": ["array-like", StrOptions({"from_dtype", "all"}), None],
    "monotonic_cst": ["array-like", dict, None],
    "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
    "warm_start": ["boolean"],
    "early_stopping": [StrOptions({"auto"}), "boolean"],
    "scoring": [str, callable, None],
    "validation_fraction": [
        Interval(Real, 0, 1, closed="neither"),
        Interval(Integral, 1, None, closed="left"),
        HasMethods(["split", "get_n_splits"]),
        None,
    ],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "growth": [StrOptions({"leaf", "level"})],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


class HistBoosting(GradientBoosted):
    """Base class of HistGradientBoostingClassifier and HistGradientBoostingRegressor."""

    max_iter: int
    max_leaf_nodes: int | None
    max_depth: int | None
    min_samples_leaf: int
    l2_regularization: float
    max_features: float
    max_bins: int
    categorical_features: Any
    monotonic_cst: Any
    interaction_cst: Any
    early_stopping: Any
    scoring: Any
    validation_fraction: Any
    n_iter_no_change: int
    tol: float
    growth: str
    categories_: dict[int, np.ndarray]
    _negative_is_missing = True  # in columns of categories that are numbers

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
        """Fit the trees, round by round.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            NaN is missing. Labels are categories, see `categorical_features`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 0 removes a row, a weight of 2 is the same as two copies of the row.
        X_val, y_val, sample_weight_val : optional
            Validation rows for early stopping, instead of some of the training rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._check_validation(X_val, y_val, sample_weight_val)
        given = self._data(read_table(X, self, self.categorical_features), y, sample_weight)
        others = {"sample_weight": sample_weight, "X_val": X_val, "y_val": y_val,
                  "sample_weight_val": sample_weight_val}  # fmt: skip
        return self._boost(given, X, y, others)

    def _boost(self, given: GradientData, X: Any, y: Any, others: dict[str, Any]) -> Self:
        """Train on checked data, see `fit`; `others` are the other arguments of fit."""
        X_val, y_val = others["X_val"], others["y_val"]
        seed = self._seed()
        self._require_same_kind(given)
        stops_early = self._stops_early(given, X_val)
        if self.subsample < 1.0 or (stops_early and X_val is None):
            given = given.with_row_per_sample()
        held_out = None
        if X_val is not None:
            held_out = self._read_validation(X_val, y_val, others["sample_weight_val"], given)
        elif stops_early and self.validation_fraction is not None:
            given, held_out = self._split_off_validation(given, y, seed)
        self._warn_of_many_categories(given)
        so_far = self._so_far(given, self._loss_for(given))
        process = self._process(given, held_out, so_far, seed, stops_early)

        def fitted(outcome: str = "unfinished") -> dict[str, Any]:
            return self._attributes(process, given, so_far, seed, outcome)

        ending = self._run(process, X, y, fitted, others)
        outcome = "stopped early" if process.stopped_early else ending
        found = fitted(outcome)
        warn_of_failure(type(self).__name__, found["_rounds"], found["history_"], stacklevel=4)
        self._commit(found)
        return self

    # -- data --

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        raise NotImplementedError

    def _loss_for(self, given: GradientData) -> GradientLoss:
        raise NotImplementedError

    def _targets_like_fitted(self, y: Any, n: int, given: GradientData) -> np.ndarray:
        raise NotImplementedError

    def _check_validation(self, X_val: Any, y_val: Any, sample_weight_val: Any) -> None:
        if sample_weight_val is not None and X_val is None:
            raise ValueError("sample_weight_val is provided, but X_val was not provided.")
        for name, value, other, other_value in (("X_val", X_val, "y_val", y_val),
                                                ("y_val", y_val, "X_val", X_val)):  # fmt: skip
            if value is not None and other_value is None:
                raise ValueError(f"{name} is provided, but {other} was not provided.")
        if X_val is not None and self.early_stopping is False:
            raise ValueError(
                "X_val and y_val are passed to fit while at the same time early_stopping is False. "
                "When passing X_val and y_val to fit, early_stopping should be set to either "
                "'auto' or True."
            )

    def _stops_early(self, given: GradientData, X_val: Any) -> bool:
        if self.early_stopping != "auto":
            return bool(self.early_stopping)
        samples = given.n_rows if given.copies is None else int(given.copies.sum())
        return X_val is not None or samples > _ROWS_FOR_EARLY_STOPPING

    def _require_same_kind(self, given: GradientData) -> None:
        """Raise if a warm start has other columns or categories than the last fit."""
        if not self._continues():
            return
        if self.max_iter < self.n_iter_:
            raise ValueError(
                f"max_iter={self.max_iter} must be larger than or equal to n_iter_={self.n_iter_} "
                "when warm_start==True. Use warm_start=False to start again."
            )
        categories = {j: labels.tolist() for j, labels in given.table.categories.items()}
        known = {j: labels.tolist() for j, labels in self.categories_.items()}
        if given.X.shape[1] != self.n_features_in_ or categories != known:
            raise ValueError(
                "warm_start=True needs the data of the last fit, which had "
                f"{self.n_features_in_} features, {len(known)} of them with categories. Use "
                "warm_start=False to start again."
            )

    def _warn_of_many_categories(self, given: GradientData) -> None:
        for column, labels in given.table.categories.items():
            if len(labels) > self.max_bins:
                names = given.table.feature_names
                name = repr(str(names[column])) if names is not None else str(column)
                warnings.warn(
                    f"Column {name} of X has {len(labels)} categories: the {self.max_bins - 1} "
                    f"most frequent ones have their own bin (max_bins={self.max_bins}), all others "
                    "share one. Group the categories, or encode them as numbers.",
                    DataWarning,
                    stacklevel=4,
                )

    def _read_validation(self, X: Any, y: Any, sample_weight: Any, given: GradientData) -> HeldOut:
        fitted = copy.copy(self)
        fitted.__dict__ = self.get_params(deep=False) | given.table.attributes
        rows = read_table_like_fitted(X, fitted)
        targets = self._targets_like_fitted(y, rows.shape[0], given)
        weight = None
        if sample_weight is not None:
            weight = moderate(check_weights(sample_weight, rows.shape[0]))
        return HeldOut(rows, targets, weight)

    def _split_off_validation(
        self, given: GradientData, y: Any, seed: int
    ) -> tuple[GradientData, HeldOut]:
        """(training data, validation rows) for early stopping."""
        n, share = given.n_rows, self.validation_fraction
        if hasattr(share, "get_n_splits"):
            train, validation = _split_by(share, given, y)
        else:
            size = int(share) if isinstance(share, Integral) else int(np.ceil(share * n))
            if size >= n:
                raise ValueError(
                    f"early_stopping uses {size} of {n} rows for validation (validation_fraction="
                    f"{share}), which leaves none to train on. Use early_stopping=False, or pass "
                    "X_val."
                )
            validation = self._row_draws(given, seed).held_out(size)
            train = np.setdiff1d(np.arange(n), validation, assume_unique=True)
        n_threads = self._threads()
        held_out = given.of_rows(np.asarray(validation), n_threads=n_threads)
        rows = given.of_rows(np.asarray(train), n_threads=n_threads)
        return rows, HeldOut(held_out.X, held_out.y, held_out.weight)

    # -- training --

    def _process(
        self,
        given: GradientData,
        held_out: HeldOut | None,
        so_far: SoFar,
        seed: int,
        stops_early: bool,
        collective: Collective = ALONE,
    ) -> GradientRounds:
        """The rounds; `given` and `held_out` are the rows of one member of the collective."""
        loss, kind = self._loss_for(given), kind_of(given.table.n_categories)
        settings = self._settings(given, loss, seed)
        rows, n_threads = given.training_rows, self._threads()
        make: Any = bins_and_table
        if isinstance(given.X, PiecedRows):
            make = functools.partial(joint_bins_and_table, collective=collective)
        bins, table = make(
            given.X,
            given.table.n_categories,
            max_bins=self.max_bins,
            weight=rows.total_weight,
            copies=rows.copies,
            # Features are drawn from all columns, and so none is left out then.
            least_samples=settings.min_samples_leaf if settings.tried == 1.0 else 0,
            n_threads=n_threads,
        )
        monitor = None
        if stops_early:
            monitor = self._monitor(given, held_out, so_far, loss, kind, collective)
        return GradientRounds(
            bins,
            table,
            rows,
            so_far.raw_of(given.X, kind, n_threads=n_threads),
            loss,
            settings,
            self.max_iter - len(so_far.rounds),
            first_round=len(so_far.rounds),
            draw=self._draws(given, seed, collective),
            monitor=monitor,
            losses=so_far.losses,
            form=TreeForm(kind, given.X.shape[1]),
            n_threads=n_threads,
            collective=collective,
            one_by_one=not is_unattended(self)
            or self.max_time is not None
            or self.on_interrupt == "keep",
        )

    def _so_far(self, given: GradientData, loss: GradientLoss) -> SoFar:
        """The state before the first new round."""
        if not self._continues():
            start = given.training_rows.start(loss)
            return SoFar([], start, (), (), given.scale)
        return self._after_last_fit(given, loss)

    def _settings(self, given: GradientData, loss: GradientLoss, seed: int) -> GradientSettings:
        signs = self._signs(given.table)
        if signs is not None and loss.n_scores > 1:
            raise ValueError(
                "monotonic constraints are not supported for multiclass classification. Leave "
                "monotonic_cst at None, or fit one classifier for each class."
            )
        return GradientSettings(
            learning_rate=self._rate(),
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=None if self.max_depth is None else min(self.max_depth, _MOST),
            min_samples_leaf=min(self.min_samples_leaf, _MOST),
            l2_regularization=float(self.l2_regularization),
            tried=float(self.max_features),
            level_wise=self.growth == "level",
            signs=signs,
            sets=self._sets(given.X.shape[1]),
            seed=seed,
        )

    def _signs(self, table: TreeTable) -> np.ndarray | None:
        if self.monotonic_cst is None:
            return None
        signs = monotonic_signs(self.monotonic_cst, table, self)
        return signs.astype(np.int64) if signs.any() else None

    def _sets(self, d: int) -> np.ndarray | None:
        """Sets of features that may be on one path, bool (n_sets, d); features that are in none
        form one more set."""
        groups = self.interaction_cst
        if groups is None:
            return None
        if groups == "no_interactions":
            groups = [(j,) for j in range(d)]
        elif groups == "pairwise":
            groups = list(itertools.combinations(range(d), 2)) or [(0,)]
        sets = np.zeros((len(groups) + 1, d), np.bool_)
        for k, group in enumerate(groups):
            try:
                members = list(group)
            except TypeError:
                raise ValueError(
                    "Interaction constraints must be a sequence of tuples or lists, got: "
                    f"{self.interaction_cst!r}."
                ) from None
            if not all(_is_index(j, d) for j in members):
                raise ValueError(
                    "Interaction constraints must consist of integer indices in [0, n_features - "
                    f"1] = [0, {d - 1}], specifying the position of features, got invalid indices: "
                    f"{group!r}"
                )
            sets[k, members] = True
        sets[-1] = ~sets.any(axis=0)
        return sets if sets[-1].any() else sets[:-1]

    def _monitor(
        self,
        given: GradientData,
        held_out: HeldOut | None,
        so_far: SoFar,
        loss: GradientLoss,
        kind: Any,
        collective: Collective = ALONE,
    ) -> Monitor:
        raw = np.empty((loss.n_scores, 0))
        if held_out is not None:
            raw = so_far.raw_of(held_out.X, kind)
        score = None
        if self.scoring != "loss":
            weight = given.training_rows.total_weight
            rows = held_out or HeldOut(given.X, given.y, weight, given.origin)
            score = scorer_of(self, given, rows, loss, collective)
        return Monitor(
            kind,
            held_out,
            raw,
            score=score,
            n_iter_no_change=self.n_iter_no_change,
            tol=self.tol,
            scores=so_far.scores,
            n_threads=self._threads(),
            collective=collective,
        )

    def _raw(self, X: Any) -> np.ndarray:
        known: np.ndarray | None = vars(self).get("_known_raw")
        return super()._raw(X) if known is None else known

    def _attributes(
        self,
        process: GradientRounds,
        given: GradientData,
        so_far: SoFar,
        seed: int,
        outcome: str,
    ) -> dict[str, Any]:
        found = self._common_attributes(process, given, so_far, seed, outcome)
        history, stops_early = found["history_"], process.monitor is not None
        return found | {
            "do_early_stopping_": stops_early,
            "train_score_": -history.training_loss if stops_early else np.array([]),
            "validation_score_": history.validation_score,
            "is_categorical_": given.table.is_categorical if given.table.categories else None,
        }


def _is_index(value: Any, d: int) -> bool:
    is_integer = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    return is_integer and 0 <= int(value) < d


def _split_by(splitter: Any, given: GradientData, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """(training rows, validation rows) by the first split of a splitter."""
    targets = np.asarray(y)
    split = next(iter(splitter.split(np.zeros((len(targets), 1)), targets)), None)
    if split is None:
        raise ValueError(f"validation_fraction={splitter!r} has no splits. Use another splitter.")
    if not isinstance(split, tuple) or len(split) != 2:
        raise ValueError(
            f"validation_fraction={splitter!r} must yield pairs of training rows and validation "
            f"rows. Got {split!r}."
        )
    origin = np.arange(given.n_rows) if given.origin is None else given.origin
    train, validation = (np.flatnonzero(np.isin(origin, rows)) for rows in split)
    if not len(train) or not len(validation):
        raise ValueError(
            f"validation_fraction={splitter!r} gives {len(train)} training rows and "
            f"{len(validation)} validation rows. Use another splitter."
        )
    return train, validation
