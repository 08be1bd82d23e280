"""Base class of the classic gradient boosting estimators: data, start, growing, attributes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from margrove._data import check_table, like_fitted
from margrove._runtime import RANDOM_STATE, RUN_CONTROL, unwatched
from margrove.ensemble.adaboost import TreeMembers
from margrove.ensemble.bagging import seed_of_member
from margrove.ensemble.gradient.boosted_trees import (
    GradientBoosted,
    kind_of,
)
from margrove.ensemble.gradient.early_stopping import ClassicMonitor, HeldOut, Monitor, SoFar
from margrove.ensemble.gradient.exact import ExactRounds, ExactTrees, Grower, RefittedTree
from margrove.ensemble.gradient.losses import (
    GradientLoss,
)
from margrove.ensemble.gradient.training_data import GradientData, RowDraws
from margrove.ensemble.gradient.verbose_table import RoundTable
from margrove.exceptions import FitCancelled
from margrove.grove import DecisionTreeRegressor, number_of_features
from margrove.grove.serve import TreeForm, rescaled
from margrove.grove.table import TreeTable, bin_columns

__all__ = ["CLASSIC_PARAMETERS", "ClassicBoosting"]

_DEEPEST = 16  # maximum depth of trees that grow by levels; deeper ones are single decision trees
_CELLS_TO_SHARE = 1 << 20
_TREE_PARAMETERS = ("min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf",
                     "max_depth", "min_impurity_decrease", "max_features", "max_leaf_nodes",
                     "ccp_alpha")  # fmt: skip

CLASSIC_PARAMETERS: dict[str, list[Any]] = {
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


class ClassicBoosting(GradientBoosted):
    """Base class of GradientBoostingClassifier and GradientBoostingRegressor."""

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
        """Fit the trees, round by round.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 0 removes a row, a weight of 2 is the same as two copies of the row.
        monitor : callable, optional
            Called after each round as `monitor(round, model, {})`; boosting stops when it returns
            True.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._warn_of_criterion()
        checked = check_table(X, self)
        table = TreeTable(checked.X, checked.feature_names, {})
        data = self._data(table, y, sample_weight)
        seed = self._seed()
        self._require_same_kind(data)
        if self.subsample < 1.0 or self.n_iter_no_change is not None:
            data = data.with_row_per_sample()
        held_out = None
        if self.n_iter_no_change is not None:
            data, held_out = self._split_off_validation(data, seed)
        init = self._fitted_init(data, is_weighted=sample_weight is not None)
        so_far = self._so_far(data, init, self._loss_for(data))
        process = self._process(data, held_out, so_far, seed)

        def fitted(outcome: str = "unfinished") -> dict[str, Any]:
            return self._attributes(process, data, so_far, init, seed, outcome)

        report = self._report(process, data, so_far) if self.verbose else None
        if report is not None or monitor is not None:
            process.after_round = self._after_round(report, monitor, fitted)
        others = {"sample_weight": sample_weight}
        ending = self._run(process, X, y, fitted, others, with_bar=False)
        if process.stopped_early:
            outcome = "stopped early"
        else:
            outcome = "callback" if process.was_stopped else ending
        self._commit(fitted(outcome))
        return self

    # -- data --

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

    def _loss_for(self, data: GradientData) -> GradientLoss:
        raise NotImplementedError

    def _raw_of_init(self, init: Any, X: Any, loss: GradientLoss) -> np.ndarray:
        """Raw scores by the fitted model of `init`, float64 (n_scores, n)."""
        raise NotImplementedError

    def _dummy(self, data: GradientData) -> Any:
        """A fitted dummy estimator that predicts the constant start of boosting."""
        raise NotImplementedError

    def _require_same_kind(self, data: GradientData) -> None:
        if not self._continues():
            return
        if self.n_estimators < self.n_iter_:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"estimators_.shape[0]={self.n_iter_} when warm_start==True. Use warm_start=False "
                "to start again."
            )
        if data.X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"warm_start=True needs the data of the last fit, which had "
                f"{self.n_features_in_} features; X has {data.X.shape[1]}. Use warm_start=False "
                "to start again."
            )

    def _split_off_validation(self, data: GradientData, seed: int) -> tuple[GradientData, HeldOut]:
        """(training data, validation rows) for early stopping."""
        n = data.n_rows
        size = int(np.ceil(self.validation_fraction * n))
        if size >= n:
            raise ValueError(
                f"n_iter_no_change uses {size} of {n} rows for validation (validation_fraction="
                f"{self.validation_fraction}), which leaves none to train on. Use "
                "n_iter_no_change=None."
            )
        validation = RowDraws(data, seed).held_out(size)
        train = np.setdiff1d(np.arange(n), validation, assume_unique=True)
        held_out = data.of_rows(validation)
        data = data.of_rows(train)
        if data.classes is not None and len(np.unique(data.y)) < len(data.classes):
            raise ValueError(
                "The training data after the early stopping split is missing some classes. Use "
                "n_iter_no_change=None, or more rows of the rare classes."
            )
        return data, HeldOut(held_out.X, held_out.y, held_out.weight)

    def _fitted_init(self, data: GradientData, *, is_weighted: bool) -> Any:
        """The model of `init`, fitted to the unscaled targets; None for a constant start."""
        if self._continues():
            return self._init_model
        if self.init is None or isinstance(self.init, str):
            return None
        model = clone(self.init)
        targets = data.y * data.scale
        if data.classes is not None:
            targets = data.classes[data.y.astype(np.int64)]
        weight = data.training_rows.total_weight
        if is_weighted and not has_fit_parameter(model, "sample_weight"):
            raise ValueError(
                f"The initial estimator {type(model).__name__} does not support sample weights. "
                "Leave sample_weight at None, or use another init."
            )
        weights = {} if weight is None else {"sample_weight": weight}
        model.fit(data.X, targets, **weights)
        return model

    # -- training --

    def _so_far(self, data: GradientData, init: Any, loss: GradientLoss) -> SoFar:
        """The state before the first new round."""
        before = None if init is None else (lambda X: self._checked_raw_of_init(init, X, loss))
        if self._continues():
            return replace(self._after_last_fit(data, loss), before=before)
        start = np.zeros(loss.n_scores)
        if self.init is None:
            start = data.training_rows.start(loss)
        return SoFar([], start, (), (), data.scale, before)

    def _process(
        self, data: GradientData, held_out: HeldOut | None, so_far: SoFar, seed: int
    ) -> ExactRounds:
        loss, kind = self._loss_for(data), kind_of(data.table.n_categories)
        monitor: Monitor | None = None
        if held_out is not None:
            monitor = ClassicMonitor(
                kind,
                held_out,
                so_far.raw_of(held_out.X, kind),
                n_iter_no_change=int(self.n_iter_no_change or 1),
                tol=self.tol,
                scores=so_far.scores,
            )
        return ExactRounds(
            self._grower(data, seed),
            data.training_rows,
            so_far.raw_of(data.X, kind),
            loss,
            self._rate(),
            self.n_estimators - len(so_far.rounds),
            first_round=len(so_far.rounds),
            draw=self._draws(data, seed),
            monitor=monitor,
            losses=so_far.losses,
            form=TreeForm(kind, data.X.shape[1]),
            n_threads=self._threads(),
        )

    def _grower(self, data: GradientData, seed: int) -> Grower:
        """A function that grows a tree: by levels if the parameters allow it, else a single
        decision tree."""
        n, d = data.X.shape
        is_plain = (
            self.max_depth is not None
            and self.max_depth <= _DEEPEST
            and self.max_leaf_nodes is None
            and self.min_impurity_decrease == 0.0
            and self.ccp_alpha == 0.0
            and number_of_features(self.max_features, d) == d
        )
        if not is_plain:
            return self._grower_of_any_trees(data, seed)
        weight, copies = data.weight, data.copies
        total = data.training_rows.total_weight
        samples = n if copies is None else int(copies.sum())
        binned = bin_columns(data.X, n_threads=self._threads())
        trees = ExactTrees(
            binned,
            max_depth=int(self.max_depth or 1),
            min_samples_split=_number_of(self.min_samples_split, samples, 2),
            min_samples_leaf=_number_of(self.min_samples_leaf, samples, 1),
            min_weight_leaf=self.min_weight_fraction_leaf
            * (n if total is None else float(total.sum())),
            n_threads=self._threads() if n * d >= _CELLS_TO_SHARE else 1,
            of_classes=is_classifier(self),
        )
        return lambda gradient, rows, number: trees.grow(gradient, weight, copies, rows)

    def _grower_of_any_trees(self, data: GradientData, seed: int) -> Grower:
        """A function that fits a single decision tree. Slower: each tree bins the columns again."""
        parameters = {name: getattr(self, name) for name in _TREE_PARAMETERS}
        total, kind = data.training_rows.total_weight, kind_of(data.table.n_categories)

        def grow(gradient: np.ndarray, rows: np.ndarray | None, number: int) -> RefittedTree:
            weight = np.ones(data.n_rows) if total is None else total.copy()
            if rows is not None:
                weight[np.setdiff1d(np.arange(data.n_rows), rows, assume_unique=True)] = 0.0
            tree = DecisionTreeRegressor(**parameters, random_state=seed_of_member(seed, number))
            try:
                with unwatched():
                    tree.fit(data.X, -gradient, sample_weight=weight)
            except FitCancelled as cancelled:
                raise FitCancelled(
                    f"Fitting {type(self).__name__} was cancelled; the estimator is unchanged."
                ) from cancelled
            return RefittedTree(tree.arrays_, tree.apply(data.X), kind)

        return grow

    def _report(
        self, process: ExactRounds, data: GradientData, so_far: SoFar
    ) -> Callable[[int], None]:
        """A function that prints the line of a round for `verbose`."""
        table = RoundTable(
            self.verbose,
            len(so_far.rounds),
            self.n_estimators,
            with_out_of_bag=self.subsample < 1.0,
        )

        def report(number: int) -> None:
            if table.is_due(number + 1):
                losses = [float(self._train_scores(process, data)[-1])]
                if self.subsample < 1.0:
                    losses.append(float(self._out_of_bag(process, data, so_far)[1][-1]))
                table.add(number + 1, *losses)

        return report

    def _after_round(
        self,
        report: Callable[[int], None] | None,
        monitor: Callable[..., Any] | None,
        fitted: Callable[[], dict[str, Any]],
    ) -> Callable[[int], bool]:
        """A function to call after each round: it reports, and calls the user's monitor with the
        current model."""

        def after_round(number: int) -> bool:
            if report is not None:
                report(number)
            if monitor is None:
                return False
            current = copy.copy(self)
            current._commit(fitted())
            return bool(monitor(number, current, {}))

        return after_round

    def _attributes(
        self,
        process: ExactRounds,
        data: GradientData,
        so_far: SoFar,
        init: Any,
        seed: int,
        outcome: str,
    ) -> dict[str, Any]:
        found = self._common_attributes(process, data, so_far, seed, outcome)
        rates = self._rates if so_far.rounds else np.empty(0)
        parameters = {name: getattr(self, name) for name in _TREE_PARAMETERS}
        earlier = self._settings_of_rounds() if so_far.rounds else []
        found |= {
            "n_outputs_": 1,
            "max_features_": number_of_features(self.max_features, data.X.shape[1]),
            "n_estimators_": len(found["_rounds"]),
            "init_": self._init_of_fit(data, so_far, init),
            "_init_model": init,
            "_rates": np.append(rates, [self.learning_rate] * len(process.trees)),
            "_settings": _run_lengths([*earlier, *([parameters] * len(process.trees))]),
            "train_score_": self._train_scores(process, data),
        }
        if data.classes is not None:
            found["n_classes_"] = len(data.classes)
        if self.subsample < 1.0:
            scores, improvement = self._out_of_bag(process, data, so_far)
            found |= {
                "oob_scores_": scores,
                "oob_improvement_": improvement,
                "oob_score_": float(scores[-1]),
            }
        return found

    def _init_of_fit(self, data: GradientData, so_far: SoFar, init: Any) -> Any:
        if so_far.rounds:
            return self.init_
        if init is not None or self.init == "zero":
            return init or "zero"
        with np.errstate(over="ignore"):
            return self._dummy(data)

    def _train_scores(self, process: ExactRounds, data: GradientData) -> np.ndarray:
        """The loss after each round, scaled as in scikit-learn."""
        return _as_reported(process.all_losses()[1:], process.loss, data.scale)

    def _out_of_bag(
        self, process: ExactRounds, data: GradientData, so_far: SoFar
    ) -> tuple[np.ndarray, np.ndarray]:
        """The loss after each round on the rows that its trees were not grown on, and the decrease
        of that loss; zeros for rounds without such rows."""
        pairs = np.array(process.oob_losses[: process.rounds]).reshape(-1, 2)
        before, new = _as_reported(pairs, process.loss, data.scale).T
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
        """The tree parameters of each round; a warm start may have changed them."""
        now = {name: getattr(self, name) for name in _TREE_PARAMETERS}
        runs = getattr(self, "_settings", [[self.n_iter_, now]])  # missing in old model files
        return [parameters for count, parameters in runs for _ in range(count)]

    # -- prediction --

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
                f"init={type(init).__name__} must predict a finite number for each row (> 0 for a "
                "loss with a log link), or a probability of each class. Got predictions of shape "
                f"{raw.T.shape} for {rows.shape[0]} rows. Use another init."
            )
        return raw

    @property
    def estimators_(self) -> np.ndarray:
        """The trees as estimators, (n_estimators_, n_trees_per_iteration_)."""
        check_is_fitted(self, "_rounds")
        names = ("n_features_in_", "feature_names_in_", "categories_", "n_outputs_",
                 "max_features_")  # fmt: skip
        known = {name: getattr(self, name) for name in names if hasattr(self, name)}
        trees = np.empty((self.n_iter_, self.n_trees_per_iteration_), dtype=object)
        settings = self._settings_of_rounds()
        for t, (packed, rate, parameters) in enumerate(
            zip(self._rounds, self._rates, settings, strict=True)
        ):
            template = DecisionTreeRegressor(**parameters)
            scale = 1.0 / rate if rate > 0.0 else 0.0
            scaled = tuple([rescaled(tree, scale, 0)] for tree in packed)
            members = TreeMembers("numbers", self._kind, template, known, scaled)
            for k in range(len(packed)):
                (trees[t, k],) = members.estimators(k)
        return trees

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


def _number_of(limit: Any, samples: int, least: int) -> int:
    """A limit as a number of samples, where a float is a share of the samples."""
    if isinstance(limit, Integral):
        return min(int(limit), 2**31)
    return max(least, int(np.ceil(float(limit) * samples)))


def _run_lengths(settings: list[dict[str, Any]]) -> list[list[Any]]:
    """Run-length encoding of the settings of rounds: pairs [count, settings]."""
    runs: list[list[Any]] = []
    for parameters in settings:
        if runs and runs[-1][1] == parameters:
            runs[-1][0] += 1
        else:
            runs.append([1, parameters])
    return runs


def _as_reported(losses: np.ndarray, loss: GradientLoss, scale: float) -> np.ndarray:
    """Losses in the units of scikit-learn, from losses of targets divided by `scale`."""
    with np.errstate(over="ignore"):
        unit = loss.reported_factor * np.float64(scale) ** loss.degree
        return np.multiply(losses, unit, out=np.zeros_like(losses), where=losses != 0.0)
