"""GridSearchCV: scikit-learn's grid search, with shared work for machines of margrove."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV as SklearnGridSearchCV
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.multiclass import type_of_target

from margrove._runtime import drive, resolve_n_jobs, spread, tasks_wanted, workers_wanted
from margrove.margin.kernels import has_width
from margrove.margin.linear import LinearSVC, LinearSVR
from margrove.margin.svm import SVC, SVR
from margrove.select.held_out import (
    ClassifierFoldScorer,
    Fold,
    FoldScorer,
    RegressorFoldScorer,
    ScoredRows,
)
from margrove.select.machines.grid_cells import Cells
from margrove.select.machines.svm_problems import ClassifierTask, RegressorTask, SvmTask
from margrove.select.machines.svm_search import search_cells
from margrove.select.machines.warm_paths import LinearGrid, warm_paths

__all__ = ["GridSearchCV"]

_KERNEL_MACHINES = (SVC, SVR)
_LINEAR_MACHINES = (LinearSVC, LinearSVR)
_NAMES_OF_PROBABILITIES = ("log_loss", "brier", "proba", "top_k")


class GridSearchCV(SklearnGridSearchCV):
    """scikit-learn's grid search, much faster for the machines of this library.

    Parameters, attributes and results are those of `sklearn.model_selection.GridSearchCV`. Where
    the estimator, or the last step of a pipeline, is an `SVC`, `SVR`, `LinearSVC` or `LinearSVR`
    and the grid has its C (and gamma), the cells that differ in nothing else are computed together:
    the steps before the machine run once for each fold, inner products are shared, and each machine
    starts from that of the next smaller C. Everything else is left to scikit-learn: other
    estimators, several metrics, training scores, scorers of probabilities, rows of weight zero,
    metadata routing.

    Parameters
    ----------
    estimator, param_grid, scoring, n_jobs, refit, cv, verbose : as for scikit-learn's
    pre_dispatch, error_score, return_train_score : as for scikit-learn's

    Attributes
    ----------
    shared_ : bool
        Whether the work was shared.

    Examples
    --------
    >>> from margrove import SVC
    >>> from margrove.datasets import load_iris
    >>> from margrove.tune import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(
    ...     make_pipeline(StandardScaler(), SVC()),
    ...     {"svc__C": [0.1, 1, 10], "svc__gamma": [0.01, 0.1, 1]},
    ... ).fit(X, y)
    >>> search.shared_, bool(search.best_score_ > 0.95)
    (True, True)
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Score all cells of the grid, then fit the best to all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        **params : dict
            Passed to the `fit` of the estimator, such as sample_weight, or to the splitter.

        Returns
        -------
        self
        """
        plan = _plan(self, y, params)
        if plan is None:
            super().fit(X, y, **params)
            self.shared_ = False
            return self
        self._validate_params()
        X, y = indexable(X, y)
        cv = check_cv(self.cv, y, classifier=plan.is_classifier)
        splits = list(cv.split(X, y, params.get("groups")))
        weight = params.get(plan.weight_name)
        try:
            outcomes = plan.outcomes(X, y, weight, splits)
        except (ValueError, MemoryError):  # scikit-learn handles errors as error_score says
            super().fit(X, y, **params)
            self.shared_ = False
            return self
        results = self._format_results(plan.candidates, len(splits), outcomes, {})
        best_index = self._select_best_index(self.refit, "score", results)
        best = results["params"][best_index]
        found: dict[str, Any] = {
            "n_splits_": len(splits),
            "multimetric_": False,
            "scorer_": plan.scorer,
            "cv_results_": results,
            "best_index_": best_index,
            "best_params_": best,
            "shared_": True,
        }
        if not callable(self.refit):
            found["best_score_"] = results["mean_test_score"][best_index]
        if self.refit:
            found |= self._refitted(
                best, X, y, {} if weight is None else {plan.weight_name: weight}
            )
        self.__dict__ |= found
        return self

    def _refitted(self, best: dict[str, Any], X: Any, y: Any, given: dict[str, Any]) -> Any:
        model = clone(self.estimator).set_params(**clone(best, safe=False))
        start = time.time()
        model.fit(X, y, **given)
        found = {"best_estimator_": model, "refit_time_": time.time() - start}
        if hasattr(model, "feature_names_in_"):
            found["feature_names_in_"] = model.feature_names_in_
        return found


@dataclass(frozen=True)
class _Plan:
    """How to share the work: the candidates of the grid, and the scorer."""

    search: Any  # has scoring and n_jobs
    candidates: list[dict[str, Any]]
    prefix: str
    scorer: Any
    is_classifier: bool

    @property
    def weight_name(self) -> str:
        return f"{self.prefix}sample_weight"

    def outcomes(self, X: Any, y: Any, weight: Any, splits: Any) -> list[dict[str, Any]]:
        """The result of scikit-learn's `_fit_and_score` for each candidate and split."""
        found: dict[int, list[dict[str, Any]]] = {}
        for rest, members in self._families():
            Cs = np.unique([self._value_of_c(k) for k in members])
            gammas = np.unique([self._value_of_gamma(k) for k in members])
            cells = self._cells(rest, Cs, gammas, X, y, weight, splits)
            for k in members:
                c = int(np.searchsorted(Cs, self._value_of_c(k)))
                g = (
                    0
                    if np.isnan(gammas[0])
                    else int(np.searchsorted(gammas, self._value_of_gamma(k)))
                )
                found[k] = [
                    {
                        "test_scores": float(cells.scores[c, g, fold]),
                        "n_test_samples": len(test),
                        "fit_time": float(cells.fit_seconds[c, g, fold]),
                        "score_time": float(cells.score_seconds[c, g, fold]),
                    }
                    for fold, (_, test) in enumerate(splits)
                ]
        return [outcome for k in range(len(self.candidates)) for outcome in found[k]]

    def _families(self) -> list[tuple[dict[str, Any], list[int]]]:
        """Groups of candidates that differ only in C and gamma: other parameters, indices."""
        searched = {f"{self.prefix}C", f"{self.prefix}gamma"}
        families: list[tuple[dict[str, Any], list[int]]] = []
        for k, candidate in enumerate(self.candidates):
            rest = {name: value for name, value in candidate.items() if name not in searched}
            for known, members in families:
                if known.keys() == rest.keys() and all(known[n] is rest[n] for n in rest):
                    members.append(k)
                    break
            else:
                families.append((rest, [k]))
        return families

    def _setting(self, k: int, name: str) -> Any:
        """The value of a parameter of the machine in a candidate."""
        default = getattr(_machine(self.search.estimator)[0], name, None)
        return self.candidates[k].get(f"{self.prefix}{name}", default)

    def _value_of_c(self, k: int) -> float:
        return float(self._setting(k, "C"))

    def _value_of_gamma(self, k: int) -> float:
        return float(self._setting(k, "gamma")) if has_width(self._setting(k, "kernel")) else np.nan

    def _cells(
        self, rest: dict[str, Any], Cs: np.ndarray, gammas: np.ndarray, X: Any, y: Any,
        weight: Any, splits: Any,
    ) -> Cells:  # fmt: skip
        model = clone(self.search.estimator).set_params(**clone(rest, safe=False))
        machine, steps = _machine(model)
        if not steps:
            return self._searched(machine, Cs, gammas, X, y, weight, splits)
        machine.set_params(n_jobs=self._n_jobs(machine))
        n_workers = workers_wanted(machine.n_jobs)
        search = SimpleNamespace(n_jobs=machine.n_jobs, scoring=self.search.scoring)
        fold = _PipelineFold(replace(self, search=search, candidates=[]), model, Cs, gammas)
        shared = fold, X, y, weight
        if len(splits) >= n_workers and tasks_wanted(machine):  # else a fold's gammas are tasks
            found = list(spread(_fold_cells, shared, splits, n_workers))
        else:
            found = [_fold_cells(shared, train, test) for train, test in splits]
        return Cells(
            Cs,
            gammas,
            np.concatenate([cells.scores for cells, _ in found], axis=2),
            np.concatenate([cells.fit_seconds + seconds for cells, seconds in found], axis=2),
            np.concatenate([cells.score_seconds for cells, _ in found], axis=2),
            {},
        )

    def _n_jobs(self, machine: Any) -> int | None:
        given = self.search.n_jobs if self.search.n_jobs is not None else machine.n_jobs
        return None if given is None else int(given)

    def _searched(
        self, machine: Any, Cs: np.ndarray, gammas: np.ndarray, X: Any, y: Any, weight: Any,
        splits: Any,
    ) -> Cells:  # fmt: skip
        folds = [Fold(np.asarray(train), np.asarray(test)) for train, test in splits]
        machine = clone(machine).set_params(n_jobs=self._n_jobs(machine), verbose=0)
        if isinstance(machine, _LINEAR_MACHINES):
            return self._warm(machine, Cs, X, y, weight, folds)
        machine._check_parameters()
        scoring = self.search.scoring
        task: SvmTask
        fold_scorer: FoldScorer
        if isinstance(machine, SVC):
            task = classes = ClassifierTask.of(machine, X, y, weight)
            factors = np.ones((len(folds), len(classes.classes)))
            rows = ScoredRows(X, np.asarray(y), np.ones(len(task.weight)), task.position, folds)
            fold_scorer = ClassifierFoldScorer(
                rows, (len(Cs), len(gammas)), scoring, classes.classes, factors, classes.one_vs_one
            )
        else:
            task = numbers = RegressorTask.of(machine, X, y, weight)
            rows = ScoredRows(X, task.target, np.ones(len(task.weight)), task.position, folds)
            fold_scorer = RegressorFoldScorer(rows, (len(Cs), len(gammas)), scoring, numbers.scale)
        if (task.weight <= 0).any():  # `fit` then leaves the search to scikit-learn
            raise ValueError("Rows of weight zero have no points, but are scored.")
        return search_cells(machine, task, Cs, gammas, folds, fold_scorer)[0]

    def _warm(
        self, machine: Any, Cs: np.ndarray, X: Any, y: Any, weight: Any, folds: list[Fold]
    ) -> Cells:
        X = X if sp.issparse(X) else np.asarray(X)
        y = np.asarray(y)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        n_threads = resolve_n_jobs(machine.n_jobs, unset="all")
        grid = LinearGrid(
            machine, sp.csr_array(X) if sp.issparse(X) else X, y, weight, folds, Cs,
            partial(_score, self.scorer),
        )  # fmt: skip
        paths = warm_paths(grid, machine, n_threads)
        drive(paths, machine)
        return paths.cells()


@dataclass(frozen=True)
class _PipelineFold:
    """The work of a fold: fit the steps before the machine once, then all cells."""

    plan: _Plan
    model: Any
    Cs: np.ndarray
    gammas: np.ndarray


def _fold_cells(
    shared: tuple[_PipelineFold, Any, Any, Any], train: np.ndarray, test: np.ndarray
) -> tuple[Cells, float]:
    """The cells of one fold, and the seconds that the steps before the machine took for each."""
    fold, X, y, weight = shared
    machine, steps = _machine(fold.model)
    before, start = clone(Pipeline(steps)), time.perf_counter()
    y_train = _safe_indexing(y, train)
    transformed = before.fit_transform(_safe_indexing(X, train), y_train)
    seconds = time.perf_counter() - start
    table = _stacked(transformed, before.transform(_safe_indexing(X, test)))
    both = np.concatenate([train, test])
    fold_weight = None if weight is None else np.asarray(weight)[both]
    rows = np.arange(len(train)), np.arange(len(train), len(both))
    fold_y = np.asarray(_safe_indexing(y, both))
    cells = fold.plan._searched(machine, fold.Cs, fold.gammas, table, fold_y, fold_weight, [rows])
    return cells, seconds / (len(fold.Cs) * len(fold.gammas))


def _score(scorer: Any, model: Any, X: Any, y: Any, **given: Any) -> Any:
    return scorer(model, X, y)  # as scikit-learn does: weights are for fits


def _plan(search: SklearnGridSearchCV, y: Any, params: dict[str, Any]) -> _Plan | None:
    """How the work can be shared, or None."""
    import sklearn

    found = _machine(search.estimator)[0]
    if found is None or y is None or sklearn.get_config()["enable_metadata_routing"]:
        return None
    prefix = "" if found is search.estimator else f"{search.estimator.steps[-1][0]}__"
    candidates = _candidates(search.param_grid)
    if (
        not candidates
        or not all(_is_solvable(found, prefix, candidate) for candidate in candidates)
        or set(params) - {f"{prefix}sample_weight", "groups"}
        or search.return_train_score
        or not _is_shareable(search.scoring)
        or getattr(search, "_skl_callbacks", None)
    ):
        return None
    is_classifier = isinstance(found, (SVC, LinearSVC))
    try:
        kind = type_of_target(y)
        scorer = check_scoring(search.estimator, scoring=search.scoring)
    except (ValueError, TypeError):
        return None
    if is_classifier and kind not in ("binary", "multiclass"):
        return None
    return _Plan(search, candidates, prefix, scorer, is_classifier)


def _machine(estimator: Any) -> tuple[Any, list[Any]]:
    """The margrove machine at the end of a pipeline, or None, and the steps before it."""
    steps: list[Any] = []
    if type(estimator) is Pipeline and estimator.memory is None and estimator.steps:
        *steps, (_, estimator) = estimator.steps
    is_ours = type(estimator) in (*_KERNEL_MACHINES, *_LINEAR_MACHINES)
    return (estimator if is_ours else None), steps


def _candidates(param_grid: Any) -> list[dict[str, Any]]:
    try:
        return list(ParameterGrid(param_grid))
    except (TypeError, ValueError):
        return []


def _is_solvable(machine: Any, prefix: str, candidate: dict[str, Any]) -> bool:
    """Whether paths can solve a candidate: with an intercept, and numbers for C and gamma."""
    own_parameters = {
        name.removeprefix(prefix): value
        for name, value in candidate.items()
        if name.startswith(prefix)
    }
    is_replaced = prefix.removesuffix("__") in candidate
    if is_replaced or not own_parameters.keys() <= machine.get_params().keys():
        return False
    settings = machine.get_params() | own_parameters
    if not _is_positive(settings["C"]) or settings["warm_start"]:
        return False
    if settings["max_time"] is not None or settings["on_interrupt"] != "raise":
        return False
    if isinstance(machine, _LINEAR_MACHINES):
        return True
    if has_width(settings["kernel"]) and not _is_positive(settings["gamma"]):
        return False
    return (
        settings["fit_intercept"]
        and settings["solver"] in ("auto", "smo")
        and not settings.get("probability", False)
        and not settings.get("break_ties", False)
        and settings["kernel"] != "precomputed"
    )


def _is_positive(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def _is_shareable(scoring: Any) -> bool:
    """Whether `scoring` gives one score, from predictions or decision values."""
    if scoring is None:
        return True
    if isinstance(scoring, str):
        return not any(part in scoring for part in _NAMES_OF_PROBABILITIES)
    return hasattr(scoring, "_score_func") and not isinstance(scoring, Iterable)


def _stacked(above: Any, below: Any) -> Any:
    if sp.issparse(above):
        return sp.vstack([above, below], format="csr")
    return np.vstack([np.asarray(above), np.asarray(below)])
