"""Estimators: HistGradientBoostingClassifier, HistGradientBoostingRegressor."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from margrove._data import check_labels, check_targets, check_weights, moderate
from margrove._runtime import RANDOM_STATE, RUN_CONTROL
from margrove.ensemble.gradient.boosted_trees import (
    BoostedClassifier,
    BoostedRegressor,
    GradientBoosted,
    kind_of,
    require_same_classes,
)
from margrove.ensemble.gradient.early_stopping import HeldOut, Monitor, SoFar
from margrove.ensemble.gradient.hist import GradientRounds, GradientSettings, bins_and_table
from margrove.ensemble.gradient.history import warn_of_failure
from margrove.ensemble.gradient.losses import (
    GradientLoss,
    class_loss_of,
    gradient_loss_of,
    regression_loss_of,
)
from margrove.ensemble.gradient.training_data import GradientData, class_data, number_data
from margrove.exceptions import DataWarning
from margrove.grove.serve import TreeForm
from margrove.grove.table import TreeTable, monotonic_signs, read_table, read_table_like_fitted

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]

_ROWS_FOR_EARLY_STOPPING = 10_000  # beyond, "auto" means yes
_MOST = 2**31

_PARAMETERS: dict[str, list[Any]] = {
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


class _HistGradientBoosting(GradientBoosted):
    """What both have in common."""

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
        """Boost.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            NaN is missing. Labels are categories, see `categorical_features`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            0 is a row removed, 2 a row that is there twice.
        X_val, y_val, sample_weight_val : optional
            Rows that tell when to stop, instead of some that are set apart.

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
        """Train on what was given, see `fit`."""
        X_val, y_val = others["X_val"], others["y_val"]
        seed = self._seed()
        self._require_same_kind(given)
        stops_early = self._stops_early(given, X_val)
        if self.subsample < 1.0 or (stops_early and X_val is None):
            given = given.spread_out()
        held_out = None
        if X_val is not None:
            held_out = self._read_held_out(X_val, y_val, others["sample_weight_val"], given)
        elif stops_early and self.validation_fraction is not None:
            given, held_out = self._set_apart(given, y, seed)
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

    # -- what is given --

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        raise NotImplementedError

    def _loss_for(self, given: GradientData) -> GradientLoss:
        raise NotImplementedError

    def _targets_like_fitted(self, y: Any, n: int, given: GradientData) -> np.ndarray:
        raise NotImplementedError

    def _check_validation(self, X_val: Any, y_val: Any, sample_weight_val: Any) -> None:
        if sample_weight_val is not None and X_val is None:
            raise ValueError("sample_weight_val is provided, but X_val was not provided.")
        for name, own, other, given in (("X_val", X_val, "y_val", y_val),
                                        ("y_val", y_val, "X_val", X_val)):  # fmt: skip
            if own is not None and given is None:
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
        """A warm start goes on with data like that of the last fit."""
        if not self._is_going_on():
            return
        if self.max_iter < self.n_iter_:
            raise ValueError(
                f"max_iter={self.max_iter} must be larger than or equal to n_iter_={self.n_iter_} "
                "when warm_start==True. Use warm_start=False to start anew."
            )
        categories = {j: labels.tolist() for j, labels in given.table.categories.items()}
        known = {j: labels.tolist() for j, labels in self.categories_.items()}
        if given.X.shape[1] != self.n_features_in_ or categories != known:
            raise ValueError(
                "warm_start=True goes on with the data of the last fit, which had "
                f"{self.n_features_in_} features, and {len(known)} of them categories. Use "
                "warm_start=False to start anew."
            )

    def _warn_of_many_categories(self, given: GradientData) -> None:
        for column, labels in given.table.categories.items():
            if len(labels) > self.max_bins:
                names = given.table.feature_names
                name = repr(str(names[column])) if names is not None else str(column)
                warnings.warn(
                    f"Column {name} of X has {len(labels)} categories: the {self.max_bins - 1} "
                    f"most frequent ones are told apart (max_bins={self.max_bins}), all others "
                    "are taken for one. Group them by what they have in common, or let them be "
                    "numbers.",
                    DataWarning,
                    stacklevel=4,
                )

    def _read_held_out(self, X: Any, y: Any, sample_weight: Any, given: GradientData) -> HeldOut:
        fitted = copy.copy(self)
        fitted.__dict__ = self.get_params(deep=False) | given.table.attributes
        rows = read_table_like_fitted(X, fitted)
        targets = self._targets_like_fitted(y, rows.shape[0], given)
        weight = None
        if sample_weight is not None:
            weight = moderate(check_weights(sample_weight, rows.shape[0]))
        return HeldOut(rows, targets, weight)

    def _set_apart(self, given: GradientData, y: Any, seed: int) -> tuple[GradientData, HeldOut]:
        """Rows to train on, and rows to see when to stop."""
        n, share = given.n_rows, self.validation_fraction
        if hasattr(share, "get_n_splits"):
            train, apart = _parts_by(share, given, y)
        else:
            size = int(share) if isinstance(share, Integral) else int(np.ceil(share * n))
            if size >= n:
                raise ValueError(
                    f"early_stopping sets {size} of {n} rows apart (validation_fraction={share}), "
                    "which leaves none to train on. Use early_stopping=False, or give X_val."
                )
            apart = self._row_draws(given, seed).held_out(size)
            train = np.setdiff1d(np.arange(n), apart, assume_unique=True)
        held_out = given.of_rows(np.asarray(apart))
        return given.of_rows(np.asarray(train)), HeldOut(held_out.X, held_out.y, held_out.weight)

    # -- training --

    def _process(
        self,
        given: GradientData,
        held_out: HeldOut | None,
        so_far: SoFar,
        seed: int,
        stops_early: bool,
    ) -> GradientRounds:
        loss, kind = self._loss_for(given), kind_of(given.table.n_categories)
        settings = self._settings(given, loss, seed)
        rows, n_threads = given.training_rows, self._threads()
        bins, table = bins_and_table(
            given.X,
            given.table.n_categories,
            max_bins=self.max_bins,
            weight=rows.total_weight,
            n_threads=n_threads,
        )
        monitor = None
        if stops_early:
            monitor = self._monitor(given, held_out, so_far, loss, kind)
        return GradientRounds(
            bins,
            table,
            rows,
            so_far.raw_of(given.X, kind),
            loss,
            settings,
            self.max_iter - len(so_far.rounds),
            first_round=len(so_far.rounds),
            draw=self._draws(given, seed),
            monitor=monitor,
            losses=so_far.losses,
            form=TreeForm(kind, given.X.shape[1]),
            n_threads=n_threads,
        )

    def _so_far(self, given: GradientData, loss: GradientLoss) -> SoFar:
        """Where the first round, or that after an earlier fit, begins."""
        if not self._is_going_on():
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
        """Sets of features that may be on one path; those that are in none are one more."""
        given = self.interaction_cst
        if given is None:
            return None
        if given == "no_interactions":
            given = [(j,) for j in range(d)]
        elif given == "pairwise":
            given = list(itertools.combinations(range(d), 2)) or [(0,)]
        sets = np.zeros((len(given) + 1, d), np.bool_)
        for k, group in enumerate(given):
            try:
                members = list(group)
            except TypeError:
                raise ValueError(
                    "Interaction constraints must be a sequence of tuples or lists, got: "
                    f"{self.interaction_cst!r}."
                ) from None
            if not all(_is_place(j, d) for j in members):
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
    ) -> Monitor:
        raw = np.empty((loss.n_scores, 0))
        if held_out is not None:
            raw = so_far.raw_of(held_out.X, kind)
        score = None
        if self.scoring != "loss":
            rows = held_out or HeldOut(given.X, given.y, given.training_rows.total_weight)
            score = self._scorer(given, rows, loss)
        return Monitor(
            kind,
            held_out,
            raw,
            score=score,
            patience=self.n_iter_no_change,
            tol=self.tol,
            scores=so_far.scores,
        )

    def _scorer(
        self, given: GradientData, rows: HeldOut, loss: GradientLoss
    ) -> Callable[[np.ndarray], float]:
        """What `scoring` says of a model that has these raw scores on the rows."""
        standing = copy.copy(self)
        standing.__dict__ = self.get_params(deep=False)
        scorer = check_scoring(standing, self.scoring)
        targets = rows.y * given.scale if given.classes is None else rows.y.astype(np.int64)
        y = targets if given.classes is None else given.classes[targets]

        def score(raw: np.ndarray) -> float:
            known = {"_loss": loss, "_rounds": [], "_known_raw": raw * given.scale}
            if given.classes is not None:
                known["classes_"] = given.classes
            standing.__dict__ = self.get_params(deep=False) | given.table.attributes | known
            asked = {} if rows.weight is None else {"sample_weight": rows.weight}
            found = float(scorer(standing, rows.X, y, **asked))
            if np.isnan(found):
                raise ValueError(
                    f"scoring={self.scoring!r} returned NaN, so there is no telling when to stop. "
                    "Use another scoring, or early_stopping=False."
                )
            return found

        return score

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
        found = self._what_was_learnt(process, given, so_far, seed, outcome)
        history, stops_early = found["history_"], process.monitor is not None
        return found | {
            "do_early_stopping_": stops_early,
            "train_score_": -history.training_loss if stops_early else np.array([]),
            "validation_score_": history.validation_score,
            "is_categorical_": given.table.is_categorical if given.table.categories else None,
        }


class HistGradientBoostingRegressor(BoostedRegressor, _HistGradientBoosting):
    """Gradient boosting of regression trees on binned features.

    A drop-in for `sklearn.ensemble.HistGradientBoostingRegressor`, level with LightGBM and XGBoost.
    Missing values and categories are taken as they are, and so are sparse matrices. Gradients are
    summed as whole numbers: neither the order of the rows nor the number of threads matters.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", \
            "tweedie"} or GradientLoss, default="squared_error"
        What is made small. A loss of your own is registered by
        `margrove.register_gradient_loss`, or made by `GradientLoss.of_functions`.
    quantile : float or None, default=None
        With loss="quantile": which one.
    learning_rate : float, default=0.1
        Factor on what each tree adds.
    max_iter : int, default=100
        The most rounds.
    max_leaf_nodes : int or None, default=31
        The most leaves of a tree.
    max_depth : int or None, default=None
        The most splits between root and leaf.
    min_samples_leaf : int, default=20
        The fewest samples of a leaf.
    l2_regularization : float, default=0.0
        What is added to the hessian of a leaf, which makes its value smaller.
    max_features : float, default=1.0
        The share of the features that each node may be split by, drawn at random.
    max_bins : int, default=255
        The most values of a feature; of more, neighbouring ones share a bin of about equal weight.
        Bins are found from all rows.
    categorical_features : array-like, "from_dtype", "all" or None, default="from_dtype"
        Columns whose values are categories: a mask, numbers or names. "from_dtype" takes those of a
        dataframe that hold labels. Any number of categories will do: if they are more than
        `max_bins`, rare ones are split together. Negative numbers in such columns are missing.
    monotonic_cst : array-like of int, dict or None, default=None
        1, 0 or -1 of each feature: predictions may only rise, or only fall, with it.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of sets of int or None, default=None
        Sets of features that may occur together on a path.
    warm_start : bool, default=False
        Go on from the rounds of the last fit, with the same data.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when the validation score gets no better; "auto" does for more than 10,000
        samples, or with X_val.
    scoring : str, callable or None, default="loss"
        The validation score.
    validation_fraction : float, int, splitter or None, default=0.1
        The share, or number, of rows that are set apart for it; a splitter, such as
        `GroupShuffleSplit` without groups or `TimeSeriesSplit`, sets its first test set apart. None
        scores the training set.
    n_iter_no_change : int, default=10
        Rounds without a better score after which boosting stops.
    tol : float, default=1e-7
        What better means.
    verbose : int, default=0
        Show a progress bar.
    random_state : int, RandomState, Generator or None, default=None
        Seed of rows set apart, of subsamples and of features tried.
    subsample : float, default=1.0
        The share of rows that each round is grown on, drawn without replacement.
    growth : {"leaf", "level"}, default="leaf"
        Which leaf is split next: that which gains most, or the oldest.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends with the rounds it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does.

    Attributes
    ----------
    n_iter_ : int
        The number of rounds.
    n_trees_per_iteration_ : int
        Trees of a round: one, or one for each of more than two classes.
    history_ : GradientHistory
        Round by round: training loss, validation score, leaves; and why boosting ended.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        With early stopping, minus the training loss, and the validation scores; else empty.
    do_early_stopping_ : bool
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the gain of all splits. See also `importances`.
    is_categorical_ : ndarray of bool of shape (n_features,) or None
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.

    Examples
    --------
    >>> from margrove import HistGradientBoostingRegressor
    >>> X = [[float(i)] for i in range(100)]
    >>> y = [0.0] * 50 + [1.0] * 50
    >>> model = HistGradientBoostingRegressor(learning_rate=1.0, max_iter=3).fit(X, y)
    >>> model.predict([[10.0], [90.0]])
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _PARAMETERS | {
        "loss": [str, GradientLoss],
        "quantile": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        loss: str | GradientLoss = "squared_error",
        *,
        quantile: float | None = None,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        subsample: float = 1.0,
        growth: Literal["leaf", "level"] = "leaf",
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.subsample = subsample
        self.growth = growth
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return number_data(table, y, sample_weight, self._loss_of_name())

    def _loss_of_name(self) -> GradientLoss:
        if self.loss == "quantile":
            if self.quantile is None:
                raise ValueError(
                    "loss='quantile' needs the parameter quantile, for example quantile=0.9. "
                    "Got None."
                )
            return gradient_loss_of("quantile", quantile=float(self.quantile))
        return regression_loss_of(self.loss)

    def _loss_for(self, given: GradientData) -> GradientLoss:
        return self._loss_of_name()

    def _targets_like_fitted(self, y: Any, n: int, given: GradientData) -> np.ndarray:
        return self._loss_of_name().check_targets(check_targets(y, n)) / given.scale


class HistGradientBoostingClassifier(BoostedClassifier, _HistGradientBoosting):
    """Gradient boosting of classification trees on binned features.

    A drop-in for `sklearn.ensemble.HistGradientBoostingClassifier`, level with LightGBM and
    XGBoost. Missing values and categories are taken as they are, and so are sparse matrices.
    Gradients are summed as whole numbers: neither the order of the rows nor the number of threads
    matters. More than two classes have a tree each in every round.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or GradientLoss, default="log_loss"
        What is made small; "exponential", AdaBoost's loss, is for two classes. A loss of your own
        is registered by `margrove.register_gradient_loss`, or made by `GradientLoss.of_functions`.
    learning_rate : float, default=0.1
        Factor on what each tree adds.
    max_iter : int, default=100
        The most rounds.
    max_leaf_nodes : int or None, default=31
        The most leaves of a tree.
    max_depth : int or None, default=None
        The most splits between root and leaf.
    min_samples_leaf : int, default=20
        The fewest samples of a leaf.
    l2_regularization : float, default=0.0
        What is added to the hessian of a leaf, which makes its value smaller.
    max_features : float, default=1.0
        The share of the features that each node may be split by, drawn at random.
    max_bins : int, default=255
        The most values of a feature; of more, neighbouring ones share a bin of about equal weight.
        Bins are found from all rows.
    categorical_features : array-like, "from_dtype", "all" or None, default="from_dtype"
        Columns whose values are categories: a mask, numbers or names. "from_dtype" takes those of a
        dataframe that hold labels. Any number of categories will do: if they are more than
        `max_bins`, rare ones are split together. Negative numbers in such columns are missing.
    monotonic_cst : array-like of int, dict or None, default=None
        1, 0 or -1 of each feature: predictions may only rise, or only fall, with it.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of sets of int or None, default=None
        Sets of features that may occur together on a path.
    warm_start : bool, default=False
        Go on from the rounds of the last fit, with the same data.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when the validation score gets no better; "auto" does for more than 10,000
        samples, or with X_val.
    scoring : str, callable or None, default="loss"
        The validation score.
    validation_fraction : float, int, splitter or None, default=0.1
        The share, or number, of rows that are set apart for it; a splitter, such as
        `GroupShuffleSplit` without groups or `TimeSeriesSplit`, sets its first test set apart. None
        scores the training set.
    n_iter_no_change : int, default=10
        Rounds without a better score after which boosting stops.
    tol : float, default=1e-7
        What better means.
    verbose : int, default=0
        Show a progress bar.
    random_state : int, RandomState, Generator or None, default=None
        Seed of rows set apart, of subsamples and of features tried.
    subsample : float, default=1.0
        The share of rows that each round is grown on, drawn without replacement.
    growth : {"leaf", "level"}, default="leaf"
        Which leaf is split next: that which gains most, or the oldest.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends with the rounds it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class. They are no numbers of samples:
        `min_samples_leaf` counts a row of any class as its `sample_weight` says.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : int
        The number of rounds.
    n_trees_per_iteration_ : int
        Trees of a round: one, or one for each of more than two classes.
    history_ : GradientHistory
        Round by round: training loss, validation score, leaves; and why boosting ended.
    train_score_, validation_score_ : ndarray of shape (n_rounds + 1,)
        With early stopping, minus the training loss, and the validation scores; else empty.
    do_early_stopping_ : bool
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in the gain of all splits. See also `importances`.
    is_categorical_ : ndarray of bool of shape (n_features,) or None
    categories_ : dict
        Labels of each categorical column.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.

    Examples
    --------
    >>> from margrove import HistGradientBoostingClassifier
    >>> X = [[float(i)] for i in range(100)]
    >>> y = ["low"] * 50 + ["high"] * 50
    >>> model = HistGradientBoostingClassifier(max_iter=10).fit(X, y)
    >>> model.predict([[10.0], [90.0]]).tolist()
    ['low', 'high']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _PARAMETERS | {
        "loss": [str, GradientLoss],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        loss: str | GradientLoss = "log_loss",
        *,
        learning_rate: float = 0.1,
        max_iter: int = 100,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_features: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        warm_start: bool = False,
        early_stopping: Any = "auto",
        scoring: Any = "loss",
        validation_fraction: Any = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        verbose: int = 0,
        random_state: Any = None,
        subsample: float = 1.0,
        growth: Literal["leaf", "level"] = "leaf",
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        class_weight: Any = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.subsample = subsample
        self.growth = growth
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.class_weight = class_weight

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return class_data(table, y, sample_weight, self.class_weight, min_classes=1)

    def _loss_for(self, given: GradientData) -> GradientLoss:
        return class_loss_of(self.loss, len(given.labels))

    def _require_same_kind(self, given: GradientData) -> None:
        super()._require_same_kind(given)
        if self._is_going_on():
            require_same_classes(self.classes_, given)

    def _targets_like_fitted(self, y: Any, n: int, given: GradientData) -> np.ndarray:
        labels, classes = check_labels(y, n), given.labels
        codes = labels.codes_among(classes)
        if np.any(codes < 0):
            unknown = sorted(set(labels.classes.tolist()) - set(classes.tolist()), key=str)
            raise ValueError(
                f"y_val has the class {unknown[0]!r}, which y does not have. Drop these rows."
            )
        return codes.astype(np.float64)


def _is_place(given: Any, d: int) -> bool:
    is_whole = isinstance(given, Integral) and not isinstance(given, (bool, np.bool_))
    return is_whole and 0 <= int(given) < d


def _parts_by(splitter: Any, given: GradientData, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, and rows apart, by the first split of the user's rows."""
    targets = np.asarray(y)
    split = next(iter(splitter.split(np.zeros((len(targets), 1)), targets)), None)
    if split is None:
        raise ValueError(f"validation_fraction={splitter!r} makes no split. Use another splitter.")
    if not isinstance(split, tuple) or len(split) != 2:
        raise ValueError(
            f"validation_fraction={splitter!r} must yield pairs of rows to train on and rows "
            f"apart. Got {split!r}."
        )
    origin = np.arange(given.n_rows) if given.origin is None else given.origin
    train, apart = (np.flatnonzero(np.isin(origin, own)) for own in split)
    if not len(train) or not len(apart):
        raise ValueError(
            f"validation_fraction={splitter!r} leaves {len(train)} rows to train on and "
            f"{len(apart)} to see when to stop. Use another splitter."
        )
    return train, apart
