"""Support vector machines: the price C (or nu) and the width gamma of the kernel, on a grid.

SVCCV and SVRCV share the work of the kernel among all cells of the grid. Where they cannot be used
(steps of a pipeline before the machine, nu, a limit of time, other scores than their own) every
setting is fitted to every fold, on a smaller grid that grows where the best is at an end of it.
"""

from __future__ import annotations

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

__all__ = ["tune_svm"]

_ALL_PRICES = tuple(10.0**power for power in range(-2, 5))
_SHARED_SCORES = ("accuracy", "r2", "neg_mean_squared_error")  # that need no probabilities

_PRICES = (0.1, 1.0, 10.0, 100.0)
_NUS = (0.5, 0.35, 0.2, 0.1)
_WIDTHS = (0.1, 0.32, 1.0, 3.2, 10.0)
_MOST_EXTENSIONS = 2


def tune_svm(task: TuningTask) -> Choice:
    """`C` or `nu`, and `gamma` where the kernel has one."""
    scoring = task.scoring("accuracy" if task.is_classifier else "neg_mean_squared_error")
    rule = task.rule("best")
    if _can_share(task, scoring):
        own = ("C", "gamma")
        parts = task.of_each_setting({}, own, lambda setting: _shared(task, setting, scoring))
        done = (
            f"{len(parts[0].scores)} settings, with C from {_ALL_PRICES[0]:g} to "
            f"{_ALL_PRICES[-1]:g}, were solved for each of {len(task.folds)} folds, with the work "
            "of the kernel shared among them."
        )
    else:
        axes = _axes(task)
        parts = task.of_each_setting(
            {}, tuple(axes), lambda setting: _searched(task, setting, axes, scoring)
        )
        done = (
            f"{sum(len(part.scores) for part in parts)} settings of {' and '.join(axes)} were "
            f"fitted to each of {len(task.folds)} folds; the grid grew where the best was at an "
            "end of it."
        )
    return choice_among(parts, rule, scoring.name, done).saying(*task.remarks)


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
    own, kind = machine.get_params(deep=False), SVCCV if isinstance(machine, SVC) else SVRCV
    known = kind().get_params(deep=False)
    search = kind(**{name: value for name, value in own.items() if name in known})
    search.set_params(
        Cs=_ALL_PRICES,
        gammas=_widths(task, machine.kernel),
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


def _widths(task: TuningTask, kernel: Any) -> list[float]:
    """Every power of ten between those that the kernel says; any one where there is no gamma."""
    low, high = tuned_widths(kernel) or (0.0, 0.0)
    powers = np.arange(low, high + 0.5)
    return [_rounded(_usual_gamma(task) * 10.0 ** float(power)) for power in powers]


# -- a grid whose settings are fitted one by one -------------------------------------------------


def _axes(task: TuningTask) -> dict[str, list[float]]:
    """Values to try, the smoothest machines first: small prices, great nu, wide kernels."""
    known = task.last.get_params(deep=False)
    is_nu = "nu" in known and task.is_classifier
    axes = {"nu": list(_NUS)} if is_nu else {"C": list(_PRICES)}
    widths = tuned_widths(known["kernel"])
    if widths is not None:
        low, high = 10.0 ** widths[0], 10.0 ** widths[1]
        chosen = [width for width in _WIDTHS if low <= width <= high]
        axes["gamma"] = [_rounded(_usual_gamma(task) * width) for width in chosen or (low, high)]
    return axes


def _searched(
    task: TuningTask, setting: dict[str, Any], axes: dict[str, list[float]], scoring: Scoring
) -> Trials:
    """The grid, and as much around it as the best asks for."""
    axes = {name: list(values) for name, values in axes.items()}
    done: dict[tuple[float, ...], np.ndarray] = {}
    for _ in range(1 + _MOST_EXTENSIONS):
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
    """Add a value beyond each end at which the best is; whether there was any."""
    has_grown = False
    for name, values in axes.items():
        if name == "nu":  # from 0 to 1, and seldom feasible beyond what is there
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


def _usual_gamma(task: TuningTask) -> float:
    """What gamma="scale" would be for all rows: 1 / (n_features * variance)."""
    X = task.whole.X_train
    if sp.issparse(X):
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
    else:
        variance = float(np.asarray(X, dtype=np.float64).var())
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
