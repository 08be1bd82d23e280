"""Cross-validation of kernel machines over C and gamma, with the work shared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove._runtime import (
    drive,
    resolve_n_jobs,
    single_threaded_blas,
    tasks_wanted,
    workers_wanted,
)
from margrove.exceptions import NumericalOverflowError
from margrove.margin.kernels import Kernel
from margrove.select.held_out import Fold, Judge
from margrove.select.machines.gram_series import GramSeries
from margrove.select.machines.grid_cells import Cells
from margrove.select.machines.machine_paths import PathRule, PathSearch
from margrove.select.machines.path_tasks import SpreadSearch
from margrove.select.machines.svm_problems import SvmTask

__all__ = ["kernels_of", "search_cells", "usual_gamma"]


def usual_gamma(task: SvmTask) -> float:
    """What `gamma="scale"` means for these rows, as they were given."""
    training = task.training
    gamma = float(getattr(training.kernel, "gamma", 1.0))
    # The kernel is one of scaled rows; how gamma follows the scale is the kernel's own business.
    one = replace(training.kernel, gamma=1.0)  # type: ignore[call-arg]
    factor = float(getattr(one.on_scaled(training.scale), "gamma", 1.0))
    if not 1e-280 < factor < 1e280:
        raise NumericalOverflowError(
            "The features are so large or so small that gamma is beyond floating point. Scale "
            "them, for example with sklearn.preprocessing.StandardScaler."
        )
    return gamma / factor


def kernels_of(task: SvmTask, gammas: np.ndarray) -> list[Kernel]:
    """The kernel of each gamma, of the scaled rows, all known to be finite there."""
    training = task.training
    if np.isnan(gammas).any():
        return [training.kernel]
    kernels = [
        replace(training.kernel, gamma=float(gamma)).on_scaled(training.scale)  # type: ignore[call-arg]
        for gamma in gammas
    ]
    for kernel in kernels:
        kernel.require_finite(training.points)
    return kernels


def search_cells(
    estimator: Any,
    task: SvmTask,
    Cs: np.ndarray,
    gammas: np.ndarray,
    folds: list[Fold],
    judge: Judge,
) -> tuple[Cells, PathSearch | SpreadSearch]:
    """Solve and judge every cell; the estimator says tol, max_iter, n_jobs and verbose."""
    kernels = kernels_of(task, gammas)
    machines = [task.machines(fold) for fold in folds]
    rule = PathRule(Cs, float(estimator.tol), int(estimator.max_iter))
    points = task.training.points
    search: PathSearch | SpreadSearch
    if len(kernels) * len(folds) > 1 and tasks_wanted(estimator):
        n_workers = workers_wanted(estimator.n_jobs)
        search = SpreadSearch(points, kernels, machines, rule, judge, n_workers=n_workers)
        drive(search, estimator, verbose=int(estimator.verbose))
        return Cells.of_paths(Cs, gammas, search, judge), search
    n_threads = resolve_n_jobs(estimator.n_jobs, unset="all")
    with single_threaded_blas():
        series = GramSeries(kernels, points, n_loans=len(folds), n_threads=n_threads)
        search = PathSearch(series, len(kernels), machines, rule, judge, n_threads=n_threads)
        drive(search, estimator, verbose=int(estimator.verbose))
    return Cells.of_paths(Cs, gammas, search, judge), search
