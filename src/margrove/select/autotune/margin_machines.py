"""Margin machines: perceptrons, linear machines and support vector machines.

Perceptrons get the number of epochs, linear machines get C along a path of warm starts for each
fold, and support vector machines get C (or nu) and gamma on a grid.

`SVCCV` and `SVRCV` share the work of the kernel among all cells of a grid. Where they cannot be
used (steps of a pipeline before the machine, nu, a time limit, other scores than their own), every
setting is fitted to every fold, on a smaller grid that grows where the best is at its edge.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from margrove.margin.kernels import tuned_widths
from margrove.margin.svm import SVC, SVR
from margrove.select.autotune.scores import Scoring
from margrove.select.autotune.task import TuningTask
from margrove.select.autotune.tuning import Choice, Trials, choice_among, chosen_place
from margrove.select.machines import SVCCV, SVRCV

__all__ = ["tune_linear", "tune_perceptron", "tune_svm"]

_EPOCHS = (1, 2, 5, 10, 20, 50, 100)
_LINEAR_CS = tuple(float(f"{C:.4g}") for C in np.logspace(-3, 3, 13))

_SHARED_CS = tuple(10.0**power for power in range(-2, 5))
_SHARED_SCORES = ("accuracy", "r2", "neg_mean_squared_error")  # that need no probabilities

_CS = (0.1, 1.0, 10.0, 100.0)
_NUS = (0.5, 0.35, 0.2, 0.1)
_GAMMA_FACTORS = (0.1, 0.32, 1.0, 3.2, 10.0)
_MAX_EXTENSIONS = 2


def tune_perceptron(task: TuningTask) -> Choice:
    """`max_iter` of both perceptrons, and `average` of the linear one."""
    scoring, rule = task.scoring("accuracy"), task.rule("best")
    has_averages = "average" in task.last.get_params(deep=False)
    default = {"average": [False, True]} if has_averages else {}
    all_epochs = {"tol": None}  # no early stopping
    task = replace(task, last=clone(task.last).set_params(**all_epochs))

    def epochs_of(setting: dict[str, Any]) -> Trials:
        return task.tried([setting | {"max_iter": epochs} for epochs in _EPOCHS], scoring)

    trials = task.of_each_setting(default, ("max_iter",), epochs_of)
    done = (
        f"{_EPOCHS[0]} to {_EPOCHS[-1]} epochs were tried on each of {len(task.folds)} folds"
        f"{', with and without averaging' if has_averages else ''}."
    )
    choice = choice_among(trials, rule, scoring.name, done).saying(*task.remarks)
    return replace(choice, parameters=all_epochs | choice.parameters)


# -- linear machines --


def tune_linear(task: TuningTask) -> Choice:
    """`C` of LinearSVC and LinearSVR."""
    scoring = task.scoring("accuracy" if task.is_classifier else "neg_mean_squared_error")
    rule = task.rule("best")
    trials = task.of_each_setting({}, ("C",), lambda setting: _path(task, setting, scoring))
    done = (
        f"Machines with C from {_LINEAR_CS[0]:g} to {_LINEAR_CS[-1]:g} were fitted for each of "
        f"{len(task.folds)} folds, each started from the one before."
    )
    choice = choice_among(trials, rule, scoring.name, done)
    return choice.saying(*task.remarks, *_at_an_end(choice.parameters["C"]))


def _path(task: TuningTask, setting: dict[str, Any], scoring: Scoring) -> Trials:
    """Scores of ascending C, by_fold (n_C, folds); each fit starts from the one before."""

    def score(k: int) -> list[float]:
        fold = task.fold_rows[k]
        model = clone(task.last).set_params(warm_start=True, **setting)
        found = []
        for C in _LINEAR_CS:
            fold.fit(model.set_params(C=C))
            found.append(scoring(model, fold.X_test, fold.y_test, fold.test_weight))
        return found

    by_fold = task.run_calls(score, [(k,) for k in range(len(task.fold_rows))])
    candidates = [setting | {"C": C} for C in _LINEAR_CS]
    return Trials.of_folds(candidates, np.array(by_fold).T, task.totals)


def _at_an_end(C: float) -> list[str]:
    if C not in (_LINEAR_CS[0], _LINEAR_CS[-1]):
        return []
    return ["This C is at the end of the range: scale the features, or try a C beyond it."]


# -- support vector machines --


def tune_svm(task: TuningTask) -> Choice:
    """`C` or `nu`, and `gamma` where the kernel has one."""
    scoring = task.scoring("accuracy" if task.is_classifier else "neg_mean_squared_error")
    rule = task.rule("best")
    if _can_share(task, scoring):
        trials = task.of_each_setting(
            {}, ("C", "gamma"), lambda setting: _shared(task, setting, scoring)
        )
        done = (
            f"{len(trials[0].scores)} settings, with C from {_SHARED_CS[0]:g} to "
            f"{_SHARED_CS[-1]:g}, were fitted for each of {len(task.folds)} folds with shared "
            "kernel computations."
        )
    else:
        axes = _axes(task)
        trials = task.of_each_setting(
            {}, tuple(axes), lambda setting: _searched(task, setting, axes, scoring)
        )
        done = (
            f"{sum(len(tried.scores) for tried in trials)} settings of {' and '.join(axes)} were "
            f"fitted to each of {len(task.folds)} folds; the grid grew where the best was at its "
            "edge."
        )
    return choice_among(trials, rule, scoring.name, done).saying(*task.remarks)


# -- a grid that shares its work -----------------------------------------------------------------


def _can_share(task: TuningTask, scoring: Scoring) -> bool:
    machine = task.last
    return (
        isinstance(machine, (SVC, SVR))
        and scoring.known_as in _SHARED_SCORES
        and machine.fit_intercept
        and machine.solver == "auto"
        and not task.has_steps_before
        and not task.clock.has_limit
    )


def _shared(task: TuningTask, setting: dict[str, Any], scoring: Scoring) -> Trials:
    machine = clone(task.last).set_params(**setting)
    given, kind = machine.get_params(deep=False), SVCCV if isinstance(machine, SVC) else SVRCV
    known = kind().get_params(deep=False)
    search = kind(**{name: value for name, value in given.items() if name in known})
    search.set_params(
        Cs=_SHARED_CS,
        gammas=_gammas(task, machine.kernel),
        cv=task.folds,
        scoring=scoring.name,
        refit=False,
        n_jobs=1 if task.n_jobs is None else task.n_jobs,
    )
    search.fit(task.rows.X, task.rows.y, task.rows.weight)
    candidates = [
        setting | {"C": float(C)} | ({} if np.isnan(gamma) else {"gamma": float(gamma)})
        for C, gamma in product(search.Cs_, search.cells_.gammas)
    ]
    by_fold = search.scores_.reshape(len(candidates), -1)
    return Trials.of_folds(candidates, by_fold, task.totals)


def _gammas(task: TuningTask, kernel: Any) -> list[float]:
    """Powers of ten times the default gamma, in the range of the kernel; one if it has no gamma."""
    low, high = tuned_widths(kernel) or (0.0, 0.0)
    powers = np.arange(low, high + 0.5)
    return [_rounded(_default_gamma(task) * 10.0 ** float(power)) for power in powers]


# -- a grid whose settings are fitted one by one -------------------------------------------------


def _axes(task: TuningTask) -> dict[str, list[float]]:
    """Values to try, the smoothest machines first: small C, large nu, small gamma."""
    known = task.last.get_params(deep=False)
    is_nu = "nu" in known and task.is_classifier
    axes = {"nu": list(_NUS)} if is_nu else {"C": list(_CS)}
    widths = tuned_widths(known["kernel"])
    if widths is not None:
        low, high = 10.0 ** widths[0], 10.0 ** widths[1]
        factors = [factor for factor in _GAMMA_FACTORS if low <= factor <= high]
        axes["gamma"] = [_rounded(_default_gamma(task) * f) for f in factors or (low, high)]
    return axes


def _searched(
    task: TuningTask, setting: dict[str, Any], axes: dict[str, list[float]], scoring: Scoring
) -> Trials:
    """Trials of the grid, extended where the best setting is at its edge."""
    axes = {name: list(values) for name, values in axes.items()}
    done: dict[tuple[float, ...], np.ndarray] = {}
    for _ in range(1 + _MAX_EXTENSIONS):
        grid = list(product(*axes.values()))
        new = [cell for cell in grid if cell not in done]
        candidates = [setting | dict(zip(axes, cell, strict=True)) for cell in new]
        trials = task.tried(candidates, scoring)
        assert trials.by_fold is not None
        done |= dict(zip(new, trials.by_fold, strict=False))
        cells = [cell for cell in grid if cell in done]
        found = Trials.of_folds(
            [setting | dict(zip(axes, cell, strict=True)) for cell in cells],
            np.array([done[cell] for cell in cells]),
            task.totals,
        )
        best = found.candidates[chosen_place(found.scores, found.standard_errors, "best")]
        if task.clock.is_up or not _extended(axes, best):
            break
    return found


def _extended(axes: dict[str, list[float]], best: dict[str, Any]) -> bool:
    """Add a value beyond each end at which the best setting is; returns whether one was added."""
    has_grown = False
    for name, values in axes.items():
        if name == "nu":  # seldom feasible beyond the given values
            continue
        step = values[1] / values[0]
        if best[name] == values[0]:
            values.insert(0, _rounded(values[0] / step))
            has_grown = True
        elif best[name] == values[-1]:
            values.append(_rounded(values[-1] * step))
            has_grown = True
    return has_grown


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _default_gamma(task: TuningTask) -> float:
    """The value of gamma="scale" for all rows: 1 / (n_features * variance)."""
    X = task.all_rows.X_train
    if sp.issparse(X):
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
    else:
        variance = float(np.asarray(X, dtype=np.float64).var())
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
