"""svm_path: kernel machines of ascending C, each started from the one before."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove._data import TrainingLabels, data_frame
from margrove._runtime import drive, resolve_n_jobs, single_threaded_blas
from margrove.margin.solvers.dual import SolverResult
from margrove.margin.svm import SVC, SVR, FitRecord, epsilon_svr
from margrove.select.held_out import Fold
from margrove.select.machines.c_search import check_grid, log_grid
from margrove.select.machines.gram_series import GramSeries
from margrove.select.machines.machine_paths import (
    FoldMachine,
    FoldPaths,
    MachinePath,
    PathRule,
    PathSearch,
)
from margrove.select.machines.svm_problems import ClassifierTask, RegressorTask, SvmTask

__all__ = ["SvmPath", "SvmPathPoint", "svm_path"]

_C_RANGE = (-2.0, 4.0)


@dataclass(frozen=True)
class SvmPathPoint:
    """Figures of the machines at one C.

    Attributes
    ----------
    C : float
    n_support : int
        Support vectors of any machine; equal rows of the training set count once.
    n_bounded : int
        Support vectors at their upper bound in some machine: inside the margin, or misclassified.
    margin : float
        Width of the margin, 2 / ||w||; of several machines, the narrowest.
    objective : float
        Dual objective, to be minimised; of several machines, the sum.
    violation : float
        The largest KKT violation.
    n_steps : int
        Pair steps from the point before.
    """

    C: float
    n_support: int
    n_bounded: int
    margin: float
    objective: float
    violation: float
    n_steps: int


@dataclass(frozen=True)
class SvmPath:
    """Machines of ascending C: their figures in `points`, and each as a fitted estimator.

    Attributes
    ----------
    points : tuple of SvmPathPoint
    """

    points: tuple[SvmPathPoint, ...]
    _estimator: Any = field(repr=False)
    _given: tuple[Any, Any, Any] = field(repr=False)
    _task: SvmTask = field(repr=False)
    _paths: list[MachinePath] = field(repr=False)

    def __len__(self) -> int:
        return len(self.points)

    def machine(self, number: int) -> Any:
        """One machine as a fitted `SVC` or `SVR`, with its certificate.

        Parameters
        ----------
        number : int
            The index of the point, from 0.

        Returns
        -------
        fitted estimator
        """
        point = self.points[number]
        model = clone(self._estimator).set_params(C=point.C)
        number = range(len(self))[number]
        of: Any = _classifier_state if isinstance(self._task, ClassifierTask) else _regressor_state
        model._commit(of(model, self._task, self._paths, number, self._given))
        return model

    def frame(self) -> Any:
        """The points as a pandas DataFrame, one row each."""
        names = [column.name for column in fields(SvmPathPoint)]
        return data_frame({name: [getattr(p, name) for p in self.points] for name in names})

    def plot(self, axes: Any = None) -> Any:
        """Support vectors, margin and objective against C; see `margrove.plot.svm_path`."""
        from margrove.plot.models import svm_path as draw

        return draw(self, axes=axes)


def svm_path(
    estimator: SVC | SVR, X: Any, y: Any, Cs: Any = 20, sample_weight: Any = None
) -> SvmPath:
    """Fit kernel machines for ascending C, each started from the one before.

    Each is solved to the estimator's `tol`, as if it had been fitted alone.

    Parameters
    ----------
    estimator : SVC or SVR
        Its other parameters hold for all machines. It is not changed.
    X, y, sample_weight : as for `fit`
    Cs : int or array-like, default=20
        Values of C, or how many of them from 0.01 to 10000, evenly on a logarithmic scale.

    Returns
    -------
    SvmPath

    Examples
    --------
    >>> from margrove import SVC, svm_path
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svm_path(SVC(), X, y == 1, [0.1, 1.0, 10.0])
    >>> [point.n_support for point in path.points]
    [100, 60, 28]
    >>> bool(path.machine(1).certificate_.violation < 1e-3)
    True
    """
    if not isinstance(estimator, (SVC, SVR)):
        raise TypeError(
            f"estimator must be an SVC or SVR. Got {type(estimator).__name__}: for LinearSVC and "
            "LinearSVR, use linear_path."
        )
    if not estimator.fit_intercept:
        raise ValueError("svm_path needs a machine with an intercept. Use fit_intercept=True.")
    estimator._check_parameters()
    given = check_grid("Cs", Cs, "svm_path")
    C_values = log_grid(*_C_RANGE, given) if isinstance(given, int) else given
    task: SvmTask
    if isinstance(estimator, SVC):
        task = ClassifierTask.of(estimator, X, y, sample_weight)
    else:
        task = RegressorTask.of(estimator, X, y, sample_weight)
    paths = _follow_paths(estimator, task, C_values)
    points = tuple(_point(paths, number, float(C)) for number, C in enumerate(C_values))
    return SvmPath(points, clone(estimator), (X, y, sample_weight), task, paths)


def _follow_paths(estimator: Any, task: SvmTask, C_values: np.ndarray) -> list[MachinePath]:
    """The path of every machine, fitted to all rows."""
    all_rows = np.flatnonzero(task.weight > 0)
    fold = Fold(all_rows, all_rows[:0])
    found: list[MachinePath] = []

    def keep(kernel: int, fold: int, K: np.ndarray, paths: FoldPaths, part: slice) -> None:
        found.extend(path for path in paths if path is not None)

    n_threads = resolve_n_jobs(estimator.n_jobs, unset="all")
    rule = PathRule(C_values, float(estimator.tol), int(estimator.max_iter))
    with single_threaded_blas():
        kernels = [task.training.kernel]
        series = GramSeries(kernels, task.training.points, n_loans=1, n_threads=n_threads)
        search = PathSearch(series, 1, [task.machines(fold)], rule, keep, n_threads=n_threads)
        drive(search, estimator, verbose=int(estimator.verbose))
    return found


def _point(paths: list[MachinePath], number: int, C: float) -> SvmPathPoint:
    supports, bounded, norms = set(), set(), []
    for path in paths:
        machine = path.machine
        alpha = path.alphas[[number]].toarray()[0]
        points = np.concatenate([np.arange(run.start, run.stop) for run in machine.runs])
        point_of_variable = points[machine.rows]
        supports.update(point_of_variable[alpha > 0].tolist())
        is_bounded = alpha >= C * machine.weight * (1 - 1e-12)
        bounded.update(point_of_variable[is_bounded].tolist())
        norms.append(2.0 * (path.objectives[number] - float(machine.p @ alpha)))
    largest = max(0.0, *norms)
    return SvmPathPoint(
        C,
        len(supports),
        len(bounded),
        2.0 / float(np.sqrt(largest)) if largest > 0 else np.inf,
        float(sum(path.objectives[number] for path in paths)),
        float(max(path.violations[number] for path in paths)),
        int(sum(path.steps[number] for path in paths)),
    )


def _result(path: MachinePath, number: int) -> SolverResult:
    return SolverResult(
        alpha=path.alphas[[number]].toarray()[0],
        rho=float(path.rhos[number]),
        r=0.0,
        objective=float(path.objectives[number]),
        violation=float(path.violations[number]),
        iterations=int(path.steps[number]),
        converged=bool(path.converged[number]),
    )


def _classifier_state(
    model: SVC,
    task: ClassifierTask,
    paths: list[MachinePath],
    number: int,
    given: tuple[Any, Any, Any],
) -> dict[str, Any]:
    all_rows = Fold(np.flatnonzero(task.weight > 0), np.empty(0, dtype=np.int64))
    labels = TrainingLabels(task.target, task.classes, task.weight, task.factors(all_rows))
    codes = np.repeat(np.arange(len(task.classes)), np.diff(task.edges))
    training = task.training
    bounds = model._bounds_of(training, labels.counted(training.form)[training.order])
    machines = model._machines(codes, task.classes, bounds)
    results = [_result(path, number) for path in paths]
    record = FitRecord(
        *given, [[] for _ in results], model._scales(machines, results), model._parameters()
    )
    learnt = model._learnt(training, labels, codes, machines, results)
    return task.attributes | learnt | {"_record": record}


def _regressor_state(
    model: SVR,
    task: RegressorTask,
    paths: list[MachinePath],
    number: int,
    given: tuple[Any, Any, Any],
) -> dict[str, Any]:
    machine: FoldMachine = paths[0].machine
    targets = task.scale.apply(task.target[task.training.rows])
    bounds = model.C * machine.weight[: len(targets)]
    problem = epsilon_svr(targets, bounds, task.epsilon * task.scale.factor)
    record = FitRecord(*given, [[]], [1.0 / model._price()], model._parameters())
    learnt = model._learnt(task.training, problem, _result(paths[0], number), task.scale)
    return task.attributes | learnt | {"_record": record}
