"""Estimators: GradientBoostingClassifier, GradientBoostingRegressor."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from margrove._data import check_table, like_fitted
from margrove._runtime import RANDOM_STATE, RUN_CONTROL, unwatched
from margrove.ensemble.adaboost import TreeMembers
from margrove.ensemble.bagging import seed_of_member
from margrove.ensemble.gradient.boosted_trees import (
    BoostedClassifier,
    BoostedRegressor,
    GradientBoosted,
    kind_of,
    require_same_classes,
)
from margrove.ensemble.gradient.early_stopping import ClassicMonitor, HeldOut, Monitor, SoFar
from margrove.ensemble.gradient.exact import ExactRounds, ExactTrees, Grower, TreeOfItsOwn
from margrove.ensemble.gradient.losses import (
    GradientLoss,
    LogLinkLoss,
    class_loss_of,
    gradient_loss_of,
    regression_loss_of,
)
from margrove.ensemble.gradient.training_data import GradientData, RowDraws, class_data, number_data
from margrove.ensemble.gradient.verbose_table import RoundTable
from margrove.exceptions import FitCancelled
from margrove.grove import DecisionTreeRegressor, number_of_features
from margrove.grove.serve import TreeForm, rescaled
from margrove.grove.table import TreeTable, bin_columns

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]

_DEEPEST = 16  # level by level; what grows deeper is left to a tree of its own
_CELLS_TO_SHARE = 1 << 20
_LEAST_SHARE = np.finfo(np.float32).eps
_AS_TREES_HAVE_IT = ("min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf",
                     "max_depth", "min_impurity_decrease", "max_features", "max_leaf_nodes",
                     "ccp_alpha")  # fmt: skip

_PARAMETERS: dict[str, list[Any]] = {
    "learning_rate": [Interval(Real, 0, None, closed="left")],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "criterion": [StrOptions({"friedman_mse", "squared_error", "deprecated"})],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0, 1, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0, 1, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0, 0.5, closed="both")],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_impurity_decrease": [Interval(Real, 0, None, closed="left")],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0, 1, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "warm_start": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
    "tol": [Interval(Real, 0, None, closed="left")],
    "ccp_alpha": [Interval(Real, 0, None, closed="left")],
    "n_jobs": [Integral, None],
    **RANDOM_STATE,
    **RUN_CONTROL,
}


class _GradientBoosting(GradientBoosted):
    """What both have in common."""

    n_estimators: int
    min_samples_split: Any
    min_samples_leaf: Any
    min_weight_fraction_leaf: float
    max_depth: int | None
    min_impurity_decrease: float
    init: Any
    max_features: Any
    max_leaf_nodes: int | None
    validation_fraction: float
    n_iter_no_change: int | None
    tol: float
    ccp_alpha: float
    init_: Any
    _init_model: Any
    _rates: np.ndarray

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, monitor: Callable[..., Any] | None = None
    ) -> Self:
        """Boost.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            0 is a row removed, 2 a row that is there twice.
        monitor : callable, optional
            Called after each round as `monitor(round, model, {})`; boosting ends when it returns
            True.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._warn_of_criterion()
        checked = check_table(X, self)
        table = TreeTable(checked.X, checked.feature_names, {})
        given = self._data(table, y, sample_weight)
        seed = self._seed()
        self._require_same_kind(given)
        if self.subsample < 1.0 or self.n_iter_no_change is not None:
            given = given.spread_out()
        held_out = None
        if self.n_iter_no_change is not None:
            given, held_out = self._set_apart(given, seed)
        init = self._fitted_init(given, is_weighted=sample_weight is not None)
        so_far = self._so_far(given, init, self._loss_for(given))
        process = self._process(given, held_out, so_far, seed)

        def fitted(outcome: str = "unfinished") -> dict[str, Any]:
            return self._attributes(process, given, so_far, init, seed, outcome)

        report = self._report(process, given, so_far) if self.verbose else None
        if report is not None or monitor is not None:
            process.after_round = self._heard(report, monitor, fitted)
        others = {"sample_weight": sample_weight}
        ending = self._run(process, X, y, fitted, others, with_bar=False)
        if process.stopped_early:
            outcome = "stopped early"
        else:
            outcome = "callback" if process.was_stopped else ending
        self._commit(fitted(outcome))
        return self

    # -- what is given --

    def _warn_of_criterion(self) -> None:
        installed = parse_version(sklearn.__version__).release
        if self.criterion != "deprecated" and installed >= (1, 9):
            warnings.warn(
                "The parameter `criterion` is deprecated and will be removed in 1.11. It has no "
                "effect. Leave it to its default value to avoid this warning.",
                FutureWarning,
                stacklevel=3,
            )

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        raise NotImplementedError

    def _loss_for(self, given: GradientData) -> GradientLoss:
        raise NotImplementedError

    def _raw_of_init(self, init: Any, X: Any, loss: GradientLoss) -> np.ndarray:
        """What a model that was fitted beforehand says, (scores, n)."""
        raise NotImplementedError

    def _dummy(self, given: GradientData) -> Any:
        """What says the same of all rows as boosting starts from."""
        raise NotImplementedError

    def _require_same_kind(self, given: GradientData) -> None:
        if not self._is_going_on():
            return
        if self.n_estimators < self.n_iter_:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"estimators_.shape[0]={self.n_iter_} when warm_start==True. Use warm_start=False "
                "to start anew."
            )
        if given.X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"warm_start=True goes on with the data of the last fit, which had "
                f"{self.n_features_in_} features; X has {given.X.shape[1]}. Use warm_start=False "
                "to start anew."
            )

    def _set_apart(self, given: GradientData, seed: int) -> tuple[GradientData, HeldOut]:
        """Rows to train on, and rows to see when to stop."""
        n = given.n_rows
        size = int(np.ceil(self.validation_fraction * n))
        if size >= n:
            raise ValueError(
                f"n_iter_no_change sets {size} of {n} rows apart (validation_fraction="
                f"{self.validation_fraction}), which leaves none to train on. Use "
                "n_iter_no_change=None."
            )
        apart = RowDraws(given, seed).held_out(size)
        train = np.setdiff1d(np.arange(n), apart, assume_unique=True)
        held_out = given.of_rows(apart)
        given = given.of_rows(train)
        if given.classes is not None and len(np.unique(given.y)) < len(given.classes):
            raise ValueError(
                "The training data after the early stopping split is missing some classes. Use "
                "n_iter_no_change=None, or more rows of the rare classes."
            )
        return given, HeldOut(held_out.X, held_out.y, held_out.weight)

    def _fitted_init(self, given: GradientData, *, is_weighted: bool) -> Any:
        """A model of `init`, fitted on real targets; None for a constant start."""
        if self._is_going_on():
            return self._init_model
        if self.init is None or isinstance(self.init, str):
            return None
        model = clone(self.init)
        targets = given.y * given.scale
        if given.classes is not None:
            targets = given.classes[given.y.astype(np.int64)]
        weight = given.training_rows.total_weight
        if is_weighted and not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                f"The initial estimator {type(model).__name__} does not support sample weights. "
                "Leave sample_weight at None, or use another init."
            )
        weights = {} if weight is None else {"sample_weight": weight}
        model.fit(given.X, targets, **weights)
        return model

    # -- training --

    def _so_far(self, given: GradientData, init: Any, loss: GradientLoss) -> SoFar:
        """Where the first round, or that after an earlier fit, begins."""
        before = None if init is None else (lambda X: self._checked_raw_of_init(init, X, loss))
        if self._is_going_on():
            return replace(self._after_last_fit(given, loss), before=before)
        start = np.zeros(loss.n_scores)
        if self.init is None:
            start = given.training_rows.start(loss)
        return SoFar([], start, (), (), given.scale, before)

    def _process(
        self, given: GradientData, held_out: HeldOut | None, so_far: SoFar, seed: int
    ) -> ExactRounds:
        loss, kind = self._loss_for(given), kind_of(given.table.n_categories)
        monitor: Monitor | None = None
        if held_out is not None:
            monitor = ClassicMonitor(
                kind,
                held_out,
                so_far.raw_of(held_out.X, kind),
                patience=int(self.n_iter_no_change or 1),
                tol=self.tol,
                scores=so_far.scores,
            )
        return ExactRounds(
            self._grower(given, seed),
            given.training_rows,
            so_far.raw_of(given.X, kind),
            loss,
            self._rate(),
            self.n_estimators - len(so_far.rounds),
            first_round=len(so_far.rounds),
            draw=self._draws(given, seed),
            monitor=monitor,
            losses=so_far.losses,
            form=TreeForm(kind, given.X.shape[1]),
            n_threads=self._threads(),
        )

    def _grower(self, given: GradientData, seed: int) -> Grower:
        """Trees level by level where that is all that is asked for, else trees of their own."""
        n, d = given.X.shape
        is_plain = (
            self.max_depth is not None
            and self.max_depth <= _DEEPEST
            and self.max_leaf_nodes is None
            and self.min_impurity_decrease == 0.0
            and self.ccp_alpha == 0.0
            and number_of_features(self.max_features, d) == d
        )
        if not is_plain:
            return self._grower_of_any_trees(given, seed)
        weight, copies = given.weight, given.copies
        total = given.training_rows.total_weight
        samples = n if copies is None else int(copies.sum())
        data = bin_columns(given.X, n_threads=self._threads())
        trees = ExactTrees(
            data,
            max_depth=int(self.max_depth or 1),
            min_samples_split=_number_of(self.min_samples_split, samples, 2),
            min_samples_leaf=_number_of(self.min_samples_leaf, samples, 1),
            min_weight_leaf=self.min_weight_fraction_leaf
            * (n if total is None else float(total.sum())),
            n_threads=self._threads() if n * d >= _CELLS_TO_SHARE else 1,
            of_classes=is_classifier(self),
        )
        return lambda gradient, rows, number: trees.grow(gradient, weight, copies, rows)

    def _grower_of_any_trees(self, given: GradientData, seed: int) -> Grower:
        """Slower: each tree codes the columns anew."""
        asked = {name: getattr(self, name) for name in _AS_TREES_HAVE_IT}
        total, kind = given.training_rows.total_weight, kind_of(given.table.n_categories)

        def grow(gradient: np.ndarray, rows: np.ndarray | None, number: int) -> TreeOfItsOwn:
            weight = np.ones(given.n_rows) if total is None else total.copy()
            if rows is not None:
                weight[np.setdiff1d(np.arange(given.n_rows), rows, assume_unique=True)] = 0.0
            tree = DecisionTreeRegressor(**asked, random_state=seed_of_member(seed, number))
            try:
                with unwatched():
                    tree.fit(given.X, -gradient, sample_weight=weight)
            except FitCancelled as cancelled:
                raise FitCancelled(
                    f"Fitting {type(self).__name__} was cancelled; the estimator is as it was "
                    "before."
                ) from cancelled
            return TreeOfItsOwn(tree.arrays_, tree.apply(given.X), kind)

        return grow

    def _report(
        self, process: ExactRounds, given: GradientData, so_far: SoFar
    ) -> Callable[[int], None]:
        """What `verbose` prints of each round."""
        table = RoundTable(
            self.verbose,
            len(so_far.rounds),
            self.n_estimators,
            with_out_of_bag=self.subsample < 1.0,
        )

        def report(number: int) -> None:
            if table.is_due(number + 1):
                losses = [float(self._train_scores(process, given)[-1])]
                if self.subsample < 1.0:
                    losses.append(float(self._out_of_bag(process, given, so_far)[1][-1]))
                table.add(number + 1, *losses)

        return report

    def _heard(
        self,
        report: Callable[[int], None] | None,
        monitor: Callable[..., Any] | None,
        fitted: Callable[[], dict[str, Any]],
    ) -> Callable[[int], bool]:
        """Each round is reported, and a user's monitor sees the model as it stands."""

        def after_round(number: int) -> bool:
            if report is not None:
                report(number)
            if monitor is None:
                return False
            standing = copy.copy(self)
            standing._commit(fitted())
            return bool(monitor(number, standing, {}))

        return after_round

    def _attributes(
        self,
        process: ExactRounds,
        given: GradientData,
        so_far: SoFar,
        init: Any,
        seed: int,
        outcome: str,
    ) -> dict[str, Any]:
        found = self._what_was_learnt(process, given, so_far, seed, outcome)
        rates = self._rates if so_far.rounds else np.empty(0)
        asked = {name: getattr(self, name) for name in _AS_TREES_HAVE_IT}
        earlier = self._settings_of_rounds() if so_far.rounds else []
        found |= {
            "n_outputs_": 1,
            "max_features_": number_of_features(self.max_features, given.X.shape[1]),
            "n_estimators_": len(found["_rounds"]),
            "init_": self._init_of_fit(given, so_far, init),
            "_init_model": init,
            "_rates": np.append(rates, [self.learning_rate] * len(process.trees)),
            "_settings": _in_runs([*earlier, *([asked] * len(process.trees))]),
            "train_score_": self._train_scores(process, given),
        }
        if given.classes is not None:
            found["n_classes_"] = len(given.classes)
        if self.subsample < 1.0:
            scores, improvement = self._out_of_bag(process, given, so_far)
            found |= {
                "oob_scores_": scores,
                "oob_improvement_": improvement,
                "oob_score_": float(scores[-1]),
            }
        return found

    def _init_of_fit(self, given: GradientData, so_far: SoFar, init: Any) -> Any:
        if so_far.rounds:
            return self.init_
        if init is not None or self.init == "zero":
            return init or "zero"
        with np.errstate(over="ignore"):
            return self._dummy(given)

    def _train_scores(self, process: ExactRounds, given: GradientData) -> np.ndarray:
        """The loss after each round, as scikit-learn scales it."""
        return _as_reported(process.all_losses()[1:], process.loss, given.scale)

    def _out_of_bag(
        self, process: ExactRounds, given: GradientData, so_far: SoFar
    ) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each round on the rows that its trees were not grown on, and by how much it
        is below that of the round before; zeros for rounds that had no such rows."""
        pairs = np.array(process.oob_losses[: process.rounds]).reshape(-1, 2)
        before, new = _as_reported(pairs, process.loss, given.scale).T
        n_earlier, n_rounds = len(so_far.rounds), len(so_far.rounds) + process.rounds
        scores, improvement = np.zeros(n_rounds), np.zeros(n_rounds)
        last = before[:1]
        if n_earlier and hasattr(self, "oob_scores_"):
            scores[:n_earlier], improvement[:n_earlier] = self.oob_scores_, self.oob_improvement_
            last = self.oob_scores_[-1:]
        scores[n_earlier:] = new
        improvement[n_earlier:] = np.append(last, new)[:-1] - new
        return scores, improvement

    def _settings_of_rounds(self) -> list[dict[str, Any]]:
        """What the trees of each round were asked for, which a warm start may have changed."""
        now = {name: getattr(self, name) for name in _AS_TREES_HAVE_IT}
        runs = getattr(self, "_settings", [[self.n_iter_, now]])  # files of old did not say
        return [asked for count, asked in runs for _ in range(count)]

    # -- asking --

    def _read(self, X: Any) -> Any:
        self._require_sound()
        return like_fitted(X, self)

    def _raw_before(self, rows: Any) -> np.ndarray:
        raw = super()._raw_before(rows)
        if self._init_model is not None:
            raw += self._checked_raw_of_init(self._init_model, rows, self._loss)
        return raw

    def _checked_raw_of_init(self, init: Any, rows: Any, loss: GradientLoss) -> np.ndarray:
        raw = self._raw_of_init(init, rows, loss)
        if raw.shape != (loss.n_scores, rows.shape[0]) or not np.isfinite(raw).all():
            raise ValueError(
                f"init={type(init).__name__} must say a finite number of each row (> 0, if the "
                "loss is of logarithms), or a probability of each class. Got an answer of shape "
                f"{raw.T.shape} for {rows.shape[0]} rows. Use another init."
            )
        return raw

    @property
    def estimators_(self) -> np.ndarray:
        """The trees as estimators of their own, (n_estimators_, trees of a round)."""
        check_is_fitted(self, "_rounds")
        names = ("n_features_in_", "feature_names_in_", "categories_", "n_outputs_",
                 "max_features_")  # fmt: skip
        known = {name: getattr(self, name) for name in names if hasattr(self, name)}
        trees = np.empty((self.n_iter_, self.n_trees_per_iteration_), dtype=object)
        settings = self._settings_of_rounds()
        for t, (own, rate, asked) in enumerate(
            zip(self._rounds, self._rates, settings, strict=True)
        ):
            template = DecisionTreeRegressor(**asked)
            scale = 1.0 / rate if rate > 0.0 else 0.0
            scaled = tuple([rescaled(tree, scale, 0)] for tree in own)
            members = TreeMembers("numbers", self._kind, template, known, scaled)
            for k in range(len(own)):
                (trees[t, k],) = members.estimators(k)
        return trees

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


class GradientBoostingRegressor(BoostedRegressor, _GradientBoosting):
    """Gradient boosting of small regression trees with exact splits.

    A drop-in for `sklearn.ensemble.GradientBoostingRegressor`. Trees are grown level by level on
    rank codes that are made once. Neither the order of the rows nor the number of threads matters.

    Parameters
    ----------
    loss : {"squared_error", "absolute_error", "huber", "quantile"} or GradientLoss, \
            default="squared_error"
        What is made small.
    learning_rate : float, default=0.1
        Factor on what each tree adds.
    n_estimators : int, default=100
        The most rounds.
    subsample : float, default=1.0
        The share of rows that each round is grown on, drawn without replacement.
    criterion : {"friedman_mse", "squared_error", "deprecated"}, default="deprecated"
        All mean the same splits. Deprecated by scikit-learn 1.9.
    min_samples_split : int or float, default=2
        The fewest samples of a node that is split, or their share.
    min_samples_leaf : int or float, default=1
        The fewest samples of a leaf, or their share.
    min_weight_fraction_leaf : float, default=0.0
        The least share of the weight of all rows that a leaf must have.
    max_depth : int or None, default=3
        The most splits between root and leaf.
    min_impurity_decrease : float, default=0.0
        What a split must gain at least.
    init : estimator, "zero" or None, default=None
        What boosting starts from; None is the constant that fits best.
    random_state : int, RandomState, Generator or None, default=None
        Seed of subsamples, of rows set apart and of features tried.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features that each split is chosen from.
    alpha : float, default=0.9
        The quantile of loss="quantile", and that of the errors which loss="huber" takes for large.
    verbose : int, default=0
        Print a table of the rounds on standard output, as scikit-learn does: 1 prints fewer and
        fewer of them, 2 all.
    max_leaf_nodes : int or None, default=None
        The most leaves of a tree, which is then split where it gains most.
    warm_start : bool, default=False
        Go on from the rounds of the last fit, with the same data.
    validation_fraction : float, default=0.1
        With `n_iter_no_change`: the share of rows that are set apart.
    n_iter_no_change : int or None, default=None
        Stop after so many rounds without a lower validation loss.
    tol : float, default=1e-4
        What lower means.
    ccp_alpha : float, default=0.0
        Cost of a leaf, by which trees are pruned.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends with the rounds it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does.

    Attributes
    ----------
    n_estimators_ : int
        The number of rounds.
    estimators_ : ndarray of DecisionTreeRegressor of shape (n_rounds, n_trees)
        The trees, made when they are asked for.
    init_ : estimator or "zero"
        What boosting started from.
    train_score_ : ndarray of shape (n_rounds,)
        The loss after each round, of the rows that its trees were grown on.
    oob_scores_ : ndarray of shape (n_rounds,)
        With subsample < 1: the loss of each round on the rows that it was not grown on; 0 for
        rounds of a warm start that had no such rows.
    oob_improvement_ : ndarray of shape (n_rounds,)
        By how much that is below the one before.
    oob_score_ : float
        The last of `oob_scores_`.
    history_ : GradientHistory
        Round by round: training loss, validation score, leaves; and why boosting ended.
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in what impurity fell by.
    max_features_ : int
        Features that each split is chosen from.
    n_outputs_ : int
        Always 1.
    categories_ : dict
        Always empty: see `HistGradientBoostingRegressor` for categories.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.

    Examples
    --------
    >>> from margrove import GradientBoostingRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0]
    >>> model = GradientBoostingRegressor(learning_rate=1.0, n_estimators=1).fit(X, y)
    >>> model.predict([[0.5], [2.5]])
    array([0., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _PARAMETERS | {
        "loss": [str, GradientLoss],
        "init": [StrOptions({"zero"}), None, HasMethods(["fit", "predict"])],
        "alpha": [Interval(Real, 0.0, 1.0, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: str | GradientLoss = "squared_error",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        alpha: float = 0.9,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.alpha = alpha
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return number_data(table, y, sample_weight, self._loss_of_name())

    def _loss_of_name(self) -> GradientLoss:
        if self.loss in ("huber", "quantile"):
            asked: dict[str, Any] = {"quantile" if self.loss == "quantile" else "alpha": self.alpha}
            return gradient_loss_of(self.loss, **asked)
        return regression_loss_of(self.loss)

    def _loss_for(self, given: GradientData) -> GradientLoss:
        return self._loss_of_name()

    def _raw_of_init(self, init: Any, X: Any, loss: GradientLoss) -> np.ndarray:
        try:
            found = np.asarray(init.predict(X), dtype=np.float64).reshape(1, -1)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"init={type(init).__name__} must predict a number for each row: {error}"
            ) from error
        if isinstance(loss, LogLinkLoss):
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.log(found)  # of what is not positive, no number: refused
        return np.ascontiguousarray(found)

    def _dummy(self, given: GradientData) -> Any:
        weight, y = given.training_rows.total_weight, given.y * given.scale
        if self.loss in ("absolute_error", "huber"):
            model = DummyRegressor(strategy="quantile", quantile=0.5)
        elif self.loss == "quantile":
            model = DummyRegressor(strategy="quantile", quantile=self.alpha)
        else:
            model = DummyRegressor(strategy="mean")
        return model.fit(np.zeros((len(y), 1)), y, sample_weight=weight)


class GradientBoostingClassifier(BoostedClassifier, _GradientBoosting):
    """Gradient boosting of small trees with exact splits, for classes.

    A drop-in for `sklearn.ensemble.GradientBoostingClassifier`. Trees are grown level by level on
    rank codes that are made once. Neither the order of the rows nor the number of threads matters.
    More than two classes have a tree each in every round.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or GradientLoss, default="log_loss"
        What is made small; "exponential" is AdaBoost's loss, for two classes.
    learning_rate : float, default=0.1
        Factor on what each tree adds.
    n_estimators : int, default=100
        The most rounds.
    subsample : float, default=1.0
        The share of rows that each round is grown on, drawn without replacement.
    criterion : {"friedman_mse", "squared_error", "deprecated"}, default="deprecated"
        All mean the same splits. Deprecated by scikit-learn 1.9.
    min_samples_split : int or float, default=2
        The fewest samples of a node that is split, or their share.
    min_samples_leaf : int or float, default=1
        The fewest samples of a leaf, or their share.
    min_weight_fraction_leaf : float, default=0.0
        The least share of the weight of all rows that a leaf must have.
    max_depth : int or None, default=3
        The most splits between root and leaf.
    min_impurity_decrease : float, default=0.0
        What a split must gain at least.
    init : estimator, "zero" or None, default=None
        What boosting starts from; None is the constant that fits best.
    random_state : int, RandomState, Generator or None, default=None
        Seed of subsamples, of rows set apart and of features tried.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features that each split is chosen from.
    verbose : int, default=0
        Print a table of the rounds on standard output, as scikit-learn does: 1 prints fewer and
        fewer of them, 2 all.
    max_leaf_nodes : int or None, default=None
        The most leaves of a tree, which is then split where it gains most.
    warm_start : bool, default=False
        Go on from the rounds of the last fit, with the same data.
    validation_fraction : float, default=0.1
        With `n_iter_no_change`: the share of rows that are set apart.
    n_iter_no_change : int or None, default=None
        Stop after so many rounds without a lower validation loss.
    tol : float, default=1e-4
        What lower means.
    ccp_alpha : float, default=0.0
        Cost of a leaf, by which trees are pruned.
    n_jobs : int or None, default=None
        Threads; None means all permitted cores. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which boosting ends with the rounds it has.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_classes_ : int
        Their number.
    n_estimators_ : int
        The number of rounds.
    estimators_ : ndarray of DecisionTreeRegressor of shape (n_rounds, n_trees)
        The trees, made when they are asked for.
    init_ : estimator or "zero"
        What boosting started from.
    train_score_ : ndarray of shape (n_rounds,)
        The loss after each round, of the rows that its trees were grown on.
    oob_scores_ : ndarray of shape (n_rounds,)
        With subsample < 1: the loss of each round on the rows that it was not grown on; 0 for
        rounds of a warm start that had no such rows.
    oob_improvement_ : ndarray of shape (n_rounds,)
        By how much that is below the one before.
    oob_score_ : float
        The last of `oob_scores_`.
    history_ : GradientHistory
        Round by round: training loss, validation score, leaves; and why boosting ended.
    feature_importances_ : ndarray of shape (n_features,)
        The share of each feature in what impurity fell by.
    max_features_ : int
        Features that each split is chosen from.
    n_outputs_ : int
        Always 1.
    categories_ : dict
        Always empty: see `HistGradientBoostingClassifier` for categories.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where X has names.

    Examples
    --------
    >>> from margrove import GradientBoostingClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
    >>> GradientBoostingClassifier(n_estimators=5).fit(X, y).predict([[0.5], [2.5]]).tolist()
    ['low', 'high']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _PARAMETERS | {
        "loss": [str, GradientLoss],
        "init": [StrOptions({"zero"}), None, HasMethods(["fit", "predict_proba"])],
    }

    def __init__(
        self,
        *,
        loss: str | GradientLoss = "log_loss",
        learning_rate: float = 0.1,
        n_estimators: int = 100,
        subsample: float = 1.0,
        criterion: str = "deprecated",
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_depth: int | None = 3,
        min_impurity_decrease: float = 0.0,
        init: Any = None,
        random_state: Any = None,
        max_features: Any = None,
        verbose: int = 0,
        max_leaf_nodes: int | None = None,
        warm_start: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        tol: float = 1e-4,
        ccp_alpha: float = 0.0,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.subsample = subsample
        self.criterion = criterion
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_depth = max_depth
        self.min_impurity_decrease = min_impurity_decrease
        self.init = init
        self.random_state = random_state
        self.max_features = max_features
        self.verbose = verbose
        self.max_leaf_nodes = max_leaf_nodes
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.ccp_alpha = ccp_alpha
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt

    def _data(self, table: TreeTable, y: Any, sample_weight: Any) -> GradientData:
        return class_data(table, y, sample_weight, None)

    def _loss_for(self, given: GradientData) -> GradientLoss:
        return class_loss_of(self.loss, len(given.labels))

    def apply(self, X: Any) -> np.ndarray:
        """The leaf of each row in each tree.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_rounds, n_trees)
            Numbers of nodes, as `tree` has them; n_trees is 1 for two classes.
        """
        leaves = super().apply(X)
        return leaves.reshape(len(leaves), -1, self.n_trees_per_iteration_)

    def _require_same_kind(self, given: GradientData) -> None:
        super()._require_same_kind(given)
        if self._is_going_on():
            require_same_classes(self.classes_, given)

    def _raw_of_init(self, init: Any, X: Any, loss: GradientLoss) -> np.ndarray:
        shares = np.clip(np.asarray(init.predict_proba(X)), _LEAST_SHARE, 1.0 - _LEAST_SHARE)
        if shares.shape != (X.shape[0], max(2, loss.n_scores)):
            return np.full(shares.shape[::-1], np.nan)
        logs = np.log(shares)
        raw = (logs - logs.mean(axis=1)[:, None]).T
        if loss.n_scores == 1:
            raw = (0.5 if loss.name == "exponential" else 1.0) * (logs[:, 1] - logs[:, 0])
        return np.ascontiguousarray(np.atleast_2d(raw))

    def _dummy(self, given: GradientData) -> Any:
        classes = given.classes if given.classes is not None else np.empty(0)
        weight = given.training_rows.total_weight
        y = classes[given.y.astype(np.int64)]
        return DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y, sample_weight=weight)


def _number_of(given: Any, samples: int, least: int) -> int:
    """A number of samples that is given as such, or as a share."""
    if isinstance(given, Integral):
        return min(int(given), 2**31)
    return max(least, int(np.ceil(float(given) * samples)))


def _in_runs(settings: list[dict[str, Any]]) -> list[list[Any]]:
    """Settings of rounds as pairs of how often they come one after the other, and what they are."""
    runs: list[list[Any]] = []
    for asked in settings:
        if runs and runs[-1][1] == asked:
            runs[-1][0] += 1
        else:
            runs.append([1, asked])
    return runs


def _as_reported(losses: np.ndarray, loss: GradientLoss, scale: float) -> np.ndarray:
    """Losses of targets that were divided by `scale`, as scikit-learn reports them."""
    with np.errstate(over="ignore"):
        unit = loss.reported_factor * np.float64(scale) ** loss.degree
        return np.multiply(losses, unit, out=np.zeros_like(losses), where=losses != 0.0)
